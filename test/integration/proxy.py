"""The server's proxy passes on what it gets: HTTP byte by byte, events as they come, WebSocket."""

import base64
import http.client
import json
import os
import socket

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from support.client import Http
from support.shell import eventually

# A service for the inside that says exactly what it received.
SERVICE = r'''
import base64, hashlib, json, socketserver, struct, threading
go = threading.Event()

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while True:
            line = self.rfile.readline()
            if not line:
                return
            request_line = line.decode("latin-1").rstrip("\r\n")
            headers = []
            while True:
                line = self.rfile.readline().decode("latin-1").rstrip("\r\n")
                if not line:
                    break
                headers.append(line.split(": ", 1) if ": " in line else [line.rstrip(":"), ""])
            small = {k.lower(): v for k, v in headers}
            if small.get("upgrade", "").lower() == "websocket" and " /refused " not in request_line:
                return self.websocket(small)
            body = b""
            self.trailers = []
            if "chunked" in small.get("transfer-encoding", ""):
                while True:
                    size = int(self.rfile.readline().split(b";")[0], 16)
                    if size == 0:
                        break
                    body += self.rfile.read(size)
                    self.rfile.readline()
                while True:
                    line = self.rfile.readline().decode("latin-1").strip()
                    if not line:
                        break
                    self.trailers.append(line.split(": ", 1))
            elif "content-length" in small:
                body = self.rfile.read(int(small["content-length"]))
            if not self.answer(request_line, headers, body):
                return

    def answer(self, request_line, headers, body):
        target = request_line.split(" ")[1]
        write = self.wfile.write
        if target.startswith("/events"):
            write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for n in range(2):
                part = b"data: %d\n\n" % n
                write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
                if n == 0:
                    go.wait(30)
            write(b"0\r\n\r\n")
        elif target.startswith("/go"):
            go.set()
            write(b"HTTP/1.1 204 No Content\r\n\r\n")
        elif target.startswith("/moved"):
            write(b"HTTP/1.1 302 Found\r\nLocation: /there?x=1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
                  b"Server: hidden\r\nX-Kept: yes\r\nConnection: X-Dropped\r\nX-Dropped: 1\r\nContent-Length: 0\r\n\r\n")
        elif target.startswith("/refused"):
            write(b"HTTP/1.1 403 Forbidden\r\nX-Why: own\r\nContent-Length: 3\r\n\r\nown")
        elif target.startswith("/away"):
            write(b"HTTP/1.1 301 Moved\r\nLocation: http://example.org/x\r\nContent-Length: 0\r\n\r\n")
        elif target.startswith("/bytes"):
            write(b"HTTP/1.1 299 Odd\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        elif target.startswith("/trailers"):
            text = json.dumps(self.trailers).encode()
            write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n"
                  b"0\r\nX-Sum: abc\r\nX-Sum: def\r\n\r\n" % (len(text), text))
        elif target.startswith("/drop"):
            write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
            return False
        elif target.startswith("/nonsense"):
            write(b"this is no HTTP\r\n\r\n")
            return False
        else:
            text = json.dumps({"line": request_line, "headers": headers,
                               "body": base64.b64encode(body).decode()}).encode()
            write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                  % (len(text), text))
        return True

    def websocket(self, headers):
        accept = base64.b64encode(hashlib.sha1(
            (headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        chosen = b""
        if "sec-websocket-protocol" in headers:
            chosen = b"Sec-WebSocket-Protocol: %s\r\n" % headers["sec-websocket-protocol"].split(",")[-1].strip().encode()
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         b"Sec-WebSocket-Accept: %s\r\n%s\r\n" % (accept, chosen))
        message = b""
        while True:
            first, second = self.rfile.read(2)
            size = second & 127
            if size == 126:
                size, = struct.unpack(">H", self.rfile.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.rfile.read(8))
            mask = self.rfile.read(4) if second & 128 else bytes(4)
            data = bytes(c ^ mask[i % 4] for i, c in enumerate(self.rfile.read(size)))
            kind = first & 15
            if kind == 8:
                self.send(8, struct.pack(">H", 4321) + b"seen")
                return
            if kind == 9:
                self.send(10, data)
                continue
            if kind in (1, 2):
                current, message = kind, b""
            message += data
            if first & 128 and kind != 10:
                if message == b"headers":
                    message = json.dumps(headers).encode()
                self.send(current, message)

    def send(self, kind, data):
        head = bytes([128 | kind])
        if len(data) < 126:
            head += bytes([len(data)])
        elif len(data) < 65536:
            head += bytes([126]) + struct.pack(">H", len(data))
        else:
            head += bytes([127]) + struct.pack(">Q", len(data))
        self.wfile.write(head + data)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server(("0.0.0.0", 8000), Handler).serve_forever()
'''


@pytest.fixture(scope="module")
def inside(server):
    with server.create() as sandbox:
        assert sandbox.agent.write("/tmp/service.py", SERVICE).status == 200
        list(sandbox.agent.events({"command": "python3 /tmp/service.py", "background": True}))
        sandbox.sh("until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8000))'"
                   " 2>/dev/null; do sleep 0.05; done")
        yield sandbox


