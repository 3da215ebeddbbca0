"""Copies of sandboxes: all or none, whole, independent, made once where blocks can be shared or not,
and gone without a trace in whatever order they go."""

import concurrent.futures
import http.client
import json
import random
import subprocess
import threading
import time

import pytest

from support import rootfs
from support.reflink import ReflinkFileSystem
from support.server import Sandbox, Server, free_range
from support.shell import eventually

MIB = 1 << 20

# Files of 16 MiB, each of one letter and its number.
FILL = """
import os, sys
os.makedirs("/data", exist_ok=True)
for n in range(int(sys.argv[1])):
    with open(f"/data/{n}", "wb") as file:
        line = (b"%d " % n) * 64
        file.write((line * (16 * 1048576 // len(line) + 1))[: 16 * 1048576])
"""

# What every copy must have: all files, all sizes, both ends of each and the whole of one.
CHECK = """
import hashlib, os, sys
count, whole = int(sys.argv[1]), int(sys.argv[2])
assert sorted(map(int, os.listdir("/data"))) == list(range(count)), os.listdir("/data")
for n in range(count):
    line = (b"%d " % n) * 64
    wanted = line * (16 * 1048576 // len(line) + 1)
    with open(f"/data/{n}", "rb") as file:
        assert os.fstat(file.fileno()).st_size == 16 * 1048576
        assert file.read(4096) == wanted[:4096], n
        file.seek(-4096, 2)
        assert file.read() == wanted[16 * 1048576 - 4096 : 16 * 1048576], n
        if n == whole:
            file.seek(0)
            assert file.read() == wanted[: 16 * 1048576], n
print("whole")
"""


def fork(sandbox, **body):
    reply = sandbox.server.api(timeout=300).post(sandbox.path("/fork"), body)
    assert reply.status == 201, f"{reply}\n{sandbox.server.tail()}"
    return [Sandbox(sandbox.server, item) for item in reply.json["items"]]


def fill(sandbox, count):
    sandbox._agent = sandbox.connect(timeout=300)
    sandbox.agent.write("/root/fill.py", FILL)
    sandbox.sh(f"python3 /root/fill.py {count}")
    sandbox.agent.write("/root/check.py", CHECK)


def layers(server):
    """Of snapshots and copies, whole or not."""
    root = server.state / "snapshots"
    return sorted(p.name for d in ("layers", "staging", "gone") for p in (root / d).iterdir())


def records(server):
    return [p.name for p in (server.state / "snapshots").glob("*.json")]


def expect_no_layers(server):
    eventually(lambda: not layers(server) and not records(server), 60, 0.05, "no layer left")


def delete_all(threads, sandboxes):
    list(threads.map(lambda s: s.delete(), sandboxes))


def on_disk(path):
    out = subprocess.run(["du", "-s", "-B1", path], capture_output=True, text=True).stdout
    return int(out.split()[0])


@pytest.fixture
def shared_blocks(scratch):
    """A server whose state is on a file system that shares blocks."""
    with ReflinkFileSystem(scratch / "fork-reflink") as file_system:
        server = Server(file_system.path / "server", pool_size=16)
        before = server.count()
        try:
            yield server.start(), file_system
        finally:
            server.destroy()
        server.expect_census({**before, "files": server.count()["files"]})


def test_fifty_copies_of_a_gigabyte_share_its_blocks(shared_blocks):
    server, file_system = shared_blocks
    source = server.create()
    fill(source, 64)
    used = file_system.used()
    copies = fork(source, count=50)
    assert len({c.id for c in copies}) == 50
    assert file_system.used() - used < 128 * MIB, "the blocks were copied"
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        whole = threads.map(
            lambda n: copies[n].sh(f"python3 /root/check.py 64 {n}"), range(50))
        assert set(whole) == {"whole\n"}
        # Each for itself: the same byte of the same file, and a file of its own.
        list(threads.map(
            lambda c: c.sh(f"printf {c.id} | dd of=/data/7 bs=1 seek=100 conv=notrunc 2>&1; "
                           f"echo {c.id} > /own"), copies))
        read = threads.map(
            lambda c: c.sh("dd if=/data/7 bs=1 skip=100 count=36 2>/dev/null; cat /own"), copies)
        assert list(read) == [f"{c.id}{c.id}\n" for c in copies]
        assert source.sh("python3 /root/check.py 64 7; test -e /own || echo none") == "whole\nnone\n"
        source.delete()
        assert copies[0].sh("tail -c 6 /data/8 | tr -d ' \\n'; cat /own") == f"888{copies[0].id}\n"
        delete_all(threads, copies)
    expect_no_layers(server)


