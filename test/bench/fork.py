"""Measures snapshots and copies of sandboxes by the size of their files.

    test/run bench fork            up to 1 GB, 50 copies, on XFS (shared blocks) and on the disk's own
                                   file system
    test/run bench fork --short    a tenth of that

Asserted, as ratios of the same run, within a factor of four: where blocks are shared, a snapshot of
all files costs as much as one of nearly none; everywhere a sandbox starts from the large snapshot as
fast as from the small one, and copies after the first, which may have to copy the files, cost the
same whatever there is in them.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.report import Table, ms
from support.reflink import ReflinkFileSystem
from support.server import Sandbox, Server

MB = 1_000_000
FILL = """
import os, sys
size, at = int(sys.argv[1]), 0
os.makedirs("/data", exist_ok=True)
while at < size:
    part = min(10_000_000, size - at)
    with open(f"/data/{at}", "wb") as file:
        file.write(os.urandom(65536) * (part // 65536) + bytes(part % 65536))
        os.fsync(file.fileno())
    at += part
"""


def timed(action):
    begun = time.perf_counter()
    result = action()
    return time.perf_counter() - begun, result


def filled(server, size):
    sandbox = server.create(timeout=3600, resourceLimits={})
    sandbox._agent = sandbox.connect(timeout=600)
    sandbox.agent.write("/root/fill.py", FILL)
    sandbox.sh(f"python3 /root/fill.py {size}")
    sandbox.agent.close()
    return sandbox


def snapshot(server, sandbox):
    api = server.api()
    id = api.post(sandbox.path("/snapshots"), {}).json["id"]
    while (state := api.get(f"/snapshots/{id}").json["status"]["state"]) == "Creating":
        time.sleep(0.001)
    assert state == "Ready", state
    return id


def restore(server, api, id):
    reply = api.post("/sandboxes", {"snapshotId": id, "resourceLimits": {}, "timeout": 600}, check=False)
    assert reply.status == 202, reply
    return Sandbox(server, reply.json)


def fork(server, api, sandbox, count):
    reply = api.post(sandbox.path("/fork"), {"count": count}, check=False)
    assert reply.status == 201, reply
    return [Sandbox(server, item) for item in reply.json["items"]]


def settle(server):
    """Until the pool is full again and nothing is being removed."""
    server.census()


def by_size(table, server, sizes, rounds):
    """Seconds of a snapshot, and of a start from it, for each size."""
    api = server.api(timeout=600)
    taken, started = {}, {}
    for size in sizes:
        source = filled(server, size)
        taken[size], started[size] = [], []
        for _ in range(rounds):
            settle(server)
            took, id = timed(lambda: snapshot(server, source))
            taken[size].append(took)
            settle(server)
            took, sandbox = timed(lambda: restore(server, api, id))
            started[size].append(took)
            sandbox.delete()
            api.delete(f"/snapshots/{id}")
        table.times(f"snapshot of {size // MB} MB, until it is Ready", taken[size])
        table.times("  start from it", started[size])
        source.delete()
    return taken, started


def copies(table, server, size, count, rounds):
    api = server.api(timeout=600)
    source = filled(server, size)
    one, eleven, many = [], [], []
    for _ in range(rounds):
        for number, into in ((1, one), (11, eleven), (count, many)):
            settle(server)
            took, made = timed(lambda number=number: fork(server, api, source, number))
            into.append(took)
            for sandbox in made:
                sandbox.delete()
    table.times(f"1 copy of {size // MB} MB", one)
    further = max(statistics.median(eleven) - statistics.median(one), 0.01) / 10
    table.row("  every further one", ms(further), "of eleven at once")
    table.times(f"{count} copies", many)
    source.delete()
    return further


def measure(table, server, short, shared):
    sizes = [MB, 10 * MB, 100 * MB] if short else [MB, 100 * MB, 1000 * MB]
    rounds = 3 if short else 5
    taken, started = by_size(table, server, sizes, rounds)
    small, large = (statistics.median(started[s]) for s in (sizes[0], sizes[-1]))
    table.check("a start from the large snapshot costs as one from the small", large < 4 * small)
    if shared:
        small, large = (statistics.median(taken[s]) for s in (sizes[0], sizes[-1]))
        table.check("a snapshot costs the same whatever its size", large < 4 * small)
    count = 10 if short else 50
    small, large = (copies(table, server, size, count, rounds) for size in (sizes[0], sizes[-1]))
    table.check("a further copy costs the same whatever its size", large < 4 * small)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    table = Table()
    directory = Path(tempfile.mkdtemp(prefix="opensandbox-bench-", dir="/var/tmp"))
    pool = 16 if short else 64
    try:
        print("\nwhere blocks are shared (XFS, loop device)")
        with ReflinkFileSystem(directory, gigabytes=8) as file_system:
            server = Server(file_system.path / "server", pool_size=pool)
            try:
                server.start()
                measure(table, server, short, shared=True)
            finally:
                server.destroy()
        print("\non the disk's own file system")
        server = Server(directory / "server", pool_size=pool)
        try:
            server.start()
            measure(table, server, short, shared=False)
        finally:
            server.destroy()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
