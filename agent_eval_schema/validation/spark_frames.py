"""A validation of a Spark DataFrame that stays where it is: each result is a lazy DataFrame, and no row is collected.

    df ──mapInArrow──▶ index, a few bytes per row ──SQL──▶ rows per partition · columns · what keys that repeat mean
     └───────────────── mapInArrow(work), with these ──▶ normalized rows, converted rows, losses, metric support …

A CheckedRun counts what comes to it in the order of the rows; here nothing comes. What one batch does not show is
settled by one job when the validation begins: the position at which each partition starts, the existing columns
(a format adds some only for the rows that need them, so a schema that was taken from no row would lose them), and the
rows with the ID or the request of an earlier one. The driver gets a line per partition.

As for files and tables, the rows must be the same, in the same partitions, at each reading (else persist them first).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial, reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import filtered
from agent_eval_schema.cells.notes import NOTE, free
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.column_names import column_renamer
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.arrow import fitted
from agent_eval_schema.io.source import BatchFunction, Source
from agent_eval_schema.io.spark import (
    PLACE_BITS,
    Stream,
    in_python,
    named,
    naming_missing_packages,
    persisted,
    spark_schema,
    unpersist,
    with_places,
    with_short_plan,
)
from agent_eval_schema.metrics.catalog import BIT
from agent_eval_schema.metrics.support import metrics_of, supports
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.dataset import CONFLICTING_TRUTH, MIXED_KINDS, REPEATED_REQUEST_ID, REPEATED_TRACE_ID
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.validation.checked_batch import demands_one_kind, kinds_of, mixed_kinds, rows_of, verdict
from agent_eval_schema.validation.checked_run import CheckedRun, with_invalid
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report_builder import comparison, placed
from agent_eval_schema.validation.unreadable import UNREADABLE, unreadable_cells

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# --- rules that compare rows, by keys
INDEX = pa.schema(
    [
        ("place", pa.int64()),
        ("id", pa.string()),
        ("of_trace", pa.bool_()),
        ("request", pa.int64()),
        ("truth", pa.int64()),
        ("valid", pa.bool_()),
        ("kind", pa.bool_()),
        ("codes", pa.list_(pa.string())),
        ("filled", pa.int64()),
        ("fields", pa.binary()),
    ]
)
"""What the rules on the whole table need to know of a row; `kind` whether it has the field that distinguishes two kinds
of rows, where the platform loads one kind per file; `filled` has a bit for each canonical column with a value,
and `fields` are the columns that are passed through, where a batch has others than the one before."""

SHARED_ID = "shared"
"""Marks a valid row with the ID of an earlier valid row, which it has of its trace."""

# As ReportBuilder finds them: the ID of a trace is not necessarily meant as the row's own, so only an ID that two rows
# have of their own is an error.
_FINDINGS = f"""
    WITH ids AS (
        SELECT id, MIN(STRUCT(place, of_trace)) AS first, MIN(CASE WHEN NOT of_trace THEN place END) AS own
        FROM {{index}} WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1
    ), repeated AS (
        SELECT i.id, i.place, i.valid,
               CASE WHEN i.place = k.first.place THEN NULL
                    WHEN i.of_trace OR (k.first.of_trace AND i.place = k.own) THEN '{REPEATED_TRACE_ID.code}'
                    ELSE '{REPEATED_REQUEST_ID.code}' END AS code,
               CASE WHEN k.first.of_trace AND k.own < i.place AND NOT i.of_trace THEN k.own
                    ELSE k.first.place END AS other
        FROM {{index}} i JOIN ids k ON i.id = k.id
    ), usable AS (
        SELECT id, place FROM repeated WHERE valid AND (code IS NULL OR code = '{REPEATED_TRACE_ID.code}')
    ), truths AS (
        SELECT request, MIN(STRUCT(place, truth)) AS first
        FROM {{index}} WHERE request IS NOT NULL AND truth IS NOT NULL
        GROUP BY request HAVING MIN(truth) <> MAX(truth)
    )
    SELECT place, code, other, valid FROM repeated WHERE code IS NOT NULL
    UNION ALL
    SELECT i.place, '{CONFLICTING_TRUTH.code}', t.first.place, false
    FROM {{index}} i JOIN truths t ON i.request = t.request WHERE i.truth <> t.first.truth
    UNION ALL
    SELECT u.place, '{SHARED_ID}', f.place, false
    FROM usable u JOIN (SELECT id, MIN(place) AS place FROM usable GROUP BY id) f ON u.id = f.id WHERE u.place > f.place
