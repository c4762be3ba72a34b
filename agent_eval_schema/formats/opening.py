"""`open_source`: any input of a user → the one Source that everything else reads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.io.arrow import from_arrow
from agent_eval_schema.io.pandas import from_pandas
from agent_eval_schema.io.records import from_list, is_of_pandas
from agent_eval_schema.io.remote import fetch_url
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.stdin import copy_stdin
from agent_eval_schema.io.streams import STDIN, STDIN_NAME, naming
from agent_eval_schema.io.tables import like, to_arrow
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.temporary_folder import TemporaryFolder
from agent_eval_schema.text.choices import shown
from agent_eval_schema.text.privacy import error_text

if TYPE_CHECKING:
    import pandas as pd


class ArrowStream(Protocol):
    """An Arrow table or reader."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class ArrowArray(Protocol):
    """An Arrow record batch."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


class SparkFrame(Protocol):
    """A Spark DataFrame."""

    @property
    def mapInArrow(self) -> Any: ...


_Table: TypeAlias = ArrowStream | ArrowArray | SparkFrame
EvalSetLike: TypeAlias = (
    "pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any] | str | os.PathLike[str] | _Table"
)
"""The type of an evaluation dataset: what every function that takes data accepts.

A pandas DataFrame, a sequence of dicts, one dict (an ADK evalset), a path, a URL, `"-"` (standard input), the name of a
table, an object with `__arrow_c_stream__` or `__arrow_c_array__` (Arrow, Polars, DuckDB), a dataset of Hugging Face or
MLflow, or a Spark DataFrame.
"""


def open_source(data: Any, option: str = "data") -> Source:
    """The source for a pandas frame, a table of Arrow, Polars, DuckDB, Hugging Face or MLflow, a list of rows, a path,
    `"-"` (stdin), the URL of a file, a BigQuery table (`bq://project.dataset.table`), or a Spark DataFrame; a Source is
    returned unchanged.

    Raises EvalSetError if the data is none of these, the file cannot be read as a table, or a URL cannot be fetched (or
    the package that fetches it is not installed).
    """
    if isinstance(data, Source):
        return data
    from agent_eval_schema.formats.nested import unfolded

    if isinstance(data, str | os.PathLike):
        from agent_eval_schema.io.files import open_file

        path = os.fspath(data)
        if path == STDIN:
            return _copied(STDIN_NAME, lambda folder: copy_stdin(folder.file("stdin")))
        if _URL.match(path):
            return _fetched(path)
        return _of_app(path) or unfolded(open_file(path))
    if is_of_pandas(data, "DataFrame"):
        return unfolded(from_pandas(data))
    if type(data).__name__ == "DataFrame" and type(data).__module__.startswith("pyspark.sql"):
        from agent_eval_schema.io.spark import spark_source

        return unfolded(spark_source(data))
    if type(data).__name__ == "EvaluationDataset" and type(data).__module__.startswith("mlflow."):
        return unfolded(from_pandas(data.to_df()))
    if (table := to_arrow(data, option)) is not None:  # a reader can be read only once; a path is streamed
        return unfolded(from_arrow(table, like(data) or (lambda taken: taken)))
    if isinstance(data, Mapping) and (rows := unfolded(from_list([data]), alone=True)).in_order:
        return rows
    if isinstance(data, list | tuple):
        return unfolded(from_list(list(data)))
    raise EvalSetError(
        f"{option}: expected a DataFrame, an Arrow table, a list of dicts, a dict of columns (lists of one "
        f"length, among them prompt, request or a trajectory) or a path; got {shown(data)}{_nearest(data)}"
    )


def _nearest(data: Any) -> str:
    """What works instead, as the end of a message."""
    if isinstance(data, type):
        return ""
    if is_of_pandas(data, "Series"):
        return "; use data.to_frame()"
    if hasattr(data, "to_pandas"):
        return "; use data.to_pandas()"
    if isinstance(data, Iterable) and not isinstance(data, Mapping | bytes):
        return "; use list(data)"
    return ""


def _of_app(path: str) -> Source | None:
    """The evaluations of an exported app of CES, or in a YAML file. A folder of Parquet files is a table."""
    is_folder = os.path.isdir(path)
    if not (is_folder or path.lower().endswith((".zip", ".yaml", ".yml"))):
        return None
    from agent_eval_schema.formats.ces.app import open_app
    from agent_eval_schema.io.parquet import files_of

    return None if is_folder and files_of(path) else open_app(path)


# ---------------------------------------------------------------------------------------------------------------------
# data that is elsewhere
_URL = re.compile(r"[A-Za-z][\w+.:-]+://")
"""How a URL begins; one letter is a drive. Without `://` a name is that of a file, a folder or a version of a table."""

BIGQUERY = "bq://"


def _fetched(url: str) -> Source:
    """The source for a local copy of a remote file or a BigQuery table, which lives as long as the source."""
    name = PurePosixPath(url.partition("://")[2].partition("?")[0]).name or "data"

    def copy(folder: TemporaryFolder) -> str:
        path = folder.file("table.parquet" if url.startswith(BIGQUERY) else name)
        try:
            _fetch(url, path)
        except EvalSetError:
            raise
        except Exception as error:  # drivers raise exceptions of any type
            raise EvalSetError(f"{url}: cannot be read: {type(error).__name__}: {error_text(error)}") from error
        return path

    return _copied(url, copy)


def _copied(name: str, copy: Callable[[TemporaryFolder], str]) -> Source:
    """The source for a local copy of `name`, which is kept as long as the source. Errors name the original."""
    folder = TemporaryFolder()
    path = copy(folder)
    with naming(path, name):
        source = open_source(path)

    def batches() -> Iterator[pa.RecordBatch]:
        assert os.path.isdir(folder.path)  # which also keeps the folder
        with naming(path, name):
            yield from source.batches()

    return replace(source, name=name, batches=batches)


def _fetch(url: str, path: str) -> None:
    if not url.startswith(BIGQUERY):
        return fetch_url(url, path)
    from agent_eval_schema.io.bigquery import fetch_table

    return fetch_table(url.removeprefix(BIGQUERY), path)
