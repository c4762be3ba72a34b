"""The rows of a result, those first that are to be examined first: those that failed, then the lowest scores."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from agent_eval_schema.decoding.requests import last_question
from agent_eval_schema.evaluation.outputs import read_calls
from agent_eval_schema.evaluation.result_blocks import Worst
from agent_eval_schema.evaluation.score_stats import ScoreStats
from agent_eval_schema.evaluation.table import score_column
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.alignment import aligned
from agent_eval_schema.metrics.batch.columns import PREDICTED, REFERENCE
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.trajectory import Match
from agent_eval_schema.schema import ToolCall

SHOWN_BESIDE = (
    *("request_id", "prompt", "request", "inputs", "response", "outputs"),
    *("reference", "expected_response", "expected_facts", "expectations", "error"),
)
"""The cells of a row that are shown with it, those that it has; after them what metrics explain."""


def worst_rows(
    parts: Iterable[pd.DataFrame], stats: Mapping[str, ScoreStats], most: int, match: Match = "call"
) -> list[Worst]:
    """At most `most` rows of a table: those that failed, then those with the lowest mean of the scores from 0 to 1,
    those without a score, and last those with the full score."""
    metrics = [name for name in stats if name != FAILURE]
    unit = [name for name in metrics if name != LATENCY and stats[name].is_share]
    ranked = heapq.nsmallest(most, _ranked(parts, unit, FAILURE in stats, most), key=lambda found: found[:2])
    return [_worst(metrics, row, cells, match) for _, row, cells in ranked]


def _ranked(
    parts: Iterable[pd.DataFrame], unit: list[str], ran: bool, most: int
) -> Iterator[tuple[float, int, dict[str, Any]]]:
    """(rank, row, cells) of the lowest rows of each part: the mean score, -1 of a row that failed, 2 of a full score,
    and between the two 1.5 of a row without a score."""
    start = 0
    for part in parts:
        means = part[[score_column(name) for name in unit]].mean(axis=1) if unit else pd.Series(math.nan, part.index)
        if ran:
            means = means.mask(part[FAILURE] == 1, -1.0)
        scores = means.to_numpy(np.float64)
        ranks = np.where(scores < 1, scores, np.where(np.isnan(scores), 1.5, 2.0))
        for place in np.argsort(ranks, kind="stable")[:most].tolist():
            cells = {str(c): part.iat[place, i] for i, c in enumerate(part.columns)}
            yield ranks[place].item(), start + place, cells
        start += len(part)


def _worst(metrics: list[str], row: int, cells: dict[str, Any], match: Match) -> Worst:
    scores = [(n, _number(cells[score_column(n)])) for n in metrics]
    explained = [n for n in cells if n.rpartition("/")[0] in metrics and n != score_column(n.rpartition("/")[0])]
    shown = [(n, _text(cells[n])) for n in (*SHOWN_BESIDE, *explained) if n in cells and not is_absent(cells[n])]
    calls = [_calls(cells.get(name)) for name in (PREDICTED, REFERENCE)]
    lines = None if calls[0] is None or calls[1] is None else aligned(calls[0], calls[1], match)
    return Worst(row, cells.get(FAILURE) == 1, scores, _asked(cells), shown, lines)


def _asked(cells: dict[str, Any]) -> str:
    """What the user asked last, or what was asked as it stands."""
    for name in ("prompt", "request", "inputs"):
        if not is_absent(cells.get(name)):
            return last_question(cells[name]) or _text(cells[name])
    return ""


def _number(score: Any) -> float | None:
    return None if is_absent(score) else float(score)


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else msgspec.json.encode(cell, enc_hook=str).decode("utf-8", "replace")


def _calls(cell: Any) -> list[ToolCall] | None:
    calls, _ = (None, None) if is_absent(cell) else read_calls(cell)
    return None if calls is None else msgspec.convert(calls, list[ToolCall])
