"""An evaluation dataset ⇄ a dataset in an MLflow tracking store (`mlflow.genai.datasets`).

    data ──validate──▶ valid rows ──choose_rows──▶ a row per request ──to_records──▶ one merge into the dataset
                       │                          │
                       excluded                  collapsed

All rows are written in one transaction, or none.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, get_args

import pandas as pd
from msgspec import Struct

from agent_eval_schema.errors import EvalSetError, warn_caller
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import InputFormat, require_rows
from agent_eval_schema.integrations.mlflow.records import (
    RECORDED,
    SOURCE,
    SOURCE_TYPES,
    Collapsed,
    OnDuplicate,
    RowWithSource,
    Updated,
    choose_rows,
    errors_by_row,
    read_records,
    require_one_kind,
    to_records,
)
from agent_eval_schema.integrations.mlflow.store import DatasetStore
from agent_eval_schema.io.pandas import canonical_frame
from agent_eval_schema.render.blocks import Section, Table, Terms, View
from agent_eval_schema.render.printable import as_inline
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.describe import describe
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.spans import Trace
from agent_eval_schema.validation.validate import check_source


class UnreadableRecordWarning(UserWarning):
    """A part of a record of an MLflow dataset cannot be read.

    See Also
    --------
    from_mlflow_dataset : The function that emits the warning.

    Examples
    --------
    >>> import warnings
    >>> from agent_eval_schema import UnreadableRecordWarning
    >>> warnings.filterwarnings("error", category=UnreadableRecordWarning)
    """


class Excluded(Struct, frozen=True):
    """A row that was not written, and why."""

    row: int
    request_id: str | None
    reasons: tuple[str, ...]


class WrittenDataset(Struct, frozen=True):  # numpydoc ignore=PR01
    """The result of writing an MLflow dataset.

    `rows_in` is the sum of `written` and the lengths of `collapsed` and `excluded`.

    Attributes
    ----------
    dataset : mlflow.genai.datasets.EvaluationDataset
        The dataset of MLflow.
    rows_in : int
        The number of rows of the data.
    written : int
        The number of rows that were written.
    collapsed : tuple of Collapsed
        The rows that share a record with another row.
    updated : tuple of Updated
        The written rows whose record existed before.
    excluded : tuple of Excluded
        The excluded rows, with the attributes `row`, `request_id` and `reasons`.
    not_kept : dict of str to int
        By column that a dataset does not support: the number of written rows with a value. Of a `trace` the dataset has
        the ID.

    See Also
    --------
    to_mlflow_dataset : The function that returns the result.

    Examples
    --------
    >>> from agent_eval_schema import to_mlflow_dataset
    >>> data = [{"request": "What is Delta Lake?", "expected_response": "A table format.", "team": "docs"}]
    >>> written = to_mlflow_dataset(data, "docs.WrittenDataset")
    >>> written.rows_in, written.written, written.not_kept
    (1, 1, {'team': 1})
    """

    dataset: Any
    rows_in: int
    written: int
    collapsed: tuple[Collapsed, ...]
    updated: tuple[Updated, ...]
    excluded: tuple[Excluded, ...]
    not_kept: dict[str, int]

    def __repr__(self) -> str:
        return (
            f"<WrittenDataset {self.dataset.name!r}: {self.rows_in:,} rows in, {self.written:,} written "
            f"({len(self.updated):,} into records that were there), {len(self.collapsed):,} collapsed, "
            f"{len(self.excluded):,} excluded>"
        )

    def _repr_html_(self) -> str:
        excluded = [(f"{row.row:,}", row.request_id or "", "; ".join(row.reasons)) for row in self.excluded]
        counts = {"Updated records": self.updated, "Rows that share a record": self.collapsed, "Excluded": excluded}
        facts = [("Dataset", str(self.dataset.name)), *((term, f"{len(rows):,}") for term, rows in counts.items())]
        columns = [(name, f"{rows:,}") for name, rows in self.not_kept.items()]
        tables = [
            Table(["#Row", "request_id", "Why"], excluded, title="Excluded rows", at_once=5),
            Table(["Column", "#rows with a value"], columns, title="Columns that the dataset does not support"),
        ]
        sections = [Section("", table.title, [table]) for table in tables if table.rows]
        verdict = f"{self.written:,} of {self.rows_in:,} rows written"
        return as_inline(View(title=verdict, verdict=verdict, blocks=[Terms(facts), *sections]))


# --- the public verbs
def to_mlflow_dataset(
    data: EvalSetLike,
    name: str,
    *,
    experiment: str | list[str] | None = None,
    on_duplicate: OnDuplicate = "raise",
    format: InputFormat = "auto",
    columns: ColumnNames = None,
    tracking_uri: str | None = None,
) -> WrittenDataset:
    """Write the valid rows of an evaluation dataset to an MLflow dataset.

    A dataset that does not exist is created. All rows are written, or none.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`. A column `source` can contain `{"source_type": "HUMAN", "source_data":
        {...}}`; a row with a trace has that trace as its source.
    name : str
        The name or the ID (`"d-…"`) of the dataset.
    experiment : str, list of str or None, default None
        The name or ID of the experiments that a new dataset belongs to. None is the active experiment.
    on_duplicate : {"raise", "first", "last", "merge"}, default "raise"
        What to do with rows that have the same request, for which a dataset stores one record. `"raise"` writes nothing
        and names them. `"first"` keeps the first row, and an existing record before any row. `"last"` writes the last
        row. `"merge"` writes the last row and fills its missing values from the rows before it.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.
    tracking_uri : str or None, default None
        The URI of the tracking store. None is the store that MLflow is configured with.

    Returns
    -------
    WrittenDataset
        The dataset, and what was done with each row.

    Raises
    ------
    MissingExtraError
        MLflow 3.5 or newer is not installed.
    EvalSetError
        Rows have the same request and `on_duplicate="raise"`, test cases of a simulated user are beside other rows, no
        row is valid, the data is a file of Google Customer Engagement Suite, or the store rejects the operation.

    See Also
    --------
    from_mlflow_dataset : Read the rows of a dataset.

    Notes
    -----
    MLflow adds values to an existing record and replaces values of it, but it removes none.

    Examples
    --------
    >>> from agent_eval_schema import to_mlflow_dataset
    >>> data = [{"request": "What is Delta Lake?", "expected_response": "A table format."}]
    >>> written = to_mlflow_dataset(data, "docs.to_mlflow_dataset")
    >>> written.written, written.excluded
    (1, ())
    """
    require_choice("on_duplicate", on_duplicate, get_args(OnDuplicate))
    store = DatasetStore(tracking_uri)
    source = open_source(data, "data", columns, format=format).read_as(advised=True, outputs="generated")
    report = check_source(source, complete=True)
    require_rows(report.format)
    errors = errors_by_row(report)
    rows, excluded = [], []
    for position, row in enumerate(report.iter_rows()):
        if position in errors:
            reasons = tuple(f"{issue.code} {issue.message}" for issue in errors[position])
            excluded.append(Excluded(position, row["request_id"], reasons))
        else:
            rows.append(_with_source(row, position))
    if not rows:
        raise EvalSetError(f"no row to write: {len(excluded):,} of {report.row_count:,} are excluded")
    ids = store.experiment_ids(experiment) if experiment is not None else None
    found = store.find(name)
    stored = [] if found is None else store.records_of(found)
    require_one_kind(rows, stored)
    chosen = choose_rows(rows, stored, on_duplicate)
    return WrittenDataset(
        dataset=store.merge(to_records(chosen.rows), found, name, ids),
        rows_in=report.row_count,
        written=len(chosen.rows),
        collapsed=tuple(sorted(chosen.collapsed, key=lambda c: c.row)),
        updated=tuple(chosen.updated),
        excluded=tuple(excluded),
        not_kept=dict(Counter(name for row in chosen.rows for name in row["lost"])),
    )


def from_mlflow_dataset(dataset: Any, *, tracking_uri: str | None = None) -> pd.DataFrame:
    """Return the canonical rows of an MLflow dataset.

    Parameters
    ----------
    dataset : str or mlflow.genai.datasets.EvaluationDataset
        The name or the ID (`"d-…"`) of the dataset, or the dataset.
    tracking_uri : str or None, default None
        The URI of the tracking store. None is the store that MLflow is configured with.

    Returns
    -------
    pandas.DataFrame
        One row per record, in the order in which they were written, with a RangeIndex: the canonical columns with the
        dtypes that `normalize_eval_set` returns, then `source` (object; a dict with the keys `source_type` and
        `source_data`). Rows of `to_mlflow_dataset` come back unchanged, except that `trace` is None.

    Raises
    ------
    MissingExtraError
        MLflow 3.5 or newer is not installed.
    EvalSetError
        There is no such dataset, or the store rejects the operation.

    Warns
    -----
    UnreadableRecordWarning
        A part of a record cannot be read. Its row contains the other parts.

    See Also
    --------
    to_mlflow_dataset : Write the rows of an evaluation dataset.

    Examples
    --------
    >>> from agent_eval_schema import from_mlflow_dataset, to_mlflow_dataset
    >>> data = [{"request": "What is Delta Lake?", "expected_response": "A table format."}]
    >>> written = to_mlflow_dataset(data, "docs.from_mlflow_dataset")
    >>> from_mlflow_dataset("docs.from_mlflow_dataset")["expected_response"].tolist()
    ['A table format.']
    """
    store = DatasetStore(tracking_uri)
    store.require_there()
    name = dataset if isinstance(dataset, str) else getattr(dataset, "dataset_id", None)
    if name is None:
        raise EvalSetError(f"expected a dataset, its name or its id, got {describe(dataset)}")
    found = store.find(name)
    if found is None:
        raise store.nothing_called(name, "dataset", partial(store.client.search_datasets, max_results=50))
    records = store.records_of(found)
    read = read_records(records)
    failed = [(record, issue) for record, (_, issue) in zip(records, read, strict=True) if issue is not None]
    if failed:
        record, issue = failed[0]
        message = f"{len(failed)} of {len(read)} records could not be read whole; {record['id']}: {issue.message}"
        warn_caller(message, UnreadableRecordWarning)
    rows = [row for row, _ in read]
    return canonical_frame(rows) if rows else canonical_frame([dict.fromkeys([*COLUMNS, SOURCE])]).head(0)


# --- rows
def _with_source(row: RowWithSource, position: int) -> RowWithSource:
    """The row with its position, its source as MLflow has it, and of its trace only whether it exists."""
    cell = row.get(SOURCE)
    source = as_source(cell)
    if source is None and (trace_id := trace_id_of(row["trace"])):
        session = {} if row["session_id"] is None else {"session_id": row["session_id"]}
        source = {"source_type": "TRACE", "source_data": {"trace_id": trace_id, **session}}
    others = {n: v for n, v in row.items() if n not in COLUMNS and n != SOURCE}
    names = [n for n, v in {"trace": row["trace"], **others}.items() if v is not None]
    names += [SOURCE] if cell is not None and source is None else []
    return {**{c: row[c] for c in RECORDED}, SOURCE: source, "row": position, "lost": names}


def trace_id_of(cell: Any) -> str | None:
    """The ID of the trace in a cell, or None if it has none."""
    trace = decode_trace(cell) if cell is not None else None
    return (trace.info.trace_id or trace.info.request_id) if isinstance(trace, Trace) else None


def as_source(cell: Any) -> dict[str, Any] | None:
    """The value of a cell as a source of MLflow, or None if it is none."""
    value = jsontext.parse_leniently(cell) if isinstance(cell, str) else cell
    if not isinstance(value, dict) or not set(value) <= {"source_type", "source_data"}:
        return None
    kind, data = str(value.get("source_type")).upper(), value.get("source_data")
    if kind not in SOURCE_TYPES or not (data is None or isinstance(data, dict)):
        return None
    return {"source_type": kind, "source_data": data or {}}
