"""What is validated in an evalset of ADK and written to one, without google-adk (test_adk.py compares with it)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set

TURN = {"user_content": {"parts": [{"text": "Hi"}]}, "final_response": {"parts": [{"text": "Hello"}]}}
PERSONA = "conversation_scenario.user_persona"
DATA = "conversation[0].intermediate_data"


def evalset(case: dict[str, Any]) -> dict[str, Any]:
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": "c", **case}]}


def scenario(persona: Any) -> dict[str, Any]:
    return {"conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Go.", "user_persona": persona}}


def turn(**more: Any) -> dict[str, Any]:
    return {"conversation": [{**TURN, **more}]}


def problems(case: dict[str, Any]) -> list[tuple[str, str]]:
    found = [i for i in validate_eval_set(evalset(case)).iter_issues() if i.severity == "error"]
    return [((i.path or "").removeprefix("eval_cases[0]."), i.message) for i in found]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (scenario("EXPERT"), []),
        (scenario("KIND"), [(PERSONA, "expected an object or one of EXPERT, NOVICE, EVALUATOR, got the text 'KIND'")]),
        (scenario(5), [(PERSONA, "expected an object or one of EXPERT, NOVICE, EVALUATOR, got the number 5")]),
        (
            scenario({"id": "kind", "description": "x"}),
            [(f"{PERSONA}.behaviors", "`behaviors` is missing")],
        ),
        (
            turn(intermediate_data={"intermediate_responses": [["agent", [{"text": "x"}]], ["agent"], 5]}),
            [
                (f"{DATA}.intermediate_responses[1]", "expected a list of 2, got a list of 1"),
                (f"{DATA}.intermediate_responses[2]", "expected a list of 2, got the number 5"),
            ],
        ),
        (
            turn(intermediate_data={"tool_uses": [{"name": "f", "partial_args": [{"null_value": "X"}]}]}),
            [(f"{DATA}.tool_uses[0].partial_args[0].null_value", "expected `NULL_VALUE`, got the text 'X'")],
        ),
    ],
    ids=str,
)
def test_a_value_that_google_adk_rejects_is_an_error_at_its_path(
    case: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert problems(case) == expected


def test_a_misspelled_key_of_an_object_with_further_keys_is_to_be_renamed() -> None:
    """google-adk ignores any other key of a case, and reports the required one as missing."""
    case = {"evalid": "c", "owner": "ann", **turn()}
    (issue,) = validate_eval_set({"eval_set_id": "s", "eval_cases": [case]}).iter_issues()
    assert (issue.code, issue.path, issue.hint) == ("AE160", "eval_cases[0].eval_id", "Rename `evalid`.")


@pytest.mark.parametrize(("key", "meant"), [("app_detals", "app_details"), ("appDetals", "appDetails")])
def test_the_key_that_was_meant_is_spelled_as_the_file_spells_its_keys(key: str, meant: str) -> None:
    (issue,) = validate_eval_set(evalset(turn(**{key: {}}))).iter_issues()
    assert (issue.code, issue.hint) == ("AE161", f"Did you mean `{meant}`? Rename the key.")


@pytest.mark.parametrize(
    ("count", "is_read"),
    [(5, True), ("5", True), ("5.0", True), (" +1_0 ", True), ("x", False), ("5.5", False), ("1__0", False)],
)
def test_a_whole_number_may_be_text_as_pydantic_reads_it(count: Any, is_read: bool) -> None:
    part = {"text": "Hi", "media_resolution": {"num_tokens": count}}
    path = "conversation[0].user_content.parts[0].media_resolution.num_tokens"
    message = f"expected a whole number, got the text '{count}'"
    assert problems(turn(user_content={"parts": [part]})) == ([] if is_read else [(path, message)])


def test_a_request_has_the_last_hundred_turns_before_it() -> None:
    turns = {"conversation": [TURN] * 103}
    report = validate_eval_set(evalset(turns))
    found = [(i.row, i.path, i.message) for i in report.iter_issues() if i.code == "AE165"]
    message = "expected at most 100 turns before, got {}: the request has the last 100"
    assert found == [(row, "request", message.format(row)) for row in (101, 102)]
    assert [len(row["request"]["messages"]) for row in report.iter_rows()][100:] == [201] * 3


def test_rubrics_that_differ_by_turn_are_written_on_each() -> None:
    asked = {"role": "user", "content": "Hi"}
    said = {"role": "assistant", "content": "Hello"}
    rows = [
        {"request_id": "c#1", "request": {"messages": [asked]}, "guidelines": ["Be kind."]},
        {"request_id": "c#2", "request": {"messages": [asked, said, asked]}},
    ]
    converted = convert_eval_set([{**row, "expected_response": "Hello"} for row in rows], "adk")
    ((case),) = converted.data["eval_cases"]
    rubrics = [[r["rubric_content"]["text_property"] for r in t.get("rubrics", ())] for t in case["conversation"]]
    assert ("rubrics" in case, rubrics) == (False, [["Be kind."], []])


@pytest.mark.parametrize("part", [{"type": "input_audio", "input_audio": {"data": "AAAA"}}, {"type": "x", "url": 5}])
def test_a_part_that_google_genai_does_not_take_is_written_as_its_json(part: Any) -> None:
    row = {"request": {"messages": [{"role": "user", "content": [part]}]}, "expected_response": "So."}
    (case,) = convert_eval_set([row], "adk", on_invalid="keep").data["eval_cases"]
    (content,) = case["conversation"][0]["user_content"]["parts"]
    assert (list(content), json.loads(content["text"])) == (["text"], part)
