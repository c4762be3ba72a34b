"""compare: the scores of two runs or more, from their files or MLflow runs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agent_eval_schema.cli.options import EXIT, INPUT, REPEATABLE, Commands, add_command, codes_in
from agent_eval_schema.cli.output import ExitCode, in_color, print_line, print_text, save_page
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.visible import shell_words, visible

if TYPE_CHECKING:
    from agent_eval_schema.evaluation.comparison import ScoreComparison
    from agent_eval_schema.metrics.metric_info import MetricInfo

SCORES = "file of scores (.parquet, .jsonl, .json, .csv, or a folder or URL), or an MLflow run (runs:/ID)"


def add(commands: Commands) -> None:
    examples = [
        "compare sample_data/vertex.jsonl sample_data/vertex.jsonl --metrics latency_in_seconds --fail-on any",
        "compare sample_data/vertex.jsonl sample_data/vertex.jsonl --key prompt --output markdown",
    ]
    command = add_command(commands, "compare", run, "compare the scores of two runs or more, row by row", examples)
    command.add_argument("old", metavar="OLD", help=SCORES)
    command.add_argument("new", metavar="NEW", nargs="+", help="scores of the newer run; several: a history of all")
    command.reads_and_writes(["old", "new"])
    command.add_columns()
    names = (
        "comma-separated metrics, or columns that are scores, to compare and judge (default: those of the result, or "
        "that are named like scores; figures such as latency are shown and not judged)"
    )
    command.option(INPUT, "--metrics", names, metavar="COLUMNS", **REPEATABLE)
    key = "column that identifies the rows of both (default: the position, else request_id or the question)"
    command.option(INPUT, "--key", key, metavar="COLUMN")
    cluster = "column whose equal values are one independent unit (default: auto, by session, question and document)"
    command.option(INPUT, "--cluster", cluster, metavar="COLUMN", default="auto")
    configurations = "comma-separated configurations of OLD and each NEW; runs of one configuration are repeats"
    command.option(INPUT, "--configurations", configurations, metavar="NAMES", default="")
    command.add_output("comparison", "json", "markdown", default=None)
    command.add_settings("columns", "output", "metrics")
    command.set_defaults(stated=None)
    for better, worse in (("lower", "higher"), ("higher", "lower")):
        help = f"{better} scores of this metric are better, {worse} ones worse; repeatable"
        command.option("metrics", f"--{better}-is-better", help, metavar="NAME", **REPEATABLE)
    scale = "lowest and highest score of a metric, such as recall=0..1; repeatable"
    command.option("metrics", "--scale", scale, metavar="NAME=LOW..HIGH", type=_scale, **REPEATABLE)
    command.add_html("comparison")
    failing = (
        "what causes exit code 1: a metric that is significantly lower in the last NEW than in OLD (default), or "
        "lower at all"
    )
    choices = ["significant", "any", "never"]
    command.option(EXIT, "--fail-on", failing, dest="compare_fail_on", choices=choices, default="significant")
    alpha = "significance level of the p value that is adjusted for the number of metrics (default: 0.05)"
    command.option(EXIT, "--alpha", alpha, metavar="P", type=float, default=0.05)
    effect = "smallest difference of a mean that causes exit code 1, of all metrics or of one (default: 0); repeatable"
    command.option(EXIT, "--min-effect", effect, **MIN_EFFECT)
    unscored = "accept rows that had a score and have none in NEW, which otherwise cause exit code 1"
    command.option(EXIT, "--allow-unscored", unscored, action="store_true")
    command.add_quiet()


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison; --fail-on fails a metric that became worse."""
    from agent_eval_schema.evaluation.result import load_result

    read, names = [arguments.old, *arguments.new], codes_in([arguments.configurations])
    if names and len(read) < 3:
        raise EvalSetError("--configurations needs more than two runs")
    metrics, columns = list(codes_in(arguments.metrics)) or None, dict(arguments.columns) or None
    infos = _stated(arguments)
    old, *new = (load_result(place, metrics=metrics, columns=columns, infos=infos) for place in read)
    _require_metrics(arguments, dict.fromkeys(name for result in (old, *new) for name in result.tallies))
    forms = ("{}", "{}/score", "{}/value", "feedback.{}")
    found_names = [name for name in old.tallies if {form.format(name) for form in forms}.intersection(metrics or ())]
    how: dict[str, Any] = {"key": arguments.key, "cluster": arguments.cluster}
    how["metrics"] = metrics and (found_names or metrics)
    judged = old.compare(new[-1], **how)
    failures = [] if arguments.compare_fail_on == "never" else failures_of(judged, arguments.compare_fail_on, arguments)
    judged._alpha, judged._failed = arguments.alpha, bool(failures)
    comparison = old.compare(*new, configurations=names or None, **how) if len(new) > 1 else judged
    options = {"--metrics": ",".join(metrics or ()), "--key": arguments.key, "--cluster": arguments.cluster}
    options["--configurations"] = ",".join(names)
    words = ["agent-eval-schema", "compare", *read]
    words += [word for pair in (columns or {}).items() for word in ("--columns", "=".join(pair))]
    words += [word for name, value in options.items() if value and value != "auto" for word in (name, value)]
    for better in ("lower", "higher"):
        words += [f"--{better}-is-better={name}" for name in getattr(arguments, f"{better}_is_better")]
    words += [word for name, scale in arguments.scale for word in ("--scale", f"{name}={_written(scale)}")]
    comparison._command = "" if arguments.html else shell_words([*words, "--html", "comparison.html"])
    comparison._markdown = shell_words([*words, "--output", "markdown"])
    writers = {"json": comparison.to_json, "markdown": comparison.to_markdown}
    text = writers[arguments.output]() if arguments.output in writers else comparison.to_text(color=in_color())
    print_text(text, arguments.output)
    save_page(comparison, "comparison", arguments)
    for failure in failures:
        print_line(failure)
    if judged._undecided and failures:
        return ExitCode.COULD_NOT_RUN
    return ExitCode.FOUND if failures else ExitCode.CLEAN


