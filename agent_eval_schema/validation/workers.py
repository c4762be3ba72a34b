"""Large data on all cores; the validation results are collected here.

Of a file, each process reads and checks its share:

    process k of n     every n-th unit of the file             (a unit: a row group of Parquet, else a batch)
    this process       is number 0; it has the first few units to itself while the others start, and takes the results
                       in the order of the units, so that they are those of one process

What travels is small: a path and a plan there, a few bytes a row back. Of data that only this process can read, such
as a DataFrame, the batches themselves are sent: each is checked by the process that takes it first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import TypeAlias

import msgspec
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.arrow import packed, unpack
from agent_eval_schema.io.source import HEAD_START_BYTES, Share, Source, units_of
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.processes import ENDED_EARLY, Worker, in_order, received
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan


class Job(Struct, frozen=True):
    """The job of a worker: the file, the plan of the validation, and the share of the worker."""

    path: str
    plan: Plan
    share: Share


def check_on_all_cores(source: Source, plan: Plan, workers: int) -> Iterator[pa.RecordBatch]:
    """The checked batches of a source, in order, by so many processes. Raises EvalSetError if a worker could not do its
    share."""
    if source.path is None or source.fixed or source.in_order:
        return check_sent(source.batches(), plan, workers)
    return check_with_workers(source, source.path, plan, workers)


STOCK = 2
"""The batches per worker that wait for who takes them, so that none has to wait while this process checks one."""


def check_with_workers(
    source: Source, path: str, plan: Plan, workers: int, head_start: int = HEAD_START_BYTES
) -> Iterator[pa.RecordBatch]:
    """The checked batches of a file, in order. Raises EvalSetError if a worker could not do its share."""
    first, *rest = (Share(k, workers, head_start) for k in range(workers))
    jobs = (msgspec.msgpack.encode(Job(path, plan, share)) for share in rest)
    others = [Worker("agent_eval_schema.validation.workers:check_share", job) for job in jobs]
    parts = [((unit, unpack(payload)) for unit, payload in worker.messages()) for worker in others]
    own = ((unit, check_batch(batch, plan)) for unit, batch in units_of(source, first))
    try:
        for _, checked in in_order([own, *parts]):
            yield checked
    finally:
        for worker in others:
            worker.stop()


def check_share(job: bytes) -> Iterator[tuple[int, pa.Buffer]]:
    """In the worker: its share of the file, checked; each batch with the number of its unit."""
    from agent_eval_schema.io.files import open_file

    options = msgspec.msgpack.decode(job, type=Job)
    for unit, batch in units_of(open_file(options.path).quoting(options.plan.values), options.share):
        yield unit, packed(check_batch(batch, options.plan))


# ---------------------------------------------------------------------------------------------------------------------
# data that only this process can read
Numbered: TypeAlias = tuple[int, pa.RecordBatch]


def check_sent(batches: Iterable[pa.RecordBatch], plan: Plan, workers: int) -> Iterator[pa.RecordBatch]:
    """The checked batches, in order. Raises EvalSetError if a worker could not do its share."""
    untaken: SimpleQueue[Numbered | None] = SimpleQueue()
    helpers = [_Helper(plan, untaken) for _ in range(1, workers)]
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
    batches: Iterable[pa.RecordBatch], plan: Plan, untaken: SimpleQueue[Numbered | None], helpers: Sequence[_Helper]
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
        if untaken.qsize() > STOCK * len(helpers):
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


class _Helper:
    """A worker that takes batches of those that are not taken yet, one after the other."""

    def __init__(self, plan: Plan, untaken: SimpleQueue[Numbered | None]) -> None:
        self._untaken = untaken
        self._units: deque[int] = deque()
        run, job = "agent_eval_schema.validation.workers:check_received", msgspec.msgpack.encode(plan)
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
