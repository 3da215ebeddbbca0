"""The published `osb`, unmodified: diagnostics, the stable ones and those for operators."""

import pytest

from conformance.osb_cli import osb  # noqa: F401
from support.shell import eventually


@pytest.fixture
def talker(server):
    entrypoint = ["sh", "-c", "echo hello from the entrypoint; exec tail -f /dev/null"]
    with server.create(entrypoint=entrypoint, env={"MY_PASSWORD": "hush"}) as sandbox:
        yield sandbox.id


def said(osb, *argv):  # noqa: F811
    return eventually(lambda: "hello" in (out := osb(*argv).stdout) and out, 20, 0.1, "the sandbox's output")


def test_logs_and_events(osb, talker):  # noqa: F811
    assert "hello from the entrypoint" in said(osb, "diagnostics", "logs", talker, "-s", "container", "-o", "raw")
    logs = osb("diagnostics", "logs", talker, "-s", "all", json_output=True)
    assert (logs["sandbox_id"], logs["kind"], logs["scope"]) == (talker, "logs", "all")
    assert logs["truncated"] is False and len(logs["warnings"]) == 1
    events = osb("diagnostics", "events", talker, "-s", "runtime", json_output=True)
    assert events["kind"] == "events" and "Status:" in events["content"]
    refused = osb("diagnostics", "events", talker, "-s", "lifecycle", check=False)
    assert refused.returncode != 0 and "scope" in refused.stderr + refused.stdout


def test_the_operators_pages(osb, talker):  # noqa: F811
    assert "hello from the entrypoint" in said(osb, "devops", "logs", talker, "-n", "5", "-s", "1h")
    assert osb("devops", "events", talker).stdout.lstrip().startswith("Container:  ")
    inspect = osb("devops", "inspect", talker).stdout
    assert "Container ID:" in inspect and "MY_PASSWORD=***" in inspect and "hush" not in inspect
    summary = osb("devops", "summary", talker).stdout
    assert "SANDBOX DIAGNOSTICS SUMMARY" in summary and f"Sandbox ID: {talker}" in summary
    gone = osb("devops", "inspect", "none", check=False)
    assert gone.returncode != 0 and "not found" in (gone.stdout + gone.stderr).lower()
