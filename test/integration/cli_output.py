"""How the command line looks: colours, help, names that it is called by; and what commands of a
sandbox do beyond what they print (their documents: conformance/cli_shapes.py)."""

import json
import os
import pty
import re
import signal
import subprocess

import pytest

from support.server import EXECUTABLE
from support.shell import eventually, run

COLOR = "\x1b["


@pytest.fixture(scope="module")
def id(server):
    with server.create() as sandbox:
        yield sandbox.id


def on_a_terminal(server, *argv, **environment):
    """What the command writes to a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [server.executable, *argv], stdout=slave, stderr=slave, stdin=subprocess.DEVNULL,
        env={**server.environment(), "TERM": "xterm", **environment})
    os.close(slave)
    seen = b""
    try:
        while part := os.read(master, 65536):
            seen += part
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(master)
        process.wait(30)
    return seen.decode()


# --- colours --------------------------------------------------------------------------------------


def test_colours_are_for_terminals_that_want_them(server, tmp_path):
    quiet = tmp_path / "config.toml"
    quiet.write_text("[output]\ncolor = false\n")
    loud = tmp_path / "loud.toml"
    loud.write_text("[output]\ncolor = true\n")
    for argv in (("sandbox", "list"), ("sandbox", "get", "none")):
        assert COLOR in on_a_terminal(server, *argv), argv
        assert COLOR in on_a_terminal(server, "--config", str(loud), *argv), argv
        assert COLOR not in on_a_terminal(server, "--no-color", *argv), argv
        assert COLOR not in on_a_terminal(server, *argv, NO_COLOR="1"), argv
        assert COLOR not in on_a_terminal(server, *argv, TERM="dumb"), argv
        assert COLOR not in on_a_terminal(server, "--config", str(quiet), *argv), argv
        piped = server.cli("--config", str(loud), *argv, check=False)
        assert COLOR not in piped.stdout + piped.stderr, argv
    assert json.loads(on_a_terminal(server, "sandbox", "list", "-o", "json"))["items"] == []


# --- help and names -------------------------------------------------------------------------------


def test_every_command_teaches_by_example(tmp_path):
    osb = tmp_path / "osb"
    osb.symlink_to(EXECUTABLE)
    document = json.loads(run(osb, "help", "-o", "json").stdout)
    for command in document["commands"]:
        for argv in ((*command["name"].split(), "--help"), ("help", *command["name"].split())):
            text = run(osb, *argv).stdout
            assert text.startswith(f"Usage: osb {command['name']}"), argv
            assert "\nExamples:\n  # " in text and f"\n  osb {command['examples'][0]['line']}\n" in text, argv
    for group in document["groups"]:
        text = run(osb, *group["name"].split(), "--help").stdout
        assert text.startswith(f"Usage: osb {group['name']} COMMAND"), group
        assert "\nExamples:\n" in text, group


def test_it_answers_to_the_published_name(server, tmp_path):
    osb = tmp_path / "osb"
    osb.symlink_to(EXECUTABLE)
    assert re.fullmatch(r"opensandbox, version \S+\n", run(osb, "--version").stdout)
    bare = run(osb, "egress", check=False)
    assert bare.returncode == 2 and "Usage: osb egress COMMAND" in bare.stderr and "patch" in bare.stderr
    done = run(osb, "egress", "get", "none", check=False, env=server.environment())
    assert done.returncode == 1 and "none" in done.stderr


# --- commands -------------------------------------------------------------------------------------


def test_sessions_remember_and_pass_codes_on(server, id):
    session = json.loads(server.cli("command", "session", "create", id, "-w", "/tmp/s", "-o", "json").stdout)
    name = session["session_id"]

    def inside(*words, options=(), check=True):
        return server.cli("command", "session", "run", id, name, *options, "--", *words, check=check)

    assert inside("pwd").stdout == "/tmp/s\n"
    inside("export", "A=x y")
    inside("cd", "/usr")
    assert inside("printenv", "A").stdout == "x y\n"
    assert inside("pwd", options=["-w", "/etc"]).stdout == "/etc\n"
    assert inside("pwd").stdout == "/usr\n"
    assert inside("echo $A | wc -w", options=["--shell"]).stdout.strip() == "2"
    assert inside("printf", "%s|", "$A", "", "'").stdout == "$A||'|"
    apart = inside("eval", "echo out; echo err >&2; exit 9", check=False)
    assert (apart.stdout, apart.stderr, apart.returncode) == ("out\n", "err\n", 9)
    assert inside("sleep", "1000", options=["-t", "1s"], check=False).returncode not in (0, 2)
    server.cli("command", "session", "delete", id, name)
    gone = inside("true", check=False)
    assert gone.returncode == 1 and gone.stderr.startswith("Error: ")


def test_an_interrupt_ends_a_run_in_a_session_and_leaves_the_shell(server, id):
    name = json.loads(server.cli("command", "session", "create", id, "-o", "json").stdout)["session_id"]
    process = subprocess.Popen(
        [server.executable, "command", "session", "run", id, name, "--",
         "sh", "-c", "echo begun; sleep 1000"],
        stdout=subprocess.PIPE, env=server.environment(), text=True)
    try:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 128 + signal.SIGINT
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()
    after = lambda: server.cli("command", "session", "run", id, name, "-t", "10s", "--", "echo", "alive",
                               check=False).stdout == "alive\n"
    eventually(after, 30, 0.2, "the shell's answer")


def test_metrics_are_followed_until_an_interrupt(server, id):
    process = subprocess.Popen([server.executable, "sandbox", "metrics", id, "--watch"],
                               stdout=subprocess.PIPE, env=server.environment(), text=True)
    try:
        for _ in range(2):
            line = process.stdout.readline()
            assert re.fullmatch(r"\[\S+\] cpu=[\d.]+% cores=[\d.]+ mem=[\d.]+/[\d.]+MiB\n", line), line
        process.send_signal(signal.SIGINT)
        assert process.wait(20) != 0
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def test_a_request_file_gets_the_kept_lifetime_and_is_told(server, tmp_path):
    settings, body = tmp_path / "config.toml", tmp_path / "body.json"
    settings.write_text('[defaults]\ntimeout = "2h"\n')
    request = {"image": {"uri": "host"}, "resourceLimits": {"cpu": "1", "memory": "512Mi"},
               "entrypoint": ["tail", "-f", "/dev/null"]}
    for kept, told in ((request, "2:00:00"), ({**request, "timeout": 600}, "0:10:00"),
                       ({**request, "timeout": None}, "manual-cleanup")):
        body.write_text(json.dumps(kept))
        made = json.loads(server.cli("--config", str(settings), "sandbox", "create", "-f", str(body), "-o",
                                     "json").stdout)
        server.cli("sandbox", "kill", made["id"])
        assert (made["timeout"], made["request_file"], made["image"]) == (told, str(body), "host")


def test_templates_are_refused_by_a_server_that_has_none(server):
    done = server.cli("template", "create", "-i", "a", "-p", "s3://b/c", "-o", "json", check=False)
    assert done.returncode == 1 and json.loads(done.stderr)["http_status"] == 501, done


def test_egress_of_a_sandbox_without_a_policy_is_told(server, id):
    for argv in (("egress", "get", id), ("credential-vault", "get", id)):
        done = server.cli(*argv, check=False)
        assert done.returncode == 1 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done
        assert "opensandbox serve" not in done.stderr, done


def test_what_diagnostics_lack_is_told_apart_from_them(server):
    with server.create(entrypoint=["sh", "-c", "seq 1 200; exec tail -f /dev/null"]) as sandbox:
        eventually(lambda: "200" in server.cli("diagnostics", "logs", sandbox.id, "-s", "container").stdout,
                   what="its output")
        done = server.cli("diagnostics", "logs", sandbox.id, "-s", "all")
        assert len(done.stdout.splitlines()) == 100 and "Warning" not in done.stdout
        assert "only a part" in done.stderr and len(done.stderr.splitlines()) == 2
        few = server.cli("devops", "logs", sandbox.id, "-n", "3", "-s", "1h")
        assert [l.split()[-1] for l in few.stdout.splitlines()] == ["198", "199", "200"]
