"""The runtime `kubernetes` and the controller before a real cluster of one node: both come to the API
server with the permissions of their manifests and no others."""

import json
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.kubernetes.api import GROUP
from support.kubernetes.cluster import Cluster
from support.client import Http
from support.kubernetes.images import BUSYBOX, OPENSANDBOX, PAUSE
from support.kubernetes.served import ClusterServer, Controller, apply_manifests
from support.server import EXECUTABLE, ROOT, Sandbox
from support.shell import eventually, run

SMALL = {"cpu": "50m", "memory": "64Mi"}
SPACE = "sandboxes"


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        cluster.accounts = apply_manifests(cluster, SPACE)
        yield cluster


@pytest.fixture(scope="module")
def controller(cluster, scratch):
    controller = Controller(cluster, scratch / "controller", kubeconfig=cluster.accounts["controller"]).start()
    yield controller
    controller.stop()


def serve(cluster, directory, space=SPACE, **options):
    return ClusterServer(directory, cluster, space, kubeconfig=cluster.accounts["server"], **options)


@pytest.fixture(scope="module")
def server(cluster, controller, scratch):
    server = serve(cluster, scratch / "kubernetes")
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture
def space(cluster):
    """A namespace of the test's own."""
    name = cluster.api.make_space("s" + uuid.uuid4().hex[:8])
    yield name
    cluster.api.delete(f"/api/v1/namespaces/{name}")


def create(server, **fields):
    return server.create(**{"resourceLimits": SMALL, **fields})


def refused(server, **fields):
    body = {"image": {"uri": server.image}, "entrypoint": ["tail", "-f", "/dev/null"], "resourceLimits": SMALL,
            "timeout": 600, **fields}
    return server.api().post("/sandboxes", body)


def pod_of(cluster, sandbox, space=SPACE):
    return cluster.api.read(f"/api/v1/namespaces/{space}/pods/{sandbox.id}-0")


def claim_of(cluster, name, space=SPACE):
    return cluster.api.get(f"/api/v1/namespaces/{space}/persistentvolumeclaims/{name}")


# The life of a sandbox.


def test_a_sandbox_lives_and_leaves_nothing(cluster, server):
    sandbox = create(server, metadata={"team": "a"}, env={"COLOUR": "blue"},
                     extensions={"opensandbox.extensions.note": "kept"})
    try:
        shown = sandbox.get().json
        assert shown["status"]["state"] == "Running"
        assert shown["image"] == {"uri": BUSYBOX}
        assert shown["entrypoint"] == ["tail", "-f", "/dev/null"]
        assert shown["metadata"] == {"team": "a"}
        assert shown["extensions"] == {"opensandbox.extensions.note": "kept"}
        assert sandbox.sh("echo $COLOUR $OPENSANDBOX_ID").split() == ["blue", sandbox.id]
        listed = server.api().get("/sandboxes", query={"metadata": "team=a"}).json["items"]
        assert [item["id"] for item in listed] == [sandbox.id]
        pod = pod_of(cluster, sandbox)
        assert pod["metadata"]["labels"]["opensandbox.io/id"] == sandbox.id
        assert pod["metadata"]["labels"]["team"] == "a"
        assert pod["spec"]["automountServiceAccountToken"] is False
    finally:
        sandbox.delete()
    assert sandbox.get().status == 404
    cluster.api.nothing_of(SPACE)


def test_metadata_and_expiry_are_changed_in_the_object(cluster, server):
    with create(server, metadata={"a": "1", "b": "2"}) as sandbox:
        patched = server.api().patch(sandbox.path("/metadata"), {"a": None, "c": "3"}).json
        assert patched["metadata"] == {"b": "2", "c": "3"}
        labels = cluster.api.batch(SPACE, sandbox.id)["metadata"]["labels"]
        assert "a" not in labels and labels["c"] == "3"
        later = "2030-01-02T03:04:05Z"
        renewed = server.api().post(sandbox.path("/renew-expiration"), {"expiresAt": later})
        assert renewed.json["expiresAt"] == later
        assert cluster.api.batch(SPACE, sandbox.id)["spec"]["expireTime"] == later
        refusal = server.api().patch(sandbox.path("/metadata"), {"opensandbox.io/id": "x"})
        assert refusal.status == 400


def test_a_sandbox_without_expiry_has_none_to_renew(cluster, server):
    with create(server, timeout=None) as sandbox:
        assert "expiresAt" not in sandbox.get().json
        assert "expireTime" not in cluster.api.batch(SPACE, sandbox.id)["spec"]
        refusal = server.api().post(sandbox.path("/renew-expiration"), {"expiresAt": "2030-01-01T00:00:00Z"})
        assert (refusal.status, refusal.json["code"]) == (409, "KUBERNETES::INVALID_EXPIRATION")


def test_the_controller_ends_what_has_expired(cluster, server, controller):
    sandbox = create(server)
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
    assert server.api().post(sandbox.path("/renew-expiration"), {"expiresAt": soon}).status == 200
    eventually(lambda: sandbox.get().status == 404, 30, 0.1, "the end of an expired sandbox")
    cluster.api.nothing_of(SPACE)


