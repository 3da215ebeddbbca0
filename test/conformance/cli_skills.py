"""`opensandbox skills` beside the published `osb skills`, each in a home and project of its own: the
documents, and the files that are there afterwards. And what our texts tell to type is understood."""

import json
import os
import re
import shlex

import pytest
import yaml

from support.server import EXECUTABLE
from support.shell import run
from support.warm_osb import WarmOsb

TARGETS = ["claude", "cursor", "codex", "copilot", "windsurf", "cline", "opencode"]
SKILLS = ["sandbox-troubleshooting", "sandbox-lifecycle", "command-execution", "file-operations",
          "network-egress", "credential-vault"]
#: What is written for people, or where the texts of ours are.
PROSE = {"summary", "trigger_hint", "source_path", "content", "quick_start", "when_to_use", "json_shapes"}


class Place:
    """A way to call a program, with a home and a project directory."""

    def __init__(self, program, directory):
        self.program, self.home, self.project = program, directory / "home", directory / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir()

    def call(self, *argv, check=True):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        done = self.program(["skills", *argv], environment, self.project)
        assert not check or done.returncode == 0, f"{argv}: {done}"
        return done

    def document(self, *argv, format="json"):
        text = self.call(*argv, "-o", format).stdout.replace(str(self.home), "HOME")
        return json.loads(text) if format == "json" else yaml.safe_load(text)

    def tree(self):
        return {str(path.relative_to(self.home.parent)): path.is_dir()
                for path in self.home.parent.rglob("*")}


def ours(argv, environment, directory):
    return run(EXECUTABLE, *argv, check=False, cwd=directory, env=environment)


@pytest.fixture
def both(tmp_path):
    def theirs(argv, environment, directory):
        return osb.run(argv, environment, cwd=directory)

    places = Place(ours, tmp_path / "ours"), Place(theirs, tmp_path / "theirs")
    # It looks for its user's home once.
    osb = WarmOsb({**os.environ, "HOME": str(places[1].home)})
    yield places
    osb.close()


def without_prose(value):
    if isinstance(value, dict):
        return {k: type(v).__name__ if k in PROSE and v is not None else without_prose(v)
                for k, v in value.items()}
    return [without_prose(v) for v in value] if isinstance(value, list) else value


#: Targets whose skills share a file. The published one takes a block out and appends it again, so that
#: it is always "updated" and stands behind what others wrote since; ours stays where it is.
SHARED = ("copilot", "windsurf", "cline")


def same(both, *argv):
    ours, theirs = (without_prose(place.document(*argv)) for place in both)
    if argv[0] == "install":
        for a, b in zip(ours["operations"], theirs["operations"]):
            if a["target"] in SHARED and (a["status"], b["status"]) == ("already_present", "updated"):
                b["status"] = a["status"]
    assert ours == theirs
    assert both[0].tree() == both[1].tree()
    return ours


def statuses(document):
    return {o["status"] for o in document["operations"]}


@pytest.mark.parametrize("scope", ["project", "global"])
@pytest.mark.parametrize("target", [*TARGETS, "all"])
def test_install_list_and_uninstall_do_what_the_published_one_does(both, target, scope):
    where = ("-t", target, "--scope", scope)
    assert statuses(same(both, "install", "network-egress", *where)) == {"installed"}
    assert statuses(same(both, "install", "network-egress", *where, "--force")) == {"already_present"}
    assert statuses(same(both, "install", "--all-builtins", *where)) == {"installed", "already_present"}
    assert {s["status"] for t in same(both, "list")["targets"] for s in t["skills"]
            if target in ("all", t["target"]) and t["scope"] == scope} == {"installed"}
    for skill in SKILLS:
        chosen = [] if skill == SKILLS[0] else [skill]
        assert statuses(same(both, "uninstall", *chosen, *where)) == {"removed"}
        assert statuses(same(both, "uninstall", *chosen, *where)) == {"not_installed"}


@pytest.mark.parametrize("target, path", [
    ("copilot", ".github/copilot-instructions.md"), ("windsurf", ".windsurfrules"), ("cline", ".clinerules"),
    ("claude", ".claude/skills/file-operations.md"), ("cursor", ".cursor/rules/file-operations.mdc")])
def test_a_changed_skill_is_updated_where_it_stands(both, target, path):
    where = ("-t", target, "--scope", "project")
    shared = target in SHARED
    for place in both:
        if shared:
            (place.project / path).parent.mkdir(exist_ok=True)
            (place.project / path).write_text("Indent by two.\n")
        place.call("install", "file-operations", *where)
        text = (place.project / path).read_text()
        (place.project / path).write_text(text.replace("OpenSandbox", "Changed") + ("Behind.\n" if shared else ""))
    assert statuses(same(both, "install", "file-operations", *where)) == {"updated"}
    for place in both:
        text = (place.project / path).read_text()
        assert "Changed" not in text
        if shared:
            assert [line for line in text.splitlines() if line.startswith("<!-- ")] == [
                "<!-- BEGIN opensandbox-file-operations -->", "<!-- END opensandbox-file-operations -->"]
            assert text.startswith("Indent by two.\n")
            assert place is both[1] or text.endswith("Behind.\n")
    assert statuses(same(both, "uninstall", "file-operations", *where)) == {"removed"}
    if shared:
        for place in both:
            kept = (place.project / path).read_text().split()
            assert kept == ["Indent", "by", "two.", "Behind."]


