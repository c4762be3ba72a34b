"""Wild variations: whatever a platform's own writer can write is detected, valid, and converted there and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import convert_eval_set, validate_eval_set
from tests.helpers.adk import accepts, load_evalset
from tests.helpers.wild import EXAMPLES, NAMES, OBJECTS, VALUES, WORDS, camel, optional, texts_of, write

many = settings(
    max_examples=2 * EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
pytestmark = pytest.mark.property

# ---------------------------------------------------------------------------------------------------------------------
# google-adk
TIMES = st.floats(0, 2e9)
CALLS = optional({"name": NAMES}, args=OBJECTS, id=NAMES)
PART = st.one_of(
    optional({"text": WORDS}, thought=st.booleans(), function_call=st.none()),
    optional({"function_call": CALLS}, text=st.none()),
    st.just({"text": None}),
    st.fixed_dictionaries({"inline_data": st.just({"mime_type": "image/png", "data": "AAAA"})}),
)
QUESTION = st.lists(PART, max_size=2).map(lambda parts: {"role": "user", "parts": [{"text": "Hi"}, *parts]})
ANSWER = optional({}, role=st.just("model"), parts=st.lists(PART, max_size=3))
EVENT = optional({"author": NAMES}, content=ANSWER)
STEPS = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {},
        optional={
            "tool_uses": st.lists(CALLS, max_size=2),
            "tool_responses": st.lists(optional({"name": NAMES}, response=OBJECTS), max_size=1),
            "intermediate_responses": st.lists(st.tuples(NAMES, st.lists(PART, max_size=1)), max_size=1),
        },
    ),
    st.fixed_dictionaries({"invocation_events": st.lists(EVENT, max_size=2)}),
)
RUBRICS = st.lists(
    optional({"rubric_id": NAMES, "rubric_content": optional({}, text_property=WORDS)}, description=WORDS), max_size=2
)
TURN = st.fixed_dictionaries(
    {"user_content": QUESTION},
    optional={
        "invocation_id": NAMES,
        "final_response": st.none() | ANSWER,
        "intermediate_data": st.none() | STEPS,
        "creation_timestamp": TIMES,
        "duration": st.none() | TIMES,
        "rubrics": st.none() | RUBRICS,
        "app_details": st.none()
        | st.fixed_dictionaries({"agent_details": st.dictionaries(NAMES, st.just({"name": "a"}))}),
    },
)
OF_CASE: dict[str, Any] = {
    "session_input": st.none() | optional({"app_name": NAMES, "user_id": NAMES}, session_id=NAMES, locale=VALUES),
    "creation_timestamp": TIMES,
    "rubrics": st.none() | RUBRICS,
    "final_session_state": st.none() | OBJECTS,
    "owner": VALUES,
    "tags": VALUES,
}
SCENARIO = optional({"starting_prompt": WORDS, "conversation_plan": WORDS}, user_persona=st.just("NOVICE"))
CASE = st.one_of(
    st.fixed_dictionaries({"eval_id": NAMES, "conversation": st.lists(TURN, min_size=1, max_size=3)}, optional=OF_CASE),
    st.fixed_dictionaries({"eval_id": NAMES, "conversation_scenario": SCENARIO}, optional=OF_CASE),
)
EVALSET = st.fixed_dictionaries(
    {
        "eval_set_id": WORDS,
        "eval_cases": st.lists(CASE, min_size=1, max_size=3, unique_by=lambda case: case["eval_id"]),
    },
    optional={"name": st.none() | WORDS, "description": WORDS, "creation_timestamp": TIMES, "owner": VALUES},
)
FREE = ("args", "response", "state", "final_session_state", "owner", "tags", "locale", "eval_set_id", "eval_cases")


@st.composite
def in_camel_case(draw: st.DrawFn, value: Any, *, here: bool = False) -> Any:
    """The document with some of its objects in camelCase; the evalset itself has no aliases."""
    if isinstance(value, list | tuple):
        return [draw(in_camel_case(item, here=draw(st.booleans()))) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, item in value.items():
        inner = item if key in FREE[:-2] else draw(in_camel_case(item, here=here))
        made[camel(key) if here and key not in FREE[-2:] else key] = inner
    return made


def test_rubrics_of_the_only_turn_are_those_of_its_case(tmp_path: Path) -> None:
    turn = {"invocation_id": "a", "user_content": {"parts": [{"text": "Hi"}], "role": "user"}}
    rubrics = [{"rubric_id": "a", "rubric_content": {}}]
    case = {"eval_id": "a", "conversation": [{**turn, "rubrics": rubrics}]}
    path = write(tmp_path, ".evalset.json", json.dumps({"eval_set_id": "0", "eval_cases": [case]}))
    made = convert_eval_set(path, "adk")
    assert accepts(made.data, tmp_path)
    assert made.lossless
    assert said(load_evalset(str(tmp_path / "loaded.evalset.json"))) == said(load_evalset(path))


@given(st.data())
@many
def test_an_evalset_in_the_wild(tmp_path: Path, data: st.DataObject) -> None:
    document = data.draw(EVALSET.flatmap(in_camel_case))
    path = write(tmp_path, ".evalset.json", data.draw(texts_of(document, marks=("",))))  # google-adk refuses a BOM
    report = validate_eval_set(path)
    theirs = load_evalset(path)
    assert (report.format, report.ok) == ("adk", True), report.to_text()
    assert report.row_count == sum(len(case.conversation or "x") for case in theirs.eval_cases)
    made = convert_eval_set(path, "adk")
    assert accepts(made.data, tmp_path)
    if made.lossless:
        assert said(load_evalset(str(tmp_path / "loaded.evalset.json"))) == said(theirs)


def said(evalset: Any) -> Any:
    """What an EvalSet holds: a null says nothing, nor does an answer without parts, a part of nothing but null, nor
    arguments without an entry, an empty list or object under a key that is not ADK's; texts are one in any parts. ADK
    judges each turn by the rubrics of its case, too."""
    return _joined(evalset.model_dump(exclude_none=True, exclude_defaults=True))


def _joined(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_joined(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("rubrics") and value.get("conversation"):
        of_case = {key: item for key, item in value.items() if key != "rubrics"}
        turns = [{**t, "rubrics": [*value["rubrics"], *t.get("rubrics", ())]} for t in value["conversation"]]
        return _joined({**of_case, "conversation": turns})
    parts = value.get("parts")
    if parts and not all(parts):
        return _joined({**value, "parts": [part for part in parts if part]})
    if parts and all(part.keys() <= {"text"} for part in parts):
        return "\n".join(part["text"] for part in parts if part.get("text"))
    says = {"final_response": lambda answer: bool(answer.get("parts")), "rubrics": bool, "args": bool}
    says |= dict.fromkeys(("owner", "tags", "locale"), lambda own: own not in ([], {}))
    return {key: _joined(item) for key, item in value.items() if says.get(key, lambda _: True)(item)}


# ---------------------------------------------------------------------------------------------------------------------
# its older files
OLD_CALLS = st.lists(
    st.fixed_dictionaries({"tool_name": NAMES, "tool_input": OBJECTS}, optional={"mock_tool_output": VALUES}),
    max_size=2,
)
SAID = st.lists(st.fixed_dictionaries({"author": NAMES, "text": WORDS}), max_size=1)
OLD_TURN = st.fixed_dictionaries(
    {"query": WORDS},
    optional={
        "expected_tool_use": OLD_CALLS,
        "expected_intermediate_agent_responses": SAID,
        "reference": WORDS,
        "owner": VALUES,
    },
)
TEST_LIST = st.lists(OLD_TURN, min_size=1, max_size=3)
STATE = st.fixed_dictionaries({}, optional={"app_name": NAMES, "user_id": NAMES, "state": OBJECTS})
SESSIONS = st.lists(
    st.fixed_dictionaries({"name": NAMES, "data": TEST_LIST}, optional={"initial_session": STATE}),
    min_size=1,
    max_size=2,
    unique_by=lambda session: session["name"],
)


@given(st.data())
@many
def test_older_files_in_the_wild(tmp_path: Path, data: st.DataObject) -> None:
    from google.adk.evaluation.local_eval_sets_manager import convert_eval_set_to_pydantic_schema

    document = data.draw(TEST_LIST | SESSIONS)
    is_list = "query" in document[0]
    path = write(tmp_path, ".test.json", data.draw(texts_of(document, marks=("",))))
    asked_for = is_list and not any(turn.keys() - {"query", "reference", "owner"} for turn in document)
    report = validate_eval_set(path, format="adk-legacy" if asked_for else data.draw(st.sampled_from(FORMS)))
    assert (report.format, report.ok) == ("adk-legacy", True), report.to_text()
    theirs = convert_eval_set_to_pydantic_schema("s", [{"name": "n", "data": document}] if is_list else document)
    turns = [turn for case in theirs.eval_cases for turn in case.conversation]
    rows = list(report.iter_rows())
    for row, turn in zip(rows, turns, strict=True):
        assert row["request"]["messages"][-1]["content"] == turn.user_content.parts[0].text
        assert (row["expected_response"] or "") == turn.final_response.parts[0].text
        calls = [{"tool_name": c.name, "tool_input": c.args} for c in turn.intermediate_data.tool_uses]
        assert (row["reference_trajectory"] or []) == calls
    made = convert_eval_set(path, "adk", format="adk-legacy")
    assert accepts(made.data, tmp_path)
    again = convert_eval_set(path, "adk-legacy", format="adk-legacy")
    assert convert_eval_set_to_pydantic_schema("s", [{"name": "n", "data": again.data}])


FORMS = ["auto", "adk-legacy"]
