"""Results that a platform wrote are rows: what was asked, what the agent did, the ground truth and the scores."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agent_eval_schema import normalize_eval_set, validate_eval_set
from tests.conftest import DATA, Row

ASKED = {"messages": [{"role": "user", "content": "How many days?"}]}
CALL = {"tool_name": "get_balance", "tool_input": {"employee": "E1042"}}


def written(document: Any, folder: Path) -> str:
    (folder / "result.json").write_text(document if isinstance(document, str) else json.dumps(document))
    return str(folder / "result.json")


def rows_of(path: str, form: str) -> list[Row]:
    """The rows of a file without an error or a warning, without what they lack."""
    report = validate_eval_set(path)
    assert (report.format, [i.message for i in report.iter_issues() if i.severity != "info"]) == (form, [])
    return [{k: v for k, v in row.items() if v is not None} for row in normalize_eval_set(path).to_dict("records")]


@pytest.mark.parametrize(
    ("document", "format"),
    [
        ({"scenarios": []}, "databricks"),  # of ADK or of AgentCore: as data without columns
        ({"eval_cases": []}, "databricks"),  # of ADK or of Vertex
        ({"eval_cases": [], "eval_set_id": "s"}, "adk"),
        ({"eval_cases": [], "interactions_data_source": {"interaction": "i"}}, "vertex-genai"),
        ({"evalCases": [], "candidateName": "a"}, "vertex-genai"),
    ],
)
def test_a_file_without_rows_is_of_a_platform_by_a_key_of_it(document: Row, format: str, tmp_path: Path) -> None:
    for data in (document, written(document, tmp_path)):
        report = validate_eval_set(data)
        (issue,) = report.iter_issues()
        assert (report.format, report.row_count, issue.code) == (format, 0, "AE101")


@pytest.mark.oracle
@pytest.mark.parametrize("by_alias", [False, True])
def test_a_result_of_adk_has_a_row_per_invocation(by_alias: bool, tmp_path: Path) -> None:
    pytest.importorskip("google.adk")
    from google.adk.evaluation.eval_case import IntermediateData, Invocation
    from google.adk.evaluation.eval_metrics import EvalMetricResult, EvalMetricResultPerInvocation
    from google.adk.evaluation.eval_result import EvalCaseResult, EvalSetResult
    from google.adk.evaluation.evaluator import EvalStatus
    from google.genai.types import Content, FunctionCall, Part

    def invocation(question: str, answer: str, *calls: FunctionCall) -> Invocation:
        return Invocation(
            user_content=Content(role="user", parts=[Part(text=question)]),
            final_response=Content(role="model", parts=[Part(text=answer)]),
            intermediate_data=IntermediateData(tool_uses=list(calls)),
        )

    def score(name: str, value: float | None) -> EvalMetricResult:
        return EvalMetricResult(metric_name=name, threshold=0.8, score=value, eval_status=EvalStatus.PASSED)

    call = FunctionCall(name=CALL["tool_name"], args=CALL["tool_input"])
    case = EvalCaseResult(
        eval_set_id="leave",
        eval_id="balance",
        final_eval_status=EvalStatus.PASSED,
        overall_eval_metric_results=[score("response_match_score", 0.7), score("safety_v1", 1.0)],
        eval_metric_result_per_invocation=[
            EvalMetricResultPerInvocation(
                actual_invocation=invocation("How many days?", "Twelve.", call),
                expected_invocation=invocation("How many days?", "12 days.", call),
                eval_metric_results=[score("response_match_score", 0.5)],
            ),
            EvalMetricResultPerInvocation(
                actual_invocation=invocation("Sure?", "Yes.", call),
                eval_metric_results=[score("response_match_score", 0.9), score("hallucinations_v1", None)],
            ),
        ],
        session_id="s1",
        user_id="Ann",
    )
    result = EvalSetResult(eval_set_result_id="r1", eval_set_id="leave", eval_case_results=[case])
    first, second = rows_of(written(result.model_dump_json(by_alias=by_alias), tmp_path), "adk")
    assert first["request"] == ASKED
    assert (first["response"], first["expected_response"]) == ("Twelve.", "12 days.")
    assert (first["predicted_trajectory"], first["reference_trajectory"]) == ([CALL], [CALL])
    assert first["custom_expected"] == {"scores": {"response_match_score": 0.5}}
    assert (first["request_id"], first["session_id"]) == ("balance#1", "s1")
    assert (second["response"], second.get("expected_response")) == ("Yes.", None)
    assert second["custom_expected"] == {"scores": {"response_match_score": 0.9, "safety_v1": 1.0}}


def test_scenarios_of_adk_start_with_their_prompts(tmp_path: Path) -> None:
    scenario = {"starting_prompt": "How many days?", "conversation_plan": "Ask for next year, too."}
    for row in rows_of(written({"scenarios": [scenario, json.dumps(scenario)]}, tmp_path), "adk"):
        assert (row["request"], row["conversation_scenario"]) == (ASKED, scenario)


def test_a_result_of_vertex_has_the_scores_of_each_response() -> None:
    (row,) = rows_of(str(DATA / "platforms/vertex-genai/theirs_result.json"), "vertex-genai")
    assert row["request"]["messages"][-1] == ASKED["messages"][0]
    assert (row["response"], row["expected_response"]) == ("You have 12.", "12 days.")
    assert row["custom_expected"] == {"scores": {"final_response_match_v2": 1.0}}  # the other one has an error


@pytest.mark.parametrize("candidates", ["in one case", "in a dataset each"])
def test_each_candidate_of_a_result_is_a_row(candidates: str, tmp_path: Path) -> None:
    answers = [{"response": {"parts": [{"text": text}]}} for text in ("Twelve.", "Ten.")]
    case = {"prompt": {"parts": [{"text": "How many days?"}]}}
    split = [[answers]] if candidates == "in one case" else [[answers[:1]], [answers[1:]]]
    datasets = [{"eval_cases": [{**case, "responses": r} for r in responses]} for responses in split]
    results = [{"response_index": i, "metric_results": {"match": {"score": 1.0 - i}}} for i in range(2)]
    document = {
        "eval_case_results": [{"eval_case_index": 0, "response_candidate_results": results}],
        "evaluation_dataset": datasets,
    }
    rows = rows_of(written(document, tmp_path), "vertex-genai")
    assert [(r["response"], r["custom_expected"]["scores"]["match"]) for r in rows] == [("Twelve.", 1.0), ("Ten.", 0.0)]


def test_an_interaction_is_a_case_of_vertex(tmp_path: Path) -> None:
    """The service fetches it; there is nothing in the file to validate."""
    path = written({"eval_cases": [{"interactions_data_source": {"interaction": "projects/p/i/1"}}]}, tmp_path)
    report = validate_eval_set(path)
    (issue,) = report.iter_issues()
    assert (report.format, issue.code) == ("vertex-genai", "AE201")
    assert "interactions_data_source" in issue.hint


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["DataFrame", "CSV", "JSON Lines"])
def test_a_result_frame_of_langsmith(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("langsmith")
    import pandas as pd
    from langsmith.evaluation import EvaluationResult, _runner
    from langsmith.schemas import Example, Run

    example_id, run_id, start = UUID(int=1), UUID(int=2), datetime(2026, 1, 1)
    run = Run(
        id=run_id,
        name="agent",
        run_type="chain",
        start_time=start,
        end_time=start + timedelta(seconds=1.5),
        trace_id=run_id,
        inputs={},
        outputs={"answer": "Twelve."},
        reference_example_id=example_id,
    )
    example = Example(id=example_id, inputs={"question": "How many days?"}, outputs={"answer": "12 days."})
    feedback: Any = {"results": [EvaluationResult(key="correctness", score=0.5)]}
    frame = pd.DataFrame(
        _runner._flatten_experiment_results([{"run": run, "example": example, "evaluation_results": feedback}])
    )
    data: Any = frame
    if kind != "DataFrame":
        data = str(tmp_path / f"results.{'csv' if kind == 'CSV' else 'jsonl'}")
        if kind == "CSV":
            frame.to_csv(data, index=False)
        else:
            frame.astype(str).to_json(data, orient="records", lines=True)
    report = validate_eval_set(data)
    assert (report.format, report.ok) == ("langsmith", True)
    (row,) = report.iter_rows()
    assert (row["request"], row["response"], row["expected_response"]) == (ASKED, "Twelve.", "12 days.")
    assert (row["request_id"], row["latency_seconds"]) == (str(example_id), 1.5)
    assert row["custom_expected"]["scores"] == {"correctness": 0.5}


@pytest.mark.parametrize(
    "document",
    [
        {"eval_set_id": "s", "eval_case_results": [None, "x", {"eval_metric_result_per_invocation": "x"}]},
        {"eval_set_id": "s", "evalCaseResults": [{"evalMetricResultPerInvocation": [None, {"actualInvocation": 1}]}]},
        {"eval_case_results": [{"eval_case_index": -7, "response_candidate_results": [{"response_index": -7}]}]},
        {"eval_case_results": "x", "evaluation_dataset": "y"},
        {"eval_case_results": [{"response_candidate_results": [1]}], "evaluation_dataset": [{"eval_cases": [1]}, 2]},
        {"scenarios": [{"starting_prompt": None}, 1]},
        {"dataset_id": "d", "records": [1, None, {"inputs": 1}]},
        {"mlflow": {"evaluation_dataset": {"dataset_id": "d", "records": 1}}},
        [{"inputs.question": " ", "outputs.b": 1, "feedback.c": "x"}],
    ],
)
def test_what_is_no_result_has_issues(document: Any, tmp_path: Path) -> None:
    assert not validate_eval_set(written(document, tmp_path)).ok
