"""Images of a registry on this machine: pulled, pushed, cut off, lied about, refused."""

import base64
import json
import os
import random
import stat
import subprocess

import pytest

from support import contract, rootfs
from support.registry import OCI, FaultyProxy, Registry, digest, file_layer, zstd
from support.server import HOST_IMAGE
from support.shell import eventually, run

LOGIN = ("tester", "a secret: with \"marks\"")


@pytest.fixture(scope="module")
def secure(scratch):
    """With TLS by an authority of its own, and a password."""
    with Registry(scratch / "registry-secure", login=LOGIN, tls=True) as registry:
        yield registry


@pytest.fixture(scope="module")
def plain(scratch):
    with Registry(scratch / "registry-plain") as registry:
        yield registry


@pytest.fixture(scope="module")
def server(make_server, secure):
    return make_server(sections={
        "registry": {"ca_file": str(secure.ca), "ca_hosts": [secure.host]},
        "native": {"pull": "missing"},
    })


@pytest.fixture(scope="module")
def base(scratch, busybox):
    """The layer of a busybox."""
    return rootfs.tar_of_tree(busybox, scratch / "registry-base.tar").read_bytes()


@pytest.fixture(scope="module")
def auth():
    return {"username": LOGIN[0], "password": LOGIN[1]}


def transfer(server, route, **body):
    """The lines of a pull or push; the last says how it ended."""
    reply = server.api().post(f"/images/{route}", body)
    if reply.status != 200:
        return [{"error": reply.json}]
    lines = [json.loads(line) for line in reply.text.splitlines()]
    check = contract.validator("lifecycle", "/components/schemas/ImageTransferLine")
    for line in lines:
        assert not list(check.iter_errors(line)), line
    return lines


def pull(server, reference, **body):
    end = transfer(server, "pull", reference=reference, **body)[-1]
    assert "image" in end, f"{end}\n{server.tail()}"
    return end["image"]


def pull_error(server, reference, **body):
    end = transfer(server, "pull", reference=reference, **body)[-1]
    assert "error" in end, end
    return end["error"]


def references(server):
    return {i["reference"] for i in server.api().get("/images").json["items"]}


def left_in_staging(server):
    return list((server.state / "images/staging").iterdir())


def of_image(server, reference, auth=None):
    image = {"uri": reference, **({"auth": auth} if auth else {})}
    return server.create(image=image, entrypoint=["/bin/sleep", "600"])


def test_what_is_pushed_with_tls_and_password_is_pulled_again(server, secure, base, auth, scratch):
    archive = rootfs.oci_layout(
        scratch / "app.tar", [base, file_layer("opt/version", b"one")], Env=["MODE=test"], User="app",
    )
    with archive.open("rb") as body:
        imported = server.api().post("/images", body, query={"reference": "app:1"})
    assert imported.status == 201
    name = f"{secure.host}/team/app:1"
    end = transfer(server, "push", reference="app:1", destination=name, auth=auth)[-1]
    assert "pushed" in end, end
    assert end["pushed"]["reference"] == name
    manifest = secure.manifest("team/app", "1")
    assert len(manifest["layers"]) == 2
    with of_image(server, name, auth) as sandbox:
        assert sandbox.sh("cat /opt/version") == "one"
        assert sandbox.sh("echo $MODE; id -u").split() == ["test", "1000"]
    shown = server.api().get("/images/inspect", query={"reference": name}).json
    assert shown["digest"] == end["pushed"]["digest"]
    assert shown["source"] == f"{secure.host}/team/app"
    assert shown["config"]["user"] == "app"
    assert len(shown["layers"]) == 2
    # Again: everything is there, and stays what it is.
    again = transfer(server, "push", reference=name, auth=auth)
    assert again[-1]["pushed"]["digest"] == end["pushed"]["digest"]
    assert {line["status"] for line in again[:-1]} <= {"waiting", "present"}
    # To another repository of the registry: nothing is sent either.
    other = transfer(server, "push", reference=name, destination=f"{secure.host}/other/app:2", auth=auth)
    assert other[-1]["pushed"]["digest"] == end["pushed"]["digest"]
    assert {line["status"] for line in other[:-1]} <= {"waiting", "present"}
    by_digest = f"{secure.host}/team/app@{end['pushed']['digest']}"
    assert pull(server, by_digest, auth=auth)["digest"] == end["pushed"]["digest"]


