"""The native runtime of an ordinary user: the same API without any right that the user does not have.
The tests of isolation.py that need no network are run here once more."""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from integration.isolation import (  # noqa: F401: collected here, with this module's server
    attempts, inside,
    test_every_attempt_was_made_and_the_controls_succeed, test_root_inside_may_not,
    test_no_file_of_the_host_is_visible, test_no_process_of_the_host_is_visible,
    test_no_secret_of_the_hosts_etc_is_visible, test_no_signal_reaches_a_process_of_the_host,
    test_no_socket_of_the_host_is_visible, test_process_1_cannot_be_killed_from_inside,
    test_the_agents_token_is_needed_and_not_to_be_found_inside, test_namespaces_are_its_own,
    test_no_two_share_the_layout_of_their_memory, test_an_agent_shows_the_host_what_it_is_and_nobody_more,
    test_nothing_of_the_host_is_open_inside, test_device_files_of_an_image_do_not_open,
)
from support import kernel_objects, rootfs
from support.census import settled
from support.files_below import files_below
from support.processes import agent_process
from support.server import EXECUTABLE, HOST_IMAGE, Server, wait_gone
from support.shell import eventually, run
from support.users import Launched, User, tun_device


@pytest.fixture(scope="module")
def user(scratch):
    with Launched() as user:
        user.executable = user.copy(EXECUTABLE)
        # Those with a network are in rootless_network.py.
        user.shut_tun = tun_device(scratch / "shut-tun", 0o600)
        yield user


@pytest.fixture(scope="module")
def make_server(user):
    """Makes servers of the user that are gone, with all they made, when the module ends."""
    servers = []

    def make(name="server", executable=user.executable, **options):
        directory = user.home / f"{name}-{len(servers)}"
        server = Server(directory, user=user, launcher=user.launcher([(user.shut_tun, "/dev/net/tun")]),
                        executable=executable, **options)
        # Without a word of configuration about it, as the user would start it.
        del server.settings["native"]["state_dir"]
        server.state.rmdir()
        server.state = directory / ".opensandbox"
        servers.append((server, server.count()))
        return server.start()

    yield make
    problems = []
    for server, before in reversed(servers):
        try:
            server.destroy()
            server.expect_census({**before, "files": server.count()["files"]})
        except AssertionError as error:
            problems.append(f"{server.directory.name}: {error}\n{server.tail()}")
    eventually(lambda: not user.processes(), 20, 0.1, "the end of the user's processes")
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="module")
def server(make_server):
    return make_server()


def test_a_session_of_commands_and_files(server, sandbox):
    assert sandbox.sh("id -u; echo hello") == "0\nhello\n"
    assert sandbox.run("exit 3").code == 3
    assert sandbox.agent.write("/tmp/file", "text").status == 200
    assert sandbox.agent.read("/tmp/file").body == b"text"
    assert sandbox.sh("python3 -c 'print(6 * 7)'") == "42\n"
    assert sandbox.connect(proxy=True).sh("cat /tmp/file") == "text"


def test_nothing_of_it_runs_as_root(server, user, sandbox):
    assert os.stat(f"/proc/{server.process.pid}").st_uid == user.uid
    assert user.owns(os.stat(f"/proc/{agent_process(sandbox)}").st_uid)
    spawner = server.spawner()
    status = Path(f"/proc/{spawner}/status").read_text()
    assert f"Uid:\t{user.uid}\t{user.uid}\t{user.uid}\t{user.uid}\n" in status
    mine = Path(f"/proc/{spawner}/uid_map").read_text().split()
    assert mine[:3] == ["0", str(user.uid), "1"]
    for path in files_below(server.state):
        try:
            owner = path.lstat().st_uid
        except FileNotFoundError:  # of a slot that went meanwhile
            continue
        assert user.owns(owner), path


def test_the_executable_may_be_its_users_alone(make_server, user):
    """Root of a sandbox is somebody else, who may not execute it, and yet becomes it."""
    private = user.home / "private"
    private.mkdir()
    os.chown(private, user.uid, user.uid)
    executable = Path(shutil.copy(user.executable, private))
    os.chown(executable, user.uid, user.uid)
    executable.chmod(0o700)
    server = make_server("private", executable=executable)
    with server.create() as sandbox:
        assert sandbox.sh("id -u") == "0\n"
        assert os.readlink(f"/proc/{agent_process(sandbox)}/exe").startswith("/memfd:opensandbox")


def test_the_state_is_private(server):
    assert server.state.stat().st_mode & 0o077 == 0
    assert (server.state / "api-key").stat().st_mode & 0o077 == 0


