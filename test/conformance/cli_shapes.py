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

from support.cli_stories import STORIES
from support.server import EXECUTABLE
from support.shell import eventually, run
from support.template_server import TemplateServer
from support.warm_osb import WarmOsb

OSB = Path(sys.executable).parent / "osb"
SUPPORT = Path(__file__).resolve().parents[1] / "support"

#: Where documents differ on purpose: (row, path in the document) -> why.
SHAPE_DIFFERENCES = {}

#: What ends otherwise on purpose: (call, our exit code, theirs, why).
CODE_DIFFERENCES = [
    (("command", "run", "{sandbox}", "--", "sh", "-c", "exit 7"), 7, 1, "a command's own code passes on"),
    (("command", "run", "{sandbox}", "--", "/no/such/program"), 127, 1, "likewise"),
    (("sandbox", "list", "-s", "Odd"), 2, 1, "a value that cannot be right is wrong usage"),
    (("sandbox", "create"), 2, 1, "likewise"),
    (("sandbox", "create", "-i", "host", "--credential-proxy"), 2, 1, "likewise"),
    (("template", "create", "-i", "a"), 2, 1, "likewise"),
    (("config", "set", "no", "x"), 2, 1, "likewise"),
    (("config", "init"), 1, 0, "a file that is there is not replaced, which was asked for"),
]

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
        environment = {**server.environment(), "HOME": str(home), "COLUMNS": "250"}
        program = kind(path, environment, home, {"sandbox": shared})
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
    assert [d for row, a, b in zip(rows, mine, theirs) if row.format
            for d in differences(row.name, a, b)] == []
    assert [a for row, a in zip(rows, mine) if not row.format] == [
        b for row, b in zip(rows, theirs) if not row.format]


@pytest.mark.parametrize("argv, ours, theirs, why", CODE_DIFFERENCES, ids=lambda v: " ".join(v)
                         if isinstance(v, tuple) else None)
def test_what_ends_otherwise_says_why(programs, argv, ours, theirs, why):
    for program, code in zip(programs, (ours, theirs)):
        (program.directory / ".opensandbox").mkdir(exist_ok=True)
        (program.directory / ".opensandbox/config.toml").write_text("")
        done = program(*argv, format=None, check=False)
        assert done.returncode == code, (why, done)


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
        told = ({**b, "metadata": [*b.get("metadata", {})]} for b in server.bodies)
        bodies = Counter(json.dumps(b, sort_keys=True) for b in told)
        assert set(bodies.values()) == {len(programs)}, bodies


def test_every_command_with_documents_is_in_a_story():
    _, commands = ours()
    published = json.loads(run(sys.executable, SUPPORT / "click_tree.py").stdout)["commands"]
    told = {" ".join(row.argv[:n]) for rows in STORIES.values() for row in rows for n in (2, 3)}
    elsewhere = {"devops inspect", "devops summary", "devops logs", "devops events"}  # test below
    elsewhere |= {name for name in commands if name.startswith("skills ")}  # cli_skills.py
    assert set(published) & set(commands) - told - elsewhere == set()


def test_yaml_says_what_json_says(programs, shared):
    mine, theirs = programs
    for argv in (("sandbox", "get", shared), ("sandbox", "list"), ("file", "info", shared, "/etc"),
                 ("diagnostics", "logs", shared, "-s", "container"), ("config", "show")):
        assert yaml.safe_load(mine(*argv, format="yaml").stdout) == json.loads(mine(*argv).stdout), argv
    text = theirs("sandbox", "get", shared, format="yaml").stdout
    assert yaml.safe_load(mine("sandbox", "get", shared, format="yaml").stdout) == yaml.safe_load(text)


def test_tables_have_the_same_columns(programs, shared):
    def titles(text):
        bare = text.translate({ord("┃"): " ", ord("│"): " "})
        return next(line for line in bare.splitlines() if "ID" in line).split()

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
            arguments = ["x" for _ in command["arguments"]]
            done = run(EXECUTABLE, *name.split(), "-o", format, *arguments, check=False)
            assert done.returncode == 2, (name, format)
