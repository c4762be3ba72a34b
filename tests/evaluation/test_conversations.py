"""Ground truth of a conversation belongs to the turn that its platform says: reading, scoring, conversions and results
agree, for conversations of two to five turns in every format that has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import (
    EvalTask,
    ReducedInputsWarning,
    convert_eval_set,
    prepare_for_evaluate,
    score_trajectories,
    validate_eval_set,
)

Row = dict[str, Any]
Document = Callable[[int], Any]


def question(i: int) -> str:
    return f"Where is order {i}?"


def answer(i: int) -> str:
    return f"Order {i} is on its way."


def call(i: int) -> Row:
    return {"tool_name": "find", "tool_input": {"order": i}}


def content(role: str, *parts: Row | str) -> Row:
    return {"role": role, "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def genai(turns: int) -> Row:
    def turn(i: int) -> Row:
        called = {"function_call": {"name": "find", "args": {"order": i}}}
        events = [("user", content("user", question(i))), ("agent", content("model", called))]
        return {
            "turn_index": i,
            "events": [{"author": a, "content": c} for a, c in [*events, ("agent", content("model", answer(i)))]],
        }

    case = {
        "eval_case_id": "case",
        "agent_data": {"turns": list(map(turn, range(turns)))},
        "reference": {"response": content("model", answer(turns - 1))},
        "reference_trajectory": [call(turns - 1)],
        "rubric_groups": {"tone": {"rubrics": [{"content": {"property": {"description": "Names the order."}}}]}},
    }
    return {"eval_cases": [case]}


def adk(turns: int) -> Row:
    def invocation(i: int) -> Row:
        uses = [{"name": "find", "args": {"order": i}}]
        return {
            "user_content": content("user", question(i)),
            "final_response": content("model", answer(i)),
            "intermediate_data": {"tool_uses": uses},
        }

    return {
        "eval_set_id": "s",
        "eval_cases": [{"eval_id": "case", "conversation": list(map(invocation, range(turns)))}],
    }


def adk_legacy(turns: int) -> list[Row]:
    return [{"query": question(i), "expected_tool_use": [call(i)], "reference": answer(i)} for i in range(turns)]


def agentcore(turns: int) -> Row:
    asked = [{"input": question(i), "expected_response": answer(i)} for i in range(turns)]
    return {"scenarios": [{"scenario_id": "case", "turns": asked, "assertions": ["Names the order."]}]}


def bedrock_rag(turns: int) -> Row:
    def texts(text: str) -> list[Row]:
        return [{"content": [{"text": text}]}]

    asked = [
        {"prompt": {"content": [{"text": question(i)}]}, "referenceResponses": texts(answer(i))} for i in range(turns)
    ]
    return {"conversationTurns": asked}


def chat(turns: int, answered: bool = True) -> list[Row]:
    pairs = [
        ({"role": "user", "content": question(i)}, {"role": "assistant", "content": answer(i)}) for i in range(turns)
    ]
    messages = [message for pair in pairs for message in pair]
    return messages if answered else messages[:-1]


def azure(turns: int) -> Row:
    return {"conversation": {"messages": chat(turns)}, "ground_truth": answer(turns - 1)}


def azure_by_turn(turns: int) -> Row:
    messages = chat(turns)
    for i in range(turns):
        messages[2 * i + 1]["ground_truth"] = answer(i)
    return {"conversation": {"messages": messages}}


def deepeval(turns: int) -> list[Row]:
    return [{"scenario": "Orders.", "turns": chat(turns), "expected_outcome": answer(turns - 1)}]


def ragas(turns: int) -> list[Row]:
    messages: list[Row] = []
    for i in range(turns):
        asked = {"type": "human", "content": question(i)}
        called = {"type": "ai", "content": "", "tool_calls": [{"name": "find", "args": {"order": i}}]}
        messages += [asked, called, {"type": "tool", "content": "found"}, {"type": "ai", "content": answer(i)}]
    calls = [{"name": "find", "args": {"order": i}} for i in range(turns)]
    return [{"user_input": messages, "reference": answer(turns - 1), "reference_tool_calls": calls}]


def langsmith(turns: int) -> list[Row]:
    inputs = {"messages": chat(turns, answered=False)}
    return [{"inputs": inputs, "outputs": {"answer": answer(turns - 1)}, "dataset_id": "d"}]


def openai(turns: int) -> list[Row]:
    return [{"input": chat(turns, answered=False), "ideal": answer(turns - 1)}]


def inspect(turns: int) -> list[Row]:
    return [{"input": chat(turns, answered=False), "target": answer(turns - 1)}]


def mlflow(turns: int) -> list[Row]:
    return [
        {
            "inputs": {"messages": chat(turns, answered=False)},
            "expectations": {"expected_response": answer(turns - 1)},
        }
    ]


def databricks(turns: int) -> list[Row]:
    return [{"request": {"messages": chat(turns, answered=False)}, "expected_response": answer(turns - 1)}]


CASES: list[tuple[str, Document, str]] = [
    ("vertex-genai", genai, "last"),
    ("adk", adk, "each"),
    ("adk-legacy", adk_legacy, "each"),
    ("agentcore", agentcore, "each"),
    ("bedrock-rag", bedrock_rag, "each"),
    ("azure", azure, "last"),
    ("azure", azure_by_turn, "each"),
    ("deepeval", deepeval, "one row"),
    ("ragas", ragas, "one row"),
    ("langsmith", langsmith, "one row"),
    ("openai", openai, "one row"),
    ("inspect", inspect, "one row"),
    ("mlflow", mlflow, "one row"),
    ("databricks", databricks, "one row"),
]
of_conversations = pytest.mark.parametrize(("format", "document", "turn"), CASES, ids=[f.__name__ for _, f, _ in CASES])
of_turns = pytest.mark.parametrize("turns", range(2, 6))


def expected(turns: int, turn: str) -> list[str | None]:
    """The ground truth of each row of a conversation."""
    if turn == "one row":
        return [answer(turns - 1)]
    return [answer(i) if turn == "each" or i == turns - 1 else None for i in range(turns)]


def perfect_agent(request: Any) -> str:
    """Answers the last question of a request."""
    asked = request if isinstance(request, str) else request["messages"][-1]["content"]
    return answer(int(asked.removeprefix("Where is order ").removesuffix("?")))


@of_turns
@of_conversations
def test_the_ground_truth_is_on_the_turn_that_the_platform_says(
    format: str, document: Document, turn: str, turns: int
) -> None:
    report = validate_eval_set(document(turns))
    rows = list(report.iter_rows())
    assert report.format == format
    assert [row["expected_response"] for row in rows] == expected(turns, turn)
    asked = [row["request"]["messages"][-1]["content"] for row in rows]
    assert asked == [question(i) for i in range(turns)][-len(rows) :]
    guided = [row for row in rows if row["guidelines"] is not None]
    assert guided in ([], [rows[-1]])
    for row, number in zip(reversed(rows), range(turns - 1, -1, -1), strict=False):
        assert row["reference_trajectory"] in (None, [call(number)])


@of_turns
@of_conversations
def test_a_perfect_agent_is_perfect_on_each_turn_with_ground_truth(
    format: str, document: Document, turn: str, turns: int
) -> None:
    result = EvalTask(document(turns), ["exact_match"], format=format).evaluate(perfect_agent, max_workers=1)
    scores = result.scores["exact_match"]
    assert result.failures == {}
    assert [None if score != score else score for score in scores] == [
        None if truth is None else 1.0 for truth in expected(turns, turn)
    ]


@of_turns
@pytest.mark.parametrize("document", [genai, ragas])
def test_the_calls_of_a_conversation_are_compared_with_those_of_their_turn(document: Document, turns: int) -> None:
    result = EvalTask(document(turns), ["trajectory_exact_match", "trajectory_recall"]).evaluate()
    for name in ("trajectory_exact_match", "trajectory_recall"):
        assert result.scores[name].dropna().tolist() == [1.0]


@of_turns
@of_conversations
def test_a_conversion_and_back_keeps_the_ground_truth_of_each_turn(
    format: str, document: Document, turn: str, turns: int
) -> None:
    there = convert_eval_set(document(turns), "databricks")
    back = convert_eval_set(there.data, format, format="databricks")  # type: ignore[arg-type]
    again = list(validate_eval_set(back.data, format=format).iter_rows())  # type: ignore[arg-type]
    assert [row["expected_response"] for row in again] == expected(turns, turn)
    assert [row["request"]["messages"] for row in again] == [
        row["request"]["messages"] for row in validate_eval_set(document(turns)).iter_rows()
    ]
    assert again[-1]["reference_trajectory"] in (None, [call(turns - 1)])


def of_session(turns: int) -> Row:
    """A scenario with the calls of all turns, before one of which nothing is expected."""
    document = agentcore(turns)
    document["scenarios"][0]["expected_trajectory"] = ["find"] * turns
    return {"scenarios": [*agentcore(1)["scenarios"], {**document["scenarios"][0], "scenario_id": "whole"}]}


def calling(request: Any, calls: int = 1) -> Row:
    return {"response": perfect_agent(request), "predicted_trajectory": [call(0)] * calls}


@of_turns
@pytest.mark.parametrize("metrics", [["trajectory_exact_match"], ["trajectory_exact_match", "exact_match"]])
@pytest.mark.parametrize("in_file", [True, False])
def test_calls_of_all_turns_are_compared_with_those_of_the_session(
    turns: int, metrics: list[str], in_file: bool, tmp_path: Path
) -> None:
    place = tmp_path / "d.json"
    place.write_text(json.dumps(of_session(turns)), encoding="utf-8")
    task = EvalTask(str(place) if in_file else of_session(turns), metrics, match="tool_name")
    for calls in (0, 1, 2):
        result = task.evaluate(lambda request, n=calls: calling(request, n), max_workers=1)  # type: ignore[misc]
        scores = result.scores["trajectory_exact_match"]
        assert scores.tolist()[-1] == float(calls == 1)
        assert len(scores.dropna()) == 1


def test_the_calls_of_a_session_are_unknown_where_a_turn_has_none() -> None:
    def agent(request: Any) -> Any:
        return calling(request) if "order 1" in str(request) else answer(0)

    result = EvalTask(of_session(2), ["trajectory_exact_match"]).evaluate(agent, max_workers=1)
    assert result.scores["trajectory_exact_match"].dropna().empty
    assert "the row lacks predicted_trajectory" in result.unscored["reason"].tolist()


def test_recorded_calls_of_a_session_are_compared_as_a_whole() -> None:
    """The trajectories of a file are canonical columns of its turns."""
    document = of_session(3)
    for turn in document["scenarios"][1]["turns"]:
        turn["predicted_trajectory"] = [call(0)]
    result = score_trajectories(document, ["trajectory_exact_match"], match="tool_name")
    assert result.scores["trajectory_exact_match"].tolist()[-1] == 1.0


@of_turns
def test_calls_of_a_session_are_not_those_of_its_last_turn_elsewhere(turns: int) -> None:
    made = convert_eval_set(of_session(turns), "databricks")
    assert made.losses[["code", "column"]].values.tolist() == [["AE815", "reference_trajectory"]]
    rows = made.data.to_dict("records")
    assert not any(row.get("reference_trajectory") for row in rows)
    back = convert_eval_set(made.data, "agentcore", format="databricks")
    assert back.lossless
    assert back.data["scenarios"][1]["expected_trajectory"] == ["find"] * turns
    with pytest.warns(ReducedInputsWarning, match=rf"expected calls of whole sessions .*positions {turns}\)"):
        frame = prepare_for_evaluate(of_session(turns))
    assert not any("expected_tool_calls" in expectations for expectations in frame["expectations"])


@of_turns
def test_the_calls_of_the_turns_are_those_of_a_scenario(turns: int) -> None:
    """AgentCore compares them with the calls of all turns, and rejects an ID that two scenarios have."""
    made = convert_eval_set(adk(turns), "agentcore")
    (scenario,) = made.data["scenarios"]
    assert scenario["expected_trajectory"] == ["find"] * turns
    assert scenario["scenario_id"] == "case"
    assert set(made.losses["column"]) == {"reference_trajectory"}
    (alone,) = convert_eval_set(ragas(turns), "agentcore").data["scenarios"]
    assert alone["expected_trajectory"] == ["find"] * turns
    other = {"request": "Hi", "session_id": "s", "expected_response": "Hello"}
    made = convert_eval_set([{**other, "request": asked} for asked in ("a", "b", "c")], "agentcore")
    assert [s["scenario_id"] for s in made.data["scenarios"]] == ["s", "s'", "s''"]
    assert made.losses["column"].tolist() == ["session_id"] * 2


def test_the_id_of_a_request_is_that_of_its_scenario() -> None:
    made = convert_eval_set([{"request_id": "r", "request": "Hi", "expected_response": "Hello"}], "agentcore")
    assert made.lossless
    assert made.data["scenarios"][0]["scenario_id"] == "r"


def cases(data: Any) -> int:
    """The number of cases: of a document those in its list, and one if it has no such list."""
    listed = [data[key] for key in ("eval_cases", "scenarios") if key in data] if isinstance(data, dict) else [data]
    return len(listed[0]) if listed else 1


@of_turns
@pytest.mark.parametrize(("format", "document"), [case[:2] for case in CASES], ids=[f.__name__ for _, f, _ in CASES])
def test_a_conversation_comes_back_as_one_case_or_a_loss_says_that_it_does_not(
    format: str, document: Document, turns: int, tmp_path: Path
) -> None:
    made = convert_eval_set(document(turns), format)  # type: ignore[arg-type]
    written: Any = made.data
    if format == "vertex-genai":  # the rows are a document in a .json file
        made.write(tmp_path / "d.json")
        written = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))
    assert made.lossless == (cases(written) == cases(document(turns)))
    assert all(made.losses["message"].str.startswith("a conversation is written as one row per answer"))
    assert convert_eval_set(made.data, format, format=format).lossless  # type: ignore[arg-type]


@of_turns
@pytest.mark.parametrize("over", ["mlflow", "databricks", "ragas", "vertex-genai", "azure"])
def test_that_a_conversation_comes_back_as_rows_was_a_loss_on_the_way(over: str, turns: int) -> None:
    made = convert_eval_set(azure(turns), over, on_invalid="keep")  # Ragas has one kind: the first answer is another
    assert "a conversation is written as one row per answer" in " ".join(made.losses["message"])
    assert cases(convert_eval_set(made.data, "azure").data) == turns


@of_turns
def test_the_calls_that_ragas_expects_are_those_of_the_whole_conversation(turns: int) -> None:
    """Ragas compares them with the calls of all messages."""
    (given,) = ragas(turns)
    there = convert_eval_set([given], "databricks").data
    plain = there.drop(columns=["user_input"])
    for rows in (there, plain):
        (back,) = convert_eval_set(rows, "ragas", format="databricks").data.to_dict("records")
        assert back["reference_tool_calls"] == given["reference_tool_calls"]
        assert validate_eval_set([back], format="ragas").ok
    assert convert_eval_set([given], "ragas").lossless


def test_expected_calls_that_do_not_begin_with_those_made_are_all_of_the_last_turn() -> None:
    (given,) = ragas(2)
    given["reference_tool_calls"] = given["reference_tool_calls"][1:]
    (row,) = validate_eval_set([given]).iter_rows()
    assert row["reference_trajectory"] == [call(1)]
    (back,) = convert_eval_set([given], "ragas").data.to_dict("records")
    assert back == given
