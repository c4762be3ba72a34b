"""Large data on all cores give the report of one process, and a worker that fails is told."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import EvalSetError, InvalidRowsWarning, Report, prepare_for_evaluate, validate_eval_set
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import source as source_
from agent_eval_schema.io.source import Share, Source, units_of
from agent_eval_schema.runtime.processes import Worker
from agent_eval_schema.validation import checked_run
from agent_eval_schema.validation.checked_run import CheckedRun, check_sent, check_with_workers
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.validate import check_source
from tests.conftest import as_csv, as_jsonl


def row(i: int) -> dict[str, str]:
    return {
        "request_id": str(i % 3000),
        "request": "Hi" if i % 7 else " ",
        "response": f"answer {i}",
        "expected_response": str(i % 3),
    }


ROWS = [row(i) for i in range(10_000)]


def verdicts(source: Source, processes: int, values: bool = True) -> tuple[str, list[bool]]:
    """The report of so many processes, each with an equal share of a file."""
    source = source.quoting(values)
    plan = make_plan(source.read_as(show_values=values))
    run = CheckedRun(source, plan)
    if processes == 1:
        checked = (check_batch(batch, plan) for batch in source.batches())
    elif source.path is None:
        checked = check_sent(source.batches(), plan, processes)
    else:
        share = Share(0, processes, 0)
        checked = check_with_workers(units_of(source, share), share, source.path, plan)
    for batch in checked:
        run.add(batch)
    report = Report(run)
    return report.to_json(), report.valid_mask.tolist()


@pytest.mark.parametrize("groups", [1, 40])
def test_parquet_shared_by_row_groups_or_batches(groups: int, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=len(ROWS) // groups)
    one = verdicts(open_source(path), 1)
    assert json.loads(one[0])["counts"]["AE901"] == 7000
    assert verdicts(open_source(path), 3) == one


@pytest.mark.parametrize("kind", [as_jsonl, as_csv], ids=lambda f: f.__name__)
def test_text_files_shared_by_batches(kind: Callable[..., str], tmp_path: Path) -> None:
    path = kind([{**r, "response": r["response"] * 100} for r in ROWS] * 2, tmp_path)
    assert verdicts(open_source(path), 2) == verdicts(open_source(path), 1)


def as_frame(rows: list[dict[str, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows)


def as_table(rows: list[dict[str, str]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


TAKEN = 5
"""So many batches are taken by a worker, whatever the machine does meanwhile."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[pa.RecordBatch]:
    """The batches that are sent to a worker: the first ones, as this process makes the next one only then, and any
    others. They are many and small."""
    sent: list[pa.RecordBatch] = []
    packed, check = checked_run.packed, checked_run.check_sent

    def recorded(batch: pa.RecordBatch) -> pa.Buffer:
        sent.append(batch)
        return packed(batch)

    def handed_over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for made, batch in enumerate(batches):
            while made <= TAKEN and len(sent) < made:
                time.sleep(0.005)
            yield batch

    monkeypatch.setattr(source_, "MAX_BATCH_ROWS", 250)
    monkeypatch.setattr(checked_run, "packed", recorded)
    for module in (checked_run, sys.modules[__name__]):
        monkeypatch.setattr(module, "check_sent", lambda batches, *rest: check(handed_over(batches), *rest))
    return sent


@pytest.mark.parametrize("kind", [list, as_frame, as_table], ids=lambda f: f.__name__)
@pytest.mark.parametrize("values", [True, False])
def test_data_in_memory_are_sent(kind: Callable[..., Any], values: bool, sent: list[pa.RecordBatch]) -> None:
    bad = "\ud800" if kind != as_table else "?"  # a lone surrogate, which Arrow cannot hold
    rows = [{**row, "response": bad if i % 999 == 0 else row["response"]} for i, row in enumerate(ROWS)]
    assert verdicts(open_source(kind(rows)), 2, values) == verdicts(open_source(kind(rows)), 1, values)
    assert len(sent) >= TAKEN


def in_groups(rows: list[dict[str, str]], folder: Path) -> str:
    path = folder / "groups.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=250)
    return str(path)


