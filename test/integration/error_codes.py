"""Every error code of the contract, provoked. A row says which code with which status, and asks for it
in a way that a client or a fault can; `P` stands for the runtime's own prefix. The last test compares
the rows with the contract's list."""

import json
import re
import uuid
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone

import pytest

from support.server import HOST_IMAGE
from support.shell import eventually

#: Codes of the contract (lifecycle 1.2, 1.5, 5), `P` for the prefix of the runtime in force.
CONTRACT = """
MISSING_API_KEY INVALID_API_KEY TENANT_PROVIDER_UNAVAILABLE
P::SANDBOX_NOT_FOUND P::INVALID_PORT P::INVALID_ENTRYPOINT P::INVALID_EXPIRATION P::SANDBOX_NOT_RUNNING
P::SANDBOX_NOT_PAUSED P::SANDBOX_PAUSE_FAILED P::SANDBOX_RESUME_FAILED P::SANDBOX_DELETE_FAILED
P::SANDBOX_QUERY_FAILED P::SANDBOX_IMAGE_PULL_FAILED P::SANDBOX_START_FAILED
P::SANDBOX_EXECD_START_FAILED P::SANDBOX_EXECD_DISTRIBUTION_FAILED P::SANDBOX_BOOTSTRAP_INSTALL_FAILED
P::NETWORK_MODE_ENDPOINT_UNAVAILABLE P::INITIALIZATION_ERROR
SANDBOX::INVALID_PARAMETER SANDBOX::UNSUPPORTED_POOL_REF SANDBOX::API_NOT_SUPPORTED
SANDBOX::INVALID_METADATA_LABEL INVALID_METADATA_LABEL INVALID_METADATA_FORMAT
SNAPSHOT::NOT_FOUND SNAPSHOT::NOT_READY SNAPSHOT::INVALID_RESTORE_CONFIG SNAPSHOT::INVALID_SOURCE_STATE
SNAPSHOT::INVALID_STATE SNAPSHOT::DELETE_CONFLICT SNAPSHOT::NOT_IMPLEMENTED
VOLUME::DUPLICATE_NAME VOLUME::INVALID_SUB_PATH VOLUME::INVALID_HOST_PATH VOLUME::HOST_PATH_NOT_ALLOWED
VOLUME::PVC_NOT_FOUND VOLUME::PVC_SUBPATH_UNSUPPORTED_DRIVER VOLUME::INVALID_OSSFS_BUCKET
VOLUME::INVALID_OSSFS_ENDPOINT VOLUME::INVALID_OSSFS_OPTION VOLUME::HOST_PATH_CREATE_FAILED
VOLUME::PVC_INSPECT_FAILED VOLUME::INVALID_OSSFS_MOUNT_ROOT VOLUME::OSSFS_MOUNT_FAILED
VOLUME::OSSFS_UNMOUNT_FAILED
DIAGNOSTICS_SCOPE_UNSUPPORTED BACKEND_CONNECTION_FAILED BACKEND_RESPONSE_FAILED BACKEND_TIMEOUT
KUBERNETES::POOL_NOT_SUPPORTED FSB::API_NOT_SUPPORTED GENERAL::UNKNOWN_ERROR
""".split()

#: Codes of the contract that no answer of ours can carry, and why.
ELSEWHERE = {
    "MISSING_OR_INVALID_SECURE_ACCESS": "secureAccess is refused by every runtime of ours",
    "SNAPSHOT::UNSUPPORTED_RUNTIME": "Kubernetes",
    "SNAPSHOT::RUNTIME_PREFLIGHT_FAILED": "Kubernetes",
    "SNAPSHOT::RUNTIME_CREATE_CONFLICT": "Kubernetes",
    "SNAPSHOT::RUNTIME_CREATE_FAILED": "Kubernetes",
    "KUBERNETES::SANDBOX_NOT_FOUND": "Kubernetes",
    "KUBERNETES::POD_IP_NOT_AVAILABLE": "Kubernetes",
    "KUBERNETES::POD_FAILED": "Kubernetes",
    "KUBERNETES::POD_READY_TIMEOUT": "Kubernetes",
    "KUBERNETES::QUOTA_EXCEEDED": "Kubernetes",
    "KUBERNETES::API_ERROR": "Kubernetes",
    "KUBERNETES::INVALID_STATE": "Kubernetes",
    "SANDBOX_LIST_UNAVAILABLE": "Kubernetes",
    "VOLUME::INVALID_NAME": "the schema answers 422 before",
    "VOLUME::INVALID_MOUNT_PATH": "the schema answers 422 before",
    "VOLUME::INVALID_BACKEND": "the schema answers 422 before",
    "VOLUME::INVALID_PVC_NAME": "the schema answers 422 before",
    "VOLUME::INVALID_OSSFS_CREDENTIALS": "the schema answers 422 before",
    "VOLUME::INVALID_OSSFS_VERSION": "the schema answers 422 before",
}

