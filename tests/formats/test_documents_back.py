"""A document comes back as the document: cases of several turns, through their own format and through another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.conversion.convert import convert_file
from tests.conftest import DATA
from tests.evaluation.test_conversations import (
    adk,
    adk_legacy,
    agentcore,
    answer,
    bedrock_rag,
    content,
    deepeval,
    genai,
    question,
    ragas,
)

Row = dict[str, Any]


def of_agent_data(*events: list[tuple[str, Row]], **case: Any) -> Row:
    turns = [{"events": [{"author": author, "content": said} for author, said in turn]} for turn in events]
    return {"eval_cases": [{"agent_data": {"turns": turns}, **case}]}


ASKED = [("user", content("user", question(0))), ("root_agent", content("model", answer(0)))]
AGAIN = [("user", content("user", question(1))), ("root_agent", content("model", answer(1)))]
CALLED = ("root_agent", content("model", {"function_call": {"name": "find", "args": {}}}))
FOUND = ("user", content("user", {"function_response": {"name": "find", "response": {}}}))

CASES: dict[str, Row] = {
    **{f"{turns} turns": genai(turns) for turns in range(1, 6)},
    "two cases": {"eval_cases": [*genai(2)["eval_cases"], {**genai(3)["eval_cases"][0], "eval_case_id": "other"}]},
    "no ID": of_agent_data(ASKED, AGAIN),
    "two without ID": {"eval_cases": [*of_agent_data(ASKED, AGAIN)["eval_cases"], *of_agent_data(AGAIN)["eval_cases"]]},
    "a prompt beside the events": of_agent_data(ASKED, AGAIN, eval_case_id="c", prompt=content("user", "Hello?")),
    "the agent speaks first": of_agent_data([ASKED[1], *ASKED], AGAIN, eval_case_id="c"),
    "a result of a function is a turn": of_agent_data([ASKED[0], CALLED], [FOUND, ASKED[1]], AGAIN, eval_case_id="c"),
    "a question without an answer": of_agent_data(ASKED, AGAIN[:1], eval_case_id="c"),
    "single cases": {
        "candidate_name": "mine",
        "eval_cases": [
            {
                "eval_case_id": "a",
                "prompt": content("user", "Hi"),
                "responses": [{"response": content("model", "Hello")}],
                "reference": {"response": content("model", "Hello!")},
                "system_instruction": content("user", "Be brief."),
                "conversation_history": [{"content": content("user", "Good day")}],
            },
            {"eval_case_id": "b", "prompt": content("user", "Bye")},
        ],
    },
}


@pytest.mark.parametrize("document", CASES.values(), ids=list(CASES))
@pytest.mark.parametrize("through", ["", "databricks", "vertex-genai"])
def test_an_evaluation_dataset_comes_back(document: Row, through: str, tmp_path: Path) -> None:
    place, rows, back = (tmp_path / name for name in ("in.json", "rows.jsonl", "back.json"))
    place.write_text(json.dumps(document), encoding="utf-8")
    kinds = {"AE816"} if document in (CASES["single cases"], CASES["a question without an answer"]) else set()
    if through:
        assert set(convert_file(str(place), str(rows), through).losses["code"]) <= kinds
    made = convert_file(str(rows if through else place), str(back), "vertex-genai", on_invalid="keep")
    assert set(made.losses["code"]) == kinds, made.losses["message"].tolist()  # cases with and without a response
    assert json.loads(back.read_text()) == document


@pytest.mark.parametrize("document", CASES.values(), ids=list(CASES))
def test_a_conversion_in_memory_writes_the_same_file(document: Row, tmp_path: Path) -> None:
    count = convert_eval_set(document, "vertex-genai").write(tmp_path / "back.json")
    assert json.loads((tmp_path / "back.json").read_text()) == document
    assert count == len(list(validate_eval_set(document).iter_rows()))


def test_what_google_writes_comes_back_as_the_same_rows(tmp_path: Path) -> None:
    path = DATA / "platforms" / "vertex-genai" / "theirs_dataset.json"
    convert_file(str(path), str(tmp_path / "back.json"), "vertex-genai")
    first, second = (list(validate_eval_set(str(p)).iter_rows()) for p in (path, tmp_path / "back.json"))
    assert first == second


def test_an_edited_case_is_written_as_it_was_edited(tmp_path: Path) -> None:
    """A case as it came is not used when its rows no longer agree with it."""
    rows = convert_eval_set(CASES["the agent speaks first"], "databricks").data
    rows.at[1, "response"] = "Order 1 is late."
    made = convert_eval_set(rows, "vertex-genai", format="databricks")
    made.write(tmp_path / "back.json")
    back = list(validate_eval_set(str(tmp_path / "back.json")).iter_rows())
    assert [row["response"] for row in back] == [answer(0), "Order 1 is late."]
    assert [row["request"] for row in back] == rows["request"].tolist()


def test_turns_with_their_own_ground_truth_are_cases_of_their_own(tmp_path: Path) -> None:
    """A case has ground truth of its last turn only, so nothing may be lost of the others."""
    rows = convert_eval_set(agentcore(3), "databricks").data
    made = convert_eval_set(rows, "vertex-genai", format="databricks")
    made.write(tmp_path / "back.json")
    document = json.loads((tmp_path / "back.json").read_text())
    assert len(document["eval_cases"]) == 3
    back = list(validate_eval_set(str(tmp_path / "back.json")).iter_rows())
    assert [row["expected_response"] for row in back] == [answer(i) for i in range(3)]


def test_a_case_that_another_format_cannot_hold_is_a_loss() -> None:
    losses = convert_eval_set(CASES["the agent speaks first"], "adk").losses
    assert "eval_case" in losses["column"].tolist()


def test_sessions_without_an_id_are_not_one_session() -> None:
    rows = list(validate_eval_set(CASES["two without ID"]).iter_rows())
    assert rows[0]["session_id"] == rows[1]["session_id"] is not None
    two = {"eval_cases": [*of_agent_data(ASKED, AGAIN)["eval_cases"], *of_agent_data(AGAIN, ASKED)["eval_cases"]]}
    assert len({row["session_id"] for row in validate_eval_set(two).iter_rows()}) == 2


@pytest.mark.parametrize("turns", range(2, 6))
@pytest.mark.parametrize(
    ("format", "document", "name"),
    [
        ("adk", adk, "in.json"),
        ("adk-legacy", adk_legacy, "in.json"),
        ("agentcore", agentcore, "in.json"),
        ("bedrock-rag", bedrock_rag, "in.jsonl"),
        ("deepeval", deepeval, "in.json"),
        ("ragas", ragas, "in.jsonl"),
    ],
)
def test_conversations_of_other_formats_come_back(
    format: str, document: Callable[[int], Any], name: str, turns: int, tmp_path: Path
) -> None:
    """Through the canonical rows, which are one case again where a format has its turns in a case."""
    found = document(turns)
    place, rows, back = tmp_path / name, tmp_path / "rows.jsonl", tmp_path / f"back{Path(name).suffix}"
    place.write_text(json.dumps(found if format != "ragas" else found[0]), encoding="utf-8")
    assert convert_file(str(place), str(rows), "databricks", format=format).lossless
    made = convert_file(str(rows), str(back), format, format="databricks")
    written = json.loads(back.read_text())
    assert written == (found[0] if format == "ragas" else found), made.losses["message"].tolist()
