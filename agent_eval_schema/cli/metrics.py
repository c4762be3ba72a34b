"""metrics: which metrics the rows can support."""

import argparse

from agent_eval_schema.cli.options import ROW_FILES, Commands, add_command, open_input
from agent_eval_schema.cli.output import in_color, print_note, print_text


def add(commands: Commands) -> None:
    examples = ["metrics sample_data/good.jsonl", "metrics sample_data/good.jsonl --system all --output json"]
    command = add_command(commands, "metrics", run, "show which metrics each row supports", examples)
    command.add_argument("file", metavar="FILE", help=ROW_FILES)
    command.add_reading()
    command.add_system(None, "the system of the format")
    command.add_output("table", default=None)
    command.add_rules()
    command.add_settings("format", "outputs", "columns", "select", "ignore", "output")


def run(arguments: argparse.Namespace) -> None:
    from agent_eval_schema.metrics.support import metrics_of
    from agent_eval_schema.render.document import json_text
    from agent_eval_schema.render.phrases import NextCommand
    from agent_eval_schema.render.printable import as_text
    from agent_eval_schema.render.report.report_blocks import metrics_view
    from agent_eval_schema.validation.ces_turns import report_on_rows
    from agent_eval_schema.validation.report import run_of, summary_of
    from agent_eval_schema.validation.validate import check_source

    metrics_of(arguments.system or "all")  # a wrong name is reported before the file is read
    report = check_source(open_input(arguments.file, arguments))
    measured, system = report_on_rows(report), arguments.system or summary_of(report).system
    if arguments.output == "json":
        print_text(json_text(run_of(measured).coverage(system)), "json")
    elif summary_of(measured).has_metrics:
        following = []
        if report.invalid_count:
            why = f"{report.invalid_count:,} of {report.row_count:,} rows are invalid and support no metric"
            following = [NextCommand(run_of(report).call.command("validate"), f"{why}; to see their issues")]
        print_text(as_text(metrics_view(summary_of(measured), arguments.system, following), color=in_color()))
    if measured is not report:
        print_note(f"counted are the turns of the valid evaluations: {measured.row_count:,}", arguments)
