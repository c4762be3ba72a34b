"""A Spark DataFrame → a conversion of lazy DataFrames: the rows of the target, and the losses.

Both are made of each batch by the code that converts files. Cells are those of a file of Parquet: the DataFrame has all
columns of the target, those of numbers as numbers, and lists and objects as JSON text.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.conversion.conversion import NAMED, Conversion, find_writer, losses_view
from agent_eval_schema.conversion.loss_log import LossLog
from agent_eval_schema.conversion.losses import LostMetrics, lost_metrics
from agent_eval_schema.conversion.work import (
    Work,
    kind_of_most,
    loss_of_kinds,
    plan_of,
    refused_rows,
    rows_after,
    systems_of,
)
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.arrow import fitted
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.spark import Stream, in_python, require_new, spark_schema, write_table
from agent_eval_schema.issues import Issue
from agent_eval_schema.render.blocks import View
from agent_eval_schema.render.document import json_text, versioned
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules.conversion import LEFT_OUT
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.choices import path_of
from agent_eval_schema.validation.checked_batch import kinds_of
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.plan import OnInvalid, Plan
from agent_eval_schema.validation.report import InvalidEvalSetError, Report
from agent_eval_schema.validation.spark_frames import SHARED_ID, CheckedFrame, Part, PartRun, require_rows_apart

LOSS = pa.schema([(n, pa.int64() if n == "row" else pa.string()) for n in Issue.__struct_fields__])
"""The columns of `Report.issues` in Spark."""


def convert_frame(source: Source, target: str, on_invalid: OnInvalid = "drop") -> Conversion:
    """Raises EvalSetError for a target that is one document of all rows. One job counts the rows that the target
    rejects, unless they are kept."""
    require_rows_apart(source)
    if find_writer(target).document is not None:
        raise EvalSetError(
            f"to: {target} is one document of all rows, which Spark does not write: convert what fits in memory, "
            "`convert_eval_set(df.toPandas(), …)`"
        )
    plan = plan_of(source, target)
    checked = CheckedFrame(source.data, source, plan)
    work = Work(CheckedRun(source, plan), target)
    schema = work.schema([*COLUMNS, *checked.beside.names])
    choice = Choice(target, plan, on_invalid)
    masks: Any = checked.frame(partial(_masks, choice), MASKS)
    refused = 0
    if on_invalid != "keep":
        counted = _summed(masks)
        refused = counted.pop(_REFUSED, 0)
        after = rows_after(counted)
        if (kind := kind_of_most(plan.format, target, after)) is not None:
            choice = replace(choice, kind=kind)
            refused += kinds_of(find_format(target), after)[not kind]
            masks = checked.frame(partial(_masks, choice), MASKS)
    losses = checked.frame(partial(_losses, choice), LOSS)
    if on_invalid == "raise" and (refused or checked.invalid_count):
        report = _report(source, plan)
        first = losses.where(f"code = '{LEFT_OUT.code}'").orderBy("row").limit(NAMED).collect()
        raise InvalidEvalSetError(report, refused_rows(refused, first) if report.ok else "")
    if overall := list(work.losses.flush()):  # of columns as a whole
        cells = [tuple(_cells(issue).values()) for issue in overall]
        losses = losses.unionByName(source.data.sparkSession.createDataFrame(cells, spark_schema(LOSS)))
    if any(find_format(target).one_kind) and choice.kind is None:
        after = masks.groupBy("after").sum("rows").toDF("after", "counted").coalesce(1)
        losses = losses.unionByName(in_python(after, partial(_mixed, target), spark_schema(LOSS)))
    return SparkConversion(
        checked.frame(partial(_written, choice, schema), schema),
        LossLog(),
        cache(partial(_report, source, plan)),
        plan.format,
        target,
        checked.row_count,
        checked.valid_count - refused,
        {},
        _losses=losses,
        _masks=masks,
        _outputs=plan.outputs,
    )


def _report(source: Source, plan: Plan) -> Report:
    for _ in (run := CheckedRun(source, plan)).batches():
        pass
    return Report(run)


class SparkConversion(Conversion, frozen=True):
    """A conversion whose data and losses stay on Spark; what is shown of the losses are counts."""

    _losses: Any = None
    _masks: Any = None
    _outputs: str = ""

    @property
    def losses(self) -> Any:
        return self._losses

    def severities(self) -> frozenset[Severity]:
        return frozenset(Severity(row[0]) for row in self._losses.select("severity").distinct().collect())

    @property
    def lossless(self) -> bool:
        return not self._losses.limit(1).count()

    def write(self, path: str | os.PathLike[str]) -> int:
        require_new(out := path_of(path))
        return write_table(self.data, out)

    def _counts(self) -> list[dict[str, Any]]:
        """The number of losses of each column, and of the rows that have one."""
        from pyspark.sql.functions import expr

        by = self._losses.groupBy("column", "code", "name", "severity")
        first = f"MIN(STRUCT({', '.join(f'`{name}`' for name in LOSS.names)})) AS first"
        counted = by.agg(expr("COUNT(*) AS losses"), expr("COUNT(DISTINCT row) AS rows"), expr(first))
        counts = [row.asDict() for row in counted.collect()]
        worst = list(Severity)
        return sorted(counts, key=lambda n: (worst.index(n["severity"]), -n["losses"], n["column"] or "", n["code"]))

    def _lost_metrics(self, counts: list[dict[str, Any]]) -> LostMetrics:
        """The metrics that are lost, by column or code: of the rows by the fields that they have before and after."""
        if not counts:
            return {}
        masks = _summed(self._masks)
        masks.pop(_REFUSED, None)
        lossy = {n["column"] or n["code"] for n in counts}
        return lost_metrics(masks, lossy, self._outputs, systems_of(self.source, self.target))

    def _json(self) -> str:
        counts = self._counts()
        metrics = self._lost_metrics(counts)
        numbers = {name: getattr(self, name) for name in ("source", "target", "given", "converted")}
        shown = [{name: value for name, value in n.items() if name != "first"} for n in counts]
        return json_text(versioned({**numbers, "lossless": not counts, "counts": shown, "metrics": metrics}))

    def _view(self) -> View:
        counts, log = self._counts(), LossLog()
        for n in counts:
            first = n["first"].asDict()
            log.add_counted(Issue(**{**first, "severity": Severity(first["severity"])}), n["losses"], n["rows"])
        return losses_view(self._headline, log, self._lost_metrics(counts), None, ())

    def __repr__(self) -> str:
        return f"<Conversion: {self._headline}>"


# --- on the executors
class _SharedIds:
    """In place of FirstSeen: the rows with the ID of an earlier row of the whole table."""

    def __init__(self, part: Part) -> None:
        self._rows = part.positions[part.with_code(SHARED_ID)]

    def add(self, _keys: Any, rows: np.ndarray[Any, Any], _payloads: Any) -> tuple[np.ndarray[Any, Any], None]:
        return np.where(np.isin(rows, self._rows), 0, -1), None


class Choice(Struct, frozen=True):
    """The target, the plan of the validation, and which rows are excluded."""

    target: str
    plan: Plan
    on_invalid: OnInvalid = "drop"
    kind: bool | None = None

    def work(self, part: Part) -> Work:
        run, ids = PartRun(part, self.plan), _SharedIds(part)
        return Work(run, self.target, ids, on_invalid=self.on_invalid, kind=self.kind)


def _written(choice: Choice, schema: pa.Schema, part: Part) -> pa.Table:
    target = choice.target
    batch = batch_of_rows([row for some in choice.work(part).written(compare=False) for row in some])
    if unexpected := set(column_names(batch.schema)).difference(schema.names):
        raise EvalSetError(f"{target}: no column was declared for {', '.join(sorted(unexpected))}")
    return fitted(batch, schema)


def _losses(choice: Choice, part: Part) -> pa.Table:
    work = choice.work(part)
    for _ in work.written(texts=find_writer(choice.target).texts):
        pass
    issues = [issue for issue in work.losses.flush() if issue.row is not None]  # of columns: see `convert_frame`
    return pa.Table.from_pylist(list(map(_cells, issues)), LOSS)


def _cells(issue: Issue) -> dict[str, Any]:
    return {name: getattr(issue, name) for name in LOSS.names} | {"severity": str(issue.severity)}


MASKS = pa.schema([(name, pa.int64()) for name in ("before", "after", "rows")])


_REFUSED = (-1, -1)
"""In place of the masks of the rows that the target rejects."""


def _masks(choice: Choice, part: Part) -> pa.Table:
    work = choice.work(part)
    for _ in work.written():
        pass
    masks = {**work.losses.masks, _REFUSED: work.losses.refused}
    return pa.Table.from_pylist([{"before": b, "after": a, "rows": rows} for (b, a), rows in masks.items()], MASKS)


def _summed(masks: Any) -> dict[tuple[int, int], int]:
    from pyspark.sql.functions import expr

    summed = masks.groupBy("before", "after").agg(expr("SUM(rows) AS rows")).collect()
    return {(row["before"], row["after"]): row["rows"] for row in summed if row["rows"]}


def _mixed(target: str, batches: Stream) -> Stream:
    after = Counter[int]()
    for batch in batches:
        masks = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        after.update({mask: rows for mask, rows in masks if mask > 0})
    yield from pa.Table.from_pylist([_cells(issue) for issue in loss_of_kinds(target, after)], LOSS).to_batches()
