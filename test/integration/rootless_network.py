"""The network of an ordinary user's sandboxes: what it reaches by pasta, what it must not reach, and
what happens when pasta, or what it needs, is not there. The server runs on a host of the test's own,
with a world behind it."""

import json
import os
import signal
import socket
import sys
import threading
import urllib.request
import uuid
from pathlib import Path

import pytest

from integration.isolation import (  # noqa: F401: collected here, with this module's server
    inside, test_another_sandbox_cannot_be_reached, test_it_cannot_pretend_to_be_another_address,
    test_the_metadata_address_cannot_be_reached_while_others_can,
)
from integration.network import Stub
from support.client import Http
from support.egress_world import API, DENIED, NAMES, NativeWorld, fetch
from support.own_network import _LISTENER
from support.server import EXECUTABLE, Server, wait_gone
from support.shell import eventually, run
from support.users import Launched, tun_device

NETWORK = "opensandbox.io/network"
HOSTNAME = "opensandbox.io/hostname"
PUBLISH = "opensandbox.io/publish"
POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "api.example"}]}
#: The host's, and the world's, where a listener tells what address it sees.
OWN, OWN6, PEER, PEER6, PORT = "192.0.2.1", "2001:db8:ffff::1", "192.0.2.2", "2001:db8:ffff::2", 7000
METADATA = "169.254.169.254"
#: How the name of its process begins: it may become a passt.avx2.
PASTA = "pas"

TRY = """
import errno, json, socket, sys
out = []
for target in json.loads(sys.argv[1]):
    try:
        with socket.create_connection(tuple(target), 5) as connection:
            connection.settimeout(0.5)
            try:
                out.append("open " + connection.recv(100).decode())
            except OSError:
                out.append("open")
    except socket.gaierror:
        out.append("no name")
    except OSError as e:
        out.append(errno.errorcode.get(e.errno, type(e).__name__))
print(json.dumps(out))
"""
REFUSED = ("ECONNREFUSED", "EACCES", "EPERM", "EHOSTUNREACH", "ENETUNREACH")


class Behind(NativeWorld):
    """The world of tests of egress control, with IPv6 and a listener."""

    def _plug_in(self):
        super()._plug_in()
        for name, link, own, peer in ((self.host, "up0", OWN6, PEER6), (self.name, "eth0", PEER6, OWN6)):
            run("ip", "-n", name, "addr", "add", f"{own}/64", "dev", link, "nodad")
            run("ip", "-n", name, "-6", "route", "add", "default", "via", peer)
        self._inside("addr", "add", f"{METADATA}/32", "dev", "lo")
        self._start(sys.executable, "-c", _LISTENER, PORT)
        self.tun = tun_device(self.directory / "tun", 0o666)
        self.shut_tun = tun_device(self.directory / "shut-tun", 0o600)

    def launcher(self, user, tun=None):
        """A command that becomes a program of the user's on the host."""
        return user.launcher(
            [(tun or self.tun, "/dev/net/tun"), (self.directory / "resolv.conf", "/etc/resolv.conf")],
            "ip", "netns", "exec", self.host)


@pytest.fixture(scope="module")
def world():
    with Behind() as world:
        yield world


@pytest.fixture(scope="module")
def user(world):
    with Launched("osbnet") as user:
        user.executable = user.copy(EXECUTABLE)
        yield user
        eventually(lambda: not user.processes(), 30, 0.1, "the end of the user's processes")


@pytest.fixture(scope="module")
def make_server(world, user):
    servers = []

    def make(name, sections=None, **how):
        server = Server(user.home / name, user=user, executable=user.executable, pool_size=2,
                        sections=world._sections(sections or {}), launcher=world.launcher(user, **how))
        servers.append(server)
        return server.start()

    yield make
    for server in servers:
        if server.process.poll() is None:
            server.destroy()


@pytest.fixture(scope="module")
def server(make_server):
    server = make_server("server")
    with server.create() as sandbox:
        # pasta may be a moment later than the first sandbox.
        eventually(lambda: tried(sandbox, (PEER, PORT)) == [f"open ::ffff:{OWN}"], 20, 0.2, "the world")
    return server


def tried(sandbox, *targets):
    done = sandbox.run(["python3", "-c", TRY, json.dumps(targets)], timeout=60000)
    assert done.code == 0, done
    return json.loads(done.stdout)


def tables(server):
    return run("nsenter", f"--net=/proc/{server.spawner()}/ns/net", "nft", "list", "ruleset").stdout


