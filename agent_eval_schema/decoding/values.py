"""Decoded columns: one entry per row; None where a cell is absent, `FAILED` where it did not decode.

Whether the cells are Python values (`ListColumn`) or stay in Arrow (`DocumentColumn`, `TextColumn`), a rule
uses the same methods of the whole column (`DecodedColumn`), and for a row only if necessary.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import bounds, list_array, text_bytes
from agent_eval_schema.cells.cells import Cells, Texts
from agent_eval_schema.schema import DOCUMENT, Document


class _Failed:
    def __repr__(self) -> str:
        return "FAILED"


FAILED: Final[Any] = _Failed()
"""In a decoded column: the cell could not be read (and an issue has the reason)."""

Values = list[Any]
"""The decoded cells of a column."""

Mask = np.ndarray[Any, Any]
"""One bool per row."""


class DecodedColumn(Sequence[Any]):
    """A decoded column, however its cells are stored; of what a kind does not define, it has nothing.

    Of each row, `given` is whether it has a cell that could be read, `filled` whether there is something in it (a list,
    text or number that is not empty), `with_text` whether it is text that is not blank, `with_content` whether a
    document of it has content, `with_uri` whether one has a doc_uri; documents that were looked for and not found have
    a recall, so an empty list counts. `array` is the column as it came, if it stays in Arrow.
    """

    array: pa.Array | None = None

    def _no_row(self) -> Mask:
        return np.zeros(len(self), bool)

    given = filled = with_text = with_content = with_uri = _no_row

    def texts(self) -> pa.Array:
        """The cells that are text, as an Arrow array; the others are null."""
        return pa.nulls(len(self), pa.string())

    def rows_holding(self, wanted: pa.Array, candidates: list[int]) -> list[int]:  # noqa: ARG002 -- it has no documents
        """The candidates that have a document whose content holds the text which `wanted` has for their row."""
        return []


class ListColumn(list[Any], DecodedColumn):
    """A column of Python values."""

    def given(self) -> Mask:
        return np.array([v is not None and v is not FAILED for v in self], bool)

    def filled(self) -> Mask:
        return np.array([v is not FAILED and bool(v) for v in self], bool)

    def with_text(self) -> Mask:
        return np.array([v.__class__ is str and v != "" and not v.isspace() for v in self], bool)

    def with_content(self) -> Mask:
        return self._with_any("content")

    def with_uri(self) -> Mask:
        empty = [v is not None and v is not FAILED and not v for v in self]
        return np.array(empty, bool) | self._with_any("doc_uri")

    def _with_any(self, part: str) -> Mask:
        """Whether a document of the cell has this part: counted at once, as a call for each costs more."""
        lists = [() if v is None or v is FAILED else v for v in self]
        has_part = np.fromiter(map(bool, map(attrgetter(part), chain.from_iterable(lists))), bool)
        rows = np.repeat(np.arange(len(lists)), list(map(len, lists)))
        mask = np.zeros(len(lists), bool)
        mask[rows[has_part]] = True
        return mask

    def texts(self) -> pa.Array:
        return pa.array([v if v.__class__ is str else None for v in self], pa.string())

    def rows_holding(self, wanted: pa.Array, candidates: list[int]) -> list[int]:
        rows = [row for row in candidates if self[row] and self[row] is not FAILED]
        texts = dict(zip(rows, wanted.take(pa.array(rows, pa.int64())).to_pylist(), strict=True))
        return [row for row in rows if any([d.content and texts[row] in d.content for d in self[row]])]


class NoCells(list[Any], DecodedColumn):
    """A column that the data do not have: nothing of it is looked up cell by cell."""


class Columns(dict[str, DecodedColumn]):
    """The decoded columns of a batch by their names; any other name is that of a column without cells."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._no_cells = NoCells([None] * rows)

    def __missing__(self, _name: str) -> DecodedColumn:
        return self._no_cells


