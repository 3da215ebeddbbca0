"""Root file systems to import: a busybox tree in every form that the image store takes."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path


def busybox_tree(directory):
    """A root directory of one static busybox with its applets: about 2 MB."""
    root = Path(directory)
    for name in ("bin", "etc", "tmp", "root", "proc", "sys", "dev", "var", "usr/bin"):
        (root / name).mkdir(parents=True, exist_ok=True)
    os.chmod(root / "tmp", 0o1777)
    busybox = shutil.which("busybox")
    shutil.copy(busybox, root / "bin/busybox")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout
    for applet in applets.split():
        link = root / "bin" / applet
        if not link.exists() and not link.is_symlink():
            link.symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/tmp:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\napp:x:1000:\n")
    (root / "etc/os-release").write_text('ID=busybox-test\nPRETTY_NAME="busybox of the tests"\n')
    return root


def tar_of_tree(tree, path):
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(tree, arcname=".", recursive=True, filter=_owned_by_root)
    return Path(path)


def _owned_by_root(member):
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def tar_of(entries, path=None):
    """A tar of (name, content) or (TarInfo, content) pairs; bytes, or written to `path`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in entries:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            if info.isreg():
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    data = buffer.getvalue()
    if path is None:
        return data
    Path(path).write_bytes(data)
    return Path(path)


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def image_config(layers, **config):
    """The bytes of an OCI image configuration for uncompressed layers."""
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
        }
    ).encode()


def oci_layout(path, layers, *, compress=True, **config):
    """An OCI image layout as a tar archive at `path`. `layers` are uncompressed tars, lowest first."""
    blobs = {}

    def put(data):
        name = digest(data)
        blobs[name] = data
        return {"digest": name, "size": len(data)}

    kind = "application/vnd.oci.image"
    configuration = {"mediaType": f"{kind}.config.v1+json", **put(image_config(layers, **config))}
    described = []
    for layer in layers:
        data = gzip.compress(layer, 1, mtime=0) if compress else layer
        suffix = "+gzip" if compress else ""
        described.append({"mediaType": f"{kind}.layer.v1.tar{suffix}", **put(data)})
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": f"{kind}.manifest.v1+json",
            "config": configuration,
            "layers": described,
        }
    ).encode()
    index = json.dumps(
        {
            "schemaVersion": 2,
            "manifests": [{"mediaType": f"{kind}.manifest.v1+json", **put(manifest)}],
        }
    ).encode()
    entries = [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index)]
    entries += [(f"blobs/sha256/{name.removeprefix('sha256:')}", data) for name, data in blobs.items()]
    return tar_of(entries, path)


def docker_archive(path, layers, tag="example:latest", **config):
    """What `docker save` writes, for uncompressed layers, lowest first."""
    configuration = image_config(layers, **config)
    name = digest(configuration).removeprefix("sha256:") + ".json"
    names = [f"{hashlib.sha256(layer).hexdigest()}/layer.tar" for layer in layers]
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": names}]).encode()
    entries = [(name, configuration), *zip(names, layers), ("manifest.json", manifest)]
    return tar_of(entries, path)


def debian_tree(directory, packages=("dash", "bash", "coreutils", "python3", "tar", "gzip", "grep", "sed", "findutils", "procps",
                                       "util-linux")):
    """A root directory of these packages as this machine has them, with all that they depend on: a
    real distribution without a download. About 90 MB."""
    root = Path(directory)
    for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "tmp", "root", "proc", "sys", "dev", "run", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in _MERGED:
        (root / name).symlink_to(f"usr/{name}")
    for name in ("tmp", "var/tmp"):
        os.chmod(root / name, 0o1777)
    listed = subprocess.run(["dpkg-query", "-L", *_with_dependencies(packages)], capture_output=True, text=True, check=True)
    paths = sorted({_merged(path) for path in listed.stdout.splitlines() if _wanted(path)})
    archive = subprocess.Popen(["tar", "-C", "/", "--no-recursion", "-c", "-T", "-"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
    unpack = subprocess.Popen(["tar", "-C", root, "-x"], stdin=archive.stdout)
    archive.stdout.close()
    archive.stdin.write("\n".join(paths).encode() + b"\n")
    archive.stdin.close()
    if unpack.wait() or archive.wait():
        raise AssertionError("the files of the packages could not be copied")
    for name in ("passwd", "group"):
        shutil.copy(f"/usr/share/base-passwd/{name}.master", root / "etc" / name)
    for name in ("os-release", "debian_version"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    subprocess.run(["ldconfig", "-r", root], check=True)
    return root


_MERGED = ("bin", "sbin", "lib", "lib64")


def _merged(path):
    """Where a path is on a file system whose /bin is /usr/bin."""
    path = path.lstrip("/")
    return f"usr/{path}" if path.split("/")[0] in _MERGED else path


def _wanted(path):
    return path.startswith("/") and path != "/." and path.lstrip("/") not in _MERGED and not path.startswith(
        ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/", "/usr/lib/python3/dist-packages/"))


def _with_dependencies(packages):
    """The packages and what they need, as far as it is installed."""
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package}\t${db:Status-Abbrev}\t${Pre-Depends}, ${Depends}\t${Provides}\n"],
        capture_output=True, text=True, check=True).stdout
    needs, provided = {}, {}
    for line in shown.splitlines():
        name, state, depends, provides = line.split("\t")
        if state.startswith("ii"):
            needs[name] = [_names(alternatives) for alternatives in depends.split(",")]
            for virtual in provides.split(","):
                provided.setdefault("".join(_names(virtual)), name)
    found, waiting = set(), list(packages)
    while waiting:
        name = waiting.pop()
        name = name if name in needs else provided.get(name)
        if name and name not in found:
            found.add(name)
            waiting += [alternatives[0] for alternatives in needs[name] if alternatives]
    return sorted(found)


def _names(alternatives):
    return [a.split("(")[0].split(":")[0].strip() for a in alternatives.split("|") if a.strip()]
