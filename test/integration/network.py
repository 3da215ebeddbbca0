"""How sandboxes reach each other, names, and the host's ports that lead to them."""

import json
import os
import socket
import stat
import struct
import tempfile
import threading
import urllib.request
from pathlib import Path

import pytest

from support.namespace import reachable
from support.server import EXECUTABLE, Server
from support.shell import eventually, run

pytestmark = pytest.mark.usefixtures("forwarding")

NETWORK = "opensandbox.io/network"
HOSTNAME = "opensandbox.io/hostname"
PUBLISH = "opensandbox.io/publish"

SERVE = "setsid python3 -m http.server --bind {bind} {port} >/dev/null 2>&1 & echo started"

PROBE = """python3 - <<'EOF'
import errno, socket
try:
    socket.create_connection(("{host}", {port}), 5).close()
    print("connected")
except OSError as e:
    print(errno.errorcode.get(e.errno, type(e).__name__))
EOF"""


def serve(sandbox, port=8000, bind="0.0.0.0"):
    sandbox.sh(SERVE.format(bind=bind, port=port))
    local = "127.0.0.1" if bind == "0.0.0.0" else bind
    eventually(lambda: probe(sandbox, local, port) == "connected", 15, 0.05, f"port {port} inside")


def probe(sandbox, host, port):
    return sandbox.sh(PROBE.format(host=host, port=port)).strip()


def lookup(sandbox, name):
    code = f"import socket; print(socket.gethostbyname({name!r}))"
    done = sandbox.run(["python3", "-c", code], timeout=30000)
    return done.stdout.strip() if done.code == 0 else None


def create(server, **extensions):
    return server.create(extensions=extensions)


def test_members_of_a_network_reach_each_other_by_name_and_others_do_not(server):
    with (
        create(server, **{NETWORK: "lab", HOSTNAME: "web"}) as web,
        create(server, **{NETWORK: "lab"}) as member,
        create(server, **{NETWORK: "other", HOSTNAME: "spy"}) as other,
        create(server) as stranger,
    ):
        serve(web)
        address = web.address()
        assert web.sh("hostname").strip() == "web"
        assert probe(member, address, 8000) == "connected"
        assert probe(other, address, 8000) == "ECONNREFUSED"
        assert probe(stranger, address, 8000) == "ECONNREFUSED"
        for name in ("web", "web.lab", web.id):
            assert lookup(member, name) == address, name
        assert probe(member, "web", 8000) == "connected"
        assert lookup(other, "spy") == other.address()
        assert lookup(other, "web") is None
        assert lookup(stranger, "web") is None
        # Answers come back, but a member that only listens cannot be reached from outside.
        assert probe(web, member.address(), 8000) == "ECONNREFUSED"
        web.delete()
        assert lookup(member, "web") is None


def test_a_network_survives_its_spawner(server):
    with (
        create(server, **{NETWORK: "lasting", HOSTNAME: "web"}) as web,
        create(server, **{NETWORK: "lasting"}) as member,
        create(server) as stranger,
    ):
        serve(web)
        os.kill(server.spawner(), 9)
        eventually(lambda: lookup(member, "web") == web.address(), 30, 0.2, "the name, again")
        assert probe(member, "web", 8000) == "connected"
        assert probe(stranger, web.address(), 8000) == "ECONNREFUSED"


def test_without_a_network_there_is_the_loopback_alone(server):
    with create(server, **{NETWORK: "none", PUBLISH: "8000"}) as sandbox, create(server) as other:
        serve(other)
        assert probe(sandbox, other.address(), 8000) != "connected"
        assert probe(sandbox, "198.51.100.1", 80) in ("ENETUNREACH", "EHOSTUNREACH")
        assert lookup(sandbox, "example.org") is None
        # Root inside cannot bring the link back.
        done = sandbox.run("ip link set eth0 up || true; ip addr add 10.0.0.1/32 dev eth0 || true")
        assert probe(sandbox, "198.51.100.1", 80) in ("ENETUNREACH", "EHOSTUNREACH"), done
        # The agent does not need it, nor do ports that are published.
        serve(sandbox)
        assert reachable(*split(sandbox.endpoint(8000)["endpoint"]))


def test_no_network_can_be_the_rule(make_server):
    server = make_server("offline", sections={"native": {"network": "none"}})
    with create(server) as off, create(server, **{NETWORK: "default"}) as on:
        serve(on)
        assert probe(off, "198.51.100.1", 80) in ("ENETUNREACH", "EHOSTUNREACH")
        assert "eth0" in on.sh("cat /proc/net/route")


def split(endpoint):
    host, port = endpoint.rsplit(":", 1)
    return host, int(port)


def test_published_ports_lead_to_the_sandbox_and_stay_over_restarts(server):
    with create(server, **{PUBLISH: "8000,9000"}) as sandbox:
        web, nothing = sandbox.endpoint(8000), sandbox.endpoint(9000)
        assert "headers" not in web, "nothing of ours stands before it"
        assert "/" not in web["endpoint"]
        assert split(web["endpoint"])[1] != split(nothing["endpoint"])[1]
        serve(sandbox, bind="127.0.0.1")
        sandbox.sh("echo found > /tmp/page")

        def page():
            with urllib.request.urlopen(f"http://{web['endpoint']}/tmp/page", timeout=10) as reply:
                return reply.read()

        assert page() == b"found\n"
        # Nobody listens there: the connection ends at once.
        with socket.create_connection(split(nothing["endpoint"]), 5) as connection:
            connection.settimeout(5)
            assert connection.recv(1) == b""
        server.stop()
        server.start()
        assert sandbox.endpoint(8000) == web
        assert page() == b"found\n"
        os.kill(server.spawner(), 9)
        eventually(lambda: server.spawner() and page() == b"found\n", 30, 0.2, "the page, again")
        assert sandbox.endpoint(8000) == web
        text = server.api().get(sandbox.path("/diagnostics/inspect")).text
        assert f"8000/tcp -> {web['endpoint']}" in text
        # Ports that nobody asked for go the usual way.
        assert "/proxy/8080" in sandbox.endpoint(8080)["endpoint"]
    eventually(lambda: not reachable(*split(web["endpoint"])), 10, 0.1, "the port's end")


