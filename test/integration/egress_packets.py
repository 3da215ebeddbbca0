"""Egress control by addresses, with real packets: whatever root inside sends, by whichever way down,
nothing gets to where policy does not allow it. What arrives is counted there."""

import time

import pytest

from support.egress_fixtures import REFUSED, internet, site_of, sites, unguarded  # noqa: F401
from support.egress_internet import DENIED, DIRECT, GOOD, GOOD6, METADATA, OTHER_RESOLVER, PRIVATE
from support.egress_sites import rule

site = site_of("sidecar", "netraw", "native", "docker")
SPOOFED, SPOOFED6 = "203.0.113.99", "2001:db8:99::9"

#: Attempts to get to an address that is not allowed: what is done, and to which. Without an address
#: it is one of the attempt's own, of the family that it names.
ATTEMPTS = {
    "tcp": ("tcp", 4, {"port": 80}),
    "tcp of IPv6": ("tcp", 6, {"port": 80}),
    "tcp to an address of a denied name": ("tcp", DENIED, {"port": 443}),
    "udp": ("udp", 4, {"port": 7}),
    "udp of IPv6": ("udp", 6, {"port": 7}),
    "quic": ("udp", 4, {"port": 443}),
    "quic of IPv6": ("udp", 6, {"port": 443}),
    "dns over tls": ("tcp", 4, {"port": 853, "tls": True}),
    "dns over tls of IPv6": ("tcp", 6, {"port": 853, "tls": True}),
    "dns over quic": ("udp", 4, {"port": 853}),
    "dns over https": ("tcp", OTHER_RESOLVER, {"port": 443, "tls": True}),
    "dns over https of IPv6": ("tcp", 6, {"port": 443, "tls": True}),
    "icmp": ("ping", 4, {}),
    "icmp of IPv6": ("ping", 6, {}),
    "metadata": ("tcp", METADATA, {"port": 80}),
    "a private address": ("tcp", PRIVATE[0], {"port": 80}),
    "a private address of IPv6": ("tcp", PRIVATE[4], {"port": 80}),
    "a forged mark on tcp": ("tcp", 4, {"port": 80, "mark": 1}),
    "a forged mark on tcp of IPv6": ("tcp", 6, {"port": 80, "mark": 1}),
    "a forged mark on udp": ("udp", 4, {"port": 7, "mark": 1}),
    "a forged mark on udp of IPv6": ("udp", 6, {"port": 7, "mark": 1}),
    "another mark": ("udp", 4, {"port": 7, "mark": 0x7FFFFFFF}),
    "a raw socket": ("raw", 4, {}),
    "a raw socket of IPv6": ("raw", 6, {}),
    "a raw socket to port 53": ("raw", 4, {"port": 53}),
    "frames": ("frame", 4, {"count": 5}),
    "frames of IPv6": ("frame", 6, {"count": 5}),
    "frames past the queue": ("frame", 4, {"count": 5, "bypass": True}),
    "frames to port 53": ("frame", 4, {"port": 53}),
    "a source of somebody else": ("raw", 4, {"source": SPOOFED}),
    "a source of somebody else, of IPv6": ("udp", 6, {"source": SPOOFED6}),
    "tunnelled in another protocol": ("raw", 4, {"protocol": 47}),
}
#: Those whose programs learn that they are refused: an error at once, and no waiting.
TOLD = ("tcp", "udp", "ping")
_OWN = {4: "198.51.100.{}", 6: "2001:db8:2::{}"}
TARGETS = {label: address if isinstance(address, str) else _OWN[address].format(10 + i)
           for i, (label, (_, address, _)) in enumerate(ATTEMPTS.items())}


def settle():
    """What was sent has arrived: it goes through links within this machine."""
    time.sleep(0.05)


def make_all(site, internet):  # noqa: F811
    """Makes all attempts: the outcome of each, and how many packets of it arrived."""
    before = internet.totals()
    outcomes = site.probe(*({"do": do, "host": TARGETS[label], **options}
                            for label, (do, _, options) in ATTEMPTS.items()))
    settle()
    after = internet.totals()
    arrived = {label: after.get(a, 0) - before.get(a, 0) for label, a in TARGETS.items()}
    return {label: (outcome, arrived[label]) for label, outcome in zip(ATTEMPTS, outcomes)}


@pytest.fixture(scope="module")
def made(internet):  # noqa: F811
    """What came of the attempts, at each site."""
    results = {}

    def attempts(site):
        if site.name not in results:
            if site.enforced:
                site.allow("good.example")
            results[site.name] = make_all(site, internet)
        return results[site.name]

    return attempts


@pytest.mark.parametrize("label", ATTEMPTS)
def test_what_is_not_allowed_does_not_arrive(site, made, label):
    do, _, options = ATTEMPTS[label]
    outcome, arrived = made(site)[label]
    assert arrived == 0, outcome
    if do in TOLD and not options.get("source"):
        assert outcome["outcome"] in REFUSED, outcome


