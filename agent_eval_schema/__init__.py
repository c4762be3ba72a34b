"""Validate, normalize, convert and score evaluation datasets for AI agents, and report the metrics of each row.

The public names are loaded on first use.

Examples
--------
>>> from agent_eval_schema import validate_eval_set
>>> validate_eval_set([{"request": "What is Delta Lake?", "response": "A table format."}])
<Report: 1 of 1 rows valid, 0 errors, 0 warnings>
"""

from typing import TYPE_CHECKING

from agent_eval_schema.runtime.lazy import load_on_use
from agent_eval_schema.runtime.version import __version__ as __version__

if TYPE_CHECKING:
    from agent_eval_schema import ces as ces
    from agent_eval_schema import scorers as scorers
    from agent_eval_schema.api import UnreadableTraceWarning as UnreadableTraceWarning
    from agent_eval_schema.api import eval_set_from_traces as eval_set_from_traces
    from agent_eval_schema.api import explain as explain
    from agent_eval_schema.api import metric_support as metric_support
    from agent_eval_schema.api import normalize_eval_set as normalize_eval_set
    from agent_eval_schema.api import validate_eval_set as validate_eval_set
    from agent_eval_schema.api import write_eval_set as write_eval_set
    from agent_eval_schema.conversion.conversion import Conversion as Conversion
    from agent_eval_schema.conversion.convert import convert_eval_set as convert_eval_set
    from agent_eval_schema.conversion.importing import EvalSetImport as EvalSetImport
    from agent_eval_schema.conversion.importing import UndecidedError as UndecidedError
    from agent_eval_schema.conversion.importing import import_eval_set as import_eval_set
    from agent_eval_schema.diff.diff import Diff as Diff
    from agent_eval_schema.diff.diff import diff_eval_sets as diff_eval_sets
    from agent_eval_schema.errors import EvalSetError as EvalSetError
    from agent_eval_schema.errors import EvalSetNotFoundError as EvalSetNotFoundError
    from agent_eval_schema.errors import ExtensionWarning as ExtensionWarning
    from agent_eval_schema.errors import FormulaWarning as FormulaWarning
    from agent_eval_schema.errors import HardLinkWarning as HardLinkWarning
    from agent_eval_schema.errors import MissingExtraError as MissingExtraError
    from agent_eval_schema.errors import UnwrittenScoreWarning as UnwrittenScoreWarning
    from agent_eval_schema.evaluation.comparison import ScoreComparison as ScoreComparison
    from agent_eval_schema.evaluation.history import ScoreHistory as ScoreHistory
    from agent_eval_schema.evaluation.result import EvalResult as EvalResult
    from agent_eval_schema.evaluation.result import load_result as load_result
    from agent_eval_schema.evaluation.score import score_trajectories as score_trajectories
    from agent_eval_schema.evaluation.task import EvalTask as EvalTask
    from agent_eval_schema.evaluation.task_metrics import CustomMetric as CustomMetric
    from agent_eval_schema.evaluation.task_metrics import MetricName as MetricName
    from agent_eval_schema.evaluation.task_metrics import PointwiseMetric as PointwiseMetric
    from agent_eval_schema.evaluation.trajectories import ToolUseMetric as ToolUseMetric
    from agent_eval_schema.formats.json_schema import json_schema as json_schema
    from agent_eval_schema.formats.opening import EvalSetLike as EvalSetLike
    from agent_eval_schema.formats.registry import FormatName as FormatName
    from agent_eval_schema.formats.values_as_text import ValuesAsTextWarning as ValuesAsTextWarning
    from agent_eval_schema.inference_tables.build import eval_set_from_inference_table as eval_set_from_inference_table
    from agent_eval_schema.inference_tables.build_summary import BuildSummary as BuildSummary
    from agent_eval_schema.inference_tables.result import EvalSetBuild as EvalSetBuild
    from agent_eval_schema.inference_tables.spark import spark_from_inference_table as spark_from_inference_table
    from agent_eval_schema.integrations.mlflow.datasets import UnreadableRecordWarning as UnreadableRecordWarning
    from agent_eval_schema.integrations.mlflow.datasets import WrittenDataset as WrittenDataset
    from agent_eval_schema.integrations.mlflow.datasets import from_mlflow_dataset as from_mlflow_dataset
    from agent_eval_schema.integrations.mlflow.datasets import to_mlflow_dataset as to_mlflow_dataset
    from agent_eval_schema.integrations.mlflow.evaluate import evaluate_eval_set as evaluate_eval_set
    from agent_eval_schema.integrations.mlflow.metrics import mlflow_metrics as mlflow_metrics
    from agent_eval_schema.integrations.mlflow.prepare import InvalidRowsWarning as InvalidRowsWarning
    from agent_eval_schema.integrations.mlflow.prepare import ReducedInputsWarning as ReducedInputsWarning
    from agent_eval_schema.integrations.mlflow.prepare import prepare_for_evaluate as prepare_for_evaluate
    from agent_eval_schema.integrations.mlflow.supported import SupportedScorers as SupportedScorers
    from agent_eval_schema.integrations.mlflow.supported import supported_scorers as supported_scorers
    from agent_eval_schema.integrations.mlflow.tracking import traces_from_store as traces_from_store
    from agent_eval_schema.io.source import Source as Source
    from agent_eval_schema.issues import Issue as Issue
    from agent_eval_schema.metrics.metric_info import MetricInfo as MetricInfo
    from agent_eval_schema.profile.profile import Profile as Profile
    from agent_eval_schema.profile.profile import profile_eval_set as profile_eval_set
    from agent_eval_schema.review.review import Review as Review
    from agent_eval_schema.review.review import review_eval_set as review_eval_set
    from agent_eval_schema.rule import Severity as Severity
    from agent_eval_schema.validation.assertion import assert_valid as assert_valid
    from agent_eval_schema.validation.report import InvalidEvalSetError as InvalidEvalSetError
    from agent_eval_schema.validation.report import Report as Report
    from agent_eval_schema.validation.spark import spark_validate as spark_validate
