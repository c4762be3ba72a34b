"""from-inference-table: an inference table into an evaluation dataset."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import (
    INPUT,
    OUTPUT,
    ROW_FILES,
    ROWS_OUT,
    Commands,
    Parser,
    add_command,
    add_html,
    add_jobs,
    add_no_values,
    add_output,
    add_quiet,
    add_settings,
    reads_and_writes,
    whole,
)
from agent_eval_schema.cli.output import ExitCode, in_color, print_note, print_text, progress_screen
from agent_eval_schema.issues import EvalSetError


def add(commands: Commands) -> None:
    """Add the command."""
    command = add_command(
        commands,
        "from-inference-table",
        run,
        "build an evaluation dataset from an inference table (request log)",
        [
            "from-inference-table sample_data/inference_table.jsonl rows.jsonl --dedupe question --redact default",
            "from-inference-table sample_data/inference_table.jsonl rows.parquet --sample 10 --stratify failed",
            "from-inference-table sample_data/inference_table.jsonl more.jsonl --extend sample_data/good.jsonl",
        ],
    )
    command.add_argument("table", metavar="TABLE", help=f"the logged requests: {ROW_FILES}")
    command.add_argument(
        "output",
        metavar="OUT",
        help=f"rows: {ROWS_OUT}; or a new Delta folder (no extension); options and counts: OUT.manifest.json",
    )
    reads_and_writes(command, ["table", "labels", "traces"], ["output", "excluded"])
    _add_columns(command)
    _add_rows(command)
    _add_content(command)
    output = command.group(OUTPUT)
    output.add_argument("--excluded", metavar="PATH", help="write excluded rows, each with its reason, to PATH")
    add_output(command, "summary", dest="summary", default=None)
    add_settings(command, "output")
    add_html(command, "summary and the report on the rows")
    add_no_values(command)
    command.add_argument("--resume", action="store_true", help="resume an interrupted run")
    engines = ["embedded", "spark"]
    command.add_argument("--engine", choices=engines, default="embedded", help="where it runs (default: embedded)")
    add_quiet(command)
    add_jobs(command)


def _add_columns(command: Parser) -> None:
    group = command.group(INPUT)
    group.add_argument(
        "--family",
        metavar="FAMILY",
        help="kind of table, if its columns do not identify it: assessment_logs, request_logs, ai_gateway, legacy, "
        "unity_ai_gateway, search_traces, archived_traces, mapped",
    )
    group.add_argument(
        "--map",
        dest="column_map",
        metavar="FIELD=COL",
        action="append",
        default=[],
        help="column (or key in it) of a field, for other logs: request=body.input; repeatable",
    )


def _add_rows(command: Parser) -> None:
    group = command.group("rows")
    group.add_argument("--since", metavar="TIME", help="logged at this time or later: 2025-11-03, 2025-11-03T09:00Z")
    group.add_argument("--until", metavar="TIME", help="logged before this time (UTC if it has no zone)")
    group.add_argument("--where", metavar="SQL", help="rows to read: \"served_entity_id = 'a'\"")
    group.add_argument(
        "--dedupe",
        choices=["id", "question", "near", "none"],
        help="keep one row per request ID (default), the latest row per distinct question, or per group of near "
        "duplicates, or every row",
    )
    group.add_argument("--near", metavar="N", help="similarity of near duplicates (default: 0.7)")
    group.add_argument(
        "--extend",
        metavar="EXISTING",
        help="dataset of an earlier build whose rows come first: only calls that it does not have are added (as "
        "--dedupe compares them), and later feedback updates its labels",
    )
    group.add_argument(
        "--keep",
        dest="include",
        metavar="REASON",
        action="append",
        default=[],
        help="do not exclude rows for this reason: outside_window, status, partial, repeated or invalid; repeatable",
    )
    group.add_argument(
        "--sample", metavar="N", help="sample size: a row count or a fraction such as 0.1 (default: all rows)"
    )
    group.add_argument(
        "--stratify",
        metavar="COL",
        help="stratify the sample by a column, day, served_entity, failed, thumbs, or an SQL expression",
    )
    group.add_argument(
        "--balance-by",
        metavar="COL",
        help="draw equally many rows of each value, of the same columns; --sample is a row count",
    )
    group.add_argument("--seed", metavar="N", type=whole, help="seed of the sample (default: 0)")


def _add_content(command: Parser) -> None:
    group = command.group("content of the rows")
    group.add_argument(
        "--labels",
        metavar="TABLE",
        help="source of ground-truth labels: feedback (default), none, or an assessment-log table",
    )
    group.add_argument(
        "--redact",
        metavar="HOW",
        help="replace in strings: default (e-mail, phone and card numbers), MODULE:FUNCTION, or none (default)",
    )
    group.add_argument("--traces", metavar="TABLE", help="table of traces, for rows that were logged without one")


def run(arguments: argparse.Namespace) -> int:
    """Build the rows, and print the summary of what became of the logged calls."""
    from agent_eval_schema.inference_tables.build_file import FLAGS, build_file, build_on_spark
    from agent_eval_schema.render.funnel.draw import funnel_text

    given = {name: getattr(arguments, name) for name in FLAGS}
    options = {name: None if v == "none" else v for name, v in given.items() if v is not None and v != []}
    if not arguments.values:
        options["show_values"] = False
    out, beside = arguments.output, {"excluded": arguments.excluded, "html": arguments.html}
    if arguments.engine == "spark":
        if arguments.resume or arguments.jobs:
            raise EvalSetError("--resume and --jobs are of the embedded engine: Spark shares and repeats work itself")
        summary = build_on_spark(arguments.table, out, options, **beside)
    else:
        how = {"resume": arguments.resume, "jobs": arguments.jobs, "screen": progress_screen(arguments)}
        summary = build_file(arguments.table, out, options, **beside, **how)
    text = summary.to_json() if arguments.summary == "json" else funnel_text(summary, color=in_color(), output=out)
    print_text(text, arguments.summary)
    print_note(f"{summary.rows + summary.existing.get('rows', 0):,} rows written to {out}", arguments)
    if arguments.excluded:
        print_note(f"{sum(summary.excluded.values()):,} excluded rows written to {arguments.excluded}", arguments)
    return ExitCode.CLEAN
