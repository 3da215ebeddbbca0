"""Deleting a sandbox: the answer comes when it can no longer run or be reached, its files go behind it."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from support.server import HOST_IMAGE, Server
from support.shell import eventually, run


@pytest.fixture
def server(scratch):
    server = Server(scratch / "removal", pool_size=1)
    server.start()
    try:
        yield server
    finally:
        subprocess.run(["chattr", "-R", "-i", str(server.state / "sandboxes")], capture_output=True)
        server.destroy()


def files_below(server, name):
    # os.walk() goes on where a directory is removed meanwhile; glob() does not.
    return [Path(directory) / name for directory, _, names in os.walk(server.state / "sandboxes") if name in names]


def held_back(server, sandbox):
    """A file of the sandbox that nobody can remove: its removal does not get done."""
    sandbox.sh("mkdir -p /data/deep; echo x > /data/deep/held-back; sync")
    # What an earlier server left may still be on its way out.
    (file,) = [f for f in files_below(server, "held-back") if "gone" not in f.parts]
    run("chattr", "+i", file)
    return file


def where(sandbox, port):
    host, port = sandbox.endpoint(port)["endpoint"].split("/")[0].split(":")
    return host, int(port)


def test_nothing_listens_any_more_when_it_is_answered(server):
    for _ in range(5):
        sandbox = server.create(extensions={"opensandbox.io/publish": "8000"})
        places = [where(sandbox, port) for port in (44772, 8000)]
        for place in places:
            socket.create_connection(place, 5).close()
        sandbox.delete()
        for place in places:
            with pytest.raises(OSError):
                socket.create_connection(place, 5)


def test_the_answer_does_not_wait_for_files(server):
    sandbox = server.create()
    held_back(server, sandbox)
    sandbox.delete()
    assert sandbox.get().status == 404
    assert server.api().get("/sandboxes").json["items"] == []
    # It is told, and keeps nobody from anything.
    (file,) = files_below(server, "held-back")
    assert file.relative_to(server.state / "sandboxes").parts[0] == "gone"
    eventually(lambda: "files of ended sandboxes stay" in (server.state / "spawner/log").read_text(errors="replace"), 20,
               0.1, "a word")
    with server.create() as another:
        assert another.sh("echo works") == "works\n"


def created(server):
    reply = server.api().post("/sandboxes", HOST_IMAGE)
    return reply if reply.status == 202 else None


@pytest.mark.parametrize("end", ["server", "spawner"])
def test_a_restart_goes_on_with_removals(server, end):
    sandbox = server.create()
    file = held_back(server, sandbox)
    sandbox.delete()
    # With removals under way the server stops as ever: stop() gives it its grace and no more.
    if end == "server":
        server.stop()
        assert server.process.returncode == 0
        spawner = server.spawner()
        if spawner:
            os.kill(spawner, signal.SIGTERM)
    else:
        os.kill(server.spawner(), signal.SIGKILL)
    eventually(lambda: server.spawner() is None or end == "spawner", 30, 0.1, "the spawner's end")
    (file,) = files_below(server, "held-back")
    run("chattr", "-i", file)
    if end == "server":
        server.start()
    else:
        # What is asked of the one that dies fails.
        reply = eventually(lambda: created(server), 30, 0.2, "a create after the spawner's end")
        assert server.api().delete(f"/sandboxes/{reply.json['id']}").status == 204
    with server.create() as another:
        assert another.sh("echo works") == "works\n"
    eventually(lambda: not (server.state / "sandboxes" / "gone").exists(), 30, 0.1, "the removal")


def test_many_files_go(server):
    before = server.census()
    sandbox = server.create()
    sandbox.sh("mkdir /many; cd /many; seq 3000 | xargs touch; seq -f d%g 300 | xargs mkdir")
    sandbox.delete()
    assert sandbox.get().status == 404
    server.expect_census(before)


def test_nothing_is_written_out_before_it_is_thrown_away(server):
    """The kernel is told that the layer need not survive: unmounting it would write all of it to the disk."""
    with server.create() as sandbox:
        root = next(line for line in sandbox.sh("cat /proc/mounts").splitlines() if line.split()[1] == "/")
        # Kernels write it in one of two ways.
        assert {"volatile", "fsync=volatile"} & set(root.split()[3].split(",")), root
        assert sandbox.sh("echo x > /f; sync /f; sync; cat /f") == "x\n"
