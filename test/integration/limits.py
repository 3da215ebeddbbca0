"""What one sandbox uses up is its own: disk, processes, memory."""

import concurrent.futures
import time
from pathlib import Path

import pytest

from support.processes import agent_process
from support.server import HOST_IMAGE, Sandbox, Server
from support.shell import eventually, run


def works(sandbox):
    return sandbox.sh("echo x > /tmp/w && cat /tmp/w") == "x\n"


@pytest.mark.plain
def test_memory_ends_with_the_limit(server):
    with server.create(resourceLimits={"memory": "96Mi"}) as small, server.create() as neighbour:
        done = small.run(
            ["python3", "-c", "x = bytearray()\nwhile True: x += bytes(8 << 20)"], timeout=60000
        )
        assert done.code != 0
        assert works(small), "only the command is ended"
        assert works(neighbour)
        assert small.state() == "Running"
        assert server.api(prefix="").get("/health").status == 200


FORKS = """
import os, signal, time
children = []
try:
    while len(children) < 20000:
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        children.append(pid)
except OSError as error:
    print("stopped", error.errno, len(children), flush=True)
time.sleep(float(os.environ.get("HOLD", "0")))
for pid in children:
    os.kill(pid, signal.SIGKILL)
for pid in children:
    os.waitpid(pid, 0)
"""


def test_processes_end_with_the_limit_and_neighbours_do_not_notice(server):
    with server.create(resourceLimits={"memory": "2Gi"}) as greedy, server.create() as neighbour:
        greedy.agent.write("/tmp/forks.py", FORKS)
        events = greedy.agent.events({"command": "exec python3 /tmp/forks.py", "envs": {"HOLD": "5"}})
        said = ""
        for event in events:
            if event["type"] == "stdout":
                said = event["text"]
                break
        assert said.startswith("stopped 11 "), f"EAGAIN expected: {said!r}"
        assert 16 <= int(said.split()[2]) < 20000
        # While it holds all the processes it may have:
        assert works(neighbour)
        with server.create() as another:
            assert works(another)
        assert server.api().get("/sandboxes").status == 200
        for _ in events:
            pass
        assert works(greedy), "it recovers"


@pytest.fixture
def small_disk(scratch):
    """A file system of 160 MiB in a file, so that a sandbox can fill it; the last of it is root's."""
    image, where = scratch / "small.img", scratch / "small"
    where.mkdir()
    with open(image, "wb") as f:
        f.truncate(160 << 20)
    run("mkfs.ext4", "-q", "-F", image)
    run("mount", "-o", "loop", image, where)
    yield where
    run("umount", where)
    image.unlink()
    where.rmdir()


FILL = "dd if=/dev/zero of=/tmp/fill bs=1M; dd if=/dev/zero of=/tmp/rest bs=512; sync; df /tmp"


def create_or_refusal(server):
    """A sandbox, or why there is none."""
    reply = server.api().post("/sandboxes", HOST_IMAGE)
    if reply.status == 202:
        return Sandbox(server, reply.json), ""
    assert (reply.status, reply.json["code"]) == (500, "NATIVE::SANDBOX_START_FAILED"), reply
    return None, reply.json["message"]


def test_a_full_disk_touches_neither_another_sandbox_nor_the_server(small_disk):
    server = Server(small_disk / "server", pool_size=2)
    server.start()
    try:
        before = server.census()
        greedy, neighbour = server.create(), server.create()
        assert works(neighbour)
        done = greedy.run(FILL, timeout=60000)
        assert "No space left" in done.stdout + done.stderr, done
        # The server goes on reading and writing.
        assert server.api(prefix="").get("/health").status == 200
        assert server.api().get("/sandboxes").json["pagination"]["totalItems"] == 2
        patched = server.api().patch(neighbour.path("/metadata"), {"written": "yes"})
        assert patched.status == 200
        # A neighbour runs; where it writes there is no space for it either, and it learns so.
        assert neighbour.sh("echo runs; cat /tmp/w") == "runs\nx\n"
        assert neighbour.sh("echo memory > /dev/shm/m; cat /dev/shm/m") == "memory\n"
        done = neighbour.run("dd if=/dev/zero of=/tmp/more bs=1M count=8")
        assert "No space left" in done.stdout + done.stderr, done
        # More sandboxes than blanks were waiting: each is whole, or refused with the reason.
        for _ in range(5):
            another, refusal = create_or_refusal(server)
            if another:
                done = another.run("echo runs; touch /x /usr/x")
                assert done.stdout == "runs\n" and "Read-only" not in done.stderr, done
                another.delete()
            else:
                assert "No space left" in refusal
        assert refusal, "no layer can be made on a full disk"
        greedy.sh("rm /tmp/fill /tmp/rest")
        assert works(greedy) and works(neighbour), "nothing of it stays"
        with server.create() as another:
            assert works(another)
            another.sh("echo y > /usr/y && rm /usr/y")
        greedy.delete()
        neighbour.delete()
        server.expect_census(before)
    finally:
        server.destroy()