"""

_FILLED = {
    "some": ("OR", ""),
    "every": ("AND", ""),
    "some_valid": ("OR", "FILTER (WHERE valid)"),
    "every_valid": ("AND", "FILTER (WHERE valid)"),
}

SENT_TO_ALL = 1_000_000
"""The number of findings up to which they are sent to every executor (some 50 bytes each), so that the rows stay where
they are; beyond, Spark chooses the join."""


class Found(NamedTuple):
    """A finding of a rule that compares rows: its code, and the position of the earlier row."""

    code: str
    other: int


class Part(Struct, frozen=True):
    """Some rows of the table on an executor: their cells as they came and under our names, their positions in the
    table, and for the rows that have any (by their position in the batch) the findings of the rules that compare
    rows."""

    given: pa.RecordBatch
    batch: pa.RecordBatch
    positions: np.ndarray[Any, Any]
    found: Mapping[int, Sequence[Found]] = {}

    def with_code(self, code: str) -> list[int]:
        """The rows of the batch with a finding of this code."""
        return [row for row, findings in self.found.items() if any(f.code == code for f in findings)]

    def notes(self, plan: Plan, checked: pa.RecordBatch, row: int) -> list[dict[str, Any]]:
        """The issues of a row of the batch by the rules that compare rows."""
        id = verdict(checked, "id")[row].as_py() if plan.values else None
        findings = [f for f in self.found[row] if f.code in plan.codes]
        compared = [placed(comparison(RULES[f.code], f.other, id), plan.origins) for f in findings]
        notes = [(f.rule.code, f.column, f.path, f.message, f.rule.hint) for f in compared]
        return [dict(zip(NOTE.names, note, strict=True)) for note in notes]

    def repeated(self, plan: Plan) -> list[int]:
        """The rows of the batch that are invalid for the ID of an earlier row."""
        return self.with_code(REPEATED_REQUEST_ID.code) if REPEATED_REQUEST_ID.code in plan.codes else []


class Reader(Struct, frozen=True):
    """How an executor reads the rows: the names of the columns, ours for some, and where each partition starts."""

    names: tuple[str, ...]
    columns: Mapping[str, str]
    change: BatchFunction | None = None
    starts: Mapping[int, int] | None = None
    has_findings: bool = False

    def parts(self, batches: Stream) -> Iterator[Part]:
        rename = column_renamer(list(self.names), self.columns)
        more = [free("__found__", self.names)] if self.has_findings else []
        for batch in named([free("__place__", self.names), *self.names, *more], batches):
            cells = batch.select(range(1, len(self.names) + 1))
            rows = rename(cells) if self.change is None else self.change(rename(cells))
            lists = {i: cell for i, cell in enumerate(batch.columns[-1].to_pylist()) if cell} if more else {}
            numbered = {i: [Found(f["code"], int(self.position(f["other"]))) for f in fs] for i, fs in lists.items()}
            yield Part(cells, rows, self.position(np.asarray(batch.column(0))), numbered)

    def position(self, places: Any) -> Any:
        """The positions in the table of rows with these places: see `with_places`."""
        if self.starts is None:
            return places
        parts = np.asarray(places) >> PLACE_BITS
        starts = np.array([self.starts[part] for part in np.atleast_1d(parts).tolist()]).reshape(parts.shape)
        return starts + (np.asarray(places) & ((1 << PLACE_BITS) - 1))


def require_rows_apart(source: Source, plan: Plan | None = None) -> None:
    """Raise EvalSetError for data that is not a row of the dataset per row of the DataFrame. Without a plan no row is
    fetched to look at it."""
    if source.remote is None or (plan is not None and not find_format(plan.format).is_rows):
        raise EvalSetError(
            "data: expected a row of the dataset per row of the Spark DataFrame, got rows that are parts of others or "
            "contain others: build the rows with Spark SQL, or fetch a table that fits in memory, `data.toPandas()`"
        )


class CheckedFrame:
    """The validation of a Spark DataFrame by a plan. `change` is applied to each batch before it is checked.

    Raises EvalSetError if a row of the DataFrame is not a row of the dataset: of a document, or of a span.
    """

    def __init__(self, df: DataFrame, source: Source, plan: Plan, change: BatchFunction | None = None) -> None:
        from pyspark.sql.functions import expr

        require_rows_apart(source, plan)
        if source.repeated_columns:
            raise EvalSetError(f"several columns are called {source.repeated_columns[0]!r}: rename all but one")
        self.plan = plan
        self._rows = with_places(df)
        reader = Reader(tuple(df.columns), source.reading.columns, change)
        self.counts: Counter[str] = Counter()
        rows = in_python(self._rows, partial(_index, plan, reader), spark_schema(INDEX))
        persisted_index = persisted(rows, on_disk=True)
        try:
            with naming_missing_packages():
                index = with_short_plan(persisted_index)
                self._count(df.columns, index)
                persisted_findings = persisted(index.sparkSession.sql(_FINDINGS, index=index))
                frame = with_short_plan(persisted_findings)
                self.fewer = self._fewer(index, frame)
                counts = frame.groupBy("code").agg(expr("COUNT(*) AS rows"), expr("COUNT_IF(valid) AS valid")).collect()
        finally:
            unpersist(persisted_index)
        self.compared = Counter({row["code"]: row["rows"] for row in counts})
        self.counts.update({code: n for code, n in self.compared.items() if code in plan.codes})
        if REPEATED_REQUEST_ID.code in plan.codes:
            self.valid_count -= sum(row["valid"] for row in counts if row["code"] == REPEATED_REQUEST_ID.code)
        self._reader = replace(reader, starts=self._starts, has_findings=bool(counts))
        if counts:  # they stay persisted: each result needs them
            self._rows = self._with_findings(frame)
        else:
            unpersist(persisted_findings)

    def _fewer(self, index: DataFrame, findings: DataFrame) -> tuple[bool, str] | None:
        """The kind of the fewer rows and what is wrong with them, if the platform rejects rows of two kinds in one
        file."""
        form = find_format(self.plan.format)
        if not demands_one_kind(form, self.plan.outputs) or MIXED_KINDS.code not in self.plan.codes:
            return None
        repeated = findings.where(f"code = '{REPEATED_REQUEST_ID.code}'").select("place")
        rows = index.where("kind IS NOT NULL").join(repeated, "place", "left_anti").groupBy("kind").count().collect()
        masks = {BIT[form.one_kind[0]] * row["kind"]: row["count"] for row in rows}
        kinds, message = kinds_of(form, masks), mixed_kinds(form, masks)
        return (kinds[True] < kinds[False], message) if message else None

    def _count(self, names: Sequence[str], index: DataFrame) -> None:
        from pyspark.sql.functions import expr

        by_part = index.groupBy(expr(f"CAST(SHIFTRIGHT(place, {PLACE_BITS}) AS INT) AS part"))
        counts = ("COUNT(*) AS rows", "COUNT_IF(valid) AS valid", "COLLECT_SET(fields) AS fields")
        bits = [f"BIT_{op}(filled) {of} AS {name}" for name, (op, of) in _FILLED.items()]
        parts = by_part.agg(*map(expr, (*counts, *bits))).collect()
        for code, count in index.select(expr("EXPLODE(codes) AS code")).groupBy("code").count().collect():
            self.counts[code] = count
        self._filled = {
            name: reduce(and_ if op == "AND" else or_, (row[name] for row in parts if row[name] is not None), start)
            for name, (op, _) in _FILLED.items()
            for start in [(1 << len(COLUMNS)) - 1 if op == "AND" else 0]
        }
        rows = {row["part"]: row["rows"] for row in parts}
        ends = np.cumsum([rows[part] for part in sorted(rows)], dtype=np.int64)
        self.row_count = int(ends[-1]) if rows else 0
        self.valid_count = sum(row["valid"] for row in parts)
        self._starts = {part: int(end) - rows[part] for part, end in zip(sorted(rows), ends, strict=True)}
        packed = sorted({bytes(fields) for row in parts for fields in row["fields"]})
        schemas = [pa.ipc.read_schema(pa.py_buffer(fields)) for fields in packed]
        beside = pa.unify_schemas(schemas, promote_options="permissive") if schemas else pa.schema([])
        order = {name: place for place, name in enumerate(names)}
        self.beside = pa.schema(sorted(beside, key=lambda f: (order.get(f.name, len(order)), f.name)))

    def _with_findings(self, findings: DataFrame) -> DataFrame:
        """The rows, each with its findings in a last column."""
        from pyspark.sql.functions import broadcast, expr

        by_row = findings.groupBy("place").agg(expr("COLLECT_LIST(STRUCT(code, other)) AS found"))
        few = self.compared.total() <= SENT_TO_ALL
        return self._rows.join(broadcast(by_row) if few else by_row, "place", "left")

    def filled(self, of: str) -> set[str]:
        """The canonical columns with a value in `some` or in `every` row; of the valid rows, in `some_valid` and in
        `every_valid`."""
        return {name for bit, name in enumerate(COLUMNS) if self._filled[of] >> bit & 1}

    @property
    def invalid_count(self) -> int:
        return int(self.row_count - self.valid_count)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the normalized rows: the canonical ones, then those that are passed through."""
        return pa.schema([*ROW_SCHEMA, *self.beside])

    def frame(self, work: Callable[[Part], pa.Table], schema: pa.Schema | str) -> DataFrame:
        """The results of `work`, which have this schema (or Spark's words for it), as a lazy DataFrame."""
        schema = spark_schema(schema) if isinstance(schema, pa.Schema) else schema
        return in_python(self._rows, partial(_results, self._reader, work), schema)

    def normalized(self, on_invalid: str) -> DataFrame:
        """The normalized rows; without the invalid ones (`"drop"`), or with their unreadable cells (`"keep"`)."""
        schema = self.schema
        beside = free(UNREADABLE, schema.names) if on_invalid == "keep" and self.invalid_count else None
        work = partial(_normalized, replace(self.plan, columns=True), schema, on_invalid == "drop", beside)
        return self.frame(work, schema if beside is None else schema.append(pa.field(beside, pa.string())))

    def metric_support(self, names: Sequence[str]) -> DataFrame:
        """The position and the ID of each row, and whether it supports each of these metrics."""
        beside = [pa.field("row", pa.int64()), pa.field("request_id", pa.string())]
        schema = pa.schema([*beside, *((name, pa.bool_()) for name in names)])
        return self.frame(partial(_supported, self.plan, schema), schema)


