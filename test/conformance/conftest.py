"""The servers that the published clients meet: ours on each runtime, and the published one that
starts our agent. There is one engine and one server on it for all modules."""

import pytest

from support.docker_server import DockerServer
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