def test_files_have_the_owners_that_programs_give_them(server, user, sandbox):
    sandbox.sh("touch /tmp/f && chown 33:44 /tmp/f && mkdir /tmp/d && chmod 2755 /tmp/d")
    assert sandbox.sh("stat -c %u:%g /tmp/f").strip() == "33:44"
    found = [p for p in (server.state / "sandboxes").glob("*/u/tmp/f")]
    assert len(found) == 1 and found[0].stat().st_uid == user.first_subordinate + 32


def test_two_sandboxes_do_not_see_each_other(server):
    with server.create() as one, server.create() as other:
        one.sh("echo secret > /tmp/secret; mkfifo /tmp/pipe; (sleep 4711 &)")
        assert other.run("cat /tmp/secret").code != 0
        assert "4711" not in other.sh("cat /proc/*/cmdline | tr '\\0' ' '")
        assert "4711" in one.sh("cat /proc/*/cmdline | tr '\\0' ' '")
        for kind in ("user", "mnt", "pid", "net", "ipc", "uts"):
            command = f"readlink /proc/self/ns/{kind}"
            assert one.sh(command) != other.sh(command)


def test_its_network_is_its_loopback(server, sandbox):
    assert sandbox.sh("ls /sys/class/net").split() == ["lo"]
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        out = sandbox.sh(
            "python3 - <<'PY'\n"
            "import socket\n"
            f"for host in ('127.0.0.1', '10.77.0.1', '169.254.169.254', '8.8.8.8'):\n"
            "    try:\n"
            f"        socket.create_connection((host, {port}), 2)\n"
            "        print('reached', host)\n"
            "    except OSError:\n"
            "        pass\n"
            "server = socket.create_server(('127.0.0.1', 0))\n"
            "socket.create_connection(server.getsockname(), 2)\n"
            "print('own loopback')\n"
            "PY\n")
    assert out == "own loopback\n"
    assert "localhost" in sandbox.sh("cat /etc/hosts")


def wait_ready(server, snapshot):
    def ready():
        state = server.api().get(f"/snapshots/{snapshot}").json["status"]["state"]
        assert state != "Failed"
        return state == "Ready"

    eventually(ready, 60, 0.05, "the snapshot")


def test_a_snapshot_starts_new_sandboxes(server, busybox, scratch):
    archive = rootfs.tar_of_tree(busybox, scratch / "rootless-busybox.tar")
    server.cli("image", "import", archive, "forked:1")
    body = {"image": {"uri": "forked:1"}, "entrypoint": ["tail", "-f", "/dev/null"]}
    with server.create(**body) as source:
        source.sh("mkdir /data && echo 1 > /data/a && chown 33 /data/a && rm -rf /etc/os-release /usr"
                  " && mkdir /usr && ln -s a /data/link")
        # A process that writes all the time is stopped for the copy and goes on.
        writer = list(source.agent.events(
            {"command": "while :; do date +%N > /data/time; done", "background": True}))[0]["text"]
        reply = source.server.api().post(source.path("/snapshots"), {"name": "one"})
        assert reply.status in (201, 202), reply
        snapshot = reply.json["id"]
        wait_ready(server, snapshot)
        eventually(lambda: source.agent.get(f"/command/status/{writer}").json["running"], 10)
        before = source.sh("cat /data/time")
        eventually(lambda: source.sh("cat /data/time") != before, 10, 0.05, "the writer")
    forks = [server.create(image=None, snapshotId=snapshot, entrypoint=["tail", "-f", "/dev/null"])
             for _ in range(3)]
    for n, fork in enumerate(forks):
        assert fork.sh("cat /data/a; stat -c %u /data/a; readlink /data/link") == "1\n33\na\n"
        assert fork.sh("ls /usr; test -e /etc/os-release || echo gone") == "gone\n"
        fork.sh(f"echo {n} > /data/mine")
    assert [f.sh("cat /data/mine") for f in forks] == ["0\n", "1\n", "2\n"]
    for fork in forks:
        fork.delete()
    assert server.api().delete(f"/snapshots/{snapshot}").status == 204
    server.cli("image", "remove", "forked:1")


