"""convert: one format into another, with every loss."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import FAILING, ROW_FILES, Commands, add_command, add_fail_on, add_quiet
from agent_eval_schema.cli.output import ExitCode, print_note, print_text


def add(commands: Commands) -> None:
    """Add the command."""
    command = add_command(commands, "convert", run, "turn one format into another, and say what is lost")
    command.add_argument("input", metavar="IN", help=ROW_FILES)
    command.add_argument("output", metavar="OUT", help="the same kinds; an ADK evalset is .evalset.json")
    command.add_argument("--from", dest="source", metavar="F", default="auto", help="format of IN (found by columns)")
    command.add_argument("--to", dest="target", metavar="F", help="format of OUT (databricks; see README)")
    add_fail_on(command, "what makes the exit code 1: rows left out as invalid (error), any loss (warning)")
    add_quiet(command)


def run(arguments: argparse.Namespace) -> int:
    """Convert a file, and print what is lost."""
    from agent_eval_schema.conversion.convert import convert_file

    target = arguments.target or ("adk" if arguments.output.endswith(".evalset.json") else "databricks")
    made = convert_file(arguments.input, arguments.output, source=arguments.source, target=target)
    print_text(str(made))
    print_note(f"{made.converted:,} of {made.given:,} written to {arguments.output}", arguments)
    failing = [str(severity) for severity in FAILING[arguments.fail_on]]
    return ExitCode.FOUND if made.losses["severity"].isin(failing).any() else ExitCode.CLEAN
