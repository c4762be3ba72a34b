"""AE12, AE13: golden CSV files of the Customer Engagement Suite (CES).

An error is what the upload rejects or would interpret as something else; a warning is what it tolerates or ignores.
"""

from typing import Any

from agent_eval_schema.rules.pages import GOLDEN_CSV, Page

ExampleRow = dict[str, Any]


def _row(**cells: str) -> ExampleRow:
    """A row of a golden CSV: what is not given is blank."""
    return {"display_name": "", "turn_index": "", "action_type": "", **cells}


def _input(turn: str, text: str = "Hi", **more: str) -> ExampleRow:
    return _row(turn_index=turn, action_type="INPUT_TEXT", text_content=text, **more)


def _call(**cells: str) -> ExampleRow:
    return _row(turn_index="1", action_type="EXPECTATION_TOOL_CALL", **cells)


_NAME = _row(display_name="Refund")

_GOOD = (_NAME, _input("1"))

_golden_page = Page(GOLDEN_CSV, good=_GOOD)

HEADER = Page(GOLDEN_CSV).error(
    "AE120 golden-header",
    "A required column is missing from the header of the golden CSV.",
    why="No row can be read without it.",
    hint="Start the file with a header row that contains `display_name`, `turn_index` and `action_type`.",
    no_example="The rule concerns the header of a file.",
)

COLUMN = _golden_page.warning(
    "AE121 golden-column",
    "A column of the golden CSV is unknown or misplaced.",
    why="The upload ignores unknown columns, and expects `display_name`, `turn_index` and `action_type` first.",
    hint="Rename or drop an unknown column; move the required columns to the front.",
    bad=({**_NAME, "tool": ""}, {**_input("1"), "tool": ""}),
)

EVALUATION_ROW = _golden_page.error(
    "AE122 golden-evaluation-row",
    "A row belongs to no evaluation, or starts one and belongs to its conversation.",
    why="An evaluation row sets the name and the metadata; the rows below it contain the conversation.",
    hint="Add a row with `display_name` and the metadata of the evaluation; put its conversation in the rows below.",
    bad=(_input("1", display_name="Refund"),),
)

REPEATED_NAME = _golden_page.error(
    "AE123 golden-repeated-name",
    "A display_name duplicates that of an earlier evaluation.",
    why="Names are unique within an app, and a name starts a new evaluation.",
    hint="Set a unique `display_name` for each evaluation.",
    bad=(*_GOOD, _row(display_name="Other"), _input("1"), *_GOOD),
    good=(*_GOOD, _row(display_name="Other"), _input("1")),
)

NAME_ON_CONVERSATION = _golden_page.warning(
    "AE124 golden-name-on-conversation",
    "A conversation row repeats the name of its evaluation.",
    why="The documentation requires a blank cell; the row is read as if the cell were blank.",
    hint="Leave `display_name` blank on conversation rows.",
    bad=(_NAME, _input("1", display_name="Refund")),
)

METADATA_ON_CONVERSATION = _golden_page.warning(
    "AE125 golden-metadata-on-conversation",
    "A conversation row contains metadata of its evaluation.",
    why="Metadata is read from the evaluation row only.",
    hint="Move the value to the evaluation row.",
    bad=({**_NAME, "tags": ""}, _input("1", tags="p0")),
    good=({**_NAME, "tags": "p0"}, _input("1", tags="")),
)

TURN_INDEX = _golden_page.error(
    "AE126 golden-turn-index",
    "A turn_index is missing, is not a number, does not start at 1, or decreases.",
    why="It defines the order of the conversation.",
    hint="Number the turns of each evaluation from 1; rows of one turn share the number.",
    bad=(_NAME, _input("2")),
    good=(_NAME, _input("1"), _input("1"), _input("2")),
)

TURN_GAP = _golden_page.warning(
    "AE127 golden-turn-gap",
    "A turn_index skips numbers or is written with decimals.",
    why=("The order is still unambiguous, but a row may be missing, or a spreadsheet may have rewritten the column."),
    hint="Number the turns 1, 2, 3.",
    bad=(_NAME, _input("1"), _input("11")),
    good=(_NAME, _input("1"), _input("2")),
)

ACTION = _golden_page.error(
    "AE128 golden-action-type",
    "An action_type is missing or unknown.",
    why="The row cannot become a step of the conversation.",
    hint="Use one of the eight actions, such as `INPUT_TEXT` or `EXPECTATION_TEXT`.",
    bad=(_NAME, _input("1"), _row(turn_index="1", action_type="INPUT_TXT", text_content="Hi")),
)

