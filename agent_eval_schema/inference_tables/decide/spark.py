"""Spark, for what needs the whole table: the decisions (sql.py) over the lines of the converted rows."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agent_eval_schema.inference_tables.decide.sql import ENTRY, JOINED_TRACES, NEAR_STEP, RESULTS, steps_of
from agent_eval_schema.inference_tables.decide.tables import CALL_TABLE, NEAR_TABLE, near_table
from agent_eval_schema.inference_tables.read.convert import FEEDBACK_LISTS
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.io.spark import ddl, ddl_of, persisted, spark_source, unpersist

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
        self._lines = persisted(lines, on_disk=True)
        calls = "COUNT(CASE WHEN part >= 0 AND (record IS NULL OR record = 0) THEN 1 END)"
        counts = ("COUNT(CASE WHEN part >= 0 THEN 1 END)", calls, "COUNT(CASE WHEN part < 0 THEN 1 END)")
        counted: tuple[int, ...] = self._lines.selectExpr(*counts, "COUNT(feedback)").collect()[0]
        self.records, self.logged, self.existing, feedback = counted
        self._rated = bool(feedback and plan.labeled) or label_lines is not None
        labels = self._lines if label_lines is None else label_lines
        self._tables: dict[str, Any] = {
            "calls": self._lines.select(*CALL_TABLE.names),
            "entries": _entries(labels.where("feedback IS NOT NULL" if self._rated else "false")),
            **({} if traces is None else {"traces": traces}),
        }
        self._steps = {step.name: step.select for step in steps_of(plan, self.existing)}
        # Those that several others read and that are not as good as empty are computed once.
        self._again = [
            *(("questions",) if self._rated or plan.near is not None else ()),
            *((NEAR_STEP,) if plan.near is not None else ()),
            *(("latest", "rated") if self._rated else ()),
            *(("candidates", "chosen") if plan.sample is not None else ()),
            *(("decisions",) if traces is not None else ()),
        ]
        for name in self._again:
            found = self._select(self._steps.pop(name))
            self._tables[name] = persisted(_alike(found, plan.near) if name == NEAR_STEP else found)
        self.seconds = time.perf_counter() - start

    def lines(self) -> DataFrame:
        """The lines that have a packed batch with the decisions about its rows, the others without."""
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
        return self._lines.join(decisions, ["part", "place"], "left").select(DECISIONS, PACKED)

    def tallies(self) -> dict[str, int]:
        """What became of the feedback."""
        if not self._rated:
            return dict.fromkeys(("given", "latest", "attached", "unknown"), 0)
        return dict(self._results(RESULTS["feedback"]))

    def strata(self, most: int) -> list[tuple[Any, ...]]:
        """The largest strata: their calls, and how many were drawn."""
        return self._results(f"{RESULTS['strata']} LIMIT {most}")

    def _results(self, select: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._select(select).collect()]

    def close(self) -> None:
        for kept in (self._lines, *(self._tables[name] for name in self._again)):
            unpersist(kept)

    def _select(self, select: str) -> DataFrame:
        """A SELECT that may read the tables and the steps by their names."""
        steps: list[str] = []
        read = select
        for name, step in reversed(self._steps.items()):
            if _mentions(read, name):
                steps.insert(0, f"{name} AS ({step})")
                read += f" {step}"
        tables = {name: table for name, table in self._tables.items() if _mentions(read, name)}
        given = [f"{name} AS (SELECT * FROM {{{name}}})" for name in tables]
        return self._lines.sparkSession.sql(f"WITH {', '.join([*given, *steps])} {select}", **tables)


def _alike(questions: DataFrame, threshold: float | None) -> DataFrame:
    """The table of the questions that are alike: their hashes, some hundred bytes each, are compared on the driver."""
    found = near_table(pa.Table.from_batches(spark_source(questions).batches()), threshold)
    rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    return questions.sparkSession.createDataFrame(rows, ddl(NEAR_TABLE))


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
_NO_ENTRIES = f"CAST(array() AS {ddl_of(FEEDBACK_LISTS)})"
"""Rather than null: see `lists_filled`."""
_ENTRIES = f"""
    LEFT JOIN (
        SELECT part, place, transform(sort_array(collect_list(struct({_FIELDS}))), e -> struct({_BACK})) AS entries
        FROM attached e GROUP BY part, place
    ) l ON d.part = l.part AND d.place = l.place
"""
_TRACES = f"LEFT JOIN ({JOINED_TRACES}) j ON d.part = j.part AND d.place = j.place"


def _entries(lines: DataFrame) -> DataFrame:
    """The feedback in lines, an entry a line."""
    return lines.selectExpr("part", "place", "inline(feedback)").select("part", "place", *ENTRY)