class Services:
    """On every address of the host, loopback's among them; `met` are the connections they got."""

    def __enter__(self):
        self.met = []
        self.listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        return self

    def _serve(self):
        while True:
            connection, peer = self.listener.accept()
            connection.close()
            if peer[0] == "::ffff:127.0.0.99":
                return
            self.met.append(peer)

    def __exit__(self, *_):
        socket.create_connection(("127.0.0.1", self.port), source_address=("127.0.0.99", 0)).close()
        self.thread.join()
        self.listener.close()


def test_the_world_is_reached_and_sees_the_hosts_address(server, sandbox):
    assert tried(sandbox, (PEER, PORT), (PEER6, PORT), ("api.example", 80)) == [
        f"open ::ffff:{OWN}", f"open {OWN6}", "open"]
    assert json.loads(fetch(sandbox, "http://api.example/hello").split(" ", 2)[2]) == {"path": "/hello"}
    off = next(l for l in server.log.read_text(errors="replace").splitlines() if "off=" in l)
    assert "a network beyond loopback" not in off


#: Of what the peer sends from port 80, segments that only acknowledge are lost.
LATE = """table inet late {
    chain output {
        type filter hook output priority 0
        tcp sport 80 tcp flags == ack meta length 40-60 drop
    }
}"""


def test_a_peer_that_acknowledges_late_is_reached(sandbox, world):
    """As every peer beyond this machine does: here its acknowledgements come with what it answers."""
    namespace = ("ip", "netns", "exec", world.name, "nft")
    run(*namespace, "-f", "-", input=LATE)
    try:
        for _ in range(5):
            assert fetch(sandbox, "http://api.example/hello").startswith("200 ")
    finally:
        run(*namespace, "delete", "table", "inet", "late")


def test_nothing_of_it_runs_as_root(server, user):
    for name in ("osb-uplink", PASTA, "osb-resolver"):
        found = user.named(name)
        assert found, name
        for pid in found:
            ids = next(l for l in Path(f"/proc/{pid}/status").read_text().splitlines() if l.startswith("Uid:"))
            assert all(user.owns(int(uid)) for uid in ids.split()[1:]), (name, ids)


def test_services_of_the_host_are_refused(server, sandbox, world):
    gateway = server.settings["native"]["address_range"].replace(".0/20", ".1")
    with Services() as services:
        for address in (OWN, OWN6, "127.0.0.1"):
            socket.create_connection((address, services.port), 5).close()
        eventually(lambda: len(services.met) == 3, what="the control")
        targets = [OWN, OWN6, "127.0.0.1", "::1", "0.0.0.0", gateway, "169.254.77.1", "169.254.77.2"]
        outcomes = tried(sandbox, *((target, services.port) for target in targets))
        assert all(o in REFUSED for o in outcomes), list(zip(targets, outcomes))
        # Also the server's own port, and addresses that the host gets later.
        later = ("198.18.9.9", "2001:db8:9::9")
        for address in later:
            run("ip", "-n", world.host, "addr", "add", address, "dev", "lo",
                *(["nodad"] if ":" in address else []))
        eventually(lambda: all(address in tables(server) for address in later), 10, 0.05, "the new rules")
        api = int(server.address.split(":")[1])
        targets = [(address, services.port) for address in later] + [(OWN, api), (gateway, api)]
        outcomes = tried(sandbox, *targets)
        assert all(o in REFUSED for o in outcomes), list(zip(targets, outcomes))
        assert len(services.met) == 3
        for address in later:
            run("ip", "-n", world.host, "addr", "del", address + ("/128" if ":" in address else "/32"), "dev", "lo")


#: The first packet of a TCP connection.
PACKET = """
import socket, struct, sys
target, port = sys.argv[1], int(sys.argv[2])
source, there = (socket.inet_pton(socket.AF_INET6, a) for a in (sys.argv[3], target))
body = struct.pack(">HHIIBBHHH", 4711, port, 1, 0, 5 << 4, 2, 65535, 0, 0)
words = source + there + struct.pack(">IHH", len(body), 0, socket.IPPROTO_TCP) + body
total = sum(struct.unpack(f">{len(words) // 2}H", words))
while total >> 16:
    total = (total & 0xffff) + (total >> 16)
body = body[:16] + struct.pack(">H", ~total & 0xffff) + body[18:]
packet = struct.pack(">IHBB", 6 << 28, len(body), socket.IPPROTO_TCP, 64) + source + there + body
with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
    try:
        raw.sendto(packet, (target, 0))
        print("sent")
    except OSError as e:
        print(e)
"""


