"""Images that the node has, so that no pod needs a registry."""

from pathlib import Path

from support import rootfs
from support.server import EXECUTABLE

PAUSE = "docker.io/test/pause:1"
#: A shell with the usual tools.
BUSYBOX = "docker.io/test/busybox:1"
#: Debian with Python, where it is asked for.
DEBIAN = "docker.io/test/debian:12"
#: This program and nothing else: agent, egress sidecar and controller.
OPENSANDBOX = "docker.io/test/opensandbox:1"


def archives(directory, executable=EXECUTABLE, debian=False):
    """`docker save` archives of all of them, in `directory`."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    tree = rootfs.busybox_tree(directory / "busybox")
    layer = rootfs.tar_of_tree(tree, directory / "layer.tar").read_bytes()
    waits = ["/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"]
    path = {"Env": ["PATH=/bin:/usr/bin"]}
    yield rootfs.docker_archive(directory / "pause.tar", [layer], PAUSE, Entrypoint=waits, **path)
    yield rootfs.docker_archive(directory / "box.tar", [layer], BUSYBOX, Cmd=["/bin/sh"], **path)
    if debian:
        tree = rootfs.debian_tree(directory / "debian")
        layer = rootfs.tar_of_tree(tree, directory / "debian-layer.tar").read_bytes()
        yield rootfs.docker_archive(directory / "debian.tar", [layer], DEBIAN, Cmd=["/bin/bash"],
                                    Env=["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"])
    program = rootfs.tar_of_tree(_program_tree(directory / "program", executable), directory / "program.tar")
    yield rootfs.docker_archive(directory / "opensandbox.tar", [program.read_bytes()], OPENSANDBOX,
                                Entrypoint=["/opensandbox"], **path)


def _program_tree(directory, executable):
    for name in ("tmp", "etc", "var/egress"):
        (directory / name).mkdir(parents=True)
    target = directory / "opensandbox"
    target.write_bytes(Path(executable).read_bytes())
    target.chmod(0o755)
    return directory
