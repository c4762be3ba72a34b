"""What people see, as golden files: read the difference before you accept it (UPDATE_GOLDEN=1 rewrites them)."""

import io
import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from agent_eval_schema import Report, diff_eval_sets, validate_eval_set
from agent_eval_schema.render.report.summary import Shown
from agent_eval_schema.render.report.text import metrics_text, print_report
from agent_eval_schema.render.scores import scores_text
from tests.conftest import DATA, ROOT, SAMPLES

GOLDEN = DATA / "golden"


def compare(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def report_on(name: str, monkeypatch: pytest.MonkeyPatch, **options: object) -> Report:
    monkeypatch.chdir(ROOT)
    return validate_eval_set(f"{SAMPLES.name}/{name}", **options)  # type: ignore[arg-type]


def test_text_is_the_same_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = pd.DataFrame({"recall": [0.5, None]}, dtype="object")
    reasons = pd.DataFrame({"recall": [None, "the row lacks a trace"]}, dtype="object")
    report = report_on("good.jsonl", monkeypatch)
    diff = diff_eval_sets(SAMPLES / "good.jsonl", SAMPLES / "edited_broken.jsonl")
    texts = [report.to_text(), diff.to_text(), scores_text(scores, reasons)]
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert [report.to_text(), diff.to_text(), scores_text(scores, reasons)] == texts


@pytest.mark.parametrize("name", ["good.jsonl", "broken.jsonl", "traces_mlflow2.jsonl"])
def test_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(GOLDEN / f"{name}.txt", report_on(name, monkeypatch).to_text(width=100))


def test_text_when_the_app_will_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_on("good.csv", monkeypatch, outputs="generated")
    compare(GOLDEN / "generated.txt", report.to_text(width=80))


def test_metrics_of_all_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_on("good.jsonl", monkeypatch)
    compare(GOLDEN / "metrics.txt", metrics_text(report.summary, color=False, width=100, system="all"))


def test_json(monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads(report_on("broken.jsonl", monkeypatch).to_json())
    document["tool"]["version"] = "VERSION"
    compare(GOLDEN / "broken.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def test_the_picture_in_the_readme_is_real_output(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = ["AE102", "AE206", "AE402", "AE601", "AE903"]
    report = report_on("broken.jsonl", monkeypatch, select=codes)
    console = Console(record=True, width=100, file=io.StringIO(), highlight=False, markup=False, emoji=False)
    print_report(console, report.summary, Shown())
    without_web_fonts = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    title = f"agent-eval-schema validate sample_data/broken.jsonl --select {','.join(codes)}"
    svg = console.export_svg(title=title, theme=MONOKAI, code_format=without_web_fonts, unique_id="report")
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "").replace("https://www.textualize.io", "")
    compare(ROOT / ".github" / "report.svg", svg)
