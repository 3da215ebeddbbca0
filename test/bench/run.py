"""Measures opensandbox beside `docker run` and beside the kernel's own cost, in one run.

    test/run bench            the full form: 50 pairs, all figures
    test/run bench --short    10 pairs, and only what is asserted

Asserted, as ratios of the same run because machines differ: create to the first finished command is
at least 30 times faster than `docker run` of the same root file system; a foreground command costs
less than 5 ms beyond the process's own time, and its stream has no fixed tail.
"""

import argparse
import concurrent.futures
import json
import shutil
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.report import Table, ms, percentile
from support import rootfs
from support.dockerd import Dockerd
from support.processes import proportional_kib
from support.server import EXECUTABLE, HOST_IMAGE, Server

ROOT_IMAGE = {
    "image": {"uri": "bench:1"},
    "entrypoint": ["/bin/sleep", "100000"],
    "resourceLimits": {},
    "timeout": 600,
}


def timed(action):
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def create_and_run(server, api, image, agents):
    """One client's way from nothing to a finished command: create, endpoint, command."""
    reply = api.post("/sandboxes", image, check=False)
    assert reply.status == 202, reply
    sandbox = agents(reply.json)
    done = sandbox.agent.run(["/bin/true"])
    assert done.code == 0
    return sandbox


def pairs(table, server, docker, count):
    from support.server import Sandbox

    print(f"\ncreate to first command finished, {count} pairs, same root file system")
    api = server.api()
    ours, theirs = [], []

    def one(image):
        begun = time.perf_counter()
        sandbox = create_and_run(server, api, image, lambda created: Sandbox(server, created))
        took = time.perf_counter() - begun
        api.delete(sandbox.path(), check=False)
        sandbox.agent.close()
        return took

    for _ in range(3):  # both warm
        one(ROOT_IMAGE)
        docker.docker("run", "--rm", "bench:1", "/bin/true")
    for _ in range(count):
        ours.append(one(ROOT_IMAGE))
        theirs.append(timed(lambda: docker.docker("run", "--rm", "bench:1", "/bin/true")))
    host = [one(HOST_IMAGE) for _ in range(count)]
    ratio = statistics.median(theirs) / statistics.median(ours)
    table.times("opensandbox, create + endpoint + command", ours)
    table.times("docker run --rm", theirs)
    table.row("docker run / opensandbox, of the medians", f"{ratio:9.1f} x",
              f"worst pair {min(t / o for t, o in zip(theirs, ours)):.1f} x")
    table.times("opensandbox, the built-in image", host)
    table.check("at least 30 times faster than docker run", ratio >= 30)


SPAWN = """
import os, statistics, time
times = []
for _ in range(%d):
    begun = time.perf_counter()
    pid = os.posix_spawn("/usr/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    times.append(time.perf_counter() - begun)
print(statistics.median(times))
"""


def foreground(table, server, count):
    print(f"\nforeground `true` over a kept-alive connection, {count} times")
    with server.create() as sandbox:
        own = float(sandbox.sh(f"python3 -c '{SPAWN % count}'"))
        agent = sandbox.agent
        whole, tails = [], []
        for _ in range(count):
            begun = time.perf_counter()
            terminal = None
            response = agent.open("POST", "/command", body={"argv": ["/usr/bin/true"]})
            while True:
                part = response.read1(65536)
                if not part:
                    break
                if b"execution_complete" in part:
                    terminal = time.perf_counter()
            ended = time.perf_counter()
            assert terminal is not None
            whole.append(ended - begun)
            tails.append(ended - terminal)
        beyond = statistics.median(whole) - own
        table.times("to the end of the stream", whole)
        table.row("the process's own time, spawned inside", ms(own))
        table.row("beyond the process's own time, median", ms(beyond))
        table.times("from the last event to the end of the stream", tails)
        table.check("under 5 ms beyond the process's own time", beyond < 0.005)
        table.check("no fixed tail after the last event", percentile(tails, 0.95) < 0.005)


def available():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no MemAvailable")


