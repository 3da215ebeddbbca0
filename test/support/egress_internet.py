"""A private world for tests of egress control: a namespace that has every address that they use,
with name servers, TLS, HTTP and echo servers on all of them, and counts what arrives there; and a
host that is routed to it, in whose namespace the test is while this lasts."""

import ipaddress
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support.own_network import enter
from support.shell import eventually, run

#: The resolver of sandboxes, and one that nobody was told of.
RESOLVER, OTHER_RESOLVER = "8.8.8.8", "9.9.9.9"
METADATA = "169.254.169.254"
PRIVATE = ("10.66.0.1", "172.16.66.1", "192.168.66.1", "100.64.66.1", "fd66::1")
GOOD, DENIED, DIRECT = "203.0.113.10", "203.0.113.11", "198.51.100.1"
GOOD6, DENIED6, DIRECT6 = "2001:db8:1::10", "2001:db8:1::11", "2001:db8:2::1"
MANY = [f"203.0.113.{i}" for i in range(100, 200)]

ADDRESSES = (
    [RESOLVER, OTHER_RESOLVER, METADATA, DIRECT, DIRECT6, *PRIVATE, "2001:db8:8::8"]
    + [f"198.51.100.{i}" for i in range(10, 60)] + [f"2001:db8:2::{i}" for i in range(10, 60)]
    + [f"203.0.113.{i}" for i in range(10, 60)] + [f"2001:db8:1::{i}" for i in range(10, 60)]
)

#: What the name servers know: an address or two, and for how long.
HOSTS = {
    "good.example": (GOOD, GOOD6, 300),
    "denied.example": (DENIED, DENIED6, 300),
    "four.example": ("203.0.113.12", 300),
    "six.example": ("2001:db8:1::13", 300),
    "cdn.example": ("203.0.113.14", 300),
    "blocked.example": ("203.0.113.15", 300),
    "short.example": ("203.0.113.16", 1),
    "long.example": ("203.0.113.17", 86400),
    "ports.example": ("203.0.113.18", 300),
    "steady.example": ("203.0.113.19", 300),
    "revoked.example": ("203.0.113.20", 300),
    "shared-a.example": ("203.0.113.21", 300),
    "shared-b.example": ("203.0.113.21", 300),
    "late.example": ("203.0.113.22", 300),
    "mixed.example": ("203.0.113.23", 300),
    "loop.rebind.example": ("127.0.0.1", "::1", 300),
    "meta.rebind.example": (METADATA, 300),
    "ten.rebind.example": (PRIVATE[0], 300),
    "seventeen.rebind.example": (PRIVATE[1], 300),
    "home.rebind.example": (PRIVATE[2], 300),
    "carrier.rebind.example": (PRIVATE[3], 300),
    "ula.rebind.example": (PRIVATE[4], 300),
    "mapped.rebind.example": ("::ffff:169.254.169.254", 300),
}
ALIASES = {  # to what they lead
    "www.example": "middle.example",
    "middle.example": "cdn.example",
    "trap.example": "blocked.example",
    "inward.example": "ten.rebind.example",
}
#: All names below have this address.
WILD, WILD_ADDRESS = "wild.example", "203.0.113.30"
TUNNEL, TUNNEL_ADDRESS = "tunnel.example", "203.0.113.31"
LARGE = "large.example"

