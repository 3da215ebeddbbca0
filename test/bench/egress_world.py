"""What the bench of egress control stands in: network namespaces of its own, the resolver and the
TLS server of a little world, a sidecar in front of one namespace, mitmproxy in front of another."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from support.own_network import enter
from support.shell import eventually, run

ROOT = Path(__file__).resolve().parents[2]
EXECUTABLE = os.environ["OPENSANDBOX_EXECUTABLE"]
#: Of the world: its resolver, its TLS server, and what measures throughput.
PEER = "192.0.2.1"
#: Names n0, n1, ... of ZONE stand for one address; those from MANY on for forty each.
ZONE = "bench.example"
NAMES, MANY, LEARNED_NAMES, OF_NAME = 300, 1000, 250, 40
#: The TLS server's.
SERVER = 9999
HOST = f"n{SERVER}.{ZONE}"
SMALL, BIG = 1024, 64 << 20
#: Of the server that costs least for each byte, so that it is not what is measured.
BULK, BULK_SERVER = "192.0.2.2", 9998
BULK_HOST = f"n{BULK_SERVER}.{ZONE}"
#: The group that mitmproxy runs as, by which its own connections are told from the client's.
MITM_GROUP = 61234


#: The bench's program.
PROGRAM = ROOT / "build" / "release" / "bench_egress"


def load(namespace, *argv, timeout=300):
    """What a measure of the bench's program says."""
    return json.loads(run(*namespace.inside, PROGRAM, *argv, timeout=timeout).stdout)


