"""Validate, normalise and derive evaluation sets for agents, and see which metrics each row can support.

The public names are loaded on first use (PEP 562), so importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "validate_eval_set": "check",
    "normalize_eval_set": "check",
    "metric_support": "check",
    "eval_set_from_traces": "traces.rows",
    "traces_from_store": "integrations.tracking",
    "eval_set_from_inference_table": "production.build",
    "EvalSetBuild": "production.build",
    "spark_validate": "engines.spark",
    "spark_from_inference_table": "engines.spark_build",
    "prepare_for_evaluate": "integrations.prepare",
    "diff_eval_sets": "diff",
    "write_eval_set": "write",
    "convert_eval_set": "convert",
    "Conversion": "convert",
    "supported_scorers": "integrations.supported",
    "evaluate_eval_set": "integrations.evaluate",
    "mlflow_metrics": "integrations.metrics",
    "to_mlflow_dataset": "integrations.datasets",
    "from_mlflow_dataset": "integrations.datasets",
    "score_trajectories": "evaluation.score",
    "EvalTask": "evaluation.task",
    "EvalResult": "evaluation.result",
    "TrajectorySingleToolUse": "evaluation.trajectories",
    "CustomMetric": "evaluation.metrics",
    "PointwiseMetric": "evaluation.metrics",
    "json_schema": "schema",
    "explain": "rules",
    "Report": "report",
    "Diff": "diff",
    "Issue": "issues",
    "Severity": "issues",
    "EvalSetError": "issues",
    "InvalidEvalSet": "issues",
}

__all__ = [  # noqa: RUF022 -- in the order of a reader's interest
    "validate_eval_set",
    "normalize_eval_set",
    "metric_support",
    "eval_set_from_traces",
    "traces_from_store",
    "eval_set_from_inference_table",
    "EvalSetBuild",
    "spark_validate",
    "spark_from_inference_table",
    "prepare_for_evaluate",
    "write_eval_set",
    "diff_eval_sets",
    "convert_eval_set",
    "supported_scorers",
    "evaluate_eval_set",
    "mlflow_metrics",
    "to_mlflow_dataset",
    "from_mlflow_dataset",
    "score_trajectories",
    "EvalTask",
    "EvalResult",
    "TrajectorySingleToolUse",
    "CustomMetric",
    "PointwiseMetric",
    "json_schema",
    "explain",
    "Report",
    "Diff",
    "Conversion",
    "Issue",
    "Severity",
    "EvalSetError",
    "InvalidEvalSet",
]

if TYPE_CHECKING:
    from agent_eval_schema.check import metric_support, normalize_eval_set, validate_eval_set
    from agent_eval_schema.convert import Conversion, convert_eval_set
    from agent_eval_schema.diff import Diff, diff_eval_sets
    from agent_eval_schema.engines.spark import spark_validate
    from agent_eval_schema.engines.spark_build import spark_from_inference_table
    from agent_eval_schema.evaluation.metrics import CustomMetric, PointwiseMetric
    from agent_eval_schema.evaluation.result import EvalResult
    from agent_eval_schema.evaluation.score import score_trajectories
    from agent_eval_schema.evaluation.task import EvalTask
    from agent_eval_schema.evaluation.trajectories import TrajectorySingleToolUse
    from agent_eval_schema.integrations.datasets import from_mlflow_dataset, to_mlflow_dataset
    from agent_eval_schema.integrations.evaluate import evaluate_eval_set
    from agent_eval_schema.integrations.metrics import mlflow_metrics
    from agent_eval_schema.integrations.prepare import prepare_for_evaluate
    from agent_eval_schema.integrations.supported import supported_scorers
    from agent_eval_schema.integrations.tracking import traces_from_store
    from agent_eval_schema.issues import EvalSetError, InvalidEvalSet, Issue, Severity
    from agent_eval_schema.production.build import EvalSetBuild, eval_set_from_inference_table
    from agent_eval_schema.report import Report
    from agent_eval_schema.rules import explain
    from agent_eval_schema.schema import json_schema
    from agent_eval_schema.traces.rows import eval_set_from_traces
    from agent_eval_schema.write import write_eval_set


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
