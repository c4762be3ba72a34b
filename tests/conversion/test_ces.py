"""Evaluations of Customer Engagement Suite ⇄ evaluation rows: golden, scenario, result, and all files between."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agent_eval_schema import ces, convert_eval_set, diff_eval_sets, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.formats.ces.rows import rows_of
from agent_eval_schema.schema import COLUMNS
from tests.conftest import DATA as TEST_DATA
from tests.conftest import SAMPLES
from tests.conversion.test_convert import ROWS, Row
from tests.formats.ces.test_evaluation import messages, official_dict
from tests.formats.ces.test_golden_writer import spelled

DATA = TEST_DATA / "ces"
GOLDEN = DATA / "golden_example.csv"
TOOLS = "projects/p1/locations/us/apps/a1/tools"


def test_an_evaluation_whose_rows_are_all_refused_is_not_converted() -> None:
    """vertex takes the text of a turn, and no image alone."""
    image = {"image": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    turns = [{"steps": [{"userInput": image}]}, {"steps": [{"userInput": {"text": "Hi"}}]}]
    evaluations = [{"displayName": str(n), "golden": {"turns": turns[:n]}} for n in (1, 2)]
    converted = convert_eval_set(evaluations, "vertex")
    assert (converted.given, converted.converted, len(converted.data)) == (2, 1, 1)
    assert convert_eval_set(evaluations, "vertex", on_invalid="keep").converted == 2


def test_the_name_of_an_agent_in_the_history_is_the_role_of_its_response() -> None:
    roles = ("user", "Hi"), ("assistant", "Hello"), ("user", "Bye")
    messages = [
        {"role": role, "content": text, **({"name": "greeter"} if text == "Hello" else {})} for role, text in roles
    ]
    row = {"request": {"messages": messages}, "expected_response": "Bye"}
    (evaluation,) = convert_eval_set([row], "ces-evaluation").data
    found = [step for turn in evaluation["golden"]["turns"] for step in turn["steps"] if "expectation" in step]
    assert found[0]["expectation"]["agentResponse"] == {"role": "greeter", "chunks": [{"text": "Hello"}]}


def expected(number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"golden_example_expected_{number}.json").read_text())
    return found


def rows(data: Any, **options: Any) -> list[Row]:
    made = convert_eval_set(data, "databricks", **options).data
    return [{k: v for k, v in row.items() if v is not None} for row in made.to_dict("records")]


def losses(made: Any) -> list[tuple[str, str | None]]:
    return list(zip(made.losses["code"], made.losses["path"], strict=True))


# ---------------------------------------------------------------------------------------------------------------------
# golden → rows


def test_a_turn_that_expects_something_is_a_row() -> None:
    first, second = rows_of(expected(1), ["Regression", "Billing"])
    assert (first["request_id"], second["request_id"]) == ("refund-happy-path#1", "refund-happy-path#2")
    assert first["expected_response"] == "Sure, send me a photo."
    assert first["reference_trajectory"] == [{"tool_name": f"{TOOLS}/get_order", "tool_input": {"order_id": "42"}}]
    assert second["expected_response"] == "Your refund is on its way."
    assert "reference_trajectory" not in second


def test_the_inputs_of_a_turn_are_its_request() -> None:
    first, _ = rows_of(expected(1))
    assert first["request"]["messages"] == [
        {"role": "user", "content": [{"type": "variables", "variables": {"customer_id": "C-1"}}]},
        {"role": "user", "content": "I want a refund, please"},
    ]


def test_the_turns_before_are_the_chat_so_far() -> None:
    _, second = rows_of(expected(1))
    messages = second["request"]["messages"]
    assert [m["role"] for m in messages] == ["user", "user", "assistant", "tool", "assistant", "user", "tool"]
    (call,) = messages[2]["tool_calls"]
    assert call["function"] == {"name": f"{TOOLS}/get_order", "arguments": '{"order_id":"42"}'}
    assert messages[3] == {
        "role": "tool",
        "name": f"{TOOLS}/get_order",
        "content": "{}",
        "tool_call_id": call["id"],
    }
    assert messages[4] == {"role": "assistant", "content": "Sure, send me a photo.", "name": "refunds_agent"}
    assert messages[5]["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
    assert messages[6]["content"] == '{"output":{"total":12.5}}'


def test_tags_and_groups_go_to_tags() -> None:
    first, _ = rows_of(expected(1), ["Regression", "Billing"])
    assert first["tags"] == {
        "display_name": "Refund happy path",
        "description": "Golden, with every action type",
        "tags": "refund;p0",
        "evaluation_groups": "Regression;Billing",
        "response_agent": "refunds_agent",
    }


def test_what_no_column_says_of_an_expectation_stands_in_custom_expected() -> None:
    first, _ = rows_of(expected(1))
    kept = first["custom_expected"]["expectations"]
    assert [next(k for k in e if k != "note") for e in kept] == ["toolCall", "toolResponse", "agentTransfer"]
    assert kept[0]["note"] == "Check_Order_Lookup"


def test_any_arguments_stay_different_from_none() -> None:
    def arguments(call: dict[str, Any], told: list[str]) -> Any:
        step = {"expectation": {"toolCall": {"tool": "t", **call}}}
        turn = {"steps": [{"userInput": {"text": "Hi"}}, step]}
        made = convert_eval_set([{"displayName": "x", "golden": {"turns": [turn]}}], "databricks")
        assert made.losses["path"].tolist() == told
        back = convert_eval_set(made.data, format="databricks", to="ces-evaluation").data
        return back[0]["golden"]["turns"][0]["steps"][1]["expectation"]["toolCall"]

    assert arguments({}, ["golden.turns[0].steps[1].expectation.toolCall.args"]) == {"tool": "t"}
    assert arguments({"args": {}}, []) == {"tool": "t", "args": {}}


def test_no_tool_calls_is_an_empty_trajectory() -> None:
    steps = [{"userInput": {"text": "Hi"}}, {"expectation": {"noToolCalls": True}}]
    (row,) = rows_of({"displayName": "x", "golden": {"turns": [{"steps": steps}]}})
    assert row["reference_trajectory"] == []
    assert row["request_id"] == "x#1"


def test_a_turn_that_expects_nothing_is_history_only() -> None:
    turns = [
        {"steps": [{"userInput": {"text": "Hi"}}]},
        {
            "steps": [
                {"userInput": {"text": "And?"}},
                {"expectation": {"agentResponse": {"chunks": [{"text": "Yes."}]}}},
            ]
        },
    ]
    (row,) = rows_of({"displayName": "x", "golden": {"turns": turns}})
    assert row["request_id"] == "x#2"
    assert [m["content"] for m in row["request"]["messages"]] == ["Hi", "And?"]


def test_snake_case_is_read_like_camel_case() -> None:
    snake = {
        "display_name": "x",
        "golden": {
            "turns": [
                {
                    "steps": [
                        {"user_input": {"text": "Hi"}},
                        {"expectation": {"tool_call": {"tool": "t", "args": {"user_id": 1}}}},
                    ]
                }
            ]
        },
    }
    (row,) = rows_of(snake)
    assert row["reference_trajectory"] == [{"tool_name": "t", "tool_input": {"user_id": 1}}]


# ---------------------------------------------------------------------------------------------------------------------
# scenario, result


def test_the_task_of_a_scenario_is_the_request() -> None:
    scenario = {
        "task": "Get a refund for order 42.",
        "rubrics": ["The agent is polite."],
        "scenarioExpectations": [
            {
                "toolExpectation": {
                    "expectedToolCall": {"tool": "get_order", "args": {"order_id": "42"}},
                    "mockToolResponse": {"tool": "get_order", "response": {"state": "paid"}},
                }
            },
            {"agentResponse": {"role": "agent", "chunks": [{"text": "Your refund is on its way."}]}},
        ],
        "userFacts": [{"name": "order", "value": "42"}],
        "maxTurns": 5,
    }
    (row,) = rows([{"displayName": "Refund", "scenario": scenario, "tags": ["p0"]}])
    assert row["request"] == {"messages": [{"role": "user", "content": "Get a refund for order 42."}]}
    assert row["expected_facts"] == ["Your refund is on its way."]
    assert row["guidelines"] == {"rubrics": ["The agent is polite."]}
    assert row["reference_trajectory"] == [{"tool_name": "get_order", "tool_input": {"order_id": "42"}}]
    assert row["custom_expected"] == {"evaluation": {"scenario": scenario}}
    assert row["tags"] == {"tags": "p0"}


def test_a_result_becomes_rows_with_what_was_observed() -> None:
    outcome = {
        "expectation": {"toolCall": {"tool": "get_order", "args": {"order_id": "42"}}},
        "observedToolCall": {"tool": "get_order", "args": {"order_id": "43"}},
        "outcome": "FAIL",
        "toolInvocationResult": {"parameterCorrectnessScore": 0.0, "outcome": "FAIL"},
    }
    said = {
        "expectation": {"agentResponse": {"role": "a", "chunks": [{"text": "Here it is."}]}},
        "observedAgentResponse": {"role": "a", "chunks": [{"text": "I cannot find it."}]},
        "outcome": "PASS",
    }
    result = {
        "name": "projects/p/locations/us/apps/a/evaluations/refund/results/r1",
        "displayName": "Refund",
        "evaluationStatus": "FAIL",
        "goldenResult": {
            "turnReplayResults": [
                {
                    "conversation": "projects/p/locations/us/apps/a/conversations/c1",
                    "expectationOutcome": [outcome, said],
                    "toolInvocationScore": 1.0,
                    "toolOrderedInvocationScore": 0.0,
                    "turnLatency": "1.250s",
                }
            ]
        },
    }
    (row,) = rows_of(result)
    assert row["request_id"] == "refund#1"
    assert row["predicted_trajectory"] == [{"tool_name": "get_order", "tool_input": {"order_id": "43"}}]
    assert row["reference_trajectory"] == [{"tool_name": "get_order", "tool_input": {"order_id": "42"}}]
    assert (row["response"], row["expected_response"]) == ("I cannot find it.", "Here it is.")
    assert row["latency_seconds"] == 1.25
    assert row["session_id"].endswith("/conversations/c1")
    assert row["custom_expected"]["scores"] == {
        "toolInvocationScore": 1.0,
        "toolOrderedInvocationScore": 0.0,
        "parameterCorrectnessScore": [0.0],
        "outcomes": ["FAIL", "PASS"],
    }
    assert [row["request_id"] for row in rows([result])] == ["refund#1"]


@pytest.mark.parametrize(
    ("latency", "seconds"),
    [("2s", 2.0), ("0.000000001s", 1e-9), ("nans", None), ("infs", None), ("1e400s", None), ("s", None), (2, None)],
)
def test_the_latency_of_a_turn_is_a_duration(latency: Any, seconds: float | None) -> None:
    (row,) = rows_of({"name": "r", "goldenResult": {"turnReplayResults": [{"turnLatency": latency}]}})
    assert row.get("latency_seconds") == seconds


def test_the_result_of_a_scenario_is_a_row_with_what_was_expected_and_observed() -> None:
    order, refund = ({"tool": name, "args": {"id": 7}} for name in ("get_order", "refund"))
    outcomes = [
        {"expectation": {"toolExpectation": {"expectedToolCall": order}}, "observedToolCall": {"toolCall": order}},
        {"observedToolCall": {"toolCall": refund}},
    ]
    result = {
        "name": "projects/p/locations/us/apps/a/evaluations/refund/results/r1",
        "evaluationStatus": "FAIL",
        "errorInfo": {"errorType": "RUNTIME_FAILURE", "errorMessage": "no answer"},
        "scenarioResult": {
            "task": "Ask for a refund",
            "conversation": "c1",
            "allExpectationsSatisfied": False,
            "expectationOutcomes": outcomes,
            "userGoalSatisfactionResult": {"score": 0},
        },
    }
    assert list(rows_of(result)) == [
        {
            "request_id": "refund",
            "request": {"messages": [{"role": "user", "content": "Ask for a refund"}]},
            "predicted_trajectory": [{"tool_name": n, "tool_input": {"id": 7}} for n in ("get_order", "refund")],
            "reference_trajectory": [{"tool_name": "get_order", "tool_input": {"id": 7}}],
            "failure": True,
            "error": "RUNTIME_FAILURE: no answer",
            "tags": {"evaluation_status": "FAIL"},
            "session_id": "c1",
            "custom_expected": {"scores": {"allExpectationsSatisfied": False, "userGoalSatisfaction": 0}},
        }
    ]


# ---------------------------------------------------------------------------------------------------------------------
# between CSV, JSON and rows


def test_a_golden_csv_becomes_the_expected_json() -> None:
    made = convert_eval_set(str(GOLDEN), "ces-evaluation")
    assert [e["displayName"] for e in made.data] == ["Refund happy path", "Second evaluation"]
    assert losses(made) == [("AE811", "evaluation_groups")]
    assert (made.given, made.converted) == (2, 2)


def test_json_becomes_a_golden_csv_and_is_the_same_again() -> None:
    made = convert_eval_set(str(GOLDEN), "ces-evaluation").data
    text = convert_eval_set(made, "ces-csv").data
    assert [dict(e) for e in ces.read_golden_csv(text).evaluations] == made


def test_what_the_csv_cannot_say_is_a_loss_of_its_evaluation() -> None:
    scenario = {"task": "t", "rubrics": ["r"], "scenarioExpectations": []}
    made = convert_eval_set([*[expected(2)], {"displayName": "s", "scenario": scenario}], "ces-csv")
    assert [(i, c) for i, c in zip(made.losses["row"], made.losses["code"], strict=True) if c == "AE801"] == [
        (1, "AE801")
    ]


def test_a_golden_csv_becomes_rows_with_its_groups() -> None:
    found = rows(str(GOLDEN))
    assert [row["request_id"] for row in found] == [
        "refund-happy-path#1",
        "refund-happy-path#2",
        "Second evaluation#1",
    ]
    assert found[0]["tags"]["evaluation_groups"] == "Regression;Billing"
    assert validate_eval_set(convert_eval_set(str(GOLDEN), "databricks").data, outputs="generated").ok


def test_broken_evaluations_are_left_out_and_told(tmp_path: Path) -> None:
    lines = GOLDEN.read_text().splitlines()
    lines[3] = lines[3].replace("INPUT_TEXT", "INPUT_TXT")
    path = tmp_path / "broken.csv"
    path.write_text("\n".join(lines) + "\n")
    made = convert_eval_set(str(path), "databricks")
    assert (made.given, made.converted) == (2, 1)
    assert losses(made) == [("AE814", None)]
    assert made.losses["row"].tolist() == [0]
    assert made.data["request_id"].tolist() == ["Second evaluation#1"]


def test_what_no_column_says_stands_beside_its_rows() -> None:
    turn = {
        "steps": [
            {"userInput": {"text": "Hi", "willContinue": True}},
            {"agentTransfer": {"targetAgent": "b"}},
            {"expectation": {"noToolCalls": True}},
        ]
    }
    evaluation = {"displayName": "x", "golden": {"turns": [turn], "evaluationExpectations": ["e1"]}, "etag": "e"}
    made = convert_eval_set([evaluation], "databricks")
    assert made.lossless
    assert made.data["custom_expected"][0] == {"evaluation": {k: evaluation[k] for k in ("golden", "etag")}}
    assert convert_eval_set(made.data, "ces-evaluation").data == [evaluation]


def test_a_row_becomes_a_golden_evaluation_that_is_valid_there() -> None:
    row = {
        "request_id": "leave#1",
        "request": "How many days?",
        "expected_response": "12 days.",
        "reference_trajectory": [{"tool_name": "get_balance", "tool_input": {"id": 1}}],
    }
    made = convert_eval_set([row], "ces-evaluation")
    assert made.data == [
        {
            "displayName": "leave",
            "golden": {
                "turns": [
                    {
                        "steps": [
                            {"userInput": {"text": "How many days?"}},
                            {"expectation": {"toolCall": {"tool": "get_balance", "args": {"id": 1}}}},
                            {"expectation": {"agentResponse": {"chunks": [{"text": "12 days."}]}}},
                        ]
                    }
                ]
            },
        }
    ]
    assert made.lossless
    assert not [i for i in ces.validate_evaluation(made.data[0]) if i.severity == "error"]


@pytest.mark.parametrize("target", ["ces-evaluation", "ces-csv"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS)
def test_nothing_is_lost_in_silence(target: str, rows: list[Row]) -> None:
    made = convert_eval_set(rows, target)
    told = set(zip(made.losses["row"], made.losses["column"], strict=True))
    left_out = {r for r, c in told if c is None}
    if target == "ces-csv":
        file = ces.read_golden_csv(made.data)
        assert file.ok, file.issues
        return
    for place, evaluation in zip([i for i in range(len(rows)) if i not in left_out], made.data, strict=True):
        row = list(made.report.iter_rows())[place]
        back = [*validate_eval_set(rows_of(evaluation), outputs="generated").iter_rows()]
        came = back[-1] if back else dict.fromkeys(COLUMNS)
        assert {c for c in COLUMNS if row[c] is not None and row[c] != came[c]} <= {c for r, c in told if r == place}


# ---------------------------------------------------------------------------------------------------------------------
# there and back


def left_out(made: Any) -> bool:
    """Whether something that is not valid as rows was left out, such as a turn before anything was said."""
    return bool((made.losses["code"] == "AE814").any())


@pytest.mark.property
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(messages("Evaluation"), min_size=1, max_size=2))
def test_evaluations_are_the_same_after_rows(values: list[Row]) -> None:
    """For the vendor's parser too."""
    there = convert_eval_set(values, format="ces-evaluation", to="databricks")
    assume(not left_out(there))
    back = convert_eval_set(there.data, format="databricks", to="ces-evaluation")
    assert back.lossless, back.losses.to_dict("records")
    assert back.data == [spelled("Evaluation", json.loads(json.dumps(value))) for value in values]
    assert [official_dict(json.dumps(e)) for e in back.data] == [official_dict(json.dumps(v)) for v in values]


