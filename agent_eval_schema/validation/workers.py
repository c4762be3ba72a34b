"""A large file on all cores: each process reads the file itself and checks its share; the validation results are
collected here.

    process k of n     every n-th unit of the file             (a unit: a row group of Parquet, else a batch)
    this process       is number 0; it has the first few units to itself while the others start, and takes the results
                       in the order of the units, so that they are those of one process

What travels is small: a path and a plan there, a few bytes a row back.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.arrow import pack, unpack
from agent_eval_schema.io.source import HEAD_START_BYTES, Share, Source, units_of
from agent_eval_schema.runtime.processes import Worker, in_order
from agent_eval_schema.validation.plan import Plan


class Job(Struct, frozen=True):
    """The job of a worker: the file, the plan of the validation, and the share of the worker."""

    path: str
    plan: Plan
    share: Share


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
