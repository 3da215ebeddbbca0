"""What one sandbox uses up is its own: disk, processes, memory."""

import concurrent.futures
from pathlib import Path

import pytest

from support.processes import agent_process
from support.server import HOST_IMAGE, Sandbox, Server
from support.shell import eventually, run


def works(sandbox):
    return sandbox.sh("echo x > /tmp/w && cat /tmp/w") == "x\n"


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