def fill_completely(directory):
    """Takes the last byte, also of what is reserved for root. The files, to be removed."""
    files = []
    for size in (1 << 20, 4096, 1):
        files.append(directory / f"fill-{size}")
        try:
            with open(files[-1], "wb", buffering=0) as f:
                while True:
                    f.write(b"x" * size)
        except OSError:
            pass
    return files


def test_a_sandbox_can_be_deleted_from_a_completely_full_disk(small_disk):
    server = Server(small_disk / "server", pool_size=1)
    server.start()
    try:
        before = server.census()
        greedy, other = server.create(), server.create()
        greedy.run("dd if=/dev/zero of=/tmp/fill bs=1M", timeout=60000)
        fill_completely(small_disk)
        # The store takes nothing any more.
        reply = server.api().patch(other.path("/metadata"), {"key": "x" * 60})
        assert reply.status == 503, reply
        greedy.delete()
        assert greedy.get().status == 404
        assert server.api().get("/sandboxes").json["pagination"]["totalItems"] == 1
        # The space is there again, and nothing of it comes back.
        eventually(lambda: server.api().patch(other.path("/metadata"), {"a": "b"}).status == 200, 30)
        server.stop()
        server.start()
        assert [i["id"] for i in server.api().get("/sandboxes").json["items"]] == [other.id]
        assert works(other)
        other.delete()
        for file in small_disk.glob("fill-*"):
            file.unlink()
        server.expect_census(before)
    finally:
        for file in small_disk.glob("fill-*"):
            file.unlink()
        server.destroy()


ENTRYPOINT_OOM = ["python3", "-c", "x = bytearray()\nwhile True: x += bytes(8 << 20)"]


def test_an_entrypoint_that_ran_out_of_memory_says_so_with_figures(server):
    with server.create(entrypoint=ENTRYPOINT_OOM, resourceLimits={"memory": "64Mi"}) as sandbox:
        status = eventually(sandbox.ended, 60, 0.1, "the end of the sandbox")
        assert (status["state"], status["reason"]) == ("Failed", "OOM_KILLED"), status
        assert "limit is 64 MiB" in status["message"], status
        events = server.api().get(sandbox.path("/diagnostics/events")).text
        assert "OOMKilled - the sandbox ran out of memory; 1 process ended, limit 64 MiB" in events


@pytest.mark.plain
def test_a_process_inside_that_ran_out_of_memory_shows_in_the_events(server):
    with server.create(resourceLimits={"memory": "64Mi"}) as sandbox:
        done = sandbox.run(ENTRYPOINT_OOM, timeout=60000)
        assert done.code != 0
        assert sandbox.state() == "Running"
        reply = server.api().get(sandbox.path("/diagnostics/events"), query={"scope": "runtime"})
        assert "OOMKilled - the sandbox ran out of memory; 1 process ended" in reply.json["content"]


def test_a_sandbox_that_ran_out_of_processes_says_so_with_figures(server):
    greedy = ["python3", "-c", "import os, signal\nwhile os.fork(): pass\nsignal.pause()"]
    with server.create(entrypoint=greedy, resourceLimits={"pids": "32"}) as sandbox:
        status = eventually(sandbox.ended, 60, 0.1, "the end of the sandbox")
        assert (status["state"], status["reason"]) == ("Failed", "PIDS_EXHAUSTED"), status
        assert "limit of processes, 32, was hit" in status["message"], status
    with server.create(resourceLimits={"pids": "32"}) as sandbox:
        sandbox.agent.write("/tmp/forks.py", FORKS)
        assert "stopped 11 " in sandbox.sh("exec python3 /tmp/forks.py")
        events = server.api().get(sandbox.path("/diagnostics/events")).text
        assert "PidsLimit - the limit of 32 processes was hit" in events


