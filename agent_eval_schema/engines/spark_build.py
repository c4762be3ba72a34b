"""A logged table → an evaluation set, on Spark: the kernels and the SQL of the embedded engine, so the same rows.

    df ─mapInArrow(convert_batch)─▶ index, a narrow line a record ─SQL (decide.py)─▶ decisions, a line a logged row
    df ⋈ decisions ─mapInArrow(convert_batch, finish_batch)─▶ built ─┬─▶ rows
                                                                     ├─▶ set aside
                                                                     └─▶ summary, report

Payloads are read twice and go into Python twice; they are only shuffled where the decisions are too many to be sent to
every executor. Nothing but numbers and packed verdicts comes to the driver.
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

from agent_eval_schema.cells import filtered
from agent_eval_schema.engines.spark import Batches, ddl, named, numbered, pack, spark_source, unpack
from agent_eval_schema.fold import ISSUES_KEPT, Fold
from agent_eval_schema.frames import Source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.production.aside import SET_ASIDE, invalid_rows, redacted, rows_set_aside
from agent_eval_schema.production.convert import FEEDBACK as ENTRY_TYPE
from agent_eval_schema.production.decide import ENTRY, JOINED_TRACES
from agent_eval_schema.production.finish import (
    ENTRIES,
    ROWS,
    TALLY,
    evaluation_rows,
    finish_batch,
    finish_plan,
    tally,
)
from agent_eval_schema.production.options import FEEDBACK, plan_of
from agent_eval_schema.production.parts import INDEX, TRACES
from agent_eval_schema.production.plan import BuildPlan
from agent_eval_schema.production.redact import Hook, Redactor
from agent_eval_schema.production.side_tables import ASSESSMENT_LOGS, require_assessments, trace_pairs
from agent_eval_schema.production.stages import convert_logged, logged_rows, steps_of
from agent_eval_schema.production.summary import Stratum, Summary, feedback_counts, funnel_steps, issue_counts
from agent_eval_schema.report import Report
from agent_eval_schema.verdict import VERDICT, verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SENT_TO_ALL = 2_000_000
"""Up to so many logged rows their decisions are sent to every executor (some 100 bytes each), so that payloads stay
where they are; beyond, Spark joins the two as it sees fit."""

STRATA_KEPT = 100

_WANTED, _STRATUM, _DECISIONS = "wanted", "stratum", "decisions"


class SparkBuild:
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

    DataFrames are lazy; what they have in common is computed once and kept (`persist`) until `close()`. Use it as a
    context manager, or close it when its DataFrames are written.
    """

    def __init__(self, plan: BuildPlan, reason: str, decided: _Decided, built: DataFrame, hook: Hook | None) -> None:
        self._plan, self._reason, self._decided, self._hook = plan, reason, decided, hook
        self._built = _kept(built)
        self._seconds = 0.0

    @property
    def rows(self) -> DataFrame:
        return self._built.where("reason IS NULL").select(*ROWS.names)

    @property
    def set_aside(self) -> DataFrame:
        columns = [f"{ {'time': 'request_time'}.get(n, n) } AS {n}" for n in SET_ASIDE.names]
        return self._built.where("reason IS NOT NULL").selectExpr(*columns)

    @cached_property
    def summary(self) -> Summary:
        start = time.perf_counter()
        counts, fold = self._counts(), self._fold
        said = feedback_counts(dict(self._decided.results("SELECT what, rows_of FROM tallies")))
        issues = issue_counts(Counter(fold.counts) + counts["codes"], said)
        records = sum(counts["reason"].values())
        steps = funnel_steps(records, {r: n for r, n in counts["reason"].items() if r is not None})
        return Summary(
            table=None,
            family=self._plan.family,
            family_reason=self._reason,
            logged=self._decided.logged,
            records=records,
            steps=steps,
            rows=steps[-1].left,
            feedback=said,
            labels=dict(sorted(counts["labels"].items())),
            redacted=dict(sorted(counts["redacted"].items())),
            traces_joined=self._decided.joined,
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
        return Report(source, finish_plan(self._plan), self._fold)

    @cached_property
    def _fold(self) -> Fold:
        plan = finish_plan(self._plan)
        nowhere = Source("arrow", lambda: iter(()), lambda _: None)
        fold = Fold(plan.codes, plan.outputs, nowhere, keep=ISSUES_KEPT, values=plan.values)
        for row in self._built.where("verdicts IS NOT NULL").select("verdicts").toLocalIterator():
            fold.add(unpack(row[0]))
        fold.finish()
        return fold

    def _counts(self) -> dict[str, Counter[Any]]:
        """How many rows have which reason; of the rows, how many have which label and how much was replaced in them; of
        those that are invalid, how many issues they have of each code."""
        stays = self._built.where("reason IS NULL")
        found = {
            "reason": self._built.groupBy("reason").count(),
            "labels": stays.selectExpr("explode(labels) AS name").groupBy("name").count(),
            "redacted": stays.selectExpr("explode(redacted) AS (name, n)").groupBy("name").sum("n"),
            "codes": self._built.selectExpr("explode(codes) AS name").groupBy("name").count(),
        }
        return {name: Counter({row[0]: row[1] for row in df.collect()}) for name, df in found.items()}

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

    def to_text(self, *, color: bool = False, width: int | None = None) -> str:
        """The funnel as it is printed in a terminal."""
        return self.summary.to_text(color=color, width=width)

    def to_json(self) -> str:
        """The funnel as versioned JSON."""
        return self.summary.to_json()

    def to_html(self) -> str:
        """The funnel and the report on the rows as a standalone page."""
        from agent_eval_schema.render.html import build_page

        return build_page(self.summary, self.report)

    def __str__(self) -> str:
        return self.to_text()


def spark_from_inference_table(
    df: DataFrame, *, traces: DataFrame | None = None, labels: Any = FEEDBACK, **options: Any
) -> SparkBuild:
    """Turn a Spark DataFrame of logged calls into an evaluation set, on its executors.

    The options are those of `eval_set_from_inference_table`; `traces` and a table of `labels` are DataFrames too, and
    `where` and an SQL expression to `stratify` by are Spark SQL. The rows, and a sample of them, are those of the
    embedded engine; their order is Spark's.

    The DataFrame must give the same rows in the same partitions when it is read again, as files and tables do; one that
    does not (`rand()`, the order behind a shuffle) has to be persisted or written first, and is told.

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
    raw = _raw(df, plan)
    decided = _Decided(raw.mapInArrow(partial(_index, plan, df.columns), ddl(_INDEXED)), plan, labels, traces, start)
    place, decisions = raw.columns[0], decided.by_logged_row()
    joined = raw.join(decisions, place, "left").select(_DECISIONS, *raw.columns)
    built = joined.mapInArrow(partial(_build, plan, hook, df.columns), ddl(_BUILT))
    return SparkBuild(plan, reason, decided, built, hook)


def _raw(df: DataFrame, plan: BuildPlan) -> DataFrame:
    """The rows, numbered; at the end what the user's SQL says of each."""
    from pyspark.sql.functions import expr, lit

    wanted = expr(plan.where).cast("boolean") if plan.where else lit(True)
    stratum = expr(plan.stratum_sql).cast("string") if plan.stratum_sql else lit(None).cast("string")
    return numbered(df.select("*", wanted.alias(_WANTED), stratum.alias(_STRATUM)))


def _kept(df: DataFrame) -> DataFrame:
    """The DataFrame, kept once it is computed, where Spark can keep anything."""
    from pyspark.errors import PySparkException

    try:
        return df.persist()
    except PySparkException:  # serverless compute
        return df


def _let_go(df: DataFrame) -> None:
    from pyspark.errors import PySparkException

    with suppress(PySparkException):  # serverless compute has kept nothing
        df.unpersist()


class _Decided:
    """The decisions about all rows: Spark SQL over the index."""

    def __init__(self, index: DataFrame, plan: BuildPlan, labels: Any, traces: Any, start: float) -> None:
        self._index = _kept(index)
        self._plan = plan
        self._tables: dict[str, Any] = {
            "calls": self._index.drop("feedback"),
            "entries": _entries(self._index, plan, labels),
            **({} if traces is None else {"traces": _traces(traces)}),
        }
        self.logged = self._index.where("place = 0").count()
        for step in steps_of(plan):
            made = self._select(step.select)
            self._tables[step.name] = _kept(made) if step.name in _READ_AGAIN else made
        self.seconds = time.perf_counter() - start

    def by_logged_row(self) -> DataFrame:
        """A line a logged row: its number, and the decisions about its records in their order."""
        from pyspark.sql.functions import broadcast

        lines = self._select(_BY_ROW.format(joined=_JOINED if "traces" in self._tables else _NOT_JOINED))
        return broadcast(lines) if self.logged <= SENT_TO_ALL else lines

    @cached_property
    def joined(self) -> int:
        """How many rows got a trace from the table of traces."""
        if "traces" not in self._tables:
            return 0
        return int(self.results(f"SELECT COUNT(*) FROM ({JOINED_TRACES}) j")[0][0])

    def results(self, select: str) -> list[tuple[Any, ...]]:
        """A small result."""
        return [tuple(row) for row in self._select(select).collect()]

    def close(self) -> None:
        for kept in (self._index, *(self._tables[name] for name in _READ_AGAIN)):
            _let_go(kept)

    def _select(self, select: str) -> DataFrame:
        """A SELECT that may read the tables and the steps so far, by their names."""
        mentioned = [name for name in self._tables if re.search(rf"\b{name}\b", select)]
        query = ", ".join(f"{name} AS (SELECT * FROM {{{name}}})" for name in mentioned)
        return self._index.sparkSession.sql(f"WITH {query} {select}", **{n: self._tables[n] for n in mentioned})


_READ_AGAIN = ("asked", "latest", "rated", "candidates", "chosen", "decisions")
"""The steps that several others read: computed once."""

_FIELDS = ", ".join(f"e.{name}" for name in ("time", *(n for n in ENTRY if n != "time")))
_BACK = ", ".join(f"e.{name} AS {name}" for name in ENTRY_TYPE.names)

_BY_ROW = f"""
    SELECT d.part AS place,
           sort_array(collect_list(struct(d.place, c.content_hash, d.reason, l.entries, j.trace))) AS {_DECISIONS}
    FROM decisions d
    JOIN calls c ON d.part = c.part AND d.place = c.place
    LEFT JOIN (
        SELECT part, place, transform(sort_array(collect_list(struct({_FIELDS}))), e -> struct({_BACK})) AS entries
        FROM attached e GROUP BY part, place
    ) l ON d.part = l.part AND d.place = l.place
    LEFT JOIN {{joined}} j ON d.part = j.part AND d.place = j.place
    GROUP BY d.part
"""
_JOINED = f"({JOINED_TRACES})"
_NOT_JOINED = "(SELECT CAST(NULL AS BIGINT) AS part, CAST(NULL AS BIGINT) AS place, CAST(NULL AS STRING) AS trace)"


def _entries(index: DataFrame, plan: BuildPlan, labels: Any) -> DataFrame:
    """The feedback, an entry a line: of the table itself, or of an assessment log."""
    if not isinstance(labels, str) and labels is not None:
        require_assessments(labels.columns)
        work = partial(_index, BuildPlan(ASSESSMENT_LOGS, values=plan.values), labels.columns)
        index = _raw(labels, BuildPlan(ASSESSMENT_LOGS)).mapInArrow(work, ddl(_INDEXED))
    given = index.where("feedback IS NOT NULL" if plan.labelled else "false")
    return given.selectExpr("part", "place", "inline(feedback)").select("part", "place", *ENTRY)


def _traces(df: DataFrame) -> DataFrame:
    return numbered(df).mapInArrow(partial(_pairs, df.columns), ddl(TRACES))


# ---------------------------------------------------------------------------------------------------------------------
# on the executors


_INDEXED = pa.schema([*INDEX, ("feedback", ENTRIES)])
"""What the decisions need of each record: `part` is the number of the logged row, `place` that of the record in it."""

_MORE = pa.schema(
    [
        ("reason", pa.string()),
        ("message", pa.string()),
        *TALLY,
        ("codes", pa.list_(pa.string())),  # of the issues of a row that is invalid
        ("verdicts", pa.binary()),  # on the rows of a batch that stay; it travels in the first of them
    ]
)
_BUILT = pa.schema([*ROWS, *_MORE])


def _numbered_batches(names: Sequence[str], batches: Batches) -> Iterator[tuple[np.ndarray[Any, Any], pa.RecordBatch]]:
    """The batches with their real names, each with the numbers of its rows."""
    for batch in named(["__place__", *names], batches):
        yield np.asarray(batch.column(0)), _columns(batch, 1)


def _columns(batch: pa.RecordBatch, start: int, end: int | None = None) -> pa.RecordBatch:
    return batch.select(list(range(batch.num_columns))[start:end])


def _index(plan: BuildPlan, names: Sequence[str], batches: Batches) -> Batches:
    for places, batch in _numbered_batches([*names, _WANTED, _STRATUM], batches):
        rows, stratum = _converted(batch, plan)
        of = logged_rows(rows)
        made = {
            "part": pa.array(places[of]),
            "place": rows.column("record").cast(pa.int64()).fill_null(0),
            "stratum": pa.nulls(rows.num_rows, pa.string()) if stratum is None else stratum,
            "without_trace": rows.column("trace").is_null(),
        }
        arrays = [made[f.name] if f.name in made else rows.column(f.name) for f in _INDEXED]
        yield pa.RecordBatch.from_arrays(arrays, schema=_INDEXED)


def _converted(batch: pa.RecordBatch, plan: BuildPlan) -> tuple[pa.RecordBatch, pa.Array | None]:
    """The converted rows of logged ones, behind which stands what the user's SQL said of them."""
    said = {"selected": plan.where and batch.column(-2), "stratum": plan.stratum_sql and batch.column(-1)}
    logged = _columns(batch, 0, -2)
    return convert_logged(logged, plan, {name: array for name, array in said.items() if array})


def _build(plan: BuildPlan, hook: Hook | None, names: Sequence[str], batches: Batches) -> Batches:
    for batch in named([_DECISIONS, "__place__", *names, _WANTED, _STRATUM], batches):
        rows, _ = _converted(_columns(batch, 2), plan)
        decisions = _matching(batch.column(0), rows)
        reasons = decisions.field("reason")
        stays = np.asarray(reasons.is_null())
        yield from _stay(filtered(_complete(rows, decisions), stays), plan, hook)
        if not stays.all():
            redactor = hook or plan.redact
            aside = rows_set_aside(filtered(rows, ~stays), reasons.drop_null())
            yield _aside(redacted(aside, Redactor(redactor)) if redactor else aside)


def _matching(lists: pa.ListArray, rows: pa.RecordBatch) -> pa.StructArray:
    """The decisions about converted rows, one each. Each was made about the row with the same hash, or this is not the
    order in which the rows were before."""
    found = lists.flatten()
    if not found.field("content_hash").equals(rows.column("content_hash")):
        raise EvalSetError(
            "the DataFrame gave other rows, or gave them in another order, when it was read again: persist it, or "
            "write it to a table, before a set is built from it"
        )
    return found


def _complete(rows: pa.RecordBatch, decisions: pa.StructArray) -> pa.RecordBatch:
    """The converted rows with their feedback and the traces that were joined."""
    at = rows.schema.get_field_index("trace")
    traces = pa.compute.coalesce(decisions.field("trace"), rows.column(at)).cast(rows.schema.field(at).type)
    filled = rows.set_column(at, rows.schema.field(at), traces)
    return filled.append_column("entries", decisions.field("entries").cast(ENTRIES))


def _stay(rows: pa.RecordBatch, plan: BuildPlan, hook: Hook | None) -> Batches:
    """Rows that are finished, and those of them that the check sets aside."""
    if not rows.num_rows:
        return
    finished = finish_batch(rows, plan, hook)
    valid = np.asarray(verdict(finished, "valid")).astype(bool) | plan.keeps("invalid")
    good, bad = filtered(finished, valid), filtered(finished, ~valid)
    if good.num_rows:
        verdicts = pack(good.select(list(range(len(VERDICT)))))
        more = {name: tally(good, name) for name in TALLY.names}
        first = pa.array([verdicts, *[None] * (good.num_rows - 1)], pa.binary())
        yield _fitted(evaluation_rows(good), {**more, "verdicts": first})
    if bad.num_rows:
        codes = [[note["code"] for note in notes] for notes in verdict(bad, "issues").to_pylist()]
        yield _aside(invalid_rows(bad), codes=pa.array(codes, pa.list_(pa.string())))


def _aside(batch: pa.RecordBatch, **more: pa.Array) -> pa.RecordBatch:
    names = [{"time": "request_time"}.get(n, n) for n in batch.schema.names]
    return _fitted(pa.RecordBatch.from_arrays(batch.columns, names=names), more)


def _fitted(batch: pa.RecordBatch, more: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The batch with all columns of _BUILT."""
    given = {**dict(zip(batch.schema.names, batch.columns, strict=True)), **more}
    arrays = [given[f.name].cast(f.type) if f.name in given else pa.nulls(batch.num_rows, f.type) for f in _BUILT]
    return pa.RecordBatch.from_arrays(arrays, schema=_BUILT)


def _pairs(names: Sequence[str], batches: Batches) -> Batches:
    for _, batch in _numbered_batches(names, batches):
        yield from trace_pairs(batch).to_batches()
