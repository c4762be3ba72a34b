"""schema: the JSON Schema of a row, or of the settings."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import Commands, add_command
from agent_eval_schema.cli.output import ExitCode, print_text


def add(commands: Commands) -> None:
    """Add the command."""
    command = add_command(
        commands,
        "schema",
        run,
        "print the JSON Schema of a row or of the settings",
        ["schema databricks > row.schema.json", "schema settings > settings.schema.json"],
    )
    command.add_argument(
        "name",
        metavar="SCHEMA",
        help="databricks, mlflow or ces-evaluation (input), canonical (output), or settings (of a repository)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    from agent_eval_schema.formats.json_schema import json_schema
    from agent_eval_schema.render.document import json_text
    from agent_eval_schema.validation.settings import schema

    found = schema() if arguments.name == "settings" else json_schema(arguments.name)
    print_text(json_text(found), "json")
    return ExitCode.CLEAN