def test_a_wrong_password_is_told_without_it(server, secure, auth):
    secure.put_image("closed", "1", [file_layer("x", b"x")])
    name = f"{secure.host}/closed:1"
    wrong = {"username": LOGIN[0], "password": "guessed-wrongly"}
    error = pull_error(server, name, auth=wrong)
    assert error["code"] == "IMAGE::ACCESS_DENIED"
    assert secure.host in error["message"] and "closed" in error["message"]
    assert "do not open it" in error["message"]
    assert "guessed-wrongly" not in error["message"]
    assert pull_error(server, name)["code"] == "IMAGE::ACCESS_DENIED"
    reply = server.api().post("/sandboxes", {**HOST_IMAGE, "image": {"uri": name, "auth": wrong}})
    assert reply.status == 500
    assert reply.json["code"] == "NATIVE::SANDBOX_IMAGE_PULL_FAILED"
    assert "do not open it" in reply.json["message"]
    assert name not in references(server)
    assert "guessed-wrongly" not in server.log.read_text()
    assert LOGIN[1] not in server.log.read_text()


def test_an_unknown_certificate_is_refused(make_server, secure, auth):
    strict = make_server("strict", pool_size=0)
    error = pull_error(strict, f"{secure.host}/team/app:1", auth=auth)
    assert error["code"] == "IMAGE::TRANSFER_FAILED"
    assert "certificate" in error["message"]


def test_a_login_is_kept_for_the_server(server, secure):
    secure.put_image("kept", "1", [file_layer("x", b"kept")])
    name = f"{secure.host}/kept:1"
    options = ("--username", LOGIN[0], "--password-stdin", "--state-dir", server.state)
    wrong = server.cli("login", secure.host, *options, "--ca-file", secure.ca, input="no", check=False)
    assert wrong.returncode == 1 and "do not open it" in wrong.stderr
    assert pull_error(server, name)["code"] == "IMAGE::ACCESS_DENIED"
    server.cli("login", secure.host, *options, "--ca-file", secure.ca, input=LOGIN[1] + "\n")
    kept = server.state / "registry-credentials.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert pull(server, name)["reference"] == name
    server.cli("image", "remove", name)
    server.cli("logout", secure.host, "--state-dir", server.state)
    assert pull_error(server, name)["code"] == "IMAGE::ACCESS_DENIED"


def test_dockers_own_login_is_found(server, secure):
    secure.put_image("docker", "1", [file_layer("x", b"docker")])
    name = f"{secure.host}/docker:1"
    text = base64.b64encode(":".join(LOGIN).encode()).decode()
    config = server.directory / ".docker/config.json"
    config.parent.mkdir(exist_ok=True)
    config.write_text(json.dumps({"auths": {secure.host: {"auth": text}}}))
    try:
        assert pull(server, name)["reference"] == name
    finally:
        config.unlink()


def test_a_create_pulls_what_is_missing_without_tls_on_loopback(server, plain, base):
    pushed = plain.put_image("tool", "1", [base, file_layer("opt/tool", b"here")])
    name = f"{plain.host}/tool:1"
    assert name not in references(server)
    with of_image(server, name) as sandbox:
        assert sandbox.sh("cat /opt/tool") == "here"
        assert sandbox.get().json["resolvedImageDigest"] == pushed["digest"]
        server.stop()
        server.start()
        listed = {item["id"]: item for item in server.api().get("/sandboxes").json["items"]}
        assert listed[sandbox.id]["resolvedImageDigest"] == pushed["digest"]
    with server.create() as of_the_host:
        assert "resolvedImageDigest" not in of_the_host.get().json
    assert name in references(server)
    missing = server.api().post("/sandboxes", {**HOST_IMAGE, "image": {"uri": f"{plain.host}/none:1"}})
    assert missing.status == 500
    assert missing.json["code"] == "NATIVE::SANDBOX_IMAGE_PULL_FAILED"
    assert "manifest unknown" in missing.json["message"]


