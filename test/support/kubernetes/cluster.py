"""Starts and stops the cluster: its processes, networks, mounts and control groups are its own."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from support.addresses import free_port
from support.kubernetes.api import Api
from support.kubernetes.certificates import Certificates
from support.kubernetes.images import PAUSE, archives
from support.kubernetes.programs import programs
from support.server import EXECUTABLE
from support.shell import eventually, run

CONTAINERD = """version = 2
root = "{directory}/containerd"
state = "{runtime}/state"
[grpc]
  address = "{runtime}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{directory}/cni"
"""

NETWORK = """{{"cniVersion": "0.4.0", "name": "{bridge}", "plugins": [
  {{"type": "bridge", "bridge": "{bridge}", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {{"type": "host-local", "dataDir": "{directory}/addresses",
            "ranges": [[{{"subnet": "{subnet}"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]}}}}]}}
"""

KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {node}
port: {port}
readOnlyPort: 0
healthzPort: 0
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: {cgroup}
cgroupsPerQOS: true
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix://{runtime}/containerd.sock
failSwapOn: false
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}, x509: {{clientCAFile: {authority}}}}}
authorization: {{mode: Webhook}}
tlsCertFile: {certificate}
tlsPrivateKeyFile: {key}
resolvConf: {directory}/resolv.conf
clusterDNS: ["{node}"]
clusterDomain: cluster.local
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
serializeImagePulls: false
maxPods: 110
evictionHard: {{memory.available: 100Mi, nodefs.available: 1Mi, nodefs.inodesFree: "0%", imagefs.available: 1Mi}}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
"""


class Cluster:
    """Used with `with`. Without a node it has objects and nobody who runs pods."""

    def __init__(self, *, node=True, debian=False, executable=EXECUTABLE):
        self.has_node, self.debian = node, debian
        self.executable = executable
        self.processes = {}

    def __enter__(self):
        self.programs = programs()
        # Short, because a socket's path has at most 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="osbk-", dir="/var/tmp"))
        self.runtime = self.directory / "run"
        self.runtime.mkdir()
        tag = f"{random.randrange(1 << 24):06x}"
        self.link, self.bridge, self.cgroup = f"osbn{tag}", f"osbc{tag}", f"/osbk{tag}"
        third = random.randrange(256)
        self.node = f"172.29.{third}.1"
        self.subnet = f"10.244.{third}.0/24"
        self.ports = {name: free_port() for name in ("etcd", "peer", "api", "kcm", "sched", "kubelet")}
        self.server = f"https://127.0.0.1:{self.ports['api']}"
        try:
            run("ip", "link", "add", self.link, "type", "bridge")
            run("ip", "addr", "add", f"{self.node}/24", "dev", self.link)
            run("ip", "link", "set", self.link, "up")
            self.certificates = Certificates(self.directory / "pki", self.node)
            self.kubeconfig = self.certificates.kubeconfig("admin", self.server)
            self.api = Api("127.0.0.1", self.ports["api"], self.certificates)
            self.start_control_plane()
            if self.has_node:
                self.start_node()
            eventually(lambda: self.api.get("/api/v1/namespaces/default/serviceaccounts/default")[0] == 200, 60,
                       0.1, "the default account")
        except BaseException:
            self.__exit__()
            raise
        return self

    # Its parts.

    def run_part(self, name, *argv):
        with (self.directory / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                list(map(str, argv)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"})

    def stop_part(self, name, kill=False):
        process = self.processes.pop(name, None)
        if not process:
            return
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)

    def log_of(self, name, size=4000):
        path = self.directory / f"{name}.log"
        return path.read_bytes()[-size:].decode(errors="replace") if path.exists() else ""

    def start_control_plane(self):
        self.start_etcd()
        self.start_apiserver()
        eventually(self.api.is_ready, 90, 0.1, "the API server")
        self.start_controllers()

    def start_etcd(self):
        client, peer = (f"http://127.0.0.1:{self.ports[name]}" for name in ("etcd", "peer"))
        self.run_part("etcd", self.programs / "etcd", "--data-dir", self.directory / "etcd",
                      "--listen-client-urls", client, "--advertise-client-urls", client,
                      "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                      "--initial-cluster", f"default={peer}", "--unsafe-no-fsync")

    def start_apiserver(self):
        pki = self.certificates.path
        self.run_part(
            "apiserver", self.programs / "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.ports['etcd']}", "--bind-address=0.0.0.0",
            f"--advertise-address={self.node}", f"--secure-port={self.ports['api']}",
            f"--tls-cert-file={pki('apiserver.crt')}", f"--tls-private-key-file={pki('apiserver.key')}",
            f"--client-ca-file={pki('ca.crt')}", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki('sa.pub')}", f"--service-account-signing-key-file={pki('sa.key')}",
            "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            f"--kubelet-client-certificate={pki('kubelet-client.crt')}",
            f"--kubelet-client-key={pki('kubelet-client.key')}", f"--kubelet-certificate-authority={pki('ca.crt')}",
            "--kubelet-preferred-address-types=InternalIP", "--endpoint-reconciler-type=none", "--profiling=false")

    def start_controllers(self):
        pki = self.certificates.path
        for name, program, *flags in (
            ("kcm", "kube-controller-manager", f"--service-account-private-key-file={pki('sa.key')}",
             f"--root-ca-file={pki('ca.crt')}", "--use-service-account-credentials=true",
             "--allocate-node-cidrs=false", "--node-monitor-grace-period=16s"),
            ("sched", "kube-scheduler"),
        ):
            config = self.certificates.kubeconfig(name, self.server)
            self.run_part(name, self.programs / program, f"--kubeconfig={config}",
                          f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
                          "--bind-address=127.0.0.1", f"--secure-port={self.ports[name]}", "--leader-elect=false",
                          *flags)

    def start_node(self):
        # Once before containerd starts: a later first use would mount over what pods have there.
        run("ip", "netns", "add", f"{self.link}x")
        run("ip", "netns", "del", f"{self.link}x")
        (self.directory / "cni").mkdir()
        (self.directory / "cni/10-test.conflist").write_text(
            NETWORK.format(directory=self.directory, bridge=self.bridge, subnet=self.subnet))
        (self.directory / "containerd.toml").write_text(
            CONTAINERD.format(directory=self.directory, runtime=self.runtime, pause=PAUSE))
        (self.directory / "resolv.conf").write_text(f"nameserver {self.node}\n")
        self.start_containerd()
        for archive in archives(self.directory / "images", self.executable, self.debian):
            self.ctr("images", "import", archive)
        shutil.rmtree(self.directory / "images")
        self.start_kubelet()
        eventually(self.node_is_ready, 90, 0.2, "the node")

    def ctr(self, *argv):
        return run("ctr", "-a", self.runtime / "containerd.sock", "-n", "k8s.io", *argv, timeout=120).stdout

    def start_containerd(self):
        self.run_part("containerd", "containerd", "-c", self.directory / "containerd.toml")
        eventually(lambda: run("ctr", "-a", self.runtime / "containerd.sock", "version", check=False).returncode == 0,
                   60, 0.1, "containerd")

    def start_kubelet(self):
        pki = self.certificates.path
        (self.directory / "kubelet.yaml").write_text(KUBELET.format(
            node=self.node, port=self.ports["kubelet"], cgroup=self.cgroup, runtime=self.runtime,
            authority=pki("ca.crt"), certificate=pki("kubelet.crt"), key=pki("kubelet.key"),
            directory=self.directory))
        for controller in self._hierarchies():
            (controller / self.cgroup.lstrip("/")).mkdir(exist_ok=True)
        config = self.certificates.kubeconfig("kubelet", self.server)
        self.run_part("kubelet", self.programs / "kubelet", f"--config={self.directory}/kubelet.yaml",
                      f"--kubeconfig={config}", f"--root-dir={self.directory}/kubelet",
                      f"--cert-dir={self.directory}/kubelet/pki", "--hostname-override=node1",
                      f"--node-ip={self.node}", "--register-node=true")

    def node_is_ready(self):
        status, node = self.api.get("/api/v1/nodes/node1")
        if status != 200:
            return False
        conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
        return conditions.get("Ready") == "True"

    def kubectl(self, *argv, check=True, input=None, timeout=60):
        return run(self.programs / "kubectl", "--kubeconfig", self.kubeconfig, *argv, check=check, input=input,
                   timeout=timeout)

    # Its end.

    def __exit__(self, *_):
        for name in ("kubelet", "sched", "kcm", "apiserver", "etcd"):
            self.stop_part(name)
        self._end_containers()
        self.stop_part("containerd")
        for _ in range(3):
            for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
                if f" {self.directory}" in line:
                    run("umount", "-l", line.split()[1], check=False)
        for link in (self.link, self.bridge):
            run("ip", "link", "del", link, check=False)
        self._remove_cgroups()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end_containers(self):
        """Shims outlive containerd, and what they hold with them."""
        mark = str(self.runtime).encode()
        ended = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"containerd-shim" in command and mark in command:
                ended += [int(pid), *self._below(int(pid))]
        for pid in ended:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for name in run("ip", "netns", "list", check=False).stdout.split():
            if name.startswith("cni-"):
                run("ip", "netns", "del", name, check=False)

    @staticmethod
    def _below(pid):
        found = []
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                for child in task.read_text().split():
                    found += [int(child), *Cluster._below(int(child))]
            except OSError:
                pass
        return found

    @staticmethod
    def _hierarchies():
        root = Path("/sys/fs/cgroup")
        if (root / "cgroup.controllers").exists():
            return [root]
        return [path for path in root.iterdir() if path.is_dir() and not path.is_symlink()]

    def _remove_cgroups(self):
        until = time.monotonic() + 10
        for hierarchy in self._hierarchies():
            top = hierarchy / self.cgroup.lstrip("/")
            while top.exists() and time.monotonic() < until:
                for path in sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True):
                    try:
                        path.rmdir()
                    except OSError:
                        pass
                try:
                    top.rmdir()
                except OSError:
                    time.sleep(0.1)
