"""A result, and a comparison of two, as tables of text. Computes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from rich.console import Console
from rich.table import Table

from agent_eval_schema.metrics.catalog import LATENCY
from agent_eval_schema.render.console import drawn, plural
from agent_eval_schema.render.result.summary import MetricComparison, ResultSummary
from agent_eval_schema.rules import RULES
from agent_eval_schema.text.visible import visible


def result_text(result: ResultSummary, width: int | None = None, *, color: bool = False) -> str:
    """A line a metric, then why rows have no score."""

    def draw(console: Console) -> None:
        table = _table("metric", "mean", "std", "rows scored")
        for line in result.lines:
            show = shown_as(line.metric)
            table.add_row(visible(line.metric), show(line.mean), show(line.std), f"{line.scored:,} of {line.rows:,}")
        console.print(table)
        for reason, rows, metrics in result.reason_groups:
            of = "" if len(metrics) == len(result.metrics) else f" ({', '.join(map(visible, metrics))})"
            console.print(f"{plural(rows, 'row')} without a score: {visible(reason)}{of}")
        for code, count in result.issue_counts.items():
            console.print(f"{code} {RULES[code].name}: {count:,} ×")

    return drawn(draw, color, width).lstrip("\n")


def comparison_text(lines: Iterable[MetricComparison], only_old: int, only_new: int, width: int | None = None) -> str:
    """A line per metric: before, after, and whether the difference can be chance; then the number of rows in only one
    of the two results."""

    def draw(console: Console) -> None:
        table = _table("metric", "before", "after", "difference", "higher", "lower", "rows", "p")
        for line in lines:
            show = shown_as(line.metric)
            numbers = (show(line.old), show(line.new), f"{line.difference:+.3g}")
            counts = (f"{count:,}" for count in (line.higher, line.lower, line.rows))
            table.add_row(visible(line.metric), *numbers, *counts, number(line.p_value))
        console.print(table)
        for rows, which in ((only_old, "before"), (only_new, "after")):
            if rows:
                console.print(f"{plural(rows, 'row')} only {which}")

    return drawn(draw, False, width).lstrip("\n")


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right")
    return table


def number(value: float) -> str:
    """Three digits; a dash for what there is not."""
    return "–" if math.isnan(value) else f"{value:.3g}"


def seconds_text(value: float) -> str:
    """Seconds in the unit in which they can be read."""
    if math.isnan(value):
        return number(value)
    unit, factor = next(((u, f) for u, f in (("s", 1), ("ms", 1e3)) if value * f >= 0.1), ("µs", 1e6))
    return f"{value * factor:.3g} {unit}"


def shown_as(metric: str) -> Callable[[float], str]:
    """How the numbers of a metric are written."""
    return seconds_text if metric == LATENCY else number
