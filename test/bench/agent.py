"""Measures the agent by itself beside an HTTP agent in Go that does the same work (go_agent/), in
one run and on the same machine.

    test/run bench            the full form
    test/run bench --short    fewer rounds, and only what is asserted

Asserted: the end of the stream of a foreground `true` comes no later than the Go agent's, in the
median; 50 MB of 100-byte lines no later either; uploads and downloads, which are mostly the disk's
and the kernel's work, in less than 2.5 times its time; memory of the idle agent and of the one that
did all this below 6 and 24 MB; a warm python context answers before a new interpreter would run.
"""

import argparse
import functools
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.report import Table, ms
from support.agent import StandaloneAgent
from support.server import EXECUTABLE
from support.shell import run

FOLDER = Path(__file__).parent
MB = 1_000_000


class Peer:
    """One agent on a port, spoken to over bare sockets so that the client's own cost is small and
    the same for both."""

    def __init__(self, name, port, fields, pid):
        self.name, self.port, self.fields, self.pid = name, port, fields, pid
        self.kept = socket.create_connection(("127.0.0.1", port), 60)

    def head(self, method, path, size, more=""):
        return (f"{method} {path} HTTP/1.1\r\nHost: a\r\n{self.fields}{more}"
                f"Content-Length: {size}\r\n\r\n").encode()

    def true(self):
        """A foreground `true` over the kept connection, to the last chunk."""
        body = b'{"command":"true"}'
        begun = time.perf_counter()
        self.kept.sendall(self.head("POST", "/command", len(body)) + body)
        text = b""
        while not text.endswith(b"\r\n0\r\n\r\n"):
            part = self.kept.recv(65536)
            assert part, text
            text += part
        assert b"execution_complete" in text, text
        return time.perf_counter() - begun

    def exchange(self, method, path, body=b"", more=""):
        """Seconds to the end of the answer, and its size."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            begun = time.perf_counter()
            connection.sendall(self.head(method, path, len(body), "Connection: close\r\n" + more))
            connection.sendall(body)
            size, first, buffer = 0, b"", bytearray(1 << 20)
            while got := connection.recv_into(buffer):
                first = first or bytes(buffer[:12])
                size += got
            assert first == b"HTTP/1.1 200", first
            return time.perf_counter() - begun, size

    def resident(self):
        """Megabytes."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / MB
        raise AssertionError("no VmRSS")


def in_memory(program, directory):
    """A copy of a program whose pages count alike in every run: of a file on a disk the kernel maps as
    much at a time as it once read, up to 2 MB for a byte."""
    return shutil.copy(program, directory / program.name)


