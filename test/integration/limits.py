"""What one sandbox uses up is its own: disk, processes, memory."""

import concurrent.futures
from pathlib import Path

import pytest

from support.processes import agent_process
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
    """A file system of 160 MiB in a file, so that a sandbox can fill it."""
    image, where = scratch / "small.img", scratch / "small"
    where.mkdir()
    with open(image, "wb") as f:
        f.truncate(160 << 20)
    run("mkfs.ext4", "-q", "-F", image)
    if run("mount", "-o", "loop", image, where, check=False).returncode != 0:
        # No loop devices here: memory behaves the same for this purpose.
        run("mount", "-t", "tmpfs", "-o", "size=160m", "none", where)
    yield where
    run("umount", where)
    image.unlink()
    where.rmdir()


def test_a_full_disk_touches_neither_another_sandbox_nor_the_server(scratch, small_disk):
    from support.server import Server

    server = Server(small_disk / "server", pool_size=2)
    server.start()
    try:
        before = server.census()
        greedy, neighbour = server.create(), server.create()
        works(neighbour)
        done = greedy.run("dd if=/dev/zero of=/tmp/fill bs=1M 2>&1; df /tmp | tail -1")
        assert "No space left" in done.stdout + done.stderr or "exceeded" in done.stdout, done
        # The server goes on reading and writing, and so does the neighbour.
        assert server.api(prefix="").get("/health").status == 200
        assert server.api().get("/sandboxes").json["pagination"]["totalItems"] == 2
        assert neighbour.sh("echo runs") == "runs\n"
        assert works(neighbour), "what one sandbox fills is not another's disk"
        patched = server.api().patch(neighbour.path("/metadata"), {"written": "yes"})
        assert patched.status == 200, "nor the server's"
        with server.create() as another:
            assert another.sh("echo runs") == "runs\n"
        greedy.sh("rm /tmp/fill")
        assert works(greedy)
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