@pytest.mark.parametrize("key", ["ephemeral-storage", "disk"])
def test_a_writable_layer_ends_with_its_limit_inside_only(server, key):
    with server.create(resourceLimits={key: "32Mi"}) as small, server.create() as neighbour:
        for path in ("/tmp/fill", "/usr/fill"):
            done = small.run(f"dd if=/dev/zero of={path} bs=1M")
            assert "No space left" in done.stdout + done.stderr, done
            size = int(small.sh(f"stat -c %s {path}"))
            assert size < 32 << 20
            assert works(neighbour)
            small.sh(f"rm {path}")
        assert small.sh("dd if=/dev/zero of=/tmp/fits bs=1M count=20 2>/dev/null; stat -c %s /tmp/fits") \
            == f"{20 << 20}\n"
        assert "Disk: 32 MiB" in server.api().get(small.path("/diagnostics/inspect")).text


def test_every_writable_layer_can_have_a_limit(make_server):
    server = make_server("layers", sections={"native": {"writable_layer": "48Mi"}})
    with server.create() as usual, server.create(resourceLimits={"disk": "24Mi"}) as smaller:
        for sandbox, limit in ((usual, 48 << 20), (smaller, 24 << 20)):
            sandbox.run("dd if=/dev/zero of=/tmp/fill bs=1M")
            size = int(sandbox.sh("stat -c %s /tmp/fill"))
            assert limit // 2 < size < limit
        # Ids are shifted there as elsewhere.
        assert usual.sh("rm /tmp/fill; touch /tmp/x; chown 33:44 /tmp/x; stat -c %u:%g /tmp/x") == "33:44\n"
        assert works(usual)


def test_a_snapshot_of_a_limited_layer_is_one_like_any_other(server):
    with server.create(resourceLimits={"disk": "32Mi"}) as small:
        small.sh("echo kept > /root/kept; echo there > /usr/there")
        reply = server.api().post(small.path("/snapshots"), {})
        assert reply.status == 202, reply
        path = f"/snapshots/{reply.json['id']}"
        eventually(lambda: server.api().get(path).json["status"]["state"] == "Ready", 30)
        body = {"snapshotId": reply.json["id"], "resourceLimits": {"disk": "32Mi"}, "timeout": 600}
        made = server.api().post("/sandboxes", body)
        assert made.status == 202, made
        with Sandbox(server, made.json) as again:
            assert again.sh("cat /root/kept /usr/there") == "kept\nthere\n"
        assert server.api().delete(path).status == 204


def test_files_that_may_be_open_end_with_the_limit(server):
    with server.create(resourceLimits={"open-files": "256"}) as sandbox:
        assert sandbox.sh("ulimit -Hn; ulimit -Sn") == "256\n256\n"
        assert sandbox.run("ulimit -n 257").code != 0
        code = "import os\nn=0\ntry:\n  while True: os.dup(0); n+=1\nexcept OSError as e: print(e.errno, n<256)"
        assert sandbox.run(["python3", "-c", code]).stdout == "24 True\n"


RECEIVE = """
import socket, time
listener = socket.create_server(("0.0.0.0", 9))
while True:
    connection = listener.accept()[0]
    while connection.recv(65536): pass
    connection.close()
"""
SEND = """
import socket, sys, time
for _ in range(200):
    try:
        s = socket.create_connection((sys.argv[1], 9)); break
    except OSError: time.sleep(0.05)
begin = time.monotonic()
s.sendall(b"x" * (3 << 20)); s.shutdown(1); s.recv(1)
print(time.monotonic() - begin)
"""


