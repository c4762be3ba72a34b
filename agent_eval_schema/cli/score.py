"""score: predicted against reference trajectories."""

from __future__ import annotations

import argparse
import math
import sys
from contextlib import suppress

from agent_eval_schema.cli.options import (
    FAILING,
    Commands,
    add_command,
    add_fail_on,
    add_output,
    add_quiet,
    codes_in,
)
from agent_eval_schema.cli.output import ExitCode, in_color, print_note, print_text, progress_screen, save_page


def add(commands: Commands) -> None:
    """Add the command."""
    command = add_command(commands, "score", run, "score predicted against reference trajectories")
    command.add_argument(
        "file", metavar="FILE", help="JSONL, JSON, CSV or Parquet, its URL, or bq://project.dataset.table"
    )
    command.add_argument("--metrics", metavar="NAMES", action="append", default=[], help="only these (all five)")
    command.add_argument("--tool-name", metavar="T", help="adds trajectory_single_tool_use of this tool")
    command.add_argument(
        "--duplicates",
        choices=["membership", "one_to_one"],
        default="membership",
        help="how precision and recall count repeated calls (membership)",
    )
    command.add_argument(
        "--empty",
        choices=["nan", "define"],
        default="nan",
        help="the score of an empty trajectory: none, or as defined",
    )
    command.add_argument("--format", metavar="F", default="auto", help="the data's format (found by its columns)")
    add_output(command, "summary")
    command.add_argument("--html", metavar="PATH", help="write the result as a page to look at")
    command.add_argument(
        "--write-scores",
        metavar="PATH",
        help="write all rows with their scores (Parquet, or by its ending CSV or JSONL)",
    )
    command.add_argument(
        "--min", metavar="METRIC=MEAN", type=_bound, action="append", default=[], help="exit code 1 if a mean is lower"
    )
    add_fail_on(command)
    add_quiet(command)


def _bound(text: str) -> tuple[str, float]:
    metric, _, bound = text.partition("=")
    with suppress(ValueError):
        if math.isfinite(mean := float(bound)):
            return metric, mean
    raise argparse.ArgumentTypeError(f"expected METRIC=MEAN, such as trajectory_recall=0.9, got {text!r}")


def run(arguments: argparse.Namespace) -> int:
    """Print the summary of the scores; --min fails a mean that is too low."""
    from agent_eval_schema.evaluation.score import score_dataset
    from agent_eval_schema.io.atomic import require_apart, require_place
    from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS
    from agent_eval_schema.render.result.json import result_json
    from agent_eval_schema.render.result.text import result_text

    for target in (arguments.html, arguments.write_scores):
        if target:
            require_place(target)
    require_apart({"FILE": arguments.file}, {"--html": arguments.html, "--write-scores": arguments.write_scores})
    metrics = codes_in(arguments.metrics) or tuple(TRAJECTORY_METRICS)
    lowest = dict(arguments.min)
    result = score_dataset(
        arguments.file,
        metrics,
        arguments.tool_name,
        arguments.duplicates,
        arguments.empty,
        arguments.format,
        progress_screen(arguments),
    )
    too_low = result.below(lowest)
    if arguments.output == "json":
        print_text(result_json(result.summary()))
    else:
        print_text(result_text(result.summary(), color=in_color()))
    if arguments.html:
        save_page(arguments.html, result.to_html(), "result", arguments)
    if arguments.write_scores:
        as_text = arguments.write_scores.lower().endswith((".csv", ".jsonl", ".ndjson"))
        (result.save if as_text else result.to_parquet)(arguments.write_scores)
        print_note(f"{result.row_count:,} rows with their scores written to {arguments.write_scores}", arguments)
    for metric, mean in too_low.items():
        why = "no row has a score, so no mean reaches" if math.isnan(mean) else f"the mean {mean:.3g} is below"
        print(f"{metric}: {why} {lowest[metric]:g}", file=sys.stderr)
    found = any(result.count(severity) for severity in FAILING[arguments.fail_on])
    return ExitCode.FOUND if too_low or found else ExitCode.CLEAN
