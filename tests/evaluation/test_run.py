"""An agent is run on a file as it streams by: few of its rows are in memory, and what comes out is as of a list."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from msgspec.structs import replace

import agent_eval_schema.evaluation.task as task_module
from agent_eval_schema import CustomMetric, EvalSetError, EvalTask
from agent_eval_schema.evaluation.runner import LEFT_BEHIND
from agent_eval_schema.evaluation.task import OPEN
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.source import Source
from tests.conftest import KINDS, PATIENCE, Row
from tests.helpers.scores import reasons_of

CALL: Row = {"tool_name": "a", "tool_input": {}}
STEP = 7
"""Rows a batch."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", STEP)


def rows_of(count: int) -> list[Row]:
    """Every tenth row has no prompt, and what the data has of a response is not the agent's."""
    return [
        {
            "prompt": None if i % 10 == 9 else f"p{i}",
            "reference": f"P{i}",
            "reference_trajectory": [CALL],
            "response": "?",
        }
        for i in range(count)
    ]


def agent(prompt: str) -> Row:
    if prompt == "p3":
        raise ValueError("oh")
    return {"response": prompt.upper(), "predicted_trajectory": [CALL]}


def length(row: Row) -> Row:
    return {"length": len(row["response"] or ""), "note": row["prompt"]}


METRICS: list[Any] = ["trajectory_recall", "exact_match", CustomMetric("length", length)]


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
def test_a_file_gives_what_a_list_gives(tmp_path: Path, kind: str) -> None:
    rows = rows_of(40)
    path = KINDS[kind](rows, tmp_path)
    there, here = EvalTask(path, METRICS).evaluate(agent), EvalTask(rows, METRICS).evaluate(agent)
    assert reasons_of(there) == reasons_of(here)
    columns = [c for c in here.metrics_table.columns if c not in ("latency_in_seconds", "reference_trajectory")]
    assert list(there.metrics_table.columns) == list(here.metrics_table.columns)
    pd.testing.assert_frame_equal(there.metrics_table[columns], here.metrics_table[columns], check_dtype=False)
    for name in ("failure/mean", "trajectory_recall/mean", "exact_match/mean", "length/mean"):
        assert there.summary_metrics[name] == here.summary_metrics[name]
    assert there.summary_metrics["failure/mean"] == 5 / 40
    assert there.metrics_table["error"].notna().sum() == 5


class Counted:
    """A source that says how far it has been read: the number of the farthest batch, from 1 on."""

    def __init__(self, source: Source) -> None:
        self.read = 0
        self.source = replace(source, batches=self._batches)
        self._given = source

    def _batches(self) -> Iterator[Any]:
        for number, batch in enumerate(self._given.batches(), 1):
            self.read = max(self.read, number)
            yield batch


def test_no_more_is_read_while_a_row_is_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = KINDS["parquet"]([{"prompt": f"p{i}"} for i in range(20 * STEP)], tmp_path)
    counted = Counted(open_source(path))
    monkeypatch.setattr(task_module, "open_source", lambda *_, **__: counted.source)
    task = EvalTask(path, ["exact_match"])
    others, most = threading.Semaphore(0), [0]

    def slow_at_first(prompt: str) -> str:
        if prompt == "p0":  # answers when all rows that may be asked beside it have been asked
            for _ in range(OPEN * STEP - 1):
                assert others.acquire(timeout=PATIENCE)
            most[0] = counted.read
        others.release()
        return prompt

    found = task.evaluate(slow_at_first)
    assert most[0] <= OPEN + 1  # one waits for its turn
    assert counted.read == 20
    assert found.metrics_table["response"].tolist() == [f"p{i}" for i in range(20 * STEP)]


def test_a_journal_goes_on_in_a_file(tmp_path: Path) -> None:
    path, journal = KINDS["parquet"](rows_of(40), tmp_path), tmp_path / "journal"
    first = EvalTask(path, METRICS).evaluate(agent, journal=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(
        b"".join(line for line in lines if b'"row":2' not in line)
    )  # 2 and 20 … 29, but 29 has no prompt
    called: list[str] = []
    again = EvalTask(path, METRICS).evaluate(lambda prompt: called.append(prompt) or agent(prompt), journal=journal)
    assert sorted(called) == sorted(["p2", *(f"p{i}" for i in range(20, 29))])
    columns = [c for c in first.metrics_table.columns if c != "latency_in_seconds"]
    pd.testing.assert_frame_equal(again.metrics_table[columns], first.metrics_table[columns])


def test_a_journal_is_of_the_prompts_whatever_else_the_data_says(tmp_path: Path) -> None:
    rows, journal = [{"prompt": "a", "reference": "x"}], tmp_path / "journal"
    EvalTask(rows, ["exact_match"]).evaluate(lambda _: "y", journal=journal)
    found = EvalTask([{"prompt": "a", "reference": "y"}], ["exact_match", "trajectory_recall"]).evaluate(
        lambda _: pytest.fail("called again"), journal=journal
    )
    assert found.summary_metrics["exact_match/mean"] == 1


def test_an_agent_that_is_dead_is_given_up_once_not_in_each_part(tmp_path: Path) -> None:
    rows = 20 * STEP
    path = KINDS["parquet"]([{"prompt": f"p{i}"} for i in range(rows)], tmp_path)
    ended, called = threading.Event(), list[str]()

    def dead(prompt: str) -> str:
        called.append(prompt)
        ended.wait(60)
        return prompt

    found = EvalTask(path, ["exact_match"]).evaluate(dead, max_workers=LEFT_BEHIND, timeout=0.2)
    ended.set()
    errors = found.metrics_table["error"]
    assert len(called) == errors.str.contains("left behind").sum() <= 2 * LEFT_BEHIND
    assert errors.str.startswith("not called").sum() == rows - len(called) > 0


@pytest.mark.parametrize("with_journal", [True, False])
def test_a_file_without_a_prompt_is_told_and_leaves_no_journal(tmp_path: Path, with_journal: bool) -> None:
    path, journal = KINDS["jsonl"]([{"response": "a", "reference": "b"}] * 20, tmp_path), tmp_path / "journal"
    with pytest.raises(EvalSetError, match="the agent cannot run"):
        EvalTask(path, ["exact_match"]).evaluate(agent, journal=journal if with_journal else None)
    assert not journal.exists()
