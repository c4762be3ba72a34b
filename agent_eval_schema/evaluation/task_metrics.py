"""The metrics that an EvalTask takes: names, and objects with options.

    "trajectory_exact_match" … , TrajectorySingleToolUse(tool_name=…)    all rows at once (trajectories.py)
    "rouge_l_sum", "document_recall", "tool_invocation" …                columns of a row → a score (row_metrics.py)
    CustomMetric(name, function)                                         a row as a dict → {name: score, …} (custom.py)
    PointwiseMetric(name, template, model=…)                             a model, by mlflow's judges (judges.py)

Each gives `Measured`: columns for the table, and why rows have no score. A metric that raises on a row costs that score
only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent_eval_schema.evaluation.custom import CustomMetric
from agent_eval_schema.evaluation.judges import PointwiseMetric
from agent_eval_schema.evaluation.row_metrics import ROW_METRICS
from agent_eval_schema.evaluation.trajectories import TrajectoryMetric, TrajectorySingleToolUse
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics.definitions import SINGLE_TOOL_USE
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS

TaskMetric = str | TrajectorySingleToolUse | CustomMetric | PointwiseMetric

NAMES = (*TRAJECTORY_METRICS, *ROW_METRICS)
"""Every metric that is asked for by its name."""


def metric_name(metric: TaskMetric) -> str:
    return metric if isinstance(metric, str) else metric.name


def require_metrics(metrics: Iterable[TaskMetric]) -> tuple[TaskMetric, ...]:
    """The metrics, or EvalSetError for one that there is not, or two of one name."""
    if isinstance(metrics, str):
        metrics = (metrics,)
    given = tuple(metrics)
    for metric in given:
        if isinstance(metric, str) and metric not in NAMES:
            hint = " (give it as TrajectorySingleToolUse(tool_name=...))" if metric == SINGLE_TOOL_USE else ""
            raise EvalSetError(f"no metric {metric!r}{hint}: use {', '.join(NAMES)}, or an object")
        if not isinstance(metric, TaskMetric):
            raise EvalSetError(f"expected the name of a metric, or a metric, got a {type(metric).__name__}")
    twice = [name for name, n in Counter(map(metric_name, given)).items() if n > 1]
    if twice:
        raise EvalSetError(f"several metrics are called {twice[0]!r}: give them names of their own")
    return given


def trajectory_metrics(metrics: Iterable[TaskMetric]) -> tuple[TrajectoryMetric, ...]:
    """Those that compare trajectories."""
    return tuple(
        m for m in metrics if isinstance(m, TrajectorySingleToolUse) or (isinstance(m, str) and m in TRAJECTORY_METRICS)
    )
