"""What root inside a sandbox cannot do, see or reach. Each attempt has a control that shows that
the attempt would succeed where it is allowed, so that no test passes for the wrong reason."""

import errno
import hashlib
import json
import os
import shutil
import socket
import subprocess
import threading
import uuid
from pathlib import Path

import pytest

from support import rootfs
from support.namespace import Elsewhere, reachable
from support.processes import agent_process, memory_layout, slot_processes
from support.server import EXECUTABLE, HOST_IMAGE
from support.shell import eventually, run

# Runs inside. Every attempt prints the errno it failed with, or 0 when it was allowed.
PROBE = r'''
import ctypes, errno, json, os, socket
libc = ctypes.CDLL(None, use_errno=True)
results = {}

def attempt(name, action):
    try:
        value = action()
    except OSError as error:
        results[name] = error.errno
        return
    results[name] = 0

def call(number, *arguments):
    def act():
        ctypes.set_errno(0)
        converted = [a if isinstance(a, (bytes, type(None))) else ctypes.c_long(a) for a in arguments]
        if libc.syscall(ctypes.c_long(number), *converted) < 0:
            raise OSError(ctypes.get_errno(), "")
    return act

def write(path, text):
    def act():
        with open(path, "w") as f:
            f.write(text)
    return act

NEWNS, NEWUSER, NEWNET, NEWPID, NEWCGROUP = 0x20000, 0x10000000, 0x40000000, 0x20000000, 0x2000000
os.makedirs("/tmp/mnt", exist_ok=True)

attempt("mount tmpfs", call(165, b"none", b"/tmp/mnt", b"tmpfs", 0, None))
attempt("mount proc", call(165, b"proc", b"/tmp/mnt", b"proc", 0, None))
attempt("mount sysfs", call(165, b"sysfs", b"/tmp/mnt", b"sysfs", 0, None))
attempt("bind mount", call(165, b"/etc", b"/tmp/mnt", b"", 4096, None))
attempt("remount the root", call(165, b"none", b"/", b"", 32 | 4096, None))
attempt("remount sysfs writable", call(165, b"none", b"/sys", b"", 32 | 4096, None))
attempt("unmount proc", call(166, b"/proc", 2))
attempt("unmount a mask", call(166, b"/proc/kcore", 2))
attempt("pivot the root", call(155, b"/tmp", b"/tmp/mnt"))
attempt("open a file system", call(430, b"tmpfs", 0))
attempt("clone a mount", call(428, -100, b"/", 1))
attempt("set a mount's attributes", call(442, -100, b"/", 0, b"\0" * 32, 32))
attempt("load a module", call(175, b"\0" * 64, 64, b""))
attempt("load a module file", call(313, 0, b"", 0))
attempt("unload a module", call(176, b"overlay", 0))
attempt("load a kernel", call(246, 0, 0, None, 0))
attempt("reboot", call(169, 0xfee1dead, 672274793, 0, None))
attempt("unshare a user namespace", call(272, NEWUSER))
attempt("unshare a mount namespace", call(272, NEWNS))
attempt("unshare a network namespace", call(272, NEWNET))
attempt("unshare a cgroup namespace", call(272, NEWCGROUP))
for kind in ("mnt", "net", "user", "pid"):
    def enter(kind=kind):
        fd = os.open(f"/proc/1/ns/{kind}", os.O_RDONLY)
        try:
            call(308, fd, 0)()
        finally:
            os.close(fd)
    attempt(f"enter the {kind} namespace of process 1", enter)
attempt("trace process 1", call(101, 16, 1, 0, 0))
attempt("read the memory of process 1", lambda: open("/proc/1/mem", "rb").read(1))
attempt("read the environment of process 1", lambda: open("/proc/1/environ", "rb").read())
attempt("set the clock", call(227, 0, b"\0" * 16))
attempt("set the host name", call(170, b"x", 1))
attempt("add a swap file", call(167, b"/tmp/x", 0))
attempt("load a BPF program", call(321, 5, b"\0" * 128, 128))
attempt("open a performance event", call(298, b"\0" * 128, 0, -1, -1, 0))
attempt("add a key", call(248, b"user", b"name", b"x", 1, -3))
attempt("open a file by handle", call(304, -100, b"\0" * 16, 0))
attempt("handle page faults", call(323, 0))
attempt("set up io_uring", call(425, 8, b"\0" * 120))
attempt("read the kernel log", call(103, 3, b"\0" * 64, 64))
attempt("map memory of devices", call(173, 0, 0xffff, 1))
attempt("become another I/O privilege level", call(172, 3))

attempt("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("raw IPv6 socket", lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).close())
attempt("packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).close())
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM, 0).close())
attempt("kernel crypto socket", lambda: socket.socket(38, socket.SOCK_SEQPACKET, 0).close())

attempt("make a block device", lambda: os.mknod("/tmp/sda", 0o60600, os.makedev(8, 0)))
attempt("make a memory device", lambda: os.mknod("/tmp/mem", 0o20600, os.makedev(1, 1)))
attempt("write sysfs", write("/sys/kernel/mm/transparent_hugepage/enabled", "never"))
attempt("write sysfs power state", write("/sys/power/state", ""))
attempt("write a link's settings", write("/sys/class/net/lo/mtu", "1500"))
attempt("make a cgroup", lambda: os.mkdir("/sys/fs/cgroup/x"))
attempt("write the core pattern", write("/proc/sys/kernel/core_pattern", "|/tmp/x"))
attempt("write the uevent helper", write("/sys/kernel/uevent_helper", "/tmp/x"))
attempt("allow forwarding", write("/proc/sys/net/ipv4/ip_forward", "1"))
attempt("press sysrq", write("/proc/sysrq-trigger", "h"))
attempt("read kernel memory", lambda: open("/proc/kcore", "rb").read(64) or call(-1)())
attempt("read kernel messages", lambda: os.read(os.open("/dev/kmsg", os.O_RDONLY), 1))

# Controls: what a sandbox may do.
attempt("control: write a file", write("/tmp/x", "y"))
attempt("control: own socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close())
attempt("control: system call", call(39))
print(json.dumps(results))
'''


