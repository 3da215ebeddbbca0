"""A redis-server of the tests' own."""

import socket
import subprocess

from support.shell import eventually

PASSWORD = "pass word"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Redis:
    """A real redis-server on loopback, with a password."""

    def __init__(self, directory):
        self.port = free_port()
        self.directory = directory
        self.process = None

    @property
    def url(self):
        return f"redis://:pass%20word@127.0.0.1:{self.port}/0"

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--requirepass", PASSWORD],
            cwd=self.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        eventually(lambda: self.ask("PING") == b"+PONG\r\n", 20, what="Redis")

    def ask(self, *words):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as link:
                for command in (("AUTH", PASSWORD), words):
                    parts = [f"*{len(command)}\r\n".encode()]
                    for word in command:
                        parts.append(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()))
                    link.sendall(b"".join(parts))
                    reply = link.recv(65536)
                return reply
        except OSError:
            return None

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(20)
            self.process = None
