"""What a report on scores shows, as plain values."""

from __future__ import annotations

from msgspec import Struct

MATCHED, MOVED, EXTRA, MISSING = "matched", "moved", "extra", "missing"


class Side(Struct, frozen=True):
    """A call on one side, and what is to be said of it."""

    tool: str
    input: str
    mark: str


class Line(Struct, frozen=True):
    """A line of the picture; a side without a call is None."""

    predicted: Side | None
    reference: Side | None


class MetricComparison(Struct, frozen=True):
    """One metric in both results: over the `rows` that have a score in both, the means, the mean difference, how many
    rows have a higher and a lower score in the new result, and the p value of the test."""

    metric: str
    rows: int
    old: float
    new: float
    difference: float
    higher: int
    lower: int
    p_value: float


class Scored(Struct, frozen=True):
    """One line of a result's table of metrics."""

    metric: str
    mean: float
    std: float
    rows: int
    scored: int


class Worst(Struct, frozen=True):
    """A row with its scores (None: none), the cells to know it by, and its trajectories side by side (None: it does not
    have both)."""

    row: int
    failed: bool
    scores: list[tuple[str, float | None]]
    cells: list[tuple[str, str]]
    lines: list[Line] | None
