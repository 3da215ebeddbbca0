"""A private Docker engine: own data, socket, mounts and network, stopped by its process id."""

import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from support import rootfs
from support.addresses import free_slash_20
from support.shell import eventually, run


#: Debian's own, which speaks the version of Debian's engine.
CLIENT = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"

#: Images of the tests (import_images): Debian with Python, and one of a busybox.
DEBIAN = "debian-test:12"
BUSYBOX = "busybox-test:1"


class Dockerd:
    """By default its network is out of everybody's reach. With `reachable`, containers get
    addresses of a bridge of its own in the network namespace of the tests, and published ports
    listen there, as on a machine that has Docker; the host's packet filter stays untouched. In
    `options`, `{network}` stands for the first half of the bridge's address."""

    def __init__(self, *, reachable=False, options=()):
        self.reachable = reachable
        self.options = list(options)
        self.process = None
        self.bridge = self.network = None

    def __enter__(self):
        # Short, because a socket's path has at most 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="osb-docker-", dir="/var/tmp"))
        self.socket_path = self.directory / "d.sock"
        self.socket = f"unix://{self.socket_path}"
        self.pidfile = self.directory / "d.pid"
        try:
            if self.reachable:
                self._make_bridge()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make_bridge(self):
        # A census (support/census.py) takes the name for that of another server.
        self.bridge = f"osb{random.randrange(1 << 24):06x}"
        first, second, _, _ = free_slash_20().split(".")
        self.network = f"{first}.{second}"
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "addr", "add", f"{self.network}.0.1/20", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")

    def _network(self):
        if not self.reachable:
            return ["unshare", "--net", "--mount", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"], []
        return ["unshare", "--mount"], [
            "--bridge", self.bridge, "--iptables=false", "--ip-masq=false", "--ip-forward=false",
            "--default-address-pool", f"base={self.network}.128.0/17,size=24",
        ]

    def start(self):
        """Starts the engine, also again after stop() or kill()."""
        wrapper, network = self._network()
        with (self.directory / "dockerd.log").open("ab") as log:
            self.process = subprocess.Popen(
                # Mounts of its own: none of them outlives it.
                [
                    *wrapper, "dockerd", "--data-root", self.directory / "data", "--exec-root",
                    self.directory / "exec", "-H", self.socket, "--pidfile", self.pidfile, *network,
                    *(option.format(network=self.network) for option in self.options),
                ],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )

        self._wait_for_answers()

    def _wait_for_answers(self):
        def answers():
            if self.process.poll() is not None:
                raise AssertionError("the engine ended:\n" + self.tail())
            return self.docker("version", check=False).returncode == 0

        eventually(answers, 60, 0.2, "the engine")

    def stop(self):
        """Ends the engine, and with it every container."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def pause(self):
        """The engine takes connections and answers none, until resume()."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def tail(self):
        return (self.directory / "dockerd.log").read_text(errors="replace")[-3000:]

    def docker(self, *argv, check=True, timeout=120):
        environment = {**os.environ, "DOCKER_HOST": self.socket, "DOCKER_CONFIG": str(self.directory)}
        return run(CLIENT, *argv, check=check, timeout=timeout, env=environment)

    def events(self, since, until):
        """What happened to containers, as text; why there is none, if the engine does not say."""
        try:
            return self.docker("events", f"--since={since:.3f}", f"--until={until:.3f}", "--filter=type=container",
                               "--format={{.TimeNano}} {{.Action}} {{.Actor.Attributes.name}} "
                               '{{index .Actor.Attributes "exitCode"}}').stdout
        except Exception as error:
            return f"no events: {error}"

    def api(self):
        return EngineApi(self.socket_path)

    def request(self, method, path, body=None):
        """One request on a connection of its own."""
        api = self.api()
        try:
            return api.request(method, path, body)
        finally:
            api.close()

    def import_tree(self, tree, name, *changes):
        """An image of this root directory; `changes` are instructions such as "ENV A=b"."""
        archive = self.directory / "root.tar"
        run("tar", "-C", tree, "--owner=0", "--group=0", "-cf", archive, ".")
        changed = [a for change in ('CMD ["/bin/sh"]', *changes) for a in ("-c", change)]
        self.docker("import", *changed, archive, name)
        archive.unlink()

    def import_images(self, directory):
        """DEBIAN and BUSYBOX, from trees made in `directory`."""
        for name, tree in ((DEBIAN, rootfs.debian_tree(directory / "debian")),
                           (BUSYBOX, rootfs.busybox_tree(directory / "busybox-of-docker"))):
            self.import_tree(tree, name)

    def __exit__(self, *_):
        self.stop()
        if self.bridge:
            run("ip", "link", "del", self.bridge, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


class EngineApi:
    """The engine's own API over one kept-alive connection, without a client program in between."""

    def __init__(self, socket_path):
        self.connection = _UnixConnection(socket_path)

    def request(self, method, path, body=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        data = json.dumps(body).encode() if body is not None else None
        self.connection.request(method, "/v1.41" + path, data, headers)
        response = self.connection.getresponse()
        content = response.read()
        if response.status >= 400:
            raise AssertionError(f"{method} {path}: {response.status} {content[:500]!r}")
        return json.loads(content) if content.strip() else None

    def close(self):
        self.connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)