def test_the_hosts_loopback_is_not_reached_in_its_ipv6_guise(server, sandbox):
    """Root inside can send no such packet; the rules refuse it even from within the namespace."""
    eventually(lambda: tried(sandbox, (PEER6, PORT))[0].startswith("open"), 10, 0.1, "the way out")
    namespace = f"--net=/proc/{server.spawner()}/ns/net"
    addresses = json.loads(run("nsenter", namespace, "ip", "-j", "addr", "show", "uplink").stdout)[0]["addr_info"]
    own = next(a["local"] for a in addresses if a["family"] == "inet6" and a["scope"] == "global")
    with Services() as services:
        said = run("nsenter", namespace, sys.executable, "-c", PACKET, "::ffff:127.0.0.1",
                   str(services.port), own).stdout
        assert said == "[Errno 1] Operation not permitted\n"
        # One that got out would be a connection by the time that this one is.
        assert tried(sandbox, (PEER6, PORT))[0].startswith("open") and not services.met


def test_members_of_a_network_reach_each_other_by_name(server):
    with server.create(extensions={NETWORK: "lab", HOSTNAME: "web"}) as web, \
            server.create(extensions={NETWORK: "lab"}) as member, server.create() as stranger:
        web.sh("setsid python3 -m http.server 8000 >/dev/null 2>&1 & echo")
        eventually(lambda: tried(member, ("web", 8000))[0].startswith("open"), 15, 0.1, "the member's port")
        assert tried(stranger, ("web", 8000), (web.address(), 8000)) == ["no name", "ECONNREFUSED"]
        assert tried(member, (PEER, PORT)) == [f"open ::ffff:{OWN}"]


def test_without_a_network_there_is_the_loopback_alone(server):
    with server.create(extensions={NETWORK: "none"}) as sandbox:
        outcomes = tried(sandbox, (PEER, PORT), (OWN, PORT), ("api.example", 80))
        assert outcomes[2] == "no name" and all(o in REFUSED for o in outcomes[:2]), outcomes
        assert sandbox.sh("echo alive") == "alive\n"


def test_published_ports_lead_inside(server):
    with server.create(extensions={PUBLISH: "8000"}) as sandbox:
        sandbox.sh("mkdir /w && echo found > /w/page && cd /w && "
                   "setsid python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 & echo")
        where = sandbox.endpoint(8000)["endpoint"]
        assert "/proxy/" not in where

        def page():
            try:
                with urllib.request.urlopen(f"http://{where}/page", timeout=5) as reply:
                    return reply.read()
            except OSError:
                return None

        assert eventually(page, 15, 0.1, "the page") == b"found\n"


def test_names_come_from_a_resolver_on_the_hosts_loopback(server, sandbox, world):
    """As many hosts have it: neither sandboxes nor egress control could ask it themselves."""
    settings = world.directory / "resolv.conf"
    before = settings.read_text()
    code = "import socket; print(socket.gethostbyname('stubbed.example'))"
    policy = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "stubbed.example"}]}
    stub = Stub()
    try:
        settings.write_text(f"nameserver {Stub.address}\n")
        with server.create(networkPolicy=policy) as guarded:
            for asking in (sandbox, guarded):
                eventually(lambda: asking.run(["python3", "-c", code]).stdout == "192.0.2.53\n", 20, 0.2,
                           "the stub's answer")
    finally:
        settings.write_text(before)
        stub.close()
    eventually(lambda: tried(sandbox, ("api.example", 80)) == ["open"], 20, 0.2, "the world's names, again")


def test_a_policy_holds(server):
    with server.create(networkPolicy=POLICY) as sandbox:
        assert tried(sandbox, ("api.example", 80), ("denied.example", 80), (DENIED, 80), (PEER, PORT)) == [
            "open", "no name", "ECONNREFUSED", "ECONNREFUSED"]
        reply = server.api().patch(sandbox.path("/networkpolicy"), [
            {"action": "allow", "target": DENIED}, {"action": "allow", "target": f"{OWN}/32"}])
        assert reply.status == 200, reply
        with Services() as services:
            assert tried(sandbox, (DENIED, 80), (OWN, services.port)) == ["open", "ECONNREFUSED"]
            assert not services.met


