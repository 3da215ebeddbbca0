"""The Docker runtime before Podman's compatible socket."""

import pytest

from support.docker_server import DockerServer
from support.dockerd import BUSYBOX
from support.podman import Podman
from support.rootfs import busybox_tree
from support.shell import eventually


@pytest.fixture(scope="module")
def server(scratch):
    with Podman() as podman:
        podman.import_tree(busybox_tree(scratch / "busybox-of-podman"), BUSYBOX)
        server = DockerServer(scratch / "podman", podman, sections={"docker": {"network_mode": "host"}})
        server.image = BUSYBOX
        try:
            yield server.start()
        finally:
            server.destroy()


def test_a_sandbox_lives_pauses_and_goes(server):
    before = server.containers()
    with server.create() as sandbox:
        assert sandbox.sh("echo hello; exit 0") == "hello\n"
        for action, state in (("pause", "Paused"), ("resume", "Running")):
            assert server.api().post(sandbox.path("/" + action)).status == 202
            eventually(lambda: sandbox.state() == state, 30, 0.1, state)
        assert sandbox.sh("echo again") == "again\n"
    assert server.containers() == before


def test_a_snapshot_starts_a_sandbox(server):
    with server.create() as sandbox:
        sandbox.sh("echo kept > /root-of-all")
        accepted = server.api().post(sandbox.path("/snapshots"), {"name": "one"})
        assert accepted.status == 202
    snapshot = f"/snapshots/{accepted.json['id']}"
    eventually(lambda: server.api().get(snapshot).json["status"]["state"] == "Ready", 60, 0.1, "Ready")
    with server.create(image=None, snapshotId=accepted.json["id"]) as sandbox:
        assert sandbox.sh("cat /root-of-all") == "kept\n"
    assert server.api().delete(snapshot).status == 204
    assert not server.snapshot_images()


def test_what_lives_is_found_again_after_a_kill(server):
    with server.create() as sandbox:
        server.kill()
        server.start()
        assert sandbox.state() == "Running"
        assert sandbox.connect().sh("echo still") == "still\n"
