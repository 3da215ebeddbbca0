"""The Docker runtime before a real engine: whole lives, what it is asked for, what goes wrong."""

import json
import os
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from support.docker_server import DockerServer
from support.dockerd import BUSYBOX, Dockerd
from support.server import Sandbox
from support.shell import eventually, run

FAKE_OSSFS = """#!/bin/sh
# Stands in for the object store's own tool: mounts a memory file system where the bucket would be.
echo "$0 $*" >> "$FAKE_OSSFS_LOG"
for last; do case "$last" in passwd_file=*) cat "${last#passwd_file=}" >> "$FAKE_OSSFS_LOG";; esac; done
[ -e "$FAKE_OSSFS_LOG.broken" ] && { echo "no such bucket" >&2; exit 1; }
exec mount -t tmpfs -o size=1m bucket "$2"
"""


class Busybox(DockerServer):
    image = BUSYBOX


@pytest.fixture(scope="module")
def boxes(scratch, docker):
    """Makes servers; each leaves nothing at the engine but the agent's volume."""
    servers = []
    with ExitStack() as stack:

        def make(name="docker", **sections):
            server = Busybox(scratch / f"{name}-{len(servers)}", docker, sections=sections)
            servers.append(server)
            # Each is ended also when the end of another fails.
            stack.callback(server.destroy)
            return server

        yield make
    assert not servers[0].containers()[0]


@pytest.fixture(scope="module")
def server(boxes, scratch):
    shared = scratch / "shared"
    (shared / "inside").mkdir(parents=True)
    (shared / "escape").symlink_to("/etc")
    return boxes(storage={"allowed_host_paths": [str(shared)]}).start()


@pytest.fixture(scope="module")
def shared(scratch):
    return scratch / "shared"


def inspect(server, sandbox):
    name = sandbox if isinstance(sandbox, str) else f"sandbox-{sandbox.id}"
    return json.loads(server.docker.docker("inspect", name).stdout)[0]


def state_of(sandbox):
    reply = sandbox.get()
    return reply.json["status"]["state"] if reply.status == 200 else reply.status


def create(server, **fields):
    body = {"image": {"uri": server.image}, "entrypoint": ["sleep", "1000"], "timeout": 600,
            "resourceLimits": {}, **fields}
    return server.api(timeout=120).post("/sandboxes", {k: v for k, v in body.items() if v is not None})


def refused(server, status, code, **fields):
    reply = create(server, **fields)
    assert (reply.status, reply.json.get("code")) == (status, code), reply
    return reply.json["message"]


def test_create_runs_commands_at_once_and_delete_leaves_nothing(server):
    before = server.count()
    with server.create(metadata={"team": "x"}, env={"GREETING": "hello"}) as sandbox:
        assert sandbox.created["status"]["state"] == "Running"
        assert sandbox.sh("echo $GREETING") == "hello\n"
        assert sandbox.get().json["image"] == {"uri": BUSYBOX}
        labels = inspect(server, sandbox)["Config"]["Labels"]
        assert labels["opensandbox.io/id"] == sandbox.id and labels["team"] == "x"
        assert labels["opensandbox.io/expires-at"].endswith("+00:00")
        # The token is hidden from what runs inside.
        assert "EXECD_ACCESS_TOKEN" not in sandbox.sh("env")
        assert sandbox.connect(proxy=True).sh("echo proxied") == "proxied\n"
        sandbox.delete()
        assert sandbox.get().status == 404
    after = server.count()
    assert after["containers"] == before["containers"]


def test_the_agent_is_staged_once(server):
    with server.create(), server.create():
        volumes = server.docker.docker("volume", "ls", "-q").stdout.split()
        assert len([v for v in volumes if v.startswith("opensandbox-agent-")]) == 2
        assert server.log.read_text().count("agent staged") <= 1


def test_a_user_who_is_not_root_is_served_too(server):
    name = f"as-nobody:{uuid.uuid4().hex[:8]}"
    made = server.docker.docker("create", BUSYBOX, "true").stdout.strip()
    server.docker.docker("commit", "-c", "USER 1000", made, name)
    server.docker.docker("rm", made)
    try:
        with server.create(image={"uri": name}) as sandbox:
            assert sandbox.sh("id -u") == "1000\n"
    finally:
        server.docker.docker("rmi", name)


