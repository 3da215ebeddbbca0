"""HTTPS that is intercepted only where a credential is bound to the host: everything else meets its
server's own certificate, is judged by the policy all the same, and gets no credential."""

import os
import signal

import pytest

from integration.egress_interception import FETCH_TRUSTING, attempt, path
from support.client import Http
from support.egress_world import API, DENIED, OTHER, PASSED, DockerWorld, NativeWorld, fetch
from support.server import Sandbox
from support.shell import eventually

POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "api.example"},
                                              {"action": "allow", "target": "*.sub.example"},
                                              {"action": "allow", "target": "passed.example"},
                                              {"action": "allow", "target": "other.example"},
                                              {"action": "allow", "target": OTHER}]}
BOUND = {"enabled": True, "interceptionMode": "credential-bound"}
#: What is told of it.
BOUND_MODE = {"interceptionMode": "credential-bound"}
#: The operator's.
SETTINGS = {"OPENSANDBOX_EGRESS_MITMPROXY_PASSTHROUGH_HOSTS": '["passed.example"]'}
SECRET = "the-secret-of-the-vault"

WORLDS = {"native": NativeWorld, "docker": DockerWorld}


@pytest.fixture(scope="module", params=WORLDS)
def place(request, scratch):
    with WORLDS[request.param]() as world:
        server = world.server(scratch / f"bound-{request.param}", **{"egress.environment": SETTINGS})
        try:
            server.start()
            yield server, world
        finally:
            server.destroy()


@pytest.fixture
def sandbox(place):
    server, world = place
    with server.create(networkPolicy=POLICY, credentialProxy=BOUND) as sandbox:
        sandbox.agent.write("/tmp/authority.pem", world.authority.read_bytes())
        yield sandbox


def binding(name, *hosts, **match):
    return {"name": name, "match": {"hosts": list(hosts), **match},
            "auth": {"type": "bearer", "credential": "key"}}


def vault(*bindings):
    return {"credentials": [{"name": "key", "source": {"value": SECRET}}], "bindings": list(bindings)}


def api_of(sandbox):
    endpoint = sandbox.endpoint(18080)
    return Http(endpoint["endpoint"], "egress", "", endpoint["headers"], 20)


def direct(sandbox, url):
    """What a program reads that trusts the servers' own authority alone."""
    return sandbox.run(["python3", "-c", FETCH_TRUSTING, url, "/tmp/authority.pem"]).stdout.strip()


def sent(world, asked):
    """The credentials that arrived with the requests for a path."""
    return [r["headers"].get("Authorization") for r in world.requests(asked)]


def passed(sandbox, reason):
    wanted = f'decision="passthrough",reason="{reason}"'
    lines = [line for line in api_of(sandbox).get("/metrics").text.splitlines()
             if line.startswith("egress_mitm_tls_connections_total") and wanted in line]
    return int(lines[0].rsplit(" ", 1)[1]) if lines else 0


def state(sandbox):
    for line in api_of(sandbox).get("/metrics").text.splitlines():
        if line.startswith("egress_credential_vault_state{") and line.endswith(" 1"):
            return line.split('state="')[1].split('"')[0]


def test_only_hosts_with_a_credential_are_intercepted(place, sandbox):
    _, world = place
    assert state(sandbox) == "active-empty"
    before, after, there = path(), path(), path()
    assert direct(sandbox, f"https://api.example{before}") == "200"
    assert api_of(sandbox).post("/credential-vault", vault(binding("api", "api.example"))).status == 201
    assert state(sandbox) == "active"
    # From the next connection on.
    assert "CERTIFICATE_VERIFY_FAILED" in direct(sandbox, f"https://api.example{path()}")
    assert fetch(sandbox, f"https://api.example{after}").startswith("200")
    assert direct(sandbox, f"https://deep.sub.example{there}") == "200"
    assert (sent(world, before), sent(world, after), sent(world, there)) == \
        ([None], [f"Bearer {SECRET}"], [None])
    assert passed(sandbox, "no_binding_host") == 2


