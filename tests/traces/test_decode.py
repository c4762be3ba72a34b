"""Traces as JSON: encodings of which there is no file, damage, and what is no trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError, eval_set_from_traces, validate_eval_set
from agent_eval_schema.api import UnreadableTraceWarning
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.spans import Trace
from tests.helpers.traces import (
    ASKED,
    FILES,
    ROOT,
    Row,
    call,
    codes,
    completion,
    doc,
    document,
    expects,
    row,
    rows,
    span,
    text_of,
    trace,
    usage,
    user,
    views,
)

# ---------------------------------------------------------------------------------------------------------------------
# encodings of which there is no file


STEPS = {
    "app_version_id": "avi-3",
    "start_timestamp": "2024-04-03T19:51:10.686454",
    "end_timestamp": "2024-04-03T19:51:12.9",
    "is_truncated": False,
    "steps": [
        {
            "step_id": "2947",
            "name": "Retriever",
            "type": "RETRIEVAL",
            "retrieval": {
                "query_text": "How long?",
                "chunks": [{"chunk_id": "c1", "doc_uri": "hr/leave.pdf", "content": "16 weeks"}],
            },
            "start_timestamp": "2024-04-03T19:51:10.7",
            "end_timestamp": "2024-04-03T19:51:11.2",
        },
        {
            "step_id": "9283",
            "name": "LLM",
            "type": "LLM_GENERATION",
            "text_generation": {"prompt": "...", "generated_text": "16 weeks."},
            "start_timestamp": "2024-04-03T19:51:11.3",
            "end_timestamp": "2024-04-03T19:51:12.9",
        },
    ],
}


def test_v1_steps() -> None:
    """They do not say what was asked, how it went or what it cost."""
    assert views(row(STEPS)) == {
        "response": "16 weeks.",
        "retrieved_context": [document("hr/leave.pdf", "16 weeks")],
        "latency_seconds": pytest.approx(2.213546, abs=1e-6),
    }


@pytest.mark.parametrize(
    "times",
    [
        ("2024-04-03T19:51:10.5", "2024-04-03T19:51:12"),
        ("2024-04-03T19:51:10.5Z", "2024-04-03T19:51:12z"),
        ("2024-04-03T19:51:10.500000000Z", "2024-04-03T19:51:12.000000000Z"),
        ("2024-04-03T19:51:10.5+02:00", "2024-04-03T17:51:12.0Z"),
    ],
)
def test_times_of_v1_are_read_in_every_spelling(times: tuple[str, str]) -> None:
    start, end = times
    assert row({**STEPS, "start_timestamp": start, "end_timestamp": end})["latency_seconds"] == 1.5


def test_v1_steps_beside_a_request() -> None:
    [found] = rows([{"request": "How long?", "trace": STEPS}])
    assert found["request"] == {"messages": [user("How long?")]}
    assert found["response"] == "16 weeks."


def flat_span(id: str, parent: str | None, times: tuple[int, int], code: str, **attributes: Any) -> Row:
    named = {f"mlflow.{k}": v for k, v in attributes.items()}
    context = {"span_id": id, "trace_id": "0x2"}
    start_end = {"start_time": times[0], "end_time": times[1]}
    return {
        "name": "a", "context": context, "parent_id": parent, **start_end, "status_code": code,
        "attributes": json.dumps(named),
    }  # fmt: skip


@pytest.mark.parametrize(
    "written", [json.dumps, lambda value: value], ids=["values as JSON text", "values as they are"]
)
def test_flat_v2(written: Callable[[Any], Any]) -> None:
    """The attributes are one JSON text; there is no info, so the root span gives latency and failure."""
    docs = [{"page_content": "16 weeks", "metadata": {"doc_uri": "hr/leave.pdf"}}]
    flat = {
        "spans": [
            flat_span("0x1", None, (1_000_000_000, 3_500_000_000), "OK", spanType=written("CHAIN"),
                      spanInputs=written(ASKED), spanOutputs=written(completion("Hello"))),
            flat_span("0x2", "0x1", (1_100_000_000, 1_200_000_000), "OK", spanType=written("RETRIEVER"),
                      spanInputs=written("q"), spanOutputs=written(docs)),
        ],
        "mlflow.trace_schema.version": "2",
        "app_version_id": "avi-3",
    }  # fmt: skip
    assert views(row(flat)) == {
        "request": ASKED,
        "response": "Hello",
        "retrieved_context": [document("hr/leave.pdf", "16 weeks")],
        "latency_seconds": 2.5,
        "failure": False,
    }


def test_mlflow_3_5_0() -> None:
    """For one version the ids were hex, the root had no parent again, and the status a bare word."""
    written = {"trace_id": "tr-1f", "status": {"code": "OK"}}
    raised = {
        "status": {"code": "ERROR"},
        "events": [{"name": "exception", "attributes": {"exception.message": "no"}}],
    }
    found = row(
        trace(
            span("01", inputs="Hi", outputs="Hello", **written),
            span("02", "01", "TOOL", **{**written, **raised, "name": "search"}, inputs={"q": "x"}),
            state="ERROR",
        )
    )
    assert found["response"] == "Hello"
    assert found["predicted_trajectory"] == [call("search", q="x")]
    assert (found["failure"], found["error"]) == (True, "no")


def _otel_span(id: str, kind: str, attributes: Row | None = None, **more: Any) -> Row:
    of_kind = {"openinference.span.kind": kind, **(attributes or {})}
    return {"traceId": "a" * 32, "spanId": id * 16, "name": "chat", "attributes": of_kind, **more}


def _otel(*spans: Row) -> Row:
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


NAMELESS = {"llm.output_messages.0.message.tool_calls.0.tool_call.id": "c"}
FAILED: Row = {"parentSpanId": "a" * 16, "status": {"code": "ERROR"}}


@pytest.mark.parametrize(
    ("given", "note"),
    [
        (trace(), ("AE604", "data.spans")),
        (trace(span(inputs="Hi")), ("AE621", "data.spans")),
        (trace(ROOT, span("2", "1", "TOOL", name=" ")), ("AE603", "data.spans")),
        (trace(ROOT, span("2", "1", "TOOL", status={"code": "ERROR"})), ("AE610", "data.spans")),
        ({"spans": []}, ("AE604", "spans")),
        ({"spans": [flat_span("0x1", None, (1, 2), "OK", spanType="CHAIN", spanInputs="Hi")]}, ("AE621", "spans")),
        ({"spans": [flat_span("0x1", None, (1, 2), "OK", spanType="TOOL") | {"name": ""}]}, ("AE603", "spans")),
        (_otel(_otel_span("a", "LLM", {"input.value": "Hi"})), ("AE621", "resourceSpans")),
        (_otel(_otel_span("a", "LLM", NAMELESS)), ("AE603", "resourceSpans")),
        (_otel(_otel_span("a", "AGENT"), _otel_span("b", "TOOL", **FAILED)), ("AE610", "resourceSpans")),
    ],
)
def test_an_issue_of_the_spans_has_the_path_of_the_spans_in_their_encoding(given: Row, note: tuple[str, str]) -> None:
    assert note in [(n.rule.code, n.path) for n in derive(decode_trace(json.dumps(given))).notes]


def test_is_truncated_is_said() -> None:
    assert codes({**STEPS, "is_truncated": True}) == ["AE609"]
    assert codes(trace(ROOT, trace_metadata={"is_truncated": "true"})) == ["AE609"]


# ---------------------------------------------------------------------------------------------------------------------
# tolerance: mlflow rejects many of these


DAMAGED: dict[str, tuple[Any, list[str]]] = {
    "unknown keys": (trace({**ROOT, "flags": 3, "links": [{}]}, new_in_4={"x": [1]}, tags=None), []),
    "no state": (trace(ROOT, state=None), []),
    "an unknown state": (trace(ROOT, state="PAUSED"), []),
    "no info": ({"data": {"spans": [ROOT]}}, []),
    "info that is none": ({"info": [], "data": {"spans": [ROOT]}}, ["AE603"]),
    "state as a number": (trace(ROOT, state=1), ["AE603"]),
    "metadata as a list": (trace(ROOT, trace_metadata=[1]), ["AE603"]),
    "duration as text": (trace(ROOT, execution_duration_ms="fast"), ["AE603"]),
    "assessments as text": (trace(ROOT, assessments='"expectation"'), []),
    "a number among the spans": (trace(17, ROOT), ["AE603"]),
    "null among the spans": (trace(ROOT, None), ["AE603"]),
    "a span without a name": (trace({**ROOT, "name": None}), []),
    "a name as a number": (trace({**ROOT, "name": 7}), ["AE603"]),
    "a kind as a number": (trace(ROOT, {**span("2", "1"), "attributes": {"mlflow.spanType": 7}}), ["AE603"]),
    "attributes as a list": (trace(ROOT, {**span("2", "1"), "attributes": [1]}), ["AE603"]),
    "no attributes": (trace(ROOT, {**span("2", "1"), "attributes": None}), []),
    "status as a list": (trace({**ROOT, "status": ["OK"]}), ["AE603"]),
    "events as text": (trace({**ROOT, "events": "exception"}, state="ERROR"), []),
    "a span that is its own parent": (trace(ROOT, span("2", "2", "RETRIEVER", outputs=[])), []),
    "two spans that are each other's parent": (
        trace(ROOT, span("2", "3", "LLM", usage=usage(1, 2)), span("3", "2", "LLM", usage=usage(1, 2))),
        [],
    ),
    "models that are their own parents": (
        trace(
            span("1", "1", "LLM", inputs="Hi", outputs="Hello", usage=usage(1, 2)),
            span("2", "2", "LLM", usage=usage(1, 2)),
        ),
        [],
    ),
    "spans without ids": (
        trace({k: v for k, v in ROOT.items() if k != "span_id"}, {**span("2", kind="LLM"), "span_id": None}),
        [],
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_costs_no_more_than_the_damaged_part(case: str) -> None:
    given, remarks = DAMAGED[case]
    assert {k: row(given).get(k) for k in ("request", "response")} == {"request": ASKED, "response": "Hello"}
    assert codes(given) == remarks


@pytest.mark.parametrize(("start", "end"), [("1000", "3500000001000"), (1000.0, 3500000001000.0)])
def test_times_as_text_or_float(start: Any, end: Any) -> None:
    """protobuf's JSON writes 64-bit integers as text."""
    assert row(trace(span(start=start, end=end, inputs="Hi")))["latency_seconds"] == 3500.0


