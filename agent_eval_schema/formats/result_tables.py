"""The table of a result → a file, part by part: scores as numbers; cells with objects as JSON, which is text where the
kind of file has no objects. Columns, and their types, are those of the first part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.records import column_name
from agent_eval_schema.io.write import write_batches

if TYPE_CHECKING:
    import pandas as pd


def write_result_table(path: str, parts: Iterable[pd.DataFrame]) -> int:
    """Write the parts into a file, by its extension; returns the number of rows. Raises EvalSetError for an unknown
    extension."""
    schema, batches = _stream(parts)
    return write_batches(path, batches, schema)


def _stream(parts: Iterable[pd.DataFrame]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    batches = chain.from_iterable(map(_batches, parts))
    first = next(batches, None) or pa.RecordBatch.from_pylist([])
    schema = pa.schema([(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in first.schema])
    return schema, chain([first], batches)


def _batches(part: pd.DataFrame) -> Iterator[pa.RecordBatch]:
    named = part.set_axis([column_name(c) for c in part.columns], axis=1)
    return open_source(named).batches()
