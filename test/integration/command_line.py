"""The command line of the executable: what it prints, and what it ends with."""

import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest

from support import rootfs
from support.shell import eventually, run


@pytest.fixture
def osb(server):
    """Runs the command line and returns its standard output; fails unless it ends with 0."""

    def call(*argv, **options):
        return server.cli(*argv, **options).stdout

    return call


def listed(server):
    return {i["id"] for i in server.api().get("/sandboxes", query={"pageSize": 200}).json["items"]}


# --- run ------------------------------------------------------------------------------------------


def test_run_prints_the_output_and_leaves_nothing(server):
    before = listed(server)
    done = server.cli("run", "--", "sh", "-c", "echo out; echo err >&2")
    assert done.stdout == "out\n"
    assert done.stderr.endswith("err\n")
    assert listed(server) == before


@pytest.mark.parametrize("code", [0, 1, 3, 42, 255])
def test_run_ends_with_the_commands_own_code(server, code):
    assert server.cli("run", "--", "sh", "-c", f"exit {code}", check=False).returncode == code


def test_run_passes_arguments_as_they_are(server):
    out = server.cli("run", "--image", "host", "--", "printf", "%s|", "a b", "$HOME", "'", '"', "", "*").stdout
    assert out == "a b|$HOME|'|\"||*|"


