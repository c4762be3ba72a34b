"""The input read once more: the data of a large file that a report does not keep, it reads again on access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import filtered
from agent_eval_schema.cells.notes import NOTE, own_columns
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Issue
from agent_eval_schema.validation.checked_batch import rows_of
from agent_eval_schema.validation.kernel import check_batch, check_stream, checked_batches
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report_builder import ReportBuilder

ISSUES_COLUMN = "_issues"
"""The column that is added to the cells of an invalid row."""


def every_issue(source: Source, plan: Plan) -> Iterator[Issue]:
    """The issues one by one, in the order of the rows, those of the dataset last."""
    builder = _keeps_all(source, plan)
    for checked in checked_batches(source, replace(plan, columns=False)):
        builder.add(checked)
        yield from builder.take_issues()
        builder.forget_issues()
    builder.finish()
    yield from builder.take_issues()


def normalized_batches(source: Source, plan: Plan) -> Iterator[pa.RecordBatch]:
    """The normalized rows."""
    return map(rows_of, checked_batches(source, replace(plan, columns=True)))


def batches_beside_checked(source: Source, plan: Plan) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """The batches of the input with the checked ones with normalized columns."""
    plan = replace(plan, columns=True)
    return ((batch, check_batch(batch, plan)) for batch in source.batches())


def invalid_batches(source: Source, plan: Plan, valid: np.ndarray[Any, Any]) -> Iterator[pa.RecordBatch]:
    """The invalid rows, their original cells, with their issues (those of rules that compare rows too)."""
    builder = _keeps_all(source, plan)
    for batch in source.batches():
        start = builder.row_count
        builder.add(next(check_stream([batch], plan)))
        notes: dict[int, list[dict[str, Any]]] = {}
        for issue in builder.take_issues():
            notes.setdefault((issue.row or 0) - start, []).append({f.name: getattr(issue, f.name) for f in NOTE})
        builder.forget_issues()
        column = pa.array([notes.get(i) for i in range(batch.num_rows)], pa.list_(NOTE))
        kept = batch.select([i for i in own_columns(batch.schema) if batch.schema.names[i] != ISSUES_COLUMN])
        yield filtered(kept.append_column(ISSUES_COLUMN, column), ~valid[start : start + batch.num_rows])


def _keeps_all(source: Source, plan: Plan) -> ReportBuilder:
    """A builder that keeps every issue."""
    given = find_format(plan.format).given
    return ReportBuilder(
        plan.codes, plan.outputs, source, 1 << 62, plan.values, plan.origins, given=given, suggested=plan.suggested
    )
