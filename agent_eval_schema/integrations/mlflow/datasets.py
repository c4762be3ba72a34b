"""An evaluation set ⇄ a dataset in an MLflow tracking store (`mlflow.genai.datasets`).

    data ──validate──▶ valid rows ──by inputs──▶ one row a record ──records.py──▶ one merge into the dataset
                       │                         │
                       set aside                 collapsed

A dataset holds one record for equal inputs: a second row with the same request overwrites, key by key, what the first
one said. So equal requests are looked for before anything is written, among the rows and in the dataset.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Literal

import pandas as pd
from msgspec import Struct

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import require_rows
from agent_eval_schema.integrations.mlflow.records import (
    KEPT,
    POSITION,
    SOURCE,
    SOURCE_TYPES,
    Record,
    Row,
    key_of,
    read_records,
    to_records,
)
from agent_eval_schema.integrations.mlflow.store import Store
from agent_eval_schema.io.pandas import canonical_frame
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.runtime.progress import notebook
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.visible import visible
from agent_eval_schema.traces.decode import Trace, decode_trace
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source

OnDuplicate = Literal["raise", "first", "last", "merge"]

OLDEST_MLFLOW = "3.5"
"""The oldest mlflow whose datasets keep outputs; up to 3.3 there are none outside of Databricks."""


class UnreadableRecord(UserWarning):
    """Some records could not be read whole; their rows hold what could be."""


class Collapsed(Struct, frozen=True):
    """A row for which there is no record of its own: `into` is the position of the row with the same request that was
    written, or the id of the record that was there. `lost` names the columns that say something else there."""

    row: int
    request_id: str | None
    into: int | str
    lost: tuple[str, ...]


class Updated(Struct, frozen=True):
    """A record that was there and was updated by a row. `lost` names the columns whose stored cells were replaced; a
    record keeps its first source, so a new one is lost."""

    row: int
    record_id: str
    lost: tuple[str, ...]


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
    if on_duplicate not in ("raise", *_CHOOSE):
        raise EvalSetError(f"on_duplicate must be raise, {', '.join(_CHOOSE)}, got {on_duplicate!r}")
    store = _dataset_store(tracking_uri)
    report = check_source(open_source(data), format=format, outputs="generated", screen=notebook())
    require_rows(report.format)
    rows, set_aside = _sorted_out(report)
    if not rows:
        raise EvalSetError(f"there is no row to write: {len(set_aside):,} of {report.row_count:,} are set aside")
    ids = store.experiment_ids(experiment) if experiment is not None else None
    found = _find(store, name)
    chosen = _choose(rows, [] if found is None else _load(store, found), on_duplicate)
    return WrittenDataset(
        dataset=_write(store, name, ids, found, to_records(chosen.rows)),
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
    store = _dataset_store(tracking_uri)
    store.require_there()
    name = dataset if isinstance(dataset, str) else getattr(dataset, "dataset_id", None)
    if name is None:
        raise EvalSetError(f"expected a dataset, its name or its id, got {describe(dataset)}")
    found = _find(store, name)
    if found is None:
        raise EvalSetError(f"the tracking store {store.shown} has no dataset {name!r}")
    records = _load(store, found)
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
def _sorted_out(report: Report) -> tuple[list[Row], list[SetAside]]:
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


def _with_source(row: Row, position: int) -> Row:
    """The row with its position, its source as mlflow has it, and of its trace no more than that there is one."""
    given = row.get(SOURCE)
    source = _as_source(jsontext.parse_leniently(given) if isinstance(given, str) else given)
    trace = decode_trace(row["trace"]) if row["trace"] is not None else None
    if source is None and isinstance(trace, Trace):
        source = _trace_source(trace, row["session_id"])
    beside = {n: v for n, v in row.items() if n not in COLUMNS and n != SOURCE}
    lost = [n for n, v in {"trace": row["trace"], **beside}.items() if v is not None]
    lost += [SOURCE] if given is not None and source is None else []
    return {**{c: row[c] for c in KEPT}, SOURCE: source, "row": position, "lost": lost}


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


def _not_kept(rows: Iterable[Row]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        for name in row["lost"]:
            counts[name] = counts.get(name, 0) + 1
    return counts


# ---------------------------------------------------------------------------------------------------------------------
# one row for equal requests
class _Chosen(Struct):
    """The rows to write, and what becomes of the others and of what is there."""

    rows: list[Row] = []
    collapsed: list[Collapsed] = []
    updated: list[Updated] = []


def _choose(rows: list[Row], stored: list[Record], on_duplicate: str) -> _Chosen:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key_of(row["request"]), []).append(row)
    there = {key_of(r["inputs"]): r for r in stored}
    met = [there[key] for key in groups if key in there]
    known = {r["id"]: row for r, (row, _) in zip(met, read_records(met), strict=True)}
    chosen = _Chosen()
    choose = _CHOOSE["merge" if on_duplicate == "raise" else on_duplicate]
    for key, group in groups.items():
        record = there.get(key)
        if record is not None and on_duplicate == "first":
            chosen.collapsed += [_collapsed(r, known[record["id"]], record["id"]) for r in group]
            continue
        kept = choose(group)
        chosen.rows.append(kept)
        chosen.collapsed += [_collapsed(r, kept, kept["row"]) for r in group if r["row"] != kept["row"]]
        if record is not None:
            chosen.updated.append(Updated(kept["row"], record["id"], _replaced(kept, known[record["id"]])))
    if on_duplicate == "raise":
        _raise_for(chosen)
    return chosen


def _first(group: list[Row]) -> Row:
    return group[0]


def _last(group: list[Row]) -> Row:
    return group[-1]


def _merged(group: list[Row]) -> Row:
    """The last row, and what it does not say from those before it; the later one of expected_response and
    expected_facts, of which a row has one."""
    merged = dict(group[0])
    for row in group[1:]:
        given = {n: v for n, v in row.items() if v is not None}
        for name, other in (_TRUTHS, _TRUTHS[::-1]):
            if name in given and other not in given:
                merged[other] = None
        for name in _KEYED:
            if name in given and merged[name] is not None:
                given[name] = {**merged[name], **given[name]}
        merged.update(given)
    return merged


_TRUTHS = ("expected_response", "expected_facts")
_KEYED = ("custom_expected", "tags")
"""Columns that mlflow merges key by key."""

_CHOOSE: dict[str, Callable[[list[Row]], Row]] = {"first": _first, "last": _last, "merge": _merged}


def _collapsed(row: Row, kept: Row, into: int | str) -> Collapsed:
    lost = [n for n in (*KEPT, SOURCE) if n != "request" and not _says(kept[n], row[n], n)]
    return Collapsed(row["row"], row["request_id"], into, tuple(lost))


def _replaced(row: Row, stored: Row) -> tuple[str, ...]:
    """The columns in which the row says something else than the stored one."""
    both = [n for n in (*KEPT, SOURCE) if n != "request" and row[n] is not None and stored[n] is not None]
    return tuple(n for n in both if not _says(_over(stored[n], row[n], n), stored[n], n))


def _over(old: Any, new: Any, name: str) -> Any:
    return {**old, **new} if name in _KEYED else new


def _says(kept: Any, value: Any, name: str) -> bool:
    """Whether nothing of a cell is lost if there is `kept` in its place."""
    if value is None or kept == value:
        return True
    return name in _KEYED and kept is not None and {**kept, **value} == kept


def _raise_for(chosen: _Chosen) -> None:
    told = [f"row {_name(c.row, c.request_id)} as row {c.into}{_words(c.lost)}" for c in chosen.collapsed]
    told += [f"row {u.row} as the stored record {u.record_id}{_words(u.lost)}" for u in chosen.updated if u.lost]
    if told:
        shown = "; ".join(told[:5]) + (f"; and {len(told) - 5:,} more" if len(told) > 5 else "")
        raise EvalSetError(
            f"a dataset has one record for equal requests, and {len(told):,} rows ask what is asked already: {shown}. "
            'Nothing was written; on_duplicate="first", "last" or "merge" says which one is to stay'
        )


def _name(row: int, request_id: str | None) -> str:
    return str(row) if request_id is None else f"{row} ({visible(request_id)[:60]})"


def _words(lost: tuple[str, ...]) -> str:
    return f" (another {', '.join(lost)})" if lost else ""


# ---------------------------------------------------------------------------------------------------------------------
# the store
def _dataset_store(tracking_uri: str | None) -> Store:
    store = Store(tracking_uri, minimum=OLDEST_MLFLOW)
    if store.is_files:
        message = f"the tracking store {store.shown} is a folder of files, which mlflow keeps no datasets in"
        raise EvalSetError(f"{message}: use a database (sqlite:///mlflow.db) or a server")
    return store


_ID = re.compile(r"d-[0-9a-f]{32}")


def _find(store: Store, name: str) -> Any:
    """The dataset of that name or id, or None if there is none of that name."""
    with store.asked():
        if _ID.fullmatch(name):
            return store.client.get_dataset(name)
        found = [d for d in _search(store, name) if d.name == name]  # some databases compare without case
    if len(found) > 1:
        ids = ", ".join(d.dataset_id for d in found[:5])
        raise EvalSetError(f"{len(found)} datasets have the name {name!r}: give the id of one ({ids})")
    return found[0] if found else None


def _search(store: Store, name: str) -> Iterator[Any]:
    quote = '"' if '"' not in name else "'"
    if quote in name:
        raise EvalSetError(f"mlflow cannot search for a name with both kinds of quotes: {name!r}")
    token = None
    while True:
        page = store.client.search_datasets(filter_string=f"name = {quote}{name}{quote}", page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _load(store: Store, dataset: Any) -> list[Record]:
    """The records of a dataset, in the order in which they were written: those of one merge have the same time."""
    with store.asked(), store.active():
        records = [_record(r) for r in dataset.records]
    return sorted(records, key=lambda r: (r["created"], _position(r), r["id"]))


def _record(record: Any) -> Record:
    return {
        "id": record.dataset_record_id,
        "created": record.created_time or 0,
        "inputs": record.inputs,
        "outputs": record.outputs,
        "expectations": record.expectations,
        "tags": record.tags,
        "source": record.source.to_dict() if record.source is not None else None,
    }


def _position(record: Record) -> int:
    text = str((record["tags"] or {}).get(POSITION, ""))
    return int(text) if text.isdecimal() else 0


def _write(store: Store, name: str, experiment_ids: list[str] | None, found: Any, records: list[Record]) -> Any:
    """The dataset, with the records merged into it."""
    with store.asked(), store.active():
        datasets = import_module("mlflow.genai.datasets")
        if found is not None:
            dataset = datasets.get_dataset(dataset_id=found.dataset_id)
            return dataset.merge_records(records) if records else dataset
        dataset = datasets.create_dataset(name=name, experiment_id=experiment_ids)
        try:
            return dataset.merge_records(records)
        except Exception:
            datasets.delete_dataset(dataset_id=dataset.dataset_id)  # nothing was written, so nothing is left
            raise
