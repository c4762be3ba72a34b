"""from-traces: traces of MLflow or OpenTelemetry, of files or a tracking store, into evaluation rows."""

import argparse

from agent_eval_schema.cli.options import ROW_FILES, ROWS_OUT, Commands, add_command, codes_in
from agent_eval_schema.cli.output import ExitCode, in_color, print_note, print_text, progress_screen
from agent_eval_schema.issues import FAILING, EvalSetError


def add(commands: Commands) -> None:
    command = add_command(
        commands,
        "from-traces",
        run,
        "build evaluation rows from MLflow or OpenTelemetry traces",
        [
            "from-traces sample_data/search_traces.jsonl rows.jsonl",
            "from-traces sample_data/otel_traces.jsonl rows.jsonl",
        ],
    )
    command.add_argument("input", metavar="IN", nargs="?", help=f"traces, or a search_traces table: {ROW_FILES}")
    command.add_argument("output", metavar="OUT", help=f"rows: {ROWS_OUT}")
    command.reads_and_writes(["input"], ["output"])
    store = command.group("tracking store")
    store.add_argument("--experiment", metavar="NAME", help="read traces from this MLflow experiment instead of IN")
    store.add_argument("--filter", metavar="FILTER", help="filter string passed to mlflow.search_traces")
    store.add_argument("--tracking-uri", metavar="URI", help="tracking store (default: MLFLOW_TRACKING_URI)")
    store.add_argument("--evaluations", action="store_true", help="include traces that evaluations logged")
    command.add_columns()
    command.add_rules()
    command.add_fail_on()
    command.add_settings("columns", "select", "ignore", "fail_on")
    command.add_no_values()
    command.add_quiet()


def run(arguments: argparse.Namespace) -> int:
    """Write the rows; print the report if there are issues."""
    from agent_eval_schema.api import validate_traces
    from agent_eval_schema.io.atomic import require_apart
    from agent_eval_schema.io.write import require_writable

    require_writable(arguments.output)
    require_apart({"IN": arguments.input}, {"OUT": arguments.output})
    ignored = () if arguments.input is None else arguments.ignored(arguments.input)
    report = validate_traces(
        _traces(arguments),
        values=arguments.values,
        screen=progress_screen(arguments),
        columns=arguments.columns or None,
        select=codes_in(arguments.select),
        ignore=(*codes_in(arguments.ignore), *ignored),
    )
    count = report.write(arguments.output, passthrough=False)
    print_note(f"{count:,} rows written to {arguments.output}", arguments)
    if report.counts:
        print_text(report.to_text(color=in_color()))
    return ExitCode.FOUND if any(map(report.count, FAILING[arguments.fail_on])) else ExitCode.CLEAN


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
