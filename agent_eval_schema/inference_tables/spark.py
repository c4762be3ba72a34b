"""A logged table → an evaluation dataset, on Spark: the kernels and the SQL of the embedded engine, so the same rows.

    df ─mapInArrow(convert_batch)─▶ lines, one a record: index, packed rows ─SQL (decide/)─▶ decisions
    lines ⋈ decisions ─mapInArrow(finish_batch)─▶ built, packed ─┬─▶ rows
                                                                 ├─▶ excluded
                                                                 └─▶ summary, report

Payloads are read once and go into Python once; their results are kept packed, one cell per batch, so that Spark has
few bytes to copy and none to encode; on disk, as its memory is needed for the decisions. A packed batch travels in the
first line of its rows; the other lines have none, so that the 10,000 lines that Spark sends to Python at once hold no
more than as many rows. Payloads are only shuffled where the decisions are too many to be sent to every executor.
Only numbers and packed validation results are collected on the driver.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import filtered, pack, unpack
from agent_eval_schema.cells.notes import free
from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.inference_tables.build_summary import STRATA_KEPT, BuildSummary, summarized
from agent_eval_schema.inference_tables.decide.sql import (
    BESIDE_SQL,
    CALL_TABLE,
    DEDUPED,
    ENTRY,
    JOINED_TRACES,
    NEAR_STEP,
    QUOTA_STEP,
    RESULTS,
    TRACE_TABLE,
    call_columns,
    steps_of,
)
from agent_eval_schema.inference_tables.finish.finish import (
    EXCLUDED,
    ROWS,
    UPDATES,
    finish_batch,
    finish_existing,
    is_existing,
    new_run,
    out_rows,
    redacted,
    rows_excluded,
    split_by_validity,
)
from agent_eval_schema.inference_tables.finish.redact import redactor_of
from agent_eval_schema.inference_tables.make_plan import plan_of
from agent_eval_schema.inference_tables.plan import BuildOptions, BuildPlan, Hook
from agent_eval_schema.inference_tables.read.convert import FEEDBACK_LISTS
from agent_eval_schema.inference_tables.result import EvalSetBuild, Table
from agent_eval_schema.inference_tables.side_tables import (
    existing_rows,
    label_plan,
    own_fields,
    require_assessments,
    trace_pairs,
)
from agent_eval_schema.inference_tables.stages import convert_logged
from agent_eval_schema.io.spark import (
    Stream,
    in_python,
    named,
    naming_missing_packages,
    persisted,
    spark_schema,
    spark_source,
    unpersist,
    with_places,
    with_short_plan,
)
from agent_eval_schema.validation.checked_batch import VERDICT
from agent_eval_schema.validation.checked_run import CheckedRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# --- the decisions (decide/sql.py) over the lines of the converted rows
SENT_TO_ALL = 2_000_000
"""The number of logged rows up to which their decisions are sent to every executor (some 100 bytes each), so that
payloads stay where they are; beyond, Spark chooses the join."""

DECISIONS, PACKED = "decisions", "packed"
"""The columns of a line: the decisions about the rows of a batch, and the batch."""


class SparkDecisions:
    """The decisions about all rows: Spark SQL over the lines. As few queries as can be: of a small table, planning them
    takes longer than the work, so a step is a common table of those that read it."""

    def __init__(
        self, lines: DataFrame, plan: BuildPlan, label_lines: DataFrame | None, traces: DataFrame | None, start: float
    ) -> None:
        self._plan, self._kept = plan, list["DataFrame"]()
        self._lines = self._keep(lines, on_disk=True)
        calls = "COUNT(CASE WHEN part >= 0 AND (record IS NULL OR record = 0) THEN 1 END)"
        counts = ("COUNT(CASE WHEN part >= 0 THEN 1 END)", calls, "COUNT(CASE WHEN part < 0 THEN 1 END)")
        with naming_missing_packages():
            counted: tuple[int, ...] = self._lines.selectExpr(*counts, "COUNT(feedback)").collect()[0]
        self.records, self.logged, self.existing, feedback = counted
        self._rated = bool(feedback and plan.labeled) or label_lines is not None
        labels = self._lines if label_lines is None else label_lines
        self._tables: dict[str, Any] = {
            "calls": self._lines.select(*CALL_TABLE.names),
            "entries": labels.where("feedback IS NOT NULL" if self._rated else "false")
            .selectExpr("part", "place", "inline(feedback)")
            .select("part", "place", *ENTRY),
            **({} if traces is None else {"traces": traces}),
        }
        self._steps = steps_of(plan, self.existing)
        # Those that several others read and that are not as good as empty are computed once.
        again = [
            *(("questions",) if self._rated or plan.near is not None else ()),
            *((NEAR_STEP,) if plan.near is not None else ()),
            *(("latest", "rated") if self._rated else ()),
            *(("candidates", *{QUOTA_STEP}.intersection(self._steps), "chosen") if plan.sample is not None else ()),
            *(("decisions",) if traces is not None else ()),
        ]
        for name in again:
            frame = self._select(self._steps.pop(name))
            self._tables[name] = self._keep(_beside_sql(frame, name, plan) if name in BESIDE_SQL else frame)
        self.seconds = time.perf_counter() - start

    def lines(self) -> DataFrame:
        """The lines that have a packed batch with the decisions about its rows, the others without."""
        from pyspark.sql.functions import broadcast

        traced = "traces" in self._tables
        # rather than null: see `lists_filled`
        empty = f"CAST(array() AS {spark_schema(CALL_LINE)['feedback'].dataType.simpleString()})"
        by_batch = _BY_BATCH.format(
            entries=f"COALESCE(l.entries, {empty})" if self._rated else empty,
            trace="j.trace" if traced else "CAST(NULL AS STRING)",
            more=(_ENTRIES if self._rated else "") + (_TRACES if traced else ""),
        )
        decisions = self._select(by_batch)
        if self.logged <= SENT_TO_ALL:
            decisions = broadcast(decisions)
        return self._lines.join(decisions, ["part", "place"], "left").select(DECISIONS, PACKED)

    def results(self, reasons: Collection[str]) -> dict[str, list[tuple[Any, ...]]]:
        """The small results, as far as there is something in them: each costs a query. `reasons` are those of excluded
        rows."""
        has = {"feedback": self._rated, "strata": self._plan.stratified, "conflicts": bool(DEDUPED & {*reasons})}
        queries = {name: f"{select} LIMIT {STRATA_KEPT}" for name, select in RESULTS.items() if has.get(name)}
        answers = {name: [tuple(row) for row in self._select(select).collect()] for name, select in queries.items()}
        return {name: answers.get(name, []) for name in has}

    def close(self) -> None:
        for frame in self._kept:
            unpersist(frame)

    def _keep(self, df: DataFrame, *, on_disk: bool = False) -> DataFrame:
        self._kept.append(persisted(df, on_disk=on_disk))
        return with_short_plan(self._kept[-1])

    def _select(self, select: str) -> DataFrame:
        """A SELECT that may read the tables and the steps by their names."""
        steps: list[str] = []
        read = select
        for name, step in reversed(self._steps.items()):
            if _mentions(read, name):
                steps.insert(0, f"{name} AS ({step})")
                read += f" {step}"
        tables = {name: table for name, table in self._tables.items() if _mentions(read, name)}
        sources = [f"{name} AS (SELECT * FROM {{{name}}})" for name in tables]
        return self._lines.sparkSession.sql(f"WITH {', '.join([*sources, *steps])} {select}", **tables)


def _beside_sql(frame: DataFrame, name: str, plan: BuildPlan) -> DataFrame:
    """A table that is computed on the driver: of hashes, some hundred bytes per question, or of numbers of strata."""
    table = BESIDE_SQL[name](pa.Table.from_batches(spark_source(frame).batches()), plan)
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return frame.sparkSession.createDataFrame(rows, spark_schema(table.schema))


def _mentions(select: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", select) is not None


_FIELDS = ", ".join(f"e.{name}" for name in ("time", *(n for n in ENTRY if n != "time")))
_BACK = ", ".join(f"e.{name} AS {name}" for name in ENTRY)

_BY_BATCH = f"""
    SELECT d.part, CAST(0 AS BIGINT) AS place,
           sort_array(collect_list(
               struct(d.place, d.content_hash, d.reason, {{entries}} AS entries, {{trace}} AS trace)
           )) AS {DECISIONS}
    FROM decisions d {{more}}
    GROUP BY d.part
