"""Our server with the Docker runtime, before a private engine."""

from support.dockerd import DEBIAN
from support.server import Server


class DockerServer(Server):
    runtime = "docker"
    image = DEBIAN

    def __init__(self, directory, docker, *, sections=None, **options):
        own = {
            "runtime": {"type": "docker"},
            "docker": {"network_mode": "bridge", "publish_host": "127.0.0.1"},
        }
        for section, values in (sections or {}).items():
            own.setdefault(section, {}).update(values)
        super().__init__(directory, sections=own, **options)
        self.docker = docker
        self.variables = {"DOCKER_HOST": docker.socket}
