"""Parts of conventions that the samples do not have, and spans of MLflow's traces with such attributes only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from agent_eval_schema import eval_set_from_traces, validate_eval_set
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import Derived, derive
from agent_eval_schema.traces.otel.conventions import CONVENTIONS, ENTRIES, FIELDS
from agent_eval_schema.traces.otel.envelopes import normal_id
from agent_eval_schema.traces.otel.values import content_of, count_in, flattened, plain_value, text_in, unflattened
from agent_eval_schema.traces.spans import Trace
from tests.conftest import DATA, SAMPLES

TRACE = "5b8efff798038103d269b633813fc60c"


def span(number: int, name: str, attributes: dict[str, Any], parent: int | None = None, **more: Any) -> dict[str, Any]:
    """A flat span, as Strands and ADOT write them."""
    ids = {"trace_id": TRACE, "span_id": f"{number:016x}"}
    above = {} if parent is None else {"parent_span_id": f"{parent:016x}"}
    times = {"start_time": number * 10**9, "end_time": (number + 1) * 10**9}
    return {**ids, **above, **times, "name": name, "attributes": attributes, **more}


def derived(*spans: dict[str, Any]) -> Derived:
    trace = decode_trace(json.dumps(list(spans)))
    assert isinstance(trace, Trace)
    return derive(trace)


def test_every_convention_has_its_marks() -> None:
    assert [c.name for c in CONVENTIONS] == [
        "openinference",
        "genai",
        "openllmetry",
        "google-adk",
        "vercel-ai",
        "langfuse",
    ]
    fields = {entry.field for entries in ENTRIES.values() for entry in entries}
    assert fields == {"kind", *FIELDS}


def test_attributes_that_phoenix_nests() -> None:
    message = {"message": {"role": "user", "content": "Hi"}}
    answer = {"message": {"role": "assistant", "content": "Hello"}}
    nested = {
        "llm": {
            "input_messages": [message],
            "output_messages": [answer],
            "token_count": {"prompt": 3, "completion": 2},
        },
        "openinference": {"span": {"kind": "LLM"}},
        "session": {"id": "s-1"},
    }
    found = derived(span(1, "chat", nested))
    assert (found.request, found.response) == ([{"role": "user", "content": "Hi"}], "Hello")
    assert (found.token_counts, found.session_id) == ((3, 2, 5), "s-1")


def test_messages_in_the_log_records_of_adot() -> None:
    body = {
        "input": {"messages": [{"role": "user", "content": {"content": '[{"text": "Hi"}]'}}]},
        "output": {"messages": [{"role": "assistant", "content": {"message": '[{"text": "Hello"}]'}}]},
    }
    operation = {"gen_ai.operation.name": "invoke_agent"}
    found = derived(span(1, "invoke_agent a", operation, span_events=[{"event_name": "strands", "body": body}]))
    assert (found.request, found.response) == ([{"role": "user", "content": "Hi"}], "Hello")


@pytest.mark.parametrize(
    ("content", "response"),
    [
        (5, "5"),
        ({"x": 1}, '{"x":1}'),
        ({"message": {"x": 1}}, '{"x":1}'),
        ({"text": "Hello"}, "Hello"),
        ('{"generations": []}', None),
        (None, None),
    ],
)
def test_a_logged_answer_that_is_no_text_is_its_json(content: Any, response: str | None) -> None:
    body = {"output": {"messages": [{"role": "assistant", "content": content}]}}
    operation = {"gen_ai.operation.name": "invoke_agent"}
    found = derived(span(1, "invoke_agent a", operation, span_events=[{"event_name": "strands", "body": body}]))
    assert found.response == response


AGENT, TOOL = {"openinference.span.kind": "AGENT"}, {"openinference.span.kind": "TOOL"}
CALL = "message.tool_calls.0.tool_call.function"


def test_the_answer_of_the_claude_agent_sdk() -> None:
    """A list of texts in a message, or where its messages only call tools, the output of the whole span."""
    calls = {
        "llm.output_messages.0.message.role": "assistant",
        f"llm.output_messages.0.{CALL}.name": "Bash",
        f"llm.output_messages.0.{CALL}.arguments": '{"command": "ls"}',
        "input.value": "Which files?",
    }
    found = derived(span(1, "ClaudeAgentSDK.query", {**AGENT, **calls, "output.value": "There is one."}))
    assert (found.request, found.response) == ([{"role": "user", "content": "Which files?"}], "There is one.")
    texts = {"llm.output_messages.1.message.role": "assistant", "llm.output_messages.1.message.content.0": "One."}
    assert derived(span(1, "ClaudeAgentSDK.query", {**AGENT, **calls, **texts})).response == "One."


def test_the_arguments_of_smolagents() -> None:
    run = {"task": "How many?", "stream": False, "reset": True, "images": None}
    tool = {"args": [], "sanitize_inputs_outputs": False, "kwargs": {"query": "Tokyo"}}
    spans = [
        span(1, "CodeAgent.run", {**AGENT, "input.value": json.dumps(run), "output.value": "14 million"}),
        span(2, "SearchTool", {**TOOL, "tool.name": "web_search", "input.value": json.dumps(tool)}, 1),
    ]
    found = derived(*spans)
    assert found.request == [{"role": "user", "content": "How many?"}]
    assert found.predicted_trajectory == [ToolCall("web_search", {"query": "Tokyo"})]
    # an argument with that name of another agent stays in its inputs
    other = derived(span(1, "run", {**AGENT, "input.value": '{"task": "x", "n": 1}'}))
    assert other.request == [{"role": "user", "content": '{"task":"x","n":1}'}]


@pytest.mark.parametrize(
    ("recorded", "arguments"),
    [
        # of a decorated function
        ({"args": [], "kwargs": {"city": "Rome"}}, {"city": "Rome"}),
        ({"args": [{"city": "Rome"}], "kwargs": {}}, {"city": "Rome"}),
        ({"args": [{"city": "Rome"}]}, {"city": "Rome"}),
        ({"args": ["Rome", 2], "kwargs": {}}, {"args": ["Rome", 2]}),
        ({"args": ["Rome"], "kwargs": {"days": 2}}, {"args": ["Rome"], "days": 2}),
        ({"args": [], "kwargs": {}}, {}),
        # of a chain or a tool of LangChain
        ({"inputs": {"city": "Rome"}, "tags": [], "metadata": {}}, {"city": "Rome"}),
        ({"inputs": '{"city": "Rome"}'}, {"city": "Rome"}),
        ({"inputs": None, "input_str": "Rome"}, {"tool_input": "Rome"}),
        ({"input_str": '{"city": "Rome"}', "tags": []}, {"city": "Rome"}),
        ({"input_str": '{"city": "Rome"}'}, {"city": "Rome"}),
        ({"input_str": "Rome"}, {"tool_input": "Rome"}),
        ({"query": "Rome", "tags": [], "kwargs": {}}, {"tool_input": "Rome"}),
        # arguments of these names of another function
        *(
            (plain, plain)
            for plain in (
                {"args": "-la", "kwargs": {}},
                {"args": [1], "kwargs": "x"},
                {"args": ["-la"], "path": "/"},
                {"inputs": "x", "path": "/"},
                {"query": "Rome", "tags": []},
            )
        ),
    ],
    ids=str,
)
def test_the_arguments_of_a_tool_of_openllmetry(recorded: dict[str, Any], arguments: dict[str, Any]) -> None:
    tool = {"traceloop.span.kind": "tool", "traceloop.entity.name": "find"}
    found = derived(span(1, "find.tool", {**tool, "traceloop.entity.input": json.dumps(recorded)}))
    assert found.predicted_trajectory == [ToolCall("find", arguments)]


@pytest.mark.parametrize(
    ("key", "value", "call"),
    [
        ("tool_call.function", {"name": "find", "arguments": '{"city": "Rome"}'}, ToolCall("find", {"city": "Rome"})),
        ("tool_call", {"name": "find", "arguments": '{"city": "Rome"}'}, ToolCall("find", {"city": "Rome"})),
        ("function", {"name": "find", "arguments": '{"city": "Rome"}'}, ToolCall("find", {"city": "Rome"})),
        ("name", "find", ToolCall("find", None)),
        ("tool_call.function", "find", ToolCall("?", None)),
        ("tool_call", "find", ToolCall("?", None)),
    ],
)
def test_the_calls_in_a_message_of_openinference(key: str, value: Any, call: ToolCall) -> None:
    start = f"llm.output_messages.0.message.tool_calls.0.{key}"
    flat = {f"{start}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {start: value}
    found = derived(span(1, "chat", {"openinference.span.kind": "LLM", **flat}))
    assert found.predicted_trajectory == [call]
    assert [note.rule.code for note in found.notes] == (["AE603"] if call.tool_name == "?" else [])


def test_log_records_of_langchain_from_adot() -> None:
    """The state of the graph, the generations of a model and the message of a tool are the contents of messages."""

    def logged(number: int, asked: str, answered: Any) -> dict[str, Any]:
        sides = {"input": ("user", asked), "output": ("assistant", json.dumps(answered))}
        body = {side: {"messages": [{"role": role, "content": text}]} for side, (role, text) in sides.items()}
        return span(number, "langchain", {}, span_events=[{"event_name": "langchain", "body": body}])

    state = json.dumps({"messages": [{"content": "Where?", "type": "human"}]})
    found = derived(
        logged(1, state, {"messages": [{"content": "In Rome.", "type": "ai"}]}),
        logged(2, "Where?", {"generations": [[{"text": "Let me look."}]], "llm_output": None}),
        logged(3, "{'city': 'Rome'}", {"name": "find", "type": "tool", "content": "Here", "tool_call_id": "t"}),
    )
    assert (found.request, found.response) == ([{"role": "user", "content": "Where?"}], "In Rome.")
    assert found.predicted_trajectory == [ToolCall("find", {"city": "Rome"})]


def test_spans_of_a_session_in_an_object(tmp_path: Path) -> None:
    spans = [span(1, "a", {**AGENT, "input.value": "Hi", "output.value": "Hello", "session.id": "s-1"})]
    (tmp_path / "session.json").write_text(json.dumps({"session_id": "s-1", "span_count": 1, "spans": spans}))
    report = validate_eval_set(tmp_path / "session.json")
    (row,) = report.iter_rows()
    assert (report.format, len(report.issues)) == ("otel", 0)
    assert (row["request"]["messages"][0]["content"], row["response"], row["session_id"]) == ("Hi", "Hello", "s-1")


def test_a_blank_question_is_judged_alike_in_the_normalized_row() -> None:
    """Whether the trace is of OpenTelemetry or of MLflow."""
    from tests.integrations.mlflow.test_oracle import spans

    otel = json.dumps([span(1, "a", {**AGENT, "input.value": " ", "output.value": "Hello"})])
    for trace in (otel, spans(inputs={"question": " "}), spans(inputs={"messages": [{"role": "user", "content": ""}]})):
        report = validate_eval_set([{"trace": trace}])
        again = validate_eval_set(list(report.iter_rows()))
        assert (report.ok, again.ok) == (False, False), trace
        assert {"AE202"} <= report.counts.keys() & again.counts.keys()


def test_a_message_in_contents_is_the_text_of_its_parts() -> None:
    start = "llm.input_messages.0.message"
    parts = {f"{start}.contents.{i}.message_content.text": text for i, text in enumerate(("Hel", "lo"))}
    image = {f"{start}.contents.2.message_content.image.image.url": "https://example.com/a.png"}
    flat = {f"{start}.role": "user", **parts, **image, "llm.output_messages.0.message.content": "Hi"}
    found = derived(span(1, "chat", {"openinference.span.kind": "LLM", **flat}))
    assert (found.request, found.response) == ([{"role": "user", "content": "Hello"}], "Hi")


@pytest.mark.parametrize(("metadata", "uri"), [({}, "a.md"), ({"metadata": '{"doc_uri": "b.md"}'}, "b.md")])
def test_the_id_of_a_retrieved_document_is_its_uri_unless_its_metadata_have_one(
    metadata: dict[str, str], uri: str
) -> None:
    document = {"id": "a.md", "content": "16 weeks", **metadata}
    flat = {f"retrieval.documents.0.document.{key}": value for key, value in document.items()}
    found = derived(span(1, "a", AGENT), span(2, "search", {"openinference.span.kind": "RETRIEVER", **flat}, 1))
    assert [(d.doc_uri, d.content) for d in found.retrieved_context or []] == [(uri, "16 weeks")]


LEVEL = {"langfuse.observation.level": "ERROR"}


@pytest.mark.parametrize(
    ("attributes", "more", "error"),
    [
        ({**LEVEL, "langfuse.observation.status_message": "no answer"}, {}, "no answer"),
        ({**LEVEL, "langfuse.observation.status_message": "no answer"}, {"status": {"code": "OK"}}, "no answer"),
        ({"langfuse.observation.level": "WARNING"}, {}, None),
    ],
)
def test_a_level_of_langfuse_is_the_status_of_a_span(
    attributes: dict[str, str], more: dict[str, Any], error: str | None
) -> None:
    found = derived(span(1, "a", {**AGENT, "input.value": "Hi", "output.value": "Hello", **attributes}, **more))
    assert (found.failure, found.error) == (error is not None, error)


@pytest.mark.parametrize(
    ("tags", "failed"),
    [({"error": True}, True), ({"otel.status_code": "ERROR"}, True), ({"error": "true"}, False), ({}, False)],
)
def test_tags_of_jaeger_are_the_status_of_a_span(tags: dict[str, Any], failed: bool) -> None:
    values = {**AGENT, "input.value": "Hi", "output.value": "Hello", "otel.status_description": "no answer", **tags}
    spans = [
        {
            "traceID": TRACE,
            "spanID": f"{1:016x}",
            "operationName": "a",
            "startTime": 1,
            "duration": 5,
            "tags": [{"key": key, "value": value} for key, value in values.items()],
        }
    ]
    trace = decode_trace(json.dumps({"data": [{"traceID": TRACE, "spans": spans, "processes": {}}]}))
    assert isinstance(trace, Trace)
    found = derive(trace)
    assert (found.failure, found.error, found.response) == (failed, "no answer" if failed else None, "Hello")


def test_a_download_of_langfuse_is_read_by_its_observations() -> None:
    asked = {"id": "o1", "traceId": TRACE, "type": "SPAN", "name": "a", "startTime": "2026-01-01T00:00:00Z"}
    asked |= {"level": "ERROR", "statusMessage": "no answer", "endTime": "2026-13-01T00:00:00Z"}
    trace = {"id": TRACE, "input": '"Hi"', "output": '"Hello"', "sessionId": "s-1"}
    report = validate_eval_set({"trace": trace, "observations": [asked, 5]})
    (row,) = report.iter_rows()
    assert (row["request"]["messages"][0]["content"], row["response"], row["session_id"]) == ("Hi", "Hello", "s-1")
    assert (row["failure"], row["error"], row["latency_seconds"]) == (True, "no answer", None)
    assert [(i.code, i.path, i.message) for i in report.iter_issues()] == [
        ("AE603", "trace.spans[1]", "expected a span (an object), got the number 5")
    ]


@pytest.mark.parametrize("nothing", [{}, {"value": None}, {"value": {}}])
def test_an_attribute_without_a_value_is_none(nothing: dict[str, Any]) -> None:
    texts = {"openinference.span.kind": "AGENT", "output.value": "Hello"}
    attributes = [{"key": key, "value": {"stringValue": text}} for key, text in texts.items()]
    one = {"traceId": TRACE, "spanId": f"{1:016x}", "name": "a"}
    one |= {"attributes": [*attributes, {"key": "input.value", **nothing}]}
    trace = decode_trace(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}))
    assert isinstance(trace, Trace)
    assert (derive(trace).request, derive(trace).response) == (None, "Hello")


def test_details_in_an_event_belong_to_the_span() -> None:
    texts = {
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}],
        "gen_ai.system_instructions": [{"type": "text", "content": "Be kind."}],
    }
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": texts}
    found = derived(span(1, "chat m", {"gen_ai.operation.name": "chat"}, events=[event]))
    assert found.response == "Hello"
    assert found.request == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]


def test_calls_are_those_of_the_models_where_no_tool_has_a_span() -> None:
    calls = [{"type": "tool_call", "id": "c", "name": "find", "arguments": {"q": 1}}]
    output = [{"role": "assistant", "parts": calls}]
    found = derived(span(1, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(output)}))
    assert [(c.tool_name, c.tool_input) for c in found.predicted_trajectory or []] == [("find", {"q": 1})]


def test_the_tokens_of_an_agent_count_where_no_model_has_any() -> None:
    usage = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    agent = {"gen_ai.operation.name": "invoke_agent", **usage}
    model = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 1}
    assert derived(span(1, "a", agent), span(2, "inner", agent, 1)).token_counts == (10, 2, 12)
    assert derived(span(1, "a", agent), span(2, "b", agent)).token_counts == (20, 4, 24)
    assert derived(span(1, "a", agent), span(2, "chat", model, 1)).token_counts == (7, 1, 8)


@pytest.mark.parametrize("odd", [5, {"name": "x", "attributes": 5}, {"name": "x", "attributes": [1]}])
@pytest.mark.parametrize("events", [[], 5, [5]])
def test_an_odd_span_or_event_of_mlflow_costs_no_other_its_attributes(odd: Any, events: Any) -> None:
    trace = json.loads((DATA / "traces" / "mlflow_v3_18_0.json").read_text(encoding="utf-8"))
    texts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": '[{"role": "assistant", "content": "Shipped."}]',
    }
    texts["gen_ai.input.messages"] = '[{"role": "user", "content": "Where is it?"}]'
    (root,) = trace["data"]["spans"][:1]
    root |= {"attributes": {key: json.dumps(text) for key, text in texts.items()}, "events": events}
    trace["data"]["spans"] = [root, odd]
    trace["info"].pop("assessments", None)
    report = validate_eval_set([{"trace": json.dumps(trace)}])
    (row,) = report.iter_rows()
    assert (row["request"]["messages"], row["response"]) == ([{"role": "user", "content": "Where is it?"}], "Shipped.")
    assert "trace.data.spans[1]" in {(i.path or "").removesuffix(".attributes") for i in report.iter_issues()}


def test_spans_of_mlflow_that_only_have_attributes_of_a_convention() -> None:
    trace = json.loads((DATA / "traces" / "mlflow_v3_18_0.json").read_text(encoding="utf-8"))
    message = [{"role": "user", "parts": [{"type": "text", "content": "Where is my order?"}]}]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "It has shipped."}]}]
    given: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(message),
        "gen_ai.output.messages": json.dumps(answer),
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.conversation.id": "s-7",
    }
    root = trace["data"]["spans"][0]
    root["attributes"] = {key: json.dumps(value) for key, value in given.items()}
    trace["data"]["spans"] = [root]
    trace["info"]["trace_metadata"] = {}
    trace["info"].pop("assessments", None)
    row = eval_set_from_traces([trace]).iloc[0]
    assert row["request"]["messages"] == [{"role": "user", "content": "Where is my order?"}]
    assert (row["response"], int(row["total_token_count"]), row["session_id"]) == ("It has shipped.", 34, "s-7")


def test_a_trace_without_content_is_reported_on_its_row_in_a_column() -> None:
    text = (DATA / "otel" / "google_adk_without_content.json").read_text(encoding="utf-8")
    report = validate_eval_set([{"request": "Hi", "response": "Hello", "trace": text}])
    assert [(i.code, i.row, i.path) for i in report.iter_issues()] == [("AE612", 0, "trace.resourceSpans")]


def test_a_cell_with_several_traces_is_reported() -> None:
    other = {**span(9, "chat m", {"gen_ai.operation.name": "chat"}), "trace_id": "f" * 32}
    text = json.dumps([other, *(span(i, "chat m", {"gen_ai.operation.name": "chat"}) for i in range(1, 3))])
    trace = decode_trace(text)
    assert isinstance(trace, Trace)
    assert (trace.info.trace_id, len(trace.spans)) == (TRACE, 3)  # two, and a root above them
    assert "got those of 2" in trace.notes[0].message


def test_rows_of_the_sample() -> None:
    rows = eval_set_from_traces(SAMPLES / "otel_traces.jsonl")
    assert list(rows["session_id"]) == ["chat-81", "chat-82", "chat-83"]
    assert list(rows["failure"]) == [False, False, True]
    assert rows["error"][2] == "the leave service did not answer"
    assert list(rows["latency_seconds"]) == [0.93, 1.4, 0.7]


def test_flattened_lists() -> None:
    leaves = [("1.a", 2), ("0.a", 1), ("0.b.0.c", 3), ("0.a.x", 4), ("9999999999999.a", 5)]
    assert unflattened(leaves[:3]) == [{"a": 1, "b": [{"c": 3}]}, {"a": 2}]
    assert unflattened([("0.a", 1), ("0.a.x", 4)]) == [{"a": 1}]
    assert unflattened(leaves) == {"0": {"a": 1, "b": [{"c": 3}]}, "1": {"a": 2}, "9999999999999": {"a": 5}}
    assert dict(flattened({"a": {"b": {"c": 1}}, "d": 2}, frozenset({"a.b"}))) == {"a.b": {"c": 1}, "d": 2}


def test_values_of_otlp() -> None:
    pair = {"key": "k", "value": {"intValue": "7"}}
    assert plain_value({"kvlistValue": {"values": [pair, 17, {"key": 3}]}}) == {"k": 7}
    assert plain_value({"arrayValue": {"values": [{"stringValue": "a"}, {"values": [pair]}]}}) == ["a", {"k": 7}]
    assert plain_value({"arrayValue": {}}) == []
    assert plain_value({"bytesValue": "SGk="}) == "Hi"
    assert plain_value({"bytesValue": "no base64"}) == "no base64"
    assert plain_value({"other": 1}) == {"other": 1}
    for text, content in ((b'{"stringValue": 5}', b"5"), (b'{"other": 1}', b'{"other": 1}')):
        assert bytes(content_of(Raw(text))) == content
    for odd in (b'{"arrayValue": 5}', b'{"kvlistValue": {"values": 5}}', rb'{"\ud800": 1}'):
        assert bytes(content_of(Raw(odd))) == odd


@pytest.mark.parametrize(
    ("text", "count"),
    [("5", 5), ('"5"', 5), ("5.0", 5), ("1e3", 1_000), ("5.5", None), ("-1", None), ("true", None), ("1e30", None)],
)
def test_a_count_is_a_whole_number_that_is_not_negative(text: str, count: int | None) -> None:
    assert count_in(Raw(text.encode())) == count


def test_json_text_of_a_text_is_the_text() -> None:
    texts = ("Hi", '"Hi"', '"\\"', " ", "", 5)
    assert [text_in(Raw(json.dumps(text).encode())) for text in texts] == ["Hi", "Hi", '"\\"', None, None, None]


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("5B8EFFF798038103D269B633813FC60C", TRACE),
        ("W47/95gDgQPSabYzgT/GDA==", TRACE),
        ("a name with spaces, 24 c=", "a name with spaces, 24 c="),
        ("a name of 24 character!=", "a name of 24 character!="),
    ],
)
def test_an_id_is_in_hexadecimal_digits_if_it_is_bytes(text: str, identity: str) -> None:
    assert normal_id(text, 16) == identity
