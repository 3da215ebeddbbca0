"""What the command line refuses: every option and argument of every command, from its own table, and
servers that cannot be reached or want something else."""

import json
import re
import shlex
import subprocess

import pytest

from support.server import EXECUTABLE
from support.shell import run
from support.tls_front import TlsFront, make_certificate

#: Nothing listens there: what is refused is refused before a server is asked.
NOWHERE = "127.0.0.1:1"

#: By the value that the help says an option takes: one that is no such, and what the answer says.
WRONG = {
    "NUMBER": ("many", "a whole number"),
    "LINES": ("0", "a whole number"),
    "PORT": ("65536", "1 to 65535"),
    "SECONDS": ("-1", "a whole number"),
    "DURATION": ("soon", "10m"),
    "DURATION|none": ("soon", "none"),
    "OCTAL": ("9", "octal digits"),
    "KEY=VALUE": ("=x", "KEY=VALUE"),
    "ACTION=TARGET": ("maybe=x", "allow=TARGET"),
    "STATE": ("Odd", "one of"),
    "http|https": ("ftp", "http, https"),
    "native|overlaybd": ("tar", "native, overlaybd"),
}

#: What a command needs one of, and so no option of it is required.
NEEDED = {"sandbox create": ["-i", "x"], "template create": ["-i", "x", "-p", "s3://x/y"]}

#: Commands that ask no server.
LOCAL = {"login", "logout", "config show", "config init", "config set", "doctor", "image tag", "completion", "man",
         "skills list", "skills show", "skills install", "skills uninstall"}

#: How often an argument may be left out.
OPTIONAL = ("optional", "optional payload", "any number")


def table():
    return json.loads(run(EXECUTABLE, "help", "-o", "json").stdout)


TABLE = table() if EXECUTABLE.exists() else {"commands": [], "options": []}
COMMANDS = {c["name"]: c for c in TABLE["commands"]}


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")

    def call(*argv, input="", **environment):
        return run(EXECUTABLE, *argv, check=False, input=input, timeout=30, cwd=home, env={
            "PATH": "/usr/bin:/bin", "HOME": str(home), "OPEN_SANDBOX_DOMAIN": NOWHERE,
            "OPEN_SANDBOX_API_KEY": "k", **environment})

    return call


def minimal(command, without=None):
    """Arguments and required options of a command, as words that are accepted."""
    words = [*command["name"].split(), *NEEDED.get(command["name"], [])]
    for option in command["options"]:
        if option["required"] and option["name"] != without:
            words += [option["name"], {"PORT": "80", "DURATION": "60s", "ACTION=TARGET": "allow=a.b",
                                       "OCTAL": "644", "NUMBER": "1"}.get(option["value"], "x")]
    return words + [f"x{i}" for i, a in enumerate(command["arguments"]) if a["count"] not in OPTIONAL
                    and a["name"] != without]


def refused(done, *said):
    assert done.returncode == 2, done
    assert done.stdout == "", done
    for text in said:
        assert text in done.stderr, (text, done.stderr)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_names_itself_when_it_is_wrong(call, name):
    command = COMMANDS[name]
    base = minimal(command)
    words, payload = base, []
    if any(a["count"] == "payload" for a in command["arguments"]):
        words, payload = base[:-1], ["--", base[-1]]
    refused(call(*words, "--nonsense", *payload), "--nonsense", name.split()[0])
    for option in command["options"]:
        if option["value"] is None:
            refused(call(*words, f"{option['name']}=x", *payload), option["name"], "no value")
            continue
        refused(call(*command["name"].split(), option["name"]), option["name"], option["value"])
        if option["value"] in WRONG:
            bad, says = WRONG[option["value"]]
            others = [w for w in minimal(command, without=option["name"]) if w not in payload]
            refused(call(*others, option["name"], bad, *payload), option["name"], says)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_names_itself_when_it_is_missing(call, name):
    command = COMMANDS[name]
    for wanted in [a for a in command["arguments"] if a["count"] not in OPTIONAL][-1:]:
        refused(call(*minimal(command, without=wanted["name"])), wanted["name"])
    for option in command["options"]:
        if option["required"]:
            refused(call(*minimal(command, without=option["name"])), option["name"])
    if all(a["count"] in ("one", "optional") for a in command["arguments"]):
        most = [f"y{i}" for i in range(len(command["arguments"]) + 1)]
        refused(call(*minimal({**command, "arguments": []}), *most), most[-1])


