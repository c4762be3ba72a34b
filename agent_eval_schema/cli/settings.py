"""How the settings of a repository complete the arguments of a command."""

import argparse
import json
import os
from typing import Any

import msgspec

from agent_eval_schema.cli.options import typed_options
from agent_eval_schema.cli.output import print_text
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.validation.settings import TABLE, find_settings


def show_or_apply(arguments: argparse.Namespace) -> bool:
    """Complete the arguments of a command by the settings; whether they were printed instead of running it."""
    found = find_settings(arguments.config)
    arguments.typed = typed_options(arguments)
    settings = found.settings
    if "files" in arguments.settings:
        arguments.files = arguments.files or found.files()
        if not arguments.files:
            raise EvalSetError(f"expected FILE, or `files` in [tool.{TABLE}] of pyproject.toml")
    for name in arguments.settings:
        if name == "columns":
            arguments.columns = {**settings.columns, **dict(arguments.columns)}
        elif name in ("select", "ignore"):
            setattr(arguments, name, getattr(arguments, name) or list(getattr(settings, name)))
        elif getattr(arguments, _argument(arguments, name)) is None:
            value = getattr(settings, name)  # if the command has it
            value = "text" if name == "output" and value not in arguments.output_choices else value
            setattr(arguments, _argument(arguments, name), value)
    arguments.ignored = found.ignored
    arguments.settings_path = None if found.path is None else str(found.path)
    if arguments.show_settings:
        place = "no settings file: the defaults" if found.path is None else f"from {os.path.relpath(found.path)}"
        defaults = msgspec.to_builtins(found.settings)
        used = {name: getattr(arguments, _argument(arguments, name)) for name in arguments.settings}
        names = {name.replace("_", "-"): msgspec.to_builtins(value) for name, value in used.items()}
        wanted = {*names, "per-file-ignores"} if "select" in used else {*names}
        shown = {n: names.get(n, v) for n, v in defaults.items() if n in wanted}
        shown = {n: v for n, v in shown.items() if v is not None}  # which TOML does not have
        lines = [f"# {place}, and the command line", *(f"{n} = {_toml(v)}" for n, v in shown.items())]
        print_text("\n".join(lines) + "\n", "script")
    return bool(arguments.show_settings)


def _argument(arguments: argparse.Namespace, name: str) -> str:
    """The argument of a setting: where OUT is an argument, the form of what is printed has another name, and --metrics
    names metrics."""
    if name == "metrics":
        return "stated"
    return "summary" if name == "output" and hasattr(arguments, "summary") else name


def _toml(value: Any) -> str:
    """A value as TOML has it: strings and lists are written as in JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)
