"""MLflow's commonest rows through every verb: what was given is handed on, stored, converted and compared."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import (
    convert_eval_set,
    diff_eval_sets,
    from_mlflow_dataset,
    normalize_eval_set,
    prepare_for_evaluate,
    to_mlflow_dataset,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.cli import main

mlflow = pytest.importorskip("mlflow")
NEW_ENOUGH = tuple(map(int, mlflow.__version__.split(".")[:2])) >= (3, 5)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # mlflow uses deprecated parts of SQLAlchemy

ROWS: list[dict[str, Any]] = [
    {"inputs": {"question": "multi", "k": 3}, "outputs": {"answer": "a", "docs": [1, 2]}},
    {"inputs": {"question": "multi", "k": 4}, "outputs": True, "expectations": {"expected_response": "b"}},
    {"inputs": {"question": "6 * 7?"}, "outputs": 42, "expectations": {"expected_response": 42}},
    {"inputs": {"query": "c", "history": []}, "outputs": "text", "expectations": {"confidence": 0.9}},
    {
        "inputs": {"messages": [{"role": "user", "content": "d"}], "temperature": 0.2},
        "outputs": {"choices": [{"message": {"role": "assistant", "content": "e"}}], "usage": {"total_tokens": 3}},
        "expectations": {"expected_tool_calls": [{"name": "f", "arguments": {"x": 1}, "id": "7"}]},
    },
]


def given(rows: Any) -> list[dict[str, Any]]:
    """The rows without what is absent."""
    records = rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
    return [{n: r[n] for n in ("inputs", "outputs", "expectations") if r.get(n)} for r in records]


def test_every_row_is_valid_and_keeps_what_it_said() -> None:
    assert validate_eval_set(ROWS).ok
    rows = normalize_eval_set(ROWS)
    assert rows[0]["request"]["messages"] == [{"role": "user", "content": "multi"}]
    assert [row["response"] for row in rows] == ["a", "true", "42", "text", "e"]
    assert given(convert_eval_set(rows, format="databricks", to="mlflow").data) == ROWS


def test_an_evaluator_gets_the_objects_that_were_given() -> None:
    assert given(prepare_for_evaluate(ROWS)) == ROWS
    assert given(prepare_for_evaluate(normalize_eval_set(ROWS))) == ROWS


@pytest.mark.usefixtures("tracking_store")
@pytest.mark.skipif(not NEW_ENOUGH, reason="datasets need mlflow 3.5")
def test_a_dataset_keeps_them_and_its_rows_can_call_the_agent() -> None:
    written = to_mlflow_dataset(ROWS, "as they came")
    assert (written.written, written.collapsed, written.not_kept) == (len(ROWS), (), {})
    stored = given(prepare_for_evaluate(from_mlflow_dataset("as they came")))
    assert stored == ROWS

    def predict_fn(question: str, k: int) -> str:
        return f"{question} {k}"

    assert [predict_fn(**row["inputs"]) for row in stored[:2]] == ["multi 3", "multi 4"]


def test_a_conversion_a_file_and_a_fix_hand_them_on(tmp_path: Path) -> None:
    made = convert_eval_set(ROWS, "mlflow")
    assert given(made.data) == ROWS
    assert made.lossless
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    write_eval_set(normalize_eval_set(ROWS), tmp_path / "normalized.parquet")
    assert given(prepare_for_evaluate(tmp_path / "normalized.parquet")) == ROWS
    main(["validate", str(path), "--fix", str(tmp_path / "fixed.jsonl"), "-q"])
    assert given([json.loads(line) for line in (tmp_path / "fixed.jsonl").read_text().splitlines()]) == ROWS


@pytest.mark.parametrize(
    ("row", "change"),
    [
        (0, {"inputs": {"question": "multi", "k": 5}}),
        (3, {"expectations": {"confidence": 0.1}}),
        (1, {"outputs": "true"}),
    ],
)
def test_a_diff_sees_what_changed(row: int, change: dict[str, Any]) -> None:
    changed = [{**r, **(change if i == row else {})} for i, r in enumerate(ROWS)]
    assert diff_eval_sets(ROWS, ROWS).same
    assert not diff_eval_sets(ROWS, changed).same
