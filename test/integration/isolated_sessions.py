"""Isolated sessions of native sandboxes: what their code cannot do, what nobody inside can do to the
process that makes them, and that they count as, pause, and end with their sandbox."""

import errno
import json
import os
import shlex
import signal
from pathlib import Path

import pytest

from integration.isolation import NAMES, PROBE, REFUSALS
from support.client import Finished
from support.processes import agent_process, memory_layout, slot_processes
from support.server import Sandbox
from support.shell import eventually

TRY = "/workspace/tried.py"


class Session:
    """One isolated session, deleted at the end of the block."""

    def __init__(self, sandbox, mode="overlay", **options):
        self.agent = sandbox.connect()
        made = self.agent.post(
            "/v1/isolated/session", {"workspace": {"path": "/workspace", "mode": mode}, **options})
        assert made.status == 201, made
        self.path = "/v1/isolated/session/" + made.json["session_id"]

    def run(self, code, **options):
        return Finished(list(self.agent.events({"code": code, **options}, self.path + "/run")))

    def sh(self, code):
        done = self.run(code)
        assert done.code == 0, f"{code!r}: {done}"
        return done.stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.agent.delete(self.path, check=False)
        self.agent.close()


def with_workspace(sandbox):
    sandbox.sh("mkdir -p /workspace && echo kept > /workspace/kept")
    return sandbox


@pytest.fixture(scope="module")
def inside(server):
    with server.create() as sandbox:
        yield with_workspace(sandbox)


def broker_of(sandbox):
    """The broker's process ids, in the sandbox and on the host: the only process inside, beside the
    first, that has no parent there."""
    def first():
        for pid in sandbox.sh("cd /proc && echo [0-9]*").split():
            status = sandbox.sh(f"cat /proc/{pid}/status 2>/dev/null; true")
            if pid != "1" and "\nPPid:\t0\n" in status and "opensandbox" in status:
                return int(pid)
        return None

    inner = eventually(first, what="a broker")
    space = os.readlink(f"/proc/{agent_process(sandbox)}/ns/pid")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != space:
                continue
            numbers = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines()
                           if line.startswith("NSpid:")).split()
        except OSError:
            continue
        if numbers[-1] == str(inner):
            return inner, int(pid)
    raise AssertionError("no broker on the host")


@pytest.mark.plain
def test_a_broker_shares_the_layout_of_its_memory_with_none(server, inside):
    with Session(inside):
        _, broker = broker_of(inside)
        others = [server.spawner(), *slot_processes(server)]
        assert broker in others
        layouts = [memory_layout(pid) for pid in others]
    for part in ("stack", "vdso"):
        places = [layout[part] for layout in layouts]
        assert len(set(places)) == len(places), (part, layouts)


@pytest.fixture(scope="module", params=["strict", "balanced"])
def attempts(request, inside):
    assert inside.agent.write(TRY, PROBE).status == 200
    with Session(inside, profile=request.param) as session:
        return json.loads(session.sh(f"python3 {TRY}"))


#: Of the session's own namespaces: neither the sandbox's nor the host's is changed by it.
ITS_OWN = {"set the host name"}


@pytest.mark.parametrize("name", sorted(set(NAMES) - ITS_OWN))
def test_root_in_a_session_may_not(attempts, name):
    assert attempts[name] != 0, f"{name} was allowed"
    assert attempts[name] in REFUSALS, f"{name}: {os.strerror(attempts[name])}"


def test_the_controls_succeed(attempts):
    controls = {name: result for name, result in attempts.items() if name.startswith("control")}
    assert len(controls) == 3 and set(controls.values()) == {0}


def test_the_sandbox_itself_may_no_more_than_before(inside):
    """While it has a broker."""
    inside.agent.write(TRY, PROBE)
    with Session(inside):
        results = json.loads(inside.sh(f"python3 {TRY}"))
    for name in NAMES:
        assert results[name] in REFUSALS, f"{name}: {results[name]}"


ATTACK = r'''
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid, results = int(sys.argv[1]), {}

def attempt(name, action):
    try:
        action()
        results[name] = 0
    except OSError as error:
        results[name] = error.errno

def call(number, *arguments):
    ctypes.set_errno(0)
    if libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) < 0:
        raise OSError(ctypes.get_errno(), "")

attempt("trace", lambda: call(101, 16, pid, 0, 0))
attempt("seize", lambda: call(101, 0x4206, pid, 0, 0))
for name in ("mem", "environ", "maps", "auxv", "stack"):
    attempt(name, lambda: open(f"/proc/{pid}/{name}", "rb").read(1))
for name in ("root", "cwd", "exe", "ns/mnt", "ns/user"):
    attempt(name, lambda: os.readlink(f"/proc/{pid}/{name}"))
attempt("fd", lambda: os.listdir(f"/proc/{pid}/fd"))
def copy(number):
    fd = os.pidfd_open(pid)
    try:
        call(438, fd, number, 0)
    finally:
        os.close(fd)
for number in range(3, 12):
    attempt(f"descriptor {number}", lambda: copy(number))
attempt("enter by pidfd", lambda: call(308, os.pidfd_open(pid), 0x20000))
attempt("control", lambda: os.readlink("/proc/self/root"))
print(json.dumps(results))
'''