ODD_NUMBERS = {
    "a word": "noon",
    "no text": "",
    "a digit that is no number": "²",
    "too many digits": "1" * 5000,
    "beyond every float": 10**400,
    "infinite": float("inf"),
    "negative": -1,
    "true": True,
    "a list": [1],
}


@pytest.mark.parametrize("case", ODD_NUMBERS)
def test_numbers_that_are_none(case: str) -> None:
    odd = ODD_NUMBERS[case]
    given = trace({**ROOT, "start_time_unix_nano": odd, "end_time_unix_nano": odd})
    assert row(json.dumps(given))["response"] == "Hello"
    assert row(json.dumps(trace(ROOT, execution_duration_ms=odd)))["response"] == "Hello"


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_nan_in_the_trace(literal: str) -> None:
    given = json.dumps(trace(ROOT, score=0)).replace('"score": 0', f'"score": {literal}')
    assert row(given)["response"] == "Hello"
    assert codes(given) == ["AE611"]


def test_nan_in_what_a_span_holds() -> None:
    nan = float("nan")
    root = span(inputs={"messages": [user("Hi")], "top_p": nan}, outputs={"content": "Hello", "score": nan})
    tool = span("3", "1", "TOOL", name="search", inputs={"q": "x", "boost": nan})
    retriever = span("2", "1", "RETRIEVER", outputs=[{**doc("a"), "score": nan}])
    found = row(trace(root, retriever, tool))
    assert (found["request"], found["response"]) == (ASKED, "Hello")
    assert found["retrieved_context"] == [document("a", "on a")]
    assert found["predicted_trajectory"] == [call("search", q="x", boost=None)]


