"""The metrics that an EvalTask takes: names, and objects with options.

    "trajectory_exact_match" … , TrajectorySingleToolUse(tool_name=…)    all rows at once (trajectories.py)
    "rouge_l_sum", "document_recall", "tool_invocation" …                ROW_METRICS: columns of a row → a score
    CustomMetric(name, function)                                         the row as a dict → {name: score, …}
    PointwiseMetric(name, template, model=…)                             a judge (integrations/pointwise.py)

Each gives `Measured`: columns for the table, and why rows have no score. A metric that breaks down on a row costs that
score only.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from msgspec import Struct

from agent_eval_schema.evaluation.runner import said
from agent_eval_schema.evaluation.trajectories import (
    FAILED_CALL,
    SINGLE_TOOL_USE,
    TrajectoryMetric,
    TrajectorySingleToolUse,
)
from agent_eval_schema.frames import is_absent
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics import response, retrieval, tool_calls
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS
from agent_eval_schema.model import ToolCall

Row = dict[str, Any]


class Table(Struct):
    """What there is to measure: the rows as they will stand in the result, and the columns that metrics read, as plain
    values (None where absent). Of rows on which the agent `failed` there are no outputs."""

    frame: pd.DataFrame
    values: dict[str, list[Any]]
    failed: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        return len(self.frame)

    def why_lacking(self, row: int, column: str) -> str:
        """Why a metric that reads the column has no score on a row that does not have it."""
        return FAILED_CALL if row in self.failed and column in OUTPUTS else f"the row lacks {column}"

    def rows(self) -> Iterable[Row]:
        """The rows as dicts: the table's cells, absent ones None, and what metrics read under its own name."""
        columns = [str(c) for c in self.frame.columns]
        extra = {n: v for n, v in self.values.items() if n not in columns}
        cells = [[None if is_absent(v) else v for v in self.frame.iloc[:, i].tolist()] for i in range(len(columns))]
        for line in zip(*cells, *extra.values(), strict=True) if cells or extra else ((),) * self.size:
            yield dict(zip((*columns, *extra), line, strict=True))


OUTPUTS = ("response", "predicted_trajectory")
"""The columns that an agent fills."""


class Measured(Struct):
    """What a metric gave: columns by their part after the slash (`score`, `explanation`), reasons for no score."""

    columns: dict[str, list[Any]]
    unscored: Counter[str]


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


# ---------------------------------------------------------------------------------------------------------------------
# metrics of one's own


class CustomMetric(Struct, frozen=True):
    """A metric of one's own.

    `metric_function` gets the row as a dict (the table's columns, and `prompt`, `response`, `reference`,
    `predicted_trajectory`, `reference_trajectory`; None where absent) and gives `{name: score, ...}`: the score under
    the metric's name, and anything else, such as an explanation, as columns of its own. A bare number is the score.
    """

    name: str
    metric_function: Callable[[Row], Mapping[str, Any] | float]


def measure_custom(metric: CustomMetric, table: Table) -> Measured:
    """The scores of a metric of one's own; a row on which it raises has none."""
    found = [_custom_row(metric, row) for row in table.rows()]
    parts = dict.fromkeys(["score", *(part for columns, _ in found for part in columns)])
    columns = {
        part: [columns.get(part, math.nan if part == "score" else None) for columns, _ in found] for part in parts
    }
    return Measured(columns, Counter(why for _, why in found if why))


def _custom_row(metric: CustomMetric, row: Row) -> tuple[dict[str, Any], str]:
    try:
        given = metric.metric_function(row)
        given = given if isinstance(given, Mapping) else {metric.name: given}
        columns = {"score" if name == metric.name else str(name): value for name, value in given.items()}
        absent = is_absent(columns.get("score"))
        columns["score"] = math.nan if absent else float(columns["score"])
    except Exception as error:
        return {"score": math.nan}, f"the metric broke down: {said(error)}"
    return columns, "the metric gave no score" if absent else ""


# ---------------------------------------------------------------------------------------------------------------------
# judges


_VARIABLE = re.compile(r"\{(\w+)\}")
"""A column that a template names; other braces are the template's own."""


class PointwiseMetric(Struct, frozen=True):
    """A metric that a model judges, row by row, through mlflow's judge interface (mlflow 3.4 or newer).

    Either `template`, a text with `{prompt}`, `{response}`, `{reference}`, `{predicted_trajectory}` or other columns of
    the table, or `criteria` and `rating_rubric` with `input_variables`, the columns that the judge is shown. `model` is
    the judge, as mlflow names it (`"openai:/gpt-4o"`). The judge gives a number, and why.
    """

    name: str
    template: str = ""
    model: str = ""
    criteria: Mapping[str, str] = {}
    rating_rubric: Mapping[str, str] = {}
    input_variables: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.model:
            raise EvalSetError(f"{self.name}: name the judge, such as model='openai:/gpt-4o'")
        if not self.variables:
            raise EvalSetError(f"{self.name}: give a template with {{response}} or so, or criteria and input_variables")

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that the judge is shown."""
        return tuple(dict.fromkeys([*_VARIABLE.findall(self.template), *self.input_variables]))

    @property
    def instructions(self) -> str:
        """What the judge is told, with the names of the columns in the place of what they hold."""
        parts = [_VARIABLE.sub(r"`\1`", self.template)] if self.template else ["Rate the agent's behaviour."]
        parts += ["# Criteria", *(f"{name}: {words}" for name, words in self.criteria.items())] if self.criteria else []
        if self.rating_rubric:
            parts += ["# Ratings", *(f"{score}: {words}" for score, words in self.rating_rubric.items())]
        return "\n".join(parts)


# ---------------------------------------------------------------------------------------------------------------------
# what may be asked for

Metric = str | TrajectorySingleToolUse | CustomMetric | PointwiseMetric

NAMES = (*TRAJECTORY_METRICS, *ROW_METRICS)
"""Every metric that is asked for by its name."""


def name_of(metric: Metric) -> str:
    return metric if isinstance(metric, str) else metric.name


def require_metrics(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """The metrics, or EvalSetError for one that there is not, or two of one name."""
    if isinstance(metrics, str):
        metrics = (metrics,)
    given = tuple(metrics)
    for metric in given:
        if isinstance(metric, str) and metric not in NAMES:
            hint = " (give it as TrajectorySingleToolUse(tool_name=...))" if metric == SINGLE_TOOL_USE else ""
            raise EvalSetError(f"no metric {metric!r}{hint}: use {', '.join(NAMES)}, or an object")
        if not isinstance(metric, Metric):
            raise EvalSetError(f"expected the name of a metric, or a metric, got a {type(metric).__name__}")
    twice = [name for name, n in Counter(map(name_of, given)).items() if n > 1]
    if twice:
        raise EvalSetError(f"several metrics are called {twice[0]!r}: give them names of their own")
    return given


def trajectory_metrics(metrics: Iterable[Metric]) -> tuple[TrajectoryMetric, ...]:
    """Those that compare trajectories."""
    return tuple(
        m for m in metrics if isinstance(m, TrajectorySingleToolUse) or (isinstance(m, str) and m in TRAJECTORY_METRICS)
    )
