"""The official TypeScript client of the Model Context Protocol against `opensandbox mcp`: every tool,
over both transports."""

import contextlib
import re
from pathlib import Path

import pytest

from support import node
from support.mcp_server import over_http
from support.server import EXECUTABLE
from support.shell import run

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def server(make_server):
    return make_server()


@pytest.fixture(scope="session")
def program():
    return node.installed(HERE / "mcp_typescript") / "story.mjs"


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_every_tool_is_called(server, program, transport):
    with contextlib.ExitStack() as stack:
        target = EXECUTABLE if transport == "stdio" else stack.enter_context(over_http(server))
        done = run("node", program, HERE / "mcp_story.json", transport, target, check=False, timeout=120,
                   cwd=program.parent, env=node.environment(
                       STORY_IMAGE=server.image, STORY_NAME=f"typescript-{transport}", **server.environment()))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^called \d+ tools$", done.stdout, re.M), done.stdout
