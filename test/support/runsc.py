"""gVisor's program, built once a machine from the pinned module of support/gvisor."""

import fcntl
import json
import os
import re
import subprocess
from pathlib import Path

from support.server import ROOT

MODULE = Path(__file__).parent / "gvisor"
CACHE = ROOT / "build/gvisor"
#: The first version whose `go` fetches the toolchain that a module asks for.
FETCHES_ITSELF = (1, 21)


def go(*arguments, program="go", **environment):
    done = subprocess.run(
        [program, *arguments], cwd=MODULE, text=True, capture_output=True, timeout=1800,
        env={**os.environ, "CGO_ENABLED": "0", **environment})
    assert done.returncode == 0, f"go {' '.join(arguments)}: {done.stderr[-3000:]}"
    return done.stdout


def toolchain():
    """A `go` as new as the module wants it. An old one knows the newer as a module, too; it only
    does not unpack it as executable."""
    found = tuple(map(int, re.search(r"go(\d+)\.(\d+)", go("version", GOTOOLCHAIN="local")).groups()))
    if found >= FETCHES_ITSELF:
        return "go"
    wanted = re.search(r"^go (\S+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)[1]
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"golang.org/toolchain@v0.0.1-go{wanted}.linux-amd64"],
        cwd="/", text=True, capture_output=True, timeout=600, env={**os.environ, "GOFLAGS": "-mod=mod"})
    assert done.returncode == 0, done.stdout + done.stderr
    root = Path(json.loads(done.stdout)["Dir"])
    for program in [*(root / "bin").iterdir(), *(root / "pkg/tool").rglob("*")]:
        if program.is_file():
            program.chmod(0o755)
    return str(root / "bin/go")


def build_runsc():
    """Its path. Takes two minutes the first time. gVisor starts itself anew where no file of the
    host is: it must need no dynamic linker, so it is built without cgo."""
    version = re.search(r"gvisor\.dev/gvisor v\S+-(\w+)", (MODULE / "go.mod").read_text())[1]
    CACHE.mkdir(parents=True, exist_ok=True)
    program = CACHE / f"runsc-{version}"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            made = CACHE / "runsc.new"
            go("build", "-o", str(made), "gvisor.dev/gvisor/runsc", program=toolchain())
            made.chmod(0o755)
            made.rename(program)
    return program