else:
    _HOMES = {
        "validate_eval_set": "api",
        "normalize_eval_set": "api",
        "assert_valid": "validation.assertion",
        "metric_support": "api",
        "profile_eval_set": "profile.profile",
        "review_eval_set": "review.review",
        "eval_set_from_traces": "api",
        "traces_from_store": "integrations.mlflow.tracking",
        "eval_set_from_inference_table": "inference_tables.build",
        "EvalSetBuild": "inference_tables.result",
        "BuildSummary": "inference_tables.build_summary",
        "spark_validate": "validation.spark",
        "spark_from_inference_table": "inference_tables.spark",
        "prepare_for_evaluate": "integrations.mlflow.prepare",
        "write_eval_set": "api",
        "diff_eval_sets": "diff.diff",
        "convert_eval_set": "conversion.convert",
        "import_eval_set": "conversion.importing",
        "EvalSetImport": "conversion.importing",
        "supported_scorers": "integrations.mlflow.supported",
        "SupportedScorers": "integrations.mlflow.supported",
        "evaluate_eval_set": "integrations.mlflow.evaluate",
        "mlflow_metrics": "integrations.mlflow.metrics",
        "to_mlflow_dataset": "integrations.mlflow.datasets",
        "WrittenDataset": "integrations.mlflow.datasets",
        "from_mlflow_dataset": "integrations.mlflow.datasets",
        "score_trajectories": "evaluation.score",
        "EvalTask": "evaluation.task",
        "EvalResult": "evaluation.result",
        "load_result": "evaluation.result",
        "ScoreComparison": "evaluation.comparison",
        "ScoreHistory": "evaluation.history",
        "ToolUseMetric": "evaluation.trajectories",
        "CustomMetric": "evaluation.task_metrics",
        "PointwiseMetric": "evaluation.task_metrics",
        "MetricInfo": "metrics.metric_info",
        "json_schema": "formats.json_schema",
        "explain": "api",
        "Report": "validation.report",
        "Profile": "profile.profile",
        "Review": "review.review",
        "Diff": "diff.diff",
        "Conversion": "conversion.conversion",
        "Issue": "issues",
        "Severity": "rule",
        "EvalSetError": "errors",
        "InvalidEvalSetError": "validation.report",
        "EvalSetNotFoundError": "errors",
        "MissingExtraError": "errors",
        "UndecidedError": "conversion.importing",
        "ExtensionWarning": "errors",
        "FormulaWarning": "errors",
        "HardLinkWarning": "errors",
        "InvalidRowsWarning": "integrations.mlflow.prepare",
        "ReducedInputsWarning": "integrations.mlflow.prepare",
        "UnreadableRecordWarning": "integrations.mlflow.datasets",
        "UnreadableTraceWarning": "api",
        "UnwrittenScoreWarning": "errors",
        "ValuesAsTextWarning": "formats.values_as_text",
        "Source": "io.source",
        "EvalSetLike": "formats.opening",
        "FormatName": "formats.registry",
        "MetricName": "evaluation.task_metrics",
        "ces": "ces",
        "scorers": "scorers",
    }
    """In the order of a reader's interest; type checkers do not see it, as any name would be one of `__getattr__`."""

    _GUESSES = {
        **dict.fromkeys(("check", "check_eval_set", "lint"), "validate_eval_set(data)"),
        **dict.fromkeys(
            ("read", "load", "load_eval_set", "read_eval_set", "from_csv", "read_csv", "read_json"),
            "normalize_eval_set(path)",
        ),
        **dict.fromkeys(("fix", "repair", "fix_eval_set"), "normalize_eval_set(data, fix=True)"),
        **dict.fromkeys(("compare", "compare_results"), "load_result(old).compare(load_result(new))"),
        **dict.fromkeys(("split", "sample"), "normalize_eval_set(data).sample(n)"),
        **dict.fromkeys(("read_excel", "from_excel"), "import_eval_set(path)"),
        **dict.fromkeys(("dedupe", "deduplicate"), "profile_eval_set(data).write(path)"),
        "redact": 'eval_set_from_inference_table(table, redact="default")',
        "detect_format": "validate_eval_set(data).format",
    }
    __getattr__, __dir__, __all__ = load_on_use(__name__, _HOMES, _GUESSES)
