"""The servers that the published clients meet: ours on each runtime, and the published one that
starts our agent. There is one engine and one server on it for all modules."""

import pytest

from support.docker_server import DockerServer
from support.egress_world import DockerWorld, NativeWorld
from support.published_server import PublishedServer, make_execd_image


@pytest.fixture(scope="session")
def docker_server(docker, scratch):
    server = DockerServer(scratch / "docker-server", docker)
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture(scope="session")
def published_server(docker, scratch):
    make_execd_image(docker)
    server = PublishedServer(scratch / "published-server", docker)
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture(scope="module", params=["native", "docker"])
def server(request):
    if request.param == "native":
        return request.getfixturevalue("make_server")()
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture(scope="session")
def docker_egress(scratch):
    with DockerWorld() as world:
        server = world.server(scratch / "docker-egress-server")
        try:
            yield server.start(), world
        finally:
            server.destroy()


@pytest.fixture(scope="module")
def native_egress(scratch, request):
    """Not longer than a module: meanwhile these tests are on another host, as far as networks go."""
    with NativeWorld() as world:
        server = world.server(scratch / f"native-egress-{request.module.__name__}")
        try:
            yield server.start(), world
        finally:
            server.destroy()


@pytest.fixture(scope="module")
def published_egress(docker_egress, scratch):
    """The published server with the sidecar's image that ours has made."""
    ours, world = docker_egress
    ours.create(networkPolicy={"defaultAction": "deny"}).delete()
    [image] = world.docker.docker(
        "images", "--format", "{{.Repository}}:{{.Tag}}", "opensandbox-egress").stdout.split()
    make_execd_image(world.docker)
    server = PublishedServer(scratch / "published-egress", world.docker,
                             sections={"egress": {"image": image, "mode": "dns+nft"}})
    try:
        yield server.start(), world
    finally:
        server.destroy()


@pytest.fixture(scope="module", params=["docker", "native"])
def egress_place(request):
    """A server whose sandboxes have egress control, and the world that they are in
    (support/egress_world.py says what is there): a pair. One for each runtime that has it."""
    return request.getfixturevalue(f"{request.param}_egress")