def test_the_network_is_held_back_to_its_rate_both_ways(server, forwarding):
    network = {"extensions": {"opensandbox.io/network": "rate"}}
    with (
        server.create(resourceLimits={"network-rate": "1Mi"}, **network) as slow,
        server.create(**network) as fast,
    ):
        for sandbox in (slow, fast):
            sandbox.agent.write("/tmp/receive.py", RECEIVE)
            sandbox.agent.write("/tmp/send.py", SEND)
            sandbox.sh("setsid python3 /tmp/receive.py >/dev/null 2>&1 & echo")
        for one, other in ((slow, fast), (fast, slow)):
            took = float(one.sh(f"python3 /tmp/send.py {other.address()}", timeout=60000))
            # 3 MiB at 1 MiB a second; less what buffers hold. Without the limit: some milliseconds.
            assert took > 1.5, f"{took} s"
        # Nobody inside can lift it.
        assert slow.run("tc qdisc del dev eth0 root").code != 0


def test_reading_from_the_disk_is_held_back_to_its_rate(server):
    limits = {"disk": "128Mi", "io-read-rate": "4Mi", "io-write-rate": "4Mi"}
    with server.create(resourceLimits=limits) as slow:
        write = "dd if=/dev/zero of=/root/file bs=1M count=12 oflag=direct 2>&1"
        begin = time.monotonic()
        slow.sh(write, timeout=60000)
        # 12 MiB at 4 MiB a second.
        assert time.monotonic() - begin > 1.5


def cgroup_value(pid, controller, *names):
    """The first of these files in the process's cgroup, version 1 or 2."""
    groups = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(",") if controllers else [""]:
            groups[name] = path
    mounts = [line.split() for line in open("/proc/self/mounts")]
    for _, where, kind, options, *_ in mounts:
        if kind == "cgroup" and controller in options.split(",") and controller in groups:
            base = Path(where + groups[controller])
        elif kind == "cgroup2":
            base = Path(where + groups.get("", "/"))
        else:
            continue
        # An agent may sit in a leaf below the group that has the limits.
        for directory in (base, *base.parents):
            for name in names:
                if (directory / name).exists():
                    text = (directory / name).read_text().strip()
                    if text not in ("max", "-1", "max 100000", "9223372036854771712"):
                        return text
    raise AssertionError(f"no limit of {controller} found for {pid}")


def test_limits_are_the_kernels(server):
    with server.create(resourceLimits={"cpu": "500m", "memory": "128Mi"}) as sandbox:
        pid = agent_process(sandbox)
        assert cgroup_value(pid, "memory", "memory.max", "memory.limit_in_bytes") == str(128 << 20)
        cpu = cgroup_value(pid, "cpu", "cpu.max", "cpu.cfs_quota_us").split()
        period = int(cpu[1]) if len(cpu) > 1 else int(
            cgroup_value(pid, "cpu", "cpu.cfs_period_us"))
        assert int(cpu[0]) * 2 == period
        assert int(cgroup_value(pid, "pids", "pids.max")) > 0
        assert sandbox.agent.get("/metrics").json["cpu_count"] in (0.5, 1)


def test_many_commands_at_once_do_not_stop_each_other(sandbox):
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        agents = [sandbox.connect() for _ in range(16)]
        outputs = list(threads.map(lambda a: a[1].sh(f"seq 1 2000; echo {a[0]}"), enumerate(agents)))
    expected = "".join(f"{n}\n" for n in range(1, 2001))
    assert outputs == [f"{expected}{n}\n" for n in range(16)]


def test_output_without_end_does_not_fill_the_agents_memory(sandbox):
    """Ten million lines, read as they come: the agent holds none of them back."""
    pid = agent_process(sandbox)

    def resident():
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])

    before = resident()
    received, last = 0, b""
    response = sandbox.agent.open("POST", "/command", body={"command": "yes | head -c 20971520"})
    while part := response.read1(1 << 20):
        received += len(part)
        last = (last + part)[-200:]
    assert b'"execution_complete"' in last
    assert received > 20971520
    assert resident() - before < 16 << 10, "KiB that the agent's peak grew by"


def test_descriptors_of_the_server_do_not_grow(server):
    pid = server.process.pid

    def count():
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))

    with server.create() as sandbox:
        works(sandbox)
    before = eventually(count)
    for _ in range(10):
        with server.create() as sandbox:
            works(sandbox)
    eventually(lambda: count() <= before + 2, 15, 0.2, f"{before} descriptors again")
