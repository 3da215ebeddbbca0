"""What a sandbox costs on a cluster: create to the first command, out of a pool and with a pod of its own,
beside a bare pod of the same cluster; and how often the API server was asked and written to for it, by its own
count. Prints; asserts nothing.

    test/run bench kubernetes [--short]
"""

import argparse
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.kubernetes.cluster import Cluster
from support.kubernetes.images import BUSYBOX, PAUSE
from support.kubernetes.served import ClusterServer, Controller, apply_manifests
from support.shell import eventually

SPACE = "sandboxes"
SMALL = {"cpu": "10m", "memory": "32Mi"}
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def show(name, seconds):
    print(f"{name:44} p50 {percentile(seconds, .5) * 1e3:8.1f} ms   p99 {percentile(seconds, .99) * 1e3:8.1f} ms"
          f"   min {min(seconds) * 1e3:8.1f} ms   n {len(seconds)}", flush=True)


def requests(cluster):
    """(verb, resource): how often, of what the clients of this project asked and wrote."""
    _, text = cluster.api.get("/metrics")
    counted = {}
    for line in text.splitlines():
        found = re.match(r'apiserver_request_total\{(.*)\} ([0-9.e+]+)$', line)
        if not found:
            continue
        labels = dict(re.findall(r'(\w+)="([^"]*)"', found[1]))
        key = (labels["verb"], labels["resource"] + ("/" + labels["subresource"] if labels["subresource"] else ""))
        counted[key] = counted.get(key, 0) + float(found[2])
    return counted


def difference(before, after, each):
    grown = {key: after[key] - before.get(key, 0) for key in after if after[key] > before.get(key, 0)}
    ours = ("batchsandboxes", "pools", "pods", "secrets", "events", "persistentvolumeclaims")
    rows = {key: count for key, count in grown.items() if key[1].split("/")[0] in ours and key[0] != "WATCH"}
    writes = sum(count for key, count in rows.items() if key[0] in WRITES)
    print(f"    {writes / each:.1f} writes a sandbox, those of the cluster itself among them: " + ", ".join(
        f"{verb} {resource} {count / each:.1f}" for (verb, resource), count in sorted(rows.items())), flush=True)


def bare_pod(cluster, number):
    path = f"/api/v1/namespaces/{SPACE}/pods"
    begin = time.monotonic()
    cluster.api.create(path, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"bare-{number}"}, "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": PAUSE, "imagePullPolicy": "Never"}]}})

    def ready():
        conditions = cluster.api.read(f"{path}/bare-{number}")["status"].get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    eventually(ready, 60, 0.005, "a bare pod")
    took = time.monotonic() - begin
    cluster.api.delete(f"{path}/bare-{number}")
    return took


def sandbox(server, **fields):
    """Seconds from the request to the end of a first command."""
    begin = time.monotonic()
    made = server.create(resourceLimits=SMALL, **fields)
    made.run(["true"])
    took = time.monotonic() - begin
    made.delete()
    return took


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--short", action="store_true")
    short = options.parse_args().short
    few, many, burst = (5, 20, 10) if short else (20, 100, 40)
    with Cluster() as cluster, tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        accounts = apply_manifests(cluster, SPACE)
        controller = Controller(cluster, Path(directory) / "controller", kubeconfig=accounts["controller"]).start()
        server = ClusterServer(Path(directory) / "server", cluster, SPACE, kubeconfig=accounts["server"])
        try:
            server.start()
            measure(cluster, server, few, many, burst)
        finally:
            server.destroy()
            controller.stop()


def measure(cluster, server, few, many, burst):
    show("bare pod, create to Ready", [bare_pod(cluster, i) for i in range(few)])
    before = requests(cluster)
    show("pod of its own, create to first command", [sandbox(server) for _ in range(few)])
    time.sleep(2)
    difference(before, requests(cluster), few)
    capacity = {"bufferMin": burst, "bufferMax": burst, "poolMin": burst, "poolMax": 90}
    template = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "sandbox", "image": BUSYBOX, "imagePullPolicy": "Never",
         "resources": {"requests": {"cpu": "1m"}}}]}}
    reply = server.api().post("/pools", {"name": "bench", "template": template, "capacitySpec": capacity})
    assert reply.status == 201, reply

    def full():
        return server.api().get("/pools/bench").json["status"]["available"] >= burst

    eventually(full, 300, 0.2, "the pool")
    pooled = {"extensions": {"poolRef": "bench"}}
    before = requests(cluster)
    took = []
    for _ in range(many):
        took.append(sandbox(server, **pooled))
        time.sleep(0.2)
    show("out of a pool, create to first command", took)
    time.sleep(3)
    difference(before, requests(cluster), many)
    eventually(full, 300, 0.2, "the pool")
    begin = time.monotonic()
    with ThreadPoolExecutor(burst) as workers:
        took = list(workers.map(lambda _: sandbox(server, **pooled), range(burst)))
    show(f"{burst} at once out of a pool", took)
    print(f"    all of them within {time.monotonic() - begin:.2f} s, their removal too", flush=True)
    eventually(full, 300, 0.2, "the pool")
    time.sleep(5)
    before = requests(cluster)
    time.sleep(30)
    after = requests(cluster)
    ours = sum(count - before.get(key, 0) for key, count in after.items()
               if key[1].split("/")[0] in ("batchsandboxes", "pools"))
    print(f"at rest: {ours * 2:.0f} requests a minute for sandboxes and pools, watches among them", flush=True)


if __name__ == "__main__":
    main()
