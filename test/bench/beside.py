"""What users wait for, beside another executable of ours, so that a change shows what it costs.

    test/run bench beside EXECUTABLE            300 rounds in turns, 16 bursts of 100
    test/run bench beside EXECUTABLE --short    30 rounds, 4 bursts of 20
    test/run bench beside EXECUTABLE --only agents,egress,starts,bursts

Both run in turns on the same machine. Asserted: no measure's median is more than 3 % above the other's;
a measure that misses is taken again, twice at most.
"""

import argparse
import functools
import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.agent import MB, Peer, in_memory, lines_command, upload
from bench.egress_https import Subject
from bench.egress_names import RULES, allow, many_rules, names_policy
from bench.egress_world import NAMES, PEER, Sidecar, World, load
from bench.native import Machine, Served, full, sequential, warm_image, warm_subject
from bench.report import Table, ms
from support.agent import StandaloneAgent
from support.server import EXECUTABLE

TOLERATED = 1.03
PARTS = ("agents", "egress", "starts", "bursts")


def compare(table, what, measure):
    """`measure` gives the seconds of ours and of the other."""

    def once():
        ours, other = map(statistics.median, measure())
        table.row(what, ms(ours), f"other {ms(other).strip()}, ratio {ours / other:.3f}")
        return ours <= TOLERATED * other

    table.attempt(f"{what}: at most 3 % above", once)


def in_turns(actions, rounds):
    """Seconds of each action; who goes first changes from round to round."""
    seconds = [[] for _ in actions]
    for round in range(rounds):
        for index in sorted(range(len(actions)), reverse=round % 2 == 1):
            seconds[index].append(actions[index]())
    return seconds


def starts(table, machine, executables, rounds):
    slots = 20
    subjects = [Served(name, machine.native(name, slots, executable=executable))
                for name, executable in executables.items()]
    compare(table, "create to the first command", lambda: sequential(subjects, rounds).values())
    archive = warm_image(machine)
    subjects = [warm_subject(machine, name, archive, f"warm-{name}", executable=executable)
                for name, executable in executables.items()]
    compare(table, "create to the first Python result", lambda: sequential(subjects, rounds).values())


def bursts(table, machine, executables, count, slots, rounds):
    servers = [machine.native(f"burst-{slots}-{name}", slots, executable=executable)
               for name, executable in executables.items()]

    def burst(server, subject):
        full(server, slots)
        return subject.burst(count)

    actions = [functools.partial(burst, server, Served("", server)) for server in servers]
    in_turns(actions, 1)  # the first one of a server makes what stays
    compare(table, f"burst of {count} from {slots} slots", lambda: in_turns(actions, rounds))
    for server in servers:
        server.destroy()


