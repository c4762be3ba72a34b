"""What holds for every trace: neither the order of the spans nor the lines that they are on matter, and whatever a file
holds, there is a report and no exception."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_eval_schema import eval_set_from_traces, validate_eval_set
from agent_eval_schema.traces.decode import decode_shallow, decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.spans import Trace
from tests.conftest import DATA

OTEL = DATA / "otel"
USUAL = ("genai", "google_adk", "openinference", "openllmetry_prompts", "vercel_ai", "langfuse")


@cache
def _text(name: str) -> str:
    return (OTEL / f"{name}.json").read_text(encoding="utf-8")


def _spans(name: str) -> list[dict[str, Any]]:
    document = json.loads(_text(name))
    return [s for r in document["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]


def _document(spans: list[Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _view(document: Any) -> str:
    """All that is derived, but not the places of the issues."""
    trace = decode_trace(json.dumps(document))
    assert isinstance(trace, Trace)
    derived = derive(trace)
    fields = [(f, getattr(derived, f)) for f in derived.__struct_fields__ if f not in ("notes", "inputs", "outputs")]
    return str(fields) + str(sorted(note.rule.code for note in derived.notes))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(USUAL), st.randoms(use_true_random=False))
def test_the_order_of_the_spans_does_not_matter(name: str, rng: Any) -> None:
    spans = _spans(name)
    expected = _view(_document(spans))
    rng.shuffle(spans)
    assert _view(_document(spans)) == expected


@pytest.mark.parametrize("name", [path.stem for path in sorted(OTEL.glob("*.json"))])
def test_a_validation_result_needs_no_more_than_it_reads(name: str) -> None:
    """Without values, contents of spans are left out on which nothing depends; those that are read are the same."""
    whole, part = decode_trace(_text(name)), decode_shallow(_text(name), whole=False)
    assert isinstance(whole, Trace)
    assert isinstance(part, Trace)
    expected, found = derive(whole, values=False), derive(part, values=False)
    for field in found.__struct_fields__:
        if field not in ("inputs", "outputs"):
            assert getattr(found, field) == getattr(expected, field), field


def decode_again(trace: Trace) -> Trace:
    """The same trace, whose messages and answer are read from its root span as those of MLflow are."""
    return replace(trace, messages=None, answer=None, notes=[])


@pytest.mark.parametrize("name", USUAL)
def test_what_was_read_of_the_root_is_what_its_attributes_hold(name: str) -> None:
    trace = decode_trace(_text(name))
    assert isinstance(trace, Trace)
    found, again = derive(replace(trace, notes=[])), derive(decode_again(trace))
    assert (found.request, found.response) == (again.request, again.response)


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 9))
def test_the_lines_of_the_spans_do_not_matter(rng: Any, lines: int) -> None:
    spans = [span for name in USUAL for span in _spans(name)]
    expected = eval_set_from_traces([json.loads(_text(name)) for name in USUAL]).set_index("request_id").sort_index()
    rng.shuffle(spans)
    parts: list[list[Any]] = [[] for _ in range(lines)]
    for span in spans:
        rng.choice(parts).append(span)
    found = eval_set_from_traces([_document(part) for part in parts]).set_index("request_id").sort_index()
    assert len(found) == len(USUAL)
    for column in found.columns.drop("trace"):
        assert [str(v) for v in found[column]] == [str(v) for v in expected[column]], column


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(USUAL), st.integers(0, 3))
def test_a_span_that_was_sent_twice_counts_once(name: str, place: int) -> None:
    spans = _spans(name)
    assert _view(_document([*spans, spans[place % len(spans)]])) == _view(_document(spans))


odd = st.one_of(
    *(st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=5)),
    st.sampled_from(["[]", "{}", '{"stringValue": 7}', "[[[]]]", '{"values": [1]}']).map(json.loads),
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, inner in items for place in _places(inner, (*path, key))]


@settings(max_examples=120, deadline=None)
@given(st.data(), st.sampled_from((*USUAL, "genai_events", "tempo", "jaeger", "strands_adk", "langfuse_download")))
def test_any_value_at_any_place_is_reported_and_raises_nothing(data: st.DataObject, name: str) -> None:
    document = json.loads(_text(name))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(_places(document)))
        at = document
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = data.draw(odd)
        if not isinstance(document, dict | list):
            break
    decoded = decode_trace(json.dumps(document))
    if isinstance(decoded, Trace):
        derive(decoded)
    else:
        assert decoded


@pytest.mark.parametrize("name", USUAL)
def test_parents_may_form_a_loop_or_be_missing(name: str) -> None:
    spans = _spans(name)
    expected = derive(decode_trace(json.dumps(_document(spans))))  # type: ignore[arg-type]
    for parents in (dict.fromkeys(range(len(spans)), "f" * 16), {i: spans[i - 1]["spanId"] for i in range(len(spans))}):
        odd_ones = copy.deepcopy(spans)
        for i, parent in parents.items():
            odd_ones[i]["parentSpanId"] = parent
        trace = decode_trace(json.dumps(_document(odd_ones)))
        assert isinstance(trace, Trace)
        derived = derive(trace)
        assert derived.predicted_trajectory == expected.predicted_trajectory
        assert derived.predicted_trajectory is not None


def test_models_without_a_parent_in_common_all_count() -> None:
    chats = [span for span in _spans("genai") if span["name"].startswith("chat")]
    for span in chats:
        span["parentSpanId"] = "e" * 16  # of a server whose spans are elsewhere
    trace = decode_trace(json.dumps(_document(chats)))
    assert isinstance(trace, Trace)
    derived = derive(trace)
    assert derived.token_counts == (140, 23, 163)
    assert derived.response == "Order A-1187 has shipped."
    assert derived.latency_seconds == pytest.approx(0.000651534)


COUNT = {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "9" * 40}}
CHAT = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}
IDS = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "chat"}


@pytest.mark.parametrize(
    ("document", "codes"),
    [
        (_document([{**IDS, "attributes": [CHAT, COUNT]}]), {"AE201", "AE603", "AE612"}),
        (_document([{**IDS, "attributes": [CHAT], "startTimeUnixNano": 10**40}]), {"AE201", "AE612"}),
        (_document([{**IDS, "attributes": [17]}]), {"AE201", "AE603"}),
        (_document([{**IDS, "attributes": "x"}, 17, None]), {"AE201", "AE603"}),
        (_document([17]), {"AE602"}),
        ({"resourceSpans": [17, {"scopeSpans": [None, 3]}]}, {"AE602"}),
        ({"resourceSpans": {"scopeSpans": []}}, {"AE602"}),
        ({"data": [{"traceID": "a", "spans": [{"spanID": 5, "tags": None}]}]}, {"AE201", "AE603"}),
    ],
)
def test_parts_that_cannot_be_read_are_reported(document: Any, codes: set[str]) -> None:
    assert set(validate_eval_set([document]).counts) == codes


def test_a_document_that_is_nested_too_deep_is_reported() -> None:
    opening, closing = '{"arrayValue": {"values": [' * 5000, "]}}" * 5000
    marker = {"key": "gen_ai.input.messages", "value": 0}
    text = json.dumps(_document([{**IDS, "attributes": [CHAT, marker]}]))
    assert {i.rule.code for i in _notes(text.replace('"value": 0', f'"value": {opening}{{}}{closing}'))} == {"AE004"}


def _notes(text: str) -> list[Any]:
    decoded = decode_trace(text)
    return derive(decoded).notes if isinstance(decoded, Trace) else decoded


def test_rows_without_spans_are_not_traces() -> None:
    rows = eval_set_from_traces([json.loads(_text("genai")), {"resourceMetrics": []}, {"resourceLogs": [{}]}])
    assert len(rows) == 1
