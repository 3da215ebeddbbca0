"""Egress control while things change, with real packets: policies under load with connections open,
and the end of the process that enforces them."""

import time

import pytest

from support.egress_fixtures import REFUSED, internet, site_of, sites  # noqa: F401: fixtures
from support.egress_internet import (
    DENIED, DIRECT, DIRECT6, GOOD, GOOD6, METADATA, OTHER_RESOLVER, PRIVATE,
)
from support.egress_sites import rule
from support.shell import eventually

site = site_of("sidecar", "netraw", "native", "docker")
ECHO = 7
STEADY, REVOKED, SHARED = "203.0.113.19", "203.0.113.20", "203.0.113.21"


def resolve(site, *names):
    for outcome in map(lambda name: site.dns(name), names):
        assert outcome["addresses"], outcome


def test_what_is_no_longer_allowed_is_cut_and_the_rest_goes_on(site, internet):  # noqa: F811
    site.allow("steady.example", "revoked.example")
    resolve(site, "steady.example", "revoked.example")
    with site.background("hold", host=STEADY, port=ECHO) as steady, \
            site.background("hold", host=REVOKED, port=ECHO) as revoked:
        site.allow("steady.example")
        eventually(lambda: revoked.outcome is not None, 20, 0.05, "the end of what was revoked")
        cut = revoked.finish()["connections"]
        assert all(outcome in ("ECONNRESET", "EPIPE", "closed") for outcome in cut), cut
        # What still comes back for them is answered with resets.
        before = internet.arrived_but_resets(REVOKED)
        assert site.tcp(REVOKED, ECHO)["outcome"] == "ECONNREFUSED"
        assert site.tcp("revoked.example")["outcome"] == "no name"
        assert internet.arrived_but_resets(REVOKED) == before
        outcome = steady.finish()
    assert outcome["connections"] == ["alive"] * 4 and outcome["exchanges"] > 20, outcome


def test_what_a_network_opened_is_cut_with_its_rule(site, internet):  # noqa: F811
    site.allow("steady.example", f"{REVOKED}/32")
    resolve(site, "steady.example")
    with site.background("hold", host=STEADY, port=ECHO) as steady, \
            site.background("hold", host=REVOKED, port=ECHO) as revoked:
        reply = site.api.request("DELETE", "/policy", body=[f"{REVOKED}/32"])
        assert reply.status == 200, reply
        eventually(lambda: revoked.outcome is not None, 20, 0.05, "the end of what was revoked")
        assert "alive" not in revoked.finish()["connections"]
        assert site.tcp(REVOKED, ECHO)["outcome"] == "ECONNREFUSED"
        assert steady.finish()["connections"] == ["alive"] * 4


def test_a_rule_that_denies_cuts_what_an_earlier_one_opened(site):
    site.allow("203.0.113.0/24")
    with site.background("hold", host=STEADY, port=ECHO) as steady, \
            site.background("hold", host=REVOKED, port=ECHO) as revoked:
        reply = site.api.patch("/policy", [rule(f"{REVOKED}/32", "deny")])
        assert reply.status == 200, reply
        eventually(lambda: revoked.outcome is not None, 20, 0.05, "the end of what was denied")
        assert "alive" not in revoked.finish()["connections"]
        assert steady.finish()["connections"] == ["alive"] * 4


def test_datagrams_stop_with_their_permission(site, internet):  # noqa: F811
    site.allow(f"{REVOKED}:7/udp", "steady.example")
    target = {"do": "udp", "host": REVOKED, "port": ECHO, "wait": 3}
    with site.background("flood", targets=[target]) as flood:
        assert internet.arrived(REVOKED, "udp") > 0
        site.allow("steady.example")
        eventually(lambda: site.udp(REVOKED)["outcome"] in REFUSED, 10, 0.05, "a refusal")
        before = internet.arrived(REVOKED)
        time.sleep(0.5)
        assert internet.arrived(REVOKED) == before
        outcome = flood.finish()["outcomes"]["0"]
    # The one that was on its way then may have been left without its answer.
    assert outcome.pop("silence", 0) <= 1 and outcome.pop("answered") > 0, outcome
    assert outcome and set(outcome) <= set(REFUSED), outcome


def test_an_address_of_two_names_stays_while_one_of_them_is_allowed(site):
    site.allow("shared-a.example", "shared-b.example")
    resolve(site, "shared-a.example", "shared-b.example")
    with site.background("hold", host=SHARED, port=ECHO) as held:
        site.allow("shared-b.example")
        assert site.tcp(SHARED, http=True)["body"] == SHARED
        assert held.finish()["connections"] == ["alive"] * 4
    site.allow("good.example")
    assert site.tcp(SHARED)["outcome"] == "ECONNREFUSED"