def test_a_change_of_the_vault_counts_at_once_and_names_its_revision(place, sandbox):
    _, world = place
    api = api_of(sandbox)
    assert api.post("/credential-vault", vault(binding("api", "api.example"))).status == 201
    add = {"bindings": {"add": [binding("sub", "*.sub.example")]}}
    blind = api.patch("/credential-vault", add)
    assert blind.status == 409 and "expectedRevision" in blind.text, blind
    assert direct(sandbox, f"https://deep.sub.example{path()}") == "200"
    assert api.patch("/credential-vault", {"expectedRevision": 1, **add}).json["revision"] == 2
    with_credential, without = path(), path()
    assert fetch(sandbox, f"https://deep.sub.example{with_credential}").startswith("200")
    away = {"expectedRevision": 2, "bindings": {"delete": ["sub"]}}
    assert api.patch("/credential-vault", away).status == 200
    assert direct(sandbox, f"https://deep.sub.example{without}") == "200"
    assert (sent(world, with_credential), sent(world, without)) == ([f"Bearer {SECRET}"], [None])
    assert api.delete("/credential-vault").status == 204
    assert direct(sandbox, f"https://api.example{path()}") == "200"
    assert state(sandbox) == "active-empty"


def test_fronting_gets_no_credential(place, sandbox):
    _, world = place
    assert api_of(sandbox).post("/credential-vault", vault(binding("api", "api.example"))).status == 201
    for name in ("api.example", "deep.sub.example", "other.example"):
        assert fetch(sandbox, f"http://{name}{path()}").startswith("200")  # the address is open
    asked = path()
    assert attempt(sandbox, API, name="deep.sub.example", host="api.example", path=asked) == "200"
    assert sent(world, asked) == [None]
    asked = path()
    assert attempt(sandbox, API, name="api.example", host="deep.sub.example", path=asked) == "421"
    # Without a name only a rule for the address lets it out; that a name led there has it pass by the
    # interceptor.
    assert attempt(sandbox, OTHER, name="", host="api.example", path=asked) == "200"
    assert sent(world, asked) == [None]
    assert passed(sandbox, "no_sni") == 1, api_of(sandbox).get("/metrics").text
    # In clear the credential is for https alone.
    plain = path()
    assert fetch(sandbox, f"http://api.example{plain}").startswith("200")
    assert sent(world, plain) == [None]


@pytest.mark.parametrize("address, name", [(API, "denied.example"), (DENIED, "denied.example"), (API, ""),
                                           (DENIED, "api.example"), (PASSED, "deep.sub.example")])
def test_what_is_not_read_is_judged(place, sandbox, address, name):
    _, world = place
    for host in ("api.example", "passed.example", "deep.sub.example"):
        assert direct(sandbox, f"https://{host}{path()}") == "200"
    asked = path()
    outcome = attempt(sandbox, address, name=name, host=name or "api.example", path=asked)
    arrived = [r["address"] for r in world.requests(asked)]
    if name in ("api.example", "deep.sub.example") and arrived:
        # The interceptor goes where the name leads, not where the program sent it.
        assert arrived == [API], outcome
    else:
        assert not arrived and outcome in ("ECONNREFUSED", "ECONNRESET", "EPERM", "tls", "closed"), outcome
    assert not fetch(sandbox, f"http://denied.example{asked}").startswith("200")


def test_what_the_operator_lists_has_no_credentials(place, sandbox):
    refused = api_of(sandbox).post("/credential-vault", vault(binding("api", "api.example", "passed.example")))
    assert refused.status == 400 and "passed.example are not intercepted" in refused.text, refused
    assert direct(sandbox, f"https://passed.example{path()}") == "200"
    assert passed(sandbox, "static_ignore") == 1
    off_port = vault(binding("api", "api.example", schemes=["https"], ports=[80]))
    assert api_of(sandbox).post("/credential-vault", off_port).status == 400


def test_the_mode_is_told_and_kept(place, sandbox):
    server, _ = place
    assert sandbox.get().json["credentialProxy"] == BOUND_MODE
    with server.create(networkPolicy=POLICY, credentialProxy={"enabled": True}) as other:
        assert other.get().json["credentialProxy"] == {"interceptionMode": "all"}
    with server.create(networkPolicy=POLICY) as other:
        assert "credentialProxy" not in other.get().json
    server.stop()
    server.start()
    assert sandbox.get().json["credentialProxy"] == BOUND_MODE
    assert direct(sandbox, f"https://api.example{path()}") == "200"
    body = {"image": {"uri": server.image}, "entrypoint": ["sleep", "1"], "timeout": 60,
            "resourceLimits": {}, "networkPolicy": POLICY}
    for proxy, env in (({"enabled": True, "interceptionMode": "none"}, {}),
                       ({"enabled": False, "interceptionMode": "all"}, {}),
                       ({"interceptionMode": "credential-bound"}, {}),
                       (BOUND, {"OPENSANDBOX_EGRESS_MITMPROXY_EXTRA_PORTS": "8443"}),
                       ({"enabled": True}, {"OPENSANDBOX_EGRESS_MITMPROXY_INTERCEPTION_MODE": "all"})):
        refused = server.api().post("/sandboxes", {**body, "credentialProxy": proxy, "env": env})
        assert refused.status in (400, 422), refused
        assert "interceptionMode" in refused.text or "OPENSANDBOX_EGRESS" in refused.text, refused


