"""IPv6 of sandboxes, with real packets: out, in, among each other, and what must not get through.
The server runs in a network namespace of the test's own that forwards IPv6."""

import os
import re
import socket
import subprocess
import sys
import urllib.request

import pytest

from support import census
from support.own_network import OwnNetwork
from support.processes import agent_process
from support.shell import eventually, run

NETWORK = "opensandbox.io/network"
HOSTNAME = "opensandbox.io/hostname"
PUBLISH = "opensandbox.io/publish"

PROBE = """python3 - <<'EOF'
import errno, socket
try:
    with socket.create_connection(("{host}", {port}), 5) as connection:
        connection.settimeout(5)
        print("connected", connection.recv(100).decode())
except OSError as e:
    print(errno.errorcode.get(e.errno, type(e).__name__))
EOF"""

SERVE = """setsid python3 - >/dev/null 2>&1 <<'EOF' &
import socket
listener = socket.socket(socket.AF_INET6)
listener.bind(("::", 8000))
listener.listen(16)
while True:
    connection = listener.accept()[0]
    connection.sendall(b"inside")
    connection.close()
EOF
echo started"""


@pytest.fixture(scope="module", autouse=True)
def place():
    with OwnNetwork() as network:
        yield network


@pytest.fixture(scope="module")
def server(place, make_server):
    return make_server(launcher=place.launcher)


def probe(sandbox, host, port):
    return sandbox.sh(PROBE.format(host=host, port=port)).strip()


def address_of(sandbox):
    rows = sandbox.sh("cat /proc/net/if_inet6").split("\n")
    found = [row.split() for row in rows if row.endswith("eth0")]
    assert len(found) == 1, f"one address, none made by the link itself: {rows}"
    digits, _, prefix, scope, *_ = found[0]
    assert (prefix, scope) == ("80", "00"), found
    return plain(":".join(digits[i:i + 4] for i in range(0, 32, 4)))


def plain(address):
    return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, address))


def gateway_of(server):
    tag = census.tag_of(server.state)
    return plain(f"fd6f:7362:{tag[:4]}:{tag[4:]}00::1")


def denied(server):
    table = f"opensandbox_{census.tag_of(server.state)}"
    text = run("nft", "list", "counter", "inet", table, "denied").stdout
    return int(re.search(r"packets (\d+)", text)[1])


def serve(sandbox):
    sandbox.sh(SERVE)
    eventually(lambda: probe(sandbox, "::1", 8000) == "connected inside", 15, 0.05, "port inside")


def lookup(sandbox, name, family="AF_INET6"):
    code = ("import socket; print(*sorted({a[4][0] for a in "
            f"socket.getaddrinfo({name!r}, 1, socket.{family})}}))")
    done = sandbox.run(["python3", "-c", code], timeout=30000)
    return done.stdout.strip() if done.code == 0 else None


def test_the_world_is_reached_and_sees_the_hosts_address(server, place):
    with server.create() as sandbox:
        own = address_of(sandbox)
        assert own.startswith(gateway_of(server)[:-1]), own
        assert probe(sandbox, place.peer, place.port) == f"connected {place.own}"
        assert own in sandbox.sh("cat /etc/hosts")
        text = server.api().get(sandbox.path("/diagnostics/inspect")).text
        assert f"native: {own}" in text and f"native: {sandbox.address()}" in text


def test_host_metadata_and_strangers_are_refused(server, place):
    with server.create() as sandbox, server.create() as other:
        serve(other)
        with socket.create_server(("::", 7001), family=socket.AF_INET6):
            for target in (place.own, gateway_of(server)):
                socket.create_connection((target, 7001), 5).close()
                assert probe(sandbox, target, 7001) == "ECONNREFUSED", target
        for target in place.metadata:
            assert place.asked(target), "the host itself may"
            assert probe(sandbox, target, place.port) == "ECONNREFUSED", target
        assert probe(sandbox, address_of(other), 8000) == "ECONNREFUSED"
        # Nor does the world get in, even if it knows the way.
        run("ip", "-n", place.peer_name, "-6", "route", "add", address_of(other), "via", place.own)
        before = denied(server)
        code = f"import socket; socket.create_connection(({address_of(other)!r}, 8000), 1)"
        assert run("ip", "netns", "exec", place.peer_name, sys.executable, "-c", code,
                   check=False).returncode != 0
        assert denied(server) > before


