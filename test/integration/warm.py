"""Warm slots: an image's programs run before anybody asks for a sandbox of it."""

import concurrent.futures
import os
import re
import signal

import pytest

from support import rootfs
from support.server import HOST_IMAGE
from support.shell import eventually

PYTHON = [{"language": "python", "import": ["json", "http.client", "decimal"]}]
LOADED = "import sys; print(sorted(m for m in ('decimal', 'http.client', 'json') if m in sys.modules))"


def metric(server, name):
    text = server.api(prefix="").get("/metrics").text
    return float(re.search(rf"^{name} ([0-9.e+-]+)$", text, re.M)[1])


def await_ready(server, count):
    eventually(lambda: metric(server, "opensandbox_warm_slots_ready") == count, 60,
               what=f"{count} warm slots")


def run_code(sandbox, code):
    events = list(sandbox.agent.events({"code": code, "context": {"language": "python"}}, "/code"))
    assert events[-1]["type"] == "execution_complete", events
    return "".join(e.get("text", "") for e in events if e["type"] == "stdout")


def took_warm(server, before):
    """Whether the create since then came out of a warm slot."""
    eventually(lambda: metric(server, "opensandbox_warm_hits_total")
               + metric(server, "opensandbox_warm_misses_total") == sum(before) + 1,
               what="the figures of the create")
    return metric(server, "opensandbox_warm_hits_total") == before[0] + 1


def figures(server):
    return (metric(server, "opensandbox_warm_hits_total"), metric(server, "opensandbox_warm_misses_total"))


@pytest.fixture(scope="module")
def warm_server(make_server):
    return make_server("warm", sections={
        'native.warm.images."host"': {"programs": PYTHON, "size": 2, "max": 2}})


def test_the_first_code_finds_its_modules_loaded(warm_server):
    await_ready(warm_server, 2)
    before = figures(warm_server)
    with warm_server.create() as sandbox:
        assert took_warm(warm_server, before)
        # Loaded, and bound to no name.
        assert run_code(sandbox, LOADED) == "['decimal', 'http.client', 'json']\n"
        assert run_code(sandbox, "print('json' in globals())") == "False\n"
        assert run_code(sandbox, "import json; print(json.dumps({'a': 1}))") == '{"a": 1}\n'


def test_what_comes_with_the_request_holds_in_a_warm_slot(warm_server):
    await_ready(warm_server, 2)
    before = figures(warm_server)
    with warm_server.create(env={"GREETING": "hello", "EMPTY": ""}, resourceLimits={"memory": "300Mi"},
                            entrypoint=["sh", "-c", "echo $GREETING > /tmp/greeting; exec sleep 1000"]) as sandbox:
        assert took_warm(warm_server, before)
        name = sandbox.id[:8]
        assert sandbox.sh("hostname; cat /etc/hostname; echo $HOSTNAME").split() == [name] * 3
        assert name in sandbox.sh("cat /etc/hosts")
        assert sandbox.sh("echo $GREETING $OPENSANDBOX_ID") == f"hello {sandbox.id}\n"
        assert run_code(sandbox, "import os; print(os.environ['GREETING'], os.environ['EMPTY'] == '', "
                                 "os.environ['OPENSANDBOX_ID'], os.getenv('HOSTNAME'))"
                        ) == f"hello True {sandbox.id} {name}\n"
        assert run_code(sandbox, "print(open('/tmp/greeting').read(), end='')") == "hello\n"
        assert sandbox.sh("echo $OPENSANDBOX_MEMORY_LIMIT_BYTES") == f"{300 << 20}\n"
        # The limit holds for what was started before it was known.
        events = list(sandbox.agent.events(
            {"code": "x = b'x' * (600 << 20)", "context": {"language": "python"}}, "/code"))
        assert any(e["type"] == "error" for e in events), events


def test_variables_that_count_at_the_start_of_a_program_start_it_anew(warm_server):
    await_ready(warm_server, 2)
    before = figures(warm_server)
    with warm_server.create(env={"PYTHONPATH": "/tmp/mine"}) as sandbox:
        assert took_warm(warm_server, before)
        assert run_code(sandbox, "import sys; print('/tmp/mine' in sys.path)") == "True\n"
        assert run_code(sandbox, LOADED) != "['decimal', 'http.client', 'json']\n"


