"""Create to the first finished command on the native runtime, beside what else starts sandboxes.

    test/run bench native             200 rounds in turns, bursts of 100
    test/run bench native --short     20 rounds, bursts of 20

All run the same root file system. Sequential: each round starts one of every kind. Burst: so many at
once, until the last one has run its command. Asserted: at least 100 times faster than the published
server on Docker, with the same agent.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.journey import Sandboxes, alone, together
from bench.report import Table, ms, percentile
from support import rootfs
from support.dockerd import BUSYBOX, CLIENT, Dockerd
from support.published_server import PublishedServer, make_execd_image
from support.server import Server
from support.shell import run

REQUEST = {
    "image": {"uri": BUSYBOX},
    "entrypoint": ["tail", "-f", "/dev/null"],
    "resourceLimits": {"memory": "256Mi"},
    "timeout": 3600,
}
WARM_IMAGE = "warm-python:1"
WARM = '[{"language": "python", "import": ["json", "http.client", "decimal", "asyncio"]}]'
FIRST_CODE = {
    "code": "import json, http.client, decimal, asyncio; print(json.dumps({'sum': 1 + 1}))",
    "context": {"language": "python"},
}


class Served:
    """Sandboxes of a server."""

    def __init__(self, name, server, request=REQUEST, **first):
        self.name = name
        self.sandboxes = Sandboxes(server, request, **first)
        self.connection = self.sandboxes.connect()

    def once(self):
        begun = time.perf_counter()
        id = alone(self.sandboxes.journey(self.connection))
        took = time.perf_counter() - begun
        alone(self.sandboxes.delete(self.connection, id))
        return took

    def burst(self, count):
        connections = [self.sandboxes.connect() for _ in range(count)]
        begun = time.perf_counter()
        ids = together(*map(self.sandboxes.journey, connections))
        took = time.perf_counter() - begun
        together(*(self.sandboxes.delete(c, id) for c, id in zip(connections, ids)))
        for connection in connections:
            connection.close()
        return took


class Program:
    """A program that makes a sandbox for one command and ends with it."""

    def __init__(self, name, argv, environment=None):
        self.name, self.argv = name, argv
        self.environment = {**os.environ, **(environment or {})}
        self.count = 0

    def _start(self):
        self.count += 1
        return subprocess.Popen([a.replace("{}", str(self.count)) for a in self.argv], env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def _end(self, process):
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, f"{self.name}: {said.decode(errors='replace')}"

    def once(self):
        begun = time.perf_counter()
        self._end(self._start())
        return time.perf_counter() - begun

    def burst(self, count):
        begun = time.perf_counter()
        for process in [self._start() for _ in range(count)]:
            self._end(process)
        return time.perf_counter() - begun


def bubblewrap(tree):
    return Program("bwrap", ["bwrap", "--unshare-all", "--die-with-parent", "--bind", str(tree), "/", "--proc",
                             "/proc", "--dev", "/dev", "/bin/true"])


def runc(tree, directory):
    bundle = directory / "bundle"
    bundle.mkdir()
    run("runc", "spec", cwd=bundle)
    spec = json.loads((bundle / "config.json").read_text())
    spec["process"]["terminal"] = False
    spec["process"]["args"] = ["/bin/true"]
    spec["root"] = {"path": str(tree), "readonly": True}
    (bundle / "config.json").write_text(json.dumps(spec))
    name = f"bench-{os.getpid()}-{{}}"
    return Program("runc run", ["runc", "--root", str(directory / "runc"), "run", "-b", str(bundle), name])


def docker_run(docker):
    return Program("docker run --rm", [CLIENT, "run", "--rm", BUSYBOX, "/bin/true"],
                   {"DOCKER_HOST": docker.socket, "DOCKER_CONFIG": str(docker.directory)})


class Machine:
    """Everything that takes part."""

    def __init__(self, stack, directory):
        self.stack, self.directory = stack, directory
        self.tree = rootfs.busybox_tree(directory / "tree")
        self.archive = rootfs.tar_of_tree(self.tree, directory / "root.tar")

    def native(self, name, slots, **options):
        server = Server(self.directory / name, pool_size=slots, **options)
        self.stack.callback(server.destroy)
        server.start()
        server.cli("image", "import", self.archive, BUSYBOX)
        return server

    def engine(self):
        docker = self.stack.enter_context(Dockerd(reachable=True))
        docker.import_tree(self.tree, BUSYBOX)
        make_execd_image(docker)
        return docker

    def published(self, docker):
        server = PublishedServer(self.directory / "published", docker)
        self.stack.callback(server.destroy)
        return server.start()


def warm_image(machine):
    """A Python image whose slots wait with libraries imported."""
    tree = rootfs.debian_tree(machine.directory / "debian")
    layer = rootfs.tar_of_tree(tree, machine.directory / "debian.tar").read_bytes()
    archive = machine.directory / "warm.tar"
    rootfs.oci_layout(archive, [layer], compress=False, Labels={"opensandbox.io/warm": WARM})
    return archive


def warm_subject(machine, name, archive, server="warm", **options):
    """The first Python result of a server that has that image, once its slots wait."""
    server = machine.native(server, 8, sections={"native.warm": {"size": 4, "max": 4}}, **options)
    server.cli("image", "import", archive, WARM_IMAGE, timeout=300)
    request = {**REQUEST, "image": {"uri": WARM_IMAGE}}
    subject = Served(name, server, request, path="/code", command=FIRST_CODE)
    subject.once()  # makes the image known
    full(server, 4, "opensandbox_warm_slots_ready")
    return subject


def full(server, slots, metric="opensandbox_slots_ready"):
    """Waits until all slots are ready, and a little more: nothing of the last burst goes on then."""
    until = time.monotonic() + 120
    api = server.api(prefix="")
    while f"\n{metric} {slots}\n" not in api.get("/metrics").text:
        assert time.monotonic() < until, f"{metric} does not become {slots}"
        time.sleep(0.05)
    settle()


def settle():
    """What others have yet to write to the disk is theirs, and not a burst's."""
    os.sync()
    time.sleep(0.5)


