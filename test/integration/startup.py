"""How the server starts, what it refuses to start with, and the configuration it writes."""

import json
import os
import socket
import subprocess
import tomllib

import pytest

from support.server import EXECUTABLE, Server, free_range, stop_spawner
from support.shell import eventually, run


def serve(directory, text, *, env=None, timeout=15):
    """Starts a server that is expected not to start; returns what it ended with and said."""
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "config.toml"
    config.write_text(text)
    return subprocess.run(
        [EXECUTABLE, "serve", "--config", config], capture_output=True, text=True, timeout=timeout,
        stdin=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), **(env or {})},
    )


def native(directory):
    return f'[native]\nstate_dir = "{directory}/state"\naddress_range = "{free_range()}"\n[native.pool]\nsize = 0\n'


def test_it_refuses_to_listen_beyond_loopback_without_a_key(tmp_path):
    for host in ("0.0.0.0", "::"):
        done = serve(
            tmp_path, f'[server]\nhost = "{host}"\nport = 0\napi_key = ""\n' + native(tmp_path),
            env={"OPENSANDBOX_SERVER_API_KEY": ""},
        )
        assert done.returncode == 1, done
        assert "key" in (done.stderr + done.stdout).lower()
        assert not (tmp_path / "state/spawner.sock").exists()


def test_it_listens_beyond_loopback_with_a_key(scratch):
    server = Server(scratch / "wide", pool_size=0, sections={
        "server": {"host": "0.0.0.0", "api_key": "a-key-of-the-configuration"}})
    try:
        server.start()
        assert server.api(key="a-key-of-the-configuration").get("/sandboxes").status == 200
        assert server.api(key="another").get("/sandboxes").status == 401
    finally:
        server.stop()
        stop_spawner(server.state)


@pytest.mark.parametrize(
    "text, word",
    [
        ("[server\n", "config.toml"),
        ('[server]\nport = "many"\n', "port"),
        ("[server]\nport = 70000\n", "port"),
        ('[native]\naddress_range = "10.77.0.0"\n', "address_range"),
        ('[native]\naddress_range = "300.1.1.1/16"\n', "address_range"),
        ("[native.pool]\nsize = -1\n", "pool.size"),
        ('[runtime]\ntype = "nonsense"\n', "type"),
    ],
)
def test_a_wrong_configuration_names_the_key(tmp_path, text, word):
    done = serve(tmp_path, text)
    assert done.returncode not in (0, None)
    assert word in done.stderr + done.stdout, done


def test_a_missing_configuration_file_is_an_error(tmp_path):
    done = run(EXECUTABLE, "serve", "--config", tmp_path / "none.toml", check=False)
    assert done.returncode != 0 and "none.toml" in done.stderr + done.stdout


def test_a_taken_port_is_an_error(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = serve(tmp_path, f'[server]\nhost = "127.0.0.1"\nport = {port}\n' + native(tmp_path))
        assert done.returncode != 0 and str(port) in done.stderr + done.stdout
    stop_spawner(tmp_path / "state")


def test_two_servers_share_a_host_but_not_a_state_directory(scratch):
    one = Server(scratch / "one", pool_size=1)
    two = Server(scratch / "two", pool_size=1)
    try:
        one.start(), two.start()
        assert one.address != two.address and one.key != two.key
        with one.create() as a, two.create() as b:
            assert a.sh("echo a") == "a\n" and b.sh("echo b") == "b\n"
            assert one.api().get(b.path()).status == 404
        third = Server(scratch / "third", pool_size=1)
        third.settings["native"]["state_dir"] = str(one.state)
        with pytest.raises(AssertionError):
            third.start(timeout=10)
        if third.process.poll() is None:
            third.kill()
        assert one.api().get("/sandboxes").status == 200
    finally:
        one.destroy()
        two.destroy()


def test_the_key_stays_the_same_over_restarts(make_server):
    server = make_server("keys", pool_size=0)
    key = server.key
    server.stop()
    server.start()
    assert server.key == key
    assert server.api().get("/sandboxes").status == 200


def test_init_config_writes_a_commented_example_that_serves(tmp_path, scratch):
    path = tmp_path / "example.toml"
    assert run(EXECUTABLE, "init-config", path).returncode == 0
    text = path.read_text()
    parsed = tomllib.loads(text)
    assert "#" in text and "state_dir" in text and "api_key" in text
    assert {"server", "native"} <= set(parsed) or "[server]" in text
    again = run(EXECUTABLE, "init-config", path, check=False)
    assert again.returncode == 1 and path.read_text() == text
    assert run(EXECUTABLE, "init-config", path, "--force").returncode == 0


def test_logs_are_text_or_json_with_request_and_sandbox_id(make_server):
    server = make_server("json-log", pool_size=0, sections={"log": {"format": "json"}})
    with server.create() as sandbox:
        sandbox.sh("true")
    eventually(lambda: sandbox.id in server.log.read_text(), what="the sandbox in the log")
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    assert lines
    about = [line for line in lines if sandbox.id in json.dumps(line)]
    assert any("sandbox" in key for line in about for key in line), about
    assert any("request" in key for line in lines for key in line), lines[-3:]


def test_readiness_is_said_once_and_true(make_server):
    server = make_server("ready", pool_size=0)
    assert server.api(prefix="").get("/health").json == {"status": "healthy"}