class Namespace:
    """Reaches the world by a link of its own."""

    def __init__(self, name, number):
        self.name = f"osb-bench-{os.getpid()}-{name}"
        self.inside = ("ip", "netns", "exec", self.name)
        self.number = number
        run("ip", "netns", "add", self.name)
        run("ip", "-n", self.name, "link", "set", "lo", "up")

    def join(self, other):
        """A link to the other end, by which everything is reached; this end's address."""
        base = f"10.80.{self.number}."
        run("ip", "-n", self.name, "link", "add", "eth0", "type", "veth",
            "peer", "name", f"to{self.number}", "netns", other.name)
        for place, link, last in ((self, "eth0", 2), (other, f"to{self.number}", 1)):
            run("ip", "-n", place.name, "addr", "add", f"{base}{last}/30", "dev", link)
            run("ip", "-n", place.name, "link", "set", link, "up")
        run("ip", "-n", self.name, "route", "add", "default", "via", f"{base}1")
        return f"{base}2"

    def mac(self, link):
        return json.loads(run("ip", "-n", self.name, "-j", "link", "show", link).stdout)[0]["address"]

    def connect(self, address, port):
        """A connection from inside."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            enter(f"/run/netns/{self.name}")
            return socket.create_connection((address, port), 60)
        finally:
            enter(f"/proc/self/fd/{home}")
            os.close(home)

    def remove(self):
        run("ip", "netns", "del", self.name, check=False)


class Process:
    """A program in a namespace, gone when the stack of its user is left."""

    def __init__(self, stack, namespace, argv, log, **options):
        with open(log, "wb") as output:
            self.process = subprocess.Popen([*namespace.inside, *map(str, argv)], stdout=output,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
        self.namespace, self.log = namespace, log
        stack.callback(self.end)

    def listens(self, port, address="127.0.0.1"):
        """Waits until it does; seconds since now."""
        begun = time.perf_counter()

        def tried():
            assert self.process.poll() is None, self.log.read_text()
            try:
                self.namespace.connect(address, port).close()
                return True
            except OSError:
                return False

        eventually(tried, 30, 0.002, f"port {port}")
        return time.perf_counter() - begun

    def resident_kb(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class World:
    """The world and those who reach it: `direct` with nothing between, `sandbox` and `mitm` for
    those in front of them."""

    def __init__(self, stack, directory):
        self.stack, self.directory = stack, directory
        #: The processes of its TLS servers.
        self.servers = []
        self.world = self._namespace("world", 0)
        self.direct, self.sandbox, self.mitm = (
            self._namespace(name, number) for number, name in enumerate(("direct", "sandbox", "mitm"), 1))
        for address in (PEER, BULK):
            run("ip", "-n", self.world.name, "addr", "add", f"{address}/32", "dev", "lo")
        for namespace in (self.direct, self.sandbox, self.mitm):
            namespace.join(self.world)
        self._certificates()
        self._resolver()
        self._tls_server()
        self._bulk_server()

    def _namespace(self, name, number):
        namespace = Namespace(name, number)
        self.stack.callback(namespace.remove)
        return namespace

    def isolated(self):
        """A namespace without a way to anywhere."""
        return self._namespace("alone", 9)

    def host_and_guest(self):
        """A host that forwards what comes by the link "to5" to the world, and who sends it."""
        host, guest = self._namespace("host", 4), self._namespace("guest", 5)
        host.join(self.world)
        address = guest.join(host)
        run(*host.inside, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        run("ip", "-n", self.world.name, "route", "add", f"{address}/32", "via", "10.80.4.2")
        # Guarded links carry no ARP.
        for place, link, other, peer in ((host, "to5", address, guest.mac("eth0")),
                                         (guest, "eth0", "10.80.5.1", host.mac("to5"))):
            run("ip", "-n", place.name, "neigh", "replace", other, "lladdr", peer, "dev", link,
                "nud", "permanent")
        return host, guest, address

    def _certificates(self):
        self.authority = self.directory / "authority.pem"
        key, server, server_key = (self.directory / name for name in ("ca.key", "server.pem", "server.key"))
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "7")
        run("openssl", "req", "-x509", *curve, "-keyout", key, "-out", self.authority, "-subj", "/CN=bench")
        run("openssl", "req", "-x509", *curve, "-keyout", server_key, "-out", server, "-subj", f"/CN={HOST}",
            "-CA", self.authority, "-CAkey", key, "-addext", f"subjectAltName=DNS:{HOST},DNS:{BULK_HOST}",
            "-addext", "basicConstraints=critical,CA:FALSE")

    def _resolver(self):
        lines = [f'local-data: "n{i}.{ZONE}. 3600 IN A 20.1.{i // 250}.{i % 250}"' for i in range(NAMES)]
        lines += [f'local-data: "{HOST}. 3600 IN A {PEER}"', f'local-data: "{BULK_HOST}. 3600 IN A {BULK}"']
        for i in range(LEARNED_NAMES):
            lines += [f'local-data: "n{MANY + i}.{ZONE}. 3600 IN A 20.2.{i}.{j}"' for j in range(OF_NAME)]
        settings = self.directory / "unbound.conf"
        settings.write_text("\n".join([
            "server:", "interface: 127.0.0.1", f"interface: {PEER}", "access-control: 0.0.0.0/0 allow",
            "do-ip6: no", "do-daemonize: no", 'username: ""', 'chroot: ""', f'directory: "{self.directory}"',
            'pidfile: ""', "use-syslog: no", "verbosity: 0", "num-threads: 1", 'module-config: "iterator"',
            f'local-zone: "{ZONE}." static', *lines, ""]))
        resolver = Process(self.stack, self.world, ["unbound", "-d", "-c", settings], self.directory / "unbound.log")
        resolver.listens(53)

    def _tls_server(self):
        pages = self.directory / "pages"
        pages.mkdir()
        (pages / "small").write_bytes(b"s" * SMALL)
        with open(pages / "big", "wb") as big:
            for _ in range(BIG >> 20):
                big.write(os.urandom(1 << 20))
        settings = self.directory / "nginx.conf"
        settings.write_text(f"""