@pytest.mark.property
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    st.lists(messages("Evaluation").filter(lambda value: value.get("golden")), min_size=1, max_size=3),
    st.lists(st.sampled_from(["Regression", "Billing, EU"]), max_size=2, unique=True),
)
def test_a_golden_csv_is_the_same_after_rows(values: list[Row], groups: list[str]) -> None:
    named = {str(v.get("displayName") or v.get("display_name")): groups for v in values}
    text, _ = ces.golden_csv_text(values, groups=named)
    with TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("there.csv", "rows.jsonl", "back.csv")]
        files[0].write_bytes(text.encode())
        there = convert_file(str(files[0]), str(files[1]), "databricks")
        assume(there.converted and not left_out(there))
        assert diff_eval_sets(files[0], files[1], outputs="generated").same
        back = convert_file(str(files[1]), str(files[2]), format="databricks", to="ces-csv")
        assert set(back.losses["code"]) <= {"AE805"}
        assert files[2].read_bytes() == files[0].read_bytes()


def golden_rows() -> list[Row]:
    return rows(str(GOLDEN))


def test_the_turns_of_an_evaluation_come_together_again() -> None:
    made = convert_eval_set(golden_rows()[::-1], format="databricks", to="ces-csv")
    names = ["Second evaluation", "Refund happy path"]
    assert [e["displayName"] for e in ces.read_golden_csv(made.data).evaluations] == names
    assert ces.read_golden_csv(made.data).groups == ces.read_golden_csv(str(GOLDEN)).groups
    assert made.lossless


