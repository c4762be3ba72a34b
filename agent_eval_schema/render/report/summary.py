"""What a validation report shows, as plain values."""

from __future__ import annotations

from typing import NamedTuple

Place = tuple[int, str | None, str | None]
"""A row, a column and a path: what an issue says of where it is."""


class Excerpt(NamedTuple):
    """A part of a cell; `marked` is what an issue is about, and has all of the excerpt if no part of the cell stands
    out."""

    before: str
    marked: str
    after: str