def test_without_shared_blocks_the_files_are_copied_once(server):
    with server.create() as source:
        fill(source, 8)
        copies = fork(source, count=12)
        assert len(layers(server)) == 1
        assert on_disk(server.state / "snapshots") < 1.2 * 8 * 16 * MIB
        assert on_disk(server.state / "sandboxes") < 1.2 * 8 * 16 * MIB
        for number in (0, 11):
            assert copies[number].sh(f"python3 /root/check.py 8 {number % 8}") == "whole\n"
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            delete_all(threads, copies)
        expect_no_layers(server)


def test_a_copy_is_as_its_source(server):
    with server.create(metadata={"team": "blue", "kind": "agent"}, env={"A": "1", "B": "2"},
                       entrypoint=["sleep", "100000"], timeout=3600) as source:
        source.sh("echo here > /root/file")
        (copy,) = fork(source)
        (other,) = fork(source, metadata={"kind": "copy"}, env={"B": "3"}, timeout=60,
                        entrypoint=["tail", "-f", "/dev/null"])
        was, is_, changed = source.get().json, copy.get().json, other.get().json
        for member in ("image", "metadata", "entrypoint", "expiresAt"):
            assert is_[member] == was[member]
        assert is_["extensions"] == {"opensandbox.extensions.forked-from": source.id}
        assert changed["metadata"] == {"team": "blue", "kind": "copy"}
        assert changed["entrypoint"] == ["tail", "-f", "/dev/null"]
        assert changed["expiresAt"] < was["expiresAt"]
        show = 'echo $A $B; cat /root/file; echo $OPENSANDBOX_ID'
        assert copy.sh(show) == f"1 2\nhere\n{copy.id}\n"
        assert other.sh(show) == f"1 3\nhere\n{other.id}\n"
        listed = server.api().get("/snapshots").json["items"]
        assert listed == [], "what copies stand on is no snapshot"
        reply = server.api().post(source.path("/fork"), {"timeout": None})
        forever = Sandbox(server, reply.json["items"][0])
        assert "expiresAt" not in forever.get().json
        for sandbox in (copy, other, forever):
            sandbox.delete()
    expect_no_layers(server)


def test_a_copy_is_limited_and_cut_off_as_its_source(server):
    with server.create(extensions={"opensandbox.io/network": "none"}, resourceLimits={"memory": "300Mi"}) as source:
        (copy,) = fork(source)
        assert copy.sh("cat /sys/class/net/eth0/operstate") == "down\n"
        show = "echo $OPENSANDBOX_MEMORY_LIMIT_BYTES"
        assert copy.sh(show) == source.sh(show) == f"{300 * MIB}\n"
        copy.delete()
    expect_no_layers(server)


def test_a_paused_sandbox_can_be_copied(server):
    with server.create() as source:
        source.sh("echo 1 > /root/file")
        assert server.api().post(source.path("/pause")).status == 202
        (copy,) = fork(source)
        assert source.state() == "Paused"
        assert copy.sh("cat /root/file") == "1\n"
        copy.delete()
        assert server.api().post(source.path("/resume")).status == 202
    expect_no_layers(server)


# One file after another under the same name, and a line about each when it is there.
WRITER = """
import hashlib, os
n = 0
while True:
    n += 1
    body = (b"%d\\n" % n) * 20000
    with open("/work/next", "wb") as file:
        file.write(hashlib.sha256(body).hexdigest().encode() + b"\\n" + body)
    os.rename("/work/next", "/work/current")
    with open("/work/log", "ab", buffering=0) as log:
        log.write(b"%d is there\\n" % n)
"""

READER = """
import hashlib
digest, body = open("/work/current", "rb").read().split(b"\\n", 1)
assert hashlib.sha256(body).hexdigest().encode() == digest, "torn"
number = int(body.split(b"\\n", 1)[0])
lines = open("/work/log", "rb").read().split(b"\\n")
assert lines[-1] == b"", "a torn record"
told = [int(line.split()[0]) for line in lines[:-1]]
assert told == list(range(1, len(told) + 1)), "a record is missing"
assert len(told) <= number <= len(told) + 1, (len(told), number)
print(number)
"""


