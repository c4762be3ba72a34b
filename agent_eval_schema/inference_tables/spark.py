"""A logged table → an evaluation set, on Spark: the kernels and the SQL of the embedded engine, so the same rows.

    df ─mapInArrow(convert_batch)─▶ lines, one a record: index, packed rows ─SQL (decide/)─▶ decisions
    lines ⋈ decisions ─mapInArrow(finish_batch)─▶ built, packed ─┬─▶ rows
                                                                 ├─▶ set aside
                                                                 └─▶ summary, report

Payloads are read once and go into Python once; what is made of them is kept packed, a cell a batch, so that Spark has
few bytes to copy and none to encode; on disk, as its memory is needed for the decisions. A packed batch travels in the
first line of its rows; the other lines have none, so that the 10,000 lines that Spark sends to Python at once hold no
more than as many rows. Payloads are only shuffled where the decisions are too many to be sent to every executor.
Nothing but numbers and packed verdicts comes to the driver.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import filtered, one_batch, pack, unpack
from agent_eval_schema.inference_tables.decide.sql import ENTRY, JOINED_TRACES
from agent_eval_schema.inference_tables.finish.finish import (
    ENTRY_LISTS,
    ROWS,
    evaluation_rows,
    finish_batch,
    finish_plan,
    label_counts,
    redacted_counts,
)
from agent_eval_schema.inference_tables.finish.redact import Hook, Redactor
from agent_eval_schema.inference_tables.finish.set_aside import SET_ASIDE, invalid_rows, redacted, rows_set_aside
from agent_eval_schema.inference_tables.options import FEEDBACK, plan_of
from agent_eval_schema.inference_tables.read.convert import FEEDBACK_TYPE
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.inference_tables.side_tables import ASSESSMENT_LOGS, require_assessments, trace_pairs
from agent_eval_schema.inference_tables.stages import convert_logged, steps_of
from agent_eval_schema.inference_tables.summary import (
    Summarized,
    Summary,
    feedback_counts,
    funnel_steps,
    issue_counts,
)
from agent_eval_schema.inference_tables.work_folder import INDEX, TRACE_TABLE
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.spark import Batches, ddl, ddl_of, in_python, named, numbered, spark_source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.render.funnel.summary import Stratum
from agent_eval_schema.validation.checked_batch import VERDICT, verdict
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.report_builder import ISSUES_KEPT, ReportBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SENT_TO_ALL = 2_000_000
"""Up to so many logged rows their decisions are sent to every executor (some 100 bytes each), so that payloads stay
where they are; beyond, Spark joins the two as it sees fit."""

STRATA_KEPT = 100

_WANTED, _STRATUM, _DECISIONS, _PACKED = "wanted", "stratum", "decisions", "packed"


class SparkBuild(Summarized):
    """What was made of a logged table on Spark.

    Attributes
    ----------
    rows
        The evaluation set: a DataFrame with the canonical columns and `request_time`, `status_code`, `served_entity`.
    set_aside
        Every other row: a DataFrame with `request_id`, `reason`, `message`, `time`, `status_code`, `request`,
        `response`. Together they account for every logged row.
    summary
        The funnel in numbers (`Summary`); `print(build.summary)`.
    report
        The `Report` on the rows, as of `validate_eval_set`.

    DataFrames are lazy; what they have in common is computed once and kept (`persist`) until `close()`: the converted
    and the finished rows, packed, a third of their size each, in memory or on the executors' disks. Whoever reads
    `rows` or `set_aside` unpacks them: write them, or persist what is asked for often. Use it as a context manager, or
    close it when its DataFrames are written.
    """

    def __init__(self, plan: BuildPlan, reason: str, decided: _Decided, built: DataFrame, hook: Hook | None) -> None:
        self._plan, self._reason, self._decided, self._hook = plan, reason, decided, hook
        self._built = _kept(built, on_disk=True)

    @property
    def rows(self) -> DataFrame:
        return self._unpacked("rows", ROWS)

    @property
    def set_aside(self) -> DataFrame:
        return self._unpacked("set_aside", SET_ASIDE)

    def _unpacked(self, name: str, schema: pa.Schema) -> DataFrame:
        return self._built.select(name).mapInArrow(_unpacked, ddl(schema))

    @cached_property
    def summary(self) -> Summary:
        start = time.perf_counter()
        builder, counts = self._told
        said = feedback_counts(self._decided.tallies())
        issues = issue_counts(Counter(builder.counts) + counts["codes"], said)
        steps = funnel_steps(self._decided.records, counts["reason"])
        return Summary(
            table=None,
            family=self._plan.family,
            family_reason=self._reason,
            logged=self._decided.logged,
            records=self._decided.records,
            steps=steps,
            rows=steps[-1].left,
            feedback=said,
            labels=dict(sorted(counts["labels"].items())),
            redacted=dict(sorted(counts["redacted"].items())),
            traces_joined=counts["joined"].total(),
            strata=self._strata(),
            issues=issues,
            sample=self._plan.sample,
            seed=self._plan.seed,
            redaction="hook" if self._hook is not None else self._plan.redact,
            engine="spark",
            seconds=self._decided.seconds + time.perf_counter() - start,
        )

    @property
    def report(self) -> Report:
        """The report on the rows; their positions are those in `rows`."""
        source = spark_source(self.rows)
        return Report(source, finish_plan(self._plan), self._told[0])

    @cached_property
    def _told(self) -> tuple[ReportBuilder, dict[str, Counter[str]]]:
        """What the driver is told of each batch: the verdicts on the rows, and the counts (see `_made`)."""
        plan = finish_plan(self._plan)
        nowhere = Source("arrow", lambda: iter(()), lambda _: None)
        builder = ReportBuilder(plan.codes, plan.outputs, nowhere, keep=ISSUES_KEPT, values=plan.values)
        counts = {what: Counter[str]() for what in _COUNTED}
        told = self._built.where("verdicts IS NOT NULL").select("verdicts", "counts")
        for verdicts, counted in told.toLocalIterator(prefetchPartitions=True):
            builder.add(unpack(verdicts))
            for what, more in msgspec.json.decode(counted).items():
                counts[what].update(more)
        if counts["kept"].total() + counts["reason"].total() != self._decided.records:
            raise EvalSetError(_OTHER_ROWS)
        builder.finish()
        return builder, counts

    def _strata(self) -> tuple[Stratum, ...]:
        if not self._plan.stratified:
            return ()
        select = "SELECT stratum, size, CAST(sampled AS BIGINT) FROM strata ORDER BY size DESC, stratum"
        return tuple(Stratum(*row) for row in self._decided.results(f"{select} LIMIT {STRATA_KEPT}"))

    def close(self) -> None:
        """Let go of what is kept."""
        _let_go(self._built)
        self._decided.close()

    def __enter__(self) -> SparkBuild:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def spark_from_inference_table(
    df: DataFrame, *, traces: DataFrame | None = None, labels: Any = FEEDBACK, **options: Any
) -> SparkBuild:
    """Turn a Spark DataFrame of logged calls into an evaluation set, on its executors.

    The options are those of `eval_set_from_inference_table`; `traces` and a table of `labels` are DataFrames too, and
    `where` and an SQL expression to `stratify` by are Spark SQL. The rows, and a sample of them, are those of the
    embedded engine; their order is Spark's.

    The DataFrame is read once, and what is made of it is kept. It is read again only where nothing can be kept
    (serverless compute) or an executor was lost: then it must give the same rows in the same partitions, as files and
    tables do; one that does not (`rand()`, the order behind a shuffle) is told, and has to be written first.

    Returns
    -------
    SparkBuild
        `rows` and `set_aside` (DataFrames), `summary`, `report`.

    Raises
    ------
    EvalSetError
        A table of no known family, an option without meaning, a table beside that is no DataFrame.
    """
    start = time.perf_counter()
    for name, given in (("table", df), ("traces", traces), ("labels", labels)):
        is_option = given is None or (isinstance(given, str) and given == FEEDBACK)
        if not is_option and not hasattr(given, "mapInArrow"):
            raise EvalSetError(f"{name}: on Spark expected a DataFrame of Spark, got a {type(given).__name__}")
    plan, reason = plan_of(df.columns, joins_traces=traces is not None, labels=labels, **options)
    plan = msgspec.structs.replace(plan, now=time.time_ns() // 1000)
    hook = options.get("redact") if callable(options.get("redact")) else None
    decided = _Decided(_lines(df, plan), plan, labels, traces, start)
    built = decided.lines().mapInArrow(partial(_build, plan, hook), ddl(_BUILT))
    return SparkBuild(plan, reason, decided, built, hook)


def _lines(df: DataFrame, plan: BuildPlan) -> DataFrame:
    """The converted rows, a line each: what decisions need of it, and in the first of each batch all of the batch."""
    from pyspark.sql.functions import expr, lit

    wanted = expr(plan.where).cast("boolean") if plan.where else lit(True)
    stratum = expr(plan.stratum_sql).cast("string") if plan.stratum_sql else lit(None).cast("string")
    raw = numbered(df.select("*", wanted.alias(_WANTED), stratum.alias(_STRATUM)))
    return in_python(raw, partial(_convert, plan, df.columns), ddl(_LINE))


def _kept(df: DataFrame, on_disk: bool = False) -> DataFrame:
    """The DataFrame, kept once it is computed, where Spark can keep anything: in memory, as far as there is room. There
    is none for payloads: those of 1,000,000 rows would drive out the decisions that are sent to all."""
    from pyspark import StorageLevel
    from pyspark.errors import PySparkException

    try:
        return df.persist(StorageLevel.DISK_ONLY) if on_disk else df.persist()
    except PySparkException:  # serverless compute
        return df


def _let_go(df: DataFrame) -> None:
    from pyspark.errors import PySparkException

    with suppress(PySparkException):  # serverless compute has kept nothing
        df.unpersist()


class _Decided:
    """The decisions about all rows: Spark SQL over the lines. As few queries as can be: of a small table, planning them
    takes longer than the work, so a step is a common table of those that read it."""

    def __init__(self, lines: DataFrame, plan: BuildPlan, labels: Any, traces: Any, start: float) -> None:
        self._lines = _kept(lines, on_disk=True)
        calls = "COUNT(CASE WHEN record IS NULL OR record = 0 THEN 1 END)"
        self.records: int
        self.logged: int
        self.records, self.logged, feedback = self._lines.selectExpr("COUNT(*)", calls, "COUNT(feedback)").collect()[0]
        self._rated = bool(feedback and plan.labelled) or _is_table(labels)
        said = _logged_labels(labels, plan) if _is_table(labels) else self._lines
        self._tables: dict[str, Any] = {
            "calls": self._lines.select(*INDEX.names),
            "entries": _entries(said.where("feedback IS NOT NULL" if self._rated else "false")),
            **({} if traces is None else {"traces": _traces(traces)}),
        }
        self._steps = {step.name: step.select for step in steps_of(plan)}
        # Those that several others read and that are not as good as empty are computed once.
        self._again = [
            *(("asked", "latest", "rated") if self._rated else ()),
            *(("candidates", "chosen") if plan.sample is not None else ()),
            *(("decisions",) if traces is not None else ()),
        ]
        for name in self._again:
            self._tables[name] = _kept(self._select(self._steps.pop(name)))
        self.seconds = time.perf_counter() - start

    def lines(self) -> DataFrame:
        """The lines that have a packed batch with the decisions about its rows, the others without; see `_build`."""
        from pyspark.sql.functions import broadcast

        traced = "traces" in self._tables
        by_batch = _BY_BATCH.format(
            entries=f"COALESCE(l.entries, {_NO_ENTRIES})" if self._rated else _NO_ENTRIES,
            trace="j.trace" if traced else "CAST(NULL AS STRING)",
            more=(_ENTRIES if self._rated else "") + (_TRACES if traced else ""),
        )
        decisions = self._select(by_batch)
        if self.logged <= SENT_TO_ALL:
            decisions = broadcast(decisions)
        return self._lines.join(decisions, ["part", "place"], "left").select(_DECISIONS, _PACKED)

    def tallies(self) -> dict[str, int]:
        """What became of the feedback."""
        if not self._rated:
            return dict.fromkeys(("given", "latest", "attached", "unknown"), 0)
        return dict(self.results("SELECT what, rows_of FROM tallies"))

    def results(self, select: str) -> list[tuple[Any, ...]]:
        """A small result."""
        return [tuple(row) for row in self._select(select).collect()]

    def close(self) -> None:
        for kept in (self._lines, *(self._tables[name] for name in self._again)):
            _let_go(kept)

    def _select(self, select: str) -> DataFrame:
        """A SELECT that may read the tables and the steps by their names."""
        steps: list[str] = []
        said = select
        for name, step in reversed(self._steps.items()):
            if _mentions(said, name):
                steps.insert(0, f"{name} AS ({step})")
                said += f" {step}"
        tables = {name: table for name, table in self._tables.items() if _mentions(said, name)}
        given = [f"{name} AS (SELECT * FROM {{{name}}})" for name in tables]
        return self._lines.sparkSession.sql(f"WITH {', '.join([*given, *steps])} {select}", **tables)


def _mentions(select: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", select) is not None


_FIELDS = ", ".join(f"e.{name}" for name in ("time", *(n for n in ENTRY if n != "time")))
_BACK = ", ".join(f"e.{name} AS {name}" for name in FEEDBACK_TYPE.names)

_BY_BATCH = f"""
    SELECT d.part, CAST(0 AS BIGINT) AS place,
           sort_array(collect_list(
               struct(d.place, d.content_hash, d.reason, {{entries}} AS entries, {{trace}} AS trace)
           )) AS {_DECISIONS}
    FROM decisions d {{more}}
    GROUP BY d.part
