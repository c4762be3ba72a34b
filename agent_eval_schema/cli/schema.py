"""schema: the JSON Schema of a row."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import Commands, add_command
from agent_eval_schema.cli.output import ExitCode, print_text


def add(commands: Commands) -> None:
    """Add the command."""
    command = add_command(commands, "schema", run, "print the JSON Schema of a row")
    command.add_argument(
        "name",
        metavar="FORMAT",
        help="databricks, mlflow (what may be given), canonical (what comes out) or ces-evaluation",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    from agent_eval_schema.formats.json_schema import json_schema
    from agent_eval_schema.render.document import json_text

    print_text(json_text(json_schema(arguments.name)))
    return ExitCode.CLEAN
