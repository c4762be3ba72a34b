"""A validation: a source, its plan, and what was counted of it. Every result of the package observes one.

    source ──prepare, remarks──▶ batches ──check, where the rows are──▶ checked batches ──▶ ReportBuilder
                                                                             │
              Report · Snapshot · Facts · prepared rows · Conversion · rows of a build ◀──┘

The rows are checked once. An observer gets each batch when it has been counted, with the final validity of its rows: an
ID that an earlier row has makes a row invalid. What a result needs of the cells afterwards is read from the source
again: a run keeps a few bytes per row, never cells.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import filtered, packed, unpack
from agent_eval_schema.cells.notes import NOTE, own_columns
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.format import identity
from agent_eval_schema.formats.mlflow import WRITTEN_ANEW
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io import source as source_
from agent_eval_schema.io.source import (
    BatchFunction,
    Share,
    Source,
    first_rows,
    rows_where,
    schema_of,
    size_of,
    units_of,
    worth_workers,
)
from agent_eval_schema.issues import Issue
from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import Support, metrics_of, support_of
from agent_eval_schema.render.phrases import Call
from agent_eval_schema.render.report.summary import Excerpt, Location
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.runtime.processes import ENDED_EARLY, Worker, in_order, received
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.text.privacy import quoting
from agent_eval_schema.validation.checked_batch import VERDICT, rows_of
from agent_eval_schema.validation.excerpts import excerpts
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report_builder import ReportBuilder

if TYPE_CHECKING:
    import pandas as pd

    from agent_eval_schema.io.work_folder import PartsFolder


# ---------------------------------------------------------------------------------------------------------------------
# large data on all cores; the validation results are collected here
#
# Of a file, each process reads and checks its share:
#
#     process k of n     every n-th unit of the file             (a unit: a row group of Parquet, else a batch)
#     this process       is number 0; it has the first few units to itself while the others start, and takes the results
#                        in the order of the units, so that they are those of one process
#
# What travels is small: a path and a plan there, a few bytes a row back. Of data that only this process can read, such
# as a DataFrame, the batches themselves are sent: each is checked by the process that takes it first.
Job = tuple[str, Plan, Share]
"""The job of a worker: the file, the plan of the validation, and the share of the worker."""


def check_with_workers(units: Iterable[Numbered], share: Share, path: str, plan: Plan) -> Iterator[pa.RecordBatch]:
    """The checked batches of a file, in order; the units are those of this process, which has the share of number 0.
    Raises EvalSetError if a worker could not do its share."""
    jobs: list[Job] = [(path, plan, replace(share, worker=k)) for k in range(1, share.workers)]
    run = "agent_eval_schema.validation.checked_run:check_share"
    others = [Worker(run, msgspec.msgpack.encode(job)) for job in jobs]
    parts = [((unit, unpack(payload)) for unit, payload in worker.messages()) for worker in others]
    own = ((unit, check_batch(batch, plan)) for unit, batch in units)
    try:
        for _, checked in in_order([own, *parts]):
            yield checked
    finally:
        for worker in others:
            worker.stop()


def check_share(job: bytes) -> Iterator[tuple[int, pa.Buffer]]:
    """In the worker: its share of the file, checked; each batch with the number of its unit."""
    from agent_eval_schema.io.files import open_file

    path, plan, share = msgspec.msgpack.decode(job, type=Job)
    for unit, batch in units_of(open_file(path).quoting(plan.values), share):
        yield unit, packed(check_batch(batch, plan))


# ---------------------------------------------------------------------------------------------------------------------
# data that only this process can read
Numbered: TypeAlias = tuple[int, pa.RecordBatch]


def check_sent(batches: Iterable[pa.RecordBatch], plan: Plan, workers: int) -> Iterator[pa.RecordBatch]:
    """The checked batches, in order. Raises EvalSetError if a worker could not do its share."""
    untaken: SimpleQueue[Numbered | None] = SimpleQueue()
    helpers = [_BatchWorker(plan, untaken) for _ in range(1, workers)]
    early: dict[int, pa.RecordBatch] = {}
    following = 0
    try:
        for unit, checked in _checked_by_all(batches, plan, untaken, helpers):
            early[unit] = checked
            while following in early:
                yield early.pop(following)
                following += 1
    finally:
        for helper in helpers:
            helper.stop()


def _checked_by_all(
    batches: Iterable[pa.RecordBatch],
    plan: Plan,
    untaken: SimpleQueue[Numbered | None],
    helpers: Sequence[_BatchWorker],
) -> Iterator[Numbered]:
    """The checked batches as they become ready: each is checked by whoever takes it first."""

    def check_one() -> Iterator[Numbered]:
        try:
            numbered = untaken.get_nowait()
        except Empty:  # a worker was quicker
            return
        assert numbered is not None
        unit, batch = numbered
        yield unit, check_batch(batch, plan)

    for numbered in enumerate(batches):
        untaken.put(numbered)
        # enough batches per worker wait that no worker has to, while this process checks one
        if untaken.qsize() > 2 * len(helpers):
            yield from check_one()
        for helper in helpers:
            yield from helper.answers()
    while not untaken.empty():
        yield from check_one()
        for helper in helpers:
            yield from helper.answers()
    for _ in helpers:
        untaken.put(None)
    for helper in helpers:
        yield from helper.last_answers()


class _BatchWorker:
    """A worker that takes batches of those that are not taken yet, one after the other."""

    def __init__(self, plan: Plan, untaken: SimpleQueue[Numbered | None]) -> None:
        self._untaken = untaken
        self._units: deque[int] = deque()
        run, job = "agent_eval_schema.validation.checked_run:check_received", msgspec.msgpack.encode(plan)
        self._worker = Worker(run, job, more=self._taken())
        self._messages = self._worker.messages()

    def _taken(self) -> Iterator[pa.Buffer]:
        while (numbered := self._untaken.get()) is not None:
            unit, batch = numbered
            self._units.append(unit)
            yield packed(batch)

    def answers(self) -> Iterator[Numbered]:
        """What was checked until now."""
        while self._worker.has_message() and (message := next(self._messages, None)) is not None:
            yield self._units.popleft(), unpack(message.payload)

    def last_answers(self) -> Iterator[Numbered]:
        """What is still to come when there is nothing more to take: of a worker that has not started, nothing."""
        if self._worker.has_started:
            for message in self._messages:
                yield self._units.popleft(), unpack(message.payload)
        if self._units:
            raise EvalSetError(ENDED_EARLY)

    def stop(self) -> None:
        self._worker.stop()
        self._untaken.put(None)


def check_received(plan: bytes) -> Iterator[tuple[int, bytes | pa.Buffer]]:
    """In the worker: that it has started, then each batch that it is sent, checked."""
    decoded = msgspec.msgpack.decode(plan, type=Plan)
    yield 0, b""
    for unit, batch in enumerate(received(), 1):
        yield unit, packed(check_batch(unpack(batch), decoded))


# ---------------------------------------------------------------------------------------------------------------------
# the run
Check: TypeAlias = Callable[..., pa.RecordBatch]
"""A batch and a plan → as many rows, which begin with the columns of VERDICT. Picklable: it runs where the rows are."""

Pairs: TypeAlias = Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]
"""Batches of a source, each with its checked batch."""

ISSUES_COLUMN = "_issues"
"""The column that is added to the cells of an invalid row."""


class CheckedRun:
    """One validation of a source: its rows are checked once, and counted.

    `opened` is the source as it was given; `source` is prepared as its format requires, with the remarks of the format;
    `plan` is that of the report, `builder` has the counts. `check` runs on each batch in place of the validation alone;
    `jobs` is the number of processes (0: one per core if the first batches show that it pays). `satisfied` are rules
    that nothing can violate any more, so that no memory is needed to compare rows; `keep` is the number of issues that
    are kept (None: all, of a file up to a limit). With `parts`, checked batches are kept there, with the normalized
    rows, and not made again.
    """

    def __init__(
        self,
        source: Source,
        plan: Plan,
        *,
        check: Check = check_batch,
        jobs: int = 0,
        satisfied: Collection[str] = (),
        keep: int | None = None,
        parts: PartsFolder | None = None,
    ) -> None:
        self.opened, self.source = source, _prepared(source, plan)
        self.plan = replace(plan, columns=False, beside_traces=False, figures=True)
        self._first, self._check, self._jobs = plan if parts is None else replace(plan, columns=True), check, jobs
        self._parts = parts
        self.builder = ReportBuilder(self.source, plan, keep=keep, satisfied=satisfied)
        self.seconds, self._start = 0.0, time.perf_counter()

    @property
    def call(self) -> Call:
        """The data and the options of the call, for advice."""
        return Call(self.source.name, self.source.options)

    # the one pass

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Check and count all batches, in order; the rows stay where they are: in other processes, or on Spark."""
        source, check = self.source, self._checking(self._first, self._check)
        # workers do nothing else
        is_here = source.remote is None and self._check is check_batch and self._parts is None
        workers = (self._jobs or worth_workers(size_of(source), measured=True)) if is_here else 1
        if source.remote is not None:
            checked = source.remote.map(check)
        elif workers > 1:
            checked = self._with_workers(workers)
        else:
            checked = (checked for _, checked in _stream(source, source.batches(), check))
        yield from map(self.add, checked)

    def _with_workers(self, workers: int) -> Iterator[pa.RecordBatch]:
        """The checked batches. Unless the number of processes was given, this one is alone until what the first batches
        took shows that the rest is worth the start of others."""
        source, plan = self.source, self._first
        path = None if source.differs_from_file or source.in_order else source.path
        share = Share(0, workers) if self._jobs else Share(0, workers, 0, sys.maxsize)
        units = _read_ahead(units_of(source, share) if path is not None else enumerate(source.batches()))
        if not self._jobs:
            rows, seconds, start = 0, 0.0, time.perf_counter()
            for unit, batch in units:
                checked = check_batch(batch, plan)
                seconds, rows = seconds + time.perf_counter() - start, rows + batch.num_rows
                yield checked
                read = source.read_share(rows) if source.read_share is not None else None
                if read is None or seconds * (1 / max(read, 1e-9) - 1) >= source_.WORTH_SECONDS:
                    share.first = unit + 2 + int(source_.START_SECONDS * (unit + 1) / seconds)  # one is read ahead
                    break
                start = time.perf_counter()
            else:
                return
        if path is not None:
            yield from check_with_workers(units, share, path, plan)
        else:
            yield from check_sent((batch for _, batch in units), plan, workers)

    def pairs(self) -> Pairs:
        """Check and count all batches, in order and in this process: each batch of the source, and checked."""
        for batch, checked in _stream(self.source, self.source.batches(), self._checking(self._first, self._check)):
            yield batch, self.add(checked)

    def positions(self, start: int, size: int) -> np.ndarray[Any, Any]:
        """The positions in the data of the rows of a batch."""
        return np.arange(start, start + size)

    def add(self, checked: pa.RecordBatch) -> pa.RecordBatch:
        """Count a batch that was checked elsewhere; returns it with the final validity of its rows."""
        repeated = self.builder.add(checked)
        self.seconds = time.perf_counter() - self._start
        return with_invalid(checked, repeated)

    # what was counted

    def issues(self) -> Iterator[Issue]:
        """All issues by row, those of the dataset last; if not all are kept, the source is checked again."""
        yield from self.builder.take_issues() if self.builder.holds_all_issues else self.every_issue()

    def coverage(self, system: str = "all") -> list[Support]:
        """How many rows support each metric of a system."""
        return list(map(self.coverage_of, metrics_of(system)))

    def coverage_of(self, metric: Metric) -> Support:
        """The same of one metric, which need not be in the catalog."""
        return support_of(metric, self.builder.usable_masks, self.builder.row_count, self.plan.outputs)

    @property
    def index(self) -> pd.Index:
        """The index of a DataFrame; for other data the positions."""
        import pandas as pd

        own: pd.Index | None = self.source.index
        return pd.RangeIndex(self.builder.row_count, name="row") if own is None else own

    # the source once more

    @cached_property
    def read_schema(self) -> pa.Schema:
        """The columns of the data under their canonical names, as its format reads it."""
        read = find_format(self.plan.format).read
        # a format adds columns for the rows that contain more than its fields read: any batch may have others
        return schema_of(self.source, read, ragged=read is not identity)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the normalized rows: the canonical ones, then those that are passed through."""
        beside = (f for f in self.read_schema if f.name not in COLUMNS)
        return pa.schema([*ROW_SCHEMA, *beside], metadata=ROW_SCHEMA.metadata)

    def normalized(self) -> Iterator[pa.RecordBatch]:
        """The normalized rows, made where the rows are."""
        return map(rows_of, self._checked_again(replace(self.plan, columns=True)))

    def reread(self, mask: np.ndarray[Any, Any] | None = None) -> Pairs:
        """The batches of the source, checked and normalized; with a mask only the rows where it is true."""
        batches = self.source.batches()
        rows = batches if mask is None else rows_where(batches, mask)
        return _stream(self.source, rows, partial(check_batch, plan=replace(self.plan, columns=True)))

    def every_issue(self) -> Iterator[Issue]:
        """The issues one by one, in the order of the rows, those of the dataset last."""
        builder = ReportBuilder(self.source, self.plan, keep=_ALL)
        for checked in self._checked_again(self.plan):
            builder.add(checked)
            yield from builder.take_issues()
            builder.forget_issues()
        builder.finish()
        yield from builder.take_issues()

    def invalid_rows(self) -> Iterator[pa.RecordBatch]:
        """The invalid rows, their original cells, with their issues (those of rules that compare rows too)."""
        builder = ReportBuilder(self.source, self.plan, keep=_ALL)
        for batch, checked in _stream(self.source, self.source.batches(), self._checking(self.plan)):
            start = builder.row_count
            builder.add(checked)
            issues = builder.take_issues()
            notes = by_key(((i.row or 0) - start, {f.name: getattr(i, f.name) for f in NOTE}) for i in issues)
            builder.forget_issues()
            column = pa.array([notes.get(i) for i in range(batch.num_rows)], pa.list_(NOTE))
            cells = batch.select([i for i in own_columns(batch.schema) if batch.schema.field(i).name != ISSUES_COLUMN])
            valid = self.builder.valid[start : start + batch.num_rows]
            yield filtered(cells.append_column(ISSUES_COLUMN, column), ~valid)

    def lines(self, issues: Iterable[Issue]) -> dict[int, int]:
        """The lines of the file on which the rows of these issues begin; none if the data has no lines or is gone."""
        return self.lines_of({issue.row for issue in issues if issue.row is not None})

    def lines_of(self, rows: Iterable[int]) -> dict[int, int]:
        """The same of rows."""
        return or_if_missing(lambda: self.source.lines(rows) if self.source.lines else {}, {})

    def excerpts(self, issues: Iterable[Issue]) -> dict[Location, Excerpt]:
        """The parts of the cells that these issues are about; none where values are hidden, or if the data is gone."""
        if not self.plan.values:
            return {}
        return or_if_missing(lambda: excerpts(issues, self.source.batches(), find_format(self.plan.format).read), {})

    def _checking(self, plan: Plan, check: Check = check_batch) -> BatchFunction:
        """What checks the batches of the source in order."""
        function = partial(check, plan=plan)
        return function if self._parts is None else self._parts.resuming(function)

    def _checked_again(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        check = self._checking(plan)
        if self.source.remote is not None:
            return self.source.remote.map(check)
        return (checked for _, checked in _stream(self.source, self.source.batches(), check))


def with_invalid(checked: pa.RecordBatch, rows: Sequence[int]) -> pa.RecordBatch:
    """The batch with these rows as invalid ones, too."""
    if not len(rows):
        return checked
    at = VERDICT.get_field_index("valid")
    valid = np.asarray(checked.column(at)).astype(bool)
    valid[rows] = False
    columns = [*checked.columns[:at], pa.array(valid), *checked.columns[at + 1 :]]
    return pa.RecordBatch.from_arrays(columns, schema=checked.schema)


T = TypeVar("T")


def or_if_missing(read: Callable[[], T], otherwise: T) -> T:
    """What is read of the source once more; `otherwise` if it is gone: a result can outlive its file."""
    try:
        return read()
    except (EvalSetError, OSError):
        return otherwise


_ALL = 1 << 62
"""The number of issues to keep, where every one is kept."""


def _prepared(source: Source, plan: Plan) -> Source:
    """The source with the remarks of its format, except for what is rewritten where rows are passed on."""
    form = find_format(plan.format)
    source = form.prepare(source).quoting(plan.values)
    if form.remarks is None:
        return source
    with quoting(plan.values):
        findings = form.remarks(first_rows(source))
    remarks = [finding for finding in findings if not (plan.complete and finding.rule.code in WRITTEN_ANEW)]
    return replace(source, remarks=(*source.remarks, *remarks)) if remarks else source


def _stream(source: Source, batches: Iterable[pa.RecordBatch], check: BatchFunction) -> Pairs:
    """Each of these batches of a source and what the check makes of it, in order."""
    for batch in batches if source.kind in _IN_MEMORY else _read_ahead(batches):
        yield batch, check(batch)


_IN_MEMORY = frozenset(["arrow", "list", "pandas"])
"""Kinds of sources whose batches are read without waiting: a thread of their own would only compete for Python."""


def _read_ahead(items: Iterable[T]) -> Iterator[T]:
    """The items, in order; the next one is read while this one is checked, never in this thread: in one that writes a
    Delta table, none can be read."""
    with ThreadPoolExecutor(1) as reader:
        source = iter(items)
        coming = reader.submit(next, source, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, source, None)
            yield item