@pytest.mark.parametrize("option", [o for o in TABLE["options"] if o["value"] in WRONG],
                         ids=lambda o: o["name"])
def test_every_option_of_all_commands_names_itself(call, option):
    bad, says = WRONG[option["value"]]
    refused(call(option["name"], bad, "sandbox", "list"), option["name"], says)


def test_what_is_no_command_is_told_with_what_there_is(call):
    refused(call("sandbx"), "sandbx", "did you mean 'sandbox'")
    refused(call("sandbox", "lst"), "lst", "did you mean 'list'")
    refused(call("credential-vault", "binding", "xyzzy"), "xyzzy", "list, get")
    refused(call("sandbox", "list", "-o", "xml"), "xml", "table, json, yaml")


@pytest.mark.parametrize("argv, says", [
    (("sandbox", "create"), "--image"),
    (("sandbox", "create", "-i", "a", "--template", "t", "-t", "1h"), "--template"),
    (("sandbox", "create", "--template", "t"), "--timeout"),
    (("sandbox", "create", "--template", "t", "-t", "none"), "--timeout"),
    (("sandbox", "create", "--template", "t", "-t", "1h", "-e", "A=1"), "--env"),
    (("sandbox", "create", "-i", "a", "--image-auth-username", "u"), "--image-auth-password"),
    (("sandbox", "create", "-i", "a", "--credential-proxy"), "--network-policy-file"),
    (("sandbox", "create", "-i", "a", "--volumes-file", "/none"), "--volumes-file"),
    (("sandbox", "create", "-f", "/none"), "--file"),
    (("sandbox", "create", "-f", "/dev/null"), "--file"),
    (("sandbox", "create", "-f", "/none", "-i", "a"), "--image"),
    (("command", "run", "sb", "-o", "json", "--", "x"), "--output"),
    (("command", "run", "sb", "-d", "-o", "raw", "--", "x"), "--output"),
    (("command", "run", "sb", "--argv", "--shell", "--", "x"), "--argv"),
    (("file", "cat", "sb", "/x", "--encoding", "latin-1"), "--encoding"),
    (("file", "upload", "sb", "/", "/x"), "LOCAL"),
    (("template", "create", "-i", "a"), "--publish"),
    (("template", "create", "-f", "x", "-i", "a"), "--image"),
    (("config", "set", "no.such", "x"), "connection.domain"),
    (("config", "set", "connection.protocol", "ftp"), "http, https"),
    (("config", "set", "connection.request_timeout", "x"), "connection.request_timeout"),
    (("config", "set", "output.color", "red"), "true, false"),
    (("config", "set", "defaults.timeout", "soon"), "defaults.timeout"),
], ids=lambda v: " ".join(v) if isinstance(v, tuple) else v)
def test_what_does_not_go_together_is_told(call, argv, says):
    refused(call(*argv), says)


@pytest.mark.parametrize("payload, says", [
    ("[]", "object"), ("a: [", "line"), ("credentials: 1\nbindings: []", "credentials"),
    ("credentials: []", "bindings"), ("a: &x secret-value\nb: *x", "anchors"),
])
def test_files_are_checked_and_not_quoted(call, payload, says):
    done = call("credential-vault", "create", "sb", "--file", "-", input=payload)
    assert done.returncode == 1 and done.stdout == ""
    assert "--file" in done.stderr and says in done.stderr and "secret-value" not in done.stderr


def test_a_refusal_may_be_json(call):
    for argv in (("sandbox", "get", "-o", "json"), ("sandbox", "list", "--nonsense", "-o", "json"),
                 ("--output=json", "sandbox", "renew", "sb", "-t", "soon")):
        done = call(*argv)
        document = json.loads(done.stderr)
        assert done.returncode == 2 and done.stdout == ""
        assert (document["status"], document["kind"], document["code"]) == ("error", "usage", "usage")
        assert document["message"]


# --- servers --------------------------------------------------------------------------------------


def failed(done, *said):
    assert done.returncode == 1, done
    assert done.stdout == "", done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("Error: "), done.stderr
    for text in said:
        assert text in done.stderr, (text, done.stderr)


