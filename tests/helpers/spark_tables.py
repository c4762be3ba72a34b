"""Tables on Spark in the order of rows in memory, and a watch on what the driver fetches of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

MOST_FETCHED = 64
"""The rows that the driver may fetch at once: counts, and the first rows, by which a format is known."""


def on_spark(spark: Any, table: pa.Table) -> Any:
    """A DataFrame of two partitions with the rows of a table of texts, in its order."""
    frame = table.to_pandas().astype(object)
    return spark.createDataFrame(
        frame.where(pd.notna(frame), None), ", ".join(f"`{name}` string" for name in table.column_names)
    )


@contextmanager
def nothing_collected(df: Any) -> Iterator[None]:
    """Fail if more than a few rows are fetched by any way of a DataFrame of this class."""
    kind, collect = type(df), type(df).collect

    def few(self: Any) -> Any:
        rows = collect(self)
        assert len(rows) <= MOST_FETCHED, f"{len(rows)} rows were collected"
        return rows

    def none(*_: Any, **__: Any) -> Any:
        raise AssertionError("rows were fetched")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "collect", few)
        for name in ("toPandas", "toArrow", "toLocalIterator"):
            patch.setattr(kind, name, none, raising=False)
        yield