def test_texts_are_not_expanded_by_the_kubelet(server):
    texts = {"A": "$(HOME)", "B": "$$(HOME)", "C": "a$b$$c", "D": "$"}
    entrypoint = ["sh", "-c", "echo \"$1\" > /tmp/word; exec tail -f /dev/null", "-", "$(HOME) $$(PATH)"]
    with create(server, env=texts, entrypoint=entrypoint) as sandbox:
        for name, text in texts.items():
            assert sandbox.sh(f"printf %s \"${name}\"") == text
        assert sandbox.sh("cat /tmp/word") == "$(HOME) $$(PATH)\n"
        assert sandbox.get().json["entrypoint"] == entrypoint


def test_ports_are_reached_at_the_pod_and_through_the_server(cluster, server):
    with create(server) as sandbox:
        sandbox.sh("mkdir /www && echo hello > /www/index.html && (httpd -p 8080 -h /www)")
        address = pod_of(cluster, sandbox)["status"]["podIP"]
        assert sandbox.endpoint(8080)["endpoint"] == f"{address}:8080"
        assert sandbox.endpoint(44772)["endpoint"] == f"{address}:44772"
        through = server.api().get(sandbox.path("/proxy/8080/index.html"))
        assert through.status == 200 and through.text == "hello\n"
        assert sandbox.connect(proxy=True).run(["true"]).code == 0
        assert sandbox.get().json["status"]["state"] == "Running"


@pytest.mark.parametrize("entrypoint, state, reason", [
    (["sh", "-c", "sleep 3; exit 0"], "Terminated", "POD_SUCCEEDED"),
    (["sh", "-c", "sleep 3; exit 7"], "Failed", "ContainerFailed"),
])
def test_a_sandbox_whose_entrypoint_ends_has_ended(server, entrypoint, state, reason):
    with create(server, entrypoint=entrypoint) as sandbox:
        status = eventually(sandbox.ended, 30, 0.1, "its end")
        assert (status["state"], status["reason"]) == (state, reason)
        if state == "Failed":
            assert "exit code 7" in status["message"]


# Creates that fail: each under its code, and nothing is left.


def test_an_image_that_is_not_there(cluster, server):
    answer = refused(server, image={"uri": "docker.io/test/missing:1"})
    assert (answer.status, answer.json["code"]) == (500, "KUBERNETES::POD_FAILED")
    assert "ErrImageNeverPull" in answer.json["message"]
    cluster.api.nothing_of(SPACE)


def test_a_pod_that_no_node_takes(cluster, controller, scratch):
    server = serve(cluster, scratch / "impatient", sections={"kubernetes": {"sandbox_create_timeout_seconds": 4}})
    server.start()
    try:
        answer = refused(server, resourceLimits={"cpu": "500", "memory": "64Mi"})
        assert (answer.status, answer.json["code"]) == (504, "KUBERNETES::POD_READY_TIMEOUT")
        assert "Insufficient cpu" in answer.json["message"]
        cluster.api.nothing_of(SPACE)
    finally:
        server.destroy()