def test_limits_and_hardening_reach_the_engine(server):
    with server.create(resourceLimits={"cpu": "500m", "memory": "64Mi"}) as sandbox:
        host = inspect(server, sandbox)["HostConfig"]
        assert (host["NanoCpus"], host["Memory"], host["PidsLimit"]) == (500_000_000, 64 << 20, 4096)
        assert "no-new-privileges=true" in host["SecurityOpt"]
        assert "CAP_NET_RAW" in [c if c.startswith("CAP_") else f"CAP_{c}" for c in host["CapDrop"]]
        assert sandbox.agent.get("/metrics").json["mem_total_mib"] == pytest.approx(64, abs=1)


def test_endpoints_are_published_ports(server):
    with server.create() as sandbox:
        agent, http, other = (sandbox.endpoint(port)["endpoint"] for port in (44772, 8080, 3000))
        labels = inspect(server, sandbox)["Config"]["Labels"]
        published = f"127.0.0.1:{labels['opensandbox.io/embedding-proxy-port']}"
        assert agent == f"{published}/proxy/44772"
        assert http == f"127.0.0.1:{labels['opensandbox.io/http-port']}"
        assert other == f"{published}/proxy/3000"
        assert 40000 <= int(published.split(":")[1]) <= 60000
        assert sandbox.endpoint(18080)["endpoint"] == f"{published}/proxy/18080"


def test_the_end_of_the_entrypoint_is_the_sandboxs_end(server):
    for code, state in ((0, "Terminated"), (7, "Failed")):
        with server.create(entrypoint=["sh", "-c", f"exit {code}"]) as sandbox:
            eventually(lambda: state_of(sandbox) == state, 20, what=f"{state} after {code}")
            if code:
                assert "7" in sandbox.get().json["status"]["message"]


def test_an_entrypoint_that_is_not_there_fails_the_create(server):
    before = server.count()
    message = refused(server, 500, "DOCKER::SANDBOX_START_FAILED", entrypoint=["/no/such/program"])
    assert "/no/such/program" in message
    assert server.count()["containers"] == before["containers"]


def test_pause_and_resume(server):
    with server.create() as sandbox:
        api = server.api()
        assert api.post(sandbox.path("/pause")).status == 202
        assert state_of(sandbox) == "Paused"
        assert inspect(server, sandbox)["State"]["Paused"]
        again = api.post(sandbox.path("/pause"))
        assert (again.status, again.json["code"]) == (409, "DOCKER::SANDBOX_NOT_RUNNING")
        assert api.post(sandbox.path("/resume")).status == 202
        assert sandbox.sh("echo back") == "back\n"
        again = api.post(sandbox.path("/resume"))
        assert (again.status, again.json["code"]) == (409, "DOCKER::SANDBOX_NOT_PAUSED")


def test_what_somebody_does_by_hand_is_noticed(server):
    with server.create() as sandbox:
        name = f"sandbox-{sandbox.id}"
        server.docker.docker("pause", name)
        eventually(lambda: state_of(sandbox) == "Paused", 20, what="the pause by hand")
        server.docker.docker("unpause", name)
        eventually(lambda: state_of(sandbox) == "Running", 20, what="the resumption by hand")
        server.docker.docker("kill", name)
        eventually(lambda: state_of(sandbox) == "Failed", 20, what="the end by hand")
        assert server.api().get(sandbox.path("/endpoints/44772")).status == 200
    with server.create() as sandbox:
        server.docker.docker("rm", "-f", f"sandbox-{sandbox.id}")
        eventually(lambda: state_of(sandbox) not in ("Running", "Paused"), 20, what="the removal by hand")


def wait_ready(server, snapshot):
    def ready():
        status = server.api().get(f"/snapshots/{snapshot}").json["status"]
        assert status["state"] in ("Creating", "Ready"), status
        return status["state"] == "Ready"

    eventually(ready, 60, 0.1, "the snapshot")


