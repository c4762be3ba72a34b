"""A Source: where rows come from, as batches of cells, read as often as needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict, force_setattr, replace

from agent_eval_schema.cells.arrow import filtered
from agent_eval_schema.cells.notes import column_names, is_hidden
from agent_eval_schema.cells.sizes import batch_bytes, split_batches
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.atomic import FileState, require_uncut
from agent_eval_schema.issues import Finding
from agent_eval_schema.schema import CANONICAL, are_canonical
from agent_eval_schema.text.privacy import may_quote, without_quoting

BATCH_BYTES = 8 << 20
"""Batches are about this large: small enough for memory to stay flat, large enough for Arrow to be worth it."""

CUT_BYTES = 4 * BATCH_BYTES
"""Larger batches, from a reader that cannot choose the size, are cut."""

MAX_BATCH_ROWS = 8_192

HEAD_START_BYTES = 128 << 20
"""The bytes that a process validates, about, in the half second that another one takes to start."""


HEAD_ROWS = 64
"""The number of rows that determine what is known before the data is read, whatever the size of the batches: remarks
on the data, and its columns where each row may have columns of its own."""

BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch]
"""What makes a batch of another one, row by row; it can be pickled where the rows are elsewhere."""


# --- A Reading: what a call asks of its data. It lives with the data, so that no step asks for something else, and the
# advice of every step repeats it.
class Reading(Struct, frozen=True, omit_defaults=True):
    """How the data of a call are read and judged: the options that every function on evaluation datasets may have."""

    columns: Mapping[str, str] = {}
    format: str = "auto"
    outputs: str = "auto"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    show_values: bool = True
    max_cell_bytes: int | None = None

    def changed(self) -> dict[str, Any]:
        """The options that are not the defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(Reading(), name)}

    def words(self) -> dict[str, Any]:
        """The options that advice repeats, under the names of functions and of commands."""
        return {**self.changed(), **({} if self.show_values else {"no_values": True})}

    def require_agreement(self, other: Reading) -> None:
        """Raise EvalSetError if another call on the same data asks for something else."""
        for name, value in other.changed().items():
            if (own := getattr(self, name)) != value:
                raise EvalSetError(
                    f"{name}: the report was made with {name}={own!r}, this call asks for {value!r}: "
                    "leave the option out, or pass the data instead of the report"
                )


