"""Wrong requests and hostile archives: an error that names the field or entry and the rule, and
nothing left behind."""

import gzip
import io
import json
import socket
import tarfile

import pytest

from support import rootfs
from support.server import HOST_IMAGE


@pytest.fixture(scope="module", autouse=True)
def nothing_left(server):
    """All tests of this file together leave the host as it was."""
    before = server.census()
    yield
    server.expect_census(before)
    assert server.api().get("/sandboxes").json["pagination"]["totalItems"] == 0
    assert [i["reference"] for i in server.api().get("/images").json["items"] if not i["builtIn"]] == []


def create(server, body, **options):
    return server.api().post("/sandboxes", body, **options)


def without(*names):
    return {k: v for k, v in HOST_IMAGE.items() if k not in names}


@pytest.mark.parametrize(
    "body, where",
    [
        ({}, ["body"]),
        (without("entrypoint"), ["body"]),
        (without("resourceLimits"), ["body"]),
        ({**HOST_IMAGE, "timeout": 59}, ["body", "timeout"]),
        ({**HOST_IMAGE, "timeout": "soon"}, ["body", "timeout"]),
        ({**HOST_IMAGE, "timeout": []}, ["body", "timeout"]),
        ({**HOST_IMAGE, "entrypoint": []}, ["body", "entrypoint"]),
        ({**HOST_IMAGE, "entrypoint": "sh"}, ["body", "entrypoint"]),
        ({**HOST_IMAGE, "entrypoint": [1]}, ["body", "entrypoint", 0]),
        ({**HOST_IMAGE, "env": {"A": 1}}, ["body", "env", "A"]),
        ({**HOST_IMAGE, "env": []}, ["body", "env"]),
        ({**HOST_IMAGE, "metadata": {"a": None}}, ["body", "metadata", "a"]),
        ({**HOST_IMAGE, "metadata": "x"}, ["body", "metadata"]),
        ({**HOST_IMAGE, "image": "host"}, ["body", "image"]),
        ({**HOST_IMAGE, "image": {"uri": 7}}, ["body", "image", "uri"]),
        ({**HOST_IMAGE, "resourceLimits": {"cpu": 1}}, ["body", "resourceLimits", "cpu"]),
        ([], ["body"]),
        ("text", ["body"]),
        (7, ["body"]),
    ],
)
def test_a_broken_rule_names_the_field(server, body, where):
    reply = create(server, json.dumps(body).encode(), headers={"Content-Type": "application/json"})
    assert reply.status == 422, reply
    locations = [d["loc"] for d in reply.json["detail"]]
    assert any(loc[: len(where)] == where for loc in locations), reply


def test_all_broken_rules_are_named_at_once(server):
    reply = create(server, {"image": {"uri": "host"}, "entrypoint": [], "timeout": 1, "env": 3,
                            "resourceLimits": {}})
    found = {tuple(d["loc"][:2]) for d in reply.json["detail"]}
    assert {("body", "entrypoint"), ("body", "timeout"), ("body", "env")} <= found


@pytest.mark.parametrize(
    "body, status, code",
    [
        ({**HOST_IMAGE, "resourceLimits": {"cpu": "zz"}}, 400, "SANDBOX::INVALID_PARAMETER"),
        ({**HOST_IMAGE, "resourceLimits": {"cpu": "0"}}, 400, "SANDBOX::INVALID_PARAMETER"),
        ({**HOST_IMAGE, "resourceLimits": {"cpu": "nan"}}, 400, "SANDBOX::INVALID_PARAMETER"),
        ({**HOST_IMAGE, "resourceLimits": {"memory": "1.5Gi"}}, 400, "SANDBOX::INVALID_PARAMETER"),
        ({**HOST_IMAGE, "resourceLimits": {"memory": "-1"}}, 400, "SANDBOX::INVALID_PARAMETER"),
        ({**HOST_IMAGE, "metadata": {"opensandbox.io/x": "1"}}, 400, "SANDBOX::INVALID_METADATA_LABEL"),
        ({**HOST_IMAGE, "metadata": {"a b": "1"}}, 400, "SANDBOX::INVALID_METADATA_LABEL"),
        ({**HOST_IMAGE, "metadata": {"a": "x" * 64}}, 400, "SANDBOX::INVALID_METADATA_LABEL"),
        ({**HOST_IMAGE, "extensions": {"poolRef": "p"}}, 404, "KUBERNETES::POOL_NOT_FOUND"),
        ({**HOST_IMAGE, "extensions": {"access.renew.extend.seconds": "1"}}, 400, "SANDBOX::INVALID_PARAMETER"),
        ({**HOST_IMAGE, "platform": {"os": "plan9", "arch": "amd64"}}, 400, "SANDBOX::INVALID_PARAMETER"),
        ({**HOST_IMAGE, "secureAccess": True}, 400, "SANDBOX::INVALID_PARAMETER"),
        ({**HOST_IMAGE, "timeout": 10**15}, 400, "SANDBOX::INVALID_PARAMETER"),
    ],
)
def test_a_value_that_cannot_be_honoured_is_refused(server, body, status, code):
    reply = create(server, body)
    assert (reply.status, reply.json.get("code")) == (status, code), reply


