"""The C++ client as others get it: installed from a build tree, used by a project outside of it.

OPENSANDBOX_BUILD names another build tree than that of the executable under test."""

import os
import shutil
from pathlib import Path

from support.server import EXECUTABLE, ROOT
from support.shell import run

BUILD = Path(os.environ.get("OPENSANDBOX_BUILD", EXECUTABLE.parent))


def install(prefix):
    run("cmake", "--install", BUILD, "--component", "sdk", "--prefix", prefix)
    return prefix


def build_programs(directory, *targets):
    """Builds programs of test/package against an installation of its own; returns where they are."""
    prefix = install(directory / "prefix")
    project = directory / "project"
    shutil.copytree(ROOT / "test/package", project)
    shutil.copytree(ROOT / "test/examples", project / "examples")
    (project / "examples/CMakeLists.txt").unlink()
    build = directory / "build"
    run("cmake", "-S", project, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_BUILD_TYPE=Debug", timeout=120)
    run("cmake", "--build", build, "-j2", "--target", *(targets or ["all"]), timeout=900)
    return build
