"""Many objects before a real API server without a node: pods are made Ready by this program. Prints how long
it takes until all say that they run, what the controller and the server need, and how often they ask at rest.

    test/run bench kubernetes-scale [OBJECTS [POOL]]      (1000 and 2000)
"""

import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.kubernetes import requests
from support.kubernetes.cluster import Cluster
from support.kubernetes.images import BUSYBOX
from support.kubernetes.served import ClusterServer, Controller, apply_manifests
from support.shell import eventually

SPACE = "sandboxes"
TEMPLATE = {"spec": {"containers": [{"name": "sandbox", "image": BUSYBOX}]}}


class FakeKubelet:
    """Makes every pod Ready, with an address that nobody has."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.done, self.stopped = set(), threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def run(self):
        with ThreadPoolExecutor(4) as workers:
            while not self.stopped.wait(0.2):
                fresh = [pod for pod in self.cluster.api.pods(SPACE) if pod["metadata"]["uid"] not in self.done]
                list(workers.map(self.make_ready, fresh))

    def make_ready(self, pod):
        self.done.add(pod["metadata"]["uid"])
        number = len(self.done)
        address = f"10.250.{number // 250}.{number % 250 + 1}"
        self.cluster.api.call(
            "PATCH", f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}/status",
            {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
                        "conditions": [{"type": "Ready", "status": "True"}]}}, "application/merge-patch+json")


def memory_of(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def main():
    objects = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    pool = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    with Cluster(node=False) as cluster, tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        accounts = apply_manifests(cluster, SPACE)
        flags = ["--kube-client-qps=0"]
        controller = Controller(cluster, Path(directory) / "controller", *flags,
                                kubeconfig=accounts["controller"]).start()
        server = ClusterServer(Path(directory) / "server", cluster, SPACE, kubeconfig=accounts["server"]).start()
        try:
            with FakeKubelet(cluster):
                measure(cluster, controller, server, objects, pool)
        finally:
            server.stop()
            controller.stop()


def measure(cluster, controller, server, objects, pool):
    def running():
        phases = [item.get("status", {}).get("phase") for item in cluster.api.batches(SPACE)]
        return phases.count("Succeed") == objects

    begin = time.monotonic()
    with ThreadPoolExecutor(8) as workers:
        list(workers.map(lambda i: cluster.api.make_batch(
            SPACE, f"b-{i}", {"replicas": 1, "template": TEMPLATE},
            labels={"opensandbox.io/id": f"00000000-0000-4000-8000-{i:012}"}), range(objects)))
    print(f"{objects} BatchSandboxes written in {time.monotonic() - begin:.1f} s", flush=True)
    eventually(running, 900, 1, "all of them")
    print(f"all run after {time.monotonic() - begin:.1f} s", flush=True)
    if pool:
        begin = time.monotonic()
        reply = server.api().post("/pools", {"name": "large", "template": TEMPLATE, "capacitySpec": {
            "bufferMin": pool, "bufferMax": pool, "poolMin": pool, "poolMax": pool + 100}})
        assert reply.status == 201, reply
        eventually(lambda: server.api().get("/pools/large").json["status"]["available"] >= pool, 900, 1, "the pool")
        print(f"a pool of {pool} is full after {time.monotonic() - begin:.1f} s", flush=True)
    print(f"memory: controller {memory_of(controller.process.pid):.0f} MiB, "
          f"server {memory_of(server.process.pid):.0f} MiB", flush=True)
    controller.kill()
    begin = time.monotonic()
    controller.start()
    figures = controller.figures()
    print(f"a controller that is started anew knows all after {time.monotonic() - begin:.1f} s", flush=True)
    time.sleep(20)
    grown = {key: value - figures.get(key, 0) for key, value in controller.figures().items() if "total" in key}
    print(f"what it then does: {({key: value for key, value in grown.items() if value})}", flush=True)
    before = requests(cluster)
    time.sleep(60)
    after = requests(cluster)
    grown = {f"{verb} {resource}": int(count - before.get((verb, resource), 0))
             for (verb, resource), count in sorted(after.items())
             if resource.split("/")[0] in ("batchsandboxes", "pools") and count > before.get((verb, resource), 0)}
    print(f"at rest: {sum(grown.values())} requests a minute for sandboxes and pools: {grown}", flush=True)


if __name__ == "__main__":
    main()
