"""Egress control by names, with real packets and name servers: what resolves, where that leads, for
how long, and what cannot be carried out in names."""

import time

import pytest

from support.egress_fixtures import REFUSED, internet, site_of, sites  # noqa: F401: fixtures
from support.egress_internet import (
    GOOD, GOOD6, LARGE, MANY, METADATA, OTHER_RESOLVER, PRIVATE, RESOLVER, TUNNEL, TUNNEL_ADDRESS,
    WILD, WILD_ADDRESS,
)
from support.egress_sites import rule

NXDOMAIN, REFUSED_CODE = 3, 5
#: The extended error that tells that policy refused (RFC 8914: Blocked, Censored, Filtered, Prohibited).
BY_POLICY = (15, 16, 17, 18)
SHORT, SHORT_LIFETIME = "203.0.113.16", 61


site = site_of("sidecar", "native", "docker")


@pytest.fixture(scope="module")
def learned():
    """When each site learned the address of short.example."""
    moments = {}

    def learn(site):
        if site.name not in moments:
            site.always = ("short.example",)
            site.allow()
            assert site.dns("short.example")["addresses"] == [SHORT]
            moments[site.name] = time.monotonic()
        return moments[site.name]

    return learn


@pytest.fixture(autouse=True)
def from_the_beginning(site, learned):
    learned(site)


def refused(answer):
    """A name that policy refuses: at once, without addresses, and it says that it was policy."""
    assert answer["outcome"] == "answered" and answer["addresses"] == [], answer
    assert answer["rcode"] in (NXDOMAIN, REFUSED_CODE), answer
    assert [code for code, _ in answer["extended"] if code in BY_POLICY], answer
    return True


def test_allowed_names_resolve_and_their_addresses_open(site):
    site.allow("good.example")
    assert site.dns("good.example")["addresses"] == [GOOD]
    assert site.tcp("good.example", http=True)["outcome"] == "connected"
    assert site.tcp(GOOD, http=True)["body"] == GOOD
    assert site.tcp(GOOD, 443, tls=True)["body"] == GOOD
    assert site.udp(GOOD)["outcome"] == "answered"


def test_other_names_do_not_resolve_and_nobody_is_asked_for_them(site, internet):  # noqa: F811
    site.allow("good.example")
    since = site.last_denial()
    answer = site.dns("denied.example")
    assert refused(answer) and answer["rcode"] == NXDOMAIN
    assert refused(site.dns("DENIED.example", "AAAA"))
    assert site.tcp("denied.example")["outcome"] == "no name"
    record = site.wait_denied(since, kind="name", target="denied.example", protocol="A")
    assert record["reason"] == "default: deny"
    assert internet.asked("denied.example") == []


def test_the_first_rule_for_a_name_decides(site):
    site.policy(rule(f"no.{WILD}", "deny"), rule(f"*.{WILD}"), rule(f"late.{WILD}", "deny"))
    since = site.last_denial()
    assert refused(site.dns(f"no.{WILD}"))
    assert site.wait_denied(since, target=f"no.{WILD}")["reason"] == f"policy rule 0: deny no.{WILD}"
    assert site.dns(f"late.{WILD}")["addresses"] == [WILD_ADDRESS]


def test_a_wildcard_is_for_all_names_below_and_not_for_its_own(site):
    site.allow(f"*.{WILD}")
    for name in (f"a.{WILD}", f"b.a.{WILD}", f"A.{WILD.upper()}"):
        assert site.dns(name)["addresses"] == [WILD_ADDRESS], name
    assert refused(site.dns(WILD))
    assert refused(site.dns(f"not{WILD}"))
    assert site.tcp(f"a.{WILD}", http=True)["body"] == WILD_ADDRESS


def test_a_default_of_allow_leaves_what_is_denied_shut(site):
    site.policy(rule("denied.example", "deny"), default="allow")
    assert refused(site.dns("denied.example"))
    assert site.dns("four.example")["addresses"] == ["203.0.113.12"]
    assert site.tcp("four.example", http=True)["body"] == "203.0.113.12"


def test_an_allowed_name_leads_through_its_aliases(site):
    site.allow("www.example")
    answer = site.dns("www.example")
    assert answer["addresses"] == ["203.0.113.14"] and len(answer["answers"]) == 3, answer
    assert site.tcp("www.example", http=True)["body"] == "203.0.113.14"
    for name in ("middle.example", "cdn.example"):
        assert refused(site.dns(name)), "the aliases themselves are not allowed"