_COUNTERS = """
table inet arrivals {
  set ports4 { typeof ip daddr . meta l4proto . th dport; size 65535; flags dynamic; counter; }
  set ports6 { typeof ip6 daddr . meta l4proto . th dport; size 65535; flags dynamic; counter; }
  set all4 { typeof ip daddr . meta l4proto; size 65535; flags dynamic; counter; }
  set all6 { typeof ip6 daddr . meta l4proto; size 65535; flags dynamic; counter; }
  set from4 { typeof ip saddr; size 65535; flags dynamic; counter; }
  set from6 { typeof ip6 saddr; size 65535; flags dynamic; counter; }
  set resets4 { typeof ip daddr; size 65535; flags dynamic; counter; }
  set resets6 { typeof ip6 daddr; size 65535; flags dynamic; counter; }
  chain resets {
    update @resets4 { ip daddr }
    update @resets6 { ip6 daddr }
  }
  chain arriving {
    type filter hook prerouting priority -400;
    iifname "lo" return
    tcp flags & rst == rst jump resets
    update @all4 { ip daddr . meta l4proto }
    update @all6 { ip6 daddr . meta l4proto }
    update @from4 { ip saddr }
    update @from6 { ip6 saddr }
    meta l4proto { tcp, udp } update @ports4 { ip daddr . meta l4proto . th dport }
    meta l4proto { tcp, udp } update @ports6 { ip6 daddr . meta l4proto . th dport }
  }
}
"""


