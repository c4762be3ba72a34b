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

import time
from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from agent_eval_schema.cells.arrow import unpack
from agent_eval_schema.inference_tables.decide.spark import SparkDecisions
from agent_eval_schema.inference_tables.decide.tables import TRACE_TABLE
from agent_eval_schema.inference_tables.existing import existing_rows, own_fields
from agent_eval_schema.inference_tables.finish.excluded import EXCLUDED
from agent_eval_schema.inference_tables.finish.finish import ROWS, UPDATES, finish_plan, new_report_builder
from agent_eval_schema.inference_tables.finish.redact import Hook
from agent_eval_schema.inference_tables.options import BuildKeywords, BuildOptions, plan_of
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
    existing_batches,
    trace_batches,
    unpacked_batches,
)
from agent_eval_schema.inference_tables.summary import STRATA_KEPT, BuildSummary, Counts, Summarized, summarized
from agent_eval_schema.io.spark import ddl, in_python, let_go, persisted, spark_source, with_places
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.report_builder import ReportBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import Unpack


class SparkBuild(Summarized):  # numpydoc ignore=PR01
    """An evaluation dataset that was built from an inference table on Spark.

    The converted and the finished rows are computed once and persisted, in memory or on the disks of the executors,
    until `close` is called or the `with` block ends. The DataFrames are lazy; write them, or persist those that are
    used often.

    See Also
    --------
    spark_from_inference_table : The function that returns a build.

    Examples
    --------
    >>> from agent_eval_schema import spark_from_inference_table
    >>> df = spark.read.json("sample_data/inference_table.jsonl")
    >>> with spark_from_inference_table(df) as build:
    ...     rows, excluded = build.rows, build.excluded
    >>> "request" in rows.columns, "reason" in excluded.columns
    (True, True)
    """

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
        self._schema = schema
        self._built = persisted(built, on_disk=True)

    @property
    def rows(self) -> DataFrame:
        """The rows of the evaluation dataset.

        Returns
        -------
        pyspark.sql.DataFrame
            One row per call, in no fixed order: the canonical columns (nested values as in Parquet), then
            `request_time` (timestamp), `status_code` (int) and `served_entity` (string), then the other columns of a
            dataset that is extended.

        Examples
        --------
        >>> from agent_eval_schema import spark_from_inference_table
        >>> with spark_from_inference_table(spark.read.json("sample_data/inference_table.jsonl")) as build:
        ...     build.rows.columns[-3:]
        ['request_time', 'status_code', 'served_entity']
        """
        return self._unpacked("rows", self._schema)

    @property
    def excluded(self) -> DataFrame:
        """The excluded rows, each with its reason.

        Returns
        -------
        pyspark.sql.DataFrame
            One row per excluded row, with the columns `request_id`, `reason`, `message` (string), `time` (timestamp),
            `status_code` (int), `request` and `response` (string).

        Examples
        --------
        >>> from agent_eval_schema import spark_from_inference_table
        >>> with spark_from_inference_table(spark.read.json("sample_data/inference_table.jsonl")) as build:
        ...     build.excluded.columns[:3]
        ['request_id', 'reason', 'message']
        """
        return self._unpacked("excluded", EXCLUDED)

    @property
    def updates(self) -> DataFrame:
        """The labels of the extended dataset that later feedback changed.

        Returns
        -------
        pyspark.sql.DataFrame
            One row per label, with the columns `request_id`, `column`, `before` and `after` (string).

        Examples
        --------
        >>> from agent_eval_schema import spark_from_inference_table
        >>> with spark_from_inference_table(spark.read.json("sample_data/inference_table.jsonl")) as build:
        ...     build.updates.columns
        ['request_id', 'column', 'before', 'after']
        """
        return self._unpacked("updates", UPDATES)

    def _unpacked(self, name: str, schema: pa.Schema) -> DataFrame:
        return self._built.select(name).mapInArrow(unpacked_batches, ddl(schema))

    @cached_property
    def summary(self) -> BuildSummary:
        """The row counts per step.

        Returns
        -------
        BuildSummary
            The numbers; computing them runs a Spark job.

        Examples
        --------
        >>> from agent_eval_schema import spark_from_inference_table
        >>> with spark_from_inference_table(spark.table("main.logs.payload")) as build:  # doctest: +SKIP
        ...     build.summary.logged
        27
        """
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
            existing=self._existing(counted["existing"]),
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

    def _existing(self, counted: Counter[str]) -> dict[str, int]:
        """In the order of the embedded engine."""
        first = {name: counted[name] for name in ("rows", "updated")}
        return {**first, **dict(sorted(counted.items())), **first} if self._plan.extends else {}

    @property
    def report(self) -> Report:
        """The validation report of the rows.

        Returns
        -------
        Report
            The issues and the metric coverage of `rows`; row numbers are positions in `rows`.

        Examples
        --------
        >>> from agent_eval_schema import spark_from_inference_table
        >>> with spark_from_inference_table(spark.table("main.logs.payload")) as build:  # doctest: +SKIP
        ...     build.report.ok
        True
        """
        source = spark_source(self.rows)
        return Report(source, finish_plan(self._plan), self._made[0])

    @cached_property
    def _made(self) -> tuple[ReportBuilder, dict[str, Counter[str]]]:
        """The result of each batch for the driver: the validation results of the rows, and the counts."""
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
        """Release the persisted rows.

        The DataFrames of the build must not be used afterwards.

        Examples
        --------
        >>> from agent_eval_schema import spark_from_inference_table
        >>> build = spark_from_inference_table(spark.read.json("sample_data/inference_table.jsonl"))
        >>> build.close()
        """
        let_go(self._built)
        self._decided.close()

    def __enter__(self) -> SparkBuild:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def spark_from_inference_table(df: DataFrame, **options: Unpack[BuildKeywords]) -> SparkBuild:
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
    SparkBuild
        The rows, the excluded rows, the row counts per step and the validation report.

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
    lines, schema = _lines(df, plan), ROWS
    if (existing := options.tables.get("extend")) is not None:
        first = existing_rows(next(spark_source(existing).batches()), plan)
        schema = pa.schema([*ROWS, *own_fields(first.rows.schema)])
        lines = lines.unionByName(_existing_lines(existing, plan))
    label_lines = None if labels is None else _lines(labels, label_plan(options))
    decided = SparkDecisions(lines, plan, label_lines, None if traces is None else _traces(traces), start)
    built = decided.lines().mapInArrow(partial(build_batches, plan, options.hook, schema), ddl(BUILT))
    return SparkBuild(plan, reason, decided, built, options.hook, schema)


def _lines(df: DataFrame, plan: BuildPlan) -> DataFrame:
    """The converted rows, a line each: what decisions need of it, and in the first of each batch all of the batch."""
    from pyspark.sql.functions import expr, lit

    wanted = expr(plan.where).cast("boolean") if plan.where else lit(True)
    stratum = expr(plan.stratum_sql).cast("string") if plan.stratum_sql else lit(None).cast("string")
    raw = with_places(df.select("*", wanted.alias(WANTED), stratum.alias(STRATUM)))
    return in_python(raw, partial(convert_batches, plan, df.columns), ddl(CALL_LINE))


def _existing_lines(df: DataFrame, plan: BuildPlan) -> DataFrame:
    return in_python(with_places(df), partial(existing_batches, plan, df.columns), ddl(CALL_LINE))


def _traces(df: DataFrame) -> DataFrame:
    return in_python(with_places(df), partial(trace_batches, df.columns), ddl(TRACE_TABLE))
