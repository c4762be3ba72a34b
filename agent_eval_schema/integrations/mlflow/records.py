"""A canonical row ⇄ a record of an mlflow dataset, without loss.

    row                                        record
    inputs, else request                       inputs                {"messages": [...]}
    outputs, else response                     outputs
    expectations, expected_*, guidelines, …    expectations
    reference_trajectory                       expectations          expected_tool_calls [{name, arguments}]
    tags                                       tags
    source                                     source                {source_type, source_data}
    all others                                 tags                  agent_eval_schema.<column>, JSON text

A record is first written as MLflow's scorers read it. Then it is read back; a column that does not come out as it went
in (named guidelines, an empty object) is kept in a tag as well. Such a tag is used as long as the record has not
changed: what is edited in mlflow takes precedence. Needs no mlflow.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Literal

from msgspec import Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.evaluation.mlflow_run import ROW_TAG
from agent_eval_schema.formats.mlflow import (
    EXPECTATIONS,
    EXPECTED_COLUMNS,
    MLFLOW_USER,
    expectations_of,
    is_test_case,
    whole,
)
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.integrations.mlflow.frames import of_two_kinds
from agent_eval_schema.issues import Issue
from agent_eval_schema.rule import Severity
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import first_names
from agent_eval_schema.text.jsontext import without_null_keys
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source

RowWithSource = dict[str, Any]
DatasetRecord = dict[str, Any]

TAG_PREFIX = "agent_eval_schema."
"""Tags that begin like this are ours: the columns that a record has no place for, and the position of the row."""

ID_TAG = f"{TAG_PREFIX}request_id"
"""The tag of an evaluated trace that holds the request_id of its row."""

SOURCE = "source"
"""The column, in addition to the canonical ones, with the source of a row."""

SOURCE_TYPES = ("UNSPECIFIED", "TRACE", "HUMAN", "DOCUMENT", "CODE")

RECORDED = tuple(c for c in COLUMNS if c != "trace")
"""The parts of a row that a record keeps; of its trace, the ID (as the source)."""

NATURAL = ("request", "response", "custom_expected", "tags", *EXPECTED_COLUMNS, "inputs", "outputs", "expectations")
"""The columns for which a record has a place."""


def key_of(value: Any) -> str:
    """The SHA-256 of a value as JSON with sorted keys; that of its inputs is MLflow's identity of a record."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# --- rows → records
def to_records(rows: Iterable[RowWithSource]) -> list[DatasetRecord]:
    """The records of canonical rows, one each, in order. `row` in a row is its position, `source` where it is from."""
    rows = list(rows)
    records = list(map(_natural, rows))
    for row, record, (read, _) in zip(rows, records, read_records(records), strict=True):
        for column in RECORDED:
            if read[column] != row[column]:
                value = row[column]
                tag = {"value": value, "beside": key_of(read[column])[:16]} if column in NATURAL else value
                record["tags"][TAG_PREFIX + column] = jsontext.encode_text(tag)
        if "row" in row:
            record["tags"][ROW_TAG] = str(row["row"])
    return records


def _natural(row: RowWithSource) -> DatasetRecord:
    custom = {k: v for k, v in (row["custom_expected"] or {}).items() if k not in EXPECTATIONS}
    expectations = expectations_of({**row, "custom_expected": custom})
    record = {"inputs": whole(row, "inputs"), "expectations": expectations, "tags": _own_tags(row["tags"])}
    others = {"outputs": whole(row, "outputs"), "source": row.get(SOURCE)}
    return record | {name: part for name, part in others.items() if part is not None}