@pytest.mark.parametrize("place", ["native"], indirect=True, scope="module")
def test_a_copy_and_a_snapshot_are_intercepted_as_their_source_is(place, sandbox):
    server, world = place
    assert api_of(sandbox).post("/credential-vault", vault(binding("api", "api.example"))).status == 201
    reply = server.api().post(sandbox.path("/fork"), {"count": 1})
    assert reply.status in (200, 201, 202), reply
    with Sandbox(server, reply.json["items"][0]) as copy:
        assert copy.get().json["credentialProxy"] == BOUND_MODE
        # It has no credentials, and no binding that would have its connections read.
        assert state(copy) == "active-empty"
        assert direct(copy, f"https://api.example{path()}") == "200"
        assert api_of(copy).post("/credential-vault", vault(binding("api", "api.example"))).status == 201
        asked = path()
        assert fetch(copy, f"https://api.example{asked}").startswith("200")
        assert sent(world, asked) == [f"Bearer {SECRET}"]
    snapshot = server.api().post(sandbox.path("/snapshots"), {}).json["id"]
    ready = lambda: server.api().get(f"/snapshots/{snapshot}").json["status"]["state"] == "Ready"
    eventually(ready, 60, 0.1, "the snapshot")
    reply = server.api().post("/sandboxes", {"snapshotId": snapshot, "resourceLimits": {}, "timeout": 600})
    assert reply.status == 202 and reply.json["credentialProxy"] == BOUND_MODE, reply
    with Sandbox(server, reply.json) as restored:
        assert direct(restored, f"https://api.example{path()}") == "200"
        assert passed(restored, "no_binding_host") == 1
    assert server.api().delete(f"/snapshots/{snapshot}").status == 204
    assert sandbox.get().json["status"]["state"] == "Running"


def test_a_pause_leaves_the_mode_and_the_vault(place, sandbox):
    server, world = place
    assert api_of(sandbox).post("/credential-vault", vault(binding("api", "api.example"))).status == 201
    assert server.api().post(sandbox.path("/pause")).status == 202
    assert server.api().post(sandbox.path("/resume")).status == 202
    asked = path()
    assert fetch(sandbox, f"https://api.example{asked}").startswith("200")
    assert sent(world, asked) == [f"Bearer {SECRET}"]
    assert direct(sandbox, f"https://deep.sub.example{path()}") == "200"


def test_a_vault_that_was_lost_lets_nothing_pass_by_name(place, sandbox):
    """What enforces dies, and its successor cannot know what was bound."""
    server, world = place
    api = api_of(sandbox)
    document = vault(binding("api", "api.example"))
    assert api.post("/credential-vault", document).status == 201
    os.kill(enforcing(server, world, sandbox), signal.SIGKILL)
    eventually(lambda: answers(api) == 503, 30, 0.1, "what enforces after a death")
    assert "CREDENTIAL_REVISION_INDETERMINATE" in api.get("/credential-vault").text
    assert api.patch("/credential-vault", {"expectedRevision": 1}).status == 503
    assert state(sandbox) == "bootstrapping"
    asked = path()
    for name in ("api.example", "deep.sub.example"):
        assert not direct(sandbox, f"https://{name}{asked}").startswith("200")
        assert not fetch(sandbox, f"https://{name}{asked}").startswith("200")
    assert world.requests(asked) == []
    assert direct(sandbox, f"https://passed.example{path()}") == "200"
    assert api.post("/credential-vault", document).status == 201
    assert fetch(sandbox, f"https://api.example{asked}").startswith("200")
    assert sent(world, asked) == [f"Bearer {SECRET}"]
    assert direct(sandbox, f"https://deep.sub.example{path()}") == "200"


def answers(api):
    try:
        return api.get("/credential-vault").status
    except OSError:
        return None


def enforcing(server, world, sandbox):
    if isinstance(world, NativeWorld):
        from integration.native_egress import enforcer_of
        return enforcer_of(server)
    from integration.docker_egress import workers
    return workers(world, sandbox)[1][0]
