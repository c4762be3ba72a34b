"""`open_source`: any input of a user → the one Source that everything else reads."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.column_names import (
    ColumnNames,
    preferred_in,
    unmatched,
    with_likely_names,
    with_names,
    with_preferred,
    without_auto,
    without_preferred,
)
from agent_eval_schema.io.arrow import from_arrow, like, to_arrow
from agent_eval_schema.io.delta import folder_of
from agent_eval_schema.io.excel import is_excel, open_excel
from agent_eval_schema.io.pandas import from_pandas
from agent_eval_schema.io.places import files_of, is_catalog_table, is_glob, is_pipe, is_url, kind_of, part_of
from agent_eval_schema.io.records import from_list, is_of_pandas
from agent_eval_schema.io.remote import fetch_url
from agent_eval_schema.io.source import Reading, Source
from agent_eval_schema.io.streams import STDIN, STDIN_NAME, naming
from agent_eval_schema.io.texts import copy_pipe, copy_stdin
from agent_eval_schema.io.warehouses import active_table, fetch_bigquery, fetch_catalog
from agent_eval_schema.issues import FileLine, file_of
from agent_eval_schema.rules import words
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.text.choices import require_bool, require_count, shown
from agent_eval_schema.text.privacy import first_line, quoting
from agent_eval_schema.text.visible import without_secrets

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


@runtime_checkable
class Checked(Protocol):
    """A Report: its data, and how they were read."""

    def __checked_source__(self) -> Source: ...


LocalEvalSet: TypeAlias = (
    "pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any] | str | os.PathLike[str] | ArrowStream | Source"
)
"""Data for which results are pandas DataFrames."""

_Table: TypeAlias = ArrowStream | ArrowArray | SparkFrame | Source | Checked
EvalSetLike: TypeAlias = (
    "pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any] | str | os.PathLike[str] | _Table"
)
"""The type of an evaluation dataset: what every function that takes data accepts.