def test_a_snapshot_starts_new_sandboxes(server):
    with server.create(env={"SECRET_OF_SOURCE": "1"}) as source:
        source.sh("echo kept > /var/file")
        reply = server.api().post(source.path("/snapshots"), {"name": "first"})
        assert reply.status == 202
        snapshot = reply.json["id"]
        wait_ready(server, snapshot)
        assert state_of(source) == "Running"
        source.delete()
    image = json.loads(server.docker.docker("image", "inspect", f"opensandbox-snapshots:{snapshot}").stdout)[0]
    reserved = {k: v for k, v in image["Config"]["Labels"].items() if k.startswith("opensandbox.io/")}
    assert {k for k, v in reserved.items() if v} == {"opensandbox.io/snapshot-server"}
    assert all(not e.startswith("EXECD_ACCESS_TOKEN=") or e == "EXECD_ACCESS_TOKEN="
               for e in image["Config"]["Env"])
    body = {"snapshotId": snapshot, "resourceLimits": {}, "timeout": 600}
    reply = server.api().post("/sandboxes", body)
    assert reply.status == 202, reply
    with Sandbox(server, reply.json) as copy:
        assert copy.sh("cat /var/file") == "kept\n"
        shown = copy.get().json
        assert shown["snapshotId"] == snapshot and "image" not in shown
        busy = server.api().delete(f"/snapshots/{snapshot}")
        assert (busy.status, busy.json["code"]) == (409, "SNAPSHOT::DELETE_CONFLICT"), busy
    assert server.api().delete(f"/snapshots/{snapshot}").status == 204
    assert snapshot not in server.snapshot_images()


def test_volumes_of_every_kind(server, shared):
    claim = f"claim-{uuid.uuid4().hex[:8]}"
    volumes = [
        {"name": "host", "mountPath": "/host", "host": {"path": f"{shared}/new"}, "subPath": "deep"},
        {"name": "ro", "mountPath": "/ro", "host": {"path": f"{shared}/inside"}, "readOnly": True},
        {"name": "claim", "mountPath": "/claim",
         "pvc": {"claimName": claim, "deleteOnSandboxTermination": True}},
    ]
    (shared / "inside/file").write_text("there")
    with server.create(volumes=volumes) as sandbox:
        sandbox.sh("echo out > /host/file; echo kept > /claim/file")
        assert (shared / "new/deep/file").read_text() == "out\n"
        assert sandbox.sh("cat /ro/file") == "there"
        assert sandbox.run("touch /ro/x").code != 0
        mine = json.loads(server.docker.docker("volume", "inspect", claim).stdout)[0]
        assert mine["Labels"] == {"opensandbox.io/volume-managed-by": "server"}
    assert server.docker.docker("volume", "inspect", claim, check=False).returncode != 0


def test_a_claim_outlives_the_sandbox_unless_it_was_made_for_it(server):
    claim = f"claim-{uuid.uuid4().hex[:8]}"
    server.docker.docker("volume", "create", claim)
    try:
        for sub, text in (("", "a"), ("", "b")):
            volume = {"name": "v", "mountPath": "/v", "subPath": sub,
                      "pvc": {"claimName": claim, "deleteOnSandboxTermination": True}}
            with server.create(volumes=[volume]) as sandbox:
                sandbox.sh(f"echo {text} >> /v/file")
        with server.create(volumes=[{"name": "v", "mountPath": "/v", "subPath": "x/y",
                                     "pvc": {"claimName": claim}}]) as sandbox:
            sandbox.sh("echo sub > /v/file")
        mount = json.loads(server.docker.docker("volume", "inspect", claim).stdout)[0]["Mountpoint"]
        assert run("cat", f"{mount}/file").stdout == "a\nb\n"
        assert run("cat", f"{mount}/x/y/file").stdout == "sub\n"
    finally:
        server.docker.docker("volume", "rm", claim)


