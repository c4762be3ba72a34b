"""Streams in every storage: joined, they give what the call would have given in one piece."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.inference_tables import ANSWER, ASKED, codes, convert_one, logged

TRACE = {"info": {"trace_id": "tr-1"}, "data": {"spans": [{"span_id": "1"}]}}


def as_sse(pieces: list[Any], *, end: str = "data: [DONE]\n\n", newline: str = "\n") -> str:
    return ("".join(f"data: {json.dumps(p)}\n\n" for p in pieces) + end).replace("\n", newline)


def as_ndjson(pieces: list[Any]) -> str:
    return "\n".join(map(json.dumps, pieces)) + "\n"


STORED = {
    "sse": as_sse,
    "sse without end": lambda p: as_sse(p, end=""),
    "sse with crlf": lambda p: as_sse(p, newline="\r\n"),
    "sse with events": lambda p: "".join(f": ping\n\nevent: x\nid: 1\ndata:{json.dumps(x)}\n\n" for x in p),
    "sse without blank lines": lambda p: "\n".join(f"data: {json.dumps(x)}" for x in p),
    "sse on many lines": lambda p: "".join(
        "".join(f"data: {line}\n" for line in json.dumps(x, indent=1).splitlines()) + "\n" for x in p
    ),
    "ndjson": as_ndjson,
    "array": json.dumps,
}


def chat(texts: list[str], finish: str | None = "stop", **last: Any) -> list[Any]:
    """The chunks of a chat completion."""
    deltas = [{"choices": [{"index": 0, "delta": {"content": t}, "finish_reason": None}]} for t in texts]
    first = {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], **last}
    return [{"object": "chat.completion.chunk", **p} for p in (first, *deltas, end)]


def agent(texts: list[str], **last: Any) -> list[Any]:
    """The chunks of a chat agent; the last may carry more."""
    pieces = [{"delta": {"role": "assistant", "content": t, "id": "m1"}} for t in texts]
    return [*pieces[:-1], {**pieces[-1], **last}]


def responses(texts: list[str], **last: Any) -> list[Any]:
    """The events of the Responses API; the finished item repeats the text."""
    item = {
        "type": "message",
        "id": "i",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "".join(texts)}],
    }
    deltas = [{"type": "response.output_text.delta", "item_id": "i", "delta": t} for t in texts]
    return [*deltas, {"type": "response.output_item.done", "item": item}, {"type": "response.completed", **last}]


KINDS = {"chat": chat, "agent": agent, "responses": responses}
PIECES = ["Full-time staff get ", "16 weeks ", "(80 working days) of paid parental leave."]


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_is_joined_with_its_trace_and_usage(kind: str, stored: str) -> None:
    last = {"databricks_output": {"trace": TRACE}}
    record = convert_one(logged(ASKED, STORED[stored](KINDS[kind](PIECES, **last))))
    assert (record["reason"], record["response"], codes(record)) == (None, ANSWER, ["AE709"])
    assert json.loads(record["trace"]) == TRACE


@settings(max_examples=150)
@given(
    st.lists(st.text(min_size=1), min_size=1, max_size=6),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(sorted(STORED)),
)
def test_a_stream_joined_is_the_form_in_one_piece(texts: list[str], kind: str, stored: str) -> None:
    whole = {"choices": [{"message": {"role": "assistant", "content": "".join(texts)}}]}
    texts = [*texts, "."] if kind == "agent" and texts[-1] == "".join(texts[:-1]) else texts
    whole["choices"][0]["message"]["content"] = "".join(texts)
    one, joined = (convert_one(logged(ASKED, r)) for r in (whole, STORED[stored](KINDS[kind](texts))))
    differing = {"notes", "content_hash"}
    assert {k: v for k, v in one.items() if k not in differing} == {
        k: v for k, v in joined.items() if k not in differing
    }


def test_a_final_piece_that_repeats_the_text_does_not_double_it() -> None:
    whole = {"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
    repeated = {"choices": [{"delta": {"content": ANSWER}, "finish_reason": "stop"}]}
    for last in ({"choices": [whole]}, repeated):
        assert convert_one(logged(ASKED, as_sse([*chat(PIECES)[:-1], last])))["response"] == ANSWER
    assert convert_one(logged(ASKED, as_sse(agent([*PIECES, ANSWER]))))["response"] == ANSWER
    output = [{"role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}]
    events = responses(PIECES, response={"output": output, "usage": {"input_tokens": 1, "output_tokens": 2}})
    record = convert_one(logged(ASKED, as_sse(events)))
    assert (record["response"], record["total_token_count"]) == (ANSWER, 3)


def test_tokens_and_tool_calls_of_a_stream() -> None:
    calls = [
        {"index": 0, "id": "c", "function": {"name": "search", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"q":'}},
        {"index": 0, "function": {"arguments": ' "leave"}'}},
    ]
    chunks = [{"choices": [{"delta": {"tool_calls": [c]}}]} for c in calls]
    usage = {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3}}
    record = convert_one(logged(ASKED, as_sse([*chunks, *chat(PIECES), usage])))
    assert record["predicted_trajectory"] == [{"tool_name": "search", "tool_input": '{"q":"leave"}'}]
    assert (record["response"], record["total_token_count"]) == (ANSWER, 5)


def test_the_pieces_of_a_text_completion_are_one_answer() -> None:
    pieces = [{"object": "text_completion", "choices": [{"index": 0, "text": text}]} for text in PIECES]
    record = convert_one(logged({"prompt": "How long?"}, as_sse(pieces)))
    assert (record["reason"], record["response"]) == (None, ANSWER)


@pytest.mark.parametrize("content", [{"content": [{"type": "text", "text": PIECES[0]}]}, {"content": PIECES[0]}, {}])
@pytest.mark.parametrize("piece", [{"text": ANSWER}, {"delta": {"content": [{"type": "text", "text": ANSWER}]}}])
def test_a_piece_after_a_whole_message_is_added_to_its_text(content: dict[str, Any], piece: dict[str, Any]) -> None:
    pieces = [{"choices": [{"message": {"role": "assistant", **content}}]}, {"choices": [piece]}]
    record = convert_one(logged(ASKED, as_sse(pieces)))
    assert (record["reason"], record["response"]) == (None, (PIECES[0] if content else "") + ANSWER)


def test_a_piece_that_is_no_object_makes_a_stream_partial() -> None:
    record = convert_one(logged(ASKED, as_sse([*chat(PIECES)[:2], 5, *chat(PIECES)[2:]])))
    assert record["detail"].startswith("response: piece 3 of 6: expected an object, got the number 5")


def test_tool_calls_of_an_agent_come_in_several_pieces() -> None:
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    pieces = [{"delta": {"role": "assistant", "id": "m1", "content": None, "tool_calls": [call]}} for call in calls]
    record = convert_one(logged(ASKED, as_sse([*pieces, *agent(PIECES)])))
    assert [call["tool_name"] for call in record["predicted_trajectory"]] == ["a", "b"]
    assert record["response"] == ANSWER


def test_an_entry_of_tool_calls_that_is_no_object_costs_no_other() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "search", "arguments": "{}"}}
    delta = {"choices": [{"delta": {"tool_calls": [None, "search", call]}}]}
    record = convert_one(logged(ASKED, as_sse([delta, *chat(PIECES)])))
    assert [call["tool_name"] for call in record["predicted_trajectory"]] == ["search"]


@pytest.mark.parametrize("key", ["messages", "output"])
def test_the_whole_answer_of_an_agent_replaces_its_pieces(key: str) -> None:
    whole = {key: [{"type": "message", "role": "assistant", "content": ANSWER}]}
    assert convert_one(logged(ASKED, as_sse([*agent(PIECES[:1]), whole])))["response"] == ANSWER


@pytest.mark.parametrize("unusual", [{"response": "odd"}, {"response": {"databricks_output": "odd"}}])
def test_the_trace_of_a_piece_with_an_unusual_key_is_read(unusual: dict[str, Any]) -> None:
    last = {**unusual, "databricks_output": {"trace": TRACE}}
    assert json.loads(convert_one(logged(ASKED, as_sse(chat(PIECES, **last))))["trace"]) == TRACE


def test_an_unusual_output_without_a_trace_is_none() -> None:
    last = {"databricks_output": {"databricks_request_id": 7, "trace": None}}
    record = convert_one(logged(ASKED, as_sse(chat(PIECES, **last))))
    assert (record["reason"], record["response"], record["trace"]) == (None, ANSWER, None)


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (
            as_sse([*chat(PIECES)[:-1], {"error": {"message": "overloaded"}}], end=""),
            "the stream ends in an error: 'overloaded'",
        ),
        (as_sse([*chat(PIECES)[:-1], {"error_code": "INTERNAL", "message": "x"}]), "the stream ends in an error: 'x'"),
        (as_sse(chat(PIECES)[:-1], end=""), "the stream has no end"),
        (as_sse(chat(PIECES), end="")[:-40], "piece 5 of 5: expected JSON, got malformed text"),
        (as_ndjson(chat(PIECES))[:-40], "piece 5 of 5: expected JSON, got malformed text"),
        (json.dumps(responses(PIECES)[:-2]), "the stream has no end"),
        (
            as_sse([*responses(PIECES)[:-1], {"type": "response.failed", "response": {"error": {"message": "y"}}}]),
            "the stream ends with response.failed: 'y'",
        ),
        (as_sse([*responses(PIECES)[:1], {"type": "error", "message": "z"}]), "the stream ends in an error: 'z'"),
        ("data: [DONE", "piece 1 of 1"),
        (": ping\n\n", "the stream holds no piece of an answer"),
    ],
)
def test_a_stream_that_breaks_off_is_partial(response: str, said: str) -> None:
    record = convert_one(logged(ASKED, response))
    assert record["reason"] == "partial"
    assert record["detail"].startswith(f"response: {said}")
    assert record["response"] == response


def test_a_stream_that_ends_without_a_reason_has_none() -> None:
    record = convert_one(logged(ASKED, as_sse([*responses(PIECES)[:-1], {"type": "response.failed"}])))
    assert record["detail"].startswith("response: the stream ends with response.failed")
    assert "response.failed:" not in record["detail"]


def test_a_partial_answer_that_is_kept_is_told() -> None:
    record = convert_one(logged(ASKED, as_sse(chat(PIECES)[:-1], end="")), kept=frozenset({"partial"}))
    assert (record["reason"], record["response"], codes(record)) == (None, ANSWER, ["AE709", "AE712"])


def test_a_truncated_trace_stays() -> None:
    """Its warning (AE609) comes with the check of the finished row."""
    trace = {"is_truncated": True, "steps": []}
    record = convert_one(logged(ASKED, as_sse(chat(PIECES, databricks_output={"trace": trace}))))
    assert (record["reason"], json.loads(record["trace"])) == (None, trace)


@pytest.mark.parametrize("response", [[{"content": ANSWER}], [ANSWER], [{"role": "assistant", "content": ANSWER}]])
def test_a_list_of_answers_is_no_stream(response: Any) -> None:
    record = convert_one(logged(ASKED, response))
    assert (record["response"], codes(record)) == (ANSWER, [])


def test_an_object_on_many_lines_is_no_stream() -> None:
    text = json.dumps({"choices": [{"message": {"content": ANSWER}}]}, indent=2)
    assert convert_one(logged(ASKED, text))["response"] == ANSWER


def test_many_lines_of_nonsense_take_no_time() -> None:
    record = convert_one(logged(ASKED, "data: x\n" * 150_000))
    assert record["reason"] == "partial"