@pytest.mark.parametrize(
    "key,value",
    [
        (NETWORK, "Lab"), (NETWORK, ""), (NETWORK, "a/b"), (HOSTNAME, "localhost"),
        (HOSTNAME, "-x"), (PUBLISH, "0"), (PUBLISH, "80,80"), (PUBLISH, "44772"),
    ],
)
def test_wrong_values_are_named(server, key, value):
    body = {"image": {"uri": "host"}, "entrypoint": ["true"], "resourceLimits": {},
            "extensions": {key: value}}
    reply = server.api().post("/sandboxes", body)
    assert (reply.status, reply.json["code"]) == (400, "SANDBOX::INVALID_PARAMETER"), reply
    assert key in reply.json["message"]


def test_links_have_the_mtu_of_the_way_out(server):
    with open("/proc/net/route") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    default = sorted((int(r[6]), r[0]) for r in rows if r[1] == "00000000" and r[7] == "00000000")
    if not default:
        expected = 1500
    else:
        # /sys may be that of another network namespace.
        (link,) = json.loads(run("ip", "-j", "link", "show", default[0][1]).stdout)
        expected = link["mtu"]
    with server.create() as sandbox:
        assert int(sandbox.sh("cat /sys/class/net/eth0/mtu")) == expected


class Stub:
    """A resolver on loopback, as hosts have one: every name is 192.0.2.53, `large` needs TCP."""

    address = "127.0.0.153"

    def __init__(self):
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((self.address, 53))
        self.tcp = socket.create_server((self.address, 53))
        self.threads = [threading.Thread(target=work) for work in (self.serve_udp, self.serve_tcp)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def reply(query, count):
        end = query.index(b"\0", 12) + 5
        kind = query[end - 4:end - 2]
        count = count if kind == b"\0\1" else 0
        head = query[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, count, 0, 0)
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton("192.0.2.53")
        return head + query[12:end] + record * count

    def serve_udp(self):
        while True:
            try:
                query, client = self.udp.recvfrom(4096)
            except OSError:
                return
            if not query:
                return
            reply = self.reply(query, 1)
            if b"\5large" in query:
                reply = reply[:2] + b"\x83\x80" + reply[4:6] + b"\0" * 6 + reply[12:-16]
            self.udp.sendto(reply, client)

    def serve_tcp(self):
        while True:
            try:
                connection = self.tcp.accept()[0]
            except OSError:
                return
            with connection:
                size = struct.unpack(">H", connection.recv(2))[0]
                reply = self.reply(connection.recv(size), 200)
                connection.sendall(struct.pack(">H", len(reply)) + reply)

    def close(self):
        # A thread inside a call keeps the address taken.
        for listening in (self.udp, self.tcp):
            try:
                listening.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join()
        self.udp.close()
        self.tcp.close()


@pytest.fixture
def stub_server(scratch):
    """A server on a host whose resolver listens on loopback, where sandboxes cannot go."""
    directory = Path(tempfile.mkdtemp(prefix="stub-", dir=scratch))
    (directory / "resolv.conf").write_text(f"nameserver {Stub.address}\nsearch lan.example\n")
    script = directory / "opensandbox"
    script.write_text(
        "#!/bin/sh\n"
        f"exec unshare -m --propagation private sh -c 'mount --bind {directory}/resolv.conf "
        f"/etc/resolv.conf && exec {EXECUTABLE} \"$@\"' sh \"$@\"\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    stub = Stub()
    server = Server(directory / "server", executable=script)
    try:
        yield server.start()
    finally:
        server.destroy()
        stub.close()


def test_names_resolve_through_a_resolver_that_sandboxes_cannot_reach(stub_server):
    with stub_server.create() as sandbox:
        gateway = sandbox.sh("cat /etc/resolv.conf")
        assert Stub.address not in gateway and "search lan.example" in gateway
        assert lookup(sandbox, "example.org") == "192.0.2.53"
        assert lookup(sandbox, "large.example.org") == "192.0.2.53", "over TCP"
        assert probe(sandbox, Stub.address, 53) == "ECONNREFUSED", "its own loopback"
        with create(stub_server, **{NETWORK: "lab", HOSTNAME: "web"}) as web:
            assert lookup(web, "web") == web.address(), "before the outside, with the search domain"


def test_the_resolver_has_no_privileges_and_is_replaced(stub_server):
    def resolver():
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/status") as f:
                    fields = dict(line.split(":\t", 1) for line in f if ":\t" in line)
            except OSError:
                continue
            if fields.get("Name", "").strip() == "osb-resolver" and \
                    int(fields["PPid"]) == stub_server.spawner():
                return int(pid), fields
        return None

    pid, fields = eventually(resolver, 10, 0.1, "the resolver")
    assert fields["Uid"].split() == ["65534"] * 4
    assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == 0
    assert fields["NoNewPrivs"].strip() == "1"
    with stub_server.create() as sandbox:
        os.kill(pid, 9)
        eventually(lambda: lookup(sandbox, "example.org") == "192.0.2.53", 30, 0.2, "names, again")
    assert resolver()[0] != pid
