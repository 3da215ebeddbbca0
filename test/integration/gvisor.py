"""Sandboxes under gVisor: `secure_runtime.type = "gvisor"` of the native runtime."""

import http.client
import os
import signal
import time
import urllib.request
from datetime import datetime, timedelta, timezone

import pytest

from support.namespace import Elsewhere
from support.runsc import build_runsc
from support.sandbox_processes import in_sandbox, part_of_gvisor
from support.server import EXECUTABLE, Sandbox
from support.shell import eventually, run


@pytest.fixture(scope="module")
def runsc():
    return build_runsc()


@pytest.fixture(scope="module")
def gvisor(make_server, runsc):
    def make(**options):
        sections = {"secure_runtime": {"type": "gvisor", "runsc": str(runsc)}, **options.pop("sections", {})}
        return make_server(pool_size=2, sections=sections, **options)

    return make


@pytest.fixture(scope="module")
def server(gvisor, scratch):
    return gvisor(sections={"storage": {"allowed_host_paths": [str(scratch)]}})


def wait_state(sandbox, state):
    eventually(lambda: sandbox.state() == state, 30, 0.05, f"the state {state}")


def test_it_is_another_kernel(sandbox):
    assert sandbox.sh("uname -r").strip() != os.uname().release
    assert "gvisor" in sandbox.sh("cat /proc/version")
    # What runs it is nobody on the host.
    owners = {os.stat(f"/proc/{pid}").st_uid for pid in in_sandbox(sandbox)}
    assert owners and min(owners) >= 65536


def test_a_session_of_commands_and_files(sandbox):
    assert sandbox.sh("id -u; echo hello") == "0\nhello\n"
    assert sandbox.run("exit 3").code == 3
    assert sandbox.agent.write("/tmp/file", "text").status == 200
    assert sandbox.agent.read("/tmp/file").body == b"text"
    assert sandbox.sh("python3 -c 'print(6 * 7)'") == "42\n"
    assert sandbox.connect(proxy=True).sh("cat /tmp/file") == "text"
    assert sandbox.sh("ls -d /new /files /bundle /volumes /net 2>/dev/null; true") == ""


def test_the_entrypoints_output_and_code_are_known(server):
    entrypoint = ["sh", "-c", "echo begun; until [ -e /tmp/end ]; do sleep 0.1; done; exit 7"]
    with server.create(entrypoint=entrypoint) as sandbox:
        sandbox.sh("touch /tmp/end")
        wait_state(sandbox, "Failed")
        assert "7" in sandbox.get().json["status"]["message"]
        logs = server.api().get(sandbox.path("/diagnostics/logs"), query={"scope": "container"})
        assert "begun" in logs.body.decode()


def test_an_entrypoint_that_cannot_be_started_is_named(server):
    reply = server.api().post("/sandboxes", {
        "image": {"uri": "host"}, "entrypoint": ["/no/such/program"], "resourceLimits": {"memory": "256Mi"}})
    assert reply.status >= 400 and "entrypoint" in reply.json["message"], reply


CONNECT = """
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 2).close()
        print(target)
    except OSError:
        pass
"""


def reached(sandbox, *targets):
    return sandbox.sh("python3 - " + " ".join(targets) + " <<'PY'\n" + CONNECT + "PY\n").split()


def test_the_way_out_is_the_hosts_to_allow(server, sandbox, forwarding):
    """The rest of what the network may not is tried in gvisor_isolation.py."""
    with Elsewhere("198.51.100.7"):
        assert reached(sandbox, "198.51.100.7:80") == ["198.51.100.7:80"]
        with server.create(extensions={"opensandbox.io/network": "none"}) as alone:
            assert reached(alone, "198.51.100.7:80") == []
            assert alone.sh("echo works") == "works\n"
    assert reached(sandbox, "169.254.77.1:80", "169.254.77.1:44772") == []