def test_volumes_that_are_refused(server, shared):
    def volume(code, **fields):
        refused(server, 400, code, volumes=[{"name": "v", "mountPath": "/v", **fields}])

    before = server.count()
    volume("VOLUME::HOST_PATH_NOT_ALLOWED", host={"path": "/etc"})
    volume("VOLUME::HOST_PATH_NOT_ALLOWED", host={"path": f"{shared}/escape"})
    volume("VOLUME::INVALID_HOST_PATH", host={"path": f"{shared}/../x"})
    volume("VOLUME::INVALID_SUB_PATH", host={"path": str(shared)}, subPath="../x")
    volume("VOLUME::PVC_NOT_FOUND", pvc={"claimName": "none-such", "createIfNotExists": False})
    agents = [v for v in server.docker.docker("volume", "ls", "-q").stdout.split()
              if v.startswith("opensandbox-agent-")]
    volume("VOLUME::INVALID_PVC_NAME", pvc={"claimName": agents[0]})
    bucket = {"bucket": "my-bucket", "endpoint": "oss.test", "accessKeyId": "a", "accessKeySecret": "b"}
    volume("VOLUME::INVALID_OSSFS_BUCKET", ossfs={**bucket, "bucket": "-nope-"})
    volume("VOLUME::INVALID_OSSFS_OPTION", ossfs={**bucket, "options": ["-o x"]})
    # What a request that failed has made is undone.
    claim = f"claim-{uuid.uuid4().hex[:8]}"
    refused(server, 500, "DOCKER::SANDBOX_START_FAILED", entrypoint=["/no/such/program"],
            volumes=[{"name": "v", "mountPath": "/v", "pvc": {"claimName": claim}}])
    assert server.docker.docker("volume", "inspect", claim, check=False).returncode != 0
    after = server.count()
    assert after["containers"] == before["containers"] and after["volumes"] == before["volumes"]


def test_buckets_are_mounted_once_and_unmounted_by_the_last(boxes, scratch, docker):
    tools = scratch / "ossfs-tools"
    tools.mkdir()
    (tools / "ossfs").write_text(FAKE_OSSFS)
    (tools / "ossfs").chmod(0o755)
    # The engine sees this host's mounts only where they are shared with it.
    root = docker.directory / "buckets"
    root.mkdir()
    run("mount", "--bind", root, root)
    run("mount", "--make-shared", root)
    log = scratch / "ossfs.log"
    server = boxes("buckets", storage={"ossfs_mount_root": str(root)})
    server.variables |= {"FAKE_OSSFS_LOG": str(log), "PATH": f"{tools}:{os.environ['PATH']}"}
    server.start()
    volume = {"name": "b", "mountPath": "/b", "subPath": "in",
              "ossfs": {"bucket": "my-bucket", "endpoint": "oss.test", "version": "1.0",
                        "accessKeyId": "key", "accessKeySecret": "secret"}}
    mounted = lambda: str(root / "my-bucket/in") in run("cat", "/proc/self/mountinfo").stdout
    try:
        first, second = server.create(volumes=[volume]), server.create(volumes=[volume])
        lines = log.read_text().splitlines()
        assert lines[0].split()[1:4] == ["my-bucket:/in", str(root / "my-bucket/in"), "-o"]
        assert "url=https://oss.test" in lines[0] and lines[1] == "my-bucket:key:secret"
        assert len([line for line in lines if "passwd_file" in line]) == 1
        labels = inspect(server, first)["Config"]["Labels"]
        assert json.loads(labels["opensandbox.io/ossfs-mounts"]) == [str(root / "my-bucket/in")]
        other = {**volume, "ossfs": {**volume["ossfs"], "accessKeySecret": "guess"}}
        refused(server, 500, "VOLUME::OSSFS_MOUNT_FAILED", volumes=[other])
        first.delete()
        assert mounted()
        server.kill()
        server.start()
        second.delete()
        assert not mounted()
        (scratch / "ossfs.log.broken").touch()
        assert "no such bucket" in refused(server, 500, "VOLUME::OSSFS_MOUNT_FAILED", volumes=[volume])
    finally:
        server.destroy()
        run("umount", root / "my-bucket/in", check=False)
        run("umount", root)


def test_bad_input_has_the_contracts_codes(server):
    assert "no-such-image" in refused(server, 500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
                                      image={"uri": "127.0.0.1:1/no-such-image:1"})
    refused(server, 400, "SANDBOX::INVALID_PARAMETER", platform={"os": "windows", "arch": "amd64"})
    refused(server, 400, "SANDBOX::INVALID_PARAMETER",
            lifecycle={"preStart": {"command": ["true"], "timeoutSeconds": 5}})
    refused(server, 400, "SANDBOX::UNSUPPORTED_POOL_REF", extensions={"poolRef": "p"})
    refused(server, 400, "SANDBOX::INVALID_PARAMETER", secureAccess=True)
    refused(server, 404, "SNAPSHOT::NOT_FOUND", image=None, snapshotId=str(uuid.uuid4()))
    unknown = f"/sandboxes/{uuid.uuid4()}"
    for reply in (server.api().get(unknown), server.api().delete(unknown),
                  server.api().post(unknown + "/pause"), server.api().post(unknown + "/resume")):
        assert (reply.status, reply.json["code"]) == (404, "DOCKER::SANDBOX_NOT_FOUND")