BOTH = ("native", "docker")
ROWS = []


def row(code, status, *runtimes):
    """The decorated function asks, in a World, and returns the reply that must have the code."""
    def add(ask):
        for runtime in runtimes or BOTH:
            ROWS.append((runtime, code, status, ask))
        return ask
    return add


class World:
    """A server of one runtime, as the rows see it."""

    def __init__(self, server, runtime):
        self.server = server
        self.runtime = runtime
        self.api = server.api()

    def body(self, **fields):
        return {**HOST_IMAGE, "image": {"uri": self.image}, **fields}

    @property
    def image(self):
        return getattr(self.server, "image", "host")

    def create(self, **fields):
        return self.api.post("/sandboxes", self.body(**fields))

    @contextmanager
    def sandbox(self, **fields):
        reply = self.create(**fields)
        assert reply.status == 202, reply
        path = f"/sandboxes/{reply.json['id']}"
        try:
            yield path
        finally:
            self.api.delete(path)


def volume(**fields):
    return [{"name": "v", "mountPath": "/v", **fields}]


# --- who asks, and for what -----------------------------------------------------------------------


@row("MISSING_API_KEY", 401)
def without_a_key(world):
    return world.server.api(key=False).get("/sandboxes")


@row("INVALID_API_KEY", 401)
def with_a_wrong_key(world):
    return world.server.api(key="wrong").get("/sandboxes")


@row("P::SANDBOX_NOT_FOUND", 404)
def a_sandbox_that_is_not_there(world):
    return world.api.get(f"/sandboxes/{uuid.uuid4()}")


@row("P::INVALID_PORT", 400)
def a_port_out_of_range(world):
    return world.api.get("/sandboxes/nobody/endpoints/65536")


@row("P::INVALID_ENTRYPOINT", 400)
def an_entrypoint_without_a_program(world):
    return world.create(entrypoint=[""])


@row("P::INVALID_EXPIRATION", 400)
def a_renewal_into_the_past(world):
    with world.sandbox() as path:
        return world.api.post(path + "/renew-expiration", {"expiresAt": "2020-01-01T00:00:00Z"})


@row("P::INVALID_EXPIRATION", 409)
def a_renewal_of_what_never_expires(world):
    later = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()
    with world.sandbox(timeout=None) as path:
        return world.api.post(path + "/renew-expiration", {"expiresAt": later})


@row("SANDBOX::INVALID_PARAMETER", 400)
def a_limit_that_is_no_amount(world):
    return world.create(resourceLimits={"cpu": "much"})


@row("SANDBOX::API_NOT_SUPPORTED", 400)
def a_signed_endpoint(world):
    return world.api.get("/sandboxes/nobody/endpoints/80", query={"expires": 9999999999})


@row("SANDBOX::UNSUPPORTED_POOL_REF", 400, "docker")
def a_pool_where_there_are_none(world):
    return world.create(extensions={"poolRef": "p"})


@row("SANDBOX::INVALID_METADATA_LABEL", 400)
def metadata_that_is_no_label(world):
    return world.create(metadata={"a b": "c"})


@row("INVALID_METADATA_LABEL", 400)
def a_patch_of_reserved_metadata(world):
    with world.sandbox() as path:
        return world.api.patch(path + "/metadata", {"opensandbox.io/id": "x"})


@row("INVALID_METADATA_FORMAT", 400)
def a_filter_without_a_value(world):
    return world.api.get("/sandboxes", query={"metadata": "a"})


@row("DIAGNOSTICS_SCOPE_UNSUPPORTED", 400)
def a_scope_that_is_none(world):
    with world.sandbox() as path:
        return world.api.get(path + "/diagnostics/logs", query={"scope": "lifecycle"})


@row("KUBERNETES::POOL_NOT_SUPPORTED", 501, "docker")
def pools_where_there_are_none(world):
    return world.api.get("/pools")


@row("FSB::API_NOT_SUPPORTED", 501)
def templates(world):
    return world.api.get("/templates")


# --- starting -------------------------------------------------------------------------------------


@row("P::SANDBOX_IMAGE_PULL_FAILED", 500)
def an_image_that_is_not_there(world):
    return world.create(image={"uri": "127.0.0.1:1/no/such:image"})


