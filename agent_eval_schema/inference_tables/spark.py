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

import time
from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from agent_eval_schema.cells.arrow import unpack
from agent_eval_schema.inference_tables.decide.spark import SparkDecisions
from agent_eval_schema.inference_tables.decide.tables import TRACE_TABLE
from agent_eval_schema.inference_tables.finish.finish import ROWS, finish_plan, new_report_builder
from agent_eval_schema.inference_tables.finish.redact import Hook
from agent_eval_schema.inference_tables.finish.set_aside import SET_ASIDE
from agent_eval_schema.inference_tables.options import FEEDBACK, BuildOptions, plan_of
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.inference_tables.side_tables import label_plan, require_assessments
from agent_eval_schema.inference_tables.spark_batches import (
    BUILT,
    CALL_LINE,
    COUNTED,
    OTHER_ROWS,
    STRATUM,
    WANTED,
    build_batches,
    convert_batches,
    trace_batches,
    unpacked_batches,
)
from agent_eval_schema.inference_tables.summary import STRATA_KEPT, Counts, Summarized, Summary, summarized
from agent_eval_schema.io.spark import ddl, in_python, let_go, persisted, spark_source, with_places
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.report_builder import ReportBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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

    def __init__(
        self, plan: BuildPlan, reason: str, decided: SparkDecisions, built: DataFrame, hook: Hook | None
    ) -> None:
        self._plan, self._reason, self._decided, self._hook = plan, reason, decided, hook
        self._built = persisted(built, on_disk=True)

    @property
    def rows(self) -> DataFrame:
        return self._unpacked("rows", ROWS)

    @property
    def set_aside(self) -> DataFrame:
        return self._unpacked("set_aside", SET_ASIDE)

    def _unpacked(self, name: str, schema: pa.Schema) -> DataFrame:
        return self._built.select(name).mapInArrow(unpacked_batches, ddl(schema))

    @cached_property
    def summary(self) -> Summary:
        start = time.perf_counter()
        builder, counted = self._made
        counts = Counts(
            logged=self._decided.logged,
            records=self._decided.records,
            reasons=counted["reason"],
            feedback=self._decided.tallies(),
            strata=self._decided.strata(STRATA_KEPT) if self._plan.stratified else (),
            labels=counted["labels"],
            redacted=counted["redacted"],
            codes=Counter(builder.counts) + counted["codes"],
            traces_joined=counted["joined"].total(),
        )
        return summarized(
            self._plan,
            counts,
            table=None,
            family_reason=self._reason,
            redaction="hook" if self._hook is not None else self._plan.redact,
            engine="spark",
            seconds=self._decided.seconds + time.perf_counter() - start,
        )

    @property
    def report(self) -> Report:
        """The report on the rows; their positions are those in `rows`."""
        source = spark_source(self.rows)
        return Report(source, finish_plan(self._plan), self._made[0])

    @cached_property
    def _made(self) -> tuple[ReportBuilder, dict[str, Counter[str]]]:
        """What the driver gets of each batch: the verdicts on the rows, and the counts."""
        builder = new_report_builder(self._plan)
        counts = {what: Counter[str]() for what in COUNTED}
        made = self._built.where("verdicts IS NOT NULL").select("verdicts", "counts")
        for verdicts, counted in made.toLocalIterator(prefetchPartitions=True):
            builder.add(unpack(verdicts))
            for what, more in msgspec.json.decode(counted).items():
                counts[what].update(more)
        if counts["kept"].total() + counts["reason"].total() != self._decided.records:
            raise EvalSetError(OTHER_ROWS)
        builder.finish()
        return builder, counts

    def close(self) -> None:
        """Let go of what is kept."""
        let_go(self._built)
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
    return build_set_on_spark(df, BuildOptions(traces=traces, labels=labels, **options))


def build_set_on_spark(df: DataFrame, options: BuildOptions) -> SparkBuild:
    """Build on Spark."""
    start = time.perf_counter()
    for name, given in {"table": df, **options.tables}.items():
        if not hasattr(given, "mapInArrow"):
            raise EvalSetError(f"{name}: on Spark expected a DataFrame of Spark, got a {type(given).__name__}")
    plan, reason = plan_of(df.columns, options)
    plan = msgspec.structs.replace(plan, now=time.time_ns() // 1000)
    labels, traces = (options.tables.get(name) for name in ("labels", "traces"))
    if labels is not None:
        require_assessments(labels.columns)
    decided = SparkDecisions(
        _lines(df, plan),
        plan,
        None if labels is None else _lines(labels, label_plan(options)),
        None if traces is None else _traces(traces),
        start,
    )
    built = decided.lines().mapInArrow(partial(build_batches, plan, options.hook), ddl(BUILT))
    return SparkBuild(plan, reason, decided, built, options.hook)


def _lines(df: DataFrame, plan: BuildPlan) -> DataFrame:
    """The converted rows, a line each: what decisions need of it, and in the first of each batch all of the batch."""
    from pyspark.sql.functions import expr, lit

    wanted = expr(plan.where).cast("boolean") if plan.where else lit(True)
    stratum = expr(plan.stratum_sql).cast("string") if plan.stratum_sql else lit(None).cast("string")
    raw = with_places(df.select("*", wanted.alias(WANTED), stratum.alias(STRATUM)))
    return in_python(raw, partial(convert_batches, plan, df.columns), ddl(CALL_LINE))


def _traces(df: DataFrame) -> DataFrame:
    return in_python(with_places(df), partial(trace_batches, df.columns), ddl(TRACE_TABLE))
