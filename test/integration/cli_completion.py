"""Completion in the shells it is for, each in a terminal: commands, options, values, local files, and the ids
of sandboxes, which the server is asked for."""

import pytest

from support.shell import eventually
from support.tmux import BASH, Terminal

#: How each shell is started without anybody's settings, and what its user writes to have completion.
SHELLS = {
    "bash": (BASH, "source <(opensandbox completion bash)"),
    "zsh": (("env", "PS1=READY> ", "zsh", "-f", "-i"),
            "autoload -Uz compinit; compinit -u -D; source <(opensandbox completion zsh)"),
    "fish": (("fish", "--no-config", "-i", "-C",
              "set -g fish_greeting; set -g fish_autosuggestion_enabled 0; function fish_prompt; printf 'READY> '; end"),
             "opensandbox completion fish | source"),
}


@pytest.fixture(params=SHELLS)
def terminal(request, server, tmp_path):
    shell, setup = SHELLS[request.param]
    (tmp_path / "opensandbox").symlink_to(server.executable)
    (tmp_path / "report 1.csv").write_text("a,b\n")
    environment = {**server.environment(), "LANG": "C.UTF-8", "HOME": str(tmp_path)}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    with Terminal(tmp_path, environment, columns=160, shell=shell) as terminal:
        terminal.enter(f"{setup}; echo '<''loaded>'")
        terminal.wait_for("<loaded>")
        yield terminal


def complete(terminal, typed, whole):
    """Tab after `typed` makes the line `whole`; what is typed then begins where `whole` ends."""
    terminal.clear()
    terminal.type(typed)
    terminal.wait_for(f"READY> {typed}")
    terminal.press("Tab")
    terminal.wait_for(f"READY> {whole.rstrip()}")
    terminal.type("x")
    terminal.wait_for(f"READY> {whole}x")
    terminal.press("C-u")
    eventually(lambda: "READY> opensandbox" not in terminal.screen(), 10, 0.05, "an empty line")


def test_commands_options_and_values(terminal):
    for typed, whole in (("opensandbox sandb", "opensandbox sandbox "),
                         ("opensandbox sandbox hea", "opensandbox sandbox health "),
                         ("opensandbox sandbox list --page-s", "opensandbox sandbox list --page-size "),
                         ("opensandbox sandbox list -o js", "opensandbox sandbox list -o json "),
                         ("opensandbox sandbox list --output=ya", "opensandbox sandbox list --output=yaml "),
                         ("opensandbox credential-vault bind", "opensandbox credential-vault binding ")):
        complete(terminal, typed, whole)


def test_ids_of_the_sandboxes_that_there_are(terminal, server, sandbox):
    for command in ("sandbox get", "command run", "sandbox kill"):
        complete(terminal, f"opensandbox {command} {sandbox.id[:9]}", f"opensandbox {command} {sandbox.id} ")
    with server.create() as later:
        complete(terminal, f"opensandbox sandbox kill {sandbox.id} {later.id[:9]}",
                 f"opensandbox sandbox kill {sandbox.id} {later.id} ")


def test_local_files(terminal, sandbox):
    complete(terminal, f"opensandbox file upload {sandbox.id} rep",
             f"opensandbox file upload {sandbox.id} report\\ 1.csv ")
