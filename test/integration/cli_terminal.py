"""The command line in a real terminal: shells, completion, progress, and Ctrl-C at every stage."""

import json
import os
import re
import socket
import subprocess
import time
import urllib.request

import pytest
from websockets.sync.client import connect

from support.shell import eventually, run
from support.tmux import Terminal


def listed(server):
    return {i["id"] for i in server.api().get("/sandboxes", query={"pageSize": 200}).json["items"]}


@pytest.fixture
def terminal(server, tmp_path):
    """A terminal in which `opensandbox` is the server's. What it makes must be gone at the end."""
    before = listed(server)
    (tmp_path / "opensandbox").symlink_to(server.executable)
    environment = {**server.environment(), "LANG": "C.UTF-8"}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    with Terminal(tmp_path, environment) as terminal:
        modes = terminal.modes()
        yield terminal
        eventually(lambda: terminal.modes() == modes, 10, 0.05, "the terminal's modes as they were")
    eventually(lambda: listed(server) <= before, 20, 0.1, "no sandbox that a command has left")


# --- shell ----------------------------------------------------------------------------------------


def test_a_shell_has_the_size_of_the_terminal_and_its_own_exit_code(terminal, sandbox):
    terminal.enter(f"opensandbox sandbox shell {sandbox.id}; echo '<''end '$?'>'")
    terminal.wait_for("bash-")
    terminal.enter("clear; stty size; tty")
    terminal.wait_for("30 100")
    terminal.wait_for("/dev/pts/")
    terminal.resize(90, 20)
    eventually(lambda: asked_size(terminal) == "20 90", 20, 0.2, "the new size")
    terminal.enter("exit 7")
    assert terminal.code() == 7


def asked_size(terminal):
    terminal.enter("clear; echo '<''size '$(stty size)'>'")
    shown = terminal.wait_for("<size ")
    return shown.rsplit("<size ", 1)[1].split(">")[0]


def test_ctrl_c_in_a_shell_goes_to_the_sandbox(terminal, sandbox):
    terminal.enter(f"opensandbox sandbox shell {sandbox.id}; echo '<''end '$?'>'")
    terminal.wait_for("bash-")
    terminal.enter("clear; echo '<''begun>'; sleep 1000; echo '<''code '$?'>'")
    terminal.wait_for("<begun>")
    terminal.press("C-c")
    terminal.enter("echo '<''still '$?'>'")
    terminal.wait_for("<still 130>")
    terminal.enter("exit 5")
    assert terminal.code() == 5


def test_a_shell_is_left_and_found_again(terminal, sandbox):
    terminal.enter(f"opensandbox sandbox shell {sandbox.id}; echo '<''end '$?'>'")
    terminal.wait_for("bash-")
    terminal.enter("word=kept; clear; echo '<''set>'")
    terminal.wait_for("<set>")
    terminal.type("~.")
    shown = terminal.wait_for("comes back to it")
    assert terminal.code() == 0
    session = re.search(r"--attach ([0-9a-f-]{36})", shown.replace("\n", ""))[1]
    assert sandbox.agent.get(f"/pty/{session}").json["running"]
    terminal.clear()
    terminal.enter(f"opensandbox sandbox shell {sandbox.id} --attach {session}; echo '<''end '$?'>'")
    terminal.wait_for("bash-")
    terminal.enter("echo '<''word '$word'>'; exit 3")
    terminal.wait_for("<word kept>")
    assert terminal.code() == 3
    assert sandbox.agent.get(f"/pty/{session}").status == 404, "an ended shell's session is removed"


def test_a_shell_is_viewed_without_a_hand_in_it(terminal, sandbox):
    made = sandbox.agent.post("/pty", {"command": 'echo "<begun>"; read -r x; echo "<got $x>"; exit 6'})
    session = made.json["session_id"]
    where = sandbox.endpoint(44772)
    with connect(f"ws://{where['endpoint']}/pty/{session}/ws", additional_headers=where["headers"]) as holder:
        terminal.enter(f"opensandbox sandbox shell {sandbox.id} --view {session}; echo '<''end '$?'>'")
        terminal.wait_for("<begun>")
        terminal.enter("typed by a viewer")
        holder.send(b"\x00mine\n")
        terminal.wait_for("<got mine>")
        assert terminal.code() == 6
    assert sandbox.agent.get(f"/pty/{session}").status == 200, "it was not the viewer's to remove"