def go_agent(directory, memory):
    program = directory / "goagent"
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOCACHE": str(directory / "cache"), "CGO_ENABLED": "0"}
    run("go", "build", "-o", program, ".", cwd=FOLDER / "go_agent", env=environment, timeout=600)
    process = subprocess.Popen([in_memory(program, memory)], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def foreground(table, ours, go, count):
    print(f"\nforeground `true` over a kept connection, {count} times in turn")
    for peer in (ours, go):
        for _ in range(20):
            peer.true()

    def measure():
        times = {ours: [], go: []}
        for _ in range(count):
            for peer in (ours, go):
                times[peer].append(peer.true())
        for peer in (ours, go):
            table.times(peer.name, times[peer])
        return statistics.median(times[ours]) <= statistics.median(times[go])

    table.attempt("no slower than the Go agent in the median", measure)


def best(rounds, actions):
    """The best of each action's rounds, taken in turn so that all see the same machine."""
    seconds = {peer: [] for peer in actions}
    for _ in range(rounds):
        for peer, action in actions.items():
            seconds[peer].append(action()[0])
    return {peer: min(taken) for peer, taken in seconds.items()}


def lines_command(directory):
    """A request for 50 MB of 100-byte lines."""
    lines = directory / "lines"
    lines.write_bytes((b"x" * 99 + b"\n") * 500_000)
    return json.dumps({"command": f"cat {lines}"}).encode()


def upload(peer, target, data):
    """An action of `best`: this file, sent as the published contract has it."""
    form = (
        '--b\r\nContent-Disposition: form-data; name="metadata"; filename="metadata"\r\n\r\n'
        + json.dumps({"path": str(target)})
        + '\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    ).encode() + data + b"\r\n--b--\r\n"
    field = "Content-Type: multipart/form-data; boundary=b\r\n"
    return functools.partial(peer.exchange, "POST", "/files/upload", form, field)


def output(table, ours, go, directory, rounds):
    print(f"\n50 MB of 100-byte lines to a client on loopback, best of {rounds}")
    body = lines_command(directory)

    def measure():
        seconds = best(rounds, {
            peer: functools.partial(peer.exchange, "POST", "/command", body) for peer in (ours, go)
        })
        for peer in (ours, go):
            table.row(peer.name, f"{50 / seconds[peer]:9.0f} MB/s")
        return seconds[ours] <= seconds[go]

    table.attempt("no slower than the Go agent", measure)


def files(table, ours, go, directory, rounds):
    print(f"\n100 MB up (synced) and down, best of {rounds}")
    data, target = os.urandom(MB) * 100, directory / "big"
    up = {
        ours: upload(ours, target, data),
        go: functools.partial(go.exchange, "POST", f"/files/upload?path={target}", data),
    }
    down = {
        peer: functools.partial(peer.exchange, "GET", f"/files/download?path={target}")
        for peer in (ours, go)
    }

    def measure(what, actions):
        seconds = best(rounds, actions)
        for peer in (ours, go):
            table.row(f"{peer.name}, {what}", f"{100 / seconds[peer]:9.0f} MB/s")
        return seconds[ours] < 2.5 * seconds[go]

    for what, actions in (("up", up), ("down", down)):
        table.attempt(f"{what} in less than 2.5 times the Go agent's time",
                      functools.partial(measure, what, actions))
    assert target.read_bytes() == data


def code(table, agent, count):
    print(f"\nfirst result in a fresh python context, {count} times")
    api = agent.connect()

    def context():
        begun = time.perf_counter()
        id = api.post("/code/context", {"language": "python"}, check=False).json["id"]
        body = {"code": "6*7", "context": {"id": id, "language": "python"}}
        response = api.open("POST", "/code", body=body)
        text = response.read()
        took = time.perf_counter() - begun
        assert b'"text":"42"' in text, text
        api.delete(f"/code/contexts/{id}", check=False)
        return took

    def interpreter():
        begun = time.perf_counter()
        subprocess.run(["python3", "-c", "import ast, json, traceback"], check=True)
        return time.perf_counter() - begun

    context()
    own = [interpreter() for _ in range(count)]
    quick = [context() for _ in range(count)]
    warm = []
    for _ in range(count):
        time.sleep(0.3)  # the next warm interpreter is made beside the requests
        warm.append(context())
    table.times("the interpreter by itself, with what a driver imports", own)
    table.times("one after the other", quick)
    table.times("from a warm interpreter", warm)
    table.check("from a warm interpreter faster than the interpreter's own start",
                statistics.median(warm) < statistics.median(own))


def memory(table, ours, go, idle):
    print("\nresident memory")
    for peer in (ours, go):
        table.row(peer.name, f"{peer.resident():9.1f} MB", f"{idle[peer]:.1f} MB before all this")
    table.check("under 6 MB idle", idle[ours] < 6)
    table.check("under 24 MB after all this", ours.resident() < 24)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    table = Table()
    directory = Path(tempfile.mkdtemp(prefix="opensandbox-bench-", dir="/var/tmp"))
    programs = Path(tempfile.mkdtemp(prefix="opensandbox-bench-", dir="/dev/shm"))
    process = None
    try:
        process, port = go_agent(directory, programs)
        copied = in_memory(EXECUTABLE, programs)
        with StandaloneAgent(directory, "bench-token-bench-token", executable=copied) as agent:
            token = "X-EXECD-ACCESS-TOKEN: bench-token-bench-token\r\n"
            ours = Peer("opensandbox exec", agent.port, token, agent.process.pid)
            go = Peer("Go agent", port, "", process.pid)
            idle = {ours: ours.resident(), go: go.resident()}
            foreground(table, ours, go, 100 if short else 1000)
            output(table, ours, go, directory, 2 if short else 5)
            files(table, ours, go, directory, 2 if short else 5)
            memory(table, ours, go, idle)
            code(table, agent, 5 if short else 30)
            ours.kept.close()
    finally:
        if process:
            process.kill()
            process.wait()
        for made in (directory, programs):
            shutil.rmtree(made, ignore_errors=True)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
