"""Archives, exports, pulls, pushes, imports, replacements, builds and snapshots of 5 GB each, broken off
at random points: memory as before, no file left, SIGTERM obeyed.

    test/run broken-off [N] [--size GIB] [--seed SEED]    N works of each kind, 100 by default

Needs GIB of free disk: one file has its place there, and no content.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from support.broken_off import BrokenOff
from support.registry import Registry
from support.server import Server


def run(directory, arguments):
    size = arguments.size << 30
    with Registry(directory / "registry") as registry:
        server = Server(directory / "server", pool_size=2, sections={
            "server": {"timeout_graceful_shutdown": 2}, "native": {"pull": "missing"},
        })
        server.start()
        try:
            works = BrokenOff(server, registry, directory / "works", size=size, dense=size, kept=size,
                              seed=arguments.seed)
            for kind in BrokenOff.WORKS:
                repeat(arguments.times, kind.__name__, lambda: works.break_off(kind, 4))
            repeat(arguments.times, "build", lambda: works.break_off_a_build(3))
            repeat(arguments.times, "snapshot", lambda: works.break_off_a_snapshot(1))
            works.expect_memory_as_before()
            end_in_the_midst(server, works)
        finally:
            server.destroy()


def repeat(times, name, work):
    begun = time.monotonic()
    for _ in range(times):
        work()
    print(f"  {times:>5} x {name:32} {time.monotonic() - begun:7.0f} s", flush=True)


def end_in_the_midst(server, works):
    requests = works.begin_all()
    for request in requests:
        request.take(1000, 0.3)
    begun = time.monotonic()
    server.process.terminate()
    assert server.process.wait(30) == 0, "SIGTERM was not obeyed"
    print(f"  SIGTERM with all of it under way, 2 s of grace: {time.monotonic() - begun:.1f} s")
    for request in requests:
        request.break_off(False)
    server.start()
    works.watched = works.watched[1:]
    works.expect_nothing("the server's end")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("times", nargs="?", type=int, default=100)
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    print(f"broken off: {arguments.times} of each, {arguments.size} GiB, seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="opensandbox-broken-off-", dir="/var/tmp") as directory:
        run(Path(directory), arguments)
    print("nothing was left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
