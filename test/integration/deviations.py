"""Where the server does better than the published one on purpose (lifecycle 12), seen from outside."""

import json
import socket

import pytest

from support.shell import eventually

COOKIE_SERVICE = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = (self.path + "|" + (self.headers.get("Cookie") or "none")).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "session=1; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
ThreadingHTTPServer(("0.0.0.0", 8070), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def service(server):
    with server.create(entrypoint=["python3", "-c", COOKIE_SERVICE]) as sandbox:
        api = server.api(key=False)
        eventually(lambda: get(api, sandbox, "/").status == 200, 20, 0.05, "the service inside")
        yield sandbox


def get(api, sandbox, path):
    return api.get(sandbox.path("/proxy/8070") + path, check=False)


@pytest.mark.parametrize("path", ["/healthz", "/health/", "/version2", "/docsx", "/docs/x", "/redoc2",
                                  "/openapi.json.bak"])
def test_only_the_open_paths_themselves_are_open(server, path):
    assert server.api(key=False, prefix="").get(path).status == 401
    assert server.api(prefix="").get(path).status in (307, 404)


def test_a_sandboxs_cookies_are_not_sent_back_to_it(server, service):
    api = server.api(key=False)
    for _ in range(3):
        reply = get(api, service, "/c")
        assert reply.header("Set-Cookie") == "session=1; Path=/"
        assert reply.text == "/c|none"


def test_paths_arrive_as_they_were_sent(server, service):
    raw = "/a%2Fb/%2e%2e/c%20d//e?x=%2F&y=+"
    assert get(server.api(key=False), service, raw).text == raw + "|none"


def exchange(server, request):
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/v1/none", 404), ("PUT", "/v1/sandboxes", 405), ("POST", "/v1/sandboxes", 422)])
def test_every_error_is_json_with_a_body_and_a_request_id(server, method, path, status):
    request = (f"{method} {path} HTTP/1.1\r\nHost: x\r\nOPEN-SANDBOX-API-KEY: {server.key}\r\n"
               "Content-Length: 2\r\nConnection: close\r\n\r\n{}")
    head, body = exchange(server, request.encode()).split(b"\r\n\r\n", 1)
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), head
    assert json.loads(body)
    lower = head.lower()
    assert b"content-type: application/json" in lower and b"x-request-id: " in lower
    assert lower.count(b"\r\ndate: ") == 1 and b"\r\nvary: origin" in lower
