"""Deterministic metrics as MLflow scorers: document recall and precision, trajectories, tool calls, counts of a trace.

    from agent_eval_schema import scorers

    mlflow.genai.evaluate(data, scorers=[scorers.DocumentRecall(), scorers.TrajectoryRecall(duplicates="one_to_one")])

The names are loaded on first use, which needs the extra `mlflow`.
"""

from typing import TYPE_CHECKING

from agent_eval_schema.runtime.lazy import load_on_use

if TYPE_CHECKING:
    from agent_eval_schema.integrations.scorers import *  # noqa: F403 -- which lists what it exports

_NAMES = (
    "DocumentRecall",
    "DocumentPrecision",
    "TrajectoryExactMatch",
    "TrajectoryInOrderMatch",
    "TrajectoryAnyOrderMatch",
    "TrajectoryPrecision",
    "TrajectoryRecall",
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

__getattr__, __dir__, __all__ = load_on_use(__name__, dict.fromkeys(_NAMES, "integrations.scorers"))