def test_a_quota_of_the_namespace(cluster, controller, scratch, space):
    cluster.api.create(f"/api/v1/namespaces/{space}/resourcequotas", {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    quota = f"/api/v1/namespaces/{space}/resourcequotas/few"
    eventually(lambda: cluster.api.read(quota).get("status", {}).get("hard"), 30, 0.1, "the quota")
    server = serve(cluster, scratch / "quota", space).start()
    try:
        with create(server):
            answer = refused(server)
            assert (answer.status, answer.json["code"]) == (403, "KUBERNETES::QUOTA_EXCEEDED")
            eventually(lambda: len(cluster.api.batches(space)) == 1, 20, 0.1, "one object")
    finally:
        server.destroy()
    cluster.api.nothing_of(space)


def test_a_namespace_that_is_not_there(cluster, controller, scratch):
    server = serve(cluster, scratch / "nowhere", "nowhere").start()
    try:
        answer = refused(server)
        assert (answer.status, answer.json["code"]) == (400, "SANDBOX::INVALID_PARAMETER")
        assert "nowhere" in answer.json["message"]
    finally:
        server.destroy()


@pytest.mark.parametrize("fields, named", [
    ({"resourceLimits": {**SMALL, "gpu": "all"}}, "resourceLimits.gpu"),
    ({"resourceLimits": {**SMALL, "pids": "100"}}, "resourceLimits.pids"),
    ({"platform": {"os": "windows", "arch": "amd64"}}, "platform.os"),
    ({"volumes": [{"name": "opensandbox-bin", "mountPath": "/x", "pvc": {"claimName": "c"}}]}, "opensandbox-bin"),
    ({"volumes": [{"name": "v", "mountPath": "/x", "host": {"path": "/etc"}}]}, "v"),
    ({"secureAccess": True}, "secureAccess"),
    ({"snapshotId": "00000000-0000-4000-8000-000000000000", "image": None}, "snapshotId"),
])
def test_what_a_pod_cannot_be_is_refused_by_name(cluster, server, fields, named):
    answer = refused(server, **fields)
    assert answer.status in (400, 501), answer
    assert named in answer.json["message"]
    assert cluster.api.batches(SPACE) == []


# Several servers.


def test_one_key_makes_one_sandbox_at_two_servers(cluster, server, scratch):
    other = serve(cluster, scratch / "twin").start()
    try:
        key = uuid.uuid4().hex
        body = {"image": {"uri": BUSYBOX}, "entrypoint": ["tail", "-f", "/dev/null"], "resourceLimits": SMALL,
                "timeout": 600}

        def ask(which):
            return which.api().post("/sandboxes", body, headers={"Idempotency-Key": key})

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, [server, other] * 4))
        assert {answer.status for answer in answers} == {202}
        assert len({answer.json["id"] for answer in answers}) == 1
        assert len(cluster.api.batches(SPACE)) == 1
        changed = other.api().post("/sandboxes", {**body, "timeout": 700}, headers={"Idempotency-Key": key})
        assert (changed.status, changed.json["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
        Sandbox(other, answers[0].json).delete()
        cluster.api.nothing_of(SPACE)
    finally:
        other.destroy()


def test_another_server_goes_on_with_what_one_that_died_has_made(cluster, server, scratch):
    other = serve(cluster, scratch / "mortal").start()
    sandbox = create(other)
    other.kill()
    here = Sandbox(server, sandbox.created)
    eventually(lambda: here.get().status == 200 and here.state() == "Running", 10, 0.02, "it at the other server")
    assert here.sh("echo still here") == "still here\n"
    here.delete()
    cluster.api.nothing_of(SPACE)


def test_a_server_that_dies_in_a_create_loses_nothing(cluster, server, scratch):
    other = serve(cluster, scratch / "hasty").start()
    body = {"image": {"uri": BUSYBOX}, "entrypoint": ["tail", "-f", "/dev/null"], "resourceLimits": SMALL,
            "timeout": 600}

    def ask():
        try:
            other.api().post("/sandboxes", body)
        except OSError:
            pass

    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: cluster.api.batches(SPACE), 10, 0.005, "its object")
    other.kill()
    asking.join(30)
    (item,) = eventually(lambda: server.api().get("/sandboxes").json["items"], 10, 0.05, "it in the list")
    eventually(lambda: server.api().get(f"/sandboxes/{item['id']}").json["status"]["state"] == "Running", 20, 0.05,
               "its start")
    Sandbox(server, item).delete()
    cluster.api.nothing_of(SPACE)


# What a pod consists of.


def test_a_claim_is_made_on_demand_and_goes_with_its_sandbox(cluster, server):
    for name in ("one", "two"):
        cluster.api.create("/api/v1/persistentvolumes", {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"disk-{name}"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "test",
                     "persistentVolumeReclaimPolicy": "Retain",
                     "hostPath": {"path": str(cluster.directory / f"disk-{name}"), "type": "DirectoryOrCreate"}}})

    def volume(name, delete):
        return {"name": name, "mountPath": f"/{name}", "pvc": {
            "claimName": f"claim-{name}", "createIfNotExists": True, "deleteOnSandboxTermination": delete,
            "storageClass": "test", "storage": "1Gi"}}

    sandbox = create(server, volumes=[volume("mine", True), volume("ours", False)])
    sandbox.sh("echo kept > /mine/file && echo kept > /ours/file")
    status, claim = claim_of(cluster, "claim-mine")
    assert status == 200
    assert claim["metadata"]["ownerReferences"][0]["name"] == sandbox.id
    other = refused(server, volumes=[volume("mine", True)])
    assert other.status == 409, other
    sandbox.delete()
    eventually(lambda: claim_of(cluster, "claim-mine")[0] == 404, 30, 0.1, "the end of the claim")
    with create(server, volumes=[volume("ours", False)]) as again:
        assert again.sh("cat /ours/file") == "kept\n"
    assert claim_of(cluster, "claim-ours")[0] == 200
    cluster.api.delete(f"/api/v1/namespaces/{SPACE}/persistentvolumeclaims/claim-ours")
    cluster.api.nothing_of(SPACE)


def test_a_claim_that_must_be_there(cluster, server):
    answer = refused(server, volumes=[{"name": "v", "mountPath": "/v", "pvc": {
        "claimName": "missing", "createIfNotExists": False}}])
    assert answer.status == 400 and "missing" in answer.json["message"]
    assert cluster.api.batches(SPACE) == []


def test_host_directories_that_are_allowed_are_mounted(cluster, controller, scratch):
    shared = cluster.directory / "shared"
    shared.mkdir()
    (shared / "file").write_text("from the node\n")
    server = serve(cluster, scratch / "host-paths", sections={"storage": {"allowed_host_paths": [str(shared)]}})
    server.start()
    try:
        volume = {"name": "data", "mountPath": "/data", "readOnly": True, "host": {"path": str(shared)}}
        with create(server, volumes=[volume], extensions={"opensandbox.io/tmpfs": "/quick=1Mi"}) as sandbox:
            assert sandbox.sh("cat /data/file") == "from the node\n"
            assert sandbox.run(["touch", "/data/new"]).code != 0
            assert "tmpfs /quick " in sandbox.sh("cat /proc/mounts")
    finally:
        server.destroy()