def test_nan_in_the_attributes_of_flat_v2() -> None:
    one = flat_span("0x1", None, (0, 1), "OK", spanInputs="Hi", spanOutputs={"content": "Hello", "score": float("nan")})
    assert row({"spans": [one]})["response"] == "Hello"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(trace(span(inputs="Hi", outputs="Hello \ud800"))),
        json.dumps(trace({**span(), "attributes": {"mlflow.spanInputs": "Hi", "mlflow.spanOutputs": "Hello \ud800"}})),
    ],
    ids=["in the inner JSON", "in the outer JSON"],
)
def test_half_of_a_character(text: str) -> None:
    """A lone surrogate is JSON, but no UTF-8 file can hold it."""
    found = row(text)
    assert found["request"] == ASKED
    assert found["response"].startswith("Hello ")
    found["response"].encode("utf-8")


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def attribute(text: str) -> str:
    return json.dumps({**span(), "attributes": {"mlflow.spanInputs": text, "mlflow.spanOutputs": text}})


DEEP: dict[str, Callable[[str], str]] = {
    "in a key that nobody reads": lambda deep: f'{{"info": {{"tags": {deep}}}, "data": {{"spans": []}}}}',
    "for a span": lambda deep: f'{{"info": {{}}, "data": {{"spans": [{deep}]}}}}',
    "for an attribute": lambda deep: attribute("Hi").replace('"Hi"', deep),
    "in an attribute": lambda deep: f'{{"spans": [{attribute(deep)}]}}',
    "in an attribute, as objects": lambda deep: (
        f'{{"spans": [{attribute(deep.replace("[]", "1").replace("[", OPEN).replace("]", "}"))}]}}'
    ),
    "in the documents": lambda deep: json.dumps(trace(ROOT, span("2", "1", "RETRIEVER", outputs=deep))),
    "in the attributes of flat v2": lambda deep: json.dumps({"spans": [{"attributes": f'{{"x": {deep}}}'}]}),
    "in the steps of v1": lambda deep: f'{{"steps": {deep}}}',
}


