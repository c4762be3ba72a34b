"""Deterministic metrics as MLflow scorers: documents, trajectories, tool calls, tokens and latency.

The names are loaded on first use, which requires the extra `mlflow`. Pass instances to `mlflow.genai.evaluate` or
`evaluate_eval_set`.

Examples
--------
>>> from agent_eval_schema import scorers
>>> chosen = [scorers.DocumentRecall(), scorers.TrajectoryRecall(duplicates="one_to_one")]
>>> [scorer.name for scorer in chosen]
['document_recall', 'trajectory_recall']
"""

from typing import TYPE_CHECKING

from agent_eval_schema.runtime.lazy import load_on_use

if TYPE_CHECKING:
    from agent_eval_schema.integrations.mlflow.scorers import *  # noqa: F403
else:
    _NAMES = (
        "DocumentRecall",
        "DocumentPrecision",
        "TrajectoryExactMatch",
        "TrajectoryInOrderMatch",
        "TrajectoryAnyOrderMatch",
        "TrajectoryPrecision",
        "TrajectoryRecall",
        "TrajectoryF1",
        "TrajectorySingleToolUse",
        "ToolInvocation",
        "ToolOrderedInvocation",
        "ParameterCorrectness",
        "ToolCallsPass",
        "InputTokenCount",
        "OutputTokenCount",
        "TotalTokenCount",
        "LatencySeconds",
        "RunFailure",
        "SCORERS",
        "RowScorer",
    )

    __getattr__, __dir__, __all__ = load_on_use(__name__, dict.fromkeys(_NAMES, "integrations.mlflow.scorers"))