def test_images_hide_what_their_upper_layers_removed(server, busybox, scratch):
    base = rootfs.tar_of_tree(busybox, scratch / "base.tar").read_bytes()
    lower = rootfs.tar_of([("data/old", b"old"), ("data/kept", b"kept"), ("gone", b"x")])
    upper = rootfs.tar_of([(".wh.gone", b""), ("data/.wh..wh..opq", b""), ("data/new", b"new")])
    archive = rootfs.docker_archive(scratch / "layers.tar", [base, lower, upper])
    server.cli("image", "import", archive, "layers:1")
    with server.create(image={"uri": "layers:1"}) as sandbox:
        assert sandbox.sh("ls /data; test -e /gone || echo hidden") == "new\nhidden\n"
    server.cli("image", "remove", "layers:1")


def test_a_pause_stops_every_process(server):
    with server.create() as sandbox:
        sandbox.sh("(sh -c 'i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.01; done' &)")
        eventually(lambda: sandbox.run("cat /tmp/count").code == 0, 10)
        count = next((server.state / "sandboxes").glob("*/u/tmp/count"))
        assert server.api().post(sandbox.path("/pause")).status == 202
        eventually(lambda: sandbox.state() == "Paused", what="the pause")
        first = count.read_text()
        for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
            try:
                if os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{agent(count, server)}/ns/pid"):
                    # "D" waits for the end of its own vfork, whose child is stopped.
                    assert Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "TZD"
            except OSError:
                continue
        assert count.read_text() == first
        assert server.api().post(sandbox.path("/resume")).status == 202
        eventually(lambda: sandbox.state() == "Running", what="the resumption")
        eventually(lambda: count.read_text() not in ("", first), 10, 0.05, "the counter")
        # A paused one can be deleted.
        assert server.api().post(sandbox.path("/pause")).status == 202
        eventually(lambda: sandbox.state() == "Paused", what="the second pause")
        sandbox.delete()


def agent(count, server):
    """Process 1 of the sandbox whose layer the file is in."""
    slot = count.relative_to(server.state / "sandboxes").parts[0]
    serial = int(slot[1:], 16)
    for entry in (server.state / "spawner/journal").iterdir():
        lines = dict(line.split(" ", 1) for line in entry.read_text().splitlines())
        if int(lines["serial"]) == serial:
            return int(lines["pid"])
    raise AssertionError("no such sandbox")


def test_limits_that_processes_can_have(server):
    with server.create(resourceLimits={"memory": "128Mi"}) as sandbox:
        done = sandbox.run(["python3", "-c", "x = bytearray(400 << 20)"])
        assert done.code != 0 and "MemoryError" in done.stderr
        assert sandbox.sh("python3 -c 'bytearray(16 << 20)' && echo enough") == "enough\n"


def test_what_is_off_is_said(server, sandbox):
    said = server.log.read_text(errors="replace")
    line = next(l for l in said.splitlines() if "opensandbox doctor" in l)
    for phrase in ("limits of cpu", "limits of memory", "a network beyond loopback"):
        assert phrase in line, line
    shown = server.api().get(sandbox.path("/diagnostics/inspect"))
    assert shown.status == 200 and "a network beyond loopback" in shown.text, shown.text


def test_a_killed_server_and_spawner_cost_no_sandbox(make_server, user):
    server = make_server("survival")
    sandbox, other = server.create(), server.create()
    sandbox.sh("echo kept > /tmp/kept")
    server.kill()
    server.start()
    assert sandbox.sh("cat /tmp/kept") == "kept\n"
    # Both at once: the next server finds its way back into the namespace of the sandboxes.
    namespace = os.readlink(f"/proc/{server.spawner()}/ns/user")
    spawner = server.spawner()
    server.kill()
    os.kill(spawner, signal.SIGKILL)
    wait_gone(spawner)
    server.start()
    assert os.readlink(f"/proc/{server.spawner()}/ns/user") == namespace
    for kept in (sandbox, other):
        assert kept.state() == "Running"
        assert kept.sh("echo alive") == "alive\n"
    with server.create() as fresh:
        assert fresh.sh("echo new") == "new\n"
    os.kill(agent_process(other), signal.SIGKILL)
    eventually(lambda: other.state() == "Failed", 15, 0.05, "the state Failed")
    for kept in (sandbox, other):
        kept.delete()


def test_the_command_line_of_the_user_finds_server_and_key(server, user):
    done = run("setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups",
               server.executable, "--server", server.address, "run", "--", "sh", "-c", "id -u; exit 4",
               check=False, env={"PATH": os.environ["PATH"], "HOME": str(server.directory)})
    assert (done.returncode, done.stdout) == (4, "0\n"), done