def test_a_login_for_the_registry_is_a_secret_of_the_sandbox(cluster, server):
    login = {"uri": BUSYBOX, "auth": {"username": "u", "password": "p"}}
    sandbox = create(server, image=login)
    path = f"/api/v1/namespaces/{SPACE}/secrets/opensandbox-image-auth-{sandbox.id}"
    secret = cluster.api.read(path)
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    assert secret["metadata"]["ownerReferences"][0]["name"] == sandbox.id
    pod = pod_of(cluster, sandbox)
    assert pod["spec"]["imagePullSecrets"] == [{"name": secret["metadata"]["name"]}]
    sandbox.delete()
    eventually(lambda: cluster.api.get(path)[0] == 404, 60, 0.2, "the end of the secret")


def test_the_operators_template_lies_below(cluster, controller, scratch):
    template = scratch / "template.yaml"
    template.write_text("""
metadata: {annotations: {operator: here}}
spec:
  expireTime: "2001-01-01T00:00:00Z"
  template:
    metadata: {labels: {tier: batch}}
    spec:
      tolerations: [{operator: Exists}]
      terminationGracePeriodSeconds: 3
      containers:
      - name: sandbox
        volumeMounts: [{name: extra, mountPath: /extra}]
        securityContext: {readOnlyRootFilesystem: false, privileged: false}
      volumes: [{name: extra, emptyDir: {}}]
""")
    server = serve(cluster, scratch / "template",
                   sections={"kubernetes": {"batchsandbox_template_file": str(template)}}).start()
    try:
        with create(server, timeout=None) as sandbox:
            assert "/extra " in sandbox.sh("cat /proc/mounts")
            pod = pod_of(cluster, sandbox)
            assert pod["metadata"]["labels"]["tier"] == "batch"
            assert pod["spec"]["terminationGracePeriodSeconds"] == 3
            assert "expireTime" not in cluster.api.batch(SPACE, sandbox.id)["spec"]
    finally:
        server.destroy()


def connects(sandbox, address, port):
    return sandbox.run(["sh", "-c", f"echo | nc -w 3 {address} {port}"]).code == 0


def test_a_policy_is_enforced_in_the_pod(cluster, server):
    node, port = cluster.node, cluster.ports["api"]
    with create(server) as free:
        assert connects(free, node, port)
    deny = {"defaultAction": "deny", "egress": []}
    with create(server, networkPolicy=deny) as sandbox:
        assert not connects(sandbox, node, port)
        capabilities = int(sandbox.sh("grep CapBnd /proc/self/status").split()[1], 16)
        assert capabilities & (1 << 12 | 1 << 13) == 0
        pod = pod_of(cluster, sandbox)
        assert [c["name"] for c in pod["spec"]["initContainers"]] == ["execd-installer", "egress"]
        policy = sandbox.path("/networkpolicy")
        assert server.api().get(policy).json["policy"]["defaultAction"] == "deny"
        added = server.api().patch(policy, [{"action": "allow", "target": node}])
        assert added.status == 200, added
        assert connects(sandbox, node, port)
    cluster.api.nothing_of(SPACE)


# What an operator sees.


def test_diagnostics_name_the_pod(cluster, server):
    entrypoint = ["sh", "-c", "echo from the entrypoint; exec tail -f /dev/null"]
    with create(server, entrypoint=entrypoint) as sandbox:
        def logs():
            return server.api().get(sandbox.path("/diagnostics/logs"), query={"scope": "container"}).text

        eventually(lambda: "from the entrypoint" in logs(), 10, 0.2, "the log")
        inspected = server.api().get(sandbox.path("/diagnostics/inspect")).text
        assert "node1" in inspected and sandbox.id in inspected


# Objects of others.


def batch_spec(replicas=1, command="trap 'exit 0' TERM; while :; do sleep 1; done", **fields):
    return {"replicas": replicas, "template": {"spec": {
        "terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
        "containers": [{"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never",
                        "command": ["sh", "-c", command]}]}}, **fields}


def status_of(cluster, space, name):
    return cluster.api.batch(space, name).get("status", {})


def test_a_batch_has_a_pod_an_index_each_with_its_patch(cluster, controller, space):
    patches = [{"metadata": {"labels": {"part": str(i)}},
                "spec": {"containers": [{"name": "main", "env": [{"name": "PART", "value": str(i)}]}]}}
               for i in range(4)]
    cluster.api.make_batch(space, "b", batch_spec(6, shardPatches=patches))
    eventually(lambda: status_of(cluster, space, "b").get("phase") == "Succeed", 60, 0.1, "all replicas")
    status = status_of(cluster, space, "b")
    assert (status["replicas"], status["allocated"], status["ready"]) == (6, 6, 6)
    assert [c["type"] for c in status["conditions"]] == ["Ready"]
    pods = {pod["metadata"]["name"]: pod for pod in cluster.api.pods(space)}
    assert sorted(pods) == [f"b-{i}" for i in range(6)]
    for i in range(6):
        pod = pods[f"b-{i}"]
        labels = pod["metadata"]["labels"]
        assert labels["batch-sandbox.sandbox.opensandbox.io/pod-index"] == str(i)
        assert labels["batch-sandbox.sandbox.opensandbox.io/name"] == "b"
        assert labels.get("part") == (str(i) if i < 4 else None)
        assert bool(pod["spec"]["containers"][0].get("env")) == (i < 4)
    annotations = cluster.api.batch(space, "b")["metadata"]["annotations"]
    endpoints = json.loads(annotations["sandbox.opensandbox.io/endpoints"])
    assert endpoints == [pods[f"b-{i}"]["status"]["podIP"] for i in range(6)]
    assert json.loads(annotations["opensandbox.io/endpoint-uids"]) == [
        pods[f"b-{i}"]["metadata"]["uid"] for i in range(6)]

    cluster.kubectl("-n", space, "scale", "bsbx/b", "--replicas=2")
    eventually(lambda: len(cluster.api.pods(space)) == 2, 60, 0.1, "two pods")
    eventually(lambda: status_of(cluster, space, "b")["ready"] == 2, 20, 0.1, "what it says")
    cluster.api.delete_batch(space, "b")
    cluster.api.nothing_of(space)


