"""formats: what is read and written, and how it is known."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import Commands, add_command
from agent_eval_schema.cli.output import ExitCode, in_color, print_text


def add(commands: Commands) -> None:
    """Add the command."""
    command = add_command(
        commands,
        "formats",
        run,
        "list the formats that are read and written",
        ["formats", "formats langfuse", "formats --output json"],
    )
    command.add_argument("name", metavar="FORMAT", nargs="?", help="show one format, with all signs and an example")
    command.add_output("list")


def run(arguments: argparse.Namespace) -> int:
    """Print all formats, or one."""
    from agent_eval_schema.formats.names import overview, overview_of
    from agent_eval_schema.render.rule import format_text, formats_json, formats_text

    found = overview() if arguments.name is None else [overview_of(arguments.name)]
    if arguments.output == "json":
        print_text(formats_json(found), "json")
    elif arguments.name is None:
        print_text(formats_text(found, color=in_color()))
    else:
        print_text(format_text(found[0], color=in_color()))
    return ExitCode.CLEAN
