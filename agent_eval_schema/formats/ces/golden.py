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
from agent_eval_schema.text.jsontext import put
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


OPTIONAL = frozenset(("tool_call_args_json", "tool_response_json", "expectation_note"))
"""The columns that may be blank where an action has them: blank arguments are any, `{}` are none."""


class Action(Struct, frozen=True):
    """A row type of a conversation: its columns, and where in the step each belongs; the path of a response, which is
    an empty object without a column."""

    columns: dict[str, str]
    response: str = ""

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(column for column in self.columns if column not in OPTIONAL)

    def step(self, cells: dict[str, Any]) -> GoldenStep:
        """The step that is made from the decoded cells."""
        step: GoldenStep = {}
        for column, path in self.columns.items():
            if column in cells:
                put(step, path, cells[column])
        if self.response:
            put(step, self.response, {})
        return step


_NOTE = {"expectation_note": "expectation.note"}
_ANSWER, _CALL = "expectation.agentResponse", "expectation.toolCall"
_GIVEN, _EXPECTED = "userInput.toolResponses.toolResponses[0]", "expectation.toolResponse"

ACTIONS: dict[str, Action] = {
    "INPUT_TEXT": Action({"text_content": "userInput.text"}),
    "INPUT_IMAGE": Action({"image_mime_type": "userInput.image.mimeType", "image_content": "userInput.image.data"}),
    "INPUT_TOOL_RESPONSE": Action(
        {"tool_name": f"{_GIVEN}.tool", "tool_response_json": f"{_GIVEN}.response"}, f"{_GIVEN}.response"
    ),
    "INPUT_UPDATED_VARIABLES": Action({"updated_variables_json": "userInput.variables"}),
    "EXPECTATION_TEXT": Action(
        {**_NOTE, "response_agent": f"{_ANSWER}.role", "text_content": f"{_ANSWER}.chunks[0].text"}
    ),
    "EXPECTATION_TOOL_CALL": Action({**_NOTE, "tool_name": f"{_CALL}.tool", "tool_call_args_json": f"{_CALL}.args"}),
    "EXPECTATION_TOOL_RESPONSE": Action({**_NOTE, "tool_name": f"{_EXPECTED}.tool"}, f"{_EXPECTED}.response"),
    "EXPECTATION_AGENT_TRANSFER": Action({**_NOTE, "agent_transfer_target": "expectation.agentTransfer.targetAgent"}),
}

CONVERSATION = (
    *("response_agent", "text_content", "image_mime_type", "image_content", "tool_name"),
    *("tool_call_args_json", "tool_response_json", "updated_variables_json", "agent_transfer_target"),
    "expectation_note",
)
GOLDEN_COLUMNS = (*REQUIRED, *METADATA, *CONVERSATION)
"""All columns, in the order of the vendor's template."""
