"""Rows of integration/error_codes.py: which code with which status, and how it is provoked, by requests
alone."""

import uuid
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

from support.server import HOST_IMAGE
from support.shell import eventually

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
    """A server of one runtime, as the rows see it. `engine` fails when told to."""

    def __init__(self, server, runtime, directory, engine=None):
        self.server = server
        self.runtime = runtime
        self.engine = engine
        self.api = server.api()
        #: Where host volumes may be, and where buckets are mounted.
        self.allowed = directory / "allowed"
        self.buckets = directory / "buckets"

    @property
    def database(self):
        return next(self.server.directory.rglob("*.db"))

    def restart(self):
        """Starts the stopped server again; the connection to the old one is gone."""
        self.server.start()
        self.api = self.server.api()

    def forget_the_agent(self):
        docker = self.server.docker.docker
        for name in docker("volume", "ls", "-q").stdout.split():
            if name.startswith("opensandbox-agent-"):
                docker("volume", "rm", "-f", name)

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
