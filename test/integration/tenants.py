"""Several tenants on one server: each has its own sandboxes, and knows of no other's."""

import http.server
import json
import subprocess
import threading

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.client import Http
from support.server import EXECUTABLE, HOST_IMAGE
from support.shell import eventually, run

TENANTS = """
[[tenants]]
name = "alice"
namespace = "team-a"
api_keys = ["key-a", "key-a2"]

[[tenants]]
name = "bob"
namespace = "team-b"
api_keys = ["key-b"]
max_sandboxes = 1
"""


def write_tenants(home, text=TENANTS):
    (home / ".opensandbox").mkdir(exist_ok=True)
    part = home / ".opensandbox" / "tenants.new"
    part.write_text(text)
    part.rename(home / ".opensandbox" / "tenants.toml")


@pytest.fixture(scope="module")
def server(make_server):
    return make_server(
        "tenants", pool_size=2, sections={"tenants": {"provider": "file"}}, key="key-a",
        prepare=write_tenants,
    )


@pytest.fixture
def owned(server):
    reply = server.api("key-a").post("/sandboxes", HOST_IMAGE)
    assert reply.status == 202, reply
    yield reply.json["id"]
    server.api("key-a").delete(f"/sandboxes/{reply.json['id']}")


def test_a_sandbox_is_its_tenants_alone(server, owned):
    ours, theirs = server.api("key-a2"), server.api("key-b")
    assert ours.get(f"/sandboxes/{owned}").status == 200
    assert [item["id"] for item in ours.get("/sandboxes").json["items"]] == [owned]
    assert theirs.get("/sandboxes").json["items"] == []
    for method, rest, body in (
        ("GET", "", None), ("GET", "/endpoints/44772", None), ("GET", "/endpoints/18080", None),
        ("POST", "/renew-expiration", {"expiresAt": "2999-01-01T00:00:00Z"}),
        ("PATCH", "/metadata", {"a": "b"}), ("POST", "/pause", None), ("POST", "/resume", None),
        ("POST", "/snapshots", {}), ("GET", "/diagnostics/logs?scope=container", None),
        ("GET", "/diagnostics/events?scope=runtime", None), ("GET", "/diagnostics/inspect", None),
        ("GET", "/diagnostics/summary", None), ("DELETE", "", None),
    ):
        foreign = theirs.request(method, f"/sandboxes/{owned}{rest}", body=body)
        nobody = theirs.request(method, f"/sandboxes/none{rest}", body=body)
        assert foreign.status == nobody.status == 404, (method, rest, foreign)
        assert foreign.json["code"] == nobody.json["code"] == "NATIVE::SANDBOX_NOT_FOUND"
    assert ours.get(f"/sandboxes/{owned}").json["status"]["state"] == "Running"


def test_the_proxy_asks_for_a_key(server, owned):
    path = f"/v1/sandboxes/{owned}/proxy/44772/ping"
    proxied = Http(server.address)
    assert proxied.get(path).json["code"] == "MISSING_API_KEY"
    assert proxied.get(path, headers={"OPEN-SANDBOX-API-KEY": "x"}).json["code"] == "INVALID_API_KEY"
    assert proxied.get(path, headers={"OPEN-SANDBOX-API-KEY": "key-b"}).status == 404
    assert proxied.get(path, headers={"OPEN-SANDBOX-API-KEY": "key-a"}).status == 200
    assert proxied.get("/health").status == 200


@pytest.mark.parametrize("key, status", [(None, 401), ("wrong", 401), ("key-b", 404)])
def test_websockets_are_refused_before_they_are_any(server, owned, key, status):
    headers = {"OPEN-SANDBOX-API-KEY": key} if key else {}
    address = f"ws://{server.address}/v1/sandboxes/{owned}/proxy/8000/ws"
    with pytest.raises(InvalidStatus) as refused:
        with connect(address, compression=None, additional_headers=headers):
            pass
    assert refused.value.response.status_code == status


