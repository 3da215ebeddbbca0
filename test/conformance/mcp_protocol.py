"""What clients that err, give up or go away meet at `opensandbox mcp`: messages as they are on the wire."""

import contextlib
import http.client
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.mcp_server import (INITIALIZE, JSON, HttpClient, StdioClient, call, content, messages_of, over_http,
                                post)
from support.shell import eventually

LARGEST = 64 << 20


@pytest.fixture(scope="module")
def server(make_server):
    return make_server()


@pytest.fixture(scope="module")
def url(server):
    with over_http(server) as url:
        yield url


@pytest.fixture
def http_client(url):
    client = HttpClient(url)
    yield client
    client.end()


@pytest.fixture
def stdio_client(server):
    with StdioClient(server) as client:
        yield client


def test_a_client_needs_the_token(server):
    with over_http(server, "--auth-token", "right") as url:
        assert post(url, INITIALIZE)[0] == 401
        status, fields, _ = post(url, INITIALIZE, Authorization="Bearer wrong")
        assert status == 401 and fields["WWW-Authenticate"] == "Bearer"
        assert post(url, INITIALIZE, Authorization="Bearer right")[0] == 200


def test_pages_of_other_origins_are_refused(server):
    with over_http(server, "--allow-origin", "https://friend.example") as url:
        assert post(url, INITIALIZE, Origin="https://foe.example")[0] == 403
        assert post(url, INITIALIZE, Origin="http://127.foe.example")[0] == 403
        assert post(url, INITIALIZE, Host="foe.example")[0] == 403
        assert post(url, INITIALIZE, Origin="https://friend.example")[0] == 200


def test_bad_messages_are_refused(url, http_client):
    assert post(url, b"{")[0] == 400
    assert post(url, INITIALIZE, Accept="application/json")[0] == 406
    assert post(url, INITIALIZE, **{"Content-Type": "text/plain"})[0] == 415
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert post(url, ping)[0] == 400
    assert post(url, ping, **{"Mcp-Session-Id": "none"})[0] == 404
    assert http_client.exchange({"id": 2, "method": "ping"}) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
    refused = http_client.exchange({"id": 3, "method": "tools/call", "params": {"name": "nothing"}})
    assert refused[0]["error"] == {"code": -32602, "message": "unknown tool: nothing"}
    assert http_client.exchange({"id": 4, "method": "nothing"})[0]["error"]["code"] == -32601


def test_protocol_versions(url, http_client):
    status, _, text = post(url, {"jsonrpc": "2.0", "id": 2, "method": "ping"},
                           **{**http_client.fields, "MCP-Protocol-Version": "1999-01-01"})
    assert status == 400 and "unsupported protocol version: 1999-01-01" in text
    strange = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": "1999-01-01"}}
    status, _, text = post(url, strange)
    assert status == 200 and json.loads(text)["result"]["protocolVersion"] == "2025-11-25"


def test_what_is_too_large_or_too_deep_is_refused(url, stdio_client):
    large = b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":"' + b"x" * LARGEST + b'"}}'
    # The length alone is enough: nobody has to send the body first.
    with contextlib.closing(http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)) as plain:
        plain.putrequest("POST", "/mcp")
        for name, value in {**JSON, "Content-Length": len(large)}.items():
            plain.putheader(name, str(value))
        plain.endheaders()
        assert plain.getresponse().status == 413
    status, _, text = post(url, b"[" * 1000 + b"]" * 1000)
    assert status == 400 and json.loads(text)["error"]["code"] == -32700
    for line, code in ((large, -32600), (b"[" * 1000 + b"]" * 1000, -32700), (b"{", -32700)):
        stdio_client.write(line)
        assert stdio_client.read()["error"]["code"] == code
    assert stdio_client.exchange({"id": 9, "method": "ping"})[-1]["result"] == {}


SLEEPER = "echo $$ > /tmp/sleeper; sleep 600"
CANCELLED = {"method": "notifications/cancelled", "params": {"requestId": 7, "reason": "enough"}}


def there(sandbox, shell):
    return sandbox.run(shell).code == 0


def test_a_cancelled_command_is_interrupted_over_http(sandbox, http_client):
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(http_client.send, call(7, "command_run", sandbox_id=sandbox.id, command=SLEEPER,
                                                      connect_if_missing=True))
        eventually(lambda: there(sandbox, "test -s /tmp/sleeper"), 20, 0.1, "the command")
        assert http_client.send(CANCELLED)[0] == 202
        eventually(lambda: there(sandbox, "! kill -0 $(cat /tmp/sleeper)"), 20, 0.1, "the command's end")
        assert messages_of(answer.result(20)[2]) == []
    done = http_client.exchange(call(8, "command_run", sandbox_id=sandbox.id, command="echo on"))
    assert content(done)["logs"]["stdout"][0]["text"] == "on\n"