FORGE = """
import socket, struct, sys
kind, source, target, port = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
pack = lambda text: socket.inet_pton(socket.AF_INET6, text)
def checksum(data):
    data += b"\\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
if kind == "udp":
    protocol, place, body = 17, 6, struct.pack(">HHHH", 4000, port, 14, 0) + b"forged"
elif kind == "router":
    # With a prefix to make addresses from.
    prefix = struct.pack(">BBBBIII16s", 3, 4, 64, 0xc0, 1800, 1800, 0, pack("2001:db8:bad::"))
    protocol, place = 58, 2
    body = struct.pack(">BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + prefix
elif kind == "neighbour":
    protocol, place = 58, 2
    body = struct.pack(">BBHI16s", 136, 0, 0, 0x60000000, pack(source))
    body += bytes([2, 1, 2, 0xee, 0, 0, 0, 9])
pseudo = pack(source) + pack(target) + struct.pack(">I3xB", len(body), protocol)
body = body[:place] + struct.pack(">H", checksum(pseudo + body)) + body[place + 2:]
packet = struct.pack(">IHBB", 6 << 28, len(body), protocol, 255) + pack(source) + pack(target) + body
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
    s.bind(("eth0", 0))
    s.send(bytes.fromhex("02fe0000000102fe0000000286dd") + packet)
"""


def forge(sandbox, kind, source, target, port=0):
    """A packet on the sandbox's link that nobody inside has the rights to send."""
    run("nsenter", "-t", agent_process(sandbox), "-n", sys.executable, "-c", FORGE, kind, source,
        target, port)


RECEIVE = """
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 7002))
print("ready")
print(s.recvfrom(100)[0].decode())
"""

HONEST = """python3 -c "
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.sendto(b'honest', ('{peer}', 7002))
" """


def test_forged_sources_get_nowhere(server, place):
    receive = ["ip", "netns", "exec", place.peer_name, sys.executable, "-u", "-c", RECEIVE]
    with (
        server.create() as sandbox,
        server.create() as other,
        subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver,
    ):
        try:
            assert receiver.stdout.readline() == "ready\n"
            for source in (address_of(other), "2001:db8::7", "fe80::2"):
                before = denied(server)
                forge(sandbox, "udp", source, place.peer, 7002)
                eventually(lambda: denied(server) > before, 5, 0.05, f"{source} being dropped")
            # The first that arrives is the honest one.
            sandbox.sh(HONEST.format(peer=place.peer))
            assert receiver.stdout.readline() == "honest\n"
        finally:
            receiver.kill()


def test_the_host_learns_nothing_from_a_sandbox(server):
    with server.create() as sandbox:
        own, gateway = address_of(sandbox), gateway_of(server)
        link = re.search(r" dev (osb\w+)", run("ip", "-6", "route", "get", own).stdout)[1]
        # As far as the kernel is asked it would believe.
        run("sysctl", "-qw", f"net.ipv6.conf.{link}.accept_ra=2")
        run("sysctl", "-qw", f"net.ipv6.conf.{link}.accept_redirects=1")
        # Other links come and go with the pool.
        look = [("ip", "-6", "route", "show", "table", "all", "dev", link),
                ("ip", "-6", "neigh", "show", "dev", link), ("ip", "-6", "addr", "show", "dev", link)]
        before = [run(*argv).stdout for argv in look]
        assert "PERMANENT" in before[1] and "fe80" not in before[2]
        for source, target in (("fe80::2", "ff02::1"), (own, gateway)):
            for kind in ("router", "neighbour"):
                count = denied(server)
                forge(sandbox, kind, source, target)
                eventually(lambda: denied(server) > count, 5, 0.05, f"{kind} being dropped")
        assert [run(*argv).stdout for argv in look] == before


def test_members_of_a_network_find_each_other_over_ipv6(server):
    with (
        server.create(extensions={NETWORK: "lab", HOSTNAME: "web"}) as web,
        server.create(extensions={NETWORK: "lab"}) as member,
        server.create(extensions={NETWORK: "other"}) as stranger,
    ):
        serve(web)
        own = address_of(web)
        assert lookup(member, "web") == own
        assert lookup(member, "web", "AF_INET") == web.address()
        assert probe(member, own, 8000) == "connected inside"
        assert probe(member, "web", 8000) == "connected inside"
        assert lookup(stranger, "web") is None
        assert probe(stranger, own, 8000) == "ECONNREFUSED"
        # Another spawner knows both, and has the same rules.
        os.kill(server.spawner(), 9)
        eventually(lambda: lookup(member, "web") == own, 30, 0.2, "the name, again")
        assert probe(member, own, 8000) == "connected inside"
        assert probe(stranger, own, 8000) == "ECONNREFUSED"


