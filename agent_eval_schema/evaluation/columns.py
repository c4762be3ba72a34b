"""The columns of a result's table: those that a run adds, and the names of a metric's columns."""

from __future__ import annotations

from agent_eval_schema.metrics.catalog import FAILURE, LATENCY

RUN_COLUMNS = ("response", LATENCY, FAILURE, "predicted_trajectory", "error")
"""The columns that running an agent adds; `error` is ours, the documented run loses it."""


REQUEST_ID = "request_id"
"""The first column, if any row has an id and the data has no column of that name."""


def score_column(metric: str) -> str:
    """The column that holds the scores of a metric."""
    return metric if metric in (LATENCY, FAILURE) else f"{metric}/score"
