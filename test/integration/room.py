"""Who knows no key, or does not go on, uses up nothing that requests with a key need."""

import resource
import select
import socket

import pytest

from support.shell import eventually

#: Takes connections and never says anything.
SILENT = """
import socket
listener = socket.create_server(("0.0.0.0", 8000), backlog=4096)
kept = []
while True:
    kept.append(listener.accept())
"""


@pytest.fixture(autouse=True)
def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Crowd:
    """Connections that each say something and then wait."""

    def __init__(self, server):
        host, port = server.address.split(":")
        self.address = (host, int(port))
        self.members = []

    def join(self, count, said=b""):
        for _ in range(count):
            member = socket.create_connection(self.address, 30)
            self.members.append(member)
            if said:
                try:
                    member.sendall(said)
                except OSError:
                    pass  # It had to give way already.

    def answered(self):
        poll = select.poll()
        for member in self.members:
            poll.register(member, select.POLLIN)
        return len(poll.poll(0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.close()


def expect_service(server):
    """Everything that carries a key works, and so does /health."""
    assert server.api(key=False, prefix="").get("/health").status == 200
    api = server.api()
    assert api.get("/sandboxes").status == 200
    with server.create() as sandbox:
        assert sandbox.connect(proxy=True).sh("echo through") == "through\n"
        assert sandbox.sh("echo direct") == "direct\n"


def test_1030_hanging_requests_without_a_key_leave_room_for_those_with_one(server):
    with server.create(entrypoint=["python3", "-c", SILENT]) as silent, Crowd(server) as crowd:
        eventually(lambda: listens(silent), 20, 0.05, "the service inside")
        path = f"/v1/sandboxes/{silent.id}/proxy/8000/x"
        crowd.join(1030, f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())

        def all_there():
            text = server.api(key=False, prefix="").get("/metrics").text
            flying = next(float(line.split()[-1]) for line in text.splitlines()
                          if line.startswith("opensandbox_http_requests_in_flight"))
            # This request is one of them.
            return flying - 1 + crowd.answered() >= 1030

        eventually(all_there, 60, 0.1, "all requests")
        expect_service(server)
        # The strangers' own room is full, for this sandbox.
        assert server.api(key=False).get(silent.path("/proxy/8000/x"), check=False).status == 503


def listens(sandbox):
    return sandbox.sh("cat /proc/net/tcp").count(":1F40 ") > 0


@pytest.fixture(scope="module")
def few(make_server):
    """A server with 256 descriptors."""
    return make_server("few", launcher=["prlimit", "--nofile=256:256"], pool_size=2)


def test_600_idle_connections_and_slow_heads_do_not_shut_out_a_server_with_256_descriptors(few):
    with Crowd(few) as crowd:
        crowd.join(300)
        crowd.join(300, b"GET /v1/sandboxes HTTP/1.1\r\nHost: h\r\nX-Slow: ")
        expect_service(few)
        # They that were cut were those that had waited longest.
        assert crowd.answered() >= 400


def test_hanging_requests_without_a_key_take_a_part_of_few_descriptors(few):
    with few.create(entrypoint=["python3", "-c", SILENT]) as silent, Crowd(few) as crowd:
        eventually(lambda: listens(silent), 20, 0.05, "the service inside")
        path = f"/v1/sandboxes/{silent.id}/proxy/8000/x"
        crowd.join(400, f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        expect_service(few)