def test_a_network_that_does_not_exist_is_named(boxes):
    server = boxes("network", docker={"network_mode": "no-such-network"}).start()
    assert "no-such-network" in refused(server, 400, "SANDBOX::INVALID_PARAMETER")
    server.stop()


def test_a_network_of_ones_own(boxes, docker):
    docker.docker("network", "create", "osb-own")
    try:
        server = boxes("own", docker={"network_mode": "osb-own"}).start()
        with server.create() as sandbox:
            assert sandbox.sh("echo works") == "works\n"
            policy = {"defaultAction": "deny"}
            assert "bridge" in refused(server, 400, "SANDBOX::INVALID_PARAMETER", networkPolicy=policy)
            assert "osb-own" in inspect(server, sandbox)["NetworkSettings"]["Networks"]
        server.destroy()
    finally:
        docker.docker("network", "rm", "osb-own")


def test_the_hosts_network_holds_one_sandbox(boxes):
    server = boxes("host", docker={"network_mode": "host"}).start()
    with server.create() as sandbox:
        assert inspect(server, sandbox)["HostConfig"]["NetworkMode"] == "host"
        assert sandbox.endpoint(44772)["endpoint"].endswith(":44772")
        assert sandbox.sh("echo works") == "works\n"
        with pytest.raises(AssertionError, match="44772"):
            server.create()
        assert sandbox.sh("echo still") == "still\n"
    with server.create() as sandbox:
        assert sandbox.sh("echo again") == "again\n"
    server.destroy()


def test_a_taken_port_is_no_failure(boxes):
    server = boxes("ports", docker={"port_range_min": 47000, "port_range_max": 47099}).start()
    taken = []
    try:
        for port in range(47000, 47080):
            try:
                taken.append(socket.create_server(("127.0.0.1", port)))
            except OSError:
                pass
        with server.create() as sandbox:
            assert sandbox.sh("echo works") == "works\n"
    finally:
        for listener in taken:
            listener.close()


def test_what_lives_is_found_again_after_a_kill(boxes):
    server = boxes("kill").start()
    kept, paused, ends = server.create(), server.create(), server.create(entrypoint=["sleep", "1000"])
    endpoint = kept.endpoint(44772)
    assert server.api().post(paused.path("/pause")).status == 202
    server.kill()
    server.docker.docker("kill", f"sandbox-{ends.id}")
    # One that nobody has written down.
    orphan = str(uuid.uuid4())
    labels = inspect(server, kept)["Config"]["Labels"]
    server.docker.docker("run", "-d", "--name", f"sandbox-{orphan}", "--label", f"opensandbox.io/id={orphan}",
                         "--label", f"opensandbox.io/server={labels['opensandbox.io/server']}",
                         BUSYBOX, "sleep", "1000")
    # One of another server on the same engine.
    foreign = str(uuid.uuid4())
    server.docker.docker("run", "-d", "--name", f"sandbox-{foreign}", "--label", f"opensandbox.io/id={foreign}",
                         "--label", f"opensandbox.io/server={uuid.uuid4()}", BUSYBOX, "sleep", "1000")
    server.start()
    try:
        assert kept.endpoint(44772) == endpoint
        assert kept.sh("echo alive") == "alive\n"
        assert state_of(paused) == "Paused"
        assert server.api().post(paused.path("/resume")).status == 202
        assert paused.sh("echo alive") == "alive\n"
        eventually(lambda: state_of(ends) == "Failed", 20, what="the end while no server ran")
        gone = lambda: server.docker.docker("inspect", f"sandbox-{orphan}", check=False).returncode != 0
        eventually(gone, 20, what="the removal of the orphan")
        assert server.api().get(f"/sandboxes/{foreign}").status == 404
        assert inspect(server, f"sandbox-{foreign}")["State"]["Running"]
    finally:
        server.docker.docker("rm", "-f", f"sandbox-{foreign}")
        server.destroy()


