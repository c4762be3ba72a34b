"""The golden CSV: its columns, and the vendor's table of actions.

    display_name  turn_index  action_type        …
    Refund                                       an evaluation row: name and metadata
                  1           INPUT_TEXT         a row of its conversation: one step of turn 1
                  1           EXPECTATION_TEXT   another step of the same turn

`ACTIONS` is the vendor's table of actions: the columns that each needs and may have, and the step of the Evaluation
JSON that it makes. What its page leaves open is decided in the rules (rules/ces.py).
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from agent_eval_schema.text.describe import describe, names
from agent_eval_schema.text.privacy import may_quote

GoldenCells = dict[str, str]
"""The filled cells of a row, by column."""

GoldenStep = dict[str, Any]

REQUIRED = ("display_name", "turn_index", "action_type")
METADATA = ("evaluation_id", "description", "tags", "evaluation_groups")
JSON_COLUMNS = ("tool_call_args_json", "tool_response_json", "updated_variables_json")

SEPARATOR = ";"
"""Between tags, and between groups."""

IMAGE_TYPES: dict[str, Callable[[bytes], bool]] = {
    "image/png": lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda data: data.startswith(b"\xff\xd8\xff"),
    "image/webp": lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP",
    "image/heic": lambda data: data[4:8] == b"ftyp",
    "image/heif": lambda data: data[4:8] == b"ftyp",
}
"""The types of images, and how the bytes of one begin."""


def image_problem(kind: str, data: bytes) -> tuple[str, str] | None:
    """Why these are no bytes of an image of that type, and a hint; None if they are."""
    if kind not in IMAGE_TYPES:
        hint = "Write image/jpeg." if kind == "image/jpg" else ""
        return f"expected one of {names(IMAGE_TYPES)}, got {describe(kind)}", hint
    if IMAGE_TYPES[kind](data):
        return None
    found = next((known for known, begins in IMAGE_TYPES.items() if begins(data)), "") if may_quote() else ""
    message = f"expected bytes of {kind if may_quote() else 'the type'}, got those of {found or 'something else'}"
    return message, f"Write {found}." if found else ""


class Action(Struct, frozen=True):
    """A row type of a conversation: the columns that it must and may fill, and the step made from the decoded cells."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    step: Callable[[dict[str, Any]], GoldenStep]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)


def _input(value: GoldenStep) -> GoldenStep:
    return {"userInput": value}


def _expectation(cells: dict[str, Any], condition: GoldenStep) -> GoldenStep:
    note = cells.get("expectation_note")
    return {"expectation": {"note": note, **condition} if note else condition}


def _input_tool_response(cells: dict[str, Any]) -> GoldenStep:
    response = {"tool": cells["tool_name"], "response": cells.get("tool_response_json", {})}
    return _input({"toolResponses": {"toolResponses": [response]}})


def _text(cells: dict[str, Any]) -> GoldenStep:
    message = {"role": cells["response_agent"], "chunks": [{"text": cells["text_content"]}]}
    return _expectation(cells, {"agentResponse": message})


def _tool_call(cells: dict[str, Any]) -> GoldenStep:
    call: GoldenStep = {"tool": cells["tool_name"]}
    if "tool_call_args_json" in cells:  # blank means any arguments, {} none
        call["args"] = cells["tool_call_args_json"]
    return _expectation(cells, {"toolCall": call})


_NOTE = ("expectation_note",)

ACTIONS: dict[str, Action] = {
    "INPUT_TEXT": Action(("text_content",), (), lambda c: _input({"text": c["text_content"]})),
    "INPUT_IMAGE": Action(
        ("image_mime_type", "image_content"),
        (),
        lambda c: _input({"image": {"mimeType": c["image_mime_type"], "data": c["image_content"]}}),
    ),
    "INPUT_TOOL_RESPONSE": Action(("tool_name",), ("tool_response_json",), _input_tool_response),
    "INPUT_UPDATED_VARIABLES": Action(
        ("updated_variables_json",), (), lambda c: _input({"variables": c["updated_variables_json"]})
    ),
    "EXPECTATION_TEXT": Action(("response_agent", "text_content"), _NOTE, _text),
    "EXPECTATION_TOOL_CALL": Action(("tool_name",), ("tool_call_args_json", *_NOTE), _tool_call),
    "EXPECTATION_TOOL_RESPONSE": Action(
        ("tool_name",),
        _NOTE,
        lambda c: _expectation(c, {"toolResponse": {"tool": c["tool_name"], "response": {}}}),
    ),
    "EXPECTATION_AGENT_TRANSFER": Action(
        ("agent_transfer_target",),
        _NOTE,
        lambda c: _expectation(c, {"agentTransfer": {"targetAgent": c["agent_transfer_target"]}}),
    ),
}

CONVERSATION = (
    *("response_agent", "text_content", "image_mime_type", "image_content", "tool_name"),
    *("tool_call_args_json", "tool_response_json", "updated_variables_json", "agent_transfer_target"),
    "expectation_note",
)
GOLDEN_COLUMNS = (*REQUIRED, *METADATA, *CONVERSATION)
"""All columns, in the order of the vendor's template."""