"""
_NO_ENTRIES = f"CAST(array() AS {ddl_of(ENTRY_LISTS)})"
"""Rather than null: see `lists_filled`."""
_ENTRIES = f"""
    LEFT JOIN (
        SELECT part, place, transform(sort_array(collect_list(struct({_FIELDS}))), e -> struct({_BACK})) AS entries
        FROM attached e GROUP BY part, place
    ) l ON d.part = l.part AND d.place = l.place
"""
_TRACES = f"LEFT JOIN ({JOINED_TRACES}) j ON d.part = j.part AND d.place = j.place"


def _is_table(labels: Any) -> bool:
    return labels is not None and not isinstance(labels, str)


def _logged_labels(labels: DataFrame, plan: BuildPlan) -> DataFrame:
    """The lines of an assessment log."""
    require_assessments(labels.columns)
    return _lines(labels, BuildPlan(ASSESSMENT_LOGS, values=plan.values))


def _entries(lines: DataFrame) -> DataFrame:
    """The feedback in lines, an entry a line."""
    return lines.selectExpr("part", "place", "inline(feedback)").select("part", "place", *ENTRY)


def _traces(df: DataFrame) -> DataFrame:
    return in_python(numbered(df), partial(_pairs, df.columns), ddl(TRACE_TABLE))


# ---------------------------------------------------------------------------------------------------------------------
# on the executors
_LINE = pa.schema([*INDEX, ("feedback", ENTRY_LISTS), (_PACKED, pa.binary())])
"""What the decisions need of a converted row, and the packed batch: `part` is the number of the first logged row in the
batch, `place` that of the converted row in it."""

_BUILT = pa.schema(
    [
        ("rows", pa.binary()),
        ("set_aside", pa.binary()),
        ("verdicts", pa.binary()),  # on the rows
        ("counts", pa.string()),  # JSON: {what is counted: {name: number}}
    ]
)
"""What was made of a batch: packed, and counted."""

_COUNTED = ("kept", "joined", "reason", "labels", "redacted", "codes")


def _numbered_batches(names: Sequence[str], batches: Batches) -> Iterator[tuple[np.ndarray[Any, Any], pa.RecordBatch]]:
    """The batches with their real names, each with the numbers of its rows."""
    for batch in named(["__place__", *names], batches):
        yield np.asarray(batch.column(0)), _columns(batch, 1)


def _columns(batch: pa.RecordBatch, start: int, end: int | None = None) -> pa.RecordBatch:
    return batch.select(list(range(batch.num_columns))[start:end])


def _convert(plan: BuildPlan, names: Sequence[str], batches: Batches) -> Batches:
    for places, batch in _numbered_batches([*names, _WANTED, _STRATUM], batches):
        rows, stratum = _converted(batch, plan)
        size = rows.num_rows
        made = {
            "part": pa.array(np.full(size, places[0])),
            "place": pa.array(np.arange(size)),
            "stratum": pa.nulls(size, pa.string()) if stratum is None else stratum,
            "without_trace": rows.column("trace").is_null(),
            _PACKED: pack(rows, "lz4"),
        }
        yield _in_first(_LINE, {f.name: made[f.name] if f.name in made else rows.column(f.name) for f in _LINE}, size)


def _in_first(schema: pa.Schema, given: Mapping[str, Any], lines: int) -> pa.RecordBatch:
    """A batch of so many lines; what is no array stands in the first of them."""
    arrays = [
        a if isinstance(a := given[f.name], pa.Array) else pa.array([a, *[None] * (lines - 1)], f.type) for f in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _converted(batch: pa.RecordBatch, plan: BuildPlan) -> tuple[pa.RecordBatch, pa.Array | None]:
    """The converted rows of logged ones, behind which stands what the user's SQL said of them."""
    said = {"selected": plan.where and batch.column(-2), "stratum": plan.stratum_sql and batch.column(-1)}
    logged = _columns(batch, 0, -2)
    return convert_logged(logged, plan, {name: array for name, array in said.items() if array})


