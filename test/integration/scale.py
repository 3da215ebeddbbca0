"""Many sandboxes at once: all answer, and nothing of them is left."""

import concurrent.futures

from support import census
from support.processes import proportional_kib

COUNT = 100


def available_kib():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    raise AssertionError("no MemAvailable")


def test_a_hundred_at_once_answer_and_leave_nothing(make_server, capsys):
    server = make_server(pool_size=8)
    with server.create() as warm:  # what the first one makes for all is no remains
        warm.sh("true")
    before = server.census()
    memory_before = available_kib()

    def make(number):
        sandbox = server.create(metadata={"number": str(number)}, resourceLimits={})
        assert sandbox.sh(f"echo {number}") == f"{number}\n"
        return sandbox

    with concurrent.futures.ThreadPoolExecutor(COUNT) as threads:
        sandboxes = list(threads.map(make, range(COUNT)))
        assert len({s.id for s in sandboxes}) == COUNT
        for sandbox in sandboxes:
            sandbox.agent.close()
        server.census()  # until the pool is full again
        memory = (memory_before - available_kib()) / COUNT
        listed = server.api().get("/sandboxes", query={"state": "Running", "pageSize": 1}).json
        assert listed["pagination"]["totalItems"] == COUNT
        answers = list(threads.map(lambda s: s.sh("cat /proc/sys/kernel/hostname; id -u"), sandboxes))
        assert all(a.endswith("0\n") for a in answers)
        addresses = set(threads.map(lambda s: s.address(), sandboxes))
        assert len(addresses) == COUNT
        namespaces = set(threads.map(lambda s: s.sh("readlink /proc/self/ns/pid").strip(), sandboxes))
        assert len(namespaces) == COUNT
        with capsys.disabled():
            print(f"\n  memory added per idle sandbox (agent included): {memory:.0f} KiB of what the host "
                  f"has available, {proportional_kib(namespaces) / COUNT:.0f} KiB held by its processes")
            print(f"  while {COUNT} live: {census.totals(server.count())}")
        list(threads.map(lambda s: s.delete(), sandboxes))

    server.expect_census(before)
    with capsys.disabled():
        print(f"  after deleting them: {census.totals(server.count())}")
