"""Files as people have them, an example each: what their platform loads is no error, and is read as what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.decoding.chat import read_inputs

ID = "3f1c7a52-0000-4000-8000-000000000001"
NOTHING = dict.fromkeys(
    ["retrieved_context_ids", "reference_context_ids", "multi_responses", "rubrics", "persona_name"]
)
PARTS = dict.fromkeys(["video_metadata", "thought", "inline_data", "function_call"])
TURN = {
    "invocation_id": "e-1",
    "user_content": {"parts": [{**PARTS, "text": "q"}], "role": "user"},
    "final_response": {"parts": [{"text": "a"}], "role": None},
    "intermediate_data": {"tool_uses": [{"id": "adk-1", "args": {}, "name": "f"}], "intermediate_responses": []},
}
VALID: dict[str, tuple[str, Any]] = {
    "deepeval: what a synthesizer makes": (
        "deepeval",
        [{"input": "q", "actual_output": None, "expected_output": "a", "context": ["c"], "source_file": "a.md"}],
    ),
    "deepeval: contexts alone": ("deepeval", [{"input": "q", "context": ["c"]}]),
    "deepeval: test cases of a run": (
        "deepeval",
        [{"name": "t", "input": "q", "actualOutput": "a", "success": True, "metricsData": [], "order": 0}],
    ),
    "deepeval: CSV": ("deepeval", "input,actual_output,expected_output,retrieval_context\nq,a,e,c|d\n"),
    "deepeval: a conversation of a chatbot": (
        "deepeval",
        [{"turns": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "chatbot_role": "r"}],
    ),
    "ragas: scores beside the samples": (
        "ragas",
        [{"user_input": "q", "retrieved_contexts": ["c"], "response": "a", "faithfulness": 0.5, "recall": None}],
    ),
    "ragas: a generated test set": (
        "ragas",
        [{"user_input": "q", "reference_contexts": ["c"], "reference": "a", "synthesizer_name": "single_hop"}],
    ),
    "ragas: an older test set": (
        "ragas",
        [
            {
                "question": "q",
                "contexts": ["c"],
                "ground_truth": "g",
                "metadata": [{"source": "x"}],
                "episode_done": True,
            }
        ],
    ),
    "ragas: every key, all null but one": (
        "ragas",
        [{"user_input": "q", "response": None, "reference": None, **NOTHING}],
    ),
    "openai: an item of the usual keys": ("openai", [{"item": {"question": "q", "answer": "a"}}]),
    "openai: the library's few-shot prompt": (
        "openai",
        [
            {
                "input": [{"role": "system", "content": "x", "name": "example_user"}, {"role": "user", "content": "q"}],
                "ideal": 2,
            }
        ],
    ),
    "vertex: pairwise": ("vertex", [{"prompt": "q", "response": "a", "baseline_model_response": "b"}]),
    "vertex-genai: a template's columns": (
        "vertex-genai",
        [{"prompt": "q", "instruction": "i", "context": "c", "reference": "a"}],
    ),
    "vertex-genai: an evaluation dataset": (
        "vertex-genai",
        {
            "eval_cases": [
                {"prompt": {"parts": [{"text": "q"}]}, "responses": [{"response": {"parts": [{"text": "a"}]}}]}
            ]
        },
    ),
    "deepeval: a run": ("deepeval", {"testCases": [{"input": "q", "actualOutput": "a"}], "metricsScores": []}),
    "openai: fine-tuning": (
        "openai",
        [{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}],
    ),
    "vertex: CSV": (
        "vertex",
        'prompt,reference_trajectory\nq,"[{""tool_name"": ""f"", ""tool_input"": {""a"": 1}}]"\n',
    ),
    "vertex: columns of lists": (
        "vertex",
        {"prompt": ["q"], "reference_trajectory": [[{"tool_name": "f", "tool_input": {}}]]},
    ),
    "langsmith: an export": (
        "langsmith",
        [{"id": ID, "inputs": {"question": "q"}, "outputs": {"answer": "a"}, "metadata": {"dataset_split": ["base"]}}],
    ),
    "langsmith: CSV": ("langsmith", 'id,inputs,outputs,metadata\n1,"{""question"": ""q""}","{""answer"": ""a""}",{}\n'),
    "langsmith: both truths": (
        "langsmith",
        [{"inputs": {"question": "q"}, "outputs": {"answer": "a", "expected_facts": ["x"]}, "metadata": {}}],
    ),
    "langsmith: our names for the author's own": (
        "langsmith",
        [{"inputs": {"question": "q"}, "outputs": {"guidelines": "be kind", "expected_facts": "x"}, "metadata": {}}],
    ),
    "langsmith: names of tools": (
        "langsmith",
        [{"inputs": {"question": "q"}, "outputs": {"trajectory": ["f"], "response": "a"}, "metadata": {}}],
    ),
    "langsmith: no outputs": ("langsmith", [{"inputs": {"question": "q"}, "outputs": {}, "metadata": None}]),
    "mlflow: a frame of a dataset": (
        "mlflow",
        [{"inputs": {"question": "q"}, "outputs": None, "tags": {}, "source_type": "HUMAN", "dataset_record_id": "d"}],
    ),
    "mlflow: test cases": ("mlflow", [{"goal": "g", "persona": "p"}, {"goal": "g", "context": {"team": "hr"}}]),
    "mlflow: test cases of a simulator": ("mlflow", [{"inputs": {"goal": "g", "persona": "p", "context": {}}}]),
    "mlflow: one guideline": (
        "mlflow",
        [{"inputs": {"question": "q"}, "outputs": "a", "expectations": {"guidelines": "Be polite"}}],
    ),
    "mlflow: expectations of one's own": (
        "mlflow",
        [{"inputs": {"question": "q"}, "expectations": {"must_mention": ["a"], "n": 3, "expected_response": {"a": 1}}}],
    ),
    "mlflow: arguments called messages": ("mlflow", [{"inputs": {"messages": "hello"}, "outputs": "a"}]),
    "mlflow: a query of several parts": (
        "mlflow",
        [{"inputs": {"query": {"text": "q", "lang": "en"}}, "outputs": "a"}],
    ),
    "mlflow: a history in words": ("mlflow", [{"inputs": {"query": "q", "history": "none"}, "outputs": "a"}]),
    "mlflow: another role": (
        "mlflow",
        [{"inputs": {"messages": [{"role": "developer", "content": "x"}, {"role": "user", "content": "q"}]}}],
    ),
    "adk: what the web page saves": (
        "adk",
        {
            "eval_set_id": "s",
            "name": "s",
            "description": None,
            "eval_cases": [
                {
                    "eval_id": "c",
                    "conversation": [TURN],
                    "session_input": {"app_name": "a", "user_id": "u", "state": {}},
                    "creation_timestamp": 1.0,
                }
            ],
        },
    ),
    "adk: a tool that was mocked": (
        "adk-legacy",
        [{"query": "q", "expected_tool_use": [{"tool_name": "f", "tool_input": {}, "mock_tool_output": "x"}]}],
    ),
    "ces: a call without arguments": (
        "ces-evaluation",
        {
            "displayName": "x",
            "golden": {
                "turns": [{"steps": [{"userInput": {"text": "q"}}, {"expectation": {"toolCall": {"tool": "t"}}}]}]
            },
        },
    ),
}


def written(data: Any, folder: Path) -> str:
    path = folder / ("file.csv" if isinstance(data, str) else "file.json")
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", VALID)
def test_what_people_have_is_known_and_valid(name: str, tmp_path: Path) -> None:
    format, data = VALID[name]
    report = validate_eval_set(written(data, tmp_path))
    assert (report.format, report.ok, report.counts.get("AE102")) == (format, True, None), report.to_text()


@pytest.mark.parametrize(
    "data",
    [
        [{"goal": "g", "question": "q"}],
        [{"context": "c", "question": "q", "answers": {"text": ["a"], "answer_start": [1]}}],
    ],
    ids=["goal", "squad"],
)
def test_what_no_format_has_is_not_judged_as_another(data: Any, tmp_path: Path) -> None:
    report = validate_eval_set(written(data, tmp_path))
    assert (report.format, set(report.counts)) == ("unknown", {"AE113"})


def test_a_page_without_evaluations_is_one_of_ces(tmp_path: Path) -> None:
    report = validate_eval_set(written({"evaluations": []}, tmp_path))
    assert (report.format, report.counts) == ("ces-evaluation", {"AE101": 1})


def test_a_truth_that_has_no_place_stays_in_the_expectations() -> None:
    (row,) = validate_eval_set(VALID["langsmith: both truths"][1]).iter_rows()
    assert (row["expected_facts"], row["custom_expected"]) == (["x"], {"answer": "a"})
    (row,) = validate_eval_set(VALID["langsmith: our names for the author's own"][1]).iter_rows()
    assert row["custom_expected"] == {"guidelines": "be kind", "expected_facts": "x"}
    (row,) = validate_eval_set(VALID["mlflow: one guideline"][1]).iter_rows()
    assert row["guidelines"] == {"guidelines": ["Be polite"]}


def constructor(kind: str, content: str) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {"content": content, "additional_kwargs": {}},
    }


@pytest.mark.parametrize(
    "messages",
    [
        [{"type": "human", "content": "q"}, {"type": "ai", "content": "a"}],
        [{"type": "human", "data": {"content": "q"}}, {"type": "ai", "data": {"content": "a"}}],
        [constructor("HumanMessage", "q"), constructor("AIMessageChunk", "a")],
        [["human", "q"], ["ai", "a"]],
        [["user", "q"], {"role": "assistant", "content": "a"}],
    ],
    ids=["types", "data", "constructors", "pairs", "mixed"],
)
@pytest.mark.parametrize("format", ["mlflow", "langsmith"])
def test_messages_of_langchain_are_messages(messages: list[Any], format: str) -> None:
    sign: dict[str, Any] = {"metadata": {}} if format == "langsmith" else {}
    report = validate_eval_set([{"inputs": {"messages": messages}, "outputs": {"response": "x"}, **sign}])
    assert (report.format, report.ok) == (format, True), report.to_text()
    (row,) = report.iter_rows()
    assert [(m["role"], m["content"]) for m in row["request"]["messages"]] == [("user", "q"), ("assistant", "a")]


@pytest.mark.parametrize("messages", [[["someone", "q"]], [{"type": "nobody", "content": "q"}], [["human", "q", "r"]]])
def test_what_is_no_message_of_langchain_is_left_to_be_explained(messages: list[Any]) -> None:
    assert read_inputs({"messages": messages}) == {"messages": messages}
    assert not validate_eval_set([{"inputs": {"messages": messages}, "outputs": "a"}]).ok
