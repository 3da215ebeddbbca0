"""Sandboxes of a server, each runtime, whose egress is controlled: the sites of egress_sites.py that a
user would have. Their server runs on the host of the test's world."""

import json
import os
import signal
import threading
from pathlib import Path

from support.client import Http
from support.docker_server import DockerServer
from support.dockerd import DEBIAN, Dockerd
from support.egress_internet import RESOLVER
from support.egress_sites import PROBE, Site, lifetimes_in
from support.rootfs import debian_tree
from support.server import Server, children_of
from support.shell import eventually, run

_NOTHING = {"defaultAction": "deny", "egress": []}


class Served(Site):
    """`server` is started; one sandbox is all it has."""

    program = "/tmp/egress_probe.py"

    def __init__(self, internet):
        super().__init__(internet)
        self.server = None
        self.agents = threading.local()

    def __enter__(self):
        try:
            self.server = self.make_server().start()
            self.sandbox = self.server.create(networkPolicy=_NOTHING)
            reply = self.sandbox.agent.write(self.program, PROBE.read_bytes())
            assert reply.status == 200, reply
            endpoint = self.sandbox.endpoint(18080)
            self.api = Http(endpoint["endpoint"], "egress", "", endpoint.get("headers"), 20)
            assert self.api.get("/policy").json["policy"] == _NOTHING
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.server:
            self.server.destroy()

    def sections(self):
        """Of the server's configuration."""
        return {"egress.environment": self.variables} if self.variables else {}

    def run(self, *argv):
        if not hasattr(self.agents, "agent"):
            self.agents.agent = self.sandbox.connect(timeout=180)
        done = self.agents.agent.run([str(a) for a in argv])
        assert done.code == 0, done
        return done.stdout

    def identity(self):
        return self.sandbox.id

    def overseer(self):
        """The process that starts what enforces again."""
        raise NotImplementedError

    def enforcers(self):
        """The processes that enforce."""
        raise NotImplementedError

    def kill(self):
        # It would be back in no time.
        os.kill(self.overseer(), signal.SIGSTOP)
        killed = self.enforcers()
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        self.killed = killed
        self.api.close()

    def revive(self):
        os.kill(self.overseer(), signal.SIGCONT)
        eventually(self._answers, 30, 0.05, "what enforces, again")
        assert not set(self.killed) & set(self.enforcers())

    def _answers(self):
        try:
            return self.api.get("/policy", check=False).status == 200
        except OSError:
            self.api.close()
            return False


class Native(Served):
    """The native runtime: one enforcer for all sandboxes, outside of them."""

    name = "native"

    def make_server(self):
        return Server(self.internet.directory / self.name, sections=self.sections(),
                      launcher=self.internet.launcher())

    def overseer(self):
        return self.server.spawner()

    def enforcers(self):
        return [pid for pid in children_of(self.overseer())
                if Path(f"/proc/{pid}/comm").read_text().strip() == "osb-enforcer"
                and Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"]

    def log_text(self):
        return (self.server.state / "spawner/log").read_text(errors="replace")

    def lifetimes(self, address):
        return lifetimes_in(run("nft", "-j", "list", "ruleset").stdout, address)


class Docker(Served):
    """The Docker runtime: a container beside the sandbox's in the same namespace. Docker gives
    sandboxes no IPv6 unless it is told to."""

    name = "docker"
    has_ipv6 = False

    def __init__(self, internet):
        super().__init__(internet)
        self.docker = Dockerd(reachable=True, options=["--dns", RESOLVER])

    def __enter__(self):
        self.docker.__enter__()
        try:
            self.docker.import_tree(debian_tree(self.internet.directory / "debian"), DEBIAN)
        except BaseException:
            self.docker.__exit__()
            raise
        return super().__enter__()

    def __exit__(self, *_):
        try:
            super().__exit__()
        finally:
            self.docker.__exit__()

    def make_server(self):
        return DockerServer(self.internet.directory / self.name, self.docker, sections=self.sections(),
                            launcher=self.internet.launcher())

    @property
    def _guard(self):
        return f"sandbox-egress-{self.sandbox.id}"

    def overseer(self):
        return json.loads(self.docker.docker("inspect", self._guard).stdout)[0]["State"]["Pid"]

    def enforcers(self):
        return children_of(self.overseer())

    def log_text(self):
        logged = self.docker.docker("logs", self._guard)
        return logged.stdout + logged.stderr

    def lifetimes(self, address):
        listing = run("nsenter", f"--net=/proc/{self.overseer()}/ns/net", "nft", "-j", "list", "ruleset")
        return lifetimes_in(listing.stdout, address)
