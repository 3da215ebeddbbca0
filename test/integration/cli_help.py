"""Help and manual pages of every command, from the program's own table."""

import json

import pytest

from support.server import EXECUTABLE
from support.shell import run

COMMANDS = json.loads(run(EXECUTABLE, "help", "-o", "json").stdout)["commands"] if EXECUTABLE.exists() else []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c["name"])
def test_help_has_every_option_argument_and_example(command):
    done = run(EXECUTABLE, *command["name"].split(), "--help")
    assert done.stderr == ""
    usage, examples = done.stdout.split("\nExamples:\n")
    assert usage.startswith(f"Usage: opensandbox {command['name']}")
    for member in [*command["options"], *command["arguments"]]:
        assert member["name"] in usage, member
    assert command["examples"]
    for example in command["examples"]:
        assert example["line"] in examples, example


def test_every_command_has_a_page_that_typesets(tmp_path):
    run(EXECUTABLE, "man", tmp_path)
    pages = {page.name: page for page in tmp_path.iterdir()}
    assert set(pages) == {"opensandbox.1", *(f"opensandbox-{c['name'].replace(' ', '-')}.1" for c in COMMANDS)}
    done = run("groff", "-man", "-ww", "-z", "-Tutf8", "-Kutf8", *pages.values())
    assert done.stderr == ""
    for command in COMMANDS:
        page = pages[f"opensandbox-{command['name'].replace(' ', '-')}.1"]
        shown = run("groff", "-man", "-Tutf8", "-Kutf8", "-P-cbou", page).stdout
        assert "NAME" in shown and "SYNOPSIS" in shown and "EXAMPLES" in shown
        for option in command["options"]:
            assert option["name"] in shown.replace("‐", "-").replace("−", "-"), option
