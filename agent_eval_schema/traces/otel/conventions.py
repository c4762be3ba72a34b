"""CONVENTIONS: which attribute of a span holds what, one table per naming convention.

A span is read by the attributes that it has, never by its scope or its file: one trace often has spans of several
conventions, and one span attributes of two. Of several attributes that hold the same, the first one with a value
counts, in the order of the table. `gen_ai.prompt.N` is a list that is flattened into one attribute per leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

from agent_eval_schema.runtime.tables import packaged
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.otel.values import unwrapped_input, unwrapped_output

Read = Callable[[Any], Any]


Tokens = Literal["input_tokens", "output_tokens", "total_tokens", "usage"]
Field = Literal[
    "inputs", "outputs", "documents", "documents_by_id", "tool", Tokens, "session", "system", "level", "message"
]
FIELDS: tuple[Field, ...] = get_args(Field)
"""What the attributes of a span may hold, besides its kind."""


class Convention(Struct, frozen=True, forbid_unknown_fields=True):
    """A naming convention of span attributes, in `conventions.json`. `kinds` has the attributes that hold the kind
    of a span, with the type of each kind as MLflow calls it; `names` the types of spans that are known by the
    beginning of their name."""

    name: str
    title: str
    url: str
    kinds: Mapping[str, Mapping[str, str]] = {}
    names: Mapping[str, str] = {}
    fields: Mapping[Field, tuple[str, ...]] = {}


_WRAPPED_INPUT = (b'inputs\\"', b'input_str\\"', b'args\\"')
_WRAPPED_OUTPUT = (b'outputs\\"', b'output\\"')
"""How a key of each object ends that is unwrapped, in JSON text within a text."""


# ---------------------------------------------------------------------------------------------------------------------
# values that are made plain
def _flattened_documents(value: Any) -> Any:
    """`retrieval.documents.N.document.{id, content, metadata}`: the URI of a LangChain document is in its metadata."""
    documents = []
    for item in value if isinstance(value, list) else []:
        inner = item.get("document") if isinstance(item, dict) else None
        fields = {k: jsontext.structured(v) for k, v in inner.items()} if isinstance(inner, dict) else {}
        metadata = fields["metadata"] if isinstance(fields.get("metadata"), dict) else {}
        if "id" in fields and metadata.get("doc_uri") is None and isinstance(fields["id"], str):
            metadata = {**metadata, "doc_uri": fields["id"]}
        documents.append({"page_content": _as_text(fields.get("content")), "metadata": metadata})
    return documents or None


def _as_text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else jsontext.encode(value).decode()


def _flattened_messages(value: Any) -> Any:
    """`llm.input_messages.N.message.{role, content, contents, tool_calls}` as messages of OpenAI."""
    items = value if isinstance(value, list) else []
    messages = [_flattened_message(item.get("message", item)) for item in items if isinstance(item, dict)]
    return {"messages": messages} if messages else None


def _flattened_message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    flat = {k: message[k] for k in ("role", "content", "name", "tool_call_id") if k in message}
    parts, texts = message.get("contents"), flat.get("content")
    if isinstance(texts, list):  # of the Claude Agent SDK
        flat["content"] = "".join(text for text in texts if isinstance(text, str))
    if "content" not in flat and isinstance(parts, list):
        inner = [p.get("message_content", p) for p in parts if isinstance(p, dict)]
        texts = [p["text"] for p in inner if isinstance(p, dict) and isinstance(p.get("text"), str)]
        flat["content"] = "".join(texts)
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        flat["tool_calls"] = [_flattened_call(c.get("tool_call", c)) for c in calls if isinstance(c, dict)]
    flat.setdefault("role", "assistant")
    flat.setdefault("content", None)
    return flat


def _flattened_call(call: Any) -> Any:
    function = call.get("function", call) if isinstance(call, dict) else {}
    function = function if isinstance(function, dict) else {}
    identity = {"id": call["id"]} if isinstance(call, dict) and isinstance(call.get("id"), str) else {}
    named = {"name": _as_text(function.get("name")), "arguments": _as_text(function.get("arguments"))}
    return {**identity, "type": "function", "function": named}


def _arguments_of_smolagents(value: Any) -> Any:
    """The task of an agent of smolagents, among the other arguments of its run, and the named arguments of a tool."""
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("task"), str) and "reset" in value:
        return value["task"]
    return value["kwargs"] if "sanitize_inputs_outputs" in value and value.get("kwargs") else value


def _retriever_output(value: Any) -> Any:
    """Documents with their count; the outputs of other tasks are no documents."""
    value = unwrapped_output(value)
    return value.get("documents") if isinstance(value, dict) else None


# ---------------------------------------------------------------------------------------------------------------------
# the tables
CONVENTIONS = packaged(__package__, "conventions.json", tuple[Convention, ...])
"""In the order in which their attributes count, which is that of MLflow's translators."""