def sequential(subjects, rounds):
    print(f"\nsequential, {rounds} rounds in turns", flush=True)
    times = {subject.name: [] for subject in subjects}
    for _ in range(3):
        for subject in subjects:
            subject.once()
    for _ in range(rounds):
        for subject in subjects:
            times[subject.name].append(subject.once())
            # What it leaves behind is not to slow down the next one.
            time.sleep(0.03)
    return times


def show(times, bursts, base):
    print(f"\n  {'create to the first command finished':<52}{'median':>12}{'best':>12}{'95 %':>12}{'burst':>12}"
          f"{'times slower':>14}")
    for name in {**times, **bursts}:
        cells = ["", "", ""]
        slower = ""
        if name in times:
            taken = times[name]
            cells = [ms(statistics.median(taken)), ms(min(taken)), ms(percentile(taken, 0.95))]
            slower = f"{statistics.median(taken) / statistics.median(times[base]):.1f}"
        burst = ms(statistics.median(bursts[name])) if name in bursts else ""
        print(f"  {name:<52}" + "".join(f"{cell.strip():>12}" for cell in [*cells, burst]) + f"{slower:>14}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    rounds, count = (20, 20) if short else (200, 100)
    few = max(4, count // 5)
    table = Table()
    directory = Path(tempfile.mkdtemp(prefix="opensandbox-bench-", dir="/var/tmp"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        machine = Machine(stack, directory)
        docker = machine.engine()
        ours = machine.native("native", few)
        first = Served("opensandbox", ours)
        published = Served("published server on Docker, our agent", machine.published(docker))
        others = [bubblewrap(machine.tree), runc(machine.tree, directory), docker_run(docker), published]
        python = warm_subject(machine, "opensandbox, first Python result, libraries loaded", warm_image(machine))
        times = sequential([first, *others, python], rounds)

        print(f"\nbursts of {count}", flush=True)
        bursts = {}
        for slots in (count, few):
            server = machine.native(f"burst-{slots}", slots)
            subject = Served(f"opensandbox, from {slots} slots", server)
            taken = bursts.setdefault(subject.name, [])
            for _ in range(6):
                full(server, slots)
                taken.append(subject.burst(count))
            del taken[0]  # the first one of a server makes what stays
            server.destroy()
        for subject in others:
            settle()
            bursts[subject.name] = [subject.burst(count)]
        show(times, bursts, first.name)
        ratio = statistics.median(times[published.name]) / statistics.median(times[first.name])
        table.check(f"at least 100 times faster than the published server: {ratio:.0f}", ratio >= 100)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
