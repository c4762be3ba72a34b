"""A run that is killed goes on where it was: finished rows are not called again, and no row is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, EvalTask
from tests.conftest import PATIENCE, ROOT

ROWS = [{"prompt": f"p{i}", "reference_trajectory": [{"tool_name": "a", "tool_input": {}}]} for i in range(12)]

PROGRAM = """
import sys, time
from pathlib import Path
from agent_eval_schema import EvalTask

rows = [{"prompt": f"p{i}", "reference_trajectory": [{"tool_name": "a", "tool_input": {}}]} for i in range(12)]

def agent(prompt):
    with open(sys.argv[2], "a") as calls:
        calls.write(prompt + "\\n")
    if prompt == "p3":
        raise ValueError("oh")
    if prompt in ("p6", "p7") and len(sys.argv) > 3:
        time.sleep(600)
    return {"response": prompt.upper(), "predicted_trajectory": [{"tool_name": "a"}]}

found = EvalTask(rows, ["trajectory_recall"]).evaluate(agent, journal=sys.argv[1], max_workers=2)
print(found.metrics_table[["response", "failure", "error"]].to_json())
"""


def start(journal: Path, calls: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(journal), str(calls), *more]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a process cannot be killed like this")
def test_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    journal, calls = tmp_path / "run.jsonl", tmp_path / "calls"
    first = start(journal, calls, "hang")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and (not calls.exists() or len(calls.read_text().split()) < 8):
        time.sleep(0.05)
    time.sleep(0.3)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=PATIENCE)
    assert first.returncode == -signal.SIGKILL
    assert sorted(calls.read_text().split()) == [f"p{i}" for i in range(8)]  # both slots hang, in p6 and p7
    assert sorted(json.loads(line)["row"] for line in journal.read_text().splitlines()[1:]) == list(range(6))
    second = start(journal, calls)
    output, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0
    again = calls.read_text().split()[8:]
    assert sorted(again) == sorted(["p6", "p7", "p8", "p9", "p10", "p11"])
    found = json.loads(output.splitlines()[-1])
    assert list(found["response"].values()) == [None if i == 3 else f"P{i}" for i in range(12)]
    assert list(found["failure"].values()) == [int(i == 3) for i in range(12)]
    assert found["error"]["3"] == "ValueError: oh"


def evaluated(journal: Path, agent: Any, rows: list[Any] = ROWS) -> Any:
    return EvalTask(rows, ["trajectory_recall"]).evaluate(agent, journal=journal)


def answer(prompt: str) -> dict[str, Any]:
    return {"response": prompt, "predicted_trajectory": [{"tool_name": "a"}]}


def nobody(_: str) -> str:
    raise AssertionError("called again")


def test_a_finished_run_calls_nobody(tmp_path: Path) -> None:
    first = evaluated(tmp_path / "run", answer)
    second = evaluated(tmp_path / "run", nobody)
    assert second.summary_metrics == first.summary_metrics
    assert second.metrics_table.equals(first.metrics_table)


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_half_a_line_is_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "run"
    evaluated(path, answer)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    called: list[str] = []
    found = evaluated(path, lambda prompt: called.append(prompt) or answer(prompt))
    assert len(called) == 1
    assert found.summary_metrics["trajectory_recall/mean"] == 1
    lines = path.read_bytes().splitlines()
    assert sorted(json.loads(line)["row"] for line in lines[1:]) == list(range(12))


def test_a_journal_of_other_prompts_is_refused(tmp_path: Path) -> None:
    evaluated(tmp_path / "run", answer)
    with pytest.raises(EvalSetError, match="checkpoint file of a run with other prompts"):
        evaluated(tmp_path / "run", answer, [*ROWS, {"prompt": "one more"}])


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(EvalSetError, match="is not a checkpoint file"):
        evaluated(path, answer)
    assert path.read_text() == "my notes\n"


@pytest.mark.parametrize("length", [0, 1, 20])
def test_a_journal_whose_head_was_cut_is_begun_again(length: int, tmp_path: Path) -> None:
    """The run was killed before it had written a row."""
    evaluated(tmp_path / "run", answer)
    head = (tmp_path / "run").read_bytes().splitlines()[0]
    (tmp_path / "run").write_bytes(head[:length])
    evaluated(tmp_path / "run", answer)
    lines = (tmp_path / "run").read_bytes().splitlines()
    assert (lines[0], len(lines)) == (head, 13)


def test_two_runs_do_not_share_a_journal(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    told: list[str] = []

    def agent(prompt: str) -> Any:
        if prompt == "p0":
            with pytest.raises(EvalSetError, match="another run is writing") as caught:
                evaluated(tmp_path / "run", answer)
            told.append(str(caught.value))
        return answer(prompt)

    evaluated(tmp_path / "run", agent)
    assert len(told) == 1


def test_a_journal_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match="no such folder"):
        evaluated(tmp_path / "nowhere" / "run", answer)


def test_the_name_of_a_review_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.ana.review.jsonl"
    with pytest.raises(EvalSetError, match="is the name of a review journal"):
        EvalTask([{"prompt": "a", "reference": "a"}], ["exact_match"]).evaluate(str, journal=path)
    assert not path.exists()
