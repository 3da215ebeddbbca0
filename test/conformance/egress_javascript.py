"""Network policy and the credential vault by the published JavaScript SDK, unmodified."""

import re
import uuid
from pathlib import Path

import pytest

from support import node
from support.egress_world import FETCH
from support.shell import run

FOLDER = Path(__file__).parent / "javascript"
NAMES = re.findall(r'^test\("([^"]+)"', (FOLDER / "egress.mjs").read_text(), re.M)


@pytest.mark.parametrize("by", ["direct", "proxy"])
@pytest.mark.parametrize("name", NAMES)
def test_javascript_egress(egress_place, name, by):
    server, world = egress_place
    program = node.installed(FOLDER) / "egress.mjs"
    secret, where = f"secret-{uuid.uuid4().hex}", "/" + uuid.uuid4().hex
    done = run(
        "node", "--test", "--test-reporter=tap", "--test-name-pattern", f"^{re.escape(name)}$", program,
        check=False, timeout=120, cwd=program.parent,
        env=node.environment(
            OPEN_SANDBOX_DOMAIN=server.address, OPEN_SANDBOX_API_KEY=server.key,
            OPENSANDBOX_DISABLE_METRICS="1", BY=by, IMAGE=server.image, FETCH=FETCH, SECRET=secret, WHERE=where,
        ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass 1$", done.stdout, re.M), done.stdout
    if "vault" in name:
        [request] = world.requests(where)
        assert request["headers"]["Authorization"] == f"Bearer {secret}"
