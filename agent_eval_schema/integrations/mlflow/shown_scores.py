"""The rows of an evaluation as a page shows them: those first that are to be examined first, with their cells."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from agent_eval_schema.decoding.requests import asked_in
from agent_eval_schema.integrations.mlflow.records import ROW_TAG
from agent_eval_schema.integrations.mlflow.scores_by_row import REQUEST_ID
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.alignment import CallPair, aligned
from agent_eval_schema.metrics.standard_errors import WORDS
from agent_eval_schema.render.scores_page import ScoredRow
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.validation.report import Report

SHOWN = ("request", "response", "expected_response", "expected_facts", "guidelines", "expectations", "error")
"""The cells of a row that are shown with it, those that it has."""


def scored_rows(
    scores: pd.DataFrame, reasons: pd.DataFrame, failed: Collection[int], report: Report, result: Any, most: int
) -> list[ScoredRow]:
    """At most `most` rows: those that failed, then those with the lowest mean of the scores from 0 to 1, those without
    one, and last those with the full score. Where the report hides values, they have no cells."""
    names = [name for name in scores.columns if name != REQUEST_ID]
    values = list(scores[names].itertuples(index=False, name=None))
    whys = list(reasons[names].itertuples(index=False, name=None))
    ranks = [-1.0 if row in failed else _rank(found) for row, found in enumerate(values)]
    chosen = np.argsort(ranks, kind="stable")[:most].tolist()
    ids = scores[REQUEST_ID].tolist() if REQUEST_ID in scores else [None] * len(scores)
    cells = _cells_of(report, set(chosen)) if report.show_values else {}
    answers = _answers(result) if cells and report.outputs == "generated" else {}
    return [
        ScoredRow(
            row=str(scores.index[row]),
            failed=row in failed,
            request_id=ids[row],
            asked=asked_in(cells.get(row, {}).get("request")) or "",
            scores=list(values[row]),
            reasons=list(whys[row]),
            cells=_shown({**cells.get(row, {}), **({"response": answers[row]} if row in answers else {})}),
            lines=_lines(cells.get(row, {})),
        )
        for row in chosen
    ]


def _rank(scores: Sequence[Any]) -> float:
    points = [point for score in scores for point in _points(score)]
    mean = sum(points) / len(points) if points else math.nan
    return 1.5 if math.isnan(mean) else mean if mean < 1 else 2.0


def _points(score: Any) -> Iterator[float]:
    """A score from 0 to 1, or several; a judge's answer is 1 or 0."""
    if isinstance(score, list):
        for one in score:
            yield from _points(one)
    elif isinstance(score, str):
        yield from [WORDS[score.lower()]] if score.lower() in WORDS else []
    elif isinstance(score, bool | int | float) and 0 <= score <= 1:
        yield float(score)


def _cells_of(report: Report, rows: Collection[int]) -> dict[int, dict[str, Any]]:
    """The normalized cells of these rows; the data is read no further than to the last of them."""
    read = enumerate(islice(report.iter_rows(), max(rows, default=-1) + 1))
    return {row: cells for row, cells in read if row in rows}


def _answers(result: Any) -> dict[int, Any]:
    """What `predict_fn` returned, by row."""
    lines = getattr(result, "result_df", None)
    if lines is None or not {"tags", "response"} <= set(lines.columns):
        return {}
    found = {}
    for tags, response in zip(lines["tags"], lines["response"], strict=True):
        row = (tags or {}).get(ROW_TAG)
        if row is not None and not is_absent(response):
            found[int(row)] = response
    return found


def _shown(cells: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, _text(cells[name])) for name in SHOWN if name in cells and not is_absent(cells[name])]


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else msgspec.json.encode(cell, enc_hook=str).decode("utf-8", "replace")


def _lines(cells: dict[str, Any]) -> list[CallPair] | None:
    predicted, reference = cells.get("predicted_trajectory"), cells.get("reference_trajectory")
    if predicted is None or reference is None:
        return None
    return aligned(msgspec.convert(list(predicted), list[ToolCall]), msgspec.convert(list(reference), list[ToolCall]))
