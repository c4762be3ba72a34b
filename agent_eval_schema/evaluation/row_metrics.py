"""The metrics that look at one row: text, retrieval, tool calls."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from agent_eval_schema.evaluation.runner import said
from agent_eval_schema.evaluation.table import Measured, Table
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics import response, retrieval, tool_calls
from agent_eval_schema.schema import ToolCall


# ---------------------------------------------------------------------------------------------------------------------
# metrics of a row's columns
class RowMetric(NamedTuple):
    """A metric of the columns that it reads: their values in this order → a score, or NaN because `undefined`."""

    reads: tuple[str, ...]
    score: Callable[..., float]
    undefined: str = "the metric is not defined for this row"


_TEXTS = ("response", "reference")
_DOCUMENTS = ("retrieved_context", "expected_retrieved_context")
_CALLS = ("predicted_trajectory", "reference_trajectory")


def _of_uris(metric: Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    return lambda found, wanted: metric([d["doc_uri"] for d in found], [d["doc_uri"] for d in wanted])


def _of_calls(metric: Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    return lambda predicted, reference: metric(*(msgspec.convert(c, list[ToolCall]) for c in (predicted, reference)))


_NO_TRUTH = "expected_retrieved_context is empty, or no document with a doc_uri was retrieved"
_NO_CALL = "reference_trajectory is empty: no call is expected"

ROW_METRICS: dict[str, RowMetric] = {
    "exact_match": RowMetric(_TEXTS, response.exact_match),
    "bleu": RowMetric(_TEXTS, response.bleu),
    "rouge_1": RowMetric(_TEXTS, response.rouge_1),
    "rouge_l": RowMetric(_TEXTS, response.rouge_l),
    "rouge_l_sum": RowMetric(_TEXTS, response.rouge_l_sum),
    "document_recall": RowMetric(_DOCUMENTS, _of_uris(retrieval.document_recall), _NO_TRUTH),
    "document_precision": RowMetric(_DOCUMENTS, _of_uris(retrieval.document_precision), _NO_TRUTH),
    "tool_invocation": RowMetric(_CALLS, _of_calls(tool_calls.tool_invocation), _NO_CALL),
    "tool_ordered_invocation": RowMetric(_CALLS, _of_calls(tool_calls.tool_ordered_invocation), _NO_CALL),
    "parameter_correctness": RowMetric(_CALLS, _of_calls(tool_calls.parameter_correctness), _NO_CALL),
    "tool_calls_pass": RowMetric(_CALLS, _of_calls(tool_calls.tool_calls_pass), _NO_CALL),
}
"""Metrics of a row, by name."""


def measure_row_metric(metric: RowMetric, table: Table) -> Measured:
    """The scores of a metric of ROW_METRICS."""
    columns = [table.values.get(name) or [None] * table.size for name in metric.reads]
    scores, unscored = [], Counter[str]()
    for row, cells in enumerate(zip(*columns, strict=True)):
        lacking = [name for name, cell in zip(metric.reads, cells, strict=True) if cell is None]
        score, why = (math.nan, table.why_lacking(row, lacking[0])) if lacking else _scored(metric, cells)
        scores.append(score)
        if math.isnan(score):
            unscored[why] += 1
    return Measured({"score": scores}, unscored)


def _scored(metric: RowMetric, cells: Sequence[Any]) -> tuple[float, str]:
    try:
        return float(metric.score(*cells)), metric.undefined
    except EvalSetError:
        raise  # a package that is not installed
    except Exception as error:
        return math.nan, f"the metric broke down: {said(error)}"