OPEN = '{"a":'


@pytest.mark.parametrize("case", DEEP)
def test_depth_raises_nothing(case: str) -> None:
    """Python gives up at about 1000; where exactly depends on who calls."""
    for depth in (500, *range(880, 1010, 2), 100_000):
        said(DEEP[case](nested(depth)))


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1])
def test_escaped_brackets_are_counted(depth: int) -> None:
    """The brackets of the traces are counted for a whole column, which does not see those that a text escapes: one that
    is nested too deep is no list."""
    cell = attribute("Hi").replace('Outputs": "Hi"', 'Outputs": "' + nested(depth).replace("[", "\\u005b") + '"')
    report = validate_eval_set(pa.table({"trace": [f'{{"spans": [{cell}]}}']}))
    assert ("AE608" in set(report.issues["code"])) is (depth == MAX_DEPTH)


def said(text: str | bytes) -> list[str]:
    """The codes of the notes on a trace: those of its derivation, or those that say why there is none."""
    found = decode_trace(text)
    notes = derive(found).notes if isinstance(found, Trace) else found
    assert isinstance(found, Trace) or notes, "no trace and no reason"
    return [note.rule.code for note in notes]


def test_a_trace_cut_at_any_byte_is_malformed() -> None:
    whole = text_of("mlflow_v3_6_0").strip().encode()
    assert {tuple(said(whole[:size])) for size in range(len(whole))} == {("AE601",)}
    assert "AE601" not in said(whole)


def test_a_value_cut_at_any_character_is_text() -> None:
    whole = json.dumps(completion("Hello"))
    for size in range(1, len(whole)):
        found = row(trace({**span(), "attributes": {"mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": whole[:size]}}))
        assert found["response"] == whole[:size]


def test_bytes_that_are_no_text() -> None:
    whole = json.dumps(trace(ROOT, assessments=[expects("tone", "kind")])).encode()
    for at in range(len(whole)):
        said(whole[:at] + b"\xff" + whole[at + 1 :])


KEYS = (
    *("info", "data", "spans", "steps", "attributes", "events", "name", "span_id", "parent_span_id", "status", "code"),
    *("context", "start_time_unix_nano", "end_time", "trace_id", "state", "trace_metadata", "assessments", "messages"),
    *("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tokenUsage", "mlflow.trace.session"),
    *("type", "retrieval", "chunks", "text_generation", "choices", "message", "content", "role", "tool_calls", "usage"),
    *("input", "output", "documents", "metadata", "doc_uri", "expectation", "assessment_name", "serialized_value"),
)


