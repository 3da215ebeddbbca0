"""kill -9 of the server at twenty random points of create, snapshot and delete, on each runtime:
what was reported lives on, what was not is either whole or gone, and nothing is left behind."""

import http.client
import os
import random
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from support.docker_server import DockerServer
from support.server import Sandbox
from support.shell import eventually

KILLS = 20
WORKERS = 3
#: Seconds between the start of the work and the kill, at most: about as long as one round takes.
WINDOW = {"native": 0.25, "docker": 4.0}
PASSING = {"Pending", "Stopping", "Creating", "Deleting"}


@pytest.fixture(params=["native", "docker"])
def server(request, make_server, scratch):
    if request.param == "native":
        yield make_server()
        return
    server = DockerServer(scratch / "kill-points-docker", request.getfixturevalue("docker"))
    try:
        yield server.start()
    finally:
        server.destroy()


class Ledger:
    """What the clients were told. A request without an answer leaves its object in doubt."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sandboxes, self.snapshots = set(), set()  # reported created, or Ready
        self.accepted = set()  # snapshots reported accepted, not yet Ready
        self.doubtful = set()  # of either kind: a delete was sent
        self.gone = set()  # of either kind: the delete was answered

    def note(self, add=(), to=None, remove=()):
        with self.lock:
            for kind in (self.sandboxes, self.snapshots, self.accepted, self.doubtful):
                kind.difference_update(remove)
            if to is not None:
                to.update(add)


def work(server, ledger, random_, mine):
    """Creates, snapshots and deletes at random until the server is gone."""
    api = server.api(timeout=60)
    snapshots = []
    try:
        while True:
            choice = random_.random()
            if not mine or choice < 0.4:
                mine.append(create(server, api, ledger))
            elif choice < 0.6:
                snapshots += snapshot(api, ledger, random_.choice(mine))
            elif choice < 0.7 and snapshots:
                delete(api, ledger, f"/snapshots/{(id := snapshots.pop())}", id)
            else:
                id = mine.pop(random_.randrange(len(mine)))
                delete(api, ledger, f"/sandboxes/{id}", id)
    except (OSError, http.client.HTTPException):
        pass  # The server was killed.


def create(server, api, ledger):
    reply = api.post("/sandboxes", {
        "image": {"uri": server.image}, "entrypoint": ["sleep", "100000"],
        "resourceLimits": {"memory": "256Mi"}, "timeout": 3600,
    })
    assert reply.status == 202, reply
    ledger.note({reply.json["id"]}, ledger.sandboxes)
    return reply.json["id"]


def snapshot(api, ledger, sandbox):
    reply = api.post(f"/sandboxes/{sandbox}/snapshots", {})
    assert reply.status == 202, reply
    id = reply.json["id"]
    ledger.note({id}, ledger.accepted)
    while (state := api.get(f"/snapshots/{id}").json["status"]["state"]) == "Creating":
        time.sleep(0.005)
    assert state == "Ready", state
    ledger.note({id}, ledger.snapshots, remove={id})
    return [id]


def delete(api, ledger, path, id):
    ledger.note({id}, ledger.doubtful, remove={id})
    reply = api.delete(path)
    assert reply.status == 204, reply
    ledger.note({id}, ledger.gone, remove={id})


def killed_at_work(server, ledger, random_, owned):
    """Lets the workers work and kills the server at a random moment."""
    failures = []

    def guarded(mine, own_random):
        try:
            work(server, ledger, own_random, mine)
        except BaseException as error:  # An answer that should not be: shown by the test.
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(mine, random.Random(random_.random()))) for mine in owned]
    for thread in threads:
        thread.start()
    time.sleep(random_.uniform(0, WINDOW[server.runtime]))
    server.kill()
    for thread in threads:
        thread.join(90)
        assert not thread.is_alive()
    assert not failures, failures


def listed(api, path):
    return {item["id"]: item for item in api.get(path, query={"pageSize": 200}).json["items"]}


def at_rest(api, path):
    """What is listed once everything that was begun has ended."""

    found = {}

    def settled():
        found.clear()
        found.update(listed(api, path))
        return not {i["status"]["state"] for i in found.values()} & PASSING

    eventually(settled, 60, 0.05, "the end of what was begun")
    return found


def check_sandboxes(server, api, ledger):
    found = at_rest(api, "/sandboxes")
    lost = ledger.sandboxes - set(found)
    assert not lost, f"reported created and lost: {lost}"
    assert not ledger.gone & set(found), "reported deleted and back"
    for id, item in found.items():
        # Whether reported or not: what is listed is whole.
        # An engine that was committing it lets it run again when that is done.
        eventually(lambda id=id: listed(api, "/sandboxes")[id]["status"]["state"] == "Running", 30, 0.1,
                   f"{item} to run")
        assert Sandbox(server, item).sh("echo works") == "works\n"
    return set(found)


def check_snapshots(api, ledger):
    found = at_rest(api, "/snapshots")
    assert ledger.snapshots <= set(found), f"ready and lost: {ledger.snapshots - set(found)}"
    assert ledger.accepted <= set(found), f"accepted and lost: {ledger.accepted - set(found)}"
    assert not ledger.gone & set(found), "reported deleted and back"
    for id in ledger.snapshots:
        assert found[id]["status"]["state"] == "Ready", found[id]
    for item in found.values():
        assert item["status"]["state"] in ("Ready", "Failed") and item["status"]["reason"], item
    return found


def check_restorable(server, api, snapshots):
    for id in snapshots:
        reply = api.post("/sandboxes", {"snapshotId": id, "resourceLimits": {}, "timeout": 600})
        assert reply.status == 202, reply
        with Sandbox(server, reply.json) as restored:
            assert restored.sh("echo restored") == "restored\n"


def check_engine(server, sandboxes, snapshots):
    """Docker has a container for each listed sandbox and an image for each snapshot, and no other."""

    # An engine may finish what a dead server asked for after the new one has begun.
    def agree():
        containers, others = server.containers()
        items = listed(server.api(), "/snapshots").items()
        ready = {id for id, item in items if item["status"]["state"] == "Ready"}
        return containers == dict.fromkeys(sandboxes, 1) and not others and (
            set(server.snapshot_images()) == ready)

    eventually(agree, 60, 0.2, f"containers of {sandboxes}, images of {snapshots}")


def delete_all(api):
    for path in ("/sandboxes", "/snapshots"):
        for id in listed(api, path):
            assert api.delete(f"{path}/{id}").status == 204


def rows(server):
    """Rows of everything that lives and dies with sandboxes and snapshots."""
    (path,) = [p for p in server.state.glob("*.db")]
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = [t for (t,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {t: database.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}


def test_kill_9_at_random_points_loses_nothing_and_leaves_nothing(server):
    seed = int(os.environ.get("OPENSANDBOX_TEST_SEED", random.randrange(1 << 32)))
    print(f"OPENSANDBOX_TEST_SEED={seed}")
    random_ = random.Random(seed)
    # What is made on first use and kept: the image, the agent's volume, the tables.
    with server.create() as first:
        first.sh("true")
        assert first.server.api().post(first.path("/snapshots"), {}).status == 202
        check_snapshots(server.api(), Ledger())
    delete_all(server.api())
    before, rows_before = server.census(), rows(server)

    for number in range(KILLS):
        ledger, owned = Ledger(), [[] for _ in range(WORKERS)]
        killed_at_work(server, ledger, random_, owned)
        server.start()
        api = server.api()
        sandboxes = check_sandboxes(server, api, ledger)
        snapshots = check_snapshots(api, ledger)
        if server.runtime == "docker":
            check_engine(server, sandboxes, snapshots)
        check_restorable(server, api, sorted(ledger.snapshots)[:1])
        delete_all(api)
        try:
            server.expect_census(before)
            assert rows(server) == rows_before
        except AssertionError as error:
            raise AssertionError(f"after kill {number}: {error}") from None
