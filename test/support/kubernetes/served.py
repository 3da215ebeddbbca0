"""Our controller and server before a cluster of the tests."""

import http.client
import os
import subprocess
from pathlib import Path

from support.addresses import free_port
from support.kubernetes.images import BUSYBOX, OPENSANDBOX
from support.server import EXECUTABLE, Server
from support.shell import eventually, run


def apply_manifests(cluster, space, executable=EXECUTABLE):
    """What the program itself prints, but for the Deployments, which run outside of the cluster here:
    kubeconfigs of the accounts of `controller` and `server`."""
    text = run(executable, "controller", "manifests", "--sandboxes", space).stdout
    documents = [document for document in text.split("---\n") if document and 'kind: "Deployment"' not in document]
    cluster.kubectl("apply", "-f", "-", input="---\n".join(documents))
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    eventually(lambda: cluster.api.get(f"/api/v1/namespaces/{space}/serviceaccounts/default")[0] == 200, 60, 0.1,
               f"the account of namespace {space}")
    return {role: account(cluster, name, space)
            for role, name in (("controller", "opensandbox-controller-manager"), ("server", "opensandbox-server"))}


def account(cluster, name, space):
    """A kubeconfig with a token of a service account of ours."""
    token = cluster.kubectl("-n", "opensandbox-system", "create", "token", name, "--duration=10h").stdout.strip()
    return cluster.certificates.kubeconfig(name, cluster.server, token=token, space=space)


class Controller:
    """`opensandbox controller` outside of the cluster, by a kubeconfig."""

    def __init__(self, cluster, directory, *flags, kubeconfig=None, executable=EXECUTABLE):
        self.cluster, self.flags, self.executable = cluster, flags, executable
        self.kubeconfig = kubeconfig or cluster.kubeconfig
        self.log = Path(directory) / "controller.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.process = None

    def start(self):
        address = f"127.0.0.1:{self.port}"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [self.executable, "controller", f"--kubeconfig={self.kubeconfig}",
                 f"--health-probe-bind-address={address}", *self.flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": os.environ["PATH"], "HOME": "/"})
        eventually(lambda: self.asked("/readyz") == 200, 30, 0.02, "the controller's readiness")
        return self

    def asked(self, path):
        """The status of an answer; the text of /metrics."""
        assert self.process.poll() is None, self.tail()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError:
            return None
        finally:
            connection.close()
        return text if path == "/metrics" else answer.status

    def figures(self):
        """name: value, without the part that all names begin with."""
        lines = [line.split() for line in self.asked("/metrics").splitlines() if not line.startswith("#")]
        return {name.removeprefix("opensandbox_controller_"): float(value) for name, value in lines}

    def tail(self, size=6000):
        return self.log.read_bytes()[-size:].decode(errors="replace")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)

    def kill(self):
        self.process.kill()
        self.process.wait(20)


class ClusterServer(Server):
    """`opensandbox serve` outside of the cluster: pods are reached through its bridge."""

    runtime = "kubernetes"
    image = BUSYBOX

    def __init__(self, directory, cluster, space, *, sections=None, key=None, kubeconfig=None):
        wanted = {
            "runtime": {"type": "kubernetes"},
            "kubernetes": {"kubeconfig_path": str(kubeconfig or cluster.kubeconfig), "namespace": space,
                           "image": OPENSANDBOX, "image_pull_policy": "Never"},
        }
        for section, values in (sections or {}).items():
            wanted.setdefault(section, {}).update(values)
        super().__init__(directory, sections=wanted, key=key)
        state = self.settings["native"]["state_dir"]
        for section in ("native", "native.pool"):
            del self.settings[section]
        self.settings["native"] = {"state_dir": state}
        self.cluster, self.space = cluster, space

    def destroy(self):
        try:
            if self.process and self.process.poll() is None:
                api = self.api()
                for item in api.get("/sandboxes", query={"pageSize": 200}).json["items"]:
                    api.delete(f"/sandboxes/{item['id']}")
        finally:
            self.stop()
        found = self.sanitizer_reports()
        assert not found, f"a sanitizer's report of {self.directory.name}:\n{found}"