@pytest.mark.parametrize("skill", SKILLS)
def test_show_has_the_same_members(both, skill):
    ours, theirs = (place.document("show", skill) for place in both)
    assert list(ours) == list(theirs)
    for key in ("skill", "title", "area"):
        assert ours[key] == theirs[key]
    assert ours["content"].split("---\n", 2)[2].lstrip() == both[0].call("show", skill).stdout
    assert yaml.safe_load(ours["content"].split("---\n")[1])["name"] == skill
    assert both[0].document("show", skill, format="yaml") == ours


@pytest.mark.parametrize("argv, names", [
    (("show", "nope"), SKILLS),
    (("show",), ["SKILL"]),
    (("install",), SKILLS),
    (("install", "nope", "-t", "claude", "--scope", "project"), SKILLS),
    (("install", "file-operations", "--all-builtins", "-t", "claude", "--scope", "project"), ["--all-builtins"]),
    (("install", "file-operations", "-t", "emacs", "--scope", "project"), TARGETS),
    (("install", "file-operations", "-t", "claude", "--scope", "world"), ["project", "global"]),
    (("install", "file-operations", "-t", "claude"), ["--scope", "project", "global"]),
    (("uninstall", "--scope", "project"), ["--target", *TARGETS]),
    (("uninstall", "nope", "-t", "claude", "--scope", "project"), SKILLS),
], ids=" ".join)
def test_wrong_usage_names_what_is_accepted_and_touches_nothing(both, argv, names):
    for place in both:
        done = place.call(*argv, check=False)
        assert done.returncode == 2
        assert done.stdout == ""
    ours = both[0].call(*argv, check=False)
    assert [name for name in names if name not in ours.stderr] == []
    assert both[0].tree() == both[1].tree()


# --- what the texts tell to type --------------------------------------------------------------------


def command_lines():
    for skill in SKILLS:
        text = run(EXECUTABLE, "skills", "show", skill).stdout
        for block in re.findall(r"^```bash\n(.*?)^```$", text, re.M | re.S):
            for line in block.splitlines():
                yield skill, line


def problem_of(line, table):
    """Why the command table does not have the line; None when it does."""
    words = shlex.split(line)
    if words[0] not in ("opensandbox", "osb"):
        return "does not begin with the program's name"
    words = words[1:]
    options = {}

    def learn(some):
        for option in some:
            for name in filter(None, (option["name"], option["alias"], option["letter"] and f"-{option['letter']}")):
                options[name] = option

    learn(table["options"])
    commands = {c["name"]: c for c in table["commands"]}
    given, used, command = [], set(), None
    while words:
        word = words.pop(0)
        if word in ("<", ">"):
            words.pop(0)
        elif word == "--":
            given.append("--")
            break
        elif word.startswith("-") and word != "-":
            if word not in options:
                return f"{word} is no option"
            used.add(options[word]["name"])
            if options[word]["value"] is not None:
                if not words:
                    return f"{word} takes a value"
                value = words.pop(0)
                if word in ("-o", "--output") and value not in command["formats"]:
                    return f"{value} is no format of it"
        elif command is None:
            given.append(word)
            command = commands.get(" ".join(given))
            if command is not None:
                learn(command["options"])
                given = []
        else:
            given.append(word)
    if command is None:
        return "is no command"
    missing = [o["name"] for o in command["options"] if o["required"] and o["name"] not in used]
    if missing:
        return f"lacks {missing}"
    counts = [a["count"] for a in command["arguments"]]
    least = sum(c in ("one", "many", "payload") for c in counts)
    most = None if {"many", "payload", "optional_payload", "any_number"} & set(counts) else len(counts)
    if len(given) < least or (most is not None and len(given) > most):
        return f"has {len(given)} arguments for {counts}"
    return None


def test_every_command_line_of_the_texts_is_one_that_this_program_takes():
    table = json.loads(run(EXECUTABLE, "help", "-o", "json").stdout)
    lines = [(skill, line) for skill, line in command_lines() if line != "opensandbox mcp"]
    assert {skill for skill, _ in lines} == set(SKILLS)
    assert len(lines) > 60
    assert {line: why for _, line in lines if (why := problem_of(line, table))} == {}
    assert "--transport" in run(EXECUTABLE, "mcp", "--help").stdout
    for wrong in ("opensandbox sandbox make", "opensandbox sandbox get", "opensandbox sandbox get a b",
                  "opensandbox sandbox list --colour", "opensandbox sandbox renew a"):
        assert problem_of(wrong, table), wrong
