"""A network namespace of the test's own with an address that the host routes to, as a metadata
service would have, and a server listening there."""

import subprocess
import sys

from support.shell import eventually, run

_LISTENER = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    connection = listener.accept()[0]
    connection.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nreached")
    connection.close()
"""


class Elsewhere:
    """`address` answers HTTP on `port` from a namespace; the host has a route to it."""

    def __init__(self, address, port=80, name="osb-test-peer"):
        self.address, self.port, self.name = address, port, name
        self.process = None

    def __enter__(self):
        self.remove()
        inner, outer = "osbt-in", "osbt-out"
        run("ip", "netns", "add", self.name)
        try:
            run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", self.name)
            run("ip", "addr", "add", "198.18.255.1/30", "dev", outer)
            run("ip", "link", "set", outer, "up")
            inside = ("ip", "-n", self.name)
            run(*inside, "addr", "add", "198.18.255.2/30", "dev", inner)
            run(*inside, "addr", "add", f"{self.address}/32", "dev", "lo")
            run(*inside, "link", "set", "lo", "up")
            run(*inside, "link", "set", inner, "up")
            run(*inside, "route", "add", "default", "via", "198.18.255.1")
            run("ip", "route", "add", f"{self.address}/32", "via", "198.18.255.2")
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, sys.executable, "-c", _LISTENER,
                 self.address, str(self.port)]
            )
            eventually(lambda: reachable(self.address, self.port), 10, 0.05,
                       f"{self.address} as seen from the host")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.remove()

    def remove(self):
        run("ip", "route", "del", f"{self.address}/32", check=False)
        run("ip", "link", "del", "osbt-out", check=False)
        run("ip", "netns", "del", self.name, check=False)


def reachable(address, port, timeout=1.0):
    import socket

    try:
        socket.create_connection((address, port), timeout).close()
        return True
    except OSError:
        return False
