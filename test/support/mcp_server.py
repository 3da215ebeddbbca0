"""`opensandbox mcp` over HTTP, and plain messages to it."""

import contextlib
import json
import os
import re
import subprocess
import urllib.error
import urllib.request

from support.server import EXECUTABLE

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}

#: Fields of every message over HTTP.
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@contextlib.contextmanager
def over_http(server, *arguments, env=None):
    """Its URL. What is left of it when the block ends is terminated."""
    process = subprocess.Popen(
        [EXECUTABLE, "mcp", "--transport", "streamable-http", "--port", "0", *arguments],
        env={**os.environ, **server.environment(), **(env or {})}, stderr=subprocess.PIPE, text=True)
    try:
        port = re.search(r"port=(\d+)", process.stderr.readline())[1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def request(method, url, body=None, **headers):
    """Status, fields and text of the answer."""
    fields = {**JSON, **headers}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    made = urllib.request.Request(url, data, fields, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(made, timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers, refused.read().decode()


def post(url, body, **headers):
    return request("POST", url, body, **headers)


def messages_of(text):
    """Those of an answer, be it one JSON document or an event stream."""
    if text.startswith("{"):
        return [json.loads(text)]
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


class HttpClient:
    """A session whose messages the test writes itself. Calls may run side by side in threads."""

    def __init__(self, url):
        self.url = url
        self.fields = {"Mcp-Session-Id": post(url, INITIALIZE)[1]["Mcp-Session-Id"]}

    def send(self, message):
        return post(self.url, {"jsonrpc": "2.0", **message}, **self.fields)

    def exchange(self, message):
        """All messages that answer it."""
        return messages_of(self.send(message)[2])

    def end(self):
        return request("DELETE", self.url, **self.fields)


class StdioClient:
    """The same over standard input and output, one message after the other."""

    def __init__(self, server):
        self.process = subprocess.Popen(
            [EXECUTABLE, "mcp"], env={**os.environ, **server.environment()}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.exchange({k: v for k, v in INITIALIZE.items() if k != "jsonrpc"})

    def write(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def read(self):
        return json.loads(self.process.stdout.readline())

    def exchange(self, message):
        self.send(message)
        seen = [self.read()]
        while seen[-1].get("id") != message["id"]:
            seen.append(self.read())
        return seen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


def call(id, tool, _meta=None, **arguments):
    params = {"name": tool, "arguments": arguments}
    return {"id": id, "method": "tools/call", "params": {**params, "_meta": _meta} if _meta else params}


def content(messages):
    """What the call that these messages answer returned."""
    result = messages[-1]["result"]
    assert not result["isError"], result
    return result["structuredContent"]