@pytest.mark.parametrize("reference", ["nosuch", "nosuch:1.0", "registry.invalid/a/b:c"])
def test_an_unknown_image_is_named(server, reference):
    reply = create(server, {**HOST_IMAGE, "image": {"uri": reference}})
    assert reply.status in (404, 500), reply
    assert reply.json["code"] == "NATIVE::SANDBOX_IMAGE_PULL_FAILED"
    assert reference.split(":")[0] in reply.json["message"]


def test_an_entrypoint_that_does_not_exist_fails_the_create(server):
    reply = create(server, {**HOST_IMAGE, "entrypoint": ["/no/such/program"]})
    assert reply.status == 500 and reply.json["code"] == "NATIVE::SANDBOX_START_FAILED"
    assert "/no/such/program" in reply.json["message"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"{]", b"nul", b'{"a":1,}', b"\xff\xfe", b'{"a":"\xc3"}', b"[" * 5000, b"{}{}",
     b'{"image":{"uri":"host"}' + b" " * 100],
)
def test_malformed_json_is_refused(server, body):
    reply = create(server, body, headers={"Content-Type": "application/json"})
    assert reply.status == 422, reply
    assert reply.json["detail"][0]["loc"][0] == "body"


def test_a_body_past_the_limit_is_refused(server):
    reply = None
    try:
        reply = create(server, b'{"image":{"uri":"' + b"x" * (64 << 20) + b'"}}')
    except (BrokenPipeError, ConnectionResetError):
        pass  # the answer may come, and the connection close, before all was sent
    if reply is not None:
        assert reply.status == 413, reply
    with server.create() as sandbox:
        agent = sandbox.connect()
        try:
            assert agent.post("/command", b'{"command":"' + b"x" * (64 << 20) + b'"}').status == 413
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sandbox.sh("echo fine") == "fine\n"


def exchange(server, data):
    """Sends raw bytes, returns what comes back until the connection ends or falls silent."""
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.settimeout(3)
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except OSError:
            pass
        return answer


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 100,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"b" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
    ],
)
def test_requests_that_are_no_http_are_refused(server, data):
    answer = exchange(server, data)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505")), answer[:200]
    assert server.api(prefix="").get("/health").status == 200


# --- images ---------------------------------------------------------------------------------------


def post_image(server, data, reference="bad:1"):
    reply = server.api().post(
        "/images", data, query={"reference": reference},
        headers={"Content-Type": "application/octet-stream"},
    )
    return reply


def refused(server, data, *words):
    """The import fails with a message that has all the words, and no image appears."""
    reply = post_image(server, data)
    if reply.status < 300:
        server.api().delete("/images/bad:1")
    assert 400 <= reply.status < 500, reply
    for word in words:
        assert word.lower() in reply.json["message"].lower(), reply
    references = [i["reference"] for i in server.api().get("/images").json["items"]]
    assert "bad:1" not in references
    return reply


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def node(name, kind, major=1, minor=3):
    info = tarfile.TarInfo(name)
    info.type, info.devmajor, info.devminor = kind, major, minor
    return info


HOSTILE = {
    "traversal": ([("etc/ok", b"x"), ("../../evil", b"x")], "../../evil"),
    "traversal in the middle": ([("a/../../evil", b"x")], "a/../../evil"),
    "through a link to the outside": (
        [(link("out", "/etc"), b""), ("out/evil", b"x")], "out/evil"),
    "through a relative link to the outside": (
        [(link("d/out", "../../.."), b""), ("d/out/evil", b"x")], "d/out/evil"),
    "hard link to the outside": (
        [(link("shadow", "../../../../etc/shadow", tarfile.LNKTYPE), b"")], "shadow"),
    "hard link through a link": (
        [(link("out", "/etc"), b""), (link("stolen", "out/passwd", tarfile.LNKTYPE), b"")], "stolen"),
}


def wrapped(kind, layer):
    if kind == "oci":
        return rootfs.oci_layout(None, [layer])
    if kind == "docker":
        return rootfs.docker_archive(None, [layer])
    return layer


@pytest.mark.parametrize("kind", ["root", "oci", "docker"])
@pytest.mark.parametrize("name", HOSTILE)
def test_an_archive_that_reaches_outside_is_refused(server, tmp_path, name, kind):
    entries, culprit = HOSTILE[name]
    before = sorted(p.name for p in server.state.parent.iterdir())
    refused(server, wrapped(kind, rootfs.tar_of(entries)), culprit)
    assert sorted(p.name for p in server.state.parent.iterdir()) == before
    assert not list(server.directory.rglob("evil"))


