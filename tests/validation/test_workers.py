"""A large file on all cores gives the report of one process, and a worker that fails is told."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import EvalSetError, Report, validate_eval_set
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import source as source_
from agent_eval_schema.io.source import Share, Source
from agent_eval_schema.validation.kernel import check_stream
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report_builder import ReportBuilder
from agent_eval_schema.validation.validate import check_source
from agent_eval_schema.validation.workers import check_with_workers
from tests.conftest import as_csv, as_jsonl


def row(i: int) -> dict[str, str]:
    return {
        "request_id": str(i % 3000),
        "request": "Hi" if i % 7 else " ",
        "response": f"answer {i}",
        "expected_response": str(i % 3),
    }


ROWS = [row(i) for i in range(10_000)]


def verdicts(source: Source, processes: int) -> tuple[str, list[bool]]:
    """The report of so many processes, each with an equal share."""
    plan = make_plan(source, "auto", "auto")
    builder = ReportBuilder(plan.codes, plan.outputs, source)
    if processes == 1:
        checked = check_stream(source.batches(), plan)
    else:
        checked = check_with_workers(source, str(source.name), plan, processes, head_start=0)
    for batch in checked:
        builder.add(batch)
    report = Report(source, plan, builder)
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


@pytest.mark.parametrize(("workers_", "head"), [(1, 0), (2, 0), (3, 0), (2, 5)])
def test_every_unit_is_in_one_share(workers_: int, head: int) -> None:
    shares = [Share(k, workers_, head * 100) for k in range(workers_)]
    owners = [[s.worker for s in shares if s.has(unit, 100)] for unit in range(20)]
    assert all(len(found) == 1 for found in owners)
    assert owners[:head] == [[0]] * head
    assert {k for [k] in owners} == set(range(workers_))


def test_a_worker_that_dies_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = as_jsonl(ROWS, tmp_path)
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(EvalSetError, match="a worker process ended before its work was done"):
        check_source(open_source(path), jobs=2)


def test_small_files_and_data_in_memory_deserve_no_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = as_jsonl(ROWS, tmp_path)
    monkeypatch.setattr(source_, "_cores", lambda: 8)
    assert (source_.worth_workers(path), source_.worth_workers(None)) == (1, 1)
    monkeypatch.setattr(source_, "WORTH_IT", 10)
    assert source_.worth_workers(path) == 8
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_JOBS", "3")
    assert source_.worth_workers(path) == 3


def test_a_script_without_a_main_guard_can_use_them(tmp_path: Path) -> None:
    """multiprocessing would run the script again in each worker."""
    path = as_jsonl(ROWS, tmp_path)
    script = tmp_path / "script.py"
    script.write_text(
        "from agent_eval_schema.io import source\nsource.WORTH_IT = 1\n"
        f"from agent_eval_schema import validate_eval_set\nprint(validate_eval_set({path!r}).to_json())\n"
    )
    environment = {"AGENT_EVAL_SCHEMA_JOBS": "2", "PATH": ""}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout)["counts"] == validate_eval_set(path).counts
