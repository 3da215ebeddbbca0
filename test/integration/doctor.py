"""`opensandbox doctor`: what it says of this machine, and what it ends with."""

import json
import os

import pytest

from support.server import EXECUTABLE
from support.shell import run
from support.users import User


def doctor(*arguments, check=True, **options):
    return run(EXECUTABLE, "doctor", *arguments, check=check, **options)


def checks(done):
    return {c["check"]: c for c in json.loads(done.stdout)["checks"]}


def test_this_machine_can_run_sandboxes(scratch):
    done = doctor("-o", "json", "--state-dir", scratch / "absent")
    document = json.loads(done.stdout)
    assert document["native"] is True and document["reason"] is None
    found = checks(done)
    assert all(c["status"] in ("ok", "off", "fail") and c["found"] for c in found.values())
    for name in ("kernel", "namespaces", "overlayfs", "nftables", "seccomp"):
        assert found[name]["status"] == "ok", found[name]
    assert found["kernel"]["found"] == os.uname().release
    # What is off says what follows from it.
    assert all(c["follows"] for c in found.values() if c["status"] != "ok")
    assert not (scratch / "absent").exists()
    assert not [p for p in scratch.iterdir() if "doctor" in p.name]


def test_a_table_for_people(scratch):
    lines = doctor("--state-dir", scratch).stdout.splitlines()
    assert lines[0].split() == ["CHECK", "STATUS", "FOUND", "FOLLOWS"]
    assert any(line.startswith("cgroups ") for line in lines)


def test_it_sees_what_sandboxes_get(server):
    """Its word about limits is what the runtime does about them."""
    found = checks(doctor("-o", "json", "--state-dir", server.state))
    for controller in ("cpu", "memory", "pids"):
        missing = f"limits of {controller}" in server.log.read_text(errors="replace")
        assert missing == (controller not in found["cgroups"]["found"])


def test_an_ordinary_user_is_told_what_is_off():
    with User() as user:
        executable = user.copy(EXECUTABLE)
        environment = {"PATH": os.environ["PATH"], "HOME": str(user.home)}

        def ask():
            return run("setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups",
                       executable, "doctor", "-o", "json", check=False, env=environment)

        done = ask()
        assert done.returncode == 0, done.stderr
        found = checks(done)
        assert "65536" in found["subordinate ids"]["found"]
        assert found["overlayfs"]["status"] == "ok"
        assert found["shifted ids"]["status"] == "off"
        # What it hinges on differs between machines; rootless_network.py has both.
        way_out = found["outbound network"]
        usable = "pasta" in way_out["found"] and way_out["status"] == "ok"
        assert usable or "passt" in way_out["found"] or "/dev/net/tun" in way_out["found"], way_out

        # Without subordinate ids there is nothing to give to sandboxes.
        last = user.first_subordinate + user.subordinates - 1
        run("usermod", "--del-subuids", f"{user.first_subordinate}-{last}", user.name)
        done = ask()
        assert done.returncode == 1
        assert "subordinate ids" in done.stderr and user.name in done.stdout
        assert json.loads(done.stdout)["native"] is False


def test_a_place_that_cannot_be_written_is_a_reason():
    done = doctor("-o", "json", "--state-dir", "/proc/1/opensandbox", check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["native"] is False
    assert "state directory" in json.loads(done.stdout)["reason"]


@pytest.mark.parametrize("arguments", [["--state-dir", "relative"], ["--nonsense"], ["extra"]])
def test_wrong_usage(arguments):
    assert doctor(*arguments, check=False).returncode == 2
