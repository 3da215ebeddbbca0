"""The tables that the server validates with and the schemas of specs/ are the same rules: bodies made
from the schemas are refused with 422 exactly when the schema refuses them. Nothing is created: what
passes the schema names images, snapshots and sandboxes that are not there."""

import json

import pytest

from support import contract, schema_cases

IMAGE = {
    "image": {"uri": "no-such-image:1", "auth": {"username": "u", "password": "p"}},
    "timeout": 60,
    "resourceLimits": {"cpu": "1", "memory": "512Mi"},
    "resourceRequests": {"cpu": "1"},
    "env": {"A": "b", "GONE": None},
    "metadata": {"team": "x"},
    "entrypoint": ["sleep", "1"],
    "networkPolicy": {"defaultAction": "deny", "egress": [
        {"action": "allow", "target": "example.com"},
        {"action": "allow", "target": "10.0.0.0/8", "ports": [443, 80]}, {"action": "deny", "ports": [25]}]},
    "credentialProxy": {"enabled": True},
    "secureAccess": False,
    "volumes": [
        {"name": "a", "mountPath": "/a", "readOnly": True, "subPath": "s", "host": {"path": "/srv"}},
        {"name": "b", "mountPath": "/b", "pvc": {
            "claimName": "claim.x", "createIfNotExists": True, "deleteOnSandboxTermination": False,
            "storageClass": "fast", "storage": "1.5Gi", "accessModes": ["ReadWriteOnce"]}},
        {"name": "c", "mountPath": "/c", "ossfs": {
            "bucket": "abc", "endpoint": "oss.example.com", "version": "2.0", "options": ["ro"],
            "accessKeyId": "i", "accessKeySecret": "s"}},
    ],
    "platform": {"os": "linux", "arch": "amd64"},
    "lifecycle": {
        "preStart": {"command": ["true"], "timeoutSeconds": 5},
        "periodic": [{"name": "n", "schedule": "* * * * *", "command": ["true"], "timeoutSeconds": 5}],
    },
    "extensions": {"opensandbox.extensions.a": "b"},
}
SNAPSHOT = {"snapshotId": "7c1bd3f6-51ab-4e5f-8a04-6ef8f2f3f6b1", "resourceLimits": {}, "timeout": None}
TEMPLATE = {"templateId": "t", "timeout": 60, "secureAccess": False, "metadata": {"a": "b"}}
POOL = {"extensions": {"poolRef": "no-such-pool"}, "timeout": 60}
MIXED = {
    "image and snapshot": {**IMAGE, **SNAPSHOT},
    "template and all": {**IMAGE, **TEMPLATE},
    "pool and snapshot": {**SNAPSHOT, **POOL},
    "pool and image": {**IMAGE, **POOL, "lifecycle": None},
    "nothing": {},
}

IMAGE_CONFIG = {
    "env": {"A": "b"}, "user": "1:1", "workingDir": "/", "entrypoint": ["x"], "cmd": ["y"],
    "labels": {"l": "m"}, "exposedPorts": ["80/tcp"],
}
NOBODY = "/sandboxes/nobody"
OTHERS = {
    ("PATCH", NOBODY + "/metadata"): {"a": "b", "gone": None},
    ("POST", NOBODY + "/renew-expiration"): {"expiresAt": "2100-01-01T00:00:00Z"},
    ("POST", "/metrics/events"): {
        "eventType": "sandbox.create", "createDurationMs": 5, "success": False, "sandboxId": "x", "image": "y"},
    ("POST", NOBODY + "/snapshots"): {"name": "n"},
    ("POST", NOBODY + "/fork"): {
        "count": 2, "timeout": 60, "metadata": {"a": "b"}, "env": {"A": "b"}, "entrypoint": ["x", "y"]},
    ("POST", "/snapshots/nobody/image"): {"reference": "no-such-image:1", "config": IMAGE_CONFIG},
    ("POST", "/images/tag"): {
        "source": "no-such-image:1", "reference": "no-such-image:2", "config": IMAGE_CONFIG},
    ("PUT", NOBODY + "/networkpolicy"): IMAGE["networkPolicy"],
    ("PATCH", NOBODY + "/networkpolicy"): IMAGE["networkPolicy"]["egress"],
    ("DELETE", NOBODY + "/networkpolicy"): ["example.com"],
    ("PUT", "/pools/no-such-pool"): {
        "capacitySpec": {"bufferMin": 0, "bufferMax": 0, "poolMin": 0, "poolMax": 0}},
}


