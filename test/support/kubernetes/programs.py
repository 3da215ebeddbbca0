"""The programs of a cluster, built once a machine from the modules that are pinned beside this file."""

import fcntl
import os
import re
from pathlib import Path

from support.go_modules import go, toolchain
from support.server import ROOT

HERE = Path(__file__).parent
CACHE = ROOT / "build/kubernetes"
PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")


def _version(module, name):
    return re.search(rf"{re.escape(name)} v([0-9.]+)", (HERE / module / "go.mod").read_text())[1]


def programs():
    """The directory with all of them. Takes fourteen minutes the first time, most of them the API
    server's; `OPENSANDBOX_KUBERNETES_PROGRAMS` names one that is there."""
    if given := os.environ.get("OPENSANDBOX_KUBERNETES_PROGRAMS"):
        return Path(given)
    version = _version("modules", "k8s.io/kubernetes")
    directory = CACHE / f"v{version}"
    directory.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in PARTS:
            # The API server refuses objects of a version that it does not know to be its own.
            major, minor, _ = version.split(".")
            package = "k8s.io/component-base/version"
            values = {f"{package}.gitVersion": f"v{version}", f"{package}.gitMajor": major,
                      f"{package}.gitMinor": minor, f"{package}.gitTreeState": "clean",
                      f"{package}.buildDate": "2026-01-01T00:00:00Z"}
            _build("modules", f"k8s.io/kubernetes/cmd/{name}", directory / name,
                   "-tags", "providerless,selinux_disabled",
                   "-ldflags", "-s -w " + " ".join(f"-X {key}={value}" for key, value in values.items()))
        _build("etcd", "go.etcd.io/etcd/server/v3", directory / "etcd", "-ldflags", "-s -w")
    return directory


def _build(module, package, program, *flags):
    if program.exists():
        return
    made = program.with_suffix(".new")
    go(HERE / module, "build", "-mod=mod", "-trimpath", "-buildvcs=false", *flags, "-o", str(made), package,
       program=toolchain(HERE / module))
    made.chmod(0o755)
    made.rename(program)
