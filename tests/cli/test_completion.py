"""The completion script, in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_eval_schema.cli import main
from agent_eval_schema.cli.typing_help import SHELLS

pytest.importorskip("shtab")

ASK = {
    "bash": """
        source ./script; words=({words}); COMP_WORDS=("${{words[@]}}" "{last}"); COMP_CWORD=${{#words[@]}}
        COMP_LINE="{words} {last}"; COMP_POINT=${{#COMP_LINE}}
        _shtab_agent_eval_schema; printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    "fish": "source ./script; complete -C '{words} {last}'",
}
"""How a shell is asked for what fits a word."""

COMPLETED = {
    "agent-eval-schema val": ["validate"],
    "agent-eval-schema ces u": ["update"],
    "agent-eval-schema validate --wri": ["--write-invalid", "--write-normalized"],
    "agent-eval-schema validate a.jsonl --select message-r": ["message-role"],
    "agent-eval-schema validate a.jsonl --output ju": ["junit"],
    "agent-eval-schema convert rows.jsonl out.jsonl --to rag": ["ragas"],
    "agent-eval-schema convert rows.jsonl out.jsonl --format lang": ["langsmith"],
    "agent-eval-schema metrics a.jsonl --system ver": ["vertex"],
    "agent-eval-schema score a.jsonl --metrics trajectory_p": ["trajectory_precision"],
    "agent-eval-schema score a.jsonl --min trajectory_r": ["trajectory_recall="],
    "agent-eval-schema explain AE40": ["AE401", "AE402"],
    "agent-eval-schema schema canon": ["canonical"],
    "agent-eval-schema completion fi": ["fish"],
    "agent-eval-schema validate row": ["rows.jsonl"],
    "agent-eval-schema diff rows.jsonl ro": ["rows.jsonl"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").touch()
    return tmp_path


def write_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    Path("script").write_text(capsys.readouterr().out)


@pytest.mark.parametrize("shell", ASK)
def test_a_shell_completes_commands_options_and_names(
    shell: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    write_script(shell, capsys)
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    for line, expected in COMPLETED.items():
        words, _, last = line.rpartition(" ")
        command = [shell, "-c", ASK[shell].format(words=words, last=last)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        found = [text.split("\t")[0].strip() for text in done.stdout.splitlines()]
        assert [name for name in expected if name not in found] == [], (line, found, done.stderr)
        assert [name for name in found if not name.startswith(last)] == [], line


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.usefixtures("folder")
def test_a_shell_reads_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_script(shell, capsys)
    assert "trajectory_exact_match" in Path("script").read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    done = subprocess.run([shell, "-n", "script"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_that_makes_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install -U 'agent-eval-schema[completion]'" in capsys.readouterr().err
