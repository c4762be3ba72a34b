"""A result as a file, and a file of scores as a result.

    EvalResult.write ──▶ rows, their scores and reasons, and a ResultRecord ──▶ load_result ──▶ EvalResult
    a table of another tool, a run of MLflow ──────columns of scores────────▶

The record is in the metadata of a Parquet file, and in the first row of JSON Lines and JSON: all other readers see a
table. CSV has none; then the names of the columns show which are scores, as for a file of another tool.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.evaluation.row_keys import keys_as_text, keys_from_text, row_keys
from agent_eval_schema.evaluation.table import (
    REQUEST_ID,
    RUN_COLUMNS,
    ScoredPart,
    cell_text,
    joined_parts,
    score_column,
)
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.records import column_name, is_absent
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.write import keeps_types, write_batches
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.independence import RowKeys
from agent_eval_schema.metrics.intervals import Numbers
from agent_eval_schema.metrics.metric_info import MetricInfo, numbers_of
from agent_eval_schema.schema import EvalRow
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.describe import names
from agent_eval_schema.text.guarded import decoded

VERSION = 1
"""The version of a record. It changes if the meaning of a key changes; a reader ignores keys that it does not know."""

RECORD = "eval_result"
"""The key of the record in the metadata of Parquet, and the column of it in JSON Lines and JSON."""

KEYS = f"{RECORD}/keys"
"""The column of a file by which its rows are the same independent units as those of the result: hashes of the session,
the question and the first expected document, which the columns of a format may have under any name."""

_PACKAGES = ("agent_eval_schema", "mlflow", "pandas", "pyarrow")


class ResultRecord(Struct, frozen=True, kw_only=True):
    """What a file has beside the rows: where the scores come from. `data_hash` is that of the cells of the data, by
    column and row; `agent` is None if none was run ("": the file does not say), `columns` are those of the table (JSON
    omits those without a value), `added` those of reasons that only the file has, `infos` what the user stated of
    metrics, `reading` how `source` is read."""

    version: int = VERSION
    metrics: tuple[str, ...]
    row_count: int
    source: str | None = None
    reading: dict[str, Any] = {}
    data_hash: str = ""
    run_id: str | None = None
    agent: str | None = ""
    sessions: bool = True
    options: dict[str, str] = {}
    versions: dict[str, str] = {}
    issue_counts: dict[str, int] = {}
    aggregates: dict[str, float] = {}
    left_out: int = 0
    columns: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    infos: tuple[MetricInfo, ...] = ()


@lru_cache(maxsize=1)
def versions() -> Mapping[str, str]:
    """The versions of Python and of the packages that scores depend on."""
    by_package = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            by_package[name] = version(name)
    return by_package


def data_hash(parts: Iterable[pd.DataFrame], metrics: Iterable[str]) -> str:
    """A hash of the cells of the data: not of those of a run, nor of scores."""
    prefixes = tuple(f"{name}/" for name in metrics)
    digest = hashlib.sha256()
    for part in parts:
        names = [n for n in map(str, part.columns) if n not in RUN_COLUMNS and not n.startswith(prefixes)]
        for row in zip(*(part[name].tolist() for name in names), strict=True):
            cells = {n: cell_text(jsontext.structured(c)) for n, c in zip(names, row, strict=True) if not is_absent(c)}
            digest.update(msgspec.json.encode(cells, order="deterministic"))
    return digest.hexdigest()[:32]


def written_tables(
    record: ResultRecord, parts: Iterator[pd.DataFrame], reasons: Mapping[str, Numbers], keys: RowKeys | None
) -> tuple[ResultRecord, Iterator[pd.DataFrame]]:
    """The parts of a table with the reasons of each metric and the keys of the rows, and the record that names them."""
    first = next(parts, pd.DataFrame())
    own = set(map(str, first.columns))
    named: dict[str, Any] = {f"{name}/reason": texts for name, texts in reasons.items() if any(texts)}
    added = {name: texts for name, texts in named.items() if name not in own}
    if keys is not None:
        added[KEYS] = keys_as_text(keys)

    def tables() -> Iterator[pd.DataFrame]:
        start = 0
        for part in chain([first], parts):
            columns = {n: pd.Series(texts[start : start + len(part)], part.index) for n, texts in added.items()}
            start += len(part)
            yield part.set_axis([column_name(c) for c in part.columns], axis=1).assign(**columns)

    return replace(record, columns=tuple(map(column_name, first.columns)), added=tuple(added)), tables()


def write_result(path: str, record: ResultRecord, tables: Iterator[pd.DataFrame]) -> None:
    """Write the tables of a result, and the record: where values have no types, in the first row."""
    document = msgspec.to_builtins(record)
    in_row = keeps_types(path)
    if in_row:
        first = next(tables)
        first = first if len(first) else pd.DataFrame(index=[0])
        first.insert(0, RECORD, pd.Series([document, *[None] * (len(first) - 1)], first.index, dtype="object"))
        tables = chain([first], tables)
    # scores as numbers, objects as JSON; columns, and their types, are those of the first part
    batches = (batch for table in tables for batch in open_source(table).batches())
    head = next(batches, None) or pa.RecordBatch.from_pylist([])
    fields = [(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in head.schema]
    metadata = {} if in_row else {RECORD: jsontext.encode(document)}
    write_batches(path, chain([head], batches), pa.schema(fields, metadata=metadata))


# --- a file as a result
def read_scores(
    source: Source, metrics: Sequence[str] | None
) -> tuple[ResultRecord, ScoredPart, Callable[[], Iterator[pd.DataFrame]]]:
    """The record of a source, what is counted of its rows, and the table part by part. `metrics` are the columns that
    are scores, None: those of its record, or that look like scores."""
    record = _record_of(source)
    columns = _score_columns(source, record, metrics)
    numbers = () if record.data_hash or metrics else _numeric(source, LATENCY, FAILURE)
    if not columns or (numbers and columns.keys() <= {LATENCY, FAILURE}):
        got = f"the numbers {names(numbers)}" if numbers else f"the columns {names(source.column_names())}"
        raise EvalSetError(
            f"{source.name or 'data'}: expected columns of scores such as exact_match/score, or metrics= (--metrics) "
            f"with their names; got {got}"
        )

    def with_cells() -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        """Each part as the result has it, and with all cells of the file."""
        start = 0
        for batch in source.batches():
            cells = frame_of([batch])
            part = cells.drop(columns=[RECORD, KEYS, *record.added], errors="ignore")
            if record.row_count == 0 and record.data_hash:  # the row that has only the record
                part = part.iloc[:0]
            none = pd.Series([None] * len(part), dtype="object")
            scores = {score_column(m): numbers_of(part.get(column, none).tolist()) for m, column in columns.items()}
            part = part.drop(columns=[c for c in columns.values() if c not in scores], errors="ignore").assign(**scores)
            if record.columns:
                part = part.reindex(columns=list(dict.fromkeys([*record.columns, *scores])))
            part.index = pd.RangeIndex(start, start + len(part))
            start += len(part)
            yield part, cells

    scored, of_run = [], ("error",) if FAILURE in columns else ()
    for part, cells in with_cells():
        own = keys_from_text(cells[KEYS].tolist()[: len(part)]) if KEYS in cells else None
        texts = {name: cells[f"{name}/reason"][: len(part)] for name in columns if f"{name}/reason" in cells}
        reasons = {name: np.array([None if is_absent(t) else str(t) for t in of], object) for name, of in texts.items()}
        arrays = {name: part[name].to_numpy() for name in (*map(score_column, columns), *of_run) if name in part}
        ids = [None if is_absent(id) else str(id) for id in part[REQUEST_ID]] if of_run and REQUEST_ID in part else ()
        keys = row_keys(part) if own is None and len(part) else own
        scored.append(ScoredPart(arrays, IssueLog(len(part)), reasons, ids, keys))
    whole = joined_parts(scored, columns)
    size = whole.log.size
    if record.data_hash and size != record.row_count:
        raise EvalSetError(f"{source.name}: expected {record.row_count:,} rows, got {size:,}: the file is not complete")
    whole.reasons = {name: texts for name, texts in whole.reasons.items() if any(texts)}
    record = replace(record, row_count=size, metrics=tuple(n for n in columns if n not in (LATENCY, FAILURE)))
    return record, whole, lambda: (part for part, _ in with_cells())


def _record_of(source: Source) -> ResultRecord:
    """The record of a file, or that of a table that has none."""
    text = (source.metadata or {}).get(RECORD.encode())
    if text is None and RECORD in source.column_names() and (head := source.head()) is not None:
        cell = frame_of([head.slice(0, 1)])[RECORD].iloc[0]
        text = None if is_absent(cell) else msgspec.json.encode(jsontext.structured(cell))
    if text is None:
        return ResultRecord(metrics=(), row_count=0)
    place = f"{source.name}: the record of the result ({RECORD}) is malformed"
    record = decoded(text, ResultRecord, place, "write the result again, or remove the record")
    if record.version > VERSION:
        raise EvalSetError(
            f"{source.name}: version {record.version} of a result; this agent-eval-schema reads up to {VERSION}: "
            "upgrade it"
        )
    return record


_PATTERNS = (
    re.compile(r"(?P<metric>(?s:.+))/score"),  # EvalResult, the Vertex AI SDK, mlflow.evaluate (toxicity/v1/score)
    re.compile(r"(?P<metric>(?s:.+))/value"),  # mlflow.genai.evaluate
    re.compile(r"feedback\.(?P<metric>(?s:.+))"),  # LangSmith
)
"""How tools name the columns of scores."""


def _head(source: Source) -> pd.DataFrame:
    return frame_of([batch]) if (batch := source.head()) is not None else pd.DataFrame()


def _numeric(source: Source, *besides: str) -> list[str]:
    """The columns of numbers, which may be scores, by their first values."""
    head = _head(source).drop(columns=[REQUEST_ID, *besides], errors="ignore")
    values = {str(name): [value for value in head[name].tolist() if not is_absent(value)] for name in head.columns}
    return [name for name, cells in values.items() if cells and np.isfinite(numbers_of(cells)).all()]


def _score_columns(source: Source, record: ResultRecord, metrics: Sequence[str] | None) -> dict[str, str]:
    """The column of the scores of each metric, latency and failures first."""
    names = list(source.column_names())
    if metrics:
        numeric = _numeric(source)
        return dict(_named_column(name, names, numeric) for name in metrics)
    head = _head(source)
    was_run = record.agent is not None  # else the data itself has columns of these names
    columns = {name: name for name in (LATENCY, FAILURE) if name in names and was_run}
    if record.metrics:
        return {**columns, **{name: score_column(name) for name in record.metrics}}
    expected = _expectations(head)
    for pattern in _PATTERNS:
        for name in names:
            match = pattern.fullmatch(name)
            if match and match["metric"] not in {*columns, *expected} and _is_score(head, name):
                columns[match["metric"]] = name
    return columns


def _named_column(metric: str, names: Sequence[str], numeric: Sequence[str]) -> tuple[str, str]:
    """The metric that a name means, of a metric or of a column of scores, and its column."""
    known = {match["metric"]: name for pattern in _PATTERNS for name in names if (match := pattern.fullmatch(name))}
    column = metric if metric in names else known.get(metric)
    if column is None:
        require_choice("metrics", metric, dict.fromkeys([*known, *numeric]) or names)
    return next((name for name, of in known.items() if of == column), metric), column or metric


def _expectations(head: pd.DataFrame) -> set[str]:
    """What a table of MLflow expects of its rows: `<name>/value` is that of an expectation, not of a score."""
    expectations = {field.name for field in msgspec.structs.fields(EvalRow) if field.name.startswith("expected_")}
    for cell in head["assessments"].tolist() if "assessments" in head else ():
        notes = jsontext.structured(cell)
        for note in notes if isinstance(notes, list) else ():
            if isinstance(note, dict) and note.get("expectation") is not None:
                expectations.add(str(note.get("assessment_name") or note.get("name")))
    return expectations


def _is_score(head: pd.DataFrame, name: str) -> bool:
    """Whether the first values of a column are numbers, or words of judges; a column without a value may be one."""
    values = [value for value in (head[name].tolist() if name in head else ()) if not is_absent(value)]
    return not values or bool(np.isfinite(numbers_of(values)).any())
