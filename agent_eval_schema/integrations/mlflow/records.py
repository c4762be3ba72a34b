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

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from agent_eval_schema.formats.mlflow import EXPECTATIONS, EXPECTED_COLUMNS, expectations_of, whole
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source

RowWithSource = dict[str, Any]
DatasetRecord = dict[str, Any]

TAG_PREFIX = "agent_eval_schema."
"""Tags that begin like this are ours: the columns that a record has no place for, and the position of the row."""

ROW_TAG = f"{TAG_PREFIX}row"
"""The tag of a record, or of an evaluated trace, that holds the position of its row: mlflow does not keep the order."""

ID_TAG = f"{TAG_PREFIX}request_id"
"""The tag of an evaluated trace that holds the request_id of its row."""

MLFLOW_USER = "mlflow.user"
"""The tag that mlflow gives to every record that it stores."""

SOURCE = "source"
"""The column, in addition to the canonical ones, with the source of a row."""

SOURCE_TYPES = ("UNSPECIFIED", "TRACE", "HUMAN", "DOCUMENT", "CODE")

RECORDED = tuple(c for c in COLUMNS if c != "trace")
"""The parts of a row that a record keeps; of its trace, the ID (as the source)."""

NATURAL = ("request", "response", "custom_expected", "tags", *EXPECTED_COLUMNS, "inputs", "outputs", "expectations")
"""The columns for which a record has a place."""


def key_of(inputs: Any) -> str:
    """MLflow's identity of a record: the SHA-256 of the inputs as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


# ---------------------------------------------------------------------------------------------------------------------
# rows → records
def to_records(rows: Iterable[RowWithSource]) -> list[DatasetRecord]:
    """The records of canonical rows, one each, in order. `row` in a row is its position, `source` where it is from."""
    rows = list(rows)
    records = [_natural(row) for row in rows]
    for row, record, (read, _) in zip(rows, records, read_records(records), strict=True):
        for column in RECORDED:
            if read[column] != row[column]:
                value = row[column]
                kept = {"value": value, "beside": _digest(read[column])} if column in NATURAL else value
                record["tags"][TAG_PREFIX + column] = jsontext.encode_text(kept)
        if "row" in row:
            record["tags"][ROW_TAG] = str(row["row"])
    return records


def _natural(row: RowWithSource) -> DatasetRecord:
    tags = {k: v for k, v in (row["tags"] or {}).items() if k != MLFLOW_USER and not k.startswith(TAG_PREFIX)}
    custom = {k: v for k, v in (row["custom_expected"] or {}).items() if k not in EXPECTATIONS}
    expectations = expectations_of({**row, "custom_expected": custom})
    record = {"inputs": whole(row, "inputs"), "expectations": expectations, "tags": tags}
    others = {"outputs": whole(row, "outputs"), "source": row.get(SOURCE)}
    return record | {name: part for name, part in others.items() if part is not None}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


# ---------------------------------------------------------------------------------------------------------------------
# records → rows
def read_records(records: list[DatasetRecord]) -> list[tuple[RowWithSource, Issue | None]]:
    """The row of each record, and why a part of it could not be read, if so. Any record of MLflow is accepted."""
    report = check_source(open_source([_cells(r) for r in records]), format="mlflow", outputs="generated")
    errors = {row: found[0] for row, found in errors_by_row(report).items()}
    rows = [{**{c: row[c] for c in COLUMNS}, SOURCE: None} for row in report.iter_rows()]
    for row, record in zip(rows, records, strict=True):
        _complete(row, record)
    return [(row, errors.get(i)) for i, row in enumerate(rows)]


def errors_by_row(report: Report) -> dict[int, list[Issue]]:
    """The errors of each row that has any, in their order."""
    found: dict[int, list[Issue]] = {}
    for issue in report.iter_issues():
        if issue.row is not None and issue.severity is Severity.ERROR:
            found.setdefault(issue.row, []).append(issue)
    return found


def _cells(record: DatasetRecord) -> dict[str, Any]:
    """The columns for the reader of the MLflow format: not an answer that is text, which is not parsed, and not the
    empty object that MLflow stores where there are no outputs."""
    outputs = record.get("outputs")
    return {
        "inputs": record["inputs"],
        "outputs": None if isinstance(outputs, str) or outputs == {} else outputs,
        "expectations": record.get("expectations") or None,
        "tags": _own_tags(record) or None,
    }


def _own_tags(record: DatasetRecord) -> dict[str, Any]:
    tags = {k: v for k, v in (record.get("tags") or {}).items() if k != MLFLOW_USER and not k.startswith(TAG_PREFIX)}
    return {k: v if v is None or isinstance(v, str) else jsontext.encode_text(v) for k, v in tags.items()}


def _complete(row: RowWithSource, record: DatasetRecord) -> None:
    """Add the fields that only the record has."""
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
        if isinstance(tag, str):
            _restore(row, column, jsontext.parse_leniently(tag))


def _restore(row: RowWithSource, column: str, kept: Any) -> None:
    if column not in NATURAL:
        row[column] = kept
    elif isinstance(kept, dict) and kept.get("beside") == _digest(row[column]):
        row[column] = kept.get("value")
