"""The processes of a native sandbox as the host sees them, whatever kernel it runs on."""

import re

from support.server import children_of, command_of


def first_process(sandbox):
    """The host's process id of the first process of its slot, as the spawner wrote it down."""
    entry = (sandbox.server.state / "spawner/journal" / sandbox.id).read_text()
    return int(re.search(r"^pid (\d+)$", entry, re.MULTILINE)[1])


def in_sandbox(sandbox):
    """All of them."""
    found, waiting = [], [first_process(sandbox)]
    while waiting:
        pid = waiting.pop()
        if not command_of(pid):
            continue
        found.append(pid)
        waiting += children_of(pid)
    return found


def part_of_gvisor(sandbox, name):
    """One of "runsc", "runsc-sandbox" (gVisor's kernel) and "runsc-gofer" (its files)."""
    found = [pid for pid in in_sandbox(sandbox) if command_of(pid)[0] == name.encode()]
    assert len(found) == 1, [command_of(pid) for pid in in_sandbox(sandbox)]
    return found[0]