def test_copies_of_a_sandbox_that_writes_are_of_one_moment(server):
    with server.create() as source:
        source.sh("mkdir /work")
        source.agent.write("/root/writer.py", WRITER)
        source.agent.write("/root/reader.py", READER)
        source.sh("nohup python3 /root/writer.py > /dev/null 2>&1 & "
                  "while ! test -s /work/log; do sleep 0.01; done")
        seen = []
        for _ in range(8):
            copies = fork(source, count=2)
            first, second = (int(c.sh("python3 /root/reader.py")) for c in copies)
            assert first == second, "copies of one fork are of one moment"
            seen.append(first)
            for copy in copies:
                copy.delete()
        assert seen == sorted(seen) and seen[0] < seen[-1], "the writer went on in between"
    expect_no_layers(server)


def snapshot_of(sandbox):
    api = sandbox.server.api()
    id = api.post(sandbox.path("/snapshots"), {}).json["id"]
    eventually(lambda: api.get(f"/snapshots/{id}").json["status"]["state"] == "Ready", 60, 0.02,
               "the snapshot")
    return id


def family(server):
    """A sandbox, its snapshot, one from that, copies of both and a snapshot of a copy: what each is
    deleted by, and what it must still have whatever else is gone."""
    source = server.create()
    source.sh("echo source > /1")
    first = snapshot_of(source)
    restored = Sandbox(server, server.api().post(
        "/sandboxes", {"snapshotId": first, "resourceLimits": {}, "timeout": 600}).json)
    restored.sh("echo restored > /2")
    copy = fork(restored)[0]
    copy.sh("echo copy > /3")
    second = snapshot_of(copy)
    last = fork(copy)[0]
    last.sh("echo last > /4")
    files = {source: "source\n", restored: "source\nrestored\n", copy: "source\nrestored\ncopy\n",
             last: "source\nrestored\ncopy\nlast\n"}
    return files, [first, second]


def test_every_order_of_deletion_leaves_the_rest_whole_and_at_last_nothing(server):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    random_ = random.Random(seed)
    before = server.census()
    for _ in range(6):
        files, snapshots = family(server)
        things = [*files, *snapshots]
        random_.shuffle(things)
        while things:
            thing = things.pop()
            if isinstance(thing, Sandbox):
                thing.delete()
            else:
                assert server.api().delete(f"/snapshots/{thing}").status == 204
            for sandbox in things:
                if isinstance(sandbox, Sandbox):
                    assert sandbox.sh("cat /[1-4]") == files[sandbox]
        expect_no_layers(server)
    server.expect_census(before)


def test_what_cannot_be_forked_says_so(server):
    api = server.api()
    assert api.post("/sandboxes/nobody/fork", {}).status == 404
    with server.create(entrypoint=["sh", "-c", "exit 3"]) as ended:
        eventually(lambda: ended.state() == "Failed", 30, 0.02, "its end")
        reply = api.post(ended.path("/fork"), {})
        assert reply.status == 409 and reply.json["code"] == "NATIVE::SANDBOX_NOT_RUNNING", reply
    with server.create() as source:
        reply = api.post(source.path("/fork"), {"metadata": {"opensandbox.io/a": "b"}})
        assert reply.json["code"] == "SANDBOX::INVALID_METADATA_LABEL", reply
        for body in ({"overrides": {"networkPolicy": {"defaultAction": "deny"}}},
                     {"timeout": 60, "overrides": {}}, {"networkPolicy": {"defaultAction": "deny"}}):
            reply = api.post(source.path("/fork"), body)
            assert reply.status == 422, (body, reply)
            assert reply.json["detail"][0]["loc"][1] in ("overrides", "networkPolicy"), reply
        assert len(api.get("/sandboxes").json["items"]) == 1


def test_all_copies_or_none(make_server):
    """There are fewer addresses than the copies need."""
    server = make_server("small", pool_size=1, sections={
        "native": {"address_range": free_range().replace("/20", "/28")}})
    with server.create() as source:
        source.sh("echo 1 > /root/file")
        reply = server.api(timeout=120).post(source.path("/fork"), {"count": 50})
        assert reply.status >= 400, reply
        assert " of 50: " in reply.json["message"], reply
        assert [s["id"] for s in server.api().get("/sandboxes").json["items"]] == [source.id]
        expect_no_layers(server)
        assert fork(source, count=3)[2].sh("cat /root/file") == "1\n"
        for item in server.api().get("/sandboxes").json["items"]:
            if item["id"] != source.id:
                server.api().delete(f"/sandboxes/{item['id']}")


