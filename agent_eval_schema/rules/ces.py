"""AE14, AE15: evaluations of the Customer Engagement Suite (CES) as JSON.

An error is what the server rejects or loses; a warning is what it tolerates or ignores. Sources: the descriptors of the
API and the behavior of its JSON parser.
"""

from typing import Any

from agent_eval_schema.rules.pages import CES_EVALUATION, Page


def _golden(*steps: Any) -> tuple[dict[str, Any], ...]:
    return ({"displayName": "Refund", "golden": {"turns": [{"steps": list(steps)}]}},)


def _scenario(**fields: Any) -> tuple[dict[str, Any], ...]:
    expectation = {"agentResponse": {"chunks": [{"text": "Sure."}]}}
    base = {"task": "Ask for a refund", "rubrics": ["polite"], "scenarioExpectations": [expectation]}
    return ({"displayName": "Refund", "scenario": {**base, **fields}},)


_TEXT = {"userInput": {"text": "Hi"}}
_CALL = {"expectation": {"toolCall": {"id": "c1", "tool": "get_order"}}}
_RESPONSE = {"tool": "get_order", "response": {"status": "paid"}}

_ces_page = Page(CES_EVALUATION, good=_golden(_TEXT))

FIELD_TYPE = _ces_page.error(
    "AE140 ces-field-type",
    "A field of an evaluation has the wrong type.",
    why="The server rejects the evaluation, or loses the value (invalid base64, a list in place of an object).",
    hint="Set a value of the type that the message names.",
    bad=_golden({"userInput": {"text": 1}}),
)

MISSING_FIELD = _ces_page.error(
    "AE141 ces-missing-field",
    "A required field is missing, without which its object means nothing.",
    why="The server rejects the evaluation, or a step has no content: an event without a name, an image without data.",
    hint="Add the field that the message names.",
    bad=_golden({"userInput": {"event": {}}}),
)

MISSING_DETAIL = _ces_page.warning(
    "AE142 ces-missing-detail",
    "A field that the API documents as required is missing.",
    why="The server has accepted such evaluations; but the step may not test what you intend.",
    hint="Add the field that the message names.",
    bad=_golden(_TEXT, {"expectation": {"toolResponse": {"tool": "get_order"}}}),
    good=_golden(_TEXT, {"expectation": {"toolResponse": {"tool": "get_order", "response": {}}}}),
)

ONEOF = _ces_page.error(
    "AE143 ces-one-of",
    "Mutually exclusive fields are set together, or none of them is set.",
    why="The server rejects both.",
    hint="Keep exactly one of the fields that the message names; move the others to separate steps.",
    bad=_golden({"userInput": {"text": "Hi", "dtmf": "1"}}),
)

ENUM = _ces_page.error(
    "AE144 ces-enum",
    "A field contains an unknown enum value.",
    why="The server rejects the evaluation.",
    hint="Use one of the names that the message lists.",
    bad=_scenario(userGoalBehavior="USER_GOAL_MET"),
    good=_scenario(userGoalBehavior="USER_GOAL_SATISFIED"),
)

UNKNOWN_FIELD = _ces_page.warning(
    "AE145 ces-unknown-field",
    "An evaluation contains an unknown field.",
    why="The field is preserved, but the server ignores or rejects it.",
    hint="Check the spelling; a field that is newer than this package is preserved.",
    bad=({"displayName": "Refund", "golden": {"turns": [{"steps": [_TEXT]}]}, "labels": ["p0"]},),
    good=({"displayName": "Refund", "golden": {"turns": [{"steps": [_TEXT]}]}, "tags": ["p0"]},),
)

PRECISION = _ces_page.warning(
    "AE146 ces-number-precision",
    "An integer above 2^53 occurs in arguments, variables or a response.",
    why="The API stores these numbers as doubles: the last digits change.",
    hint="Write the number as a string.",
    bad=_golden({"userInput": {"variables": {"id": 9007199254740993}}}),
    good=_golden({"userInput": {"variables": {"id": "9007199254740993"}}}),
)

OUTPUT_ONLY = _ces_page.info(
    "AE147 ces-output-only",
    "The evaluation contains fields that only the server sets.",
    why=(
        "The server ignores them in a request. They are not reported in an evaluation from the server (one with"
        " createTime or updateTime)."
    ),
    hint="No action needed: an evaluation that the server exports contains them.",
    bad=_golden({"expectation": {"toolCall": {"tool": "get_order", "displayName": "Get order"}}}),
    good=_golden({"expectation": {"toolCall": {"tool": "get_order"}}}),
)

