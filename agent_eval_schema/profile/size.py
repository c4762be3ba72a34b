"""Per metric: the rows that support it, what they are worth, and which difference between two versions they show.

Standard formulas on the normal distribution, with a two-sided level of 5 % and a power of 80 %:

    half-width of the 95 % interval     z · s / √n                      z = 1.96
    smallest difference, unpaired       (z + 0.84) · s · √(2 / n)
    smallest difference, paired         (z + 0.84) · s · √(2 (1 − r) / n)

s is the standard deviation of the scores (of a rate p: √(p (1 − p))), r the correlation of both versions' scores on the
same rows, n the effective number of rows: distinct questions divided by the design effect of their clusters, Kish's
1 + (m − 1) · ρ with m the mean size of the cluster in which a row is. See Miller, "Adding Error Bars to Evals" (2024).
By the scores of earlier evaluations, spread and correlation are measured rather than assumed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from statistics import NormalDist
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
from agent_eval_schema.metrics.standard_errors import Z_INTERVAL, numbers_of
from agent_eval_schema.metrics.support import supports
from agent_eval_schema.profile.coverage import Repeats
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.profile_blocks import Assumptions, MetricPower
from agent_eval_schema.text.choices import shown

POINTS = (0.05, 0.03, 0.01)
"""The differences for which the rows are given."""

FIGURES = frozenset({"latency", "input_tokens", "output_tokens", "total_tokens"})
"""Fields whose metrics are no scores from 0 to 1."""

LEAST = 2
"""Effective rows below which no interval is given."""


class Sizing:
    """What is the same for all metrics of a dataset."""

    def __init__(self, facts: Facts, repeats: Repeats, past: Sequence[PastScores], assumed: Assumptions) -> None:
        self._facts, self._repeats, self._past, self._assumed = facts, repeats, past, assumed
        self._clusters = facts.clusters()
        self._samples: dict[bytes, tuple[int, int, Array]] = {}

    def power(self, metric: Metric) -> MetricPower:
        rows, distinct, sizes = self._sample(metric)
        scores = next((s[~np.isnan(s)] for p in self._past if (s := p.of(metric)) is not None), None)
        within, correlation = self._correlations(metric)
        effect = design_effect(sizes, within)
        effective = distinct / effect
        unit = "value" if FIGURES.intersection(metric.fields) or metric.name == "ResponseLength" else "points"
        mean, deviation, measured = self._spread(scores, unit)
        note = _note(rows, effective, deviation)
        scale = 1.0 if unit == "points" else abs(mean or 0.0)
        known = None if note else deviation
        return MetricPower(
            metric.system,
            metric.name,
            unit,
            rows,
            distinct,
            effect,
            effective,
            mean if measured or unit == "points" else None,
            deviation,
            measured,
            half_width(known, effective) if known else None,
            smallest_difference(known, effective) if known else None,
            smallest_difference(known, effective, correlation) if known else None,
            tuple(rows_needed(p * scale, deviation, correlation, effect) for p in POINTS)
            if deviation and scale
            else None,
            note,
        )

    def _sample(self, metric: Metric) -> tuple[int, int, Array]:
        """The rows of a metric, how many distinct questions they have, and the sizes of the clusters of these."""
        mask = supports(metric, self._facts.masks, self._facts.valid, self._facts.plan.outputs)
        key = np.packbits(mask).tobytes()
        if key not in self._samples:
            rows = np.flatnonzero(mask)
            _, first = np.unique(self._repeats.near[rows], return_index=True)
            _, sizes = np.unique(self._clusters[rows[first]], return_counts=True)
            self._samples[key] = len(rows), len(first), sizes
        return self._samples[key]

    def _spread(self, scores: Numbers | None, unit: str) -> tuple[float | None, float | None, bool]:
        """Mean and standard deviation of a score, and whether they were measured."""
        if scores is None or len(scores) < 2:
            rate = self._assumed.rate
            return (rate, deviation_of_rate(rate), False) if unit == "points" else (None, None, False)
        if np.isin(scores, (0.0, 1.0)).all():
            # Agresti and Coull: of a rate that was 0 or 1 the variance is not 0
            return float(scores.mean()), deviation_of_rate((float(scores.sum()) + 2) / (len(scores) + 4)), True
        return float(scores.mean()), float(scores.std(ddof=1)), True

    def _correlations(self, metric: Metric) -> tuple[float, float]:
        """Within clusters, and between two versions on the same rows: measured, else as assumed."""
        placed = [(p.rows, s) for p in self._past if p.rows is not None and (s := p.of(metric)) is not None]
        within, between = self._assumed.cluster_correlation, self._assumed.correlation
        if placed:
            rows, scores = placed[0]
            there = (rows >= 0) & ~np.isnan(scores)
            measured = correlation_within(scores[there], self._clusters[rows[there]])
            within = within if measured is None else measured
        if len(placed) > 1:
            one, other = (self._by_row(rows, scores) for rows, scores in placed[:2])
            both = ~(np.isnan(one) | np.isnan(other))
            if both.sum() > 2 and np.ptp(one[both]) and np.ptp(other[both]):
                between = float(np.clip(np.corrcoef(one[both], other[both])[0, 1], 0.0, 0.99))
        return within, between

    def _by_row(self, rows: Array, scores: Numbers) -> Numbers:
        found = np.full(self._facts.row_count, np.nan)
        found[rows[rows >= 0]] = scores[rows >= 0]
        return found


def _note(rows: int, effective: float, deviation: float | None) -> str:
    if not rows:
        return "no row supports it"
    if effective < LEAST:
        return "no interval of one row" if rows == 1 else "no interval: the rows count as fewer than two"
    if deviation is None:
        return "no interval without past results: the spread of the values is unknown"
    return "" if deviation else "no interval: all past scores are the same"


Numbers = np.ndarray[Any, Any]

Z_POWER = NormalDist().inv_cdf(0.8)


def half_width(deviation: float, rows: float) -> float:
    """Half the width of the 95 % interval of a mean."""
    return Z_INTERVAL * deviation / math.sqrt(rows)


def smallest_difference(deviation: float, rows: float, correlation: float = 0.0) -> float:
    """The smallest difference between two means of so many rows each that a run detects at 80 % power. The rows are
    the same ones if there is a correlation."""
    return (Z_INTERVAL + Z_POWER) * deviation * math.sqrt(2 * (1 - correlation) / rows)


def rows_needed(difference: float, deviation: float, correlation: float = 0.0, design_effect: float = 1.0) -> int:
    """The rows at which that difference is the smallest that a run detects."""
    rows = 2 * (1 - correlation) * ((Z_INTERVAL + Z_POWER) * deviation / difference) ** 2
    return math.ceil(rows * design_effect - 1e-9)


def deviation_of_rate(rate: float) -> float:
    return math.sqrt(rate * (1 - rate))


def design_effect(sizes: Numbers, correlation: float) -> float:
    """By how much clusters of these sizes widen the variance of a mean, at this correlation within a cluster."""
    total = sizes.sum()
    return 1.0 if not total else float(1 + ((sizes.astype(float) ** 2).sum() / total - 1) * correlation)


def correlation_within(scores: Numbers, clusters: Numbers) -> float | None:
    """The correlation within clusters, by analysis of variance; None if no cluster has two scores, or all have the
    same score. Below 0 counts as 0."""
    _, codes, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    count, groups = len(scores), len(sizes)
    if count == groups or groups < 2 or np.ptp(scores) == 0:
        return None
    means = np.bincount(codes, weights=scores) / sizes
    between = float((sizes * (means - scores.mean()) ** 2).sum()) / (groups - 1)
    within = float(((scores - means[codes]) ** 2).sum()) / (count - groups)
    size = (count - float((sizes.astype(float) ** 2).sum()) / count) / (groups - 1)
    return max(0.0, (between - within) / (between + (size - 1) * within))


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
    found, named = [], {m.name for m in METRICS}
    for table in map(_table, given):
        scores = {}
        for column in map(str, table.columns):
            name = next((column.removesuffix(s) for s in SUFFIXES if column.endswith(s)), column)
            values = numbers_of(table[column].tolist()) if name != column or name in named else np.empty(0)
            if not np.isnan(values).all():
                scores[name] = values
        if not scores:
            raise EvalSetError("past: expected a table with columns of scores, such as document_recall/value; got none")
        found.append(PastScores(scores, _rows(table, facts)))
    return found


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
    rows = report["rows"]
    for row in rows:  # each score gets a column of its own
        if isinstance(row.get("scores"), dict):
            row.update({f"{name}/value": score for name, score in row["scores"].items()})
    return pd.DataFrame(rows)


def _rows(table: pd.DataFrame, facts: Facts) -> Array | None:
    """The row of the dataset of each row of a table: by request_id, else by position if there are as many."""
    ids = facts.array("id")
    if "request_id" in table.columns and ids.any():
        hashes, _ = hash_texts([v if isinstance(v, str) else None for v in table["request_id"].tolist()])
        order = np.argsort(ids, kind="stable")
        at = np.minimum(np.searchsorted(ids[order], hashes), len(order) - 1)
        return np.where(ids[order][at] == hashes, order[at], -1)
    return np.arange(len(table)) if len(table) == facts.row_count else None
