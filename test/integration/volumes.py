"""Directories from outside: who owns what is in them, and what stays."""

import os

import pytest

from support.server import HOST_IMAGE
from support.shell import eventually

TMPFS = "opensandbox.io/tmpfs"


@pytest.fixture(scope="module")
def shared(scratch):
    directory = scratch / "volumes-shared"
    directory.mkdir()
    return directory


@pytest.fixture(scope="module")
def server(make_server, shared):
    return make_server(sections={"storage": {"allowed_host_paths": [str(shared)]}})


def host(path, **fields):
    return {"name": "v", "mountPath": "/v", "host": {"path": str(path)}, **fields}


def claim(name, **fields):
    return {"name": "v", "mountPath": "/v", "pvc": {"claimName": name, **fields}}


def test_owners_are_the_same_on_both_sides(server, shared):
    (shared / "roots").write_text("root of the host\n")
    (shared / "users").write_text("user\n")
    os.chown(shared / "users", 1234, 1235)
    with server.create(volumes=[host(shared)]) as sandbox:
        assert sandbox.sh("stat -c %u:%g /v/roots /v/users") == "0:0\n1234:1235\n"
        sandbox.sh("echo inside > /v/made; echo more >> /v/roots; touch /v/given; chown 33:44 /v/given")
        sandbox.sh("chmod 600 /v/users; rm /v/users")
    made, given = os.stat(shared / "made"), os.stat(shared / "given")
    assert (made.st_uid, made.st_gid) == (0, 0)
    assert (given.st_uid, given.st_gid) == (33, 44)
    assert (shared / "roots").read_text() == "root of the host\nmore\n"
    assert not (shared / "users").exists()


def test_what_is_read_only_stays_as_it_is(server, shared):
    (shared / "fixed").write_text("x\n")
    with server.create(volumes=[host(shared, readOnly=True)]) as sandbox:
        assert sandbox.sh("cat /v/fixed") == "x\n"
        for attempt in ("echo y > /v/fixed", "rm /v/fixed", "touch /v/new", "mount -o remount,rw /v"):
            assert sandbox.run(attempt).code != 0, attempt
    assert (shared / "fixed").read_text() == "x\n"


def test_a_part_of_a_volume(server, shared):
    (shared / "a" / "b").mkdir(parents=True)
    (shared / "a" / "b" / "file").write_text("deep\n")
    (shared / "a" / "out").symlink_to("/etc")
    with server.create(volumes=[host(shared, subPath="a/b")]) as sandbox:
        assert sandbox.sh("ls /v; cat /v/file") == "file\ndeep\n"
    body = {**HOST_IMAGE, "volumes": [host(shared, subPath="a/out")]}
    reply = server.api().post("/sandboxes", body)
    assert reply.status == 400 and reply.json["code"].startswith("VOLUME::"), reply


def test_a_named_volume_is_shared_and_outlives_sandboxes(server):
    with server.create(volumes=[claim("team")]) as one, server.create(volumes=[claim("team")]) as two:
        one.sh("echo from one > /v/note; install -o 1000 -g 1000 -m 600 /dev/null /v/private")
        assert two.sh("cat /v/note; stat -c %u /v/private") == "from one\n1000\n"
        two.sh("echo from two >> /v/note")
        assert one.sh("cat /v/note") == "from one\nfrom two\n"
    with server.create(volumes=[claim("team")]) as later:
        assert later.sh("cat /v/note") == "from one\nfrom two\n"
    own = claim("passing", deleteOnSandboxTermination=True)
    with server.create(volumes=[own]) as sandbox:
        sandbox.sh("echo x > /v/x")
        assert (server.state / "volumes" / "passing" / "x").exists()
    eventually(lambda: not (server.state / "volumes" / "passing").exists(), 10)
    assert (server.state / "volumes" / "team").exists()


def test_programs_of_a_volume_get_no_rights_by_it(server, shared):
    (shared / "set-id").write_bytes(open("/bin/true", "rb").read())
    os.chmod(shared / "set-id", 0o6755)
    os.mknod(shared / "null", 0o20666, os.makedev(1, 3))
    try:
        with server.create(volumes=[host(shared)]) as sandbox:
            options = [line for line in sandbox.sh("cat /proc/mounts").splitlines() if " /v " in line]
            assert "nosuid" in options[0] and "nodev" in options[0]
            assert sandbox.run("cat /v/null").code != 0
    finally:
        (shared / "null").unlink()


def test_a_file_system_in_memory_has_its_size_and_counts_as_memory(server):
    extensions = {TMPFS: "/scratch=8Mi,/var/cache/deep=1Mi"}
    with server.create(extensions=extensions) as sandbox:
        assert "tmpfs" in sandbox.sh("stat -f -c %T /scratch")
        done = sandbox.run("dd if=/dev/zero of=/scratch/fill bs=1M")
        assert "No space left" in done.stdout + done.stderr
        assert sandbox.sh("stat -c %s /scratch/fill") == f"{8 << 20}\n"
        assert sandbox.sh("stat -c %a /var/cache/deep") == "1777\n"
        options = [line for line in sandbox.sh("cat /proc/mounts").splitlines() if " /scratch " in line]
        assert "nosuid" in options[0] and "nodev" in options[0]
    # What lies there cannot be freed: with the memory full of it, the sandbox ends.
    fill = ["dd", "if=/dev/zero", "of=/scratch/fill", "bs=1M"]
    with server.create(
        entrypoint=fill, extensions={TMPFS: "/scratch=512Mi"}, resourceLimits={"memory": "64Mi"}
    ) as small:
        status = eventually(small.ended, 60, 0.1, "the end of the sandbox")
        assert (status["state"], status["reason"]) == ("Failed", "OOM_KILLED"), status


@pytest.mark.parametrize("value", ["/a", "a=1Mi", "/proc/x=1Mi", "/a=1", "/a/../b=1Mi", "/a=1Mi,/a=1Mi"])
def test_wrong_places_in_memory_are_named(server, value):
    reply = server.api().post("/sandboxes", {**HOST_IMAGE, "extensions": {TMPFS: value}})
    assert (reply.status, reply.json["code"]) == (400, "SANDBOX::INVALID_PARAMETER"), reply
    assert TMPFS in reply.json["message"]
