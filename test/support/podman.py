"""A private Podman behind its Docker-compatible socket, stopped by its process id."""

import subprocess
import tempfile
from pathlib import Path

from support.dockerd import Dockerd

# The service asks for more open files than root may where it lacks CAP_SYS_RESOURCE.
RUNTIME = """#!/usr/bin/env python3
import json, os, sys
from pathlib import Path

for at, word in enumerate(sys.argv):
    if word in ("-b", "--bundle"):
        file = Path(sys.argv[at + 1]) / "config.json"
        config = json.loads(file.read_text())
        config["process"].pop("rlimits", None)
        file.write_text(json.dumps(config))
os.execvp("runc", ["runc", *sys.argv[1:]])
"""

CONFIGURATION = """[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


class Podman(Dockerd):
    """Containers are to use the host's network: no bridge and no packet filter is touched."""

    def __init__(self):
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="osb-podman-", dir="/var/tmp"))
        self.socket_path = self.directory / "p.sock"
        self.socket = f"unix://{self.socket_path}"

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        runtime = self.directory / "runtime"
        runtime.write_text(RUNTIME)
        runtime.chmod(0o755)
        configuration = self.directory / "containers.conf"
        configuration.write_text(CONFIGURATION)
        with (self.directory / "dockerd.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    # runc takes a hybrid of both kinds of cgroups for one of the second kind.
                    "unshare", "--mount", "sh", "-c",
                    'umount /sys/fs/cgroup/unified 2>/dev/null; exec env "$@"', "sh",
                    f"CONTAINERS_CONF={configuration}", "podman", "--root", self.directory / "data",
                    "--runroot", self.directory / "run", "--runtime", runtime,
                    "system", "service", "--time", "0", self.socket,
                ],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )

        self._wait_for_answers()
