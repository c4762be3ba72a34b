"""Scores joined to rows without MLflow: lines of its result, some of which it lost."""

from __future__ import annotations

import pytest

from agent_eval_schema import validate_eval_set

pytest.importorskip("mlflow")

from agent_eval_schema.evaluation.mlflow_run import RUN_OF
from agent_eval_schema.integrations.mlflow.scores_by_row import scores_by_row


def test_a_row_that_mlflow_lost_has_a_reason() -> None:
    report = validate_eval_set([{"request": "a", "response": "b"}, {"request": "c", "response": "d"}])
    feedback = {"assessment_name": "length", "feedback": {"value": 1.0}, "metadata": {RUN_OF: "run"}}
    line = {"tags": {"agent_eval_schema.row": "0"}, "assessments": [feedback]}
    scores, reasons, failures = scores_by_row(
        "run", [line], ["length"], report, [None, None], ran=False, otherwise="the scorer gave no score"
    )
    assert scores["length"].tolist() == [1.0, None]
    assert reasons["length"].tolist() == [None, "MLflow recorded no trace for this row, so it has no score"]
    assert failures == {}
