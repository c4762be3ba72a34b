"""The scores of an evaluation with MLflow as HTML and as JSON; computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from msgspec import Struct

from agent_eval_schema.render.console import plural
from agent_eval_schema.render.document import json_text, plain_values
from agent_eval_schema.render.numbers import number
from agent_eval_schema.render.page import inline, page, percent
from agent_eval_schema.render.scores import shown_score
from agent_eval_schema.runtime.version import __version__

SCHEMA_VERSION = 1

ROWS_ON_A_PAGE, ROWS_INLINE = 500, 20
"""Rows that are drawn; the frames and the JSON have them all."""


class ScoresSummary(Struct, frozen=True):
    """What is drawn: `scores` and `reasons` by row and scorer (and request_id), `metrics` by name, `scored`: the number
    of scored rows by scorer, `without_judge`: the skipped scorers with the rows that each could score."""

    scores: pd.DataFrame
    reasons: pd.DataFrame
    metrics: Mapping[str, float]
    scored: Mapping[str, int]
    headline: str
    run_id: str
    without_judge: Mapping[str, int]


def scores_page(summary: ScoresSummary) -> str:
    """The scores as a standalone HTML page."""
    title = f"{plural(len(summary.scores), 'row')}, {plural(len(summary.scored), 'scorer')}"
    return page(title, "scores.html", "result.css", **_drawn(summary, ROWS_ON_A_PAGE))


def scores_inline(summary: ScoresSummary) -> str:
    """The scores for the output cell of a notebook."""
    return inline("scores.html", "result.css", **_drawn(summary, ROWS_INLINE))


def scores_json(summary: ScoresSummary) -> str:
    """The scores and reasons of all rows, for other programs. NaN is null."""
    rows = [
        {"row": index, "request_id": id, "scores": dict(scores), "reasons": dict(reasons)}
        for index, id, scores, reasons in _rows(summary)
    ]
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "agent-eval-schema", "version": __version__},
        "run_id": summary.run_id,
        "headline": summary.headline or None,
        "metrics": summary.metrics,
        "scored": summary.scored,
        "without_judge": summary.without_judge,
        "rows": rows,
    }
    return json_text(plain_values(document))


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


def _drawn(summary: ScoresSummary, most: int) -> dict[str, Any]:
    rows = len(summary.scores)
    return {
        "verdict": f"{plural(rows, 'row')} evaluated",
        "headline": summary.headline,
        "run_id": summary.run_id,
        "parts": [("scorers", "Scorers"), ("rows", "Rows")],
        "scorers": [
            {"name": name, "scored": count, "rows": rows, "share": percent(count, rows) if rows else 0.0}
            for name, count in summary.scored.items()
        ],
        "metrics": [(name, number(value)) for name, value in summary.metrics.items()],
        "without_judge": list(summary.without_judge.items()),
        "rows": [
            {
                "row": index,
                "request_id": "" if id is None else id,
                "scored": sum(score is not None for _, score in scores),
                "cells": [
                    {"name": name, "score": shown_score(score), "reason": reason or ""}
                    for (name, score), (_, reason) in zip(scores, reasons, strict=True)
                ],
            }
            for (index, id, scores, reasons), _ in zip(_rows(summary), range(most), strict=False)
        ],
        "more": max(rows - most, 0),
        "version": __version__,
    }
