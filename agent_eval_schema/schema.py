"""The canonical row: EvalRow and its parts, and the tables of columns derived from it."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, get_args, get_type_hints

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
    """The function that an assistant message calls; `arguments` is JSON text (an object is accepted)."""

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


OTHER_KEYS = "other_keys"
"""The field of a document or call that holds its unknown keys in Arrow, as the JSON text of an object. In Python and
JSON they are among its own keys, where the source has them."""


class Document(Struct, forbid_unknown_fields=True, gc=False):
    """One retrieved chunk: `doc_uri` identifies the parent document, `content` is its text in any format."""

    doc_uri: NonBlank
    content: str | None = None
    other_keys: str | None = None


class ToolCall(Struct, forbid_unknown_fields=True, gc=False):
    """One step of a trajectory: the tool's name and its input, an object (absent means no arguments)."""

    tool_name: NonBlank
    tool_input: dict[str, Any] | None = None
    other_keys: str | None = None


Contexts = list[Document]
Trajectory = list[ToolCall]
Facts = list[NonBlank]
Guidelines = list[NonBlank] | dict[str, list[NonBlank]]


ChatRequest = dict[Literal["messages"], list[Message]]
NamedGuidelines = dict[str, list[NonBlank]]
RetrievedContext = list[dict[Literal["doc_uri", "content"], str | None]]
JsonObject = dict[str, Any]
JsonValue = Annotated[Any, Meta(description="any JSON value")]
Tags = dict[str, str]


# This is where a canonical column is declared: every table of columns follows from the names and types here. (It is no
# part of the docstring, which JSON Schema shows.)
class EvalRow(Struct, kw_only=True):
    """A canonical row as JSON: what `normalize_eval_set` gives. Absent is null; an empty list is a value.

    `inputs`, `outputs` and `expectations` hold the source's own values where request, response and the expected_*
    columns, which metrics read, contain less; else they are null.
    """

    request_id: str | None = None
    request: ChatRequest
    response: str | None = None
    expected_response: str | None = None
    expected_facts: Facts | None = None
    guidelines: NamedGuidelines | None = None
    expected_retrieved_context: Contexts | None = None
    retrieved_context: RetrievedContext | None = None
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
    custom_expected: JsonObject | None = None
    tags: Tags | None = None
    inputs: JsonValue | None = None
    outputs: JsonValue | None = None
    expectations: JsonValue | None = None


DOCUMENT = pa.struct([("doc_uri", pa.string()), ("content", pa.string()), (OTHER_KEYS, pa.string())])
TOOL_CALL = pa.struct([("tool_name", pa.string()), ("tool_input", pa.string()), (OTHER_KEYS, pa.string())])

_ARROW_TYPES = (
    (str, pa.string()),
    (ChatRequest, pa.string()),
    (JsonObject, pa.string()),
    (JsonValue, pa.string()),
    (Facts, pa.list_(pa.string())),
    (NamedGuidelines, pa.map_(pa.string(), pa.list_(pa.string()))),
    (Contexts, pa.list_(DOCUMENT)),
    (RetrievedContext, pa.list_(DOCUMENT)),
    (Trajectory, pa.list_(TOOL_CALL)),
    (Count, pa.int64()),
    (float, pa.float64()),
    (bool, pa.bool_()),
    (Tags, pa.map_(pa.string(), pa.string())),
)
"""What each type of EvalRow is in Arrow and Parquet: JSON text where a cell has no fixed shape."""


def _without_none(hint: Any) -> Any:
    """The type of an optional field."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if type(None) in get_args(hint) else hint


COLUMN_TYPES: dict[str, Any] = {
    name: next(kind for kind, _ in _ARROW_TYPES if kind == _without_none(hint))
    for name, hint in get_type_hints(EvalRow, include_extras=True).items()
}
"""The canonical columns and the types of their cells."""

COLUMNS: tuple[str, ...] = tuple(COLUMN_TYPES)

COLUMN_DESCRIPTIONS: dict[str, str] = {
    "request_id": "The unique ID of the row.",
    "request": 'The chat up to the question: `{"messages": [...]}` after the OpenAI chat schema.',
    "response": "The answer of the agent.",
    "expected_response": "The ground truth as a string: the minimal facts of a correct answer.",
    "expected_facts": "The ground truth as a list of facts, instead of `expected_response`.",
    "guidelines": "Named lists of guidelines that the answer must follow.",
    "expected_retrieved_context": 'The documents that the agent must retrieve: a list of `{"doc_uri", "content"}`.',
    "retrieved_context": 'The documents that the agent retrieved: a list of `{"doc_uri", "content"}`.',
    "trace": "The MLflow trace of the call, as a JSON string.",
    "predicted_trajectory": 'The tool calls of the agent, in order: a list of `{"tool_name", "tool_input"}`.',
    "reference_trajectory": 'The expected tool calls, in order: a list of `{"tool_name", "tool_input"}`.',
    "input_token_count": "The number of tokens that the models read.",
    "output_token_count": "The number of tokens that the models generated.",
    "total_token_count": "The number of tokens that the models read and generated.",
    "latency_seconds": "The duration of the call in seconds.",
    "failure": "Whether the call failed.",
    "error": "The error message of a failed call.",
    "session_id": "The ID of the conversation that the row belongs to.",
    "custom_expected": "Ground truth for custom metrics: an object with any keys.",
    "tags": "Labels of the row: an object whose values are strings.",
    "inputs": "The request as the source contains it, where `request` contains less; else null.",
    "outputs": "The response as the source contains it, where `response` contains less; else null.",
    "expectations": "The ground truth as the source contains it, where the expected columns contain less; else null.",
}
"""What each column contains."""

CANONICAL = {b"agent_eval_schema": b'{"rows": "canonical", "version": 1}'}
"""The metadata of an Arrow or Parquet schema whose rows are canonical."""

_FIELDS = [(name, arrow) for name in COLUMNS for kind, arrow in _ARROW_TYPES if kind is COLUMN_TYPES[name]]
ROW_SCHEMA = pa.schema(_FIELDS, metadata=CANONICAL)
"""The normalized columns in Arrow and Parquet."""

_OURS = frozenset(
    {
        *("request", "response", "trace", "expected_retrieved_context", "custom_expected", "latency_seconds"),
        *("predicted_trajectory", "reference_trajectory", "failure", "error"),
    }
)


def are_canonical(names: Collection[str], metadata: Mapping[bytes, bytes] | None = None) -> bool:
    """Whether rows with these columns were normalized before, whatever their other columns are: if the schema is marked
    so and there still is a request or a trace, or if they have columns that no other rows have all of."""
    is_marked = CANONICAL.items() <= (metadata or {}).items()
    return _OURS.issubset(names) or (is_marked and not {"request", "trace"}.isdisjoint(names))


def columns_of(*kinds: Any) -> tuple[str, ...]:
    """The canonical columns of these types."""
    return tuple(name for name, kind in COLUMN_TYPES.items() if kind in kinds)


DIALECT = "https://json-schema.org/draft/2020-12/schema"
REF = "#/$defs/{name}"
