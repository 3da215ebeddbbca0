"""HTTPS that is intercepted on its way out of a sandbox: the programs inside take the interceptor for
the server, and who tries to get past it, or by another name, reaches nobody."""

import json
import os
import uuid

import pytest

from support.client import Http
from support.egress_world import API, DENIED, OTHER, PASSED, PROXY, DockerWorld, NativeWorld, fetch
from support.shell import run

POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "api.example"},
                                              {"action": "allow", "target": "*.sub.example"},
                                              {"action": "allow", "target": "passed.example"}]}
#: The operator's.
SETTINGS = {"OPENSANDBOX_EGRESS_MITMPROXY_IGNORE_HOSTS": "passed.example"}

NODE = """
require("https").get(process.argv[2], reply => reply.pipe(process.stdout))
  .on("error", error => console.log(error.code))
"""
JAVA = """
import java.net.URI;

public class Get {
    public static void main(String[] arguments) throws Exception {
        try (var body = URI.create(arguments[0]).toURL().openStream()) {
            System.out.println(new String(body.readAllBytes()));
        }
    }
}
"""
GO = """
package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	reply, err := http.Get(os.Args[1])
	if err != nil {
		panic(err)
	}
	io.Copy(os.Stdout, reply.Body)
}
"""
#: What asks for a URL, and the program that it needs: its name there and its text.
CLIENTS = {
    "curl": (["curl", "-sS"], None),
    "wget": (["wget", "-qO-"], None),
    "git": (["git", "ls-remote"], None),
    "python": (["python3", "/tmp/get.py"],
               ("/tmp/get.py", "import sys, urllib.request as u\nprint(u.urlopen(sys.argv[1]).read())\n")),
    "requests": (["/usr/bin/python3", "/tmp/by_requests.py"],
                 ("/tmp/by_requests.py", "import sys, requests\nprint(requests.get(sys.argv[1]).text)\n")),
    "node": (["node", "/tmp/get.js"], ("/tmp/get.js", NODE)),
    "java": (["java", "/tmp/Get.java"], ("/tmp/Get.java", JAVA)),
    "go": (["/tmp/get-by-go"], None),
}

#: One attempt to get out by TLS: its address, the name in its hello ("" for none), the host in its
#: request, what it says first instead of a hello.
ATTEMPT = r'''
import errno, json, socket, ssl, sys
address, name, host, path, plain = json.loads(sys.argv[1])
context = ssl._create_unverified_context()
try:
    with socket.create_connection((address, 443), 5) as connection:
        if plain:
            connection.sendall(plain.encode())
        else:
            connection = context.wrap_socket(connection, server_hostname=name or None)
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        reply = connection.recv(65536)
        print(reply.split(b" ")[1].decode() if reply.startswith(b"HTTP/") else "closed")
except TimeoutError:
    print("silence")
except ssl.SSLError as error:
    print("tls")
except OSError as error:
    print(errno.errorcode.get(error.errno, error))
'''

DATAGRAM = r'''
import errno, socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
    sending.settimeout(1)
    try:
        sending.connect((sys.argv[1], 443))
        sending.send(b"hello")
        sending.recv(100)
        print("answered")
    except TimeoutError:
        print("silence")
    except OSError as error:
        print(errno.errorcode.get(error.errno, error))
'''


WORLDS = {"native": NativeWorld, "docker": DockerWorld}


@pytest.fixture(scope="module", params=WORLDS)
def place(request, scratch):
    """A sandbox whose HTTPS is intercepted, and its world."""
    with WORLDS[request.param]() as world:
        server = world.server(scratch / f"interception-{request.param}", **{"egress.environment": SETTINGS})
        try:
            server.start()
            with server.create(networkPolicy=POLICY, credentialProxy={"enabled": True}) as sandbox:
                yield sandbox, world
        finally:
            server.destroy()


def path():
    """One that no other test asks for."""
    return "/" + uuid.uuid4().hex


def attempt(sandbox, address, *, name, host=None, path="/", plain=None):
    words = json.dumps([address, name, host or name, path, plain])
    return sandbox.run(["python3", "-c", ATTEMPT, words]).stdout.strip()


def refusals(sandbox):
    endpoint = sandbox.endpoint(18080)
    api = Http(endpoint["endpoint"], "egress", "", endpoint["headers"], 20)
    return api.get("/policy/denials", query={"limit": 1000, "since": 0}).json["denials"]


