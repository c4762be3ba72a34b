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

from agent_eval_schema.runtime.lazy import load_on_use

__getattr__, __dir__, __all__ = load_on_use(__name__)
