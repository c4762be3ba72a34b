"""What MLflow 3.18 adds: quality criteria, comparisons of runs, hierarchical sessions. Skipped before it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_eval_schema import evaluate_eval_set, prepare_for_evaluate, validate_eval_set
from agent_eval_schema.scorers import TrajectoryPrecision
from tests.conftest import Row
from tests.helpers.mlflow_store import without_its_warnings
from tests.integrations.mlflow.test_evaluate import mlflow, store

__all__ = ["mlflow", "store"]  # the fixtures

CALL = {"tool_name": "f", "tool_input": {}}


def rows(hits: int) -> list[Row]:
    """Eight rows, so many with the expected call."""
    return [
        {
            "request": f"Question {i}",
            "response": "Done.",
            "predicted_trajectory": [CALL, *[{**CALL, "tool_name": "g"}] * (i >= hits)],
            "reference_trajectory": [CALL],
        }
        for i in range(8)
    ]


@pytest.fixture
def newest(mlflow: Any) -> Any:
    if not hasattr(mlflow.genai, "compare_evaluations"):
        pytest.skip("MLflow 3.18 added it")
    return mlflow


def test_quality_criteria_take_the_aggregations_of_our_scorers(newest: Any) -> None:
    with without_its_warnings():
        found = newest.genai.evaluate(
            data=prepare_for_evaluate(rows(8)),
            scorers=[TrajectoryPrecision()],
            quality_criteria="trajectory_precision >= 0.9 AND `trajectory_precision/min` >= 0.5",
        )
    tags = newest.get_run(found.run_id).data.tags
    (criteria,) = [json.loads(value) for value in tags.values() if "metricKey" in value]
    keys = [rule["metricKey"] for rule in criteria["rules"]]
    assert keys == ["trajectory_precision/mean", "trajectory_precision/min"]
    assert [found.metrics[key] for key in keys] == [1.0, 1.0]


def test_runs_of_ours_are_compared_row_by_row(newest: Any) -> None:
    ids = []
    for hits in (8, 0):
        with without_its_warnings(), newest.start_run() as run:
            evaluate_eval_set(rows(hits), [TrajectoryPrecision()])
            ids.append(run.info.run_id)
    with without_its_warnings():
        found = newest.genai.compare_evaluations(*ids).scorers["trajectory_precision"]
    assert (found.status, found.n_paired, found.baseline_mean, found.candidate_mean) == ("ok", 8, 0.5, 1.0)


def test_a_hierarchical_session_is_the_session_of_its_rows(newest: Any) -> None:
    path = '["trip-1","episode-2"]'

    @newest.trace
    def answer(question: str) -> str:
        newest.update_current_trace(session_id=path)
        return f"Yes, {question}"

    with without_its_warnings():
        answer("Hi")
        trace = newest.get_trace(newest.get_last_active_trace_id())
    report = validate_eval_set([{"trace": trace.to_dict()}])
    assert report.ok, report.to_text()
    assert [row["session_id"] for row in report.iter_rows()] == [path]


def test_the_expectation_of_a_session_is_ground_truth_and_no_argument_of_a_scorer(newest: Any) -> None:
    """MLflow's judges look for it in the first trace; a scorer of one's own gets the traces alone (mlflow#22530)."""
    from mlflow.entities import AssessmentSource
    from mlflow.genai.utils.trace_utils import resolve_expectations_from_session

    given: list[Any] = []

    @newest.genai.scorer
    def length(session: Any, expectations: Any = None) -> int:
        given.append((expectations, resolve_expectations_from_session(None, session)))
        return len(session)

    @newest.trace
    def answer(question: str) -> str:
        newest.update_current_trace(session_id="s")
        return f"Yes, {question}"

    with without_its_warnings():
        answer("Hi")
        id = newest.get_last_active_trace_id()
        human = AssessmentSource(source_type="HUMAN", source_id="Ann")
        metadata = {"mlflow.trace.session": "s"}
        newest.log_expectation(trace_id=id, name="expected_response", value="Yes.", source=human, metadata=metadata)
        trace = newest.get_trace(id)
        newest.genai.evaluate(data=[{"trace": trace}], scorers=[length])
    assert given == [(None, {"expected_response": "Yes."})]
    (row,) = validate_eval_set([{"trace": trace.to_dict()}]).iter_rows()
    assert (row["session_id"], row["expected_response"]) == ("s", "Yes.")