"""
_ENTRIES = f"""
    LEFT JOIN (
        SELECT part, place, transform(sort_array(collect_list(struct({_FIELDS}))), e -> struct({_BACK})) AS entries
        FROM attached e GROUP BY part, place
    ) l ON d.part = l.part AND d.place = l.place
"""
_TRACES = f"LEFT JOIN ({JOINED_TRACES}) j ON d.part = j.part AND d.place = j.place"


# --- on the executors
#
# convert_batches    logged rows ──▶ a line per converted row, the first of each batch with all of it, packed
# build_batches      lines with decisions ──▶ the result of each batch: packed rows, and counts
# unpacked_batches   packed rows ──▶ rows
WANTED, STRATUM = "wanted", "stratum"
"""The columns after those of the table: the result of the user's SQL for each row."""

CALL_LINE = pa.schema([*CALL_TABLE, ("feedback", FEEDBACK_LISTS), (PACKED, pa.binary())])
"""The facts of a converted row for the decisions, and the packed batch: `part` is the number of the first logged row in
the batch, `place` that of the converted row in it."""

BUILT = pa.schema([*((name, pa.binary()) for name in (*get_args(Table), "verdicts")), ("counts", pa.string())])
"""The result of a batch: its tables and the validation results of the rows, packed; and the counts as JSON
({the counted thing: {name: number}})."""


