"""Name servers behind HTTPS, shut by the operator's settings: for a sandbox that may reach all else."""

import pytest

from support.egress_fixtures import REFUSED, internet, with_settings  # noqa: F401
from support.egress_internet import DENIED, DIRECT, DIRECT6, GOOD, OTHER_RESOLVER, RESOLVER
from support.egress_served import Docker, Native
from support.egress_sites import Sidecar, rule

BLOCK = {"OPENSANDBOX_EGRESS_BLOCK_DOH_443": "true"}


@pytest.fixture(scope="module", params=[Sidecar, Native, Docker], ids=lambda kind: kind.name)
def site(request, internet):  # noqa: F811
    """One whose operator lists such servers."""
    listed = f"{OTHER_RESOLVER},198.51.100.20/32,2001:db8:2::20"
    settings = {**BLOCK, "OPENSANDBOX_EGRESS_DOH_BLOCKLIST": listed}
    with with_settings(request.param, f"list-{request.param.name}", settings)(internet) as site:
        yield site


def shut(site, internet, address):  # noqa: F811
    before = internet.arrived(address)
    assert site.tcp(address, 443, tls=True)["outcome"] in REFUSED
    assert site.udp(address, 443)["outcome"] in REFUSED
    assert internet.arrived(address) == before


def test_listed_servers_are_shut_where_all_else_is_open(site, internet):  # noqa: F811
    site.policy(default="allow")
    since = site.last_denial()
    shut(site, internet, OTHER_RESOLVER)
    record = site.wait_denied(since, target=OTHER_RESOLVER, port=443, protocol="tcp")
    assert "doh" in record["reason"].lower(), record
    site.wait_denied(since, target=OTHER_RESOLVER, port=443, protocol="udp")
    shut(site, internet, "198.51.100.20")
    if site.has_ipv6:
        shut(site, internet, "2001:db8:2::20")
        assert site.tcp(DIRECT6, 443, tls=True)["outcome"] == "connected"
    # That port of theirs, and of nobody else.
    assert site.tcp(OTHER_RESOLVER, 80)["outcome"] == "connected"
    assert site.tcp("198.51.100.21", 443, tls=True)["outcome"] == "connected"
    assert site.tcp("good.example", 443, tls=True)["outcome"] == "connected"


def test_no_rule_opens_a_listed_server(site, internet):  # noqa: F811
    site.policy(rule(OTHER_RESOLVER), rule(f"{OTHER_RESOLVER}:443"), rule(DIRECT))
    shut(site, internet, OTHER_RESOLVER)
    assert site.tcp(OTHER_RESOLVER, 80)["outcome"] == "connected"
    assert site.tcp(DIRECT, 443, tls=True)["outcome"] == "connected"


def test_without_a_list_the_port_is_shut_everywhere(internet):  # noqa: F811
    with with_settings(Sidecar, "all-shut", BLOCK)(internet) as site:
        site.policy(rule("good.example"), default="allow")
        for address in (GOOD, DENIED, DIRECT, RESOLVER):
            shut(site, internet, address)
            assert site.tcp(address, 80)["outcome"] == "connected"
        assert site.tcp("good.example", 80)["outcome"] == "connected"