def proxied(sandbox, **options):
    """The service by way of the server; nothing is checked against our specification."""
    return Http(sandbox.server.address, None, f"/v1/sandboxes/{sandbox.id}/proxy/8000", **options)


def received(reply):
    assert reply.status == 200, reply
    told = reply.json
    told["body"] = base64.b64decode(told["body"])
    told["names"] = {k.lower(): v for k, v in told["headers"]}
    return told


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_method_path_and_query_arrive_as_sent(inside, method):
    target = "/a%2Fb/c%20d//e?x=%2f&y=a+b&&z"
    told = received(proxied(inside).request(method, target))
    assert told["line"] == f"{method} {target} HTTP/1.1"


def test_the_path_may_be_missing(inside):
    assert received(proxied(inside).get(""))["line"] == "GET / HTTP/1.1"
    assert received(proxied(inside).get("/"))["line"] == "GET / HTTP/1.1"
    assert received(proxied(inside).get("", raw_query="q=1"))["line"] == "GET /?q=1 HTTP/1.1"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_arrive_byte_by_byte(inside, method, chunked):
    data = os.urandom(300_000)
    body = (data[i:i + 7001] for i in range(0, len(data), 7001)) if chunked else data
    headers = {"Transfer-Encoding": "chunked"} if chunked else {}
    client = proxied(inside)
    client.connection.request(method, client.prefix + "/x", body=body, headers=headers,
                              encode_chunked=chunked)
    response = client.connection.getresponse()
    told = json.loads(response.read())
    assert base64.b64decode(told["body"]) == data


def test_replies_come_back_byte_by_byte(inside):
    data = os.urandom(200_000)
    reply = proxied(inside).post("/bytes", data)
    assert reply.status == 299
    assert reply.body == data, "not decoded, whatever Content-Encoding says"
    assert reply.header("Content-Encoding") == "gzip"


def test_headers_of_the_server_stay_with_it_and_others_pass(inside):
    told = received(proxied(inside).get("/h", headers={
        "OPEN-SANDBOX-API-KEY": inside.server.key, "Authorization": "Basic eA==", "Cookie": "c=1",
        "X-Forwarded-For": "203.0.113.9", "X-Real-IP": "203.0.113.9", "Forwarded": "for=x",
        "X-Custom": "kept", "X-Request-ID": "abc", "Accept-Encoding": "br", "TE": "trailers",
        "Connection": "close, X-Hop", "X-Hop": "1",
    }))["names"]
    for name in ("open-sandbox-api-key", "authorization", "cookie", "x-real-ip", "forwarded", "te", "x-hop"):
        assert name not in told, name
    assert told["x-custom"] == "kept" and told["x-request-id"] == "abc"
    assert told["accept-encoding"] == "br"
    assert told["x-forwarded-for"] == "127.0.0.1"
    assert told["x-forwarded-proto"] == "http"
    assert told["x-forwarded-host"] == inside.server.address
    assert told["host"].endswith(":8000")


def test_headers_of_replies_pass_and_locations_lead_back(inside):
    reply = proxied(inside).get("/moved")
    assert reply.status == 302
    assert reply.header("Location") == f"/v1/sandboxes/{inside.id}/proxy/8000/there?x=1"
    assert [v for k, v in reply.headers if k.lower() == "set-cookie"] == ["a=1", "b=2"]
    assert reply.header("X-Kept") == "yes"
    assert reply.header("X-Dropped") is None and reply.header("Server") != "hidden"
    away = proxied(inside).get("/away")
    assert away.status == 301 and away.header("Location") == "http://example.org/x"
    # Cookies of one reply never come back with another request.
    assert "cookie" not in received(proxied(inside).get("/h"))["names"]


def test_trailers_pass_both_ways(inside):
    host, port = inside.server.address.split(":")
    with socket.create_connection((host, int(port)), 30) as link:
        link.sendall(
            f"POST /v1/sandboxes/{inside.id}/proxy/8000/trailers HTTP/1.1\r\nHost: h\r\n"
            "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            "2\r\nab\r\n0\r\nX-Digest: 1\r\nX-Digest: 2\r\n\r\n".encode()
        )
        answer = b""
        while piece := link.recv(65536):
            answer += piece
    assert b'[["X-Digest", "1"], ["X-Digest", "2"]]' in answer
    assert answer.endswith(b"0\r\nX-Sum: abc\r\nX-Sum: def\r\n\r\n")


def test_events_come_as_they_are_sent(inside):
    response = proxied(inside).open("GET", "/events")
    assert response.getheader("Content-Type") == "text/event-stream"
    assert response.read1(100) == b"data: 0\n\n"
    # The service sends the rest only after this, so the first part was not held back.
    assert proxied(inside).get("/go").status == 204
    assert response.read() == b"data: 1\n\n"


def test_no_key_is_needed_and_the_agent_keeps_its_own_token(inside):
    assert proxied(inside).get("/x").status == 200
    agent = Http(inside.server.address, None, f"/v1/sandboxes/{inside.id}/proxy/44772")
    assert agent.get("/ping").status in (200, 401)
    token = inside.endpoint(44772, proxy=True).get("headers", {})
    assert agent.get("/ping", headers=token).status == 200