def test_idempotency_keys_of_two_tenants_do_not_meet(server):
    made = {}
    for key in ("key-a", "key-b"):
        for _ in range(2):
            reply = server.api(key).post("/sandboxes", HOST_IMAGE, headers={"Idempotency-Key": "k"})
            assert reply.status == 202, reply
            made.setdefault(key, set()).add(reply.json["id"])
    try:
        assert all(len(ids) == 1 for ids in made.values())
        assert made["key-a"] != made["key-b"]
    finally:
        for key, ids in made.items():
            for one in ids:
                server.api(key).delete(f"/sandboxes/{one}")


def test_images_belong_to_all(server):
    assert server.api("key-b").get("/images").status == 200
    assert server.api("key-b").delete("/images/host").json["code"] == "IMAGE::FORBIDDEN"


def test_the_file_is_read_again(server):
    api = lambda key: server.api(key).get("/sandboxes").status
    try:
        write_tenants(server.directory, TENANTS + '[[tenants]]\nname="c"\nnamespace="c"\napi_keys=["key-c"]\n')
        eventually(lambda: api("key-c") == 200, 20, what="the new key")
        write_tenants(server.directory, "[[tenants]]\nname = 1\n")
        eventually(lambda: "what it said before stays" in server.log.read_text(), 20, what="the complaint")
        assert api("key-c") == 200
        (server.directory / ".opensandbox" / "tenants.toml").unlink()
        eventually(lambda: api("key-c") == 401, 20, what="the end of all keys")
        assert api("key-a") == 401
    finally:
        write_tenants(server.directory)
        eventually(lambda: api("key-a") == 200, 20, what="the old keys")


def test_whose_a_sandbox_is_survives_a_restart(server, owned):
    server.kill()
    server.start()
    assert server.api("key-a").get(f"/sandboxes/{owned}").status == 200
    assert server.api("key-b").get(f"/sandboxes/{owned}").status == 404


def test_a_key_of_the_server_and_tenants_exclude_each_other(server, tmp_path):
    config = tmp_path / "both.toml"
    config.write_text('[server]\napi_key = "x"\n[tenants]\nprovider = "file"\n')
    refused = run(EXECUTABLE, "serve", "--config", config, check=False)
    assert refused.returncode == 1
    assert "tenants: must be absent" in refused.stderr
    config.write_text(f'[native]\nstate_dir = "{tmp_path}/state"\n[tenants]\n')
    refused = subprocess.run(
        [EXECUTABLE, "serve", "--config", config, "--port", "0"], capture_output=True, text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, timeout=60,
    )
    assert refused.returncode == 1 and "tenants.toml" in refused.stderr


@pytest.fixture
def provider():
    """A service that knows one tenant."""
    answers = {"key-h": (200, {"namespace": "remote", "ttl": 0})}
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            seen.append(dict(self.headers))
            status, body = answers.get(self.headers.get("OPEN-SANDBOX-API-KEY"), (401, {}))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=service.serve_forever, daemon=True)
    thread.start()
    service.answers, service.seen = answers, seen
    yield service
    service.shutdown()
    service.server_close()
    thread.join()


def test_a_service_may_know_the_tenants(make_server, provider):
    server = make_server(
        "remote", pool_size=0, key="key-h",
        sections={"tenants": {
            "provider": "http", "endpoint": f"http://127.0.0.1:{provider.server_port}/who",
            "auth_header": "X-Auth", "auth_token": "secret", "max_stale_seconds": 0,
        }},
    )
    assert server.api("key-h").get("/sandboxes").status == 200
    assert provider.seen[-1]["X-Auth"] == "secret"
    assert server.api("nobody").get("/sandboxes").json["code"] == "INVALID_API_KEY"
    provider.answers["key-h"] = (500, {})
    down = server.api("key-h").get("/sandboxes")
    assert (down.status, down.json["code"]) == (503, "TENANT_PROVIDER_UNAVAILABLE")
    provider.answers["key-h"] = (200, {"namespace": "remote"})
    assert server.api("key-h").get("/sandboxes").status == 200