daemon off; pid {self.directory}/nginx.pid; error_log {self.directory}/nginx.log; user root;
worker_processes 1;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 900s; server_tokens off;
  client_body_temp_path {self.directory}/t1; proxy_temp_path {self.directory}/t2;
  fastcgi_temp_path {self.directory}/t3; uwsgi_temp_path {self.directory}/t4;
  scgi_temp_path {self.directory}/t5;
  server {{
    listen 127.0.0.1:443 ssl http2; listen {PEER}:443 ssl http2; server_name {HOST};
    ssl_certificate {self.directory}/server.pem; ssl_certificate_key {self.directory}/server.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    root {pages};
  }}
}}
""")
        server = Process(self.stack, self.world, ["nginx", "-c", settings], self.directory / "nginx-start.log")
        server.listens(443)
        self.servers.append(server.process.pid)


    def _bulk_server(self):
        server = Process(self.stack, self.world,
                         [PROGRAM, "tls-serve", self.directory / "server.pem", self.directory / "server.key",
                          BULK, BIG], self.directory / "bulk.log")
        server.listens(443, BULK)
        self.servers.append(server.process.pid)


class Sidecar(Process):
    """`opensandbox egress` in the sandbox's namespace, as it is run beside a container."""

    port = 18080

    def __init__(self, stack, world, name, executable=EXECUTABLE, namespace=None, **environment):
        self.directory = world.directory / name
        # What the contract has it leave at fixed places.
        for place in ("var-lib", "opt"):
            (self.directory / place).mkdir(parents=True)
        self.authority = self.directory / "opt" / "opensandbox" / "mitmproxy-ca-cert.pem"
        prepare = (f"mount --bind {self.directory}/var-lib /var/lib && mount --bind {self.directory}/opt /opt && "
                   f"exec {executable} egress")
        settings = {
            "MODE": "dns+nft",
            "HTTP_ADDR": f"127.0.0.1:{self.port}",
            "DNS_UPSTREAM": PEER,
            "DNS_FORWARD_RATE": "0",
            "MITMPROXY_UPSTREAM_EXTRA_CA": str(world.authority),
            **environment,
        }
        self.begun = time.perf_counter()
        super().__init__(stack, namespace or world.sandbox, ["unshare", "-m", "sh", "-c", prepare],
                         world.directory / f"{name}.log",
                         env={**os.environ, **{f"OPENSANDBOX_EGRESS_{k}": v for k, v in settings.items()}})
        self.listens(self.port)
        api = self.api()
        assert api("GET", "/healthz")[0] == 200
        #: Seconds from the start to the answer of /healthz.
        self.started = time.perf_counter() - self.begun

    def api(self):
        """A kept connection: a call gives the status and the seconds that it took."""
        connection = self.namespace.connect("127.0.0.1", self.port)

        def call(method, path, body=b""):
            begun = time.perf_counter()
            connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: sidecar\r\nContent-Length: {len(body)}\r\n\r\n"
                               .encode() + body)
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += self._received(connection)
            head, _, rest = answer.partition(b"\r\n\r\n")
            length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                          if line.lower().startswith(b"content-length:"))
            while len(rest) < length:
                rest += self._received(connection)
            return int(head.split()[1]), time.perf_counter() - begun

        return call

    @staticmethod
    def _received(connection):
        part = connection.recv(65536)
        assert part, "the sidecar closed the connection"
        return part

    def end(self):
        super().end()
        # Its rules stay without it, as they should: they go with what they are to be measured beside.
        run(*self.namespace.inside, "nft", "flush", "ruleset", check=False)


def mitmproxy(stack, world):
    """mitmdump in front of a namespace, set as the contract has it; and what its clients trust."""
    directory = world.directory / "mitmproxy"
    directory.mkdir()
    namespace = world.mitm
    program = ROOT / "build" / "mitmproxy-venv" / "bin" / "mitmdump"
    argv = ["setpriv", f"--regid={MITM_GROUP}", "--clear-groups", program, "--quiet", "--mode", "transparent"]
    for setting in (f"confdir={directory}", "listen_host=127.0.0.1", "listen_port=18081",
                    "connection_strategy=lazy", "stream_large_bodies=1m",
                    f"ssl_verify_upstream_trusted_ca={world.authority}"):
        argv += ["--set", setting]
    process = Process(stack, namespace, argv, directory / "log")
    run(*namespace.inside, "nft", "-f", "-", input=f"""
table ip redirected {{
  chain output {{
    type nat hook output priority -100;
    meta skgid {MITM_GROUP} accept
    ip daddr != 127.0.0.0/8 tcp dport {{ 80, 443 }} redirect to :18081
  }}
}}
""")
    process.listens(18081)
    authority = directory / "mitmproxy-ca-cert.pem"
    eventually(authority.exists, 10, 0.05, "mitmproxy's certificate")
    return process, authority
