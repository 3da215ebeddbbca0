"""Intercepted HTTPS beside a direct connection and beside mitmproxy: the same clients, the same
server."""

import json
import re
import statistics
import subprocess
from contextlib import ExitStack, nullcontext

from bench.egress_names import names_policy
from bench.egress_world import (
    BULK, BULK_HOST, BULK_SERVER, HOST, PEER, PROGRAM, SERVER, Sidecar, load, mitmproxy,
)
from bench.processors import apart
from bench.report import Comparison
from support.shell import run

UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}
MITM, OURS, DIRECT = "mitmproxy", "opensandbox", "direct"


class Subject:
    """A way to the server: where its clients stand, what they trust, and what is between."""

    def __init__(self, name, namespace, authority, world, proxy=None):
        self.name, self.namespace, self.authority = name, namespace, authority
        self.world, self.proxy = world, proxy
        #: New connections that came to nothing.
        self.failed = 0

    def resolve(self):
        """Names of which the sidecar knows nothing lead nowhere."""
        found = load(self.namespace, "dns-learn", PEER, BULK_SERVER, SERVER)
        assert found["addresses"] == 2, found

    def h2load(self, path, seconds, clients, streams, *options):
        """Requests and bytes of content per second."""
        text = run(*self.namespace.inside, "h2load", "-t1", f"-c{clients}", f"-m{streams}", f"-D{seconds}",
                   "--warm-up-time=1", f"--connect-to={PEER}:443", *options, f"https://{HOST}/{path}",
                   timeout=120).stdout
        rate = float(re.search(r"([\d.]+) req/s", text)[1])
        speed, unit = re.search(r"([\d.]+)(KB|MB|GB)/s", text).groups()
        failed = re.search(r"(\d+) failed, (\d+) errored, (\d+) timeout", text)
        assert rate > 0 or path == "big", text
        assert all(int(count) == 0 for count in failed.groups()), text
        return rate, float(speed) * UNITS[unit]

    def by_itself(self):
        """The proxy has a processor of its own."""
        return apart(self.proxy.process.pid, self.world.servers) if self.proxy else nullcontext()

    def requests(self, seconds):
        return self.h2load("small", seconds, 16, 1, "--h1")[0]

    def down(self, seconds):
        with self.by_itself():
            figures = load(self.namespace, "tls-download", BULK_HOST, BULK, self.authority, seconds, 2)
        return figures["rate"] / 1e6

    def requests_http2(self, seconds):
        return self.h2load("small", seconds, 4, 8)[0]

    def down_http2(self, seconds):
        with self.by_itself():
            return self.h2load("big", seconds, 2, 1)[1] / 1e6

    def connections(self, seconds):
        figures = load(self.namespace, "tls-connect", HOST, PEER, self.authority, seconds, 4)
        done = figures["rate"] * seconds
        assert figures["failed"] <= 0.01 * done, figures
        self.failed += figures["failed"]
        return figures["rate"]


def idle_kb(subject, process, count):
    """What the proxy keeps for each connection that waits for its next request."""
    holder = [*subject.namespace.inside, PROGRAM, "tls-hold", HOST, PEER,
              subject.authority, str(count)]

    def hold(number):
        holder[-1] = str(number)
        held = subprocess.Popen([*map(str, holder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = held.stdout.readline()
        assert line and json.loads(line)["held"] == number, "connections were not held"
        return held

    hold(1).communicate()
    before = process.resident_kb()
    held = hold(count)
    after = process.resident_kb()
    held.communicate()
    return (after - before) / count


def intercepted(table, world, rounds, seconds, idle, limits):
    print(f"\nHTTPS to the same server, {rounds} rounds in turns", flush=True)
    with ExitStack() as stack:
        # Memory is measured before anything else has run through them.
        sidecar = Sidecar(stack, world, "intercept", RULES=names_policy(), MITMPROXY_TRANSPARENT="1")
        process, authority = mitmproxy(stack, world)
        ours = Subject(OURS, world.sandbox, sidecar.authority, world, sidecar)
        theirs = Subject(MITM, world.mitm, authority, world, process)
        direct = Subject(DIRECT, world.direct, world.authority, world)
        subjects = (theirs, ours, direct)
        memory = {}
        ours.resolve()
        memory[OURS] = idle_kb(ours, sidecar, idle)
        memory[MITM] = idle_kb(theirs, process, idle // 4)
        measures = {
            "requests per second": (Subject.requests, "/s"),
            "down": (Subject.down, "MB/s"),
            "new connections per second": (Subject.connections, "/s"),
            "HTTP/2 requests per second": (Subject.requests_http2, "/s"),
            "HTTP/2 down": (Subject.down_http2, "MB/s"),
        }
        values = {}

        def measure(title, rounds=rounds):
            action, unit = measures[title]
            taken = {subject.name: [] for subject in subjects}
            for _ in range(rounds):
                ours.resolve()
                for subject in subjects:
                    taken[subject.name].append(action(subject, seconds))
            for name, all in taken.items():
                values[title, name] = statistics.median(all)
                table.row(f"{title}: {name}", f"{values[title, name]:,.0f} {unit}",
                          f"median of {len(all)}; best {max(all):,.0f}")
            return values[title, OURS], values[title, MITM]

        limits("at least 15 times mitmproxy's requests per second",
               lambda: (lambda mine, other: mine >= 15 * other)(*measure("requests per second")))
        limits("at least 3 times mitmproxy's throughput down",
               lambda: (lambda mine, other: mine >= 3 * other)(*measure("down")))
        limits("at least 400 new connections per second",
               lambda: measure("new connections per second")[0] >= 400)
        # Nothing is asserted of these.
        measure("HTTP/2 requests per second", 1)
        measure("HTTP/2 down", 1)
        print()
        comparison = Comparison([MITM, OURS, DIRECT])
        for title, (_, unit) in measures.items():
            for subject in subjects:
                comparison.more(subject.name, title, values[title, subject.name], unit)
        comparison.show()
        for subject in subjects:
            if subject.failed:
                table.row(f"new connections that failed: {subject.name}", f"{subject.failed:,.0f}")
        for name, kb in memory.items():
            table.row(f"an idle connection: {name}", f"{kb:9.1f} KB",
                      f"{idle if name == OURS else idle // 4} connections, both sides")
        limits("at most 64 KB an idle connection", lambda: memory[OURS] <= 64)