# --- on the executors
def _results(reader: Reader, work: Callable[[Part], pa.Table], batches: Stream) -> Stream:
    for part in reader.parts(batches):
        yield from work(part).to_batches()


def _index(plan: Plan, reader: Reader, batches: Stream) -> Stream:
    check, last = replace(plan, columns=True), b""
    for part in reader.parts(batches):
        checked = check_batch(part.batch, check)
        beside = [f.remove_metadata() for f in rows_of(checked).schema if f.name not in COLUMNS]
        fields = pa.schema(beside).serialize().to_pybytes()
        first, last = None if fields == last else fields, fields
        issues = verdict(checked, "issues")
        columns = {
            "place": pa.array(part.positions),
            "id": verdict(checked, "id"),
            "of_trace": verdict(checked, "id_of_trace"),
            "request": _signed(verdict(checked, "request_hash")),
            "truth": _signed(verdict(checked, "truth_hash"), 32),
            "valid": verdict(checked, "valid"),
            "kind": kinds_in(checked, plan),
            "codes": pa.ListArray.from_arrays(issues.offsets, issues.values.field("code")),
            "filled": _filled(checked, plan),
            "fields": pa.array([first, *[None] * (checked.num_rows - 1)], pa.binary()),
        }
        yield pa.RecordBatch.from_arrays([columns[f.name] for f in INDEX], schema=INDEX)