RESOURCE_NAME = _ces_page.warning(
    "AE148 ces-resource-name",
    "A name is neither a full resource name of the right kind nor a display name.",
    why="The server does not find the resource.",
    hint="Use the full resource name, or the bare display name as in app packages.",
    bad=_golden({"expectation": {"toolCall": {"tool": "projects/p/locations/us/apps/a/agents/refunds"}}}),
    good=_golden({"expectation": {"toolCall": {"tool": "projects/p/locations/us/apps/a/tools/get_order"}}}),
)

LIMIT = _ces_page.error(
    "AE149 ces-limit",
    "A number is out of its range, or a list is too long.",
    why=(
        "The API limits golden turns and maxTurns to 100, semantic similarity to 0 to 4, and the correctness of tool"
        " calls to 0 to 1: 95 for 0.95 is a likely mistake. A stored score out of its range is of another scale."
    ),
    hint="Write a value in the range that the message names; split an evaluation of more than 100 turns.",
    bad=_scenario(maxTurns=101),
    good=_scenario(maxTurns=100),
)

BLANKS_IN_NAME = _ces_page.info(
    "AE156 ces-blanks-in-name",
    "A name, an ID or a tag has blanks at an end, or several in a row.",
    why="Names of evaluations, tools and agents that differ only in blanks look alike, and are of two things.",
    hint="No action needed if the blanks are meant; otherwise remove them.",
    bad=(
        {"displayName": "Refund ", "tags": ["p0  smoke"], "golden": {"turns": [{"steps": [_TEXT]}]}},
        *_golden(_TEXT, {"expectation": {"toolCall": {"id": "c1", "tool": " get_order"}}}),
    ),
)

REPEATED_KEY = _ces_page.error(
    "AE150 ces-repeated-key",
    "A field occurs twice, under one name or under both of its names.",
    why="The API's parser rejects a repeated name, and drops one of two spellings (`maxTurns`, `max_turns`).",
    hint="Keep one of them.",
    bad=_scenario(maxTurns=5, max_turns=6),
    good=_scenario(max_turns=6),
)

MORE_PAGES = _ces_page.warning(
    "AE151 more-pages",
    "The list is one page of several, and the last one is not there.",
    why="What the other pages have is not validated, counted or converted.",
    hint=(
        "Request the next page (CES: `pageToken`, until a response has no `nextPageToken`; Langfuse: `page`, up to"
        " `meta.totalPages`), and validate all pages."
    ),
    bad=({"evaluations": [*_golden({"userInput": {"text": "Hi"}})], "nextPageToken": "b2"},),
    good=({"evaluations": [*_golden({"userInput": {"text": "Hi"}})], "nextPageToken": ""},),
)

STORED_INVALID = _ces_page.warning(
    "AE152 ces-stored-invalid",
    "The server has marked the evaluation as invalid.",
    why="It refers to a deleted agent, tool or toolset, and cannot be run.",
    hint="Replace the name of the deleted agent, tool or toolset.",
    bad=({**_golden({"userInput": {"text": "Hi"}})[0], "invalid": True, "updateTime": "2026-11-16T08:03:12Z"},),
    good=_golden({"userInput": {"text": "Hi"}}),
)

CALL_ARGUMENTS = _ces_page.error(
    "AE153 ces-call-arguments",
    "The arguments of a tool call are in an unknown field.",
    why="The field is `args`: the API rejects any other one, and without `args` the call expects any arguments.",
    hint="Rename the field to `args`.",
    bad=_golden({"expectation": {"toolCall": {"tool": "get_order", "arguments": {"id": 7}}}}),
    good=_golden({"expectation": {"toolCall": {"tool": "get_order", "args": {"id": 7}}}}),
)

UNUSED_FIELD = _ces_page.warning(
    "AE154 ces-unused-field",
    "A field is obsolete, or has no effect where it is set.",
    why=(
        "The API has replaced `taskCompletionBehavior` and `hallucinationMetricBehavior`; `eventTime` is for messages"
        " of a conversation, not of an evaluation; `willContinue` does not apply to audio and DTMF."
    ),
    hint="Remove the field, or use the one that replaces it.",
    bad=_golden({"userInput": {"audio": "QUI=", "willContinue": True}}),
    good=_golden({"userInput": {"audio": "QUI="}}),
)

TOOL_PAIR = _ces_page.warning(
    "AE155 ces-tool-pair",
    "A tool response does not belong to the tool call that it should.",
    why="The service matches a response to its call by `id`, and a mock by its tool: this one is never used.",
    hint="Use the `id` of an expected tool call before the response, and the tool of that call.",
    bad=_golden(_TEXT, _CALL, {"userInput": {"toolResponses": {"toolResponses": [{**_RESPONSE, "id": "c2"}]}}}),
    good=_golden(_TEXT, _CALL, {"userInput": {"toolResponses": {"toolResponses": [{**_RESPONSE, "id": "c1"}]}}}),
)
