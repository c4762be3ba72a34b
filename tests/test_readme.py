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
