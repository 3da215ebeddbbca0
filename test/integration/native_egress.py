"""Egress control and the life of native sandboxes: who guards them, over what it holds, and that
nothing of it is left."""

import json
import os
import signal
from pathlib import Path

import pytest

from support.client import Http
from support.egress_internet import DENIED, DIRECT, GOOD, Internet
from support.server import Sandbox, Server, children_of, stop_spawner
from support.shell import eventually, run

POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "good.example"}]}

TRY = """
import errno, json, socket, sys
out = []
for target in sys.argv[1:]:
    try:
        socket.create_connection((target, 80), 5).close()
        out.append("open")
    except socket.gaierror:
        out.append("no name")
    except OSError as e:
        out.append(errno.errorcode.get(e.errno, str(e)))
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def internet():
    with Internet() as internet:
        yield internet


@pytest.fixture
def server(internet, tmp_path):
    server = Server(tmp_path / "native", pool_size=2, launcher=internet.launcher())
    server.start()
    yield server
    server.destroy()


def guarded(server, policy=None, **fields):
    return server.create(networkPolicy=policy or POLICY, **fields)


def tried(sandbox, *targets):
    done = sandbox.connect().run(["python3", "-c", TRY, *targets])
    assert done.code == 0, done
    return json.loads(done.stdout)


def api_of(sandbox):
    endpoint = sandbox.endpoint(18080)
    return Http(endpoint["endpoint"], "egress", "", endpoint["headers"], 20)


def enforcer_of(server):
    for pid in children_of(server.spawner()):
        if Path(f"/proc/{pid}/comm").read_text().strip() == "osb-enforcer":
            return pid
    return None


def tables():
    return run("nft", "list", "tables").stdout


def test_each_sandbox_has_its_own_policy_and_others_have_none(server):
    with guarded(server) as one, guarded(server, {"defaultAction": "allow", "egress": []}) as two, \
            server.create() as three:
        assert tried(one, "good.example", "denied.example", DENIED) == ["open", "no name", "ECONNREFUSED"]
        assert tried(two, "good.example", "denied.example", DENIED) == ["open", "open", "open"]
        assert tried(three, DENIED) == ["open"]
        reply = Http(one.endpoint(18080)["endpoint"]).get("/policy", check=False)
        assert reply.status == 401
        foreign = Http(one.endpoint(18080)["endpoint"], headers=two.endpoint(18080)["headers"])
        assert foreign.get("/policy", check=False).status == 401
        unguarded = server.api().get(three.path("/networkpolicy"))
        assert unguarded.status == 502, unguarded


def test_the_policy_is_changed_by_the_server_and_at_the_sandboxs_port(server):
    with guarded(server) as sandbox:
        reply = server.api().patch(sandbox.path("/networkpolicy"),
                                   [{"action": "allow", "target": DIRECT}])
        assert reply.status == 200, reply
        assert tried(sandbox, DIRECT, "good.example") == ["open", "open"]
        reply = api_of(sandbox).post("/policy", {"defaultAction": "deny", "egress": []})
        assert reply.status == 200, reply
        assert tried(sandbox, DIRECT, GOOD, "good.example") == ["ECONNREFUSED", "ECONNREFUSED", "no name"]


def test_a_wrong_policy_makes_no_sandbox(server):
    with guarded(server):  # what the first one makes stays
        pass
    before = server.census()
    reply = server.api().post("/sandboxes", {
        "image": {"uri": "host"}, "entrypoint": ["true"], "resourceLimits": {"cpu": "1", "memory": "64Mi"},
        "timeout": 60,
        "networkPolicy": {"egress": [{"action": "allow", "target": "good.example"},
                                     {"action": "allow", "target": "https://bad.example/"}]}})
    assert reply.status == 400, reply
    assert "egress[1].target" in reply.json["message"], reply
    server.expect_census(before)


def test_nothing_of_a_guarded_sandbox_is_left(server):
    with guarded(server):
        pass
    before = server.census()
    sandboxes = [guarded(server) for _ in range(6)]
    for sandbox in sandboxes:
        assert tried(sandbox, "good.example") == ["open"]
    for sandbox in sandboxes:
        sandbox.delete()
    server.expect_census(before)
    assert not [p for p in (server.state / "egress").iterdir() if p.name != "authority"]
    server.stop()
    stop_spawner(server.state)
    assert "_egress" not in tables()


def test_it_holds_over_a_restart_of_the_server(server):
    sandbox = guarded(server)
    endpoint = sandbox.endpoint(18080)
    server.kill()
    assert tried_without_server(sandbox, endpoint) == "deny"
    server.start()
    assert sandbox.endpoint(18080) == endpoint
    assert tried(sandbox, "good.example", DENIED) == ["open", "ECONNREFUSED"]


def tried_without_server(sandbox, endpoint):
    reply = Http(endpoint["endpoint"], "egress", "", endpoint["headers"], 20).get("/policy")
    return reply.json["policy"]["defaultAction"]


@pytest.mark.parametrize("whom", ["enforcer", "spawner"])
def test_it_holds_over_the_death_of(server, internet, whom):
    sandbox = guarded(server)
    endpoint = sandbox.endpoint(18080)
    assert api_of(sandbox).patch("/policy", [{"action": "allow", "target": DIRECT}]).status == 200
    assert tried(sandbox, "good.example", DIRECT) == ["open", "open"]
    arrived = internet.arrived(DENIED)
    killed = enforcer_of(server) if whom == "enforcer" else server.spawner()
    os.kill(killed, signal.SIGKILL)
    for _ in range(10):
        assert tried(sandbox, DENIED) == ["ECONNREFUSED"]
    eventually(lambda: server.spawner() and enforcer_of(server) not in (None, killed), 20, 0.05,
               "another enforcer")
    eventually(lambda: tried(sandbox, "good.example") == ["open"], 20, 0.1, "names")
    # What the API changed holds, not what the create said.
    assert tried(sandbox, DIRECT, DENIED) == ["open", "ECONNREFUSED"]
    assert internet.arrived(DENIED) == arrived
    assert sandbox.endpoint(18080) == endpoint
    assert DIRECT in str(api_of(sandbox).get("/policy").json)


def test_a_copy_is_guarded_as_its_source_is_then(server):
    sandbox = guarded(server)
    assert api_of(sandbox).post("/policy", {"defaultAction": "deny", "egress": [
        {"action": "allow", "target": DIRECT}]}).status == 200
    reply = server.api(timeout=120).post(sandbox.path("/fork"), {"count": 2})
    assert reply.status == 201, reply
    copies = [Sandbox(server, item) for item in reply.json["items"]]
    for copy in copies:
        assert tried(copy, DIRECT, DENIED, "good.example") == ["open", "ECONNREFUSED", "no name"]
        assert copy.endpoint(18080)["headers"] != sandbox.endpoint(18080)["headers"]
    # From there on each has its own.
    assert api_of(copies[0]).request("DELETE", "/policy", body=[DIRECT]).status == 200
    assert tried(copies[0], DIRECT) == ["ECONNREFUSED"]
    assert tried(copies[1], DIRECT) == ["open"]
    assert tried(sandbox, DIRECT) == ["open"]


def test_the_first_packet_is_judged(server):
    """The entrypoint begins after the policy is in force."""
    script = ("import socket,time\n"
              f"try: socket.create_connection(('{DENIED}',80),2); print('out',flush=True)\n"
              "except OSError as e: print('refused',flush=True)\n"
              "time.sleep(600)")
    for _ in range(5):
        with guarded(server, entrypoint=["python3", "-c", script]) as sandbox:
            def told():
                return server.api().get(sandbox.path("/diagnostics/logs"), check=False).text.strip()

            said = eventually(lambda: told() if "refused" in told() or "out" in told() else None, 20, 0.05,
                              "what the entrypoint says")
            assert "refused" in said and "out" not in said


def test_secrets_come_by_tls_as_a_trusted_proxy_says(internet, tmp_path):
    """Before the server is a proxy that ends TLS; secrets may not have come in clear before it."""
    server = Server(tmp_path / "behind", launcher=internet.launcher(), sections={
        "server": {"trusted_proxies": ["127.0.0.1"]},
        "egress.environment": {"OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_REQUIRE_TLS": "true"}})
    vault = {"credentials": [{"name": "key", "source": {"type": "inline", "value": "a secret"}}],
             "bindings": [{"name": "api", "match": {"hosts": ["good.example"]},
                           "auth": {"type": "bearer", "credential": "key"}}]}
    try:
        server.start()
        with guarded(server, credentialProxy={"enabled": True}) as sandbox:
            endpoint = sandbox.endpoint(18080, True)
            api = Http(endpoint["endpoint"], "egress", "", endpoint["headers"], 20)

            def write(**told):
                fields = {"X-Forwarded-" + name: value for name, value in told.items()}
                return api.post("/credential-vault", vault, headers=fields).status

            assert write(For="192.0.2.9") == 426
            assert write(For="192.0.2.9", Proto="http") == 426
            # What the client forged comes before what the proxy adds.
            assert write(For="127.0.0.1, 192.0.2.9", Proto="https, http") == 426
            assert write(For="192.0.2.9", Proto="https") == 201
    finally:
        server.destroy()


def test_root_inside_cannot_reach_what_enforces(server):
    with guarded(server) as sandbox:
        gateway = sandbox.address().rsplit(".", 1)[0]
        table = run("nft", "-j", "list", "ruleset").stdout
        ports = sorted({int(p) for p in _ports(table)})
        assert ports
        for port in ports:
            done = sandbox.run(["python3", "-c", "import socket,sys\n"
                                "try: socket.create_connection((sys.argv[1], int(sys.argv[2])), 3); print('open')\n"
                                "except OSError as e: print('shut')", f"{gateway}.1", str(port)])
            assert done.stdout.strip() == "shut", (port, done)


def _ports(text):
    for item in json.loads(text)["nftables"]:
        for part in item.get("rule", {}).get("expr", []):
            if "dnat" in part and "port" in part["dnat"]:
                yield part["dnat"]["port"]