def test_a_replica_that_is_removed_comes_back(cluster, controller, space):
    cluster.api.make_batch(space, "b", batch_spec(2))
    eventually(lambda: status_of(cluster, space, "b").get("phase") == "Succeed", 60, 0.1, "both")
    first = cluster.api.read(f"/api/v1/namespaces/{space}/pods/b-1")["metadata"]["uid"]
    cluster.api.delete(f"/api/v1/namespaces/{space}/pods/b-1")

    def another():
        status, pod = cluster.api.get(f"/api/v1/namespaces/{space}/pods/b-1")
        return status == 200 and pod["metadata"]["uid"] != first

    eventually(another, 60, 0.1, "another of its name")
    eventually(lambda: status_of(cluster, space, "b")["ready"] == 2, 60, 0.1, "both again")


def test_one_replica_that_fails_is_named(cluster, controller, space):
    broken = [{}, {"spec": {"containers": [{"name": "main", "command": ["sh", "-c", "exit 9"]}]}}]
    cluster.api.make_batch(space, "b", batch_spec(2, shardPatches=broken))
    eventually(lambda: status_of(cluster, space, "b").get("phase") == "Failed", 60, 0.1, "its failure")
    (failed,) = status_of(cluster, space, "b")["conditions"]
    assert failed["type"] == "PodFailed" and "sample pod=b-1" in failed["message"]
    assert "exit code 9" in failed["message"]


@pytest.mark.parametrize("spec, named", [
    (batch_spec(1, shardPatches=[{"spec": {"$patch": "explode"}}]), "spec.shardPatches[0]"),
    ({"replicas": 1, "template": {"spec": {"containers": []}}}, "containers"),
    ({"replicas": 1, "template": {"metadata": {}}}, "spec.template.spec"),
])
def test_a_template_that_makes_no_pod_is_said_in_status_and_events(cluster, controller, space, spec, named):
    cluster.api.make_batch(space, "b", spec)

    def told():
        conditions = status_of(cluster, space, "b").get("conditions", [])
        return [c["message"] for c in conditions if c["reason"] == "FailedCreate"]

    (message,) = eventually(told, 30, 0.1, "the condition")
    assert named in message
    events = cluster.api.read(f"/api/v1/namespaces/{space}/events")["items"]
    assert any(e["reason"] == "FailedCreate" and named in e["message"] for e in events)
    assert cluster.api.pods(space) == []


def test_a_pod_of_that_name_that_is_not_ours_stays(cluster, controller, space):
    foreign = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b-0"},
               "spec": {"containers": [{"name": "c", "image": PAUSE, "imagePullPolicy": "Never"}]}}
    uid = cluster.api.create(f"/api/v1/namespaces/{space}/pods", foreign)["metadata"]["uid"]
    cluster.api.make_batch(space, "b", batch_spec())
    eventually(lambda: any("not this object's" in c.get("message", "")
                           for c in status_of(cluster, space, "b").get("conditions", [])), 30, 0.1, "the condition")
    assert cluster.api.read(f"/api/v1/namespaces/{space}/pods/b-0")["metadata"]["uid"] == uid
    cluster.api.delete(f"/api/v1/namespaces/{space}/pods/b-0", gracePeriodSeconds=0)
    eventually(lambda: status_of(cluster, space, "b").get("phase") == "Succeed", 60, 0.1, "its turn")


def test_rules_of_the_definitions(cluster, space):
    path = f"{GROUP}/namespaces/{space}/batchsandboxes"
    cluster.api.make_batch(space, "pooled", {"replicas": 0, "poolRef": "a"})
    merge = "application/merge-patch+json"
    status, answer = cluster.api.call("PATCH", f"{path}/pooled", {"spec": {"poolRef": "b"}}, merge)
    assert status == 422 and "poolRef must not change" in answer["message"]
    cluster.api.make_batch(space, "any", {"replicas": 0, "poolRef": "*"})
    cluster.api.merge(f"{path}/any", {"spec": {"poolRef": "a"}})
    status, answer = cluster.api.call("POST", path, {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1", "kind": "BatchSandbox", "metadata": {"name": "n"},
        "spec": {"replicas": -1}})
    assert status == 422 and "spec.replicas" in answer["message"]
    status, answer = cluster.api.call("POST", f"{GROUP}/namespaces/{space}/pools", {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1", "kind": "Pool", "metadata": {"name": "p"},
        "spec": {"capacitySpec": {"bufferMin": 1}}})
    assert status == 422 and "capacitySpec.bufferMax" in answer["message"]