def test_turns_of_two_conversations_with_equal_numbers_do_not_mix() -> None:
    conversations = [[row for row in golden_rows() if row["request_id"].startswith("refund")] for _ in range(2)]
    for row in conversations[1]:
        row["request"]["messages"].insert(0, {"role": "user", "content": "Hello"})
        row["request_id"] = row["request_id"].replace("#", "#0")
    converted = convert_eval_set([*conversations[0], *conversations[1]], format="databricks", to="ces-evaluation")
    assert [len(e["golden"]["turns"]) for e in converted.data] == [2, 2]
    first = [e["golden"]["turns"][0]["steps"][0]["userInput"] for e in converted.data]
    assert [inputs == {"text": "Hello"} for inputs in first] == [False, True]


def test_a_call_of_a_toolset_is_named_by_both() -> None:
    call = {"toolsetTool": {"toolset": "orders", "toolId": "get"}, "args": {"id": 7}}
    steps = [{"userInput": {"text": "Hi"}}, {"expectation": {"toolCall": call}}]
    (row,) = rows([{"displayName": "a", "golden": {"turns": [{"steps": steps}]}}])
    assert row["reference_trajectory"] == [{"tool_name": "orders/get", "tool_input": {"id": 7}}]


def test_a_call_that_was_taken_out_of_the_trajectory_is_not_written() -> None:
    changed = golden_rows()
    expectations = [{"toolCall": {"tool": "gone", "args": {}}, "note": "x"}]
    changed[1]["custom_expected"] = {"expectations": expectations}
    converted = convert_eval_set(changed, format="databricks", to="ces-evaluation")
    assert "gone" not in json.dumps(converted.data)


