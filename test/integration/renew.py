"""Sandboxes that are used live longer: by the proxy, and by what gateways push to Redis."""

import datetime
import json
import time

import pytest

from support.client import Http
from support.redis_server import Redis
from support.shell import eventually

RENEWING = {"extensions": {"access.renew.extend.seconds": "3600"}}


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    server = Redis(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def server(make_server, redis):
    return make_server(
        "renew", pool_size=2,
        sections={
            "renew_intent": {"enabled": True, "min_interval_seconds": 0},
            "renew_intent.redis": {
                "enabled": True, "dsn": redis.url,
                "queue_key": "intents", "consumer_concurrency": 2,
            },
        },
    )


def expiry(sandbox):
    return datetime.datetime.fromisoformat(sandbox.get().json["expiresAt"].replace("Z", "+00:00"))


def intent(sandbox_id, age=0):
    at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age)
    return json.dumps({"sandbox_id": sandbox_id, "observed_at": at.isoformat(), "port": 8000})


def ping(sandbox, **headers):
    path = f"/v1/sandboxes/{sandbox.id}/proxy/44772/ping"
    return Http(sandbox.server.address).get(path, headers=headers).status


def test_use_through_the_proxy_renews(server):
    with server.create(**RENEWING) as used, server.create() as plain:
        before, plain_before = expiry(used), expiry(plain)
        ping(plain)
        ping(used)
        eventually(lambda: expiry(used) > before + datetime.timedelta(seconds=2900), what="the renewal")
        assert expiry(plain) == plain_before


def test_a_request_may_ask_not_to_count(server):
    with server.create(**RENEWING) as sandbox:
        before = expiry(sandbox)
        for _ in range(5):
            ping(sandbox, **{"OpenSandbox-Access-Renew": "skip"})
        assert expiry(sandbox) == before
        ping(sandbox)
        eventually(lambda: expiry(sandbox) > before, what="the renewal")


def test_a_longer_life_is_not_cut(server):
    with server.create(**RENEWING) as sandbox:
        far = "2100-01-01T00:00:00Z"
        assert server.api().post(sandbox.path("/renew-expiration"), {"expiresAt": far}).status == 200
        ping(sandbox)
        log = f"renew_sandbox_id={sandbox.id}"
        eventually(lambda: log in server.log.read_text(), what="the renewal")
        assert sandbox.get().json["expiresAt"] == far


def test_gateways_renew_by_way_of_redis(server, redis):
    eventually(lambda: "renew_event=redis_connected" in server.log.read_text(), 20, what="Redis")
    with server.create(**RENEWING) as fresh, server.create(**RENEWING) as stale:
        before, stale_before = expiry(fresh), expiry(stale)
        for payload in ("garbage", "{}", intent(stale.id, age=301), intent("none"), intent(fresh.id)):
            redis.ask("LPUSH", "intents", payload)
        eventually(lambda: expiry(fresh) > before, 20, what="the renewal")
        assert expiry(stale) == stale_before
        assert redis.ask("LLEN", "intents") == b":0\r\n"
    text = server.log.read_text()
    assert "renew_source=redis_queue" in text and "renew_skip_reason=get_sandbox_failed" in text


def test_redis_may_go_and_come_back(server, redis):
    with server.create(**RENEWING) as sandbox:
        redis.stop()
        before = expiry(sandbox)
        ping(sandbox)
        eventually(lambda: expiry(sandbox) > before, what="the renewal without Redis")
        redis.start()
        before = expiry(sandbox)
        time.sleep(0.01)
        redis.ask("LPUSH", "intents", intent(sandbox.id))
        eventually(lambda: expiry(sandbox) > before, 40, what="the renewal with Redis again")
