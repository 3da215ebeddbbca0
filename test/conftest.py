"""Fixtures that all suites share."""

import os
import shutil
import tempfile
import time
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from support import rootfs
from support.dockerd import Dockerd
from support.published_server import PublishedServer
from support.server import EXECUTABLE, Server
from support.shell import run

pytest_plugins = ["support.files_in_turn"]


def pytest_sessionstart(session):
    if not EXECUTABLE.exists():
        pytest.exit(f"{EXECUTABLE} is missing: run `cmake --workflow --preset release`", 2)
    if os.geteuid() != 0:
        pytest.exit("these tests need root", 2)
    # The first `ip netns add` of a machine mounts /run/netns for good: before anything is counted.
    run("ip", "netns", "add", "osb-test-first")
    run("ip", "netns", "delete", "osb-test-first")


@pytest.fixture(scope="session", autouse=True)
def reserved_ports():
    """A sandbox in the host's network needs these numbers, which a test's connection may happen to get."""
    setting = Path("/proc/sys/net/ipv4/ip_local_reserved_ports")
    before = setting.read_text()
    setting.write_text(",".join(filter(None, (before.strip(), "18080,44772"))))
    yield
    setting.write_text(before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that failed shows what the engine and the servers saw of it: its sandboxes are gone."""
    report = (yield).get_result()
    if not report.failed:
        return
    used = list(item.funcargs.values())
    servers = {id(value): value for value in used if isinstance(value, (Server, PublishedServer))}
    used += [getattr(server, "docker", None) for server in servers.values()]
    engines = {id(value): value for value in used if isinstance(value, Dockerd)}
    for engine in engines.values():
        report.sections.append(("events of the engine", engine.events(call.start, time.time())))
    for server in servers.values():
        report.sections.append((f"log of {server.directory.name}", server.tail()))


@pytest.fixture(scope="session")
def scratch():
    """A directory on a real file system: overlays do not stack on every kind."""
    directory = Path(tempfile.mkdtemp(prefix="opensandbox-test-", dir="/var/tmp"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def docker(scratch):
    """A private engine with the images of the tests, in the tests' own network namespace."""
    with Dockerd(reachable=True) as docker:
        docker.import_images(scratch)
        yield docker


@pytest.fixture(scope="module")
def make_server(scratch, request):
    """Makes servers that are gone, with all they made, when the module ends."""
    servers = []

    def make(name="server", **options):
        directory = scratch / f"{request.module.__name__}-{name}-{len(servers)}"
        server = Server(directory, **options)
        servers.append((server, server.count()))
        return server.start()

    yield make
    problems = []
    for server, before in reversed(servers):
        try:
            server.destroy()
            # The state directory itself may stay: its files are the server's memory.
            server.expect_census({**before, "files": server.count()["files"]})
        except (AssertionError, TimeoutExpired) as error:
            problems.append(f"{server.directory.name}: {error}\n{server.tail()}")
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="module")
def server(make_server):
    """One server for a module's tests."""
    return make_server()


@pytest.fixture
def sandbox(server):
    """A fresh sandbox of the built-in image."""
    with server.create() as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def busybox(scratch):
    """A root directory of a static busybox."""
    return rootfs.busybox_tree(scratch / "busybox")


@pytest.fixture
def forwarding(server):
    """What an administrator adds on a host where Docker forbids forwarding (README). It permits
    more, so it cannot make an attempt below fail that would succeed without it."""
    network = server.settings["native"]["address_range"]
    rules = []
    if "-P FORWARD DROP" in run("iptables", "-S", "FORWARD", check=False).stdout:
        rules = [["-s", network, "-j", "ACCEPT"],
                 ["-d", network, "-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT"]]
    for rule in rules:
        run("iptables", "-I", "FORWARD", *rule)
    yield
    for rule in rules:
        run("iptables", "-D", "FORWARD", *rule)
