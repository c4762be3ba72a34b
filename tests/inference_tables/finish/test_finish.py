"""What is not written anew must be what would have been written: plain chats, whole trace columns, large texts."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from agent_eval_schema import eval_set_from_inference_table
from agent_eval_schema.cells.arrow import pack, text_array
from agent_eval_schema.cells.notes import with_plain_requests
from agent_eval_schema.decoding import requests
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.finish.finish import finish_plan
from agent_eval_schema.inference_tables.plan import BuildPlan
from agent_eval_schema.schema import ROW_SCHEMA
from agent_eval_schema.text.jsontext import encode
from agent_eval_schema.validation.checked_batch import rows_of, verdict
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report_builder import ReportBuilder
from tests.helpers.inference_tables import ANSWERED, convert_one, logged

USER = {"role": "user", "content": "How many days?"}
SYSTEM = {"role": "system", "content": 'Be brief. \u2028 "now" \\ \x7f'}
BODIES = {
    "plain": {"messages": [USER]},
    "system first": {"messages": [SYSTEM, USER]},
    "keys in another order": {"messages": [{"content": "How many days?", "role": "user"}]},
    "said twice": {"messages": [USER, USER]},
    "a tool answers": {"messages": [{"role": "tool", "content": "80", "tool_call_id": "c"}, USER]},
    "ends with the assistant": {"messages": [USER, {"role": "assistant", "content": "80"}]},
    "blank": {"messages": [{"role": "user", "content": " "}]},
    "blank at the end": {"messages": [USER, {"role": "user", "content": " "}]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
    "history": {"query": "And then?", "history": [USER]},
    "a name": {"messages": [{**USER, "name": "Jo"}]},
    "null content": {"messages": [{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]}]},
    "unknown role": {"messages": [{"role": "usr", "content": "Hi"}]},
    "NUL": {"messages": [{"role": "user", "content": "a\0b"}]},
}


def checked(cells: list[str | None], known: list[bool] | None = None) -> pa.RecordBatch:
    """The cells checked as requests of answered rows; `known` says which are plain chats."""
    arrays = [pa.array(cells, pa.string()), pa.array(["80"] * len(cells))]
    batch = pa.RecordBatch.from_arrays(arrays, names=["request", "response"])
    given = batch if known is None else with_plain_requests(batch, pa.array(known))
    return check_batch(given, finish_plan(BuildPlan(family="ai_gateway")))


def requests_and_issues(batch: pa.RecordBatch) -> tuple[list[Any], list[Any]]:
    return rows_of(batch).column("request").to_pylist(), verdict(batch, "issues").to_pylist()


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("marked", [True, False])
def test_a_request_of_ours_is_judged_and_written_as_if_it_were_looked_at(
    name: str, marked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = convert_one(logged(request=BODIES[name], response=ANSWERED))
    cells = [record["request"]]
    quickly = requests_and_issues(checked(cells, [record["plain_request"]] if marked else None))
    monkeypatch.setattr(requests, "_plain_chat", lambda *_: None)
    assert quickly == requests_and_issues(checked(cells))


def test_which_requests_are_plain_is_known_when_they_are_converted() -> None:
    plain = {n: convert_one(logged(request=b, response=ANSWERED))["plain_request"] for n, b in BODIES.items()}
    plain["a list of messages"] = convert_one(logged(request={"input": [USER]}, response=ANSWERED))["plain_request"]
    plain["a question"] = convert_one(logged(request={"query": "Hi?"}, response=ANSWERED))["plain_request"]
    assert [n for n, p in plain.items() if p] == [
        *("plain", "system first", "keys in another order", "history", "NUL", "a list of messages", "a question")
    ]


@pytest.mark.parametrize("marked", [True, False])
def test_a_plain_chat_among_others_is_judged_as_alone(marked: bool) -> None:
    cells = [encode(body).decode() for body in BODIES.values()]
    alone = [requests_and_issues(checked([cell])) for cell in cells]
    known = [False, *map(requests.is_plain_chat, cells)] if marked else None
    together = requests_and_issues(checked([None, *cells], known))
    assert [([r], [i]) for r, i in zip(*together, strict=True)][1:] == alone


def test_a_request_that_a_redaction_wrote_is_looked_at() -> None:
    bodies = [{"messages": [{"role": "user", "content": said}]} for said in ("a", "b")]
    table = [logged(request=body, response=ANSWERED, databricks_request_id=str(i)) for i, body in enumerate(bodies)]
    build = eval_set_from_inference_table(table, redact=lambda text: text.replace("a", " "))
    assert (build.rows["request_id"].tolist(), build.excluded["reason"].tolist()) == (["1"], ["invalid"])


def test_the_keys_of_a_message_stay_in_their_order() -> None:
    cell = '{"messages": [{"content": "Hi", "role": "user"}]}'
    assert requests_and_issues(checked([cell]))[0] == ['{"messages":[{"content":"Hi","role":"user"}]}']


def test_a_trace_with_a_byte_that_is_not_utf8_goes_out_as_text() -> None:
    trace = b'{"info":{"trace_id":"tr-1","x":"\xff"},"data":{"spans":[]}}'
    column = pa.Array.from_buffers(pa.string(), 1, pa.array([trace]).buffers())
    batch = pa.RecordBatch.from_arrays([pa.array(["Hi"]), column], names=["request", "trace"])
    rows = rows_of(check_batch(batch, finish_plan(BuildPlan(family="ai_gateway"))))
    rows.validate(full=True)
    assert rows.schema.field("trace").type == ROW_SCHEMA.field("trace").type


@pytest.mark.parametrize("cells", [[], [None], ["", None, "é", b"\xc3\xa9"], ["a" * 9, b"b"] * 9 + [None]], ids=str)
def test_a_text_array_is_what_arrow_makes(cells: list[str | bytes | None]) -> None:
    assert text_array(cells).equals(pa.array(cells, pa.string()))


def test_a_text_array_takes_no_bytes_that_are_not_utf8() -> None:
    with pytest.raises(pa.ArrowInvalid):
        text_array([b"\xff"])


def test_the_issues_that_a_fold_keeps_do_not_keep_their_batch() -> None:
    source = open_source([{"request": " ", "response": "x"}])
    plan = make_plan(source)
    builder = ReportBuilder(source, plan)
    payload = np.frombuffer(pack(check_batch(next(source.batches()), plan), None), np.uint8).copy()
    batch = pa.ipc.open_stream(pa.py_buffer(payload)).read_next_batch()
    held = weakref.ref(payload)
    builder.add(batch)
    del payload, batch
    assert builder.take_issues()
    assert held() is None
