"""The scores of an evaluation with MLflow as blocks: a line per row, a column per scorer; on a page those rows first
that are to be examined first, with their cells. And as JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from agent_eval_schema.decoding.requests import last_question
from agent_eval_schema.evaluation.table import REQUEST_ID
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.alignment import CallPair, aligned
from agent_eval_schema.metrics.standard_errors import WORDS
from agent_eval_schema.render.blocks import (
    LONGEST_CELL,
    LONGEST_TITLE,
    Block,
    Cell,
    Column,
    Document,
    Grid,
    Line,
    Meter,
    Only,
    OpenRow,
    OpenRows,
    Part,
    Section,
    Table,
    Words,
)
from agent_eval_schema.render.document import json_text, plain_values, versioned
from agent_eval_schema.render.numbers import MISSING, number
from agent_eval_schema.render.page import heat, percent
from agent_eval_schema.render.phrases import NextCommand, plural
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.text.describe import cut
from agent_eval_schema.validation.report import Report

ROWS_IN_TEXT = 50
"""Rows that a text shows; the frames have them all."""

WIDEST = 160
"""Characters of a line of the text at most, however wide the terminal is."""

LONGEST_SCORE = 24
"""Characters of a score in the table; all of it is shown with the row."""

CELLS_SHOWN = ("request", "response", "expected_response", "expected_facts", "guidelines", "expectations", "error")
"""The cells of a row that are shown with it, those that it has."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


def scores_document(
    scores: pd.DataFrame,
    reasons: pd.DataFrame,
    *,
    headline: str = "",
    following: Sequence[NextCommand] = (),
    metrics: Mapping[str, float] = NOTHING,
    scored: Mapping[str, int] = NOTHING,
    without_judge: Mapping[str, int] = NOTHING,
    run_id: str = "",
    rows: Sequence[OpenRow] = (),
) -> Document:
    """`scores` and `reasons` by row and scorer (and request_id), `metrics` by name, `scored`: the number of scored rows
    by scorer, `without_judge`: the skipped scorers with the rows that each could score, `rows`: those of a page."""
    opened = [Section("rows", "Rows", [OpenRows(list(scored), rows, len(scores))])] if rows else []
    return Document(
        title=f"{plural(len(scores), 'row')}, {plural(len(scored), 'scorer')}",
        verdict=headline or f"{plural(len(scores), 'row')} evaluated",
        mood="warning" if headline else "good",
        notes=[Only("html", [Line(("MLflow run ", Part(run_id, "code")), "muted")])],
        following=following,
        blocks=[
            Only("text", list(_grid(scores, reasons, without_judge))),
            Only("html", [_scorers(len(scores), metrics, scored, without_judge), *opened]),
        ],
        widest=WIDEST,
    )


def scores_json(
    scores: pd.DataFrame,
    reasons: pd.DataFrame,
    *,
    headline: str,
    metrics: Mapping[str, float],
    scored: Mapping[str, int],
    without_judge: Mapping[str, int],
    run_id: str,
) -> str:
    """The scores and reasons of all rows, for other programs. NaN is null."""
    names = list(scored)
    ids = scores[REQUEST_ID] if REQUEST_ID in scores else [None] * len(scores)
    values, whys = (frame[names].itertuples(index=False, name=None) for frame in (scores, reasons))
    rows = [
        {
            "row": index,
            "request_id": request_id,
            "scores": dict(zip(names, found, strict=True)),
            "reasons": dict(zip(names, why, strict=True)),
        }
        for index, request_id, found, why in zip(scores.index, ids, values, whys, strict=True)
    ]
    document = {
        "run_id": run_id,
        "headline": headline or None,
        "metrics": metrics,
        "scored": scored,
        "without_judge": without_judge,
        "rows": rows,
    }
    return json_text(plain_values(versioned(document)))


# ---------------------------------------------------------------------------------------------------------------------
# all rows as text, the scorers on a page
def _grid(scores: pd.DataFrame, reasons: pd.DataFrame, without_judge: Mapping[str, int]) -> Iterator[Block]:
    """The table, its letters with their reasons, and the scorers that have no judge."""
    letters: dict[str, str] = {}
    columns = []
    for name in scores.columns:
        found, why = scores[name].tolist()[:ROWS_IN_TEXT], reasons[name].tolist()[:ROWS_IN_TEXT]
        is_id = name == REQUEST_ID
        cells = [
            str(score or "") if is_id else _score(score) or letters.setdefault(str(reason), _letter(len(letters)))
            for score, reason in zip(found, why, strict=True)
        ]
        columns.append((name, cells))
    yield Grid(list(map(str, scores.index[:ROWS_IN_TEXT])), columns)
    if len(scores) > ROWS_IN_TEXT:
        yield Line(f"… and {len(scores) - ROWS_IN_TEXT:,} more rows")
    for reason, letter in letters.items():
        yield Line(f"{letter}  {reason}")
    if without_judge:
        skipped = ", ".join(f"{name} {rows:,}" for name, rows in without_judge.items())
        yield Line(f"Skipped without a judge (model=), with the rows that each could score: {skipped}")


