"""What the kernel counts for a user or for the host (specs/kernel-limits.md): sandboxes take all they
can get of every kind at once, and neither another sandbox nor the host lacks what it had before.
`test/run limits` has them hold it for a minute."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import kernel_objects
from support.processes import agent_process
from support.shell import eventually

#: How long all is held. The short form takes fewer of what only takes long to take.
SECONDS = float(os.environ.get("OPENSANDBOX_LIMITS_SECONDS", "2"))
SHORT = SECONDS < 30
PROGRAM = Path(kernel_objects.__file__)
NETWORK = {"extensions": {"opensandbox.io/network": "taken"}}
#: An ordinary user of this machine: nobody's, so that nothing else counts against it.
ORDINARY = 64_321
#: It took so much that its own sandbox ended.
ENDED = 1
#: At most so many of a kind are to be had, whatever the host has.
MOST = {"terminals": 256, "AIO contexts": 0}


def lacking_on_the_host(**identity):
    """What a user of this host cannot have."""
    done = subprocess.run(
        [sys.executable, "-", "use"], input=PROGRAM.read_text(), capture_output=True, text=True,
        cwd="/", timeout=120, check=True, **identity,
    )
    return json.loads(done.stdout)


def lacking(sandbox):
    # A connection of its own: the last one may have been given up meanwhile.
    return json.loads(sandbox.connect().sh("python3 /tmp/objects.py use", timeout=120_000))


def with_program(sandbox):
    assert sandbox.agent.write("/tmp/objects.py", PROGRAM.read_text()).status == 200
    return sandbox


def number_in(path):
    return int(Path(path).read_text().split()[0])


def tracked():
    return number_in("/proc/sys/net/netfilter/nf_conntrack_count")


def socket_pages():
    """Of buffers of TCP, on the whole host."""
    line = next(x for x in Path("/proc/net/sockstat").read_text().splitlines() if x.startswith("TCP:"))
    return int(line.split()[-1])


class Taker:
    """A sandbox whose program takes a kind and holds it."""

    def __init__(self, sandbox, kind, seconds, target):
        self.kind = kind
        self.events = with_program(sandbox).agent.events({
            "command": f"exec python3 /tmp/objects.py take '{kind}' {seconds}",
            "envs": {"TARGET": target, "WATCHES": "20000" if SHORT else "0"},
        })

    def taken(self):
        """Answers once it has all that it can get."""
        try:
            for event in self.events:
                if event["type"] == "stdout":
                    return json.loads(event["text"])
        except http.client.HTTPException:
            pass
        return {"had": ENDED}


def everybody(neighbour):
    ordinary = {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        asked = {
            "another sandbox": threads.submit(lacking, neighbour),
            "root of the host": threads.submit(lacking_on_the_host),
            "a user of the host": threads.submit(lacking_on_the_host, **ordinary),
        }
        return {who: answer.result() for who, answer in asked.items()}


def test_what_sandboxes_take_of_the_kernels_objects_is_missing_nowhere_else(server, forwarding):
    kinds = list(kernel_objects.KINDS)
    nothing = {"another sandbox": {}, "root of the host": {}, "a user of the host": {}}

    def limits(kind):
        memory = {"socket buffers": "128Mi", "processes": "2Gi"}
        wanted = {"memory": memory.get(kind, "512Mi")}
        if SHORT and kind == "processes":
            wanted["pids"] = "512"
        return {"resourceLimits": wanted}

    # Longer than all of this takes; they end with their sandboxes.
    hold = SECONDS + 600
    with contextlib.ExitStack() as stack:
        neighbour = with_program(stack.enter_context(server.create()))
        target = stack.enter_context(server.create(**NETWORK)).address()
        assert everybody(neighbour) == nothing, "before anything is taken"
        before, pages = tracked(), socket_pages()
        takers = [
            Taker(stack.enter_context(server.create(**limits(kind), **NETWORK)), kind, hold, target)
            for kind in kinds
        ]
        with concurrent.futures.ThreadPoolExecutor(len(kinds)) as threads:
            taken = dict(zip(kinds, threads.map(Taker.taken, takers)))
        print(json.dumps(taken))
        end = time.monotonic() + SECONDS
        while True:
            assert everybody(neighbour) == nothing, taken
            most = number_in("/proc/sys/net/netfilter/nf_conntrack_max")
            assert tracked() - before < most // 8, taken
            # Its memory, and what version 1 counts apart.
            assert (socket_pages() - pages) * os.sysconf("SC_PAGESIZE") < 224 << 20, taken
            with server.create() as another:
                assert another.sh("echo works") == "works\n"
            assert server.api().get("/sandboxes").status == 200
            if time.monotonic() > end:
                break
        for kind, most in MOST.items():
            assert taken[kind]["had"] <= most, taken
        used = {k: v["had"] for k, v in taken.items() if k not in MOST}
        assert all(used.values()), f"each took some: {taken}"


@pytest.fixture
def core_program(scratch):
    """A program that the kernel hands what crashes; whether it ran shows in a file."""
    pattern = Path("/proc/sys/kernel/core_pattern")
    earlier = pattern.read_text()
    program, said = scratch / "core-program", scratch / "core-said"
    program.write_text(f"#!/bin/sh\ncat >/dev/null\necho $1 >>{said}\n")
    program.chmod(0o755)
    pattern.write_text(f"|{program} %e")
    try:
        yield said
    finally:
        pattern.write_text(earlier)


def test_a_crash_inside_starts_no_program_of_the_host(server, core_program):
    crash = "import os, signal, resource; {0} os.kill(os.getpid(), signal.SIGSEGV)"
    lower = "resource.setrlimit(resource.RLIMIT_CORE, (0, 0));"
    with server.create() as sandbox:
        for name, change in (("asis", ""), ("lowered", lower)):
            sandbox.sh(f"cp /usr/bin/python3 /tmp/{name}")
            assert sandbox.run([f"/tmp/{name}", "-c", crash.format(change)]).code != 0
        assert sandbox.run("ulimit -c 0 && echo set").stdout == "set\n", "and nobody fails for it"
        assert "set" in sandbox.run("prlimit --core=0 true; echo set").stdout
    # The control: one of the host's own, at the limit that used to be set inside.
    subprocess.run(
        ["/bin/sh", "-c", f"ulimit -c 0; exec python3 -c '{crash.format('')}'"], check=False, cwd="/"
    )
    said = eventually(lambda: core_program.exists() and core_program.read_text(), 20)
    assert "asis" not in said and "lowered" not in said, said


FACTS = [
    "/proc/interrupts", "/proc/softirqs", "/proc/diskstats", "/proc/zoneinfo", "/proc/buddyinfo",
    "/proc/schedstat", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/pagetypeinfo",
    "/sys/kernel/vmcoreinfo", "/sys/kernel/notes", "/sys/kernel/slab",
]


@pytest.mark.parametrize("path", FACTS)
def test_a_fact_of_the_host_is_not_to_be_read_inside(server_sandbox, path):
    inside = server_sandbox.run(f"cat {path} 2>/dev/null; ls -A {path}/ 2>/dev/null; true").stdout
    assert inside == ""


@pytest.fixture(scope="module")
def server_sandbox(server):
    with server.create() as sandbox:
        yield sandbox


def test_users_and_groups_can_be_made_inside(server_sandbox):
    done = server_sandbox.run("groupadd -g 4321 made && useradd -m -u 4321 -g made made; id made")
    assert done.stdout == "uid=4321(made) gid=4321(made) groups=4321(made)\n", done


def test_every_sandboxs_objects_count_for_a_user_of_its_own(server):
    """Who made a user namespace is who the kernel counts for beside those inside."""
    with server.create() as one, server.create() as two:
        owners = set()
        for sandbox in (one, two):
            # ioctl NS_GET_OWNER_UID.
            code = (
                "import fcntl, struct, sys; f = open(f'/proc/{sys.argv[1]}/ns/user'); "
                "b = bytearray(4); fcntl.ioctl(f, 0xb704, b); print(struct.unpack('I', b)[0])"
            )
            pid = str(agent_process(sandbox))
            out = subprocess.run([sys.executable, "-c", code, pid], capture_output=True, text=True)
            owners.add(int(out.stdout))
        assert 0 not in owners and len(owners) == 2, owners


def test_all_sandboxes_together_leave_the_host_processes(server):
    with server.create() as sandbox:
        pid = agent_process(sandbox)
        groups = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
        mounts = [line.split() for line in open("/proc/self/mounts")]
        limits = []
        for _, where, kind, options, *_ in mounts:
            for _, controllers, path in groups:
                v1 = kind == "cgroup" and "pids" in options.split(",") and "pids" in controllers.split(",")
                v2 = kind == "cgroup2" and not controllers
                if not (v1 or v2):
                    continue
                directory = Path(where + path)
                limits += [(p / "pids.max").read_text().strip()
                           for p in (directory.parent, directory.parent.parent)
                           if p.name.startswith("opensandbox-") and (p / "pids.max").exists()]
        assert limits and limits[0] != "max", limits
        all_of_it = min(number_in("/proc/sys/kernel/pid_max"), number_in("/proc/sys/kernel/threads-max"))
        assert int(limits[0]) <= all_of_it * 7 // 8 + 1