def burst_and_memory(table, server, count):
    from support.server import Sandbox

    print(f"\n{count} at once, and what they hold when idle")
    before = server.census() and available()
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        apis = [server.api() for _ in range(count)]
        for api in apis:
            api.connection.connect()

        def one(api):
            return create_and_run(server, api, ROOT_IMAGE, lambda created: Sandbox(server, created))

        begun = time.perf_counter()
        sandboxes = list(threads.map(one, apis))
        took = time.perf_counter() - begun
        for sandbox in sandboxes:
            sandbox.agent.close()
        server.census()
        held = (before - available()) / count
        table.row("all have run a command after", ms(took))
        table.row("memory added per idle sandbox, agent included", f"{held / 1024:9.0f} KiB",
                  "of what the host has available")
        namespaces = {s.sh("/bin/busybox readlink /proc/self/ns/pid").strip() for s in sandboxes}
        table.row("  of which its processes hold", f"{proportional_kib(namespaces) / count:9.0f} KiB",
                  "shared pages divided among their users")
        removed = timed(lambda: list(threads.map(lambda s: s.delete(), sandboxes)))
        table.row("all deleted after", ms(removed))


def receive(agent, method, path, body=None, headers=None):
    """Reads an answer from the bare socket as fast as it comes; returns bytes and seconds."""
    host, port = agent.address.split(":")
    lines = [f"{method} {agent.base}{path} HTTP/1.1", f"Host: {agent.address}", "Connection: close"]
    for name, value in {**agent.headers, **(headers or {})}.items():
        lines.append(f"{name}: {value}")
    lines.append(f"Content-Length: {len(body or b'')}")
    with socket.create_connection((host, int(port)), 60) as connection:
        begun = time.perf_counter()
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        total, buffer, first = 0, bytearray(1 << 20), b""
        while size := connection.recv_into(buffer):
            if not first:
                first = bytes(buffer[:12])
            total += size
        assert first == b"HTTP/1.1 200", first
        return total, time.perf_counter() - begun


def streams(table, server):
    print("\nstreams")
    with server.create() as sandbox:
        agent = sandbox.agent
        sandbox.sh("yes " + "x" * 99 + " | head -c 50000000 > /tmp/lines")
        body = json.dumps({"command": "cat /tmp/lines"}).encode()
        _, took = receive(agent, "POST", "/command", body)
        table.row("50 MB of 100-byte lines as events", f"{50 / took:9.0f} MB/s")
        data = bytes(100_000_000)
        boundary = "bench"
        upload = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="metadata"; filename="metadata"\r\n\r\n'
            '{"path":"/tmp/big","mode":644}\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        ).encode() + data + f"\r\n--{boundary}--\r\n".encode()
        _, took = receive(agent, "POST", "/files/upload", upload,
                          {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        table.row("upload of 100 MB, synced to disk", f"{100 / took:9.0f} MB/s")
        total, took = receive(agent, "GET", "/files/download?path=/tmp/big")
        assert total > len(data)
        table.row("download of 100 MB", f"{100 / took:9.0f} MB/s")


def program(table, directory):
    print("\nthe program")
    table.row("executable, stripped", f"{EXECUTABLE.stat().st_size / 1e6:9.1f} MB")
    server = Server(directory / "start", pool_size=0)
    try:
        begun = time.perf_counter()
        server.start()
        assert server.api(prefix="").get("/health").status == 200
        table.row("start of serve to its first answer", ms(time.perf_counter() - begun))
        for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                table.row("server memory, idle, resident", f"{int(line.split()[1]) / 1024:9.1f} MiB")
    finally:
        server.destroy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    table = Table()
    directory = Path(tempfile.mkdtemp(prefix="opensandbox-bench-", dir="/var/tmp"))
    server = Server(directory / "server", pool_size=8 if short else 20)
    try:
        tree = rootfs.busybox_tree(directory / "tree")
        archive = rootfs.tar_of_tree(tree, directory / "root.tar")
        server.start()
        server.cli("image", "import", archive, "bench:1")
        with Dockerd() as docker:
            docker.import_tree(tree, "bench:1")
            pairs(table, server, docker, 10 if short else 50)
        foreground(table, server, 50 if short else 200)
        burst_and_memory(table, server, 20 if short else 100)
        if not short:
            streams(table, server)
            program(table, directory)
    finally:
        server.destroy()
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
