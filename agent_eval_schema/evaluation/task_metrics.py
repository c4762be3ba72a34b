"""The metrics that an EvalTask takes: names, and objects with options.

    "trajectory_exact_match" … , ToolUseMetric(tool_name=…)    all rows at once (trajectories.py)
    "rouge_l_sum", "document_recall", "tool_invocation" …                columns of a row → a score (row_metrics.py)
    CustomMetric(name, function)                                         a row as a dict → {name: score, …} (custom.py)
    PointwiseMetric(name, template, model=…)                             a model, by mlflow's judges (judges.py)

Each gives `Measured`: columns for the table, and why rows have no score. A metric that raises on a row costs that score
only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from agent_eval_schema.evaluation.custom import CustomMetric
from agent_eval_schema.evaluation.judges import PointwiseMetric
from agent_eval_schema.evaluation.row_metrics import ROW_METRICS
from agent_eval_schema.evaluation.trajectories import ToolUseMetric, TrajectoryMetric
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics.definitions import SINGLE_TOOL_USE
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS
from agent_eval_schema.text.choices import meant, shown

MetricName = Literal[
    "trajectory_exact_match", "trajectory_in_order_match", "trajectory_any_order_match", "trajectory_precision",
    "trajectory_recall", "exact_match", "bleu", "rouge_1", "rouge_l", "rouge_l_sum", "document_recall",
    "document_precision", "tool_invocation", "tool_ordered_invocation", "parameter_correctness", "tool_calls_pass",
]  # fmt: skip
"""The type of a metric's name: the names that `EvalTask` accepts."""

NAMES: tuple[str, ...] = (*TRAJECTORY_METRICS, *ROW_METRICS)

_WITH_OPTIONS = (ToolUseMetric, CustomMetric, PointwiseMetric)
GivenMetric = MetricName | ToolUseMetric | CustomMetric | PointwiseMetric
TaskMetric = str | ToolUseMetric | CustomMetric | PointwiseMetric

_EXAMPLES: dict[object, str] = {
    ToolUseMetric: 'ToolUseMetric(tool_name="search")',
    CustomMetric: 'CustomMetric("name", function)',
    PointwiseMetric: 'PointwiseMetric("name", template=..., model=...)',
}


def metric_name(metric: TaskMetric) -> str:
    return metric if isinstance(metric, str) else metric.name


def require_metrics(metrics: Iterable[GivenMetric]) -> tuple[TaskMetric, ...]:
    """The metrics, or EvalSetError for one that there is not, or two of one name."""
    is_list = isinstance(metrics, Iterable) and not isinstance(metrics, str | type)
    listed: tuple[Any, ...] = tuple(metrics) if is_list else (metrics,)
    for metric in listed:
        if metric not in NAMES if isinstance(metric, str) else not isinstance(metric, _WITH_OPTIONS):
            raise EvalSetError(
                f"metrics: expected names ({', '.join(NAMES)}) or metrics; got {shown(metric)}{_nearest(metric)}"
            )
    twice = [name for name, n in Counter(map(metric_name, listed)).items() if n > 1]
    if twice:
        raise EvalSetError(f"several metrics are called {twice[0]!r}: give them names of their own")
    return listed


def _nearest(metric: object) -> str:
    """The nearest thing that works."""
    if metric == SINGLE_TOOL_USE:
        return f"; use {_EXAMPLES[ToolUseMetric]}"
    if isinstance(metric, type) and issubclass(metric, _WITH_OPTIONS):
        return f"; use an instance: {_EXAMPLES[metric]}"
    if callable(metric):
        name = getattr(metric, "__name__", "function")
        return f'; use CustomMetric("{name}", {name})' if name.isidentifier() else f"; use {_EXAMPLES[CustomMetric]}"
    return meant(metric, NAMES)


def trajectory_metrics(metrics: Iterable[TaskMetric]) -> tuple[TrajectoryMetric, ...]:
    """Those that compare trajectories."""
    return tuple(m for m in metrics if isinstance(m, ToolUseMetric) or (isinstance(m, str) and m in TRAJECTORY_METRICS))
