"""What goes wrong around the agent: full disks, strange names, huge files, storms of processes. The
agent answers clearly, loses nothing and lives on."""

import json
import os
import shutil
import tempfile
import urllib.parse
from pathlib import Path

import pytest

from support.agent import StandaloneAgent
from support.server import EXECUTABLE
from support.shell import eventually, run

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def agent(tmp_path):
    with StandaloneAgent(tmp_path, TOKEN, environment={"DEFINED": "value"}) as agent:
        yield agent


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB."""
    path = tmp_path / "small"
    path.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=4m", "none", path)
    yield path
    run("umount", "-l", path)


def test_a_full_disk_is_told_and_the_old_file_stays_whole(agent, small_disk):
    target = small_disk / "target"
    assert agent.api.write(str(target), "old and whole").status == 200
    reply = agent.api.write(str(target), b"x" * (8 << 20))
    assert reply.status == 500 and "space" in reply.json["message"], reply
    assert target.read_text() == "old and whole"
    assert [p.name for p in small_disk.iterdir()] == ["target"], "something was left behind"
    assert agent.api.write(str(target), "new").status == 200 and target.read_text() == "new"


def test_a_full_disk_for_output_of_the_background(small_disk, tmp_path):
    with StandaloneAgent(tmp_path, TOKEN, environment={"TMPDIR": str(small_disk)}) as agent:
        # The command meets the full disk as it would anywhere; the agent does not.
        done = agent.api.run("head -c 20000000 /dev/zero || exit 9", background=True)
        state = lambda: agent.api.get(f"/command/status/{done.id}").json
        eventually(lambda: not state()["running"])
        assert state()["exit_code"] == 9
        assert agent.api.sh("echo works") == "works\n"


@pytest.mark.parametrize("name", ["line\nend", "tab\t", "\u00fcml\u00e4ut", "quote'\"", "*?[x]", " ", "-rf", "$UNDEFINED", "a$", "$$", "${", "100%41"])
def test_strange_names(agent, tmp_path, name):
    path = f"{tmp_path}/{name}"
    assert agent.api.write(path, name).status == 200
    assert Path(path).read_text() == name
    assert agent.api.read(path).text == name
    info = agent.api.get("/files/info", query={"path": path}).json
    assert info[path]["size"] == len(name.encode())
    found = agent.api.get("/directories/list", query={"path": str(tmp_path)}).json
    assert path in [f["path"] for f in found]
    moved = f"{path} moved"
    assert agent.api.post("/files/mv", [{"src": path, "dest": moved}]).status == 200
    assert agent.api.delete("/files", query={"path": moved}).status == 200
    assert not Path(moved).exists()


def test_names_that_are_not_utf8(agent, tmp_path):
    raw = os.fsencode(tmp_path) + b"/\xff\xfe\x80"
    Path(os.fsdecode(raw)).write_bytes(b"bytes")
    quoted = urllib.parse.quote_from_bytes(raw)
    assert agent.api.get("/files/download", raw_query=f"path={quoted}").body == b"bytes"
    assert agent.api.get("/directories/list", query={"path": str(tmp_path)}).status == 200
    assert agent.api.get("/files/search", query={"path": str(tmp_path)}).status == 200
    assert agent.api.delete("/files", raw_query=f"path={quoted}").status == 200
    assert not os.path.exists(raw)


def test_a_defined_variable_in_a_path_is_expanded(agent, tmp_path):
    assert agent.api.write(f"{tmp_path}/$DEFINED/${{DEFINED}}", "x").status == 200
    assert (tmp_path / "value/value").read_text() == "x"


@pytest.mark.plain
def test_huge_and_sparse_files_stream(agent, tmp_path):
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
        file.seek((1 << 39) + 5)
        file.write(b"here")
    part = agent.api.get("/files/download", query={"path": str(sparse)},
                         headers={"Range": f"bytes={(1 << 39) + 5}-{(1 << 39) + 8}"})
    assert part.status == 206 and part.body == b"here"
    assert agent.api.get("/files/info", query={"path": str(sparse)}).json[str(sparse)]["size"] == 1 << 40
    before = agent.private_kib()
    size = 256 << 20
    with sparse.open("r+b") as file:
        file.truncate(size)
    response = agent.api.open("GET", "/files/download?path=" + str(sparse))
    total = 0
    while piece := response.read(1 << 20):
        total += len(piece)
    assert total == size
    boundary = "b"
    head = (f'--{boundary}\r\nContent-Disposition: form-data; name="metadata"; filename="m"\r\n\r\n'
            + json.dumps({"path": str(tmp_path / "big")})
            + f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n').encode()

    def body():
        yield head
        for _ in range(256):
            yield bytes(1 << 20)
        yield f"\r\n--{boundary}--\r\n".encode()

    reply = agent.api.request("POST", "/files/upload", body=body(),
                              headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
    assert reply.status == 200, reply
    assert (tmp_path / "big").stat().st_size == size
    assert agent.private_kib() - before < 8 * 1024


def test_storms_of_processes_are_reaped(agent):
    for _ in range(5):
        done = agent.api.run("for i in $(seq 300); do (sh -c '(exit 3) & (exit 4) &' &) ; done; exit 7")
        assert done.code == 7
    eventually(lambda: agent.children() == [], what="no child of the agent, dead or alive")
    assert agent.api.get("/ping").status == 200


@pytest.mark.parametrize("end", ["kill -SEGV $$", "kill -KILL $$", "kill -KILL 0", "kill -STOP $$",
                                 "exec /nonexistent", "ulimit -v 1000; exec python3"])
def test_no_end_of_a_child_ends_the_agent(agent, end):
    agent.api.run(end, timeout=2000)
    assert agent.api.sh("echo lives") == "lives\n"


@pytest.fixture
def open_directory():
    """A directory that every user can search, with the executable in it."""
    path = Path(tempfile.mkdtemp(prefix="opensandbox-test-", dir="/var/tmp"))
    path.chmod(0o755)
    shutil.copy(EXECUTABLE, path / "opensandbox")
    (path / "tmp").mkdir()
    (path / "tmp").chmod(0o777)
    yield path
    shutil.rmtree(path)


def test_children_that_cannot_be_made_are_told(open_directory):
    # As another user than root, whom the limit of processes binds.
    subject = 54_000 + os.getpid() % 1000
    wrapper = ["setpriv", f"--reuid={subject}", f"--regid={subject}", "--clear-groups", "prlimit", "--nproc=1:1"]
    program = open_directory / "opensandbox"
    with StandaloneAgent(open_directory, TOKEN, wrapper=wrapper, executable=program) as agent:
        done = agent.api.run("true")
        assert done.error and "Resource temporarily unavailable" in done.error["evalue"]
        assert agent.api.get("/ping").status == 200