def _build(plan: BuildPlan, hook: Hook | None, batches: Batches) -> Batches:
    for batch in named([_DECISIONS, _PACKED], batches):
        for i in np.flatnonzero(batch.column(1).is_valid()):
            rows = unpack(batch.column(1)[i].as_buffer())
            made = _made(rows, _matching(batch.column(0).slice(i, 1), rows), plan, hook)
            yield _in_first(_BUILT, made, rows.num_rows)


def _unpacked(batches: Batches) -> Batches:
    for batch in batches:
        for cell in batch.column(0).drop_null():
            yield unpack(cell.as_buffer())


def _matching(lists: pa.ListArray, rows: pa.RecordBatch) -> pa.StructArray:
    """The decisions about converted rows, one each. Each was made about the row with the same hash, or this is not the
    order in which the rows were before."""
    found = lists.flatten()
    if not found.field("content_hash").equals(rows.column("content_hash")):
        raise EvalSetError(_OTHER_ROWS)
    return found


_OTHER_ROWS = (
    "the DataFrame gave other rows, or gave them in another order, when it was read again: persist it, or write it to "
    "a table, before a set is built from it"
)


def _complete(rows: pa.RecordBatch, decisions: pa.StructArray) -> pa.RecordBatch:
    """The converted rows with their feedback and the traces that were joined."""
    at = rows.schema.get_field_index("trace")
    traces = pc.coalesce(decisions.field("trace"), rows.column(at)).cast(rows.schema.field(at).type)
    filled = rows.set_column(at, rows.schema.field(at), traces)
    return filled.append_column("entries", _entry_lists(decisions.field("entries")))