def test_an_alias_of_what_a_rule_denies_is_refused(site, internet):  # noqa: F811
    site.policy(rule("trap.example"), rule("blocked.example", "deny"))
    assert refused(site.dns("trap.example"))
    assert site.tcp("203.0.113.15")["outcome"] in REFUSED
    assert internet.arrived("203.0.113.15") == 0


def test_addresses_of_ipv6_open_too(site):
    site.allow("good.example", "six.example")
    assert site.dns("good.example", "AAAA")["addresses"] == [GOOD6]
    assert site.dns("six.example", "AAAA")["addresses"] == ["2001:db8:1::13"]
    assert site.dns("six.example")["addresses"] == []
    if site.has_ipv6:
        assert site.tcp("six.example", http=True)["body"] == "2001:db8:1::13"
        assert site.tcp(GOOD6, http=True)["body"] == GOOD6
    else:
        assert site.tcp("six.example")["outcome"] in REFUSED


def test_dns_over_tcp_is_judged_likewise(site, internet):  # noqa: F811
    site.allow("good.example")
    assert site.dns("good.example", over="tcp")["addresses"] == [GOOD]
    assert refused(site.dns("denied.example", over="tcp"))
    assert internet.asked("denied.example") == []


def test_a_truncated_answer_is_whole_over_tcp(site):
    site.allow(LARGE)
    assert site.dns(LARGE, edns=False)["truncated"]
    whole = site.dns(LARGE, over="tcp")
    assert not whole["truncated"] and sorted(whole["addresses"]) == sorted(MANY)
    outcomes = site.probe(*({"do": "tcp", "host": a, "http": True} for a in (MANY[0], MANY[-1])))
    assert [o.get("body") for o in outcomes] == [MANY[0], MANY[-1]]


@pytest.mark.parametrize("server", [RESOLVER, OTHER_RESOLVER, "203.0.113.10", "198.51.100.1"])
@pytest.mark.parametrize("over", ["udp", "tcp"])
def test_no_other_server_answers(site, internet, server, over):  # noqa: F811
    """Whichever server is asked: the answer is of who enforces, and nothing gets to the other."""
    site.allow("good.example")
    before = internet.arrived(server, over, 53)
    assert refused(site.dns("denied.example", server=server, over=over))
    if server != RESOLVER:
        assert internet.arrived(server, over, 53) == before
    assert internet.asked("denied.example") == []


def test_no_server_answers_on_another_port(site, internet):  # noqa: F811
    site.allow("good.example")
    for port in (5353, 853):
        assert site.dns("denied.example", server=OTHER_RESOLVER, port=port)["outcome"] in REFUSED
    assert internet.arrived(OTHER_RESOLVER) == 0


REBOUND = {
    "meta": METADATA, "ten": PRIVATE[0], "seventeen": PRIVATE[1], "home": PRIVATE[2],
    "carrier": PRIVATE[3],
}


@pytest.mark.parametrize("label", REBOUND)
def test_an_allowed_name_does_not_lead_within(site, internet, label):  # noqa: F811
    address = REBOUND[label]
    site.allow("*.rebind.example")
    since = site.last_denial()
    assert site.dns(f"{label}.rebind.example")["addresses"] == []
    record = site.wait_denied(since, kind="name", target=f"{label}.rebind.example")
    assert "rebinding" in record["reason"], record
    assert site.tcp(f"{label}.rebind.example")["outcome"] in REFUSED
    assert site.tcp(address)["outcome"] in REFUSED
    assert internet.arrived(address) == 0


@pytest.mark.parametrize("name,kind", [
    ("loop.rebind.example", "A"), ("loop.rebind.example", "AAAA"), ("ula.rebind.example", "AAAA"),
    ("mapped.rebind.example", "AAAA"), ("inward.example", "A"),
])
def test_a_name_does_not_lead_to_loopback_or_inner_ipv6_either(site, name, kind):
    site.allow("*.rebind.example", "inward.example")
    assert site.dns(name, kind)["addresses"] == []


def test_a_default_of_allow_does_not_open_what_is_within(site, internet):  # noqa: F811
    site.policy(default="allow")
    for address in REBOUND.values():
        before = internet.arrived(address)
        assert site.tcp(address)["outcome"] in REFUSED, address
        assert internet.arrived(address) == before


