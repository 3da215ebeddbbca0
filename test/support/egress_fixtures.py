"""Fixtures of the tests of egress control: one world for a module, and one sandbox of each kind in
it. A module imports them and names the kinds in its test's parameters by `site`."""

import pytest

from support.egress_internet import Internet
from support.egress_served import Docker, Native
from support.egress_sites import Bare, Sidecar, SidecarOfMany

KINDS = {kind.name: kind for kind in (Sidecar, SidecarOfMany, Native, Docker)}
#: How an attempt ends at once that is not permitted. "silence" is none: that is a hang.
REFUSED = ("ECONNREFUSED", "EPERM", "EACCES", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL",
           "ENOBUFS", "no name")


def with_settings(kind, name, variables):
    """A kind of sandbox under another name, whose operator has set these variables."""
    return type(f"{kind.__name__}WithSettings", (kind,), {"name": name, "variables": variables})


@pytest.fixture(scope="module")
def internet():
    with Internet() as internet:
        yield internet


@pytest.fixture(scope="module")
def unguarded(internet):
    with Bare(internet) as site:
        yield site


@pytest.fixture(scope="module")
def sites(internet):
    """Made when they are first asked for; gone, all of them, when the module ends."""
    made, failed = {}, {}

    def make(name):
        if name in failed:
            pytest.fail(failed[name])
        if name not in made:
            site = KINDS[name](internet)
            try:
                site.__enter__()
            except Exception as error:
                # Once is enough.
                failed[name] = f"{name}: {error}"
                raise
            made[name] = site
        return made[name]

    yield make
    for site in reversed(made.values()):
        site.__exit__()


def site_of(*names):
    """A fixture of one sandbox of each of these kinds."""
    @pytest.fixture(params=names)
    def site(request, sites):
        return sites(request.param)

    return site
