"""The columns of a result's table: which a run adds, and what a metric's column is called."""

from __future__ import annotations

from agent_eval_schema.metrics.catalog import FAILURE, LATENCY

RUN_COLUMNS = ("response", LATENCY, FAILURE, "predicted_trajectory", "error")
"""The columns that running an agent adds; `error` is ours, the documented run loses it."""


def score_column(metric: str) -> str:
    """The column that holds the scores of a metric."""
    return metric if metric in (LATENCY, FAILURE) else f"{metric}/score"
