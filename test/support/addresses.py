"""Addresses and ports that nobody on this host uses."""

import random
import socket

from support.shell import run


def free_slash_20():
    """The first address of a /20 that no route of this host covers, inside a /16 of its own."""
    taken = run("ip", "-4", "route").stdout
    while True:
        prefix = f"10.{random.randint(180, 250)}."
        if f"\n{prefix}" not in "\n" + taken and f" {prefix}" not in taken:
            return f"{prefix}0.0"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]
