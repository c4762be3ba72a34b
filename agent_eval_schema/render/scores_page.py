"""The scores of an evaluation with MLflow as HTML and as JSON; computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from msgspec import Struct

from agent_eval_schema.metrics.alignment import CallPair
from agent_eval_schema.render.document import json_text, plain_values, versioned
from agent_eval_schema.render.numbers import MISSING, number
from agent_eval_schema.render.page import heat, inline, page
from agent_eval_schema.render.phrases import NextCommand, plural
from agent_eval_schema.render.result.calls import CALL_LEGEND, LONGEST_TITLE, call_lines, cut
from agent_eval_schema.render.scores import shown_score

ROWS_INLINE = 5
"""Rows that a notebook shows; the frames and the JSON have them all."""


class ScoredRow(Struct, frozen=True):
    """A row that is drawn: the label of the row, what the user asked last, the score or the reason of each scorer, the
    cells that it is known by, its trajectories side by side (None: it does not have both)."""

    row: str
    failed: bool
    request_id: str | None
    asked: str
    scores: list[Any]
    reasons: list[Any]
    cells: list[tuple[str, str]]
    lines: list[CallPair] | None


class ScoresSummary(Struct, frozen=True):
    """What is drawn: `scores` and `reasons` by row and scorer (and request_id), `metrics` by name, `scored`: the number
    of scored rows by scorer, `without_judge`: the skipped scorers with the rows that each could score; `drawn`: the
    rows of a page, those first that are to be examined first."""

    scores: pd.DataFrame
    reasons: pd.DataFrame
    metrics: Mapping[str, float]
    scored: Mapping[str, int]
    headline: str
    following: Sequence[NextCommand]
    run_id: str
    without_judge: Mapping[str, int]
    drawn: Sequence[ScoredRow] = ()


def scores_page(summary: ScoresSummary) -> str:
    """The scores as a standalone HTML page."""
    title = f"{plural(len(summary.scores), 'row')}, {plural(len(summary.scored), 'scorer')}"
    return page(title, "scores.html", "result.css", script=bool(summary.drawn), **_drawn(summary))


def scores_inline(summary: ScoresSummary) -> str:
    """The scores for the output cell of a notebook."""
    return inline("scores.html", "result.css", **_drawn(summary))


def scores_json(summary: ScoresSummary) -> str:
    """The scores and reasons of all rows, for other programs. NaN is null."""
    rows = [
        {"row": index, "request_id": id, "scores": dict(scores), "reasons": dict(reasons)}
        for index, id, scores, reasons in _rows(summary)
    ]
    document = {
        "run_id": summary.run_id,
        "headline": summary.headline or None,
        "metrics": summary.metrics,
        "scored": summary.scored,
        "without_judge": summary.without_judge,
        "rows": rows,
    }
    return json_text(plain_values(versioned(document)))


def _rows(summary: ScoresSummary) -> Iterator[tuple[Any, Any, list[tuple[str, Any]], list[tuple[str, Any]]]]:
    """Of each row its label, its ID, its scores and its reasons by scorer."""
    ids = summary.scores.get("request_id", pd.Series([None] * len(summary.scores)))
    names = list(summary.scored)
    columns = zip(
        summary.scores.index,
        ids,
        summary.scores[names].itertuples(index=False, name=None),
        summary.reasons[names].itertuples(index=False, name=None),
        strict=True,
    )
    for index, id, scores, reasons in columns:
        yield index, id, list(zip(names, scores, strict=True)), list(zip(names, reasons, strict=True))


def _drawn(summary: ScoresSummary) -> dict[str, Any]:
    rows, names = len(summary.scores), list(summary.scored)
    of_scorers = {m: m.rpartition("/")[2] for m in summary.metrics if m.rpartition("/")[0] in summary.scored}
    aggregates = list(dict.fromkeys(of_scorers.values()))
    return {
        "verdict": f"{plural(rows, 'row')} evaluated",
        "headline": summary.headline,
        "following": summary.following,
        "run_id": summary.run_id,
        "parts": [("scorers", "Scorers"), ("rows", "Rows")],
        "aggregates": aggregates,
        "scorers": [
            (name, count, [_number(summary.metrics, f"{name}/{kind}") for kind in aggregates])
            for name, count in summary.scored.items()
        ],
        "metrics": [(name, number(value)) for name, value in summary.metrics.items() if name not in of_scorers],
        "without_judge": list(summary.without_judge.items()),
        "legend": CALL_LEGEND if any(row.lines for row in summary.drawn) else [],
        "columns": ["row", *names],
        "rows": [_row(row, names) for row in summary.drawn],
        "total": rows,
    }


def _number(metrics: Mapping[str, float], name: str) -> str:
    return number(metrics[name]) if name in metrics else MISSING


def _row(row: ScoredRow, names: list[str]) -> dict[str, Any]:
    cells = dict(row.cells)
    told = cells.get("error") if row.failed else None
    return {
        "row": row.row,
        "open": False,
        "failed": row.failed,
        "id": row.request_id or "",
        "told": cut(told or row.asked, LONGEST_TITLE) or f"Row {row.row}",
        "cells": [_cell(score) for score in row.scores],
        "values": [(name, cut(text)) for name, text in row.cells],
        "scores": [
            (name, shown_score(score), reason or "")
            for name, score, reason in zip(names, row.scores, row.reasons, strict=True)
        ],
        "lines": call_lines(row.lines),
    }


def _cell(score: Any) -> dict[str, str]:
    if score is None:
        return {"text": MISSING, "mood": "muted"}
    is_share = isinstance(score, float | int) and 0 <= score <= 1
    return {"text": cut(shown_score(score), LONGEST_SCORE), "mood": heat(1 - score) if is_share else ""}


LONGEST_SCORE = 24
"""Characters of a score in the table; all of it is shown with the row."""