def test_the_vault_adds_what_the_sandbox_never_had(server, world):
    path, secret = "/" + uuid.uuid4().hex, uuid.uuid4().hex
    with server.create(networkPolicy=POLICY, credentialProxy={"enabled": True}) as sandbox:
        endpoint = sandbox.endpoint(18080)
        api = Http(endpoint["endpoint"], "egress", "", endpoint["headers"], 20)
        reply = api.post("/credential-vault", {
            "credentials": [{"name": "key", "source": {"type": "inline", "value": secret}}],
            "bindings": [{"name": "api", "match": {"hosts": ["api.example"]},
                          "auth": {"type": "bearer", "credential": "key"}}]})
        assert reply.status == 201, reply
        assert fetch(sandbox, f"https://api.example{path}").startswith("200 ")
        seen = world.requests(path)
        assert [r["headers"].get("Authorization") for r in seen] == [f"Bearer {secret}"], seen
        assert tried(sandbox, (NAMES["denied.example"], 443)) == ["ECONNREFUSED"]


def test_pasta_that_is_killed_is_replaced_and_nothing_opens(server, sandbox, user):
    first = user.named(PASTA)
    assert len(first) == 1
    os.kill(user.named("osb-uplink")[0], signal.SIGSTOP)  # it would be back in no time
    try:
        os.kill(first[0], signal.SIGKILL)
        eventually(lambda: tried(sandbox, (PEER, PORT))[0] in (*REFUSED, "TimeoutError"), 20, 0.1, "the cut")
        with Services() as services:
            outcomes = tried(sandbox, (OWN, services.port), (OWN6, services.port), (METADATA, PORT))
            assert all(o in REFUSED for o in outcomes) and not services.met, outcomes
    finally:
        os.kill(user.named("osb-uplink")[0], signal.SIGCONT)
    eventually(lambda: tried(sandbox, (PEER, PORT)) == [f"open ::ffff:{OWN}"], 30, 0.2, "the world, again")
    second = user.named(PASTA)
    assert len(second) == 1 and second != first


def test_a_host_without_a_way_out_gets_one_later(server, sandbox, world, user):
    routes = (["ip", "-n", world.host], "via", PEER), (["ip", "-n", world.host, "-6"], "via", PEER6)
    for ip, *via in routes:
        run(*ip, "route", "del", "default")
    try:
        os.kill(user.named(PASTA)[0], signal.SIGKILL)
        log = server.state / "spawner/log"
        eventually(lambda: "the host has no default route" in log.read_text(), 20, 0.1, "the word about it")
        assert not tried(sandbox, (PEER, PORT))[0].startswith("open")
    finally:
        for ip, *via in routes:
            run(*ip, "route", "add", "default", *via)
    eventually(lambda: tried(sandbox, (PEER, PORT), (PEER6, PORT)) == [f"open ::ffff:{OWN}", f"open {OWN6}"],
               40, 0.2, "the world, again")


@pytest.fixture(scope="module")
def lasting(make_server):
    """A server for those tests that take its processes away."""
    return make_server("lasting")


def test_links_outlive_the_spawner_and_the_uplink(lasting, user):
    server = lasting

    def reached(sandbox):
        return eventually(lambda: tried(sandbox, (PEER, PORT)) == [f"open ::ffff:{OWN}"], 20, 0.2, "the world")

    def count(name):
        return len(user.named(name))

    before = count("osb-uplink"), count(PASTA)
    with server.create() as sandbox:
        reached(sandbox)
        spawner = server.spawner()
        server.kill()
        os.kill(spawner, signal.SIGKILL)
        wait_gone(spawner)
        server.start()
        reached(sandbox)
        assert tried(sandbox, ("api.example", 80)) == ["open"]
        with server.create() as fresh:
            reached(fresh)
        assert (count("osb-uplink"), count(PASTA)) == before
        uplink = next(p for p in user.named("osb-uplink")
                      if str(server.state) in Path(f"/proc/{p}/cmdline").read_text())
        os.kill(uplink, signal.SIGKILL)
        eventually(lambda: uplink not in user.named("osb-uplink")
                   and (count("osb-uplink"), count(PASTA)) == before, 30, 0.1, "others in their place")
        reached(sandbox)
        with Services() as services:
            outcomes = tried(sandbox, (OWN, services.port), (OWN6, services.port))
            assert all(o in REFUSED for o in outcomes) and not services.met, outcomes
        assert not user.named("osb-holder")
        with server.create() as fresh:
            reached(fresh)


