"""Long work ends when its client is gone, leaves neither memory nor files, and holds up no end of the
server; files that are nearly all holes take no room. `test/run broken-off` is the long form."""

import io
import tarfile

import pytest

from support.broken_off import SPARSE_BYTES, BrokenOff
from support.registry import Registry
from support.shell import run

#: A size that nothing here would ever come to the end of.
ENDLESS = 500 << 30
SPARSE = 5 << 30


@pytest.fixture(scope="module")
def registry(scratch):
    with Registry(scratch / "broken-registry") as registry:
        yield registry


@pytest.fixture(scope="module")
def server(make_server, registry):
    return make_server(pool_size=2, sections={
        "server": {"timeout_graceful_shutdown": 1}, "native": {"pull": "missing"},
    })


@pytest.fixture(scope="module")
def works(server, registry, scratch):
    return BrokenOff(server, registry, scratch / "broken", size=ENDLESS, dense=2 << 30, kept=1 << 30, seed=1)


@pytest.mark.parametrize("work", BrokenOff.WORKS, ids=lambda work: work.__name__)
def test_broken_off_work_ends_and_leaves_nothing(works, work):
    works.break_off(work, 0.6, 0.3)


def test_an_interrupted_build_leaves_nothing(works):
    works.break_off_a_build(2)


def test_a_snapshot_that_nobody_waits_for_is_deleted_with_all_its_files(works):
    works.break_off_a_snapshot(0.5)


def test_a_pull_ends_when_the_last_who_wait_for_it_are_gone(works, server):
    first, second = works.pull(), works.pull()
    first.take(100, 0.5)
    first.break_off(False)
    second.take(100, 0.5)
    staged = list((server.state / "images/staging").iterdir())
    assert staged, "the pull goes on for the other"
    second.break_off(False)
    works.expect_nothing("pull of two")


def blocks(path):
    return path.stat().st_blocks * 512


def huge_files(directory):
    """What the files called "huge" take on the disk, each with what it claims."""
    return {str(path): (path.stat().st_size, blocks(path)) for path in directory.rglob("huge")}


def test_holes_take_no_room_anywhere(works, server, tmp_path):
    api = server.api()
    with works.make_sandbox() as sandbox:
        sandbox.sh(f"mkdir /holes; truncate -s {SPARSE} /holes/huge; echo end >> /holes/huge")
        # In an archive, and where that is unpacked.
        archive = sandbox.connect().open("GET", "/files/archive?path=/holes").read(SPARSE_BYTES)
        assert len(archive) < SPARSE_BYTES
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            member = tar.getmember("./huge")
            assert member.issparse() and member.size == SPARSE + 4
        (tmp_path / "archive.tar").write_bytes(archive)
        run("tar", "-xSf", tmp_path / "archive.tar", "-C", tmp_path)
        assert (tmp_path / "huge").stat().st_size == SPARSE + 4
        reply = sandbox.agent.post("/files/archive?path=/again", archive, check=False)
        assert reply.status == 200, reply
        size, taken = sandbox.sh("stat -c '%s %b' /again/huge").split()
        assert int(size) == SPARSE + 4 and int(taken) * 512 < SPARSE_BYTES
        assert sandbox.sh("tail -c 4 /again/huge") == "end\n"
        # By the command line, which sends a single file as it is, to a file and back.
        sandbox.sh(f"truncate -s {64 << 20} /some && echo end >> /some")
        server.cli("cp", f"{sandbox.id}:/some", tmp_path / "copy")
        assert blocks(tmp_path / "copy") < SPARSE_BYTES
        server.cli("cp", tmp_path / "copy", f"{sandbox.id}:/copied")
        assert int(sandbox.sh("stat -c %b /copied")) * 512 < SPARSE_BYTES
        # In a snapshot, and in a sandbox that is made of it.
        snapshot = works.take_snapshot(sandbox)
    found = huge_files(server.state / "snapshots")
    assert found and all(taken < SPARSE_BYTES for _, taken in found.values()), found
    api.delete(f"/snapshots/{snapshot}")


def test_a_layer_with_holes_goes_out_and_comes_back(works, server, tmp_path):
    size = 96 << 20
    with works.make_sandbox() as sandbox:
        sandbox.sh(f"truncate -s {size} /huge; echo end >> /huge")
        snapshot = works.take_snapshot(sandbox)
    api = server.api()
    assert api.post(f"/snapshots/{snapshot}/image", {"reference": "holes:1"}).status == 201
    api.delete(f"/snapshots/{snapshot}")
    server.cli("image", "export", "holes:1", tmp_path / "image.tar")
    assert (tmp_path / "image.tar").stat().st_size < SPARSE_BYTES
    server.cli("image", "import", tmp_path / "image.tar", "holes:2")
    with server.create(image={"uri": "holes:2"}, entrypoint=["/bin/sleep", "600"]) as sandbox:
        length, taken = sandbox.sh("stat -c '%s %b' /huge").split()
        assert int(length) == size + 4 and int(taken) * 512 < SPARSE_BYTES
        assert sandbox.sh("tail -c 4 /huge") == "end\n"


def test_the_servers_end_waits_for_none_of_it(works, server):
    requests = works.begin_all()
    for request in requests:
        request.take(1000, 0.2)
    # Its grace is a second; each of these works would go on for minutes.
    server.process.terminate()
    assert server.process.wait(30) == 0
    for request in requests:
        request.break_off(False)
    assert "changes in flight" not in server.tail()
    server.start()
    works.watched = works.watched[1:]
    works.expect_nothing("the server's end")
