"""`open_source`: whatever a user gives → the one Source that everything else reads."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import pandas as pd
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import one_batch
from agent_eval_schema.io.arrow import from_arrow
from agent_eval_schema.io.pandas import from_pandas
from agent_eval_schema.io.records import from_list
from agent_eval_schema.io.remote import fetch_url
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.temporary_folder import TemporaryFolder
from agent_eval_schema.text.privacy import error_text


def open_source(data: Any) -> Source:
    """The source for a pandas frame, an Arrow table, batch or reader, a list of rows, a path, the URL of a file, a
    BigQuery table (`bq://project.dataset.table`), or a Spark DataFrame; a source is its own.

    Raises EvalSetError if the data is none of these, the file cannot be read as a table, or a URL cannot be fetched (or
    the package that fetches it is not installed).
    """
    if isinstance(data, Source):
        return data
    from agent_eval_schema.formats.nested import unfolded

    if isinstance(data, str | os.PathLike):
        from agent_eval_schema.io.files import open_file

        path = os.fspath(data)
        return _fetched(path) if _URL.match(path) else unfolded(open_file(path))
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


# ---------------------------------------------------------------------------------------------------------------------
# data that is elsewhere
_URL = re.compile(r"[A-Za-z][\w+.:-]+://")
"""How a URL begins; one letter is a drive. Without `://` a name is that of a file, a folder or a version of a table."""

BIGQUERY = "bq://"


def _fetched(url: str) -> Source:
    """The source for a local copy of a remote file or a BigQuery table, which lives as long as the source."""
    folder = TemporaryFolder()
    name = PurePosixPath(url.partition("://")[2].partition("?")[0]).name or "data"
    path = folder.file("table.parquet" if url.startswith(BIGQUERY) else name)
    try:
        _fetch(url, path)
    except EvalSetError:
        raise
    except Exception as error:  # drivers raise what they like
        raise EvalSetError(f"{url}: cannot be read: {type(error).__name__}: {error_text(error)}") from error
    source = open_source(path)

    def batches() -> Any:
        assert os.path.isdir(folder.path)  # which also keeps the folder
        return source.batches()

    return replace(source, name=url, batches=batches)


def _fetch(url: str, path: str) -> None:
    if not url.startswith(BIGQUERY):
        return fetch_url(url, path)
    from agent_eval_schema.io.bigquery import fetch_table

    return fetch_table(url.removeprefix(BIGQUERY), path)
