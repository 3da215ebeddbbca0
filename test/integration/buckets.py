"""Buckets of an object store: a stand-in for its tool serves directories through FUSE, as it would."""

import http.client
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from support.files_below import content_below
from support.server import HOST_IMAGE, stop_spawner, wait_gone
from support.shell import eventually

SECRET = "s3cr3t-Of-The-Bucket"

#: Of version 1.0 and 2.0 alike. Shows its credentials when something is wrong, as tools do.
TOOL = """#!/usr/bin/python3
import os, subprocess, sys, time
place = os.environ["FAKE_BUCKETS"]
name = os.path.basename(sys.argv[0])
options = {}
if name == "ossfs":
    source, path = sys.argv[1:3]
    words = ",".join(word for word in sys.argv[3:] if word != "-o").split(",")
    options = dict(word.partition("=")[::2] for word in words)
    bucket, _, prefix = source.partition(":/")
    secret_file = options["passwd_file"]
    secret = open(secret_file).read().strip().split(":")[2]
    everybody = options.get("umask") == "000" and "allow_other" in options
else:
    path, secret_file = sys.argv[2], sys.argv[4]
    options = dict(line.strip()[2:].partition("=")[::2] for line in open(secret_file))
    bucket, prefix = options["oss_bucket"], options.get("oss_bucket_prefix", "")
    secret = options["oss_access_key_secret"]
    everybody = options.get("file_mode") == "0777" and options.get("allow_other") == "true"
mode = oct(os.stat(secret_file).st_mode & 0o777)
with open(f"{place}/log", "a") as log:
    print(name, bucket, prefix, mode, os.getpid(), file=log)
if os.path.exists(f"{place}/hang"):
    time.sleep(600)
if secret != "%s":
    sys.exit(f"403 Forbidden: key {options.get('oss_access_key_id')}, secret {secret}")
bind = ["bindfs", "--chown-ignore", "--chgrp-ignore", "--create-for-user=0", "--create-for-group=0",
        "--force-user=0", "--force-group=0"]
if everybody:
    bind += ["--perms=a+rwX", "-o", "allow_other"]
if "ro" in options:
    bind += ["-r"]
os.execvp("bindfs", bind + [os.path.join(place, bucket, prefix), path])
""" % SECRET


class Store:
    def __init__(self, place):
        self.place = place
        self.tools = place / "tools"
        self.tools.mkdir(parents=True)
        self.bucket = place / "my-bucket"

    def reset(self):
        for name in ("ossfs", "ossfs2"):
            (self.tools / name).write_text(TOOL)
            (self.tools / name).chmod(0o755)
        for name in ("log", "hang"):
            (self.place / name).unlink(missing_ok=True)
        shutil.rmtree(self.bucket, ignore_errors=True)
        (self.bucket / "in" / "deep").mkdir(parents=True)
        (self.bucket / "given").write_text("from the bucket\n")
        (self.bucket / "in" / "deep" / "file").write_text("deep\n")

    def log(self):
        log = self.place / "log"
        return log.read_text().splitlines() if log.exists() else []


def volume(name="b", *, version="1.0", secret=SECRET, options=(), **fields):
    return {"name": name, "mountPath": "/b", **fields,
            "ossfs": {"bucket": "my-bucket", "endpoint": "oss.test", "version": version,
                      "options": list(options), "accessKeyId": "the-key", "accessKeySecret": secret}}


def mounts(server):
    """Where this server has buckets, with the kinds of their file systems."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ", 1)
        if left.split()[4].startswith(f"{server.state}/buckets/"):
            found[left.split()[4]] = right.split()[0]
    return found


def daemons(server):
    """Processes that serve this server's buckets."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if argv[0].endswith(b"bindfs") and any(str(server.state).encode() in word for word in argv):
            found.append(int(pid))
    return found


def left(server):
    """What remains in the directory of buckets: only its key and an empty list of uses."""
    place = server.state / "buckets"
    return sorted(p.name for p in place.iterdir() if p.name not in ("key", "uses")) + sorted(
        p.name for p in (place / "uses").iterdir())


