"""A large file on all cores: each process reads the file itself and checks its share; the verdicts come together here.

    process k of n     every n-th unit of the file             (a unit: a row group of Parquet, else a batch)
    this process       is number 0; it has the first few units to itself while the others start, and takes the results
                       in the order of the units, so that they are those of one process

What travels is small: a path and a plan there, a few bytes a row back.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator

import msgspec
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.engines.processes import Worker, in_order
from agent_eval_schema.frames import HEAD_START_BYTES, Share, Source
from agent_eval_schema.plan import Plan

WORTH_IT = 64 << 20
"""From this size on a file takes longer to check than workers take to start (half a second)."""


class Job(Struct, frozen=True):
    """What a worker is told: which file, how to check it, and which share."""

    path: str
    plan: Plan
    share: Share


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


def check_with_workers(
    source: Source, path: str, plan: Plan, workers: int, head_start: int = HEAD_START_BYTES
) -> Iterator[pa.RecordBatch]:
    """The checked batches of a file, in order. Raises EvalSetError if a worker could not do its share."""
    from agent_eval_schema.check import check_batch

    first, *rest = (Share(k, workers, head_start) for k in range(workers))
    others = [Worker("agent_eval_schema.engines.workers:check_share", _job(path, plan, share)) for share in rest]
    own = ((unit, check_batch(batch, plan)) for unit, batch in source.units(first))
    try:
        for _, checked in in_order([own, *map(_parts, others)]):
            yield checked
    finally:
        for worker in others:
            worker.stop()


def _job(path: str, plan: Plan, share: Share) -> bytes:
    return msgspec.msgpack.encode(Job(path, plan, share))


def _parts(worker: Worker) -> Iterator[tuple[int, pa.RecordBatch]]:
    return ((unit, read_batch(payload)) for unit, payload in worker.messages())


def check_share(job: bytes) -> Iterator[tuple[int, bytes]]:
    """In the worker: its share of the file, checked; each batch with the number of its unit."""
    from agent_eval_schema.check import check_batch
    from agent_eval_schema.engines.files import open_file

    told = msgspec.msgpack.decode(job, type=Job)
    for unit, batch in open_file(told.path).quoting(told.plan.values).units(told.share):
        yield unit, batch_bytes(check_batch(batch, told.plan))


def batch_bytes(batch: pa.RecordBatch) -> bytes:
    """The batch with its own schema: each names the columns that its part of the file has."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def read_batch(payload: bytes) -> pa.RecordBatch:
    """The batch that `batch_bytes` made."""
    return pa.ipc.open_stream(payload).read_next_batch()
