"""`open_source`: whatever a user gives → the one Source that everything else reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

import pandas as pd
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import one_batch
from agent_eval_schema.io.arrow import from_arrow
from agent_eval_schema.io.pandas import from_pandas
from agent_eval_schema.io.records import from_list
from agent_eval_schema.io.remote import TemporaryFolder, fetch_url
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text.privacy import error_text

BIGQUERY = "bq://"


def open_dataset(data: Any) -> Source:
    """The source for anything that `open_source` takes, the URL of a file, or a BigQuery table.

    Raises EvalSetError if it cannot be fetched, or the package that fetches it is not installed.
    """
    url = os.fspath(data) if isinstance(data, str | os.PathLike) else ""
    if "://" not in url:
        return open_source(data)
    if url.startswith(BIGQUERY):
        from agent_eval_schema.io.bigquery import fetch_table

        return _copied(url, "table.parquet", lambda path: fetch_table(url.removeprefix(BIGQUERY), path))
    return _copied(
        url, PurePosixPath(url.partition("://")[2].partition("?")[0]).name, lambda path: fetch_url(url, path)
    )


def _copied(url: str, name: str, fetch: Callable[[str], None]) -> Source:
    folder = TemporaryFolder()
    path = os.path.join(folder.path, name or "data")
    try:
        fetch(path)
    except EvalSetError:
        raise
    except Exception as error:  # drivers raise what they like
        raise EvalSetError(f"{url}: cannot be read: {type(error).__name__}: {error_text(error)}") from error
    source = open_source(path)

    def batches() -> Any:
        assert os.path.isdir(folder.path)  # which also keeps the folder
        return source.batches()

    return replace(source, name=url, batches=batches)


def open_source(data: Any) -> Source:
    """The source for a pandas frame, an Arrow table, batch or reader, a list of rows, a path, or a Spark DataFrame; a
    source is its own.

    Raises EvalSetError if the data is none of these, or the file cannot be read as a table.
    """
    if isinstance(data, Source):
        return data
    from agent_eval_schema.formats.nested import unfolded

    if isinstance(data, str | os.PathLike):
        from agent_eval_schema.io.files import open_file

        return unfolded(open_file(os.fspath(data)))
    if isinstance(data, Mapping) and (rows := unfolded(from_list([data]), alone=True)).in_order:
        return rows
    if isinstance(data, pd.DataFrame):
        return from_pandas(data)
    if type(data).__name__ == "DataFrame" and type(data).__module__.startswith("pyspark.sql"):
        from agent_eval_schema.io.spark import spark_source

        return spark_source(data)
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()  # a reader can be read once only; give a path to stream
    if isinstance(data, pa.RecordBatch):
        return from_arrow(pa.Table.from_batches([data]), one_batch)
    if isinstance(data, pa.Table):
        return from_arrow(data, lambda t: t)
    if isinstance(data, list | tuple):
        return unfolded(from_list(list(data)))
    raise EvalSetError(
        f"cannot read a {type(data).__name__} as a table: give a pandas frame, an Arrow table, a list of dicts, a dict "
        "of columns (lists of one length, among them prompt, request or a trajectory) or a path"
    )
