"""The servers that the bench of the Docker runtime compares, each asked in the same way."""

import http.client
import json
import time

from support.client import Http
from support.docker_server import DockerServer
from support.dockerd import BUSYBOX
from support.processes import tree_proportional_kib
from support.published_server import PublishedServer
from support.server import Server

REQUEST = {
    "image": {"uri": BUSYBOX},
    "entrypoint": ["tail", "-f", "/dev/null"],
    "resourceLimits": {"memory": "256Mi"},
    "timeout": 3600,
}


class Timed:
    """Seconds from the request to: the answer of create, a finished command's event, and the end of
    its stream."""

    def __init__(self, id, created, finished, ended):
        self.id, self.created, self.finished, self.ended = id, created, finished, ended


class Subject:
    def __init__(self, name, server):
        self.name, self.server = name, server
        self.headers = {"OPEN-SANDBOX-API-KEY": server.key}

    @property
    def pid(self):
        return self.server.process.pid

    def api(self):
        """A kept-alive connection; replies are not checked here."""
        return Http(self.server.address, None, "/v1", self.headers, 120)

    def create(self, api=None):
        """Create, endpoint, one command: what every client does first."""
        api = api or self.api()
        begun = time.perf_counter()
        reply = api.post("/sandboxes", REQUEST)
        created = time.perf_counter() - begun
        assert reply.status == 202, reply
        id = reply.json["id"]
        where = api.get(f"/sandboxes/{id}/endpoints/44772").json
        finished, ended = _first_command(where)
        return Timed(id, created, finished - begun, ended - begun)

    def delete(self, id, api=None):
        reply = (api or self.api()).delete(f"/sandboxes/{id}")
        assert reply.status == 204, reply

    def memory_kib(self):
        return tree_proportional_kib(self.pid)


def _first_command(where):
    host, slash, path = where["endpoint"].partition("/")
    headers = {"Content-Type": "application/json", **where.get("headers", {})}
    until = time.perf_counter() + 60
    while True:
        connection = http.client.HTTPConnection(host, timeout=60)
        try:
            connection.request("POST", f"{slash}{path}/command", json.dumps({"command": "true"}), headers)
            response = connection.getresponse()
            text, finished = b"", None
            while part := response.read1(65536):
                text += part
                if finished is None and b"execution_complete" in text:
                    finished = time.perf_counter()
            if finished is not None:
                return finished, time.perf_counter()
        except (OSError, http.client.HTTPException):
            pass  # Its port is open before its agent listens.
        finally:
            connection.close()
        if time.perf_counter() > until:
            raise AssertionError(f"no command ran at {where}: {text[:500]}")
        time.sleep(0.005)


def published(directory, docker):
    return Subject("published server", PublishedServer(directory / "published", docker).start())


def on_docker(directory, docker):
    return Subject("opensandbox, docker", DockerServer(directory / "docker", docker).start())


def on_native(directory, archive):
    server = Server(directory / "native", pool_size=20).start()
    server.cli("image", "import", archive, BUSYBOX)
    return Subject("opensandbox, native", server)
