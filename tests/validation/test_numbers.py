"""Numbers at the ends of every type, in every place that holds one: an issue of their row, never an exception."""

from __future__ import annotations

import json
import math
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import (
    EvalSetError,
    convert_eval_set,
    diff_eval_sets,
    normalize_eval_set,
    prepare_for_evaluate,
    score_trajectories,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.formats.names import TARGETS
from agent_eval_schema.rules.reading import INTERNAL
from tests.conftest import KINDS, Row

EXTREMES = (
    *(1e300, 1e308, -1e308, 5e-324, -0.0, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**400, -(10**400), -1),
    *(math.nan, math.inf, -math.inf, True, 0.1 + 0.2),
)

_CALL = {"tool_name": "search", "tool_input": {}}
_ROW = {"request": "Hi", "response": "a", "predicted_trajectory": [_CALL], "reference_trajectory": [_CALL]}


def _usage(number: Any) -> Row:
    return {"input_tokens": number, "output_tokens": number, "total_tokens": number}


def _trace(number: Any) -> Row:
    times = {"start_time_unix_nano": number, "end_time_unix_nano": number}
    attributes = {"mlflow.spanInputs": number, "mlflow.spanOutputs": number, "mlflow.chat.tokenUsage": _usage(number)}
    event = {"name": "e", "time_unix_nano": number, "attributes": {"a": number}}
    ids = {"span_id": "a", "trace_id": "x", "parent_span_id": None}
    info = {
        "trace_id": "tr-1",
        "request_time": number,
        "execution_duration_ms": number,
        "state": "OK",
        "trace_metadata": {"mlflow.trace.tokenUsage": json.dumps(_usage(number))},
        "assessments": [
            {"assessment_name": "expected_response", "expectation": {"value": number}, "create_time": number}
        ],
    }
    span = {"name": "r", **ids, **times, "events": [event], "attributes": attributes}
    return {"info": info, "data": {"spans": [span]}}


def _older_trace(number: Any) -> Row:
    span = {"name": "r", "context": {"span_id": "1", "trace_id": "2"}, "parent_id": None, "attributes": {}}
    span |= {"start_time": number, "end_time": number, "status_code": "OK"}
    info = {"request_id": "r", "timestamp_ms": number, "execution_time_ms": number, "status": "OK"}
    return {"info": info, "data": {"spans": [span], "request": "{}", "response": "a"}}


def _golden(number: Any) -> Row:
    asked = {"userInput": {"text": "x", "variables": {"a": number}}}
    called = {"expectation": {"toolCall": {"tool": "t", "args": {"a": number}}}}
    return {"displayName": "e", "golden": {"turns": [{"steps": [asked, called]}]}}


def _result(number: Any) -> Row:
    said = {"agentResponse": {"chunks": [{"text": "x"}]}}
    outcome = {"expectation": said, "observedAgentResponse": said["agentResponse"]}
    turn = {"turnLatency": f"{number}s", "toolInvocationScore": number, "expectationOutcome": [outcome]}
    name = "projects/p/locations/l/apps/a/evaluations/E/results/1"
    return {"name": name, "displayName": "r", "goldenResult": {"turnReplayResults": [turn]}}


PLACES: dict[str, Callable[[Any], Row]] = {
    "latency": lambda n: {**_ROW, "latency_seconds": n},
    "token counts": lambda n: {**_ROW, "input_token_count": n, "output_token_count": n, "total_token_count": n},
    "ids": lambda n: {**_ROW, "request_id": n, "session_id": n},
    "open values": lambda n: {**_ROW, "custom_expected": {"a": n}, "tags": {"a": n}, "extra": n, "failure": n},
    "arguments": lambda n: {**_ROW, "predicted_trajectory": [{"tool_name": "t", "tool_input": {"a": n}}]},
    "a request": lambda n: {"request": {"messages": [{"role": "user", "content": "x", "n": n}], "top_p": n}},
    "originals": lambda n: {
        "inputs": {"q": "a", "k": n},
        "outputs": n,
        "expectations": {"expected_response": n, "b": n},
    },
    "documents": lambda n: {**_ROW, "retrieved_context": [{"doc_uri": "u", "content": "c", "score": n}]},
    "a trace": lambda n: {**_ROW, "trace": _trace(n)},
    "a trace as text": lambda n: {"trace": json.dumps(_trace(n))},
    "an older trace": lambda n: {"trace": json.dumps(_older_trace(n))},
    "search_traces": lambda n: {"trace_id": "t", "state": "OK", "request_time": n, "trace": json.dumps(_trace(n))},
    "vertex": lambda n: {"prompt": "p", **_ROW, "latency_in_seconds": n, "failure": n},
    "deepeval": lambda n: {"input": "p", "actual_output": "a", "completion_time": n, "token_cost": n},
    "langsmith": lambda n: {"inputs": {"question": "q", "k": n}, "outputs": {"answer": n}, "metadata": {"a": n}},
    "openai": lambda n: {"item": {"request": "a", "n": n}, "sample": {"output_text": "x", "usage": n}},
    "an ADK turn": lambda n: {"eval_id": "a", "turn": n, "turns": n, "history": [], "user_content": "x", "duration": n},
    "a CES golden": _golden,
    "a CES scenario": lambda n: {"displayName": "e", "scenario": {"task": "x", "variableOverrides": {"a": n}}},
    "a CES result": _result,
    "a logged call": lambda n: {
        "databricks_request_id": "d",
        "timestamp_ms": n,
        "status_code": n,
        "execution_time_ms": n,
        "request": '{"messages": [{"role": "user", "content": "x"}]}',
        "response": "{}",
    },
}

EVALUATORS = ("mlflow.genai", "mlflow.evaluate", "databricks-agent", "vertex")


def _write(data: Any, folder: Path) -> None:
    for ending in ("jsonl", "csv", "parquet"):
        write_eval_set(data, folder / f"written.{ending}")


def _used(data: Any, folder: Path, target: str, evaluator: Any) -> None:
    """Everything that is done with rows. What a function cannot do with them, it says in an EvalSetError."""
    report = validate_eval_set(data)
    assert INTERNAL.code not in report.counts, report.to_text()
    assert report.to_text()
    json.loads(report.to_json())
    assert len(report.rows) == report.row_count == len(list(report.iter_rows()))
    uses: tuple[Callable[[], Any], ...] = (
        lambda: _write(data, folder),
        lambda: _write(normalize_eval_set(data, on_invalid="keep"), folder),
        lambda: prepare_for_evaluate(data, evaluator=evaluator),
        lambda: convert_eval_set(data, target),  # type: ignore[arg-type]
        lambda: diff_eval_sets(data, [_ROW]).to_text(),
        lambda: score_trajectories(data),
    )
    for use in uses:
        try:
            use()
        except EvalSetError:
            continue


def _require_no_exception(place: str, number: Any, kind: str, target: str, evaluator: str) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _used(KINDS[kind]([PLACES[place](number), _ROW], Path(folder)), Path(folder), target, evaluator)


@pytest.mark.mlflow
@pytest.mark.parametrize("place", PLACES)
def test_an_integer_beyond_every_type(place: str) -> None:
    _require_no_exception(place, 10**400, "list", "mlflow", "mlflow.genai")


@pytest.mark.parametrize("latency", [1e300, 1e308, -1e308])
def test_a_latency_that_no_trace_can_hold_is_cut(latency: float) -> None:
    made = convert_eval_set([{**_ROW, "latency_seconds": latency}], "mlflow")
    (span, *_) = json.loads(made.data.trace[0])["data"]["spans"]
    assert 0 <= span["end_time_unix_nano"] < 2**63
    assert "latency_seconds" in made.losses.column.tolist()


NUMBERS = st.sampled_from(EXTREMES) | st.floats() | st.integers(-(2**70), 2**70)
KIND_NAMES = ("list", "pandas", "jsonl", "csv", "arrow")


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    place=st.sampled_from(tuple(PLACES)),
    number=NUMBERS,
    kind=st.sampled_from(KIND_NAMES),
    target=st.sampled_from(TARGETS),
    evaluator=st.sampled_from(EVALUATORS),
)
def test_any_number_anywhere(place: str, number: Any, kind: str, target: str, evaluator: str) -> None:
    _require_no_exception(place, number, kind, target, evaluator)
