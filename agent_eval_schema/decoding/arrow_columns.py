"""Columns that stay in Arrow: all of their cells are valid, so few need to be examined one by one.

What most rules ask (is there a text, is there content, is the list empty) is answered for the whole column at once; a
Python object is made when a rule asks for a row.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import bounds, list_array, text_bytes
from agent_eval_schema.cells.cells import Cells
from agent_eval_schema.decoding.values import Mask
from agent_eval_schema.schema import DOCUMENT, OTHER_KEYS, Document


class DocumentColumn:
    """A sequence of list[Document] or None, made when asked for."""

    def __init__(self, array: pa.ListArray) -> None:
        self.array = array
        flat = array.flatten()
        self._uris, self._contents, self._others = flat.field("doc_uri"), flat.field("content"), flat.field(OTHER_KEYS)
        self._lengths = np.asarray(pc.list_value_length(array).fill_null(0))
        self._bounds = bounds(self._lengths).tolist()
        self._given = np.asarray(array.is_valid())

    @staticmethod
    def of(array: pa.Array) -> "DocumentColumn | None":
        """The column, or None if it is of another type or some cell has a problem that must be explained."""
        if array.type == pa.list_(pa.struct(list(DOCUMENT)[:2])):
            array = _with_other_keys(array)
        if array.type != pa.list_(DOCUMENT):
            return None
        flat = array.flatten()
        uris = flat.field("doc_uri")
        blank = pc.any(pc.equal(pc.utf8_trim_whitespace(uris), "")).as_py()
        return None if flat.null_count or uris.null_count or blank else DocumentColumn(array)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, row: int) -> list[Document] | None:
        if not self._given[row]:
            return None
        start, end = self._bounds[row], self._bounds[row + 1]
        documents = map(Document, self._uri_list[start:end], self._content_list[start:end])
        if self._others.null_count == len(self._others):
            return list(documents)
        others = self._others.slice(start, end - start).to_pylist()
        return [replace(d, other_keys=keys) for d, keys in zip(documents, others, strict=True)]

    def __iter__(self) -> Iterator[list[Document] | None]:
        return (self[row] for row in range(len(self)))

    @cached_property
    def _uri_list(self) -> list[str]:
        found: list[str] = self._uris.to_pylist()
        return found

    @cached_property
    def _content_list(self) -> list[str | None]:
        found: list[str | None] = self._contents.to_pylist()
        return found

    def uris(self, row: int) -> list[str]:
        """The doc_uris of a row's documents; a few rows are read without reading all."""
        start, end = self._bounds[row], self._bounds[row + 1]
        found: list[str] = self._uris.slice(start, end - start).to_pylist()
        return found

    def rows_holding(self, wanted: pa.Array, candidates: list[int]) -> list[int]:
        texts, starts = text_bytes(self._contents)
        edges, rows = np.asarray(starts)[self._bounds], np.asarray(candidates, np.int64)
        needles = wanted.cast(pa.large_binary()).take(pa.array(rows))
        # The first letters alone are looked for faster than the whole, and are hardly ever there.
        openings = pc.binary_slice(needles, 0, 24).to_pylist()
        places = map(texts.find, openings, edges[rows].tolist(), edges[rows + 1].tolist())
        found = []
        for at in [at for at, place in enumerate(places) if place >= 0]:
            row, needle = candidates[at], needles[at].as_py()
            documents = range(self._bounds[row], self._bounds[row + 1])
            # Arrow may have bytes behind a null, which are not content.
            if any(needle in texts[starts[i] : starts[i + 1]] and self._contents[i].is_valid for i in documents):
                found.append(row)
        return found

    def given(self) -> Mask:
        return self._given

    def filled(self) -> Mask:
        return np.asarray(self._lengths > 0)

    def with_text(self) -> Mask:
        return np.zeros(len(self), bool)

    def with_uri(self) -> Mask:
        return self._given  # no document lacks one: see `of`

    def texts(self) -> pa.Array:
        return pa.nulls(len(self), pa.string())

    def with_content(self) -> Mask:
        has = np.asarray(pc.greater(pc.binary_length(self._contents).fill_null(0), 0))
        total = bounds(has)[self._bounds]
        return np.asarray(total[1:] > total[:-1])


def _with_other_keys(array: pa.ListArray) -> pa.ListArray:
    """Documents that have no field for other keys, with an empty one."""
    flat = array.flatten()
    columns = [*(flat.field(i) for i in range(2)), pa.nulls(len(flat), pa.string())]
    absent = np.asarray(flat.is_null())
    documents = pa.StructArray.from_arrays(columns, fields=list(DOCUMENT), mask=pa.array(absent))
    lengths = np.asarray(pc.list_value_length(array).fill_null(0)).tolist()
    return list_array(lengths, documents, np.asarray(array.is_null()).tolist())


class TextColumn:
    """A sequence of texts or None. No text is blank or could be JSON."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    @staticmethod
    def of(cells: Cells) -> "TextColumn | None":
        """The column, or None if some cell has to be examined."""
        return TextColumn(cells.array) if cells.array is not None and not cells.nul and not cells.suspects() else None

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, row: int) -> str | None:
        return self._strings[row]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._strings)

    @cached_property
    def _strings(self) -> list[str | None]:
        found: list[str | None] = self.array.to_pylist()
        return found

    def given(self) -> Mask:
        return np.asarray(self.array.is_valid())

    filled = with_text = given

    def with_content(self) -> Mask:
        return np.zeros(len(self), bool)

    with_uri = with_content

    def texts(self) -> pa.Array:
        return self.array

    def rows_holding(self, wanted: pa.Array, candidates: list[int]) -> list[int]:  # noqa: ARG002 -- it has no documents
        return []
