"""Rows of integration/error_codes.py that need a fault, mostly of the Docker engine."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

from support.error_rows import row, volume
from support.shell import eventually


@row("P::SANDBOX_PAUSE_FAILED", 500, "docker")
def an_engine_that_cannot_pause(world):
    with world.sandbox() as path, world.engine.fails("POST", r"/containers/[^/]+/pause$", status=500):
        return world.api.post(path + "/pause")


@row("P::SANDBOX_RESUME_FAILED", 500, "docker")
def an_engine_that_cannot_resume(world):
    with world.sandbox() as path:
        assert world.api.post(path + "/pause").status == 202
        with world.engine.fails("POST", r"/containers/[^/]+/unpause$", status=500):
            return world.api.post(path + "/resume")


@row("P::SANDBOX_DELETE_FAILED", 500, "docker")
def an_engine_that_cannot_remove(world):
    with world.sandbox() as path, world.engine.fails("DELETE", "/containers/", status=500):
        return world.api.delete(path)


@row("P::SANDBOX_QUERY_FAILED", 500, "docker")
def an_engine_that_has_no_logs(world):
    with world.sandbox() as path, world.engine.fails("GET", "/containers/[^/]+/logs", status=500):
        return world.api.get(path + "/diagnostics/logs")


@row("P::SANDBOX_QUERY_FAILED", 500, "docker")
def an_engine_that_answers_garbage(world):
    with world.sandbox() as path, world.engine.fails("GET", "/containers/[^/]+/json", garbage=b"\0\1\2\r\n\r\n"):
        return world.api.get(path + "/diagnostics/inspect")


@row("P::SANDBOX_IMAGE_PULL_FAILED", 500, "docker")
def an_engine_that_cannot_pull(world):
    with world.engine.fails("POST", "/images/create", status=500, message="no space left on device"):
        return world.create(image={"uri": "nowhere.example/none:1"})


@row("P::SANDBOX_START_FAILED", 500, "docker")
def an_engine_that_cannot_start(world):
    with world.engine.fails("POST", "/containers/[^/]+/start$", status=500):
        return world.create()


@row("P::SANDBOX_START_FAILED", 500, "docker")
def an_engine_that_hangs_up(world):
    with world.engine.fails("POST", "/containers/[^/]+/start$", drop=True):
        return world.create()


@row("P::SANDBOX_IMAGE_PULL_FAILED", 500, "docker")
def an_engine_that_is_gone(world):
    with world.engine.gone():
        return world.create()


@row("P::SANDBOX_EXECD_DISTRIBUTION_FAILED", 500, "docker")
def an_engine_that_takes_no_files(world):
    # What is staged once is not staged again: the volume must be new.
    world.forget_the_agent()
    with world.engine.fails("PUT", "/containers/[^/]+/archive", status=500):
        return world.create()


@row("P::NETWORK_MODE_ENDPOINT_UNAVAILABLE", 500, "docker")
def an_endpoint_before_there_is_an_address(world):
    go = threading.Event()
    with ThreadPoolExecutor(1) as pool, ExitStack() as cleanup:
        with world.engine.fails("POST", "/containers/[^/]+/start$", hold=go) as rule:
            cleanup.callback(go.set)
            made = pool.submit(lambda: world.server.api().post("/sandboxes", world.body()))
            eventually(lambda: rule.hits, 30, 0.02, "the start of a container")
            [found] = world.api.get("/sandboxes", query={"state": "Pending"}).json["items"]
            reply = world.api.get(f"/sandboxes/{found['id']}/endpoints/44772")
            go.set()
            made = made.result(60)
    world.api.delete(f"/sandboxes/{made.json['id']}")
    return reply


@contextmanager
def snapshot_in_the_making(world):
    """A snapshot that stays Creating while it lasts."""
    go = threading.Event()
    with world.sandbox() as path, ExitStack() as cleanup:
        with world.engine.fails("POST", "/commit", hold=go) as rule:
            cleanup.callback(go.set)
            made = world.api.post(path + "/snapshots", {})
            assert made.status == 202, made
            snapshot = f"/snapshots/{made.json['id']}"
            eventually(lambda: rule.hits, 30, 0.02, "the commit of a container")
            try:
                yield snapshot
            finally:
                go.set()
                state = lambda: world.api.get(snapshot).json["status"]["state"]  # noqa: E731
                eventually(lambda: state() == "Ready", 60, 0.05, "the snapshot")
                assert world.api.delete(snapshot).status == 204


def from_snapshot(world, snapshot):
    id = snapshot.rsplit("/", 1)[1]
    return world.api.post("/sandboxes", {"snapshotId": id, "resourceLimits": {}, "timeout": 60})


@row("SNAPSHOT::NOT_READY", 409, "docker")
def a_sandbox_from_a_snapshot_in_the_making(world):
    with snapshot_in_the_making(world) as snapshot:
        return from_snapshot(world, snapshot)


@row("SNAPSHOT::INVALID_STATE", 409, "docker")
def a_removal_of_a_snapshot_in_the_making(world):
    with snapshot_in_the_making(world) as snapshot:
        return world.api.delete(snapshot)


@contextmanager
def ready_snapshot(world):
    with world.sandbox() as path:
        made = world.api.post(path + "/snapshots", {})
        assert made.status == 202, made
        snapshot = f"/snapshots/{made.json['id']}"
        state = lambda: world.api.get(snapshot).json["status"]["state"]  # noqa: E731
        eventually(lambda: state() == "Ready", 60, 0.05, "the snapshot")
    try:
        yield snapshot
    finally:
        world.api.delete(snapshot)


@row("SNAPSHOT::DELETE_CONFLICT", 409, "docker")
def a_removal_of_a_snapshot_in_use(world):
    with ready_snapshot(world) as snapshot:
        made = from_snapshot(world, snapshot)
        assert made.status == 202, made
        try:
            return world.api.delete(snapshot)
        finally:
            world.api.delete(f"/sandboxes/{made.json['id']}")


@row("SNAPSHOT::INVALID_RESTORE_CONFIG", 409)
def a_snapshot_that_lost_what_it_refers_to(world):
    with ready_snapshot(world) as snapshot:
        id = snapshot.rsplit("/", 1)[1]
        world.server.stop()
        with closing(sqlite3.connect(world.database)) as store, store:
            [reference] = store.execute("SELECT reference FROM snapshots WHERE id = ?", (id,)).fetchone()
            store.execute("UPDATE snapshots SET reference = '' WHERE id = ?", (id,))
        world.restart()
        reply = from_snapshot(world, snapshot)
        world.server.stop()
        with closing(sqlite3.connect(world.database)) as store, store:
            store.execute("UPDATE snapshots SET reference = ? WHERE id = ?", (reference, id))
        world.restart()
        return reply


# --- volumes of the engine ------------------------------------------------------------------------


@row("VOLUME::PVC_NOT_FOUND", 400, "docker")
def a_volume_that_nobody_made(world):
    return world.create(volumes=volume(pvc={"claimName": "none", "createIfNotExists": False}))


@row("VOLUME::INVALID_PVC_NAME", 400, "docker")
def a_volume_of_the_servers_own(world):
    return world.create(volumes=volume(pvc={"claimName": "opensandbox-agent-1"}))


@row("VOLUME::INVALID_MOUNT_PATH", 400, "docker")
def a_mount_path_that_binds_cannot_say(world):
    return world.create(volumes=[{"name": "v", "mountPath": "/a:b", "pvc": {"claimName": "x"}}])


@row("VOLUME::PVC_SUBPATH_UNSUPPORTED_DRIVER", 400, "docker")
def a_sub_path_of_a_foreign_driver(world):
    found = {"Name": "far", "Driver": "nfs", "Mountpoint": "", "Labels": {}, "Scope": "global", "Options": {}}
    with world.engine.fails("GET", "/volumes/far", body=found):
        return world.create(volumes=volume(pvc={"claimName": "far"}, subPath="a"))


@row("VOLUME::PVC_INSPECT_FAILED", 500, "docker")
def an_engine_that_cannot_say_what_a_volume_is(world):
    with world.engine.fails("GET", "/volumes/far", status=500):
        return world.create(volumes=volume(pvc={"claimName": "far"}))


@row("VOLUME::HOST_PATH_CREATE_FAILED", 500)
def a_directory_below_a_file(world):
    world.allowed.mkdir(exist_ok=True)
    (world.allowed / "file").write_text("")
    return world.create(volumes=volume(host={"path": str(world.allowed / "file" / "directory")}))


def bucket(**fields):
    return volume(ossfs={"bucket": "abc", "endpoint": "oss.example.com", "accessKeyId": "i",
                         "accessKeySecret": "s", **fields})


@row("VOLUME::INVALID_OSSFS_BUCKET", 400)
def a_bucket_that_is_no_name(world):
    return world.create(volumes=bucket(bucket="A_B"))


@row("VOLUME::INVALID_OSSFS_ENDPOINT", 400)
def an_endpoint_of_blanks(world):
    return world.create(volumes=bucket(endpoint=" "))


@row("VOLUME::INVALID_OSSFS_OPTION", 400)
def an_option_that_is_a_command(world):
    return world.create(volumes=bucket(options=["a;b"]))


@row("VOLUME::INVALID_OSSFS_MOUNT_ROOT", 500, "docker")
def buckets_below_a_file(world):
    world.buckets.write_text("")
    try:
        return world.create(volumes=bucket())
    finally:
        world.buckets.unlink()


@row("VOLUME::OSSFS_MOUNT_FAILED", 500)
def a_machine_without_ossfs(world):
    return world.create(volumes=bucket())
