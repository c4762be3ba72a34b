"""What a report on a build shows, as plain values."""

from __future__ import annotations

from msgspec import Struct


class Removed(Struct, frozen=True):
    """How many rows were set aside for a reason (reasons.py)."""

    reason: str
    rows: int


class Step(Struct, frozen=True):
    """One step: what the rows that are left are called, how many they are, and which went, most frequent reason in the
    order of the funnel."""

    name: str
    left: int
    removed: tuple[Removed, ...]


class Stratum(Struct, frozen=True):
    """A part of the calls that the sample was shared over: how many calls it has, how many were drawn."""

    stratum: str
    calls: int
    sampled: int