@pytest.fixture(scope="module")
def by_go(tmp_path_factory):
    directory = tmp_path_factory.mktemp("by-go")
    (directory / "get.go").write_text(GO)
    run("go", "build", "-o", "get", "get.go", cwd=directory,
        env={"PATH": f"/usr/local/go/bin:{os.environ['PATH']}", "HOME": os.environ["HOME"],
             "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}, timeout=600)
    return directory / "get"


#: The image under Docker has Python alone; what is linked statically runs in any.
CLIENTS_OF = [("native", client) for client in CLIENTS] + [("docker", "python"), ("docker", "go")]


@pytest.mark.parametrize("place, client", CLIENTS_OF, indirect=["place"], scope="module")
def test_programs_inside_trust_what_intercepts(place, client, request):
    """What answers for the names of the world has a certificate of an authority that nothing inside
    knows: who reads a reply has it from the interceptor."""
    reads_by(client, place, request)


@pytest.mark.parametrize("place", ["native"], indirect=True, scope="module")
@pytest.mark.parametrize("client", sorted(set(CLIENTS) - {"node", "requests"}))
def test_they_do_so_without_their_environment(place, client, request):
    """By the system's store; the two that are not here have roots of their own."""
    reads_by(client, place, request, ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/root"])


def reads_by(client, place, request, before=()):
    sandbox, world = place
    argv, program = CLIENTS[client]
    if client == "go":
        sandbox.agent.write("/tmp/get-by-go", request.getfixturevalue("by_go").read_bytes())
        sandbox.sh("chmod 755 /tmp/get-by-go")
    if program:
        sandbox.agent.write(program[0], program[1].encode())
    asked = path()
    done = sandbox.run([*before, *argv, f"https://api.example{asked}"])
    # git asks for a part of a repository.
    seen = [r for p in (asked, f"{asked}/info/refs?service=git-upload-pack") for r in world.requests(p)]
    assert [r["tls"] for r in seen] == [True], (done, seen)
    if client != "git":
        assert asked in done.stdout, done


def test_all_names_of_a_wildcard_get_certificates_of_their_own(place):
    sandbox, world = place
    asked = path()
    assert fetch(sandbox, f"https://deep.sub.example{asked}").startswith("200")
    assert world.requests(asked)[0]["headers"]["Host"] == "deep.sub.example"


@pytest.mark.parametrize("label, address, name, host", [
    ("the name of one and the host of another", API, "api.example", "other.example"),
    ("a denied name at an allowed address", API, "denied.example", "denied.example"),
    ("no name and an allowed host", API, "", "api.example"),
    ("an allowed name at an address that nothing led to", OTHER, "api.example", "api.example"),
    ("an allowed name at a denied address", DENIED, "api.example", "api.example"),
])
def test_nobody_gets_out_by_the_name_of_another(place, label, address, name, host):
    sandbox, world = place
    assert fetch(sandbox, f"https://api.example{path()}").startswith("200")  # the address is open
    asked = path()
    outcome = attempt(sandbox, address, name=name, host=host, path=asked)
    arrived = world.requests(asked)
    if label == "an allowed name at an address that nothing led to" and arrived:
        # The interceptor goes where the name leads, not where the program sent it.
        assert [r["address"] for r in arrived] == [API]
    else:
        assert not arrived, (outcome, arrived)
        assert outcome in ("421", "403", "ECONNREFUSED", "ECONNRESET", "tls", "closed"), outcome


@pytest.mark.parametrize("plain", ["SSH-2.0-tunnel\r\n", "GET / HTTP/1.1\r\nHost: api.example\r\n\r\n",
                                   "\x16\x03\x01\x00\x05hello"])
def test_what_is_no_tls_does_not_pass_where_tls_is_intercepted(place, plain):
    sandbox, world = place
    assert fetch(sandbox, f"https://api.example{path()}").startswith("200")
    before = len(world.requests("/"))
    outcome = attempt(sandbox, API, name="", plain=plain)
    # A request in clear is judged as one; what is behind the port does not understand it.
    assert outcome in (("502",) if "HTTP" in plain else ("ECONNRESET", "closed")), outcome
    assert len(world.requests("/")) == before


def test_quic_is_refused_so_that_clients_use_what_is_intercepted(place):
    sandbox, world = place
    assert fetch(sandbox, f"https://api.example{path()}").startswith("200")
    outcome = sandbox.run(["python3", "-c", DATAGRAM, API]).stdout.strip()
    assert outcome in ("ECONNREFUSED", "EPERM", "EHOSTUNREACH"), outcome
    assert any(r["port"] == 443 and r["protocol"] == "udp" and "quic" in r["reason"].lower()
               for r in refusals(sandbox) if r["kind"] == "address"), refusals(sandbox)


#: Reads a URL and trusts one authority alone.
FETCH_TRUSTING = r"""
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[2])
try:
    print(urllib.request.urlopen(sys.argv[1], context=context, timeout=8).status)
except OSError as error:
    print(getattr(error, "reason", error))
"""


def test_what_the_operator_lists_is_not_intercepted(place):
    """The program meets the server's own certificate there, and nowhere else."""
    sandbox, world = place
    sandbox.agent.write("/tmp/authority.pem", world.authority.read_bytes())

    def read(url):
        return sandbox.run(["python3", "-c", FETCH_TRUSTING, url, "/tmp/authority.pem"]).stdout.strip()

    asked = path()
    assert read(f"https://passed.example{asked}") == "200"
    assert world.requests(asked)[0]["address"] == PASSED
    assert "CERTIFICATE_VERIFY_FAILED" in read(f"https://api.example{path()}")
    # Names still count: this is the listed one's address and another's name.
    unseen = path()
    outcome = attempt(sandbox, PASSED, name="api.example", path=unseen)
    assert [r["address"] for r in world.requests(unseen)] in ([], [API]), outcome
    assert attempt(sandbox, PASSED, name="denied.example", path=unseen) in ("ECONNRESET", "tls", "closed")


def test_intercepted_requests_leave_by_the_operators_proxy(place, scratch):
    _, world = place
    proxy = {"url": f"http://{PROXY}:3128", "authorization": "Basic b3BlcmF0b3I6c2VjcmV0",
             "ca_cert_path": str(world.authority)}
    server = world.server(scratch / f"proxied-{type(world).__name__}", egress={"upstream_proxy": proxy})
    try:
        server.start()
        with server.create(networkPolicy=POLICY, credentialProxy={"enabled": True}) as sandbox:
            asked = path()
            assert fetch(sandbox, f"https://api.example{asked}").startswith("200")
            assert len(world.requests(asked)) == 1
            [(target, said)] = world.proxied()
            assert target in (f"CONNECT {API}:443", "CONNECT api.example:443")
            assert said == proxy["authorization"]
            # What the policy denies is not handed to the proxy either.
            assert not fetch(sandbox, f"https://denied.example{path()}").startswith("200")
            assert len(world.proxied()) == 1
            assert "secret" not in sandbox.sh("env") and "b3BlcmF0b3" not in sandbox.sh("env")
    finally:
        server.destroy()
