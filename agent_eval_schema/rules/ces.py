"""AE12 to AE15: files of Google's Customer Engagement Suite: the golden CSV (AE12, AE13), Evaluation JSON (AE14, AE15).

An error is what the upload refuses, or would take for something else than was written; a warning is what the server
tolerates or ignores. Sources: the vendor's page on the golden CSV, the descriptors of its API, and what its own JSON
parser does.
"""

from typing import Any

from agent_eval_schema.issues import Rule, Severity

ExampleRow = dict[str, Any]


def _row(**cells: str) -> ExampleRow:
    """A row of a golden CSV: what is not given is blank."""
    return {"display_name": "", "turn_index": "", "action_type": "", **cells}


def _input(turn: str, text: str = "Hi", **more: str) -> ExampleRow:
    return _row(turn_index=turn, action_type="INPUT_TEXT", text_content=text, **more)


_NAME = _row(display_name="Refund")

_GOOD = (_NAME, _input("1"))


def _golden(*steps: Any) -> tuple[ExampleRow, ...]:
    return ({"displayName": "Refund", "golden": {"turns": [{"steps": list(steps)}]}},)


def _scenario(**fields: Any) -> tuple[ExampleRow, ...]:
    expectation = {"agentResponse": {"chunks": [{"text": "Sure."}]}}
    base = {"task": "Ask for a refund", "rubrics": ["polite"], "scenarioExpectations": [expectation]}
    return ({"displayName": "Refund", "scenario": {**base, **fields}},)


_TEXT = {"userInput": {"text": "Hi"}}

# ---------------------------------------------------------------------------------------------------------------------
# golden CSV
HEADER = Rule(
    "AE120",
    "golden-header",
    Severity.ERROR,
    "start the file with a header row that has display_name, turn_index and action_type",
    "A column that every golden CSV must have is not in the header.\n\nWithout it no row can be read.",
)

COLUMN = Rule(
    "AE121",
    "golden-column",
    Severity.WARNING,
    "rename or drop the column; the required columns come first",
    "A column of a golden CSV is unknown, or not where it belongs.\n\nThe upload ignores what it does not know; "
    "display_name, turn_index and action_type are expected to come first.",
    bad=({**_NAME, "tool": ""}, {**_input("1"), "tool": ""}),
    good=_GOOD,
)

EVALUATION_ROW = Rule(
    "AE122",
    "golden-evaluation-row",
    Severity.ERROR,
    "give the evaluation a row of its own: display_name and metadata; its conversation follows in the rows below",
    "A row is not part of an evaluation, or is two kinds of row at once.\n\nAn evaluation row sets the name and the "
    "metadata, the rows below it say the conversation.",
    bad=(_row(display_name="Refund", turn_index="1", action_type="INPUT_TEXT", text_content="Hi"),),
    good=_GOOD,
)

REPEATED_NAME = Rule(
    "AE123",
    "golden-repeated-name",
    Severity.ERROR,
    "give every evaluation a display_name of its own",
    "A display_name is that of an earlier evaluation.\n\nNames are unique in an app, and a name starts an evaluation.",
    bad=(*_GOOD, _row(display_name="Other"), _input("1"), *_GOOD),
    good=(*_GOOD, _row(display_name="Other"), _input("1")),
)

NAME_ON_CONVERSATION = Rule(
    "AE124",
    "golden-name-on-conversation",
    Severity.WARNING,
    "leave display_name blank on the rows of the conversation",
    "A row of the conversation repeats the name of its evaluation.\n\nThe page says that it must be blank; it is read "
    "as if it were.",
    bad=(_NAME, _row(display_name="Refund", turn_index="1", action_type="INPUT_TEXT", text_content="Hi")),
    good=_GOOD,
)

METADATA_ON_CONVERSATION = Rule(
    "AE125",
    "golden-metadata-on-conversation",
    Severity.WARNING,
    "put it on the evaluation row",
    "Metadata of an evaluation stands on a row of its conversation.\n\nIt is ignored there.",
    bad=({**_NAME, "tags": ""}, _input("1", tags="p0")),
    good=({**_NAME, "tags": "p0"}, _input("1", tags="")),
)

TURN_INDEX = Rule(
    "AE126",
    "golden-turn-index",
    Severity.ERROR,
    "number the turns of each evaluation from 1; rows of one turn share the number, and it never goes down",
    "A turn_index is missing, is no number, does not start at 1 or goes down.\n\nIt is the order of the conversation.",
    bad=(_NAME, _input("2")),
    good=(_NAME, _input("1"), _input("1"), _input("2")),
)

TURN_GAP = Rule(
    "AE127",
    "golden-turn-gap",
    Severity.WARNING,
    "number the turns 1, 2, 3",
    "A turn_index leaves numbers out, or is written with decimals.\n\nThe order is still plain, but a row may be "
    "missing, or a spreadsheet has rewritten the column.",
    bad=(_NAME, _input("1"), _input("11")),
    good=(_NAME, _input("1"), _input("2")),
)