TYPES = st.sampled_from(["RETRIEVER", "TOOL", "LLM", '"CHAT_MODEL"', "assistant", "STATUS_CODE_ERROR", "0x1", ""])


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | TYPES


VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
        | inner.map(json.dumps)  # JSON text in JSON, as in attributes
    ),
    max_leaves=30,
)


@settings(max_examples=200)
@given(VALUES)
def test_no_json_raises(value: Any) -> None:
    said(json.dumps(value))


@settings(max_examples=100)
@given(st.lists(VALUES, max_size=4), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_no_spans_raise(spans: list[Any], info: Row) -> None:
    said(json.dumps(trace(ROOT, *spans, **info)))


@settings(max_examples=200)
@given(st.data())
def test_no_change_of_a_real_trace_raises(data: st.DataObject) -> None:
    changed = json.loads(text_of(data.draw(st.sampled_from(sorted(FILES)))))
    place: Any = changed
    while isinstance(place, dict | list) and place:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.integers(0, 3)) == 0:
            place[key] = data.draw(VALUES)
            break
        place = place[key]
    said(json.dumps(changed))


@settings(max_examples=200)
@given(st.text() | st.binary())
def test_no_text_raises(text: str | bytes) -> None:
    said(text)


# ---------------------------------------------------------------------------------------------------------------------
# what is no trace


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "AE601"),
        ("  ", "AE601"),
        ('{"info": {"trace_id": "tr-1"', "AE601"),
        ("Trace(trace_id=tr-1)", "AE601"),
        ("{}", "AE602"),
        ('{"foo": 1}', "AE602"),
        ("[]", "AE602"),
        ("17", "AE602"),
        ("null", "AE602"),
        ('"tr-1"', "AE602"),
    ],
)
def test_no_trace(text: str, code: str) -> None:
    assert said(text) == [code]


def test_unreadable_traces_keep_their_rows_and_are_warned_of() -> None:
    with pytest.warns(UnreadableTraceWarning, match="1 of 2 traces could not be read; row 0"):
        first, second = rows(['{"info": {"trace', trace(ROOT)])
    assert first == {}
    assert second["response"] == "Hello"


def test_previews_are_never_content() -> None:
    """They are cut short."""
    previews = {"mlflow.traceInputs": '"Hi"', "mlflow.traceOutputs": '"Hello"'}
    info = {"request_preview": "Hi", "response_preview": "Hello", "trace_metadata": previews}
    for spans in ([], [span()]):
        assert not {"request", "response"} & row(trace(*spans, **info)).keys()
    assert codes(trace(**info)) == ["AE604"]


@pytest.mark.parametrize("kind", [pd.Series, np.array])
def test_a_column_of_traces_is_read_as_a_list_of_them(kind: Callable[[Any], Any]) -> None:
    traces = [json.dumps(trace(span())), json.dumps(trace(span(), trace_id="tr-2"))]
    assert eval_set_from_traces(kind(traces)).equals(eval_set_from_traces(traces))


def test_options_of_a_build_from_a_table_of_spark_name_its_function() -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    words = (
        "traces: `extend`, `dedupe` and tables of labels of a Spark DataFrame are options of `eval_set_from_inference_"
    )
    with pytest.raises(EvalSetError, match=f"^{words}"):
        eval_set_from_traces(frame, dedupe="id")


def test_no_traces_at_all(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match="no traces found"):
        eval_set_from_traces(pd.DataFrame({"request": ["Hi"], "response": ["Hello"]}))
    with pytest.raises(EvalSetError, match="no-such-file"):
        eval_set_from_traces(tmp_path / "no-such-file.jsonl")


@pytest.mark.parametrize("name", ["golden.csv", "evaluation.json"])
def test_files_of_conversations_hold_no_traces(samples: Path, name: str) -> None:
    with pytest.raises(EvalSetError, match="no traces found"):
        eval_set_from_traces(samples / name)


@pytest.mark.parametrize("text", ['{"info": null, "data": {}, "spans": false}', '{"data": {"spans": 3}, "spans": [2]}'])
def test_spans_that_are_no_list_are_left_out_wherever_they_stand(text: str) -> None:
    trace = decode_trace(text)
    assert isinstance(trace, Trace)
    assert [note.rule.code for note in trace.notes] == ["AE603"] * len(trace.notes) != []
    assert trace.spans == []