def nothing_left(server):
    eventually(lambda: not mounts(server), 20, what="the end of all mounts")
    eventually(lambda: not daemons(server), 20, what="the end of all tools")
    eventually(lambda: not left(server), 20, what="the end of all files")


def refused(server, status, code, *volumes):
    reply = server.api(timeout=120).post("/sandboxes", {**HOST_IMAGE, "volumes": list(volumes)})
    assert (reply.status, reply.json["code"]) == (status, code), reply
    assert SECRET not in reply.json["message"]
    return reply.json["message"]


@pytest.fixture(scope="module")
def any_store(scratch):
    return Store(scratch / "store")


@pytest.fixture
def store(any_store):
    any_store.reset()
    return any_store


@pytest.fixture(scope="module")
def own_server(make_server, any_store):
    server = make_server()
    server.stop()
    server.variables |= {"FAKE_BUCKETS": str(any_store.place),
                         "PATH": f"{any_store.tools}:{os.environ['PATH']}"}
    return server.start()


@pytest.fixture
def server(own_server, store):
    yield own_server
    for pid in daemons(own_server):
        os.kill(pid, signal.SIGCONT)
    if own_server.process.poll() is not None:
        own_server.start()
    for item in own_server.api().get("/sandboxes", query={"pageSize": 200}).json["items"]:
        own_server.api(timeout=120).delete(f"/sandboxes/{item['id']}")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_files_go_both_ways(server, store, version):
    with server.create(volumes=[volume(version=version)]) as sandbox:
        assert sandbox.sh("cat /b/given") == "from the bucket\n"
        assert list(mounts(server).values()) == ["fuse"]
        sandbox.sh("echo from inside > /b/made; mkdir /b/dir; echo more >> /b/given; mv /b/made /b/dir/moved")
        assert (store.bucket / "dir/moved").read_text() == "from inside\n"
        assert (store.bucket / "given").read_text() == "from the bucket\nmore\n"
        # No mount of this kind can shift ids: files belong to the host's root, and are open to all.
        assert os.stat(store.bucket / "dir/moved").st_uid == 0
        assert sandbox.sh("stat -c %u:%a /b/given") == "65534:666\n"
        (store.bucket / "later").write_text("later\n")
        assert sandbox.sh("cat /b/later") == "later\n"
        sandbox.sh("setpriv --reuid=1000 --regid=1000 --clear-groups sh -c 'cat /b/later && echo x > /b/users'")
        assert (store.bucket / "users").read_text() == "x\n"
        options = [line for line in sandbox.sh("cat /proc/mounts").splitlines() if " /b " in line]
        assert "nosuid" in options[0] and "nodev" in options[0]
        sandbox.sh("rm -r /b/dir")
    assert not (store.bucket / "dir").exists()
    nothing_left(server)


def test_read_only_and_parts_of_a_bucket(server, store):
    part = volume("part", subPath="in/deep/", mountPath="/part")
    with server.create(volumes=[volume(readOnly=True), part, volume("asked", options=["ro"], mountPath="/ro")]) as sandbox:
        assert sandbox.sh("cat /b/given; ls /part") == "from the bucket\nfile\n"
        for attempt in ("echo y > /b/given", "rm /b/given", "touch /b/new", "mount -o remount,rw /b", "touch /ro/new"):
            assert sandbox.run(attempt).code != 0, attempt
        sandbox.sh("echo new > /part/new")
        assert len(mounts(server)) == 3
    assert (store.bucket / "in/deep/new").read_text() == "new\n"
    assert sorted(p.name for p in store.bucket.iterdir()) == ["given", "in"]
    refused(server, 400, "VOLUME::INVALID_SUB_PATH", volume(subPath="../x"))
    assert "my-bucket/none" in refused(server, 500, "VOLUME::OSSFS_MOUNT_FAILED", part, volume(subPath="none"))
    nothing_left(server)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_one_mount_for_all_who_ask_for_the_same(server, store, order):
    boxes = [server.create(volumes=[volume()]) for _ in range(2)]
    boxes[0].sh("echo one > /b/note")
    assert boxes[1].sh("cat /b/note") == "one\n"
    assert len(store.log()) == 1 and len(mounts(server)) == 1
    boxes[order[0]].delete()
    assert boxes[order[1]].sh("cat /b/note; echo two >> /b/note") == "one\n"
    boxes[order[1]].delete()
    nothing_left(server)
    assert (store.bucket / "note").read_text() == "one\ntwo\n"
    # The next one mounts anew.
    with server.create(volumes=[volume()]) as sandbox:
        assert sandbox.sh("cat /b/note") == "one\ntwo\n"
    assert len(store.log()) == 2


