"""The recipe for `mlflow.evaluate`: question-answering with our metrics over the columns of the prepared frame."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agent_eval_schema import ReducedInputsWarning, mlflow_metrics, prepare_for_evaluate
from tests.conftest import SAMPLES, Row
from tests.helpers.mlflow_store import without_its_warnings
from tests.integrations.mlflow.test_evaluate import mlflow, store

__all__ = ["mlflow", "store"]  # the fixtures


def document(uri: str) -> Row:
    return {"doc_uri": uri}


def call(tool: str, **arguments: Any) -> Row:
    return {"tool_name": tool, "tool_input": arguments}


ROWS: list[Row] = [
    {
        "request": "a",
        "response": "Bern",
        "expected_response": "Bern",
        "retrieved_context": [document("u"), document("v")],
        "expected_retrieved_context": [document("u")],
        "predicted_trajectory": [call("find", city="Bern"), call("book", day=2)],
        "reference_trajectory": [call("find", city="Bern"), call("book", day=1)],
        "latency_seconds": 1.5,
    },
    {"request": "b", "response": "x", "expected_response": "y", "latency_seconds": 0.5},
    {
        "request": "c",
        "response": "z",
        "expected_response": "z",
        "retrieved_context": [document("w")],
        "expected_retrieved_context": [document("w"), document("u"), document("v"), document("x")],
    },
]


def evaluated(mlflow: Any, rows: Any, **options: Any) -> Any:
    frame = prepare_for_evaluate(rows, evaluator="mlflow.evaluate")
    options = {"predictions": "predictions", "targets": "targets" if "targets" in frame else None, **options}
    with without_its_warnings():
        metrics = mlflow_metrics(frame)
        with mlflow.start_run():
            return mlflow.models.evaluate(data=frame, extra_metrics=metrics, evaluators="default", **options)


def test_the_frame() -> None:
    frame = prepare_for_evaluate(ROWS, evaluator="mlflow.evaluate")
    measured = ("retrieved_context", "expected_retrieved_context", "predicted_trajectory", "reference_trajectory")
    assert list(frame.columns) == ["inputs", "predictions", "targets", *measured, "latency_seconds"]
    assert frame["inputs"].tolist() == ["a", "b", "c"]
    assert "targets" not in prepare_for_evaluate(
        [*ROWS, {"request": "d", "response": "v"}], evaluator="mlflow.evaluate"
    )
    assert "predictions" not in prepare_for_evaluate([{"request": "d"}], evaluator="mlflow.evaluate")


@pytest.fixture
def vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token a byte: mlflow counts tokens by a vocabulary that tiktoken would download."""
    tiktoken = pytest.importorskip("tiktoken")
    bytewise = tiktoken.Encoding(
        "cl100k_base", pat_str=".+", mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={}
    )
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "cl100k_base", bytewise)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # mlflow sets it, and leaves it


@pytest.mark.usefixtures("vocabulary")
def test_question_answering_with_our_metrics(mlflow: Any) -> None:
    found = evaluated(mlflow, ROWS, model_type="question-answering")
    assert found.metrics["exact_match/v1"] == pytest.approx(2 / 3)  # mlflow's own
    assert found.metrics["document_recall/mean"] == pytest.approx((1 + 0.25) / 2)
    assert found.metrics["document_precision/mean"] == pytest.approx((0.5 + 1) / 2)
    assert found.metrics["trajectory_recall/mean"] == 0.5
    assert found.metrics["parameter_correctness/mean"] == 0.5
    assert found.metrics["latency_seconds/max"] == 1.5
    table = found.tables["eval_results_table"]
    assert table["document_recall/score"].tolist() == [1, pytest.approx(math.nan, nan_ok=True), 0.25]
    assert "the row lacks retrieved_context" in table["document_recall/justification"][1]


def test_our_metrics_alone(mlflow: Any) -> None:
    with pytest.warns(ReducedInputsWarning, match="keeps only the last message of 4 of 12 rows"):
        found = evaluated(mlflow, str(SAMPLES / "good.jsonl"))
    assert found.metrics["document_recall/mean"] == 1
    assert found.metrics["document_precision/mean"] == 0.75
    assert not any(name.startswith(("toxicity", "exact_match")) for name in found.metrics)


@pytest.mark.usefixtures("store")
def test_metrics_that_the_frame_can_feed() -> None:
    from agent_eval_schema.integrations.mlflow.scorers import DocumentRecall, ToolCallsPass, TrajectorySingleToolUse

    frame = prepare_for_evaluate(ROWS[1:], evaluator="mlflow.evaluate")
    assert [m.name for m in mlflow_metrics(frame)] == ["document_recall", "document_precision", "latency_seconds"]
    given = [DocumentRecall(name="recall"), ToolCallsPass(), TrajectorySingleToolUse(tool_name="book")]
    assert [m.name for m in mlflow_metrics(frame, given)] == ["recall"]
    assert {m.name: m.greater_is_better for m in mlflow_metrics(frame)}["latency_seconds"] is False
