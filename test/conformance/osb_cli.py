"""The published `osb`, unmodified, against our server."""

import json
import os
import sys
from pathlib import Path

import pytest

from support.shell import eventually, run

OSB = Path(sys.executable).parent / "osb"


@pytest.fixture(params=[False, True], ids=["direct", "proxy"])
def osb(server, request):
    extra = {"OPEN_SANDBOX_USE_SERVER_PROXY": "true"} if request.param else {}

    def call(*argv, check=True, input=None, json_output=False):
        argv = list(argv)
        if json_output:
            # Options stand before `--`, which begins the command for the sandbox.
            at = argv.index("--") if "--" in argv else len(argv)
            argv[at:at] = ["-o", "json"]
        done = run(OSB, "--no-color", *argv, check=check, input=input, timeout=90,
                   env={**server.environment(), **extra})
        return json.loads(done.stdout) if json_output else done

    return call


@pytest.fixture
def id(osb, server):
    made = osb("sandbox", "create", "--image", server.image, "--timeout", "10m", "-m", "by=osb",
               json_output=True)["id"]
    yield made
    osb("sandbox", "kill", made, check=False)


def test_sandbox_create_list_get_renew_endpoint_metrics_health_kill(osb, id):
    shown = osb("sandbox", "get", id, json_output=True)
    assert shown["id"] == id and shown["status"]["state"] == "Running"
    assert shown["metadata"] == {"by": "osb"}
    listed = osb("sandbox", "list", "-m", "by=osb", "-s", "running", json_output=True)
    assert [i["id"] for i in listed["items"]] == [id]
    assert listed["pagination"]["total_items"] == 1
    assert id[:8] in osb("sandbox", "list").stdout
    assert osb("sandbox", "renew", id, "--timeout", "2h", json_output=True)["sandbox_id"] == id
    assert osb("sandbox", "endpoint", id, "--port", "8080", json_output=True)["endpoint"]
    assert osb("sandbox", "metrics", id, json_output=True)["memory_total_in_mib"] > 0
    assert osb("sandbox", "health", id, json_output=True)["healthy"] is True
    assert osb("sandbox", "kill", id, json_output=True)[0]["status"] == "terminated"
    gone = osb("sandbox", "get", id, check=False)
    assert gone.returncode == 1 and "not found" in gone.stderr


def test_command_run_prints_the_bytes(osb, id):
    done = osb("command", "run", id, "--", "sh", "-c", "echo one; printf 'two\\nthree'")
    assert (done.stdout, done.stderr) == ("one\ntwo\nthree\n", "")  # it adds the last line end itself
    apart = osb("command", "run", id, "--", "sh", "-c", "echo out; echo err >&2")
    assert (apart.stdout, apart.stderr) == ("out\n", "err\n")
    assert osb("command", "run", id, "--argv", "--", "printf", "%s|", "$HOME", "").stdout == "$HOME||\n"
    failed = osb("command", "run", id, "--", "sh", "-c", "exit 9", check=False)
    assert failed.returncode == 1 and "9" in failed.stderr
    assert osb("command", "run", id, "-w", "/usr", "--", "pwd").stdout == "/usr\n"


def test_command_in_the_background(osb, id):
    started = osb("command", "run", id, "-d", "--", "sh", "-c", "echo begun; sleep 1000", json_output=True)
    execution = started["execution_id"]
    assert osb("command", "status", id, execution, json_output=True)["running"] is True
    eventually(lambda: "begun" in osb("command", "logs", id, execution, "-o", "raw").stdout, 30, 0.2)
    osb("command", "interrupt", id, execution)
    assert osb("command", "status", id, execution, json_output=True)["running"] is False
    # It shows the message alone, in which people look for these words.
    for command in ("status", "logs"):
        gone = osb("command", command, id, "nope", check=False)
        assert gone.returncode == 1 and "command not found: nope" in gone.stderr, gone


