"""The scores of earlier evaluations, by which spread and correlation are measured rather than assumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct

from agent_eval_schema.cells.hashing import Array, hash_texts
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.places import ending_of
from agent_eval_schema.io.texts import read_bytes
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics.catalog import METRICS, Metric
from agent_eval_schema.metrics.standard_errors import numbers_of
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.text.choices import shown

SUFFIXES = ("/score", "/value")
"""How columns of scores end, in the tables of this package; those of Databricks are named like the metric."""


class PastScores(Struct, frozen=True):
    """The scores of one result by column, and the row of the dataset to which each belongs (None: unknown)."""

    scores: Mapping[str, Array]
    rows: Array | None

    def of(self, metric: Metric) -> Array | None:
        """The scores of a metric of the catalog, NaN where there is none."""
        for name, values in self.scores.items():
            if name == metric.name or name in metric.name.split("/"):
                return values
        return None


def read_past(past: Any, facts: Facts) -> list[PastScores]:
    """The scores of results: of an evaluation, a DataFrame, or a file that an evaluation wrote."""
    given = [] if past is None else list(past) if isinstance(past, Sequence) and not isinstance(past, str) else [past]
    return [_scores(_table(result), facts) for result in given]


def _table(result: Any) -> pd.DataFrame:
    for name in ("metrics_table", "table"):
        if isinstance(table := getattr(result, name, None), pd.DataFrame):
            return table
    if isinstance(result, pd.DataFrame):
        return result
    if isinstance(result, str | os.PathLike):
        if (saved := _saved(result)) is not None:
            return saved
        return frame_of(open_source(result, "past").batches())
    raise EvalSetError(f"past: expected a result of an evaluation, a DataFrame or the path of one; got {shown(result)}")


def _saved(path: str | os.PathLike[str]) -> pd.DataFrame | None:
    """The rows in the JSON report of a result; None if the file is none."""
    try:
        name = os.fspath(path)
        text = read_bytes(name) if ending_of(name) == ".json" else b""
        report = json.loads(text) if text[:1] == b"{" else None
    except (EvalSetError, ValueError):  # also of several lines
        return None
    if not isinstance(report, dict) or "scored" not in report or not isinstance(report.get("rows"), list):
        return None
    return pd.DataFrame([_flat(row) for row in report["rows"]])


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a report, each score in a column of its own."""
    scores = row.get("scores")
    return {**row, **{f"{name}/value": score for name, score in scores.items()}} if isinstance(scores, dict) else row


def _scores(table: pd.DataFrame, facts: Facts) -> PastScores:
    found = dict(_columns(table))
    if not found:
        raise EvalSetError("past: expected a table with columns of scores, such as document_recall/value; got none")
    return PastScores(found, _rows(table, facts))


def _columns(table: pd.DataFrame) -> Iterator[tuple[str, Array]]:
    named = {m.name for m in METRICS}
    for column in map(str, table.columns):
        name = next((column.removesuffix(s) for s in SUFFIXES if column.endswith(s)), column)
        if name != column or name in named:
            values = numbers_of(table[column].tolist())
            if not np.isnan(values).all():
                yield name, values


def _rows(table: pd.DataFrame, facts: Facts) -> Array | None:
    """The row of the dataset of each row of a table: by request_id, else by position if there are as many."""
    ids = facts.array("id")
    if "request_id" in table.columns and ids.any():
        hashes, _ = hash_texts([v if isinstance(v, str) else None for v in table["request_id"].tolist()])
        order = np.argsort(ids, kind="stable")
        at = np.minimum(np.searchsorted(ids[order], hashes), len(order) - 1)
        return np.where(ids[order][at] == hashes, order[at], -1)
    return np.arange(len(table)) if len(table) == facts.row_count else None
