"""Assessments of MLflow as scores and reasons, without MLflow."""

from __future__ import annotations

from typing import Any

import pytest

from agent_eval_schema.evaluation.mlflow_run import RUN_OF, ScoresAndReasons, of_run


def feedback(value: Any = None, why: str | None = None, error: dict[str, str] | None = None) -> dict[str, Any]:
    return {"assessment_name": "quality", "feedback": {"value": value, "error": error}, "rationale": why}


RAISED = "the scorer raised an exception: "


@pytest.mark.parametrize(
    ("assessments", "score", "reason"),
    [
        ([feedback(0.5)], 0.5, None),
        ([feedback(0.0, "no source")], 0.0, "no source"),
        ([feedback("yes", "a\x1b[2J")], "yes", r"a\x1b[2J"),
        ([feedback(None, "not asked")], None, "not asked"),
        ([feedback(float("nan"))], None, None),
        ([feedback(1, "a"), feedback(0, "b"), feedback(None, "a")], [1, 0], "a | b"),
        ([feedback(1, error={"error_code": "E", "error_message": "no key"})], None, f"{RAISED}no key"),
        ([feedback(error={"error_code": "E"})], None, f"{RAISED}E"),
        ([{"assessment_name": "truth", "expectation": {"value": "x"}}, feedback(1)], 1, None),
    ],
)
def test_a_row_has_the_values_of_its_feedback_and_why(assessments: list[Any], score: Any, reason: str | None) -> None:
    found = ScoresAndReasons((), 2)
    found.take(1, assessments)
    assert (found.scores, found.reasons) == ({"quality": [None, score]}, {"quality": [None, reason]})


def test_a_missing_score_is_explained_once() -> None:
    found = ScoresAndReasons(["a", "b"], 1)
    found.scores["b"][0] = 1
    found.explain(0, "first")
    found.explain(0, "second")
    assert found.reasons == {"a": ["first"], "b": [None]}
    found.explain(0, "third", only=["b"], replace=True)
    assert found.reasons == {"a": ["first"], "b": [None]}
    found.explain(0, "fourth", replace=True)
    assert found.reasons == {"a": ["fourth"], "b": [None]}


def test_a_run_has_its_own_assessments_in_the_order_of_the_documents() -> None:
    found = [
        {"at": at, "metadata": metadata}
        for at, metadata in enumerate(
            [
                {RUN_OF: "r", "chunk_index": "10"},
                {RUN_OF: "other"},
                None,
                {RUN_OF: "r", "chunk_index": "2"},
                {RUN_OF: "r"},
            ]
        )
    ]
    assert [one["at"] for one in of_run(found, "r")] == [4, 3, 0]
