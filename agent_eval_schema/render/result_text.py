"""A result, and a comparison of two, as tables of text. Computes nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from agent_eval_schema.render.text import drawn, plural
from agent_eval_schema.visible import visible

if TYPE_CHECKING:
    from agent_eval_schema.evaluation.comparison import Comparison
    from agent_eval_schema.evaluation.result import EvalResult


def result_text(result: EvalResult, width: int | None = None, *, color: bool = False) -> str:
    """A line a metric, then why rows have no score."""

    def draw(console: Console) -> None:
        table = _table("metric", "mean", "std", "rows scored")
        for line in result.lines:
            table.add_row(visible(line.metric), number(line.mean), number(line.std), f"{line.scored:,} of {line.rows:,}")
        console.print(table)
        for reason in result.unscored.itertuples():
            console.print(f"{visible(reason.metric)}: {plural(reason.rows, 'row')} without a score: {visible(reason.reason)}")

    return drawn(draw, color, width).lstrip("\n")


def comparison_text(comparison: Comparison, width: int | None = None) -> str:
    """A line a metric: before, after, and whether the difference can be chance."""

    def draw(console: Console) -> None:
        table = _table("metric", "before", "after", "difference", "higher", "lower", "rows", "p")
        for line in comparison.lines:
            numbers = (number(line.old), number(line.new), f"{line.difference:+.3g}")
            table.add_row(
                visible(line.metric), *numbers, f"{line.higher:,}", f"{line.lower:,}", f"{line.rows:,}", number(line.p_value)
            )
        console.print(table)
        for keys, which in ((comparison.only_old, "before"), (comparison.only_new, "after")):
            if keys:
                console.print(f"{plural(len(keys), 'row')} only {which}")

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
