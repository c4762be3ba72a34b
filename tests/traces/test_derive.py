"""What a trace says about its row: every rule by example."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_eval_schema import normalize_eval_set, validate_eval_set
from agent_eval_schema.api import validate_traces
from agent_eval_schema.traces.derive import DERIVATIONS, Derived
from agent_eval_schema.validation.report import summary_of
from tests.helpers.traces import (
    ASKED,
    ROOT,
    Row,
    assistant,
    call,
    codes,
    completion,
    document,
    expects,
    raised,
    row,
    span,
    trace,
    user,
)

# ---------------------------------------------------------------------------------------------------------------------
# rules: the root span


def says(*texts: str, **more: Any) -> Row:
    return {"inputs": texts[0], "outputs": texts[1], **more}


ROOTS = {
    "no parent": [span("1", **says("Hi", "Hello")), span("2", "1", **says("x", "y"))],
    "an empty parent": [span("2", "1", **says("x", "y")), span("1", "", **says("Hi", "Hello"))],
    "the earliest of several": [span("2", **says("x", "y")), span("1", **says("Hi", "Hello")), span("3", "2")],
    "every parent is missing": [span("2", "8", **says("x", "y")), span("1", "9", **says("Hi", "Hello"))],
    "no parent beats earlier": [span("1", "9", **says("x", "y")), span("2", **says("Hi", "Hello"))],
}


@pytest.mark.parametrize("case", ROOTS)
def test_root(case: str) -> None:
    found = row(trace(*ROOTS[case]))
    assert (found["request"], found["response"]) == (ASKED, "Hello")


def test_v2_copies_of_request_and_response_serve_where_the_root_has_none() -> None:
    beside = {"request": json.dumps(ASKED), "response": json.dumps(completion("Hello"))}
    found = row({"info": {"request_id": "1", "status": "OK"}, "data": {"spans": [span()], **beside}})
    assert (found["request"], found["response"]) == (ASKED, "Hello")


# ---------------------------------------------------------------------------------------------------------------------
# rules: request and response


REQUESTS = {
    "text": "Hi",
    "messages and other arguments": {"messages": [user("Hi")], "user": None, "k": 3},
    "query": {"query": "Hi", "history": []},
    "Responses text": {"input": "Hi"},
    "Responses items": {
        "input": [{"type": "message", "content": [{"type": "input_text", "text": "Hi"}], **user("Hi")}]
    },
    "question": {"question": "Hi", "k": 3},
    "prompt": {"prompt": "Hi"},
    "text key": {"text": "Hi"},
    "the one argument": {"request": {"messages": [user("Hi")]}},
}


@pytest.mark.parametrize("case", REQUESTS)
def test_request(case: str) -> None:
    given = trace(span(inputs=REQUESTS[case], outputs="Hello"))
    assert row(given)["request"] == ASKED
    assert codes(given) == []


@pytest.mark.parametrize("name", ["request", "q", "prompt", "text", "message", "user_input", "anything"])
def test_the_text_of_the_only_argument_is_the_question(name: str) -> None:
    given = trace(span(inputs={name: "What is RAG?", "timeout": None}, outputs="Hello"))
    assert row(given)["request"] == {"messages": [user("What is RAG?")]}
    assert codes(given) == []
    assert validate_eval_set([{"request": "What is RAG?", "trace": given}]).counts == {}


@pytest.mark.parametrize("name", ["request", "q", "message", "user_input"])
def test_of_several_arguments_the_one_with_the_name_of_a_question_is_it(name: str) -> None:
    given = trace(span(inputs={"city": "Paris", name: "What is RAG?"}, outputs="Hello"))
    assert row(given)["request"] == {"messages": [user("What is RAG?")]}
    assert codes(given) == []


@pytest.mark.parametrize("inputs", [{"n": 5}, {"q": " "}, {"a": "x", "b": "y"}, {"request": "x", "q": "y"}])
def test_arguments_that_have_no_question_are_their_json_text(inputs: Any) -> None:
    assert codes(trace(span(inputs=inputs, outputs="Hello"))) == ["AE607"]


@pytest.mark.parametrize(
    "inputs", [{"city": "Paris", "now": None, "vip": True}, {"question": "a", "text": "b"}, [1, 2]]
)
def test_request_of_no_known_format_is_its_json_text(inputs: Any) -> None:
    given = trace(span(inputs=inputs, outputs="Hello"))
    [message] = row(given)["request"]["messages"]
    assert message["role"] == "user"
    assert json.loads(message["content"]) == inputs
    assert codes(given) == ["AE607"]


def test_messages_that_no_column_could_hold_are_a_request_of_no_known_format() -> None:
    inputs = {"messages": [user("Hi"), {"role": "user", "content": None}]}
    given = trace(span(inputs=inputs, outputs="Hello"))
    [message] = row(given)["request"]["messages"]
    assert json.loads(message["content"]) == inputs
    assert codes(given) == ["AE607"]


JUDGED = {
    "blank": ({"query": " "}, ["AE202"]),
    "only blank messages": ({"messages": [assistant("Hi"), user("")]}, ["AE202", "AE219"]),
    "no question": ({"messages": [{"role": "system", "content": "Answer."}]}, ["AE212"]),
    "an answer last": ({"messages": [user("Hi"), assistant("Hello")]}, ["AE210"]),
    "a tool that answers no call": ({"messages": [user("Hi"), {"role": "tool", "content": "16"}]}, ["AE209"]),
    "a question twice": ({"messages": [user("Hi"), user("Hi")]}, ["AE213"]),
}


@pytest.mark.parametrize("case", JUDGED)
def test_a_request_of_a_trace_is_judged_as_that_of_a_column_and_again_when_it_is_normalized(case: str) -> None:
    inputs, expected = JUDGED[case]
    given = trace(span(inputs=inputs, outputs="Hello"))
    report = validate_eval_set([{"trace": given}])
    assert [i.code for i in report.iter_issues() if i.code != "AE606"] == expected
    in_column = validate_eval_set([{"request": inputs, "response": "Hello"}])
    assert [i.code for i in in_column.iter_issues()] == expected
    again = validate_eval_set(normalize_eval_set([{"trace": given}], on_invalid="keep"))
    assert [i.code for i in again.iter_issues()] == expected
    assert again.valid_count == report.valid_count == in_column.valid_count


RESPONSES = {
    "text": "Hello",
    "choices": completion("Hello"),
    "messages": {"messages": [assistant("let me look"), assistant("Hello"), assistant(""), user("Thanks")]},
    "Responses": {
        "output": [
            {"type": "function_call", "name": "search", "arguments": "{}", "call_id": "c1"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
        ]
    },
    "parts": {"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
    "content": {"content": "Hello"},
    "response": {"response": "Hello"},
    "output": {"output": "Hello"},
    "answer": {"answer": "Hello", "documents": 3},
    "result": {"result": "Hello"},
    "text key": {"text": "Hello"},
    "a list of one": [{"content": "Hello"}],
    "a chat object as text": json.dumps(completion("Hello")),
    "a chat object as text in another": completion(json.dumps({"messages": [assistant("Hello")]})),
}


@pytest.mark.parametrize("case", RESPONSES)
def test_response(case: str) -> None:
    given = trace(span(inputs="Hi", outputs=RESPONSES[case]))
    assert row(given)["response"] == "Hello"
    assert codes(given) == []


def test_text_that_is_not_json_is_taken_as_it_is() -> None:
    plain = {"mlflow.spanInputs": "Hi", "mlflow.spanOutputs": "Hello"}
    found = row(trace({**span(), "attributes": plain}))
    assert (found["request"], found["response"]) == (ASKED, "Hello")


@pytest.mark.parametrize("outputs", [None, completion(None, tool_calls=[]), {**completion("Hello"), "choices": []}])
def test_null_is_no_response(outputs: Any) -> None:
    assert "response" not in row(trace(span(inputs="Hi", outputs=outputs)))
    assert codes(trace(span(inputs="Hi", outputs=outputs))) == ["AE621"] * (outputs is None)


def chunk(**delta: Any) -> Row:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}


END = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
ITEM = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
STREAMS: dict[str, list[Any]] = {
    "texts": ["Hel", "lo"],
    "chunks": [chunk(content="Hel"), chunk(content="lo"), END],
    "events": [
        *({"type": "response.output_text.delta", "item_id": "m", "delta": part} for part in ("Hel", "lo")),
        {"type": "response.output_item.done", "item": ITEM},
    ],
}


def streamed(pieces: list[Any]) -> Row:
    """The root span of a generator, as MLflow 3.17 records it: an event per item."""
    events = [
        {"name": f"mlflow.chunk.item.{i}", "attributes": {"mlflow.chunk.value": json.dumps(piece)}}
        for i, piece in enumerate(pieces)
    ]
    return {**span(inputs="Hi", outputs=pieces), "events": events}


@pytest.mark.parametrize("case", STREAMS)
def test_a_streamed_answer_is_joined(case: str) -> None:
    assert row(trace(streamed(STREAMS[case])))["response"] == "Hello"
    assert codes(trace(streamed(STREAMS[case]))) == []


def test_a_list_of_texts_that_was_returned_is_no_stream() -> None:
    assert row(trace(span(inputs="Hi", outputs=["a", "b"])))["response"] == '["a","b"]'


def test_a_stream_without_an_end_is_what_had_come() -> None:
    cut = trace(streamed(STREAMS["chunks"][:1]))
    assert (row(cut)["response"], codes(cut)) == ("Hel", ["AE620"])


def test_a_root_without_outputs_is_named_unless_the_row_has_a_response_or_it_failed() -> None:
    silent = trace(span(inputs="Hi"))
    assert codes(silent) == ["AE621"]
    assert "AE621" not in validate_eval_set([{"trace": silent, "response": "Hello"}]).counts
    assert "AE621" not in codes(trace(span(inputs="Hi", status={"code": "STATUS_CODE_ERROR"})))


@pytest.mark.parametrize("outputs", [{"ok": True, "n": None}, {"answer": "a", "result": "b"}, ["a", "b"], 42])
def test_response_of_no_known_format_is_its_json_text(outputs: Any) -> None:
    given = trace(span(inputs="Hi", outputs=outputs))
    assert json.loads(row(given)["response"]) == outputs
    assert codes(given) == ["AE608"]


# ---------------------------------------------------------------------------------------------------------------------
# rules: predicted_trajectory


def test_tools_in_the_order_of_their_starts() -> None:
    given = trace(ROOT, span("3", "1", "TOOL", name="b"), span("2", "1", "TOOL", name="a", inputs={"q": "x"}))
    assert row(given)["predicted_trajectory"] == [call("a", q="x"), call("b")]


def test_a_tool_that_raised_still_counts() -> None:
    raised = {"status": {"code": "STATUS_CODE_ERROR", "message": "ValueError: no"}}
    given = trace(ROOT, span("2", "1", "TOOL", name="search", inputs={"q": "x"}, **raised))
    assert row(given)["predicted_trajectory"] == [call("search", q="x")]


def test_the_span_that_repeats_parallel_calls_of_the_adk_is_no_call() -> None:
    """As in the reader of OpenTelemetry (tests/data/otel/google_adk.json)."""
    tools = [span(str(n), "1", "TOOL", name=f"execute_tool {n}", tool=n, inputs={}) for n in ("2", "3")]
    merged = span("4", "1", "TOOL", name="execute_tool (merged)", tool="(merged tools)", inputs={})
    assert row(trace(ROOT, *tools, merged)) == row(trace(ROOT, *tools))
    assert "predicted_trajectory" not in row(trace(ROOT, merged))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"name": "search"}, "search"),
        ({"name": "search", "function": "run"}, "search"),
        ({"name": "search_2", "function": "search"}, "search"),
        ({"name": "search_2"}, "search_2"),
        ({"name": "search_2", "function": "run"}, "search_2"),
        ({"name": "sha_256", "function": "sha_256"}, "sha_256"),
        ({"name": "search_x", "function": "search"}, "search_x"),
        ({"name": "search_2", "function": "search", "tool": "web.search"}, "web.search"),
    ],
)
def test_tool_name(given: Row, name: str) -> None:
    assert row(trace(ROOT, span("2", "1", "TOOL", **given)))["predicted_trajectory"] == [call(name)]


def asks(*names: str) -> list[Row]:
    return [{"id": n, "type": "function", "function": {"name": n, "arguments": '{"q": "x"}'}} for n in names]


TOOL_CALLS = {
    "choices": [span("2", "1", "CHAT_MODEL", outputs=completion(None, tool_calls=asks("a", "b")))],
    "messages": [span("2", "1", "LLM", outputs={"messages": [assistant("", tool_calls=asks("a", "b"))]})],
    "in the order of the models": [
        span("3", "1", "LLM", outputs=completion(None, tool_calls=asks("b"))),
        span("2", "1", "LLM", outputs=completion(None, tool_calls=asks("a"))),
        span("4", "1", "LLM", outputs=completion("Hello")),
    ],
}


@pytest.mark.parametrize("case", TOOL_CALLS)
def test_tool_calls_of_the_models_where_there_are_no_tool_spans(case: str) -> None:
    assert row(trace(ROOT, *TOOL_CALLS[case]))["predicted_trajectory"] == [call("a", q="x"), call("b", q="x")]


@pytest.mark.parametrize(
    "tool",
    [
        span("2", "1", "TOOL", inputs={"q": "x"}, name=" "),
        span("2", "1", "LLM", outputs=completion(None, tool_calls=asks(""))),
    ],
    ids=["a span", "a call of a model"],
)
def test_a_tool_without_a_name_gets_one_that_a_cell_can_hold(tool: Row) -> None:
    given = trace(ROOT, tool)
    assert row(given)["predicted_trajectory"] == [call("?", q="x")]
    assert codes(given) == ["AE603"]


def test_tool_spans_beat_tool_calls() -> None:
    model = span("2", "1", "CHAT_MODEL", outputs=completion(None, tool_calls=asks("a", "b")))
    given = trace(ROOT, model, span("3", "1", "TOOL", name="a", inputs={"q": "x"}))
    assert row(given)["predicted_trajectory"] == [call("a", q="x")]


def test_tool_calls_of_other_spans_are_none() -> None:
    given = trace(ROOT, span("2", "1", "CHAIN", outputs=completion(None, tool_calls=asks("a"))))
    assert "predicted_trajectory" not in row(given)


# ---------------------------------------------------------------------------------------------------------------------
# rules: latency, failure, error, ids


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("info", "seconds"),
    [
        ({"execution_duration_ms": 1500}, 1.5),
        ({"execution_time_ms": 1500}, 1.5),
        ({"execution_duration_ms": 0}, 0.0),
        ({"execution_duration_ms": None}, 4.0),
        ({"execution_duration_ms": 1 << 63}, 4.0),
        ({}, 4.0),
    ],
)
def test_latency(info: Row, seconds: float) -> None:
    given = trace(span("2", "1", start=0, end=9 * SECOND), span("1", start=SECOND, end=5 * SECOND), **info)
    assert row(given)["latency_seconds"] == seconds


def test_a_root_that_never_ended_has_no_latency() -> None:
    assert "latency_seconds" not in row(trace(span(end=None)))


FAILURES: dict[str, tuple[Row, tuple[bool | None, str | None]]] = {
    "the root's exception first": (
        trace(span("1", start=20, **raised("root")), span("2", "1", start=10, **raised("tool")), state="ERROR"),
        (True, "root"),
    ),
    "else the first one": (
        trace(span("1"), span("3", "1", **raised("later")), span("2", "1", **raised("first")), state="ERROR"),
        (True, "first"),
    ),
    "status of v2": ({"info": {"status": "ERROR"}, "data": {"spans": [span(**raised("no"))]}}, (True, "no")),
    "an error without an exception": (trace(span(), state="ERROR"), (True, None)),
    "all went well": (trace(span()), (False, None)),
    "a tool failed, the trace did not": (trace(ROOT, span("2", "1", "TOOL", **raised("no"))), (False, None)),
    "a status with a message": (
        trace(span(status={"code": "STATUS_CODE_ERROR", "message": "out of tokens"}), state="ERROR"),
        (True, "out of tokens"),
    ),
    "a status of v2 with a message": (
        trace(span(status_code="ERROR", status_message="out of tokens"), state="ERROR"),
        (True, "out of tokens"),
    ),
    "a message that is a number": (trace(span(**raised("5")), state="ERROR"), (True, "5")),
    "a message in quotes": (trace(span(**raised('"no"')), state="ERROR"), (True, "no")),
    "a message that is no text": (trace(span(**raised(5)), state="ERROR"), (True, "ValueError: 5")),
    "no span": (trace(state="ERROR"), (True, None)),
    "the root failed, the trace did not": (trace(span(**raised("no"))), (False, None)),
    "the state is missing": (trace(span(**raised("no")), state=None), (True, "no")),
    "state and status are missing": (trace(span(), state=None), (None, None)),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failure_and_error(case: str) -> None:
    given, expected = FAILURES[case]
    found = row(given)
    assert (found.get("failure"), found.get("error")) == expected


def test_a_failure_behind_the_state_ok_is_said() -> None:
    assert codes(trace(ROOT, span("2", "1", "TOOL", **raised("no")))) == ["AE610"]
    assert codes(trace(ROOT, span("2", "1", "TOOL", **raised("no")), state="ERROR")) == []


@pytest.mark.parametrize(
    ("info", "id"),
    [
        ({"trace_id": "tr-1", "client_request_id": "c1"}, "c1"),
        ({"trace_id": "tr-1", "client_request_id": None}, "tr-1"),
        ({"request_id": "r1"}, "r1"),
    ],
)
def test_request_id(info: Row, id: str) -> None:
    assert row({"info": info, "data": {"spans": [ROOT]}})["request_id"] == id


@pytest.mark.parametrize("key", ["trace_metadata", "request_metadata"])
def test_session(key: str) -> None:
    assert row(trace(ROOT, **{key: {"mlflow.trace.session": "s1"}}))["session_id"] == "s1"


# ---------------------------------------------------------------------------------------------------------------------
# rules: expectations


TRUTHS = ("expected_", "guidelines", "reference_trajectory", "custom_expected")


EXPECTATIONS: dict[str, tuple[list[Any], Row]] = {
    "response": ([expects("expected_response", "Hello")], {"expected_response": "Hello"}),
    "facts": ([expects("expected_facts", ["a", "b"])], {"expected_facts": ["a", "b"]}),
    "guidelines by name": ([expects("guidelines", {"tone": ["kind"]})], {"guidelines": {"tone": ["kind"]}}),
    "guidelines": ([expects("guidelines", ["be kind"])], {"guidelines": {"guidelines": ["be kind"]}}),
    "documents": (
        [expects("expected_retrieved_context", [{"doc_uri": "a"}])],
        {"expected_retrieved_context": [document("a", None)]},
    ),
    "tool calls": (
        [expects("expected_tool_calls", [{"name": "search", "arguments": {"q": "x"}}, {"name": "now"}])],
        {"reference_trajectory": [call("search", q="x"), call("now")]},
    ),
    "tool calls in our words, with an id, and arguments as text": (
        [expects("expected_tool_calls", [call("f", x=1), {"name": "g", "id": "c1", "arguments": '{"y": 2}'}])],
        {"reference_trajectory": [call("f", x=1), {**call("g", y=2), "id": "c1"}]},
    ),
    "documents with keys that nobody reads": (
        [expects("expected_retrieved_context", [{"doc_uri": "a", "score": 0.5}])],
        {"expected_retrieved_context": [{**document("a", None), "score": 0.5}]},
    ),
    "lists as text": (
        [expects("expected_facts", '["a"]'), expects("guidelines", '{"tone": ["be nice"]}')],
        {"expected_facts": ["a"], "guidelines": {"tone": ["be nice"]}},
    ),
    "text that looks like a list": ([expects("expected_response", "[1]")], {"expected_response": "[1]"}),
    "a trajectory": (
        [expects("reference_trajectory", [call("search", q="x"), {"tool_name": "now"}])],
        {"reference_trajectory": [call("search", q="x"), call("now")]},
    ),
    "names of the user's own": (
        [expects("tone", "kind"), expects("score", 3), expects("parts", {"a": [1]}), expects("polite", False)],
        {"custom_expected": {"tone": "kind", "score": 3, "parts": {"a": [1]}, "polite": False}},
    ),
    "overridden": (
        [expects("expected_response", "Bye", valid=False), expects("expected_response", "Hello", overrides="a-1")],
        {"expected_response": "Hello"},
    ),
    "withdrawn": ([expects("expected_response", "Bye", valid=False)], {}),
    "validity is not said": ([expects("expected_response", "Hello", valid=None)], {"expected_response": "Hello"}),
    "feedback is none": ([{"assessment_name": "thumbs", "feedback": {"value": True}, "valid": True}], {}),
    "odd ones": ([7, {}, {"expectation": {"value": "x"}}, {"assessment_name": "a", "expectation": None}], {}),
}


@pytest.mark.parametrize("case", EXPECTATIONS)
def test_expectations(case: str) -> None:
    assessments, expected = EXPECTATIONS[case]
    found = row(trace(ROOT, assessments=assessments))
    assert {k: v for k, v in found.items() if k.startswith(TRUTHS)} == expected


def test_an_expectation_of_the_wrong_type_is_left_out_and_said() -> None:
    given = trace(ROOT, assessments=[expects("expected_facts", "a"), expects("tone", "kind")])
    assert "expected_facts" not in row(given)
    assert row(given)["custom_expected"] == {"tone": "kind"}
    assert codes(given) == ["AE603"]


@pytest.mark.parametrize(
    ("name", "value", "place", "why"),
    [
        ("expected_response", " ", "", "expected text, got blank text"),
        ("expected_facts", "a", "", "expected a list, got the text 'a'"),
        ("expected_facts", ["a", 3, None], "[1]", "expected text, got the number 3; expected text, got null"),
        ("expected_facts", '["a"', "", "expected JSON, got malformed text: it ends at byte 4 in the middle of a value"),
        ("guidelines", 3, "", "expected a list or an object, got the number 3"),
        ("expected_retrieved_context", [{"content": "a"}], "[0]", "`doc_uri` is missing, got an object with the"),
        ("expected_tool_calls", [{"arguments": {}}], "[0]", "`name` is missing, got an object with the keys"),
        ("expected_tool_calls", "f", "", "expected a list, got the text 'f'"),
        ("reference_trajectory", ["f"], "[0]", "expected an object, got the text 'f'"),
    ],
)
def test_an_expectation_that_no_cell_could_hold_is_dropped_and_said_why(
    name: str, value: Any, place: str, why: str
) -> None:
    given = trace(ROOT, assessments=[expects(name, value)])
    assert [k for k in row(given) if k.startswith(TRUTHS)] == []
    (issue,) = summary_of(validate_eval_set([{"trace": given}])).examples["AE603"]
    assert issue.message.startswith(f"{name} is dropped: {why}")
    assert issue.path == f"trace.info.assessments.{name}{place}"
    assert issue.hint.startswith("Correct the expectation in MLflow. ")


@pytest.mark.parametrize(("value", "text"), [(42, "42"), (False, "false"), (["a"], '["a"]'), ({"a": 1}, '{"a":1}')])
def test_an_expected_response_that_is_no_text_is_its_json_text_and_kept(value: Any, text: str) -> None:
    given = trace(ROOT, assessments=[expects("expected_response", value), expects("tone", "kind")])
    assert row(given)["expected_response"] == text
    assert row(given)["expectations"] == {"expected_response": value, "tone": "kind"}
    (issue,) = summary_of(validate_eval_set([{"trace": given}])).examples["AE309"]
    assert (issue.column, issue.path) == ("trace", "trace.info.assessments.expected_response")


ORIGINALS: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "arguments": ({"question": "a", "k": 3}, "b", {"inputs": {"question": "a", "k": 3}}),
    "an object": (
        {"messages": [{"role": "user", "content": "a"}]},
        {"answer": "b", "docs": [1, None]},
        {"outputs": {"answer": "b", "docs": [1, None]}},
    ),
    "a number": ({"question": "a"}, 42, {"inputs": {"question": "a"}, "outputs": 42}),
    "a boolean": ({"messages": [{"role": "user", "content": "a"}]}, False, {"outputs": False}),
    "what looks like JSON is text": ({"messages": [{"role": "user", "content": "a"}]}, "42", {}),
    "text": ("a", "b", {"inputs": "a"}),
}


@pytest.mark.parametrize("case", ORIGINALS)
def test_inputs_and_outputs_of_the_root_are_kept_where_the_views_say_less(case: str) -> None:
    inputs, outputs, kept = ORIGINALS[case]
    attributes = {"mlflow.spanInputs": json.dumps(inputs), "mlflow.spanOutputs": json.dumps(outputs)}
    found = row(trace({**ROOT, "attributes": {**ROOT["attributes"], **attributes}}))
    assert {name: found[name] for name in ("inputs", "outputs") if name in found} == kept


def test_a_column_wins_over_what_its_trace_keeps() -> None:
    attributes = {"mlflow.spanInputs": '{"question": "a", "k": 3}', "mlflow.spanOutputs": "42"}
    given = {"response": "b", "trace": trace({**ROOT, "attributes": attributes}, assessments=[expects("tone", "kind")])}
    found = row({**given, "custom_expected": {"tone": "strict"}})
    assert (found["inputs"], found["response"]) == ({"question": "a", "k": 3}, "b")
    assert {"outputs", "expectations"}.isdisjoint(found)


def test_what_a_cell_would_be_warned_of_an_expectation_is() -> None:
    given = trace(ROOT, assessments=[expects("expected_retrieved_context", [{"doc_uri": "a", "score": 0.5}])])
    (issue,) = summary_of(validate_eval_set([{"trace": given}])).examples["AE406"]
    assert (issue.column, issue.path) == ("trace", "trace.info.assessments.expected_retrieved_context[0].score")


# ---------------------------------------------------------------------------------------------------------------------
# columns and traces


def test_a_column_wins_over_the_trace_and_the_difference_is_said() -> None:
    given = {"request": "Hi", "response": "Bye", "trace": trace(ROOT)}
    assert row(given)["response"] == "Bye"
    assert codes(given) == ["AE605"]
    assert codes({**given, "response": "Hello"}) == []


# ---------------------------------------------------------------------------------------------------------------------
# rules: traces that were made of rows, and marks


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        ("of a row", set()),
        ("of a row: response", set()),
        ("of a row: latency_seconds", {"latency_seconds"}),
        ("of a row: failure, latency_seconds", {"latency_seconds", "failure"}),
        ("rewritten", {"latency_seconds", "failure", "request_id"}),
        (None, {"latency_seconds", "failure", "request_id"}),
        (5, {"latency_seconds", "failure", "request_id"}),
    ],
)
def test_what_a_row_did_not_have_is_not_read_from_the_trace_made_of_it(made: Any, kept: set[str]) -> None:
    tags = {} if made is None else {"agent_eval_schema.made": made}
    found = row(trace(ROOT, execution_duration_ms=1500, tags=tags))
    assert found.keys() & {"latency_seconds", "failure", "request_id"} == kept
    assert found["response"] == "Hello"


@pytest.mark.parametrize("mark", [True, "true", "True", "TRUE"])
def test_marks_of_a_cut_trace(mark: Any) -> None:
    assert codes(trace(ROOT, trace_metadata={"is_truncated": mark})) == ["AE609"]


@pytest.mark.parametrize("mark", [False, "false", "no", 1, None])
def test_marks_of_a_whole_trace(mark: Any) -> None:
    assert codes(trace(ROOT, trace_metadata={"is_truncated": mark})) == []


def test_an_input_that_is_no_request_is_its_json_text_which_a_note_names() -> None:
    given = trace(span(inputs={"n": 5}, outputs="Hello"))
    assert row(given)["request"] == {"messages": [user('{"n":5}')]}
    (issue,) = [i for i in validate_traces([given]).iter_issues() if "JSON text is taken" in i.message]
    assert (issue.column, issue.path) == ("trace", "trace.request")


def test_the_derivations_are_in_the_order_of_the_fields() -> None:
    fields = Derived.__struct_fields__[: len(DERIVATIONS)]
    assert [derivation.field for derivation in DERIVATIONS] == list(fields)


def test_the_span_of_a_hidden_failure_is_named_where_its_name_may_be_shown() -> None:
    given = trace(ROOT, span("2", "1", "TOOL", **{**raised("no"), "name": "look up"}))
    messages = {
        values: [i.message for i in validate_eval_set([{"trace": given}], show_values=values).iter_issues()]
        for values in (True, False)
    }
    assert [m for m in messages[True] if "failed" in m] == ["the span 'look up' failed, the trace's state is OK"]
    assert [m for m in messages[False] if "failed" in m] == ["a span failed, the trace's state is OK"]


def test_an_expectation_may_have_its_name_under_another_key() -> None:
    assert (
        row(trace(ROOT, assessments=[{"name": "expected_response", "expectation": {"value": "x"}}]))[
            "expected_response"
        ]
        == "x"
    )