def test_a_published_port_leads_inside(server):
    with server.create(extensions={"opensandbox.io/publish": "8000"}) as sandbox:
        list(sandbox.agent.events(
            {"command": "cd /tmp && echo served > index.html && "
             "exec python3 -m http.server 8000 --bind 127.0.0.1", "background": True}))
        endpoint = sandbox.endpoint(8000)["endpoint"]

        def page():
            try:
                with urllib.request.urlopen(f"http://{endpoint}/", timeout=10) as reply:
                    return reply.read()
            except OSError:
                return None

        eventually(lambda: page() == b"served\n", 20)


def test_volumes_are_the_hosts(server, scratch):
    shared = scratch / "gvisor-volume"
    shared.mkdir()
    (shared / "given").write_text("from the host")
    with server.create(volumes=[
        {"name": "a", "host": {"path": str(shared)}, "mountPath": "/data"},
        {"name": "b", "host": {"path": str(shared)}, "mountPath": "/fixed", "readOnly": True},
    ]) as sandbox:
        assert sandbox.sh("cat /data/given; id -u") == "from the host0\n"
        sandbox.sh("echo from inside > /data/made && chown 33 /data/made")
        assert (shared / "made").read_text() == "from inside\n"
        assert (shared / "made").stat().st_uid == 33
        assert sandbox.run("echo x > /fixed/other").code != 0
        (shared / "given").write_text("changed")
        assert sandbox.sh("cat /data/given") == "changed"


def test_programs_written_on_a_host_path_get_no_rights(server, scratch):
    """gVisor's kernel knows no supervisors: such modes are refused in all of the sandbox."""
    shared = scratch / "gvisor-rights"
    shared.mkdir()
    with server.create(volumes=[{"name": "a", "host": {"path": str(shared)}, "mountPath": "/data"}]) as sandbox:
        sandbox.sh("cp /bin/true /data/true; chmod 711 /data/true; chown 33 /data/true")
        for way in ("chmod 4755 /data/true", "chmod 6755 /data/true", "install -m 4755 /bin/true /data/true",
                    "python3 -c 'import os; os.setxattr(\"/data/true\", \"security.capability\","
                    " bytes.fromhex(\"0100000200040000000000000000000000000000\"))'"):
            assert sandbox.run(way).code != 0, way
    for file in shared.iterdir():
        assert file.stat().st_mode & 0o6000 == 0
        assert "security.capability" not in os.listxattr(file)


HUNGRY = "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.05)\n" \
         "x = bytearray()\nwhile True: x += bytes(8 << 20)"


def test_memory_ends_with_the_limit_and_the_reason_is_told(server):
    with server.create(resourceLimits={"memory": "256Mi"}, entrypoint=["python3", "-c", HUNGRY]) as small, \
            server.create() as neighbour:
        small.sh("touch /tmp/go")
        wait_state(small, "Failed")
        status = small.get().json["status"]
        assert status["reason"] == "OOM_KILLED", status
        assert "256 MiB" in status["message"]
        assert neighbour.sh("echo works") == "works\n"


FORKS = """
import os, signal
children = []
try:
    while len(children) < 2000:
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        children.append(pid)
except OSError as error:
    print("stopped", error.errno, len(children), flush=True)
for pid in children:
    os.kill(pid, signal.SIGKILL)
"""


def test_processes_end_with_the_limit(server):
    """gVisor's kernel cannot go on without a thread that it needs: the sandbox may end with that
    reason, where one on the host's kernel goes on."""
    with server.create(resourceLimits={"memory": "1Gi", "pids": "200"}) as greedy:
        with server.create() as neighbour:
            greedy.agent.write("/tmp/forks.py", FORKS)
            list(greedy.agent.events({"command": "python3 /tmp/forks.py > /tmp/said", "background": True}))

            def limited():
                status = greedy.get().json["status"]
                if status["state"] == "Failed":
                    assert status["reason"] == "PIDS_EXHAUSTED", status
                    return True
                try:
                    return "stopped 11" in greedy.run("cat /tmp/said").stdout
                except (OSError, http.client.HTTPException):
                    return False  # it has just ended

            eventually(limited, 60, 0.2, "the limit")
            assert neighbour.sh("echo works") == "works\n"