def test_a_mount_is_not_shared_with_other_keys(server):
    with server.create(volumes=[volume()]) as sandbox:
        message = refused(server, 500, "VOLUME::OSSFS_MOUNT_FAILED", volume(secret="a-Guess"))
        assert message.startswith("volumes.b.ossfs: ossfs: exit code 1: ") and "403 Forbidden" in message
        assert "a-Guess" not in message and "secret ***" in message
        assert len(mounts(server)) == 1
        assert sandbox.sh("cat /b/given") == "from the bucket\n"
    nothing_left(server)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_keys_are_nowhere_to_be_seen(server, store, version):
    with server.create(volumes=[volume(version=version)]) as sandbox:
        assert [line.split()[-2] for line in store.log()] == ["0o600"]
        assert not list((server.state / "buckets").glob(".ossfs-secret-*"))
        texts = [server.log.read_bytes(), Path("/proc/self/mountinfo").read_bytes()]
        of_the_bucket = lambda path: (path.is_relative_to(server.state / "buckets")
                                      and path.parent.name != "uses" and path.name != "key")
        texts += [data for _, data in content_below(server.state, 1 << 20, of_the_bucket)]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                texts += [Path(f"/proc/{pid}/cmdline").read_bytes()]
            except OSError:
                continue
        reply = server.api().get(sandbox.path())
        texts.append(str(reply.json).encode())
        for pid in daemons(server):
            texts.append(Path(f"/proc/{pid}/environ").read_bytes())
        assert daemons(server)
        assert not [text for text in texts if SECRET.encode() in text]
    nothing_left(server)


def test_buckets_outlive_the_server(server, store):
    first, second = server.create(volumes=[volume()]), server.create(volumes=[volume()])
    assert first.sh("cat /b/given") == "from the bucket\n"
    server.kill()
    assert first.sh("cat /b/given") == "from the bucket\n"
    server.start()
    assert first.sh("echo after > /b/after; cat /b/after") == "after\n"
    third = server.create(volumes=[volume()])
    assert third.sh("cat /b/after") == "after\n"
    assert len(store.log()) == 1
    for sandbox in (first, third):
        sandbox.delete()
    assert second.sh("cat /b/after") == "after\n"
    server.stop()
    server.start()
    assert second.sh("cat /b/after") == "after\n"
    second.delete()
    nothing_left(server)


def test_buckets_outlive_the_spawner(server):
    with server.create(volumes=[volume()]) as sandbox:
        spawner = server.spawner()
        os.kill(spawner, signal.SIGKILL)
        wait_gone(spawner)
        assert sandbox.sh("cat /b/given") == "from the bucket\n"
        with server.create(volumes=[volume()]) as other:
            assert other.sh("cat /b/given") == "from the bucket\n"
        assert sandbox.sh("cat /b/given") == "from the bucket\n"
    nothing_left(server)


def test_what_nobody_uses_is_unmounted_by_the_next_server(server):
    server.create(volumes=[volume()])
    server.kill()
    stop_spawner(server.state)
    assert mounts(server)
    server.start()
    nothing_left(server)


def test_a_tool_that_is_missing_is_named(server, store):
    (store.tools / "ossfs2").unlink()
    message = refused(server, 500, "VOLUME::OSSFS_MOUNT_FAILED", volume(version="2.0"))
    assert message == "volumes.b.ossfs: ossfs2 is not installed on this host"
    nothing_left(server)


