"""A private Docker engine: own data, socket, mounts and network, stopped by its process id."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from support.shell import eventually, run


class Dockerd:
    def __enter__(self):
        # Short, because a socket's path has at most 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="osb-docker-", dir="/var/tmp"))
        self.socket = f"unix://{self.directory}/d.sock"
        self.pidfile = self.directory / "d.pid"
        self.log = (self.directory / "dockerd.log").open("wb")
        self.process = subprocess.Popen(
            # Mounts, bridge and packet filter of its own: none of them outlives it.
            [
                "unshare", "--net", "--mount", "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
                "dockerd", "--data-root", self.directory / "data", "--exec-root",
                self.directory / "exec", "-H", self.socket, "--pidfile", self.pidfile,
            ],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
        )

        def answers():
            if self.process.poll() is not None:
                raise AssertionError("dockerd ended:\n" + self.tail())
            return self.docker("version", check=False).returncode == 0

        try:
            eventually(answers, 60, 0.2, "the Docker engine")
        except BaseException:
            self.__exit__()
            raise
        return self

    def tail(self):
        return (self.directory / "dockerd.log").read_text(errors="replace")[-3000:]

    def docker(self, *argv, check=True, timeout=120):
        environment = {**os.environ, "DOCKER_HOST": self.socket, "DOCKER_CONFIG": str(self.directory)}
        # Debian's own client, which speaks the version of Debian's engine.
        client = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"
        return run(client, *argv, check=check, timeout=timeout, env=environment)

    def import_tree(self, tree, name):
        archive = self.directory / "root.tar"
        run("tar", "-C", tree, "--owner=0", "--group=0", "-cf", archive, ".")
        self.docker("import", "-c", 'CMD ["/bin/sh"]', archive, name)
        archive.unlink()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)