def test_nothing_of_a_sandbox_reaches_the_next(warm_server):
    pids = set()
    for number in range(5):
        eventually(lambda: metric(warm_server, "opensandbox_warm_slots_ready") > 0, 60, what="a warm slot")
        before = figures(warm_server)
        with warm_server.create() as sandbox:
            # Figures come a little later: the next test is to begin with none of these to come.
            took_warm(warm_server, before)
            assert run_code(sandbox, "import json\nprint(getattr(json, 'mark', None), 'mark' in globals())"
                            ) == "None False\n"
            assert "mark" not in sandbox.sh("ls /tmp")
            run_code(sandbox, f"json.mark = mark = {number}\nopen('/tmp/mark', 'w').write('x')")
            pids.add(sandbox.sh("readlink /proc/self/ns/pid"))
    assert len(pids) == 5


def test_a_burst_beyond_the_warm_slots_is_served_all_the_same(warm_server):
    await_ready(warm_server, 2)
    before = figures(warm_server)
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: warm_server.create(), range(8)))
        answers = list(threads.map(lambda s: run_code(s, "print(6 * 7)"), made))
        assert answers == ["42\n"] * 8
        list(threads.map(lambda s: s.delete(), made))
    eventually(lambda: sum(figures(warm_server)) == sum(before) + 8, what="the figures")
    assert figures(warm_server)[0] >= before[0] + 2


def test_volumes_are_not_for_warm_slots(warm_server):
    await_ready(warm_server, 2)
    before = figures(warm_server)
    with warm_server.create(volumes=[{"name": "v", "mountPath": "/data", "pvc": {
            "claimName": "warm-test", "createIfNotExists": True, "deleteOnSandboxTermination": True}}]) as sandbox:
        assert sandbox.sh("touch /data/x && ls /data") == "x\n"
        assert run_code(sandbox, "print(1)") == "1\n"
    assert figures(warm_server) == before


def test_an_image_declares_by_its_label(make_server, scratch, busybox):
    server = make_server("label")
    layer = rootfs.tar_of_tree(busybox, scratch / "warm-layer.tar").read_bytes()
    archive = scratch / "warm-image.tar"
    rootfs.oci_layout(archive, [layer], Labels={"opensandbox.io/warm": "[]"})
    server.cli("image", "import", archive, "warm-label:1")
    request = {**HOST_IMAGE, "image": {"uri": "warm-label:1"}, "entrypoint": ["/bin/sleep", "1000"]}
    fields = {key: request[key] for key in ("image", "entrypoint")}
    with server.create(**fields) as first:
        first.agent.run(["/bin/true"])
    await_ready(server, 1)
    before = figures(server)
    with server.create(**fields) as second:
        assert took_warm(server, before)
        assert second.agent.run(["/bin/true"]).code == 0
    # A server that starts knows which images there are.
    await_ready(server, 1)
    server.cli("image", "remove", "warm-label:1")
    await_ready(server, 0)


def test_programs_that_the_image_lacks_keep_nobody_from_a_sandbox(make_server, scratch, busybox):
    server = make_server("lacking")
    layer = rootfs.tar_of_tree(busybox, scratch / "lacking-layer.tar").read_bytes()
    archive = scratch / "lacking-image.tar"
    rootfs.oci_layout(archive, [layer], Labels={"opensandbox.io/warm": '[{"language":"python"}]'})
    server.cli("image", "import", archive, "warm-lacking:1")
    fields = {"image": {"uri": "warm-lacking:1"}, "entrypoint": ["/bin/sleep", "1000"]}
    with server.create(**fields) as sandbox:
        assert sandbox.agent.run(["/bin/true"]).code == 0
    eventually(lambda: metric(server, "opensandbox_warm_failures_total") >= 1, 30, what="the failure")
    log = server.state / "spawner" / "log"
    assert "python3" in log.read_text() and "warm-lacking:1" in log.read_text()
    with server.create(**fields) as sandbox:
        assert sandbox.agent.run(["/bin/true"]).code == 0


def test_warm_slots_end_with_their_spawner_and_come_back(warm_server):
    await_ready(warm_server, 2)
    with warm_server.create() as sandbox:
        await_ready(warm_server, 2)
        spawner = warm_server.spawner()
        os.kill(spawner, signal.SIGKILL)
        eventually(lambda: warm_server.spawner() not in (None, spawner), 30, what="another spawner")
        assert run_code(sandbox, "print(2)") == "2\n"
        await_ready(warm_server, 2)