def agents(table, stack, directory, executables, rounds):
    programs = Path(tempfile.mkdtemp(prefix="opensandbox-bench-", dir="/dev/shm"))
    stack.callback(shutil.rmtree, programs, ignore_errors=True)
    peers = []
    for name, executable in executables.items():
        for folder in (directory / name, programs / name):
            folder.mkdir(parents=True)
        agent = stack.enter_context(StandaloneAgent(
            directory / name, "bench-token-bench-token", executable=in_memory(executable, programs / name)))
        peers.append(Peer(name, agent.port, "X-EXECD-ACCESS-TOKEN: bench-token-bench-token\r\n", agent.process.pid))
    lines, target, data = lines_command(directory), directory / "big", os.urandom(MB) * 100

    def exchange(peer, *request):
        return peer.exchange(*request)[0]

    in_turns([peer.true for peer in peers], 20)
    compare(table, "foreground `true`", lambda: in_turns([peer.true for peer in peers], 10 * rounds))
    few = max(4, rounds // 10)
    for what, actions in (
        ("50 MB of lines", [functools.partial(exchange, peer, "POST", "/command", lines) for peer in peers]),
        ("100 MB up", [lambda action=upload(peer, target, data): action()[0] for peer in peers]),
        ("100 MB down", [functools.partial(exchange, peer, "GET", f"/files/download?path={target}")
                         for peer in peers]),
    ):
        compare(table, what, lambda actions=actions: in_turns(actions, few))
    for peer in peers:
        table.row(f"resident memory of {peer.name}", f"{peer.resident():9.1f} MB")
        peer.kept.close()


def egress(table, stack, directory, executables, rounds):
    directory.mkdir()
    world = World(stack, directory)
    places = [(name, executable, namespace)
              for (name, executable), namespace in zip(executables.items(), (world.sandbox, world.mitm))]
    rules = directory / "rules.json"
    rules.write_text(many_rules())
    numbers = itertools.count()

    def start(name, executable, namespace):
        with ExitStack() as brief:
            return Sidecar(brief, world, f"{name}-{next(numbers)}", executable, namespace,
                           POLICY_FILE=str(rules), MAX_RULES=str(RULES)).started

    starts = [functools.partial(start, *place) for place in places]
    compare(table, f"egress: start with {RULES:,} rules", lambda: in_turns(starts, rounds))
    sidecars = [Sidecar(stack, world, name, executable, namespace, RULES=names_policy(), MITMPROXY_TRANSPARENT="1")
                for name, executable, namespace in places]
    subjects = [Subject(sidecar.log.stem, sidecar.namespace, sidecar.authority, world, sidecar)
                for sidecar in sidecars]

    def answer(subject):
        return load(subject.namespace, "dns-latency", PEER, 2000, NAMES)["answer_median"]

    def answers(subject):
        return 1 / load(subject.namespace, "dns-rate", PEER, 1, 64, NAMES)["rate"]

    def change(call):
        taken = 0
        for method, body in (("PATCH", allow("new.example.com", "90.0.0.0/24")),
                             ("DELETE", ["new.example.com", "90.0.0.0/24"])):
            time.sleep(0.05)  # what the change before cut goes on behind it
            status, seconds = call(method, "/policy", json.dumps(body).encode())
            assert status == 200, status
            taken += seconds
        return taken

    def each(measure):
        def taken(subject):
            subject.resolve()
            rate = measure(subject, 2)
            assert rate > 0, f"{subject.name}: nothing came"
            return 1 / rate
        return taken

    for what, action, of in (
        ("a name's answer", answer, subjects),
        ("names, 64 at once: each", answers, subjects),
        ("a policy change and its end", change, [sidecar.api() for sidecar in sidecars]),
        ("HTTPS: a request", each(Subject.requests), subjects),
        ("HTTPS: 1 MB down", each(Subject.down), subjects),
        ("HTTPS: a new connection", each(Subject.connections), subjects),
    ):
        actions = [functools.partial(action, each_of) for each_of in of]
        in_turns(actions, 1)
        compare(table, f"egress: {what}", lambda actions=actions: in_turns(actions, rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("executable", type=Path)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS)
    asked = parser.parse_args()
    executables = {"ours": EXECUTABLE, "other": asked.executable.resolve(strict=True)}
    rounds, count, times = (30, 20, 4) if asked.short else (300, 100, 16)
    table = Table()
    directory = Path(tempfile.mkdtemp(prefix="opensandbox-bench-", dir="/var/tmp"))

    def burst_pairs(stack):
        machine = Machine(stack, directory / "bursts")
        for slots in (count, count // 5):
            bursts(table, machine, executables, count, slots, times)

    parts = {
        "agents": lambda stack: agents(table, stack, directory / "agents", executables, rounds),
        "egress": lambda stack: egress(table, stack, directory / "egress", executables, max(3, rounds // 20)),
        "starts": lambda stack: starts(table, Machine(stack, directory), executables, rounds),
        "bursts": burst_pairs,
    }
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        for name in asked.only:
            with ExitStack() as part:
                parts[name](part)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
