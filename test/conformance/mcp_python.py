"""The official Python client of the Model Context Protocol against `opensandbox mcp`."""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from support.mcp_server import over_http
from support.server import EXECUTABLE

PUBLISHED = Path(sys.executable).parent / "opensandbox-mcp"
STORY = json.loads((Path(__file__).parent / "mcp_story.json").read_text())


@pytest.fixture(scope="module")
def server(make_server):
    return make_server()


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


def as_in_1_1(schema):
    """Without what release 1.2 adds to rules of a policy: ports, beside which a target may be missing."""
    if isinstance(schema, list):
        return [as_in_1_1(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: as_in_1_1(value) for key, value in schema.items()}
    properties = schema.get("properties", {})
    if {"action", "target", "ports"} == set(properties):
        assert "target" not in schema["required"]
        del properties["ports"]
        schema["required"] = sorted([*schema["required"], "target"])
    return schema


def test_the_published_tools_are_there_with_their_parameters(server):
    env = {**os.environ, **server.environment()}
    published = asyncio.run(tools_of(PUBLISHED, [], env))
    ours = asyncio.run(tools_of(EXECUTABLE, ["mcp"], env))
    assert len(published) == 19
    for name, schema in published.items():
        more = set(ours[name]["properties"]) - set(schema["properties"])
        assert not more & set(ours[name]["required"])
        shared = {k: as_in_1_1(v) for k, v in ours[name]["properties"].items() if k not in more}
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


def filled(value, names):
    if isinstance(value, str) and value.startswith("$"):
        return names[value[1:]]
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    return {k: filled(v, names) for k, v in value.items()} if isinstance(value, dict) else value


def at(document, path):
    for name in path.split("."):
        document = document[int(name) if isinstance(document, list) else name]
    return document


async def play(made, step, names):
    result = await made.call_tool(step["tool"], filled(step["arguments"], names))
    assert result.is_error == ("refused" in step), (step, result.content)
    if "refused" in step:
        assert result.content[0].text.startswith(step["refused"]), step
    for path, wanted in step.get("expect", {}).items():
        assert at(result.structured_content, path) == filled(wanted, names), (step, path, result.content)
    for name, path in step.get("keep", {}).items():
        names[name] = at(result.structured_content, path)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_every_tool_is_called(server, transport):
    async def work():
        async with session(server, transport) as made:
            listed = {tool.name for tool in (await made.list_tools()).tools}
            names = {"image": server.image, "story": f"python-{transport}"}
            for step in STORY:
                await play(made, step, names)
            assert listed == {step["tool"] for step in STORY}

    asyncio.run(work())
