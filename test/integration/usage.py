"""What a sandbox uses can be read, by those who may."""

import re

from support.client import Http
from support.shell import eventually


def series(server, sandbox, key=True):
    text = server.api(key=key, prefix="").get("/metrics").text
    found = re.findall(r'^opensandbox_sandbox_(\w+)\{sandbox="([^"]+)"\} (\S+)$', text, re.M)
    return {name: float(value) for name, id, value in found if id == sandbox.id}


BURN = "python3 -c 'import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass'"
HOLD = "python3 -c 'import time; x = b\"x\" * (48 << 20); time.sleep(600)' >/dev/null 2>&1 & echo"


def test_figures_grow_with_use(server):
    with server.create(resourceLimits={"memory": "256Mi", "ephemeral-storage": "64Mi"}) as sandbox:
        before = series(server, sandbox)
        assert before["pids"] >= 1
        sandbox.sh(BURN)
        sandbox.sh(HOLD)
        sandbox.sh("dd if=/dev/urandom of=/tmp/file bs=1M count=16 2>/dev/null; sync")

        def grown():
            now = series(server, sandbox)
            return now if now["memory_bytes"] > 48 << 20 else None

        now = eventually(grown, 20, 0.1, "the memory in use")
        assert now["cpu_seconds_total"] >= before["cpu_seconds_total"] + 0.45
        assert now["memory_peak_bytes"] >= now["memory_bytes"] - (8 << 20)
        assert now["pids"] > before["pids"]
        assert now["disk_bytes"] >= before["disk_bytes"] + (15 << 20)
        assert now["oom_kills_total"] == 0
        text = server.api().get(sandbox.path("/diagnostics/inspect")).text
        assert "Usage:" in text and "CPU: " in text and "Disk: 64 MiB" in text


def test_the_network_counts_from_the_sandboxes_side(server, forwarding):
    with (
        server.create(extensions={"opensandbox.io/network": "count", "opensandbox.io/hostname": "sink"}) as sink,
        server.create(extensions={"opensandbox.io/network": "count"}) as source,
    ):
        sink.agent.write("/tmp/sink.py", (
            "import socket\n"
            "l = socket.create_server(('0.0.0.0', 9))\n"
            "c = l.accept()[0]\n"
            "while c.recv(65536): pass\n"))
        sink.sh("setsid python3 /tmp/sink.py >/dev/null 2>&1 & echo")
        send = ("import socket,time\n"
                "for _ in range(100):\n"
                "    try:\n"
                f"        s = socket.create_connection(('{sink.address()}', 9)); break\n"
                "    except OSError: time.sleep(0.1)\n"
                "s.sendall(b'x' * (4 << 20)); s.close()\n")
        assert source.run(["python3", "-c", send]).code == 0
        sent = series(server, source)
        assert sent["network_sent_bytes_total"] > 4 << 20
        assert sent["network_received_bytes_total"] < 2 << 20
        eventually(lambda: series(server, sink)["network_received_bytes_total"] > 4 << 20, 10, 0.1,
                   "what was received")


def test_ids_are_shown_to_callers_with_the_key_only(server):
    with server.create() as sandbox:
        assert series(server, sandbox)
        open_to_all = Http(server.address, None).get("/metrics")
        assert open_to_all.status == 200
        assert sandbox.id not in open_to_all.text
        assert "opensandbox_sandboxes" in open_to_all.text


def test_the_number_of_series_is_bounded(make_server):
    server = make_server("bounded", sections={"metrics": {"sandboxes": 2}})
    sandboxes = [server.create() for _ in range(3)]
    assert sum(1 for sandbox in sandboxes if series(server, sandbox)) == 2
    silent = make_server("silent", sections={"metrics": {"sandboxes": 0}})
    with silent.create() as sandbox:
        assert not series(silent, sandbox)


def test_the_agent_shows_the_sandboxes_own_limits(server):
    with server.create(resourceLimits={"cpu": "0.5", "memory": "96Mi"}) as sandbox:
        shown = sandbox.agent.get("/metrics").json
        assert shown["cpu_count"] in (0.5, 1)
        assert abs(shown["mem_total_mib"] - 96) < 1
