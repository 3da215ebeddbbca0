"""/openapi.json, /docs and /redoc: the documents of specs/, and a page that works with nothing but this
server."""

import json
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from support import contract, node
from support.shell import run

PAGE = Path(__file__).resolve().parents[1] / "support/page.js"


def test_the_document_is_valid_and_says_what_specs_say(server):
    api = server.api(prefix="", key=False)
    document = api.get("/openapi.json").json
    validate(document)
    assert document["info"]["version"] == api.get("/version").json["version"]
    for name in contract.DOCUMENTS["lifecycle"]:
        said = contract.document(name)
        # What YAML reads as other types than JSON would be lost on the way.
        said = json.loads(json.dumps(said))
        assert said["paths"] == {path: document["paths"].get(path) for path in said["paths"]}
        for kind, members in said["components"].items():
            served = document["components"][kind]
            assert members == {name: served.get(name) for name in members}


def page(server, path):
    done = run("node", PAGE, server.address, path, server.key, env=node.environment())
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_the_page_shows_every_operation(server, path):
    shown = page(server, path)
    version = server.api(prefix="", key=False).get("/version").json["version"]
    assert shown["title"] == f"opensandbox lifecycle server {version}"
    assert len(shown["ids"]) == len(set(shown["ids"]))
    assert len(shown["ids"]) == len(contract.operations("lifecycle"))
    for text in ("resourceLimits", "diagnostics", "422"):
        assert text in shown["text"], text


def test_the_page_sends_requests_with_the_key(server):
    shown = page(server, "/docs")
    assert shown["unfolds"]
    assert shown["reply"].startswith("200 OK\n") and '"totalItems": 0' in shown["reply"], shown["reply"]
    # What the form begins with is a whole request.
    body = contract.validator("lifecycle", "/components/schemas/CreateSandbox")
    assert body.is_valid(json.loads(shown["body"])), shown["body"]
