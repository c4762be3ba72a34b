"""The README's script does what the README says, printed word for word."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.cli import main
from tests.conftest import ROOT, SAMPLES

README = ROOT / "README.md"


def block(mark: str) -> re.Match[str]:
    found = re.search(rf"<!-- {mark} -->\n```\w*\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found


def test_the_agent_prints_what_the_readme_shows(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "110"}
    command = [sys.executable, "-c", block("agent").group(1)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = re.sub(r"[\d.]+ [mµ]?s(?= )", lambda found: "8.5 µs".rjust(len(found.group())), done.stdout)
    printed = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
    shown = block("agent-table")
    if os.environ.get("UPDATE_GOLDEN"):
        text = README.read_text(encoding="utf-8")
        README.write_text(text[: shown.start(1)] + printed + "\n" + text[shown.end(1) :], encoding="utf-8")
    assert _spaced(printed) == _spaced(block("agent-table").group(1))


def _spaced(text: str) -> list[list[str]]:
    """What is said, wherever it stands: the latency is now wider, now narrower."""
    return [line.split() for line in text.splitlines() if line.strip()]


def test_the_evaluation_prints_what_the_readme_shows(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES, tmp_path / "sample_data")
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "TQDM_DISABLE": "1", "COLUMNS": "120"}
    environment = {**os.environ, **quiet, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": ""}
    command = [sys.executable, "-c", block("evaluate").group(1)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    require_shown("evaluation", done.stdout.rstrip().rpartition("\n\n")[2])


def require_shown(mark: str, printed: str) -> None:
    shown = block(mark)
    if os.environ.get("UPDATE_GOLDEN"):
        text = README.read_text(encoding="utf-8")
        README.write_text(text[: shown.start(1)] + printed.rstrip() + "\n" + text[shown.end(1) :], encoding="utf-8")
    assert printed.rstrip() == block(mark).group(1).rstrip()


@pytest.fixture
def in_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the sample data is, and nothing else."""
    shutil.copytree(SAMPLES, tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def test_one_command_takes_a_payload_table_to_a_valid_set(in_a_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    program, *arguments = shlex.split(block("production").group(1))
    assert (program, main(arguments)) == ("agent-eval-schema", 0)
    require_shown("funnel", capsys.readouterr().out)
    report = validate_eval_set("helpdesk.jsonl")
    assert (report.ok, report.row_count) == (True, 10)
    made = {path.name for path in in_a_copy.iterdir()}
    assert made == {"sample_data", "helpdesk.jsonl", "helpdesk.jsonl.manifest.json"}


@pytest.mark.usefixtures("in_a_copy")
def test_the_same_set_in_a_notebook() -> None:
    pytest.importorskip("duckdb")
    names: dict[str, Any] = {}
    exec(block("build").group(1), names)
    build = names["build"]
    assert build.summary.funnel == block("funnel").group(1).splitlines()[0]
    assert build.report.ok
    assert len(build.rows) + len(build.set_aside) == build.summary.records


def test_the_commands_on_ces_files_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAMPLES, tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line)[1:] for line in block("ces").group(1).splitlines()]
    assert [main(command) for command in commands] == [0] * len(commands)
    assert capsys.readouterr().out.count("3 of 3 evaluations converted") == 3
    made = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert made == ["copy.csv", "evaluations.json", "rows.jsonl"]
