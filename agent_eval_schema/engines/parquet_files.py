"""Parquet → batches, one page at a time: memory does not grow with the row group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from agent_eval_schema.cells import (
    without_marks,
)
from agent_eval_schema.engines.streams import CHUNK, Position
from agent_eval_schema.frames import BATCH_BYTES, Share, rows_per_batch
from agent_eval_schema.issues import EvalSetError


@contextmanager
def _parquet(path: str) -> Iterator[pq.ParquetFile]:
    try:
        # A buffered stream reads page by page; without it a whole row group's columns would be in memory.
        with open(path, "rb") as file, pq.ParquetFile(file, buffer_size=CHUNK, pre_buffer=False) as table:
            yield table
    except (OSError, pa.ArrowException) as error:
        raise EvalSetError(f"{path}: cannot be read as Parquet: {error}") from error


def parquet_batches(path: str, position: Position | None = None) -> Iterator[pa.RecordBatch]:
    with _parquet(path) as file:
        if position is not None:
            position.rows = file.metadata.num_rows
        if file.metadata.num_rows == 0:
            yield without_marks(pa.RecordBatch.from_pylist([], schema=file.schema_arrow))
        for batch in file.iter_batches(batch_size=_step(file)):
            yield without_marks(batch)


def parquet_shares(path: str, share: Share) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Every row group is a unit, so that a worker only reads its own; a file of few groups is shared batch by batch."""
    with _parquet(path) as file:
        groups = file.metadata.num_row_groups
        if groups < 4 * share.workers:
            units = enumerate(parquet_batches(path))
            yield from ((i, b) for i, b in units if share.has(i, BATCH_BYTES))
            return
        # asked once: the metadata of a file of many groups takes longer to go through than one of them
        size, step = _bytes(file) / groups, _step(file)
        for group in range(groups):
            if share.has(group, size):
                for batch in file.iter_batches(batch_size=step, row_groups=[group]):
                    yield group, without_marks(batch)


def _bytes(file: pq.ParquetFile) -> int:
    return sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))


def _step(file: pq.ParquetFile) -> int:
    return rows_per_batch(_bytes(file) / max(file.metadata.num_rows, 1))


def parquet_columns(path: str) -> list[str]:
    with _parquet(path) as file:
        return list(file.schema_arrow.names)


def parquet_places(path: str, share: Share) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The batches of a share, each with its row group and its number in that group: the same numbers for any number of
    workers."""
    with _parquet(path) as file:
        groups, step = file.metadata.num_row_groups, _step(file)
        by_batch = groups < 4 * share.workers  # too few groups to go round
        for group in range(groups):
            if not by_batch and group % share.workers != share.worker:
                continue
            for number, batch in enumerate(file.iter_batches(batch_size=step, row_groups=[group])):
                if not by_batch or (group + number) % share.workers == share.worker:
                    yield group, number, without_marks(batch)