@pytest.fixture(scope="module")
def inside(server):
    with server.create() as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def attempts(inside):
    assert inside.agent.write("/tmp/probe.py", PROBE).status == 200
    return json.loads(inside.sh("python3 /tmp/probe.py"))


NAMES = [
    part.split('"')[1]
    for part in PROBE.split("attempt(")[1:]
    if part.startswith('"') and not part.startswith('"control')
] + [f"enter the {kind} namespace of process 1" for kind in ("mnt", "net", "user", "pid")]


# How a refusal looks. A complaint about the arguments (EINVAL, EFAULT, EBADF) is none: it would
# mean that the call got past the checks.
REFUSALS = {
    errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EROFS, errno.ENOENT, errno.ENOSPC,
    errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT,
}


@pytest.mark.parametrize("name", NAMES)
def test_root_inside_may_not(attempts, name):
    assert attempts[name] != 0, f"{name} was allowed"
    assert attempts[name] in REFUSALS, f"{name}: {os.strerror(attempts[name])}"


def test_every_attempt_was_made_and_the_controls_succeed(attempts):
    controls = {name for name in attempts if name.startswith("control")}
    assert len(controls) == 3 and all(attempts[name] == 0 for name in controls)
    assert set(attempts) - controls == set(NAMES)


def test_no_process_of_the_host_is_visible(inside):
    marker = str(uuid.uuid4().int)[:9]
    bystander = subprocess.Popen(["sleep", marker])
    try:
        eventually(lambda: marker in Path(f"/proc/{bystander.pid}/cmdline").read_text())
        seen = inside.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert marker not in seen
        assert "cmdline" in seen  # that program itself, so the list is not empty
        pids = [int(p) for p in inside.sh("ls /proc | grep '^[0-9]'").split()]
        assert len(pids) < 12
    finally:
        bystander.kill()
        bystander.wait()


def test_no_signal_reaches_a_process_of_the_host(server, inside):
    bystander = subprocess.Popen(["sleep", "1000"])
    try:
        assert inside.run(f"kill -9 {bystander.pid}").code != 0
        with server.create(entrypoint=["sleep", "infinity"]) as doomed:
            # Everything it can see, its own entrypoint included: this sandbox ends.
            list(doomed.agent.events({"command": "kill -9 -1", "background": True}))
            eventually(lambda: doomed.state() != "Running", what="the entrypoint's end")
        assert bystander.poll() is None
        assert inside.sh("echo alive") == "alive\n"
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("signal", ["KILL", "SEGV", "ABRT", "STOP"])
def test_process_1_cannot_be_killed_from_inside(server, signal):
    with server.create() as sandbox:
        sandbox.run(f"kill -{signal} 1")
        assert sandbox.sh("echo alive") == "alive\n"


