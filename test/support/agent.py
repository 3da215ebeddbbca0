"""The agent by itself, as an ordinary process on loopback."""

import os
import subprocess
from pathlib import Path

from support.addresses import free_port
from support.client import Agent
from support.server import EXECUTABLE, children_of
from support.shell import eventually


class StandaloneAgent:
    """`opensandbox exec` with a temporary directory of its own; ends with the block."""

    def __init__(self, directory, token, *, init=None, wrapper=(), environment=None, executable=EXECUTABLE):
        self.port = free_port()
        self.token = token
        temporary = Path(directory) / "tmp"
        temporary.mkdir(exist_ok=True)
        self.log = Path(directory) / "agent.log"
        argv = [*wrapper, executable, "exec", "--port", str(self.port), "--access-token", token]
        if init:
            argv += ["--init", "--", *init]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": os.environ["PATH"], "HOME": "/root", "TMPDIR": str(temporary), **(environment or {})},
            )
        self.api = self.connect()

    def connect(self, timeout=60):
        return Agent(f"127.0.0.1:{self.port}", {"X-EXECD-ACCESS-TOKEN": self.token}, timeout)

    def __enter__(self):
        def answers():
            assert self.process.poll() is None, f"the agent ended:\n{self.log.read_text()}"
            try:
                return self.api.get("/ping").status == 200
            except OSError:
                self.api.close()
                return False

        try:
            eventually(answers, 20, 0.01, "the agent")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.api.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(20)
        assert not self.children(), "the agent left processes behind"

    def children(self):
        return children_of(self.process.pid)

    def private_kib(self):
        """Resident memory that is the agent's alone."""
        for line in Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Private_Dirty:"):
                return int(line.split()[1])
        raise AssertionError("no figures of the agent")
