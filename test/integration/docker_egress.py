"""The egress sidecar of the Docker runtime, which is this executable: what leaves a sandbox, with
real names and servers of a world that the test made; what happens when the sidecar dies; what is
left. What the published clients do with it is in test/conformance."""

import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.client import Http
from support.egress_world import API, DENIED, UNNAMED, DockerWorld, fetch
from support.server import Sandbox
from support.shell import eventually

ALLOW_API = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "api.example"}]}
DENY_ALL = {"defaultAction": "deny", "egress": []}

#: Connects to an address and port: "connected" or the error's number.
CONNECT = """
import errno, socket, sys
s = socket.socket()
s.settimeout(4)
code = s.connect_ex((sys.argv[1], int(sys.argv[2])))
print("connected" if code == 0 else errno.errorcode.get(code, code))
"""

RAW = """
import socket
for make in (lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW),
             lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
             lambda: socket.socket().setsockopt(socket.SOL_SOCKET, 36, 1)):
    try:
        make()
        print("made")
    except PermissionError:
        print("refused")
"""


@pytest.fixture(scope="module")
def world():
    with DockerWorld() as world:
        yield world


@pytest.fixture(scope="module")
def server(world, scratch):
    server = world.server(scratch / "docker-egress")
    try:
        yield server.start()
    finally:
        server.destroy()


def inspect(world, name):
    return json.loads(world.docker.docker("inspect", name).stdout)[0]


def guard_of(sandbox):
    return f"sandbox-egress-{sandbox.id}"


def egress_api(sandbox):
    """The sidecar's own API, as a client finds it."""
    endpoint = sandbox.endpoint(18080)
    return Http(endpoint["endpoint"], "egress", "", endpoint["headers"], 20)


def connect(sandbox, address, port):
    return sandbox.run(["python3", "-c", CONNECT, address, str(port)]).stdout.strip()


def workers(world, sandbox):
    """The processes of a sidecar's container by their ids here: the first, and those at work."""
    first = inspect(world, guard_of(sandbox))["State"]["Pid"]
    listed = world.docker.docker("top", guard_of(sandbox), "-o", "pid").stdout.split()[1:]
    return first, [int(pid) for pid in listed if int(pid) != first]


def state_of(sandbox):
    return sandbox.get().json["status"]


def test_only_what_is_allowed_leaves(server, world):
    with server.create(networkPolicy=ALLOW_API) as sandbox:
        assert fetch(sandbox, "http://api.example/allowed").startswith("200")
        assert [r["address"] for r in world.requests("/allowed")] == [API]
        # Neither by another name nor by an address, also of the same machine.
        assert "gaierror" in fetch(sandbox, "http://denied.example/denied")
        for address in (DENIED, UNNAMED):
            assert connect(sandbox, address, 80) != "connected"
        assert connect(sandbox, API, 80) == "connected"
        assert not world.requests("/denied") and not world.asked("denied.example")
        shown = server.api().get(sandbox.path("/networkpolicy")).json
        assert shown["enforcementMode"] == "dns+nft" and shown["policy"] == ALLOW_API


def test_a_name_does_not_lead_inside(server, world):
    policy = {"defaultAction": "allow", "egress": []}
    with server.create(networkPolicy=policy) as sandbox:
        assert fetch(sandbox, "http://api.example/open").startswith("200")
        assert "gaierror" in fetch(sandbox, "http://inner.example/inner")
        assert not world.requests("/inner")


def test_the_policy_changes_while_the_sandbox_runs(server, world):
    with server.create(networkPolicy=DENY_ALL) as sandbox:
        path = sandbox.path("/networkpolicy")
        reach = lambda: fetch(sandbox, "http://api.example/changing")[:3] == "200"
        assert not reach()
        rule = {"action": "allow", "target": "*.example"}
        assert server.api().patch(path, [rule]).status == 200
        assert reach()
        assert server.api().get(path).json["policy"]["egress"] == [rule]
        assert server.api().delete(path, body=["*.EXAMPLE"]).status == 200
        assert not reach() and connect(sandbox, API, 80) != "connected"
        assert server.api().put(path, ALLOW_API).status == 200
        assert reach()
        bad = server.api().put(path, {"egress": [{"action": "allow", "target": "http://x/"}]})
        assert bad.status == 400 and "0" in bad.text
        assert reach()


