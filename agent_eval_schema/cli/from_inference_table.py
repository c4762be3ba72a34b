"""from-inference-table: a table of logged calls into an evaluation set."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import Commands, add_command, add_jobs, add_no_values, add_output, add_quiet
from agent_eval_schema.cli.output import ExitCode, in_color, print_note, print_text, progress_screen
from agent_eval_schema.issues import EvalSetError


def add(commands: Commands) -> None:
    """Add the command."""
    command = add_command(commands, "from-inference-table", run, "turn a table of logged calls into an evaluation set")
    command.add_argument("table", metavar="TABLE", help="the logged calls: Parquet (file or folder), JSONL, CSV, Delta")
    command.add_argument(
        "output",
        metavar="OUT",
        help="rows: .parquet, .jsonl, .csv or a new Delta folder (no ending); how they were made: OUT.manifest.json",
    )
    command.add_argument("--since", metavar="TIME", help="logged at this time or later: 2025-11-03, 2025-11-03T09:00Z")
    command.add_argument("--until", metavar="TIME", help="logged before this time (UTC if it has no zone)")
    command.add_argument("--sample", metavar="N", help="draw so many rows, or a fraction such as 0.1 (all rows)")
    command.add_argument("--seed", metavar="N", type=int, help="of the sample: the same seed draws the same rows (0)")
    command.add_argument(
        "--stratify",
        metavar="COL",
        help="share the sample over the values of a column, day, served_entity, failed, thumbs, or SQL",
    )
    command.add_argument(
        "--dedupe",
        choices=["id", "question", "none"],
        help="one row per request id (default); also one per distinct question, the latest; or every row",
    )
    command.add_argument(
        "--labels",
        metavar="TABLE",
        help="where ground truth is taken from: feedback (in the table, default), none, or an assessment-log table",
    )
    command.add_argument(
        "--redact",
        metavar="HOW",
        help="replace in texts: default (e-mail, phone and card numbers) or MODULE:FUNCTION; none is as without it",
    )
    command.add_argument(
        "--traces", metavar="TABLE", help="traces, for the rows that came without one or were too large to be logged"
    )
    command.add_argument("--where", metavar="SQL", help="which rows: \"served_entity_id = 'a'\"")
    command.add_argument(
        "--family",
        metavar="F",
        help="the kind of table, if its columns do not tell: assessment_logs, request_logs, ai_gateway, legacy, "
        "unity_ai_gateway, search_traces, archived_traces, mapped",
    )
    command.add_argument(
        "--map",
        metavar="WHAT=COL",
        action="append",
        default=[],
        help="which column (or key in it) holds what, for other logs: request=body.input; may be given again",
    )
    command.add_argument(
        "--keep",
        metavar="REASON",
        action="append",
        default=[],
        help="do not set rows aside for this reason: outside_window, status, partial, repeated, duplicate_question or "
        "invalid; may be given again",
    )
    command.add_argument("--set-aside", metavar="PATH", help="write what was set aside, each row with its reason")
    command.add_argument("--resume", action="store_true", help="go on where a killed run has stopped")
    command.add_argument("--engine", choices=["embedded", "spark"], default="embedded", help="where it runs (embedded)")
    add_output(command, "summary", dest="summary")
    command.add_argument("--html", metavar="PATH", help="write the funnel and the report on the rows as a page")
    add_no_values(command)
    add_quiet(command)
    add_jobs(command)


def run(arguments: argparse.Namespace) -> int:
    """Build the rows, and print the summary of what became of the logged calls."""
    from agent_eval_schema.inference_tables.build_file import FLAGS, build_file, build_on_spark

    given = {name: getattr(arguments, name) for name in FLAGS}
    options = {name: None if v == "none" else v for name, v in given.items() if v is not None and v != []}
    if not arguments.values:
        options["values"] = False
    out, beside = arguments.output, {"set_aside": arguments.set_aside, "html": arguments.html}
    if arguments.engine == "spark":
        if arguments.resume or arguments.jobs:
            raise EvalSetError("--resume and --jobs are of the embedded engine: Spark shares and repeats work itself")
        summary = build_on_spark(arguments.table, out, options, **beside)
    else:
        how = {"resume": arguments.resume, "jobs": arguments.jobs, "screen": progress_screen(arguments)}
        summary = build_file(arguments.table, out, options, **beside, **how)
    print_text(summary.to_json() if arguments.summary == "json" else summary.to_text(color=in_color()))
    print_note(f"{summary.rows:,} rows written to {out}", arguments)
    if arguments.set_aside:
        print_note(f"{sum(summary.set_aside.values()):,} rows set aside to {arguments.set_aside}", arguments)
    return ExitCode.CLEAN
