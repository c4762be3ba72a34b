"""What a report draws: how numbers are distributed, and where in the data set which field is there.

Both take in a batch at a time and stay small whatever the number of rows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from msgspec import Struct

from agent_eval_schema.metrics.catalog import BIT

_Numbers = np.ndarray[Any, Any]

FIGURES = {
    "request_length": ("Request length", "characters"),
    "response_length": ("Response length", "characters"),
    "latency_seconds": ("Latency", "seconds"),
    "total_token_count": ("Tokens", "tokens a row"),
    "tool_calls": ("Tool calls", "calls a row"),
}
"""The numbers of a row whose distribution a report shows, with their titles and units."""

FEWEST = 5
"""Values from which on a distribution is drawn."""

BARS = 24
"""Bars of a distribution, at most."""

CELLS = 120
"""Steps in which the presence of a field over the rows is shown, at most."""

PRESENCE = {
    "request": ("request",),
    "response": ("response",),
    "retrieved_context": ("retrieved_content", "retrieved_uri"),
    "trace": ("trace",),
    "expected_response": ("expected_response",),
    "expected_facts": ("expected_facts",),
    "expected_retrieved_context": ("expected_uri",),
    "guidelines": ("guidelines",),
    "token counts": ("input_tokens", "output_tokens", "total_tokens"),
    "latency_seconds": ("latency",),
    "session_id": ("session",),
    "predicted_trajectory": ("predicted_trajectory",),
    "reference_trajectory": ("reference_trajectory",),
}
"""The lines of the presence picture, and the fields of the metric catalog that count as being there."""


class Bar(Struct, frozen=True):
    """How many values lie from `low` to `high`."""

    low: float
    high: float
    count: int


class Distribution:
    """Numbers from 0 on, kept to three significant digits, so that memory does not grow with them."""

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()
        self.highest = 0.0

    def add(self, values: _Numbers) -> None:
        values = values[np.isfinite(values) & (values >= 0)]
        if len(values):
            self.highest = max(self.highest, float(values.max()))
            kept, counts = np.unique(_three_digits(values), return_counts=True)
            self._counts.update(dict(zip(kept.tolist(), counts.tolist(), strict=True)))

    @property
    def count(self) -> int:
        return self._counts.total()

    def quantile(self, share: float) -> float:
        """The value that this share of the numbers does not exceed, to three digits."""
        values = np.array(sorted(self._counts))
        reached = np.cumsum([self._counts[v] for v in values.tolist()])
        return float(values[np.searchsorted(reached, share * reached[-1])])

    def bars(self) -> list[Bar]:
        """The numbers in bars of equal width; the few that are far above the others share the last one."""
        low, high = min(self._counts), max(self._counts)
        if low == high:
            return [Bar(low, high, self.count)]
        if all(v.is_integer() for v in self._counts) and high - low < BARS:
            return [Bar(v, v, self._counts[v]) for v in map(float, range(int(low), int(high) + 1))]
        far = self.quantile(0.99)
        edges = np.linspace(low, far if far > low else high, BARS + 1)
        values = np.array(sorted(self._counts))
        counts = np.array([self._counts[v] for v in values.tolist()])
        at = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, BARS - 1)
        sums = np.bincount(at, weights=counts, minlength=BARS).astype(int).tolist()
        tops = [*edges[1:-1].tolist(), high]
        return [Bar(a, b, n) for a, b, n in zip(edges[:-1].tolist(), tops, sums, strict=True)]


_SMALLEST = 1e-9
"""A nanosecond; what is less is nothing."""


def _three_digits(values: _Numbers) -> _Numbers:
    values = np.where(values < _SMALLEST, 0.0, values)
    scale = np.floor(np.log10(np.where(values > 0, values, 1.0))) - 2
    # dividing by a whole power of ten is exact where multiplying by its inverse is not: 0.3 stays 0.3
    large, small = 10.0 ** np.maximum(scale, 0), 10.0 ** np.maximum(-scale, 0)
    kept: _Numbers = np.round(values / large * small) / small * large
    return kept


class Presence(Struct, frozen=True):
    """Over the rows in order, in at most CELLS equal steps: the share of the rows of a step that hold a field."""

    field: str
    rows: int
    shares: list[float]


def presence(masks: _Numbers, valid: _Numbers) -> list[Presence]:
    """A line for each field that any row holds, and first one for the rows that are valid."""
    flags = {name: (masks & sum(BIT[f] for f in fields)) != 0 for name, fields in PRESENCE.items()}
    return [Presence(name, int(f.sum()), steps(f)) for name, f in {"valid": valid, **flags}.items() if f.any()]


def steps(flags: _Numbers) -> list[float]:
    """The share of the rows that are flagged, in at most CELLS equal steps."""
    count = min(len(flags), CELLS)
    bounds = np.linspace(0, len(flags), count + 1).astype(int)
    sums = np.add.reduceat(flags.astype(np.int64), bounds[:-1])
    return [round(float(s), 3) for s in sums / np.diff(bounds)]
