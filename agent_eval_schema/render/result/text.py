"""A result, and a comparison of two, as tables of text. Computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console

from agent_eval_schema.metrics.catalog import LATENCY
from agent_eval_schema.render.console import STYLES, drawn, plural, print_columns
from agent_eval_schema.render.numbers import aligned, number, seconds, share, signed
from agent_eval_schema.render.result.summary import MetricComparison, ResultSummary, Scored
from agent_eval_schema.rules import RULES
from agent_eval_schema.text.visible import visible


def result_text(result: ResultSummary, width: int | None = None, *, color: bool = False) -> str:
    """What was not scored, a line per metric, then why rows have no score."""

    def draw(console: Console) -> None:
        if result.headline:
            console.print(f"✗ {visible(result.headline)}", style="bold red")
        means, stds = written(result.lines, lambda line: line.mean), written(result.lines, lambda line: line.std)
        rows = [
            (line.metric, mean, std, f"{line.scored:,} of {line.rows:,}", share(line.scored, line.rows))
            for line, mean, std in zip(result.lines, means, stds, strict=True)
        ]
        if result.options.get("match") == "tool_name":
            console.print("Trajectories are compared by tool name; inputs are not compared.")
        print_columns(console, ("metric", "mean", "std", "rows scored", "coverage"), rows)
        for reason, count, metrics in result.reason_groups:
            of = "" if len(metrics) == len(result.metrics) else f" ({', '.join(map(visible, metrics))})"
            console.print(f"{plural(count, 'row')} without a score: {visible(reason)}{of}")
        for code, count in result.issue_counts.items():
            rule = RULES[code]
            console.print(f"{code} {rule.name}: {count:,} ×", style=STYLES[rule.severity])

    return drawn(draw, color, width).lstrip("\n")


def written(lines: Iterable[Scored], value: Callable[[Scored], float]) -> list[str]:
    """A number of each metric: scores with the same decimals, seconds with their unit."""
    lines = list(lines)
    scores = iter(aligned(value(line) for line in lines if line.metric != LATENCY))
    return [seconds(value(line)) if line.metric == LATENCY else next(scores) for line in lines]


def comparison_text(lines: Iterable[MetricComparison], only_old: int, only_new: int, width: int | None = None) -> str:
    """A line per metric: before, after, and whether the difference can be chance; then the number of rows in only one
    of the two results."""

    def draw(console: Console) -> None:
        rows = []
        for line in lines:
            show = shown_as(line.metric)
            old, new = (show(line.old), show(line.new)) if line.metric == LATENCY else aligned([line.old, line.new])
            counts = (f"{count:,}" for count in (line.higher, line.lower, line.rows))
            rows.append((line.metric, old, new, signed(line.difference), *counts, number(line.p_value)))
        print_columns(console, ("metric", "before", "after", "difference", "higher", "lower", "rows", "p"), rows)
        for count, which in ((only_old, "before"), (only_new, "after")):
            if count:
                console.print(f"{plural(count, 'row')} only {which}")

    return drawn(draw, False, width).lstrip("\n")


def shown_as(metric: str) -> Callable[[float], str]:
    """How the numbers of a metric are written."""
    return seconds if metric == LATENCY else number
