"""The mlflow traces that calls of an agent left → the trajectories that they show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_eval_schema.evaluation.outputs import as_plain
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.spans import Trace


def trajectories_of(trace_ids: Iterable[str]) -> list[list[dict[str, Any]] | None]:
    """The calls that each trace shows, `[]` if it shows none; None for a trace that is not there.

    mlflow may still be writing, so it is asked to finish first.
    """
    import mlflow

    if hasattr(mlflow, "flush_trace_async_logging"):
        mlflow.flush_trace_async_logging()
    return [_calls(mlflow, trace_id) for trace_id in trace_ids]


def _calls(mlflow: Any, trace_id: str) -> list[dict[str, Any]] | None:
    try:
        found = mlflow.get_trace(trace_id)
    # the store is unavailable or rejects the call: the row then lacks a trajectory, and its reason reports that
    except Exception:
        return None
    trace = decode_trace(found.to_json()) if found is not None else None
    return as_plain(derive(trace).predicted_trajectory or []) if isinstance(trace, Trace) else None