def kinds_in(checked: pa.RecordBatch, plan: Plan) -> pa.Array:
    """Whether each usable row has the field that distinguishes two kinds of rows; null where nothing demands one."""
    form = find_format(plan.format)
    if not demands_one_kind(form, plan.outputs):
        return pa.nulls(checked.num_rows, pa.bool_())
    has = (np.asarray(verdict(checked, "presence")) & np.uint64(BIT[form.one_kind[0]])) != 0
    return pa.array(has, mask=~np.asarray(verdict(checked, "usable")).astype(bool))


def _filled(checked: pa.RecordBatch, plan: Plan) -> pa.Array:
    """A bit for each canonical column that has a value; the traces may be passed on beside the columns."""
    rows, bits = rows_of(checked), np.zeros(checked.num_rows, np.int64)
    for bit, name in enumerate(COLUMNS):
        beside = name == "trace" and plan.beside_traces
        column = verdict(checked, "mlflow_reads") if beside else rows.column(name)
        bits |= np.asarray(column.is_valid()).astype(np.int64) << bit
    return pa.array(bits)


def _signed(hashes: pa.Array, bits: int = 0) -> pa.Array:
    """Hashes as Spark has numbers; the rules compare the upper half of some."""
    absent = np.asarray(hashes.is_null())
    return pa.array((np.asarray(hashes.fill_null(0)) >> np.uint64(bits)).view(np.int64), mask=absent)