@pytest.mark.plain
def test_no_two_share_the_layout_of_their_memory(server):
    """What is learned of one agent says nothing about another, nor about the spawner. A slot that is being
    made has the spawner's layout until it executes the program anew, so a pair is looked at again."""
    with server.create(), server.create():
        eventually(lambda: not sharing(server), what="that no two processes share a layout")


def sharing(server):
    """The parts of memory that lie at one place in two of a server's processes."""
    try:
        slots = slot_processes(server)
        layouts = [memory_layout(pid) for pid in [server.spawner(), *slots]]
    except (OSError, KeyError):
        return ["a process that ended meanwhile"]
    assert len(slots) >= 2
    places = {part: [layout[part] for layout in layouts] for part in ("stack", "vdso", "heap")}
    # The heap has some thousand places only: two may meet.
    return [part for part, at in places.items() if len(set(at)) < len(at) - (part == "heap")]


def test_the_executable_may_be_roots_alone(make_server, scratch):
    """Root of a sandbox is somebody else, who may not execute it, and yet becomes it."""
    executable = Path(shutil.copy(EXECUTABLE, scratch / "opensandbox-of-root"))
    executable.chmod(0o700)
    server = make_server("private", executable=executable)
    with server.create() as sandbox:
        assert sandbox.sh("id -u") == "0\n"
        assert os.readlink(f"/proc/{agent_process(sandbox)}/exe").startswith("/memfd:opensandbox")


@pytest.fixture(scope="module", autouse=True)
def noexec(scratch):
    """A file system that can be made one that nothing is executed from; there before any server is."""
    place = scratch / "noexec"
    place.mkdir()
    run("mount", "-t", "tmpfs", "tmpfs", place)
    yield place
    run("umount", "--lazy", place)


def test_a_slot_that_cannot_start_the_executable_says_so_and_leaves_nothing(noexec, make_server):
    server = make_server("noexec", executable=shutil.copy(EXECUTABLE, noexec), pool_size=0)
    run("mount", "-o", "remount,noexec", noexec)
    reply = server.api().post("/sandboxes", HOST_IMAGE)
    assert reply.status == 500 and "start this executable anew" in reply.text, reply
    assert slot_processes(server) == []
    run("mount", "-o", "remount,exec", noexec)
    with server.create() as sandbox:
        assert sandbox.sh("echo works") == "works\n"


def test_an_agent_shows_the_host_what_it_is_and_nobody_more(server, inside):
    """Started anew in its slot: same program and name, no settings of the host's, no descriptor."""
    for pid in slot_processes(server):
        process = Path(f"/proc/{pid}")
        assert os.readlink(process / "exe") == os.readlink(f"/proc/{server.spawner()}/exe")
        # A blank may have been started this moment, and takes its name then.
        eventually(lambda: (process / "comm").read_text() == "opensandbox\n", 5, 0.01, "the name")
        assert (process / "cmdline").read_bytes().rstrip(b"\0") == b"opensandbox exec"
        assert (process / "environ").read_bytes().rstrip(b"\0") == b""
    assert inside.sh("cat /proc/1/comm; tr -d '\\0' < /proc/1/cmdline") == "opensandbox\nopensandbox exec"


