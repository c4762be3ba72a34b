"""Validate, normalise and derive evaluation sets for agents, and see which metrics each row can support.

The public names are loaded on first use (PEP 562), so importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "validate_eval_set": "api",
    "normalize_eval_set": "api",
    "metric_support": "api",
    "eval_set_from_traces": "api",
    "traces_from_store": "integrations.mlflow.tracking",
    "eval_set_from_inference_table": "inference_tables.build",
    "EvalSetBuild": "inference_tables.build",
    "spark_validate": "validation.spark",
    "spark_from_inference_table": "inference_tables.spark",
    "prepare_for_evaluate": "integrations.mlflow.prepare",
    "diff_eval_sets": "diff.diff",
    "write_eval_set": "api",
    "convert_eval_set": "conversion.convert",
    "Conversion": "conversion.convert",
    "supported_scorers": "integrations.mlflow.supported",
    "evaluate_eval_set": "integrations.mlflow.evaluate",
    "mlflow_metrics": "integrations.mlflow.metrics",
    "to_mlflow_dataset": "integrations.mlflow.datasets",
    "from_mlflow_dataset": "integrations.mlflow.datasets",
    "score_trajectories": "evaluation.score",
    "EvalTask": "evaluation.task",
    "EvalResult": "evaluation.result",
    "TrajectorySingleToolUse": "evaluation.trajectories",
    "CustomMetric": "evaluation.custom",
    "PointwiseMetric": "evaluation.judges",
    "json_schema": "formats.json_schema",
    "explain": "api",
    "Report": "validation.report",
    "Diff": "diff.diff",
    "Issue": "issues",
    "Severity": "issues",
    "EvalSetError": "issues",
    "InvalidEvalSet": "validation.report",
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
    from agent_eval_schema.api import (
        eval_set_from_traces,
        explain,
        metric_support,
        normalize_eval_set,
        validate_eval_set,
        write_eval_set,
    )
    from agent_eval_schema.conversion.convert import Conversion, convert_eval_set
    from agent_eval_schema.diff.diff import Diff, diff_eval_sets
    from agent_eval_schema.evaluation.custom import CustomMetric
    from agent_eval_schema.evaluation.judges import PointwiseMetric
    from agent_eval_schema.evaluation.result import EvalResult
    from agent_eval_schema.evaluation.score import score_trajectories
    from agent_eval_schema.evaluation.task import EvalTask
    from agent_eval_schema.evaluation.trajectories import TrajectorySingleToolUse
    from agent_eval_schema.formats.json_schema import json_schema
    from agent_eval_schema.inference_tables.build import EvalSetBuild, eval_set_from_inference_table
    from agent_eval_schema.inference_tables.spark import spark_from_inference_table
    from agent_eval_schema.integrations.mlflow.datasets import from_mlflow_dataset, to_mlflow_dataset
    from agent_eval_schema.integrations.mlflow.evaluate import evaluate_eval_set
    from agent_eval_schema.integrations.mlflow.metrics import mlflow_metrics
    from agent_eval_schema.integrations.mlflow.prepare import prepare_for_evaluate
    from agent_eval_schema.integrations.mlflow.supported import supported_scorers
    from agent_eval_schema.integrations.mlflow.tracking import traces_from_store
    from agent_eval_schema.issues import EvalSetError, Issue, Severity
    from agent_eval_schema.validation.report import InvalidEvalSet, Report
    from agent_eval_schema.validation.spark import spark_validate


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
