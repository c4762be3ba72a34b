"""from-inference-table: an inference table into an evaluation dataset."""

import argparse
from typing import Any

from agent_eval_schema.cli.options import OUTPUT, ROW_FILES, ROWS_OUT, AddColumns, Commands, add_command, whole
from agent_eval_schema.cli.output import in_color, print_note, print_text
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.inference_tables.options import COMMAND_LINE, flag


def add(commands: Commands) -> None:
    examples = [
        "from-inference-table sample_data/inference_table.jsonl rows.jsonl --dedupe question --redact default",
        "from-inference-table sample_data/inference_table.jsonl rows.parquet --sample 10 --stratify failed",
        "from-inference-table sample_data/inference_table.jsonl more.jsonl --extend sample_data/good.jsonl",
    ]
    summary = "build an evaluation dataset from an inference table (request log)"
    command = add_command(commands, "from-inference-table", run, summary, examples)
    command.add_argument("table", metavar="TABLE", help=f"the logged requests: {ROW_FILES}")
    rows = f"rows: {ROWS_OUT}; or a new Delta folder (no extension); options and counts: OUT.manifest.json"
    command.add_argument("output", metavar="OUT", help=rows)
    command.reads_and_writes(["table", "labels", "traces", "extend"], places=["output", "excluded"])
    for group, options in COMMAND_LINE.items():
        for name, argument in options.items():
            command.option(group, flag(name), dest=name, **argument, **_TYPES.get(name, {}))
    command.option(OUTPUT, "--excluded", "write excluded rows, each with its reason, to PATH", metavar="PATH")
    command.add_output("summary", dest="summary", default=None)
    command.add_settings("output")
    command.add_html("summary and the report on the rows")
    command.add_no_values()
    command.add_argument("--resume", action="store_true", help="resume an interrupted run")
    engines = ["embedded", "spark"]
    command.add_argument("--engine", choices=engines, default="embedded", help="where it runs (default: embedded)")
    command.add_quiet()
    command.add_jobs()


_TYPES: dict[str, dict[str, Any]] = {"columns": {"action": AddColumns}, "seed": {"type": whole}}
"""How the values of options are read that are not strings."""


def run(arguments: argparse.Namespace) -> None:
    """Build the rows, and print the funnel of the logged calls."""
    from agent_eval_schema.inference_tables.build_file import build_file, build_on_spark
    from agent_eval_schema.inference_tables.build_summary import funnel_view
    from agent_eval_schema.render.printable import as_text

    values = {name: getattr(arguments, name) for options in COMMAND_LINE.values() for name in options}
    options = {name: None if value == "none" else value for name, value in values.items() if value is not None}
    if arguments.columns is not None:
        options["columns"] = dict(arguments.columns)
    if not arguments.values:
        options["show_values"] = False
    out, beside = arguments.output, {"excluded": arguments.excluded, "html": arguments.html}
    if arguments.engine == "spark":
        if arguments.resume or arguments.jobs:
            raise EvalSetError("--resume and --jobs are of the embedded engine: Spark shares and repeats work itself")
        summary = build_on_spark(arguments.table, out, options, **beside)
    else:
        summary = build_file(arguments.table, out, options, **beside, resume=arguments.resume, jobs=arguments.jobs)
    document = funnel_view(summary, output=out)
    text = summary.to_json() if arguments.summary == "json" else as_text(document, color=in_color())
    print_text(text, arguments.summary)
    print_note(f"{summary.rows + summary.existing.get('rows', 0):,} rows written to {out}", arguments)
    if arguments.excluded:
        print_note(f"{sum(summary.excluded.values()):,} excluded rows written to {arguments.excluded}", arguments)
