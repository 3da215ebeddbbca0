"""The attempts of isolation.py on sandboxes under gVisor. Where gVisor draws a boundary in its own way
the test here says so, and tries to cross that one."""

import errno
import os
import subprocess
import uuid
from pathlib import Path

import pytest

from integration.isolation import (  # noqa: F401: collected here, with this module's server
    NAMES, REFUSALS, attempts, inside,
    test_another_sandbox_cannot_be_reached,
    test_every_attempt_was_made_and_the_controls_succeed, test_it_cannot_pretend_to_be_another_address,
    test_no_file_of_the_host_is_visible, test_no_process_of_the_host_is_visible,
    test_no_secret_of_the_hosts_etc_is_visible, test_no_signal_reaches_a_process_of_the_host,
    test_no_socket_of_the_host_is_visible, test_no_two_share_the_layout_of_their_memory,
    test_process_1_cannot_be_killed_from_inside,
    test_services_of_the_host_cannot_be_reached,
    test_the_agents_token_is_needed_and_not_to_be_found_inside, test_the_hosts_usr_cannot_be_changed,
    test_the_metadata_address_cannot_be_reached_while_others_can,
)
from support import rootfs
from support.runsc import build_runsc
from support.sandbox_processes import in_sandbox, part_of_gvisor


@pytest.fixture(scope="module")
def server(make_server):
    return make_server(sections={"secure_runtime": {"type": "gvisor", "runsc": str(build_runsc())}})


#: Of gVisor's own network: neither the host's nor the slot's is changed by it.
ITS_OWN = "allow forwarding"


@pytest.mark.parametrize("name", [name for name in NAMES if name != ITS_OWN])
def test_root_inside_may_not(attempts, name):
    assert attempts[name] != 0, f"{name} was allowed"
    assert attempts[name] in REFUSALS | {errno.EIO}, f"{name}: {os.strerror(attempts[name])}"


def test_settings_of_the_network_are_its_own(inside):
    before = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    for value in ("1", "0"):
        inside.run(f"echo {value} > /proc/sys/net/ipv4/ip_forward")
        assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == before


def test_device_files_of_an_image_do_not_open(server, busybox, scratch):
    """Numbers that gVisor's kernel has devices for lead to those, no others lead anywhere."""
    archive = rootfs.tar_of_tree(busybox, scratch / f"gvisor-devices-{uuid.uuid4()}.tar")
    server.cli("image", "import", archive, "devices:2")
    try:
        layer = next(p.parents[1] for p in (server.state / "images").rglob("bin/busybox"))
        for name, kind, major, minor in (("disk", 0o60666, 7, 0), ("messages", 0o20666, 1, 11),
                                         ("memory", 0o20666, 1, 1), ("port", 0o20666, 1, 4)):
            os.mknod(layer / name, kind, os.makedev(major, minor))
        with server.create(image={"uri": "devices:2"}) as sandbox:
            for name in ("/disk", "/messages", "/memory", "/port"):
                assert Path(f"{layer}{name}").exists()
                assert sandbox.run(f"head -c 1 {name}").code != 0, name
            assert sandbox.sh("head -c 1 /dev/zero | wc -c").strip() == "1", "the control"
    finally:
        server.cli("image", "remove", "devices:2")


def test_nothing_of_the_host_is_open_inside(inside):
    """What gVisor's own processes hold is in no namespace of the host either: see below."""
    shown = inside.sh("for fd in /proc/self/fd/*; do readlink $fd; done; true")
    kinds = [line for line in shown.splitlines()
             if not line.startswith(("pipe:", "host:", "/proc/", "/dev/null"))]
    assert kinds == [], shown


def test_privileges_are_few(inside):
    status = dict(
        line.split(":\t", 1) for line in inside.sh("cat /proc/self/status").splitlines() if ":\t" in line
    )
    for field in ("CapEff", "CapBnd", "CapPrm"):
        # What isolation.py names: SYS_ADMIN, SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_BOOT, SYS_TIME…
        for bit in (21, 16, 17, 19, 22, 25, 12, 13, 27, 33, 39, 34, 24, 2, 38):
            assert not int(status[field], 16) >> bit & 1, f"{field}: {bit}"
    assert status["Seccomp"].strip() == "2"


def test_its_processes_are_nobody_on_the_host_and_in_no_namespace_of_it(server, inside):
    """The ids and namespaces that show inside are gVisor's own: these are the ones that hold."""
    mine = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "mnt", "pid", "net", "ipc", "uts")}
    pids = in_sandbox(inside)
    assert len(pids) >= 4
    for pid in pids:
        assert os.stat(f"/proc/{pid}").st_uid >= 65536, pid
        first = open(f"/proc/{pid}/uid_map").read().split()
        assert int(first[1]) >= 65536
        for kind, host in mine.items():
            assert os.readlink(f"/proc/{pid}/ns/{kind}") != host, (pid, kind)
    # Not even an escape from gVisor's kernel would find a tree of the host.
    kernel = part_of_gvisor(inside, "runsc-sandbox")
    assert not os.path.exists(f"/proc/{kernel}/root/etc/passwd")
    assert set(os.listdir(f"/proc/{kernel}/root")) <= {"etc", "proc"}
    assert not os.path.exists(f"/proc/{pids[0]}/root/etc")
    with server.create() as other:
        assert os.stat(f"/proc/{in_sandbox(other)[0]}").st_uid != os.stat(f"/proc/{pids[0]}").st_uid


def test_the_way_to_the_agent_leads_nowhere_else(inside):
    """The link between the slot and gVisor ends in a network namespace that has nothing but it."""
    first = in_sandbox(inside)[0]
    links = subprocess.run(["nsenter", "-t", str(first), "-n", "ip", "-o", "link"], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    assert sorted(line.split()[1].split("@")[0].rstrip(":") for line in links) == ["lo", "sandbox"]
    sockets = subprocess.run(["nsenter", "-t", str(first), "-n", "ss", "-lntuH"], check=True,
                             capture_output=True, text=True).stdout
    assert sockets == ""
