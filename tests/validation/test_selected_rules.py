"""A selection of rules makes nothing valid: it reports less, and what the rows support stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.rules import RULES
from tests.cli.test_main import run

BROKEN = sorted(p for p in Path("sample_data").iterdir() if p.name.startswith("broken") and p.is_file())


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.name)
@pytest.mark.parametrize("selected", ["AE902", "AE206,AE901", "AE1"])
def test_the_coverage_is_that_of_all_rules(path: Path, selected: str) -> None:
    every = validate_eval_set(path)
    some = validate_eval_set(path, format=every.format, select=selected.split(","))
    assert some.metrics.equals(every.metrics)
    assert some.metric_support.equals(every.metric_support)
    assert some.valid_count >= every.valid_count
    ignored = validate_eval_set(path, format=every.format, ignore=list(every.counts))
    assert (ignored.metrics["supported"] >= every.metrics["supported"]).all()


def test_a_row_that_supports_nothing_has_the_reason() -> None:
    rows = [{"request": " ", "response": "Hello!"}, {"request": "Hi", "response": "Hello!"}]
    report = validate_eval_set(rows, select=["AE902"])
    assert report.ok
    assert report.why(0, "safety").endswith("a rule outside of the selection has an error on it")
    assert report.why(1, "safety").startswith("row 1 supports")


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        (["--select", "AE901", "sample_data/good.jsonl"], r"^No AE901 issues in 12 rows; {} rules were not run\.$"),
        (
            ["--select", "AE901,AE902", "sample_data/good.jsonl"],
            r"^No AE901 or AE902 issues in 12 rows; {} rules were ",
        ),
        (["--select", "AE2", "sample_data/good.jsonl"], r"^No issues of the selected rules in 12 rows; {} rules were"),
        (
            ["--select", "AE902", "sample_data/broken.jsonl"],
            r"^0 errors, 1 warning in 37 rows; {} rules were not run\.",
        ),
        (
            ["--select", "AE206", "sample_data/broken.jsonl"],
            r"^✗ 1 of 37 rows .*1 error, 0 warnings; {} rules were not",
        ),
        (["--ignore", "AE902", "sample_data/good.jsonl"], r"^✓ All 12 rows are valid\.$"),
    ],
)
def test_the_verdict_says_what_ran(
    options: list[str], verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, selectors = tmp_path / "report.html", tuple(options[1].split(","))
    code, text, _ = run(capsys, "validate", *options, "--html", page)
    expected = verdict.replace("{}", str(sum(not name.startswith(selectors) for name in RULES)))
    assert re.search(expected.lstrip("^").rstrip("$"), " ".join(text.split())), text
    assert code == ("✗" in verdict)
    html = page.read_text("utf-8")
    title = re.search(r"<h1[^>]*>(.*?)</h1>", html)
    assert title is not None
    assert re.search(expected.lstrip("^"), title[1])
    assert ('class="good"' in title[0]) == ("✓" in verdict)
    assert (" rows are valid" in html) == ("✓" in verdict or "✗" in verdict)