def _score(score: Any) -> str:
    """A score, or several of one row; nothing for None."""
    if isinstance(score, list):
        return ", ".join(map(_score, score))
    return "" if score is None else number(score) if isinstance(score, float) else str(score)


def _letter(place: int) -> str:
    """(a), (b) … (z), (aa) …"""
    name = ""
    place += 1
    while place:
        place, digit = divmod(place - 1, 26)
        name = ascii_lowercase[digit] + name
    return f"({name})"


def _scorers(
    rows: int, metrics: Mapping[str, float], scored: Mapping[str, int], without_judge: Mapping[str, int]
) -> Section:
    """The number of scored rows and the aggregated metrics of each scorer, then the metrics that are of none."""
    of_scorers = {m: m.rpartition("/")[2] for m in metrics if m.rpartition("/")[0] in scored}
    aggregates = list(dict.fromkeys(of_scorers.values()))
    lines: list[list[Words | Cell]] = []
    for name, count in scored.items():
        meter = Meter(percent(count, rows), f"{name}: {count}", "" if count == rows else "hatched")
        numbers = [number(metrics[m]) if (m := f"{name}/{kind}") in metrics else MISSING for kind in aggregates]
        lines.append([Part(name, "name"), Cell(picture=meter), f"{count:,} of {rows:,}", *numbers])
    names: list[str | Column] = ["Scorer", "%Rows scored", "#", *(Column(kind, is_number=True) for kind in aggregates)]
    others = [(name, number(value)) for name, value in metrics.items() if name not in of_scorers]
    skipped = ", ".join(f"{name} {count:,}" for name, count in without_judge.items())
    explained = f"Skipped because no judge model was given, with the rows that each could score: {skipped}."
    blocks: list[Block] = [
        Table(names, lines, title="Scorers", kind="metrics scores"),
        *([Table(["Metric", "#value"], others, kind="metrics")] if others else []),
        *([Line(explained, "muted")] if without_judge else []),
    ]
    return Section("scorers", "Scorers", blocks)


# ---------------------------------------------------------------------------------------------------------------------
# the rows of a page
def scored_rows(
    scores: pd.DataFrame,
    reasons: pd.DataFrame,
    failed: Collection[int],
    report: Report,
    answers: Mapping[int, Any],
    most: int,
) -> list[OpenRow]:
    """At most `most` rows: those that failed, then those with the lowest mean of the scores from 0 to 1, those without
    one, and last those with the full score. Where the report hides values, they have no cells. `answers` are the
    responses of an agent that was run, by row."""
    names = [name for name in scores.columns if name != REQUEST_ID]
    values = list(scores[names].itertuples(index=False, name=None))
    whys = list(reasons[names].itertuples(index=False, name=None))
    ranks = [-1.0 if row in failed else _rank(found) for row, found in enumerate(values)]
    chosen = np.argsort(ranks, kind="stable")[:most].tolist()
    ids = scores[REQUEST_ID].tolist() if REQUEST_ID in scores else [None] * len(scores)
    cells = _cells_of(report, set(chosen)) if report.summary.values else {}
    answers = answers if cells and report.outputs == "generated" else {}
    rows = []
    for row in chosen:
        own = {**cells.get(row, {}), **({"response": answers[row]} if row in answers else {})}
        shown = [(name, _text(own[name])) for name in CELLS_SHOWN if name in own and not is_absent(own[name])]
        error = dict(shown).get("error") if row in failed else None
        label = str(scores.index[row])
        rows.append(
            OpenRow(
                row=label,
                title=cut(error or last_question(own.get("request")) or "", LONGEST_TITLE) or f"Row {label}",
                scores=list(map(_cell, values[row])),
                values=[(name, cut(text, LONGEST_CELL)) for name, text in shown],
                calls=_calls(own),
                table=_reasons(zip(names, values[row], whys[row], strict=True)),
                request_id=ids[row] or "",
                failed=row in failed,
            )
        )
    return rows


def _cell(score: Any) -> Cell:
    if score is None:
        return Cell(MISSING, "muted")
    is_share = isinstance(score, float | int) and 0 <= score <= 1
    return Cell(cut(_score(score), LONGEST_SCORE), heat(1 - score) if is_share else "")


def _reasons(scores: Iterable[tuple[str, Any, Any]]) -> Table:
    rows: list[list[Words | Cell]] = [
        [name, _score(score), Cell(str(why or ""), "muted")] for name, score, why in scores
    ]
    return Table(["Scorer", "Score", "Reason"], rows)


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


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else msgspec.json.encode(cell, enc_hook=str).decode("utf-8", "replace")


def _calls(cells: dict[str, Any]) -> list[CallPair] | None:
    predicted, reference = cells.get("predicted_trajectory"), cells.get("reference_trajectory")
    if predicted is None or reference is None:
        return None
    return aligned(msgspec.convert(list(predicted), list[ToolCall]), msgspec.convert(list(reference), list[ToolCall]))
