"""What only the trace of a row contains: the tools that its models were offered, when it ran, and whether a prompt
contains the ground truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.similarity.shingles import contained, content_text, normalized
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.reading import Reading, attributes
from agent_eval_schema.traces.spans import NOTHING, Trace, value_of

SYSTEM_PROMPT, EARLIER_MESSAGE = "the system prompt", "an earlier message of the prompt"


class Traced(Struct, frozen=True):
    """What a trace contains: names of tools, the start in microseconds since 1970 UTC, and where in a prompt the ground
    truth is word for word."""

    tools: tuple[str, ...] = ()
    moment: int | None = None
    in_prompt: str | None = None


def read_trace(text: str, truths: Sequence[str], retrieved: Sequence[str]) -> Traced:
    """What a trace contains. A ground truth that a `retrieved` document contains may be in the prompt."""
    trace = decode_trace(text)
    if not isinstance(trace, Trace):
        return Traced()
    reading = Reading(trace)
    spans = reading.models if reading.root is None else [*reading.models, reading.root]
    prompts = [value_of(attributes(span).inputs) for span in spans]
    prompts = [p for p in prompts if isinstance(p, dict)]
    tools = [name for p in prompts for name in tool_names(p.get("tools"))]
    tools += _named_in_spans(text) if "mlflow.chat.tools" in text else []
    start = None if reading.root is None else reading.root.start
    in_prompt = _place(prompts, truths, retrieved) if truths else None
    return Traced(tuple(dict.fromkeys(tools)), None if start is None else start // 1_000, in_prompt)


def _place(prompts: list[dict[str, Any]], truths: Sequence[str], retrieved: Sequence[str]) -> str | None:
    documents = normalized(retrieved)
    hidden = [t for t, at in zip(truths, contained(truths, documents), strict=True) if not at]
    for place, texts in ((SYSTEM_PROMPT, _system(prompts)), (EARLIER_MESSAGE, _earlier(prompts))):
        if hidden and any(contained(hidden, normalized(list(texts)))):
            return place
    return None


def _system(prompts: list[dict[str, Any]]) -> Iterator[str]:
    for messages in map(_messages, prompts):
        yield from (content_text(m.get("content")) for m in messages if m.get("role") in ("system", "developer"))


def _earlier(prompts: list[dict[str, Any]]) -> Iterator[str]:
    """The messages before the last one of the user."""
    for messages in map(_messages, prompts):
        last = max((i for i, m in enumerate(messages) if m.get("role") == "user"), default=0)
        yield from (content_text(m.get("content")) for m in messages[:last] if m.get("role") in ("user", "assistant"))


def _messages(prompt: dict[str, Any]) -> list[dict[str, Any]]:
    messages = prompt.get("messages")
    return [m for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []


def tool_names(tools: Any) -> list[str]:
    """The names in the definitions of tools, as a request to a chat model has them."""
    functions = [t.get("function", t) for t in tools if isinstance(t, dict)] if isinstance(tools, list) else []
    return [f["name"] for f in functions if isinstance(f, dict) and isinstance(f.get("name"), str)]


# ---------------------------------------------------------------------------------------------------------------------
# definitions that are beside the inputs of a model
class _Attributes(Struct, rename={"tools": "mlflow.chat.tools"}, gc=False):
    tools: Raw = NOTHING


class _Span(Struct, gc=False):
    attributes: _Attributes | str | None = None


class _Data(Struct, gc=False):
    spans: list[_Span] = []


class _Document(Struct, gc=False):
    data: _Data | None = None
    spans: list[_Span] = []


_document = jsontext.decoder(_Document)


def _named_in_spans(text: str) -> list[str]:
    try:
        document = _document(text)
    except msgspec.MsgspecError:
        return []
    spans = [*document.spans, *(document.data.spans if document.data else ())]
    tools = [s.attributes.tools for s in spans if isinstance(s.attributes, _Attributes)]
    found = [value_of(t) for t in tools if t is not NOTHING]
    return [name for value in found for name in tool_names(value)]