ACTION = Rule(
    "AE128",
    "golden-action-type",
    Severity.ERROR,
    "use one of the eight actions, such as INPUT_TEXT or EXPECTATION_TEXT",
    "An action_type is missing or unknown.\n\nThe row cannot be a step of the conversation.",
    bad=(_NAME, _input("1"), _row(turn_index="1", action_type="INPUT_TXT", text_content="Hi")),
    good=_GOOD,
)

REQUIRED_CELL = Rule(
    "AE129",
    "golden-required-cell",
    Severity.ERROR,
    "fill the column that the message names",
    "A column that the row's action needs is blank.\n\nThe upload refuses the row.",
    bad=(_NAME, _input("1"), _row(turn_index="1", action_type="EXPECTATION_TOOL_CALL", tool_name="")),
    good=(_NAME, _input("1"), _row(turn_index="1", action_type="EXPECTATION_TOOL_CALL", tool_name="get_order")),
)

UNUSED_CELL = Rule(
    "AE130",
    "golden-unused-cell",
    Severity.WARNING,
    "move the value to the row that it belongs to, or clear the cell",
    "A column is filled that the row's action does not use.\n\nThe value is ignored.",
    bad=({**_NAME, "tool_name": ""}, _input("1", tool_name="get_order")),
    good=({**_NAME, "tool_name": ""}, _input("1", tool_name="")),
)

JSON_CELL = Rule(
    "AE131",
    "golden-json-cell",
    Severity.ERROR,
    'give a JSON object, each key once: {"order_id": "42"}',
    "A JSON cell holds something else than an object.\n\nArguments, tool responses and variables are objects.",
    bad=(
        _NAME,
        _input("1"),
        _row(turn_index="1", action_type="EXPECTATION_TOOL_CALL", tool_name="f", tool_call_args_json="[1]"),
    ),
    good=(
        _NAME,
        _input("1"),
        _row(turn_index="1", action_type="EXPECTATION_TOOL_CALL", tool_name="f", tool_call_args_json='{"a": 1}'),
    ),
)

_PNG = "iVBORw0KGgo="


def _image(mime_type: str, content: str) -> ExampleRow:
    return _row(turn_index="1", action_type="INPUT_IMAGE", image_mime_type=mime_type, image_content=content)


IMAGE = Rule(
    "AE132",
    "golden-image",
    Severity.ERROR,
    "give the image's bytes as base64, and its type: image/png, image/jpeg, image/webp, image/heic or image/heif",
    "An image cannot be read, or is not of the type that stands beside it.\n\nThe agent would be shown a broken image.",
    bad=(_NAME, _image("image/jpeg", _PNG)),
    good=(_NAME, _image("image/png", _PNG)),
)

IMAGE_SPELLING = Rule(
    "AE133",
    "golden-image-spelling",
    Severity.WARNING,
    "write plain base64: the standard alphabet, padded, no data: in front of it",
    "An image is base64 in another spelling.\n\nIt is read (data: URIs, the URL-safe alphabet, missing padding), but "
    "the upload may not.",
    bad=(_NAME, _image("image/png", _PNG.rstrip("="))),
    good=(_NAME, _image("image/png", _PNG)),
)

EVALUATION_ID = Rule(
    "AE134",
    "golden-evaluation-id",
    Severity.ERROR,
    "give every evaluation an id of its own, or leave it blank",
    "An evaluation_id is that of an earlier evaluation.\n\nIds are unique in an app; one of the two would be lost.",
    bad=(
        {**_NAME, "evaluation_id": "a"},
        _input("1", evaluation_id=""),
        _row(display_name="Other", evaluation_id="a"),
        _input("1", evaluation_id=""),
    ),
    good=({**_NAME, "evaluation_id": "a"}, _input("1", evaluation_id="")),
)

NO_CONVERSATION = Rule(
    "AE135",
    "golden-no-conversation",
    Severity.ERROR,
    "add the rows of the conversation below it, or drop the evaluation",
    "An evaluation has no conversation.\n\nThere is nothing to replay.",
    bad=(_NAME, _row(display_name="Other"), _input("1")),
    good=_GOOD,
)

TURN_WITHOUT_INPUT = Rule(
    "AE136",
    "golden-turn-without-input",
    Severity.WARNING,
    "start each turn with what the user says or sends (an INPUT_ action)",
    "A turn has no input.\n\nA turn is replayed by sending its input; without one the agent has nothing to answer.",
    bad=(
        _NAME,
        _row(turn_index="1", action_type="EXPECTATION_TEXT", response_agent="root_agent", text_content="Hello"),
    ),
    good=_GOOD,
)

FORMULA = Rule(
    "AE137",
    "golden-formula",
    Severity.INFO,
    "nothing to do for the upload; import the file into a spreadsheet as text",
    "A cell starts with = + - or @, which a spreadsheet takes for a formula.\n\nThe cell is not altered here, but a "
    "spreadsheet that opens and saves the file may alter it.",
    bad=(_NAME, _input("1", "=1+1")),
    good=_GOOD,
)