def test_a_row_with_a_system_message_alone_is_a_turn_of_its_expectations() -> None:
    row = {"request": {"messages": [{"role": "system", "content": "Be kind."}]}, "expected_response": "Hello"}
    converted = convert_eval_set([row], "ces-evaluation", on_invalid="keep")
    ((turn,),) = [evaluation["golden"]["turns"] for evaluation in converted.data]
    assert turn["steps"] == [{"expectation": {"agentResponse": {"chunks": [{"text": "Hello"}]}}}]
    assert losses(converted) == [("AE811", "request")]


def test_the_last_turns_alone_hold_their_history() -> None:
    (evaluation,) = convert_eval_set(golden_rows()[1:2], format="databricks", to="ces-evaluation").data
    assert (evaluation["displayName"], evaluation["name"]) == ("Refund happy path", "refund-happy-path")
    assert len(evaluation["golden"]["turns"]) == 2


def evalset(cases: int, turns: int) -> dict[str, Any]:
    """An evalset of the ADK, whose chat does not repeat the calls of a turn; every case asks something else."""

    def invocation(case: int, turn: int) -> dict[str, Any]:
        return {
            "user_content": {"role": "user", "parts": [{"text": f"Question {case}.{turn}"}]},
            "final_response": {"role": "model", "parts": [{"text": f"Answer {turn}"}]},
            "intermediate_data": {"tool_uses": [{"name": "look_up", "args": {"turn": turn}}]},
        }

    made = [{"eval_id": f"case {c}", "conversation": [invocation(c, t) for t in range(turns)]} for c in range(cases)]
    return {"eval_set_id": "s", "eval_cases": made}


