"""diff: the changes between two versions of an evaluation dataset."""

import argparse

from agent_eval_schema.cli.options import EXIT, ROW_FILES, Commands, add_command
from agent_eval_schema.cli.output import ExitCode, in_color, print_text, save_page


def add(commands: Commands) -> None:
    command = add_command(
        commands,
        "diff",
        run,
        "show what changed between two versions of an evaluation dataset",
        [
            "diff sample_data/good.jsonl sample_data/edited_broken.jsonl",
            "diff sample_data/good.jsonl sample_data/edited_broken.jsonl --fail-on loss --html diff.html",
        ],
    )
    command.add_argument("old", metavar="OLD", help=ROW_FILES)
    command.add_argument("new", metavar="NEW", help="the newer version, of the same or another kind")
    command.reads_and_writes(["old", "new"])
    command.add_reading()
    command.add_system("databricks", "databricks")
    command.add_output("comparison", default=None)
    command.add_settings("format", "outputs", "columns", "output", "diff_fail_on")
    command.add_html("comparison")
    command.group(EXIT).add_argument(
        "--fail-on",
        dest="diff_fail_on",
        choices=["any", "loss", "never"],
        help="what causes exit code 1: any difference except the order of rows (default), or a loss: "
        "a row was removed, became invalid, or no longer supports a metric",
    )


def run(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.diff.diff import diff_eval_sets
    from agent_eval_schema.metrics.support import metrics_of

    metrics_of(arguments.system)  # a wrong name is reported before the files are read
    found = diff_eval_sets(
        arguments.old,
        arguments.new,
        format=arguments.format,
        outputs=arguments.outputs,
        columns=arguments.columns,
    )
    as_json = arguments.output == "json"
    text = found.to_json() if as_json else found.to_text(color=in_color(), system=arguments.system)
    print_text(text, arguments.output)
    save_page(found, "comparison", arguments)
    fails = {"any": not found.same, "loss": found.losses, "never": False}
    return ExitCode.FOUND if fails[arguments.diff_fail_on] else ExitCode.CLEAN
