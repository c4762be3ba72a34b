"""AE16: evalsets and criteria that google-adk rejects, and conversations that are too long for a row per turn."""

from typing import Any

from agent_eval_schema.rules.pages import ADK_EVALUATE, Page

_TURN = {"user_content": {"role": "user", "parts": [{"text": "Hi"}]}}


def _evalset(turn: dict[str, Any], **more: Any) -> tuple[dict[str, Any], ...]:
    return ({"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation": [turn], **more}]},)


_adk_page = Page(ADK_EVALUATE, good=_evalset(_TURN))

MISSING_KEY = _adk_page.error(
    "AE160 adk-missing-key",
    "A key that google-adk requires is missing.",
    why="The loader of google-adk rejects the whole file.",
    hint="Add the key that the message names.",
    bad=({"eval_set_id": "s", "eval_cases": [{"conversation": [_TURN]}]},),
)

UNKNOWN_KEY = _adk_page.error(
    "AE161 adk-unknown-key",
    "An object of an evalset has a key that is unknown to google-adk.",
    why="The loader of google-adk rejects the whole file. An eval case and its session_input may have other keys.",
    hint="Remove or rename the key.",
    bad=_evalset({**_TURN, "comment": "checked"}),
    good=_evalset(_TURN, comment="checked"),
)

KEY_TYPE = _adk_page.error(
    "AE162 adk-key-type",
    "A value in an evalset has a type that google-adk rejects.",
    why="The loader of google-adk rejects the whole file.",
    hint="Set a value of the type that the message names.",
    bad=_evalset({**_TURN, "creation_timestamp": "yesterday"}),
    good=_evalset({**_TURN, "creation_timestamp": 1763971200.5}),
)

ONE_CONVERSATION = _adk_page.error(
    "AE163 adk-one-conversation",
    "An eval case has both `conversation` and `conversation_scenario`, or neither.",
    why="google-adk requires exactly one of them, and its loader rejects the whole file.",
    hint="Keep `conversation`, or `conversation_scenario` for a simulated user.",
    bad=_evalset(_TURN, conversation_scenario={"starting_prompt": "Hi", "conversation_plan": "Ask for leave."}),
)

LONG_CONVERSATION = Page(ADK_EVALUATE).warning(
    "AE165 adk-long-conversation",
    "A turn has more turns before it than its request repeats.",
    why=(
        "The request of a turn repeats the turns before it. Without a limit, the rows of a file would grow by the "
        "square of its turns; the request contains the most recent ones."
    ),
    hint="Split the conversation, or keep the turns that the last questions depend on.",
    no_example="The rule applies from the 102nd turn of a conversation.",
)

_criteria = Page(
    "https://google.github.io/adk-docs/evaluate/criteria/", no_example="The criteria are in a file beside the evalset."
)

WRONG_CRITERION = _criteria.error(
    "AE166 adk-criterion",
    "A criterion of `test_config.json` is one that google-adk cannot apply.",
    why=(
        "google-adk logs a criterion that it cannot apply, and evaluates the others: a case can pass without it. "
        "A file of another form is rejected."
    ),
    hint="Correct the criterion in `test_config.json`.",
)

UNSUPPORTED_CRITERION = _criteria.warning(
    "AE167 adk-criterion-needs",
    "A criterion of `test_config.json` needs what turns of the evalset lack.",
    why=(
        "google-adk compares with nothing, or computes no score. Where no tool call is expected, every call is wrong "
        "if `match_type` is EXACT, and none is if it is IN_ORDER or ANY_ORDER."
    ),
    hint="Add what is missing to the turns, or remove the criterion.",
)