def test_sandboxes_of_the_published_server_are_taken_over(boxes):
    server = boxes("adopt").start()
    server.stop()
    with_expiry, by_hand, unclear = (str(uuid.uuid4()) for _ in range(3))

    def leave(id, *labels):
        flags = [f for label in labels for f in ("--label", f"opensandbox.io/{label}")]
        server.docker.docker("run", "-d", "--name", f"sandbox-{id}", "--label", f"opensandbox.io/id={id}",
                             "--label", "team=x", *flags, BUSYBOX, "sleep", "1000")

    leave(with_expiry, "expires-at=2099-01-01T00:00:00.000000+00:00", "embedding-proxy-port=41234")
    leave(by_hand, "manual-cleanup=true", "extensions.color=red")
    leave(unclear)
    server.start()
    try:
        shown = server.api().get(f"/sandboxes/{with_expiry}").json
        assert shown["expiresAt"].startswith("2099-01-01T00:00:00") and shown["metadata"] == {"team": "x"}
        assert shown["image"] == {"uri": BUSYBOX} and shown["status"]["state"] == "Running"
        assert server.api().get(f"/sandboxes/{with_expiry}/endpoints/44772").json["endpoint"].endswith(":41234/proxy/44772")
        other = server.api().get(f"/sandboxes/{by_hand}").json
        assert "expiresAt" not in other
        assert other["extensions"] == {"opensandbox.extensions.color": "red"}
        assert server.api().get(f"/sandboxes/{unclear}").status == 404
        assert server.api().delete(f"/sandboxes/{with_expiry}").status == 204
        assert server.docker.docker("inspect", f"sandbox-{with_expiry}", check=False).returncode != 0
        assert inspect(server, f"sandbox-{unclear}")["State"]["Running"]
    finally:
        server.docker.docker("rm", "-f", f"sandbox-{unclear}", check=False)
        server.destroy()


def test_diagnostics_show_no_secret(server):
    with server.create(entrypoint=["sh", "-c", "echo from the entrypoint; sleep 1000"],
                       env={"MY_PASSWORD": "hunter2"}) as sandbox:
        get = lambda path, **query: server.api().get(sandbox.path("/diagnostics" + path), query=query)
        eventually(lambda: "from the entrypoint" in get("/logs", scope="container").json["content"], 20)
        inspected = get("/inspect").text
        assert f"sandbox-{sandbox.id}" in inspected and "hunter2" not in inspected
        assert sandbox.endpoint(44772)["headers"]["X-EXECD-ACCESS-TOKEN"] not in inspected


def test_a_burst_is_served(server):
    with ThreadPoolExecutor(5) as threads:
        made = list(threads.map(lambda _: server.create(), range(5)))
    try:
        assert len({s.endpoint(44772)["endpoint"] for s in made}) == 5
        assert [s.sh("echo works") for s in made] == ["works\n"] * 5
    finally:
        for sandbox in made:
            sandbox.delete()


def test_without_an_engine_the_server_does_not_start(boxes):
    server = boxes("none")
    server.variables = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
    with pytest.raises(AssertionError) as failed:
        server.start()
    assert "/nowhere/docker.sock" in str(failed.value)
    assert server.tail().count("\n") <= 3


def test_egress_needs_an_image_that_answers(boxes):
    """The sidecar's place is composed here; what it does is its own matter."""
    server = boxes("egress", egress={"image": BUSYBOX, "readiness_timeout_seconds": 2}).start()
    before = server.count()
    # This image's command ends at once: without a guard there is no sandbox, and nothing is left.
    message = refused(server, 500, "DOCKER::SANDBOX_START_FAILED", networkPolicy={"defaultAction": "deny"})
    assert "egress sidecar" in message
    after = server.count()
    assert after["containers"] == before["containers"] and after["volumes"] == before["volumes"]


