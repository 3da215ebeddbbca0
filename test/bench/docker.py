"""Measures the Docker runtime beside the published Python server, on one engine and in one run.

    test/run bench docker                     20 rounds, 3 s of load each
    test/run bench docker --short             5 rounds, 1 s
    test/run bench docker --only published    some of: published, docker, native

All start the same image with the same agent: ours, since the published server takes it, too
(packaging/execd-image). What is asserted needs both servers on Docker: create adds at most 30 ms to
what the engine takes for the same container; memory under 20 MB; list at 500 times, proxied requests
and /health at 50 times the published server's requests per second.
"""

import argparse
import concurrent.futures
import re
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench import subjects
from bench.report import Comparison, Table
from support import rootfs
from support.dockerd import BUSYBOX, Dockerd
from support.published_server import make_execd_image
from support.shell import run

BURST = 20


class Engine:
    """The engine alone: the same container as a sandbox's, without any server."""

    def __init__(self, docker):
        self.api = docker.api()
        self.body = None

    def like(self, sandbox):
        """Takes over how this sandbox's container was made; its ports are left to the engine."""
        found = self.api.request("GET", f"/containers/sandbox-{sandbox}/json")
        host = found["HostConfig"]
        host["PortBindings"] = {port: [{"HostIp": "127.0.0.1", "HostPort": ""}] for port in host["PortBindings"] or {}}
        config = found["Config"]
        self.body = {
            "Image": config["Image"], "Env": config["Env"], "ExposedPorts": config.get("ExposedPorts"),
            "Entrypoint": ["tail", "-f", "/dev/null"], "HostConfig": host,
        }

    def create_and_start(self):
        begun = time.perf_counter()
        id = self.api.request("POST", "/containers/create", self.body)["Id"]
        self.api.request("POST", f"/containers/{id}/start")
        took = time.perf_counter() - begun
        self.api.request("DELETE", f"/containers/{id}?force=true")
        return took


def sequential(table, comparison, servers, engine, rounds):
    print(f"\ncreate, one after the other, {rounds} rounds in turns")
    times = {subject.name: [] for subject in servers}
    engines = []
    for subject in servers:  # all warm
        warm = subject.create()
        if "native" not in subject.name:
            engine.like(warm.id)
        subject.delete(warm.id)
    for _ in range(rounds):
        if engine.body:
            engines.append(engine.create_and_start())
        for subject in servers:
            done = subject.create()
            times[subject.name].append(done)
            subject.delete(done.id)
    if engines:
        table.times("the engine alone, create and start of such a container", engines)
    for subject in servers:
        taken = times[subject.name]
        table.times(f"{subject.name}: create", [t.created for t in taken])
        table.times("  to the first command finished", [t.finished for t in taken])
        for title, value in (("create", "created"), ("create to first command finished", "finished"),
                             ("create to the end of its stream", "ended")):
            comparison.less(subject.name, title, statistics.median(getattr(t, value) for t in taken) * 1000, "ms")
    return statistics.median(engines) * 1000 if engines else None


def burst(comparison, subject):
    """All at once; returns the sandboxes, still alive."""
    apis = [subject.api() for _ in range(BURST)]
    with concurrent.futures.ThreadPoolExecutor(BURST) as threads:
        begun = time.perf_counter()
        made = [done.id for done in threads.map(subject.create, apis)]
        comparison.less(subject.name, f"burst of {BURST}, each ran a command", (time.perf_counter() - begun) * 1000, "ms")
    return made


def load(subject, path, seconds):
    """Requests per second of one path, over 8 connections."""
    headers = [a for name, value in subject.headers.items() for a in ("-H", f"{name}: {value}")]
    out = run("wrk", "-t1", "-c8", f"-d{seconds}s", "--timeout", "20s", *headers,
              f"http://{subject.server.address}{path}", timeout=seconds + 60).stdout
    assert "Non-2xx" not in out, out
    return float(re.search(r"Requests/sec:\s+([0-9.]+)", out)[1])


def under_load(comparison, subject, sandboxes, seconds):
    for title, path in (
        (f"list of {BURST}, requests/s", f"/v1/sandboxes?pageSize={BURST}"),
        ("proxied small requests/s", f"/v1/sandboxes/{sandboxes[0]}/proxy/44772/ping"),
        ("/health, requests/s", "/health"),
    ):
        load(subject, path, 1)
        comparison.more(subject.name, title, load(subject, path, seconds), "")


def measure(servers, engine, rounds, seconds):
    table = Table()
    comparison = Comparison([subject.name for subject in servers])
    for subject in servers:
        comparison.less(subject.name, "server memory, idle", subject.memory_kib() / 1024, "MiB")
    own = sequential(table, comparison, servers, engine, rounds)
    for subject in servers:
        print(f"\n{subject.name}: burst, list, proxy, health", flush=True)
        sandboxes = burst(comparison, subject)
        under_load(comparison, subject, sandboxes, seconds)
        comparison.less(subject.name, "server memory, after all this", subject.memory_kib() / 1024, "MiB")
        for id in sandboxes:
            subject.delete(id)
    print("\nside by side; how many times better than the first")
    comparison.show()
    return table, comparison, own


def check(table, comparison, own):
    ours, theirs = "opensandbox, docker", "published server"
    if ours not in comparison.names or theirs not in comparison.names:
        return
    added = comparison.value(ours, "create") - own
    table.row("what ours adds to the engine's create and start", f"{added:9.1f} ms")
    table.row("what the published server adds", f"{comparison.value(theirs, 'create') - own:9.1f} ms")
    table.check("create adds at most 30 ms to what the engine takes", added <= 30)
    table.check("memory under 20 MB after all this",
                comparison.value(ours, "server memory, after all this") * 1.048576 < 20)
    for title, factor in ((f"list of {BURST}, requests/s", 500), ("proxied small requests/s", 50),
                          ("/health, requests/s", 50)):
        ratio = comparison.value(ours, title) / comparison.value(theirs, title)
        table.check(f"{title}: at least {factor} times", ratio >= factor)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="published,docker,native")
    options = parser.parse_args()
    wanted = options.only.split(",")
    rounds, seconds = (5, 1) if options.short else (20, 3)
    directory = Path(tempfile.mkdtemp(prefix="opensandbox-bench-", dir="/var/tmp"))
    servers = []
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        docker = stack.enter_context(Dockerd(reachable=True))
        tree = rootfs.busybox_tree(directory / "tree")
        docker.import_tree(tree, BUSYBOX)
        if "published" in wanted:
            make_execd_image(docker)
            servers.append(subjects.published(directory, docker))
            stack.callback(servers[-1].server.destroy)
        if "docker" in wanted:
            servers.append(subjects.on_docker(directory, docker))
            stack.callback(servers[-1].server.destroy)
        if "native" in wanted:
            archive = rootfs.tar_of_tree(tree, directory / "root.tar")
            servers.append(subjects.on_native(directory, archive))
            stack.callback(servers[-1].server.destroy)
        table, comparison, own = measure(servers, Engine(docker), rounds, seconds)
        check(table, comparison, own)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
