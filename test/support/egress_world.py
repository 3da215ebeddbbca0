"""A world for tests of egress control: a namespace of the test's own, which is the way out of every
sandbox. It has a name server, and HTTP and TLS servers that note what they are asked; the TLS servers'
authority is known to nobody but those who are given its file."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support import rootfs
from support.docker_server import DockerServer
from support.dockerd import DEBIAN, Dockerd
from support.own_network import enter
from support.server import Server
from support.shell import eventually, run

RESOLVER = "203.0.113.53"
API, OTHER, DENIED, UNNAMED = "203.0.113.10", "203.0.113.11", "203.0.113.12", "203.0.113.13"
PASSED, PROXY = "203.0.113.14", "203.0.113.80"
#: A name's address. INNER leads to where no name of the outside may lead.
NAMES = {"api.example": API, "other.example": OTHER, "denied.example": DENIED,
         "deep.sub.example": API, "passed.example": PASSED, "inner.example": "10.99.0.1"}

_SERVERS = r'''
import http.server, json, os, socketserver, ssl, sys, threading

directory, addresses = sys.argv[1], sys.argv[2:]
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seen = {"method": self.command, "path": self.path, "headers": dict(self.headers.items()),
                "body": body.decode("latin-1"), "address": self.connection.getsockname()[0],
                "tls": isinstance(self.connection, ssl.SSLSocket)}
        with lock, open(directory + "/requests", "a") as log:
            log.write(json.dumps(seen) + "\n")
        text = json.dumps({"path": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if "echo" in self.path:
            # What a careless service does: it sends back what it was sent.
            self.send_header("X-Echo", self.headers.get("Authorization") or "none")
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    tls = None

    def get_request(self):
        connection, peer = super().get_request()
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_side=True,
                                              do_handshake_on_connect=False)
        return connection, peer

    def handle_error(self, *_):
        pass


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(directory + "/server.pem", directory + "/server.key")
for address in addresses:
    for port in (80, 443):
        server = Server((address, port), Handler)
        server.tls = tls if port == 443 else None
        threading.Thread(target=server.serve_forever).start()
open(directory + "/ready", "w").close()
'''


#: A proxy that knows CONNECT alone.
_PROXY = r'''
import asyncio, json, sys

address, directory, names = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])


async def pump(reader, writer):
    try:
        while not reader.at_eof():
            writer.write(await reader.read(65536))
            await writer.drain()
    finally:
        writer.close()


async def serve(reader, writer):
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split("\r\n")[0].split(" ")
        said = [line.split(": ", 1)[1] for line in head.split("\r\n")
                if line.lower().startswith("proxy-authorization: ")]
        with open(directory + "/proxied", "a") as log:
            log.write(f"{method} {target}\t{','.join(said)}\n")
        if method != "CONNECT":
            writer.write(b"HTTP/1.1 405 CONNECT only\r\nContent-Length: 0\r\n\r\n")
            return writer.close()
        host, port = target.rsplit(":", 1)
        there = await asyncio.open_connection(names.get(host, host), int(port))
    except (OSError, ValueError, asyncio.IncompleteReadError):
        return writer.close()
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
    await asyncio.gather(pump(reader, there[1]), pump(there[0], writer), return_exceptions=True)


async def main():
    await asyncio.start_server(serve, address, 3128)
    await asyncio.Event().wait()


asyncio.run(main())
'''


class World:
    """Until a runtime's sandboxes are plugged in, nobody is there."""

    def __init__(self):
        # There may be one for each runtime at once.
        kind = type(self).__name__.removesuffix("World").lower()
        self.name = f"osbw{os.getpid()}{kind}"
        self.processes = []

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="osb-world-", dir="/var/tmp"))
        # Who reads the authority's file need not be root.
        self.directory.chmod(0o755)
        self.authority = self.directory / "authority.pem"
        try:
            run("ip", "netns", "add", self.name)
            self._inside("link", "set", "lo", "up")
            for address in (RESOLVER, PROXY, *sorted(set(NAMES.values())), UNNAMED):
                self._inside("addr", "add", f"{address}/32", "dev", "lo")
            self._certify()
            self._serve()
            self._plug_in()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        run("ip", "netns", "del", self.name, check=False)
        run("rm", "-rf", self.directory)

    def _inside(self, *argv):
        return run("ip", "-n", self.name, *argv)

    def _certify(self):
        make = lambda *words: run("openssl", *words, cwd=self.directory)
        ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        make("req", "-x509", *ec, "-days", "2", "-subj", "/CN=authority of the world",
             "-keyout", "authority.key", "-out", "authority.pem")
        names = ",".join(f"DNS:{name}" for name in NAMES)
        make("req", *ec, "-subj", "/CN=world", "-keyout", "server.key", "-out", "server.csr")
        (self.directory / "names").write_text(f"subjectAltName={names}\n")
        make("x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key",
             "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem")

    def _serve(self):
        records = [f"--host-record={name},{address}" for name, address in NAMES.items()]
        self._start("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
                    "--user=root", "--pid-file=", "--bind-interfaces", f"--listen-address={RESOLVER}",
                    "--local-ttl=120", "--local=/example/", "--log-queries",
                    f"--log-facility={self.directory}/queries", *records)
        self._start(sys.executable, "-c", _SERVERS, self.directory, API, OTHER, DENIED, UNNAMED, PASSED,
                    NAMES["inner.example"])
        self._start(sys.executable, "-c", _PROXY, PROXY, self.directory, json.dumps(NAMES))
        eventually((self.directory / "ready").exists, 20, 0.02, "the servers of the world")
        eventually(lambda: "started" in self._text("queries"), 20, 0.02, "its name server")

    def _start(self, *argv):
        with (self.directory / "log").open("ab") as log:
            self.processes.append(subprocess.Popen(
                ["ip", "netns", "exec", self.name, *map(str, argv)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def _text(self, name):
        path = self.directory / name
        return path.read_text(errors="replace") if path.exists() else ""

    def requests(self, path):
        """What the servers were asked on this path, in order."""
        return [r for r in map(json.loads, self._text("requests").splitlines()) if r["path"] == path]

    def proxied(self):
        """What the world's proxy (PROXY:3128) was asked for: target and authorization."""
        return [tuple(line.split("\t")) for line in self._text("proxied").splitlines()]

    def asked(self, name):
        """The queries for a name that arrived at the name server."""
        return [line for line in self._text("queries").splitlines() if "query[" in line and f" {name} " in line]

    def _sections(self, sections):
        """Egress control trusts the world's authority."""
        egress = {"upstream_proxy": {"ca_cert_path": str(self.authority)}, **sections.pop("egress", {})}
        return {"egress": egress, **sections}


class DockerWorld(World):
    """Behind a private engine: on its bridge, as the gateway of all containers. `docker` is the
    engine."""

    def __init__(self):
        super().__init__()
        self.docker = Dockerd(reachable=True, options=[
            "--default-gateway", "{network}.0.2", "--dns", RESOLVER])

    def __exit__(self, *_):
        if self.docker.process:
            self.docker.__exit__()
        super().__exit__()

    def _plug_in(self):
        self.docker.__enter__()
        # Taken for the engine's own by a census, as its bridge is.
        plug = self.docker.bridge + "w"
        run("ip", "link", "add", plug, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "link", "set", plug, "master", self.docker.bridge, "up")
        self._inside("addr", "add", f"{self.docker.network}.0.2/20", "dev", "eth0")
        self._inside("link", "set", "eth0", "up")
        # Debian with the root certificates of this machine, as such images have them.
        tree = rootfs.debian_tree(self.directory / "debian")
        roots = tree / "etc/ssl/certs/ca-certificates.crt"
        roots.parent.mkdir(parents=True, exist_ok=True)
        roots.write_bytes(Path("/etc/ssl/certs/ca-certificates.crt").read_bytes())
        self.docker.import_tree(tree, DEBIAN)

    def server(self, directory, **sections):
        return DockerServer(directory, self.docker, sections=self._sections(sections))


class NativeWorld(World):
    """Behind a host of the test's own: a namespace that is routed to it, which this thread is in
    while it lasts."""

    def __init__(self):
        super().__init__()
        self.host = f"osbh{os.getpid()}"
        self.home = None

    def __exit__(self, *_):
        if self.home is not None:
            enter(f"/proc/self/fd/{self.home}")
            os.close(self.home)
        run("ip", "netns", "del", self.host, check=False)
        super().__exit__()

    def _plug_in(self):
        on_host = ("ip", "-n", self.host)
        run("ip", "netns", "add", self.host)
        run(*on_host, "link", "set", "lo", "up")
        run(*on_host, "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run(*on_host, "addr", "add", "192.0.2.1/30", "dev", "up0")
        self._inside("addr", "add", "192.0.2.2/30", "dev", "eth0")
        run(*on_host, "link", "set", "up0", "up")
        self._inside("link", "set", "eth0", "up")
        run(*on_host, "route", "add", "default", "via", "192.0.2.2")
        self._inside("route", "add", "default", "via", "192.0.2.1")
        run("ip", "netns", "exec", self.host, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        (self.directory / "resolv.conf").write_text(f"nameserver {RESOLVER}\n")
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        enter(f"/run/netns/{self.host}")

    def server(self, directory, **sections):
        bind = f'mount --bind {self.directory}/resolv.conf /etc/resolv.conf && exec "$@"'
        return Server(directory, sections=self._sections(sections),
                      launcher=["ip", "netns", "exec", self.host, "sh", "-c", bind, "sh"])


#: A program that says how a request fared: "200 BODY" or the kind of what went wrong.
FETCH = r'''
import socket, ssl, sys, urllib.error, urllib.request
socket.setdefaulttimeout(8)
url, *fields = sys.argv[1:]
request = urllib.request.Request(url, headers=dict(f.split("=", 1) for f in fields))
try:
    with urllib.request.urlopen(request) as reply:
        print(reply.status, reply.headers.get("X-Echo", ""), reply.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode(errors="replace")[:300])
except OSError as error:
    reason = getattr(error, "reason", error)
    print(type(reason).__name__, reason)
'''


def fetch(sandbox, url, *fields):
    """A request of a program in the sandbox."""
    return sandbox.run(["python3", "-c", FETCH, url, *fields]).stdout.strip()
