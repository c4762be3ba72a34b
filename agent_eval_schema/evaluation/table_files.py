"""The table of a result → Parquet, part by part: scores as numbers, cells with objects as JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agent_eval_schema.cells import make_batch
from agent_eval_schema.engines.writing import fitted
from agent_eval_schema.frames import column_name, open_source


def write_parts(path: str, parts: Iterable[pd.DataFrame]) -> None:
    """Write the parts of a table into one file. Its columns, and their types, are those of the first part; a column
    that only holds texts and objects is text."""
    batches = chain.from_iterable(map(_batches, parts))
    first = next(batches, None) or make_batch({}, {}, 0)
    schema = pa.schema([(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in first.schema])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in chain([first], batches):
            writer.write_table(fitted(batch, schema))


def _batches(part: pd.DataFrame) -> Iterator[pa.RecordBatch]:
    named = part.set_axis([column_name(c) for c in part.columns], axis=1)
    return open_source(named).batches()
