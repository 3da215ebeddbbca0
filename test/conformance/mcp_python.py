"""The official Python client of the Model Context Protocol against `opensandbox mcp`."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from support.server import EXECUTABLE

PUBLISHED = Path(sys.executable).parent / "opensandbox-mcp"


@pytest.fixture(scope="module")
def server(make_server):
    return make_server()


@contextlib.contextmanager
def over_http(server, *arguments):
    process = subprocess.Popen(
        [EXECUTABLE, "mcp", "--transport", "streamable-http", "--port", "0", *arguments],
        env={**os.environ, **server.environment()}, stderr=subprocess.PIPE, text=True)
    try:
        port = re.search(r"port=(\d+)", process.stderr.readline())[1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


@contextlib.asynccontextmanager
async def session(server, transport):
    async with contextlib.AsyncExitStack() as stack:
        if transport == "stdio":
            parameters = StdioServerParameters(command=str(EXECUTABLE), args=["mcp"],
                                               env={**os.environ, **server.environment()})
            streams = await stack.enter_async_context(stdio_client(parameters))
        else:
            url = stack.enter_context(over_http(server))
            streams = await stack.enter_async_context(streamable_http_client(url))
        made = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        await made.initialize()
        yield made


def plain(schema, definitions):
    """Types, required members and defaults, without titles, texts and references."""
    if "$ref" in schema:
        return plain(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    out = {k: v for k, v in schema.items() if k in ("type", "enum", "default")}
    if "anyOf" in schema:
        out["anyOf"] = [plain(s, definitions) for s in schema["anyOf"]]
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            out[name] = plain(schema[name], definitions)
    if "properties" in schema:
        out["properties"] = {k: plain(v, definitions) for k, v in schema["properties"].items()}
        out["required"] = sorted(schema.get("required", []))
    return out


async def tools_of(command, arguments, env):
    parameters = StdioServerParameters(command=str(command), args=arguments, env=env)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as made:
        await made.initialize()
        listed = json.loads((await made.list_tools()).model_dump_json(by_alias=True, exclude_none=True))
    return {t["name"]: plain(t["inputSchema"], t["inputSchema"].get("$defs", {})) for t in listed["tools"]}


def test_the_published_tools_are_there_with_their_parameters(server):
    env = {**os.environ, **server.environment()}
    published = asyncio.run(tools_of(PUBLISHED, [], env))
    ours = asyncio.run(tools_of(EXECUTABLE, ["mcp"], env))
    assert len(published) == 19
    for name, schema in published.items():
        more = set(ours[name]["properties"]) - set(schema["properties"])
        assert not more & set(ours[name]["required"])
        shared = {k: v for k, v in ours[name]["properties"].items() if k not in more}
        assert {**ours[name], "properties": shared} == schema, name


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_sandbox_is_made_used_and_deleted(server, transport):
    async def work():
        seen = []

        async def progress(done, total, message):
            seen.append(done)

        async with session(server, transport) as made:
            async def call(name, **arguments):
                result = await made.call_tool(name, arguments, progress_callback=progress)
                assert not result.is_error, result.content
                return result.structured_content

            id = (await call("sandbox_create", image=server.image))["sandbox_id"]
            assert seen[0] == 0 and seen[-1] == 2
            try:
                done = await call("command_run", sandbox_id=id, command="seq 100000; exit 3", max_output_bytes=100)
                assert done["exit_code"] == 3 and done["truncated"]
                page = await call("command_logs", sandbox_id=id, execution_id=done["id"],
                                  cursor=done["stdout_cursor"], max_output_bytes=50)
                text = done["logs"]["stdout"][0]["text"] + page["content"]
                assert "\n".join(map(str, range(1, 101))).startswith(text) and len(text) == 150
                await call("file_write", sandbox_id=id, path="/tmp/a", content="ä€" * 100, mode=644)
                first = await call("file_read", sandbox_id=id, path="/tmp/a", limit=100)
                rest = await call("file_read", sandbox_id=id, path="/tmp/a", offset=first["next_offset"])
                assert first["content"] + rest["content"] == "ä€" * 100 and rest["next_offset"] is None
            finally:
                assert (await call("sandbox_kill", sandbox_id=id)) == {"status": "killed"}
            refused = await made.call_tool("file_read", {"sandbox_id": id, "path": 7})
            assert refused.is_error and "path: expected a string" in refused.content[0].text

    asyncio.run(work())


INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}


def post(url, body, **headers):
    """Status, fields and text of the answer."""
    fields = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    request = urllib.request.Request(url, body if isinstance(body, bytes) else json.dumps(body).encode(), fields)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers, refused.read().decode()


def test_a_client_needs_the_token(server):
    with over_http(server, "--auth-token", "right") as url:
        assert post(url, INITIALIZE)[0] == 401
        assert post(url, INITIALIZE, Authorization="Bearer wrong")[0] == 401
        assert post(url, INITIALIZE, Authorization="Bearer right")[0] == 200


def test_pages_of_other_origins_are_refused(server):
    with over_http(server, "--allow-origin", "https://friend.example") as url:
        assert post(url, INITIALIZE, Origin="https://foe.example")[0] == 403
        assert post(url, INITIALIZE, Host="foe.example")[0] == 403
        assert post(url, INITIALIZE, Origin="https://friend.example")[0] == 200


def test_bad_messages_are_refused(server):
    with over_http(server) as url:
        assert post(url, b"{")[0] == 400
        assert post(url, INITIALIZE, Accept="application/json")[0] == 406
        assert post(url, INITIALIZE, **{"Content-Type": "text/plain"})[0] == 415
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert post(url, ping)[0] == 400
        assert post(url, ping, **{"Mcp-Session-Id": "none"})[0] == 404
        id = post(url, INITIALIZE)[1]["Mcp-Session-Id"]
        status, _, text = post(url, ping, **{"Mcp-Session-Id": id})
        assert status == 200 and json.loads(text) == {"jsonrpc": "2.0", "id": 2, "result": {}}
        call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "nothing"}}
        _, _, text = post(url, call, **{"Mcp-Session-Id": id})
        assert json.loads(text)["error"] == {"code": -32602, "message": "unknown tool: nothing"}