def _scale(text: str) -> tuple[str, tuple[float, float | None]]:
    from agent_eval_schema.metrics.metric_info import parse_scale

    name, _, scale = text.rpartition("=")
    try:
        return name, parse_scale(scale)
    except EvalSetError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _written(scale: tuple[float, float | None]) -> str:
    return f"{scale[0]:g}..{'' if scale[1] is None else f'{scale[1]:g}'}"


def _stated(arguments: argparse.Namespace) -> list[MetricInfo]:
    """What the settings and the command line state of metrics."""
    from msgspec.structs import replace

    from agent_eval_schema.metrics.known_metrics import metric_info
    from agent_eval_schema.metrics.metric_info import MetricInfo, parse_scale

    infos = {
        name: MetricInfo(name, one.direction, parse_scale(one.scale) if one.scale else None, unit=one.unit)
        for name, one in (arguments.stated or {}).items()
    }
    for better in ("lower", "higher"):
        for name in getattr(arguments, f"{better}_is_better"):
            infos[name] = replace(metric_info(name, infos), direction=better)
    for name, scale in arguments.scale:
        infos[name] = replace(metric_info(name, infos), scale=scale)
    return list(infos.values())


def _require_metrics(arguments: argparse.Namespace, metrics: Collection[str]) -> None:
    """Raise EvalSetError if a metric that an option names is in no result, or has both directions stated: a gate
    would judge it by what was not meant."""
    lower, higher = arguments.lower_is_better, arguments.higher_is_better
    options = {"--lower-is-better": lower, "--higher-is-better": higher, "--scale": dict(arguments.scale)}
    for option, names in options.items():
        for name in names:
            require_choice(option, name, metrics)
    for name in lower:
        if name in higher:
            raise EvalSetError(f"--lower-is-better and --higher-is-better: expected one direction of {visible(name)}")


# --- the gates of a comparison, for `score --against` too: what fails them, a line each
def _effect(text: str) -> tuple[str, float]:
    metric, _, bound = text.rpartition("=")
    with suppress(ValueError):
        if math.isfinite(effect := float(bound)) and effect >= 0:
            return metric, effect
    raise argparse.ArgumentTypeError(f"expected X or METRIC=X, such as 0.02 or recall=0.02; got {text!r}")


MIN_EFFECT: dict[str, Any] = {"metavar": "[METRIC=]X", "type": _effect, **REPEATABLE}
"""How --min-effect is read."""


def _min_effect(arguments: argparse.Namespace) -> float | Mapping[str, float]:
    effects: dict[str, float] = dict(arguments.min_effect)
    if "" in effects and len(effects) > 1:
        raise EvalSetError("--min-effect: set one number for all metrics, or one per metric, not both")
    return effects.get("", effects or 0.0)


def failures_of(comparison: ScoreComparison, fail_on: str, arguments: argparse.Namespace) -> list[str]:
    """Why a comparison fails `--fail-on significant` or `any`; metrics whose direction must be stated come first, and
    nothing is judged before."""
    from agent_eval_schema.evaluation.result_blocks import SESSIONS_UNKNOWN
    from agent_eval_schema.render.phrases import signed

    if undecided := comparison._undecided:
        return [
            f"{one.name}: the direction is not known, and the name suggests that lower is better: set "
            f"{one.option('lower')} or {one.option('higher')}"
            for one in undecided
        ]
    alpha = getattr(arguments, "alpha", 0.05)
    worse = comparison.regressions(significant=fail_on == "significant", min_effect=_min_effect(arguments), alpha=alpha)
    note = " (sessions unknown: each row counts as independent)" if SESSIONS_UNKNOWN in comparison.remarks else ""
    failures = [f"{metric}: the mean changed by {signed(difference)}{note}" for metric, difference in worse.items()]
    if comparison._lost and not arguments.allow_unscored:
        failures.append(f"{comparison._lost:,} rows that had a score have none in NEW; --allow-unscored accepts them")
    return failures