def test_absolute_names_stay_inside(server, tmp_path):
    """As in every tar program, a leading slash means the archive's own root; or it is refused."""
    reply = post_image(server, rootfs.tar_of([("/absolute-evil", b"x"), ("bin/x", b"x")]))
    import os
    assert not os.path.exists("/absolute-evil")
    if reply.status < 300:
        assert server.api().delete("/images/bad:1").status == 204
    else:
        assert "/absolute-evil" in reply.json["message"]


@pytest.mark.parametrize("kind", ["root", "oci", "docker"])
def test_a_truncated_archive_is_refused(server, kind):
    whole = wrapped(kind, rootfs.tar_of([(f"file{n}", bytes([n]) * 5000) for n in range(20)]))
    for part in (len(whole) // 2 + 77, 700):
        refused(server, whole[:part])


@pytest.mark.parametrize(
    "data", [b"", b"not an archive", b"\0" * 10240, gzip.compress(b"still none"), b"\x1f\x8b garbage"],
    ids=["empty", "text", "zeros", "gzip of text", "broken gzip"],
)
def test_what_is_no_archive_is_refused(server, data):
    refused(server, data)


def test_a_bomb_is_refused_before_it_fills_the_disk(server):
    """400 MiB of zeros in a few hundred KiB, deflated twice over as a layer in a gzip."""
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=9, mtime=0) as packed:
        info = tarfile.TarInfo("zeros")
        info.size = 400 << 20
        packed.write(info.tobuf())
        block = bytes(1 << 20)
        for _ in range(400):
            packed.write(block)
        packed.write(bytes(10240))
    bomb = raw.getvalue()
    assert len(bomb) < 1 << 20
    refused(server, bomb, "archive", "times")


def test_a_layer_that_is_not_what_its_digest_says_is_refused(server):
    layer = rootfs.tar_of([("a", b"1")])
    good = rootfs.oci_layout(None, [layer], compress=False)
    assert good.count(layer[:600]) == 1
    tampered = good.replace(b"a" + b"\0" * 99, b"b" + b"\0" * 99, 1)
    assert tampered != good
    refused(server, tampered)


@pytest.mark.parametrize(
    "entries, words",
    [
        ([("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", b"{")], ["index.json"]),
        ([("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'),
          ("index.json", json.dumps({"schemaVersion": 2, "manifests": [{
              "mediaType": "application/vnd.oci.image.manifest.v1+json",
              "digest": "sha256:" + "0" * 64, "size": 2}]}).encode())], ["0" * 64]),
        ([("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'),
          ("index.json", json.dumps({"schemaVersion": 2, "manifests": [{
              "mediaType": "application/vnd.oci.image.manifest.v1+json",
              "digest": "../../../../etc/passwd", "size": 2}]}).encode())], []),
        ([("manifest.json", b"[]")], ["manifest.json"]),
        ([("manifest.json", b'[{"Config":"../../x","Layers":[],"RepoTags":null}]')], []),
        ([("manifest.json", b'[{"Config":"c.json","Layers":["gone.tar"]}]'),
          ("c.json", b'{"rootfs":{"type":"layers","diff_ids":["sha256:00"]}}')], []),
    ],
    ids=["broken index", "missing blob", "digest with a path", "no manifest",
         "configuration outside", "missing layer"],
)
def test_an_incomplete_image_is_refused(server, entries, words):
    refused(server, rootfs.tar_of(entries), *words)


@pytest.mark.parametrize("reference", ["", "UPPER", "a b", "../x", "a:b:c", "host", "-x", "a//b", "x" * 300])
def test_a_bad_reference_is_refused(server, reference):
    reply = post_image(server, rootfs.tar_of([("a", b"x")]), reference)
    assert reply.status in (400, 409, 422), reply


def test_special_files_of_a_layer_do_no_harm(server):
    """Device nodes, sockets and set-uid files: left out, refused, or without effect inside."""
    busybox = rootfs.shutil.which("busybox")
    program = tarfile.TarInfo("bin/sh")
    program.mode = 0o6755
    data = open(busybox, "rb").read()
    layer = rootfs.tar_of([
        (program, data), (node("dev/mem2", tarfile.CHRTYPE, 1, 1), b""),
        (node("disk", tarfile.BLKTYPE, 8, 0), b""), (node("pipe", tarfile.FIFOTYPE), b""),
    ])
    reply = post_image(server, layer)
    if reply.status >= 300:
        assert reply.json["message"]
        return
    try:
        with server.create(image={"uri": "bad:1"}, entrypoint=["/bin/sh", "-c", "sleep 1000"]) as sandbox:
            done = sandbox.run(["/bin/sh", "-c", "cat < /dev/mem2"])
            assert done.code != 0
            assert sandbox.run(["/bin/sh", "-c", "cat < /disk"]).code != 0
    finally:
        assert server.api().delete("/images/bad:1").status == 204


def test_an_image_in_use_cannot_be_removed_and_host_never(server, busybox, tmp_path):
    archive = rootfs.tar_of_tree(busybox, tmp_path / "root.tar")
    assert post_image(server, archive.read_bytes(), "used:1").status in (200, 201)
    with server.create(image={"uri": "used:1"}, entrypoint=["/bin/sleep", "1000"]):
        assert server.api().delete("/images/used:1").status == 409
    assert server.api().delete("/images/used:1").status == 204
    assert server.api().delete("/images/used:1").status == 404
    assert server.api().delete("/images/host").status in (400, 409)


# --- inside ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [{}, {"command": ""}, {"command": "x", "argv": ["x"]}, {"argv": []}, {"argv": [""]},
     {"argv": ["a\0b"]}, {"command": 7}, {"command": "x", "timeout": -1}, {"command": "x", "gid": 1},
     {"command": "x", "cwd": "/no/such"}, {"command": "x", "cwd": "/etc/passwd"},
     {"command": "x", "envs": {"A": 1}}, {"command": "x", "uid": -1}, [], "x"],
)
def test_a_bad_command_is_refused(server, shared, body):
    reply = shared.agent.post("/command", json.dumps(body).encode())
    assert (reply.status, reply.json["code"]) == (400, "INVALID_REQUEST_BODY"), reply


