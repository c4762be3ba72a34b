"""Decoded columns: one entry per row; None where a cell is absent, `FAILED` where it did not decode.

Whether the cells are Python values (`ListColumn`) or stay in Arrow (arrow_columns.py), a rule uses the same methods of
the whole column (`Column`), and for a row only if necessary.
"""

from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa


class _Failed:
    def __repr__(self) -> str:
        return "FAILED"


FAILED: Final[Any] = _Failed()
"""In a decoded column: the cell could not be read (and an issue has the reason)."""

Values = list[Any]
"""The decoded cells of a column."""

Mask = np.ndarray[Any, Any]
"""One bool per row."""


class Column(Protocol):
    """The methods of a decoded column, however its cells are stored."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    @property
    def array(self) -> pa.Array | None:
        """The column as it came, if it stays in Arrow."""

    def given(self) -> Mask:
        """Whether a row has a cell that could be read."""

    def filled(self) -> Mask:
        """Whether there is something in the cell: a list, text or number that is not empty."""

    def with_text(self) -> Mask:
        """Whether the cell is text that is not blank."""

    def with_content(self) -> Mask:
        """Whether a document of the cell has content."""

    def with_uri(self) -> Mask:
        """Whether a document of the cell has a doc_uri; documents that were looked for and not found have a recall, so
        an empty list counts."""

    def texts(self) -> pa.Array:
        """The cells that are text, as an Arrow array; the others are null."""

    def rows_holding(self, wanted: pa.Array, candidates: list[int]) -> list[int]:
        """The candidates that have a document whose content holds the text which `wanted` has for their row."""


class ListColumn(list[Any]):
    """A column of Python values."""

    array = None

    def given(self) -> Mask:
        return np.array([v is not None and v is not FAILED for v in self], bool)

    def filled(self) -> Mask:
        return np.array([v is not FAILED and bool(v) for v in self], bool)

    def with_text(self) -> Mask:
        return np.array([v.__class__ is str and v != "" and not v.isspace() for v in self], bool)

    def with_content(self) -> Mask:
        return np.array([bool(v) and v is not FAILED and any([d.content for d in v]) for v in self], bool)

    def with_uri(self) -> Mask:
        found = [v is not None and v is not FAILED and (not v or any([d.doc_uri for d in v])) for v in self]
        return np.array(found, bool)

    def texts(self) -> pa.Array:
        return pa.array([v if v.__class__ is str else None for v in self], pa.string())

    def rows_holding(self, wanted: pa.Array, candidates: list[int]) -> list[int]:
        rows = [row for row in candidates if self[row] and self[row] is not FAILED]
        texts = {row: wanted[row].as_py() for row in rows}
        return [row for row in rows if any([d.content and texts[row] in d.content for d in self[row]])]


class NoCells(ListColumn):
    """A column that the data do not have: nothing of it is looked up cell by cell."""

    def __init__(self, rows: int) -> None:
        super().__init__([None] * rows)

    def _none(self) -> Mask:
        return np.zeros(len(self), bool)

    given = filled = with_text = with_content = with_uri = _none

    def texts(self) -> pa.Array:
        return pa.nulls(len(self), pa.string())

    def rows_holding(self, _wanted: pa.Array, _candidates: list[int]) -> list[int]:
        return []


class Columns(dict[str, Column]):
    """The decoded columns of a batch by their names; any other name is that of a column without cells."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._no_cells = NoCells(rows)

    def __missing__(self, _name: str) -> Column:
        return self._no_cells
