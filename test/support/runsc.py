"""gVisor's program, built once a machine from the pinned module of support/gvisor."""

import fcntl
import re
from pathlib import Path

from support.go_modules import go, toolchain
from support.server import ROOT

MODULE = Path(__file__).parent / "gvisor"
CACHE = ROOT / "build/gvisor"


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
            go(MODULE, "build", "-o", str(made), "gvisor.dev/gvisor/runsc", program=toolchain(MODULE))
            made.chmod(0o755)
            made.rename(program)
    return program