@row("P::SANDBOX_START_FAILED", 500)
def an_entrypoint_that_is_not_there(world):
    return world.create(entrypoint=["/no/such/program"])


# --- states ---------------------------------------------------------------------------------------


@row("P::SANDBOX_NOT_RUNNING", 409)
def a_pause_of_what_is_paused(world):
    with world.sandbox() as path:
        assert world.api.post(path + "/pause").status == 202
        reply = world.api.post(path + "/pause")
        assert world.api.post(path + "/resume").status == 202
        return reply


@row("P::SANDBOX_NOT_PAUSED", 409)
def a_resumption_of_what_runs(world):
    with world.sandbox() as path:
        return world.api.post(path + "/resume")


# --- snapshots ------------------------------------------------------------------------------------


@row("SNAPSHOT::NOT_FOUND", 404)
def a_snapshot_that_is_not_there(world):
    return world.api.get(f"/snapshots/{uuid.uuid4()}")


@row("SNAPSHOT::NOT_FOUND", 404)
def a_sandbox_from_no_snapshot(world):
    body = {"snapshotId": str(uuid.uuid4()), "resourceLimits": {}, "timeout": 60}
    return world.api.post("/sandboxes", body)


@row("SNAPSHOT::INVALID_SOURCE_STATE", 409)
def a_snapshot_of_what_is_paused(world):
    with world.sandbox() as path:
        assert world.api.post(path + "/pause").status == 202
        return world.api.post(path + "/snapshots", {})


# --- volumes --------------------------------------------------------------------------------------


@row("VOLUME::DUPLICATE_NAME", 400)
def two_volumes_of_one_name(world):
    return world.create(volumes=volume(pvc={"claimName": "a"}) * 2)


@row("VOLUME::INVALID_SUB_PATH", 400)
def a_sub_path_that_leads_out(world):
    return world.create(volumes=volume(pvc={"claimName": "a"}, subPath="../x"))


@row("VOLUME::INVALID_HOST_PATH", 400)
def a_host_path_with_steps_back(world):
    return world.create(volumes=volume(host={"path": "/srv/../etc"}))


@row("VOLUME::HOST_PATH_NOT_ALLOWED", 400)
def a_host_path_that_nobody_allowed(world):
    return world.create(volumes=volume(host={"path": "/etc"}))


# --- the proxy ------------------------------------------------------------------------------------


@row("BACKEND_CONNECTION_FAILED", 502)
def a_port_that_nobody_listens_on(world):
    with world.sandbox() as path:
        return world.api.get(path + "/proxy/1/")


DROPPER = (
    "import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
    "s.bind(('0.0.0.0', 8099)); s.listen()\n"
    "while True: c, _ = s.accept(); c.recv(4096); c.close()"
)


@row("BACKEND_RESPONSE_FAILED", 502)
def a_service_that_hangs_up(world):
    with world.sandbox(entrypoint=["python3", "-c", DROPPER]) as path:
        def answered():
            reply = world.api.get(path + "/proxy/8099/")
            return reply if reply.json["code"] == "BACKEND_RESPONSE_FAILED" else None

        return eventually(answered, 20, 0.05, "the service inside")


# --- the test -------------------------------------------------------------------------------------


#: Shown by tests of their own, for what provokes them takes minutes or another server.
SHOWN_BY = {
    "BACKEND_TIMEOUT": "unit/server/proxy_test.cpp: a failure behind the agent is told apart",
}


@pytest.fixture(scope="module")
def worlds(make_server):
    return {"native": World(make_server("codes"), "native")}


def name_of(part):
    return part.__name__ if callable(part) else str(part)


@pytest.mark.parametrize(
    "runtime, code, status, ask", ROWS, ids=[f"{r[0]}-{r[1]}-{r[3].__name__}" for r in ROWS])
def test_it_is_answered_with_its_code(worlds, runtime, code, status, ask):
    world = worlds[runtime]
    reply = ask(world)
    wanted = re.sub("^P::", world.runtime.upper() + "::", code)
    assert (reply.status, reply.json.get("code")) == (status, wanted), reply
    assert reply.json["message"].strip(), reply


def test_every_code_of_the_contract_has_a_row():
    provoked = {code for _, code, _, _ in ROWS}
    assert set(CONTRACT) - provoked - set(SHOWN_BY) == set()
    assert provoked - set(CONTRACT) == set(), "not a code of the contract"
    assert set(ELSEWHERE) & provoked == set()