def test_another_version_takes_over_the_links_and_its_end_leaves_nothing(lasting, user):
    server = lasting
    mark = b"spawner of opensandbox "
    data = Path(server.executable).read_bytes()
    at = data.index(mark) + len(mark)
    other = user.home / "opensandbox-other"
    other.write_bytes(data[:at] + b"9" + data[at + 1:])
    other.chmod(0o755)
    before = user.named("osb-uplink"), user.named(PASTA)
    with server.create(extensions={NETWORK: "lab", HOSTNAME: "old"}) as sandbox:
        def reached(sandbox):
            return tried(sandbox, (PEER, PORT), ("api.example", 80)) == [f"open ::ffff:{OWN}", "open"]

        eventually(lambda: reached(sandbox), 20, 0.2, "the world")
        server.stop()
        server.executable = other
        server.start()
        eventually(lambda: reached(sandbox), 20, 0.2, "the world, again")
        with server.create(extensions={NETWORK: "lab"}) as fresh:
            assert reached(fresh)
            fresh.sh("setsid python3 -m http.server 8000 >/dev/null 2>&1 & echo")
            eventually(lambda: tried(sandbox, (fresh.address(), 8000))[0].startswith("open"), 15, 0.1, "the member")
        after = user.named("osb-uplink"), user.named(PASTA)
        assert [len(x) for x in after] == [len(x) for x in before]
        assert all(set(x) != set(y) for x, y in zip(before, after)), "both are new"
    server.destroy()
    rest = tuple(len(x) - 1 for x in before)
    eventually(lambda: (len(user.named("osb-uplink")), len(user.named(PASTA))) == rest, 20, 0.1, "their end")


def test_without_a_device_there_is_the_loopback_and_a_word(make_server, world, user):
    how, said = {"tun": world.shut_tun}, "/dev/net/tun"
    server = make_server("without", **how)
    off = next(l for l in server.log.read_text(errors="replace").splitlines() if "opensandbox doctor" in l)
    assert "a network beyond loopback" in off and said in off, off
    before = user.named("osb-uplink")
    with server.create() as sandbox:
        assert sandbox.sh("ls /sys/class/net").split() == ["lo"]
        outcomes = tried(sandbox, (PEER, PORT), (OWN, PORT))
        assert all(o in REFUSED for o in outcomes), outcomes
    body = {"image": {"uri": "host"}, "entrypoint": ["true"], "resourceLimits": {}, "timeout": 60}
    reply = server.api().post("/sandboxes", {**body, "networkPolicy": POLICY})
    assert reply.status == 400 and "networkPolicy" in reply.json["message"], reply
    reply = server.api().post("/sandboxes", {**body, "extensions": {NETWORK: "lab"}})
    assert reply.status == 501 and "loopback" in reply.json["message"], reply
    done = run(*world.launcher(user, **how), user.executable, "doctor", "-o", "json", check=False,
               env={"PATH": os.environ["PATH"], "HOME": str(user.home)})
    found = {c["check"]: c for c in json.loads(done.stdout)["checks"]}
    assert found["outbound network"]["status"] == "off" and said in found["outbound network"]["found"]
    assert user.named("osb-uplink") == before
    server.destroy()


def test_doctor_tells_that_there_is_a_way_out(world, user):
    done = run(*world.launcher(user), user.executable, "doctor", "-o", "json", check=False,
               env={"PATH": os.environ["PATH"], "HOME": str(user.home)})
    found = {c["check"]: c for c in json.loads(done.stdout)["checks"]}
    for name in ("outbound network", "IPv6"):
        assert found[name]["status"] == "ok" and "pasta" in found[name]["found"], found[name]


def test_a_deleted_sandbox_leaves_nothing(server, user):
    def count():
        links = run("nsenter", f"--net=/proc/{server.spawner()}/ns/net", "ip", "-o", "link").stdout
        return len(links.splitlines()), len(user.processes())

    with server.create(networkPolicy=POLICY):  # what the first one makes stays
        pass
    before = eventually(lambda: settled_at(count), 20, 0.1, "rest")
    for _ in range(3):
        with server.create(networkPolicy=POLICY) as sandbox:
            sandbox.sh("(sleep 1000 &)")
    eventually(lambda: settled_at(count) == before, 30, 0.2, "the same links and processes as before")


def settled_at(count):
    import time

    first = count()
    time.sleep(0.5)
    return first if count() == first else None
