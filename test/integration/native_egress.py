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


def test_what_starts_from_a_snapshot_is_guarded_as_its_source_was_then(server):
    with guarded(server) as sandbox:
        assert api_of(sandbox).post("/policy", {"defaultAction": "deny", "egress": [
            {"action": "allow", "target": DIRECT}]}).status == 200
        snapshot = server.api().post(sandbox.path("/snapshots"), {}).json["id"]
        ready = lambda: server.api().get(f"/snapshots/{snapshot}").json["status"]["state"] == "Ready"
        eventually(ready, 60, 0.1, "the snapshot")
        # What came later is no part of it.
        assert api_of(sandbox).request("DELETE", "/policy", body=[DIRECT]).status == 200
    body = {"snapshotId": snapshot, "resourceLimits": {}, "timeout": 600}
    reply = server.api().post("/sandboxes", body)
    assert reply.status == 202, reply
    with Sandbox(server, reply.json) as copy:
        assert tried(copy, DIRECT, DENIED, "good.example") == ["open", "ECONNREFUSED", "no name"]
        # It has an API of its own, and so has what is kept of it.
        assert DIRECT in str(api_of(copy).get("/policy").json)
        again = server.api().post(copy.path("/snapshots"), {}).json["id"]
        ready_again = lambda: server.api().get(f"/snapshots/{again}").json["status"]["state"] == "Ready"
        eventually(ready_again, 60, 0.1, "the snapshot of the copy")
    for start, expected in (({"snapshotId": again}, ["open", "ECONNREFUSED"]),
                            ({"networkPolicy": {"defaultAction": "allow"}}, ["open", "open"])):
        reply = server.api().post("/sandboxes", {**body, **start})
        assert reply.status == 202, reply
        with Sandbox(server, reply.json) as other:
            assert tried(other, DIRECT, DENIED) == expected
    for made in (again, snapshot):
        assert server.api().delete(f"/snapshots/{made}").status == 204


PORTS = [{"action": "allow", "target": "203.0.113.0/24", "ports": [443, 8080]},
         {"action": "allow", "ports": [80]}, {"action": "deny", "target": DENIED, "ports": [80]}]

#: Whether each of host:port takes a connection.
OPEN = """
import json, socket, sys
out = []
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 5).close()
        out.append(True)
    except OSError:
        out.append(False)
print(json.dumps(out))
"""


def opens(sandbox, *targets):
    done = sandbox.connect().run(["python3", "-c", OPEN, *targets])
    assert done.code == 0, done
    return json.loads(done.stdout)


def expect_ports(server, sandbox):
    shown = server.api().get(sandbox.path("/networkpolicy")).json["policy"]
    assert shown == {"defaultAction": "deny", "egress": PORTS}
    assert opens(sandbox, f"{GOOD}:443", f"{GOOD}:80", f"{DIRECT}:80", f"{DIRECT}:443", f"{DENIED}:443",
                 f"{DENIED}:80", "169.254.169.254:80") == [True, True, True, False, True, False, False]


def test_ports_hold_from_the_create_on_in_copies_pools_and_a_new_enforcer(server):
    policy = {"defaultAction": "deny", "egress": PORTS}
    sandbox = guarded(server, policy)
    expect_ports(server, sandbox)
    reply = server.api(timeout=120).post(sandbox.path("/fork"), {"count": 1})
    assert reply.status == 201, reply
    expect_ports(server, Sandbox(server, reply.json["items"][0]))
    killed = enforcer_of(server)
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: enforcer_of(server) not in (None, killed), 20, 0.05, "another enforcer")
    known = lambda: server.api().get(sandbox.path("/networkpolicy"), check=False).status == 200
    eventually(known, 20, 0.05, "its API")
    expect_ports(server, sandbox)
    capacity = {"bufferMin": 0, "bufferMax": 0, "poolMin": 0, "poolMax": 1}
    template = {"image": {"uri": "host"}, "networkPolicy": policy}
    made = server.api().post("/pools", {"name": "ported", "template": template, "capacitySpec": capacity})
    assert made.status == 201, made
    with server.create(extensions={"poolRef": "*"}) as pooled:
        assert pooled.get().json["allocation"]["poolRef"] == "ported"
        expect_ports(server, pooled)


def test_the_command_line_sets_and_shows_ports(server):
    with guarded(server) as sandbox:
        server.cli("egress", "patch", sandbox.id, "--rule", f"allow={DIRECT} ports=80,443",
                   "--rule", "deny=ports=443")
        shown = json.loads(server.cli("egress", "get", sandbox.id, "-o", "json").stdout)["egress"]
        assert shown[:2] == [{"action": "allow", "target": DIRECT, "ports": [80, 443]},
                             {"action": "deny", "ports": [443]}]
        assert "80 443" in server.cli("egress", "get", sandbox.id).stdout
        assert opens(sandbox, f"{DIRECT}:80", f"{DIRECT}:443") == [True, False]
        for wrong in ("ports=0", "ports=", "ports=80,", f"{DIRECT} ports=x"):
            refused = server.cli("egress", "patch", sandbox.id, "--rule", f"allow={wrong}", check=False)
            assert refused.returncode != 0 and "--rule" in refused.stderr, refused


def test_ports_that_cannot_be_meant_are_refused(server):
    def create(*rules):
        return server.api().post("/sandboxes", {
            "image": {"uri": "host"}, "entrypoint": ["true"], "resourceLimits": {}, "timeout": 60,
            "networkPolicy": {"defaultAction": "deny", "egress": list(rules)}})

    for wrong in ({"target": "good.example", "ports": [443]}, {}, {"ports": []}, {"ports": [0]},
                  {"ports": list(range(1, 258))}, {"target": DIRECT, "port": 443}):
        reply = create({"action": "allow", **wrong})
        assert reply.status == 422, (wrong, reply)
        assert reply.json["detail"][0]["loc"][:4] == ["body", "networkPolicy", "egress", 0], reply
    reply = create({"action": "allow", "target": f"{DIRECT}:80", "ports": [443]})
    assert reply.status in (400, 422) and "ports" in reply.text, reply
    with guarded(server) as sandbox:
        before = server.api().get(sandbox.path("/networkpolicy")).json
        for wrong in ({"target": "good.example", "ports": [443]}, {"target": DIRECT, "methods": ["GET"]}):
            reply = server.api().patch(sandbox.path("/networkpolicy"), [{"action": "allow", **wrong}])
            assert reply.status == 422, (wrong, reply)
            assert api_of(sandbox).request("PATCH", "/policy", body=[{"action": "allow", **wrong}]).status == 400
        assert server.api().get(sandbox.path("/networkpolicy")).json == before


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
