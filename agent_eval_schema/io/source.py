"""A Source: where rows come from, as batches of cells, read as often as needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from agent_eval_schema.cells.arrow import filtered
from agent_eval_schema.cells.notes import is_hidden
from agent_eval_schema.issues import Rule
from agent_eval_schema.text.privacy import may_quote, without_quoting

BATCH_BYTES = 8 << 20
"""Batches are about this large: small enough for memory to stay flat, large enough for Arrow to be worth it."""

MAX_BATCH_ROWS = 8_192

HEAD_START_BYTES = 128 << 20
"""What a process checks, about, in the half second that another one takes to start."""


_UNREAD: Any = object()


class Batches:
    """Batches that are read as often as needed. Who looks at the first one does not open the data once more: the next
    reading goes on behind it."""

    def __init__(self, read: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self._read = read
        self._head: pa.RecordBatch | None = _UNREAD
        self._rest: Iterator[pa.RecordBatch] = iter(())
        self._quotes = True

    def head(self) -> pa.RecordBatch | None:
        """The first batch, None if there is none."""
        if not self._is_ahead():
            self._rest, self._quotes = self._read(), may_quote()
            self._head = next(self._rest, None)
        return self._head

    def _is_ahead(self) -> bool:
        """Whether there is a head; notes on one that was read while cells could be quoted may quote them."""
        return self._head is not _UNREAD and self._quotes == may_quote()

    def __call__(self) -> Iterator[pa.RecordBatch]:
        if not self._is_ahead():
            return self._read()
        head, self._head = self._head, _UNREAD  # which is not kept: it would stay in memory
        return self._rest if head is None else _behind(head, self._rest)


def _behind(head: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield head
    del head  # it would stay in memory until the last batch
    yield from rest


class Source(Struct, frozen=True):
    """Something that can be checked.

    `name` is what a file or table is called, `path` where `open_file` finds it (of a URL, its local copy).
    `nests` says that a cell could have held an object, so that an object written as text is worth a word.
    `take(mask)` gives the rows where the mask is true, in the form and with the cells in which they came;
    `original(name)` a column of data in memory, as it came; `lines(rows)` the lines of a file on which rows begin.
    `read_share(rows)` is the part of the data that has been read when so many rows are checked, if anybody knows;
    `stored_bytes` the size of a table of several files. Rows that are `remote` are checked where they are. A fixed
    source says which columns it `renamed`; as its batches are not those of the file, they are made and checked in one
    process (`fixed`). `in_order` says that a batch can only be made or judged after those before it. `remarks` are
    what there is to say of the data as a whole: rule, column, message, hint.
    """

    kind: str
    batches: Callable[[], Iterator[pa.RecordBatch]]
    take: Callable[[np.ndarray[Any, Any]], Any]
    name: str | None = None
    path: str | None = None
    nests: bool = True
    repeated_columns: tuple[str, ...] = ()
    original: Callable[[str], Any] | None = None
    shares: Callable[[Share], Iterator[tuple[int, pa.RecordBatch]]] | None = None
    fixed: bool = False
    renamed: tuple[tuple[str, str], ...] = ()
    lines: Callable[[Iterable[int]], dict[int, int]] | None = None
    read_share: Callable[[int], float | None] | None = None
    stored_bytes: int | None = None
    remote: Remote | None = None
    in_order: bool = False
    remarks: tuple[tuple[Rule, str | None, str, str], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.batches, Batches):
            force_setattr(self, "batches", Batches(self.batches))

    def head(self) -> pa.RecordBatch | None:
        """The first batch, read ahead; None if there is none."""
        assert isinstance(self.batches, Batches)
        return self.batches.head()

    def units(self, share: Share) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The batches of a share of the data, with the number of the unit that each belongs to. A unit is a batch,
        unless the kind of file has larger parts (`shares`)."""
        if self.shares is not None:
            return self.shares(share)
        return ((i, batch) for i, batch in enumerate(self.batches()) if share.has(i, BATCH_BYTES))

    def quoting(self, values: bool) -> Source:
        """The source whose readers quote cells in what they say of them, or do not."""
        if values:
            return self
        batches, shares = self.batches, self.shares
        return replace(
            self,
            batches=lambda: without_quoting(batches),
            shares=shares and (lambda share: without_quoting(lambda: shares(share))),
        )


class Remote(Protocol):
    """Rows that are not here but on a cluster: work goes to them, and only its results come here."""

    def any(self, test: Callable[[pa.RecordBatch], bool], /) -> bool:
        """Whether the test, which can be pickled, is true of any batch."""

    def map(self, work: Callable[[pa.RecordBatch], pa.RecordBatch], /) -> Iterator[pa.RecordBatch]:
        """Run a picklable function on every batch, where the rows are; its results in the order of the rows."""


class Share(Struct, frozen=True):
    """What one of several workers checks: the units in turn, after a head start (in bytes) of number 0, which need not
    wait for the others to start."""

    worker: int
    workers: int
    head_start: int = HEAD_START_BYTES

    def has(self, unit: int, unit_bytes: float) -> bool:
        """Whether a unit of about this size belongs to the share."""
        first = unit < int(self.head_start / max(unit_bytes, 1))
        return self.worker == (0 if first else unit % self.workers)


def schema_of(kind: str, batches: Iterator[pa.RecordBatch]) -> pa.Schema:
    """The columns of a source as Arrow has them; a list of objects is read through once, as any row may bring more."""
    some = batches if kind in ("jsonl", "json", "list", "pandas") else islice(batches, 1)
    schemas = [pa.schema([f.remove_metadata() for f in b.schema if not is_hidden(f)]) for b in some]
    return pa.unify_schemas(schemas, promote_options="permissive") if schemas else pa.schema([])


def rows_per_batch(bytes_per_row: float) -> int:
    return int(min(MAX_BATCH_ROWS, max(16, BATCH_BYTES / max(bytes_per_row, 1))))


def rows_where(batches: Iterable[pa.RecordBatch], mask: np.ndarray[Any, Any]) -> Iterator[pa.RecordBatch]:
    """The rows of a stream where the mask is true, with their original cells; no further than the last is read."""
    start = 0
    for batch in batches:
        if not mask[start:].any():
            return
        part = mask[start : start + batch.num_rows]
        start += batch.num_rows
        if part.any():
            yield filtered(batch, part)


WORTH_IT = 64 << 20
"""From this size on a file takes longer to check than workers take to start (half a second)."""


def worth_workers(path: str | None, stored_bytes: int | None = None) -> int:
    """How many processes a file deserves, or a table of files of so many bytes: one a core if it is large
    (AGENT_EVAL_SCHEMA_JOBS sets how many)."""
    if path is None or not sys.executable:  # no interpreter: Python is embedded
        return 1
    if (os.path.getsize(path) if stored_bytes is None else stored_bytes) < WORTH_IT:
        return 1
    given = os.environ.get("AGENT_EVAL_SCHEMA_JOBS", "")
    return max(int(given), 1) if given.isdecimal() else _cores()


def _cores() -> int:
    # the cores that this process may use, where the system says so
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
