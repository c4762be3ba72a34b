"""The rows of a build on their way out: in larger batches, into a file, and read again from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from agent_eval_schema.cells.sizes import joined
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.work_folder import WorkFolder
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.places import ending_of
from agent_eval_schema.io.source import Source, rows_where
from agent_eval_schema.io.write import require_writable, write_batches

ROWS_AT_LEAST, BYTES_AT_LEAST = 1_024, 4 << 20
"""Rows are written in batches of one of these sizes or more, however few of them each part of the table has."""


def regrouped(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches, at least one (without rows, if there are none)."""
    rows = 0
    for batch in joined(batches, ROWS_AT_LEAST, BYTES_AT_LEAST):
        rows += batch.num_rows
        yield batch
    if not rows:
        yield pa.RecordBatch.from_pylist([], schema=schema)


def stored_rows(rows: Iterator[pa.RecordBatch], work: WorkFolder, out: str | None, schema: pa.Schema) -> Source:
    """Write the rows where they belong; gives the source that reads them again."""
    if out is not None:
        write_rows(out, rows, schema)
        return open_source(out)
    path = work.write_rows(rows)

    def batches() -> Iterator[pa.RecordBatch]:
        return work.read_rows(path)

    return Source("arrow", batches, lambda mask: frame_of(rows_where(batches(), mask)), nests=False)


def write_rows(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Stream rows into a Parquet or JSONL file, by its file extension, or else into a new Delta table; whole or not at
    all."""
    if ending_of(path):
        return write_batches(path, batches, schema)
    from agent_eval_schema.io.delta import write_delta

    return write_delta(path, batches, schema)


def require_out(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if rows cannot be written to `path`."""
    if ending_of(path):
        require_writable(path)
        return
    from agent_eval_schema.io.delta import require_new_delta

    require_new_delta(path)