class PartRun(CheckedRun):
    """The validation of a part as if it were all data, but for the rules that compare rows."""

    def __init__(self, part: Part, plan: Plan) -> None:
        batch = part.batch
        names = tuple(batch.schema.names)
        source = Source("spark", lambda: iter([batch]), lambda _: batch, columns=names, can_hold_objects=False)
        super().__init__(source, plan)
        self._part = part

    def positions(self, start: int, size: int) -> np.ndarray[Any, Any]:
        """Those in the table: a trace that is made of a row has an ID of its own by the row's position."""
        return self._part.positions[start : start + size]

    def add(self, checked: pa.RecordBatch) -> pa.RecordBatch:
        return with_invalid(super().add(checked), self._part.repeated(self.plan))


def _normalized(plan: Plan, schema: pa.Schema, drop: bool, beside: str | None, part: Part) -> pa.Table:
    checked = with_invalid(check_batch(part.batch, plan), part.repeated(plan))
    table, valid = fitted(rows_of(checked), schema), np.asarray(verdict(checked, "valid")).astype(bool)
    if drop:
        return filtered(table, valid)
    if beside is not None:
        unread = dict[int, str]()
        if not valid.all():
            for _ in (run := PartRun(part, plan)).batches():
                pass
            unread = unreadable_cells(run)
        table = table.append_column(beside, pa.array([unread.get(i) for i in range(len(table))], pa.string()))
    return table


def _supported(plan: Plan, schema: pa.Schema, part: Part) -> pa.Table:
    checked = check_batch(part.batch, plan)
    masks, usable = np.asarray(verdict(checked, "presence")), np.asarray(verdict(checked, "usable")).astype(bool)
    usable[part.with_code(REPEATED_REQUEST_ID.code)] = False
    metrics = {metric.name: metric for metric in metrics_of("all")}
    support = [supports(metrics[name], masks, usable, plan.outputs) for name in schema.names[2:]]
    columns = [pa.array(part.positions), verdict(checked, "id"), *map(pa.array, support)]
    return pa.Table.from_arrays(columns, schema=schema)
