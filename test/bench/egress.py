"""What egress control costs: names, verdicts, policy changes, interception, packets.

    test/run bench egress             the full form: medians of several rounds, limits checked
    test/run bench egress --short     one round of each, nothing checked but that all of it works
    test/run bench egress --only names,rules,changes,https,learning,forwarding

All of it in network namespaces of its own. Asserted in the full form: 10,000 rules start in under
1 s and give a verdict in under 5 us; a policy changes in under 20 ms with 10,000 learned addresses;
HTTPS through the sidecar beside mitmproxy at least 15 times its requests per second and 3 times its
throughput down (each on one processor, its clients and servers on the others), at most 64 KB for an
idle connection, at least 400 new connections per second; an address is learned in under 100 us with
100,000 held; forwarded throughput with the rules of 1,000 sandboxes within 10 % of that without.
"""

import argparse
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench import egress_https, egress_names, egress_packets
from bench.egress_world import Sidecar, World
from bench.report import Comparison, Table

PARTS = ("names", "rules", "changes", "https", "learning", "forwarding")


def names(table, world, short):
    with ExitStack() as stack:
        Sidecar(stack, world, "names", RULES=egress_names.names_policy())
        comparison = Comparison(["unbound", "opensandbox before unbound"])
        rounds, seconds, count = (1, 1, 1000) if short else (5, 2, 10_000)
        egress_names.resolved(table, comparison, world, rounds, seconds, count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS)
    chosen = parser.parse_args()
    short = chosen.short
    table = Table()

    def limits(what, measure):
        if short:
            measure()
        else:
            table.attempt(what, measure)

    directory = Path(tempfile.mkdtemp(prefix="opensandbox-bench-", dir="/var/tmp"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        world = World(stack, directory)
        parts = {
            "names": lambda: names(table, world, short),
            "rules": lambda: egress_names.rules(table, world, 1 if short else 7, limits),
            "changes": lambda: egress_names.changes(table, world, 3 if short else 20, limits),
            "https": lambda: egress_https.intercepted(table, world, *((1, 1, 100) if short else (3, 3, 900)), limits),
            "learning": lambda: egress_packets.learning(table, world, limits),
            "forwarding": lambda: egress_packets.forwarding(table, stack, world, *((1, 1) if short else (9, 1)),
                                                            limits),
        }
        for part in PARTS:
            if part in chosen.only:
                parts[part]()
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
