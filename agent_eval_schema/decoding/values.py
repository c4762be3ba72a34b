"""Decoded cells: one entry per row; `FAILED` stands for a cell that did not decode."""

from typing import Any, Final


class _Failed:
    def __repr__(self) -> str:
        return "FAILED"


FAILED: Final[Any] = _Failed()
"""In a decoded column: there is a cell, but it could not be read (and an issue says why)."""

Values = list[Any]
