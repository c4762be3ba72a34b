"""Rows of an evaluation set, of any form → a file that everything here reads as the same rows.

pandas' own `to_parquet` makes one type of all objects of a column: it fails where a key holds a text in one row and a
number in the next, and gives every object the keys of all others. Here a cell with an object is JSON text, or, in JSON
and JSONL, the object itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from agent_eval_schema.cells import own_columns, reading_problems
from agent_eval_schema.engines.writing import require_writable, write_batches
from agent_eval_schema.frames import Source, open_source, schema_of
from agent_eval_schema.issues import EvalSetError


def write_eval_set(data: Any, path: str | os.PathLike[str]) -> int:
    """Write rows into a file: `.parquet`, `.jsonl`, `.json`, `.csv`, or a new Delta folder `….delta`.

    Parameters
    ----------
    data
        A pandas frame, an Arrow table or a list of dicts, such as what `prepare_for_evaluate` and
        `normalize_eval_set` give. In Parquet and CSV a column of Python objects (every column of a list) that holds
        anything but text is JSON text. The index of a frame is not written: `frame.reset_index()` makes a column of it.
    path
        Where to. The file is there whole, or not at all.

    Returns
    -------
    int
        How many rows were written. What takes an evaluation set takes the file: `prepare_for_evaluate(path)` makes of a
        written frame the same cells again.

    Raises
    ------
    EvalSetError
        The kind of file is not known, it cannot be written, two columns have one name, or a cell is no data.
    """
    out = os.fspath(path)
    require_writable(out)
    source = open_source(data)
    if source.elsewhere is not None:
        raise EvalSetError("a Spark DataFrame is not here: write it with its own df.write")
    if source.repeated_columns:
        raise EvalSetError(f"two columns are called {source.repeated_columns[0]!r}: only one could be written")
    return write_batches(out, _whole(source), schema_of(source.kind, source.batches()))


def _whole(source: Source) -> Iterator[pa.RecordBatch]:
    """The batches of the source, none of which lacks a cell that could not be read."""
    start = 0
    for batch in source.batches():
        for row, problems in enumerate(reading_problems(batch), start):
            for column, _, message in problems:
                raise EvalSetError(f"row {row}{f', column {column}' if column else ''}: {message}")
        start += batch.num_rows
        yield batch.select(own_columns(batch.schema))
