"""The metrics that EvalTask computes row by row: texts, retrieval, tool calls. The definition of each has its columns,
its function and its requirements; here values come from a table, and if a metric raises an exception, only that row has
no score."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from agent_eval_schema.evaluation.runner import error_line
from agent_eval_schema.evaluation.table import Measured, RowTable
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics.definitions import DEFINITIONS, SINGLE_TOOL_USE, Definition
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS
from agent_eval_schema.schema import Document, ToolCall


def _documents(cells: list[dict[str, Any]]) -> list[Document]:
    return [Document(cell["doc_uri"], cell.get("content")) for cell in cells]  # one of a trace may have no doc_uri


_TYPED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("retrieved_context", "expected_retrieved_context"), _documents),
    **dict.fromkeys(("predicted_trajectory", "reference_trajectory"), partial(msgspec.convert, type=list[ToolCall])),
}
"""How the values of columns become what metrics take; others are given as they are."""

_OF_TRAJECTORIES = (*TRAJECTORY_METRICS, SINGLE_TOOL_USE)  # computed for all rows at once

ROW_METRICS: dict[str, Definition] = {
    name: definition
    for name, definition in DEFINITIONS.items()
    if name not in _OF_TRAJECTORIES and definition.measure is not float  # the number of a column is no metric here
}
"""Metrics of a row that need no options, by name."""


def measure_row_metric(metric: Definition, table: RowTable) -> Measured:
    """The scores of a metric of ROW_METRICS."""
    columns = [table.values.get(name) or [None] * table.size for name in metric.reads]
    found = [_scored(metric, table, row, cells) for row, cells in enumerate(zip(*columns, strict=True))]
    reasons = [reason if math.isnan(score) else None for score, reason in found]
    return Measured({"score": [score for score, _ in found]}, reasons)


def _scored(metric: Definition, table: RowTable, row: int, cells: Sequence[Any]) -> tuple[float, str]:
    """The score of a row, and the reason in case that it is NaN."""
    for name, cell in zip(metric.reads, cells, strict=True):
        if cell is None:
            return math.nan, table.why_lacking(row, name)
    try:
        values = [_TYPED[name](c) if name in _TYPED else c for name, c in zip(metric.reads, cells, strict=True)]
        return float(metric.measure(*values)), metric.undefined
    except EvalSetError:
        raise  # a package that is not installed
    except Exception as error:
        return math.nan, f"the metric raised an exception: {error_line(error)}"
