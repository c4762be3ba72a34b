"""Tables of other libraries ⇄ Arrow: Polars, DuckDB, Hugging Face, and what has the Arrow PyCapsule interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text import jsontext

Back = Callable[[pa.Table], Any]
"""Makes a table of the library that the data is from."""


def to_arrow(data: Any, option: str) -> pa.Table | None:
    """The table in an object of another library; None if the object is not a table."""
    if _is_a(data, "datasets", "DatasetDict", "IterableDatasetDict"):
        names = list(data)
        hint = f"; use data[{names[0]!r}]" if names else ""
        raise EvalSetError(f"{option}: expected one split, got a DatasetDict of {', '.join(names)}{hint}")
    kind = _kind(data)
    if kind is None and (isinstance(data, type) or not _exchanges(data)):
        return None
    try:
        return pa.table(data) if kind is None else kind.to_arrow(data)
    except (pa.ArrowException, TypeError, ValueError):  # a column alone, or an array that is not a record batch
        return None


def like(data: Any) -> Back | None:
    """How an Arrow table becomes a table of the kind that the data is; None if the data is not a table of Arrow or of
    a library that exchanges tables with Arrow."""
    kind = _kind(data)
    if kind is not None:
        return kind.back
    return (lambda table: table) if _exchanges(data) and not _is_a(data, "pandas", "DataFrame") else None


def _exchanges(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


class _Kind(Struct, frozen=True):
    """A class of tables: its library and name, and the ways to and from Arrow."""

    library: str
    name: str
    to_arrow: Callable[[Any], pa.Table]
    back: Back


def _kind(data: Any) -> _Kind | None:
    return next((kind for kind in _KINDS if _is_a(data, kind.library, kind.name)), None)


def _is_a(data: Any, library: str, *names: str) -> bool:
    """Whether the class of an object, or one that it is derived from, has one of these names in the library."""
    return any(c.__name__ in names and c.__module__.partition(".")[0] == library for c in type(data).__mro__)


def _from_polars(frame: Any) -> pa.Table:
    import polars

    return frame.to_arrow(compat_level=polars.CompatLevel.oldest())  # views of text cannot be filtered by Arrow


def _to_polars(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


def _to_duckdb(table: pa.Table) -> Any:
    import duckdb

    return duckdb.from_arrow(table)


def _to_hugging_face(table: pa.Table) -> Any:
    """A dataset, which has no maps: they become JSON text."""
    from datasets import Dataset

    for at, field in enumerate(table.schema):
        if pa.types.is_map(field.type):
            texts = [None if v is None else jsontext.encode(dict(v)).decode() for v in table.column(at).to_pylist()]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return Dataset(table)


_KINDS = (
    _Kind("pyarrow", "Table", lambda table: table, lambda table: table),
    _Kind("pyarrow", "RecordBatch", lambda batch: pa.Table.from_batches([batch]), one_batch),
    _Kind("pyarrow", "RecordBatchReader", lambda reader: reader.read_all(), pa.Table.to_reader),
    _Kind("polars", "DataFrame", _from_polars, _to_polars),
    _Kind("polars", "LazyFrame", lambda f: _from_polars(f.collect()), lambda table: _to_polars(table).lazy()),
    # DuckDB 1.0 has no stream
    _Kind("duckdb", "DuckDBPyRelation", lambda r: pa.table(r) if _exchanges(r) else r.arrow(), _to_duckdb),
    _Kind("datasets", "Dataset", lambda dataset: dataset.with_format("arrow")[:], _to_hugging_face),
)