def test_a_pause_holds_it(server, sandbox):
    sandbox.sh("(sh -c 'i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.01; done' &)")
    count = eventually(lambda: next((server.state / "sandboxes").glob("*/u/tmp/count"), None), 20)
    assert server.api().post(sandbox.path("/pause")).status == 202
    wait_state(sandbox, "Paused")
    first = count.read_text()
    time.sleep(0.3)
    assert count.read_text() == first
    assert server.api().post(sandbox.path("/resume")).status == 202
    wait_state(sandbox, "Running")
    eventually(lambda: count.read_text() not in ("", first), 10, 0.01, "the counter")
    assert sandbox.sh("echo on") == "on\n"


def test_a_snapshot_has_what_was_written_before_it(server, sandbox):
    sandbox.sh("mkdir /data && python3 -c \"open('/data/big', 'wb').write(b'x' * 5000000)\""
               " && echo kept > /data/a && chown 33 /data/a && ln -s a /data/link && rm /etc/os-release"
               " && echo temporary > /tmp/t")
    # Held open, and never told to reach the disk.
    list(sandbox.agent.events({
        "command": "exec python3 -u -c \"import time\nf = open('/data/open', 'w', buffering=1)\n"
                   "f.write('line\\n')\nopen('/tmp/ready', 'w')\ntime.sleep(1000)\"",
        "background": True}))
    sandbox.sh("until [ -e /tmp/ready ]; do sleep 0.05; done")
    reply = server.api().post(sandbox.path("/snapshots"), {"name": "one"})
    assert reply.status in (201, 202), reply
    snapshot = reply.json["id"]
    eventually(lambda: server.api().get(f"/snapshots/{snapshot}").json["status"]["state"] == "Ready", 60)
    sandbox.sh("echo later > /data/a")
    with server.create(image=None, snapshotId=snapshot) as copy:
        assert copy.sh("cat /data/a /data/open /tmp/t; stat -c %u /data/a; readlink /data/link;"
                       " stat -c %s /data/big; test -e /etc/os-release || echo gone") == (
            "kept\nline\ntemporary\n33\na\n5000000\ngone\n")
    assert server.api().delete(f"/snapshots/{snapshot}").status == 204


def test_a_fork_is_a_copy_of_its_own(server, sandbox):
    sandbox.sh("echo source > /root/file")
    reply = server.api().post(sandbox.path("/fork"), {"count": 2})
    assert reply.status in (201, 202), reply
    copies = [Sandbox(server, item) for item in reply.json["items"]]
    assert len(copies) == 2
    for number, copy in enumerate(copies):
        with copy:
            assert copy.sh("cat /root/file") == "source\n"
            copy.sh(f"echo {number} > /root/file")
    assert sandbox.sh("cat /root/file") == "source\n"