@pytest.fixture(scope="module")
def shared(server, nothing_left):
    with server.create() as sandbox:
        yield sandbox


def test_bad_uploads_are_refused_and_leave_nothing(shared):
    agent = shared.agent

    def upload(body, boundary="b"):
        return agent.post("/files/upload", body,
                          headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})

    def part(name, content, filename=True):
        extra = f'; filename="{name}"' if filename else ""
        return f'--b\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n{content}\r\n'

    end = "--b--\r\n"
    cases = [
        (b"", "INVALID_FILE"),
        ((part("file", "x") + end).encode(), "INVALID_FILE_METADATA"),
        ((part("metadata", '{"path":"/tmp/left"}') + end).encode(), "INVALID_FILE_CONTENT"),
        ((part("metadata", "{") + part("file", "x") + end).encode(), "INVALID_FILE_METADATA"),
        ((part("metadata", '{"path":""}') + part("file", "x") + end).encode(), "INVALID_FILE_METADATA"),
    ]
    for body, code in cases:
        reply = upload(body)
        assert (reply.status, reply.json["code"]) == (400, code), (body, reply)
    truncated = (part("metadata", '{"path":"/tmp/left"}') + part("file", "x" * 1000)).encode()[:-200]
    assert upload(truncated).status == 400
    assert agent.post("/files/upload", b"x", headers={"Content-Type": "text/plain"}).status == 400
    assert shared.run("ls -A /tmp | grep left").code == 1
    assert agent.write("/proc/nowhere/x", b"x").status in (403, 404, 500)
    assert agent.write("/tmp/ok", b"fine").status == 200
    assert agent.read("/tmp/ok").body == b"fine"


def test_bad_file_requests_are_refused(shared):
    agent = shared.agent
    assert agent.get("/files/download").json["code"] == "MISSING_QUERY"
    assert agent.get("/files/download", query={"path": "/none"}).status == 404
    assert agent.get("/files/download", query={"path": "/tmp"}).status == 400
    assert agent.get("/files/info", query={"path": "/none"}).json["code"] == "FILE_NOT_FOUND"
    assert agent.get("/files/search", query={"pattern": "x"}).json["code"] == "MISSING_QUERY"
    assert agent.get("/files/search", query={"path": "/none"}).status == 404
    assert agent.get("/directories/list", query={"path": "/etc/passwd"}).status == 400
    assert agent.get("/directories/list", query={"path": "/tmp", "depth": -1}).status == 400
    assert agent.get("/nothing").status == 404
    shared.sh("echo x > /tmp/present")
    assert agent.post("/files/replace", {"/tmp/present": {"old": "", "new": "y"}}).status == 400
    assert agent.post("/files/mv", [{"src": "/none", "dest": "/tmp/y"}]).status == 404
    assert agent.delete("/command", query={}).json["code"] == "MISSING_QUERY"
    assert agent.get("/command/status/none").status == 404
    ranged = agent.get("/files/download", query={"path": "/tmp/present"}, headers={"Range": "bytes=9-"})
    assert ranged.status == 416