def test_the_turns_of_a_case_of_the_adk_come_together_with_their_calls() -> None:
    made = convert_eval_set(evalset(20, 30), "ces-evaluation")
    assert [e["displayName"] for e in made.data] == [f"case {i}" for i in range(20)]
    assert {len(e["golden"]["turns"]) for e in made.data} == {30}
    for turn, steps in enumerate(turn["steps"] for turn in made.data[7]["golden"]["turns"]):
        call, answer = steps[1]["expectation"], steps[2]["expectation"]
        assert call == {"toolCall": {"tool": "look_up", "args": {"turn": turn}}}
        assert answer["agentResponse"]["chunks"] == [{"text": f"Answer {turn}"}]
    assert [e for e in made.data if ces.validate_evaluation(e)] == []
    assert made.losses["column"].unique().tolist() == ["request"]  # the calls are in the chat of later turns now


def test_a_diff_with_an_evalset_compares_its_cases() -> None:
    data = evalset(2, 3)
    diff = diff_eval_sets(data, convert_eval_set(data, "ces-evaluation").data)
    assert (diff.counts["added"], diff.counts["removed"]) == (0, 0)
    assert diff.fields == {"request": 4, "eval_set_id": 6}  # of later turns, whose chat has the calls now


def test_other_calls_in_the_chat_are_another_conversation() -> None:
    changed = golden_rows()
    call = next(m for m in changed[1]["request"]["messages"] if m.get("tool_calls"))["tool_calls"][0]
    call["function"]["name"] = "other"
    made = convert_eval_set(changed, format="databricks", to="ces-evaluation")
    assert len(made.data) == 3


