"""Our verdict on tables of MLflow's form is that of mlflow.genai.evaluate: both judge the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, normalize_eval_set, prepare_for_evaluate, validate_eval_set
from tests.conftest import Row
from tests.helpers.mlflow_store import mlflow_store

pytestmark = pytest.mark.xdist_group("mlflow")

Q = {"question": "How many days?"}
A = "12 days."
CALL = {"name": "get_balance", "args": {"employee": "E1"}}

TABLES: dict[str, list[Row]] = {
    "a row": [{"inputs": Q, "outputs": A}],
    "any arguments": [{"inputs": {"topic": "leave", "k": 3}, "outputs": {"rows": [1]}}],
    "text": [{"inputs": "How many days?", "outputs": A}],
    "a number": [{"inputs": 3, "outputs": A}],
    "messages without an object": [{"inputs": [{"role": "user", "content": "Hi"}], "outputs": A}],
    "text in a later row": [{"inputs": Q, "outputs": A}, {"inputs": "How many days?", "outputs": A}],
    "no arguments": [{"inputs": {}, "outputs": A}],
    "no arguments in a later row": [{"inputs": Q, "outputs": A}, {"inputs": {}, "outputs": A}],
    "an answer is missing": [{"inputs": Q, "outputs": A}, {"inputs": Q}],
    "an answer is null": [{"inputs": Q, "outputs": A}, {"inputs": Q, "outputs": None}],
    "no answers": [{"inputs": Q}],
    "a request beside inputs": [{"inputs": Q, "outputs": A, "request": "How many days?"}],
    "ground truth beside inputs": [{"inputs": Q, "outputs": A, "expected_response": A}],
    "ground truth in both places": [
        {"inputs": Q, "outputs": A, "expected_response": "13", "expectations": {"expected_response": A}}
    ],
    "expectations that are text": [{"inputs": Q, "outputs": A, "expectations": A}],
    "expectations that are a list": [{"inputs": Q, "outputs": A, "expectations": [A]}],
    "no expectations": [{"inputs": Q, "outputs": A, "expectations": {}}],
    "null for expectations": [
        {"inputs": Q, "outputs": A, "expectations": {"a": 1}},
        {"inputs": Q, "expectations": None},
    ],
    "calls as google-adk has them": [{"inputs": Q, "outputs": A, "expectations": {"expected_tool_calls": [CALL]}}],
    "tags that are a list": [{"inputs": Q, "outputs": A, "tags": ["a"]}],
    "tags": [{"inputs": Q, "outputs": A, "tags": {"team": "hr"}}],
    "columns of one's own": [{"inputs": Q, "outputs": A, "team": "hr"}],
    "neither inputs nor trace": [{"outputs": A, "expectations": {"expected_response": A}}],
}


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory, no_runs: Path) -> Iterator[Any]:
    """The real MLflow with an experiment on a new store."""
    folder = tmp_path_factory.mktemp("mlflow")
    with mlflow_store(folder, no_runs, "verdicts") as found:
        yield found


def refusal(mlflow: Any, data: Any) -> str:
    """Why mlflow.genai.evaluate ends with an exception; nothing if it scores the rows."""
    from mlflow.genai.scorers import scorer

    def one(inputs: Any, outputs: Any) -> float:
        return float(inputs is not None or outputs is not None)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            mlflow.genai.evaluate(data=data, scorers=[scorer(one)])
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_refused_by_both_or_by_neither(name: str, mlflow: Any) -> None:
    from packaging.version import Version

    if name == "a request beside inputs" and Version(mlflow.__version__) < Version("3.7"):
        pytest.skip("which mlflow renamed its own columns to, and refused")
    report = validate_eval_set(TABLES[name], format="mlflow")
    why = refusal(mlflow, TABLES[name])
    assert report.ok == (not why), f"{why}\n{report.to_text()}"


NO_VALID_ROW = (
    *("a number", "expectations that are text", "expectations that are a list", "tags that are a list"),
    "neither inputs nor trace",
)


@pytest.mark.parametrize("name", [name for name in TABLES if name not in NO_VALID_ROW])
def test_what_we_prepare_is_taken(name: str, mlflow: Any) -> None:
    """`prepare_for_evaluate` writes anew what mlflow refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = prepare_for_evaluate(TABLES[name])
    assert refusal(mlflow, frame) == ""


def test_what_a_store_wrote_is_valid_and_what_we_convert_is_taken(mlflow: Any) -> None:
    dataset = mlflow.genai.datasets.create_dataset("verdicts", experiment_id="0")
    records = [{"inputs": {**Q, "n": i}, "expectations": {"expected_response": A, "tone": "kind"}} for i in range(3)]
    dataset.merge_records(
        [*records, {"inputs": {"messages": [{"role": "user", "content": "Hi"}]}, "tags": {"team": "hr"}}]
    )
    frame = dataset.to_df()
    report = validate_eval_set(frame)
    assert (report.format, report.ok, report.row_count) == ("mlflow", True, 4), report.to_text()
    made = convert_eval_set(frame, "mlflow")
    assert made.converted == 4
    assert refusal(mlflow, made.data.drop(columns="request_id", errors="ignore").to_dict("records")) == ""


def test_normalized_rows_hold_request_and_inputs_and_are_ours() -> None:
    """Both of them are refused by older versions of mlflow; they are no issue where rows are not read as mlflow's."""
    rows = normalize_eval_set([{"inputs": {**Q, "k": 3}, "outputs": A, "expectations": {"expected_response": A}}])
    assert {"request", "inputs"} <= {name for name, value in rows[0].items() if value is not None}
    again = validate_eval_set(rows)
    assert again.ok
    assert "AE227" not in again.counts
    assert {"AE227", "AE310"} <= validate_eval_set(rows, format="mlflow").counts.keys()
