"""Finding a sandbox's processes from the host."""

import os
from pathlib import Path


def proportional_kib(namespaces):
    """Memory of all processes of these pid namespaces, shared pages divided among their users."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") not in namespaces:
                continue
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except OSError:
            continue
    return total


def agent_process(sandbox):
    """The host's process id of a sandbox's process 1."""
    namespace = sandbox.sh("readlink /proc/self/ns/pid").strip()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != namespace:
                continue
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
        if numbers[-1] == "1":
            return int(pid)
    raise AssertionError("no process 1 found")


def tree_proportional_kib(pid):
    """Memory of a process and of all its descendants in its pid namespace, so without sandboxes."""
    from support.server import children_of

    namespace = os.readlink(f"/proc/{pid}/ns/pid")
    total, waiting = 0, [pid]
    while waiting:
        pid = waiting.pop()
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != namespace:
                continue
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except OSError:
            continue
        waiting += children_of(pid)
    return total


def slot_processes(server):
    """What a server's spawner has put into pid namespaces of others: its slots' first processes, whether
    they are sandboxes yet or not, and the brokers beside them."""
    from support.server import children_of

    spawner = server.spawner()
    own = os.readlink(f"/proc/{spawner}/ns/pid")
    return [pid for pid in children_of(spawner) if os.readlink(f"/proc/{pid}/ns/pid") != own]


def memory_layout(pid):
    """Where the kernel put what it puts anywhere: the stack's first page, the heap, and its own code,
    which is where other mappings begin."""
    first = {}
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        first.setdefault(line.split()[-1], int(line.split("-")[0], 16))
    # The stack grows down: only its other end stays.
    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return {"stack": int(stat[25]), "heap": first["[heap]"], "vdso": first["[vdso]"]}
