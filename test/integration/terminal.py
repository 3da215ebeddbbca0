"""Terminals inside a sandbox, directly and through the server's proxy, with a client that others
wrote."""

import json
import struct

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from support import contract


def open_terminal(sandbox, proxy=False, **body):
    agent = sandbox.connect(proxy)
    created = agent.post("/pty", body)
    assert created.status == 201, created
    return created.json["session_id"]


def join(sandbox, session, proxy=False, query=""):
    endpoint = sandbox.endpoint(44772, proxy)
    return connect(f"ws://{endpoint['endpoint']}/pty/{session}/ws{query}",
                   additional_headers=endpoint.get("headers"), compression=None)


def text_frame(frame):
    assert frame.endswith("\n")
    message = json.loads(frame)
    contract._validate("execd", "/components/schemas/PtyServerMessage", message, "a text frame")
    return message


def read_until(ws, mark):
    """Output up to and with `mark`."""
    out = b""
    while mark not in out:
        frame = ws.recv(timeout=20)
        if isinstance(frame, bytes):
            assert frame[0] in (1, 3)
            # A replay has the offset of its first byte before it.
            out += frame[1:] if frame[0] == 1 else frame[9:]
    return out


def to_the_end(ws):
    """All output, the exit code, and how the connection was closed."""
    out, code = b"", None
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            frame = ws.recv(timeout=20)
            if isinstance(frame, bytes):
                out += frame[9:] if frame[0] == 3 else frame[1:]
                continue
            message = text_frame(frame)
            if message["type"] == "exit":
                code = message["exit_code"]
    return out, code, closed.value.rcvd


@pytest.mark.parametrize("proxy", [False, True])
def test_a_sandbox_has_terminals(sandbox, proxy):
    session = open_terminal(sandbox, proxy, cwd="/tmp/made/for/it")
    with join(sandbox, session, proxy) as ws:
        assert text_frame(ws.recv())["mode"] == "pty"
        ws.send(b"\x00tty; stty size; pwd; echo $TERM; : > /dev/tty && echo '<''end>'\n")
        out = read_until(ws, b"<end>")
        for line in (b"/dev/pts/", b"24 80", b"/tmp/made/for/it", b"xterm-256color"):
            assert line in out
        ws.send(json.dumps({"type": "resize", "cols": 100, "rows": 30}))
        ws.send(b"\x00stty size; exit 3\n")
        out, code, close = to_the_end(ws)
        assert b"30 100" in out
        assert (code, close.code, close.reason) == (3, 1000, "process exited")


def test_a_full_replay_is_a_frame_that_the_client_takes(sandbox):
    session = open_terminal(sandbox, command="seq 1 300000; echo '<''end>'; read -r x")
    with join(sandbox, session) as ws:
        read_until(ws, b"<end>")
    with join(sandbox, session, query="?takeover=1") as ws:
        frame = ws.recv()
        assert frame[0] == 3 and len(frame) == 1 << 20
        offset = struct.unpack(">q", frame[1:9])[0]
        assert offset + len(frame) - 9 == sandbox.agent.get(f"/pty/{session}").json["output_offset"]
        assert text_frame(ws.recv())["type"] == "connected"
        ws.send(b"\x00\n")
        assert to_the_end(ws)[1] == 0


def test_a_second_client_takes_over(sandbox):
    session = open_terminal(sandbox)
    with join(sandbox, session) as first:
        assert text_frame(first.recv())["type"] == "connected"
        with join(sandbox, session, query="?takeover=1") as second:
            _, _, close = to_the_end(first)
            assert (close.code, close.reason) == (4001, "TAKEN_OVER")
            second.send(b"\x00echo $((6*7))\n")
            read_until(second, b"42\r\n")
            assert sandbox.agent.delete(f"/pty/{session}").status == 200
            assert to_the_end(second)[1] == -1


@pytest.mark.parametrize("proxy", [False, True], ids=["direct", "proxy"])
def test_a_viewer_reads_and_cannot_write(sandbox, proxy):
    session = open_terminal(sandbox, command="echo begun; read -r x; echo got $x; exit 7")
    state = sandbox.agent.get(f"/pty/{session}").json
    assert (state["launch_attempted"], state["launch_failed"]) == (False, False)
    with pytest.raises(InvalidStatus) as refused:
        join(sandbox, session, query="?mode=viewer")
    assert refused.value.response.status_code == 409
    with join(sandbox, session, proxy, "?pty=0") as holder:
        read_until(holder, b"begun\n")
        with join(sandbox, session, proxy, "?mode=viewer") as viewer:
            assert b"begun" in read_until(viewer, b"begun\n")
            assert text_frame(viewer.recv())["role"] == "viewer"
            viewer.send(b"\x00typed by a viewer\n")
            assert text_frame(viewer.recv())["code"] == "READ_ONLY"
            holder.send(b"\x00x\n")
            for ws in (holder, viewer):
                out, code, close = to_the_end(ws)
                assert (out, code, close.code) == (b"got x\n", 7, 1000)
    assert sandbox.agent.get(f"/pty/{session}").json["launch_attempted"]