_READERS: dict[tuple[str, str], tuple[Read, tuple[bytes, ...]]] = {
    ("inputs", "llm.input_messages.N"): (_flattened_messages, ()),
    ("inputs", "input.value"): (_arguments_of_smolagents, (b'\\"reset', b"sanitize_inputs_outputs")),
    ("inputs", "gen_ai.tool.call.arguments"): (unwrapped_input, _WRAPPED_INPUT),
    ("inputs", "traceloop.entity.input"): (unwrapped_input, _WRAPPED_INPUT),
    ("inputs", "gen_ai.prompt.N"): (_flattened_messages, ()),
    ("outputs", "llm.output_messages.N"): (_flattened_messages, ()),
    ("outputs", "traceloop.entity.output"): (unwrapped_output, _WRAPPED_OUTPUT),
    ("outputs", "gen_ai.completion.N"): (_flattened_messages, ()),
    ("documents", "retrieval.documents.N"): (_flattened_documents, ()),
    ("documents", "traceloop.entity.output"): (_retriever_output, ()),
}
"""The function that makes a value plain, and its marks, by field and attribute; the others are plain."""


# ---------------------------------------------------------------------------------------------------------------------
# the tables by attribute
class Entry(Struct, frozen=True):
    """What an attribute holds: the field, its rank among the attributes of the field, and the function that makes its
    value plain, if it has to be; a JSON text that has none of the `marks` is plain already. For a flattened list,
    `prefix` is the part of the name before the place."""

    field: str
    rank: int
    prefix: str | None = None
    read: Read | None = None
    marks: tuple[bytes, ...] = ()
    kinds: Mapping[str, str] | None = None
    kinds_as_json: Mapping[bytes, str] = {}


def _entries() -> dict[str, list[Entry]]:
    by_name: dict[str, list[Entry]] = {}
    for place, convention in enumerate(CONVENTIONS):
        for rank, (name, kinds) in enumerate(convention.kinds.items(), place * 100):
            as_json = {f'"{kind}"'.encode(): mlflow_kind for kind, mlflow_kind in kinds.items()}
            by_name.setdefault(name, []).append(Entry("kind", rank, kinds=kinds, kinds_as_json=as_json))
        for field, attributes in convention.fields.items():
            for rank, attribute in enumerate(attributes, place * 100):
                name = attribute.removesuffix(".N")
                prefix, read = None if name == attribute else name, _READERS.get((field, attribute), ())
                by_name.setdefault(name, []).append(Entry(field, rank, prefix, *read))
    return by_name


ENTRIES = {name: tuple(entries) for name, entries in _entries().items()}
"""What each attribute holds, by its name; a flattened list by the part of it before the place."""

PREFIXES = tuple(name for name, entries in ENTRIES.items() if entries[0].prefix)
NAMES = tuple((start, kind) for convention in CONVENTIONS for start, kind in convention.names.items())

MARKS = (b"gen_ai.", b"openinference.", b"traceloop.", b"gcp.vertex.agent.", b"ai.operationId", b"langfuse.")
"""What occurs in the text of a trace whose spans have attributes of a convention."""

MERGED_TOOLS = "(merged tools)"
"""The name of a span that repeats parallel calls of the ADK: it is not a call."""