REQUIRED_CELL = _golden_page.error(
    "AE129 golden-required-cell",
    "A column that the action of the row requires is blank.",
    why="The upload rejects the row.",
    hint="Fill the column that the message names.",
    bad=(_NAME, _input("1"), _call(tool_name="")),
    good=(_NAME, _input("1"), _call(tool_name="get_order")),
)

UNUSED_CELL = _golden_page.warning(
    "AE130 golden-unused-cell",
    "A column that the action of the row does not use is filled.",
    why="The value is ignored.",
    hint="Move the value to the row that it belongs to, or clear the cell.",
    bad=({**_NAME, "tool_name": ""}, _input("1", tool_name="get_order")),
    good=({**_NAME, "tool_name": ""}, _input("1", tool_name="")),
)

JSON_CELL = _golden_page.error(
    "AE131 golden-json-cell",
    "A JSON cell does not contain an object.",
    why="Arguments, tool responses and variables are objects.",
    hint='Write a JSON object with unique keys: `{"order_id": "42"}`.',
    bad=(_NAME, _input("1"), _call(tool_name="f", tool_call_args_json="[1]")),
    good=(_NAME, _input("1"), _call(tool_name="f", tool_call_args_json='{"a": 1}')),
)

_PNG = "iVBORw0KGgo="


def _image(mime_type: str, content: str) -> ExampleRow:
    return _row(turn_index="1", action_type="INPUT_IMAGE", image_mime_type=mime_type, image_content=content)


IMAGE = _golden_page.error(  # of Evaluation JSON too
    "AE132 golden-image",
    "An image cannot be decoded, or does not match its MIME type.",
    why="The agent would receive a broken image.",
    hint="Write the image as base64, and its type: image/png, image/jpeg, image/webp, image/heic or image/heif.",
    bad=(_NAME, _image("image/jpeg", _PNG)),
    good=(_NAME, _image("image/png", _PNG)),
)

IMAGE_SPELLING = _golden_page.warning(
    "AE133 golden-image-spelling",
    "An image uses a nonstandard base64 form.",
    why="Data URIs, the URL-safe alphabet and missing padding are read here, but the upload may reject them.",
    hint="Write plain base64: the standard alphabet, padded, without a `data:` prefix.",
    bad=(_NAME, _image("image/png", _PNG.rstrip("="))),
    good=(_NAME, _image("image/png", _PNG)),
)

EVALUATION_ID = _golden_page.error(
    "AE134 golden-evaluation-id",
    "An evaluation_id duplicates that of an earlier evaluation.",
    why="IDs are unique within an app; one of the two evaluations would be lost.",
    hint="Set a unique `evaluation_id` for each evaluation, or leave it blank.",
    bad=(
        {**_NAME, "evaluation_id": "a"},
        _input("1", evaluation_id=""),
        _row(display_name="Other", evaluation_id="a"),
        _input("1", evaluation_id=""),
    ),
    good=({**_NAME, "evaluation_id": "a"}, _input("1", evaluation_id="")),
)

NO_CONVERSATION = _golden_page.error(
    "AE135 golden-no-conversation",
    "An evaluation has no conversation.",
    why="There is no turn to replay.",
    hint="Add the conversation in the rows below, or drop the evaluation.",
    bad=(_NAME, _row(display_name="Other"), _input("1")),
)

TURN_WITHOUT_INPUT = _golden_page.warning(
    "AE136 golden-turn-without-input",
    "A turn has no input.",
    why="A turn is replayed by sending its input; without one the agent has no message to answer.",
    hint="Start each turn with an input of the user (an `INPUT_` action).",
    bad=(
        _NAME,
        _row(turn_index="1", action_type="EXPECTATION_TEXT", response_agent="root_agent", text_content="Hello"),
    ),
)

FORMULA = _golden_page.info(
    "AE137 golden-formula",
    "A cell starts with `=`, `+`, `-` or `@`, which a spreadsheet reads as a formula.",
    why="The cell is not changed here, but a spreadsheet that opens and saves the file may change it.",
    hint="No action needed for the upload; import the file into a spreadsheet as text.",
    bad=(_NAME, _input("1", "=1+1")),
)

BLANK_ROW = _golden_page.warning(
    "AE138 golden-blank-row",
    "A row is blank.",
    why="The row is skipped; spreadsheets leave such rows at the end of a file.",
    hint="Remove the row.",
    bad=(*_GOOD, _row()),
)
