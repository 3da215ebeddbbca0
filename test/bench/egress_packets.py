"""The packet filter of a host: learning with many held, and what it costs to forward."""

import json
import statistics
import subprocess

from bench.egress_names import us
from bench.egress_world import PEER, ROOT, Process, load
from bench.report import ms
from support.shell import run

HELD, SANDBOXES = 100_000, 1000


def learning(table, world, limits):
    print(f"\na host's packet filter with {HELD:,} learned addresses")
    host = world.isolated()

    def measure():
        figures = load(host, "learn", HELD, 2000)
        assert figures["held"] == HELD, figures
        table.row("one address more", us(figures["learn_mean"]),
                  f"mean; median {us(figures['learn_median']).strip()}, 99 % {us(figures['learn_p99']).strip()}")
        measure.figures = figures
        return figures["learn_mean"] < 100e-6

    def change():
        figures = measure.figures
        table.row("policy change of a sandbox with 10,000", ms(figures["change_median"]), "median")
        table.row("policy change that takes 40 of them", ms(figures["change_loses_name_median"]), "median")
        table.row(f"policy change that takes all ({figures['lost']:,.0f})", ms(figures["change_loses_all"]))
        held = max(figures["change_median"], figures["change_loses_name_median"]) < 0.02
        if not held:
            measure()
        return held

    limits("adding a learned address under 100 us", measure)
    limits("policy change under 20 ms with 10,000 learned addresses", change)


class Guard:
    """The rules of many sandboxes in a namespace, put in force and taken away."""

    def __init__(self, stack, host, link, address):
        argv = [*host.inside, ROOT / "build" / "release" / "bench_egress", "guard", SANDBOXES, link, address]
        self.process = subprocess.Popen([*map(str, argv)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(self.process.communicate)

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the rules could not be turned {word}"
        return json.loads(line)["took"]


def gigabits(guest, seconds):
    text = run(*guest.inside, "iperf3", "-c", PEER, "-t", seconds, "-J", timeout=60).stdout
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e9


def forwarding(table, stack, world, rounds, seconds, limits):
    print(f"\nforwarded throughput, {rounds} rounds in turns")
    host, guest, address = world.host_and_guest()
    server = Process(stack, world.world, ["iperf3", "-s"], world.directory / "iperf3.log")
    server.listens(5201)
    guard = Guard(stack, host, "to5", address)

    def measure():
        taken = {"on": [], "off": []}
        made = []
        for _ in range(rounds):
            for word, all in taken.items():
                made.append(guard.tell(word))
                all.append(gigabits(guest, seconds))
        for word, text in (("off", "without rules"), ("on", f"with the rules of {SANDBOXES:,} sandboxes")):
            table.row(text, f"{statistics.median(taken[word]):9.2f} Gbit/s",
                      f"median of {rounds}; {min(taken[word]):.2f} to {max(taken[word]):.2f}")
        table.row("all their rules are made in", ms(max(made)))
        return statistics.median(taken["on"]) >= 0.9 * statistics.median(taken["off"])

    limits("within 10 % of none", measure)
