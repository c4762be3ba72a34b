"""A pandas frame ⇄ batches of cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.batch import make_batch, repeated
from agent_eval_schema.cells.cells import native
from agent_eval_schema.cells.notes import Notes, own_columns
from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.io.arrow import to_columns
from agent_eval_schema.io.records import bytes_per_row, column_name, encode_cells
from agent_eval_schema.io.source import Source, ranges, rows_where
from agent_eval_schema.issues import Issue
from agent_eval_schema.runtime.lazy import find_pandas
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA

if TYPE_CHECKING:
    import pandas as pd


def frame_of(batches: Iterable[pa.RecordBatch]) -> pd.DataFrame:
    """Original cells as a DataFrame of the values in the file."""
    import pandas as pd

    parts = []
    for batch in batches:
        names, own = batch.schema.names, own_columns(batch.schema)
        columns = {names[i]: pd.Series(native(batch, i), dtype="object") for i in own}
        parts.append(pd.DataFrame(columns, index=pd.RangeIndex(batch.num_rows)))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def numbered(frame: pd.DataFrame, mask: np.ndarray[Any, Any]) -> pd.DataFrame:
    """The frame with the rows' positions in the file as its index."""
    import pandas as pd

    frame.index = pd.Index(np.flatnonzero(mask), name="row")
    return frame


def from_pandas(frame: pd.DataFrame) -> Source:
    find_pandas()
    # a copy of the cells, not of what they refer to: later assignments to the frame do not reach the report
    copy = frame.copy()
    names = [column_name(c) for c in frame.columns]
    positions = {n: i for i, n in reversed(list(enumerate(names)))}

    def sample_bytes(sample: range) -> float:
        places = slice(sample.start, sample.stop, sample.step)
        columns = [copy.iloc[:, i].iloc[places].tolist() for i in range(copy.shape[1])]
        return bytes_per_row(zip(*columns, strict=True))

    def batches() -> Iterator[pa.RecordBatch]:
        for start, end in ranges(len(copy), sample_bytes):
            part, problems = copy.iloc[start:end], Notes()
            columns = {n: _series_cells(part.iloc[:, positions[n]], n, problems) for n in dict.fromkeys(names)}
            yield make_batch(columns, problems, len(part))

    def original(name: str) -> pd.Series[Any] | None:
        return copy.iloc[:, positions[name]] if name in positions else None

    return Source(
        "pandas",
        batches,
        lambda mask: copy[mask],
        columns=tuple(names),
        repeated_columns=repeated(names),
        original=original,
        index=copy.index,
        read_share=lambda rows: rows / max(len(copy), 1),
    )


def _series_cells(series: pd.Series[Any], name: str, problems: Notes) -> tuple[pa.Array, bool]:
    import pandas as pd

    kind = series.dtype
    is_local = isinstance(kind, pd.DatetimeTZDtype) and str(kind.tz) != "UTC"
    # Arrow has the number of a period, the fields of an interval, and a time of another zone may be one of another day
    if pd.api.types.is_object_dtype(kind) or is_local or isinstance(kind, pd.PeriodDtype | pd.IntervalDtype):
        return encode_cells(series.astype(object).to_numpy(), name, problems)
    try:
        if isinstance(kind, pd.DatetimeTZDtype):
            # Arrow's own conversion uses what pandas 3 deprecates
            naive = pa.array(series.dt.tz_localize(None), from_pandas=True)
            array = naive.cast(pa.timestamp(naive.type.unit, "UTC"))
        else:
            array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, UnicodeError):
        return encode_cells(series.astype(object).to_numpy(), name, problems)
    return (one_batch(pa.table({name: array})).column(0) if isinstance(array, pa.ChunkedArray) else array), False


def to_pandas(batches: Iterable[pa.RecordBatch], source: Source, added: Collection[str] = frozenset()) -> pd.DataFrame:
    """Normalized rows as a frame with the index of the source, if that is a frame: objects in cells are Python objects,
    absent is None (or NA in numbers). All columns except the canonical ones and those that a format `added` are the
    source's own."""
    import pandas as pd

    kinds, columns = to_columns(batches)
    own = {*COLUMNS, *added}
    series = {}
    for name, kind in kinds.items():
        original = source.original(name) if name not in own and source.original is not None else None
        if original is None:
            series[name] = _series(columns[name], kind)
        elif isinstance(original, pd.Series):  # passed through unchanged, its dtype too
            series[name] = original.reset_index(drop=True)
        else:
            series[name] = pd.Series(original, dtype="object")
    frame = pd.DataFrame(series)
    if source.index is not None:
        frame.index = source.index
    return frame


def canonical_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Canonical rows as a frame with the canonical columns, then the others that the first row has."""
    import pandas as pd

    names = dict.fromkeys([*COLUMNS, *(rows[0] if rows else ())])
    kinds = {f.name: f.type for f in ROW_SCHEMA}
    return pd.DataFrame({n: _series([row[n] for row in rows], kinds.get(n, pa.string())) for n in names})


def _series(values: list[Any], kind: pa.DataType) -> pd.Series[Any]:
    import pandas as pd

    if pa.types.is_integer(kind):
        return pd.Series(values, dtype="UInt64" if pa.types.is_unsigned_integer(kind) else "Int64")
    if pa.types.is_floating(kind):
        return pd.Series(values, dtype="float64")
    if pa.types.is_boolean(kind):
        return pd.Series(values, dtype="boolean")
    return pd.Series(values, dtype="object")


def issues_frame(issues: Iterable[Issue]) -> pd.DataFrame:
    import pandas as pd

    rows = list(issues)
    columns = Issue.__struct_fields__
    frame = pd.DataFrame({c: pd.Series([getattr(i, c) for i in rows], dtype="object") for c in columns})
    frame["row"] = pd.array([i.row for i in rows], dtype="Int64")
    frame["severity"] = pd.Series([str(i.severity) for i in rows], dtype="object")
    return frame


def with_new_rows(source: Source, batches: Callable[[], Iterator[pa.RecordBatch]]) -> Source:
    """The source with rows that are computed from its own, whose number and places they do not have."""
    return replace(
        source,
        batches=batches,
        take=lambda mask: frame_of(rows_where(batches(), mask)),
        can_hold_objects=True,
        in_order=True,
        ragged=True,
        # the number, the places and the columns of its own rows
        **dict.fromkeys(
            ("shares", "lines", "original", "index", "read_share", "remote", "columns", "file_of", "as_text", "sheet")
        ),
    )