@pytest.mark.parametrize("kind", [list, as_frame, in_groups], ids=lambda f: f.__name__)
def test_a_prepared_frame_does_not_depend_on_who_checked_its_rows(
    kind: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames, started = [], list[str]()

    def start(run: str, *rest: Any, **more: Any) -> Worker:
        started.append(run)
        return Worker(run, *rest, **more)

    monkeypatch.setenv("AGENT_EVAL_SCHEMA_JOBS", "2")
    monkeypatch.setattr(checked_run, "Worker", start)
    monkeypatch.setattr(source_, "WORTH_SECONDS", 0)
    monkeypatch.setattr(source_, "BATCH_BYTES", 50_000)
    for worth_it in (source_.WORTH_IT, 1):
        monkeypatch.setattr(source_, "WORTH_IT", worth_it)
        with pytest.warns(InvalidRowsWarning, match="7,429 of 10,000 rows are invalid"):
            frames.append(prepare_for_evaluate(kind(ROWS, tmp_path) if kind == in_groups else kind(ROWS)))
        assert len(started) == (worth_it == 1)
    one, two = frames
    pd.testing.assert_frame_equal(one, two)


class DyingWorker(Worker):
    """A worker that dies when it is sent a batch."""

    def __init__(self, run: str, job: bytes, more: Iterable[pa.Buffer]) -> None:
        super().__init__(run, job, more=self._killed(more))

    def _killed(self, more: Iterable[pa.Buffer]) -> Iterator[pa.Buffer]:
        for message in more:
            self._process.kill()
            yield message


def test_a_worker_that_dies_with_a_batch_is_told(sent: list[pa.RecordBatch], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_run, "Worker", DyingWorker)
    with pytest.raises(EvalSetError, match="a worker process ended before its work was done"):
        check_source(open_source(ROWS[:500]), jobs=2)
    assert sent


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_batch_that_cannot_be_sent_is_not_lost(sent: list[pa.RecordBatch], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(batch: pa.RecordBatch) -> pa.Buffer:
        sent.append(batch)
        raise MemoryError

    monkeypatch.setattr(checked_run, "packed", fail)
    with pytest.raises(EvalSetError, match="a worker process ended before its work was done"):
        check_source(open_source(ROWS[:500]), jobs=2)
    for thread in threading.enumerate():  # one that fails later would fail another test
        if "_deliver" in thread.name:
            thread.join(30)


def test_a_worker_that_has_not_started_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    one = verdicts(open_source(ROWS), 1)
    monkeypatch.setattr(sys, "executable", str(slow))
    assert verdicts(open_source(ROWS), 2) == one


@pytest.mark.parametrize(("workers_", "head", "first"), [(1, 0, 0), (2, 0, 0), (3, 0, 0), (2, 5, 0), (2, 2, 3)])
def test_every_unit_is_in_one_share(workers_: int, head: int, first: int) -> None:
    shares = [Share(k, workers_, head * 100, first) for k in range(workers_)]
    owners = [[s.worker for s in shares if s.has(unit, 100)] for unit in range(20)]
    assert all(len(found) == 1 for found in owners)
    assert owners[: head + first] == [[0]] * (head + first)
    assert {k for [k] in owners} == set(range(workers_))


def test_a_worker_that_dies_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = as_jsonl(ROWS, tmp_path)
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(EvalSetError, match="a worker process ended before its work was done"):
        check_source(open_source(path), jobs=2)


def test_only_large_data_deserve_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_.os, "sched_getaffinity", lambda _: range(8), raising=False)
    path = as_jsonl(ROWS, tmp_path)
    assert source_.size_of(open_source(path)) == Path(path).stat().st_size
    sizes = {kind: source_.size_of(open_source(kind(ROWS))) for kind in (list, as_frame, as_table)}
    cells = sum(len(cell) for row in ROWS for cell in row.values())
    assert all(cells / 2 < size < cells * 4 for size in sizes.values()), sizes
    assert source_.size_of(open_source(ROWS[:0])) == 0
    assert source_.worth_workers(source_.WORTH_IT - 1) == 1
    assert source_.worth_workers(source_.WORTH_IT) == 8
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_JOBS", "3")
    assert source_.worth_workers(source_.WORTH_IT) == 3


@pytest.mark.parametrize("kind", [in_groups, as_table])
def test_workers_start_when_the_rest_is_worth_it(
    kind: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the first batches took; the verdict is that of one process, whoever checks the others."""
    started, now, step = list[str](), [0.0], [1e-6]

    def start(run: str, *rest: Any, **more: Any) -> Worker:
        started.append(run)
        return Worker(run, *rest, **more)

    def clock() -> float:
        now[0] += step[0]
        return now[0]

    monkeypatch.setenv("AGENT_EVAL_SCHEMA_JOBS", "2")
    monkeypatch.setattr(source_, "BATCH_BYTES", 50_000)
    monkeypatch.setattr(source_, "WORTH_IT", 1)
    data = kind(ROWS, tmp_path) if kind == in_groups else kind(ROWS)
    one = check_source(open_source(data), jobs=1).to_json()
    monkeypatch.setattr(checked_run, "Worker", start)
    monkeypatch.setattr(checked_run.time, "perf_counter", clock)
    assert check_source(open_source(data)).to_json() == one
    assert started == []
    step[0] = 10.0
    assert check_source(open_source(data)).to_json() == one
    assert len(started) == 1


def test_a_script_without_a_main_guard_can_use_them(tmp_path: Path) -> None:
    """multiprocessing would run the script again in each worker."""
    path = as_jsonl(ROWS, tmp_path)
    script = tmp_path / "script.py"
    script.write_text(
        "from agent_eval_schema.io import source\nsource.WORTH_IT, source.WORTH_SECONDS = 1, 0\n"
        f"from agent_eval_schema import validate_eval_set\nprint(validate_eval_set({path!r}).to_json())\n"
    )
    environment = {"AGENT_EVAL_SCHEMA_JOBS": "2", "PATH": ""}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout)["counts"] == validate_eval_set(path).counts