BLANK_ROW = Rule(
    "AE138",
    "golden-blank-row",
    Severity.WARNING,
    "remove the row",
    "A row is blank.\n\nIt is skipped here; spreadsheets leave such rows at the end of a file.",
    bad=(*_GOOD, _row()),
    good=_GOOD,
)

# ---------------------------------------------------------------------------------------------------------------------
# Evaluation JSON
FIELD_TYPE = Rule(
    "AE140",
    "ces-field-type",
    Severity.ERROR,
    "give the value in the type that the message names",
    "A field of an evaluation has the wrong type.\n\nThe server refuses the whole evaluation, or loses the value "
    "without a word (base64 that is none, a list where an object must be).",
    bad=_golden({"userInput": {"text": 1}}),
    good=_golden(_TEXT),
)

MISSING_FIELD = Rule(
    "AE141",
    "ces-missing-field",
    Severity.ERROR,
    "add the field",
    "An evaluation lacks what it must have: displayName, turns, steps or task.\n\nThe server refuses it.",
    bad=({"displayName": "", "golden": {"turns": [{"steps": [_TEXT]}]}},),
    good=_golden(_TEXT),
)

MISSING_DETAIL = Rule(
    "AE142",
    "ces-missing-detail",
    Severity.WARNING,
    "add the field",
    "A field is missing that the API calls required.\n\nThe server has taken such evaluations, but the step may not "
    "check what you mean.",
    bad=_golden(_TEXT, {"expectation": {"toolResponse": {"tool": "get_order"}}}),
    good=_golden(_TEXT, {"expectation": {"toolResponse": {"tool": "get_order", "response": {}}}}),
)

ONEOF = Rule(
    "AE143",
    "ces-one-of",
    Severity.ERROR,
    "keep exactly one of the fields that the message names; give the others a step of their own",
    "Fields stand together of which only one may be set, or none is.\n\nThe server refuses both.",
    bad=_golden({"userInput": {"text": "Hi", "dtmf": "1"}}),
    good=_golden(_TEXT),
)

ENUM = Rule(
    "AE144",
    "ces-enum",
    Severity.ERROR,
    "use one of the names that the message lists",
    "A field holds a name that its enumeration does not have.\n\nThe server refuses the evaluation.",
    bad=_scenario(userGoalBehavior="USER_GOAL_MET"),
    good=_scenario(userGoalBehavior="USER_GOAL_SATISFIED"),
)

UNKNOWN_FIELD = Rule(
    "AE145",
    "ces-unknown-field",
    Severity.WARNING,
    "check the spelling; a field that is newer than this package is kept as it is",
    "A field that the API of evaluations does not have.\n\nIt is kept, but the server ignores or refuses it.",
    bad=({"displayName": "Refund", "golden": {"turns": [{"steps": [_TEXT]}]}, "labels": ["p0"]},),
    good=({"displayName": "Refund", "golden": {"turns": [{"steps": [_TEXT]}]}, "tags": ["p0"]},),
)

PRECISION = Rule(
    "AE146",
    "ces-number-precision",
    Severity.WARNING,
    "write it as text, in quotes",
    "A whole number above 2^53 in arguments, variables or a response.\n\nThe API keeps numbers there as doubles: the "
    "last digits change on the way.",
    bad=_golden({"userInput": {"variables": {"id": 9007199254740993}}}),
    good=_golden({"userInput": {"variables": {"id": "9007199254740993"}}}),
)

OUTPUT_ONLY = Rule(
    "AE147",
    "ces-output-only",
    Severity.WARNING,
    "drop the field, or keep it knowing that it changes nothing",
    "A field that only the server sets.\n\nWhat is sent there is ignored. In an evaluation as the server gave it (it "
    "has createTime or updateTime) nothing is said.",
    bad=_golden({"expectation": {"toolCall": {"tool": "get_order", "displayName": "Get order"}}}),
    good=_golden({"expectation": {"toolCall": {"tool": "get_order"}}}),
)

RESOURCE_NAME = Rule(
    "AE148",
    "ces-resource-name",
    Severity.WARNING,
    "give the full resource name, or the bare display name as app packages do",
    "A name is neither a full resource name of the right kind nor a bare display name.\n\nThe server will not find "
    "what it points to.",
    bad=_golden({"expectation": {"toolCall": {"tool": "projects/p/locations/us/apps/a/agents/refunds"}}}),
    good=_golden({"expectation": {"toolCall": {"tool": "projects/p/locations/us/apps/a/tools/get_order"}}}),
)

LIMIT = Rule(
    "AE149",
    "ces-limit",
    Severity.ERROR,
    "split the evaluation",
    "More than 100 turns.\n\nThe API limits golden turns and maxTurns to 100.",
    bad=_scenario(maxTurns=101),
    good=_scenario(maxTurns=100),
)

REPEATED_KEY = Rule(
    "AE150",
    "ces-repeated-key",
    Severity.ERROR,
    "keep one of them",
    "A field is given twice, under one name or under both of its names.\n\nThe API's parser refuses the first and "
    "silently drops one of the two of the second.",
    bad=_scenario(maxTurns=5, max_turns=6),
    good=_scenario(max_turns=6),
)
