"""score: the metrics that need no model, of trajectories, answers, documents and tool calls."""

from __future__ import annotations

import argparse
import math
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_eval_schema.cli.compare import MIN_EFFECT, failures_of
from agent_eval_schema.cli.options import (
    EXIT,
    OUTPUT,
    REPEATABLE,
    ROW_FILES,
    Commands,
    add_command,
    codes_in,
    number_below,
    open_input,
)
from agent_eval_schema.cli.output import ExitCode, in_color, print_line, print_note, print_text, save_page
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.rule import FAILING

if TYPE_CHECKING:
    from agent_eval_schema.evaluation.result import EvalResult


def add(commands: Commands) -> None:
    examples = [
        "score sample_data/vertex.jsonl",
        "score sample_data/vertex.jsonl --tool-name get_order --min trajectory_recall=0.9",
        "score sample_data/vertex.jsonl --against sample_data/vertex.jsonl --fail-on-regression significant",
        "score sample_data/good.jsonl --metrics document_recall,exact_match --write-scores scores.csv",
    ]
    about = "compute metrics that need no model: of trajectories, answers, documents, tool calls"
    command = add_command(commands, "score", run, about, examples)
    command.add_argument("file", metavar="FILE", help=ROW_FILES)
    command.reads_and_writes(["file", "against"], ["write_scores"])
    command.add_format()
    names = "comma-separated names (default: all of trajectories but trajectory_f1)"
    command.option("metrics", "--metrics", names, metavar="METRICS", **REPEATABLE)
    command.option("metrics", "--tool-name", "add trajectory_single_tool_use of this tool", metavar="TOOL")
    repeated = "how precision and recall count repeated calls (default: membership)"
    command.option("metrics", "--duplicates", repeated, choices=["membership", "one_to_one"], default="membership")
    empty = "score of an empty trajectory: that of the definition (default), or none, as the Vertex AI service"
    command.option("metrics", "--empty", empty, choices=["define", "nan"], default="define")
    match = (
        "when two calls are the same: equal names and inputs (default), equal names, or equal names and all "
        "arguments of the reference"
    )
    command.option("metrics", "--match", match, choices=["call", "tool_name", "subset"], default="call")
    command.add_output("summary", default=None)
    command.add_settings("format", "columns", "output", "fail_on")
    command.add_html("result")
    written = "write all rows with their scores (.parquet, .csv, .jsonl, .json, or as every-eval-ever names its files)"
    command.option(OUTPUT, "--write-scores", written, metavar="PATH")
    for bound, side in (("min", "below"), ("max", "above")):
        help = f"exit with code 1 if the mean is {side} this threshold; repeatable"
        command.option(EXIT, f"--{bound}", help, metavar="METRIC=MEAN", type=_bound, **REPEATABLE)
    judged = "--min judges the lower bound of this confidence interval (0.95), --max the upper one, not the mean"
    level = number_below(1, "a level between 0 and 1, such as 0.95")
    command.option(EXIT, "--confidence", judged, metavar="LEVEL", type=level)
    command.option(EXIT, "--against", "compare with the scores of an older file", metavar="OLD")
    command.option(EXIT, "--key", "column that identifies the rows of both files", metavar="COLUMN")
    regression = "exit with code 1 if a metric is lower than in OLD: significantly (Holm p < 0.05), or at all"
    command.option(EXIT, "--fail-on-regression", regression, choices=["significant", "any"])
    effect = "smallest difference of a mean that counts as a regression, of all metrics or of one; repeatable"
    command.option(EXIT, "--min-effect", effect, **MIN_EFFECT)
    command.add_fail_on()
    unscored = "accept rows without a score, which otherwise fail --min, --max, --fail-on and --fail-on-regression"
    command.option(EXIT, "--allow-unscored", unscored, action="store_true")
    command.add_quiet()


def _bound(text: str) -> tuple[str, float]:
    metric, _, bound = text.partition("=")
    with suppress(ValueError):
        if math.isfinite(mean := float(bound)):
            return metric, mean
    from agent_eval_schema.metrics.definitions import DEFINITIONS
    from agent_eval_schema.text.choices import meant

    close = meant(metric, DEFINITIONS)
    raise argparse.ArgumentTypeError(f"expected METRIC=MEAN, such as trajectory_recall=0.9; got {text!r}{close}")


