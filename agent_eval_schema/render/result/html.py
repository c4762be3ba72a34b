"""A result as HTML; the shells, the style and the safety are those of html.py. Computes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agent_eval_schema.evaluation.worst import worst_rows
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.render.console import plural
from agent_eval_schema.render.page import inline, page, percent, plot
from agent_eval_schema.render.result.summary import EXTRA, MATCHED, MISSING, MOVED, Line, Scored, Side, Worst
from agent_eval_schema.render.result.text import number, seconds_text, shown_as
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.version import __version__

if TYPE_CHECKING:
    from agent_eval_schema.evaluation.result import EvalResult
    from agent_eval_schema.evaluation.tally import Tally


WORST_ON_A_PAGE, WORST_INLINE = 20, 3

LONGEST_CELL = 600
"""Characters of a cell that are shown."""

LONGEST_TITLE = 90
"""Characters of the text by which a row is known in a list."""

MARKS = {
    MATCHED: ("=", "matched", ""),
    MOVED: ("↕", "in another place", "info"),
    EXTRA: ("+", "extra", "warning"),
    MISSING: ("−", "missing", "error"),
}
"""What is shown of a call, and said of it: a sign, words, the colour."""


def result_page(result: EvalResult) -> str:
    """The result as a standalone HTML page."""
    return page(_title(result), "result.html", "result.css", **_drawn(result, WORST_ON_A_PAGE))


def result_inline(result: EvalResult) -> str:
    """The result for the output cell of a notebook."""
    return inline("result.html", "result.css", **_drawn(result, WORST_INLINE))


def _title(result: EvalResult) -> str:
    where = os.path.basename(result.name) if result.name else "evaluation"
    return f"{where}: {plural(result.row_count, 'row')}, {plural(len(result.metrics), 'metric')}"


def _drawn(result: EvalResult, most: int) -> dict[str, Any]:
    worst = worst_rows(result, most) if result.row_count else []
    failed = sum(n for value, n in result.tallies[FAILURE].counts if value) if FAILURE in result.tallies else 0
    plots = [_plot(name, tally) for name, tally in result.tallies.items() if _is_worth_a_plot(name, tally)]
    reasons = [_reason(result, *group) for group in result.reason_groups]
    parts = [("metrics", "Metrics")]
    parts += [("numbers", "Distributions")] if plots else []
    parts += [("worst", "Rows to look at")] if worst else []
    parts += [("reasons", "Without a score")] if reasons or result.issue_counts else []
    return {
        "name": os.path.basename(result.name) if result.name else "",
        "verdict": f"{plural(result.row_count, 'row')} evaluated",
        "failed": f"{plural(failed, 'row')} failed" if failed else "",
        "latency": _latency(result),
        "parts": parts,
        "lines": [_line(line) for line in result.lines],
        "plots": plots,
        "worst": [_worst(w, i == 0) for i, w in enumerate(worst)],
        "legend": [MARKS[m] for m in (MATCHED, MOVED, EXTRA, MISSING)],
        "reasons": reasons,
        "issues": [(code, RULES[code].name, n) for code, n in result.issue_counts.items()],
        "findings": [(i.row, i.path, i.message) for i in result.issues.head(20).itertuples()],
        "options": ", ".join(f"{name}={value}" for name, value in result.options.items()),
        "version": __version__,
    }


def _reason(result: EvalResult, reason: str, rows: int, metrics: list[str]) -> tuple[str, int, str]:
    return reason, rows, "every metric" if len(metrics) == len(result.metrics) else ", ".join(metrics)


def _latency(result: EvalResult) -> str:
    if LATENCY not in result.tallies or not result.tallies[LATENCY].scored:
        return ""
    return ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in result.percentiles().items())


def _line(line: Scored) -> dict[str, Any]:
    share = percent(line.mean, 1) if line.scored and 0 <= line.mean <= 1 and line.metric != LATENCY else None
    show = shown_as(line.metric)
    return {
        "metric": line.metric,
        "mean": show(line.mean),
        "std": show(line.std),
        "share": share,
        "bad": line.metric == FAILURE,
        "scored": line.scored,
        "rows": line.rows,
    }


def _is_worth_a_plot(name: str, tally: Tally) -> bool:
    """Of scores that are 0 or 1 the mean says all."""
    return name != FAILURE and any(value not in (0, 1) for value, _ in tally.counts)


def _plot(name: str, tally: Tally) -> dict[str, Any]:
    if name == LATENCY:
        return plot(name, "", tally.distribution, show=seconds_text, quantile=tally.percentile)
    return plot(name, "score", tally.distribution, tally.tenths if tally.is_share else None, quantile=tally.percentile)


def _worst(worst: Worst, open: bool) -> dict[str, Any]:
    cells = dict(worst.cells)
    told = cells.get("error") if worst.failed else cells.get("prompt") or cells.get("request") or ""
    return {
        "row": worst.row,
        "open": open,
        "failed": worst.failed,
        "told": _cut(told or "", LONGEST_TITLE),
        "scores": [(name, number(score)) for name, score in worst.scores if score is not None and score != 1],
        "cells": [(name, _cut(text)) for name, text in worst.cells],
        "lines": [_sides(line) for line in worst.lines] if worst.lines is not None else None,
    }


def _sides(line: Line) -> list[dict[str, Any] | None]:
    return [None if side is None else _side(side) for side in (line.predicted, line.reference)]


def _side(side: Side) -> dict[str, Any]:
    sign, words, mood = MARKS[side.mark]
    return {"sign": sign, "words": words, "mood": mood, "tool": side.tool, "input": _cut(side.input)}


def _cut(text: str, longest: int = LONGEST_CELL) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
