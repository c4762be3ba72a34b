"""A conversion that is interrupted after any part, and resumed, is the one that was not interrupted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import EvalSetError
from agent_eval_schema.cli import main
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.conversion.work import Work
from agent_eval_schema.io.locks import sole_writer
from agent_eval_schema.io.work_folder import PartsFolder, work_of
from tests.conftest import SAMPLES


@pytest.fixture(autouse=True)
def two_rows_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 2)


class Interrupted(BaseException):
    """As by a signal."""


def interrupted_after(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run ends when it has committed so many parts."""
    commit, done = PartsFolder.commit, []

    def counted(self: PartsFolder, *arguments: Any) -> None:
        if len(done) == parts:
            raise Interrupted
        commit(self, *arguments)
        done.append(arguments[0])

    monkeypatch.setattr(PartsFolder, "commit", counted)


CASES = [
    ("broken.jsonl", "vertex", "out.jsonl"),
    ("broken.jsonl", "ragas", "out.csv"),
    ("broken_mlflow.jsonl", "databricks", "out.parquet"),
    ("search_traces.jsonl", "mlflow", "out.jsonl"),
    ("azure.jsonl", "langsmith", "out.jsonl"),
    ("evaluation.json", "databricks", "out.jsonl"),
]


@pytest.mark.parametrize(("name", "to", "out"), CASES)
def test_the_result_is_that_of_one_run(
    name: str, to: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, whole, resumed = str(SAMPLES / name), tmp_path / "whole" / out, tmp_path / out
    whole.parent.mkdir()
    expected = convert_file(path, str(whole), to)
    written: list[int] = []
    write = Work._written

    def counted(self: Work, rows: Any, *more: Any, **options: Any) -> Any:
        written.append(len(rows))
        return write(self, rows, *more, **options)

    monkeypatch.setattr(Work, "_written", counted)
    convert_file(path, str(resumed), to, resume=True)
    count = len(written)
    assert resumed.read_bytes() == whole.read_bytes()
    for parts in sorted({0, count // 2, count - 1}):
        resumed.unlink()
        with pytest.MonkeyPatch.context() as patch:
            interrupted_after(parts, patch)
            with pytest.raises(Interrupted):
                convert_file(path, str(resumed), to, resume=True)
        assert not resumed.exists()
        assert work_of(str(resumed)).exists()
        written.clear()
        found = convert_file(path, str(resumed), to, resume=True)
        assert len(written) == count - parts
        assert resumed.read_bytes() == whole.read_bytes()
        pd.testing.assert_frame_equal(found.losses, expected.losses)
        assert found._metrics == expected._metrics
        assert (found.given, found.converted) == (expected.given, expected.converted)
        assert found.report.counts == expected.report.counts
        assert not work_of(str(resumed)).exists()


def test_the_work_of_another_job_is_not_taken(tmp_path: Path) -> None:
    path, out = tmp_path / "rows.jsonl", str(tmp_path / "out.jsonl")
    path.write_bytes((SAMPLES / "good.jsonl").read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        interrupted_after(2, patch)
        with pytest.raises(Interrupted):
            convert_file(str(path), out, "vertex", resume=True)
    with pytest.raises(EvalSetError, match="cannot resume: it was left by a run on other data or with other options"):
        convert_file(str(path), out, "ragas", resume=True)
    path.write_bytes((SAMPLES / "broken.jsonl").read_bytes())
    with pytest.raises(EvalSetError, match="cannot resume"):
        convert_file(str(path), out, "vertex", resume=True)
    convert_file(str(path), out, "vertex")
    assert not work_of(out).exists()


def test_data_that_changed_behind_a_url_is_not_mixed(tmp_path: Path) -> None:
    """Nothing is known of it but its name, so the rows of each part are compared."""
    path, out = tmp_path / "rows.jsonl", str(tmp_path / "out.jsonl")
    lines = (SAMPLES / "good.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        interrupted_after(2, patch)
        with pytest.raises(Interrupted):
            convert_file(path.as_uri(), out, "vertex", resume=True)
    path.write_text("".join([lines[5], *lines[1:]]), encoding="utf-8")
    with pytest.raises(EvalSetError, match="the data has changed since the run was begun"):
        convert_file(path.as_uri(), out, "vertex", resume=True)
    path.write_text("".join([*lines[:4], *reversed(lines[4:])]), encoding="utf-8")  # what was done is the same
    convert_file(path.as_uri(), out, "vertex", resume=True)
    assert Path(out).read_text(encoding="utf-8").count("\n") == len(lines)


def test_what_cannot_be_resumed_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = str(SAMPLES / "good.jsonl")
    for arguments in ([good, "-"], [good, str(tmp_path / "a.evalset.json")], ["-", str(tmp_path / "a.jsonl")]):
        assert main(["convert", *arguments, "--resume"]) == 2
        assert "--resume is of a file of rows on this machine" in capsys.readouterr().err
    assert main(["convert", good, str(tmp_path / "a.jsonl"), "--resume"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl"]


@pytest.mark.parametrize("command", ["convert", "validate", "from-inference-table"])
def test_a_folder_of_the_users_is_neither_used_nor_removed(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "inference_table.jsonl" if command == "from-inference-table" else "good.jsonl"
    data, out = str(SAMPLES / name), tmp_path / "out.jsonl"
    notes = work_of(str(out)) / "work.json"
    notes.parent.mkdir()
    notes.write_text('{"job": {"verb": "mine"}}')
    arguments = [command, data, *(["--write-normalized"] if command == "validate" else []), str(out)]
    assert main([*arguments, "--resume", "-q"]) == 2
    assert f"{notes.parent}: is not a work folder of agent-eval-schema" in capsys.readouterr().err
    if command != "from-inference-table":  # which has a work folder without --resume too
        assert main([*arguments, "-q"]) == 0
    assert sorted(tmp_path.iterdir()) == sorted({notes.parent, *([out] if out.exists() else [])})
    assert notes.read_text() == '{"job": {"verb": "mine"}}'


@pytest.mark.parametrize("text", ["", '{"job": {"ve', "[1]", '{"job": 3, "began": "x"}'])
def test_a_state_that_is_cut_is_no_obstacle_without_resume(text: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        interrupted_after(1, patch)
        with pytest.raises(Interrupted):
            convert_file(str(SAMPLES / "good.jsonl"), str(out), "vertex", resume=True)
    (work_of(str(out)) / "work.json").write_text(text)
    with pytest.raises(EvalSetError):
        convert_file(str(SAMPLES / "good.jsonl"), str(out), "vertex", resume=True)
    assert convert_file(str(SAMPLES / "good.jsonl"), str(out), "vertex").converted == 12
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("resume", [True, False])
def test_the_second_of_two_runs_is_told_of_the_first(resume: bool, tmp_path: Path) -> None:
    """The folder of a run that is under way is not removed by a run that does not resume, either."""
    out = tmp_path / "out.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        interrupted_after(1, patch)
        with pytest.raises(Interrupted):
            convert_file(str(SAMPLES / "good.jsonl"), str(out), "vertex", resume=True)
    with (
        sole_writer([str(out)]),
        pytest.raises(EvalSetError, match=rf"out.jsonl: cannot be written: another run \(process {os.getpid()}\)"),
    ):
        convert_file(str(SAMPLES / "good.jsonl"), str(out), "vertex", resume=resume)
    assert work_of(str(out)).exists()
    convert_file(str(SAMPLES / "good.jsonl"), str(out), "vertex", resume=True)
    assert list(tmp_path.iterdir()) == [out]