def test_no_file_of_the_host_is_visible(server, inside):
    name = f"secret-{uuid.uuid4()}"
    places = [Path(p) / name for p in ("/root", "/home", "/opt", "/srv", "/var/tmp", "/tmp", "/etc")]
    try:
        for place in places:
            place.write_text("of the host")
        found = inside.sh(f"find / -name '{name}' -not -path '/proc/*' 2>/dev/null; true")
        assert found == ""
        assert inside.sh("test -e /usr/bin/env && echo there") == "there\n"
    finally:
        for place in places:
            place.unlink(missing_ok=True)
    # Neither its own state nor anything the server keeps.
    state = server.state
    assert inside.sh(f"ls {state} 2>/dev/null; true") == ""
    assert inside.run(f"find / -xdev -name api-key 2>/dev/null | grep .").code != 0


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/sudoers", "/etc/machine-id", "/etc/docker"]
)
def test_no_secret_of_the_hosts_etc_is_visible(inside, path):
    host = Path(path)
    mine = inside.sh(f"cat {path} 2>/dev/null; true")
    if host.is_file() and host.stat().st_size > 0:
        assert hashlib.sha256(mine.encode()).digest() != hashlib.sha256(host.read_bytes()).digest()
    else:
        assert inside.run(f"ls {path}/* 2>/dev/null").stdout == ""


@pytest.mark.plain
def test_nothing_of_the_host_is_open_inside(server, inside):
    """A descriptor of a directory or process of the host would be a way out."""
    shown = inside.sh("for fd in /proc/self/fd/*; do readlink $fd; done; true")
    kinds = [line for line in shown.splitlines() if not line.startswith(("pipe:", "/proc/", "/dev/null"))]
    assert kinds == [], shown
    # The agent's own, as the host sees them: files of the sandbox, sockets, its log, its epoll.
    for fd in Path(f"/proc/{agent_process(inside)}/fd").iterdir():
        try:
            target = os.readlink(fd)
        except FileNotFoundError:
            continue
        allowed = target.startswith(("socket:", "pipe:", "anon_inode:", "/memfd:", "/dev/null", "/null", "/dev/pts"))
        log = server.state / "sandboxes"
        assert allowed or (str(log) in target and target.endswith("/output")) or target == "/output", target


def test_device_files_of_an_image_do_not_open(server, busybox, scratch):
    archive = rootfs.tar_of_tree(busybox, scratch / f"devices-{uuid.uuid4()}.tar")
    server.cli("image", "import", archive, "devices:1")
    try:
        # The import passes them over; one that is there all the same is planted here.
        layer = next(p.parents[1] for p in (server.state / "images").rglob("bin/busybox"))
        os.mknod(layer / "zero", 0o20666, os.makedev(1, 5))
        os.mknod(layer / "disk", 0o60666, os.makedev(7, 0))
        with server.create(image={"uri": "devices:1"}) as sandbox:
            for name in ("/zero", "/disk"):
                assert sandbox.sh(f"test -e {name} && echo there") == "there\n"
                done = sandbox.run(f"head -c 1 {name}")
                assert done.code != 0 and "denied" in done.stderr.lower(), done
            assert sandbox.sh("head -c 1 /dev/zero | wc -c").strip() == "1", "the control"
    finally:
        server.cli("image", "remove", "devices:1")


def test_no_socket_of_the_host_is_visible(inside):
    assert inside.sh("find / -xdev -type s 2>/dev/null; true") == ""
    assert inside.sh("cat /proc/net/unix | tail -n +2 | grep -c / ; true").strip() == "0"


def test_the_hosts_usr_cannot_be_changed(inside):
    probe = Path("/usr/local/share") / f"probe-{uuid.uuid4()}"
    inside.sh(f"mkdir -p /usr/local/share && echo changed > {probe} && rm -f /usr/bin/env")
    assert not probe.exists()
    assert Path("/usr/bin/env").exists()


def test_privileges_are_few(inside):
    status = dict(
        line.split(":\t", 1) for line in inside.sh("cat /proc/self/status").splitlines() if ":\t" in line
    )
    effective = int(status["CapEff"], 16)
    for name, bit in {
        "SYS_ADMIN": 21, "SYS_MODULE": 16, "SYS_RAWIO": 17, "SYS_PTRACE": 19, "SYS_BOOT": 22,
        "SYS_TIME": 25, "NET_ADMIN": 12, "NET_RAW": 13, "MKNOD": 27, "MAC_ADMIN": 33, "BPF": 39,
        "SYSLOG": 34, "SYS_RESOURCE": 24, "DAC_READ_SEARCH": 2, "PERFMON": 38,
    }.items():
        assert not effective >> bit & 1, f"CAP_{name} is effective"
        assert not int(status["CapBnd"], 16) >> bit & 1, f"CAP_{name} is in the bounding set"
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    first = inside.sh("cat /proc/self/uid_map").split()
    assert first[0] == "0" and int(first[1]) >= 65536, "root inside is a user without rights outside"


