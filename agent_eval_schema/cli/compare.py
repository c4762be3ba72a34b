"""compare: the scores of two runs or more, from their files or MLflow runs."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from agent_eval_schema.cli.options import EXIT, INPUT, Commands, add_command, codes_in
from agent_eval_schema.cli.output import ExitCode, in_color, print_line, print_text, save_page
from agent_eval_schema.errors import EvalSetError

if TYPE_CHECKING:
    from agent_eval_schema.evaluation.comparison import ScoreComparison
    from agent_eval_schema.evaluation.history import ScoreHistory

SCORES = "file of scores (.parquet, .jsonl, .json, .csv, or a folder or URL), or an MLflow run (runs:/ID)"


def add(commands: Commands) -> None:
    command = add_command(
        commands,
        "compare",
        run,
        "compare the scores of two runs or more, row by row",
        [
            "compare sample_data/vertex.jsonl sample_data/vertex.jsonl --metrics latency_in_seconds --fail-on any",
            "compare sample_data/vertex.jsonl sample_data/vertex.jsonl --key prompt --output markdown",
        ],
    )
    command.add_argument("old", metavar="OLD", help=SCORES)
    command.add_argument("new", metavar="NEW", nargs="+", help="scores of the newer run; several: a history of all")
    command.reads_and_writes(["old", "new"])
    command.add_columns()
    names = "comma-separated columns that are scores (default: those of the result, or that are named like scores)"
    command.group(INPUT).add_argument("--metrics", metavar="COLUMNS", action="append", default=[], help=names)
    key = "column that identifies the rows of both (default: the position, else request_id or the question)"
    command.group(INPUT).add_argument("--key", metavar="COLUMN", help=key)
    cluster = "column whose equal values are one independent unit (default: auto, by session, question and document)"
    command.group(INPUT).add_argument("--cluster", metavar="COLUMN", default="auto", help=cluster)
    configurations = "comma-separated configurations of OLD and each NEW; runs of one configuration are repeats"
    command.group(INPUT).add_argument("--configurations", metavar="NAMES", default="", help=configurations)
    command.add_output("comparison", "json", "markdown", default=None)
    command.add_settings("columns", "output")
    command.add_html("comparison")
    command.group(EXIT).add_argument(
        "--fail-on",
        dest="compare_fail_on",
        choices=["significant", "any", "never"],
        default="significant",
        help="what causes exit code 1: a metric that is significantly lower in the last NEW than in OLD (default), or "
        "lower at all",
    )
    alpha = "significance level of the p value that is adjusted for the number of metrics (default: 0.05)"
    command.group(EXIT).add_argument("--alpha", metavar="P", type=float, default=0.05, help=alpha)
    effect = "the smallest difference of a mean that causes exit code 1 (default: 0)"
    command.group(EXIT).add_argument("--min-effect", metavar="X", type=float, default=0.0, help=effect)
    command.add_quiet()


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison; --fail-on fails a metric that became worse."""
    from agent_eval_schema.evaluation.result import load_result
    from agent_eval_schema.render.phrases import signed

    read = {"OLD": arguments.old, **{f"NEW {i}": place for i, place in enumerate(arguments.new, 1)}}
    metrics, columns = list(codes_in(arguments.metrics)) or None, dict(arguments.columns) or None
    old, *new = (load_result(place, metrics=metrics, columns=columns) for place in read.values())
    judged = old.compare(new[-1], key=arguments.key, cluster=arguments.cluster)
    options = {"--metrics": ",".join(metrics or ()), "--key": arguments.key, "--cluster": arguments.cluster}
    typed = [word for pair in columns.items() for word in ("--columns", "=".join(pair))] if columns else []
    typed += [word for name, value in options.items() if value and value != "auto" for word in (name, value)]
    words = ["agent-eval-schema", "compare", *read.values(), *typed, "--html", "comparison.html"]
    judged._command = "" if arguments.html else shlex.join(words)
    found: ScoreComparison | ScoreHistory = judged
    names = codes_in([arguments.configurations])
    if len(new) > 1:
        found = old.compare(*new, key=arguments.key, cluster=arguments.cluster, configurations=names or None)
        named = ["--configurations", ",".join(names)] if names else []
        found._command = "" if arguments.html else shlex.join([*words[:-2], *named, *words[-2:]])
    elif names:
        raise EvalSetError("--configurations needs more than two runs")
    forms = {"json": found.to_json, "markdown": found.to_markdown}
    text = forms[arguments.output]() if arguments.output in forms else found.to_text(color=in_color())
    print_text(text, arguments.output)
    save_page(found, "comparison", arguments)
    significant = arguments.compare_fail_on == "significant"
    worse = judged.regressions(significant=significant, min_effect=arguments.min_effect, alpha=arguments.alpha)
    if arguments.compare_fail_on == "never" or not worse:
        return ExitCode.CLEAN
    for metric, difference in worse.items():
        print_line(f"{metric}: the mean changed by {signed(difference)}")
    return ExitCode.FOUND