@pytest.mark.parametrize("label", ATTEMPTS)
def test_all_of_that_would_arrive_where_nothing_is_enforced(unguarded, made, label):  # noqa: F811
    outcome, arrived = made(unguarded)[label]
    assert arrived > 0, outcome


SPOOFS = {
    "a raw socket": ("raw", GOOD, SPOOFED), "frames": ("frame", GOOD, SPOOFED),
    "a raw socket of IPv6": ("raw", GOOD6, SPOOFED6), "frames of IPv6": ("frame", GOOD6, SPOOFED6),
    "an ordinary socket of IPv6": ("udp", GOOD6, SPOOFED6),
}


@pytest.mark.parametrize("label", SPOOFS)
def test_nothing_leaves_with_an_address_of_somebody_else(site, internet, unguarded, label):  # noqa: F811
    """Not even to where it may go."""
    do, address, source = SPOOFS[label]
    site.allow("good.example")
    site.probe({"do": "resolve", "name": "good.example"})
    assert site.udp(GOOD)["outcome"] == "answered"
    before = internet.arrived_from(source)
    site.probe({"do": do, "host": address, "source": source, "wait": 0.2})
    settle()
    assert internet.arrived_from(source) == before
    unguarded.probe({"do": do, "host": address, "source": source, "wait": 0.2})
    settle()
    assert internet.arrived_from(source) > before, "as it does where nothing is enforced"


def test_a_refusal_is_told_at_once_and_recorded(site):
    site.policy(rule("good.example"), rule("203.0.113.0/24", "deny"))
    since = site.last_denial()
    assert site.tcp(DIRECT)["outcome"] == "ECONNREFUSED"
    assert site.tcp(DENIED, 443)["outcome"] == "ECONNREFUSED"
    assert site.udp(DENIED, 9999)["outcome"] in REFUSED
    record = site.wait_denied(since, kind="address", target=DIRECT, port=80, protocol="tcp")
    assert record["reason"] == "default: deny"
    for port, protocol in ((443, "tcp"), (9999, "udp")):
        record = site.wait_denied(since, target=DENIED, port=port, protocol=protocol)
        assert record["reason"] == "policy rule 1: deny 203.0.113.0/24"
        assert record["time"] and record["sequence"] > since


def test_networks_open_and_close(site, internet):  # noqa: F811
    site.policy(rule("203.0.113.32/28"), rule("203.0.113.40/30", "deny"), rule("2001:db8:1::20/124"))
    hosts = [f"203.0.113.{i}" for i in (31, 32, 39, 40, 43, 44, 47, 48)]
    before = {host: internet.arrived(host) for host in hosts}
    outcomes = site.probe(*({"do": "tcp", "host": host, "http": True} for host in hosts))
    opened = [h for h, o in zip(hosts, outcomes) if o.get("body") == h]
    assert opened == [f"203.0.113.{i}" for i in (32, 39, 44, 47)]
    for host in set(hosts) - set(opened):
        assert internet.arrived(host) == before[host]
    if site.has_ipv6:
        assert site.tcp("2001:db8:1::25", http=True)["body"] == "2001:db8:1::25"
    assert site.tcp("2001:db8:1::30")["outcome"] in REFUSED


def test_rules_are_of_ports_and_protocols(site, internet):  # noqa: F811
    site.allow("ports.example:80", "203.0.113.24:8080/tcp", "203.0.113.25:7/udp", "198.51.100.1:1-442")
    named = "203.0.113.18"
    assert site.tcp("ports.example", http=True)["body"] == named
    assert site.tcp(named, 8080)["outcome"] == "ECONNREFUSED"
    assert site.udp(named, 443)["outcome"] in REFUSED
    assert site.probe({"do": "ping", "host": named})["outcome"] in REFUSED
    assert internet.arrived(named, "tcp", 8080) == internet.arrived(named, "udp") == 0
    assert internet.arrived(named, "icmp") == 0
    assert site.tcp("203.0.113.24", 8080)["outcome"] == "connected"
    assert site.tcp("203.0.113.24", 80)["outcome"] == "ECONNREFUSED"
    assert site.udp("203.0.113.25")["outcome"] == "answered"
    assert site.tcp("203.0.113.25", 7)["outcome"] == "ECONNREFUSED"
    assert site.tcp(DIRECT, 80)["outcome"] == "connected"
    assert site.tcp(DIRECT, 443)["outcome"] == "ECONNREFUSED"


def test_ports_narrow_a_network_to_them(site, internet):  # noqa: F811
    rules = [rule("203.0.113.26/31", ports=[8080, 80]), rule("203.0.113.28", ports=[443])]
    site.policy(*rules)
    assert site.api.get("/policy").json["policy"]["egress"][:2] == rules
    for port in (80, 8080):
        assert site.tcp("203.0.113.27", port)["outcome"] == "connected"
    assert site.tcp("203.0.113.27", 443)["outcome"] == "ECONNREFUSED"
    assert site.udp("203.0.113.27", 80)["outcome"] in REFUSED
    assert site.probe({"do": "ping", "host": "203.0.113.27"})["outcome"] in REFUSED
    assert site.tcp("203.0.113.28", 443)["outcome"] == "connected"
    assert site.tcp("203.0.113.28", 80)["outcome"] == "ECONNREFUSED"
    assert internet.arrived("203.0.113.27", "tcp", 443) == internet.arrived("203.0.113.27", "udp") == 0
    assert internet.arrived("203.0.113.28", "tcp", 80) == 0