def lines_for_a_server():
    """The first example of each command, when it needs nothing of this machine."""
    for name, command in COMMANDS.items():
        line = command["examples"][0]["line"]
        words = shlex.split(line.replace(" -o json", ""))
        needs_file = re.search(r"\.(yaml|json|csv|tar|sh|py|js)\b", line) or name.startswith("image")
        if name not in LOCAL and not needs_file:
            yield name, words


REMOTE = dict(lines_for_a_server())


@pytest.mark.parametrize("name", REMOTE)
def test_a_server_that_is_not_there_is_one_line(call, name):
    done = call(*REMOTE[name], OPEN_SANDBOX_REQUEST_TIMEOUT="5")
    notes = [l for l in done.stderr.splitlines() if not l.startswith("Note: ")]
    failed(subprocess.CompletedProcess([], done.returncode, done.stdout, "\n".join(notes)), NOWHERE,
           "opensandbox serve")


@pytest.mark.parametrize("name", REMOTE)
def test_a_wrong_key_is_one_line(call, server, name):
    done = call(*REMOTE[name], OPEN_SANDBOX_DOMAIN=server.address, OPEN_SANDBOX_API_KEY="wrong")
    notes = [l for l in done.stderr.splitlines() if not l.startswith("Note: ")]
    failed(subprocess.CompletedProcess([], done.returncode, done.stdout, "\n".join(notes)), "--api-key")


def test_failures_may_be_json(call, server):
    for environment, code, status in (
        ({}, "unavailable", None),
        ({"OPEN_SANDBOX_DOMAIN": server.address, "OPEN_SANDBOX_API_KEY": "wrong"}, "INVALID_API_KEY", 401),
        ({"OPEN_SANDBOX_DOMAIN": server.address, "OPEN_SANDBOX_API_KEY": server.key},
         "NATIVE::SANDBOX_NOT_FOUND", 404),
    ):
        done = call("sandbox", "get", "none", "-o", "json", **environment)
        assert done.returncode == 1 and done.stdout == ""
        document = json.loads(done.stderr)
        assert (document["status"], document.get("http_status")) == ("error", status), document
        assert document["code"].split("::")[-1] == code.split("::")[-1] and document["message"], document
        assert bool(document.get("request_id")) == (status is not None), document


def test_several_sandboxes_are_killed_though_one_is_not_there(call, server):
    environment = {"OPEN_SANDBOX_DOMAIN": server.address, "OPEN_SANDBOX_API_KEY": server.key}
    with server.create() as one, server.create() as other:
        done = call("sandbox", "kill", one.id, "none", other.id, "-o", "json", **environment)
        assert done.returncode == 1
        assert [r["status"] for r in json.loads(done.stdout)] == ["terminated", "error", "terminated"]
        assert json.loads(done.stderr)["http_status"] == 404
        assert one.get().status == other.get().status == 404


@pytest.fixture(scope="module")
def tls(server, tmp_path_factory):
    certificate = make_certificate(tmp_path_factory.mktemp("tls"))
    with TlsFront(server.address, certificate) as front:
        yield front, certificate


def test_tls_works_with_an_authority_that_is_trusted_and_only_then(call, server, tls):
    front, certificate = tls
    environment = {"OPEN_SANDBOX_DOMAIN": front.address, "OPEN_SANDBOX_PROTOCOL": "https",
                   "OPEN_SANDBOX_API_KEY": server.key}
    done = call("sandbox", "list", "-o", "json", SSL_CERT_FILE=str(certificate), **environment)
    assert done.returncode == 0 and "items" in json.loads(done.stdout), done
    failed(call("sandbox", "list", **environment), front.address, "certificate")
    elsewhere = {**environment, "OPEN_SANDBOX_DOMAIN": front.address.replace("127.0.0.1", "127.0.0.2")}
    failed(call("sandbox", "list", SSL_CERT_FILE=str(certificate), **elsewhere), "127.0.0.2")


def test_the_wrong_protocol_is_one_line_that_says_so(call, server, tls):
    front, _ = tls
    failed(call("sandbox", "list", OPEN_SANDBOX_DOMAIN=front.address), front.address, "https")
    failed(call("sandbox", "list", "--protocol", "https", OPEN_SANDBOX_DOMAIN=server.address),
           server.address, "--protocol")
    refused(call("--server", "ftp://h", "sandbox", "list"), "--server", "http, https")