def require_one_kind(rows: Sequence[RowWithSource], stored: Sequence[DatasetRecord]) -> None:
    """Raise EvalSetError for rows that one dataset of MLflow rejects together, or beside its records: test cases of
    simulated users and other rows, and a goal beside keys that no test case has."""
    inputs = [(row["row"], whole(row, "inputs")) for row in rows]
    both = [row for row, cells in inputs if "goal" in cells and not is_test_case(cells)]
    if both:
        raise EvalSetError(
            f"rows {first_names(both, 10)}: expected `goal` beside keys of a test case, got other keys, for which "
            "MLflow rejects all records: put them into `context`, or rename `goal`"
        )
    cases = [row for row, cells in inputs if is_test_case(cells)]
    of_stored = sum(is_test_case(record["inputs"]) for record in stored)
    if message := of_two_kinds(len(cases), len(inputs), cases):
        raise EvalSetError(message)
    if stored and rows and bool(cases) != bool(of_stored):
        kinds = "other rows", "test cases of simulated users"
        raise EvalSetError(
            f"expected {kinds[bool(of_stored)]} as in the dataset, got {kinds[bool(cases)]}, for which MLflow rejects "
            "all records: write them to a dataset of their own"
        )


# --- records → rows
def read_records(records: list[DatasetRecord]) -> list[tuple[RowWithSource, Issue | None]]:
    """The row of each record, and why a part of it could not be read, if so. Any record of MLflow is accepted."""
    report = check_source(open_source([_cells(r) for r in records], format="mlflow", outputs="generated"))
    errors = {row: issues[0] for row, issues in errors_by_row(report).items()}
    rows = [{**{c: row[c] for c in COLUMNS}, SOURCE: None} for row in report.iter_rows()]
    for row, record in zip(rows, records, strict=True):
        # add the fields that only the record has
        if isinstance(record.get("outputs"), str):
            row["response"] = record["outputs"]
        for name, column in EXPECTATIONS.items():
            value = (record.get("expectations") or {}).get(name)
            if value is not None and row[column] is None:  # not a value that a metric could read
                row["custom_expected"] = {**(row["custom_expected"] or {}), name: value}
        source = record.get("source")
        if isinstance(source, dict):
            row[SOURCE] = source
            row["session_id"] = (source.get("source_data") or {}).get("session_id")
        for column in RECORDED:
            tag = (record.get("tags") or {}).get(TAG_PREFIX + column)
            content = jsontext.parse_leniently(tag) if isinstance(tag, str) else None
            if isinstance(tag, str) and column not in NATURAL:
                row[column] = content
            elif isinstance(content, dict) and content.get("beside") == key_of(row[column])[:16]:
                row[column] = content.get("value")
    return [(row, errors.get(i)) for i, row in enumerate(rows)]


def errors_by_row(report: Report) -> dict[int, list[Issue]]:
    """The errors of each row that has any, in their order."""
    errors = (issue for issue in report.iter_issues() if issue.severity is Severity.ERROR)
    return by_key((issue.row, issue) for issue in errors if issue.row is not None)


def _cells(record: DatasetRecord) -> dict[str, Any]:
    """The columns for the reader of the MLflow format: not an answer that is text, which is not parsed, and not the
    empty object that MLflow stores where there are no outputs."""
    outputs, tags = record.get("outputs"), _own_tags(record.get("tags"))
    texts = {k: v if v is None or isinstance(v, str) else jsontext.encode_text(v) for k, v in tags.items()}
    cells = {"inputs": record["inputs"], "outputs": None if isinstance(outputs, str) or outputs == {} else outputs}
    return {**cells, "expectations": record.get("expectations") or None, "tags": texts or None}


def _own_tags(tags: dict[str, Any] | None) -> dict[str, Any]:
    """The tags of the user."""
    return {k: v for k, v in (tags or {}).items() if k != MLFLOW_USER and not k.startswith(TAG_PREFIX)}


# --- rows with equal requests → the one that a dataset gets of them, and what becomes of the others
#
#     rows ──by inputs──▶ groups of equal requests ──first, last or merge──▶ the rows to write, each a record
#                         │                          │
#                         a stored record            collapsed, updated: which columns get lost
#
# A dataset has one record for equal inputs: a second row with the same request overwrites, key by key, the cells of the
# first one. So equal requests are looked for before anything is written, among the rows and in the dataset.
OnDuplicate = Literal["raise", "first", "last", "merge"]