def test_run_streams(server):
    process = subprocess.Popen(
        [server.executable, "run", "--", "sh", "-c", "echo first; cat /dev/zero | head -c 1 >/dev/null; sleep 1000"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=server.environment(), text=True,
    )
    try:
        assert process.stdout.readline() == "first\n"  # long before the command ends
    finally:
        before = listed(server)
        process.send_signal(signal.SIGINT)
        process.wait(20)
    assert process.returncode != 0
    eventually(lambda: len(listed(server)) < len(before), what="the sandbox's end after an interrupt")


def test_run_of_an_unknown_image_is_an_error(server):
    done = server.cli("run", "--image", "nosuch:1", "--", "true", check=False)
    assert done.returncode == 1
    assert "nosuch" in done.stderr and done.stdout == ""


def test_binary_output_passes_up_to_the_contracts_utf8(server):
    assert server.cli("run", "--", "printf", "gr\\303\\274\\303\\237e\\n").stdout == "grüße\n"


# --- sandbox --------------------------------------------------------------------------------------


def created(osb, *argv):
    return json.loads(osb("sandbox", "create", "--image", "host", "-o", "json", *argv))["id"]


def test_a_sandboxs_life(server, osb):
    id = created(osb, "--timeout", "10m", "-m", "team=x", "-e", "GREETING=hi")
    try:
        shown = json.loads(osb("sandbox", "get", id, "-o", "json"))
        assert shown["id"] == id and shown["metadata"] == {"team": "x"}
        assert id in osb("sandbox", "get", id)
        assert "team: x" in osb("sandbox", "get", id, "-o", "yaml")
        items = json.loads(osb("sandbox", "list", "-m", "team=x", "-o", "json"))["items"]
        assert [i["id"] for i in items] == [id]
        assert id in osb("sandbox", "list")
        assert json.loads(osb("sandbox", "list", "-s", "Paused", "-o", "json"))["items"] == []
        assert osb("command", "run", id, "--", "sh", "-c", "echo $GREETING") == "hi\n"
        renewed = json.loads(osb("sandbox", "renew", id, "--timeout", "2h", "-o", "json"))
        assert server.api().get(f"/sandboxes/{id}").json["expiresAt"][:19] in json.dumps(renewed)
        endpoint = json.loads(osb("sandbox", "endpoint", id, "--port", "8080", "-o", "json"))
        assert endpoint["endpoint"]
    finally:
        osb("sandbox", "kill", id)
    assert server.api().get(f"/sandboxes/{id}").status == 404


def test_errors_end_with_1_and_say_why(server):
    for argv in (
        ("sandbox", "get", "none"), ("sandbox", "kill", "none"), ("command", "run", "none", "--", "true"),
        ("file", "cat", "none", "/x"), ("sandbox", "create", "--image", "nosuch:1"),
        ("image", "remove", "nosuch:1"),
    ):
        done = server.cli(*argv, check=False)
        assert done.returncode == 1, (argv, done)
        assert done.stderr.strip() and not done.stdout.strip(), (argv, done)


@pytest.mark.parametrize(
    "argv",
    [("nonsense",), ("sandbox",), ("sandbox", "nonsense"), ("sandbox", "get"), ("command", "run"),
     ("sandbox", "list", "--nonsense"), ("sandbox", "list", "-o", "xml"), ("run",),
     ("sandbox", "create", "--timeout", "soon")],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2(server, argv):
    done = server.cli(*argv, check=False)
    assert done.returncode == 2, done
    assert done.stderr.strip()


def test_an_unreachable_server_is_an_error(server):
    done = server.cli("sandbox", "list", check=False, env={"OPEN_SANDBOX_DOMAIN": "127.0.0.1:1"})
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr


def test_a_wrong_key_is_an_error(server):
    done = server.cli("sandbox", "list", check=False, env={"OPEN_SANDBOX_API_KEY": "wrong"})
    assert done.returncode == 1 and done.stderr.strip()


def test_flags_are_stronger_than_the_environment(server):
    done = server.cli(
        "--domain", server.address, "--api-key", server.key, "sandbox", "list", "-o", "json",
        env={"OPEN_SANDBOX_DOMAIN": "127.0.0.1:1", "OPEN_SANDBOX_API_KEY": "wrong"},
    )
    assert "items" in json.loads(done.stdout)


def test_help_and_version(server):
    for argv in (("--help",), ("help",), ("sandbox", "--help"), ("run", "--help")):
        done = server.cli(*argv)
        assert "sage" in done.stdout, argv
    version = server.cli("version").stdout
    assert server.api(prefix="").get("/version").json["version"] in version


def test_other_names_play_other_roles(server, tmp_path):
    name = tmp_path / "osb"
    name.symlink_to(server.executable)
    assert "items" in json.loads(run(name, "sandbox", "list", "-o", "json", env=server.environment()).stdout)


def test_progress_goes_to_a_terminal_only(server):
    piped = server.cli("run", "--", "true")
    assert piped.stdout == "" and piped.stderr == ""


# --- command --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def inside(server):
    with server.create() as sandbox:
        yield sandbox


def test_command_run_ends_with_the_commands_code_and_options_hold(inside, osb, server):
    assert server.cli("command", "run", inside.id, "--", "sh", "-c", "exit 7", check=False).returncode == 7
    assert osb("command", "run", inside.id, "-w", "/usr", "--", "pwd") == "/usr\n"
    timed = server.cli("command", "run", inside.id, "-t", "1s", "--", "sleep", "1000", check=False)
    assert timed.returncode not in (0, 2)


def test_background_status_logs_interrupt(inside, osb):
    text = osb("command", "run", inside.id, "-d", "-o", "json", "--", "sh", "-c", "echo begun; sleep 1000")
    execution = json.loads(text)["execution_id"]

    def status():
        return json.loads(osb("command", "status", inside.id, execution, "-o", "json"))

    assert status()["running"] is True

    def listed(*options):
        items = json.loads(osb("command", "list", inside.id, "-o", "json", *options))["items"]
        return [(item["running"], item["background"]) for item in items if item["id"] == execution]

    refused = inside.agent.get("/command", query={"limit": "101"})
    assert (refused.status, refused.json["code"]) == (400, "INVALID_QUERY")
    assert inside.agent.get("/command", query={"running": "true"}).json["pagination"] == {"limit": 50}
    assert listed() == listed("--running") == [(True, True)] and listed("--ended") == []
    eventually(lambda: "begun" in osb("command", "logs", inside.id, execution), what="the output")
    osb("command", "interrupt", inside.id, execution)
    eventually(lambda: status()["running"] is False, what="its end")
    assert listed("--ended", "--limit", "100") == [(False, True)] and listed("--running") == []


# --- file -----------------------------------------------------------------------------------------


def test_files_go_in_and_out(inside, osb, tmp_path):
    id = inside.id
    local, back = tmp_path / "local", tmp_path / "back"
    local.write_bytes(os.urandom(1 << 20))
    osb("file", "upload", id, str(local), "/tmp/cli/deep/file")
    osb("file", "download", id, "/tmp/cli/deep/file", str(back))
    assert back.read_bytes() == local.read_bytes()
    osb("file", "write", id, "/tmp/cli/text", "-c", "grüße\n")
    assert osb("file", "cat", id, "/tmp/cli/text") == "grüße\n"
    osb("file", "write", id, "/tmp/cli/stdin", input="from stdin")
    assert osb("file", "cat", id, "/tmp/cli/stdin") == "from stdin"
    osb("file", "mkdir", id, "/tmp/cli/dir")
    osb("file", "mv", id, "/tmp/cli/text", "/tmp/cli/dir/moved")
    osb("file", "chmod", id, "/tmp/cli/dir/moved", "--mode", "600")
    info = json.loads(osb("file", "info", id, "/tmp/cli/dir/moved", "-o", "json"))
    assert "600" in json.dumps(info)
    osb("file", "replace", id, "/tmp/cli/dir/moved", "--old", "grüße", "--new", "greetings")
    assert osb("file", "cat", id, "/tmp/cli/dir/moved") == "greetings\n"
    found = osb("file", "search", id, "/tmp/cli", "-p", "mov*", "-o", "json")
    assert "/tmp/cli/dir/moved" in found
    osb("file", "rm", id, "/tmp/cli/dir/moved")
    osb("file", "rmdir", id, "/tmp/cli")
    assert inside.run("ls /tmp/cli").code != 0


def test_a_download_that_fails_leaves_no_file(inside, server, tmp_path):
    target = tmp_path / "x"
    assert server.cli("file", "download", inside.id, "/none", str(target), check=False).returncode == 1
    assert list(tmp_path.iterdir()) == []


# --- image ----------------------------------------------------------------------------------------


def forms(busybox, directory):
    archive = rootfs.tar_of_tree(busybox, directory / "root.tar")
    layer = archive.read_bytes()
    upper = rootfs.tar_of([("etc/upper", b"of the upper layer\n"), (".wh.root", b"")])
    config = {"Env": ["GREETING=of the image"], "WorkingDir": "/tmp", "Entrypoint": ["/bin/sh"]}
    return {
        "root archive": archive,
        "root directory": busybox,
        "OCI layout": rootfs.oci_layout(directory / "oci.tar", [layer, upper], **config),
        "docker archive": rootfs.docker_archive(directory / "docker.tar", [layer, upper], **config),
    }


@pytest.mark.parametrize("form", ["root archive", "root directory", "OCI layout", "docker archive"])
def test_images_of_every_form_are_imported_and_run(server, osb, busybox, tmp_path, form):
    before = server.census()
    source = forms(busybox, tmp_path)[form]
    osb("image", "import", str(source), "imported:1")
    try:
        items = json.loads(osb("image", "list", "-o", "json"))
        items = items["items"] if isinstance(items, dict) else items
        assert {"host:latest", "host"} & {i["reference"] for i in items}
        mine = next(i for i in items if i["reference"] == "imported:1")
        assert mine["digest"].startswith("sha256:") and mine["size"] > 1_000_000
        assert osb("run", "--image", "imported:1", "--", "cat", "/etc/os-release").startswith("ID=busybox")
        if form in ("OCI layout", "docker archive"):
            out = osb("run", "--image", "imported:1", "--", "sh", "-c", "cat /etc/upper; ls -d /root; "
                      "echo $GREETING; true")
            assert "of the upper layer" in out and "of the image" in out
            assert "/root\n" not in out, "a whiteout hides what the lower layer has"
    finally:
        osb("image", "remove", "imported:1")
    server.expect_census(before)


def test_an_oci_layout_may_be_a_directory(server, osb, busybox, tmp_path):
    archive = rootfs.oci_layout(
        tmp_path / "oci.tar", [rootfs.tar_of_tree(busybox, tmp_path / "root.tar").read_bytes()]
    )
    layout = tmp_path / "layout"
    layout.mkdir()
    run("tar", "-xf", archive, "-C", layout)
    osb("image", "import", str(layout), "layout:1")
    try:
        assert osb("run", "--image", "layout:1", "--", "echo", "fine") == "fine\n"
    finally:
        osb("image", "remove", "layout:1")


def test_an_import_that_fails_says_why(server, tmp_path):
    bad = tmp_path / "bad.tar"
    rootfs.tar_of([("../../evil", b"x")], bad)
    done = server.cli("image", "import", str(bad), "bad:1", check=False)
    assert done.returncode == 1 and "../../evil" in done.stderr
    assert server.cli("image", "import", str(tmp_path / "none"), "bad:1", check=False).returncode in (1, 2)
    assert "bad:1" not in server.cli("image", "list").stdout


# --- the terminal ---------------------------------------------------------------------------------


def test_on_a_terminal_the_output_is_the_commands(server):
    """Progress may be shown there, on standard error, and never mixes with the output."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [server.executable, "run", "--", "echo", "the output"], stdout=subprocess.PIPE, stderr=slave,
        env=server.environment(),
    )
    os.close(slave)
    out = process.stdout.read()
    assert process.wait(30) == 0
    seen, end = b"", time.monotonic() + 2
    while time.monotonic() < end and select.select([master], [], [], 0.1)[0]:
        try:
            part = os.read(master, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(master)
    assert out == b"the output\n"
    assert b"the output" not in seen