# --- the batches
class Batches:
    """Batches that are read as often as needed. Who looks at the head does not open the data once more: the next
    reading goes on behind it.

    Where rows vary, every batch has all columns of the head, and those that are known before (`names`): what is found
    in a row does not depend on the rows that share its batch.
    """

    def __init__(self, read: Callable[[], Iterator[pa.RecordBatch]], ragged: bool, names: Sequence[str] = ()) -> None:
        self._read, self._ragged, self._names = read, ragged, names if ragged else ()
        self._head: list[pa.RecordBatch] | None = None
        self._fields: list[pa.Field] | None = None
        self._rest: Iterator[pa.RecordBatch] = iter(())
        self._quotes = True

    def head(self) -> pa.RecordBatch | None:
        """The first batch, None if there is no row."""
        if not self._is_ahead():
            self._read_ahead()
        return self._head[0] if self._head else None

    def first_rows(self, most: int) -> list[pa.RecordBatch]:
        """The first rows, in batches; fewer if they are large."""
        self.head()
        assert self._head is not None
        parts, rows = list[pa.RecordBatch](), 0
        for at in count():
            if at == len(self._head):
                self._head += islice(self._rest, 1)
            if at == len(self._head) or rows >= most or sum(part.nbytes for part in parts) >= BATCH_BYTES:
                break
            parts.append(self._head[at].slice(0, most - rows))
            rows += self._head[at].num_rows
        return [batch for batch in parts if batch.num_rows]

    def _is_ahead(self) -> bool:
        """Whether there is a head; notes on one that was read while cells could be quoted may quote them."""
        return self._head is not None and self._quotes == may_quote()

    def _read_ahead(self) -> None:
        rest, head, self._quotes = self._read(), list[pa.RecordBatch](), may_quote()
        rows = size = 0
        for batch in rest:
            head.append(batch)
            if not self._ragged:
                break
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= HEAD_ROWS or size >= BATCH_BYTES:
                break
        fields = [field for batch in head for field in batch.schema if self._ragged and not is_hidden(field)]
        others = [pa.field(name, pa.string()) for name in self._names]
        first = {field.name: field for field in reversed([*fields, *others])}
        self._fields = [first[name] for name in dict.fromkeys(field.name for field in [*fields, *others])]
        self._rest = self._filled(chain(head, rest))
        self._head = list(islice(self._rest, len(head)))

    def _filled(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with all columns of the head, in their order."""
        missing = {field.name: field for field in self._fields or ()}
        first = list(missing)
        for batch in batches:
            names = batch.schema.names
            if names[: len(first)] != first:
                fields = missing | {field.name: field for field in batch.schema}
                columns = dict(zip(names, batch.columns, strict=True))
                nulls = {kind: pa.nulls(batch.num_rows, kind) for kind in {field.type for field in missing.values()}}
                arrays = [columns[n] if n in columns else nulls[field.type] for n, field in fields.items()]
                schema = pa.schema(fields.values(), metadata=batch.schema.metadata)
                batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            yield batch

    def __call__(self) -> Iterator[pa.RecordBatch]:
        if self._fields is None:
            self._read_ahead()
        head, rest = (self._head or [], self._rest) if self._is_ahead() else ([], self._filled(self._read()))
        self._head = None  # which is not kept: it would stay in memory
        while head:
            yield head.pop(0)
        yield from rest


Merged = list[tuple[int, int, int, int]]
"""Of merged cells the first column and line, and the last ones."""


class SheetPlace(Struct, frozen=True):
    """Where the rows of a workbook are: the part with their sheet, the lines of the header and of each row, and the
    place of each column."""

    path: str
    part: str
    merged: Merged
    state: FileState | None
    header: int = 0
    lines: list[int] = []
    columns: dict[str, int] = {}

    def refused(self, where: str, got: str) -> EvalSetError:
        return EvalSetError(f"{self.path}: {where}: expected a cell that can be replaced, got {got}: write .jsonl")


class Source(Struct, frozen=True):  # numpydoc ignore=PR01
    """An input that has been opened.

    It is returned by `traces_from_store` and is an input of `validate_eval_set` and of the other functions that take
    data. It has no public attributes.

    See Also
    --------
    traces_from_store : Return the traces of an MLflow tracking store.

    Examples
    --------
    >>> import mlflow
    >>> from agent_eval_schema import traces_from_store, validate_eval_set
    >>> experiment = mlflow.set_experiment("docs.Source")
    >>> with mlflow.start_span("agent"):
    ...     pass
    >>> source = traces_from_store("docs.Source")
    >>> validate_eval_set(source).row_count
    1
    """

    kind: str  # of container, such as "pandas" or "jsonl"
    batches: Callable[[], Iterator[pa.RecordBatch]]
    take: Callable[[np.ndarray[Any, Any]], Any]  # the rows of a mask, in the same kind of container, with their cells
    name: str | None = None  # of the file or table; None for data in memory
    data: Any = None  # what was opened: results come back in its kind of container
    reading: Reading = Reading()  # what the call asks of the data, by the settings of the repository too
    options: Mapping[str, Any] = {}  # of the call, as far as they are not the defaults: advice repeats them
    path: str | None = None  # of the local file (of a URL: of its copy)
    columns: tuple[str, ...] | None = None  # None if they are not known before the rows are read
    metadata: Mapping[bytes, bytes] | None = None  # of an Arrow schema
    can_hold_objects: bool = True  # whether a cell can hold an object, so that an object as a string is reported
    repeated_columns: tuple[str, ...] = ()
    original: Callable[[str], Any] | None = None  # a column of data in memory with its original cells
    index: Any = None  # of a DataFrame
    shares: Callable[[Share], Iterator[tuple[int, pa.RecordBatch]]] | None = None  # of a file with parts above batches
    differs_from_file: bool = False  # the batches differ from the file, so one process reads them
    renamed: tuple[tuple[str, str], ...] = ()  # by a fix
    lines: Callable[[Iterable[int]], dict[int, int]] | None = None  # of the file on which rows begin
    as_text: Callable[[Collection[str]], Source] | None = None  # with numbers of these columns as a sheet shows them
    sheet: SheetPlace | None = None  # of a workbook, where its rows are
    read_share: Callable[[int], float | None] | None = None  # the share of the data up to this number of rows
    stored_bytes: int | None = None  # of a table of several files
    remote: Remote | None = None  # the cluster that has the rows; they are validated there
    in_order: bool = False  # a batch depends on those before it, so one process reads all rows
    ragged: bool | None = None  # whether each row can have columns of its own (None: of a list and of JSON files)
    remarks: tuple[Finding, ...] = ()  # issues of the data as a whole
    turns_apart: bool = False  # the rows are turns of conversations, which are written as rows
    state: FileState | None = None  # of the file when it was opened
    files: tuple[str, ...] = ()  # the file of each row, if there are several
    file_of: Callable[[int], str | None] | None = None  # the file of a row, of a folder or glob

    def __post_init__(self) -> None:
        if self.ragged is None:
            force_setattr(self, "ragged", self.kind in ("list", "jsonl", "json"))
        if not isinstance(read := self.batches, Batches):
            name, state = self.name or "", self.state  # not `self`: a cycle would keep what the source has open

            def all_of() -> Iterator[pa.RecordBatch]:
                yield from split_batches(read(), BATCH_BYTES, CUT_BYTES)
                require_uncut(name, state)

            force_setattr(self, "batches", Batches(all_of, bool(self.ragged), self.columns or ()))

    def __repr__(self) -> str:
        return f"<Source: {self.name or self.kind}>"

    def head(self) -> pa.RecordBatch | None:
        """The first batch of rows, or None if there is no row."""
        assert isinstance(self.batches, Batches)
        return self.batches.head()

    def column_names(self) -> list[str]:
        """The names of all columns; if each row can have columns of its own, at least those of the first rows."""
        if self.columns is not None:
            return list(dict.fromkeys(self.columns))
        head = self.head()
        return [] if head is None else column_names(head.schema)

    def is_canonical(self) -> bool:
        return are_canonical(self.column_names(), self.metadata)

    def read_as(self, *, advised: bool = False, **changes: Any) -> Source:
        """The source as a step of the package reads it, which is not what the call asked for; where it is what the verb
        is for, advice repeats it (`advised`)."""
        source = replace(self, reading=replace(self.reading, **changes))
        return source.advising(**Reading(**changes).words()) if advised else source

    def advising(self, **words: Any) -> Source:
        """The source with more options of the call for advice to repeat, as far as they are not the defaults."""
        options = {name: value for name, value in words.items() if value not in (None, (), {}, "auto")}
        return replace(self, options={**options, **self.options}) if options else self

    def quoting(self, values: bool) -> Source:
        """The source with or without cell values in its issues."""
        if values:
            return self
        batches, shares = self.batches, self.shares
        return replace(
            self,
            batches=lambda: without_quoting(batches),
            shares=shares and (lambda share: without_quoting(lambda: shares(share))),
        )


def first_rows(source: Source, most: int = HEAD_ROWS) -> list[pa.RecordBatch]:
    """The first rows of a source, in batches: the same rows whatever the size of the batches is."""
    if source.remote is not None:
        return source.remote.first(most)
    assert isinstance(source.batches, Batches)
    return source.batches.first_rows(most)


def units_of(source: Source, share: Share) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches that one of several worker processes reads, each with the number of its unit: a batch or more."""
    if (shares := source.shares) is not None:
        return (
            (unit, piece) for unit, batch in shares(share) for piece in split_batches([batch], BATCH_BYTES, CUT_BYTES)
        )
    return ((i, batch) for i, batch in enumerate(source.batches()) if share.has(i, BATCH_BYTES))


class Remote(Protocol):
    """Rows that are not here but on a cluster: work goes to them, and only its results come here."""

    def first(self, most: int, /) -> list[pa.RecordBatch]:
        """The first rows, at most HEAD_ROWS, in batches."""

    def any(self, test: Callable[[pa.RecordBatch], bool], /) -> bool:
        """Whether the test, which can be pickled, is true of any batch."""

    def map(self, work: BatchFunction, /) -> Iterator[pa.RecordBatch]:
        """Run a picklable function on every batch, where the rows are; its results in the order of the rows."""


class Share(Struct):
    """What one of several workers checks: the units in turn, after the `first` ones and a head start (in bytes), which
    number 0 has to itself: it need not wait for the others to start."""

    worker: int
    workers: int
    head_start: float = HEAD_START_BYTES
    first: int = 0

    def has(self, unit: int, unit_bytes: float) -> bool:
        """Whether a unit of about this size belongs to the share."""
        alone = unit < self.first + int(self.head_start / max(unit_bytes, 1))
        return self.worker == (0 if alone else unit % self.workers)


def schema_of(source: Source, read: BatchFunction | None = None, ragged: bool = False) -> pa.Schema:
    """The columns of a source in Arrow (as `read` makes them, perhaps others of each batch: `ragged`); varying rows and
    Python objects are read through."""
    batches = source.batches() if read is None else map(read, source.batches())
    some = batches if ragged or source.ragged or source.kind == "pandas" else islice(batches, 1)
    schemas = [pa.schema([f.remove_metadata() for f in b.schema if not is_hidden(f)]) for b in some]
    schema = pa.unify_schemas(schemas, promote_options="permissive") if schemas else pa.schema([])
    return schema.with_metadata(CANONICAL if source.is_canonical() else None)


T = TypeVar("T")


def grouped(rows: Iterable[T], bytes_of: Callable[[T], int], most: int = BATCH_BYTES) -> Iterator[list[T]]:
    """The rows in lists, each as many as a batch has."""
    some, size = list[T](), 0
    for row in rows:
        some.append(row)
        size += bytes_of(row)
        if len(some) >= MAX_BATCH_ROWS or size >= most:
            yield some
            some, size = [], 0
    if some:
        yield some


def rows_per_batch(bytes_per_row: float) -> int:
    return int(min(MAX_BATCH_ROWS, max(16, BATCH_BYTES / max(bytes_per_row, 1))))


SAMPLED_ROWS = 64
"""The number of rows that determine how large a row is, and with it how many make a batch."""


def ranges(rows: int, sample_bytes: Callable[[range], float]) -> Iterator[tuple[int, int]]:
    """The starts and ends of the batches of data in memory. `sample_bytes` gives the mean size of some of its rows."""
    for first in range(0, rows, MAX_BATCH_ROWS):
        end = min(first + MAX_BATCH_ROWS, rows)
        step = rows_per_batch(sample_bytes(range(first, end, -(-(end - first) // SAMPLED_ROWS))))
        for start in range(first, end, step):
            yield start, min(start + step, end)


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
"""The size from which on data take longer than workers take to start; a validation measures it from a quarter on."""

WORTH_SECONDS = 4
"""What the rest of the data takes one process, if they are: of less, two cores that share a cache gain nothing."""

START_SECONDS = 0.5
"""What a worker takes to start."""


def size_of(source: Source) -> float:
    """The bytes of the data: of files as they are stored, of data in memory by the first rows; 0 if unknown."""
    if source.stored_bytes is not None:
        return source.stored_bytes
    if source.path is not None:
        return os.path.getsize(source.path)
    head = source.head()
    share = source.read_share(head.num_rows) if head is not None and source.read_share is not None else None
    return batch_bytes(head) / share if head is not None and share else 0


def worth_workers(size: float, measured: bool = False) -> int:
    """The number of processes for data of this size: one per core if it is large (or AGENT_EVAL_SCHEMA_JOBS)."""
    if not sys.executable or size < (WORTH_IT // 4 if measured else WORTH_IT):  # no interpreter: Python is embedded
        return 1
    jobs = os.environ.get("AGENT_EVAL_SCHEMA_JOBS", "")
    if jobs.isdecimal():
        return max(int(jobs), 1)
    # the cores that this process may use, where the system reports them
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