class Collapsed(Struct, frozen=True):
    """A row without a record of its own: `into` is the position of the row with the same request that was written, or
    the ID of the existing record. `lost` names the columns with other values there."""

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


class Chosen(Struct):
    """The rows to write, and the treatment of the others and of the existing records."""

    rows: list[RowWithSource] = []
    collapsed: list[Collapsed] = []
    updated: list[Updated] = []


def choose_rows(rows: list[RowWithSource], stored: list[DatasetRecord], on_duplicate: OnDuplicate) -> Chosen:
    """Choose a row for each request. Raise EvalSetError for `"raise"` if a row would get no record of its own."""
    groups = by_key((key_of(whole(row, "inputs")), row) for row in rows)
    there = {key_of(r["inputs"]): r for r in stored}
    met = [there[key] for key in groups if key in there]
    known = {r["id"]: row for r, (row, _) in zip(met, read_records(met), strict=True)}
    chosen = Chosen()
    choose = {"first": itemgetter(0), "last": itemgetter(-1)}.get(on_duplicate, _merged)
    for key, group in groups.items():
        record = there.get(key)
        if record is not None and on_duplicate == "first":
            chosen.collapsed += [_collapsed(r, known[record["id"]], record["id"]) for r in group]
            continue
        choice = choose(group)
        chosen.rows.append(choice)
        chosen.collapsed += [_collapsed(r, choice, choice["row"]) for r in group if r["row"] != choice["row"]]
        if record is not None:
            stored_row = known[record["id"]]
            both = [n for n in _COMPARED if choice[n] is not None and stored_row[n] is not None]
            merged = {n: {**stored_row[n], **choice[n]} if n in _KEYED else choice[n] for n in both}
            chosen.updated.append(Updated(choice["row"], record["id"], _lost(stored_row, merged, both)))
    if on_duplicate == "raise":
        merges = [(c.row, c.request_id, f"row {c.into}", c.lost) for c in chosen.collapsed]
        merges += [(u.row, None, f"the stored record {u.record_id}", u.lost) for u in chosen.updated if u.lost]
        texts = []
        for at, request_id, into, names in merges:
            shown_id = "" if request_id is None else f" ({visible(request_id)[:60]})"
            texts.append(f"row {at}{shown_id} as {into}" + (f" (another {', '.join(names)})" if names else ""))
        if texts:
            shown = "; ".join(texts[:5]) + (f"; and {len(texts) - 5:,} more" if len(texts) > 5 else "")
            raise EvalSetError(
                f"{len(texts):,} rows would be merged, because an MLflow dataset stores one record per distinct "
                f"request: {shown}. "
                'Nothing was written; on_duplicate="first", "last" or "merge" selects the row that is kept'
            )
    return chosen


def _merged(group: list[RowWithSource]) -> RowWithSource:
    """The last row, completed with values of those before it; of two answers (response, facts) it has the later one."""
    merged = dict(group[0])
    for row in group[1:]:
        later = without_null_keys(row)
        for name, other in (_TRUTHS, _TRUTHS[::-1]):
            if name in later and other not in later:
                merged[other] = None
        for name in _KEYED:
            if name in later and merged[name] is not None:
                later[name] = {**merged[name], **later[name]}
        merged.update(later)
    return merged


_TRUTHS = ("expected_response", "expected_facts")
_COMPARED = tuple(n for n in (*RECORDED, SOURCE) if n != "request")
_KEYED = ("custom_expected", "tags")
"""Columns that mlflow merges key by key."""


def _collapsed(row: RowWithSource, kept: RowWithSource, into: int | str) -> Collapsed:
    return Collapsed(row["row"], row["request_id"], into, _lost(row, kept, _COMPARED))


def _lost(row: RowWithSource, kept: RowWithSource, names: Iterable[str]) -> tuple[str, ...]:
    """The columns that lose something if the cells of `kept` are in their place."""

    def is_kept(cell: Any, value: Any, name: str) -> bool:
        if value is None or cell == value:
            return True
        return name in _KEYED and cell is not None and {**cell, **value} == cell

    return tuple(n for n in names if not is_kept(kept[n], row[n], n))
