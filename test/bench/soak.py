"""Create, run a command, delete, again and again: nothing grows.

    test/run soak [CYCLES]    20000 by default

What server and spawner hold, and what is on the host, is taken after a first part of the cycles, when
every cache has its size, and at the end. Fails when there is more then than a fixed allowance.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from bench.journey import Sandboxes, together
from bench.report import Table
from support import census
from support.server import Server, children_of

AT_ONCE = 8
REQUEST = {
    "image": {"uri": "host"},
    "entrypoint": ["tail", "-f", "/dev/null"],
    "resourceLimits": {"cpu": "1", "memory": "256Mi"},
    "metadata": {"soak": "yes"},
    "timeout": 3600,
}
#: What may be more at the end: pages that an allocator keeps, a connection that is being closed.
RESIDENT_KIB = 4096
DESCRIPTORS = 4
DISK_KIB = 4096


def resident_kib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"no memory of {pid}")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def disk_kib(directory):
    total = 0
    for path, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks
            except OSError:
                continue
    return total // 2


def kernel_kib():
    """What the kernel cannot give back: a namespace that stays shows here."""
    for line in open("/proc/meminfo"):
        if line.startswith("SUnreclaim:"):
            return int(line.split()[1])
    return 0


class Holdings:
    """What there is at one moment, at rest."""

    def __init__(self, server):
        self.census = server.census()
        spawner = server.spawner()
        workers = children_of(spawner)
        namespace = os.readlink(f"/proc/{spawner}/ns/pid")
        workers = [p for p in workers if os.readlink(f"/proc/{p}/ns/pid") == namespace]
        self.descriptors = {"server": descriptors(server.process.pid), "spawner": descriptors(spawner)}
        self.resident = {"server": resident_kib(server.process.pid), "spawner": resident_kib(spawner),
                         "workers": sum(map(resident_kib, workers))}
        self.disk = disk_kib(server.state)
        self.kernel = kernel_kib()

    def show(self, cycles, took):
        print(f"  {cycles:>7} cycles, {took:7.0f} s: descriptors {self.descriptors}, resident KiB {self.resident}, "
              f"disk {self.disk} KiB, kernel {self.kernel} KiB, {census.totals(self.census)}", flush=True)


def cycle(sandboxes, connection):
    id = yield from sandboxes.journey(connection)
    yield from sandboxes.delete(connection, id)


def compare(first, last, table):
    for name, before in first.descriptors.items():
        table.check(f"descriptors of the {name}: {before}, then {last.descriptors[name]}",
                    last.descriptors[name] <= before + DESCRIPTORS)
    for name, before in first.resident.items():
        table.check(f"memory of the {name}: {before} KiB, then {last.resident[name]}",
                    last.resident[name] <= before + RESIDENT_KIB)
    table.check(f"disk: {first.disk} KiB, then {last.disk}", last.disk <= first.disk + DISK_KIB)
    left = census.difference(first.census, last.census)
    print("".join(f"  {line}\n" for line in left), end="")
    table.check("mounts, links, routes, rules, cgroups, processes, files: as many as before", not left)


def main():
    cycles = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    parts = 10
    table = Table()
    with tempfile.TemporaryDirectory(prefix="opensandbox-soak-", dir="/var/tmp") as directory:
        server = Server(Path(directory) / "server", pool_size=16)
        try:
            server.start()
            sandboxes = Sandboxes(server, REQUEST)
            connections = [sandboxes.connect() for _ in range(AT_ONCE)]
            begun, done, holdings = time.monotonic(), 0, []
            for part in range(parts):
                until = cycles * (part + 1) // parts
                while done < until:
                    together(*(cycle(sandboxes, connection) for connection in connections))
                    done += AT_ONCE
                holdings.append(Holdings(server))
                holdings[-1].show(done, time.monotonic() - begun)
            compare(holdings[0], holdings[-1], table)
        finally:
            server.destroy()
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
