"""Node programs of the tests, with the packages that they pin, installed once."""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from support.shell import run

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def environment(**more):
    """Node from the test environment comes before any other of the machine."""
    kept = {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy") or "CERT" in k or k == "HOME"}
    return {**kept, "PATH": f"{BIN}:{os.environ['PATH']}", "LANG": "C.UTF-8", "NO_UPDATE_NOTIFIER": "1", **more}


def installed(source):
    """A copy of a folder with its packages beside it, made anew when package.json changes."""
    source = Path(source)
    wanted = hashlib.sha256((source / "package.json").read_bytes()).hexdigest()
    target = ROOT / "build/test-node" / source.name
    mark = target / "installed"
    if not mark.exists() or mark.read_text() != wanted:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        shutil.copy(source / "package.json", target)
        run("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", cwd=target, env=environment(),
            timeout=300)
        mark.write_text(wanted)
    for file in source.glob("*.mjs"):
        shutil.copy(file, target)
    return target