def test_ports_without_a_target_are_those_of_every_outer_address(site):
    site.policy(rule(ports=[80]))
    assert site.tcp("203.0.113.29", 80)["outcome"] == "connected"
    assert site.tcp("203.0.113.29", 443)["outcome"] == "ECONNREFUSED"
    if site.has_ipv6:
        assert site.tcp("2001:db8:1::29", 80)["outcome"] == "connected"
        assert site.tcp("2001:db8:1::29", 443)["outcome"] in REFUSED
    for inner in (METADATA, PRIVATE[0], PRIVATE[2]):
        assert site.tcp(inner, 80)["outcome"] == "ECONNREFUSED"
    # What a name needs is a rule for the name.
    assert site.probe({"do": "resolve", "name": "good.example"})["outcome"] == "no name"
    site.policy(rule(ports=[80]), rule(PRIVATE[0], ports=[80]))
    assert site.tcp(PRIVATE[0], 80)["outcome"] == "connected"
    assert site.tcp(PRIVATE[0], 443)["outcome"] == "ECONNREFUSED"


def test_denied_ports_beat_names_and_addresses_until_they_are_taken_away(site):
    site.policy(rule("good.example"), rule(DIRECT), rule(action="deny", ports=[443, 25]))
    site.probe({"do": "resolve", "name": "good.example"})
    for host in (GOOD, DIRECT):
        assert site.tcp(host, 80)["outcome"] == "connected"
        assert site.tcp(host, 443)["outcome"] == "ECONNREFUSED"
    patch = [rule(DIRECT, "deny", [80]), rule(action="deny", ports=[25, 443])]
    assert site.api.request("PATCH", "/policy", body=patch).status == 200
    shown = site.api.get("/policy").json["policy"]["egress"]
    assert shown[:2] == patch and rule(DIRECT) in shown and rule(action="deny", ports=[443, 25]) not in shown
    assert site.tcp(DIRECT, 80)["outcome"] == "ECONNREFUSED"
    assert site.tcp(GOOD, 80)["outcome"] == "connected"
    assert site.api.request("DELETE", "/policy", body=["ports=25,443"]).status == 200
    assert site.tcp(DIRECT, 443)["outcome"] == "connected"
    site.probe({"do": "resolve", "name": "good.example"})
    assert site.tcp(GOOD, 443)["outcome"] == "connected"


def test_dns_over_tls_is_shut_even_where_all_else_is_open(site, internet):  # noqa: F811
    site.policy(rule("203.0.113.26"), default="allow")
    since = site.last_denial()
    for address in ("203.0.113.26", OTHER_RESOLVER):
        before = internet.arrived(address)
        assert site.tcp(address, 853, tls=True)["outcome"] == "ECONNREFUSED"
        assert site.udp(address, 853)["outcome"] in REFUSED
        assert internet.arrived(address) == before
    assert "dot" in site.wait_denied(since, target=OTHER_RESOLVER, port=853)["reason"]
    assert site.tcp(OTHER_RESOLVER, 80)["outcome"] == "connected"


def test_ping_goes_where_all_may_go(site):
    site.allow("good.example")
    site.probe({"do": "resolve", "name": "good.example"})
    assert site.probe({"do": "ping", "host": GOOD})["outcome"] == "answered"
    if site.has_ipv6:
        assert site.probe({"do": "ping", "host": GOOD6})["outcome"] == "answered"


def test_other_protocols_do_not_leave_even_to_what_is_allowed(site, internet, unguarded):  # noqa: F811
    site.allow("good.example")
    site.probe({"do": "resolve", "name": "good.example"})
    before = internet.arrived(GOOD, "gre")
    site.probe({"do": "raw", "host": GOOD, "protocol": 47})
    settle()
    assert internet.arrived(GOOD, "gre") == before
    unguarded.probe({"do": "raw", "host": GOOD, "protocol": 47})
    settle()
    assert internet.arrived(GOOD, "gre") == before + 1


def test_inner_addresses_open_by_rules_of_their_own_only(site, internet):  # noqa: F811
    site.allow("0.0.0.0/0", "::/0")
    for address in (METADATA, *PRIVATE):
        before = internet.arrived(address)
        assert site.tcp(address)["outcome"] in REFUSED, address
        assert internet.arrived(address) == before
    site.allow(f"{PRIVATE[0]}:80")
    assert site.tcp(PRIVATE[0], http=True)["body"] == PRIVATE[0]
    assert site.tcp(PRIVATE[0], 8080)["outcome"] == "ECONNREFUSED"