def test_a_shell_lives_through_the_end_of_its_client(terminal, sandbox):
    terminal.enter(f"opensandbox sandbox shell {sandbox.id}; echo '<''end '$?'>'")
    terminal.wait_for("bash-")
    tty = terminal.tmux("display-message", "-p", "-t", "test", "#{pane_pid}").strip()
    child = int(eventually(lambda: os.popen(f"pgrep -P {tty} opensandbox").read().strip(), 10, 0.05, "the client"))
    os.kill(child, 15)
    shown = terminal.wait_for("comes back to it")
    assert terminal.code() == 128 + 15
    session = re.search(r"--attach ([0-9a-f-]{36})", shown.replace("\n", ""))[1]
    assert sandbox.agent.get(f"/pty/{session}").json["running"]


def test_a_command_instead_of_a_shell(terminal, sandbox):
    shown, code = terminal.finish(f"opensandbox sandbox shell {sandbox.id} -- sh -c 'test -t 0 && echo a terminal; exit 4'")
    assert "a terminal" in shown and code == 4


def test_input_that_is_no_terminal_is_the_shells_script(server, sandbox):
    done = server.cli("sandbox", "shell", sandbox.id, input="read line\nthe input\necho got $line\nexit 9\n", check=False)
    assert (done.stdout, done.returncode) == ("got the input\n", 9)
    done = server.cli("sandbox", "shell", sandbox.id, "--", "wc", "-c", input="x" * 300_000)
    assert done.stdout.strip() == "300000"
    left = server.cli("command", "run", sandbox.id, "--shell", "--", "ls -A /tmp | grep -c stdin || true")
    assert left.stdout.strip() == "0"
    refused = server.cli("sandbox", "shell", sandbox.id, "--attach", "x", check=False)
    assert refused.returncode == 2 and "terminal" in refused.stderr


# --- completion -----------------------------------------------------------------------------------


def test_bash_completes_commands_values_and_ids(terminal, server, sandbox):
    terminal.enter("source <(opensandbox completion bash)")
    terminal.clear()
    for typed, whole in (("opensandbox sandb", "opensandbox sandbox "),
                         ("opensandbox sandbox hea", "opensandbox sandbox health "),
                         ("opensandbox sandbox list --page-s", "opensandbox sandbox list --page-size "),
                         ("opensandbox sandbox list -o js", "opensandbox sandbox list -o json "),
                         ("opensandbox sandbox list --output=ya", "opensandbox sandbox list --output=yaml "),
                         (f"opensandbox sandbox get {sandbox.id[:9]}", f"opensandbox sandbox get {sandbox.id} ")):
        terminal.type(typed)
        terminal.press("Tab")
        terminal.wait_for(f"READY> {whole.rstrip()}")
        terminal.type("|")  # a space before it shows that the word was taken as whole
        terminal.wait_for(f"READY> {whole}|")
        terminal.press("C-u")
        terminal.clear()


def test_completion_of_ids_is_silent_without_a_server(server):
    lost = server.cli("complete", "--", "--server", "127.0.0.1:1", "sandbox", "get", "")
    assert (lost.stdout, lost.stderr) == ("", "")


def test_scripts_for_three_shells(server):
    for shell in ("bash", "zsh", "fish"):
        assert "opensandbox" in server.cli("completion", shell).stdout
    refused = server.cli("completion", "tcsh", check=False)
    assert refused.returncode == 2 and "bash, zsh or fish" in refused.stderr


# --- transfers ------------------------------------------------------------------------------------


