"""Prints the commands of the published `osb` as JSON: run by the Python that has it."""

import json

import click
from opensandbox_cli.main import cli


def described(parameter):
    return {
        "names": [*parameter.opts, *parameter.secondary_opts],
        "flag": bool(getattr(parameter, "is_flag", False)),
        "required": parameter.required,
        "many": parameter.multiple if isinstance(parameter, click.Option) else parameter.nargs != 1,
        "choices": list(parameter.type.choices) if isinstance(parameter.type, click.Choice) else None,
    }


def walk(command, path, into):
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            walk(child, [*path, name], into)
        return
    into[" ".join(path)] = {
        "options": [described(p) for p in command.params if isinstance(p, click.Option)],
        "arguments": [described(p) for p in command.params if isinstance(p, click.Argument)],
    }


commands = {}
walk(cli, [], commands)
print(json.dumps({
    "options": [described(p) for p in cli.params if isinstance(p, click.Option)],
    "commands": commands,
}))
