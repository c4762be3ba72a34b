"""The canonical row: EvalRow and its parts, and the tables of columns derived from it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pyarrow as pa
from msgspec import UNSET, Meta, Struct, UnsetType

NonBlank = Annotated[str, Meta(pattern=r"\S", description="text that is not blank")]

Count = Annotated[int, Meta(ge=0, le=2**63 - 1, description="a whole number that fits 64 bits")]

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]


class ContentPart(Struct):
    """One part of a message whose content is a list (text, image, audio, file); other keys depend on `type`."""

    type: NonBlank
    text: str | None = None


class FunctionCall(Struct):
    """The function that an assistant message asks to be called; `arguments` is JSON text (an object is accepted)."""

    name: NonBlank
    arguments: str | dict[str, Any] | None = None


class MessageToolCall(Struct):
    """One entry of an assistant message's `tool_calls`."""

    function: FunctionCall
    id: str | None = None
    type: str | None = None


class Message(Struct):
    """One message of a chat, after the OpenAI chat completion schema; other keys are kept as they are."""

    role: Role
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[MessageToolCall] | None = None
    tool_call_id: str | None = None


class RequestObject(Struct):
    """A request that is an object: a whole chat in `messages`, or the newest `query` and the `history` before it."""

    messages: list[Message] | UnsetType = UNSET
    query: str | UnsetType = UNSET
    history: list[Message] | None = None


class Document(Struct, forbid_unknown_fields=True, gc=False):
    """One retrieved chunk: `doc_uri` identifies the parent document, `content` is its text in any format."""

    doc_uri: NonBlank
    content: str | None = None


class ToolCall(Struct, forbid_unknown_fields=True, gc=False):
    """One step of a trajectory: the tool's name and its input, an object (absent means no arguments)."""

    tool_name: NonBlank
    tool_input: dict[str, Any] | None = None


Contexts = list[Document]
Trajectory = list[ToolCall]
Facts = list[NonBlank]
Guidelines = list[NonBlank] | dict[str, list[NonBlank]]


class EvalRow(Struct):
    """A canonical row as JSON: what `normalize_eval_set` gives. Absent is null; an empty list is a value."""

    request: dict[Literal["messages"], list[Message]]
    request_id: str | None = None
    response: str | None = None
    expected_response: str | None = None
    expected_facts: Facts | None = None
    guidelines: dict[str, list[NonBlank]] | None = None
    expected_retrieved_context: Contexts | None = None
    retrieved_context: list[dict[Literal["doc_uri", "content"], str | None]] | None = None
    trace: str | None = None
    predicted_trajectory: Trajectory | None = None
    reference_trajectory: Trajectory | None = None
    input_token_count: Count | None = None
    output_token_count: Count | None = None
    total_token_count: Count | None = None
    latency_seconds: float | None = None
    failure: bool | None = None
    error: str | None = None
    session_id: str | None = None
    custom_expected: dict[str, Any] | None = None
    tags: dict[str, str] | None = None


DOCUMENT = pa.struct([("doc_uri", pa.string()), ("content", pa.string())])
TOOL_CALL = pa.struct([("tool_name", pa.string()), ("tool_input", pa.string())])

ROW_SCHEMA = pa.schema(
    [
        ("request_id", pa.string()),
        ("request", pa.string()),
        ("response", pa.string()),
        ("expected_response", pa.string()),
        ("expected_facts", pa.list_(pa.string())),
        ("guidelines", pa.map_(pa.string(), pa.list_(pa.string()))),
        ("expected_retrieved_context", pa.list_(DOCUMENT)),
        ("retrieved_context", pa.list_(DOCUMENT)),
        ("trace", pa.string()),
        ("predicted_trajectory", pa.list_(TOOL_CALL)),
        ("reference_trajectory", pa.list_(TOOL_CALL)),
        ("input_token_count", pa.int64()),
        ("output_token_count", pa.int64()),
        ("total_token_count", pa.int64()),
        ("latency_seconds", pa.float64()),
        ("failure", pa.bool_()),
        ("error", pa.string()),
        ("session_id", pa.string()),
        ("custom_expected", pa.string()),
        ("tags", pa.map_(pa.string(), pa.string())),
    ]
)
"""The normalised columns in Arrow and Parquet. JSON text where a cell has no fixed shape."""

COLUMNS: tuple[str, ...] = tuple(ROW_SCHEMA.names)

JSON_COLUMNS = ("request", "custom_expected")
"""Columns whose Arrow form is JSON text and whose Python form is an object."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"
REF = "#/$defs/{name}"
