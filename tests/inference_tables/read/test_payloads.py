"""Request and response shapes: every sentence of the reference page's section on payloads, and bad input."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema import eval_set_from_inference_table
from agent_eval_schema.inference_tables.plan import BuildPlan
from agent_eval_schema.inference_tables.read.convert import convert_batch
from agent_eval_schema.inference_tables.read.payloads import Request, read_chat, read_other_request
from agent_eval_schema.text import jsontext
from tests.helpers.inference_tables import (
    ANSWER,
    ANSWERED,
    ASKED,
    QUESTION,
    batch_of,
    codes,
    convert,
    convert_one,
    logged,
)

USER = {"role": "user", "content": QUESTION}
MEGABYTE = "x" * (1 << 20)


def asked(record: dict[str, Any]) -> Any:
    return json.loads(record["request"])["messages"]


# ---------------------------------------------------------------------------------------------------------------------
# requests


@pytest.mark.parametrize(
    "request_body",
    [
        {"messages": [USER]},
        {"messages": [USER], "stream": True, "tools": [], "temperature": 0.1, "max_tokens": 5},
        {"messages": [USER], "databricks_options": {"return_trace": True}, "custom_inputs": None, "context": {}},
        {"input": QUESTION},
        {"input": [USER]},
        {"input": [{"type": "message", **USER}]},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}], "type": "message"}]},
        {"query": QUESTION},
        {"query": QUESTION, "history": []},
        {"query": QUESTION, "history": None},
        {"prompt": QUESTION, "max_tokens": 5},
        QUESTION,
    ],
    ids=str,
)
def test_the_shapes_of_a_request(request_body: Any) -> None:
    text = request_body if isinstance(request_body, str) else json.dumps(request_body)
    record = convert_one(logged(json.dumps(text) if text == QUESTION else text), by_question=True)
    assert (record["reason"], asked(record)) == (None, [USER])
    assert record["question_hash"] == convert_one(logged(), by_question=True)["question_hash"] is not None


def test_responses_items_become_messages() -> None:
    items = [
        USER,
        {"type": "function_call", "call_id": "c", "name": "search", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "16 weeks"},
        {"role": "user", "content": "And for part-time?"},
    ]
    assert [m["role"] for m in asked(convert_one(logged({"input": items})))] == ["user", "assistant", "tool", "user"]


def test_a_chat_with_a_broken_message_goes_to_the_check_as_it_is() -> None:
    body = {"messages": [{"role": "usr", "content": QUESTION}]}
    assert json.loads(convert_one(logged({**body, "stream": True}))["request"]) == body


def test_an_unknown_request_is_taken_as_json_and_told() -> None:
    record = convert_one(logged({"alpha": 1, "beta": "x"}))
    assert asked(record) == [{"role": "user", "content": '{"alpha":1,"beta":"x"}'}]
    assert codes(record) == ["AE706"]


@pytest.mark.parametrize(
    "body", [None, "", "{}", "[]", '{"messages": []}', '{"messages": ""}', '{"dataframe_records": []}', "null"]
)
def test_nothing_was_asked(body: str | None) -> None:
    assert convert_one(logged(body))["reason"] == "no_request"


def test_nothing_was_asked_but_a_trace_may_tell_or_come() -> None:
    traced = {**ANSWERED, "databricks_output": {"trace": {"info": {"trace_id": "tr-1"}, "data": {"spans": []}}}}
    assert convert_one(logged(None, traced))["reason"] is None
    assert convert_one(logged(None), joins_traces=True)["reason"] is None


@pytest.mark.parametrize(
    ("body", "session"),
    [
        ({"context": {"conversation_id": "a", "user_id": "u"}}, "a"),
        ({"databricks_options": {"conversation_id": "b"}}, "b"),
        ({"custom_inputs": {"thread_id": "c"}}, "c"),
        ({"extra_params": {"session_id": "d"}}, "d"),
        ({"conversation_id": 17}, "17"),
        ({"context": {"conversation_id": "a"}, "session_id": "x"}, "a"),
        ({"context": "odd", "session_id": "x"}, "x"),
        ({"context": {"conversation_id": ["odd"]}, "session_id": "x"}, "x"),
        ({}, None),
    ],
)
@pytest.mark.parametrize("base", [{"messages": [USER]}, {"query": QUESTION}], ids=["fast", "generic"])
def test_the_conversation(base: dict[str, Any], body: dict[str, Any], session: str | None) -> None:
    record = convert_one(logged({**base, **body}))
    assert record["session_id"] == session
    assert dict(record["tags"] or {}).get("user_id") == ("u" if "user_id" in str(body) else None)


# ---------------------------------------------------------------------------------------------------------------------
# wrappers


@pytest.mark.parametrize(
    "body",
    [
        {"dataframe_records": [{"query": "a"}, {"query": "b"}]},
        {"dataframe_split": {"index": [0, 1], "columns": ["query"], "data": [["a"], ["b"]]}},
        {"dataframe_split": {"columns": ["query", "history"], "data": [["a", []], ["b", None]]}},
        {"inputs": [{"query": "a"}, {"query": "b"}]},
        {"inputs": {"query": ["a", "b"]}},
        {"inputs": ["a", "b"], "params": {"temperature": 0.1}},
        {"inputs": {"messages": [[{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]]}},
        {"instances": [{"question": "a"}, {"question": "b"}]},
        {"instances": ["a", "b"]},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "response",
    [
        {"predictions": ["c", "d"]},
        {"predictions": [{"content": "c"}, {"content": "d"}]},
        {"predictions": [{"choices": [{"message": {"content": c}}]} for c in "cd"]},
        {"predictions": {"answer": ["c", "d"]}},
        ["c", "d"],
    ],
    ids=str,
)
def test_a_wrapper_is_exploded_and_zipped(body: Any, response: Any) -> None:
    records = convert([logged(body, response)])
    assert [asked(r)[-1]["content"] for r in records] == ["a", "b"]
    assert [r["response"] for r in records] == ["c", "d"]
    assert [(r["logged_id"], r["record"], r["request_id"]) for r in records] == [
        ("r-1", 0, "r-1#0"),
        ("r-1", 1, "r-1#1"),
    ]


@pytest.mark.parametrize(
    ("body", "response"),
    [
        ({"inputs": {"query": QUESTION, "history": []}}, {"predictions": ANSWER}),
        ({"inputs": {"messages": [USER]}}, {"predictions": [ANSWER]}),
        ({"inputs": [USER]}, {"predictions": {"content": ANSWER}}),
        ({"inputs": QUESTION}, ANSWERED),
        ({"instances": [{"prompt": QUESTION}]}, {"predictions": [{"content": ANSWER}]}),
        ({"dataframe_records": [{"messages": [USER]}]}, {"predictions": ANSWERED}),
    ],
    ids=str,
)
def test_a_lone_record_has_the_call_to_itself(body: Any, response: Any) -> None:
    record = convert_one(logged(body, response))
    assert (asked(record), record["response"]) == ([USER], ANSWER)
    assert (record["request_id"], record["label_id"], record["latency_seconds"]) == ("r-1#0", "r-1", 2.311)


@pytest.mark.parametrize("predictions", [["c"], ["c", "d", "e"], [], "c", {"a": ["c"]}, 7])
def test_a_count_that_differs_is_reported_and_nothing_is_guessed(predictions: Any) -> None:
    record = convert_one(logged({"inputs": ["a", "b"]}, {"predictions": predictions}))
    assert (record["reason"], record["record"]) == ("batch_mismatch", None)
    assert "expected 2 predictions for 2 records" in record["detail"]


def test_columns_of_different_lengths_are_no_records() -> None:
    record = convert_one(logged({"inputs": {"query": ["a", "b"], "k": [1]}}, {"predictions": ["c", "d"]}))
    assert (record["reason"], record["detail"]) == (
        "batch_mismatch",
        "request.inputs: expected columns of one length, got 1, 2",
    )


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"dataframe_split": {"columns": ["a"], "data": [[1], [1, 2]]}}, "request.dataframe_split.data[1]: "),
        ({"dataframe_split": {"columns": ["a"]}}, "request.dataframe_split: "),
        ({"dataframe_records": {"a": 1}}, "request.dataframe_records: "),
    ],
)
def test_a_broken_wrapper_is_malformed_at_a_path(body: Any, path: str) -> None:
    record = convert_one(logged(body, {"predictions": []}))
    assert record["reason"] == "malformed"
    assert record["detail"].startswith(path)


def test_a_record_without_question_costs_only_itself() -> None:
    records = convert([logged({"dataframe_records": [{"query": "a"}, {}]}, {"predictions": ["c", "d"]})])
    assert [(r["request_id"], r["reason"]) for r in records] == [("r-1#0", None), ("r-1#1", "no_request")]


# ---------------------------------------------------------------------------------------------------------------------
# responses


@pytest.mark.parametrize(
    "response",
    [
        ANSWERED,
        {"choices": [{"message": {"content": [{"type": "text", "text": ANSWER}]}}]},
        {"choices": [{"text": ANSWER}]},
        {"messages": [{"role": "assistant", "content": ANSWER}]},
        {"messages": [{"type": "human", "content": "Hi"}, {"type": "ai", "content": ANSWER}]},
        {"messages": [USER, {"role": "assistant", "content": ANSWER}, {"role": "tool", "content": "x"}]},
        {"messages": [{"role": "assistant", "content": ANSWER}, {"role": "assistant", "content": ""}]},
        {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}]},
        {"output": [{"type": "reasoning"}, {"role": "assistant", "content": ANSWER}]},
        {"predictions": ANSWER},
        {"predictions": [ANSWER]},
        {"predictions": [{"content": ANSWER}]},
        [{"content": ANSWER}],
        {"content": ANSWER},
        {"response": ANSWER},
        json.dumps(ANSWER),
    ],
    ids=str,
)
def test_the_shapes_of_a_response(response: Any) -> None:
    record = convert_one(logged(ASKED, response))
    assert (record["reason"], record["response"], codes(record)) == (None, ANSWER, [])


def test_a_response_that_is_no_json_is_taken_and_told() -> None:
    record = convert_one(logged(ASKED, ANSWER))
    assert (record["response"], codes(record)) == (ANSWER, ["AE707"])


@pytest.mark.parametrize("response", [None, "", "null", "{}", {"choices": []}, {"output": []}])
def test_no_answer_is_none(response: Any) -> None:
    assert convert_one(logged(ASKED, response))["reason"] == "no_response"
    record = convert_one(logged(ASKED, response), kept=frozenset({"invalid"}))
    assert (record["reason"], record["response"]) == (None, None)


def test_tool_calls_are_the_trajectory_where_there_is_no_trace() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": "leave"}'}}
    messages = [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "assistant", "content": ANSWER}]
    item = {"type": "function_call", "call_id": "1", "name": "search", "arguments": '{"q": "leave"}'}
    output = [item, {"type": "function_call_output", "output": "x"}, {"role": "assistant", "content": ANSWER}]
    expected = [{"tool_name": "search", "tool_input": '{"q":"leave"}'}]
    for response in ({"messages": messages}, {"output": output}):
        record = convert_one(logged(ASKED, response))
        assert (record["response"], record["predicted_trajectory"]) == (ANSWER, expected)
        trace = {"info": {"trace_id": "tr-1"}, "data": {"spans": []}}
        traced = convert_one(logged(ASKED, {**response, "databricks_output": {"trace": trace}}))
        assert (traced["predicted_trajectory"], json.loads(traced["trace"])) == (None, trace)


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}, (2, 3, 5)),
        ({"input_tokens": 2, "output_tokens": 3}, (2, 3, 5)),
        ({"input_tokens": 2, "details": {"cached": 1}}, (2, None, None)),
        ({"input_tokens": -1, "output_tokens": 10**30}, (None, None, None)),
        ({"prompt_tokens": "many", "total_tokens": 5}, (None, None, 5)),
        (None, (None, None, None)),
        ("odd", (None, None, None)),
    ],
)
def test_usage_in_either_vocabulary(usage: Any, counts: Any) -> None:
    record = convert_one(logged(ASKED, {**ANSWERED, "usage": usage}))
    assert record["response"] == ANSWER
    assert tuple(record[f"{n}_token_count"] for n in ("input", "output", "total")) == counts


TRACES = {
    "v1": {"app_version_id": "a", "is_truncated": False, "steps": [{"step_id": "1", "type": "LLM_GENERATION"}]},
    "flat v2": {"spans": [{"name": "a", "attributes": "{}"}], "mlflow.trace_schema.version": "2"},
    "v2": {"info": {"request_id": "r-1", "status": "OK"}, "data": {"spans": [{"context": {"span_id": "0x1"}}]}},
    "v3": {"info": {"trace_id": "tr-1", "state": "OK"}, "data": {"spans": [{"span_id": "1"}]}},
}


@pytest.mark.parametrize("encoding", TRACES)
@pytest.mark.parametrize("body", [ANSWERED, {"predictions": [ANSWER]}], ids=["fast", "generic"])
def test_a_trace_of_every_encoding_is_sliced_as_it_came(encoding: str, body: Any) -> None:
    text = json.dumps(TRACES[encoding], indent=1)
    response = json.dumps(body)[:-1] + ', "databricks_output": {"trace": ' + text + ', "databricks_request_id": "r-1"}}'
    record = convert_one(logged(ASKED, response))
    assert (record["trace"], record["response"], record["failed"], codes(record)) == (text, ANSWER, False, [])


@pytest.mark.parametrize("trace", [None, ""])
def test_a_trace_may_be_null(trace: Any) -> None:
    record = convert_one(logged(ASKED, {**ANSWERED, "databricks_output": {"trace": trace}}))
    assert (record["trace"], record["response"]) == (None, ANSWER)


def test_a_trace_beside_nan_is_encoded_again() -> None:
    response = json.dumps({**ANSWERED, "databricks_output": {"trace": TRACES["v3"]}})[:-1] + ', "score": NaN}'
    record = convert_one(logged(ASKED, response))
    assert (json.loads(record["trace"]), codes(record)) == (TRACES["v3"], ["AE705"])


@pytest.mark.parametrize(
    ("trace", "has_them"),
    [
        (TRACES["v3"], True),
        ({"info": {"assessments": []}, "data": {"spans": []}}, False),
        ({"info": {}, "data": {"spans": []}}, False),
        ({"info": "tr-1", "data": {"spans": []}}, False),
        ({**TRACES["v3"], "tags": {}}, False),
    ],
    ids=["without", "own", "empty info", "info that is text", "more keys"],
)
def test_a_trace_gets_the_assessments_of_their_column(trace: Any, has_them: bool) -> None:
    given = [{"assessment_name": "a", "feedback": {"value": "yes"}}]
    row = {"trace_id": "tr-1", "trace": json.dumps(trace), "trace_metadata": "{}", "assessments": json.dumps(given)}
    info = json.loads(convert_one(row)["trace"])["info"]
    assert (isinstance(info, dict) and info.get("assessments") == given) == has_them


def test_a_trace_that_is_text_is_what_the_text_says() -> None:
    trace = json.dumps(TRACES["v3"])
    record = convert_one(logged(ASKED, {**ANSWERED, "databricks_output": {"trace": trace}}))
    assert record["trace"] == trace


@pytest.mark.parametrize(
    ("span", "failed"),
    [
        ({"status": {"code": "STATUS_CODE_ERROR"}}, True),
        ({"status_code": "ERROR"}, True),
        ({"status": {"code": "STATUS_CODE_OK"}, "name": "ERROR handling"}, False),
    ],
)
def test_status_200_can_hide_a_failed_call(span: Any, failed: bool) -> None:
    trace = {"info": {"trace_id": "tr-1", "state": "OK"}, "data": {"spans": [{"span_id": "1", **span}]}}
    record = convert_one(logged(ASKED, {**ANSWERED, "databricks_output": {"trace": trace}}))
    assert (record["reason"], record["status_code"], record["failed"]) == (None, 200, failed)


@pytest.mark.parametrize(
    ("info", "told"),
    [
        ({"client_request_id": "r-2"}, ["AE708"]),
        ({"request_id": "r-2"}, ["AE708"]),
        ({"client_request_id": "r-1"}, []),
        ({"client_request_id": "c-1"}, []),
        ({"request_id": "tr-2"}, []),
        ({}, []),
    ],
)
def test_a_trace_of_another_call_is_told(info: Any, told: list[str]) -> None:
    trace = {"info": {"trace_id": "tr-1", **info}, "data": {"spans": []}}
    row = logged(ASKED, {**ANSWERED, "databricks_output": {"trace": trace}}, client_request_id="c-1")
    assert codes(convert_one(row)) == told


def test_a_response_that_names_another_call_is_told() -> None:
    trace = {"info": {"trace_id": "tr-1"}, "data": {"spans": []}}
    output = {"trace": trace, "databricks_request_id": "r-2"}
    assert codes(convert_one(logged(ASKED, {**ANSWERED, "databricks_output": output}))) == ["AE708"]


# ---------------------------------------------------------------------------------------------------------------------
# status, size, guardrails


@pytest.mark.parametrize("status", [429, "429", 500, 400, "503.0", 0])
def test_another_status_than_200_sets_aside(status: Any) -> None:
    record = convert_one(logged(ASKED, ANSWERED, status_code=status))
    assert (record["reason"], record["status_code"]) == ("status", int(float(status)))
    assert convert_one(logged(ASKED, ANSWERED, status_code=status), kept=frozenset({"status"}))["reason"] is None


@pytest.mark.parametrize("status", [200, "200", " 200 ", "200.0", 200.0, None, ""])
def test_status_200_in_any_type_or_unknown_stays(status: Any) -> None:
    record = convert_one(logged(ASKED, ANSWERED, status_code=status))
    assert (record["reason"], codes(record)) == (None, [])


def test_a_guardrail_says_what_it_blocked() -> None:
    body = {"error_code": "BAD_REQUEST", "message": "Error: Invalid input, PII found"}
    record = convert_one(logged(ASKED, body, status_code=400))
    assert record["detail"] == "status 400: 'BAD_REQUEST': 'Error: Invalid input, PII found'"
    silent = convert_one(logged(ASKED, body, status_code=400), values=False)
    assert "PII" not in silent["detail"]


@pytest.mark.parametrize("body", [{"error_code": "BAD_REQUEST", "message": "x"}, {"error": {"message": "x"}}])
def test_an_error_for_an_answer_is_no_answer(body: Any) -> None:
    record = convert_one(logged(ASKED, body, status_code=None))
    assert (record["reason"], record["detail"][:25]) == ("status", "the response is an error:")
    kept = convert_one(logged(ASKED, body, status_code=None), kept=frozenset({"status"}))
    assert (kept["failed"], json.loads(kept["response"])) == (True, body)


@pytest.mark.parametrize("code", ["MAX_REQUEST_SIZE_EXCEEDED", "MAX_RESPONSE_SIZE_EXCEEDED"])
@pytest.mark.parametrize("cell", [lambda c: [c], lambda c: json.dumps([c]), lambda c: c], ids=["list", "json", "text"])
def test_oversize(code: str, cell: Any) -> None:
    record = convert_one(logged(None, ANSWERED, logging_error_codes=cell(code)))
    assert (record["reason"], record["detail"]) == ("oversize", f"logging_error_codes: {code}")


def test_other_logging_errors_are_told() -> None:
    record = convert_one(logged(logging_error_codes=["SCHEMA_ERROR"]))
    assert (record["reason"], codes(record)) == (None, ["AE711"])


# ---------------------------------------------------------------------------------------------------------------------
# bad input


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"messages": [{"role": "user"', "it ends at byte 29 in the middle of a value"),
        ('{"messages": [}', "at byte 14 of 15"),
        ("hello there", "at byte 0 of 11"),
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),
        (json.dumps(ASKED)[:-1] + ', "other": ' + "[" * 300 + "]" * 300 + "}", "nested too deep"),
    ],
    ids=["cut", "broken", "text", "deep", "deep beside a chat"],
)
def test_a_malformed_request_names_the_byte(text: str, said: str) -> None:
    record = convert_one(logged(text))
    assert record["reason"] == "malformed"
    assert record["detail"].startswith("request: ")
    assert said in record["detail"]
    assert record["request"] == text


@pytest.mark.parametrize("text", ['{"choices": [', "[1, 2", '"cut', "[" * 100_000])
def test_a_malformed_response_is_excluded(text: str) -> None:
    record = convert_one(logged(ASKED, text))
    assert (record["reason"], record["response"]) == ("malformed", text)
    assert record["detail"].startswith("response: ")


def test_a_deep_trace_does_not_break_the_batch() -> None:
    deep = json.dumps(ANSWERED)[:-1] + ', "databricks_output": {"trace": ' + "[" * 5000 + "]" * 5000 + "}}"
    records = convert([logged(ASKED, deep), logged(databricks_request_id="r-2")])
    assert records[1]["reason"] is None
    assert records[0]["reason"] == "malformed"


def test_nan_and_half_characters_are_mended_and_told() -> None:
    nan = convert_one(logged(ASKED, '{"choices": [{"message": {"content": "x"}, "logprob": NaN}]}'))
    half = convert_one(logged(ASKED, '{"choices": [{"message": {"content": "a \\ud83d"}}]}'))
    assert (nan["reason"], nan["response"], codes(nan)) == (None, "x", ["AE705"])
    assert (half["reason"], half["response"], codes(half)) == (None, "a ?", ["AE705"])


def test_a_megabyte_is_a_row_as_any_other() -> None:
    record = convert_one(logged({"messages": [{"role": "user", "content": MEGABYTE}]}, {"predictions": MEGABYTE}))
    assert (record["reason"], record["response"]) == (None, MEGABYTE)


def test_bytes_that_are_not_utf8_are_malformed() -> None:
    broken = b'{"messages": [{"role": "user", "content": "caf\xe9"}]}'
    cells = pa.Array.from_buffers(pa.string(), 1, pa.array([broken]).buffers())
    batch = batch_of([logged()])
    at = batch.schema.get_field_index("request")
    batch = batch.set_column(at, "request", cells)
    (record,) = convert_batch(batch, BuildPlan("ai_gateway")).to_pylist()
    assert record["reason"] == "malformed"
    assert "0xE9 at byte 46" in record["detail"]


def test_null_everywhere() -> None:
    empty = dict.fromkeys(logged())
    (record,) = convert([{**empty, "databricks_request_id": None}])
    assert (record["reason"], record["failed"], record["time"]) == ("no_request", None, None)
    assert record["request_id"].startswith("row-")


def test_a_defect_of_the_package_costs_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any, **__: Any) -> None:
        raise ValueError("a secret")

    monkeypatch.setattr("agent_eval_schema.inference_tables.read.calls.read_response", broken)
    record = convert_one(logged(), values=False)
    assert (record["reason"], codes(record)) == ("defect", ["AE001"])
    assert "secret" not in record["detail"]
    assert record["request"] == jsontext.encode(ASKED).decode().replace(":", ": ").replace(",", ", ")


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ({"messages": [{"role": "user", "content": "Hi"}]}, False),
        ({"messages": [{"role": "user", "content": "Hi"}], "temperature": 0}, True),
        ({"messages": [{"role": "user", "content": "Hi", "name": "ann"}], "k": 3}, True),
        ({"query": "Hi", "history": []}, False),
        ({"question": "Hi", "k": 3}, True),
    ],
)
def test_a_body_with_more_keys_than_the_request_is_kept_whole(body: dict[str, Any], kept: bool) -> None:
    text = json.dumps(body, indent=1).encode()
    found = read_chat(text) or read_other_request(text, True)
    assert isinstance(found, Request)
    assert (json.loads(found.inputs) if found.inputs else None) == (body if kept else None)


def test_what_is_kept_of_a_body_is_redacted() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "mail": "ann@example.org"}
    row = {"databricks_request_id": "a", "request": json.dumps(body), "response": '"Hello"', "request_time": 1}
    (built,) = eval_set_from_inference_table([row], redact="default").rows.to_dict("records")
    assert built["inputs"] == {**body, "mail": "[EMAIL]"}


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ({"id": "1", "choices": [{"message": {"role": "assistant", "content": "Hello"}}], "usage": {}}, False),
        ({"choices": [{"message": {"role": "assistant", "content": "Hello"}}], "custom_outputs": {"page": 4}}, True),
        ({"answer": "Hello", "confidence": 0.9}, True),
        ("Hello", False),
        (42, True),
    ],
)
def test_a_response_with_more_than_its_text_is_kept_whole(body: Any, kept: bool) -> None:
    row = {"databricks_request_id": "a", "request": '"Hi"', "response": json.dumps(body), "request_time": 1}
    (built,) = eval_set_from_inference_table([row]).rows.to_dict("records")
    assert built["outputs"] == (body if kept else None)


@pytest.mark.parametrize(
    "body",
    [
        '{"messages": [{"role": "user", "content": "caf\\u00e9 {\\"role\\": 1}"}], "temperature": 0.10, "n": 1e2}',
        '{ "k":null, "messages":[ { "role":"system","content":"a" },\t{"role":"user", "content":"b"} ] }',
        '{"messages": [{"content": "b", "role": "user"}], "k": [1, {"a": "\\u20ac"}]}',
        '{"messages": [{"role": "user", "content": "a {"}, {"\\u0072ole": "user", "content": "b"}], "k": {}}',
        '{"messages": [{"role": "user", "content": "b"}], "k": 1, "k": 2}',
    ],
)
def test_a_body_with_more_keys_is_kept_as_its_value_is_encoded(body: str) -> None:
    asked = read_chat(body.encode())
    assert asked is not None
    assert asked.inputs == jsontext.encode(jsontext.decode(body))


def test_a_body_with_a_number_that_no_reader_takes_is_kept_as_text() -> None:
    body = '{"messages": [{"role": "user", "content": "Why?"}], "k": 1e999}'
    asked = read_chat(body.encode())
    assert asked is not None
    assert asked.inputs == jsontext.encode(body)
    (row,) = eval_set_from_inference_table([logged(body, ANSWERED)]).rows.to_dict("records")
    assert row["inputs"] == body
