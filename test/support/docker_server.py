"""Our server with the Docker runtime, before a private engine."""

from collections import Counter

from support import census
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

    def destroy(self):
        try:
            super().destroy()
        finally:
            left = self.docker.docker("ps", "-aq").stdout.split()
            if left:
                self.docker.docker("rm", "-f", "-v", *left)

    def containers(self):
        """The ids of the sandboxes that have a container, and the names of all other containers."""
        sandboxes, others = Counter(), Counter()
        for found in self.docker.request("GET", "/containers/json?all=1"):
            sandbox = found["Labels"].get("opensandbox.io/id")
            if sandbox:
                sandboxes[sandbox] += 1
            else:
                others[census.kind_of(found["Names"][0])] += 1
        return sandboxes, others

    def snapshot_images(self):
        """The tags of snapshot images: the snapshots' ids."""
        tags = [t for image in self.docker.request("GET", "/images/json") for t in image["RepoTags"] or []]
        return [t.split(":")[1] for t in tags if t.startswith("opensandbox-snapshots:")]

    def count(self):
        """What exists on the engine, and the server's files. Volumes of the agent are kept."""
        sandboxes, others = self.containers()
        images = self.docker.request("GET", "/images/json")
        volumes = self.docker.request("GET", "/volumes")["Volumes"] or []
        networks = self.docker.request("GET", "/networks")
        return {
            "containers": Counter({"of sandboxes": sum(sandboxes.values())}) + others,
            "images": Counter(census.kind_of(tag) for i in images for tag in i["RepoTags"] or ["without a name"]),
            "volumes": Counter(census.kind_of(v["Name"]) for v in volumes),
            "networks": Counter(n["Name"] for n in networks),
            "files": Counter(census.files_of(self.state)),
        }