# Pools.


def pool_request(name, least=2, most=8, **container):
    """A template that says no command gets our executor."""
    return {"name": name, "capacitySpec": {"bufferMin": least, "bufferMax": least, "poolMin": least, "poolMax": most},
            "template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [
                {"name": "sandbox", "image": BUSYBOX, "imagePullPolicy": "Never", **container}]}}}


@pytest.fixture
def pool(server):
    made = []

    def make(name, *args, **fields):
        reply = server.api().post("/pools", pool_request(name, *args, **fields))
        assert reply.status == 201, reply
        made.append(name)
        wanted = reply.json["capacitySpec"]["poolMin"]
        eventually(lambda: server.api().get(f"/pools/{name}").json["status"]["available"] >= wanted, 60, 0.1,
                   "its idle pods")
        return name

    yield make
    for name in made:
        server.api().delete(f"/pools/{name}")


def pooled(server, name, **fields):
    return create(server, extensions={"poolRef": name}, **fields)


def pods_of_pool(cluster, name, space=SPACE):
    return cluster.api.pods(space, f"sandbox.opensandbox.io/pool-name={name}")


def test_a_sandbox_out_of_a_pool(cluster, server, pool):
    pool("warm")
    assert server.api().post("/pools", pool_request("warm")).status == 409
    before = {pod["metadata"]["uid"] for pod in pods_of_pool(cluster, "warm")}
    entrypoint = ["sh", "-c", "echo \"it's $A\" > /tmp/word; exec tail -f /dev/null"]
    sandbox = pooled(server, "warm", env={"A": "b c"}, entrypoint=entrypoint, metadata={"team": "a"})
    shown = sandbox.get().json
    assert shown["status"]["state"] == "Running"
    assert shown["allocation"] == {"mode": "pool", "poolRef": "warm", "state": "allocated"}
    assert shown["image"] == {"uri": BUSYBOX} and shown["entrypoint"] == entrypoint
    assert shown["metadata"] == {"team": "a"}
    assert sandbox.sh("cat /tmp/word; echo $OPENSANDBOX_ID") == f"it's b c\n{sandbox.id}\n"
    assert "OPENSANDBOX_TASK_TOKEN" not in sandbox.sh("env")
    batch = cluster.api.batch(SPACE, sandbox.id)
    (name,) = json.loads(batch["metadata"]["annotations"]["sandbox.opensandbox.io/alloc-status"])["pods"]
    pod = cluster.api.read(f"/api/v1/namespaces/{SPACE}/pods/{name}")
    assert pod["metadata"]["uid"] in before
    assert pod["metadata"]["annotations"]["opensandbox.io/claimed-by"].startswith(sandbox.id + "/")
    eventually(lambda: status_of(cluster, SPACE, sandbox.id).get("taskRunning") == 1, 30, 0.1, "its task's state")
    sandbox.delete()

    def refilled():
        pods = pods_of_pool(cluster, "warm")
        gone = all(p["metadata"]["uid"] != pod["metadata"]["uid"] for p in pods)
        return gone and len(pods) == 2

    eventually(refilled, 60, 0.1, "another pod in its place")
    assert server.api().put("/pools/warm", {"capacitySpec": {
        "bufferMin": 1, "bufferMax": 1, "poolMin": 1, "poolMax": 8}}).status == 200
    eventually(lambda: len(pods_of_pool(cluster, "warm")) == 1, 60, 0.1, "a smaller pool")
    assert [p["name"] for p in server.api().get("/pools").json["items"]] == ["warm"]
    assert server.api().delete("/pools/warm").status == 204
    cluster.api.nothing_of(SPACE)


@pytest.mark.parametrize("fields, named", [
    ({"networkPolicy": {"defaultAction": "deny", "egress": []}}, "networkPolicy"),
    ({"volumes": [{"name": "v", "mountPath": "/x", "pvc": {"claimName": "c"}}]}, "volumes"),
    ({"platform": {"os": "linux", "arch": "amd64"}}, "platform"),
])
def test_what_a_pool_decides_must_not_be_asked_for(server, pool, fields, named):
    pool("fixed", 1)
    answer = refused(server, extensions={"poolRef": "fixed"}, **fields)
    assert answer.status == 400 and named in answer.json["message"]


def test_a_pool_that_is_not_there(server):
    for name in ("missing", "*"):
        answer = refused(server, extensions={"poolRef": name})
        assert (answer.status, answer.json["code"]) == (404, "KUBERNETES::POOL_NOT_FOUND")
    assert server.api().get("/pools/missing").status == 404
    assert server.api().delete("/pools/missing").status == 404
    answer = server.api().post("/pools", {**pool_request("p"), "template": {"spec": {}}})
    assert answer.status == 400 and "containers" in answer.json["message"]


