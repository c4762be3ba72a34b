"""The table of a result → a file, part by part: scores as numbers; cells with objects as JSON, which is text where the
kind of file has no objects. Columns, and their types, are those of the first part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.arrow import fitted
from agent_eval_schema.io.atomic import replacing, require_place
from agent_eval_schema.io.records import column_name
from agent_eval_schema.io.write import write_batches


def write_result_parquet(path: str, parts: Iterable[pd.DataFrame]) -> None:
    """Write the parts into a Parquet file of any name. A column that only holds texts and objects is text."""
    require_place(path)
    schema, batches = _stream(parts)
    with replacing(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(fitted(batch, schema))


def write_result_table(path: str, parts: Iterable[pd.DataFrame]) -> None:
    """Write the parts into a CSV, JSONL or Parquet file, by its ending. Raises EvalSetError for another one."""
    schema, batches = _stream(parts)
    write_batches(path, batches, schema)


def _stream(parts: Iterable[pd.DataFrame]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    batches = chain.from_iterable(map(_batches, parts))
    first = next(batches, None) or pa.RecordBatch.from_pylist([])
    schema = pa.schema([(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in first.schema])
    return schema, chain([first], batches)


def _batches(part: pd.DataFrame) -> Iterator[pa.RecordBatch]:
    named = part.set_axis([column_name(c) for c in part.columns], axis=1)
    return open_source(named).batches()
