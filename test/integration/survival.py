"""Faults: the server, an agent, the spawner are killed; what lives on, what is said, what is left."""

import os
import signal
import time
from datetime import datetime, timedelta, timezone

import pytest

from support.processes import agent_process
from support.server import wait_gone
from support.shell import eventually


def in_seconds(seconds):
    when = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def renew(sandbox, seconds):
    reply = sandbox.server.api().post(sandbox.path("/renew-expiration"), {"expiresAt": in_seconds(seconds)})
    assert reply.status == 200, reply


def gone(sandbox):
    return sandbox.get().status == 404


@pytest.fixture
def own_server(make_server):
    return make_server()


def test_kill_of_the_server_costs_no_sandbox(own_server):
    server = own_server
    before = server.census()
    sandboxes = [server.create(metadata={"number": str(n)}) for n in range(20)]
    for n, sandbox in enumerate(sandboxes):
        sandbox.sh(f"echo {n} > /tmp/number")
    counter = list(sandboxes[0].agent.events(
        {"command": "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done", "background": True}
    ))[0]["text"]
    early, late = sandboxes[18], sandboxes[19]
    renew(late, 4)

    server.kill()
    renewed_at = time.monotonic()
    for n, sandbox in enumerate(sandboxes):
        assert sandbox.sh("cat /tmp/number") == f"{n}\n", "it answers without a server"
    server.start()

    # All 20 answer, under the addresses that clients already hold and under those asked for anew.
    for n, sandbox in enumerate(sandboxes[:19]):
        assert sandbox.state() == "Running"
        assert sandbox.sh("cat /tmp/number") == f"{n}\n"
        assert sandbox.connect().sh("cat /tmp/number") == f"{n}\n"
    if time.monotonic() - renewed_at < 3:
        assert late.sh("cat /tmp/number") == "19\n"
    status = sandboxes[0].agent.get(f"/command/status/{counter}").json
    assert status["running"] is True
    items = server.api().get("/sandboxes", query={"metadata": "number=7"}).json["items"]
    assert [i["id"] for i in items] == [sandboxes[7].id]

    # Expiry still holds: the one renewed before the kill goes, the others stay.
    eventually(lambda: gone(late), 15, 0.1, "the expiry set before the kill")
    assert early.state() == "Running"

    # What expires while no server runs is gone soon after the next start.
    renew(early, 1)
    server.kill()
    time.sleep(1.2)
    server.start()
    eventually(lambda: gone(early), 10, 0.1, "the expiry that passed in between")

    # The restarted server takes new ones and removes the old.
    with server.create() as fresh:
        assert fresh.sh("echo new") == "new\n"
    for sandbox in sandboxes[:18]:
        sandbox.delete()
    server.expect_census(before)


def test_stopping_the_server_orderly_costs_no_sandbox_either(own_server):
    sandbox = own_server.create()
    sandbox.sh("echo kept > /tmp/kept")
    own_server.stop()
    assert own_server.process.returncode == 0
    own_server.start()
    assert sandbox.connect().sh("cat /tmp/kept") == "kept\n"
    sandbox.delete()


def test_a_sandbox_whose_agent_was_killed_is_failed_and_removed_on_delete(own_server):
    before = own_server.census()
    sandbox, neighbour = own_server.create(), own_server.create()
    sandbox.sh("mkdir /tmp/d; echo x > /tmp/d/f; (sleep 1000 &)")
    pid = agent_process(sandbox)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: sandbox.state() == "Failed", 10, 0.02, "the state Failed")
    status = sandbox.get().json["status"]
    assert status["reason"] and status["message"], status
    wait_gone(pid)
    assert neighbour.sh("echo fine") == "fine\n"
    assert sandbox.id in [i["id"] for i in own_server.api().get("/sandboxes").json["items"]]
    sandbox.delete()
    assert gone(sandbox)
    neighbour.delete()
    own_server.expect_census(before)


def test_an_agent_killed_while_no_server_runs_is_failed_after_the_start(own_server):
    sandbox = own_server.create()
    pid = agent_process(sandbox)
    own_server.kill()
    os.kill(pid, signal.SIGKILL)
    wait_gone(pid)
    own_server.start()
    eventually(lambda: sandbox.state() == "Failed", 10, 0.05, "the state Failed")
    assert sandbox.get().json["status"]["reason"]
    sandbox.delete()


def test_kill_of_the_spawner_leaves_a_working_server(own_server):
    before = own_server.census()
    sandbox = own_server.create()
    spawner = own_server.spawner()
    assert spawner
    os.kill(spawner, signal.SIGKILL)
    wait_gone(spawner)

    assert own_server.api(prefix="").get("/health").status == 200

    def created():
        reply = own_server.api().post(
            "/sandboxes", {"image": {"uri": "host"}, "entrypoint": ["sleep", "1000"], "resourceLimits": {}}
        )
        assert reply.status in (202, 500, 503), reply
        return reply.json["id"] if reply.status == 202 else None

    fresh = eventually(created, 30, 0.2, "a create after the spawner's end")
    # The old one either lives on or is said to have failed: never a Running that does not answer.
    if sandbox.state() == "Running":
        assert sandbox.connect().sh("echo alive") == "alive\n"
    else:
        assert sandbox.state() == "Failed" and sandbox.get().json["status"]["reason"]
    sandbox.delete()
    assert own_server.api().delete(f"/sandboxes/{fresh}").status == 204
    own_server.expect_census(before)