def test_without_subordinate_ids_it_says_what_to_do(user):
    with User("osbbare") as bare:
        last = bare.first_subordinate + bare.subordinates - 1
        run("usermod", "--del-subuids", f"{bare.first_subordinate}-{last}", bare.name)
        done = subprocess.run(
            [bare.copy(EXECUTABLE), "serve"], capture_output=True, text=True, timeout=20,
            env={"PATH": os.environ["PATH"], "HOME": str(bare.home)}, **bare.credentials())
    assert done.returncode == 1
    assert "subordinate ids" in done.stderr and "/etc/subuid" in done.stderr


def names(user):
    """How many of which processes run under the user's ids."""
    found = Counter()
    for pid in user.processes():
        try:
            found[Path(f"/proc/{pid}/comm").read_text().strip()] += 1
        except OSError:
            continue
    return {"processes": found}


def test_programs_written_on_a_host_path_give_others_no_rights_of_the_user(make_server, user):
    """Root inside is the user outside."""
    place = user.home / "volume"
    place.mkdir(mode=0o755)
    os.chown(place, user.uid, user.gid)
    server = make_server("volume", pool_size=1, sections={"storage": {"allowed_host_paths": [str(place)]}})
    with server.create(volumes=[{"name": "v", "host": {"path": str(place)}, "mountPath": "/v"}]) as sandbox:
        sandbox.sh("cp /usr/bin/id /v/id; cp /usr/bin/id /own")
        for way in ("chmod 4755 /v/id", "chown 7:7 /v/id && chmod 6755 /v/id"):
            refused = sandbox.run(way)
            assert refused.code != 0 and "not permitted" in refused.stderr + refused.stdout
        sandbox.sh("chown 0:0 /v/id; chmod 755 /v/id; chmod 4755 /own")
        assert sandbox.sh("stat -c %a /own") == "4755\n"
    assert os.stat(place / "id").st_uid == user.uid
    nobody = subprocess.run(["./id", "-u"], cwd=place, user=65534, group=65534, extra_groups=[], text=True,
                            capture_output=True)
    assert nobody.stdout == "65534\n", nobody


def test_a_deleted_sandbox_leaves_nothing(server, user):
    before = server.census()
    processes = settled(lambda: names(user), quiet=1.5)
    for _ in range(5):
        with server.create() as sandbox:
            sandbox.sh("mkdir /x && chown 5:5 /x && touch /x/y && chmod 0 /x && (sleep 1000 &)")
    server.expect_census(before)
    eventually(lambda: names(user) == processes, 30, 0.1, "the same processes as before")


def test_buckets_are_refused_since_only_root_can_show_them_to_sandboxes(server):
    bucket = {"bucket": "my-bucket", "endpoint": "oss.test", "accessKeyId": "a", "accessKeySecret": "b"}
    body = {**HOST_IMAGE, "volumes": [{"name": "v", "mountPath": "/v", "ossfs": bucket}]}
    reply = server.api().post("/sandboxes", body)
    assert (reply.status, reply.json["code"]) == (400, "SANDBOX::INVALID_PARAMETER"), reply
    assert "volumes.v.ossfs" in reply.json["message"]


def test_isolated_sessions_are_refused_with_the_reason(inside):
    told = inside.agent.get("/v1/isolated/capabilities").json
    assert told["available"] is False and "CAP_SYS_ADMIN" in told["message"], told
    refused = inside.agent.post("/v1/isolated/session", {"workspace": {"path": "/tmp", "mode": "rw"}})
    assert refused.status == 503 and refused.json["code"] == "NOT_SUPPORTED", refused


def test_a_sandbox_takes_no_more_than_a_share_of_what_the_kernel_counts_for_the_user(server):
    """inotify instances, pending signals, timers and message queues: see specs/kernel-limits.md."""
    kinds = ["inotify instances", "pending signals", "POSIX timers", "message queues"]
    program = Path(kernel_objects.__file__).read_text()
    with server.create() as greedy, server.create() as neighbour:
        for sandbox in (greedy, neighbour):
            assert sandbox.agent.write("/tmp/objects.py", program).status == 200
        lacking = "python3 /tmp/objects.py use"
        before = json.loads(neighbour.sh(lacking, timeout=120_000))
        takers = [
            greedy.connect().events({"command": f"exec python3 /tmp/objects.py take '{kind}' 60"})
            for kind in kinds
        ]
        taken = {
            kind: next(json.loads(e["text"]) for e in events if e["type"] == "stdout")
            for kind, events in zip(kinds, takers)
        }
        assert all(one["ended"] for one in taken.values()), f"each took all it could: {taken}"
        assert json.loads(neighbour.sh(lacking, timeout=120_000)) == before == {}, taken
