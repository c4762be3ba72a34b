"""The last lines of every command: the verdict, and below it the next command, in one line that can be typed."""

import shlex
from pathlib import Path

import pytest

from agent_eval_schema.cli import main
from tests.conftest import SAMPLES

BROKEN, GOOD, EDITED = "broken.jsonl", "good.jsonl", "edited_broken.jsonl"

ENDS: dict[str, tuple[str, str]] = {
    f"validate {GOOD}": ("✓ All 12 rows are valid.", ""),
    f"validate {EDITED}": ("✗ 1 of 12 rows cannot be evaluated (8.3%)", f"validate {EDITED} --fix fixed.jsonl"),
    "validate otel_traces_broken.jsonl": (
        "✗ 3 of 4 rows cannot be evaluated (75%)",
        "review otel_traces_broken.jsonl --queue errors",
    ),
    "validate otel_traces.jsonl": ("✓ All 3 rows are valid.", "review otel_traces.jsonl --queue truth"),
    f"validate {GOOD} {EDITED}": ("✗ 1 of 2 files failed.", ""),
    f"metrics {GOOD}": ("13 of 13 metrics can score at least one row", ""),
    f"metrics {BROKEN}": ("13 of 13 metrics can score at least one row", f"validate {BROKEN}"),
    f"diff {GOOD} {GOOD}": ("✓ No difference: all 12 rows are the same.", ""),
    f"diff {GOOD} {EDITED}": ("✗ 5 of 11 matched rows changed", f"validate {EDITED} --select AE206"),
    f"diff {GOOD} {BROKEN}": ("✗ 1 of 1 matched row changed, 36 added", f"validate {BROKEN}"),  # 27 codes are no line
    f"diff {GOOD} less.jsonl": ("✗ 1 of 12 matched rows changed; 1 lost a metric.", "metrics less.jsonl"),
    "score vertex.jsonl": ("3 rows evaluated: trajectory_exact_match 0.333, ", "score vertex.jsonl --html scores.html"),
    "score vertex.jsonl --metrics trajectory_recall --tool-name get_order --match tool_name": (
        "3 rows evaluated: trajectory_single_tool_use 0 and 1 other metric",
        "score vertex.jsonl --metrics trajectory_recall --tool-name get_order --match tool_name --html scores.html",
    ),
    "score vertex.jsonl --metrics trajectory_recall --match tool_name": (
        "✓ 3 rows evaluated: every score is perfect",
        "",
    ),
    "score vertex.jsonl --html scores.html": ("3 rows evaluated: trajectory_exact_match 0.333, ", ""),
    "score vertex_broken.jsonl": ("⚠ 2 of 4 rows scored; 2 unreadable", "validate vertex_broken.jsonl"),
    f"score {GOOD}": ("✗ no row was scored", f"metrics {GOOD} --system vertex"),
    "compare vertex.jsonl vertex.jsonl": ("✓ No score differs", ""),
    "compare old.csv new.csv --key id --fail-on never": (
        "⚠ 1 score lower, 0 higher",
        "compare old.csv new.csv --key id --html comparison.html",
    ),
    "compare old.csv new.csv old.csv --key id --configurations a,b,a": (
        "3 runs of ",
        "compare old.csv new.csv old.csv --key id --configurations a,b,a --html comparison.html",
    ),
    "compare old.csv new.csv old.csv --key id --html history.html": ("3 runs of ", ""),
    f"convert {GOOD} out.jsonl": (
        "✓ databricks → databricks: 12 of 12 rows converted, no losses",
        "metrics out.jsonl --format databricks",
    ),
    f"convert {GOOD} out.jsonl --to mlflow": ("⚠ databricks → mlflow: 12 of 12", "metrics out.jsonl --format mlflow"),
    f"convert {BROKEN} out.jsonl --to mlflow": ("✗ databricks → mlflow: 15 of 37 rows", f"validate {BROKEN}"),
    "from-traces otel_traces_broken.jsonl out.jsonl": (
        "✗ 3 of 4 rows cannot be evaluated",
        "review out.jsonl --queue errors",
    ),
    "from-inference-table inference_table.jsonl out.jsonl": (
        "✓ 14 rows of 27 logged: 4 with expected_response",
        "profile out.jsonl",
    ),
    f"validate {BROKEN} --fix out.jsonl": ("✗ 16 of 37 rows cannot be evaluated", "review out.jsonl --queue errors"),
}
"""How the verdict of each command begins, and the command below it."""


BEFORE = {
    "validate otel_traces_broken.jsonl": "explain AE201",
    "from-traces otel_traces_broken.jsonl out.jsonl": "explain AE201",
    "from-inference-table inference_table.jsonl out.jsonl": "review out.jsonl --queue truth",
    f"validate {BROKEN} --fix out.jsonl": "validate out.jsonl --output concise",
}
"""The command before that one, where a person is needed."""


@pytest.mark.parametrize("words", ENDS)
def test_the_last_lines_are_the_verdict_and_the_next_command(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if words.startswith("from-inference-table"):
        pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    verdict, following = ENDS[words]
    for name in {word for word in words.split() if (SAMPLES / word).is_file()}:
        Path(name).symlink_to(SAMPLES / name)
    for name in ("old.csv", "new.csv"):
        Path(name).write_text(f"id,a/score\n1,{int(name == 'old.csv')}\n2,1\n")
    if "less.jsonl" in words:
        Path("less.jsonl").write_text((SAMPLES / GOOD).read_text().replace('"guidelines"', '"notes"', 1))
    main([*words.split(), "--quiet"] if not words.startswith(("diff", "metrics")) else words.split())
    lines = capsys.readouterr().out.splitlines()
    if not following:
        assert lines[-1].startswith(verdict)
        return
    assert lines[-3 if words not in BEFORE else -5].startswith(verdict)
    assert words not in BEFORE or lines[-3] == f"  agent-eval-schema {BEFORE[words]}"
    assert lines[-2].endswith(":")
    assert lines[-1] == f"  agent-eval-schema {following}"
    assert main(shlex.split(lines[-1])[1:]) in (0, 1)  # it can be typed as it is
    capsys.readouterr()


def test_the_last_lines_of_a_profile_are_the_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(SAMPLES)
    monkeypatch.setenv("COLUMNS", "300")
    main(["profile", GOOD])
    lines = capsys.readouterr().out.splitlines()
    steps = lines[lines.index("12 distinct questions in 12 valid rows") + 1 :]
    assert [line[:3] for line in steps if line[:1].isdigit()] == ["1. ", "2. ", "3. "]
    assert sum(line.startswith("  agent-eval-schema ") for line in steps) == 3


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_the_next_command_is_never_broken(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", f"{width}")
    file = tmp_path / f"a file with a long name {'x' * 60}.jsonl"
    file.symlink_to(SAMPLES / "vertex_broken.jsonl")
    main(["score", str(file)])
    assert capsys.readouterr().out.splitlines()[-1] == f"  agent-eval-schema validate '{file}'"