@pytest.mark.parametrize("name", [None, "look_up"])
def test_the_response_of_a_tool_has_the_name_of_its_call(name: str | None) -> None:
    function = {"name": "look_up", "arguments": "{}"}
    chat = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "12", **({"name": name} if name else {})},
        {"role": "assistant", "content": "Twelve."},
        {"role": "user", "content": "And now?"},
    ]
    row = {"request": {"messages": chat}, "expected_response": "None."}
    (evaluation,) = convert_eval_set([row], "ces-evaluation").data
    response = evaluation["golden"]["turns"][0]["steps"][2]["expectation"]["toolResponse"]
    assert response == {"tool": "look_up", "response": {"output": 12}}


def test_groups_have_no_place_in_json_and_that_is_told() -> None:
    made = convert_eval_set(golden_rows(), format="databricks", to="ces-evaluation")
    assert losses(made) == [("AE812", "tags.evaluation_groups")] * 2


def test_a_column_that_was_changed_comes_first() -> None:
    changed = golden_rows()
    changed[1]["expected_response"] = "It is on its way."
    changed[1]["tags"]["description"] = "Other"
    (evaluation, _) = convert_eval_set(changed, format="databricks", to="ces-evaluation").data
    said = evaluation["golden"]["turns"][1]["steps"][-1]["expectation"]["agentResponse"]["chunks"]
    assert said == [{"text": "It is on its way."}]
    assert convert_eval_set(changed[:1], format="databricks", to="ces-evaluation").data[0]["description"] != "Other"


def test_a_row_that_does_not_go_on_from_the_one_before_is_an_evaluation_of_its_own() -> None:
    """Together they would be asked something else: the answer of the first turn is history of the second."""
    changed = golden_rows()
    changed[0]["expected_response"] = "No."
    made = convert_eval_set(changed, format="databricks", to="ces-evaluation")
    names = ["refund-happy-path#1", "refund-happy-path#2", "Second evaluation"]
    assert [e["displayName"] for e in made.data] == names
    assert ("AE812", "request_id") in losses(made)