A pandas DataFrame, a sequence of dicts, one dict (an ADK evalset), a path, a URL, `"-"` (standard input), the name of a
table, an object with `__arrow_c_stream__` or `__arrow_c_array__` (Arrow, Polars, DuckDB), a dataset of Hugging Face or
MLflow, a Spark DataFrame, the result of `traces_from_store`, or a Report: its data, read as the report read it.
"""


def open_source(
    data: Any,
    option: str = "data",
    columns: ColumnNames = None,
    *,
    format: str = "auto",
    outputs: str = "auto",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    show_values: bool = True,
    max_cell_bytes: int | None = None,
    advice: Mapping[str, object] | None = None,
) -> Source:
    """The source for a pandas frame, a table of Arrow, Polars, DuckDB, Hugging Face or MLflow, a list of rows, a Spark
    DataFrame, or the name of a place: a path, a glob, `"-"` (stdin), a URL, a table of BigQuery
    (`bq://project.dataset.table`) or of Unity Catalog (`catalog.schema.table`), or a Source. `columns` names columns
    of the data as ours ("auto": as they are likely to be meant). The source carries these and the other options of the
    call as its reading; `advice` are those that advice repeats, if not all of them.

    Raises EvalSetError if the data is none of these, the file cannot be read as a table, or a URL cannot be fetched (or
    the package that fetches it is not installed), or the data lacks one of the `columns`.
    """
    require_bool("show_values", show_values)
    if max_cell_bytes is not None:
        require_count("max_cell_bytes", max_cell_bytes)
    columns, is_auto = without_auto(columns)
    preferred = preferred_in(columns)
    rules = (words(select), words(ignore))
    reading = Reading(columns or {}, format, outputs, *rules, bool(show_values), max_cell_bytes)
    if isinstance(data, Checked):
        source = data.__checked_source__()
        likely = with_likely_names(source).reading.columns if is_auto else {}
        source.reading.require_agreement(replace(reading, columns=reading.columns or likely))
        return source
    source = _opened(data, option)
    source = source if isinstance(data, Source) else replace(source, data=data)
    if columns is not None:
        with quoting(bool(show_values)):
            remarks = unmatched(source, without_preferred(columns))
        source = with_names(source, without_preferred(columns))
        source = replace(source, remarks=(*source.remarks, *remarks)) if remarks else source
    if changed := reading.changed():
        names = {**source.reading.columns, **reading.columns}
        source = replace(source, reading=replace(source.reading, **{**changed, "columns": names}))
    source = source.advising(**(reading.words() if advice is None else {"columns": columns, **advice}))
    source = with_likely_names(source) if is_auto else source
    return with_preferred(source, preferred) if preferred else source


def is_spark(data: Any) -> bool:
    """Whether it is a Spark DataFrame, of a classic session or of Spark Connect."""
    return type(data).__name__ == "DataFrame" and type(data).__module__.startswith("pyspark.sql")


def _opened(data: Any, option: str) -> Source:
    if isinstance(data, Source):
        return data
    from agent_eval_schema.formats.nested import expand_rows

    if isinstance(data, str | os.PathLike):
        return _of_place(os.fspath(data))
    if is_of_pandas(data, "DataFrame"):
        return expand_rows(from_pandas(data))
    if is_spark(data):
        from agent_eval_schema.io.spark import spark_source

        return expand_rows(spark_source(data))
    if type(data).__name__ == "EvaluationDataset" and type(data).__module__.startswith("mlflow."):
        return expand_rows(from_pandas(data.to_df()))
    if (table := to_arrow(data, option)) is not None:  # a reader can be read only once; a path is streamed
        return expand_rows(from_arrow(table, like(data) or (lambda taken: taken)))
    if isinstance(data, Mapping) and (rows := expand_rows(from_list([data]), alone=True)).in_order:
        return rows
    if isinstance(data, list | tuple):
        return expand_rows(from_list(list(data)))
    raise EvalSetError(
        f"{option}: expected a DataFrame, an Arrow table, a list of dicts, a dict of columns (lists of one "
        f"length, among them prompt, request or a trajectory) or a path; got {shown(data)}{_nearest(data)}"
    )


def _nearest(data: Any) -> str:
    """What works instead, as the end of a message."""
    if isinstance(data, type):
        return ""
    if hasattr(data, "dask"):  # its own names are those of pandas
        return " of dask; use data.compute()"
    if is_of_pandas(data, "Series"):
        return "; use data.tolist()" if _are_objects(data) else "; use data.to_frame('request')"
    if hasattr(data, "to_pandas"):
        return "; use data.to_pandas()"
    if isinstance(data, Mapping):
        lists = [name for name, rows in data.items() if rows and _are_objects(rows)]
        return f"; use data[{lists[0]!r}]" if len(lists) == 1 else ""
    if hasattr(data, "read"):
        return f"; use its path: {data.name!r}" if isinstance(getattr(data, "name", None), str) else "; use a path"
    if isinstance(data, Iterator):  # whose elements are not read yet
        return "; use list(data)"
    return "; use list(data)" if isinstance(data, Iterable) and _are_objects(data) else ""


def _are_objects(rows: Any) -> bool:
    return isinstance(rows, Iterable) and all(isinstance(row, Mapping) for row in rows)


def _of_place(name: str) -> Source:
    """The source for what a name means: a file, a folder, a glob, stdin, a URL, or a table of a warehouse; of a JSON
    document with several lists of rows, `file.json#key` is one."""
    from agent_eval_schema.formats.nested import expand_rows, with_list
    from agent_eval_schema.io.files import open_file

    if name == STDIN:
        return copied_source(STDIN_NAME, lambda folder: copy_stdin(folder.file("stdin")))
    if is_pipe(name):
        return copied_source(name, lambda folder: copy_pipe(name, folder.file("pipe")))
    if name.startswith(BIGQUERY):
        return copied_source(name, partial(_fetched_table, fetch_bigquery, name, name.removeprefix(BIGQUERY)))
    if is_url(name):
        return copied_source(without_secrets(name), partial(_fetched, name))
    if is_catalog_table(name):
        if (table := active_table(name)) is not None:
            return replace(open_source(table), name=name)
        return copied_source(name, partial(_fetched_table, fetch_catalog, name, name))
    if is_excel(name):
        return expand_rows(open_excel(name))
    base, key = part_of(name)
    documents = _documents_of(base)
    if key:
        return replace(with_list(documents or open_file(base), key), name=name)
    if documents is not None and not name.lower().endswith(_YAML):
        return documents
    return expand_rows(documents or open_file(name))


_YAML = (".yaml", ".yml")


def _documents_of(path: str) -> Source | None:
    """The evaluations of an exported app of CES, or the documents of a YAML file. A folder with files of rows is a
    table."""
    is_folder = os.path.isdir(path)
    if not (is_folder or path.lower().endswith((".zip", *_YAML))):
        return None
    from agent_eval_schema.formats.ces.app import open_app

    return None if is_folder and any(kind_of(file) != "json" for file in files_of(path)) else open_app(path)


BIGQUERY = "bq://"


def _fetched(url: str, folder: TemporaryFolder) -> str:
    """The path of a copy of what a URL names."""
    base, version = folder_of(url)
    # the last part of the path: its file extension is that of the data
    name = PurePosixPath(base.partition("://")[2].partition("?")[0]).name
    path = folder.file("files" if is_glob(base) else name or "data")
    fetch_url(base, path)
    return path if version is None else f"{path}@v{version}"


def _fetched_table(fetch: Callable[[str, str], None], name: str, table: str, folder: TemporaryFolder) -> str:
    path = folder.file("table.parquet")
    try:
        fetch(table, path)
    except EvalSetError:
        raise
    except Exception as error:  # clients raise exceptions of any type
        raise EvalSetError(f"{name}: cannot be read: {type(error).__name__}: {first_line(error)}") from error
    return path


def copied_source(name: str, copy: Callable[[TemporaryFolder], str]) -> Source:
    """The source for a local copy of `name`, which is kept as long as the source. Errors name the original."""
    folder = TemporaryFolder()
    path = copy(folder)
    with naming(path, name):
        source = open_source(path)

    def batches() -> Iterator[pa.RecordBatch]:
        assert os.path.isdir(folder.path)  # which also keeps the folder
        with naming(path, name):
            yield from source.batches()

    def lines(rows: Iterable[int]) -> dict[int, int]:
        numbers = source.lines(rows) if source.lines else {}
        places = {row: (file_of(line, ""), line) for row, line in numbers.items()}
        base = name.rpartition("/")[0] if is_glob(name) else name.rstrip("/")
        return {
            row: FileLine.of(f"{base}/{os.path.relpath(file, path)}", n) if file else n
            for row, (file, n) in places.items()
        }

    return replace(source, name=name, batches=batches, lines=lines if source.lines else None)
