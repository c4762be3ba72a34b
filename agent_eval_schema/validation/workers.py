"""Large data on all cores; the validation results are collected here.

Of a file, each process reads and checks its share:

    process k of n     every n-th unit of the file             (a unit: a row group of Parquet, else a batch)
    this process       is number 0; it has the first few units to itself while the others start, and takes the results
                       in the order of the units, so that they are those of one process

What travels is small: a path and a plan there, a few bytes a row back. Of data that only this process can read, such
as a DataFrame, the batches themselves are sent, each to a process that is free; this process checks those for which
none is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.arrow import pack, unpack
from agent_eval_schema.io.source import HEAD_START_BYTES, Share, Source, units_of
from agent_eval_schema.runtime.processes import Worker, in_order, received
from agent_eval_schema.validation.plan import Plan


class Job(Struct, frozen=True):
    """The job of a worker: the file, the plan of the validation, and the share of the worker."""

    path: str
    plan: Plan
    share: Share


AHEAD = 2
"""The batches that a worker has at a time: one that it checks, and the next."""


def check_with_workers(
    source: Source, path: str, plan: Plan, workers: int, head_start: int = HEAD_START_BYTES
) -> Iterator[pa.RecordBatch]:
    """The checked batches of a file, in order. Raises EvalSetError if a worker could not do its share."""
    from agent_eval_schema.validation.kernel import check_batch

    first, *rest = (Share(k, workers, head_start) for k in range(workers))
    others = [Worker("agent_eval_schema.validation.workers:check_share", _job(path, plan, share)) for share in rest]
    own = ((unit, check_batch(batch, plan)) for unit, batch in units_of(source, first))
    try:
        for _, checked in in_order([own, *map(_parts, others)]):
            yield checked
    finally:
        for worker in others:
            worker.stop()


def _job(path: str, plan: Plan, share: Share) -> bytes:
    return msgspec.msgpack.encode(Job(path, plan, share))


def _parts(worker: Worker) -> Iterator[tuple[int, pa.RecordBatch]]:
    return ((unit, unpack(payload)) for unit, payload in worker.messages())


def check_share(job: bytes) -> Iterator[tuple[int, bytes]]:
    """In the worker: its share of the file, checked; each batch with the number of its unit."""
    from agent_eval_schema.io.files import open_file
    from agent_eval_schema.validation.kernel import check_batch

    told = msgspec.msgpack.decode(job, type=Job)
    for unit, batch in units_of(open_file(told.path).quoting(told.plan.values), told.share):
        yield unit, pack(check_batch(batch, told.plan), None)


# ---------------------------------------------------------------------------------------------------------------------
# data that only this process can read
def check_sent(batches: Iterable[pa.RecordBatch], plan: Plan, workers: int) -> Iterator[pa.RecordBatch]:
    """The checked batches, in order. Raises EvalSetError if a worker could not do its share."""
    from agent_eval_schema.validation.kernel import check_batch

    job = msgspec.msgpack.encode(plan)
    others = [Worker("agent_eval_schema.validation.workers:check_received", job, fed=True) for _ in range(1, workers)]
    answers = {worker: _answers(worker) for worker in others}
    waiting: deque[Worker | pa.RecordBatch] = deque()  # the batches in order: checked, or who checks them

    def checked_of(entry: Worker | pa.RecordBatch) -> pa.RecordBatch:
        return next(answers[entry]) if isinstance(entry, Worker) else entry

    try:
        for batch in batches:
            free = next((worker for worker in others if worker.free(AHEAD)), None)
            if free is None:
                waiting.append(check_batch(batch, plan))
            else:
                free.send(partial(pack, batch, None))
                waiting.append(free)
            while waiting and _is_here(waiting[0]):
                yield checked_of(waiting.popleft())
        for worker in others:
            worker.finish()
        yield from map(checked_of, waiting)
    finally:
        for worker in others:
            worker.stop()


def _is_here(entry: Worker | pa.RecordBatch) -> bool:
    return not isinstance(entry, Worker) or entry.has_message()


def _answers(worker: Worker) -> Iterator[pa.RecordBatch]:
    for started, (_, payload) in enumerate(worker.messages()):
        if started:
            yield unpack(payload)


def check_received(plan: bytes) -> Iterator[tuple[int, bytes]]:
    """In the worker: that it has started, then each batch that it is sent, checked."""
    from agent_eval_schema.validation.kernel import check_batch

    how = msgspec.msgpack.decode(plan, type=Plan)
    yield 0, b""
    for unit, packed in enumerate(received(), 1):
        yield unit, pack(check_batch(unpack(packed), how), None)