def test_a_rule_for_the_network_lets_names_lead_there(site):
    site.allow("ten.rebind.example", "10.66.0.0/16")
    assert site.dns("ten.rebind.example")["addresses"] == [PRIVATE[0]]
    assert site.tcp("ten.rebind.example", http=True)["body"] == PRIVATE[0]
    site.allow("ten.rebind.example")
    assert site.dns("ten.rebind.example")["addresses"] == []
    assert site.tcp(PRIVATE[0])["outcome"] in REFUSED


def test_long_names_carry_nothing_out(site, internet):  # noqa: F811
    site.allow(f"*.{TUNNEL}")
    since = site.last_denial()
    label = "secret" + "0123456789abcdef" * 3
    for name in (f"{label}.{TUNNEL}", ".".join(["secret" + "7" * 30] * 4) + f".{TUNNEL}",
                 ".".join("secret-abcdefgh") + f".{TUNNEL}"):
        for kind in ("A", "TXT"):
            answer = site.dns(name, kind)
            assert answer["rcode"] != 0 and answer["addresses"] == [], (name, kind)
    assert "limit" in site.wait_denied(since, target=f"{label}.{TUNNEL}")["reason"]
    assert internet.asked("secret") == [] and internet.asked("s.e.c.r.e.t") == []


@pytest.mark.parametrize("kind", ["NULL", "ANY", "AXFR"])
def test_kinds_of_questions_for_tunnels_are_not_asked(site, internet, kind):  # noqa: F811
    site.allow(f"*.{TUNNEL}")
    answer = site.dns(f"kind{kind}.{TUNNEL}", kind)
    assert answer["rcode"] != 0 and answer["answers"] == []
    assert internet.asked(f"kind{kind}.{TUNNEL}") == []


def test_many_names_carry_only_little_out(site, internet):  # noqa: F811
    """Short labels below one allowed domain, each new: a hundred a minute at most."""
    site.allow(f"*.{TUNNEL}")
    word = f"m{site.name}"
    answers = site.probe(*({"do": "dns", "name": f"{word}{i}.{TUNNEL}", "type": kind}
                           for i in range(100) for kind in ("TXT", "A")))
    asked = {line.split()[-3] for line in internet.asked(word)}
    assert 0 < len(asked) <= 100
    assert answers[1]["addresses"] == [TUNNEL_ADDRESS], answers[1]
    more = site.probe(*({"do": "dns", "name": f"{word}-{i}.{TUNNEL}"} for i in range(20)))
    assert all(answer["rcode"] != 0 and not answer["addresses"] for answer in more[-5:]), more[-1]
    asked = {line.split()[-3] for line in internet.asked(word)}
    assert len(asked) <= 100
    assert TUNNEL_ADDRESS not in [a for answer in more[-5:] for a in answer["addresses"]]


def test_many_names_in_a_row_all_resolve(site):
    """Each from another port: one that the sandbox used before is no trap for who asks for it."""
    names = [f"q{i}.{WILD}" for i in range(1000)]
    site.allow(*names)
    failed = []
    for begin in range(0, len(names), 200):
        answers = site.probe(*({"do": "dns", "name": n} for n in names[begin:begin + 200]))
        failed += [a for a in answers if a.get("addresses") != [WILD_ADDRESS]]
        time.sleep(1)  # So many a second are sent on.
    assert not failed, (len(failed), failed[:3])


def test_addresses_stay_open_a_minute_longer_than_the_answer_holds(site):
    site.allow("long.example", "mixed.example")
    answers = site.probe(*({"do": "dns", "name": n} for n in ("long.example", "mixed.example")))
    assert 0 < answers[0]["answers"][0]["ttl"] <= 300, "what clients are told, at most"
    for address in ("203.0.113.17", "203.0.113.23"):
        lifetimes = site.lifetimes(address)
        assert lifetimes and all(300 < seconds <= 360 for seconds in lifetimes), lifetimes


def test_an_address_closes_when_its_time_is_over(site, internet, learned):  # noqa: F811
    """Learned at the module's beginning; the name was not asked for since."""
    remaining = learned(site) + SHORT_LIFETIME - time.monotonic()
    if remaining > 5:
        assert all(0 < seconds <= SHORT_LIFETIME for seconds in site.lifetimes(SHORT))
        assert site.tcp(SHORT, http=True)["body"] == SHORT
    time.sleep(max(0.0, remaining + 1.5))
    before = internet.arrived(SHORT)
    assert site.tcp(SHORT)["outcome"] in REFUSED
    assert internet.arrived(SHORT) == before
    assert site.lifetimes(SHORT) == []
    assert site.tcp("short.example", http=True)["body"] == SHORT, "asked for again, it opens again"