def test_ports_limit_what_is_allowed(server, world):
    rules = [{"action": "allow", "target": f"{API}/32", "ports": [443, 80]},
             {"action": "deny", "ports": [443]}]
    with server.create(networkPolicy={"defaultAction": "deny", "egress": rules}) as sandbox:
        path = sandbox.path("/networkpolicy")
        assert server.api().get(path).json["policy"]["egress"] == rules
        assert connect(sandbox, API, 80) == "connected"
        assert connect(sandbox, API, 443) != "connected"
        assert connect(sandbox, UNNAMED, 80) != "connected"
        assert server.api().delete(path, body=["ports=443"]).status == 200
        assert connect(sandbox, API, 443) == "connected"
        refused = server.api().patch(path, [{"action": "allow", "target": "api.example", "ports": [80]}])
        assert refused.status == 422, refused


def test_the_sidecar_is_this_executable_and_has_one_capability(server, world):
    with server.create(networkPolicy=DENY_ALL) as sandbox, server.create(networkPolicy=DENY_ALL):
        guard, main = inspect(world, guard_of(sandbox)), inspect(world, f"sandbox-{sandbox.id}")
        assert guard["Config"]["Image"].startswith("opensandbox-egress:")
        images = world.docker.docker("images", "-q", "opensandbox-egress").stdout.split()
        assert len(images) == 1 and server.log.read_text().count("sidecar's image made") == 1
        assert guard["HostConfig"]["CapAdd"] == ["NET_ADMIN"] and guard["HostConfig"]["CapDrop"] == ["ALL"]
        assert main["HostConfig"]["NetworkMode"] == f"container:{guard['Id']}"
        for capability in ("NET_ADMIN", "NET_RAW"):
            assert capability in main["HostConfig"]["CapDrop"]
        assert sandbox.sh("cat /proc/sys/net/ipv6/conf/*/disable_ipv6").split() == ["1"] * 4


def test_two_servers_that_make_the_image_at_once_make_one(server, world, scratch):
    other = world.server(scratch / "egress-other").start()
    images = lambda: world.docker.docker("images", "-aq").stdout.split()
    try:
        world.docker.docker("rmi", *set(world.docker.docker("images", "-q", "opensandbox-egress").stdout.split()))
        before = images()
        with ThreadPoolExecutor(4) as threads:
            made = list(threads.map(lambda s: s.create(networkPolicy=DENY_ALL), [server, other] * 2))
        assert len(images()) == len(before) + 1
        for sandbox in made:
            sandbox.delete()
    finally:
        other.destroy()


