"""Per metric: the rows that support it, what they are worth, and which difference between two versions they show.

The interval is that of intervals.py, the smallest difference that of the paired test (metrics/power.py), both for n
effective rows: distinct questions divided by the design effect of their independent units, Kish's 1 + (m − 1) · ρ with
m the mean size of the unit in which a row is, and ρ the correlation within a unit, of the scores for the interval and
of the differences for the test. See Miller, "Adding Error Bars to Evals" (2024). By the scores of earlier evaluations,
spread and correlations are measured rather than assumed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct

from agent_eval_schema.cells.hashing import Array, hash_texts
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.places import ending_of
from agent_eval_schema.io.texts import read_bytes
from agent_eval_schema.metrics.catalog import Metric, Scale
from agent_eval_schema.metrics.differences import Z
from agent_eval_schema.metrics.intervals import LEAST_UNITS, Numbers, is_binary, spread_by_group, t_quantile, wilson
from agent_eval_schema.metrics.known_metrics import CATALOG, metric_info
from agent_eval_schema.metrics.metric_info import SHARE, numbers_of
from agent_eval_schema.metrics.power import (
    rows_for_difference,
    rows_for_rate_difference,
    smallest_difference,
    smallest_rate_difference,
)
from agent_eval_schema.metrics.support import all_metrics, supports
from agent_eval_schema.profile.coverage import Repeats
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.profile_blocks import Assumptions, MetricPower
from agent_eval_schema.text.choices import shown
from agent_eval_schema.text.guarded import decoded_or_none

POINTS = (0.05, 0.03, 0.01)
"""The differences for which the rows are given."""


class Sizing:
    """What is the same for all metrics of a dataset."""

    def __init__(self, facts: Facts, repeats: Repeats, past: Sequence[PastScores], assumed: Assumptions) -> None:
        self._facts, self._repeats, self._past, self._assumed = facts, repeats, past, assumed
        self._clusters = facts.units.codes
        self._samples: dict[bytes, tuple[int, int, Array]] = {}

    def power(self, metric: Metric) -> MetricPower:
        rows, distinct, sizes = self._sample(metric)
        units = len(sizes)
        scores = next((s[~np.isnan(s)] for p in self._past if (s := p.of(metric)) is not None), None)
        within, within_differences, correlation = self._correlations(metric)
        effect, paired_effect = design_effect(sizes, within), design_effect(sizes, within_differences)
        info = CATALOG.get(metric) or metric_info(metric.name)
        scale, span = info.ends, info.span
        unit = "value" if span is None else "points" if scale == SHARE else "steps"
        mean, deviation, measured = self._spread(scores, scale, span)
        rate = None
        if unit == "points":
            rate = mean if not measured or scores is None else _rate(scores) if is_binary(scores) else None
        note = _note(rows, distinct, units, deviation, known_scale=scale is not None)
        half = paired = paired_8 = needed = None
        if not note and deviation is not None:
            if rate is not None and mean is not None:
                half, smallest = half_of_rate(mean, sizes, within), partial(smallest_rate_difference, rate)
            else:
                half = t_quantile(0.975, max(units - 1, 1)) * deviation / math.sqrt(distinct / effect)
                smallest = partial(smallest_difference, deviation)
            paired, paired_8 = (smallest(n / paired_effect, correlation) for n in (distinct, 8 * distinct))
        amount = span if span is not None else abs(mean or 0.0)
        if deviation and amount:
            rows_for = partial(rows_for_difference, deviation)
            if rate is not None:
                rows_for = partial(rows_for_rate_difference, rate)
            needed = tuple(math.ceil(paired_effect * rows_for(p * amount, correlation) - 1e-9) for p in POINTS)
        return MetricPower(
            system=metric.system,
            metric=metric.name,
            unit=unit,
            scale=scale if unit == "steps" else None,
            rows=rows,
            distinct=distinct,
            units=units,
            design_effect=effect,
            effective_rows=distinct / effect,
            mean=mean if measured or span is not None else None,
            deviation=deviation,
            measured=measured,
            half_width=half,
            paired=paired,
            paired_8=paired_8,
            rows_needed=needed,
            note=note,
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

    def _spread(
        self, scores: Numbers | None, scale: Scale | None, span: float | None
    ) -> tuple[float | None, float | None, bool]:
        """Mean and standard deviation of a score, and whether they were measured. The assumed ones are those of a score
        that is the highest at the assumed rate, and else the lowest: the widest spread."""
        if scores is None or len(scores) < 2:
            if scale is None or span is None:
                return None, None, False
            return scale[0] + span * self._assumed.rate, span * deviation_of_rate(self._assumed.rate), False
        if is_binary(scores):
            return float(scores.mean()), deviation_of_rate(_rate(scores)), True
        return float(scores.mean()), float(scores.std(ddof=1)), True

    def _correlations(self, metric: Metric) -> tuple[float, float, float]:
        """Within units, of scores and of differences, and between versions on the same rows: measured, else assumed."""
        placed = [(p.rows, s) for p in self._past if p.rows is not None and (s := p.of(metric)) is not None]
        within, between = self._assumed.cluster_correlation, self._assumed.correlation
        of_differences = within
        if placed:
            rows, scores = placed[0]
            there = (rows >= 0) & ~np.isnan(scores)
            measured = correlation_within(scores[there], self._clusters[rows[there]])
            within = within if measured is None else measured
        if len(placed) > 1:
            one, other = (self._by_row(rows, scores) for rows, scores in placed[:2])
            both = ~(np.isnan(one) | np.isnan(other))
            measured = correlation_within(one[both] - other[both], self._clusters[both])
            of_differences = of_differences if measured is None else measured
            if both.sum() > 2 and np.ptp(one[both]) and np.ptp(other[both]):
                between = float(np.clip(np.corrcoef(one[both], other[both])[0, 1], 0.0, 0.99))
        return within, of_differences, between

    def _by_row(self, rows: Array, scores: Numbers) -> Numbers:
        by_row = np.full(self._facts.row_count, np.nan)
        by_row[rows[rows >= 0]] = scores[rows >= 0]
        return by_row


def _note(rows: int, distinct: int, units: int, deviation: float | None, *, known_scale: bool) -> str:
    """Why there is no interval."""
    if not rows:
        return "no row supports it"
    if units < LEAST_UNITS:
        note = f"no interval: {units} independent unit{'' if units == 1 else 's'}, at least {LEAST_UNITS} are needed"
        few = f"{rows:,} rows ask {distinct:,} different question{'' if distinct == 1 else 's'}"
        return f"{note} ({few}; near=1 counts near duplicates apart)" if rows >= LEAST_UNITS > distinct else note
    if deviation is None:
        what = "the spread of the values" if known_scale else "the scale of the scores"
        return f"no interval without past results: {what} is unknown"
    return "" if deviation else "no interval: all past scores are the same"


def _rate(scores: Numbers) -> float:
    """A rate that was 0 or 1 is close to it: with two successes and two failures (Agresti and Coull, 1998)."""
    return (float(scores.sum()) + 2) / (len(scores) + 4)


def deviation_of_rate(rate: float) -> float:
    return math.sqrt(rate * (1 - rate))


def design_effect(sizes: Numbers, correlation: float) -> float:
    """By how much clusters of these sizes widen the variance of a mean, at this correlation within a cluster."""
    total = sizes.sum()
    return 1.0 if not total else float(1 + ((sizes.astype(float) ** 2).sum() / total - 1) * correlation)


def half_of_rate(rate: float, sizes: Numbers, correlation: float) -> float:
    """Half of the interval of a rate of rows that are in clusters of these sizes."""
    total, units = int(sizes.sum()), len(sizes)
    quantile = Z if units == total else t_quantile(0.975, max(units - 1, 1))
    low, high = wilson(rate, total / design_effect(sizes, correlation), quantile)
    return (high - low) / 2


def correlation_within(scores: Numbers, clusters: Numbers) -> float | None:
    """The correlation within clusters, by analysis of variance; None without two scores, or if all are equal."""
    between, within = spread_by_group(scores, clusters)
    total = between**2 + within**2
    return between**2 / total if total > 0 else None


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
    results = [] if past is None else list(past) if isinstance(past, Sequence) and not isinstance(past, str) else [past]
    all_scores, named = [], {m.name for m in all_metrics()}
    for result in results:
        table = _table(result)
        scores = {}
        for column in map(str, table.columns):
            name = next((column.removesuffix(s) for s in SUFFIXES if column.endswith(s)), column)
            values = numbers_of(table[column].tolist()) if name != column or name in named else np.empty(0)
            if not np.isnan(values).all():
                scores[name] = values
        if not scores:
            of = f" {shown(result)}" if isinstance(result, str | os.PathLike) else ""
            raise EvalSetError(f"past{of}: expected a table with columns of scores, such as document_recall/value")
        all_scores.append(PastScores(scores, _rows(table, facts)))
    return all_scores


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
    except EvalSetError:
        return None
    report = decoded_or_none(text, dict[str, Any]) or {}  # none of several lines either
    rows = report.get("rows")
    if "scored" not in report or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
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