def _numbered_batches(
    names: Sequence[str], batches: Stream, more: Sequence[str] = ()
) -> Iterator[tuple[np.ndarray[Any, Any], pa.RecordBatch]]:
    """The batches with their real names, each with the numbers of its rows; behind them `more` columns of our own,
    whose names the table may have, too."""
    for batch in named([free("__place__", names), *names, *(free(name, names) for name in more)], batches):
        yield np.asarray(batch.column(0)), _columns(batch, 1)


def _columns(batch: pa.RecordBatch, start: int, end: int | None = None) -> pa.RecordBatch:
    return batch.select(list(range(batch.num_columns))[start:end])


def convert_batches(plan: BuildPlan, names: Sequence[str], batches: Stream) -> Stream:
    for places, batch in _numbered_batches(names, batches, (WANTED, STRATUM)):
        # The converted rows of logged ones, which are followed by the result of the user's SQL.
        computed = {"selected": plan.where and batch.column(-2), "stratum": plan.stratum_sql and batch.column(-1)}
        results = {name: array for name, array in computed.items() if array}
        rows, stratum = convert_logged(_columns(batch, 0, -2), plan, results)
        index = call_columns(int(places[0]), rows, stratum)
        packed = pack(rows, "lz4")
        yield _in_first(CALL_LINE, {**index, "feedback": rows.column("feedback"), PACKED: packed}, rows.num_rows)


def existing_batches(plan: BuildPlan, names: Sequence[str], batches: Stream) -> Stream:
    """The lines of the rows of a dataset that is extended: parts below 0."""
    for places, batch in _numbered_batches(names, batches):
        part = existing_rows(batch, plan)
        index = call_columns(int(places[0]) - (1 << 62), part.facts, part.stratum)
        values = {**index, "feedback": part.facts.column("feedback"), PACKED: pack(part.rows, "lz4")}
        yield _in_first(CALL_LINE, values, batch.num_rows)


def _in_first(schema: pa.Schema, values: Mapping[str, Any], lines: int) -> pa.RecordBatch:
    """A batch of `lines` lines; values that are not arrays are in the first of them, those that are absent in none."""
    cells = [(values.get(f.name), f.type) for f in schema]
    arrays = [c if isinstance(c, pa.Array) else pa.array([c, *[None] * (lines - 1)], kind) for c, kind in cells]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def build_batches(plan: BuildPlan, hook: Hook | None, schema: pa.Schema, batches: Stream) -> Stream:
    """Finish the packed rows; those of the dataset have the columns of `schema`."""
    for batch in named([DECISIONS, PACKED], batches):
        for i in np.flatnonzero(batch.column(1).is_valid()):
            rows = unpack(batch.column(1)[i].as_buffer())
            decisions = batch.column(0).slice(i, 1).flatten()
            # Each decision was made about the row with the same hash, or the rows were in another order before.
            hashes = rows.column(len(ROWS) if is_existing(rows) else "content_hash")
            if not decisions.field("content_hash").equals(hashes):
                raise EvalSetError(OTHER_ROWS)
            yield _in_first(BUILT, _built(rows, decisions, plan, hook, schema), rows.num_rows)


def unpacked_batches(batches: Stream) -> Stream:
    for batch in batches:
        for cell in batch.column(0).drop_null():
            yield unpack(cell.as_buffer())


OTHER_ROWS = (
    "the DataFrame gave other rows, or gave them in another order, when it was read again: persist it, or write it to "
    "a table, before a set is built from it"
)


