"""The published JavaScript SDK, unmodified, against our server: its own test file, run by Node."""

import re
from pathlib import Path

import pytest

from support import node
from support.shell import run

FOLDER = Path(__file__).parent / "javascript"
NAMES = re.findall(r'^test\("([^"]+)"', (FOLDER / "sdk.mjs").read_text(), re.M)


@pytest.fixture(scope="session")
def program():
    return node.installed(FOLDER) / "sdk.mjs"


@pytest.mark.parametrize("by", ["direct", "proxy"])
@pytest.mark.parametrize("name", NAMES)
def test_javascript(server, program, name, by):
    done = run(
        "node", "--test", "--test-reporter=tap", "--test-name-pattern", f"^{re.escape(name)}$", program,
        check=False, timeout=120, cwd=program.parent,
        env=node.environment(
            OPEN_SANDBOX_DOMAIN=server.address, OPEN_SANDBOX_API_KEY=server.key,
            OPENSANDBOX_DISABLE_METRICS="1", BY=by, IMAGE=server.image,
        ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass 1$", done.stdout, re.M), done.stdout
