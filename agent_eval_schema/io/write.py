"""Batches → a file, by its extension: Parquet, JSON Lines, JSON, CSV or a Delta folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pyarrow as pa

from agent_eval_schema.io.atomic import FileState, replacing, require_place
from agent_eval_schema.io.csv import Formulas, write_csv
from agent_eval_schema.io.json import write_json
from agent_eval_schema.io.jsonl import write_jsonl
from agent_eval_schema.io.parquet import write_parquet
from agent_eval_schema.io.places import compression_of, ending_of
from agent_eval_schema.issues import EvalSetError


def write_batches(
    path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema, read: FileState | None = None
) -> int:
    """Stream rows into a JSONL, JSON, CSV or Parquet file, or a new Delta folder `….delta`, by its file extension; to
    stdout (`"-"`) as JSON Lines. Returns the number of rows.

    `schema` names all columns: a batch may lack some, and then they are null. `read` is the state of the file that the
    rows come from: if it is the one that is replaced, it must not have changed.
    """
    require_writable(path)
    if ending_of(path) == DELTA:
        from agent_eval_schema.io.delta import write_delta

        return write_delta(path, batches, schema)
    formulas = Formulas()
    write = partial(write_csv, formulas=formulas) if ending_of(path) == ".csv" else _WRITERS[ending_of(path)]
    with replacing(path, read) as temporary:
        count = write(temporary, batches, schema)
    formulas.warn(path)
    return count


def require_writable(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if rows cannot be written to `path`."""
    ending = ending_of(path)
    if ending == DELTA:
        from agent_eval_schema.io.delta import require_new_delta

        return require_new_delta(path)
    require_place(path, stdout=True)
    if ending not in _WRITERS:
        known = " or ".join([*_WRITERS, DELTA])
        raise EvalSetError(f"{path}: unknown file extension: expected {known}")
    if compression_of(path) and _WRITERS[ending] is write_parquet:
        raise EvalSetError(f"{path}: expected {ending} without {compression_of(path)}: Parquet compresses its pages")
    return None


DELTA = ".delta"
"""The file extension that distinguishes the folder of a new Delta table from a file; one that is read needs none."""


def keeps_types(path: str) -> bool:
    """Whether a file of this extension distinguishes text from other values."""
    return ending_of(path) in (".jsonl", ".ndjson", ".json")


_WRITERS: dict[str, Callable[[str, Iterable[pa.RecordBatch], pa.Schema], int]] = {
    ".jsonl": write_jsonl,
    ".ndjson": write_jsonl,
    ".json": write_json,
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".pq": write_parquet,
}