def test_files(osb, id, tmp_path):
    local, back = tmp_path / "local", tmp_path / "back"
    local.write_bytes(os.urandom(300_000))
    osb("file", "upload", id, str(local), "/tmp/osb/deep/blob")
    osb("file", "download", id, "/tmp/osb/deep/blob", str(back))
    assert back.read_bytes() == local.read_bytes()
    osb("file", "write", id, "/tmp/osb/a.txt", "-c", "grüße", "--mode", "640")
    assert osb("file", "cat", id, "/tmp/osb/a.txt").stdout == "grüße"
    osb("file", "write", id, "/tmp/osb/b.txt", input="from stdin")
    info = osb("file", "info", id, "/tmp/osb/a.txt", json_output=True)
    assert info[0]["mode"] == 640 and info[0]["size"] == 7
    found = osb("file", "search", id, "/tmp/osb", "-p", "*.txt", json_output=True)
    assert sorted(f["path"] for f in found) == ["/tmp/osb/a.txt", "/tmp/osb/b.txt"]
    osb("file", "replace", id, "/tmp/osb/a.txt", "--old", "grüße", "--new", "greetings")
    assert osb("file", "cat", id, "/tmp/osb/a.txt").stdout == "greetings"
    osb("file", "mkdir", id, "/tmp/osb/made", "--mode", "700")
    osb("file", "mv", id, "/tmp/osb/b.txt", "/tmp/osb/made/b.txt")
    osb("file", "chmod", id, "/tmp/osb/a.txt", "--mode", "600")
    assert osb("file", "info", id, "/tmp/osb/a.txt", json_output=True)[0]["mode"] == 600
    osb("file", "rm", id, "/tmp/osb/a.txt")
    osb("file", "rmdir", id, "/tmp/osb")
    missing = osb("file", "cat", id, "/tmp/osb/a.txt", check=False)
    assert missing.returncode == 1 and missing.stderr.strip()


def test_errors(osb):
    for argv in (("sandbox", "get", "none"), ("sandbox", "create", "--image", "127.0.0.1:1/no/such:image"),
                 ("command", "run", "none", "--", "true")):
        done = osb(*argv, check=False)
        assert done.returncode == 1 and done.stderr.strip(), argv


def test_sessions(osb, id):
    session = osb("command", "session", "create", id, "-w", "/tmp/osb/session", json_output=True)["session_id"]
    run_in = lambda *words, options=(), check=True: osb(
        "command", "session", "run", id, session, *options, "--", *words, check=check)
    run_in("export", "A=x\ny")
    run_in("cd", "/usr")
    assert run_in("pwd").stdout == "/usr\n"
    assert run_in("printenv", "A").stdout == "x\ny\n"
    apart = run_in("eval", "echo out; echo bad >&2")
    assert (apart.stdout, apart.stderr) == ("out\n", "bad\n")
    assert run_in("pwd", options=["-w", "/etc"]).stdout == "/etc\n"
    assert run_in("pwd").stdout == "/usr\n"
    failed = run_in("exit", "3", check=False)
    assert failed.returncode == 1 and "3" in failed.stderr
    late = run_in("sleep", "60", options=["-t", "1s"], check=False)
    assert late.returncode == 1
    assert run_in("printenv", "A").stdout == "x\ny\n"
    osb("command", "session", "delete", id, session)
    gone = run_in("true", check=False)
    assert gone.returncode == 1 and gone.stderr.strip()


def test_pause_and_resume(osb, id):
    osb("command", "run", id, "--", "sh", "-c", "echo kept > /tmp/kept")
    osb("sandbox", "pause", id)
    assert osb("sandbox", "get", id, json_output=True)["status"]["state"] == "Paused"
    again = osb("sandbox", "pause", id, check=False)
    assert again.returncode == 1 and again.stderr.strip()
    osb("sandbox", "resume", id)
    assert osb("command", "run", id, "--", "cat", "/tmp/kept").stdout == "kept\n"


def test_snapshots(osb, id):
    osb("command", "run", id, "--", "sh", "-c", "echo kept > /root/kept")
    snapshot = osb("snapshot", "create", id, "--name", "by-osb", json_output=True)["id"]
    restored = None
    try:
        state = lambda: osb("snapshot", "get", snapshot, json_output=True)["status"]["state"]
        eventually(lambda: state() == "Ready", 60, 0.1, "the snapshot")
        listed = osb("snapshot", "list", "--sandbox-id", id, "--state", "Ready", json_output=True)
        assert [i["id"] for i in listed["items"]] == [snapshot]
        restored = osb("sandbox", "create", "--snapshot-id", snapshot, json_output=True)["id"]
        assert osb("command", "run", restored, "--", "cat", "/root/kept").stdout == "kept\n"
    finally:
        if restored:
            osb("sandbox", "kill", restored)
        osb("snapshot", "delete", snapshot)
    gone = osb("snapshot", "get", snapshot, check=False)
    assert gone.returncode == 1 and gone.stderr.strip()