def test_without_a_network_there_is_no_ipv6(server, place):
    with server.create(extensions={NETWORK: "none"}) as sandbox:
        assert "eth0" not in sandbox.sh("cat /proc/net/if_inet6")
        assert probe(sandbox, place.peer, place.port) in ("ENETUNREACH", "EADDRNOTAVAIL")


# IPV6_MTU_DISCOVER = IPV6_PMTUDISC_DO, then what IPV6_MTU says of the way.
LONG = """python3 -c "
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.connect(('{peer}', 7003))
s.setsockopt(41, 23, 2)
try:
    s.send(bytes(1320))
except OSError:
    pass
print(s.getsockopt(41, 24))
" """


def test_packets_are_as_long_as_the_way_allows(server, place):
    with server.create() as sandbox:

        def longest():
            return int(sandbox.sh(LONG.format(peer=place.peer)))

        assert sandbox.sh("cat /sys/class/net/eth0/mtu").strip() == "1400", "the uplink's"
        assert longest() == 1400
        run("ip", "link", "set", "up0", "mtu", "1300")
        try:
            eventually(lambda: longest() == 1300, 10, 0.1, "what the host tells of a shorter way")
        finally:
            run("ip", "link", "set", "up0", "mtu", "1400")


def test_ports_are_published_on_ipv6_addresses_of_the_host(place, make_server):
    settings = {"publish_host": "::1", "address_range6": "fd77::/112"}
    server = make_server("six", launcher=place.launcher, sections={"native": settings})
    with server.create(extensions={PUBLISH: "8000"}) as sandbox:
        proxied = sandbox.endpoint(44772, proxy=True)
        address = f"http://{proxied['endpoint']}/ping"
        request = urllib.request.Request(address, headers=proxied.get("headers") or {})
        assert urllib.request.urlopen(request, timeout=10).status == 200
        endpoint = sandbox.endpoint(8000)["endpoint"]
        assert endpoint.startswith("[::1]:")
        assert sandbox.endpoint(44772)["endpoint"].startswith("[::1]:")
        assert address_of(sandbox).startswith("fd77::")
        serve(sandbox)
        with socket.create_connection(("::1", int(endpoint.rsplit(":", 1)[1])), 5) as connection:
            assert connection.recv(100) == b"inside"
        text = server.api().get(sandbox.path("/diagnostics/inspect")).text
        assert f"8000/tcp -> {endpoint}" in text


def test_a_host_that_does_not_forward_has_sandboxes_without(place, make_server):
    run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=0")
    try:
        server = make_server("without", launcher=place.launcher)
        with server.create() as sandbox:
            assert "eth0" not in sandbox.sh("cat /proc/net/if_inet6")
            assert probe(sandbox, place.peer, place.port) in ("ENETUNREACH", "EADDRNOTAVAIL")
            text = server.api().get(sandbox.path("/diagnostics/inspect")).text
            assert "IPv6 (net.ipv6.conf.all.forwarding is 0)" in text
        with open("/proc/thread-self/root/proc/sys/net/ipv6/conf/all/forwarding") as f:
            assert f.read() == "0\n", "left as it was"
    finally:
        run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")


def gateways():
    return run("ip", "-o", "addr", "show", "dev", "lo").stdout.count("global")


def test_gateways_of_a_killed_server_go_with_its_next_start(place, make_server):
    before = gateways()
    server = make_server("killed", launcher=place.launcher)
    assert gateways() == before + 2
    spawner = server.spawner()
    server.kill()
    os.kill(spawner, 9)
    eventually(lambda: not server.spawner(), 10, 0.05, "the spawner's end")
    assert gateways() == before + 2, "nobody could take them away"
    server.settings["native"].update(address_range="10.251.0.0/20", address_range6="fd78::/64")
    server.start()
    eventually(lambda: gateways() == before + 2, 10, 0.1, "the new ones alone")
    assert "10.251.0.1" in run("ip", "addr", "show", "dev", "lo").stdout
    server.destroy()
    eventually(lambda: gateways() == before, 10, 0.1, "none")
