"""Per metric: the rows that support it, what they are worth, and what can be seen on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import supports
from agent_eval_schema.profile.duplicates import Repeats
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.past import PastScores
from agent_eval_schema.profile.power import (
    Numbers,
    correlation_within,
    design_effect,
    deviation_of_rate,
    half_width,
    rows_needed,
    smallest_difference,
)
from agent_eval_schema.profile.profile_summary import Assumptions, MetricPower

POINTS = (0.05, 0.03, 0.01)
"""The differences for which the rows are given."""

FIGURES = frozenset({"latency", "input_tokens", "output_tokens", "total_tokens"})
"""Fields whose metrics are no scores from 0 to 1."""

LEAST = 2
"""Effective rows below which no interval is given."""


class Sample(Struct, frozen=True):
    """The rows of a metric: how many, with how many distinct questions, in clusters of which sizes."""

    rows: Array
    distinct: int
    sizes: Array


class Sizing:
    """What is the same for all metrics of a dataset."""

    def __init__(self, facts: Facts, repeats: Repeats, past: Sequence[PastScores], assumed: Assumptions) -> None:
        self._facts, self._repeats, self._past, self._assumed = facts, repeats, past, assumed
        self._clusters = facts.clusters()
        self._samples: dict[bytes, Sample] = {}

    def power(self, metric: Metric) -> MetricPower:
        """How exact a metric is."""
        sample = self._sample(metric)
        scores = next((s for p in self._past if (s := _scored(p, metric)) is not None), None)
        within, correlation = self._correlations(metric)
        effect = design_effect(sample.sizes, within)
        effective = sample.distinct / effect
        unit = "value" if FIGURES.intersection(_fields(metric)) or metric.name == "ResponseLength" else "points"
        mean, deviation, measured = self._spread(scores, unit)
        note = _note(len(sample.rows), effective, deviation)
        scale = 1.0 if unit == "points" else abs(mean or 0.0)
        known = None if note else deviation
        return MetricPower(
            metric.system,
            metric.name,
            unit,
            len(sample.rows),
            sample.distinct,
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

    def _sample(self, metric: Metric) -> Sample:
        mask = supports(metric, self._facts.masks, self._facts.valid, self._facts.plan.outputs)
        key = np.packbits(mask).tobytes()
        if key not in self._samples:
            rows = np.flatnonzero(mask)
            _, first = np.unique(self._repeats.near[rows], return_index=True)
            _, sizes = np.unique(self._clusters[rows[first]], return_counts=True)
            self._samples[key] = Sample(rows, len(first), sizes)
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


def _scored(past: PastScores, metric: Metric) -> Numbers | None:
    scores = past.of(metric)
    return None if scores is None else scores[~np.isnan(scores)]


def _fields(metric: Metric) -> set[str]:
    return {field for need in metric.needs for field in ((need,) if isinstance(need, str) else need)}


def _note(rows: int, effective: float, deviation: float | None) -> str:
    if not rows:
        return "no row supports it"
    if effective < LEAST:
        return "no interval of one row" if rows == 1 else "no interval: the rows count as fewer than two"
    if deviation is None:
        return "no interval without past results: the spread of the values is unknown"
    return "" if deviation else "no interval: all past scores are the same"
