"""A new executable takes over from an old one: its server replaces the old spawner, and sandboxes
live on."""

import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import EXECUTABLE, wait_gone
from support.shell import eventually

MARK = b"spawner of opensandbox "

# Listens where a spawner would and answers as one of version 1 did: another number, another shape.
OLD_SPAWNER = """
import socket, struct, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen(8)
print("listening", flush=True)
held = []
while True:
    connection = listener.accept()[0]
    held.append(connection)
    if connection.recv(65536):
        try:
            connection.send(bytes([1]) + struct.pack("=II", 1, 4) + b"none")
        except OSError:
            pass
"""


@pytest.fixture
def own_server(make_server):
    return make_server()


@pytest.fixture(scope="module")
def other_version(scratch):
    """The executable as another version: only the name that its spawner gives itself differs."""
    data = EXECUTABLE.read_bytes()
    assert data.count(MARK) == 1, "the executable names its spawner once"
    at = data.index(MARK) + len(MARK)
    changed = data[:at] + b"9" + data[at + 1:]
    assert changed != data
    path = scratch / "opensandbox-other"
    path.write_bytes(changed)
    path.chmod(0o755)
    return path


def exit_with(sandbox, code):
    """Ends a sandbox whose entrypoint waits for a file."""
    sandbox.agent.run(f"echo {code} > /tmp/end")


WAITER = ["sh", "-c", "until [ -e /tmp/end ]; do sleep 0.05; done; exit $(cat /tmp/end)"]


def test_a_new_executable_adopts_the_sandboxes_of_the_old_one(own_server, other_version):
    server = own_server
    before = server.census()
    old = server.executable
    sandboxes = [server.create(metadata={"number": str(n)}) for n in range(5)]
    waiter = server.create(entrypoint=WAITER)
    for n, sandbox in enumerate(sandboxes):
        sandbox.sh(f"echo {n} > /tmp/number")
    paused = sandboxes[4]
    assert server.api().post(paused.path("/pause")).status == 202
    eventually(lambda: paused.state() == "Paused", what="the pause")
    first = server.spawner()
    counter = list(sandboxes[0].agent.events(
        {"command": "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done", "background": True}
    ))[0]["text"]

    server.stop()
    server.executable = other_version
    server.start()
    second = server.spawner()
    assert second and second != first
    wait_gone(first)
    assert Path(os.readlink(f"/proc/{second}/exe")).name == other_version.name
    for n, sandbox in enumerate(sandboxes[:4]):
        assert sandbox.state() == "Running"
        assert sandbox.sh("cat /tmp/number") == f"{n}\n", "under the address that clients hold"
        assert sandbox.connect().sh("cat /tmp/number") == f"{n}\n"
    assert sandboxes[0].agent.get(f"/command/status/{counter}").json["running"] is True
    assert paused.state() == "Paused"
    assert server.api().post(paused.path("/resume")).status == 202
    eventually(lambda: paused.state() == "Running", what="the resumption")
    assert paused.sh("cat /tmp/number") == "4\n"
    with server.create() as fresh:
        assert fresh.sh("echo new") == "new\n"

    # The new spawner is not the parent of what it adopted, and knows how it ended all the same.
    exit_with(waiter, 37)
    eventually(lambda: waiter.state() == "Failed", 15, 0.05, "the end of the adopted sandbox")
    status = waiter.get().json["status"]
    assert "37" in status["message"], status

    # And back: an older one is a version like any other.
    server.stop()
    server.executable = old
    server.start()
    assert server.spawner() != second
    assert sandboxes[1].sh("cat /tmp/number") == "1\n"
    server.executable = EXECUTABLE
    for sandbox in [*sandboxes, waiter]:
        sandbox.delete()
    server.expect_census(before)


def test_the_same_executable_keeps_its_spawner(own_server):
    with own_server.create() as sandbox:
        spawner = own_server.spawner()
        own_server.stop()
        own_server.start()
        assert own_server.spawner() == spawner
        assert sandbox.sh("echo alive") == "alive\n"


def test_a_spawner_whose_messages_nobody_knows_is_replaced(own_server):
    server = own_server
    before = server.census()
    sandbox = server.create()
    sandbox.sh("echo kept > /tmp/kept")
    server.stop()
    real = server.spawner()
    os.kill(real, signal.SIGKILL)
    wait_gone(real)
    path = server.state / "spawner.sock"
    path.unlink(missing_ok=True)
    old = subprocess.Popen([sys.executable, "-c", OLD_SPAWNER, path], stdout=subprocess.PIPE, text=True)
    try:
        assert old.stdout.readline() == "listening\n"
        server.start()
        assert old.wait(20) == -signal.SIGUSR1
        assert sandbox.state() == "Running"
        assert sandbox.sh("cat /tmp/kept") == "kept\n"
        with server.create() as fresh:
            assert fresh.sh("echo new") == "new\n"
    finally:
        old.kill()
        old.wait()
        old.stdout.close()
    sandbox.delete()
    server.expect_census(before)


def test_exit_codes_are_known_after_a_crash_of_the_spawner(own_server):
    server = own_server
    before = server.census()
    early, late, clean, killed = (server.create(entrypoint=WAITER) for _ in range(4))
    server.stop()
    spawner = server.spawner()
    os.kill(spawner, signal.SIGKILL)
    wait_gone(spawner)
    server.start()
    assert server.spawner() != spawner
    for sandbox in (early, late, clean, killed):
        assert sandbox.state() == "Running"
        assert sandbox.sh("echo alive") == "alive\n"
    exit_with(early, 7)
    exit_with(clean, 0)
    eventually(lambda: early.state() == "Failed", 15, 0.05, "the exit with 7")
    assert "7" in early.get().json["status"]["message"]
    eventually(lambda: clean.state() == "Terminated", 15, 0.05, "the exit with 0")
    # Once more, with a server that is there all along.
    spawner = server.spawner()
    os.kill(spawner, signal.SIGKILL)
    eventually(lambda: server.spawner() not in (None, spawner), 30, 0.05, "another spawner")
    # Answered by the new one, so it watches them.
    assert server.api().get(f"/sandboxes/{late.id}/diagnostics/inspect").status == 200
    exit_with(late, 9)
    eventually(lambda: late.state() == "Failed", 15, 0.05, "the exit with 9")
    assert "9" in late.get().json["status"]["message"]
    from support.processes import agent_process

    os.kill(agent_process(killed), signal.SIGKILL)
    eventually(lambda: killed.state() == "Failed", 15, 0.05, "the death by a signal")
    assert killed.get().json["status"]["reason"] == "AGENT_KILLED"
    for sandbox in (early, late, clean, killed):
        sandbox.delete()
    server.expect_census(before)