def test_a_sandbox_with_a_policy_lives_behind_its_sidecar(boxes, docker):
    made = docker.docker("create", BUSYBOX, "true").stdout.strip()
    serve = 'CMD ["sh", "-c", "mkdir -p /www; echo ok > /www/healthz; exec httpd -f -p 18080 -h /www"]'
    docker.docker("commit", "-c", serve, made, "guard:1")
    docker.docker("rm", made)
    server = boxes("guard", egress={"image": "guard:1"}).start()
    before = server.count()
    with server.create(networkPolicy={"defaultAction": "deny", "egress": []},
                       env={"OPENSANDBOX_EGRESS_LOG_LEVEL": "debug"}) as sandbox:
        assert sandbox.sh("echo works") == "works\n"
        main, guard = inspect(server, sandbox), inspect(server, f"sandbox-egress-{sandbox.id}")
        assert main["HostConfig"]["NetworkMode"] == f"container:{guard['Id']}"
        assert "NET_ADMIN" in str(main["HostConfig"]["CapDrop"])
        assert "OPENSANDBOX_EGRESS_LOG_LEVEL=debug" in guard["Config"]["Env"]
        assert "OPENSANDBOX_EGRESS_LOG_LEVEL" not in sandbox.sh("env")
        token = [e for e in guard["Config"]["Env"] if e.startswith("OPENSANDBOX_EGRESS_TOKEN=")]
        headers = sandbox.endpoint(18080)["headers"]
        assert headers["OPENSANDBOX-EGRESS-AUTH"] == token[0].split("=", 1)[1]
        api = server.api()
        assert api.post(sandbox.path("/pause")).status == 202
        assert inspect(server, f"sandbox-egress-{sandbox.id}")["State"]["Paused"]
        assert api.post(sandbox.path("/resume")).status == 202
        assert sandbox.sh("echo again") == "again\n"
        sandbox.delete()
    after = server.count()
    assert after["containers"] == before["containers"] and after["volumes"] == before["volumes"]
    server.destroy()
    docker.docker("rmi", "guard:1")


class TestEngineFaults:
    """On an engine of their own, which is stopped and started."""

    @pytest.fixture(scope="class")
    def engine(self, docker, scratch):
        with Dockerd(reachable=True) as engine:
            engine.import_tree(scratch / "busybox-of-docker", BUSYBOX)
            yield engine

    @pytest.fixture
    def lone(self, engine, scratch):
        server = Busybox(scratch / f"faults-{uuid.uuid4().hex[:8]}", engine)
        server.start()
        yield server
        if engine.process.poll() is not None:
            engine.start()
        server.destroy()
        assert not server.containers()[0]

    def test_stopped_in_mid_create(self, lone, engine):
        lone.create().delete()  # the agent is staged
        replies = []
        threads = [threading.Thread(target=lambda: replies.append(create(lone))) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.15)
        engine.stop()
        for thread in threads:
            thread.join(60)
        assert len(replies) == 3
        for reply in replies:
            assert reply.status in (202, 500), reply
            if reply.status == 500:
                assert reply.json["code"].startswith("DOCKER::"), reply
        made = {r.json["id"] for r in replies if r.status == 202}
        engine.start()
        # Exactly what was reported created may be left.
        eventually(lambda: set(lone.containers()[0]) <= made, 60, 0.2, "the removal of half-made containers")
        with lone.create() as sandbox:
            assert sandbox.sh("echo works again") == "works again\n"

    def test_restarted(self, lone, engine):
        sandbox = lone.create()
        engine.stop()
        down = create(lone)
        assert down.status == 500 and down.json["code"].startswith("DOCKER::"), down
        failed = lone.api().delete(sandbox.path())
        assert (failed.status, failed.json["code"]) == (500, "DOCKER::SANDBOX_DELETE_FAILED")
        engine.start()
        # An engine that stops ends its containers; the server hears of it when it is back.
        eventually(lambda: state_of(sandbox) in ("Failed", "Terminated"), 30, 0.1, "the news of the end")
        with lone.create() as fresh:
            assert fresh.sh("echo works") == "works\n"
        assert lone.api().delete(sandbox.path()).status == 204

    def test_slow(self, lone, engine):
        lone.create().delete()
        engine.pause()
        replies = []
        thread = threading.Thread(target=lambda: replies.append(create(lone)))
        thread.start()
        time.sleep(0.5)
        # Nothing else waits for the engine.
        assert lone.api(timeout=5).get("/sandboxes").status == 200
        engine.resume()
        thread.join(60)
        assert replies[0].status == 202
        assert lone.api().delete(f"/sandboxes/{replies[0].json['id']}").status == 204
