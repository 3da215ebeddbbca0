"""Long work that its client breaks off at a random point, and what must be left of it: nothing."""

import json
import os
import random
import signal
import socket
import struct
import subprocess
import tarfile
import threading
import time
from pathlib import Path

from support import rootfs
from support.processes import agent_process
from support.registry import OCI, digest
from support.shell import eventually

#: What memory may be more than at rest at any moment of the work, and after it.
PEAK_KIB = 128 << 10
REST_KIB = 24 << 10
#: Of a file that is nearly one hole, in an archive, a layer or a copy.
SPARSE_BYTES = 8 << 20

DOCKERFILE = "FROM broken:base\nRUN while :; do :; done\n"


def status_kib(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise AssertionError(f"no {name} of {pid}")


def processor_ticks(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def at_rest(pid):
    """Whether a process does next to nothing for a while; one that is gone never does."""
    try:
        before = processor_ticks(pid)
        time.sleep(0.25)
        return processor_ticks(pid) - before <= 3
    except OSError:
        return False


class Watched:
    """A process whose memory must not follow the size of what is broken off."""

    def __init__(self, name, pid):
        self.name = name
        self.pid = pid
        self.resident = status_kib(pid, "VmRSS")

    def begin(self):
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        self.before = status_kib(self.pid, "VmHWM")

    def expect_rest(self):
        assert os.path.exists(f"/proc/{self.pid}"), f"the {self.name} is gone"
        eventually(lambda: at_rest(self.pid), 30, what=f"rest of the {self.name} (or it is gone)")
        peak = status_kib(self.pid, "VmHWM")
        assert peak < self.before + PEAK_KIB, f"{self.name}: {peak} KiB in use meanwhile, {self.before} before"

    def expect_memory_as_before(self):
        resident = status_kib(self.pid, "VmRSS")
        assert resident < self.resident + REST_KIB, f"{self.name}: {resident} KiB, {self.resident} before"


def zeros(size):
    piece = bytes(1 << 20)
    while size > 0:
        yield piece[:size]
        size -= len(piece)


def file_of_zeros(name, size):
    """The pieces of a tar with one file of zeros."""
    info = tarfile.TarInfo(name)
    info.size = size
    yield info.tobuf(tarfile.PAX_FORMAT)
    yield from zeros(size)
    yield bytes(-size % 512 + 1024)


def packed(pieces):
    """Compressed with zstd, which makes next to nothing of zeros."""
    pipe = subprocess.Popen(["zstd", "-q", "-1", "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def feed():
        for piece in pieces:
            pipe.stdin.write(piece)
        pipe.stdin.close()

    thread = threading.Thread(target=feed)
    thread.start()
    data = pipe.stdout.read()
    thread.join()
    assert pipe.wait() == 0
    return data


class Request:
    """One request whose answer is taken only in part."""

    def __init__(self, http_client, method, path, body=None, length=None):
        host, port = http_client.address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        lines = [f"{method} {http_client.base}{http_client.prefix}{path} HTTP/1.1", f"Host: {http_client.address}"]
        lines += [f"{name}: {value}" for name, value in http_client.headers.items()]
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            lines.append("Content-Type: application/json")
        if body is not None:
            lines.append(f"Content-Length: {len(body) if length is None else length}")
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + (body or b""))

    def take(self, size, seconds):
        """Up to so much of the answer, for no longer than that."""
        end = time.monotonic() + seconds
        while size > 0 and (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                got = self.socket.recv(min(size, 65536))
            except TimeoutError:
                return
            if not got:
                return
            size -= len(got)

    def break_off(self, reset):
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class BrokenOff:
    """A server with a sandbox and images of which every part is large. `size` is what the files
    claim; on the disk they are next to nothing, but for one of `dense` bytes, of which the disk only
    keeps the place. `kept` is the size of what is copied and packed to its end."""

    def __init__(self, server, registry, directory, *, size, dense, kept, seed=None):
        self.server = server
        self.registry = registry
        self.directory = Path(directory)
        self.directory.mkdir(parents=True)
        self.size = size
        self.kept = kept
        self.random = random.Random(seed)
        tree = rootfs.busybox_tree(self.directory / "tree")
        base = rootfs.tar_of_tree(tree, self.directory / "base.tar")
        server.cli("image", "import", base, "broken:base")
        self.sandbox = self.make_sandbox()
        self.sandbox.sh("mkdir /data /holes && echo text > /data/small")
        self.sandbox.sh(f"truncate -s {size} /holes/huge && echo text >> /holes/huge")
        # Of a file whose place is taken no hole shows.
        self.sandbox.sh(f"fallocate -l {dense} /data/dense")
        # Another, since copying what has its place, though no content, takes as long as content.
        self.copied = self.make_sandbox()
        self.copied.sh(f"truncate -s {size} /huge && fallocate -l {dense // 20} /some")
        self.make_images()
        self.build_context = self.directory / "context"
        self.build_context.mkdir()
        (self.build_context / "Dockerfile").write_text(DOCKERFILE)
        self.watched = [Watched("server", server.process.pid), Watched("agent", agent_process(self.sandbox))]

    def make_sandbox(self):
        return self.server.create(
            image={"uri": "broken:base"}, entrypoint=["/bin/sleep", "36000"],
            resourceLimits={"cpu": "1", "memory": "256Mi"}, timeout=36000,
        )

    def make_images(self):
        """broken:huge with a layer that takes long to pack, out of a snapshot; the same at the
        registry and in an archive, packed, which take long to unpack."""
        with self.make_sandbox() as sandbox:
            sandbox.sh(f"truncate -s {self.size} /huge && echo text >> /huge")
            snapshot = self.take_snapshot(sandbox)
            made = self.server.api().post(f"/snapshots/{snapshot}/image", {"reference": "broken:huge"})
            assert made.status == 201, made
            self.server.api().delete(f"/snapshots/{snapshot}")
        blob = packed(file_of_zeros("etc/zeros", self.kept))
        config = rootfs.image_config([b"never reached"])
        self.archive = self.layout(blob, config)
        layer = {"mediaType": f"{OCI}.layer.v1.tar+zstd", **self.registry.put_blob("broken", blob)}
        configuration = {"mediaType": f"{OCI}.config.v1+json", **self.registry.put_blob("broken", config)}
        self.registry.put_manifest("broken", "1", {
            "schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json", "config": configuration,
            "layers": [layer],
        })
        self.remote = f"{self.registry.host}/broken:1"

    def layout(self, blob, config):
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json",
            "config": {"mediaType": f"{OCI}.config.v1+json", "digest": digest(config), "size": len(config)},
            "layers": [{"mediaType": f"{OCI}.layer.v1.tar+zstd", "digest": digest(blob), "size": len(blob)}],
        }).encode()
        index = json.dumps({
            "schemaVersion": 2, "manifests": [
                {"mediaType": f"{OCI}.manifest.v1+json", "digest": digest(manifest), "size": len(manifest)}],
        }).encode()
        blobs = {digest(data): data for data in (blob, config, manifest)}
        return rootfs.tar_of([
            ("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index),
            *((f"blobs/sha256/{name.split(':')[1]}", data) for name, data in blobs.items()),
        ])

    def take_snapshot(self, sandbox):
        reply = self.server.api().post(f"/sandboxes/{sandbox.id}/snapshots", {})
        assert reply.status == 202, reply
        name = reply.json["id"]

        def settled():
            status = self.server.api().get(f"/snapshots/{name}").json["status"]
            assert status["state"] != "Failed", status
            return status["state"] == "Ready"

        eventually(settled, 120, what="the snapshot")
        return name

    # Each begins one work and returns its request.

    def archive_of_a_file(self):
        return Request(self.sandbox.agent, "GET", "/files/archive?path=/data/dense")

    def archive_by_the_servers_proxy(self):
        return Request(self.sandbox.connect(proxy=True), "GET", "/files/archive?path=/data")

    def replacing(self):
        return Request(self.sandbox.agent, "POST", "/files/replace", {"/holes/huge": {"old": "absent", "new": "x"}})

    def search(self):
        return Request(self.sandbox.agent, "GET", "/files/search?path=/&pattern=absent*")

    def export(self):
        return Request(self.server.api(), "GET", "/images/export?reference=broken:huge")

    def push(self):
        name = f"{self.registry.host}/pushed:{self.random.randrange(10**9)}"
        return Request(self.server.api(), "POST", "/images/push", {"reference": "broken:huge", "destination": name})

    def pull(self):
        return Request(self.server.api(), "POST", "/images/pull", {"reference": self.remote})

    def import_that_is_cut(self):
        some = self.archive[: self.random.randrange(len(self.archive))]
        return Request(self.server.api(), "POST", "/images?reference=cut:1", some, length=len(self.archive))

    def import_that_came_whole(self):
        return Request(self.server.api(), "POST", "/images?reference=cut:2", self.archive)

    WORKS = (archive_of_a_file, archive_by_the_servers_proxy, replacing, search, export, push, pull,
             import_that_is_cut, import_that_came_whole)

    def break_off(self, work, most_seconds, least_seconds=0):
        for watched in self.watched:
            watched.begin()
        request = work(self)
        try:
            request.take(self.random.randrange(1 << 24), self.random.uniform(least_seconds, most_seconds))
        finally:
            request.break_off(self.random.random() < 0.5)
        self.expect_nothing(work.__name__)

    def expect_nothing(self, work):
        try:
            for watched in self.watched:
                watched.expect_rest()
            eventually(lambda: not self.left(), 30, what="the end of all files")
        except AssertionError as error:
            raise AssertionError(f"{work}: {error}; left: {self.left()}") from error

    def left(self):
        staged = [str(path) for path in (self.server.state / "images/staging").iterdir()]
        names = self.sandbox.sh("ls -A /data /holes").split()
        return staged + [n for n in names if n not in ("/data:", "/holes:", "dense", "small", "huge")]

    def break_off_a_build(self, most_seconds):
        """The command line's build, interrupted."""
        before = self.server.api().get("/sandboxes").json["pagination"]["totalItems"]
        build = subprocess.Popen(
            [self.server.executable, "image", "build", "-t", "broken:built", self.build_context],
            env=self.server.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        try:
            time.sleep(self.random.uniform(0.1, most_seconds))
            assert build.poll() is None, "the build has no end of its own"
        finally:
            build.send_signal(signal.SIGINT)
            build.wait(60)

        def gone():
            return self.server.api().get("/sandboxes").json["pagination"]["totalItems"] == before

        eventually(gone, 60, what="the end of the build's sandbox")
        self.expect_nothing("build")

    def break_off_a_snapshot(self, most_seconds):
        """The contract lets a snapshot go on; deleted, nothing of it stays."""
        request = Request(self.server.api(), "POST", f"/sandboxes/{self.copied.id}/snapshots", {})
        request.take(1 << 16, self.random.uniform(0, most_seconds))
        request.break_off(True)

        def deleted():
            items = self.server.api().get("/snapshots").json["items"]
            for item in items:
                reply = self.server.api().delete(f"/snapshots/{item['id']}")
                assert reply.status in (204, 404, 409), reply
            return not items

        eventually(deleted, 120, what="the end of the snapshot")
        self.expect_nothing("snapshot")

    def expect_memory_as_before(self):
        for watched in self.watched:
            watched.expect_memory_as_before()

    def begin_all(self):
        """Every work at once; the requests must be held."""
        return [work(self) for work in self.WORKS]