def test_what_may_not_be_pulled_is_not(make_server, plain, base):
    plain.put_image("tool", "2", [base])
    never = make_server("never", pool_size=0, sections={"native": {"pull": "never"}})
    body = {**HOST_IMAGE, "image": {"uri": f"{plain.host}/tool:2"}}
    reply = never.api().post("/sandboxes", body)
    assert reply.status == 500
    assert "is not in the store" in reply.json["message"]


def test_always_means_the_newest(make_server, plain, base):
    always = make_server("always", pool_size=0, sections={"native": {"pull": "always"}})
    name = f"{plain.host}/moving:1"
    for version in (b"first", b"second"):
        pushed = plain.put_image("moving", "1", [base, file_layer("opt/version", version)])
        with of_image(always, name) as sandbox:
            assert sandbox.sh("cat /opt/version") == version.decode()
            assert sandbox.get().json["resolvedImageDigest"] == pushed["digest"]
    # What lost its name goes with a pruning, what has one stays.
    pruned = always.api().post("/images/prune").json
    assert len(pruned["removed"]) == 1
    assert name in references(always)


def test_a_zstd_layer_and_an_index_of_platforms(server, plain):
    mine = plain.put_image("multi", "mine", [file_layer("x", b"mine")], pack=zstd, suffix="+zstd")
    other = plain.put_image("multi", "other", [file_layer("x", b"other")])
    machine = os.uname().machine
    own = {"x86_64": "amd64", "aarch64": "arm64"}[machine]
    plain.put_manifest("multi", "all", {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.index.v1+json",
        "manifests": [
            {**other, "platform": {"os": "linux", "architecture": "s390x"}},
            {**other, "platform": {"os": "unknown", "architecture": "unknown"}},
            {**mine, "platform": {"os": "linux", "architecture": own}},
        ],
    })
    assert pull(server, f"{plain.host}/multi:all")["digest"] == mine["digest"]
    plain.put_manifest("multi", "foreign", {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.index.v1+json",
        "manifests": [{**other, "platform": {"os": "linux", "architecture": "s390x"}}],
    })
    error = pull_error(server, f"{plain.host}/multi:foreign")
    assert error["code"] == "IMAGE::UNSUPPORTED"
    assert "linux/s390x" in error["message"]


NOISE = random.Random(6).randbytes(3_000_000)


def test_a_connection_cut_in_a_layer_is_taken_up_again(server, plain):
    plain.put_image("cut", "1", [file_layer("noise", NOISE)])
    cuts = []

    def cut(request, status, headers, body):
        if "/blobs/" in request.path and len(body) > 1_000_000 and len(cuts) < 2:
            cuts.append(len(body))
            return "cut", 700_000
        return None

    with FaultyProxy(plain, cut) as proxy:
        pull(server, f"{proxy.host}/cut:1")
    assert len(cuts) == 2
    ranges = [r for _, path, r in proxy.requests if "/blobs/" in path and r]
    assert len(ranges) == 2, proxy.requests
    begins = [int(r.removeprefix("bytes=").rstrip("-")) for r in ranges]
    assert 0 < begins[0] <= 700_000 < begins[1] <= 1_400_000
    layer = next((server.state / "images/layers").glob("*/noise"))
    assert layer.read_bytes() == NOISE


def test_a_wrong_digest_is_refused_and_leaves_nothing(server, plain):
    plain.put_image("lie", "1", [file_layer("lie", NOISE[:200_000] + b"lie")])
    before = sorted(p.name for p in (server.state / "images/layers").iterdir())

    def lie(request, status, headers, body):
        if "/blobs/" in request.path and len(body) > 100_000:
            return status, headers, body[:5_000] + bytes([body[5_000] ^ 1]) + body[5_001:]
        return None

    with FaultyProxy(plain, lie) as proxy:
        error = pull_error(server, f"{proxy.host}/lie:1")
        assert error["code"] == "IMAGE::INVALID"
        assert "digest" in error["message"]
        assert f"{proxy.host}/lie:1" not in references(server)
    eventually(lambda: not left_in_staging(server), 10, what="an empty staging directory")
    assert sorted(p.name for p in (server.state / "images/layers").iterdir()) == before


