"""formats: what is read and written, and how it is known."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import Commands, add_command, add_output
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
    add_output(command, "list")


def run(arguments: argparse.Namespace) -> int:
    """Print all formats, or one."""
    from agent_eval_schema.formats.catalog import CATALOG
    from agent_eval_schema.render.formats import format_text, formats_json, formats_text

    if arguments.name is None and arguments.output == "text":
        print_text(formats_text(CATALOG, color=in_color()))
        return ExitCode.CLEAN
    from msgspec import to_builtins

    from agent_eval_schema.formats.overview import overview, overview_of

    found = [to_builtins(e) for e in (overview() if arguments.name is None else [overview_of(arguments.name)])]
    text = formats_json(found) if arguments.output == "json" else format_text(found[0], color=in_color())
    print_text(text, arguments.output)
    return ExitCode.CLEAN