# ---------------------------------------------------------------------------------------------------------------------
# Columns that stay in Arrow: all of their cells are valid, so few need to be examined one by one.
#
# What most rules ask (is there a text, is there content, is the list empty) is answered for the whole column at once; a
# Python object is made when a rule asks for a row.
class DocumentColumn(DecodedColumn):
    """A sequence of list[Document] or None, made when asked for."""

    def __init__(self, array: pa.ListArray) -> None:
        self._array, self._flat = array, array.flatten()
        self._uris, self._contents = self._flat.field("doc_uri"), self._flat.field("content")
        self._lengths = np.asarray(pc.list_value_length(array).fill_null(0))
        self._bounds = bounds(self._lengths)
        self._given = np.asarray(array.is_valid())

    @staticmethod
    def of(array: pa.Array) -> DocumentColumn | None:
        """The column, or None if it is of another type or some cell has a problem that must be explained."""
        if array.type not in (pa.list_(DOCUMENT), pa.list_(pa.struct(list(DOCUMENT)[:2]))):
            return None
        flat = array.flatten()
        uris = flat.field("doc_uri")
        blank = pc.any(pc.equal(pc.utf8_trim_whitespace(uris), "")).as_py()
        return None if flat.null_count or uris.null_count or blank else DocumentColumn(array)

    @cached_property
    def array(self) -> pa.ListArray:  # type: ignore[override]
        """The column as a table of documents has it: without other keys, they are null."""
        if self._array.type == pa.list_(DOCUMENT):
            return self._array
        columns = [self._uris, self._contents, pa.nulls(len(self._uris), pa.string())]
        documents = pa.StructArray.from_arrays(columns, fields=list(DOCUMENT))
        return list_array(self._lengths, documents, self._array.is_null())

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, row: Any) -> Any:
        if not self._given[row]:
            return None
        start, end = self._bounds[row], self._bounds[row + 1]
        return list(map(Document, *(values[start:end] for values in self._values)))

    @cached_property
    def _values(self) -> list[list[str | None]]:
        return [values.to_pylist() for values in self._flat.flatten()]

    def uris(self, count: int) -> tuple[pa.Array, np.ndarray[Any, Any]]:
        """The doc_uris of the documents of the first rows, and the row of each."""
        rows = np.repeat(np.arange(min(count, len(self))), self._lengths[:count])
        return self._uris.slice(0, len(rows)), rows

    def rows_holding(self, wanted: pa.Array, candidates: list[int]) -> list[int]:
        texts, starts = text_bytes(self._contents)
        edges, rows = starts[self._bounds], np.asarray(candidates, np.int64)
        needles = wanted.cast(pa.large_binary())
        # The first letters alone are looked for faster than the whole, and are hardly ever there.
        openings = pc.binary_slice(needles, 0, 24).take(pa.array(rows)).to_pylist()
        places = map(texts.find, openings, edges[rows].tolist(), edges[rows + 1].tolist())
        hits = []
        for at in [at for at, place in enumerate(places) if place >= 0]:
            row, needle = candidates[at], needles[candidates[at]].as_py()
            documents = range(self._bounds[row], self._bounds[row + 1])
            # Arrow may have bytes behind a null, which are not content.
            if any(needle in texts[starts[i] : starts[i + 1]] and self._contents[i].is_valid for i in documents):
                hits.append(row)
        return hits

    def given(self) -> Mask:
        return self._given

    def filled(self) -> Mask:
        return np.asarray(self._lengths > 0)

    def with_uri(self) -> Mask:
        return self._given  # no document lacks one: see `of`

    def with_content(self) -> Mask:
        has = np.asarray(pc.greater(pc.binary_length(self._contents).fill_null(0), 0))
        total = bounds(has)[self._bounds]
        return np.asarray(total[1:] > total[:-1])


class TextColumn(Texts, DecodedColumn):
    """A sequence of texts or None. No text is blank or could be JSON."""

    @staticmethod
    def of(cells: Cells) -> TextColumn | None:
        """The column, or None if some cell has to be examined."""
        return TextColumn(cells.array) if cells.array is not None and not cells.nul and not cells.suspects() else None

    def given(self) -> Mask:
        return np.asarray(self.array.is_valid())

    filled = with_text = given

    def texts(self) -> pa.Array:
        return self.array