class Internet:
    """`host` and `world` are the names of the two namespaces."""

    def __init__(self):
        self.host, self.world = (f"osbt{os.getpid()}{end}" for end in ("h", "w"))
        self.processes = []
        #: Of the networks between the host and its sandboxes.
        self.numbers = itertools.count(1)

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="osb-internet-", dir="/var/tmp"))
        #: For those who are to ask RESOLVER.
        self.resolv_conf = self.directory / "resolv.conf"
        self.resolv_conf.write_text(f"nameserver {RESOLVER}\n")
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._build()
            enter(f"/run/netns/{self.host}")
            self._serve()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        enter(f"/proc/self/fd/{self._home}")
        os.close(self._home)
        for name in (self.host, self.world):
            run("ip", "netns", "del", name, check=False)
        run("rm", "-rf", self.directory)

    def launcher(self):
        """A command that becomes a server on the host: with its /sys and its resolver."""
        bind = f'mount --bind {self.resolv_conf} /etc/resolv.conf && exec "$@"'
        return ["ip", "netns", "exec", self.host, "sh", "-c", bind, "sh"]

    def _build(self):
        for name in (self.host, self.world):
            run("ip", "netns", "add", name)
            self.inside(name, "ip", "link", "set", "lo", "up")
            # Nothing but what is tested may stop a packet, and no error is held back.
            self.inside(name, "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0",
                        "net.ipv4.conf.default.rp_filter=0", "net.ipv4.ip_forward=1",
                        "net.ipv6.conf.all.forwarding=1", "net.ipv4.icmp_ratelimit=0",
                        "net.ipv6.icmp.ratelimit=0", "net.ipv6.conf.default.accept_dad=0")
        self.link(self.host, "up0", "192.0.2.1/30", "2001:db8:ffff::1/64",
                  self.world, "down0", "192.0.2.2/30", "2001:db8:ffff::2/64")
        for here, there4, there6 in ((self.host, "192.0.2.2", "2001:db8:ffff::2"),
                                     (self.world, "192.0.2.1", "2001:db8:ffff::1")):
            run("ip", "-n", here, "route", "add", "default", "via", there4)
            run("ip", "-n", here, "-6", "route", "add", "default", "via", there6)
        commands = "".join(f"addr add {a} dev lo {'nodad' if ':' in a else ''}\n"
                           for a in [*ADDRESSES, *MANY])
        run("ip", "-n", self.world, "-b", "-", input=commands)
        self.inside(self.world, "nft", "-f", "-", input=_COUNTERS)

    def link(self, a, link_a, four_a, six_a, b, link_b, four_b, six_b):
        run("ip", "-n", a, "link", "add", link_a, "type", "veth", "peer", "name", link_b, "netns", b)
        for name, link, four, six in ((a, link_a, four_a, six_a), (b, link_b, four_b, six_b)):
            run("ip", "-n", name, "addr", "add", four, "dev", link)
            run("ip", "-n", name, "addr", "add", six, "dev", link, "nodad")
            run("ip", "-n", name, "link", "set", link, "up")

    def inside(self, name, *argv, **options):
        return run("ip", "netns", "exec", name, *argv, **options)

    def _serve(self):
        self.queries = self.directory / "queries.log"
        (self.directory / "dnsmasq.conf").write_text(self._names())
        (self.directory / "hosts").write_text("".join(f"{a} {LARGE}\n" for a in MANY))
        self._start("dnsmasq", "--keep-in-foreground", f"--conf-file={self.directory}/dnsmasq.conf")
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
            "/CN=example", "-keyout", self.directory / "key.pem", "-out", self.directory / "cert.pem")
        services = Path(__file__).with_name("egress_services.py")
        ready = self.directory / "ready"
        self._start(sys.executable, services, self.directory, *ADDRESSES)
        eventually(ready.exists, 20, 0.02, "the servers of the world")
        eventually(lambda: "started" in self._log("queries.log"), 20, 0.02, "its name servers")

    def _names(self):
        lines = ["no-resolv", "no-hosts", "user=root", "pid-file=", "local-ttl=120", "log-queries",
                 f"log-facility={self.queries}", "local=/example/", "edns-packet-max=1232",
                 f"addn-hosts={self.directory}/hosts", f"address=/{WILD}/{WILD_ADDRESS}",
                 f"address=/{TUNNEL}/{TUNNEL_ADDRESS}", "txt-record=good.example,hello"]
        for name, values in HOSTS.items():
            lines.append(f"host-record={name}," + ",".join(map(str, values)))
        lines += [f"cname={alias},{name},300" for alias, name in ALIASES.items()]
        return "\n".join(lines) + "\n"

    def _start(self, *argv):
        with (self.directory / "log").open("ab") as log:
            self.processes.append(subprocess.Popen(
                ["ip", "netns", "exec", self.world, *map(str, argv)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def _log(self, name):
        path = self.directory / name
        return path.read_text(errors="replace") if path.exists() else ""

    def asked(self, text):
        """The queries that arrived at name servers of the world with this in their names."""
        return [line for line in self._log("queries.log").splitlines()
                if "query[" in line and text.lower() in line.lower()]

    def _set(self, name):
        text = self.inside(self.world, "nft", "-j", "list", "set", "inet", "arrivals", name).stdout
        found = next(item["set"] for item in json.loads(text)["nftables"] if "set" in item)
        for entry in found.get("elem", []):
            value = entry["elem"]["val"]
            parts = value["concat"] if isinstance(value, dict) else [value]
            yield parts, entry["elem"]["counter"]["packets"]

    def arrived(self, address, protocol=None, port=None):
        """How many packets there were to this address, of all kinds or of one."""
        total = 0
        wanted = ipaddress.ip_address(address)
        name = ("ports" if port else "all") + str(wanted.version)
        for parts, packets in self._set(name):
            if ipaddress.ip_address(parts[0]) != wanted:
                continue
            if protocol and _protocol(parts[1]) != protocol or port and _port(parts[2]) != port:
                continue
            total += packets
        return total

    def resets(self, address):
        """How many of those only told that there is no such connection."""
        wanted = ipaddress.ip_address(address)
        return sum(packets for parts, packets in self._set(f"resets{wanted.version}")
                   if ipaddress.ip_address(parts[0]) == wanted)

    def arrived_but_resets(self, address):
        """How many of those told anything else. Both are counted on while they are read: read again then."""
        while True:
            resets = self.resets(address)
            arrived = self.arrived(address)
            if self.resets(address) == resets:
                return arrived - resets

    def totals(self):
        """How many packets there were to every address."""
        totals = {}
        for name in ("all4", "all6"):
            for parts, packets in self._set(name):
                totals[parts[0]] = totals.get(parts[0], 0) + packets
        return totals

    def arrived_from(self, address):
        wanted = ipaddress.ip_address(address)
        return sum(packets for parts, packets in self._set(f"from{wanted.version}")
                   if ipaddress.ip_address(parts[0]) == wanted)


def _protocol(name):
    return {1: "icmp", 6: "tcp", 17: "udp", 47: "gre", 58: "ipv6-icmp"}.get(name, name)


def _port(value):
    import socket

    return value if isinstance(value, int) else socket.getservbyname(value)
