"""How the settings of a repository complete the arguments of a command."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

import msgspec

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.validation.settings import TABLE, Found


def apply_settings(arguments: argparse.Namespace, found: Found) -> None:
    """Complete the arguments of `validate`: an option that was not given has the value of the settings."""
    settings = found.settings
    arguments.files = arguments.files or found.files()
    if not arguments.files:
        raise EvalSetError(f"expected FILE, or `files` in [tool.{TABLE}] of pyproject.toml")
    for name in ("format", "outputs", "fail_on", "output"):
        if getattr(arguments, name) is None:
            setattr(arguments, name, getattr(settings, name))
    arguments.columns = {**settings.columns, **dict(arguments.columns)}
    for name in ("select", "ignore"):
        setattr(arguments, name, getattr(arguments, name) or list(getattr(settings, name)))
    arguments.ignored = found.ignored


def settings_text(arguments: argparse.Namespace, found: Found) -> str:
    """The settings that a run has, as TOML, and where they are from."""
    place = "no settings file: the defaults" if found.path is None else f"from {os.path.relpath(found.path)}"
    given = {**msgspec.to_builtins(found.settings), "files": arguments.files}
    given |= {name: getattr(arguments, name) for name in ("format", "outputs", "columns", "select", "ignore", "output")}
    given["fail-on"] = arguments.fail_on
    return "".join([f"# {place}, and the command line\n", *(f"{n} = {_toml(v)}\n" for n, v in given.items())])


def _toml(value: Any) -> str:
    """A value as TOML has it: strings and lists are written as in JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)