def test_namespaces_are_its_own(inside):
    for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
        assert inside.sh(f"readlink /proc/self/ns/{kind}").strip() != os.readlink(f"/proc/self/ns/{kind}")


def test_the_agents_token_is_needed_and_not_to_be_found_inside(inside):
    endpoint = inside.endpoint(44772)
    token = endpoint["headers"]["X-EXECD-ACCESS-TOKEN"]
    assert len(token) >= 32
    stranger = inside.connect()
    stranger.headers = {}
    assert stranger.get("/ping").status == 401
    stranger.headers = {"X-EXECD-ACCESS-TOKEN": "x" * len(token)}
    assert stranger.post("/command", {"command": "true"}).status == 401
    assert token not in inside.sh("env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; true")
    assert inside.run(
        ["python3", "-c",
         "import urllib.request as u\n"
         "u.urlopen(u.Request('http://127.0.0.1:44772/command', b'{\"command\":\"id\"}'))"]
    ).code != 0


CONNECT = """
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 2).close()
        print(target, "reached")
    except OSError as error:
        print(target, "failed", error)
"""


def connect_from(sandbox, *targets):
    """Which of the targets a sandbox reaches."""
    out = sandbox.sh("python3 - " + " ".join(targets) + " <<'PY'\n" + CONNECT + "PY\n")
    assert len(out.splitlines()) == len(targets), out
    return {line.split()[0] for line in out.splitlines() if " reached" in line}


def test_another_sandbox_cannot_be_reached(server, inside):
    with server.create() as other:
        address = other.address()
        started = list(other.agent.events({"command": "python3 -m http.server 8000", "background": True}))
        assert started[-1]["type"] == "execution_complete"
        other.sh("until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8000))'"
                 " 2>/dev/null; do sleep 0.05; done")
        assert connect_from(other, f"{address}:8000") == {f"{address}:8000"}, "the control"
        assert connect_from(inside, f"{address}:8000", f"{address}:44772") == set()
        # Neither by way of the ports that the server publishes on the host.
        published = other.endpoint(44772)["endpoint"].split("/")[0]
        assert connect_from(inside, published) == set()


def host_addresses():
    entries = json.loads(run("ip", "-j", "-4", "addr").stdout)
    return sorted({a["local"] for e in entries for a in e.get("addr_info", [])})


def test_services_of_the_host_cannot_be_reached(server, inside):
    listener = socket.create_server(("0.0.0.0", 0))
    port = listener.getsockname()[1]
    stop = threading.Event()

    def accept():
        listener.settimeout(0.1)
        while not stop.is_set():
            try:
                listener.accept()[0].close()
            except OSError:
                continue

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        addresses = host_addresses()
        gateway = inside.sh("cat /proc/net/route").splitlines()[1:]
        for line in gateway:
            value = int(line.split()[2], 16)
            if value:
                addresses.append(socket.inet_ntoa(value.to_bytes(4, "little")))
        addresses = sorted(set(addresses))
        assert "127.0.0.1" in addresses and len(addresses) >= 2
        for address in addresses:
            assert reachable(address, port), f"the control: the host reaches {address}"
        api = server.address.split(":")[1]
        targets = [f"{a}:{p}" for a in addresses for p in (port, api)]
        assert connect_from(inside, *targets) == set()
    finally:
        stop.set()
        thread.join()
        listener.close()


def test_the_metadata_address_cannot_be_reached_while_others_can(inside, forwarding):
    with Elsewhere("198.51.100.7"):
        assert connect_from(inside, "198.51.100.7:80") == {"198.51.100.7:80"}, "the control"
    with Elsewhere("169.254.169.254"):
        assert reachable("169.254.169.254", 80)
        assert connect_from(inside, "169.254.169.254:80") == set()
    with Elsewhere("169.254.42.1"):
        assert connect_from(inside, "169.254.42.1:80") == set()


def test_it_cannot_pretend_to_be_another_address(server, inside):
    with server.create() as other:
        out = inside.run(
            ["python3", "-c",
             "import socket\ns = socket.socket()\n"
             f"s.bind(('{other.address()}', 0))"]
        )
        assert out.code != 0