def _built(
    rows: pa.RecordBatch, decisions: pa.StructArray, plan: BuildPlan, hook: Hook | None, schema: pa.Schema
) -> dict[str, bytes]:
    """The result of a batch of converted rows, or of rows of the dataset that is extended: the columns of BUILT."""
    lists = decisions.field("entries")
    sizes = pc.list_value_length(lists)
    # Null where a row has none. If there are none at all, the content of the lists is not examined: see `named`.
    entries = pa.nulls(len(lists), FEEDBACK_LISTS)
    if pc.sum(sizes).as_py():
        entries = pc.if_else(pc.equal(sizes, 0), pa.scalar(None, FEEDBACK_LISTS), lists.cast(FEEDBACK_LISTS))
    if is_existing(rows):
        split = split_by_validity(finish_existing(rows.append_column("entries", entries), plan, hook), plan, True)
        return {**_packed(split.rows, split.counts, schema), "updates": pack(split.updates, "lz4")}
    reasons = decisions.field("reason")
    stays = np.asarray(reasons.is_null())
    # the converted rows with their feedback and the traces that were joined
    at = rows.schema.get_field_index("trace")
    traces = pc.coalesce(decisions.field("trace"), rows.column(at)).cast(rows.schema.field(at).type)
    complete = rows.set_column(at, rows.schema.field(at), traces)
    split = split_by_validity(
        finish_batch(filtered(complete.append_column("entries", entries), stays), plan, hook), plan, False
    )
    others = redacted(rows_excluded(filtered(rows, ~stays), reasons.drop_null()), redactor_of(plan, hook))
    others = one_batch([others, split.invalid])
    joined = {"": rows.num_rows - decisions.field("trace").null_count}
    counts = {**split.counts, "joined": joined, "reason": Counter(others.column("reason").to_pylist())}
    return {**_packed(split.rows, counts, schema), "excluded": pack(others, "lz4")}


def _packed(finished: pa.RecordBatch, counts: Mapping[str, Mapping[str, int]], schema: pa.Schema) -> dict[str, bytes]:
    """The columns of BUILT that all finished rows have."""
    out = out_rows(finished, schema)
    rows = pa.RecordBatch.from_arrays([out.column(f.name).cast(f.type) for f in schema], schema=schema)
    verdicts = pack(finished.select(list(range(len(VERDICT)))), "zstd")
    return {"rows": pack(rows, "lz4"), "verdicts": verdicts, "counts": msgspec.json.encode(counts)}


def trace_batches(names: Sequence[str], batches: Stream) -> Stream:
    for _, batch in _numbered_batches(names, batches):
        yield from trace_pairs(batch).to_batches()


# --- on the driver
class SparkBuild(EvalSetBuild["DataFrame"]):
    """A build whose converted and finished rows are persisted, in memory or on the disks of the executors."""

    def __init__(
        self,
        plan: BuildPlan,
        reason: str,
        decided: SparkDecisions,
        built: DataFrame,
        hook: Hook | None,
        schema: pa.Schema,
    ) -> None:
        self._plan, self._reason, self._decided, self._hook = plan, reason, decided, hook
        self._schemas: dict[str, pa.Schema] = {"rows": schema, "excluded": EXCLUDED, "updates": UPDATES}
        self._kept = persisted(built, on_disk=True)
        self._built = with_short_plan(self._kept)

    def _frame(self, name: Table) -> DataFrame:
        return self._built.select(name).mapInArrow(unpacked_batches, spark_schema(self._schemas[name]))

    def _batches(self, name: Table) -> Iterator[pa.RecordBatch]:
        return iter(spark_source(self._frame(name)).batches())

    def _write(self, name: Table, path: str) -> int:
        from agent_eval_schema.io.spark import require_new, write_table

        require_new(path)
        write_table(self._frame(name), path)
        summary = self.summary
        return summary.rows + summary.existing.get("rows", 0) if name == "rows" else sum(summary.excluded.values())

    def _summarize(self) -> BuildSummary:
        start = time.perf_counter()
        run, counted = self._counted
        counted["codes"] += Counter(run.builder.counts)
        return summarized(
            self._plan,
            self._hook,
            self._decided.results(counted["reason"]),
            counted,
            logged=self._decided.logged,
            records=self._decided.records,
            traces_joined=counted["joined"].total(),
            table=None,
            format=self._plan.family,
            format_reason=self._reason,
            engine="spark",
            seconds=self._decided.seconds + time.perf_counter() - start,
        )

    @cached_property
    def _counted(self) -> tuple[CheckedRun, dict[str, Counter[str]]]:
        """The result of each batch for the driver: the validation results of the rows, and the counts."""
        run = new_run(self._plan)
        counts = defaultdict[str, Counter[str]](Counter)
        batches = self._built.where("verdicts IS NOT NULL").select("verdicts", "counts")
        for verdicts, counted in batches.toLocalIterator(prefetchPartitions=True):
            run.add(unpack(verdicts))
            for what, more in msgspec.json.decode(counted).items():
                counts[what].update(more)
        if counts["kept"].total() + counts["reason"].total() != self._decided.records:
            raise EvalSetError(OTHER_ROWS)
        run.builder.finish()
        run.source = spark_source(self.rows)
        return run, counts

    @cached_property
    def _run(self) -> CheckedRun:  # type: ignore[override]  # computed when it is needed
        return self._counted[0]

    def close(self) -> None:
        unpersist(self._kept)
        self._decided.close()


