"""Starts and stops the release executable's server, each with its own state and addresses."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

from support import census
from support.addresses import free_slash_20
from support.client import Agent, Http
from support.shell import eventually, run

ROOT = Path(__file__).resolve().parents[2]
EXECUTABLE = Path(os.environ.get("OPENSANDBOX_EXECUTABLE", ROOT / "build/release/opensandbox"))

HOST_IMAGE = {
    "image": {"uri": "host"},
    "entrypoint": ["tail", "-f", "/dev/null"],
    "resourceLimits": {"cpu": "1", "memory": "512Mi"},
    "timeout": 600,
}


def free_range():
    return f"{free_slash_20()}/20"


def stop_spawner(state_directory):
    run(ROOT / "packaging/stop-spawner", state_directory, check=False)


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def parent_of(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


def children_of(pid):
    return [int(p) for p in filter(str.isdigit, os.listdir("/proc")) if parent_of(p) == pid]


def toml(value):
    """A value as TOML has it: as JSON, but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


class Server:
    """One `opensandbox serve` with a state directory of its own."""

    #: The runtime's name in the configuration, and in error codes in capitals.
    runtime = "native"
    #: An image with a shell, the usual tools and Python.
    image = "host"

    def __init__(self, directory, *, pool_size=4, sections=None, executable=EXECUTABLE, key=None,
                 prepare=None, user=None, launcher=()):
        """`key` stands for the one that the server makes; `prepare` is called with the directory,
        which is also its HOME. `user` (support/users.py) runs it instead of root; `launcher` is a
        command that becomes the server, such as `unshare --mount`."""
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.state = self.directory / "state"
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.log = self.directory / "server.log"
        self.executable = Path(executable)
        self.process = None
        self.address = None
        #: Of the server's environment, beside PATH and HOME.
        self.variables = {}
        self.settings = {
            "server": {"host": "127.0.0.1", "port": 0},
            "native": {
                "state_dir": str(self.state),
                "address_range": free_range(),
                # Nothing of a test goes beyond this machine: registry.py turns it on.
                "pull": "never",
            },
            # Counts before and after must be equal: the pool does not grow unless a test wants it.
            "native.pool": {"size": pool_size, "max": pool_size},
        }
        for section, values in (sections or {}).items():
            self.settings.setdefault(section, {}).update(values)
        self.given_key = key
        self.user = user
        self.launcher = list(launcher)
        if user:
            for path in (self.directory, self.state):
                os.chown(path, user.uid, user.gid)
        if prepare:
            prepare(self.directory)

    @property
    def config(self):
        return self.directory / "config.toml"

    def start(self, *, timeout=30):
        lines = []
        for section, values in self.settings.items():
            lines.append(f"[{section}]")
            for key, value in values.items():
                lines.append(f"{key} = {toml(value)}")
        self.config.write_text("\n".join(lines) + "\n")
        offset = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.launcher, self.executable, "serve", "--config", self.config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env={"PATH": os.environ["PATH"], "HOME": str(self.directory), **self.variables},
                **(self.user.credentials() if self.user else {}),
            )

        def listening():
            with self.log.open("rb") as log:
                log.seek(offset)
                found = re.search(rb"listening on http://[0-9.]+:(\d+)", log.read())
            if found:
                return f"127.0.0.1:{found[1].decode()}"
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.tail()}")
            return None

        self.address = eventually(listening, timeout, 0.005, "the server's readiness")
        # A restarted server keeps the address that clients know.
        self.settings["server"]["port"] = int(self.address.split(":")[1])
        return self

    def tail(self, size=6000):
        # The last teardown comes when the directory is gone.
        return self.log.read_bytes()[-size:].decode(errors="replace") if self.log.exists() else ""

    @property
    def key(self):
        if self.given_key:
            return self.given_key
        return (self.state / "api-key").read_text().strip()

    def api(self, key=True, prefix="/v1", timeout=60):
        headers = {"OPEN-SANDBOX-API-KEY": self.key} if key is True else {}
        if isinstance(key, str):
            headers["OPEN-SANDBOX-API-KEY"] = key
        return Http(self.address, "lifecycle", prefix, headers, timeout)

    def environment(self):
        """What a client, ours or the published one, needs to find this server."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "LANG": "C.UTF-8",
            "OPEN_SANDBOX_DOMAIN": self.address,
            "OPEN_SANDBOX_PROTOCOL": "http",
            "OPEN_SANDBOX_API_KEY": self.key,
        }

    def cli(self, *argv, check=True, timeout=60, input=None, env=None):
        return run(
            self.executable, *argv, check=check, timeout=timeout, input=input,
            env={**self.environment(), **(env or {})}, cwd=self.directory,
        )

    def create(self, **fields):
        reply = self.api().post("/sandboxes", {**HOST_IMAGE, "image": {"uri": self.image}, **fields})
        assert reply.status == 202, f"create answered {reply}\n{self.tail()}"
        return Sandbox(self, reply.json)

    def stop(self):
        """Ends the server as an administrator would; sandboxes live on."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def spawner(self):
        """The process id of this server's spawner."""
        state = str(self.state).encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            argv = command_of(pid)
            if b"spawner" in argv and any(state in a for a in argv):
                return int(pid)
        return None

    def destroy(self):
        """Deletes what is left, ends the server and its spawner."""
        try:
            if self.process and self.process.poll() is None:
                api = self.api()
                for _ in range(20):
                    items = api.get("/sandboxes", query={"pageSize": 200}).json["items"]
                    if not items:
                        break
                    for item in items:
                        api.delete(f"/sandboxes/{item['id']}")
        finally:
            if self.process and self.process.poll() is None:
                self.stop()
            stop_spawner(self.state)
        found = self.sanitizer_reports()
        assert not found, f"a sanitizer's report of {self.directory.name}:\n{found}"

    def sanitizer_reports(self):
        """What processes of a build with sanitizers found, agents in slots too; nothing of others."""
        logs = [log.read_text(errors="replace") for log in (self.log, self.state / "spawner/log") if log.exists()]
        begins = (re.search(r"==\d+==ERROR: |WARNING: ThreadSanitizer|: runtime error: ", text) for text in logs)
        return "\n".join(text[found.start():][:4000] for text, found in zip(logs, begins) if found)

    def count(self):
        """What exists now (support/census.py), without what other servers have."""
        return census.take(self.executable, self.state, census.tag_of(self.state))

    def census(self):
        return census.settled(self.count)

    def expect_census(self, before, timeout=30):
        census.expect_equal(before, self.count, timeout)


