"""A host of the test's own, as far as networks go: a namespace that this process is in for a while,
and behind a link of it a peer, which is the world. Nothing of the machine's network is changed."""

import ctypes
import os
import subprocess
import sys

from support.shell import eventually, run

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

_LISTENER = """
import socket, sys
listener = socket.socket(socket.AF_INET6)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("::", int(sys.argv[1])))
listener.listen(16)
while True:
    connection, peer = listener.accept()
    connection.sendall(peer[0].encode())
    connection.close()
"""


def enter(path):
    """Moves the calling thread, and what it starts from here on, into a network namespace."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(fd, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")
    finally:
        os.close(fd)


class OwnNetwork:
    """`own` addresses are the host's, `peer` ones the world's; the world listens on `port`, and
    tells those who connect what address it sees. It knows no way to sandboxes."""

    name, peer_name = "osb-test-host", "osb-test-world"
    port = 7000
    own = "fd99::1"
    peer = "fd99::2"
    metadata = ("fd00:ec2::254", "fd20:ce::254")

    def __init__(self):
        self.process = None
        #: Commands that become a server, with the right /sys.
        self.launcher = ["ip", "netns", "exec", self.name]

    def __enter__(self):
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.remove()
        try:
            self.build()
            enter(f"/run/netns/{self.name}")
            eventually(lambda: self.asked(self.peer) == self.own, 15, 0.1, "the world")
        except BaseException:
            self.__exit__()
            raise
        return self

    def build(self):
        for name in (self.name, self.peer_name):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self.host("ip", "link", "add", "up0", "mtu", "1400", "type", "veth",
                  "peer", "name", "world", "mtu", "1400", "netns", self.peer_name)
        self.host("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        for name, link, four, six in ((self.name, "up0", "198.18.254.1/30", self.own),
                                      (self.peer_name, "world", "198.18.254.2/30", self.peer)):
            inside = ("ip", "-n", name)
            run(*inside, "addr", "add", four, "dev", link)
            run(*inside, "addr", "add", f"{six}/64", "dev", link, "nodad")
            run(*inside, "link", "set", link, "up")
        for address in self.metadata:
            run("ip", "-n", self.peer_name, "addr", "add", f"{address}/128", "dev", "lo", "nodad")
        self.host("ip", "route", "add", "default", "via", "198.18.254.2")
        self.host("ip", "-6", "route", "add", "default", "via", self.peer)
        self.process = subprocess.Popen(["ip", "netns", "exec", self.peer_name, sys.executable,
                                         "-c", _LISTENER, str(self.port)])

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        if _libc.setns(self._home, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(self._home)
        self.remove()

    def remove(self):
        for name in (self.name, self.peer_name):
            run("ip", "netns", "del", name, check=False)

    def host(self, *argv):
        return run("ip", "netns", "exec", self.name, *argv).stdout

    def asked(self, address):
        """What the world says to this host, which is what it sees of it."""
        import socket

        try:
            with socket.create_connection((address, self.port), 2) as connection:
                return connection.recv(100).decode()
        except OSError:
            return None
