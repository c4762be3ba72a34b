"""What people see, as golden files: read the difference before you accept it (UPDATE_GOLDEN=1 rewrites them)."""

import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest

from agent_eval_schema import Report, diff_eval_sets, validate_eval_set
from agent_eval_schema.render.printable import as_text
from agent_eval_schema.render.report.report_blocks import metrics_view, report_text
from agent_eval_schema.render.report.summary import Shown
from agent_eval_schema.validation.report import summary_of
from tests.conftest import DATA, ROOT, SAMPLES
from tests.helpers.scores import scores_view

GOLDEN = DATA / "golden"


def compare(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path.name}: UPDATE_GOLDEN=1 writes it; read the difference"


def report_on(name: str, monkeypatch: pytest.MonkeyPatch, **options: object) -> Report:
    monkeypatch.chdir(ROOT)
    return validate_eval_set(f"{SAMPLES.name}/{name}", **options)  # type: ignore[arg-type]


def test_text_is_the_same_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = pd.DataFrame({"recall": [0.5, None]}, dtype="object")
    reasons = pd.DataFrame({"recall": [None, "the row lacks a trace"]}, dtype="object")
    report = report_on("good.jsonl", monkeypatch)
    diff = diff_eval_sets(SAMPLES / "good.jsonl", SAMPLES / "edited_broken.jsonl")
    texts = [report.to_text(), diff.to_text(), as_text(scores_view(scores, reasons))]
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert [report.to_text(), diff.to_text(), as_text(scores_view(scores, reasons))] == texts


@pytest.mark.parametrize("name", ["good.jsonl", "broken.jsonl", "traces_mlflow2.jsonl"])
def test_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(GOLDEN / f"{name}.txt", report_on(name, monkeypatch).to_text(width=100))


def test_text_when_the_app_will_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_on("good.csv", monkeypatch, outputs="generated")
    compare(GOLDEN / "generated.txt", report.to_text(width=80))


def test_metrics_without_rows_are_last(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_on("good.jsonl", monkeypatch)
    for block in as_text(metrics_view(summary_of(report), "all"), width=100).split("\n\n")[:-1]:
        has_rows = [count != "0" for count in re.findall(r"  +(\d+) of \d+$", block, re.M)]
        assert has_rows == sorted(has_rows, reverse=True), block


def test_hints_break_at_words_outside_of_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_on("broken.jsonl", monkeypatch)
    text = report_text(summary_of(report), Shown(), color=False, width=60, system="databricks")
    assert "→ Fill `request` (a string, `{messages}` or\n      `{query, history}`), or add" in text


def test_warnings_of_the_dataset_come_before_those_of_rows() -> None:
    rows = [{"request": f"Q {i}", "response": "Yes", "expected_response": "Yes", "responce": "z"} for i in range(4)]
    rows[0]["retrieved_context"] = [{"doc_uri": "a", "content": "b", "colour": 1}]  # type: ignore[assignment]
    codes = re.findall(r"^(AE\d+) ", validate_eval_set(rows).to_text(), re.M)
    assert codes[:2] == ["AE102", "AE904"]
    assert codes[2] < "AE904"


def test_one_row_is_valid() -> None:
    assert "✓ The row is valid" in validate_eval_set([{"request": "Hi", "response": "Hello"}]).to_text()


def test_metrics_of_all_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_on("good.jsonl", monkeypatch)
    compare(GOLDEN / "metrics.txt", as_text(metrics_view(summary_of(report), "all"), width=100))


def test_json(monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads(report_on("broken.jsonl", monkeypatch).to_json())
    document["tool"]["version"] = "VERSION"
    compare(GOLDEN / "broken.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
