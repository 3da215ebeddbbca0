"""Names and policies: the DNS proxy beside its resolver, many rules, many learned addresses."""

import json
import statistics
import time
from contextlib import ExitStack

from bench.egress_world import BULK_HOST, HOST, LEARNED_NAMES, MANY, NAMES, OF_NAME, PEER, ZONE, Sidecar, load
from bench.report import ms

RULES = 10_000


def us(seconds):
    return f"{seconds * 1e6:9.2f} us"


def allow(*targets):
    return [{"action": "allow", "target": target} for target in targets]


def policy(rules):
    return json.dumps({"defaultAction": "deny", "egress": rules})


def names_policy():
    """Each of the world's names by itself, as no limit against tunnels holds for those."""
    numbers = [*range(NAMES), *range(MANY, MANY + LEARNED_NAMES)]
    return policy(allow(HOST, BULK_HOST, *(f"n{number}.{ZONE}" for number in numbers)))


def many_rules():
    """Names, wildcards, ports and networks, allowed and denied."""
    rules = []
    for i in range(RULES):
        target = (f"api{i}.service{i % 97}.example.com", f"*.zone{i}.example.net",
                  f"host{i}.example.org:443", f"db{i}.example.com",
                  f"{20 + i % 50}.{i // 250}.{i % 250}.0/24", f"*.deep.zone{i}.example.io",
                  f"cdn{i}.example.net", f"n{i}.example.org", f"svc{i}.internal.example",
                  f"{90 + i % 50}.{i // 250}.{i % 250}.7")[i % 10]
        rules.append({"action": "deny" if i % 11 == 0 else "allow", "target": target})
    return policy(rules)


def resolved(table, comparison, world, rounds, seconds, count):
    print(f"\ncached answers: {NAMES} names from one client, {rounds} rounds in turns")
    subjects = {"unbound": world.direct, "opensandbox before unbound": world.sandbox}
    for namespace in subjects.values():
        load(namespace, "dns-latency", PEER, NAMES, NAMES)
    rates, medians, tails = ({name: [] for name in subjects} for _ in range(3))
    lost = 0
    for _ in range(rounds):
        for name, namespace in subjects.items():
            rate = load(namespace, "dns-rate", PEER, seconds, 64, NAMES)
            slow = load(namespace, "dns-latency", PEER, count, NAMES)
            rates[name].append(rate["rate"])
            medians[name].append(slow["answer_median"])
            tails[name].append(slow["answer_p99"])
            lost += rate["lost"] + rate["bad"] + slow["bad"]
    for name in subjects:
        comparison.more(name, "answers per second", statistics.median(rates[name]), "/s")
        comparison.less(name, "one after the other, median", statistics.median(medians[name]) * 1e6, "us")
        comparison.less(name, "one after the other, 99 %", statistics.median(tails[name]) * 1e6, "us")
    comparison.show()
    first, ours = subjects
    table.row("added latency, median",
              us(statistics.median(medians[ours]) - statistics.median(medians[first])))
    table.row("added latency, 99 %", us(statistics.median(tails[ours]) - statistics.median(tails[first])))
    table.check("every query was answered", lost == 0)


def rules(table, world, starts, limits):
    print(f"\n{RULES:,} rules")
    file = world.directory / "many.json"
    file.write_text(many_rules())

    def started():
        times = []
        for number in range(starts):
            with ExitStack() as stack:
                sidecar = Sidecar(stack, world, f"rules-{started.calls}-{number}", POLICY_FILE=str(file),
                                  MAX_RULES=str(RULES))
                times.append(sidecar.started)
        started.calls += 1
        table.times("start to the first answer of /healthz", times)
        return statistics.median(times) < 1

    started.calls = 0

    def judged():
        figures = load(world.direct, "judge", file)
        assert figures["rules"] == RULES, figures
        worst = 0
        for kind, text in (("name", "a name with a rule"), ("name_below", "a name below a wildcard"),
                           ("name_unknown", "a name without a rule"),
                           ("request", "a name and port, as intercepted requests ask"),
                           ("address", "an address of a rule"),
                           ("address_unknown", "an address without one")):
            worst = max(worst, figures[f"{kind}_mean"])
            table.row(f"verdict: {text}", us(figures[f"{kind}_mean"]),
                      f"mean; 99 % {us(figures[f'{kind}_p99']).strip()}")
        return worst < 5e-6

    limits("start under 1 s", started)
    limits("verdict under 5 us", judged)


def changes(table, world, rounds, limits):
    """Policy changes through the API of a sidecar that has learned 10,000 addresses."""
    print(f"\npolicy change with {LEARNED_NAMES * OF_NAME:,} learned addresses, through the API")
    with ExitStack() as stack:
        sidecar = Sidecar(stack, world, "changes", RULES=names_policy())
        call = sidecar.api()
        learned = load(world.sandbox, "dns-learn", PEER, MANY, MANY + LEARNED_NAMES - 1)
        assert learned["addresses"] == LEARNED_NAMES * OF_NAME, learned

        def timed(method, body):
            # What the change before cut goes on behind it.
            time.sleep(0.1)
            status, seconds = call(method, "/policy", json.dumps(body).encode())
            assert status == 200, status
            return seconds

        def measure():
            added, removed, lost = [], [], []
            for i in range(rounds):
                added.append(timed("PATCH", allow(f"new{i}.example.com", f"90.0.{i}.0/24")))
            for i in range(rounds):
                removed.append(timed("DELETE", [f"new{i}.example.com", f"90.0.{i}.0/24"]))
            for _ in range(rounds):
                name = f"n{MANY + measure.next}.{ZONE}"
                measure.next += 1
                lost.append(timed("DELETE", [name]))
            table.times("a name and a network are allowed", added)
            table.times("and no longer", removed)
            table.times(f"a name with {OF_NAME} addresses is no longer allowed", lost)
            return max(map(statistics.median, (added, removed, lost))) < 0.02

        measure.next = 0
        limits("policy change under 20 ms", measure)
        left = LEARNED_NAMES - measure.next
        status, seconds = call("DELETE", "/policy", json.dumps(
            [f"n{MANY + i}.{ZONE}" for i in range(measure.next, LEARNED_NAMES)]).encode())
        assert status == 200, status
        table.row(f"all {left * OF_NAME:,} learned addresses lost at once", ms(seconds))