def send(api, method, path, body):
    return api.request(method, path, body=json.dumps(body).encode(),
                       headers={"Content-Type": "application/json"})


def check_details(reply, path):
    """Every broken rule says where it is, what it is and what was given."""
    details = reply.json["detail"]
    for detail in details:
        assert detail["loc"][0] == "body" and detail["type"] and detail["msg"], reply
        assert "input" in detail, reply
    # A rule about several members is told at the object that has them.
    ways = [tuple(detail["loc"][1:]) for detail in details]
    assert any(way[: len(path)] == path or path[: len(way)] == way for way in ways), (path, reply)


def check_all(api, method, path, schema, body, validator):
    verdicts = set()
    for where, case in schema_cases.cases("lifecycle", schema, body):
        wanted = validator.is_valid(case)
        reply = send(api, method, path, case)
        assert reply.status != 202, (case, reply)
        assert (reply.status != 422) == wanted, (
            f"the schema {'accepts' if wanted else 'refuses'} at {where}: {json.dumps(case)}\n{reply}")
        if not wanted:
            check_details(reply, where)
        verdicts.add(wanted)
    return verdicts


@pytest.mark.parametrize("body", [IMAGE, SNAPSHOT, TEMPLATE, POOL, *MIXED.values()],
                         ids=["image", "snapshot", "template", "pool", *MIXED])
def test_create_refuses_what_its_schema_refuses(server, body):
    schema = {"$ref": "#/components/schemas/CreateSandbox"}
    validator = contract.validator("lifecycle", "/components/schemas/CreateSandbox")
    assert False in check_all(server.api(), "POST", "/sandboxes", schema, body, validator)


@pytest.mark.parametrize("method, path", OTHERS, ids=lambda part: part.strip("/").replace("/", "-"))
def test_other_bodies_are_refused_as_their_schemas_say(server, method, path):
    schema, pointer = contract.request_schema("lifecycle", method, path)
    validator = contract.validator("lifecycle", pointer)
    verdicts = check_all(server.api(), method, path, schema, OTHERS[method, path], validator)
    assert verdicts == {True, False}, "a body must pass and one must fail"


def test_all_broken_fields_are_told_at_once(server):
    broken = {
        "image": {"uri": 1, "auth": {"username": 1}}, "timeout": 1, "resourceLimits": [], "env": {"A": 1},
        "metadata": 1, "entrypoint": [], "networkPolicy": {"egress": [{"action": 1}]}, "secureAccess": None,
        "volumes": [{"name": "-", "mountPath": "x", "ossfs": {"bucket": "a"}}, {}],
        "platform": {}, "lifecycle": {"preStart": {"command": [], "more": 1}}, "extensions": {"a": 1},
    }
    reply = send(server.api(), "POST", "/sandboxes", broken)
    assert reply.status == 422, reply
    ways = {tuple(detail["loc"][1:]) for detail in reply.json["detail"]}
    assert ways >= {
        ("image", "uri"), ("image", "auth", "username"), ("image", "auth", "password"), ("timeout",),
        ("resourceLimits",), ("env", "A"), ("metadata",), ("entrypoint",),
        ("networkPolicy", "egress", 0, "action"),
        ("secureAccess",), ("volumes", 0, "name"), ("volumes", 0, "mountPath"),
        ("volumes", 0, "ossfs", "bucket"), ("volumes", 0, "ossfs", "endpoint"), ("volumes", 1, "name"),
        ("platform", "os"), ("platform", "arch"), ("lifecycle", "preStart", "command"),
        ("lifecycle", "preStart", "more"), ("extensions", "a"),
    }


@pytest.mark.parametrize("change", [
    {"timeout": "60"}, {"timeout": 60.0}, {"secure_access": "no"}, {"secureAccess": 0},
    {"resource_limits": {}, "resourceLimits": None},
])
def test_what_may_be_read_leniently_is(server, change):
    body = {"image": {"uri": "no-such-image:1"}, "entrypoint": ["x"], "resourceLimits": {}, **change}
    if "resource_limits" in change:
        del body["resourceLimits"]
    reply = send(server.api(), "POST", "/sandboxes", body)
    assert reply.json.get("code") == "NATIVE::SANDBOX_IMAGE_PULL_FAILED", reply