def spark_from_inference_table(df: DataFrame, **options: Any) -> EvalSetBuild[DataFrame]:
    """Build an evaluation dataset from a Spark DataFrame of logged calls, on its executors.

    The rows, and a sample of them, are those of `eval_set_from_inference_table`; their order is not fixed.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The inference table. It is read once. Where nothing can be persisted (serverless compute) or an executor was
        lost, it is read again; then it must have the same rows in the same partitions.
    **options : object
        The options of `eval_set_from_inference_table`, except `engine` and `jobs`. `traces`, `extend` and a
        table of `labels` are Spark DataFrames; `where`, `stratify` and `balance_by` are Spark SQL.

    Returns
    -------
    EvalSetBuild
        The rows, the excluded rows, the row counts per step and the validation report; the tables are Spark DataFrames.

    Raises
    ------
    EvalSetError
        The kind of table is unknown, an option is not valid, or another table is not a Spark DataFrame.

    See Also
    --------
    eval_set_from_inference_table : Build an evaluation dataset without Spark.

    Examples
    --------
    >>> from agent_eval_schema import spark_from_inference_table
    >>> df = spark.read.json("sample_data/inference_table.jsonl")
    >>> build = spark_from_inference_table(df, sample=5)
    >>> build.rows.columns[-3:]
    ['request_time', 'status_code', 'served_entity']
    >>> build.rows.write.saveAsTable("main.eval.helpdesk")  # doctest: +SKIP
    >>> build.close()
    """
    return build_set_on_spark(df, BuildOptions(**options))


def build_set_on_spark(df: DataFrame, options: BuildOptions) -> SparkBuild:
    start = time.perf_counter()
    for name, table in {"table": df, **options.tables}.items():
        if not hasattr(table, "mapInArrow"):
            raise EvalSetError(f"{name}: on Spark expected a DataFrame of Spark, got a {type(table).__name__}")
    plan, reason = plan_of(df.columns, options)
    plan = msgspec.structs.replace(plan, now=time.time_ns() // 1000)
    labels, traces = (options.tables.get(name) for name in ("labels", "traces"))
    if labels is not None:
        require_assessments(labels.columns)
    lines, schema = _lines(df, plan), ROWS
    if (existing := options.tables.get("extend")) is not None:
        first = existing_rows(next(spark_source(existing).batches()), plan)
        schema = pa.schema([*ROWS, *own_fields(first.rows.schema)])
        lines = lines.unionByName(
            in_python(with_places(existing), partial(existing_batches, plan, existing.columns), spark_schema(CALL_LINE))
        )
    label_lines = None if labels is None else _lines(labels, label_plan(options))
    if traces is not None:
        traces = in_python(with_places(traces), partial(trace_batches, traces.columns), spark_schema(TRACE_TABLE))
    decided = SparkDecisions(lines, plan, label_lines, traces, start)
    built = decided.lines().mapInArrow(partial(build_batches, plan, options.hook, schema), spark_schema(BUILT))
    return SparkBuild(plan, reason, decided, built, options.hook, schema)


def _lines(df: DataFrame, plan: BuildPlan) -> DataFrame:
    """The converted rows, a line each: what decisions need of it, and in the first of each batch all of the batch."""
    from pyspark.sql.functions import expr, lit

    wanted = expr(plan.where).cast("boolean") if plan.where else lit(True)
    stratum = expr(plan.stratum_sql).cast("string") if plan.stratum_sql else lit(None).cast("string")
    raw = with_places(df.select("*", wanted.alias(WANTED), stratum.alias(STRATUM)))
    return in_python(raw, partial(convert_batches, plan, df.columns), spark_schema(CALL_LINE))
