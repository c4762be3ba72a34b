"""The report on a terminal: the last lines are the verdict and the next command, places can be clicked, cells are
marked, and nothing is unreadable at 80 columns."""

import json
import re
import shlex
from pathlib import Path

import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.render.report.report_blocks import report_text
from agent_eval_schema.render.report.summary import Shown
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.report import summary_of
from tests.conftest import ROOT, SAMPLES
from tests.render.report.test_html import HOSTILE, hostile_rows

BROKEN = "sample_data/broken.jsonl"


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")


def printed(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(shlex.split(words))
    return code, capsys.readouterr().out


def test_the_last_lines_are_the_verdict_and_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = printed(f"validate {BROKEN}", capsys)
    verdict, effect, command = out.splitlines()[-3:]
    assert verdict == "✗ 23 of 37 rows cannot be evaluated (62%): 23 errors, 6 warnings."
    assert effect == "Fixes 8 cells in 8 rows and 1 column name → 21 of 37 rows valid:"
    words = shlex.split(command)
    assert words[:3] == ["agent-eval-schema", "validate", BROKEN]
    # the command does what the line before it announces
    _, fixed = printed(shlex.join([*words[1:-1], str(tmp_path / words[-1])]), capsys)
    assert "16 of 37 rows cannot be evaluated" in fixed


def test_without_a_fix_the_next_command_explains_the_first_issue() -> None:
    text = validate_eval_set([{"request": " ", "response": "x"}]).to_text()
    assert text.splitlines()[-1].strip() == "agent-eval-schema explain AE202"


def test_data_in_memory_is_fixed_by_the_function() -> None:
    row = {"request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "x"}
    assert validate_eval_set([row]).to_text().splitlines()[-1].strip() == "normalize_eval_set(report, fix=True)"


def test_places_are_the_lines_of_the_file_and_the_cell_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = printed(f"validate {BROKEN} --select AE206,AE003", capsys)
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if f"{BROKEN}:6 " in line)
    assert lines[at].split() == [f"{BROKEN}:6", "row", "5", "(hr-006)", "request.messages[0].role"]
    excerpt, marks = lines[at + 2 : at + 4] if lines[at + 2].lstrip()[0] == "{" else lines[at + 3 : at + 5]
    start = marks.index("^")
    assert excerpt[start : start + marks.count("^")] == '"usr"'
    assert '"usr"' in (SAMPLES / "broken.jsonl").read_text().splitlines()[5]
    assert f"{BROKEN}:35  row 34" in out


def test_the_marks_stand_below_wide_characters(tmp_path: Path) -> None:
    from rich.cells import cell_len

    path = tmp_path / "wide.jsonl"
    chat = {"messages": [{"content": "日本語🙂", "role": "usr"}]}
    path.write_text(json.dumps({"request": chat, "response": "x"}, ensure_ascii=False))
    lines = validate_eval_set(path).to_text(width=80).splitlines()
    at = next(i for i, line in enumerate(lines) if "^" in line)
    assert cell_len(lines[at - 1][: lines[at - 1].index('"usr"')]) == lines[at].index("^")


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_metrics_can_be_read_at_any_width(width: int) -> None:
    text = validate_eval_set(BROKEN).to_text(width=width)
    metrics = text[text.index("Metric coverage") :]
    assert "retrieval/llm_judged/context_sufficiency/rating" in metrics
    assert metrics.count(" 4 of 37") == 3
    assert metrics.count("↳ +13 with a trace that reports token usage") == 1  # of three metrics
    assert "All metrics: up to +23 by fixing invalid rows" in metrics
    assert max(map(len, metrics.splitlines()[:-1])) <= width  # but for the command, which is one line to be copied


@pytest.mark.parametrize("words", [f"validate {BROKEN} --quiet", f"validate {BROKEN} sample_data/good.jsonl"])
def test_metrics_are_left_out_where_they_report_nothing_new(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Metric coverage" not in printed(words, capsys)[1]
    assert "Metric coverage" in printed(f"validate {BROKEN}", capsys)[1]


def test_several_files_end_with_how_many_failed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = printed(f"validate {BROKEN} sample_data/good.jsonl", capsys)
    assert (code, out.splitlines()[-1]) == (1, "✗ 1 of 2 files failed.")
    code, out = printed("validate sample_data/good.jsonl sample_data/good.csv", capsys)
    assert (code, out.splitlines()[-1]) == (0, "✓ All 2 files passed.")
    code, out = printed("validate no-such-file.jsonl sample_data/good.jsonl", capsys)
    assert (code, out.splitlines()[-1]) == (2, "✗ 1 of 2 files failed.")


def test_an_empty_file_has_two_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.jsonl").touch()
    code, out = printed(f"validate {tmp_path / 'empty.jsonl'}", capsys)
    assert code == 1
    assert re.fullmatch(r"\S+empty\.jsonl: error AE101 no-rows: .+\n✗ The dataset has no rows\.\n", out)


def test_concise_has_a_line_per_issue_that_is_never_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = printed(f"validate {BROKEN} --output concise", capsys)
    report = validate_eval_set(BROKEN)
    lines = out.splitlines()
    assert code == 1
    assert len(lines) == len(report.issues) > 20
    assert max(map(len, lines)) > 200
    places = [re.match(rf"{BROKEN}(?::(\d+))?: (error|warning|info) (AE\d+) ", line) for line in lines]
    assert [m[3] for m in places if m] == report.issues["code"].tolist()
    assert [int(m[1]) - 1 for m in places if m and m[1]] == report.issues["row"].dropna().tolist()


def test_hostile_cells_stay_on_their_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in hostile_rows()))
    report = validate_eval_set(path)
    _, out = printed(f"validate {path} --output concise", capsys)
    assert len(out.split("\n")) - 1 == len(report.issues)
    for text in (out, report.to_text(width=80), report.to_text(width=80, color=True)):
        plain = re.sub(r"\x1b\[[\d;]*m", "", text)
        assert plain == "".join(line + "\n" for line in map(visible, plain.split("\n")[:-1]))
    assert visible(HOSTILE[0]) in out


def test_a_report_without_lines_and_excerpts_is_drawn_too(tmp_path: Path) -> None:
    path = tmp_path / "gone.jsonl"
    path.write_text('{"request": " ", "response": "x"}\n')
    report = validate_eval_set(path)
    path.unlink()
    text = report.to_text(width=200)
    assert "row 0  request" in text
    assert "gone.jsonl:1" not in text
    assert "row 0  request" in report_text(summary_of(report), Shown(), color=False, width=80, system="all")


def test_the_fixes_of_a_large_file_are_not_counted() -> None:
    rows = [{"request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "x"}] * 10_001
    report = validate_eval_set(rows)
    assert report.to_text().splitlines()[-2] == "May fix issues of 1 code; --diff shows which:"
    assert "may be fixable" in report.to_html()
