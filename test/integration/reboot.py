"""The host is restarted: what the rows say, and what is left on the disk. The restart is played: all
processes are killed at once, and the boot that was noted down on the disk is made another than this
one. (The kernel's own boot id cannot be covered: with a mount on /proc no sandbox may mount its own.)"""

import os
import shutil
import signal
import uuid
from pathlib import Path

import pytest

from support.files_below import content_below
from support.processes import agent_process
from support.server import wait_gone
from support.shell import eventually

BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Machine:
    """A host with a server that can be restarted."""

    def __init__(self, make_server):
        self.server = make_server("host")

    def crash(self, *sandboxes):
        """All processes end at once, without a word."""
        server = self.server
        victims = [agent_process(s) for s in sandboxes]
        spawner = server.spawner()
        server.kill()
        for pid in [spawner, *victims]:
            os.kill(pid, signal.SIGKILL)
        for pid in [spawner, *victims]:
            wait_gone(pid)

    def boot(self):
        """What was written until now was written under another boot."""
        other = str(uuid.uuid4())
        noted = 0
        layers = self.server.state / "images/layers"
        small = content_below(self.server.state, 65536, lambda path: path.is_relative_to(layers))
        for path, data in small:
            if BOOT_ID.encode() in data:
                path.write_bytes(data.replace(BOOT_ID.encode(), other.encode()))
                noted += 1
        assert noted > 0
        self.server.start()


@pytest.fixture
def machine(make_server):
    return Machine(make_server)


def written(server):
    """Files of sandboxes' writable layers that are still on the disk."""
    walked = os.walk(server.state / "sandboxes")  # goes on when a directory goes meanwhile
    return [name for _, _, names in walked for name in names if name.endswith("-of-a-sandbox")]


def test_sandboxes_are_terminated_with_a_reason_and_their_layers_swept(machine):
    server = machine.server
    before = server.census()
    running = server.create(entrypoint=["sh", "-c", "echo said before; exec tail -f /dev/null"])
    paused, failed = server.create(), server.create(entrypoint=["sh", "-c", "sleep 1; exit 3"])
    for sandbox in (running, paused):
        sandbox.sh("mkdir -p /data && head -c 100000 /dev/urandom > /data/file-of-a-sandbox")
    eventually(lambda: failed.state() == "Failed", 20, 0.05, "the exit with 3")
    assert server.api().post(paused.path("/pause")).status == 202
    eventually(lambda: paused.state() == "Paused", what="the pause")
    assert len(written(server)) == 2

    # Paused processes do not die of the crash before they may move.
    assert server.api().post(paused.path("/resume")).status == 202
    eventually(lambda: paused.state() == "Running", what="the resumption")
    machine.crash(running, paused)
    machine.boot()

    for sandbox in (running, paused):
        status = sandbox.get().json["status"]
        assert (status["state"], status["reason"]) == ("Terminated", "HOST_RESTARTED"), status
        assert "restarted" in status["message"]
    status = failed.get().json["status"]
    assert (status["state"], status["reason"]) == ("Failed", "CONTAINER_EXITED_ERROR")
    eventually(lambda: written(server) == [], 20, 0.05, "the removal of the layers")
    eventually(lambda: not (server.state / "sandboxes/gone").exists(), 20, 0.05, "the end of the sweep")
    # What it said can be read until it is deleted.
    logs = server.api().get(running.path("/diagnostics/logs"))
    assert logs.status == 200 and "said before" in logs.text
    with server.create() as fresh:
        assert fresh.sh("echo up again") == "up again\n"
    # A second start changes nothing more.
    server.stop()
    server.start()
    assert running.get().json["status"]["reason"] == "HOST_RESTARTED"
    for sandbox in (running, paused, failed):
        sandbox.delete()
    server.expect_census(before)


def test_sandboxes_of_which_nothing_reached_the_disk_are_terminated_too(machine):
    server = machine.server
    before = server.census()
    sandbox = server.create()
    sandbox.sh("echo x > /tmp/file-of-a-sandbox")
    machine.crash(sandbox)
    # The journal is not forced to the disk: it may be gone, the database is not.
    shutil.rmtree(server.state / "spawner/journal")
    machine.boot()
    status = sandbox.get().json["status"]
    assert (status["state"], status["reason"]) == ("Terminated", "HOST_RESTARTED"), status
    eventually(lambda: written(server) == [], what="the removal of what belongs to no sandbox")
    sandbox.delete()
    server.expect_census(before)


def test_a_process_that_has_a_dead_sandboxes_number_is_left_alone(machine):
    server = machine.server
    sandbox = server.create()
    entry = next(iter((server.state / "spawner/journal").iterdir()))
    machine.crash(sandbox)
    # As if after the restart some program had the same number and age.
    text = entry.read_text()
    start = Path(f"/proc/{os.getpid()}/stat").read_text().rsplit(")", 1)[1].split()[19]
    lines = [
        f"pid {os.getpid()}" if line.startswith("pid ") else
        f"start {start}" if line.startswith("start ") else line
        for line in text.splitlines()
    ]
    entry.write_text("\n".join(lines) + "\n")
    machine.boot()
    assert sandbox.get().json["status"]["reason"] == "HOST_RESTARTED"
    sandbox.delete()


def test_without_a_restart_the_same_crash_is_told_as_one(machine):
    server = machine.server
    sandbox = server.create()
    sandbox.sh("echo x > /tmp/file-of-a-sandbox")
    machine.crash(sandbox)
    server.start()
    status = sandbox.get().json["status"]
    assert status["state"] == "Failed" and status["reason"] != "HOST_RESTARTED", status
    assert len(written(server)) == 1, "the layer stays until the sandbox is deleted"
    sandbox.delete()
    eventually(lambda: written(server) == [], what="the removal of the layer")
