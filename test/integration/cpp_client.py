"""The C++ client as others use it: from a CMake package, by the examples, and its pool shared by
several processes."""

import re

import pytest

from support.cpp_client import build_programs, install
from support.pool_member import PoolMember
from support.redis_server import Redis
from support.server import ROOT
from support.shell import eventually, run


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """All programs of test/package and all examples, built outside of the tree."""
    return build_programs(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    server = Redis(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


def output_of(programs, name, server, *arguments):
    return run(programs / name, *arguments, env=server.environment()).stdout


def count(server):
    return len(server.api().get("/sandboxes", query={"pageSize": 200}).json["items"])


def test_the_quick_start_is_that_of_the_header_and_runs(programs, server):
    header = (ROOT / "include/opensandbox/sandbox.hpp").read_text()
    shown = re.findall(r"^///     (.*)$", header, re.MULTILINE)
    example = (ROOT / "test/examples/quick_start.cpp").read_text().splitlines()
    code = [line for line in example if line and not line.startswith("//")]
    assert sorted(filter(None, shown)) == sorted(code)
    assert output_of(programs, "quick_start", server).startswith("hello from ")


def test_examples(programs, server):
    lines = output_of(programs, "streaming_output", server).splitlines()
    assert [line for line in lines if line.startswith("out")] == ["out line 1", "out line 2", "out line 3"]
    assert [line for line in lines if line.startswith("err")] == ["err note 1", "err note 2", "err note 3"]
    assert lines[-1] == "exit 7"
    files = output_of(programs, "files", server).splitlines()
    assert files[0] == "HELLO"
    assert sorted(files[1:3])[0] == "/tmp/work/greeting.txt 6 600"
    assert files[-1] == "none.txt: not_found"
    assert output_of(programs, "fork", server).splitlines() == [
        "prepared by 1", "prepared by 2", "prepared"]
    pool = output_of(programs, "pool", server).splitlines()
    assert pool == ["ready before it was asked for", "released the rest"]
    assert count(server) == 0


def test_a_failure_is_told_as_one(programs, server):
    environment = {**server.environment(), "OPEN_SANDBOX_API_KEY": "wrong"}
    failed = run(programs / "quick_start", env=environment, check=False)
    assert failed.returncode != 0
    assert "API key" in failed.stderr


def test_pkg_config_names_what_a_program_needs(tmp_path, programs, server):
    prefix = install(tmp_path / "prefix")
    flags = run("pkg-config", "--cflags", "--libs", "opensandbox",
                env={"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": prefix / "lib/pkgconfig"}).stdout
    source = ROOT / "test/examples/quick_start.cpp"
    program = tmp_path / "quick_start"
    run("clang++-19", source, "-o", program, *flags.split(), timeout=300)
    assert output_of(tmp_path, "quick_start", server).startswith("hello from ")


def test_processes_share_a_pool_by_redis(programs, server, redis):
    with PoolMember(programs, server, "shared ü", redis, 3, 1500) as first:
        assert first.greeting == "ok"
        eventually(lambda: first.idle() == 3, 30, what="three idle sandboxes")
        with PoolMember(programs, server, "shared ü", redis, 3, 1500) as second:
            assert second.idle() == 3
            assert first.is_primary() and not second.is_primary()
            assert first.ask("entries") == second.ask("entries")
            oldest = second.ask("entries")[1]
            word, taken, answer = second.ask("acquire", "FAIL_FAST")
            assert (word, taken, answer) == ("id", oldest, "42")
            eventually(lambda: second.idle() == 3, 30, what="the pool filled up again")
            # The one that fills the pool dies: the other takes over when the lock has expired.
            first.kill()
            eventually(second.is_primary, 30, what="another primary")
            others = {second.ask("acquire", "FAIL_FAST")[1] for _ in range(3)}
            assert len(others) == 3 and taken not in others
            assert second.ask("resize", 1) == ["ok"]
            eventually(lambda: second.idle() == 1, 30, what="the pool filled up to one")
            assert second.ask("destroy") == ["destroyed", "1", "1"]
            assert second.ask("acquire")[:2] == ["error", "POOL_DESTROYED"]
            assert second.ask("start")[:2] == ["error", "POOL_DESTROYED"]
        for used in {taken, *others}:
            assert server.api().delete(f"/sandboxes/{used}").status == 204
    eventually(lambda: count(server) == 0, 30, what="an empty server")


def test_redis_may_go_and_come_back(programs, server, redis):
    with PoolMember(programs, server, "lost", redis, 1, 1500) as member:
        eventually(lambda: member.idle() == 1, 30, what="an idle sandbox")
        left = member.ask("entries")[1]
        redis.stop()
        assert member.ask("acquire", "FAIL_FAST")[:2] == ["error", "POOL_STATE_STORE_UNAVAILABLE"]
        direct = member.ask("acquire", "DIRECT_CREATE")
        assert direct[0] == "id" and direct[1] != left
        redis.start()  # empty: the member fills the pool anew
        assert member.ask("resize", 1) == ["ok"]
        eventually(lambda: member.idle() == 1, 30, what="an idle sandbox again")
        word, again, _ = member.ask("acquire", "RETRY_NEXT_IDLE")
        assert word == "id"
        member.ask("destroy")
        for used in (left, direct[1], again):
            assert server.api().delete(f"/sandboxes/{used}").status == 204
    eventually(lambda: count(server) == 0, 30, what="an empty server")