def test_a_cancelled_command_is_interrupted_over_stdio(sandbox, stdio_client):
    stdio_client.send(call(7, "command_run", sandbox_id=sandbox.id, command=SLEEPER, connect_if_missing=True))
    eventually(lambda: there(sandbox, "test -s /tmp/sleeper"), 20, 0.1, "the command")
    stdio_client.send(CANCELLED)
    eventually(lambda: there(sandbox, "! kill -0 $(cat /tmp/sleeper)"), 20, 0.1, "the command's end")
    done = stdio_client.exchange(call(8, "command_run", sandbox_id=sandbox.id, command="echo on"))
    assert content(done)["logs"]["stdout"][0]["text"] == "on\n"
    assert [m["id"] for m in done] == [8]


def test_cancelled_code_is_interrupted_and_its_context_goes_on(sandbox, http_client):
    def run(id, code):
        return call(id, "code_run", sandbox_id=sandbox.id, language="python", code=code, connect_if_missing=True)

    content(http_client.exchange(run(6, "kept = 42")))
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(http_client.send, run(7, "import time; open('/tmp/begun', 'w'); time.sleep(600)"))
        eventually(lambda: there(sandbox, "test -e /tmp/begun"), 20, 0.1, "the run")
        assert http_client.send(CANCELLED)[0] == 202
        assert messages_of(answer.result(20)[2]) == []
    assert content(http_client.exchange(run(8, "kept")))["result"] == [{"text": "42"}]


@pytest.mark.parametrize("kind", ["http", "stdio"])
def test_progress_has_the_token_and_grows(sandbox, kind, request):
    client = request.getfixturevalue(f"{kind}_client")
    seen = client.exchange(call(
        5, "command_run", {"progressToken": "mine"}, sandbox_id=sandbox.id, connect_if_missing=True,
        command="for i in 1 2 3; do echo step $i; sleep 0.3; done"))
    notes = [m["params"] for m in seen[:-1]]
    assert {m["method"] for m in seen[:-1]} == {"notifications/progress"}
    assert {n["progressToken"] for n in notes} == {"mine"}
    done = [n["progress"] for n in notes]
    assert len(done) >= 2 and done == sorted(set(done)) and notes[-1]["message"].startswith("step")
    assert content(seen)["exit_code"] == 0


def test_output_is_read_to_its_end_by_cursor(sandbox, http_client):
    done = content(http_client.exchange(call(
        5, "command_run", sandbox_id=sandbox.id, connect_if_missing=True, command="seq 500", max_output_bytes=1000)))
    text, cursor, id = done["logs"]["stdout"][0]["text"], done["stdout_cursor"], 6
    while cursor is not None:
        page = content(http_client.exchange(call(
            id, "command_logs", sandbox_id=sandbox.id, execution_id=done["id"], cursor=cursor,
            max_output_bytes=300)))
        text, cursor, id = text + page["content"], page["cursor"], id + 1
        assert len(page["content"]) <= 300
    assert text == "".join(f"{n}\n" for n in range(1, 501))


def test_an_open_call_is_answered_when_its_session_ends(sandbox, url):
    client = HttpClient(url)
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(client.send, call(7, "command_run", sandbox_id=sandbox.id, command=SLEEPER,
                                                 connect_if_missing=True))
        eventually(lambda: there(sandbox, "test -s /tmp/sleeper"), 20, 0.1, "the command")
        assert client.end()[0] == 200
        assert answer.result(20)[0] in (200, 202)
    eventually(lambda: there(sandbox, "! kill -0 $(cat /tmp/sleeper)"), 20, 0.1, "the command's end")
    assert client.send({"id": 8, "method": "ping"})[0] == 404


@contextlib.contextmanager
def in_front_of(server, refuses):
    """The address of a proxy before the server that answers 500 where `refuses(method, path, forks)` says
    so; `forks` are the answers to forks so far."""
    forks = []
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def forward(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if refuses(self.command, self.path, forks):
                status, answer = 500, b'{"code": "TEST::BROKEN", "message": "broken on purpose"}'
            else:
                fields = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")}
                made = urllib.request.Request(f"http://{server.address}{self.path}", body or None, fields,
                                              method=self.command)
                try:
                    with opener.open(made, timeout=60) as given:
                        status, answer = given.status, given.read()
                except urllib.error.HTTPError as refused:
                    with refused:
                        status, answer = refused.code, refused.read()
                if self.path.endswith("/fork"):
                    forks.append(json.loads(answer))
            self.send_response(status)
            if status != 204:
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = forward

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{proxy.server_port}"
        finally:
            proxy.shutdown()
            thread.join()


def test_a_fork_whose_copy_cannot_be_reached_leaves_none(sandbox, server):
    made = []

    def refuses(method, path, forks):
        made[:] = [copy["id"] for answer in forks for copy in answer["items"]]
        return method == "GET" and len(made) == 2 and made[1] in path

    def all_sandboxes():
        return {row["id"] for row in server.api().get("/sandboxes").json["items"]}

    before = all_sandboxes()
    with in_front_of(server, refuses) as address, over_http(server, "--domain", address) as url:
        client = HttpClient(url)
        result = client.exchange(call(5, "sandbox_fork", sandbox_id=sandbox.id, count=2))[-1]["result"]
        client.end()
    assert result["isError"] and "broken on purpose" in result["content"][0]["text"]
    assert len(made) == 2 and sandbox.id in before
    eventually(lambda: all_sandboxes() == before, 20, 0.1, "the end of the copies")