def run(arguments: argparse.Namespace) -> int:
    """Print the summary of the scores; --min fails a mean that is too low, --fail-on-regression a lower one."""
    from msgspec.structs import replace

    from agent_eval_schema.evaluation.result_blocks import result_json, result_view
    from agent_eval_schema.evaluation.score import score_named
    from agent_eval_schema.evaluation.task_metrics import row_metrics
    from agent_eval_schema.metrics.definitions import SINGLE_TOOL_USE
    from agent_eval_schema.metrics.trajectory import DEFAULT_METRICS, TRAJECTORY_METRICS
    from agent_eval_schema.render.printable import as_text
    from agent_eval_schema.text.choices import require_choice

    read = [arguments.file, *([arguments.against] if arguments.against else [])]
    for option in ("fail_on_regression", "key", "min_effect"):
        if getattr(arguments, option) and not arguments.against:
            raise EvalSetError(f"--{option.replace('_', '-')} needs --against OLD")
    metrics = codes_in(arguments.metrics) or DEFAULT_METRICS
    for metric in metrics:
        if metric != SINGLE_TOOL_USE:  # which takes a tool
            require_choice("--metrics", metric, (*TRAJECTORY_METRICS, *row_metrics()))
    for bound in ("min", "max"):
        for metric, _ in getattr(arguments, bound):  # a wrong name is reported before the file is read
            require_choice(f"--{bound}", metric, (*metrics, *([SINGLE_TOOL_USE] if arguments.tool_name else [])))
    if arguments.confidence is not None and not arguments.min and not arguments.max:
        example = f"--min {metrics[0]}=0.8"
        raise EvalSetError(f"--confidence has no effect without --min or --max: set a threshold, such as {example}")
    options = {name: getattr(arguments, name) for name in ("tool_name", "duplicates", "empty", "match")}
    result, *older = (score_named(open_input(file, arguments), metrics, **options) for file in read)
    comparison = older[0].compare(result, key=arguments.key) if older else None
    regressions = []
    if comparison is not None:
        if arguments.fail_on_regression:
            regressions = failures_of(comparison, arguments.fail_on_regression, arguments)
        comparison._failed = bool(regressions)
    in_json = arguments.output == "json"
    view = result_view(result)
    # a command line has no variable, and the page has the rows
    hidden = ("result.", "--html") if arguments.html else ("result.",)
    view = replace(view, following=[one for one in view.following if not any(part in one.command for part in hidden)])
    compared = comparison.lines if comparison is not None else ()
    text = result_json(result, compared=compared) if in_json else as_text(view, color=in_color())
    print_text(text, arguments.output)
    if comparison is not None and not in_json:
        print_line("")
        print_text(comparison.to_text(color=in_color()), arguments.output)
    save_page(result, "report of scores", arguments)
    if arguments.write_scores:
        result.write(arguments.write_scores)
        print_note(f"{result.row_count:,} rows with their scores written to {arguments.write_scores}", arguments)
    return ExitCode.FOUND if _fails(result, regressions, arguments) else ExitCode.CLEAN


def _fails(result: EvalResult, regressions: list[str], arguments: argparse.Namespace) -> bool:
    """Print what --min, --max and --fail-on-regression find, and the rows without a score; whether the run fails."""
    from agent_eval_schema.render.phrases import number
    from agent_eval_schema.rules import rule_of

    lowest, highest = dict(arguments.min), dict(arguments.max)
    missed = result.failing({m: (lowest.get(m), highest.get(m)) for m in (*lowest, *highest)}, arguments.confidence)
    for metric, value in missed.items():
        is_low = metric in lowest and not value > lowest[metric]
        side, end, bound = ("lower", "below", lowest) if is_low else ("upper", "above", highest)
        what = "mean" if arguments.confidence is None else f"{side} bound at {arguments.confidence:g} confidence"
        missing = "no row has a score" if math.isnan(result.tallies[metric].mean) else "there is no interval"
        why = f"{missing}, so no {what} reaches" if math.isnan(value) else f"the {what} {number(value)} is {end}"
        print_line(f"{metric}: {why} {number(bound[metric])}")
    for regression in regressions:
        print_line(regression)
    failing, lines = FAILING[arguments.fail_on], result._lines
    gated = [line for line in lines if failing or line.metric in (*lowest, *highest)]
    unscored = 0 if arguments.allow_unscored else max((result.row_count - line.scored for line in gated), default=0)
    if unscored and any(line.scored for line in gated):
        print_line(f"{unscored:,} of {result.row_count:,} rows have no score; --allow-unscored accepts them")
    has_issue = any(rule_of(code).severity in failing for code in result.issue_counts)
    is_empty = failing and not any(line.scored for line in lines)
    return bool(missed or regressions or has_issue or unscored or is_empty)
