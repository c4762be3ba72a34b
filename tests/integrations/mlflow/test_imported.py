"""The spreadsheet of a team, imported and evaluated by mlflow itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema.cli import main
from tests.helpers.mlflow_store import without_its_warnings
from tests.helpers.sheets import FORMATS, SUPPORT, book
from tests.integrations.mlflow.test_evaluate import store
from tests.integrations.mlflow.test_supported import MODEL, Judge, hosts, judge

__all__ = ["hosts", "judge", "store"]  # the fixtures

pytest.importorskip("openpyxl")


@pytest.fixture
def rows(tmp_path: Path) -> pd.DataFrame:
    sheet, out = book(tmp_path / "support.xlsx", "A1:F1", FORMATS, Fälle=SUPPORT), tmp_path / "rows.jsonl"
    assert main(["import", str(sheet), str(out), "--prefer", "expected_facts"]) == 0
    return pd.DataFrame([json.loads(line) for line in out.read_text().splitlines()])


def test_each_row_of_the_sheet_is_judged_with_the_truth_that_was_shown(
    rows: pd.DataFrame, judge: Judge, store: Any
) -> None:
    with without_its_warnings():
        from mlflow.genai.scorers import Correctness

        found = store.genai.evaluate(
            data=rows[["inputs", "expectations"]],
            predict_fn=lambda messages: f"Antwort auf {messages[-1]['content']}",
            scorers=[Correctness(model=MODEL)],
        )
    table = found.tables["eval_results"]
    assert (len(rows), len(table), found.metrics["correctness/mean"]) == (12, 12, 1.0)
    assert table["correctness/value"].tolist() == ["yes"] * 12
    assert len(judge.prompts) == 12
    for shown in ("12.5%", "4.90 €", "24.12.2026", "1,250", "zwei Jahre", "0800 123", "Montag", "Erledigt."):
        assert judge.asked_about(shown) == 1, shown
    for hidden in ("TODO", "n/a", "TBD", "0.125", "•", "In der App."):
        assert judge.asked_about(hidden) == 0, hidden
