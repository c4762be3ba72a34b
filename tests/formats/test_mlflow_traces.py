"""Traces as MLflow stores them and its SDKs log them: traces.json, arguments of TypeScript, the Responses API."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import normalize_eval_set, prepare_for_evaluate, validate_eval_set
from agent_eval_schema.decoding.chat import read_messages
from tests.conftest import DATA, Row

TRACES = sorted((DATA / "traces").glob("v[23]_*.json"))
HI = {"role": "user", "content": "Hi"}


def trace_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def asked(inputs: Any) -> Any:
    """What a trace whose root span has these inputs asks."""
    trace = trace_of(DATA / "traces" / "v3_chat_completion.json")
    root = next(span for span in trace["data"]["spans"] if not span.get("parent_span_id"))
    root["attributes"]["mlflow.spanInputs"] = json.dumps(inputs)
    (row,) = validate_eval_set([trace]).iter_rows()
    return row["request"]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_the_artifact_of_a_trace_says_what_the_trace_says(path: Path, tmp_path: Path) -> None:
    trace = trace_of(path)
    artifact = tmp_path / "traces.json"
    artifact.write_text(json.dumps({k: v for k, v in trace["data"].items() if k in ("spans", "request", "response")}))
    report = validate_eval_set(str(artifact))
    assert (report.format, report.ok, report.row_count) == ("traces", True, 1), report.to_text()
    (row,), (whole,) = report.iter_rows(), validate_eval_set([trace]).iter_rows()
    of_the_info = {"request_id", "latency_seconds", "session_id", "trace", "failure"}
    assert {k: v for k, v in row.items() if k not in of_the_info} == {
        k: v for k, v in whole.items() if k not in of_the_info
    }


@pytest.mark.mlflow
def test_what_mlflow_writes_as_an_artifact_is_valid_and_it_reads_what_we_prepare() -> None:
    entities = pytest.importorskip("mlflow.entities", reason="mlflow is not installed")
    for path in TRACES:
        trace = trace_of(path)
        if path.stem.startswith("v3") and "state" in trace["info"]:
            data = entities.Trace.from_dict(copy.deepcopy(trace)).data.to_dict()
            assert validate_eval_set([data]).format == "traces"
            (text,) = prepare_for_evaluate([data])["trace"]
            spans = entities.Trace.from_json(text).data.spans
            assert [span.name for span in spans] == [span["name"] for span in data["spans"]]


@pytest.mark.parametrize(
    ("inputs", "messages"),
    [
        ({"args": [{"messages": [HI]}]}, [HI]),
        ({"args": [{"input": [HI]}]}, [HI]),
        ({"args": ["Hi"]}, [HI]),
        ({"args": [[HI]]}, [HI]),
        ({"args": [{"query": "Hi", "history": []}]}, [HI]),
        ({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]}, [HI]),
        ({"request": {"input": "Hi"}}, [HI]),
    ],
)
def test_inputs_as_other_sdks_log_them_are_requests(inputs: Any, messages: list[Row]) -> None:
    assert read_messages(inputs) == messages
    assert asked(inputs) == {"messages": messages}


@pytest.mark.parametrize("inputs", [{"args": ["Hi", 3]}, {"args": []}, {"args": [{"k": 1}]}, {"args": [3]}])
def test_arguments_of_no_known_form_are_json(inputs: Any) -> None:
    assert read_messages(inputs) is None
    assert json.loads(asked(inputs)["messages"][0]["content"]) == inputs


ITEMS = [
    {"role": "user", "content": "Weather?"},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "sunny"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And tomorrow?"}]},
]


def test_a_request_of_the_responses_api_is_a_request(every_input: Callable[[list[Row]], Any]) -> None:
    data = every_input([{"request": {"input": ITEMS}, "response": "Rain."}])
    report = validate_eval_set(data)
    assert (report.ok, report.counts.get("AE229")) == (True, 1), report.to_text()
    (row,) = report.iter_rows()
    assert [m["role"] for m in row["request"]["messages"]] == ["user", "assistant", "tool", "user"]
    assert row["request"]["messages"][-1] == {"role": "user", "content": "And tomorrow?"}
    assert row["inputs"] == {"input": ITEMS}


def test_items_that_are_no_messages_are_no_request() -> None:
    assert validate_eval_set([{"request": {"input": [3]}, "response": "x"}]).counts == {"AE205": 1}
    assert validate_eval_set([{"request": {"input": 3}, "response": "x"}]).counts == {"AE205": 1}


def test_normalized_requests_of_the_responses_api_are_read_again_as_they_are() -> None:
    rows = normalize_eval_set([{"request": {"input": "Hi", "temperature": 0}, "response": "x"}])
    assert rows[0]["request"] == {"messages": [HI]}
    assert normalize_eval_set(rows) == rows
