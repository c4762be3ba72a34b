"""What a report draws: how numbers are distributed, where which field is there, where which issues occur.

All take in a batch at a time and stay small whatever the number of rows.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

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
        if not len(values):
            return
        self.highest = max(self.highest, float(values.max()))
        short = (values < _SHORT) & (np.floor(values) == values)  # most lengths, which are counted without sorting them
        of_each = np.bincount(values[short].astype(np.int64))
        there = np.flatnonzero(of_each)
        self._counts.update(dict(zip(map(float, there.tolist()), of_each[there].tolist(), strict=True)))
        if not short.all():
            numbers, counts = np.unique(_three_digits(values[~short]), return_counts=True)
            self._counts.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))

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


_SHORT = 1_000
"""Whole numbers below this have at most three digits."""

_SMALLEST = 1e-9
"""A nanosecond; what is less is nothing."""


def _three_digits(values: _Numbers) -> _Numbers:
    values = np.where(values < _SMALLEST, 0.0, values)
    scale = np.floor(np.log10(np.where(values > 0, values, 1.0))) - 2
    # dividing by a whole power of ten is exact where multiplying by its inverse is not: 0.3 stays 0.3
    large, small = 10.0 ** np.maximum(scale, 0), 10.0 ** np.maximum(-scale, 0)
    result: _Numbers = np.round(values / large * small) / small * large
    return result


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
    """The mean of numbers of the rows, or the share of those that are flagged, in at most CELLS equal steps."""
    count = min(len(flags), CELLS)
    bounds = np.linspace(0, len(flags), count + 1).astype(int)
    sums = np.add.reduceat(flags.astype(np.float64), bounds[:-1])
    return [round(float(s), 3) for s in sums / np.diff(bounds)]


def per_step(rows: int) -> str:
    """The most rows that a step of `steps` has, in words, if they are several."""
    most = -(-rows // CELLS)
    return f", at most {most:,} rows per step" if most > 1 else ""


STEPS = 120
"""Parts of the dataset in which the rows of a code are counted, at most."""

KINDS = 50
"""Different messages of a code that are counted, at most; the issues beyond them are counted together."""


FIRST_ROWS = 10_000
"""Rows of a code that are listed, at most."""


class Kind(NamedTuple):
    """What equal issues report: the path with `[*]` for the number of an entry, the message and the hint."""

    path: str
    message: str
    hint: str


class Occurrences:
    """The rows and the messages of one code, added in the order of the rows.

    `rows` is the number of rows with the code, `kinds` the number of issues per message, `others` the number of issues
    whose message is not one of them, `first_rows` the first rows.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.kinds: Counter[Kind] = Counter()
        self.others = 0
        self.first_rows: list[int] = []
        self._width = 1
        self._counts: np.ndarray[Any, Any] = np.zeros(STEPS, np.int64)

    def add_rows(self, rows: np.ndarray[Any, Any]) -> None:
        """Count rows, each given once."""
        if not len(rows):
            return
        self.rows += len(rows)
        self.first_rows += rows[: FIRST_ROWS - len(self.first_rows)].tolist()
        self._make_room(int(rows.max()) + 1)
        self._counts += np.bincount(rows // self._width, minlength=STEPS)

    def _make_room(self, total: int) -> None:
        """Widen the steps until they are enough for this number of rows: neighboring ones become one."""
        while total > STEPS * self._width:
            halved = self._counts.reshape(-1, 2).sum(axis=1)
            self._counts = np.concatenate([halved, np.zeros(STEPS - len(halved), np.int64)])
            self._width *= 2

    def add_kind(self, path: str | None, message: str, hint: str, count: int = 1) -> None:
        """Count issues with the same message."""
        kind = Kind(_ENTRY.sub("[*]", path or ""), message, hint)
        if kind in self.kinds or len(self.kinds) < KINDS:
            self.kinds[kind] += count
        else:
            self.others += count

    def shares(self, total: int) -> list[float]:
        """The share of the rows with the code in each step of a dataset of `total` rows."""
        self._make_room(total)
        steps = -(-total // self._width)
        sizes = np.minimum(self._width, total - self._width * np.arange(steps))
        return [round(float(share), 3) for share in self._counts[:steps] / np.maximum(sizes, 1)]


def codes_together(rows: Mapping[str, np.ndarray[Any, Any]], size: int) -> dict[tuple[str, str], int]:
    """How many rows of a batch of this number of rows have the issues of two codes, by both codes in order. `rows` has
    by code the positions in the batch."""
    codes = sorted(rows)
    holds = np.zeros((len(codes), size), np.float32)  # exact: a batch has fewer than 2**24 rows
    for number, code in enumerate(codes):
        holds[number, rows[code]] = 1
    counts = np.triu(holds @ holds.T, 1)
    return {(codes[a], codes[b]): int(counts[a, b]) for a, b in zip(*np.nonzero(counts), strict=True)}


_ENTRY = re.compile(r"\[\d+\]")