def test_directories_go_in_and_come_back(server, sandbox, tmp_path):
    tree = tmp_path / "tree"
    (tree / "deep/er").mkdir(parents=True)
    (tree / "deep/er/a.txt").write_text("a")
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "blank name ü").write_bytes(bytes(range(256)))
    (tree / "link").symlink_to("run.sh")
    (tree / "circle").symlink_to(".")
    done = server.cli("cp", tree, f"{sandbox.id}:/tmp/copied")
    assert "4 files" in done.stdout and "circle" in done.stderr
    server.cli("cp", f"{sandbox.id}:/tmp/copied", tmp_path / "back")
    back = tmp_path / "back"
    assert (back / "deep/er/a.txt").read_text() == "a"
    assert (back / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (back / "blank name ü").read_bytes() == bytes(range(256))
    server.cli("cp", f"{sandbox.id}:/tmp/copied/run.sh", tmp_path)  # into a directory
    assert (tmp_path / "run.sh").exists()
    for wrong in (("a", "b"), (f"{sandbox.id}:/a", f"{sandbox.id}:/b"), (f"{sandbox.id}:", "b")):
        assert server.cli("cp", *wrong, check=False).returncode == 2
    assert server.cli("cp", f"{sandbox.id}:/none", tmp_path, check=False).returncode == 1


def test_a_transfer_shows_progress_and_leaves_nothing_when_interrupted(terminal, server, sandbox, tmp_path):
    server.cli("command", "run", sandbox.id, "--", "sh", "-c", "truncate -s 400G /tmp/large")
    terminal.enter(f"opensandbox cp {sandbox.id}:/tmp/large got; echo '<''end '$?'>'")
    terminal.wait_for("MB/s")
    assert " of 429.5 GB" in terminal.screen() or " of 429." in terminal.screen()
    terminal.press("C-c")
    assert terminal.code() == 130
    assert [p.name for p in tmp_path.iterdir() if "got" in p.name] == []


# --- Ctrl-C ---------------------------------------------------------------------------------------


def test_ctrl_c_while_a_sandbox_is_made_deletes_it(terminal, server):
    """At twelve moments of a create, from its first instant on."""
    before = listed(server)
    for pause in range(12):
        terminal.clear()
        terminal.enter("opensandbox run -- sleep 1000")
        time.sleep(0.04 * pause)
        terminal.press("C-c")
        terminal.enter("echo '<''end '$?'>'")
        terminal.wait_for("<end ")
        assert terminal.code() == 130
        eventually(lambda: listed(server) == before, 20, 0.05, "the sandbox to be gone")


def test_ctrl_c_of_a_running_command_interrupts_it(terminal, server, sandbox):
    terminal.enter(f"opensandbox command run {sandbox.id} -- sh -c 'echo begun; sleep 1234.5'; echo '<''end '$?'>'")
    terminal.wait_for("begun\n")
    terminal.press("C-c")
    assert terminal.code() == 130
    running = "pgrep -fc '[s]leep 1234.5' || true"
    assert server.cli("command", "run", sandbox.id, "--shell", "--", running).stdout.strip() == "0"


def test_a_second_ctrl_c_leaves_a_command_that_does_not_heed_the_first(terminal, sandbox):
    terminal.enter(f"opensandbox command run {sandbox.id} -- sh -c 'trap \"\" TERM INT; echo begun; sleep 1000 & wait; wait; wait'"
                   "; echo '<''end '$?'>'")
    terminal.wait_for("begun\n")
    terminal.press("C-c")
    terminal.press("C-c")
    assert terminal.code() == 130


@pytest.mark.parametrize("command", ["sandbox watch", "sandbox top", "sandbox logs -f {id}", "port-forward {id} :8000"])
def test_ctrl_c_ends_what_goes_on_without_end(terminal, sandbox, command):
    expected = {"sandbox watch": "Running", "sandbox top": "MiB", "port-forward {id} :8000": "Forwarding"}
    terminal.enter(f"opensandbox {command.format(id=sandbox.id)}; echo '<''end '$?'>'")
    if command in expected:
        terminal.wait_for(expected[command])
    else:
        time.sleep(0.5)
    terminal.press("C-c")
    assert terminal.code() == 130


# --- what goes on ---------------------------------------------------------------------------------


def test_logs_of_the_entrypoint(server):
    with server.create(entrypoint=["sh", "-c", "for i in 1 2 3; do echo line $i; done; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo last; exec tail -f /dev/null"]) as sandbox:
        eventually(lambda: "line 3" in server.cli("sandbox", "logs", sandbox.id).stdout, 20, 0.1, "the log")
        assert server.cli("sandbox", "logs", sandbox.id).stdout == "line 1\nline 2\nline 3\n"
        assert server.cli("sandbox", "logs", sandbox.id, "--tail", "1").stdout == "line 3\n"
        stamped = server.cli("sandbox", "logs", sandbox.id, "--tail", "1", "--timestamps").stdout
        assert re.match(r"\d{4}-\d\d-\d\dT\S+ line 3\n", stamped)
        assert server.cli("sandbox", "logs", sandbox.id, "--tail", "0", check=False).returncode == 2
        with following(server, "sandbox", "logs", sandbox.id, "-f") as follower:
            assert [follower.stdout.readline() for _ in range(3)] == ["line 1\n", "line 2\n", "line 3\n"]
            server.cli("command", "run", sandbox.id, "--", "touch", "/tmp/go")
            assert follower.stdout.readline() == "last\n"


class following:
    """A command whose output is read as it comes."""

    def __init__(self, server, *argv):
        self.process = subprocess.Popen([server.executable, *argv], stdout=subprocess.PIPE, text=True,
                                        stdin=subprocess.DEVNULL, env=server.environment())

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


def test_watch_tells_every_change(server):
    with server.create() as sandbox:
        with following(server, "sandbox", "watch", sandbox.id, "-o", "json", "--interval", "100ms") as watch:
            first = json.loads(watch.stdout.readline())
            assert first["sandbox_id"] == sandbox.id and first["before"] is None
            server.cli("sandbox", "kill", sandbox.id)
            last = [json.loads(line) for line in watch.stdout][-1]
            assert last["state"] == "Deleted"
            assert watch.wait(20) == 0


def test_top_samples(server, sandbox):
    rows = [json.loads(line) for line in
            server.cli("sandbox", "top", sandbox.id, "-n", "2", "--interval", "100ms", "-o", "json").stdout.splitlines()]
    assert len(rows) == 2 and all(r["sandbox_id"] == sandbox.id and r["memory_used_in_mib"] > 0 for r in rows)
    assert sandbox.id in server.cli("sandbox", "top", "-n", "1").stdout
    assert server.cli("sandbox", "top", "none", "-n", "1", check=False).returncode == 1


@pytest.mark.parametrize("options", [[], ["--use-server-proxy"]])
def test_ports_are_forwarded(server, sandbox, options):
    sandbox.agent.post("/command", {"command": "cd /tmp && echo served > page && exec python3 -m http.server 8123",
                                    "background": True})
    with following(server, *options, "port-forward", sandbox.id, ":8123") as forward:
        line = forward.stdout.readline()
        port = int(re.search(r"127\.0\.0\.1:(\d+) → 8123", line)[1])

        def page():
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/page", timeout=10).read()
            except OSError:
                return None

        assert eventually(page, 20, 0.1, "the page") == b"served\n"
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), 5)
    for wrong in ("0", "x", "80:", "70000"):
        assert server.cli("port-forward", sandbox.id, wrong, check=False).returncode == 2