def test_no_pod_is_handed_out_twice(cluster, server, pool, scratch):
    pool("busy", 6, 14, resources={"requests": {"cpu": "1m"}})
    other = serve(cluster, scratch / "pool-twin").start()
    seen = []
    try:
        def take(which):
            sandbox = pooled(which, "*" if which is other else "busy")
            assert sandbox.sh("echo $OPENSANDBOX_ID").strip() == sandbox.id
            batch = cluster.api.batch(SPACE, sandbox.id)
            seen.extend(json.loads(batch["metadata"]["annotations"]["sandbox.opensandbox.io/alloc-status"])["pods"])
            sandbox.delete()

        with ThreadPoolExecutor(8) as workers:
            list(workers.map(take, [server, other] * 12))
        assert len(seen) == 24 and len(set(seen)) == 24
    finally:
        other.destroy()


def test_a_pool_that_is_full(cluster, controller, scratch, pool):
    pool("small", 1, 1)
    server = serve(cluster, scratch / "full", sections={"kubernetes": {"pool_acquisition_timeout_seconds": 2}})
    server.start()
    try:
        with pooled(server, "small"):
            answer = refused(server, extensions={"poolRef": "small"})
            assert (answer.status, answer.json["code"]) == (429, "KUBERNETES::POOL_CAPACITY_EXHAUSTED")
            assert answer.header("Retry-After")
            eventually(lambda: len(cluster.api.batches(SPACE)) == 1, 30, 0.1, "one object")
    finally:
        server.destroy()


def test_a_server_that_dies_after_its_claim_costs_a_pod_and_no_more(cluster, server, pool):
    pool("claimed", 1)
    (pod,) = pods_of_pool(cluster, "claimed")
    long_ago = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 25))
    cluster.api.merge(f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}", {"metadata": {"annotations": {
        "opensandbox.io/claimed-by": f"{uuid.uuid4()}/server-that-died/{long_ago}"}}})

    def replaced():
        pods = pods_of_pool(cluster, "claimed")
        return len(pods) == 1 and pods[0]["metadata"]["uid"] != pod["metadata"]["uid"]

    eventually(replaced, 60, 0.2, "another pod")


def task_batch(pool, replicas, command, **fields):
    return {"replicas": replicas, "poolRef": pool,
            "taskTemplate": {"spec": {"process": {"command": ["sh", "-c"], "args": [command],
                                                  "env": [{"name": "WORD", "value": "base"}]}}}, **fields}


def test_tasks_of_a_batch_in_a_pool(cluster, server, pool):
    pool("tasks", 3)
    patches = [{"spec": {"process": {"env": [{"name": "WORD", "value": "patched"}]}}}]
    cluster.api.make_batch(SPACE, "batch", task_batch(
        "tasks", 3, "[ $WORD = patched ] && exit 3; sleep 2", shardTaskPatches=patches))

    def counted():
        status = status_of(cluster, SPACE, "batch")
        return status.get("taskSucceed") == 2 and status.get("taskFailed") == 1

    eventually(counted, 60, 0.1, "the ends of its tasks")
    status = status_of(cluster, SPACE, "batch")
    assert (status["phase"], status["ready"], status["taskRunning"]) == ("Succeed", 3, 0)
    # A pod that goes is replaced, and the replica's task begins again.
    names = json.loads(cluster.api.batch(SPACE, "batch")["metadata"]["annotations"]
                       ["sandbox.opensandbox.io/alloc-status"])["pods"]
    cluster.api.delete(f"/api/v1/namespaces/{SPACE}/pods/{names[1]}", gracePeriodSeconds=0)

    def replaced():
        annotations = cluster.api.batch(SPACE, "batch")["metadata"]["annotations"]
        now = json.loads(annotations["sandbox.opensandbox.io/alloc-status"])["pods"]
        return now[0] == names[0] and now[2] == names[2] and now[1] != names[1]

    eventually(replaced, 60, 0.1, "another pod for the replica")
    eventually(counted, 60, 0.1, "the end of its task")
    cluster.api.delete_batch(SPACE, "batch")
    eventually(lambda: cluster.api.get(f"{GROUP}/namespaces/{SPACE}/batchsandboxes/batch")[0] == 404, 30, 0.1,
               "the end of the object")


def test_pods_whose_tasks_have_ended_are_given_back(cluster, server, pool):
    pool("released", 2)
    cluster.api.make_batch(SPACE, "batch", task_batch(
        "released", 2, "exit 0", taskResourcePolicyWhenCompleted="Release"))

    def given_back():
        annotations = cluster.api.batch(SPACE, "batch")["metadata"].get("annotations", {})
        released = json.loads(annotations.get("sandbox.opensandbox.io/alloc-released", '{"pods": []}'))["pods"]
        return sorted(released) == sorted(json.loads(annotations.get(
            "sandbox.opensandbox.io/alloc-status", '{"pods": [1]}'))["pods"])

    eventually(given_back, 60, 0.1, "its pods back")
    assert status_of(cluster, SPACE, "batch")["taskSucceed"] == 2
    cluster.api.delete_batch(SPACE, "batch")


# Faults.