def test_what_was_learned_outlasts_changes_that_do_not_concern_it(site):
    site.allow("good.example")
    resolve(site, "good.example")
    reply = site.api.patch("/policy", [rule("four.example")])
    assert reply.status == 200, reply
    assert site.tcp(GOOD, http=True)["body"] == GOOD, "without being asked for again"
    assert site.tcp("four.example", http=True)["outcome"] == "connected"


def test_a_new_permission_holds_at_once(site):
    site.allow("good.example")
    assert site.tcp("late.example")["outcome"] == "no name"
    assert site.api.patch("/policy", [rule("late.example")]).status == 200
    assert site.tcp("late.example", http=True)["body"] == "203.0.113.22"


def test_many_changes_under_load_cost_no_permitted_connection(site, internet):  # noqa: F811
    site.allow("steady.example")
    resolve(site, "steady.example")
    connect = {"do": "tcp", "host": STEADY, "port": 80, "http": True, "wait": 3}
    denied = {"do": "tcp", "host": DIRECT, "port": 80}
    before = internet.arrived(DIRECT)
    with site.background("hold", host=STEADY, port=ECHO) as held, \
            site.background("flood", targets=[connect, denied]) as flood:
        for i in range(20):
            site.allow("steady.example", *(f"n{i}-{j}.example" for j in range(20)),
                       f"198.18.{i}.0/24")
        assert held.finish()["connections"] == ["alive"] * 4
        outcomes = flood.finish()["outcomes"]
    assert set(outcomes["0"]) == {"connected"}, outcomes
    assert set(outcomes["1"]) == {"ECONNREFUSED"}, outcomes
    assert internet.arrived(DIRECT) == before


#: What is tried all the time while that which enforces is ended.
FORBIDDEN = [
    ("tcp", DIRECT, {"port": 80}), ("tcp", DENIED, {"port": 443}), ("udp", DIRECT, {"port": 443}),
    ("udp", DENIED, {"port": 7}), ("tcp", DIRECT6, {"port": 80}), ("udp", DIRECT6, {"port": 7}),
    ("tcp", METADATA, {"port": 80}), ("tcp", PRIVATE[0], {"port": 80}), ("ping", DIRECT, {}),
    ("tcp", OTHER_RESOLVER, {"port": 853}), ("udp", DIRECT, {"port": 7, "mark": 1}),
    ("raw", DIRECT, {}), ("frame", DIRECT, {}), ("frame", DIRECT6, {}),
]


def test_nothing_gets_out_when_what_enforces_is_killed(site, internet):  # noqa: F811
    site.allow("good.example")
    resolve(site, "good.example")
    targets = [{"do": do, "host": address, **options} for do, address, options in FORBIDDEN]
    targets += [{"do": "dns", "name": "denied.example", "over": over, "server": server}
                for over in ("udp", "tcp") for server in ("8.8.8.8", OTHER_RESOLVER)]
    addresses = {address for _, address, _ in FORBIDDEN} | {OTHER_RESOLVER}
    before = {address: internet.arrived(address) for address in addresses}
    with site.background("flood", targets=targets, limit=120) as flood:
        for _ in range(3):
            site.kill()
            time.sleep(0.7)
            site.revive()
        outcome = flood.finish()
    assert outcome["made"] > 3 * len(targets), outcome
    for index, attempted in outcome["outcomes"].items():
        target = targets[int(index)]
        if target["do"] in ("tcp", "udp", "ping"):
            assert not {"connected", "answered"} & set(attempted), (target, attempted)
    for address in addresses:
        assert internet.arrived(address) == before[address], address
    assert internet.asked("denied.example") == []
    # And it goes on as before, with the policy there was; a query may have met the last death.
    eventually(lambda: site.tcp("good.example", http=True)["outcome"] == "connected", 30, 0.5,
               "what is allowed, again")
    assert site.tcp(GOOD, http=True)["body"] == GOOD
    assert site.tcp(DIRECT)["outcome"] == "ECONNREFUSED"
    assert site.dns("denied.example")["addresses"] == []
    assert site.api.get("/policy").json["policy"]["egress"] == [rule("good.example")]


def test_names_do_not_resolve_while_nothing_enforces(site):
    """A name server of the world is not asked in its place."""
    site.allow("*.wild.example", "good.example")
    resolve(site, "good.example")
    site.kill()
    try:
        if site.dead_for_a_while:
            answer = site.dns("new.wild.example", wait=1)
            assert answer["outcome"] in (*REFUSED, "silence"), answer
            assert site.tcp(DIRECT)["outcome"] in REFUSED
            assert site.udp(DIRECT)["outcome"] in REFUSED
            if site.has_ipv6:
                assert site.tcp(GOOD6)["outcome"] in ("connected", *REFUSED)
    finally:
        site.revive()
    eventually(lambda: site.dns("new.wild.example").get("addresses") == ["203.0.113.30"], 30, 0.5,
               "names, again")
