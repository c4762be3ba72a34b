"""A deleted working directory: commands on absolute paths work, and a relative path is an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_eval_schema.cli import main
from tests.conftest import SAMPLES

GOOD = str(SAMPLES / "good.jsonl")


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (folder := tmp_path / "gone").mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    return tmp_path


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("command", ["validate", "metrics", "profile", "score"])
def test_a_command_on_an_absolute_path_works(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, GOOD]) in (0, 1)
    assert "internal error" not in capsys.readouterr().err


def test_absolute_outputs_are_written(gone: Path) -> None:
    assert main(["convert", GOOD, str(gone / "out.jsonl"), "--to", "mlflow"]) == 0
    assert main(["diff", GOOD, GOOD]) == 0
    assert main(["validate", GOOD, "--fix", str(gone / "fixed.jsonl")]) == 0
    assert sorted(path.name for path in gone.iterdir()) == ["fixed.jsonl", "out.jsonl"]


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize(
    "arguments", [["validate", "rows.jsonl"], ["convert", GOOD, "out.jsonl", "--to", "mlflow"], ["profile", "*.csv"]]
)
def test_a_relative_path_is_an_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert "no such file" in told or "no file matches" in told
    assert "internal error" not in told


@pytest.mark.process
@pytest.mark.usefixtures("gone")
def test_python_m_starts() -> None:
    run = subprocess.run([sys.executable, "-m", "agent_eval_schema", "validate", GOOD], capture_output=True, text=True)
    assert (run.returncode, run.stderr.count("Traceback")) == (0, 0), run.stderr
