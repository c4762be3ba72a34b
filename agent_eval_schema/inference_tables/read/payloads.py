"""The content of a logged payload: the request, the response, or why it cannot be read.

    request_payloads.py    {messages} · {input} · {query, history} · "text"  → messages
    wrapped_records.py     {dataframe_records | dataframe_split | inputs | instances}  → one record per row of them
    response_payloads.py   {choices} · {messages} · {output: [items]} · {predictions} · "text" · [{content}]  → text
                           {databricks_output: {trace}}  → the trace's JSON text, unchanged
    streams.py             a stream  → the response in one piece

Two speeds: the most common bodies are decoded directly into Structs with only the necessary fields; all others are
decoded generically and read by decoding/chat.py.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.rules.reading import LONE_SURROGATE, NAN_LITERAL
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.reading import Tokens


class Broken(Struct, frozen=True):
    """A payload that cannot be read, or not be split into records: the reason it is excluded for, and why."""

    reason: str
    detail: str


class Asked(Struct, gc=False):
    """The request: the canonical request, and the values next to it. `question` is the same for the same request in
    every format; `plain` is true if validation will find no issue in it. `inputs` is the whole body, if it has more
    keys than the request. `records` are the calls of a batch, which has no request of its own."""

    request: bytes | None = None
    inputs: bytes | None = None
    question: bytes | None = None
    plain: bool = False
    session_id: str | None = None
    tags: dict[str, str] | None = None
    findings: list[Finding] = field(default_factory=list)
    records: list[Any] | None = None


class Answered(Struct, gc=False):
    """The response. `outputs` is the whole body, if the text and the columns contain less; `trace` is the text inside
    databricks_output; `value` is the result of a wrapped call; `partial` and `error` are the reason why a stream ended
    early, and the error that was returned instead."""

    text: str | None = None
    outputs: bytes | None = None
    trace: bytes | None = None
    tokens: Tokens | None = None
    calls: list[tuple[str, dict[str, Any] | None]] | None = None
    request_id: str | None = None
    partial: str | None = None
    error: str | None = None
    value: Any = None
    findings: list[Finding] = field(default_factory=list)


def parse_payload(text: bytes, column: str) -> tuple[Any, list[Finding], str]:
    """The value of a payload; the corrections in it; why it cannot be read."""
    value = jsontext.parse(text)
    if not isinstance(value, jsontext.Malformed):
        return value, [], ""
    if value.rule in (NAN_LITERAL, LONE_SURROGATE):
        read = jsontext.parse_leniently(text.decode("utf-8", "replace"))
        if not isinstance(read, str) or text.lstrip().startswith(b'"'):
            return read, [Finding(rules.NONSTANDARD_JSON, value.message, column)], ""
    return None, [], value.message
