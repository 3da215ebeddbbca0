"""Rows of work/works.py that need no more than this machine has installed, in the image `host`, for
root's server and an ordinary user's. `test/run work` does all rows, in distributions."""

import pytest

from integration.rootless import make_server as make_users_server, user  # noqa: F401: the user and its servers
from work.run import Session, sandbox_of
from work.works import WORKS

ROWS = {
    "useradd, groupadd, usermod, userdel", "su and runuser", "setpriv", "tar with owners",
    "python: processes, threads, asyncio", "node: workers and a server", "gcc, make, cmake", "git", "ssh-keygen", "tmux",
    "nice, renice, taskset, flock", "redis", "mount", "unshare", "dmesg", "clock", "host name", "modules", "mknod",
}
CASES = [(work, who) for work in WORKS if work.name in ROWS for who in ("root", "user") if getattr(work, who)]


def test_the_rows_are_rows():
    assert ROWS <= {work.name for work in WORKS}


@pytest.fixture(scope="module", params=["root", "rootless"])
def session(request):
    make = request.getfixturevalue("make_server" if request.param == "root" else "make_users_server")
    with sandbox_of(make(f"work-{request.param}"), "host") as sandbox:
        yield Session(request.param, "host", []), sandbox


@pytest.mark.parametrize("work,who", CASES, ids=[f"{work.name}, {who}" for work, who in CASES])
def test_it_works_or_is_refused_as_said(session, work, who):
    kind, sandbox = session
    kind.attempt(sandbox, work, who)
    *_, words, failed = kind.results[-1]
    assert not failed, words