def test_kill_9_in_the_middle_of_a_fork_leaves_all_copies_or_none(make_server):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    random_ = random.Random(seed)
    server = make_server("killed", pool_size=8)
    with server.create() as source:
        fill(source, 4)
        before = server.census()
        outcomes = []
        for number in range(10):
            answers = []

            def ask(answers=answers):
                try:
                    answers.append(server.api().post(source.path("/fork"), {"count": 10}))
                except (OSError, http.client.HTTPException):
                    pass  # The server was killed.

            thread = threading.Thread(target=ask)
            thread.start()
            time.sleep(random_.uniform(0, 0.5))
            server.kill()
            thread.join(60)
            server.start()
            api = server.api()

            def at_rest():
                items = api.get("/sandboxes", query={"pageSize": 200}).json["items"]
                return items if {i["status"]["state"] for i in items} == {"Running"} else None

            items = eventually(at_rest, 60, 0.05, "the end of what was begun")
            copies = [i for i in items if i["id"] != source.id]
            assert len(copies) in (0, 10), f"kill {number}: {len(copies)} copies"
            if answers and answers[0].status == 201:
                assert len(copies) == 10, "answered and lost"
            outcomes.append(len(copies))
            for item in copies:
                assert Sandbox(server, item).sh("python3 /root/check.py 4 0") == "whole\n"
            for item in copies:
                assert api.delete(f"/sandboxes/{item['id']}").status == 204
            expect_no_layers(server)
            server.expect_census(before)
        print(outcomes)


@pytest.fixture
def based(server, busybox, scratch):
    """A sandbox of an imported image, which has layers."""
    archive = rootfs.tar_of_tree(busybox, scratch / "fork-busybox.tar")
    server.cli("image", "import", archive, "fork-base:1")
    try:
        with server.create(image={"uri": "fork-base:1"}) as sandbox:
            yield sandbox
    finally:
        for image in server.api().get("/images").json["items"]:
            if not image["builtIn"]:
                server.api().delete("/images/" + image["reference"])


def test_an_image_is_made_of_a_snapshot_and_needs_it_no_more(based):
    server = based.server
    based.run(["/bin/sh", "-c", "echo first > /first; rm /etc/os-release; ln /first /linked"])
    first = snapshot_of(based)
    restored = Sandbox(server, server.api().post(
        "/sandboxes", {"snapshotId": first, "resourceLimits": {}, "timeout": 600}).json)
    restored.run(["/bin/sh", "-c", "echo second > /second; rm -r /tmp; mkdir /tmp"])
    second = snapshot_of(restored)
    restored.delete()
    made = server.cli("snapshot", "export", second, "--to-image", "made:1", "-e", "A=b",
                      "--workdir", "/etc", "-o", "json")
    image = json.loads(made.stdout)
    assert image["reference"] == "made:1"
    # The same content is the same image.
    again = server.api().post(f"/snapshots/{second}/image", {
        "reference": "made:2", "config": {"env": {"A": "b"}, "workingDir": "/etc"}})
    assert again.status == 201 and again.json["digest"] == image["digest"], again
    tagged = json.loads(server.cli("image", "tag", "made:1", "tagged:1", "-o", "json").stdout)
    assert tagged["digest"] == image["digest"]
    for snapshot in (first, second):
        assert server.api().delete(f"/snapshots/{snapshot}").status == 204
    expect_no_layers(server)
    with server.create(image={"uri": "tagged:1"}) as sandbox:
        show = ["/bin/sh", "-c", "cat /first /linked /second; echo $A; pwd; test -e /etc/os-release || "
                                 "echo gone; ls -A /tmp"]
        assert sandbox.run(show).stdout == "first\nfirst\nsecond\nb\n/etc\ngone\n"
        # Sandboxes of it can be kept and made images of again.
        third = snapshot_of(sandbox)
        reply = server.api().post(f"/snapshots/{third}/image", {"reference": "made:3"})
        assert reply.status == 201, reply
        assert server.api().delete(f"/snapshots/{third}").status == 204


def test_of_the_built_in_image_no_image_can_be_made(server):
    with server.create() as source:
        snapshot = snapshot_of(source)
        reply = server.api().post(f"/snapshots/{snapshot}/image", {"reference": "made:1"})
        assert reply.status == 409, reply
        assert "/usr" in reply.json["message"], reply
        assert server.api().delete(f"/snapshots/{snapshot}").status == 204