def test_another_controller_takes_over(cluster, scratch, space, controller):
    controller.stop()
    flags = ["--leader-elect", "--leader-election-namespace=opensandbox-system"]
    account = cluster.accounts["controller"]
    pair = [Controller(cluster, scratch / f"leader-{i}", *flags, kubeconfig=account).start() for i in range(2)]
    try:
        leading = eventually(lambda: [c for c in pair if c.figures()["leader"] == 1], 30, 0.1, "a leader")
        assert len(leading) == 1
        (standby,) = [c for c in pair if c is not leading[0]]
        cluster.api.make_batch(space, "b", batch_spec(3))
        leading[0].kill()
        eventually(lambda: standby.figures()["leader"] == 1, 40, 0.1, "another leader")
        eventually(lambda: status_of(cluster, space, "b").get("phase") == "Succeed", 60, 0.1, "all replicas")
        assert len(cluster.api.pods(space)) == 3
        standby.stop()
        lease = cluster.api.read("/apis/coordination.k8s.io/v1/namespaces/opensandbox-system/leases/"
                                 "2fa1c467.opensandbox.io")
        assert not lease["spec"].get("holderIdentity")
    finally:
        for one in pair:
            one.stop()
        controller.start()


def test_an_api_server_that_is_away_for_a_while(cluster, server):
    sandbox = create(server)
    cluster.stop_part("apiserver", kill=True)
    try:
        # What is known is still told, and what runs still runs.
        assert sandbox.get().json["status"]["state"] == "Running"
        assert sandbox.sh("echo on") == "on\n"
        answer = refused(server)
        assert (answer.status, answer.json["code"]) == (503, "KUBERNETES::API_ERROR")
    finally:
        cluster.start_apiserver()
        eventually(cluster.api.is_ready, 90, 0.1, "the API server")

    def works():
        answer = server.api().post("/sandboxes", {"image": {"uri": BUSYBOX}, "resourceLimits": SMALL, "timeout": 600,
                                                  "entrypoint": ["tail", "-f", "/dev/null"]})
        return answer.status == 202 and Sandbox(server, answer.json)

    another = eventually(works, 60, 1, "another sandbox")
    another.delete()
    sandbox.delete()
    cluster.api.nothing_of(SPACE, timeout=90)


def test_a_controller_that_is_started_late_makes_up_for_it(cluster, server, controller):
    controller.kill()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(create, server)
        eventually(lambda: cluster.api.batches(SPACE), 10, 0.02, "its object")
        controller.start()
        sandbox = waiting.result()
    controller.kill()
    sandbox.delete()
    assert len(cluster.api.pods(SPACE)) == 1
    controller.start()
    cluster.api.nothing_of(SPACE)


def test_the_manifests_of_this_repository_are_what_the_program_prints():
    printed = run(EXECUTABLE, "controller", "manifests").stdout
    assert printed == (ROOT / "packaging/kubernetes/opensandbox.yaml").read_text()


def test_the_programs_image_installs_its_agent(cluster, server):
    with create(server) as sandbox:
        (installer,) = pod_of(cluster, sandbox)["spec"]["initContainers"]
        assert installer["image"] == OPENSANDBOX
        assert sandbox.sh("readlink /opt/opensandbox/bootstrap.sh") == "opensandbox\n"


def test_the_manifests_run_in_the_cluster(cluster, server, controller):
    """Server and controller as pods, under the rights, the user and the root file system of the manifests."""
    controller.stop()
    home = "opensandbox-system"
    text = run(EXECUTABLE, "controller", "manifests", "--sandboxes", SPACE, "--image", OPENSANDBOX).stdout
    cluster.kubectl("-n", home, "create", "secret", "generic", "opensandbox-server-key", "--from-literal=api-key=k")
    try:
        cluster.kubectl("apply", "-f", "-", input=text)
        for name in ("opensandbox-controller-manager", "opensandbox-server"):
            # There is no way to the API server's service here: nothing programs it.
            cluster.kubectl("-n", home, "set", "env", f"deployment/{name}", f"KUBERNETES_SERVICE_HOST={cluster.node}",
                            f"KUBERNETES_SERVICE_PORT={cluster.ports['api']}")
            cluster.kubectl("-n", home, "rollout", "status", f"deployment/{name}", "--timeout=90s", timeout=100)
        pods = cluster.api.pods(home, "app.kubernetes.io/component=opensandbox-server")
        address = next(pod["status"]["podIP"] for pod in pods if not pod["metadata"].get("deletionTimestamp"))
        api = Http(f"{address}:8080", "lifecycle", "/v1", {"OPEN-SANDBOX-API-KEY": "k"}, 60)
        made = api.post("/sandboxes", {"image": {"uri": BUSYBOX}, "entrypoint": ["tail", "-f", "/dev/null"],
                                       "resourceLimits": SMALL, "timeout": 600})
        assert made.status == 202, made
        seen = Sandbox(server, made.json)
        eventually(lambda: seen.get().status == 200, 10, 0.05, "it at another server")
        assert seen.sh("echo in a pod") == "in a pod\n"
        assert api.delete(f"/sandboxes/{seen.id}").status == 204
        cluster.api.nothing_of(SPACE)
    finally:
        cluster.kubectl("-n", home, "delete", "deployments", "--all", "--grace-period=1")
        cluster.kubectl("-n", home, "delete", "secret", "opensandbox-server-key")
        controller.start()
