"""`osb egress` and `osb credential-vault`, published and unmodified, against our server."""

import json
import sys
import uuid
from pathlib import Path

import pytest

from support.egress_world import FETCH
from support.shell import run

OSB = Path(sys.executable).parent / "osb"


@pytest.fixture(params=[False, True], ids=["direct", "proxy"])
def osb(egress_place, request):
    server, _ = egress_place
    extra = {"OPEN_SANDBOX_USE_SERVER_PROXY": "true"} if request.param else {}

    def call(*argv, check=True, input=None, json_output=False):
        argv = [*argv, "-o", "json"] if json_output else list(argv)
        done = run(OSB, "--no-color", *argv, check=check, input=input, timeout=90,
                   env={**server.environment(), **extra})
        return json.loads(done.stdout) if json_output else done

    return call


@pytest.fixture
def id(osb, egress_place, tmp_path):
    server, _ = egress_place
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"defaultAction": "deny", "egress": [
        {"action": "allow", "target": "api.example"}]}))
    made = osb("sandbox", "create", "--image", server.image, "--timeout", "10m", "--network-policy-file",
               str(policy), "--credential-proxy", json_output=True)["id"]
    yield made
    osb("sandbox", "kill", made, check=False)


def fetch(osb, id, url):
    return osb("command", "run", id, "--argv", "--", "python3", "-c", FETCH, url).stdout


def test_egress(osb, id):
    shown = osb("egress", "get", id, json_output=True)
    assert shown["default_action"] == "deny"
    assert shown["egress"] == [{"action": "allow", "target": "api.example"}]
    assert fetch(osb, id, "http://api.example/osb").startswith("200")
    assert not fetch(osb, id, "http://other.example/osb").startswith("200")
    patched = osb("egress", "patch", id, "--rule", "allow=other.example", "--rule", "deny=api.example",
                  json_output=True)
    assert len(patched["patched_rules"]) == 2
    assert fetch(osb, id, "http://other.example/osb").startswith("200")
    assert not fetch(osb, id, "http://api.example/osb").startswith("200")
    assert "other.example" in osb("egress", "get", id).stdout
    bad = osb("egress", "patch", id, "--rule", "allow=http://x/", check=False)
    assert bad.returncode == 1 and bad.stderr.strip()


def test_credential_vault(osb, id, egress_place, tmp_path):
    _, world = egress_place
    secret, where = f"secret-{uuid.uuid4().hex}", "/" + uuid.uuid4().hex
    payload = tmp_path / "vault.json"
    vault = lambda *argv, **options: osb("credential-vault", *argv, json_output=True, **options)
    payload.write_text(json.dumps({
        "credentials": [{"name": "key", "source": {"type": "inline", "value": secret}}],
        "bindings": [{"name": "api", "match": {"hosts": ["api.example"]},
                      "auth": {"type": "bearer", "credential": "key"}}]}))
    made = vault("create", id, "--file", str(payload))
    assert made["revision"] == 1 and secret not in json.dumps(made)
    assert fetch(osb, id, f"https://api.example{where}").startswith("200")
    assert world.requests(where)[0]["headers"]["Authorization"] == f"Bearer {secret}"
    assert vault("get", id) == made
    assert [c["name"] for c in vault("credential", "list", id)] == ["key"]
    assert vault("credential", "get", id, "key")["revision"] == 1
    assert [b["name"] for b in vault("binding", "list", id)] == ["api"]
    assert vault("binding", "get", id, "api")["auth"]["type"] == "bearer"
    changed = vault("patch", id, "--file", "-", input=json.dumps({
        "expectedRevision": 1, "bindings": {"delete": ["api"]}, "credentials": {"delete": ["key"]}}))
    assert (changed["revision"], changed["credentials"], changed["bindings"]) == (2, [], [])
    again = osb("credential-vault", "create", id, "--file", str(payload), check=False)
    assert again.returncode == 1 and secret not in again.stdout + again.stderr
    assert vault("delete", id)["status"] == "deleted"
    assert osb("credential-vault", "get", id, check=False).returncode == 1
