"""Create, find, renew, patch, expire, delete."""

import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

from support.client import Agent, Http
from support.server import HOST_IMAGE
from support.shell import eventually


def parse(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def stamp(when):
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def listed(server, **query):
    reply = server.api().get("/sandboxes", query=query)
    assert reply.status == 200, reply
    return [i["id"] for i in reply.json["items"]]


def test_what_create_answers_and_get_shows(server):
    with server.create(metadata={"team": "x"}, timeout=120) as sandbox:
        created = sandbox.created
        assert created["status"]["state"] == "Running"
        assert created["entrypoint"] == HOST_IMAGE["entrypoint"]
        assert created["metadata"] == {"team": "x"}
        assert "image" not in created
        assert parse(created["expiresAt"]) - parse(created["createdAt"]) == timedelta(seconds=120)
        shown = sandbox.get().json
        assert shown["image"] == {"uri": "host"}
        assert shown["metadata"] == {"team": "x"}
        assert shown["createdAt"] == created["createdAt"]
        assert sandbox.sh("echo works") == "works\n"


def test_create_echoes_an_empty_metadata_and_get_leaves_it_out(server):
    with server.create(metadata={}) as sandbox:
        assert sandbox.created["metadata"] == {}
        assert "metadata" not in sandbox.get().json


@pytest.mark.parametrize("timeout", [None, "absent"])
def test_without_a_timeout_it_never_expires_and_cannot_be_renewed(server, timeout):
    body = {**HOST_IMAGE, "timeout": timeout}
    if timeout == "absent":
        del body["timeout"]
    reply = server.api().post("/sandboxes", body)
    assert reply.status == 202 and "expiresAt" not in reply.json
    path = f"/sandboxes/{reply.json['id']}"
    try:
        assert "expiresAt" not in server.api().get(path).json
        when = stamp(datetime.now(timezone.utc) + timedelta(hours=1))
        refused = server.api().post(path + "/renew-expiration", {"expiresAt": when})
        assert refused.status == 409 and refused.json["code"] == "NATIVE::INVALID_EXPIRATION"
    finally:
        server.api().delete(path)


def test_environment_and_limits_reach_the_sandbox(server):
    with server.create(env={"GREETING": "hello world", "DROPPED": None},
                       resourceLimits={"cpu": "500m", "memory": "64Mi"}) as sandbox:
        assert sandbox.sh('echo "$GREETING"') == "hello world\n"
        assert sandbox.run("printenv DROPPED").code == 1
        metrics = sandbox.agent.get("/metrics").json
        assert metrics["mem_total_mib"] == pytest.approx(64, abs=1)
        assert metrics["mem_used_mib"] <= metrics["mem_total_mib"]


def test_both_prefixes_serve_the_same_and_trailing_slashes_redirect(server):
    bare, versioned = server.api(prefix=""), server.api(prefix="/v1")
    assert bare.get("/sandboxes").status == versioned.get("/sandboxes").status == 200
    assert bare.get("/health").json == {"status": "healthy"}
    assert versioned.get("/health", check=False).status == 404
    reply = versioned.get("/sandboxes/", check=False)
    assert reply.status == 307
    assert reply.header("Location") == f"http://{server.address}/v1/sandboxes"


def test_the_key_is_needed(server):
    for key, code in ((False, "MISSING_API_KEY"), ("wrong", "INVALID_API_KEY")):
        reply = server.api(key=key).get("/sandboxes")
        assert (reply.status, reply.json["code"]) == (401, code)
        assert server.api(key=key).get("/nothing").status == 401
    for path in ("/health", "/version"):
        assert server.api(key=False, prefix="").get(path).status == 200
    assert server.api(key=False, prefix="").get("/healthz", check=False).status == 401


def test_the_key_file_is_private(server):
    mode = (server.state / "api-key").stat().st_mode
    assert mode & 0o777 == 0o600
    assert len(server.key) >= 32
    assert server.key not in server.log.read_text()


def test_request_ids_are_echoed_and_logged(server):
    ours = f"id-{uuid.uuid4()}"
    reply = server.api().get("/sandboxes/none", headers={"X-Request-ID": f" {ours} "})
    assert reply.header("X-Request-ID") == ours
    eventually(lambda: ours in server.log.read_text(), what="the request id in the log")
    generated = server.api().get("/sandboxes").header("X-Request-ID")
    assert len(generated) == 32 and int(generated, 16) >= 0


def test_unknown_ids_are_404_everywhere(server):
    api = server.api()
    when = stamp(datetime.now(timezone.utc) + timedelta(hours=1))
    for unknown in ("none", str(uuid.uuid4())):
        path = f"/sandboxes/{unknown}"
        for reply in (
            api.get(path), api.delete(path), api.patch(path + "/metadata", {"a": "b"}),
            api.post(path + "/renew-expiration", {"expiresAt": when}),
            api.get(path + "/endpoints/44772"), api.get(path + "/proxy/80/x", check=False),
        ):
            assert reply.status == 404, reply
            assert reply.json == {
                "code": "NATIVE::SANDBOX_NOT_FOUND", "message": f"Sandbox {unknown} not found."
            }


def test_delete_is_not_idempotent(server):
    sandbox = server.create()
    sandbox.delete()
    assert server.api().delete(sandbox.path()).status == 404


def test_list_filters_by_state_and_metadata(server):
    tag = uuid.uuid4().hex[:12]
    a = server.create(metadata={"tag": tag, "n": "1"})
    b = server.create(metadata={"tag": tag, "n": "2", "odd/key": "x"})
    ended = server.create(metadata={"tag": tag}, entrypoint=["sh", "-c", "exit 0"])
    try:
        eventually(lambda: ended.state() == "Terminated", what="the end of the entrypoint")
        both = f"tag={tag}"
        assert listed(server, metadata=both) == [ended.id, b.id, a.id], "newest first"
        assert listed(server, metadata=both, state="running") == [b.id, a.id]
        assert listed(server, metadata=both, state=["Terminated", "RUNNING"]) == [ended.id, b.id, a.id]
        assert listed(server, metadata=both, state="") == []
        assert listed(server, metadata=both, state="Paused") == []
        assert listed(server, metadata=f"{both}&n=2") == [b.id]
        assert listed(server, metadata=f"{both}&n=3") == []
        # Encoded once more by some clients.
        assert listed(server, metadata=f"{both}&odd%2Fkey=x") == [b.id]
        assert listed(server, metadata=f"{both}&odd/key=x") == [b.id]
        wrong = server.api().get("/sandboxes", query={"metadata": "zz"})
        assert (wrong.status, wrong.json["code"]) == (400, "INVALID_METADATA_FORMAT")
    finally:
        for sandbox in (a, b, ended):
            sandbox.delete()


def test_list_pages(server):
    tag = uuid.uuid4().hex[:12]
    with ThreadPoolExecutor(5) as threads:
        made = list(threads.map(lambda n: server.create(metadata={"tag": tag}), range(5)))
    try:
        seen = []
        for page in (1, 2, 3):
            reply = server.api().get(
                "/sandboxes", query={"metadata": f"tag={tag}", "page": page, "pageSize": 2}
            ).json
            seen += [i["id"] for i in reply["items"]]
            assert reply["pagination"] == {
                "page": page, "pageSize": 2, "totalItems": 5, "totalPages": 3, "hasNextPage": page < 3,
            }
        assert sorted(seen) == sorted(s.id for s in made) and len(set(seen)) == 5
        beyond = server.api().get("/sandboxes", query={"metadata": f"tag={tag}", "page": 9})
        assert beyond.status == 200 and beyond.json["items"] == []
        for query in ({"page": 0}, {"pageSize": 201}, {"pageSize": 0}, {"page": "x"}):
            reply = server.api().get("/sandboxes", query=query)
            assert reply.status == 422
            assert reply.json["detail"][0]["loc"] == ["query", next(iter(query))]
    finally:
        for sandbox in made:
            sandbox.delete()


def test_metadata_is_merged(sandbox):
    api, path = sandbox.server.api(), sandbox.path("/metadata")
    assert api.patch(path, {"a": "1", "b": "2"}).json["metadata"] == {"a": "1", "b": "2"}
    assert api.patch(path, {"a": None, "c": "3"}).json["metadata"] == {"b": "2", "c": "3"}
    assert api.patch(path, {}).json["metadata"] == {"b": "2", "c": "3"}
    assert sandbox.get().json["metadata"] == {"b": "2", "c": "3"}
    assert "metadata" not in api.patch(path, {"b": None, "c": None}).json
    reserved = api.patch(path, {"opensandbox.io/x": "1"})
    assert (reserved.status, reserved.json["code"]) == (400, "INVALID_METADATA_LABEL")
    assert api.patch(path, {"a": 1}).status == 422
    assert api.patch(path, {"a": "not a label!"}).status == 400
    assert "metadata" not in sandbox.get().json


def test_renew_moves_the_end_either_way(sandbox):
    api, path = sandbox.server.api(), sandbox.path("/renew-expiration")
    for delta in (timedelta(hours=5), timedelta(minutes=2)):
        when = (datetime.now(timezone.utc) + delta).replace(microsecond=123456)
        reply = api.post(path, {"expiresAt": stamp(when)})
        assert reply.status == 200 and parse(reply.json["expiresAt"]) == when
        assert parse(sandbox.get().json["expiresAt"]) == when
    other_zone = datetime.now(timezone(timedelta(hours=5, minutes=30))) + timedelta(hours=1)
    reply = api.post(path, {"expiresAt": other_zone.isoformat()})
    assert parse(reply.json["expiresAt"]) == other_zone and reply.json["expiresAt"].endswith("Z")
    past = api.post(path, {"expiresAt": stamp(datetime.now(timezone.utc) - timedelta(seconds=1))})
    assert (past.status, past.json["code"]) == (400, "NATIVE::INVALID_EXPIRATION")
    assert api.post(path, {"expiresAt": "tomorrow"}).status == 422
    assert api.post(path, {}).status == 422


def test_expired_sandboxes_are_removed(server):
    before = server.census()
    short, long = server.create(), server.create()
    when = stamp(datetime.now(timezone.utc) + timedelta(seconds=1))
    assert server.api().post(short.path("/renew-expiration"), {"expiresAt": when}).status == 200
    eventually(lambda: short.get().status == 404, 15, 0.05, "the expiry")
    assert long.state() == "Running"
    assert short.id not in listed(server, pageSize=200)
    long.delete()
    server.expect_census(before)


@pytest.mark.parametrize(
    "entrypoint, state, reason, text",
    [
        (["sh", "-c", "exit 0"], "Terminated", "CONTAINER_EXITED", "successfully"),
        (["sh", "-c", "exit 7"], "Failed", "CONTAINER_EXITED_ERROR", "7"),
        (["sh -c 'exit 9'"], "Failed", "CONTAINER_EXITED_ERROR", "9"),
    ],
)
def test_the_end_of_the_entrypoint_is_the_sandboxs_end(server, entrypoint, state, reason, text):
    with server.create(entrypoint=entrypoint) as sandbox:
        eventually(lambda: sandbox.state() != "Running", 10, 0.02, "the entrypoint's end")
        status = sandbox.get().json["status"]
        assert (status["state"], status["reason"]) == (state, reason)
        assert text in status["message"]
        # Still there, and its endpoint still resolves, until it is deleted.
        assert server.api().get(sandbox.path("/endpoints/8080")).status == 200


def test_an_idempotency_key_makes_one_sandbox_of_many_requests(server):
    key = str(uuid.uuid4())
    body = {**HOST_IMAGE, "metadata": {"key": key}}

    def post(_):
        return server.api().post("/sandboxes", body, headers={"Idempotency-Key": key})

    with ThreadPoolExecutor(4) as threads:
        replies = list(threads.map(post, range(4)))
    replies.append(post(4))
    accepted = [r for r in replies if r.status == 202]
    try:
        assert len({r.json["id"] for r in accepted}) == 1
        # A twin that comes while the first is still being made may be told so instead.
        assert all(r.status in (202, 409) for r in replies)
        assert replies[-1].status == 202
        assert len(listed(server, metadata=f"key={key}")) == 1
        other = server.api().post(
            "/sandboxes", {**body, "timeout": 61}, headers={"Idempotency-Key": key}
        )
        assert other.status in (409, 422)
    finally:
        for id in {r.json["id"] for r in accepted}:
            server.api().delete(f"/sandboxes/{id}")


def test_endpoints_direct_and_by_the_server(sandbox):
    direct = sandbox.endpoint(44772)
    assert re.fullmatch(r"127\.0\.0\.1:\d+/proxy/44772", direct["endpoint"])
    assert sandbox.connect().sh("echo direct") == "direct\n"
    # Clients that put paths behind the host and port of the published port alone are served, too.
    bare = Agent(direct["endpoint"].partition("/")[0], direct["headers"])
    assert bare.sh("echo bare") == "bare\n"
    old = sandbox.server.api()
    old.headers = {**old.headers, "User-Agent": "OpenSandbox-Kotlin-SDK/1.0.0"}
    token = direct["headers"]["X-EXECD-ACCESS-TOKEN"]
    host = direct["endpoint"].partition("/")[0]
    in_path = old.get(sandbox.path("/endpoints/44772")).json["endpoint"]
    assert in_path == f"{host}/.access/{token}/proxy/44772"
    assert Agent(in_path).sh("echo in its path") == "in its path\n"
    assert Http(f"{host}/proxy/44772").get("/ping").status == 401
    proxied = sandbox.endpoint(44772, proxy=True)
    assert proxied["endpoint"] == f"{sandbox.server.address}/v1/sandboxes/{sandbox.id}/proxy/44772"
    assert sandbox.connect(proxy=True).sh("echo proxied") == "proxied\n"
    bare = sandbox.server.api(prefix="").get(
        sandbox.path("/endpoints/8080"), query={"use_server_proxy": "true"}
    ).json["endpoint"]
    assert bare == f"{sandbox.server.address}/sandboxes/{sandbox.id}/proxy/8080"
    assert sandbox.endpoint(18080)["endpoint"]
    api = sandbox.server.api()
    for port in (0, 65536):
        wrong = api.get(sandbox.path(f"/endpoints/{port}"))
        assert (wrong.status, wrong.json["code"]) == (400, "NATIVE::INVALID_PORT")
    assert api.get(sandbox.path("/endpoints/http")).status == 422
    signed = api.get(sandbox.path("/endpoints/80"), query={"expires": int(time.time()) + 60})
    assert signed.status == 400


def test_metrics_count(server):
    def value(name):
        total = 0.0
        for line in server.api(prefix="").get("/metrics").text.splitlines():
            if line.startswith(name) and line[len(name)] in " {":
                total += float(line.rsplit(" ", 1)[1])
        return total

    text = server.api(prefix="").get("/metrics").text
    histogram = next(l.split()[2] for l in text.splitlines()
                     if l.startswith("# TYPE ") and l.endswith(" histogram"))
    count = value(f"{histogram}_count")
    server.api().get("/sandboxes")
    assert value(f"{histogram}_count") > count
