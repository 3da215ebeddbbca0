"""Programs of other projects, built from Go modules that are pinned in folders beside this file."""

import json
import os
import re
import subprocess
from pathlib import Path

#: The first version whose `go` fetches the toolchain that a module asks for.
FETCHES_ITSELF = (1, 21)


def go(module, *arguments, program="go", **environment):
    done = subprocess.run(
        [program, *arguments], cwd=module, text=True, capture_output=True, timeout=1800,
        env={**os.environ, "CGO_ENABLED": "0", **environment})
    assert done.returncode == 0, f"go {' '.join(arguments)}: {done.stderr[-3000:]}"
    return done.stdout


def toolchain(module):
    """A `go` as new as the module wants it. An old one knows the newer as a module, too; it only
    does not unpack it as executable."""
    found = tuple(map(int, re.search(r"go(\d+)\.(\d+)", go(module, "version", GOTOOLCHAIN="local")).groups()))
    if found >= FETCHES_ITSELF:
        return "go"
    wanted = re.search(r"^go (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)[1]
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"golang.org/toolchain@v0.0.1-go{wanted}.linux-amd64"],
        cwd="/", text=True, capture_output=True, timeout=600, env={**os.environ, "GOFLAGS": "-mod=mod"})
    assert done.returncode == 0, done.stdout + done.stderr
    root = Path(json.loads(done.stdout)["Dir"])
    for program in [*(root / "bin").iterdir(), *(root / "pkg/tool").rglob("*")]:
        if program.is_file():
            program.chmod(0o755)
    return str(root / "bin/go")