def test_a_tool_that_hangs_is_ended_and_holds_nobody_up(server, store):
    (store.place / "hang").touch()
    messages = []
    asked = threading.Thread(
        target=lambda: messages.append(refused(server, 500, "VOLUME::OSSFS_MOUNT_FAILED", volume())))
    asked.start()
    eventually(store.log, 10)
    tool = int(store.log()[0].split()[-1])
    for _ in range(5):
        with server.create() as sandbox:
            assert sandbox.sh("echo works") == "works\n"
    asked.join(90)
    assert messages == ["volumes.b.ossfs: ossfs: did not end in time"]
    wait_gone(tool)
    (store.place / "hang").unlink()
    with server.create(volumes=[volume()]) as sandbox:
        assert sandbox.sh("cat /b/given") == "from the bucket\n"
    nothing_left(server)


def ask_in_vain(server, store):
    """Asks for a bucket whose tool hangs; returns its process and the thread that waits."""
    (store.place / "hang").touch()

    def ask():
        try:
            server.api(timeout=60).post("/sandboxes", {**HOST_IMAGE, "volumes": [volume()]})
        except (OSError, http.client.HTTPException):
            pass

    asked = threading.Thread(target=ask)
    asked.start()
    eventually(store.log, 10)
    return int(store.log()[0].split()[-1]), asked


def test_a_server_that_ends_ends_the_tool(server, store):
    tool, asked = ask_in_vain(server, store)
    server.stop()
    asked.join(60)
    wait_gone(tool)
    (store.place / "hang").unlink()
    server.start()
    nothing_left(server)


def test_a_server_killed_while_a_tool_hangs_leaves_nothing(server, store):
    tool, asked = ask_in_vain(server, store)
    server.kill()
    asked.join(60)
    os.kill(tool, signal.SIGKILL)
    (store.place / "hang").unlink()
    server.start()
    eventually(lambda: all(name.startswith(".ossfs-secret-") for name in left(server)), 20)
    for path in (server.state / "buckets").glob(".ossfs-secret-*"):
        assert path.stat().st_mode & 0o777 == 0o600
        os.utime(path, (0, 0))
    server.stop()
    server.start()
    with server.create(volumes=[volume()]) as sandbox:
        assert sandbox.sh("cat /b/given") == "from the bucket\n"
    nothing_left(server)


def test_a_tool_that_died_is_replaced(server):
    with server.create(volumes=[volume()]) as sandbox:
        (pid,) = daemons(server)
        os.kill(pid, signal.SIGKILL)
        wait_gone(pid)
        assert "not connected" in sandbox.run("cat /b/given").stderr
        with server.create(volumes=[volume()]) as fresh:
            assert fresh.sh("cat /b/given") == "from the bucket\n"
    nothing_left(server)


def test_a_sandbox_that_waits_for_its_bucket_can_be_deleted(server):
    sandbox = server.create(volumes=[volume()])
    (pid,) = daemons(server)
    os.kill(pid, signal.SIGSTOP)
    list(sandbox.agent.events({"command": "ls /b/in; cat /b/in/deep/file", "background": True}))
    time.sleep(0.5)
    reply = server.api(timeout=120).delete(sandbox.path())
    assert reply.status == 204, reply
    eventually(lambda: not mounts(server), 30)
    os.kill(pid, signal.SIGCONT)
    nothing_left(server)


@pytest.mark.parametrize("option", ["credential_process=/bin/true", "passwd_file=/etc/passwd", "use_cache=/etc", "ro,logfile=x"])
def test_options_cannot_use_the_host(server, option):
    refused(server, 400, "VOLUME::INVALID_OSSFS_OPTION", volume(options=[option]))


def test_other_mistakes_have_the_contracts_codes(server):
    bad = volume()
    bad["ossfs"]["bucket"] = "-nope-"
    refused(server, 400, "VOLUME::INVALID_OSSFS_BUCKET", bad)
    bad = volume()
    bad["ossfs"]["endpoint"] = " "
    refused(server, 400, "VOLUME::INVALID_OSSFS_ENDPOINT", bad)
    refused(server, 400, "VOLUME::INVALID_OSSFS_OPTION", volume(options=["a;b"]))
    # What else is asked for fails first: nothing is mounted for it.
    body = {**HOST_IMAGE, "image": {"uri": "no-such-image:1"}, "volumes": [volume()]}
    assert server.api().post("/sandboxes", body).status >= 400
    assert not mounts(server)
