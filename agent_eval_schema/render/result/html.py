"""A result as HTML, in the shells of page.py. Computes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.render.console import plural
from agent_eval_schema.render.numbers import number
from agent_eval_schema.render.numbers import seconds as seconds_text
from agent_eval_schema.render.numbers import share as share_text
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
from agent_eval_schema.render.result.text import written
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.version import __version__

UNREADABLE = "cannot be read"
"""How the reason ends if a cell is to blame, not the lack of one."""

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
"""What is shown of a call, and said of it: a sign, words, the color."""


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
    means, stds = written(result.lines, lambda line: line.mean), written(result.lines, lambda line: line.std)
    reasons = [_reason(result, *group) for group in result.reason_groups]
    parts = [("metrics", "Metrics")]
    parts += [("numbers", "Distributions")] if result.plots else []
    parts += [("worst", "Lowest-scoring rows")] if result.worst else []
    parts += [("reasons", "Unscored rows")] if reasons or result.issue_counts else []
    return {
        "name": os.path.basename(result.name) if result.name else "",
        "verdict": _verdict(result),
        "mood": "warning" if result.headline else None,
        "latency": ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in result.latency.items()),
        "parts": parts,
        "lines": [_line(*line) for line in zip(result.lines, means, stds, strict=True)],
        "plots": list(map(_plot, result.plots)),
        "worst": [_worst(w, i == 0) for i, w in enumerate(result.worst)],
        "legend": [MARKS[m] for m in (MATCHED, MOVED, EXTRA, MISSING)],
        "reasons": reasons,
        "issues": [(code, RULES[code].name, n) for code, n in result.issue_counts.items()],
        "findings": result.findings,
        "options": ", ".join(f"{name}={value}" for name, value in result.options.items()),
        "version": __version__,
    }


def _verdict(result: ResultSummary) -> str:
    """What the means cover comes first: `1 of 4 rows scored; 3 unreadable`."""
    if not result.headline:
        return f"{plural(result.row_count, 'row')} evaluated"
    return "; ".join(["⚠ " + result.headline, *_causes(result)])


def _causes(result: ResultSummary) -> Iterator[str]:
    """The reasons for which rows have no score of any metric, grouped."""
    unreadable = [rows for reason, rows, metrics in result.reason_groups if _is_unreadable(reason, metrics, result)]
    if unreadable:
        yield f"{sum(unreadable):,} unreadable"


def _is_unreadable(reason: str, metrics: list[str], result: ResultSummary) -> bool:
    return reason.endswith(UNREADABLE) and len(metrics) == len(result.metrics)


def _reason(result: ResultSummary, reason: str, rows: int, metrics: list[str]) -> tuple[str, int, str]:
    return reason, rows, "every metric" if len(metrics) == len(result.metrics) else ", ".join(metrics)


def _line(line: Scored, mean: str, std: str) -> dict[str, Any]:
    share = percent(line.mean, 1) if line.scored and 0 <= line.mean <= 1 and line.metric != LATENCY else None
    return {
        "metric": line.metric,
        "mean": mean,
        "std": std,
        "share": share,
        "bad": line.metric == FAILURE,
        "scored": line.scored,
        "rows": line.rows,
        "coverage": share_text(line.scored, line.rows),
        "covered": line.scored == line.rows,
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
