"""Many sandboxes alive at once: all answer, they are small, and nothing of them is left.

    test/run scale [N]        1000 by default

Fails when one does not answer, when one takes more than 1 MB of what the host has available, when a
list takes longer than 50 ms, or when anything is left behind.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.journey import Sandboxes, alone, together
from bench.report import Table, ms
from support import census
from support.server import Server

AT_ONCE = 32
REQUEST = {
    "image": {"uri": "host"},
    "entrypoint": ["tail", "-f", "/dev/null"],
    "resourceLimits": {},
    "timeout": 3600,
}


def available():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no MemAvailable")


def status(pid, field):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise AssertionError(f"no {field} of {pid}")


def in_turns(count, way):
    """way(connection number) for each of 0..count, AT_ONCE at once."""
    results = []
    for begin in range(0, count, AT_ONCE):
        results += together(*map(way, range(begin, min(count, begin + AT_ONCE))))
    return results


def measure(server, count, table):
    sandboxes = Sandboxes(server, REQUEST)
    connections = [sandboxes.connect() for _ in range(AT_ONCE)]

    def connection(number):
        return connections[number % AT_ONCE]

    alone(sandboxes.delete(connections[0], alone(sandboxes.journey(connections[0]))))  # the image is made
    before, memory = server.census(), available()
    begun = time.perf_counter()
    ids = in_turns(count, lambda n: sandboxes.create(connection(n)))
    table.row(f"{count} created, {AT_ONCE} at once", f"{time.perf_counter() - begun:9.2f} s")
    table.check("all are different", len(set(ids)) == count)
    where = in_turns(count, lambda n: sandboxes.endpoint(connection(n), ids[n]))
    answering(sandboxes, where, table, "each has run a command")
    now = server.census()  # when the pool is full again
    held = (memory - available()) / count
    table.row("memory per idle sandbox, agent included", f"{held / 1024:9.0f} KiB", "of what the host has available")
    table.check("at most 1 MB each", held <= 1_000_000)
    table.row("server, resident", f"{status(server.process.pid, 'VmRSS') / 1024:9.1f} MiB")
    table.row("spawner, resident", f"{status(server.spawner(), 'VmRSS') / 1024:9.1f} MiB")
    print(f"  alive: {census.totals(now)}")
    listing(server, count, table)
    answering(sandboxes, where, table, "each has run another")
    begun = time.perf_counter()
    in_turns(count, lambda n: sandboxes.delete(connection(n), ids[n]))
    took = time.perf_counter() - begun
    table.row("all deleted after", f"{took:9.2f} s")
    table.check("under 30 s", took < 30)
    try:
        server.expect_census(before, 60)
        table.check("nothing is left behind", True)
    except AssertionError as left:
        print(left)
        table.check("nothing is left behind", False)
    print(f"  before: {census.totals(before)}\n  after:  {census.totals(server.count())}")


def answering(sandboxes, where, table, what):
    begun = time.perf_counter()
    heard = in_turns(len(where), lambda n: sandboxes.run(where[n]))
    table.row(what, f"{time.perf_counter() - begun:9.2f} s")
    table.check("all answer", all(sandboxes.ending in text for text in heard))


def listing(server, count, table):
    api = server.api()
    page = {"pageSize": 100}
    assert api.get("/sandboxes", query=page).json["pagination"]["totalItems"] == count
    times = []
    for _ in range(20):
        begun = time.perf_counter()
        reply = api.get("/sandboxes", query=page, check=False)
        times.append(time.perf_counter() - begun)
        assert reply.status == 200
    table.row("list, a page of 100 of them, median", ms(statistics.median(times)))
    table.check("under 50 ms", statistics.median(times) < 0.05)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    table = Table()
    with tempfile.TemporaryDirectory(prefix="opensandbox-scale-", dir="/var/tmp") as directory:
        server = Server(Path(directory) / "server", pool_size=32)
        try:
            server.start()
            measure(server, count, table)
        finally:
            server.destroy()
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
