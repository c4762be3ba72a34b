"""A result as HTML, in the shells of page.py. Computes nothing."""

from __future__ import annotations

import os
from typing import Any

from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.render.console import plural
from agent_eval_schema.render.page import inline, page, percent, plot
from agent_eval_schema.render.result.summary import (
    EXTRA,
    MATCHED,
    MISSING,
    MOVED,
    CallPair,
    ResultSummary,
    Scored,
    ScorePlot,
    ShownCall,
    Worst,
)
from agent_eval_schema.render.result.text import number, seconds_text, shown_as
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.version import __version__

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


def result_page(result: ResultSummary) -> str:
    """The result as a standalone HTML page."""
    return page(_title(result), "result.html", "result.css", **_drawn(result))


def result_inline(result: ResultSummary) -> str:
    """The result for the output cell of a notebook."""
    return inline("result.html", "result.css", **_drawn(result))


def _title(result: ResultSummary) -> str:
    where = os.path.basename(result.name) if result.name else "evaluation"
    return f"{where}: {plural(result.row_count, 'row')}, {plural(len(result.metrics), 'metric')}"


def _drawn(result: ResultSummary) -> dict[str, Any]:
    reasons = [_reason(result, *group) for group in result.reason_groups]
    parts = [("metrics", "Metrics")]
    parts += [("numbers", "Distributions")] if result.plots else []
    parts += [("worst", "Rows to look at")] if result.worst else []
    parts += [("reasons", "Without a score")] if reasons or result.issue_counts else []
    return {
        "name": os.path.basename(result.name) if result.name else "",
        "verdict": f"{plural(result.row_count, 'row')} evaluated",
        "failed": f"{plural(result.failed, 'row')} failed" if result.failed else "",
        "latency": ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in result.latency.items()),
        "parts": parts,
        "lines": [_line(line) for line in result.lines],
        "plots": list(map(_plot, result.plots)),
        "worst": [_worst(w, i == 0) for i, w in enumerate(result.worst)],
        "legend": [MARKS[m] for m in (MATCHED, MOVED, EXTRA, MISSING)],
        "reasons": reasons,
        "issues": [(code, RULES[code].name, n) for code, n in result.issue_counts.items()],
        "findings": result.findings,
        "options": ", ".join(f"{name}={value}" for name, value in result.options.items()),
        "version": __version__,
    }


def _reason(result: ResultSummary, reason: str, rows: int, metrics: list[str]) -> tuple[str, int, str]:
    return reason, rows, "every metric" if len(metrics) == len(result.metrics) else ", ".join(metrics)


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


def _plot(scores: ScorePlot) -> dict[str, Any]:
    unit, show = ("", seconds_text) if scores.metric == LATENCY else ("score", None)
    return plot(scores.metric, unit, scores.distribution, scores.bars, show, scores.quantiles.__getitem__)


def _worst(worst: Worst, open: bool) -> dict[str, Any]:
    cells = dict(worst.cells)
    title = cells.get("error") if worst.failed else cells.get("prompt") or cells.get("request") or ""
    return {
        "row": worst.row,
        "open": open,
        "failed": worst.failed,
        "told": _cut(title or "", LONGEST_TITLE),
        "scores": [(name, number(score)) for name, score in worst.scores if score is not None and score != 1],
        "cells": [(name, _cut(text)) for name, text in worst.cells],
        "lines": [_sides(line) for line in worst.lines] if worst.lines is not None else None,
    }


def _sides(line: CallPair) -> list[dict[str, Any] | None]:
    return [None if side is None else _side(side) for side in (line.predicted, line.reference)]


def _side(side: ShownCall) -> dict[str, Any]:
    sign, words, mood = MARKS[side.mark]
    return {"sign": sign, "words": words, "mood": mood, "tool": side.tool, "input": _cut(side.input)}


def _cut(text: str, longest: int = LONGEST_CELL) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
