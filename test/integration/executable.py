"""The executable: one static file that plays every part by itself."""

import http.client
import os
import shutil
import signal
import subprocess

import pytest

from support.addresses import free_port
from support.client import Agent
from support.server import EXECUTABLE, Server
from support.shell import eventually, run


def test_it_is_not_dynamic():
    done = run("ldd", EXECUTABLE, check=False)
    assert "not a dynamic executable" in done.stdout + done.stderr
    assert done.returncode != 0


def test_it_is_small_and_stripped():
    assert EXECUTABLE.stat().st_size <= 20 << 20
    assert "not stripped" not in run("file", "-L", EXECUTABLE).stdout


def test_no_path_of_the_build_machine_is_in_it():
    assert os.fsencode(EXECUTABLE.resolve().parents[2]) not in EXECUTABLE.read_bytes()


@pytest.fixture
def agent_in_empty_root(tmp_path):
    """The agent in a root directory that has nothing but the executable."""
    root = tmp_path / "root"
    root.mkdir()
    shutil.copy(EXECUTABLE, root / "opensandbox")
    port = free_port()
    process = subprocess.Popen(
        [shutil.which("chroot"), root, "/opensandbox", "exec", "--port", str(port), "--access-token", "secret"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={},
    )
    agent = Agent(f"127.0.0.1:{port}", {"X-EXECD-ACCESS-TOKEN": "secret"})

    def answers():
        assert process.poll() is None, "the agent ended"
        try:
            return agent.get("/ping").status == 200
        except OSError:
            agent.close()
            return False

    eventually(answers, 10, 0.02, "the agent in an empty root")
    yield root, agent, process
    if process.poll() is None:
        process.kill()
        process.wait()


def test_copied_into_an_empty_root_it_runs_as_the_agent(agent_in_empty_root):
    root, agent, _ = agent_in_empty_root
    assert agent.get("/ping", headers={"X-EXECD-ACCESS-TOKEN": "wrong"}).status == 401
    assert agent.write("/made/here.txt", "hello").status == 200
    assert (root / "made/here.txt").read_text() == "hello"
    assert agent.read("/made/here.txt").body == b"hello"
    assert [f["path"] for f in agent.get("/files/search", query={"path": "/made"}).json] == ["/made/here.txt"]
    done = agent.run(["/opensandbox", "version"])
    assert done.code == 0 and done.stdout.strip()
    # There is no shell: a command that needs one says so instead of hanging.
    assert agent.run("true").error is not None


def test_the_agent_ends_on_sigterm(agent_in_empty_root):
    _, agent, process = agent_in_empty_root
    process.send_signal(signal.SIGTERM)
    process.wait(10)
    with pytest.raises((OSError, http.client.HTTPException)):
        agent.close()
        agent.get("/ping")


def test_every_name_of_the_agent_works(tmp_path):
    name = tmp_path / "execd"
    name.symlink_to(EXECUTABLE)
    done = run(name, "--no-such-flag", check=False)
    assert done.returncode == 2


def test_the_server_runs_without_anything_else_of_this_repository(scratch):
    """Moved elsewhere and started in another directory."""
    home = scratch / "moved"
    home.mkdir()
    copy = home / "any-name"
    shutil.copy(EXECUTABLE, copy)
    server = Server(home / "server", executable=copy, pool_size=1)
    try:
        server.start()
        with server.create() as sandbox:
            assert sandbox.sh("echo moved") == "moved\n"
    finally:
        server.destroy()
