"""A canonical row → a row of the form that mlflow.genai.evaluate takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent_eval_schema.traces.encode import made_of

Row = Mapping[str, Any]

_IN_TRACE = (
    *("retrieved_context", "predicted_trajectory", "input_token_count", "output_token_count", "total_token_count"),
    *("latency_seconds", "failure", "session_id"),
)
"""Columns that mlflow looks for in a trace only."""


MLFLOW_ROW = ("request_id", "inputs", "outputs", "expectations", "trace", "tags", "session")
"""The columns of a written row; mlflow ignores the first."""


def write_mlflow(row: Row) -> dict[str, Any]:
    """A row of inputs, outputs, expectations, tags; what only a trace can hold gets one, unless there is one."""
    expectations = expectations_of(row)
    trace = row["trace"]
    if trace is None and any(row[name] is not None for name in _IN_TRACE):
        trace = made_of(dict(row), str(row["request_id"] or row["request"]), 0)
    session = row["session_id"]
    given = (row["request_id"], row["request"], row["response"], expectations or None, trace, row["tags"], session)
    return {name: value for name, value in zip(MLFLOW_ROW, given, strict=True) if value is not None}


def expectations_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The expectations of a canonical row, only the keys that are there: mlflow takes a key with None for an
    expectation, of which it cannot be one, and ends the evaluation."""
    given = {name: value for name, value in (row.get("custom_expected") or {}).items() if value is not None}
    for name, (column, shape) in EXPECTED.items():
        value = row.get(column)
        if value is not None:
            given[name] = shape(value)
    return given


def _guidelines(value: dict[str, list[str]]) -> list[str]:
    """mlflow's scorer takes a list; the names of groups have no place there."""
    return [text for texts in value.values() for text in texts]


def _calls(value: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": c["tool_name"], "arguments": c["tool_input"]} for c in value]


def _documents(value: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in d.items() if v is not None} for d in value]


def _as_it_is(value: Any) -> Any:
    return value


EXPECTED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "expected_response": ("expected_response", _as_it_is),
    "expected_facts": ("expected_facts", _as_it_is),
    "guidelines": ("guidelines", _guidelines),
    "expected_retrieved_context": ("expected_retrieved_context", _documents),
    "expected_tool_calls": ("reference_trajectory", _calls),
}