def test_a_busy_registry_is_waited_for(server, plain):
    plain.put_image("busy", "1", [file_layer("x", b"busy")])
    refused = []

    def busy(request, status, headers, body):
        if "/manifests/" in request.path and len(refused) < 2:
            refused.append(request.path)
            return 429, {"Retry-After": "1"}, b'{"errors":[{"code":"TOOMANYREQUESTS","message":"slow"}]}'
        return None

    with FaultyProxy(plain, busy) as proxy:
        pull(server, f"{proxy.host}/busy:1")
    assert len(refused) == 2


def test_an_upload_that_is_cut_goes_on(server, plain, scratch):
    archive = rootfs.oci_layout(scratch / "upload.tar", [file_layer("noise", NOISE[::-1])])
    with archive.open("rb") as body:
        assert server.api().post("/images", body, query={"reference": "upload:1"}).status == 201
    cuts = []

    def cut(request, status, headers, body):
        if request.command == "PATCH" and not cuts:
            cuts.append(request.path)
            return "cut", 0
        return None

    with FaultyProxy(plain, cut) as proxy:
        end = transfer(server, "push", reference="upload:1", destination=f"{proxy.host}/upload:1")[-1]
    assert "pushed" in end, end
    assert len(cuts) == 1
    manifest = plain.manifest("upload", "1")
    blob = plain.request("GET", f"/v2/upload/blobs/{manifest['layers'][0]['digest']}")
    assert digest(blob.data) == manifest["layers"][0]["digest"]


def test_the_command_line_pulls_inspects_exports_and_removes(server, plain, base, scratch):
    plain.put_image("line", "1", [base, file_layer("opt/x", b"line")], Labels={"made": "here"})
    name = f"{plain.host}/line:1"
    done = server.cli("image", "pull", name, "-o", "json")
    assert json.loads(done.stdout)["reference"] == name
    assert " done " in done.stderr and "\x1b" not in done.stderr and "\r" not in done.stderr
    shown = json.loads(server.cli("image", "inspect", name, "-o", "json").stdout)
    assert shown["labels"] == {"made": "here"}
    assert len(shown["layers"]) == 2
    archive = scratch / "line.tar"
    server.cli("image", "export", name, archive)
    server.cli("image", "import", archive, "back:1")
    with of_image(server, "back:1") as sandbox:
        assert sandbox.sh("cat /opt/x") == "line"
    piped = subprocess.run(
        [server.executable, "image", "export", name, "-"], env=server.environment(),
        capture_output=True, check=True, timeout=60,
    )
    assert len(piped.stdout) > 1_000_000
    pushed = json.loads(
        server.cli("image", "push", "back:1", f"{plain.host}/back:1", "-o", "json").stdout
    )
    assert pushed["reference"] == f"{plain.host}/back:1"
    server.cli("image", "remove", "back:1")
    assert "Freed:" in server.cli("image", "prune", "--all").stdout
    assert references(server) == {"host"}


def test_other_programs_read_an_export(server, plain, base, scratch):
    plain.put_image("foreign", "1", [base, file_layer("opt/x", b"x")])
    name = f"{plain.host}/foreign:1"
    server.cli("image", "pull", name)
    archive = scratch / "foreign.tar"
    server.cli("image", "export", name, archive)
    shown = json.loads(run("skopeo", "inspect", f"oci-archive:{archive}").stdout)
    assert len(shown["Layers"]) == 2
    run("skopeo", "copy", "--dest-tls-verify=false", f"oci-archive:{archive}",
        f"docker://{plain.host}/foreign:2")
    assert pull(server, f"{plain.host}/foreign:2")["reference"] == f"{plain.host}/foreign:2"