def _entry_lists(lists: pa.ListArray) -> pa.ListArray:
    """The entries as rows have them: null where there are none. If there are none at all, what is in the lists is not
    looked at: see `named`."""
    sizes = pc.list_value_length(lists)
    if not pc.sum(sizes).as_py():
        return pa.nulls(len(lists), ENTRY_LISTS)
    return pc.if_else(pc.equal(sizes, 0), pa.scalar(None, ENTRY_LISTS), lists.cast(ENTRY_LISTS))


def _made(rows: pa.RecordBatch, decisions: pa.StructArray, plan: BuildPlan, hook: Hook | None) -> dict[str, bytes]:
    """What is made of a batch of converted rows: the columns of _BUILT."""
    reasons = decisions.field("reason")
    stays = np.asarray(reasons.is_null())
    finished = finish_batch(filtered(_complete(rows, decisions), stays), plan, hook)
    valid = np.asarray(verdict(finished, "valid")).astype(bool) | plan.keeps("invalid")
    good, bad = filtered(finished, valid), filtered(finished, ~valid)
    aside = rows_set_aside(filtered(rows, ~stays), reasons.drop_null())
    redactor = hook or plan.redact
    if redactor:
        aside = redacted(aside, Redactor(redactor))
    aside = one_batch([aside, invalid_rows(bad)])
    counts = {
        "kept": Counter({"": good.num_rows}),
        "joined": Counter({"": rows.num_rows - decisions.field("trace").null_count}),
        "reason": Counter(aside.column("reason").to_pylist()),
        "labels": label_counts(good),
        "redacted": redacted_counts(good),
        "codes": Counter(note["code"] for notes in verdict(bad, "issues").to_pylist() for note in notes),
    }
    return {
        "rows": pack(_of(ROWS, evaluation_rows(good)), "lz4"),
        "set_aside": pack(aside, "lz4"),
        "verdicts": pack(good.select(list(range(len(VERDICT)))), "zstd"),
        "counts": msgspec.json.encode(counts),
    }


def _of(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column(f.name).cast(f.type) for f in schema], schema=schema)


def _pairs(names: Sequence[str], batches: Batches) -> Batches:
    for _, batch in _numbered_batches(names, batches):
        yield from trace_pairs(batch).to_batches()
