"""Conversion between the neighbors' formats: what is read, what is written, and that every loss is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError, convert_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.formats.names import TARGETS, TargetFormat
from agent_eval_schema.formats.registry import FORMATS, find_format
from agent_eval_schema.metrics.support import metrics_of, shown_systems
from agent_eval_schema.schema import COLUMNS
from tests.conftest import SAMPLES
from tests.helpers.traces import expects, span, trace

Row = dict[str, Any]

FORMS = [name for name in TARGETS if not name.startswith("ces-")]
"""Those of Customer Engagement Suite have tests of their own: test_ces.py."""

OF_TURNS = ("adk", "adk-legacy", "agentcore", "bedrock-rag", "m365-copilot")
"""Formats in which the messages before a question are turns of their own."""

CALL = {"tool_name": "get_balance", "tool_input": {"employee": "E1042"}}
USER = {"role": "user", "content": "How many days?"}


def rows_of(data: Any, **options: Any) -> list[Row]:
    """The canonical values of the rows, without what is absent."""
    report = validate_eval_set(data, **options)
    assert report.ok, report.to_text()
    return [{k: v for k, v in row.items() if v is not None} for row in report.iter_rows()]


def losses_of(data: Any, target: str) -> set[tuple[str, str]]:
    found = convert_eval_set(data, target).losses
    return set(zip(found["code"], found["path"], strict=True))


# ---------------------------------------------------------------------------------------------------------------------
# reading


def test_vertex_rows_are_read() -> None:
    row = {
        "prompt": "How many days?",
        "response": "12.",
        "reference": "12 days.",
        "predicted_trajectory": [CALL],
        "reference_trajectory": json.dumps([CALL]),
        "latency_in_seconds": 0.5,
        "failure": 0,
    }
    report = validate_eval_set([row])
    assert report.format == "vertex"
    assert rows_of([row]) == [
        {
            "request": {"messages": [USER]},
            "response": "12.",
            "expected_response": "12 days.",
            "predicted_trajectory": [CALL],
            "reference_trajectory": [CALL],
            "latency_seconds": 0.5,
            "failure": False,
        }
    ]


def test_a_single_turn_sample_of_ragas_is_read() -> None:
    row = {
        "user_input": "How many days?",
        "response": "12.",
        "reference": "12 days.",
        "retrieved_contexts": ["You have 12 days.", "Leave is paid."],
        "retrieved_context_ids": ["leave.pdf", 7],
        "reference_contexts": ["You have 12 days."],
    }
    (found,) = rows_of([row])
    assert validate_eval_set([row]).format == "ragas"
    assert found["retrieved_context"] == [
        {"doc_uri": "leave.pdf", "content": "You have 12 days."},
        {"doc_uri": "7", "content": "Leave is paid."},
    ]
    (expected,) = found["expected_retrieved_context"]
    assert expected["content"] == "You have 12 days."
    assert expected["doc_uri"].startswith("text:sha256-")


def test_equal_texts_are_one_document_so_that_recall_means_something() -> None:
    row = {"user_input": "q", "response": "r", "retrieved_contexts": ["a", "b"], "reference_contexts": ["b"]}
    (found,) = rows_of([row])
    assert found["expected_retrieved_context"][0] == found["retrieved_context"][1]


def test_what_follows_the_last_question_of_a_ragas_conversation_is_what_the_agent_did() -> None:
    conversation = [
        {"type": "human", "content": "Hi"},
        {"type": "ai", "content": "Hello!"},
        {"type": "human", "content": "How many days?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "get_balance", "args": {"employee": "E1042"}}]},
        {"type": "tool", "content": "12"},
        {"type": "ai", "content": "12 days."},
    ]
    row = {"user_input": conversation, "reference_tool_calls": [{"name": "get_balance", "args": {"employee": "E1042"}}]}
    (found,) = rows_of([row])
    assert found.pop("user_input") == conversation  # which stays, with the results of tools
    assert [found] == [
        {
            "request": {
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "Hello!"},
                    {"role": "user", "content": "How many days?"},
                ]
            },
            "response": "12 days.",
            "predicted_trajectory": [CALL],
            "reference_trajectory": [CALL],
        }
    ]
    assert convert_eval_set([row], "databricks").lossless
    assert convert_eval_set([row], "ragas").data["user_input"].tolist() == [conversation]


def test_deepeval_test_cases_are_read_and_what_has_no_column_is_told() -> None:
    row = {
        "name": "case 1",
        "input": "How many days?",
        "actual_output": "12.",
        "expected_output": "12 days.",
        "context": ["You have 12 days."],
        "retrieval_context": ["Leave is paid."],
        "tools_called": [{"name": "get_balance", "input_parameters": {"employee": "E1042"}, "output": 12}],
        "expected_tools": [{"name": "get_balance", "input_parameters": {"employee": "E1042"}}],
        "completion_time": 1.5,
        "additional_metadata": {"team": "hr", "level": 2},
    }
    (found,) = rows_of([row])
    assert found["request_id"] == "case 1"
    assert found["predicted_trajectory"] == found["reference_trajectory"] == [CALL]
    assert found["tags"] == {"team": "hr", "level": "2"}
    assert found["latency_seconds"] == 1.5
    assert losses_of([row], "databricks") == {("AE813", "tools_called[0].output")}


@pytest.mark.parametrize(
    "row",
    [
        {"item": {"input": [USER], "ideal": "12 days.", "level": 2}},
        {"item": {"question": "How many days?", "answer": "12 days.", "level": 2}},
        {"item": json.dumps({"prompt": "How many days?", "ground_truth": "12 days.", "level": 2})},
    ],
)
def test_items_of_openai_evals_are_read_by_the_usual_names(row: Row) -> None:
    assert validate_eval_set([row]).format == "openai"
    (found,) = rows_of([row])
    found.pop("openai_item", None)  # kept, for its own keys to be written again
    assert found == {
        "request": {"messages": [USER]},
        "expected_response": "12 days.",
        "custom_expected": {"level": 2},
    }


def test_several_ideal_answers_stay_together() -> None:
    row = {"input": [USER], "ideal": ["12 days.", "Twelve."]}
    (found,) = rows_of([row])
    assert found["expected_response"] == "12 days."
    assert found["custom_expected"] == {"ideal": ["12 days.", "Twelve."]}
    made = convert_eval_set([row], "openai")
    assert made.data["item"][0] == {"input": "How many days?", "ideal": ["12 days.", "Twelve."]}
    assert made.lossless


@pytest.mark.parametrize(
    ("outputs", "code", "path", "hint"),
    [
        ({"expected_tool_calls": [{"arguments": {}}]}, "AE502", ".expected_tool_calls[0]", "Add the key `name`."),
        (
            {"expected_tool_calls": [{"name": "f", "inputs": {}}]},
            "AE504",
            ".expected_tool_calls[0].inputs",
            "Did you mean `arguments`?",
        ),
    ],
)
def test_an_issue_of_a_langsmith_example_names_the_keys_that_the_user_wrote(
    outputs: Row, code: str, path: str, hint: str
) -> None:
    row = {"id": "1", "dataset_id": "d", "inputs": {"question": "Hi"}, "outputs": outputs}
    (issue,) = validate_eval_set([row]).iter_issues()
    assert (issue.code, issue.column, issue.path) == (code, "outputs", f"outputs{path}")
    assert issue.hint.startswith(hint)


@pytest.mark.parametrize("outputs", [{"expected_tool_calls": "none"}, {"expected_facts": "12"}, {"guidelines": 3}])
def test_what_is_no_ground_truth_of_ours_is_a_key_of_the_user(outputs: Row) -> None:
    row = {"id": "1", "dataset_id": "d", "inputs": {"question": "Hi"}, "outputs": {"answer": "a", **outputs}}
    report = validate_eval_set([row])
    (found,) = report.rows.to_dict("records")
    assert report.ok
    assert (found["expected_response"], found["custom_expected"]) == ("a", outputs)
    assert convert_eval_set([row], "langsmith").data["outputs"].tolist() == [row["outputs"]]


def test_turns_after_a_row_with_a_history_have_rubrics_of_their_own_in_an_evalset() -> None:
    """The question before the first row has none: no row has its guidelines."""

    def row(identity: str, messages: list[dict[str, Any]], guideline: str) -> dict[str, Any]:
        return {"request_id": identity, "request": {"messages": messages}, "guidelines": {"tone": [guideline]}}

    chat = [{"role": "user" if i % 2 == 0 else "assistant", "content": text} for i, text in enumerate("abcde")]
    answered = {**row("x", chat[:3], "kind"), "expected_response": "d"}
    (case,) = convert_eval_set([answered, row("x#3", chat, "brief")], "adk").data["eval_cases"]
    texts = [[r["rubric_content"]["text_property"] for r in turn.get("rubrics", [])] for turn in case["conversation"]]
    assert texts == [[], ["kind"], ["brief"]]


def test_the_outputs_of_a_langsmith_example_are_its_ground_truth() -> None:
    row = {
        "id": "e-1",
        "inputs": {"question": "How many days?"},
        "outputs": {"answer": "12 days.", "guidelines": ["Be short."], "rubric": {"max": 3}},
        "metadata": {"team": "hr"},
        "dataset_id": "d-1",
    }
    (found,) = rows_of([row])
    assert validate_eval_set([row]).format == "langsmith"
    assert found["expected_response"] == "12 days."
    assert found["guidelines"] == {"guidelines": ["Be short."]}
    assert found["custom_expected"] == {"rubric": {"max": 3}}
    assert found["tags"] == {"team": "hr"}
    assert found["dataset_id"] == "d-1"


EVALSET = {
    "eval_set_id": "hr",
    "eval_cases": [
        {
            "eval_id": "leave",
            "conversation": [
                {
                    "user_content": {"role": "user", "parts": [{"text": "Hi"}]},
                    "final_response": {"role": "model", "parts": [{"text": "Hello!"}]},
                },
                {
                    "user_content": {"role": "user", "parts": [{"text": "How many days?"}]},
                    "final_response": {"role": "model", "parts": [{"text": "12 days."}]},
                    "intermediate_data": {"tool_uses": [{"name": "get_balance", "args": {"employee": "E1042"}}]},
                },
            ],
            "session_input": {"app_name": "hr_bot", "user_id": "u1", "state": {"region": "DE"}},
        }
    ],
}
ADK_ROWS = [
    {
        "request_id": "leave#1",
        "request": {"messages": [{"role": "user", "content": "Hi"}]},
        "expected_response": "Hello!",
        "tags": {"app_name": "hr_bot", "user_id": "u1", "state": '{"region":"DE"}'},
        "eval_set_id": "hr",
    },
    {
        "request_id": "leave#2",
        "request": {
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello!"},
                {"role": "user", "content": "How many days?"},
            ]
        },
        "expected_response": "12 days.",
        "reference_trajectory": [CALL],
        "tags": {"app_name": "hr_bot", "user_id": "u1", "state": '{"region":"DE"}'},
        "eval_set_id": "hr",
    },
]


def test_a_turn_of_an_adk_evalset_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "hr.evalset.json"
    path.write_text(json.dumps(EVALSET, indent=2))
    assert validate_eval_set(str(path)).format == "adk"
    assert rows_of(str(path)) == rows_of(EVALSET) == ADK_ROWS


@pytest.mark.oracle
def test_google_adk_reads_the_evalset_that_we_write_and_we_read_what_it_writes() -> None:
    adk = pytest.importorskip("google.adk.evaluation.eval_set", reason="google-adk is not installed")
    written = convert_eval_set(EVALSET, "adk")
    theirs = adk.EvalSet.model_validate(written.data)
    (case,) = theirs.eval_cases
    assert [i.user_content.parts[0].text for i in case.conversation] == ["Hi", "How many days?"]
    assert case.conversation[1].intermediate_data.tool_uses[0].args == {"employee": "E1042"}
    for dumped in (theirs.model_dump_json(exclude_none=True), theirs.model_dump_json(by_alias=True, exclude_none=True)):
        rows = rows_of(json.loads(dumped))  # with ids and times of invocations, which are carried along
        assert [{k: row[k] for k in wanted} for row, wanted in zip(rows, ADK_ROWS, strict=True)] == ADK_ROWS


@pytest.mark.oracle
def test_what_google_adk_writes_comes_back_with_ids_times_and_names() -> None:
    adk = pytest.importorskip("google.adk.evaluation.eval_set", reason="google-adk is not installed")
    session = {"app_name": "hr", "user_id": "u1", "state": {"k": 1}}
    turn = {**EVALSET["eval_cases"][0]["conversation"][0], "invocation_id": "i1", "creation_timestamp": 1.5}
    case = {"eval_id": "c", "conversation": [turn], "session_input": session, "final_session_state": {"done": 1}}
    given = {"eval_set_id": "s", "name": "HR", "description": "all of it", "eval_cases": [case]}
    theirs = adk.EvalSet.model_validate(given)
    for by_alias in (False, True):
        made = convert_eval_set(json.loads(theirs.model_dump_json(by_alias=by_alias, exclude_none=True)), "adk")
        assert made.lossless, made
        assert adk.EvalSet.model_validate(made.data) == theirs.model_copy(update={"creation_timestamp": 0.0})


def test_a_column_called_name_is_no_name_of_an_evalset() -> None:
    made = convert_eval_set([{"request": "Hi", "name": "a", "duration": 3}], "adk")
    assert "name" not in made.data
    assert set(made.losses["column"]) == {"name", "duration"}


@pytest.mark.oracle
def test_a_scenario_of_adk_is_asked_by_its_starting_prompt() -> None:
    adk = pytest.importorskip("google.adk.evaluation.eval_set", reason="google-adk is not installed")
    scenario = {"starting_prompt": "Hi", "conversation_plan": "ask for a refund"}
    evalset = {
        "eval_set_id": "s",
        "eval_cases": [{"eval_id": "c", "conversation_scenario": scenario}, *EVALSET["eval_cases"]],
    }
    assert rows_of(evalset)[0]["request"] == {"messages": [{"role": "user", "content": "Hi"}]}
    made = convert_eval_set(evalset, "adk")
    assert made.lossless, made
    assert adk.EvalSet.model_validate(made.data) == adk.EvalSet.model_validate(evalset)
    camel_scenario = {"startingPrompt": "Hi", "conversationPlan": "ask for a refund"}
    camel = {"eval_set_id": "s", "eval_cases": [{"evalId": "c", "conversationScenario": camel_scenario}]}
    assert rows_of(camel)[0]["request"] == {"messages": [{"role": "user", "content": "Hi"}]}


def test_what_is_read_of_the_events_of_an_invocation_is_no_loss() -> None:
    call = {"function_call": {"name": "f", "args": {"x": 1}}}
    turn = {
        "userContent": {"parts": [{"text": "Hi"}]},
        "intermediateData": {
            "invocationEvents": [
                {"author": "a", "content": {"role": "model", "parts": [{"functionCall": call["function_call"]}]}}
            ]
        },
    }
    evalset = {"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation": [turn]}]}
    made = convert_eval_set(evalset, "databricks")
    assert made.data["reference_trajectory"][0] == [{"tool_name": "f", "tool_input": {"x": 1}}]
    event = "intermediate_data.invocationEvents[0]"
    assert made.losses["path"].tolist() == [f"{event}.author", f"{event}.content.role"]


def test_an_evalset_comes_back_as_it_was() -> None:
    made = convert_eval_set(EVALSET, "adk")
    assert made.lossless
    assert rows_of(made.data) == ADK_ROWS


def test_a_row_with_history_becomes_a_case_with_earlier_turns() -> None:
    rows = [{**ADK_ROWS[1], "request_id": "later"}]
    made = convert_eval_set(rows, "adk")
    (case,) = made.data["eval_cases"]
    assert [turn["user_content"]["parts"][0]["text"] for turn in case["conversation"]] == ["Hi", "How many days?"]
    assert losses_of(rows, "adk") == {("AE812", "request_id")}


@pytest.mark.parametrize(
    ("tones", "of_case", "of_turns"),
    [
        (("kind", "kind"), ["kind"], [None, None]),
        (("kind", "brief"), None, [["kind"], ["brief"]]),
        (("kind", None), None, [["kind"], None]),
        ((None, "kind"), None, [None, ["kind"]]),
        ((None, None), None, [None, None]),
    ],
)
def test_guidelines_that_all_turns_share_are_rubrics_of_the_case(tones: Any, of_case: Any, of_turns: Any) -> None:
    guidelines = [{"tone": [tone]} if tone else None for tone in tones]
    rows = [{**row, "guidelines": given} for row, given in zip(ADK_ROWS, guidelines, strict=True)]
    converted = convert_eval_set(rows, "adk")
    (case,) = converted.data["eval_cases"]

    def texts(owner: Row) -> list[str] | None:
        found = owner.get("rubrics")
        return found and [rubric["rubric_content"]["text_property"] for rubric in found]

    assert (texts(case), [texts(turn) for turn in case["conversation"]]) == (of_case, of_turns)
    assert [row.get("guidelines") for row in validate_eval_set(converted.data).iter_rows()] == guidelines


@pytest.mark.parametrize("sessions", [False, True])
def test_the_older_test_list_of_adk_is_one_session(sessions: bool) -> None:
    turns = [
        {"query": "Hi", "expected_tool_use": [], "reference": "Hello!"},
        {"query": "How many days?", "expected_tool_use": [CALL], "reference": "12 days."},
    ]
    data = [{"name": "leave", "data": turns, "initial_session": {"app_name": "hr_bot"}}] if sessions else turns
    found = rows_of(data)
    assert [len(row["request"]["messages"]) for row in found] == [1, 3]
    assert found[1]["reference_trajectory"] == [CALL]
    assert found[1]["expected_response"] == "12 days."
    assert found[1].get("request_id") == ("leave#2" if sessions else None)


def test_a_broken_turn_is_an_issue_of_its_row(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps({"eval_set_id": "s", "eval_cases": [EVALSET["eval_cases"][0], 17, {"eval_id": "x"}]}))
    report = validate_eval_set(str(path))
    assert report.row_count == 4
    assert set(report.issues["row"][report.issues["severity"] == "error"]) == {2, 3}


def test_a_line_that_is_no_row_keeps_its_place_among_the_turns(tmp_path: Path) -> None:
    path = tmp_path / "sets.jsonl"
    path.write_text(json.dumps(EVALSET) + "\n{broken\n" + json.dumps(EVALSET) + "\n")
    report = validate_eval_set(str(path))
    assert report.row_count == 5
    assert report.counts["AE007"] == 1
    assert len(report.invalid) == len(report.issues.query("severity == 'error'")["row"].dropna().unique())


# ---------------------------------------------------------------------------------------------------------------------
# writing


@pytest.mark.parametrize("target", FORMS)
def test_every_row_is_converted_or_told_and_reads_back_as_the_losses_say(target: str) -> None:
    made = convert_eval_set(str(SAMPLES / "good.jsonl"), target, on_invalid="keep")
    assert made.report.ok
    back = validate_eval_set(made.data, format=target, outputs="generated")
    assert back.ok, back.to_text()
    rows = list(made.report.iter_rows())
    if target in OF_TURNS:
        return  # which have rows for turns before the last one
    again = list(back.iter_rows())
    losses = made.losses[made.losses["row"].notna()]  # AE816 is about all rows
    losses = losses[losses["code"] != "AE817"]  # which we read, and the platform's class does not
    told = set(zip(losses["row"], losses["column"], strict=True))
    assert len(again) == len(rows)
    for i, (row, came) in enumerate(zip(rows, again, strict=True)):
        differs = {c for c in COLUMNS if row[c] is not None and row[c] != came[c]}
        assert differs == {c for r, c in told if r == i}


@pytest.mark.parametrize("target", FORMS)
@pytest.mark.parametrize("source", ["good.jsonl", "azure.jsonl"])
def test_the_metrics_of_a_conversion_are_those_that_a_validation_no_longer_supports(source: str, target: str) -> None:
    made = convert_eval_set(str(SAMPLES / source), target, on_invalid="keep")
    if target in OF_TURNS:
        return
    own, other = (find_format(name).system for name in (made.source, target))
    back = validate_eval_set(made.data, format=target, outputs="provided", ignore=["AE223"])
    before, after = made.report.metric_support, back.metric_support
    names = {metric.name for system in (other, *shown_systems(own)) for metric in metrics_of(system)}
    gone = {name: int((before[name].to_numpy() & ~after[name].to_numpy()).sum()) for name in names}
    lost: dict[str, int] = {}
    for counts in made._metrics.values():
        lost.update({name: max(rows, lost.get(name, 0)) for name, rows in counts.items()})
    assert lost.keys() == {name for name, rows in gone.items() if rows}
    assert all(rows <= gone[name] for name, rows in lost.items())
    rows = {**made.losses.groupby("column")["row"].nunique(), "AE816": made.report.row_count}
    assert all(max(counts.values()) <= rows[column] for column, counts in made._metrics.items())


def test_rows_of_two_kinds_lose_no_metric_that_was_promised() -> None:
    """What Ragas writes as a conversation supports no metric of a single turn before it is written, either."""
    made = convert_eval_set(str(SAMPLES / "azure.jsonl"), "ragas", on_invalid="keep")
    assert made.to_text(width=100).splitlines()[:3] == [
        "Rows",
        "  all rows  AE816 mixed-kinds",
        "      expected rows of one kind, got 2 conversations and 1 single question",
    ]
    assert int(made.report.metric_support["ragas/AnswerRelevancy"].sum()) == 1


def test_ground_truth_that_is_lost_comes_first() -> None:
    rows = [{"request_id": str(i), "request": "Hi", "response": "Hello", "guidelines": ["a"]} for i in range(5)]
    text = convert_eval_set([*rows, {"request": "Hi", "response": "Hello", "error": "e"}], "vertex").to_text(width=100)
    lines = text.splitlines()
    assert lines[:3] == [
        "Ground truth",
        "  guidelines  5 rows  AE811 no-place-in-target  2 metrics lost",
        "      Metrics lost on 5 rows: response/llm_judged/guideline_adherence/rating, ExpectationsGuidelines",
    ]
    assert lines.index("Other fields") > lines.index("Ground truth")
    assert "  request_id  5 rows  AE811 no-place-in-target" in lines
    assert text.count("has no place for") == 3 + 1 + 1  # few of ground truth, one of others
    assert "⚠ databricks → vertex: 6 of 6 rows converted, 11 losses; ground truth lost or changed: guidelines" in text


def test_rows_that_were_not_converted_are_named_in_one_line() -> None:
    text = convert_eval_set([{"request": " ", "response": "a"}] * 30, "vertex").to_text(width=200)
    assert "  30 rows  AE814 row-left-out" in text
    assert f"the row is invalid and was not converted: rows {', '.join(map(str, range(20)))}, …" in text


@pytest.mark.parametrize(
    ("target", "name"), [("vertex", "rows.jsonl"), ("adk", "rows.json"), ("bedrock-rag", "rows.jsonl")]
)
def test_rows_in_memory_are_written_next(
    target: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = convert_eval_set([{"request": "Hi", "response": "Hello"}], target)
    call = made.to_text().splitlines()[-1].strip()
    assert call == f'.write("{name}")'
    assert eval(f"made{call}", {"made": made}) == 1
    assert validate_eval_set(name, format=target, outputs="generated").ok


def test_openai_items_hold_everything_but_the_objects_of_traces() -> None:
    losses = convert_eval_set(str(SAMPLES / "good.jsonl"), "openai").losses
    lost = [["hd-006", "outputs"], ["hd-007", "inputs"], ["hd-011", "outputs"]]
    assert losses[["request_id", "path"]].to_numpy().tolist() == lost


def test_inputs_and_outputs_of_a_trace_are_converted_or_a_loss_names_them() -> None:
    arguments = {"question": "a", "k": 3}
    root = span(inputs=arguments, outputs=42)
    rows = [{"trace": trace(root, assessments=[expects("tone", "kind"), expects("expected_response", 42)])}]
    made = convert_eval_set(rows, "mlflow")
    assert made.lossless
    (row,) = made.data.to_dict("records")
    assert (row["inputs"], row["outputs"]) == (arguments, 42)
    assert row["expectations"] == {"tone": "kind", "expected_response": 42}
    assert {"inputs", "outputs", "expectations"} <= {path for _, path in losses_of(rows, "vertex")}


def test_a_loss_says_where_and_what() -> None:
    row = {"request": {"messages": [{"role": "system", "content": "Be short."}, USER]}, "response": "12."}
    (loss,) = convert_eval_set([row], "vertex").losses.to_dict("records")
    assert (loss["row"], loss["column"], loss["code"]) == (0, "request", "AE812")
    assert loss["path"] == "request.messages[0]"
    assert "Be short." in loss["message"]


def test_invalid_rows_are_left_out_and_told() -> None:
    rows = [{"request": "", "response": "x"}, {"request": "q", "response": "r"}]
    made = convert_eval_set(rows, "vertex")
    assert made.data.to_dict("records") == [{"prompt": "q", "response": "r"}]
    assert made.losses[["row", "code", "severity"]].to_numpy().tolist() == [[0, "AE814", "error"]]


def test_a_row_that_has_no_answer_yet_is_converted_too() -> None:
    rows = [{"prompt": "a", "response": "b"}, {"prompt": "c"}]
    made = convert_eval_set(rows, "openai")
    assert made.lossless
    assert len(made.data) == 2


def test_unknown_columns_are_carried_along() -> None:
    made = convert_eval_set([{"request": "q", "response": "r", "team": "hr"}], "vertex")
    assert made.data["team"].tolist() == ["hr"]
    adk = convert_eval_set([{"request": "q", "expected_response": "r", "team": "hr"}], "adk")
    assert ("AE811", "team") in set(zip(adk.losses["code"], adk.losses["path"], strict=True))


def test_the_data_of_the_caller_stays_as_it_is() -> None:
    frame = pd.DataFrame({"request": ["q"], "response": ["r"]})
    before = frame.copy(deep=True)
    convert_eval_set(frame, "openai")
    pd.testing.assert_frame_equal(frame, before)


def test_every_format_that_has_a_writer_is_a_target() -> None:
    assert sorted(TARGETS) == sorted(f.name for f in FORMATS if f.writer is not None)


def test_an_unknown_target_is_told() -> None:
    with pytest.raises(EvalSetError, match=r"to: expected one of .*, databricks, "):
        convert_eval_set([{"request": "q"}], "excel")


def test_no_rows_make_no_rows() -> None:
    for target in FORMS:
        made = convert_eval_set([], target)
        assert len(made.data) in (0, 1, 2)  # a document of no cases has them as a list, and maybe an ID


TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12).filter(
    str.strip
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
CALLS = st.lists(st.fixed_dictionaries({"tool_name": TEXT, "tool_input": st.dictionaries(TEXT, VALUES)}), max_size=2)
DOCUMENTS = st.lists(st.fixed_dictionaries({"doc_uri": TEXT, "content": TEXT}), max_size=2)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"request": st.fixed_dictionaries({"messages": st.lists(st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "system"]), "content": TEXT}), max_size=2).map(
                lambda before: [*before, USER])})},
        optional={
            "request_id": TEXT,
            "response": TEXT,
            "expected_response": TEXT,
            "retrieved_context": DOCUMENTS,
            "expected_retrieved_context": DOCUMENTS,
            "predicted_trajectory": CALLS,
            "reference_trajectory": CALLS,
            "guidelines": st.dictionaries(TEXT, st.lists(TEXT, min_size=1, max_size=2), min_size=1, max_size=2),
            "custom_expected": st.dictionaries(TEXT, VALUES, min_size=1, max_size=2),
            "tags": st.dictionaries(TEXT, TEXT, min_size=1, max_size=2),
            "latency_seconds": st.floats(0, 100),
            "failure": st.booleans(),
            "session_id": TEXT,
        },
    ),
    min_size=1,
    max_size=3,
)  # fmt: skip


@pytest.mark.parametrize("target", FORMS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS)
def test_nothing_is_lost_in_silence(target: str, rows: list[Row]) -> None:
    """Whatever the rows: a converted value is there again when the target is read, or a loss names its column."""
    made = convert_eval_set(rows, target)
    of_rows = made.losses[made.losses["row"].notna()]
    told = set(zip(of_rows["row"], of_rows["column"], strict=True))
    left_out = {r for r, c in told if c is None}
    back = list(validate_eval_set(made.data, format=target, outputs="generated").iter_rows())
    kept = [i for i in range(len(rows)) if i not in left_out]
    if len(back) != len(kept):
        assert target in OF_TURNS
        return
    for i, came in zip(kept, back, strict=True):
        row = list(made.report.iter_rows())[i]
        assert {c for c in COLUMNS if row[c] is not None and row[c] != came[c]} <= {c for r, c in told if r == i}


# ---------------------------------------------------------------------------------------------------------------------
# the command


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
@pytest.mark.parametrize("target", ["databricks", "mlflow", "vertex", "openai", "ragas", "langsmith", "deepeval"])
def test_the_command_writes_every_kind_of_file(
    ending: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"out.{ending}"
    assert main(["convert", str(SAMPLES / "good.jsonl"), str(out), "--to", target, "-q", "--on-invalid", "keep"]) == 0
    told = capsys.readouterr().out
    assert f"databricks → {target}: 12 of 12 rows converted" in told
    in_memory = convert_eval_set(str(SAMPLES / "good.jsonl"), target, on_invalid="keep").data
    pairs = zip(rows_of(str(out), format=target), rows_of(in_memory, format=target), strict=True)
    of_text = target == "mlflow" and ending in ("csv", "parquet")
    changed = [5, 10] if of_text else []  # outputs that are objects
    assert [i for i, (row, there) in enumerate(pairs) if row != there] == changed
    assert ("would be read back as text from a file of this kind" in " ".join(told.split())) == bool(changed)


@pytest.mark.parametrize("ending", ["csv", "parquet", "delta", "jsonl", "json"])
def test_an_output_that_a_file_holds_as_text_is_a_loss_of_its_row(ending: str, tmp_path: Path) -> None:
    rows = [{"inputs": {"question": "a"}, "outputs": outputs} for outputs in ("b", "42", 42, True, {"x": 1}, [1])]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / f"out.{ending}"
    losses = convert_file(str(path), str(out), "mlflow").losses
    kept = ending in ("jsonl", "json")
    assert losses[["row", "path"]].to_numpy().tolist() == ([] if kept else [[i, "outputs"] for i in (2, 3, 4, 5)])
    assert [row["response"] for row in rows_of(str(out))] == ["b", "42", "42", "true", '{"x":1}', "[1]"]
    assert convert_eval_set(str(path), "mlflow").lossless


def test_the_command_writes_an_evalset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "set.evalset.json"
    assert main(["convert", str(SAMPLES / "good.jsonl"), str(out), "--fail-on", "warning"]) == 1
    assert "databricks → adk: 12 of 12 rows converted" in capsys.readouterr().out
    assert len(json.loads(out.read_text())["eval_cases"]) == 12


def test_rows_that_are_left_out_fail_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["convert", str(SAMPLES / "broken.jsonl"), str(out), "--to", "vertex"]) == 1
    printed = capsys.readouterr()
    assert "AE814 row-left-out" in printed.out
    assert "written to" in printed.err


@pytest.mark.parametrize(
    ("target", "ending", "expected"),
    [
        *[("agent-skills", ending, ".json") for ending in (".parquet", ".csv", ".csv.gz", ".xlsx", ".delta")],
        *[("ces-csv", ending, ".csv") for ending in (".parquet", ".json", ".jsonl")],
    ],
)
def test_a_document_is_in_no_file_that_could_not_be_read(
    target: str, ending: str, expected: str, tmp_path: Path
) -> None:
    path, out = SAMPLES / "good.jsonl", tmp_path / f"out{ending}"
    said = f"expected {expected} for a document of the format, got {ending.removesuffix('.gz')}"
    with pytest.raises(EvalSetError, match=said):
        convert_file(str(path), str(out), target)
    with pytest.raises(EvalSetError, match=said):
        convert_eval_set(path, target).write(out)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", TARGETS)
def test_the_next_command_writes_a_file_that_is_read_again(target: TargetFormat, tmp_path: Path) -> None:
    conversion = convert_eval_set(SAMPLES / "good.jsonl", target)
    command = re.search(r'\.write\("(.+?)"\)', conversion.to_text())
    assert command is not None
    conversion.write(tmp_path / command[1])
    again = validate_eval_set(tmp_path / command[1])
    assert (again.format, again.ok) == (target, True)