def test_nobody_inside_gets_at_the_broker(inside):
    inside.agent.write(TRY, ATTACK)
    with Session(inside):
        inner, _ = broker_of(inside)
        results = json.loads(inside.sh(f"python3 {TRY} {inner}"))
        # Its socket is where no path leads.
        names = inside.sh("awk 'NR > 1 && NF > 7 {print $8}' /proc/net/unix").split()
        assert names == ["s"] * len(names) != [], names
        assert inside.sh("find / -xdev -name s -type s 2>/dev/null; true") == ""
    assert results.pop("control") == 0
    assert set(results.values()) <= {errno.EPERM, errno.EACCES}, results


def test_a_session_sees_no_process_and_no_change_of_another(inside):
    with Session(inside) as one, Session(inside) as other:
        one.sh("echo changed > /workspace/kept; echo private > /tmp/mine; sleep 1000 >/dev/null 2>&1 &")
        assert other.sh("cat /workspace/kept; ls /tmp; ls /run/opensandbox 2>/dev/null; true") == "kept\n"
        assert "sleep" not in other.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert inside.sh("cat /workspace/kept") == "kept\n"
        assert other.sh("find /var/lib/execd -type f 2>/dev/null; true") == ""


def test_mounts_of_a_session_have_no_devices_and_no_set_id(inside):
    with Session(inside, mode="rw", binds=[{"source": "/workspace", "dest": "/mnt"}]) as session:
        mounts = [line.split() for line in session.sh("cat /proc/self/mounts").splitlines()]
        assert {target for _, target, *_ in mounts} >= {"/", "/workspace", "/mnt", "/proc", "/tmp"}
        for _, target, kind, flags, *_ in mounts:
            if kind == "devtmpfs":
                # A single device, as in the sandbox, or what covers a file of the kernel.
                assert target.startswith(("/dev/", "/proc/", "/sys/")), target
                continue
            assert "nosuid" in flags.split(","), f"{target}: {flags}"
            assert target in ("/dev", "/dev/pts") or "nodev" in flags.split(","), f"{target}: {flags}"


def test_changes_are_told_and_committed(inside):
    with Session(inside) as session:
        session.sh("cd /workspace && echo changed > kept && echo new > new && mkdir -p d/e && echo f > d/e/f")
        found = {c["path"]: c["kind"] for c in session.agent.get(session.path + "/diff").json["changes"]}
        assert found == {"/workspace/kept": "modified", "/workspace/new": "added", "/workspace/d": "added",
                         "/workspace/d/e": "added", "/workspace/d/e/f": "added"}
        assert inside.sh("cat /workspace/kept") == "kept\n"
        done = session.agent.post(session.path + "/commit", {})
        assert done.status == 200 and done.json["changes"] == [], done
        assert inside.sh("cat /workspace/kept /workspace/d/e/f") == "changed\nf\n"
        session.sh("rm -r /workspace/d; echo kept > /workspace/kept; rm /workspace/new")
        assert session.agent.post(session.path + "/commit", {}).status == 200
        assert inside.sh("ls -A /workspace | grep -v tried; cat /workspace/kept") == "kept\nkept\n"


@pytest.mark.plain
def test_sessions_count_as_their_sandbox(server):
    """Its cgroups, its memory, its disk; what they wrote is in no snapshot."""
    with server.create(resourceLimits={"memory": "128Mi", "ephemeral-storage": "64Mi"}) as sandbox:
        with_workspace(sandbox)
        with Session(sandbox) as session:
            _, outer = broker_of(sandbox)
            groups = Path(f"/proc/{outer}/cgroup").read_text()
            assert groups == Path(f"/proc/{agent_process(sandbox)}/cgroup").read_text()
            assert "opensandbox" in groups
            done = session.run("python3 -c 'x = bytearray()\nwhile True: x += bytes(8 << 20)'")
            assert done.code != 0
            assert sandbox.sh("echo alive") == "alive\n"
        with Session(sandbox) as session:
            full = session.run("dd if=/dev/zero of=/workspace/big bs=1M count=100")
            assert full.code != 0 and "No space left" in full.stderr, full
        # With the session its files go, as soon as the kernel has taken its mounts apart.
        eventually(lambda: sandbox.run("dd if=/dev/zero of=/big bs=1M count=32 && rm /big").code == 0,
                   what="room for others")


