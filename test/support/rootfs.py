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