# --- code -----------------------------------------------------------------------------------------


def test_code_runs_and_is_remembered(server, sandbox, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("x = 20\nprint('printed')\nx + 1\n")
    assert server.cli("code", "run", sandbox.id, script).stdout == "printed\n21\n"
    assert server.cli("code", "run", sandbox.id, "-l", "python", input="print(x)\n").stdout == "20\n"
    raised = server.cli("code", "run", sandbox.id, "-l", "python", "-c", "1/0", check=False)
    assert raised.returncode == 1 and "ZeroDivisionError" in raised.stderr
    for wrong in (["-c", "1"], ["-l", "cobol", "-c", "1"], ["x.py", "-c", "1"]):
        assert server.cli("code", "run", sandbox.id, *wrong, check=False).returncode == 2


def test_a_conversation_with_an_interpreter(terminal, sandbox):
    terminal.enter(f"opensandbox code repl {sandbox.id}; echo '<''end '$?'>'")
    terminal.wait_for("python>")
    terminal.enter("def double(n):")
    terminal.wait_for("...")
    terminal.enter("    return 2 * n")
    terminal.enter("")
    terminal.enter("double(21)")
    terminal.wait_for("42\n")
    terminal.enter("import time; print('be' 'gun', flush=True); time.sleep(1000)")
    terminal.wait_for("begun")
    terminal.press("C-c")
    terminal.wait_for("KeyboardInterrupt")
    terminal.enter("double(50)")
    terminal.wait_for("100\n")
    terminal.press("C-d")
    assert terminal.code() == 0
    assert sandbox.agent.get("/code/contexts").json == []


# --- pools and pages ------------------------------------------------------------------------------


def test_manual_pages(server, tmp_path):
    server.cli("man", tmp_path / "man1")
    pages = sorted((tmp_path / "man1").iterdir())
    assert "opensandbox.1" in [p.name for p in pages] and len(pages) > 30
    for page in pages:
        shown = run("man", "--warnings", "-l", page, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
        assert shown.stderr == "", page
        assert "NAME" in shown.stdout


def test_pools(server):
    sizes = ["--buffer-min", "0", "--buffer-max", "0", "--pool-min", "0", "--pool-max", "1"]
    server.cli("pool", "create", "small", "-i", "host", "--memory", "512Mi", *sizes)
    try:
        assert "small" in server.cli("pool", "list").stdout
        server.cli("pool", "update", "small", *sizes[:-1], "2")
        assert '"poolMax": 2' in server.cli("pool", "get", "small", "-o", "json").stdout
    finally:
        server.cli("pool", "delete", "small")
    assert server.cli("pool", "get", "small", check=False).returncode == 1
    assert server.cli("pool", "create", "other", *sizes, check=False).returncode == 2