@pytest.mark.parametrize("drop", [["NET_ADMIN", "NET_RAW", "MKNOD"], []], ids=["default", "nothing"])
def test_nobody_inside_can_go_around_the_rules(world, scratch, drop):
    """Also where the operator drops no capability."""
    server = world.server(scratch / f"raw-{len(drop)}", docker={"drop_capabilities": drop}).start()
    try:
        with server.create(networkPolicy=ALLOW_API) as sandbox:
            assert sandbox.sh("id -u") == "0\n"
            assert sandbox.run(["python3", "-c", RAW]).stdout.split() == ["refused"] * 3
            assert sandbox.run("ip link set lo down").code != 0
            denied = server.api().put(sandbox.path("/networkpolicy"), DENY_ALL)
            assert denied.status == 200
            # The API answers inside, too: to nobody without the token.
            asked = fetch(sandbox, "http://127.0.0.1:18080/policy")
            assert asked.startswith("401"), asked
            token = sandbox.endpoint(18080)["headers"]["OPENSANDBOX-EGRESS-AUTH"]
            assert token not in sandbox.sh("env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    finally:
        server.destroy()


def test_requests_to_the_sidecar_do_not_pass_through_the_sandbox(server, world):
    with server.create(networkPolicy=DENY_ALL) as sandbox:
        agent, egress = (sandbox.endpoint(port)["endpoint"] for port in (44772, 18080))
        bindings = inspect(world, guard_of(sandbox))["HostConfig"]["PortBindings"]
        assert egress == f"127.0.0.1:{bindings['18080/tcp'][0]['HostPort']}" and egress != agent
        # Nothing in the sandbox answers any more: the sidecar does.
        sandbox.agent  # its address is known
        world.docker.docker("pause", f"sandbox-{sandbox.id}")
        try:
            assert egress_api(sandbox).get("/policy").json["policy"] == DENY_ALL
        finally:
            world.docker.docker("unpause", f"sandbox-{sandbox.id}")


def test_a_sidecar_killed_under_traffic_comes_back_and_lets_nothing_out(server, world):
    with server.create(networkPolicy=ALLOW_API) as sandbox:
        assert fetch(sandbox, "http://api.example/before").startswith("200")
        assert fetch(sandbox, "http://denied.example/").startswith("gaierror")
        changed = {**ALLOW_API, "egress": [*ALLOW_API["egress"], {"action": "allow", "target": "other.example"}]}
        assert server.api().put(sandbox.path("/networkpolicy"), changed).status == 200
        first, [worker] = workers(world, sandbox)
        stop, seen = threading.Event(), []

        def knock():
            while not stop.is_set():
                seen.append(connect(sandbox, DENIED, 80))

        knocking = threading.Thread(target=knock)
        knocking.start()
        try:
            killed = set()
            for _ in range(3):
                # One that was killed is listed until its first process has taken note of it.
                lives = eventually(lambda: set(workers(world, sandbox)[1]) - killed, 20, what="the next life")
                os.kill(life := lives.pop(), signal.SIGKILL)
                killed.add(life)
            healthy = lambda: egress_api(sandbox).get("/healthz").status == 200
            eventually(healthy, 20, what="the sidecar's return")
        finally:
            stop.set()
            knocking.join()
        assert seen and "connected" not in seen
        assert workers(world, sandbox)[0] == first and workers(world, sandbox)[1] != [worker]
        # The policy is what it was changed to; what was learned, and what is to be learned, works.
        assert server.api().get(sandbox.path("/networkpolicy")).json["policy"] == changed
        assert fetch(sandbox, "http://other.example/after").startswith("200")
        assert fetch(sandbox, "http://api.example/after").startswith("200")
        assert "gaierror" in fetch(sandbox, "http://denied.example/x")
        assert state_of(sandbox)["state"] == "Running"
        assert "started again" in world.docker.docker("logs", guard_of(sandbox)).stdout


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_a_sandbox_ends_with_its_sidecars_container(server, world, paused):
    with server.create(networkPolicy={"defaultAction": "allow", "egress": []}) as sandbox:
        if paused:
            assert server.api().post(sandbox.path("/pause")).status == 202
            world.docker.docker("unpause", guard_of(sandbox))
        world.docker.docker("kill", guard_of(sandbox))
        eventually(lambda: state_of(sandbox)["state"] == "Failed", 20, what="the sandbox's end")
        status = state_of(sandbox)
        assert status["reason"] == "EGRESS_SIDECAR_LOST" and "sidecar" in status["message"]
        assert not inspect(world, f"sandbox-{sandbox.id}")["State"]["Running"]


def test_a_sidecar_lost_while_no_server_ran_is_noticed(world, scratch):
    server = world.server(scratch / "egress-lost").start()
    try:
        lost, restarted, kept = (server.create(networkPolicy=ALLOW_API) for _ in range(3))
        egress = kept.endpoint(18080)
        server.kill()
        world.docker.docker("kill", guard_of(lost))
        world.docker.docker("restart", "-t", "0", guard_of(restarted))
        server.start()
        for sandbox in (lost, restarted):
            eventually(lambda: state_of(sandbox)["reason"] == "EGRESS_SIDECAR_LOST", 20, what="the news")
            stopped = lambda: not inspect(world, f"sandbox-{sandbox.id}")["State"]["Running"]
            eventually(stopped, 20, what="the container's end")
        assert state_of(kept)["state"] == "Running" and kept.endpoint(18080) == egress
        assert fetch(kept, "http://api.example/kept").startswith("200")
        assert server.api().get(kept.path("/networkpolicy")).json["policy"] == ALLOW_API
    finally:
        server.destroy()


def test_pause_and_resume(server, world):
    with server.create(networkPolicy=ALLOW_API) as sandbox:
        assert server.api().post(sandbox.path("/pause")).status == 202
        assert inspect(world, guard_of(sandbox))["State"]["Paused"]
        assert server.api().get(sandbox.path("/networkpolicy")).status == 502
        assert server.api().post(sandbox.path("/resume")).status == 202
        assert fetch(sandbox, "http://api.example/resumed").startswith("200")
        assert connect(sandbox, DENIED, 80) != "connected"


def keep(server, sandbox):
    snapshot = server.api().post(sandbox.path("/snapshots"), {}).json["id"]
    ready = lambda: server.api().get(f"/snapshots/{snapshot}").json["status"]["state"] == "Ready"
    eventually(ready, 60, 0.1, "the snapshot")
    return snapshot


def start(server, snapshot, **fields):
    reply = server.api().post("/sandboxes", {"snapshotId": snapshot, "resourceLimits": {}, "timeout": 600, **fields})
    assert reply.status == 202, reply
    return Sandbox(server, reply.json)


def test_a_snapshot_has_nothing_of_the_sidecar(server, world):
    with server.create(networkPolicy=ALLOW_API, credentialProxy={"enabled": True}) as sandbox:
        token = sandbox.endpoint(18080)["headers"]["OPENSANDBOX-EGRESS-AUTH"]
        snapshot = keep(server, sandbox)
    name = f"opensandbox-snapshots:{snapshot}"
    # Older engines keep the source's own settings beside those of the image; nobody runs by them.
    settings = json.dumps(inspect(world, name)["Config"])
    assert token not in settings and "MITMPROXY_TRANSPARENT=true" not in settings
    # One that asks for less than its source waits for no certificate.
    with start(server, snapshot, networkPolicy=ALLOW_API) as copy:
        assert copy.sh("echo $SSL_CERT_FILE; echo works") == "\nworks\n"
        assert copy.endpoint(18080)["headers"]["OPENSANDBOX-EGRESS-AUTH"] != token
    assert server.api().delete(f"/snapshots/{snapshot}").status == 204


def test_what_starts_from_a_snapshot_is_guarded_as_its_source_was_then(server, world):
    rules = [{"action": "allow", "target": UNNAMED, "ports": [80]}, {"action": "deny", "target": "denied.example"}]
    with server.create(networkPolicy=DENY_ALL, credentialProxy={"enabled": True}) as sandbox:
        assert egress_api(sandbox).request("PATCH", "/policy", body=rules).status == 200
        snapshot = keep(server, sandbox)
        # What came later is no part of it.
        assert egress_api(sandbox).request("DELETE", "/policy", body=[UNNAMED]).status == 200
    with start(server, snapshot) as copy:
        assert copy.get().json["credentialProxy"] == {"interceptionMode": "all"}
        assert connect(copy, UNNAMED, 80) == "connected"
        assert connect(copy, API, 80) != "connected"
        assert server.api().get(copy.path("/networkpolicy")).json["policy"] == {
            "defaultAction": "deny", "egress": rules}
        assert copy.sh("test -s $SSL_CERT_FILE && echo trusted") == "trusted\n"
        again = keep(server, copy)
    with start(server, again) as third:
        assert connect(third, UNNAMED, 80) == "connected"
        assert connect(third, API, 80) != "connected"
    with start(server, snapshot, networkPolicy={"defaultAction": "allow"}) as other:
        assert connect(other, API, 80) == "connected"
        assert "credentialProxy" not in other.get().json
    for kept in (again, snapshot):
        assert server.api().delete(f"/snapshots/{kept}").status == 204


def test_settings_of_the_sidecar_come_back_with_a_snapshot(server, world):
    setting = {"OPENSANDBOX_EGRESS_METRICS_EXTRA_ATTRS": "team=a$HOME \"b\" \\n"}
    with server.create(networkPolicy=ALLOW_API, env=setting) as sandbox:
        snapshot = keep(server, sandbox)
    with start(server, snapshot) as copy:
        (name, value), = setting.items()
        assert f"{name}={value}" in inspect(world, guard_of(copy))["Config"]["Env"]
        assert fetch(copy, "http://api.example/settings").startswith("200")
    assert server.api().delete(f"/snapshots/{snapshot}").status == 204


def test_a_snapshot_whose_policy_cannot_be_read_starts_nothing(server, world):
    with server.create(networkPolicy=ALLOW_API) as sandbox:
        snapshot = keep(server, sandbox)
    name, before = f"opensandbox-snapshots:{snapshot}", server.count()
    container = world.docker.docker("create", name).stdout.strip()
    world.docker.docker("commit", "-c", "LABEL opensandbox.io/snapshot-egress={}", container, name)
    world.docker.docker("rm", container)
    reply = server.api().post("/sandboxes", {"snapshotId": snapshot, "resourceLimits": {}, "timeout": 600})
    assert (reply.status, reply.json["code"]) == (500, "DOCKER::SANDBOX_START_FAILED"), reply
    assert "egress has no policy" in reply.json["message"]
    assert server.count()["containers"] == before["containers"]
    assert server.api().delete(f"/snapshots/{snapshot}").status == 204


def test_nothing_is_left_but_the_image(server, world):
    before = server.count()
    with server.create(networkPolicy=ALLOW_API, credentialProxy={"enabled": True}) as sandbox:
        assert server.count()["containers"] != before["containers"]
        sandbox.delete()
    after = server.count()
    for kind in ("containers", "volumes", "images", "networks"):
        assert after[kind] == before[kind], kind


def test_a_sidecar_that_cannot_start_fails_the_create_at_once(server):
    before = server.count()
    body = {"image": {"uri": server.image}, "entrypoint": ["sleep", "1000"], "timeout": 600,
            "resourceLimits": {}, "networkPolicy": DENY_ALL,
            "env": {"OPENSANDBOX_EGRESS_MITMPROXY_EXTRA_PORTS": "no-port"}}
    reply = server.api(timeout=20).post("/sandboxes", body)
    assert (reply.status, reply.json["code"]) == (500, "DOCKER::SANDBOX_START_FAILED"), reply
    assert "MITMPROXY_EXTRA_PORTS" in reply.json["message"]
    refused = server.api().post("/sandboxes", {**body, "env": {"OPENSANDBOX_EGRESS_MODE": "dns"}})
    assert (refused.status, refused.json["code"]) == (400, "SANDBOX::INVALID_PARAMETER")
    after = server.count()
    assert after["containers"] == before["containers"] and after["volumes"] == before["volumes"]


def test_the_mode_is_the_operators(world, scratch):
    server = world.server(scratch / "egress-dns", egress={"mode": "dns"}).start()
    try:
        with server.create(networkPolicy=ALLOW_API) as sandbox:
            assert server.api().get(sandbox.path("/networkpolicy")).json["enforcementMode"] == "dns"
            # Names only: the contract's own mode knows of no addresses.
            assert "gaierror" in fetch(sandbox, "http://denied.example/x")
            assert connect(sandbox, DENIED, 80) == "connected"
        body = {"image": {"uri": server.image}, "entrypoint": ["sleep", "1"], "resourceLimits": {},
                "networkPolicy": ALLOW_API, "credentialProxy": {"enabled": True}}
        refused = server.api().post("/sandboxes", body)
        assert (refused.status, refused.json["code"]) == (400, "SANDBOX::INVALID_PARAMETER")
        assert "dns+nft" in refused.json["message"]
    finally:
        server.destroy()


def test_programs_of_the_sandbox_trust_the_interception(server, world):
    with server.create(networkPolicy=ALLOW_API, credentialProxy={"enabled": True}) as sandbox:
        assert fetch(sandbox, "https://api.example/intercepted").startswith("200")
        [request] = world.requests("/intercepted")
        assert request["tls"] and request["address"] == API
        shown = dict(line.split("=", 1) for line in sandbox.sh("env").splitlines() if "=" in line)
        assert shown["NODE_EXTRA_CA_CERTS"] == "/opt/opensandbox/mitmproxy-ca-cert.pem"
        merged = "/opt/opensandbox/merged-ca-certificates.pem"
        assert shown["SSL_CERT_FILE"] == shown["REQUESTS_CA_BUNDLE"] == merged
        bundle, own = sandbox.sh(f"cat {merged}"), sandbox.sh(f"cat {shown['NODE_EXTRA_CA_CERTS']}")
        assert bundle.endswith(own) and bundle.count("BEGIN CERTIFICATE") > own.count("BEGIN CERTIFICATE")
        # The authority's key is not where the sandbox is.
        assert "PRIVATE KEY" not in sandbox.sh("cat /opt/opensandbox/*.pem")


def test_interception_survives_the_sidecars_death(server, world):
    with server.create(networkPolicy=ALLOW_API, credentialProxy={"enabled": True}) as sandbox:
        own = sandbox.sh("cat /opt/opensandbox/mitmproxy-ca-cert.pem")
        # What somebody inside leaves where the certificate is written leads nowhere.
        sandbox.sh("cd /opt/opensandbox && ln -s /etc/resolv.conf mitmproxy-ca-cert.pem.new")
        os.kill(workers(world, sandbox)[1][0], signal.SIGKILL)
        eventually(lambda: fetch(sandbox, "https://api.example/again").startswith("200"), 30, 0.2,
                   "interception after a death")
        assert sandbox.sh("cat /opt/opensandbox/mitmproxy-ca-cert.pem") == own
