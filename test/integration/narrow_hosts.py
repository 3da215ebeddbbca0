"""Machines that offer less than all: containers and system services have much of the kernel read-only,
and not every capability. `serve` runs where `doctor` says so, without what `doctor` says is off."""

import json
import subprocess

import pytest

from support.server import EXECUTABLE, Server
from support.shell import run

#: What is taken away, as a command that runs another without it, and what is off then.
READ_ONLY = 'mount --bind "$p" "$p" && mount -o remount,bind,ro "$p" || exit 9'
IN_OWN_MOUNTS = ["unshare", "--mount", "--propagation", "slave", "sh", "-c"]
NARROW = {
    "control groups are read-only": ([*IN_OWN_MOUNTS, """
        for p in $(awk '$3 ~ /^cgroup2?$/ {print $2}' /proc/self/mounts); do
            mount -o remount,bind,ro "$p" || exit 9
        done
        exec "$@" """, "sh"], ["limits of cpu", "limits of memory", "limits of pids"]),
    "kernel settings are read-only": ([*IN_OWN_MOUNTS, f'p=/proc/sys; {READ_ONLY}; exec "$@"', "sh"], []),
    "no capability to trace": (["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"], []),
}


@pytest.fixture(scope="module", autouse=True)
def forwarding():
    """On already, as where somebody prepared the machine."""
    run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")


@pytest.mark.parametrize("what", NARROW)
def test_serve_does_what_doctor_says(scratch, what):
    launcher, off = NARROW[what]
    server = Server(scratch / "narrow", pool_size=1, launcher=launcher)
    try:
        done = run(*launcher, EXECUTABLE, "doctor", "-o", "json", "--state-dir", server.state.parent, check=False)
        document = json.loads(done.stdout)
        assert document["native"] is True, document
        told = {c["check"]: c for c in document["checks"]}
        for phrase in off:
            assert phrase.removeprefix("limits of ") in told["cgroups"]["follows"], told["cgroups"]
        server.start()
        with server.create() as sandbox:
            assert sandbox.sh("id -u; echo works") == "0\nworks\n"
            for phrase in off:
                assert phrase in server.log.read_text(errors="replace")
    finally:
        server.destroy()


def test_forwarding_that_cannot_be_turned_on_is_told_by_both(scratch):
    """In a network namespace of its own, where it is off."""
    script = f'echo 0 > /proc/sys/net/ipv4/ip_forward; ip link set lo up; p=/proc/sys; {READ_ONLY}; exec "$@"'
    launcher = ["unshare", "--net", *IN_OWN_MOUNTS, script, "sh"]
    state = scratch / "unforwarded"
    state.mkdir()
    done = run(*launcher, EXECUTABLE, "doctor", "-o", "json", "--state-dir", state, check=False)
    document = json.loads(done.stdout)
    assert done.returncode == 1 and document["native"] is False
    assert "outbound network" in document["reason"] or "ip_forward" in document["reason"], document["reason"]
    config = state / "config.toml"
    config.write_text(f'[server]\nport = 0\n[native]\nstate_dir = "{state}/state"\n')
    ended = subprocess.run([*launcher, EXECUTABLE, "serve", "--config", config], capture_output=True, text=True,
                           timeout=60, stdin=subprocess.DEVNULL)
    assert ended.returncode != 0 and "ip_forward" in ended.stderr + ended.stdout