def test_expiry_and_deletion_leave_nothing(gvisor):
    server = gvisor(name="leaves")
    before = server.census()
    sandboxes = [server.create() for _ in range(3)]
    sandboxes[0].sh("sleep 1000 & sleep 1000 &")
    soon = (datetime.now(timezone.utc) + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert server.api().post(sandboxes[1].path("/renew-expiration"), {"expiresAt": soon}).status == 200
    eventually(lambda: sandboxes[1].get().status == 404, 20, 0.1, "the expiry")
    sandboxes[0].delete()
    sandboxes[2].delete()
    server.expect_census(before)


def test_it_outlives_server_and_spawner(gvisor):
    server = gvisor(name="survives")
    before = server.census()
    sandbox = server.create()
    sandbox.sh("echo kept > /tmp/kept")
    server.kill()
    assert sandbox.sh("cat /tmp/kept") == "kept\n", "it answers without a server"
    server.start()
    assert sandbox.sh("cat /tmp/kept") == "kept\n"
    spawner = server.spawner()
    os.kill(spawner, signal.SIGKILL)
    eventually(lambda: server.spawner() not in (None, spawner), 30, 0.05, "another spawner")
    wait_state(sandbox, "Running")
    assert sandbox.connect().sh("cat /tmp/kept") == "kept\n"
    # Whoever adopted it can also hold it and see its end.
    assert server.api().post(sandbox.path("/pause")).status == 202
    wait_state(sandbox, "Paused")
    assert server.api().post(sandbox.path("/resume")).status == 202
    wait_state(sandbox, "Running")
    assert sandbox.sh("cat /tmp/kept") == "kept\n"
    sandbox.delete()
    server.expect_census(before)


@pytest.mark.parametrize("part", ["runsc", "runsc-sandbox", "runsc-gofer"])
def test_the_end_of_gvisor_is_the_sandboxs_with_its_reason(gvisor_ends, part):
    server = gvisor_ends
    with server.create() as sandbox, server.create() as neighbour:
        pids = in_sandbox(sandbox)
        os.kill(part_of_gvisor(sandbox, part), signal.SIGKILL)
        wait_state(sandbox, "Failed")
        status = sandbox.get().json["status"]
        assert status["reason"] == "GVISOR_ENDED", status
        assert "runsc" in status["message"] or "gVisor" in status["message"], status
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
        assert neighbour.sh("echo works") == "works\n"


@pytest.fixture(scope="module")
def gvisor_ends(gvisor):
    return gvisor(name="ends")


def test_turning_it_on_replaces_the_spawner_and_keeps_the_sandboxes(make_server, runsc):
    server = make_server(name="turned", pool_size=1)
    plain = server.create()
    assert "gvisor" not in plain.sh("cat /proc/version")
    server.stop()
    server.settings["secure_runtime"] = {"type": "gvisor", "runsc": str(runsc)}
    server.start()
    with server.create() as guarded:
        assert "gvisor" in guarded.sh("cat /proc/version")
        assert plain.sh("echo on") == "on\n"
    plain.delete()


def refusal(scratch, section, **environment):
    directory = scratch / "refused"
    directory.mkdir(exist_ok=True)
    lines = "".join(f'{key} = "{value}"\n' for key, value in section.items())
    (directory / "config.toml").write_text(
        f'[server]\nport = 0\n[native]\nstate_dir = "{directory}/state"\n[secure_runtime]\n{lines}')
    done = run(EXECUTABLE, "serve", "--config", directory / "config.toml", check=False, timeout=20,
               env={"PATH": os.environ["PATH"], "HOME": str(directory), **environment})
    assert done.returncode == 1
    return done.stderr


def test_without_its_program_the_server_says_which_key(scratch, runsc):
    empty = scratch / "empty"
    empty.mkdir(exist_ok=True)
    assert "secure_runtime.runsc: there is no /absent/runsc" in refusal(
        scratch, {"type": "gvisor", "runsc": "/absent/runsc"})
    assert "secure_runtime.runsc: there is no runsc in PATH" in refusal(
        scratch, {"type": "gvisor"}, PATH=str(empty))
    assert "secure_runtime.runsc: /usr/bin/env is linked dynamically" in refusal(
        scratch, {"type": "gvisor", "runsc": "/usr/bin/env"})
    assert "secure_runtime.type" in refusal(scratch, {"type": "kata"})
    private = empty / "runsc"
    private.write_bytes(b"#!/bin/sh\n")
    private.chmod(0o700)
    assert "chmod 755" in refusal(scratch, {"type": "gvisor"}, PATH=str(empty))


def test_the_doctor_knows_it(scratch, runsc):
    directory = scratch / "gvisor-path"
    directory.mkdir(exist_ok=True)
    (directory / "runsc").unlink(missing_ok=True)
    environment = {"PATH": f"{directory}:{os.environ['PATH']}", "HOME": str(directory)}
    (directory / "runsc").symlink_to(runsc)
    shown = run(EXECUTABLE, "doctor", "--state-dir", directory / "state", check=False, env=environment).stdout
    line = next(line for line in shown.splitlines() if "gVisor" in line)
    assert str(directory / "runsc") in line, shown