SCENARIO: Row = {
    "displayName": "Refund",
    "scenario": {
        "task": "Get a refund.",
        "rubrics": ["Polite."],
        "scenarioExpectations": [
            {"toolExpectation": {"expectedToolCall": {"tool": "a", "args": {}}, "mockToolResponse": {"tool": "a"}}},
            {"toolExpectation": {"expectedToolCall": {"tool": "b", "args": {}}}},
            {"agentResponse": {"role": "x", "chunks": [{"text": "Done."}]}},
        ],
        "maxTurns": 5,
    },
}


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"request": "Get it."}, "task", "Get it."),
        ({"guidelines": ["Short."]}, "rubrics", ["Short."]),
        (
            {"expected_facts": ["Paid."]},
            "scenarioExpectations",
            [*SCENARIO["scenario"]["scenarioExpectations"][:2], {"agentResponse": {"chunks": [{"text": "Paid."}]}}],
        ),
        (
            {"reference_trajectory": [{"tool_name": "a", "tool_input": {}}]},
            "scenarioExpectations",
            [SCENARIO["scenario"]["scenarioExpectations"][i] for i in (0, 2)],
        ),
    ],
)
def test_a_scenario_stays_one_with_what_was_changed(change: Row, field: str, value: Any) -> None:
    (row,) = rows([SCENARIO])
    (evaluation,) = convert_eval_set([{**row, **change}], format="databricks", to="ces-evaluation").data
    assert evaluation == {**SCENARIO, "scenario": {**SCENARIO["scenario"], field: value}}


def test_a_diff_of_rows_against_a_golden_csv_compares_rows() -> None:
    made = golden_rows()
    assert diff_eval_sets(str(GOLDEN), made).same
    made[2]["expected_response"] = "No."
    diff = diff_eval_sets(made, str(GOLDEN))
    assert diff.fields == {"expected_response": 1}
    assert diff.changed["request_id"].tolist() == ["Second evaluation#1"]


def test_a_diff_with_rows_does_not_forget_what_is_not_valid() -> None:
    golden = SAMPLES / "golden_broken.csv"
    diff = diff_eval_sets(golden, convert_eval_set(golden, "databricks").data)
    assert not diff.same
    assert diff.counts["removed"] == len(ces.read_golden_csv(golden).evaluations)


def test_the_forms_of_ces_are_compared_by_their_rows() -> None:
    made = convert_eval_set(str(GOLDEN), "ces-evaluation").data
    assert diff_eval_sets(str(GOLDEN), made).fields == {"tags": 2}  # the groups


def test_the_commands_of_the_readme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden, made, made_rows = str(GOLDEN), str(tmp_path / "out.json"), str(tmp_path / "rows.jsonl")
    assert main(["convert", golden, made, "--to", "ces-evaluation", "-q"]) == 0
    assert "ces-csv → ces-evaluation: 2 of 2 evaluations converted" in capsys.readouterr().out
    assert main(["validate", made, "-q"]) == 0
    assert main(["convert", golden, made_rows, "--to", "databricks", "-q"]) == 0
    assert main(["validate", made_rows, "--outputs", "generated", "-q"]) == 0
    assert main(["convert", made, str(tmp_path / "again.csv"), "--to", "ces-csv", "-q"]) == 0
    assert main(["validate", str(tmp_path / "again.csv"), "-q"]) == 0


# ---------------------------------------------------------------------------------------------------------------------
# every source, and what is left of it


def says(text: str, agent: str = "a") -> Any:
    return {"expectation": {"agentResponse": {"role": agent, "chunks": [{"text": text}]}}}


GOOD = {"displayName": "A", "golden": {"turns": [{"steps": [{"userInput": {"text": "Hi"}}, says("Hello")]}]}}


def test_a_line_that_is_no_evaluation_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.jsonl"
    path.write_text(json.dumps(GOOD) + "\n{bad\n[]\n")
    made = convert_eval_set(path, format="ces-evaluation", to="databricks")
    assert (made.given, made.converted, len(made.data)) == (3, 1, 1)
    assert losses(made) == [("AE814", None)] * 2
    assert made.losses["row"].tolist() == [1, 2]


