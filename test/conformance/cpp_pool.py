"""One pool in one Redis, shared by the published Python SDK and the C++ client: each takes what the
other made, fills up when it is the primary, and obeys the other's changes."""

from datetime import timedelta

import pytest
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import PoolDestroyedException, PoolEmptyException
from opensandbox.pool import AcquirePolicy, PoolCreationSpec
from opensandbox.pool_redis import RedisPoolStateStore
from opensandbox.sync import SandboxPoolSync
from redis import Redis as RedisClient

from support.cpp_client import build_programs
from support.pool_member import PoolMember
from support.redis_server import PASSWORD, Redis
from support.shell import eventually

NAME = "both/ü"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return build_programs(tmp_path_factory.mktemp("client"), "pool_member")


@pytest.fixture(scope="module")
def server(make_server):
    return make_server()


@pytest.fixture
def redis(tmp_path):
    server = Redis(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(redis):
    with RedisClient(port=redis.port, password=PASSWORD) as client:
        yield client


@pytest.fixture
def published(server, client):
    """The published pool, not started."""
    pool = SandboxPoolSync(
        pool_name=NAME, max_idle=2, state_store=RedisPoolStateStore(client),
        connection_config=ConnectionConfigSync(
            domain=server.address, protocol="http", api_key=server.key),
        creation_spec=PoolCreationSpec(image="host", entrypoint=["tail", "-f", "/dev/null"]),
        primary_lock_ttl=timedelta(seconds=2),
    )
    yield pool
    pool.shutdown(graceful=False)


def use(sandbox):
    """Runs a command and deletes the sandbox; returns its id."""
    try:
        assert sandbox.commands.run("echo $((6 * 7))").text == "42"
        return sandbox.id
    finally:
        sandbox.kill()
        sandbox.close()


def is_empty(server):
    return server.api().get("/sandboxes").json["items"] == []


def test_the_published_pool_takes_what_ours_made(server, programs, redis, published):
    with PoolMember(programs, server, NAME, redis, 2, 2000) as ours:
        eventually(lambda: ours.idle() == 2, 30, what="the pool filled by ours")
        published.start()
        shot = published.snapshot()
        assert (shot.idle_count, shot.max_idle) == (2, 2)
        made = ours.ask("entries")[1:]
        assert [entry.sandbox_id for entry in published.snapshot_idle_entries()] == made
        assert use(published.acquire(policy=AcquirePolicy.FAIL_FAST)) == made[0]
        eventually(lambda: ours.idle() == 2, 30, what="the pool filled up by ours")
        published.resize(1)
        eventually(lambda: ours.idle() == 1, 30, what="the pool shrunk by ours")
        assert ours.is_primary()
        # Ours goes: the published one becomes the primary and fills what is missing.
        assert ours.ask("shutdown") == ["ok"]
        published.resize(2)
        eventually(lambda: published.snapshot().idle_count == 2, 30, what="the pool filled by the other")
        assert ours.ask("start") == ["ok"]  # with its own number, 2, and as the other one
        assert not ours.is_primary()
        word, taken, answer = ours.ask("acquire", "FAIL_FAST")
        assert (word, answer) == ("id", "42")
        assert server.api().delete(f"/sandboxes/{taken}").status == 204
        assert ours.ask("destroy")[0] == "destroyed"
        with pytest.raises(PoolDestroyedException):
            published.start()
            published.acquire(policy=AcquirePolicy.FAIL_FAST)
    eventually(lambda: is_empty(server), 30, what="an empty server")


def test_ours_takes_what_the_published_pool_made(server, programs, redis, published, client):
    published.start()
    eventually(lambda: published.snapshot().idle_count == 2, 30, what="the pool filled by the other")
    with PoolMember(programs, server, NAME, redis, 2, 2000) as ours:
        assert not ours.is_primary()
        made = [entry.sandbox_id for entry in published.snapshot_idle_entries()]
        assert ours.ask("entries")[1:] == made
        word, taken, answer = ours.ask("acquire", "RETRY_NEXT_IDLE")
        assert (word, taken, answer) == ("id", made[0], "42")
        assert server.api().delete(f"/sandboxes/{taken}").status == 204
        eventually(lambda: published.snapshot().idle_count == 2, 30, what="the pool filled up again")
        # Every key that ours and theirs wrote is one of the layout, and theirs can read it.
        suffixes = {key.decode().rsplit("}:", 1)[1] for key in client.keys()}
        assert suffixes == {"idle:list", "idle:expires", "lock", "maxIdle", "idleTtlMillis"}
        assert len({key.decode().split("}:", 1)[0] for key in client.keys()}) == 1
        assert ours.ask("resize", 0) == ["ok"]
        eventually(lambda: published.snapshot().idle_count == 0, 30, what="the pool emptied by the other")
        with pytest.raises(PoolEmptyException):
            published.acquire(policy=AcquirePolicy.FAIL_FAST)
        assert ours.ask("acquire", "FAIL_FAST")[:2] == ["error", "POOL_EMPTY"]
    eventually(lambda: is_empty(server), 30, what="an empty server")