def test_a_session_without_network_has_its_loopback_only(inside):
    with Session(inside, share_net=False) as session:
        assert session.sh("tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]
        assert session.sh("python3 -c \"import socket; l = socket.create_server(('127.0.0.1', 0)); "
                          "socket.create_connection(l.getsockname()); print('up')\"") == "up\n"
        assert session.sh("readlink /proc/self/ns/net") != inside.sh("readlink /proc/self/ns/net")


def test_runs_are_of_the_user_that_the_session_names(inside):
    with Session(inside, uid=1000, gid=1001) as session:
        assert session.sh("id -u; id -g; grep CapEff /proc/self/status").split() == [
            "1000", "1001", "CapEff:", "0" * 16]
        assert session.run("touch /workspace/not-mine").code != 0
        assert inside.agent.post("/v1/isolated/session", {
            "workspace": {"path": "/workspace", "mode": "rw"}, "uid_mode": "userns"}).status == 503


def test_a_copy_has_nothing_of_the_sessions_and_can_have_its_own(inside):
    with Session(inside) as session:
        session.sh("echo secret-of-a-session > /workspace/kept")
        forked = inside.server.api(timeout=300).post(inside.path("/fork"), {})
        assert forked.status == 201, forked
        with Sandbox(inside.server, forked.json["items"][0]) as copy:
            assert copy.sh("cat /workspace/kept") == "kept\n"
            assert copy.sh("grep -rs secret-of-a-session /var /workspace /tmp; true") == ""
            with Session(copy) as another:
                assert another.sh("cat /workspace/kept") == "kept\n"
        assert session.sh("cat /workspace/kept") == "secret-of-a-session\n"


def test_a_paused_sandbox_has_its_sessions_paused(server):
    with with_workspace(server.create()) as sandbox, Session(sandbox, mode="rw") as session:
        run = session.agent.post(session.path + "/run", {
            "code": "while :; do date +%s%N > /workspace/beat; sleep 0.02; done", "background": True})
        assert run.status == 202
        eventually(lambda: sandbox.run("test -s /workspace/beat").code == 0, what="the first beat")
        _, outer = broker_of(sandbox)

        def ticks():
            return Path(f"/proc/{outer}/stat").read_text().rsplit(")", 1)[1].split()[11:13]

        assert server.api().post(sandbox.path("/pause")).status == 202
        eventually(lambda: sandbox.state() == "Paused", what="the pause")
        before = ticks()
        frozen = Path(f"/proc/{agent_process_by(outer)}/root/workspace/beat").read_text()
        assert ticks() == before
        assert Path(f"/proc/{agent_process_by(outer)}/root/workspace/beat").read_text() == frozen
        assert server.api().post(sandbox.path("/resume")).status == 202
        eventually(lambda: sandbox.state() == "Running", what="the end of the pause")
        eventually(lambda: sandbox.sh("cat /workspace/beat") != frozen, what="another beat")


def agent_process_by(member):
    """Process 1 of the pid namespace of another process, found without asking inside."""
    space = os.readlink(f"/proc/{member}/ns/pid")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != space:
                continue
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        if next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1] == "1":
            return int(pid)
    raise AssertionError("no process 1 found")


def test_another_broker_takes_the_place_of_one_that_was_killed(server):
    with with_workspace(server.create()) as sandbox:
        with Session(sandbox) as session:
            inner, outer = broker_of(sandbox)
            sandbox.sh(f"kill -9 {inner}")
            eventually(lambda: not os.path.exists(f"/proc/{outer}"), what="the end of the broker, reaped")
            assert session.agent.get(session.path).status in (404, 503)
            assert sandbox.sh("echo alive") == "alive\n"

        def again():
            reply = sandbox.agent.get("/v1/isolated/capabilities")
            return reply.json["available"]

        eventually(again, 20, 0.2, "another broker")
        with Session(sandbox) as session:
            assert session.sh("cat /workspace/kept") == "kept\n"
        assert broker_of(sandbox)[0] != inner


@pytest.fixture(scope="module")
def own_server(make_server):
    return make_server("sessions")


def test_nothing_is_left_of_a_sandbox_that_had_sessions(own_server):
    server = own_server
    with server.create() as sandbox:
        sandbox.sh("true")
    before = server.census()
    with with_workspace(server.create()) as sandbox:
        session = Session(sandbox, mode="overlay")
        session.agent.post(session.path + "/run", {"code": "sleep 1000", "background": True})
        session.sh("echo x > /workspace/x")
        _, outer = broker_of(sandbox)
        session.agent.close()
    eventually(lambda: not os.path.exists(f"/proc/{outer}"), what="the end of the broker")
    eventually(lambda: server.census() == before, 20, 0.1, "the former state of the host")


def test_a_sandbox_older_than_the_spawner_says_why_it_has_none(own_server):
    """One whose broker is there keeps it."""
    server = own_server
    with with_workspace(server.create()) as without, with_workspace(server.create()) as kept:
        with Session(kept) as session:
            spawner = parent_on_host(agent_process(without))
            os.kill(spawner, signal.SIGKILL)
            eventually(lambda: not os.path.exists(f"/proc/{spawner}"), what="the end of the spawner")
            assert session.sh("cat /workspace/kept") == "kept\n"
        told = without.agent.get("/v1/isolated/capabilities").json
        assert told["available"] is False and "started again" in told["message"], told
        refused = without.agent.get("/v1/isolated/sessions")
        assert refused.status == 503 and refused.json["code"] == "NOT_SUPPORTED", refused
        assert without.sh(f"echo {shlex.quote('alive')}") == "alive\n"


def parent_on_host(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