def test_frames_are_converted_like_files() -> None:
    frame = pd.read_csv(SAMPLES / "golden.csv", dtype=str, keep_default_na=False)
    from_file = convert_eval_set(SAMPLES / "golden.csv", "ces-evaluation")
    assert convert_eval_set(frame, "ces-evaluation").data == from_file.data
    rows_ = convert_eval_set(pd.DataFrame([GOOD]), "databricks").data
    assert list(rows_["expected_response"]) == ["Hello"]


def test_a_conversation_that_is_nobodys_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("display_name,turn_index,action_type,text_content\n,1,INPUT_TEXT,Hi\nA,,,\n,1,INPUT_TEXT,Hi\n")
    made = convert_eval_set(path, "ces-evaluation")
    assert (made.given, made.converted) == (2, 1)
    assert losses(made) == [("AE814", None)]


def test_an_evaluation_that_a_csv_cannot_hold_is_not_counted_as_converted() -> None:
    made = convert_eval_set(SAMPLES / "evaluation.json", "ces-csv")
    assert (made.given, made.converted) == (2, 1)


def test_what_a_row_expects_to_be_said_stands_in_the_csv() -> None:
    made = convert_eval_set([{"request": "Hi", "expected_response": "Hello"}], "ces-csv")
    file = ces.read_golden_csv(made.data)
    assert file.evaluations[0]["golden"]["turns"][0]["steps"][-1] == says("Hello", "agent")
    assert ("AE803", "golden.turns[0].steps[1].expectation.agentResponse.role") in losses(made)


def test_what_a_result_expected_beyond_texts_and_calls_is_kept() -> None:
    transfer = {"agentTransfer": {"targetAgent": "b"}}
    turn = {"expectationOutcome": [{"expectation": transfer, "outcome": "PASS"}], "errorInfo": {"errorType": "X"}}
    (row,) = rows_of({"name": "r", "goldenResult": {"turnReplayResults": [turn]}})
    assert row["custom_expected"]["expectations"] == [transfer]
    assert "reference_trajectory" not in row
    assert "predicted_trajectory" not in row
    assert row["error"] == "X"


def test_what_no_row_says_of_a_result_is_told() -> None:
    outcome = {
        "expectation": {"toolCall": {"tool": "f", "args": {}}},
        "observedToolCall": {"id": "1", "tool": "f", "args": {}},
    }
    turn = {
        "expectationOutcome": [outcome],
        "overallToolInvocationResult": {"toolInvocationScore": 1, "outcome": "PASS"},
    }
    made = convert_eval_set([{"name": "r", "goldenResult": {"turnReplayResults": [turn]}}], "databricks")
    at = "goldenResult.turnReplayResults[0]"
    assert {path for code, path in losses(made) if code == "AE813"} == {
        f"{at}.expectationOutcome[0].observedToolCall.id",
        f"{at}.overallToolInvocationResult.outcome",
    }


def test_a_row_with_a_nul_is_not_lost(tmp_path: Path) -> None:
    """It is a warning: the cell could be read."""
    path = tmp_path / "golden.csv"
    path.write_text("display_name,turn_index,action_type,text_content\nA,,,\n,1,INPUT_TEXT,a\0b\n,1,INPUT_TEXT,c\n")
    (evaluation,) = convert_eval_set(path, "ces-evaluation").data
    assert [step["userInput"]["text"] for step in evaluation["golden"]["turns"][0]["steps"]] == ["a\0b", "c"]


@pytest.mark.parametrize("target", ["ces-evaluation", "ces-csv"])
def test_what_ces_keeps_as_another_number_is_a_loss(target: Any) -> None:
    calls = [{"tool_name": "t", "tool_input": {"n": 2**60 + 1}}]
    made = convert_eval_set([{"request": "Hi", "expected_response": "Hello", "reference_trajectory": calls}], target)
    (loss,) = made.losses[made.losses["code"] == "AE146"].to_dict("records")
    assert (loss["row"], loss["path"].endswith("toolCall.args.n")) == (0, True)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_prompt_is_nothing_that_the_user_says(role: str) -> None:
    messages = [{"role": role, "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    made = convert_eval_set([{"request": {"messages": messages}, "expected_response": "Hello"}], "ces-evaluation")
    (evaluation,) = made.data
    steps = [step for turn in evaluation["golden"]["turns"] for step in turn["steps"]]
    assert [step["userInput"] for step in steps if "userInput" in step] == [{"text": "Hi"}]
    assert "Be brief." in made.losses["message"].item()
