"""README is short, its commands and code run, and what it shows of their output is what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_eval_schema.cli import main
from tests.conftest import ROOT, SAMPLES
from tests.helpers.page_blocks import without_mlflow

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def block(mark: str) -> re.Match[str]:
    found = re.search(rf"<!-- {mark} -->\n```\w*\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found


@pytest.fixture
def in_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the sample data is, and nothing else."""
    shutil.copytree(SAMPLES, tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 170
    assert len(_by_hand(TEXT).split()) <= 920


def test_a_new_format_does_not_make_it_longer() -> None:
    assert len(_by_hand(TEXT).split()) < len(TEXT.split())
    longer = re.sub(r"^(\| read .*) \|$", r"\1, A New Format |", TEXT, flags=re.MULTILINE)
    assert longer != TEXT
    assert _by_hand(longer) == _by_hand(TEXT)


def _by_hand(text: str) -> str:
    """README without the lists of formats, which are generated."""
    return re.sub(r"^\| read .*\n", "", text, flags=re.MULTILINE)


def test_the_first_command_prints_the_issue_that_is_shown(in_a_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install, _, command = block("try").group(1).strip().rpartition(" && ")
    assert install == "python3 -m venv .venv && .venv/bin/pip install -q ."
    program, name, *patterns = command.split()
    assert program == ".venv/bin/agent-eval-schema"
    files = [str(path.relative_to(in_a_copy)) for pattern in patterns for path in sorted(in_a_copy.glob(pattern))]
    assert main([name, *files]) == 1
    printed = capsys.readouterr().out
    assert "Did you mean 'user'?" in printed
    found = re.search(r"^AE206.*?(?=^AE)", printed, re.DOTALL | re.MULTILINE)
    assert found
    shown = block("issue")
    if os.environ.get("UPDATE_GOLDEN"):
        README.write_text(TEXT[: shown.start(1)] + found[0] + TEXT[shown.end(1) :], encoding="utf-8")
    assert found[0] == block("issue").group(1)


def test_the_test_command_installs_the_group_of_the_tests() -> None:
    *_, install, test = block("test").group(1).strip().split(" && ")
    assert install == ".venv/bin/pip install -q -e . --group test"
    assert test == ".venv/bin/python -m pytest"


def test_the_commands_that_follow_run(in_a_copy: Path) -> None:
    (command,) = re.findall(r"`\.venv/bin/agent-eval-schema ([^`]*)`", TEXT)
    (option,) = re.findall(r"`(--html [^`]*)`", TEXT)
    assert main(command.split()) == 1
    assert main([*command.split()[:-1], *option.split()]) == 1
    assert (in_a_copy / "report.html").stat().st_size > 10_000


@pytest.mark.mlflow
def test_the_code_runs_as_it_is(in_a_copy: Path) -> None:
    pytest.importorskip("mlflow")
    code = block("python").group(1)
    assert len(code.strip().splitlines()) <= 12
    rows = re.search(r"# (\d+) of (\d+) canonical rows", code)
    assert rows
    code += f"\nassert (len(rows), report.row_count) == ({rows[1]}, {rows[2]})\nassert result.metrics\n"
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "TQDM_DISABLE": "1", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env={**without_mlflow(os.environ), **quiet}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (in_a_copy / "report.html").exists()


def test_the_extras_are_those_of_the_package() -> None:
    section = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[project.optional-dependencies]")[2]
    extras = re.findall(r"^([\w-]+) = ", section.partition("\n[")[0], re.MULTILINE)
    table = re.search(r"\| Extra \|.*?\n\n", TEXT, re.DOTALL)
    assert table
    shown = [name for row in table[0].strip().splitlines()[2:] for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert sorted([*shown, "all"]) == sorted(extras)
