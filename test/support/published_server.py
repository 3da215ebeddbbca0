"""The published Python server, unmodified, on loopback before a private Docker engine."""

import json
import os
import subprocess
from pathlib import Path

from support.addresses import free_port
from support.client import Http
from support.dockerd import CLIENT, DEBIAN
from support.server import EXECUTABLE
from support.shell import eventually, run

ROOT = Path(__file__).resolve().parents[2]
EXECD_IMAGE = "opensandbox/execd:ours"

#: test/run makes it; see published_server.txt.
PROGRAM = ROOT / "build/published-venv/bin/opensandbox-server"


def make_execd_image(docker, name=EXECD_IMAGE):
    """Our agent as that server wants it."""
    run(ROOT / "packaging/execd-image/build", name, timeout=120,
        env={**os.environ, "DOCKER_HOST": docker.socket, "DOCKER": CLIENT, "EXECUTABLE": str(EXECUTABLE)})
    return name


class PublishedServer:
    """One server with a home directory of its own. `sections` add to the configuration."""

    runtime = "docker"
    image = DEBIAN
    key = "key-of-the-tests"

    def __init__(self, directory, docker, *, sections=None):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.docker = docker
        self.log = self.directory / "server.log"
        self.process = None
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.settings = {
            "server": {"host": "127.0.0.1", "port": self.port, "api_key": self.key},
            "runtime": {"type": "docker", "execd_image": EXECD_IMAGE},
            "docker": {"network_mode": "bridge", "publish_host": "127.0.0.1"},
            "store": {"path": str(self.directory / "opensandbox.db")},
        }
        for section, values in (sections or {}).items():
            self.settings.setdefault(section, {}).update(values)

    def start(self, timeout=90):
        lines = []
        for section, values in self.settings.items():
            lines.append(f"[{section}]")
            for key, value in values.items():
                lines.append(f"{key} = {json.dumps(value)}")
        config = self.directory / "config.toml"
        config.write_text("\n".join(lines) + "\n")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "--config", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.directory,
                env={"PATH": os.environ["PATH"], "HOME": str(self.directory), "LANG": "C.UTF-8",
                     "DOCKER_HOST": self.docker.socket},
            )

        def answers():
            if self.process.poll() is not None:
                raise AssertionError(f"the published server ended:\n{self.tail()}")
            try:
                return Http(self.address, timeout=5).get("/health").status == 200
            except OSError:
                return False

        eventually(answers, timeout, 0.02, "the published server")
        return self

    def tail(self, size=6000):
        return self.log.read_bytes()[-size:].decode(errors="replace")

    def api(self, prefix="/v1", timeout=120):
        return Http(self.address, None, prefix, {"OPEN-SANDBOX-API-KEY": self.key}, timeout)

    def environment(self):
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.directory), "LANG": "C.UTF-8",
            "OPEN_SANDBOX_DOMAIN": self.address, "OPEN_SANDBOX_PROTOCOL": "http",
            "OPEN_SANDBOX_API_KEY": self.key,
        }

    def destroy(self):
        """Ends the server and removes its containers."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        left = self.docker.docker("ps", "-aq", "--filter", "label=opensandbox.io/id").stdout.split()
        if left:
            self.docker.docker("rm", "-f", *left)
