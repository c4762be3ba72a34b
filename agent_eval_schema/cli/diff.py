"""diff: what changed between two versions of an evaluation set."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import ROW_FILES, Commands, add_command, add_output, add_reading
from agent_eval_schema.cli.output import ExitCode, in_color, print_text, save_page


def add(commands: Commands) -> None:
    """Add the command."""
    command = add_command(commands, "diff", run, "show what changed between two versions of an evaluation set")
    command.add_argument("old", metavar="OLD", help=ROW_FILES)
    command.add_argument("new", metavar="NEW", help="the same, or another kind of file")
    add_reading(command)
    command.add_argument(
        "--system", default="databricks", help="metrics of: databricks (default), mlflow, vertex, ces, all"
    )
    add_output(command, "comparison")
    command.add_argument("--html", metavar="PATH", help="write the comparison as a page to look at")
    command.add_argument(
        "--fail-on",
        choices=["any", "loss", "never"],
        default="any",
        help="what makes the exit code 1: any difference but the order of the rows (default), or a loss: "
        "a row that is gone, became invalid, or no longer supports a metric of any system",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what changed."""
    from agent_eval_schema.diff.diff import diff_eval_sets
    from agent_eval_schema.io.atomic import require_apart, require_place
    from agent_eval_schema.metrics.support import metrics_of

    metrics_of(arguments.system)  # a wrong name is told before the files are read
    if arguments.html:
        require_place(arguments.html)
    require_apart({"OLD": arguments.old, "NEW": arguments.new}, {"--html": arguments.html})
    found = diff_eval_sets(arguments.old, arguments.new, format=arguments.format, outputs=arguments.outputs)
    if arguments.output == "json":
        print_text(found.to_json())
    else:
        print_text(found.to_text(color=in_color(), system=arguments.system))
    if arguments.html:
        save_page(arguments.html, found.to_html(), "comparison", arguments)
    fails = {"any": not found.same, "loss": found.losses, "never": False}
    return ExitCode.FOUND if fails[arguments.fail_on] else ExitCode.CLEAN
