"""Our command line beside the published `osb`, on the same server: every command and option of the
one is in the other, and what they print for programs has the same shape."""

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from support.server import EXECUTABLE
from support.shell import eventually, run
from support.template_server import TemplateServer
from support.warm_osb import WarmOsb

OSB = Path(sys.executable).parent / "osb"
SUPPORT = Path(__file__).resolve().parents[1] / "support"

#: Where the two differ on purpose: (row, path in the document) -> why.
SHAPE_DIFFERENCES = {
    ("config show", "domain"): "ours has a default, 127.0.0.1:8080; theirs is null",
    ("config show", "api_key"): "ours finds the key of the server on this machine by itself",
    ("config init again", "status"): "an existing file is a failure for us (exit code 1), told on stderr",
    ("config init again", "message"): "likewise",
}

#: Differences of the command tables: "command" or "command option" -> why.
TABLE_DIFFERENCES = {
    "skills list": "has tests of its own",
    "skills show": "has tests of its own",
    "skills install": "has tests of its own",
    "skills uninstall": "has tests of its own",
}


# --- the table of commands ------------------------------------------------------------------------


def ours():
    document = json.loads(run(EXECUTABLE, "help", "-o", "json").stdout)
    return document, {c["name"]: c for c in document["commands"]}


def names_of(option):
    letter = {f"-{option['letter']}"} if option["letter"] else set()
    return {option["name"], *letter} | ({option["alias"]} if option["alias"] else set())


def test_every_command_and_option_of_the_published_one_is_here():
    published = json.loads(run(sys.executable, SUPPORT / "click_tree.py").stdout)
    document, commands = ours()
    everywhere = set().union(*map(names_of, document["options"]))
    missing = [o for option in published["options"] for o in option["names"] if o not in everywhere]
    for name, theirs in published["commands"].items():
        if name in TABLE_DIFFERENCES:
            continue
        mine = commands.get(name)
        if mine is None:
            missing.append(name)
            continue
        options = {n: o for o in mine["options"] for n in names_of(o)}
        for option in theirs["options"]:
            if "--output" in option["names"]:
                if set(option["choices"]) != set(mine["formats"]):
                    missing.append(f"{name} -o: {option['choices']} is {mine['formats']} here")
                continue
            for spelling in option["names"]:
                found = options.get(spelling)
                if found is None:
                    missing.append(f"{name} {spelling}")
                elif (found["value"] is None, found["repeatable"], found["required"]) != (
                        option["flag"], option["many"], option["required"]):
                    missing.append(f"{name} {spelling}: another kind")
        counts = [{"one": False, "many": True, "payload": True}[a["count"]] for a in mine["arguments"]]
        if counts != [a["many"] for a in theirs["arguments"]]:
            missing.append(f"{name}: other arguments")
    assert missing == []


# --- shapes ---------------------------------------------------------------------------------------