class Sandbox:
    """One sandbox, as its creator sees it."""

    def __init__(self, server, created):
        self.server = server
        self.created = created
        self.id = created["id"]
        self._agent = None

    def path(self, rest=""):
        return f"/sandboxes/{self.id}{rest}"

    def get(self):
        return self.server.api().get(self.path())

    def ended(self):
        """Its status once it has ended; None before."""
        status = self.get().json["status"]
        return status if status["state"] in ("Failed", "Terminated") else None

    def state(self):
        return self.get().json["status"]["state"]

    def endpoint(self, port, proxy=False):
        reply = self.server.api().get(
            self.path(f"/endpoints/{port}"), query={"use_server_proxy": str(proxy).lower()}
        )
        assert reply.status == 200, reply
        return reply.json

    @property
    def agent(self):
        if self._agent is None:
            self._agent = self.connect()
        return self._agent

    def connect(self, proxy=False, timeout=60):
        endpoint = self.endpoint(44772, proxy)
        return Agent(endpoint["endpoint"], endpoint.get("headers"), timeout)

    def run(self, command, **options):
        return self.agent.run(command, **options)

    def sh(self, command, **options):
        return self.agent.sh(command, **options)

    def delete(self):
        reply = self.server.api().delete(self.path())
        assert reply.status == 204, f"delete answered {reply}\n{self.server.tail()}"

    def address(self):
        """Its private address."""
        out = self.sh("cat /etc/hosts")
        found = re.findall(r"^(10\.\d+\.\d+\.\d+)\t", out, re.MULTILINE)
        assert found, f"no private address in {out}"
        return found[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.server.process and self.server.process.poll() is None:
            self.server.api().delete(self.path())


def wait_gone(pid, timeout=10):
    eventually(lambda: not os.path.exists(f"/proc/{pid}"), timeout, what=f"the end of {pid}")

