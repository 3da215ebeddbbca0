"""Quotas hold, whoever asks at the same time, and say what they are when they are used up."""

import concurrent.futures

import pytest

from support.server import HOST_IMAGE


@pytest.fixture(scope="module")
def server(make_server):
    return make_server(
        "quotas", pool_size=4,
        sections={"quotas": {"max_sandboxes": 3, "max_cpu": 2, "max_memory": "1Gi"}},
    )


@pytest.fixture
def clean(server):
    yield server
    api = server.api()
    for item in api.get("/sandboxes", query={"pageSize": 200}).json["items"]:
        api.delete(f"/sandboxes/{item['id']}")


def create(server, **limits):
    return server.api().post("/sandboxes", {**HOST_IMAGE, "resourceLimits": limits})


def test_the_number_of_sandboxes_holds_under_many_creates_at_once(clean):
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda _: create(clean, cpu="0.1", memory="64Mi"), range(12)))
    assert sorted(r.status for r in replies) == [202] * 3 + [429] * 9
    refused = next(r for r in replies if r.status == 429)
    assert refused.json["code"] == "SANDBOX::QUOTA_EXCEEDED"
    assert "max_sandboxes = 3" in refused.json["message"] and "3 in use" in refused.json["message"]
    assert int(refused.header("Retry-After")) > 0
    made = next(r for r in replies if r.status == 202).json["id"]
    assert clean.api().delete(f"/sandboxes/{made}").status == 204
    assert create(clean, cpu="0.1", memory="64Mi").status == 202


def test_processors_and_memory_are_summed_and_must_be_stated(clean):
    assert create(clean, cpu="1500m", memory="600Mi").status == 202
    cpu = create(clean, cpu="501m", memory="64Mi")
    assert cpu.status == 429 and "1500m in use, 501m wanted" in cpu.json["message"]
    memory = create(clean, cpu="0.1", memory="500Mi")
    assert memory.status == 429 and "max_memory = 1024Mi" in memory.json["message"]
    unstated = create(clean, memory="64Mi")
    assert unstated.status == 400 and "resourceLimits.cpu" in unstated.json["message"]
    assert create(clean, cpu="0.5", memory="64Mi").status == 202


def test_what_is_used_is_counted_again_after_a_restart(clean):
    assert create(clean, cpu="2", memory="64Mi").status == 202
    clean.kill()
    clean.start()
    assert create(clean, cpu="0.1", memory="64Mi").status == 429
