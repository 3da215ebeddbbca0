"""The OpenAPI documents of specs/, and the check of a reply against them."""

import functools
import json
import re
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

SPECS = Path(__file__).resolve().parents[2] / "specs"
SURFACES = ("lifecycle", "diagnostics", "execd", "egress")
# The server's routes stand in two documents.
DOCUMENTS = {"lifecycle": ("lifecycle", "diagnostics")}
METHODS = ("get", "put", "post", "delete", "patch", "head", "options")

# Operations that some reply was checked for, as (surface, method, path template).
exercised = set()


@functools.cache
def document(surface):
    return yaml.safe_load((SPECS / f"{surface}.yaml").read_text())


@functools.cache
def _registry(surface):
    resource = Resource.from_contents(document(surface), default_specification=DRAFT202012)
    return Registry().with_resource(f"urn:{surface}", resource)


@functools.cache
def validator(surface, pointer):
    return Draft202012Validator(
        {"$ref": f"urn:{surface}#{pointer}"},
        registry=_registry(surface),
        format_checker=FormatChecker(),
    )


@functools.cache
def _routes(surface):
    """Templates with their documents, the literal ones before those with parameters, as a router
    prefers them."""
    routes = []
    for name in DOCUMENTS.get(surface, (surface,)):
        for template in document(name)["paths"]:
            # The rest of a path has slashes, and may be missing altogether.
            pattern = template.replace("/{path}", "(?:/.*)?").replace("{reference}", ".+")
            pattern = re.sub(r"\{(\w+)\}", r"[^/]+", pattern)
            routes.append((template.count("{"), template, name, re.compile(pattern + "$")))
    return [route[1:] for route in sorted(routes, key=lambda route: route[:2])]


def operations(surface):
    return {
        (method, template)
        for name in DOCUMENTS.get(surface, (surface,))
        for template, item in document(name)["paths"].items()
        for method in item
        if method in METHODS
    }


def _pointer(*parts):
    return "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in parts)


def _follow(surface, pointer_parts):
    """Resolves one local reference; returns the object and where it stands."""
    node = document(surface)
    for part in pointer_parts:
        node = node[part]
    if "$ref" in node:
        return _follow(surface, node["$ref"].removeprefix("#/").split("/"))
    return node, pointer_parts


def _validate(surface, pointer, value, where):
    errors = sorted(validator(surface, pointer).iter_errors(value), key=lambda e: list(e.path))
    if errors:
        lines = [f"{list(e.absolute_path)}: {e.message}" for e in errors[:5]]
        raise AssertionError(f"{where} is not what specs/{surface}.yaml says:\n  " + "\n  ".join(lines))


def request_schema(surface, method, path):
    """The schema of a request's JSON body, and the pointer to it."""
    template, name, _ = next(r for r in _routes(surface) if r[2].match(path))
    parts = ["paths", template, method.lower(), "requestBody", "content", "application/json", "schema"]
    schema = document(name)
    for part in parts:
        schema = schema[part]
    return schema, _pointer(*parts)


def check_reply(surface, method, path, reply):
    """Fails unless the specification has this status with this kind of body for the route. What
    the specification does not have must be answered by the router or by what comes before it."""
    path = path.split("?")[0]
    if surface == "lifecycle" and path.startswith("/v1/"):
        path = path[3:]
    method = method.lower()
    where = f"{method.upper()} {path} -> {reply.status} {reply.body[:300]!r}"
    template, name, _ = next((r for r in _routes(surface) if r[2].match(path)), (None, surface, None))
    item = document(name)["paths"].get(template, {})
    if method not in item:
        refused = reply.status in (307, 401, 404, 405)
        assert refused, f"{where}: a route that no document has"
        if surface == "lifecycle" and reply.status == 404:
            assert json.loads(reply.body) == {"detail": "Not Found"}, where
        return
    exercised.add((surface, method, template))
    parts = ["paths", template, method, "responses"]
    responses = item[method]["responses"]
    status = str(reply.status)
    key = status if status in responses else "default" if "default" in responses else None
    assert key, f"{where}: the specification has only {sorted(responses)}"
    if key == "default":
        return
    response, parts = _follow(name, parts + [key])
    for field in response.get("headers", {}):
        header, _ = _follow(name, parts + ["headers", field])
        assert not header.get("required") or reply.header(field) is not None, f"{where}: no {field}"
    content = response.get("content")
    if not content:
        assert reply.body == b"", f"{where}: no body expected"
        return
    kind = (reply.header("Content-Type") or "").split(";")[0].strip().lower()
    assert kind in content, f"{where}: content type {kind!r}, expected one of {sorted(content)}"
    if "schema" in content[kind] and kind in ("application/json", "text/plain"):
        value = json.loads(reply.body) if kind == "application/json" else reply.body.decode(errors="replace")
        _validate(name, _pointer(*parts, "content", kind, "schema"), value, where)


def check_event(event):
    """Fails unless one event of a stream has the documented shape."""
    _validate("execd", "/components/schemas/Event", event, f"the event {event}")
