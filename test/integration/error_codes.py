"""Every error code of the contract, provoked. A row says which code with which status, and asks for it
in a way that a client or a fault can; `P` stands for the runtime's own prefix. The last test compares
the rows with the contract's list."""

import re

import pytest

from support import error_rows_faults  # noqa: F401: its rows
from support.docker_server import DockerServer
from support.error_rows import ROWS, World
from support.faulty_engine import FaultyEngine
from support.server import Server, stop_spawner

#: Codes of the contract (lifecycle 1.2, 1.5, 5), `P` for the prefix of the runtime in force.
CONTRACT = """
MISSING_API_KEY INVALID_API_KEY TENANT_PROVIDER_UNAVAILABLE
P::SANDBOX_NOT_FOUND P::INVALID_PORT P::INVALID_ENTRYPOINT P::INVALID_EXPIRATION P::SANDBOX_NOT_RUNNING
P::SANDBOX_NOT_PAUSED P::SANDBOX_PAUSE_FAILED P::SANDBOX_RESUME_FAILED P::SANDBOX_DELETE_FAILED
P::SANDBOX_QUERY_FAILED P::SANDBOX_IMAGE_PULL_FAILED P::SANDBOX_START_FAILED
P::SANDBOX_EXECD_DISTRIBUTION_FAILED
P::NETWORK_MODE_ENDPOINT_UNAVAILABLE P::INITIALIZATION_ERROR
SANDBOX::INVALID_PARAMETER SANDBOX::UNSUPPORTED_POOL_REF SANDBOX::API_NOT_SUPPORTED
SANDBOX::INVALID_METADATA_LABEL INVALID_METADATA_LABEL INVALID_METADATA_FORMAT
SNAPSHOT::NOT_FOUND SNAPSHOT::NOT_READY SNAPSHOT::INVALID_RESTORE_CONFIG SNAPSHOT::INVALID_SOURCE_STATE
SNAPSHOT::INVALID_STATE SNAPSHOT::DELETE_CONFLICT
VOLUME::DUPLICATE_NAME VOLUME::INVALID_MOUNT_PATH VOLUME::INVALID_PVC_NAME VOLUME::INVALID_SUB_PATH VOLUME::INVALID_HOST_PATH VOLUME::HOST_PATH_NOT_ALLOWED
VOLUME::PVC_NOT_FOUND VOLUME::PVC_SUBPATH_UNSUPPORTED_DRIVER VOLUME::INVALID_OSSFS_BUCKET
VOLUME::INVALID_OSSFS_ENDPOINT VOLUME::INVALID_OSSFS_OPTION VOLUME::HOST_PATH_CREATE_FAILED
VOLUME::PVC_INSPECT_FAILED VOLUME::INVALID_OSSFS_MOUNT_ROOT VOLUME::OSSFS_MOUNT_FAILED
DIAGNOSTICS_SCOPE_UNSUPPORTED BACKEND_CONNECTION_FAILED BACKEND_RESPONSE_FAILED BACKEND_TIMEOUT
KUBERNETES::POOL_NOT_SUPPORTED FSB::API_NOT_SUPPORTED
""".split()

#: Codes of the contract that no answer of ours can carry, and why.
ELSEWHERE = {
    "P::SANDBOX_EXECD_START_FAILED": "the agent is staged without a container that would have to start",
    "P::SANDBOX_BOOTSTRAP_INSTALL_FAILED": "program and script are staged together",
    "MISSING_OR_INVALID_SECURE_ACCESS": "secureAccess is refused by every runtime of ours",
    "SNAPSHOT::NOT_IMPLEMENTED": "every runtime has snapshots",
    "VOLUME::OSSFS_UNMOUNT_FAILED": "a mount that stays is logged and tried again; no answer waits for it",
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
    "VOLUME::INVALID_BACKEND": "the schema answers 422 before",
    "VOLUME::INVALID_OSSFS_CREDENTIALS": "the schema answers 422 before",
    "VOLUME::INVALID_OSSFS_VERSION": "the schema answers 422 before",
}

#: Shown by tests of their own, for what provokes them takes minutes or another server.
SHOWN_BY = {
    "TENANT_PROVIDER_UNAVAILABLE": "test_a_tenant_provider_that_is_down_has_its_code",
    "P::INITIALIZATION_ERROR": "test_an_engine_that_is_not_there_ends_the_start_with_its_code",
    "BACKEND_TIMEOUT": "unit/server/api/proxy_test.cpp: a failure behind the agent is told apart",
}


def storage(directory):
    """Where host volumes may be, and where buckets are mounted (World)."""
    return {"storage": {"allowed_host_paths": [str(directory / "allowed")],
                        "ossfs_mount_root": str(directory / "buckets")}}


@pytest.fixture(scope="module")
def native_world(make_server, scratch):
    directory = scratch / "codes-of-native"
    directory.mkdir()
    return World(make_server("codes", sections=storage(directory)), "native", directory)


@pytest.fixture(scope="module")
def docker_world(docker, scratch):
    directory = scratch / "codes-of-docker"
    directory.mkdir()
    with FaultyEngine(docker.directory, docker.socket_path) as engine:
        server = DockerServer(directory / "server", docker, sections=storage(directory))
        server.variables = {"DOCKER_HOST": engine.host}
        try:
            yield World(server.start(), "docker", directory, engine)
        finally:
            server.destroy()


@pytest.mark.parametrize(
    "runtime, code, status, ask", ROWS, ids=[f"{r[0]}-{r[1]}-{r[3].__name__}" for r in ROWS])
def test_it_is_answered_with_its_code(request, runtime, code, status, ask):
    world = request.getfixturevalue(f"{runtime}_world")
    reply = ask(world)
    wanted = re.sub("^P::", world.runtime.upper() + "::", code)
    assert (reply.status, reply.json.get("code")) == (status, wanted), reply
    assert reply.json["message"].strip(), reply


def test_a_tenant_provider_that_is_down_has_its_code(scratch):
    """Another server: tenants and an API key exclude each other."""
    tenants = {"provider": "http", "endpoint": "http://127.0.0.1:1/tenant", "timeout_seconds": 5}
    server = Server(scratch / "codes-of-tenants", sections={"tenants": tenants})
    try:
        reply = server.start().api(key="somebody").get("/sandboxes")
        assert (reply.status, reply.json["code"]) == (503, "TENANT_PROVIDER_UNAVAILABLE"), reply
    finally:
        server.stop()
        stop_spawner(server.state)


def test_an_engine_that_is_not_there_ends_the_start_with_its_code(scratch):
    server = Server(scratch / "codes-without-engine", sections={"runtime": {"type": "docker"}})
    server.variables = {"DOCKER_HOST": f"unix://{scratch}/none.sock"}
    with pytest.raises(AssertionError, match="the server ended with 1"):
        server.start()
    assert "DOCKER::INITIALIZATION_ERROR" in server.tail()


def test_every_code_of_the_contract_has_a_row():
    provoked = {code for _, code, _, _ in ROWS}
    assert set(CONTRACT) - provoked - set(SHOWN_BY) == set()
    assert provoked - set(CONTRACT) == set(), "not a code of the contract"
    assert set(ELSEWHERE) & provoked == set()
