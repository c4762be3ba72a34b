"""from-traces: traces of MLflow or OpenTelemetry, of files or a tracking store, into evaluation rows."""

import argparse
from typing import Any

from agent_eval_schema.cli.options import ROW_FILES, ROWS_OUT, Commands, add_command, codes_in
from agent_eval_schema.cli.output import ExitCode, in_color, print_note, print_text
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.inference_tables.options import COMMAND_LINE, FEEDBACK, flag
from agent_eval_schema.rule import FAILING


def add(commands: Commands) -> None:
    examples = [
        "from-traces sample_data/search_traces.jsonl rows.jsonl",
        "from-traces sample_data/otel_traces.jsonl rows.jsonl",
        "from-traces sample_data/search_traces.jsonl more.jsonl --extend sample_data/good.jsonl --dedupe question",
    ]
    summary = "build evaluation rows from MLflow or OpenTelemetry traces"
    command = add_command(commands, "from-traces", run, summary, examples)
    command.add_argument("input", metavar="IN", nargs="?", help=f"traces, or a search_traces table: {ROW_FILES}")
    command.add_argument("output", metavar="OUT", help=f"rows: {ROWS_OUT}")
    command.reads_and_writes(["input", "labels", "extend"], ["output"])
    for title, options in COMMAND_LINE.items():
        for name in sorted(_OF_BUILD.intersection(options), key=list(options).index):
            command.option(title, flag(name), dest=name, **options[name])
    store = "tracking store"
    command.option(store, "--experiment", "read traces from this MLflow experiment instead of IN", metavar="NAME")
    command.option(store, "--filter", "filter string passed to mlflow.search_traces", metavar="FILTER")
    command.option(store, "--tracking-uri", "tracking store (default: MLFLOW_TRACKING_URI)", metavar="URI")
    command.option(store, "--evaluations", "include traces that evaluations logged", action="store_true")
    command.add_columns()
    command.add_rules()
    command.add_fail_on()
    command.add_settings("columns", "select", "ignore", "fail_on")
    command.add_no_values()
    command.add_quiet()


_OF_BUILD = {"dedupe", "near", "extend", "include", "labels"}
"""The options that traces have like a logged table."""


def run(arguments: argparse.Namespace) -> int:
    """Write the rows; print the report."""
    from agent_eval_schema.api import build_from_traces, validate_traces
    from agent_eval_schema.inference_tables.build_summary import funnel_view
    from agent_eval_schema.render.printable import as_text
    from agent_eval_schema.rules import RULES
    from agent_eval_schema.validation.chosen_rules import chosen
    from agent_eval_schema.validation.report import summary_of, text_of

    ignored = () if arguments.input is None else arguments.ignored(arguments.input)
    rules: dict[str, Any] = {"select": codes_in(arguments.select), "ignore": (*codes_in(arguments.ignore), *ignored)}
    columns = arguments.columns or None
    of_build = {name: value for name in _OF_BUILD if (value := getattr(arguments, name)) is not None}
    if of_build.keys() - {"labels"} or of_build.get("labels", "none") not in ("none", FEEDBACK):
        options = {name: None if value == "none" else value for name, value in of_build.items()}
        with build_from_traces(_traces(arguments), columns, **options, show_values=arguments.values) as build:
            count, report = build.write(arguments.output), build.report
            view = funnel_view(build.summary, output=arguments.output, of_traces=summary_of(report))
            print_text(as_text(view, color=in_color()))
    else:
        labels = None if arguments.labels == "none" else FEEDBACK
        report = validate_traces(_traces(arguments), values=arguments.values, columns=columns, labels=labels, **rules)
        count = report.write(arguments.output, passthrough=False)
        print_text(text_of(report, arguments.output, color=in_color()))
    print_note(f"{count:,} rows written to {arguments.output}", arguments)
    codes = chosen(**rules)
    is_failing = any(RULES[code].severity in FAILING[arguments.fail_on] for code in codes.intersection(report.counts))
    return ExitCode.FOUND if is_failing else ExitCode.CLEAN


def _traces(arguments: argparse.Namespace) -> object:
    """The file of traces, or the traces of an experiment in a tracking store."""
    store_only = arguments.filter or arguments.tracking_uri or arguments.evaluations
    if (arguments.input is None) == (arguments.experiment is None) or (arguments.input and store_only):
        raise EvalSetError("give a file IN, or --experiment NAME (with --filter and --tracking-uri) in its place")
    if arguments.input is not None:
        return arguments.input
    from agent_eval_schema.integrations.mlflow.tracking import traces_from_store

    return traces_from_store(
        arguments.experiment,
        filter_string=arguments.filter,
        tracking_uri=arguments.tracking_uri,
        evaluations=arguments.evaluations,
    )
