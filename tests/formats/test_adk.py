"""Evalsets of google-adk: our verdict is that of its own loader, and each reads what the other writes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.errors import ExtensionWarning
from agent_eval_schema.formats import adk_schema, registry
from agent_eval_schema.formats.adk import ADK, ADK_LEGACY
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.requests import MISSING_REQUEST
from agent_eval_schema.rules.tools import EMPTY_TRAJECTORY
from tests.helpers.adk import NOT_RUN, accepts, evalset_schema, load_evalset


@pytest.fixture(autouse=True, scope="module")
def google_adk() -> None:
    """Two seconds of imports, for the process that runs these tests."""
    pytest.importorskip("google.adk.evaluation.eval_set", reason="google-adk is not installed")


HI = {"role": "user", "parts": [{"text": "Hi"}]}
CALL = {"name": "get_balance", "args": {"employee": "E1042"}}
SCENARIO = {"starting_prompt": "Hi", "conversation_plan": "Ask for leave.", "user_persona": "EXPERT"}


def evalset(*turns: Any, **of_case: Any) -> dict[str, Any]:
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation": list(turns), **of_case}]}


def turn(**more: Any) -> dict[str, Any]:
    return {"user_content": HI, **more}


def codes(data: Any) -> list[str]:
    issues = validate_eval_set(data).issues
    return issues["code"][issues["severity"] != "info"].tolist()


# ---------------------------------------------------------------------------------------------------------------------
# the table


def test_the_table_is_what_google_adk_says_of_itself() -> None:
    theirs = evalset_schema()
    if theirs["$comment"] != (ours := adk_schema.models()["EvalSet"]["$comment"]):
        pytest.skip(f"the table is of {ours}, installed is {theirs['$comment']}")
    assert theirs == adk_schema.models()["EvalSet"]


EVERYTHING: dict[str, Any] = {
    "eval_set_id": "s",
    "name": "n",
    "eval_cases": [
        {
            "eval_id": "c",
            "creation_timestamp": 1.0,
            "conversation": [
                {
                    "invocation_id": "i",
                    "user_content": {
                        "parts": [{"text": "Hi"}, {"inline_data": {"mime_type": "image/png", "data": "A+8="}}]
                    },
                    "final_response": {"parts": [{"text": "x", "thought": False, "thought_signature": "abc="}]},
                    "duration": 1,
                    "intermediate_data": {
                        "tool_uses": [{"id": "1", "name": "f", "args": {"a": 1}}],
                        "tool_responses": [{"name": "f", "response": {"r": 1}}],
                        "intermediate_responses": [["a", [{"text": "t"}]]],
                    },
                    "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "t"}}],
                    "app_details": {"agent_details": {"a": {"name": "a", "tool_declarations": [{"x": 1}]}}},
                },
                {
                    "userContent": {"parts": [{"text": None, "functionCall": {"name": "f"}}]},
                    "intermediateData": {
                        "invocationEvents": [
                            {
                                "author": "a",
                                "content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]},
                                "usageMetadata": {"totalTokenCount": 3},
                                "groundingMetadata": {"groundingChunks": [{"web": {"uri": "u"}}]},
                                "turnIndex": 1,
                            }
                        ]
                    },
                },
            ],
            "session_input": {"app_name": "a", "user_id": "u", "state": {"k": [1]}, "team": "hr"},
            "final_session_state": {"a": 1},
            "rubrics": None,
            "owner": "ann",
        },
        {"evalId": "d", "conversationScenario": SCENARIO},
    ],
}
VALUES = [None, True, False, 0, 1, 2.0, 2.5, -3, "", "x", "1", "1.5", " 5 ", "yes", "AAAA", "AAA", [], {}, ["a"], [1]]
KEYS = ["text", "comment", "thought", "eval_id", "toolUses", "invocation_events", "conversationScenario", "content"]


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, item in items for found in places(item, (*place, key)))]


@st.composite
def nearly_evalsets(draw: st.DrawFn) -> dict[str, Any]:
    """An evalset with every sort of field, in which something was removed, renamed, added or given another value."""
    document = copy.deepcopy(EVERYTHING)
    *path, last = draw(st.sampled_from([place for place in places(document) if place]))
    holder: Any = document
    for key in path:
        holder = holder[key]
    change = draw(st.sampled_from(["remove", "rename", "add", "set"]))
    if change == "set":
        holder[last] = draw(st.sampled_from(VALUES))
    elif change == "remove":
        del holder[last]
    elif change == "add" and isinstance(holder[last], dict):
        holder[last].setdefault(draw(st.sampled_from(KEYS)), draw(st.sampled_from(VALUES)))
    elif change == "rename" and isinstance(holder, dict):
        value = holder.pop(last)
        holder.setdefault(draw(st.sampled_from(KEYS)), value)
    return document


@given(nearly_evalsets())
@settings(max_examples=300)
def test_the_walk_refuses_what_the_models_refuse(document: dict[str, Any]) -> None:
    from google.adk.errors.not_found_error import NotFoundError
    from google.adk.evaluation.eval_set import EvalSet
    from pydantic import ValidationError

    try:
        EvalSet.model_validate_json(json.dumps(document))
        refused = ""
    except (ValidationError, NotFoundError) as error:  # the second of a persona that is not one of its own
        refused = str(error)
    assert bool(refused) == bool(adk_schema.inspect_value(document)), refused


# ---------------------------------------------------------------------------------------------------------------------
# files
OLD = {"query": "Hi"}
TOOL = {"tool_name": "get_balance", "tool_input": {"employee": "E1042"}}

FILES: dict[str, Any] = {
    "an evalset": evalset(turn()),
    "parts as google-genai dumps them": evalset(
        {"user_content": {"parts": [{"text": "Hi", "thought": None, "function_call": None}], "role": None}},
    ),
    "a null text": evalset(turn(final_response={"role": "model", "parts": [{"text": None}]})),
    "a null text beside a question": evalset({"user_content": {"parts": [{"text": None}, {"text": "Hi"}]}}),
    "no expected call": evalset(turn(intermediate_data={"tool_uses": []})),
    "a call without arguments": evalset(turn(intermediate_data={"tool_uses": [{"name": "f"}]})),
    "intermediate data as its writer leaves them": evalset(turn(intermediate_data={})),
    "a rubric without text": evalset(turn(), rubrics=[{"rubric_id": "r", "rubric_content": {}}]),
    "keys of one's own in a case": evalset(turn(), tags=["a"], response={"a": 1}, request=3),
    "keys of one's own in a set": {**evalset(turn()), "tags": 3, "owner": "ann"},
    "camelCase below the set": {
        "eval_set_id": "s",
        "eval_cases": [{"evalId": "c", "conversation": [{"userContent": HI}]}],
    },
    "a scenario": {"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation_scenario": SCENARIO}]},
    "no set id": {"eval_cases": evalset(turn())["eval_cases"]},
    "camelCase in the set": {"evalSetId": "s", "evalCases": evalset(turn())["eval_cases"]},
    "no eval id": {"eval_set_id": "s", "eval_cases": [{"conversation": [turn()]}]},
    "a number for an eval id": {"eval_set_id": "s", "eval_cases": [{"eval_id": 1, "conversation": [turn()]}]},
    "no user content": evalset({"final_response": HI}),
    "user content misspelled": evalset({"user_contents": HI}),
    "an unknown key of a turn": evalset(turn(), turn(comment="checked")),
    "an unknown key of a call": evalset(turn(intermediate_data={"tool_uses": [{**CALL, "result": 12}]})),
    "arguments under another name": evalset(turn(intermediate_data={"tool_uses": [{"name": "f", "arguments": {}}]})),
    "an unknown key of a part": evalset({"user_content": {"parts": [{"text": "Hi", "type": "text"}]}}),
    "calls that are no list": evalset(turn(intermediate_data={"tool_uses": CALL})),
    "neither conversation nor scenario": {"eval_set_id": "s", "eval_cases": [{"eval_id": "c"}]},
    "both": evalset(turn(), conversation_scenario=SCENARIO),
    "a scenario without a plan": {
        "eval_set_id": "s",
        "eval_cases": [{"eval_id": "c", "conversation_scenario": {"starting_prompt": "Hi"}}],
    },
    "a persona that nobody registered": {
        "eval_set_id": "s",
        "eval_cases": [{"eval_id": "c", "conversation_scenario": {**SCENARIO, "user_persona": "BOSS"}}],
    },
    "cases that are no list": {"eval_set_id": "s", "eval_cases": {"a": 1}},
    "a case that is no object": {"eval_set_id": "s", "eval_cases": [17]},
    "a session without a user": evalset(turn(), session_input={"app_name": "hr"}),
    "a session": evalset(turn(), session_input={"app_name": "hr", "user_id": "u", "team": "a"}),
    "rubrics of a turn that are none": evalset(turn(), turn(rubrics=["be kind"])),
    "the older form": [{"name": "a", "data": [OLD], "initial_session": {"app_name": "hr", "state": {}}}],
    "the older form with keys that nobody reads": [{"name": "a", "data": [{**OLD, "comment": "x"}], "owner": "ann"}],
    "an older set without a name": [{"data": [OLD]}],
    "an older turn without reference": [{"name": "a", "data": [{**OLD, "reference": None}]}],
    "an older turn without calls": [{"name": "a", "data": [{**OLD, "expected_tool_use": []}]}],
    "an older turn with null for calls": [{"name": "a", "data": [{**OLD, "expected_tool_use": None}]}],
    "an older call": [{"name": "a", "data": [{**OLD, "expected_tool_use": [TOOL]}]}],
    "an older call without arguments": [{"name": "a", "data": [{**OLD, "expected_tool_use": [{"tool_name": "f"}]}]}],
    "an older call with a newer key": [{"name": "a", "data": [{**OLD, "expected_tool_use": [CALL]}]}],
    "an older turn without a query": [{"name": "a", "data": [OLD, {"reference": "Hello"}]}],
    "a name that is a number": [{"name": 1, "data": [OLD]}],
    "an older session of text": [{"name": "a", "data": [OLD], "initial_session": {"app_name": 1}}],
    **{
        f"a signature {signature!r}": evalset(turn(final_response={"parts": [{"thought_signature": signature}]}))
        for signature in ("A+8=", "A-8=", "A-8", "A/8", "A_8", "A-9", "AB", "A", "Ä+8=", "A 8=", 5)
    },
}
"""Files as people write them; google-adk says which of them it loads."""


@pytest.mark.parametrize("name", FILES)
def test_the_verdict_on_a_file_is_that_of_the_loader(name: str, tmp_path: Path) -> None:
    path = tmp_path / "set.evalset.json"
    path.write_text(json.dumps(FILES[name]), encoding="utf-8")
    report = validate_eval_set(str(path))
    assert report.format == ("adk" if isinstance(FILES[name], dict) else "adk-legacy")
    assert report.ok == accepts(FILES[name], tmp_path), report.to_text()


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_is_loaded_but_cannot_be_run_is_an_error(name: str, tmp_path: Path) -> None:
    """The only files on which we disagree with the loader: an agent would be asked nothing, or a call has no name."""
    assert accepts(NOT_RUN[name], tmp_path)
    report = validate_eval_set(NOT_RUN[name])
    assert (report.format, report.ok) == ("adk", False)


def test_an_evalset_without_cases_is_an_empty_one_of_adk(tmp_path: Path) -> None:
    path = tmp_path / "new.evalset.json"
    path.write_text('{"eval_set_id": "s", "eval_cases": []}')
    report = validate_eval_set(str(path))
    assert (report.format, report.row_count, list(report.counts)) == ("adk", 0, ["AE101"])


def test_a_defect_is_told_on_its_turn_with_the_place_in_the_file() -> None:
    report = validate_eval_set(evalset(turn(), turn(comment="checked"), turn()))
    (issue,) = report.issues[report.issues["severity"] == "error"].to_dict("records")
    assert (issue["row"], issue["request_id"], issue["code"]) == (1, "c#2", "AE161")
    assert issue["path"] == "eval_cases[0].conversation[1].comment"


def test_what_a_case_lacks_is_told_once_on_its_first_turn() -> None:
    document = evalset(turn(), turn(), rubrics=[{"rubric_content": {}}, {"rubric_id": "r"}])
    issues = validate_eval_set(document).issues.query("severity == 'error'")
    assert set(issues["row"]) == {0}
    assert set(issues["path"]) == {"eval_cases[0].rubrics[0].rubric_id", "eval_cases[0].rubrics[1].rubric_content"}


def test_one_cause_is_one_issue() -> None:
    assert codes(evalset({"user_contents": HI})) == ["AE161"]
    assert codes({"eval_set_id": "s", "eval_cases": [{"eval_id": "c"}]}) == ["AE163"]
    assert codes({"eval_set_id": "s", "eval_cases": [17]}) == ["AE162"]


def legacy(turns: int) -> list[dict[str, Any]]:
    return [{"query": f"q{i}", "expected_tool_use": [], "reference": "a"} for i in range(turns)]


@pytest.mark.parametrize(
    "document",
    [
        lambda turns: evalset(*(turn(final_response=HI) for _ in range(turns))),
        lambda turns: [{"name": "n", "data": legacy(turns), "initial_session": {}}],
        legacy,
    ],
)
def test_a_request_repeats_a_limited_number_of_turns(document: Any) -> None:
    report = validate_eval_set(document(103))
    assert [(i.row, i.code, i.path) for i in report.iter_issues() if i.code == "AE165"] == [
        (row, "AE165", "request") for row in (101, 102)
    ]
    assert [len(request["messages"]) for request in report.rows["request"][[0, 1, 100, 101, 102]]] == [
        1,
        3,
        201,
        201,
        201,
    ]


def test_a_turn_repeats_what_was_said_before_it_and_not_what_was_done() -> None:
    """Else a conversation with long results of tools grows by the square of its turns."""
    done = {"tool_uses": [], "intermediate_responses": []}
    turn = {"userContent": {"parts": [{"text": "q"}]}, "finalResponse": {"parts": [{"text": "a"}]}}
    case = {"eval_id": "e", "conversation": [{**turn, "intermediate_data": done}] * 2}
    (batch,) = open_source({"eval_set_id": "s", "eval_cases": [case]}).batches()
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    assert native_rows(batch)[1]["history"] == [said]
    listed = [{"query": "q", "reference": "a", "expected_tool_use": [], "other": "x"}] * 2
    (batch,) = open_source(listed).batches()
    assert native_rows(batch)[1]["history"] == [said]


def test_the_history_of_a_table_may_have_the_turns_as_they_are() -> None:
    asked = {"user_content": {"parts": [{"text": "q"}]}}
    earlier = {**asked, "final_response": {"parts": [{"text": "a"}]}}
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    for history in ([earlier], [said]):
        report = validate_eval_set([{"eval_id": "e", "turn": 2, "turns": 2, "history": history, **asked}])
        assert report.rows["request"][0] == {"messages": [*said, {"role": "user", "content": "q"}]}


@pytest.mark.parametrize("other", [{"query": "Why?"}, {"userContent": HI}, {"reference": "No"}])
def test_a_column_that_another_row_fills_hides_nothing(other: dict[str, Any]) -> None:
    """In a table a turn has all columns, and those of other turns are null."""
    said = turn(final_response={"role": "model", "parts": [{"text": "Hello"}]})
    sets = [evalset(said), {**evalset(turn(**other)), **other}]
    alone, together = validate_eval_set(sets[:1]).rows, validate_eval_set(sets).rows
    for name in ("request", "expected_response"):
        assert together[name].iloc[0] == alone[name].iloc[0] is not None


def test_an_error_stays_one_whatever_a_format_makes_of_it() -> None:
    """Its row could not be read: without the error it would be a valid row without its request."""
    error, warning = Finding(MISSING_REQUEST, "none"), Finding(EMPTY_TRAJECTORY, "none", "reference_trajectory")
    for other in (None, warning):
        form = replace(ADK, adapt_issue=lambda _, other=other: other)
        assert form.adapted(error) == error
        assert form.adapted(warning) == other
    assert replace(ADK, adapt_issue=lambda _: error).adapted(warning) == error


def test_an_issue_stays_as_it_is_where_the_function_of_a_format_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(ADK_LEGACY, adapt_issue=lambda finding: finding.no)
    monkeypatch.setitem(registry._BY_NAME, "adk-legacy", broken)
    with pytest.warns(ExtensionWarning, match="AE505 is not adapted to adk-legacy: AttributeError"):
        report = validate_eval_set([{"query": "Hi", "expected_tool_use": []}])
    assert report.counts == {"AE505": 1}


def test_a_column_is_reported_by_the_walk_alone() -> None:
    """`respons` is near one of our columns: in a table of another format it is misspelled."""
    assert validate_eval_set([{"query": "Hi", "expected_tool_use": [], "respons": "Hello"}]).counts == {}
    assert "AE102" in validate_eval_set([{"request": "Hi", "respons": "Hello"}]).counts


def test_an_empty_list_of_calls_expects_none() -> None:
    for given_calls in ({"tool_uses": []}, {}, {"invocation_events": []}):
        report = validate_eval_set(evalset(turn(intermediate_data=given_calls)))
        assert "AE505" not in report.counts
        assert [row["reference_trajectory"] for row in report.iter_rows()] == [[]]
    assert "AE505" not in validate_eval_set([{**OLD, "expected_tool_use": []}]).counts


def test_the_texts_of_parts_are_joined_as_google_adk_joins_them() -> None:
    from google.adk.evaluation.agent_evaluator import AgentEvaluator
    from google.genai.types import Content

    parts = [{"text": "One"}, {"text": None}, {"text": ""}, {"functionCall": {"name": "f"}}, {"text": "Two"}]
    (row,) = validate_eval_set(evalset(turn(final_response={"parts": parts}))).iter_rows()
    theirs = AgentEvaluator._convert_content_to_text(Content.model_validate({"parts": parts}))
    assert row["expected_response"] == theirs == "One\nTwo"


def test_rubrics_keep_their_types_and_guidelines_become_rubrics_with_distinct_ids() -> None:
    """A metric of ADK reads the rubrics of its type only, and refuses two rubrics with one ID."""
    rubric = {"rubric_id": "r", "rubric_content": {"text_property": "Call once."}, "type": "TOOL_USE_QUALITY"}
    kept = convert_eval_set(evalset(turn(), rubrics=[rubric]), "adk")
    assert (kept.data["eval_cases"][0]["rubrics"], len(kept.losses)) == ([rubric], 0)
    row = {"request": "Why?", "expected_response": "So.", "guidelines": {"tone": ["kind", "brief"], "form": ["short"]}}
    made = convert_eval_set([row], "adk").data
    rubrics = made["eval_cases"][0]["rubrics"]
    assert [r["rubric_id"] for r in rubrics] == ["tone", "tone#2", "form"]
    assert {r["type"] for r in rubrics} == {"FINAL_RESPONSE_QUALITY"}
    (read,) = validate_eval_set(made).iter_rows()
    assert read["guidelines"] == row["guidelines"]


def test_rubrics_of_a_case_hold_for_its_turns_and_those_of_a_turn_for_it_alone() -> None:
    def rubric(name: str) -> dict[str, Any]:
        return {"rubric_id": name, "rubric_content": {"text_property": f"Be {name}."}}

    document = evalset(turn(), turn(rubrics=[rubric("brief")]), rubrics=[rubric("kind")])
    kind = {"kind": ["Be kind."]}
    assert [row["guidelines"] for row in validate_eval_set(document).iter_rows()] == [
        kind,
        {**kind, "brief": ["Be brief."]},
    ]
    made = convert_eval_set(document, "adk")
    assert made.lossless, made
    assert [row["guidelines"] for row in validate_eval_set(made.data).iter_rows()] == [
        kind,
        {**kind, "brief": ["Be brief."]},
    ]


# ---------------------------------------------------------------------------------------------------------------------
# each reads what the other writes


def test_what_its_manager_writes_is_valid_and_comes_back(tmp_path: Path) -> None:
    from google.adk.evaluation.eval_case import EvalCase
    from google.adk.evaluation.local_eval_sets_manager import LocalEvalSetsManager

    manager = LocalEvalSetsManager(str(tmp_path))
    manager.create_eval_set("app", "leave")
    turns = [turn(intermediate_data={"tool_uses": [CALL]}), turn(intermediate_data={"tool_uses": []})]
    case = {"eval_id": "c", "conversation": turns, "creation_timestamp": 2.0, "final_session_state": {"done": True}}
    manager.add_eval_case("app", "leave", EvalCase.model_validate(case))
    manager.add_eval_case("app", "leave", EvalCase.model_validate({"eval_id": "d", "conversation_scenario": SCENARIO}))

    path = str(tmp_path / "app" / "leave.evalset.json")
    report = validate_eval_set(path)
    assert (report.format, report.ok, report.row_count) == ("adk", True, 3), report.to_text()
    made = convert_eval_set(path, "adk")
    assert made.lossless, made
    again = tmp_path / "again.evalset.json"
    again.write_text(json.dumps(made.data))
    assert load_evalset(str(again)) == load_evalset(path)


@pytest.mark.parametrize(
    "content",
    [
        [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
        [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
        [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}],
        [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}],
        [{"type": "inline_data", "inline_data": {"mime_type": "image/png", "data": "AAAA"}}],
    ],
)
def test_google_adk_loads_messages_in_parts_as_we_write_them(content: list[Any], tmp_path: Path) -> None:
    row = {"request": {"messages": [{"role": "user", "content": content}]}, "expected_response": "A cat."}
    made = convert_eval_set([row], "adk")
    assert made.converted == 1
    assert accepts(made.data, tmp_path)


# ---------------------------------------------------------------------------------------------------------------------
# what is written: each invocation asks the agent once


def turns_written(data: Any, tmp_path: Path) -> list[list[Any]]:
    """The invocations of each case, as google-adk loads what is written."""
    path = tmp_path / "out.evalset.json"
    convert_eval_set(data, "adk").write(path)
    return [case.conversation for case in load_evalset(str(path)).eval_cases]


def asked(invocation: Any) -> list[str | None]:
    return [part.text for part in invocation.user_content.parts]


def test_the_response_of_a_tool_is_part_of_its_invocation(samples: Path, tmp_path: Path) -> None:
    """`Desk booking`: a question, a call, the response to it as an input (INPUT_TOOL_RESPONSE), the answer."""
    from google.adk.evaluation.eval_case import get_all_tool_calls, get_all_tool_responses

    leave, desk, badge = turns_written(samples / "golden.csv", tmp_path)
    (booking,) = desk
    assert asked(booking) == ["Book me a desk in Berlin for Tuesday"]
    assert [call.name for call in get_all_tool_calls(booking.intermediate_data)] == ["book_desk"]
    (response,) = get_all_tool_responses(booking.intermediate_data)
    assert (response.name, response.response) == ("book_desk", {"output": {"desk": "B-17"}})
    assert booking.final_response.parts[0].text == "Desk B-17 is yours on Tuesday."
    assert [len(leave), len(badge)] == [2, 1]  # a photo belongs to the words that come with it
    assert asked(badge[0]) == ["Here is the photo for my badge", None]
    assert asked(leave[0]) == ["How many days of leave do I have left?"]


def test_a_response_that_is_not_read_back_is_a_loss(samples: Path) -> None:
    losses = convert_eval_set(samples / "golden.csv", "adk").losses
    lost = losses[losses["request_id"] == "desk-booking#1"]
    assert lost["message"].str.contains("role.*tool.*would not be read back").any()


def test_earlier_turns_of_a_row_keep_their_calls_and_are_asked_once(tmp_path: Path) -> None:
    function = {"name": "get_balance", "arguments": '{"employee": "E1042"}'}
    messages = [
        {"role": "user", "content": "I am E1042."},
        {"role": "user", "content": "How many days have I left?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "12"},
        {"role": "assistant", "content": "12 days."},
        {"role": "user", "content": "Book one."},
    ]
    ((first, second),) = turns_written([{"request": {"messages": messages}, "expected_response": "Done."}], tmp_path)
    assert (asked(first), asked(second)) == (["I am E1042.", "How many days have I left?"], ["Book one."])
    assert [(use.name, use.args) for use in first.intermediate_data.tool_uses] == [("get_balance", CALL["args"])]
    (response,) = first.intermediate_data.tool_responses
    assert (response.name, response.response) == ("get_balance", {"output": 12})
    assert first.final_response.parts[0].text == "12 days."