def test_what_is_not_served(inside):
    api = inside.server.api()
    base = f"/sandboxes/{inside.id}/proxy"
    for method in ("HEAD", "OPTIONS"):
        reply = api.request(method, f"{base}/8000/x", check=False)
        assert reply.status == 405
        assert set(reply.header("Allow").replace(" ", "").split(",")) == {
            "GET", "DELETE", "POST", "PUT", "PATCH"
        }
    refused = api.get(f"{base}/8001/x")
    assert (refused.status, refused.json["code"]) == (502, "BACKEND_CONNECTION_FAILED")
    for path in ("/nonsense",):
        broken = api.get(f"{base}/8000{path}")
        assert (broken.status, broken.json["code"]) == (502, "BACKEND_RESPONSE_FAILED")
    assert api.get(f"{base}/0/x").json["code"] == "NATIVE::INVALID_PORT"
    with pytest.raises(http.client.IncompleteRead):
        proxied(inside).get("/drop")


def url(sandbox, path="/ws"):
    return f"ws://{sandbox.server.address}/v1/sandboxes/{sandbox.id}/proxy/8000{path}"


def test_websocket_messages_pass_both_ways(inside):
    with connect(url(inside), compression=None, max_size=None) as ws:
        ws.send("text: grüße")
        assert ws.recv() == "text: grüße"
        for size in (0, 1, 125, 126, 65535, 65536, 1_000_000):
            data = os.urandom(size)
            ws.send(data)
            assert ws.recv() == data
        ws.send(["in ", "three ", "fragments"])
        assert ws.recv() == "in three fragments"


def test_websocket_handshake_relays_subprotocol_and_origin(inside):
    with connect(url(inside), subprotocols=["one", "two"], origin="http://example.org",
                 additional_headers={"Cookie": "c=1", "X-Custom": "kept"}, compression=None) as ws:
        assert ws.subprotocol == "two"
        ws.send("headers")
        told = json.loads(ws.recv())
    assert told["origin"] == "http://example.org"
    assert told["x-custom"] == "kept" and "cookie" not in told
    assert [p.strip() for p in told["sec-websocket-protocol"].split(",")] == ["one", "two"]


def test_websocket_close_codes_pass(inside):
    with connect(url(inside), compression=None) as ws:
        ws.close(4001, "bye")
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv()
    assert closed.value.rcvd is not None and closed.value.rcvd.code in (4001, 4321)


#: Speaks first, as VNC does, or breaks off; on all addresses, and on loopback, where only the agent gets.
NO_HTTP = """
import socketserver, threading
class Speaks(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"RFB 003.008\\n")
        self.request.recv(4096)
class BreaksOff(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(4096)
for port, kind in ((8002, Speaks), (8004, BreaksOff)):
    for address in (("0.0.0.0", port), ("127.0.0.1", port + 1)):
        threading.Thread(target=socketserver.ThreadingTCPServer(address, kind).serve_forever).start()
"""


def refusal(address):
    with pytest.raises(InvalidStatus) as refused:
        with connect(address, compression=None):
            pass
    return refused.value.response


def test_a_websocket_is_agreed_to_by_the_service_or_not_at_all(inside):
    own = refusal(url(inside, "/refused"))
    assert (own.status_code, own.headers["X-Why"], bytes(own.body)) == (403, "own", b"own")
    assert refusal(url(inside).replace(inside.id, "none")).status_code == 404
    nothing = refusal(url(inside).replace("/8000/", "/8001/"))
    assert nothing.status_code == 502
    assert json.loads(nothing.body)["code"] == "BACKEND_CONNECTION_FAILED"
    list(inside.agent.events({"command": f"python3 -c '{NO_HTTP}'", "background": True}))
    inside.sh("until [ $(grep -cE ':1F4[2345] ' /proc/net/tcp) -ge 4 ]; do sleep 0.05; done")
    for port in (8002, 8003, 8004, 8005):
        refused = refusal(url(inside).replace("/8000/", f"/{port}/"))
        assert refused.status_code == 502, port
        assert json.loads(refused.body)["code"] == "BACKEND_RESPONSE_FAILED", port


def test_the_agents_own_proxy_reaches_loopback_of_the_sandbox(inside):
    agent = inside.connect()
    agent.surface = None
    told = received(agent.get("/proxy/8000/a%2Fb?x=1"))
    assert told["line"] == "GET /a%2Fb?x=1 HTTP/1.1"
    endpoint = inside.endpoint(8000)
    direct = Http(endpoint["endpoint"], headers=endpoint.get("headers"))
    assert eventually(lambda: direct.get("/direct").status == 200)


def test_tokens_in_paths_are_in_no_log(server):
    with server.create() as sandbox:
        token = "a-token-that-came-in-a-path"
        for rest in ("/ping", "?x=1", ""):
            server.api().get(f"/sandboxes/{sandbox.id}/proxy/44772/.access/{token}{rest}")
        log = server.log.read_text()
        assert f"/sandboxes/{sandbox.id}/proxy/44772/.access/***" in log
        assert token not in log
