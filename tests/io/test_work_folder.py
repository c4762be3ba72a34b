"""The folder of a run that can be resumed: what is reported if it cannot be written."""

import errno
import os
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from agent_eval_schema import EvalSetError
from agent_eval_schema.io.work_folder import PartsFolder, WorkFolder


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "x"), f"{os.strerror(errno.ENOSPC)}; free some space, then --resume (resume=True)"),
        (OSError(errno.EACCES, "x"), f"{os.strerror(errno.EACCES)}; --resume (resume=True)"),
        (OSError("an error of Arrow"), "an error of Arrow; --resume (resume=True)"),
    ],
)
def test_a_folder_that_cannot_be_written_is_reported_with_the_next_step(
    error: OSError, message: str, tmp_path: Path
) -> None:
    expected = f"{tmp_path}: the work folder cannot be written: {message} continues from here"
    with pytest.raises(EvalSetError, match=re.escape(expected)), WorkFolder(tmp_path).writing():
        raise error


def test_a_folder_with_a_file_in_place_of_a_folder_cannot_be_used(tmp_path: Path) -> None:
    (folder := WorkFolder(tmp_path / "work")).start({"rows": 1}, resume=False)
    (tmp_path / "work" / "new").rmdir()
    (tmp_path / "work" / "new").write_text("")
    with pytest.raises(EvalSetError, match=r"work: the work folder cannot be used: .*File exists"):
        folder.start({"rows": 1}, resume=True)


def test_a_part_at_which_a_killed_run_still_was_is_not_committed_without_its_first_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run removes the first file of a part, and could not remove its folder, where the second appeared."""
    job, work = {"rows": 1}, tmp_path / "work"
    (killed := WorkFolder(work)).start(job, resume=False)

    def files_only(folder: str | Path, **_: object) -> None:
        for path in filter(Path.is_file, Path(folder).rglob("*")):
            path.unlink()

    monkeypatch.setattr(shutil, "rmtree", files_only)

    def commit() -> None:
        with killed.committing("part", is_folder=True) as new:
            (new / "rows").write_text("rows")
            WorkFolder(work).start(job, resume=True)
            (new / "index").write_text("index")

    with pytest.raises(EvalSetError, match="the work folder cannot be written"):
        commit()
    assert not (work / "part").exists()


def test_what_a_run_that_was_killed_moved_away_is_gone_when_the_next_one_starts(tmp_path: Path) -> None:
    WorkFolder(work := tmp_path / "work").start({"rows": 1}, resume=False)
    for name in ("left", "new"):
        (work / name / "part").mkdir(parents=True)
        (work / name / "part" / "rows").write_text("rows")
    WorkFolder(work).start({"rows": 1}, resume=True)
    assert {path.name for path in work.iterdir() if path.is_dir()} == {"new"}
    assert not any((work / "new").iterdir())


def test_a_part_that_another_process_has_committed_stays(tmp_path: Path) -> None:
    (folder := WorkFolder(tmp_path / "work")).start({"rows": 1}, resume=False)
    with folder.committing("part", is_folder=True) as second:
        (second / "rows").write_text("rows")
        with folder.committing("part", is_folder=True) as first:
            (first / "rows").write_text("rows")
    assert [p.name for p in (tmp_path / "work" / "part").iterdir()] == ["rows"]
    assert list((tmp_path / "work" / "new").iterdir()) == []


def test_a_batch_that_was_done_is_read_and_not_made_again(tmp_path: Path) -> None:
    (folder := PartsFolder(tmp_path / "work")).start({}, resume=False)
    batches, made = [pa.RecordBatch.from_pydict({"a": [number]}) for number in (1, 2)], list[int]()

    def make(batch: pa.RecordBatch) -> pa.RecordBatch:
        made.append(batch["a"][0].as_py())
        return pa.RecordBatch.from_pydict({"b": [made[-1] * 10]})

    first = folder.resuming(make)(batches[0])
    assert first.to_pydict() == {"b": [10]}
    assert [batch.to_pydict() for batch in map(folder.resuming(make), batches)] == [{"b": [10]}, {"b": [20]}]
    assert made == [1, 2]
    with pytest.raises(EvalSetError, match="work: cannot resume: the data has changed since the run was begun"):
        folder.resuming(make)(batches[1])
