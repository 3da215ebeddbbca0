"""One test for each known defect of the agent that this one replaces (execd contract, section 13):
ours does not have it. The agent runs by itself on loopback."""

import concurrent.futures
import json
import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from websockets.sync.client import connect

from support.agent import StandaloneAgent
from support.client import Agent, Finished
from support.shell import eventually

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def agent(tmp_path):
    with StandaloneAgent(tmp_path, TOKEN) as agent:
        yield agent


def raw_request(agent, method, path, body=b"", headers=""):
    return (
        f"{method} {path} HTTP/1.1\r\nHost: a\r\nX-EXECD-ACCESS-TOKEN: {TOKEN}\r\n{headers}"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def command(agent, text, **options):
    return agent.api.run(text, **options)


def session(agent, **body):
    return agent.api.post("/session", body).json["session_id"]


def in_session(agent, id, text, **body):
    api = agent.connect()
    return Finished(list(api.events({"command": text, **body}, path=f"/session/{id}/run")))


def test_01_a_stream_has_no_tail_and_its_last_chunk(agent):
    with socket.create_connection(("127.0.0.1", agent.port)) as connection:
        connection.sendall(raw_request(agent, "POST", "/command", b'{"command":"sleep 0.5"}'))
        text, begun, terminal = b"", time.monotonic(), None
        while not text.endswith(b"0\r\n\r\n"):
            part = connection.recv(65536)
            assert part, "the connection ended without the last chunk"
            text += part
            if terminal is None and b"execution_complete" in text:
                terminal = time.monotonic()
        end = time.monotonic()
        assert end - terminal < (terminal - begun) / 2, "a tail as long as a part of the command"
        # The connection is good for the next request: the body was ended in order.
        connection.sendall(raw_request(agent, "GET", "/ping"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_02_output_needs_no_files_and_long_lines_no_rescans(agent, tmp_path):
    opened = command(agent, "for i in $(seq 200); do echo $i; done; ls -A $TMPDIR | wc -l")
    assert opened.stdout.endswith("200\n0\n"), "a foreground command made files"

    def line(size):
        begun = time.monotonic()
        done = command(agent, f"head -c {size} /dev/zero | tr '\\0' x")
        assert done.stdout == "x" * size
        return time.monotonic() - begun

    line(1 << 20)
    small, large = line(4 << 20), line(32 << 20)
    assert large / small < 40, "the cost of a long line is not linear"
    started = command(agent, "echo secret; sleep 0.1", background=True)
    for path in (tmp_path / "tmp").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, f"{path} is open to others"
    subprocess.run(["rm", "-rf", tmp_path / "tmp"], check=True)
    again = command(agent, "echo works", background=True)
    eventually(lambda: agent.api.get(f"/command/{again.id}/logs").text == "works\n")
    assert command(agent, "echo works").stdout == "works\n" and started.code == 0


@pytest.mark.plain
def test_03_what_is_kept_of_commands_is_bounded(agent):
    first = command(agent, ["true"]).id
    memory = agent.private_kib()
    api = agent.api
    for _ in range(10_050):
        last = api.run(["true"]).id
    assert api.get(f"/command/status/{first}").status == 404
    assert api.get(f"/command/status/{last}").status == 200
    assert agent.private_kib() - memory < 10 * 1024


def test_04_a_prompt_is_seen_before_its_line_ends(agent, tmp_path):
    events = agent.api.events({"command": f"printf 'go on? '; until test -e {tmp_path}/yes; do sleep 0.02; done"})
    seen = next(e for e in events if e["type"] == "stdout")
    assert seen["text"] == "go on? "
    (tmp_path / "yes").touch()
    assert list(events)[-1]["type"] == "execution_complete"


def test_05_sessions_keep_what_matters(agent, tmp_path):
    id = session(agent, cwd=str(tmp_path / "deep" / "er"))
    value = "two\nlines\t'\"$x\\" + "v" * 20_000
    assert in_session(agent, id, f"export A={json.dumps(value).replace('$', chr(92) + '$')}; B=$'a\\x01\\xff'").code == 0
    done = in_session(agent, id, "echo a; echo; echo b; echo err >&2; echo ${#B}")
    assert done.stdout == "a\n\nb\n2\n" or done.stdout == "a\n\nb\n3\n"
    assert done.stderr == "err\n"
    in_session(agent, id, "export A=$'x\\ny\\n'$(head -c 20000 /dev/zero | tr '\\0' z)")
    assert in_session(agent, id, 'printf %s "$A" | wc -c').stdout.strip() == "20004"
    # A request's directory is for that run, the command's own change stays.
    assert in_session(agent, id, "pwd", cwd="/usr").stdout == "/usr\n"
    assert in_session(agent, id, "pwd").stdout == f"{tmp_path}/deep/er\n"
    # What looks like an answer of the session's own is output like any other.
    spoof = in_session(agent, id, "echo __EXECD_END__; echo 'declare -x A=spoofed'; env | head -1 >/dev/null; exit 5")
    assert spoof.code == 5 and "spoofed" in spoof.stdout
    assert in_session(agent, id, 'printf %s "$A" | wc -c').stdout.strip() == "20004"
    # A child that keeps the output open neither delays a time-out nor survives it.
    late = in_session(agent, id, f"sleep 300 & echo $! >{tmp_path}/pid; wait", timeout=300)
    assert late.error and not late.code == 0
    pid = (tmp_path / "pid").read_text().strip()
    eventually(lambda: not Path(f"/proc/{pid}").exists())
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: in_session(agent, id, "N=$((${N:-0}+1)); sleep 0.02"), range(8)))
    assert in_session(agent, id, "echo $N").stdout == "8\n"


def test_06_signals_reach_whom_they_should(tmp_path):
    with StandaloneAgent(tmp_path, TOKEN) as agent:
        running = agent.connect().events({"command": "sleep 300"})
        assert next(running)["type"] == "init"
        command(agent, "true")  # its end takes nothing from the other
        agent.process.terminate()
        assert list(running)[-1]["type"] == "error"
        assert agent.process.wait(20) == 0
    script = "trap 'echo got; exit 3' USR1; echo up; while :; do sleep 0.02; done"
    with StandaloneAgent(tmp_path, TOKEN, init=["sh", "-c", script]) as agent:
        command(agent, "true")
        agent.process.send_signal(10)
        assert agent.process.wait(20) == 3


def test_07_nothing_is_signalled_after_its_end(agent, tmp_path):
    done = command(agent, f"sleep 300 & echo $! >{tmp_path}/pid", background=True)
    eventually(lambda: not agent.api.get(f"/command/status/{done.id}").json["running"])
    pid = (tmp_path / "pid").read_text().strip()
    assert agent.api.delete("/command", query={"id": done.id}).status == 500
    assert Path(f"/proc/{pid}").exists(), "what a background command left behind was killed"
    os.kill(int(pid), 9)


def test_08_failures_in_a_stream_are_events(agent):
    with socket.create_connection(("127.0.0.1", agent.port)) as connection:
        connection.sendall(raw_request(agent, "POST", "/command", b'{"argv":["no-such-program"]}'))
        text = b""
        while not text.endswith(b"0\r\n\r\n"):
            text += connection.recv(65536)
    assert b'"type":"error"' in text and b'"code"' not in text
    background = command(agent, ["no-such-program"], background=True)
    assert background.error and "no-such-program" in background.error["evalue"]


def test_09_a_run_of_code_ends_after_its_output(agent):
    # Beside this: test/unit/agent/code/jupyter/jupyter_test.cpp and test/conformance/code_interpreter.py.
    api = agent.connect()
    code = "import time\ntime.sleep(0.3)\nprint('late')\n6*7"
    events = list(api.events({"code": code, "context": {"language": "python"}}, path="/code"))
    kinds = [e["type"] for e in events if e["type"] != "ping"]
    assert kinds == ["init", "stdout", "execution_count", "result", "execution_complete"]
    failed = list(api.events({"code": "1/0", "context": {"language": "python"}}, path="/code"))
    assert [e["type"] for e in failed].count("error") == 1
    assert "execution_complete" not in [e["type"] for e in failed]
    missing = api.post("/code/context", {"language": "cobol"})
    assert missing.status >= 400 and "cobol" in missing.json["message"]


def test_10_uploads_are_whole_or_not_at_all(agent, tmp_path):
    path = tmp_path / "target"
    path.write_text("old and whole")
    head = (
        '--b\r\nContent-Disposition: form-data; name="metadata"; filename="metadata"\r\n\r\n'
        + json.dumps({"path": str(path)})
        + '\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    ).encode()
    with socket.create_connection(("127.0.0.1", agent.port)) as connection:
        request = raw_request(agent, "POST", "/files/upload", b"x" * (8 << 20),
                              "Content-Type: multipart/form-data; boundary=b\r\n")
        header, _, _ = request.partition(b"\r\n\r\n")
        connection.sendall(header + b"\r\n\r\n" + head + b"new" * 100_000)
        eventually(lambda: len(list(tmp_path.iterdir())) > 2, what="the temporary file")
    eventually(lambda: sorted(p.name for p in tmp_path.iterdir()) == ["agent.log", "target", "tmp"],
               what="the end of the temporary file")
    assert path.read_text() == "old and whole"


def test_11_metrics_answer_at_once(agent):
    running = agent.connect().events({"command": "sleep 5"})
    assert next(running)["type"] == "init"
    for _ in range(10):
        metrics = agent.api.get("/metrics").json
        assert 0 <= metrics["cpu_used_pct"] <= 100
        assert 0 < metrics["mem_used_mib"] <= metrics["mem_total_mib"]
    assert not any(e["type"] == "execution_complete" for e in [next(running)]), "metrics took longer than the command"
    agent.api.close()


def test_12_terminals(agent):
    id = agent.api.post("/pty", {"command": "echo $TERM; head -c 300000 /dev/zero | tr '\\0' x; echo; echo the end; exit 4"}).json["session_id"]
    out, texts = b"", []
    with connect(f"ws://127.0.0.1:{agent.port}/pty/{id}/ws", additional_headers={"X-EXECD-ACCESS-TOKEN": TOKEN}) as ws:
        for message in ws:
            if isinstance(message, bytes):
                out += message[9:] if message[0] == 3 else message[1:]
            else:
                texts.append(json.loads(message))
                if texts[-1]["type"] == "exit":
                    assert out.rstrip().endswith(b"the end"), "the exit overtook the output"
    assert out.startswith(b"xterm-256color")
    assert out.count(b"x") >= 300_000
    assert texts[-1] == {**texts[-1], "type": "exit", "exit_code": 4}


def test_13_the_token_is_asked_for_and_kept(agent):
    for path in ("/ping", "/metrics", "/files/info", "/proxy/80/", "/pty/x"):
        assert Agent(f"127.0.0.1:{agent.port}").get(path).status == 401
        wrong = Agent(f"127.0.0.1:{agent.port}", {"X-EXECD-ACCESS-TOKEN": TOKEN[:-1]})
        assert wrong.get(path).status == 401
    assert command(agent, "env").stdout.count(TOKEN) == 0
    look = command(agent, f"tr '\\0' '\\n' </proc/{agent.process.pid}/cmdline; tr '\\0' '\\n' </proc/{agent.process.pid}/environ")
    assert TOKEN not in look.stdout
    with socket.create_connection(("::1", agent.port)) as six:
        six.sendall(raw_request(agent, "GET", "/ping"))
        assert six.recv(4096).startswith(b"HTTP/1.1 200")


def test_14_orphans_are_reaped(agent):
    command(agent, "for i in $(seq 50); do (sh -c 'sleep 0.05; exit 1' &) ; done")
    eventually(lambda: agent.children() == [], what="no child of the agent, dead or alive")


def test_15_the_same_user_needs_no_right_to_change_users(tmp_path):
    drop = ["setpriv", "--bounding-set", "-setuid,-setgid", "--inh-caps", "-setuid,-setgid"]
    with StandaloneAgent(tmp_path, TOKEN, wrapper=drop) as agent:
        assert command(agent, "id -u; id -g", uid=0, gid=0).stdout == "0\n0\n"
        other = command(agent, "id -u", uid=12345)
        assert other.error and other.code is None, "the agent could change users after all"


def test_16_names_owners_and_modes(agent, tmp_path):
    api = agent.api
    path = f"{tmp_path}/a$b ${{}} $"
    assert api.write(path, "dollar").status == 200
    assert api.read(path).text == "dollar"
    assert list(api.get("/files/info", query={"path": path}).json.values())[0]["size"] == 6
    set_to = {"owner": "12345", "group": "54321", "mode": 4755}
    assert api.post("/files/permissions", {path: set_to}).status == 200
    info = os.lstat(path)
    assert (info.st_uid, info.st_gid, info.st_mode & 0o7777) == (12345, 54321, 0o4755)
    assert list(api.get("/files/info", query={"path": path}).json.values())[0]["mode"] == 4755
    link = tmp_path / "dangling"
    link.symlink_to("nowhere")
    assert api.delete("/files", query={"path": str(link)}).status == 200
    assert not link.is_symlink()


def test_17_one_body_and_lists_of_what_changes(agent, tmp_path):
    (tmp_path / "file").write_text("")
    failed = agent.api.post("/pty", {"cwd": f"{tmp_path}/file/below"})
    assert failed.status >= 400 and failed.json["code"]  # one JSON document, or this would not parse
    busy, stop = tmp_path / "busy", threading.Event()
    busy.mkdir()

    def churn():
        while not stop.is_set():
            for i in range(50):
                (busy / str(i)).touch()
            for i in range(50):
                (busy / str(i)).unlink()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(100):
            reply = agent.api.get("/directories/list", query={"path": str(busy)})
            assert reply.status == 200, reply
    finally:
        stop.set()
        thread.join()
