"""An evaluation set ⇄ a dataset in an MLflow tracking store (`mlflow.genai.datasets`).

    data ──validate──▶ valid rows ──equal_requests──▶ a row per request ──records──▶ one merge into the dataset
                       │                              │
                       set aside                      collapsed

All rows are written in one transaction, or none.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, get_args

import pandas as pd
from msgspec import Struct

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import require_rows
from agent_eval_schema.integrations.mlflow.dataset_store import DatasetStore
from agent_eval_schema.integrations.mlflow.equal_requests import Collapsed, OnDuplicate, Updated, choose_rows
from agent_eval_schema.integrations.mlflow.records import (
    RECORDED,
    SOURCE,
    SOURCE_TYPES,
    RowWithSource,
    read_records,
    to_records,
)
from agent_eval_schema.io.pandas import canonical_frame
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.runtime.progress import notebook
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.traces.decode import Trace, decode_trace
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source


class UnreadableRecord(UserWarning):
    """Some records could not be read whole; their rows hold what could be."""


class SetAside(Struct, frozen=True):
    """A row that was not written, and why."""

    row: int
    request_id: str | None
    reasons: tuple[str, ...]


class WrittenDataset(Struct, frozen=True):
    """What became of the rows: rows in = written + collapsed + set aside.

    `dataset` is mlflow's; `updated` says which of the written rows went into records that were there; `not_kept`
    counts, for each column that a dataset has no place for, the written rows that have it (of a `trace` it has the id).
    """

    dataset: Any
    rows_in: int
    written: int
    collapsed: tuple[Collapsed, ...]
    updated: tuple[Updated, ...]
    set_aside: tuple[SetAside, ...]
    not_kept: dict[str, int]

    def __repr__(self) -> str:
        return (
            f"<WrittenDataset {self.dataset.name!r}: {self.rows_in:,} rows in, {self.written:,} written "
            f"({len(self.updated):,} into records that were there), {len(self.collapsed):,} collapsed, "
            f"{len(self.set_aside):,} set aside>"
        )


# ---------------------------------------------------------------------------------------------------------------------
# the public verbs
def to_mlflow_dataset(
    data: Any,
    name: str,
    *,
    experiment: str | list[str] | None = None,
    on_duplicate: OnDuplicate = "raise",
    format: str = "auto",
    tracking_uri: str | None = None,
) -> WrittenDataset:
    """Write the valid rows of an evaluation set into an MLflow dataset, which is created if it does not exist.

    Parameters
    ----------
    data
        Anything that `validate_eval_set` takes. A column `source` may hold mlflow's
        `{"source_type": "HUMAN", "source_data": {...}}`; a row with a trace has that trace as its source.
    name
        The name or the id (`d-…`) of the dataset.
    experiment
        The name or id of the experiments that a new dataset belongs to; the active one if none is given.
    on_duplicate
        What to do about rows with the same request, for which a dataset has one record. `"raise"`: write nothing and
        name them, if there are two such rows, or if a record that is there says something else. `"first"`: the first
        one stays, before all a record that is there. `"last"`: the last one is written. `"merge"`: the last one, and
        what it does not say is taken from those before it. mlflow adds to a record that is there and replaces cells of
        it, but removes none.
    format
        As in `validate_eval_set`.
    tracking_uri
        The store, the one that mlflow is set to if not given.

    Returns
    -------
    WrittenDataset
        The dataset, and what became of every row. All rows are written in one transaction, or none.

    Raises
    ------
    EvalSetError
        Rows would collapse, no row is valid, the data is a file of CES (convert it first), mlflow is missing or older
        than 3.5, or the store refuses.
    """
    if on_duplicate not in get_args(OnDuplicate):
        raise EvalSetError(f"on_duplicate must be {', '.join(get_args(OnDuplicate))}, got {on_duplicate!r}")
    store = DatasetStore(tracking_uri)
    report = check_source(open_source(data), format=format, outputs="generated", screen=notebook())
    require_rows(report.format)
    rows, set_aside = _sorted_out(report)
    if not rows:
        raise EvalSetError(f"there is no row to write: {len(set_aside):,} of {report.row_count:,} are set aside")
    ids = store.experiment_ids(experiment) if experiment is not None else None
    found = store.find(name)
    chosen = choose_rows(rows, [] if found is None else store.records_of(found), on_duplicate)
    return WrittenDataset(
        dataset=store.merge(to_records(chosen.rows), found, name, ids),
        rows_in=report.row_count,
        written=len(chosen.rows),
        collapsed=tuple(sorted(chosen.collapsed, key=lambda c: c.row)),
        updated=tuple(chosen.updated),
        set_aside=tuple(set_aside),
        not_kept=_not_kept(chosen.rows),
    )


def from_mlflow_dataset(dataset: Any, *, tracking_uri: str | None = None) -> pd.DataFrame:
    """The canonical rows of an MLflow dataset, in the order in which they were written.

    Parameters
    ----------
    dataset
        The name or the id (`d-…`) of a dataset, or the dataset itself.
    tracking_uri
        The store, the one that mlflow is set to if not given.

    Returns
    -------
    pandas.DataFrame
        One line a record: the canonical columns, then `source` (`{"source_type": …, "source_data": …}`). What
        `to_mlflow_dataset` wrote comes back as it was, but for traces. A record that cannot be read whole gives a row
        of what could be read, and an UnreadableRecord warning.

    Raises
    ------
    EvalSetError
        There is no such dataset, mlflow is missing or older than 3.5, or the store refuses.
    """
    store = DatasetStore(tracking_uri)
    store.require_there()
    name = dataset if isinstance(dataset, str) else getattr(dataset, "dataset_id", None)
    if name is None:
        raise EvalSetError(f"expected a dataset, its name or its id, got {describe(dataset)}")
    found = store.find(name)
    if found is None:
        raise EvalSetError(f"the tracking store {store.shown} has no dataset {name!r}")
    records = store.records_of(found)
    read = read_records(records)
    failed = [(record, issue) for record, (_, issue) in zip(records, read, strict=True) if issue is not None]
    if failed:
        record, issue = failed[0]
        message = f"{len(failed)} of {len(read)} records could not be read whole; {record['id']}: {issue.message}"
        warnings.warn(message, UnreadableRecord, stacklevel=2)
    rows = [row for row, _ in read]
    return canonical_frame(rows) if rows else canonical_frame([dict.fromkeys([*COLUMNS, SOURCE])]).head(0)


# ---------------------------------------------------------------------------------------------------------------------
# rows
def _sorted_out(report: Report) -> tuple[list[RowWithSource], list[SetAside]]:
    """The rows that can be written, each with its position, and the others, each with the reasons."""
    reasons: dict[int, list[str]] = {}
    for issue in report.iter_issues():
        if issue.row is not None and issue.severity is Severity.ERROR:
            reasons.setdefault(issue.row, []).append(f"{issue.code} {issue.message}")
    rows, set_aside = [], []
    for position, row in enumerate(report.iter_rows()):
        if position in reasons:
            set_aside.append(SetAside(position, row["request_id"], tuple(reasons[position])))
        else:
            rows.append(_with_source(row, position))
    return rows, set_aside


def _with_source(row: RowWithSource, position: int) -> RowWithSource:
    """The row with its position, its source as mlflow has it, and of its trace no more than that there is one."""
    given = row.get(SOURCE)
    source = _as_source(jsontext.parse_leniently(given) if isinstance(given, str) else given)
    trace = decode_trace(row["trace"]) if row["trace"] is not None else None
    if source is None and isinstance(trace, Trace):
        source = _trace_source(trace, row["session_id"])
    beside = {n: v for n, v in row.items() if n not in COLUMNS and n != SOURCE}
    lost = [n for n, v in {"trace": row["trace"], **beside}.items() if v is not None]
    lost += [SOURCE] if given is not None and source is None else []
    return {**{c: row[c] for c in RECORDED}, SOURCE: source, "row": position, "lost": lost}


def _as_source(given: Any) -> dict[str, Any] | None:
    """What mlflow takes for a source, or None."""
    if not isinstance(given, dict) or not set(given) <= {"source_type", "source_data"}:
        return None
    kind, data = str(given.get("source_type")).upper(), given.get("source_data")
    if kind not in SOURCE_TYPES or not (data is None or isinstance(data, dict)):
        return None
    return {"source_type": kind, "source_data": data or {}}


def _trace_source(trace: Trace, session: str | None) -> dict[str, Any] | None:
    trace_id = trace.info.trace_id or trace.info.request_id
    session_data = {} if session is None else {"session_id": session}
    return {"source_type": "TRACE", "source_data": {"trace_id": trace_id, **session_data}} if trace_id else None


def _not_kept(rows: Iterable[RowWithSource]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        for name in row["lost"]:
            counts[name] = counts.get(name, 0) + 1
    return counts