def kind(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "text"


def shape(value, path="", into=None):
    """Every path of a document with the kinds that stand there."""
    into = {} if into is None else into
    if isinstance(value, dict):
        into.setdefault(path, set()).add("object")
        for key, item in value.items():
            shape(item, f"{path}.{key}" if path else key, into)
    elif isinstance(value, list):
        into.setdefault(path, set()).add("list")
        for item in value:
            shape(item, f"{path}[]", into)
    else:
        into.setdefault(path, set()).add(kind(value))
    return into


def differences(row, mine, theirs):
    mine, theirs = shape(mine), shape(theirs)
    return [f"{row}: {path}: {sorted(mine.get(path, []))} here, {sorted(theirs.get(path, []))} there"
            for path in sorted({*mine, *theirs})
            if mine.get(path) != theirs.get(path) and (row, path) not in SHAPE_DIFFERENCES]


class Program:
    """One of the two, with what it has learnt of its own sandbox."""

    def __init__(self, path, environment, directory, known):
        self.path, self.environment, self.directory = path, environment, directory
        directory.mkdir(parents=True, exist_ok=True)
        self.known = {"me": path.name, "dir": str(directory), **known}

    def __call__(self, *argv, format="json", input=None, check=True):
        argv = [a.format(**self.known) if "{" in a and " " not in a else a for a in argv]
        if format:
            at = argv.index("--") if "--" in argv else len(argv)
            argv[at:at] = ["-o", format]
        done = self.run(["--no-color", *argv], input)
        assert done.returncode == 0 or not check, done
        return done

    def run(self, argv, input):
        return run(self.path, *argv, input=input, check=False, timeout=60, env=self.environment)

    def play(self, story):
        documents = []
        for row in story:
            def ask(row=row):
                done = self(*row.argv, input=row.input, format=row.format, check=row.code == 0)
                assert (done.returncode != 0) == (row.code != 0), f"{row.argv}: {done}"
                if row.format != "json":
                    return [done.stdout]
                document = json.loads(done.stdout) if done.stdout.strip() else None
                return [document] if row.until is None or row.until(document) else None

            [document] = eventually(ask, 30, 0.1, row.name)
            for name, key in row.keeps.items():
                self.known[name] = document[key]
            documents.append(document)
        return documents


class Published(Program):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.warm = WarmOsb(self.environment)

    def run(self, argv, input):
        return self.warm.run(argv, self.environment, input)


class Row:
    """One call. `keeps`: what later rows name, and the member that has it. `until`: asked again
    until that holds."""

    def __init__(self, *argv, name=None, input=None, keeps=None, code=0, until=None, format="json"):
        self.argv, self.input, self.keeps, self.code = argv, input, keeps or {}, code
        self.until, self.format = until, format
        self.name = name or " ".join(argv[:3] if argv[1] in ("session", "credential", "binding") else argv[:2])


def raw(*argv, **options):
    return Row(*argv, format=None, **options)


STORIES = {
    "sandbox": [
        Row("sandbox", "create", "-i", "host", "-t", "10m", "-e", "A=1", "-m", "by={me}", "--resource",
            "cpu=1", "--resource", "memory=512Mi", "--entrypoint", "sleep", "--entrypoint", "600",
            keeps={"id": "id"}),
        Row("sandbox", "create", "-f", "{dir}/body.json", name="sandbox create from a file",
            keeps={"other": "id"}),
        Row("sandbox", "list", "-m", "by={me}", "-s", "running", "--page", "1", "--page-size", "5"),
        Row("sandbox", "list", "-m", "by=nobody", name="sandbox list of nothing"),
        Row("sandbox", "get", "{id}"),
        Row("sandbox", "renew", "{id}", "-t", "1h"),
        Row("sandbox", "endpoint", "{id}", "-p", "8080"),
        Row("sandbox", "health", "{id}"),
        Row("sandbox", "metrics", "{id}"),
        Row("sandbox", "pause", "{id}"),
        Row("sandbox", "get", "{id}", name="sandbox get of a paused one"),
        Row("sandbox", "resume", "{id}", "--resume-timeout", "30s"),
        Row("diagnostics", "logs", "{id}", "-s", "container"),
        Row("diagnostics", "logs", "{id}", "-s", "all", name="diagnostics logs of all"),
        Row("diagnostics", "events", "{id}", "-s", "runtime"),
        Row("sandbox", "kill", "{id}", "{other}"),
        Row("sandbox", "get", "{id}", name="sandbox get of none", code=1),
    ],
    "command": [
        raw("command", "run", "{sandbox}", "--", "printf", "%s\\n", "a b", "$HOME"),
        raw("command", "run", "{sandbox}", "--argv", "-w", "/usr", "--", "pwd", name="command run --argv"),
        Row("command", "run", "{sandbox}", "-d", "--", "echo", "hello", name="command run -d",
            keeps={"execution": "execution_id"}),
        Row("command", "status", "{sandbox}", "{execution}", until=lambda d: d["running"] is False),
        Row("command", "logs", "{sandbox}", "{execution}"),
        Row("command", "run", "{sandbox}", "-d", "--", "sleep", "600", name="command run -d again",
            keeps={"execution": "execution_id"}),
        Row("command", "status", "{sandbox}", "{execution}", name="command status of one that runs"),
        Row("command", "interrupt", "{sandbox}", "{execution}"),
        Row("command", "session", "create", "{sandbox}", "-w", "/tmp", keeps={"session": "session_id"}),
        raw("command", "session", "run", "{sandbox}", "{session}", "--", "cd", "/usr"),
        raw("command", "session", "run", "{sandbox}", "{session}", "--", "pwd"),
        raw("command", "session", "run", "{sandbox}", "{session}", "-w", "/etc", "-t", "30s", "--", "pwd"),
        Row("command", "session", "delete", "{sandbox}", "{session}"),
        Row("command", "session", "create", "{sandbox}", name="command session create nowhere",
            keeps={"session": "session_id"}),
        Row("command", "session", "delete", "{sandbox}", "{session}"),
    ],
    "file": [
        Row("file", "mkdir", "{sandbox}", "/tmp/{me}/a", "/tmp/{me}/b", "--mode", "750"),
        Row("file", "write", "{sandbox}", "/tmp/{me}/a/x", "-c", "hello", "--mode", "640"),
        Row("file", "write", "{sandbox}", "/tmp/{me}/a/y", name="file write from standard input", input="text"),
        Row("file", "upload", "{sandbox}", "{dir}/local", "/tmp/{me}/b/z"),
        Row("file", "download", "{sandbox}", "/tmp/{me}/b/z", "{dir}/back"),
        raw("file", "cat", "{sandbox}", "/tmp/{me}/a/x"),
        Row("file", "info", "{sandbox}", "/tmp/{me}/a", "/tmp/{me}/a/x"),
        Row("file", "search", "{sandbox}", "/tmp/{me}", "-p", "*"),
        Row("file", "search", "{sandbox}", "/tmp/{me}", "-p", "none", name="file search of nothing"),
        Row("file", "replace", "{sandbox}", "/tmp/{me}/a/x", "--old", "hello", "--new", "bye"),
        Row("file", "chmod", "{sandbox}", "/tmp/{me}/a/x", "--mode", "600"),
        Row("file", "mv", "{sandbox}", "/tmp/{me}/a/x", "/tmp/{me}/b/x"),
        Row("file", "rm", "{sandbox}", "/tmp/{me}/a/y", "/tmp/{me}/b/x"),
        Row("file", "rmdir", "{sandbox}", "/tmp/{me}/a", "/tmp/{me}/b"),
        Row("file", "info", "{sandbox}", "/tmp/{me}/a", name="file info of none", code=1),
    ],
    "snapshot": [
        Row("snapshot", "create", "{sandbox}", "--name", "of-{me}", keeps={"snapshot": "id"}),
        Row("snapshot", "get", "{snapshot}", until=lambda d: d["status"]["state"] == "Ready"),
        Row("snapshot", "list", "--sandbox-id", "{sandbox}", "--name", "of-{me}", "--state", "Ready", "--page",
            "1", "--page-size", "10"),
        Row("snapshot", "list", "--name", "none", name="snapshot list of nothing"),
        Row("sandbox", "create", "--snapshot-id", "{snapshot}", name="sandbox create from a snapshot",
            keeps={"id": "id"}),
        Row("sandbox", "get", "{id}", name="sandbox get of one from a snapshot"),
        Row("sandbox", "kill", "{id}"),
        Row("snapshot", "delete", "{snapshot}"),
        Row("snapshot", "get", "{snapshot}", name="snapshot get of none", code=1),
    ],
    "egress": [
        Row("sandbox", "create", "-i", "host", "--network-policy-file", "{dir}/policy.json",
            "--credential-proxy", name="sandbox create with a policy", keeps={"id": "id"}),
        Row("egress", "get", "{id}"),
        Row("egress", "patch", "{id}", "--rule", "allow=other.example", "--rule", "DENY=bad.example"),
        Row("credential-vault", "create", "{id}", "--file", "{dir}/vault.yaml"),
        Row("credential-vault", "get", "{id}"),
        Row("credential-vault", "credential", "list", "{id}"),
        Row("credential-vault", "credential", "get", "{id}", "key"),
        Row("credential-vault", "binding", "list", "{id}"),
        Row("credential-vault", "binding", "get", "{id}", "api"),
        Row("credential-vault", "binding", "get", "{id}", "header", name="credential-vault binding get apiKey"),
        Row("credential-vault", "create", "{id}", "--file", "{dir}/vault.yaml", name="a second vault", code=1),
        Row("credential-vault", "patch", "{id}", "--file", "-", input=json.dumps(
            {"expectedRevision": 1, "bindings": {"delete": ["api", "header"]}, "credentials": {"delete": ["key"]}})),
        Row("credential-vault", "binding", "list", "{id}", name="credential-vault binding list of nothing"),
        Row("credential-vault", "delete", "{id}"),
        Row("credential-vault", "get", "{id}", name="credential-vault get of none", code=1),
        Row("sandbox", "kill", "{id}"),
    ],
    "config": [
        Row("config", "init"),
        Row("config", "set", "defaults.image", "host"),
        Row("config", "set", "connection.request_timeout", "20"),
        Row("config", "show"),
    ],
    "template": [
        Row("template", "create", "-i", "a:1", "-p", "s3://b/p", keeps={"id": "template_id"}),
        Row("template", "get", "{id}"),
        Row("template", "create", "-i", "a:1", "-p", "s3://b/p", "--resource", "cpu=1", "--entrypoint", "x", "-e",
            "A=1", "-m", "by={me}", "--format", "native", "--readiness-probe", "tcp://127.0.0.1:1",
            "--warmup-seconds", "3", name="template create of everything", keeps={"id": "template_id"}),
        Row("template", "get", "{id}", name="template get of everything"),
        Row("template", "create", "-f", "{dir}/template.json", name="template create from a file"),
        Row("template", "list", "-m", "by={me}", "--page", "1", "--page-size", "10"),
        Row("template", "list", "-m", "by=nobody", name="template list of nothing"),
        Row("template", "delete", "{id}"),
        Row("template", "get", "{id}", name="template get of none", code=1),
    ],
}


@pytest.fixture(scope="module")
def shared(native_egress):
    """A sandbox that both may use."""
    server, _ = native_egress
    with server.create(entrypoint=["sh", "-c", "echo begun; exec tail -f /dev/null"]) as sandbox:
        yield sandbox.id


@pytest.fixture(scope="module")
def programs(native_egress, shared, tmp_path_factory):
    server, _ = native_egress
    directory = tmp_path_factory.mktemp("shapes")
    made = []
    for path, kind in ((EXECUTABLE, Program), (OSB, Published)):
        home = directory / path.name
        program = kind(path, {**server.environment(), "HOME": str(home), "COLUMNS": "250"}, home, {"sandbox": shared})
        (home / "local").write_bytes(b"\0\1\2")
        (home / "body.json").write_text(json.dumps({
            "image": {"uri": "host"}, "timeout": 600, "entrypoint": ["tail", "-f", "/dev/null"],
            "resourceLimits": {"cpu": "1", "memory": "512Mi"}}))
        (home / "policy.json").write_text(json.dumps({"defaultAction": "deny", "egress": [
            {"action": "allow", "target": "api.example"}]}))
        (home / "template.json").write_text(json.dumps({
            "image": "b:2", "publish": "s3://b/q", "readiness": {"warmupSeconds": 1}}))
        (home / "vault.yaml").write_text(
            "credentials:\n"
            "  - name: key\n"
            "    source: {type: inline, value: 'a secret'}\n"
            "bindings:\n"
            "  - name: api\n"
            "    match:\n"
            "      hosts: [api.example]\n"
            "      paths: ['/v1/*']\n"
            "    auth: {type: bearer, credential: key}\n"
            "  - name: header\n"
            "    match: {hosts: [api.example], paths: ['/v2/*']}\n"
            "    auth: {type: apiKey, name: X-Key, credential: key}\n")
        made.append(program)
    yield made
    made[1].warm.close()


@pytest.fixture
def both(programs):
    """Calls a function for each of the two, at the same time."""
    with ThreadPoolExecutor(2) as pool:
        yield lambda call: list(pool.map(call, programs))


@pytest.mark.parametrize("story", [s for s in STORIES if s != "template"])
def test_documents_have_the_same_shape(both, story):
    rows = STORIES[story]
    mine, theirs = both(lambda program: program.play(rows))
    assert [d for row, a, b in zip(rows, mine, theirs) if row.format for d in differences(row.name, a, b)] == []
    assert [a for row, a in zip(rows, mine) if not row.format] == [
        b for row, b in zip(rows, theirs) if not row.format]


def test_templates_have_the_same_shape_and_are_asked_for_alike(both, programs):
    with TemplateServer() as server:
        rows = STORIES["template"]
        before = [p.environment for p in programs]
        try:
            for program in programs:
                program.environment = {**program.environment, "OPEN_SANDBOX_DOMAIN": server.address}
            mine, theirs = both(lambda program: program.play(rows))
        finally:
            for program, environment in zip(programs, before):
                program.environment = environment
        assert [d for row, a, b in zip(rows, mine, theirs) for d in differences(row.name, a, b)] == []
        bodies = Counter(json.dumps({**b, **({"metadata": ["by"]} if b.get("metadata") else {})}, sort_keys=True)
                         for b in server.bodies)
        assert set(bodies.values()) == {len(programs)}, bodies


def test_every_command_with_documents_is_in_a_story():
    _, commands = ours()
    published = json.loads(run(sys.executable, SUPPORT / "click_tree.py").stdout)["commands"]
    told = {" ".join(row.argv[:n]) for rows in STORIES.values() for row in rows for n in (2, 3)}
    elsewhere = {"devops inspect", "devops summary", "devops logs", "devops events"}  # test below
    assert set(published) & set(commands) - told - elsewhere == set()


def test_yaml_says_what_json_says(programs, shared):
    mine, theirs = programs
    for argv in (("sandbox", "get", shared), ("sandbox", "list"), ("file", "info", shared, "/etc"),
                 ("diagnostics", "logs", shared, "-s", "container"), ("config", "show")):
        assert yaml.safe_load(mine(*argv, format="yaml").stdout) == json.loads(mine(*argv).stdout), argv
    text = theirs("sandbox", "get", shared, format="yaml").stdout
    assert yaml.safe_load(mine("sandbox", "get", shared, format="yaml").stdout) == yaml.safe_load(text)


def test_tables_have_the_same_columns(programs, shared):
    titles = lambda text: [l for l in text.translate({ord("┃"): " ", ord("│"): " "}).splitlines() if "ID" in l][0].split()
    for argv in (("sandbox", "list"), ("snapshot", "list")):
        if argv[0] == "snapshot":
            made = json.loads(programs[0]("snapshot", "create", shared).stdout)["id"]
        mine, theirs = (p(*argv, format=None).stdout for p in programs)
        if argv[0] == "snapshot":
            programs[0]("snapshot", "delete", made)
        assert set(titles(mine)) == set(titles(theirs)), (mine, theirs)


def test_pages_for_operators_have_the_same_lines(both, shared):
    def pages(program):
        labels = lambda text: [line.partition(":")[0] for line in text.splitlines()]
        return {name: labels(program("devops", *name.split(), shared, *options, format="raw").stdout)
                for name, options in {"inspect": (), "summary": ("-n", "5", "--event-limit", "5"),
                                      "logs": ("-n", "5", "-s", "1h"), "events": ("-l", "5")}.items()}

    mine, theirs = both(pages)
    for name, lines in mine.items():
        assert [l for l in lines if l] == [l for l in theirs[name] if l], name


def test_samples_have_the_same_shape(both, shared):
    def first(program):
        process = subprocess.Popen(
            [program.path, "--no-color", "sandbox", "metrics", shared, "--watch", "-o", "json"],
            stdout=subprocess.PIPE, env={**program.environment, "PYTHONUNBUFFERED": "1"}, text=True)
        try:
            return json.loads(process.stdout.readline())
        finally:
            process.kill()
            process.wait(10)
            process.stdout.close()

    mine, theirs = both(first)
    assert differences("sandbox metrics --watch", mine, theirs) == []


def test_formats_that_a_command_has_not_are_refused():
    _, commands = ours()
    for name, command in commands.items():
        for format in {"table", "json", "yaml", "raw"} - set(command["formats"]):
            done = run(EXECUTABLE, *name.split(), "-o", format, *["x" for a in command["arguments"]], check=False)
            assert done.returncode == 2, (name, format)
