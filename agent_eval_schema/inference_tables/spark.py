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
from collections.abc import Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from agent_eval_schema.cells.arrow import unpack
from agent_eval_schema.inference_tables.build_summary import STRATA_KEPT, BuildSummary, Counts, summarized
from agent_eval_schema.inference_tables.decide.spark import SparkDecisions
from agent_eval_schema.inference_tables.decide.tables import TRACE_TABLE
from agent_eval_schema.inference_tables.existing import existing_rows, own_fields
from agent_eval_schema.inference_tables.finish.excluded import EXCLUDED
from agent_eval_schema.inference_tables.finish.finish import ROWS, UPDATES, new_run
from agent_eval_schema.inference_tables.make_plan import plan_of
from agent_eval_schema.inference_tables.options import BuildKeywords, BuildOptions, Hook
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.inference_tables.result import EvalSetBuild, Table
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
from agent_eval_schema.io.spark import ddl, in_python, persisted, spark_source, unpersist, with_places
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.report import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import Unpack


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
        self._built = persisted(built, on_disk=True)

    def _frame(self, name: Table) -> DataFrame:
        return self._built.select(name).mapInArrow(unpacked_batches, ddl(self._schemas[name]))

    def _batches(self, name: Table) -> Iterator[pa.RecordBatch]:
        return iter(spark_source(self._frame(name)).batches())

    def _write(self, name: Table, path: str) -> int:
        from agent_eval_schema.io.spark_tables import require_new, write_table

        require_new(path)
        write_table(self._frame(name), path)
        summary = self.summary
        return summary.rows + summary.existing.get("rows", 0) if name == "rows" else sum(summary.excluded.values())

    def _summarize(self) -> BuildSummary:
        start = time.perf_counter()
        run, counted = self._counted
        counts = Counts(
            logged=self._decided.logged,
            records=self._decided.records,
            reasons=counted["reason"],
            feedback=self._decided.tallies(),
            strata=self._decided.strata(STRATA_KEPT) if self._plan.stratified else (),
            labels=counted["labels"],
            redacted=counted["redacted"],
            codes=Counter(run.builder.counts) + counted["codes"],
            traces_joined=counted["joined"].total(),
            existing=self._existing(counted["existing"]),
        )
        return summarized(
            self._plan,
            counts,
            table=None,
            format_reason=self._reason,
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
        return Report(self._run)

    @cached_property
    def _counted(self) -> tuple[CheckedRun, dict[str, Counter[str]]]:
        """The result of each batch for the driver: the validation results of the rows, and the counts."""
        run = new_run(self._plan)
        counts = {what: Counter[str]() for what in COUNTED}
        made = self._built.where("verdicts IS NOT NULL").select("verdicts", "counts")
        for verdicts, counted in made.toLocalIterator(prefetchPartitions=True):
            run.add(unpack(verdicts))
            for what, more in msgspec.json.decode(counted).items():
                counts[what].update(more)
        if counts["kept"].total() + counts["reason"].total() != self._decided.records:
            raise EvalSetError(OTHER_ROWS)
        run.builder.finish()
        run.source = spark_source(self.rows)
        return run, counts

    @property
    def _run(self) -> CheckedRun:
        return self._counted[0]

    def close(self) -> None:
        unpersist(self._built)
        self._decided.close()


def spark_from_inference_table(df: DataFrame, **options: Unpack[BuildKeywords]) -> EvalSetBuild[DataFrame]:
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
        lines = lines.unionByName(
            in_python(with_places(existing), partial(existing_batches, plan, existing.columns), ddl(CALL_LINE))
        )
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


def _traces(df: DataFrame) -> DataFrame:
    return in_python(with_places(df), partial(trace_batches, df.columns), ddl(TRACE_TABLE))
