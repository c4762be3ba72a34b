"""The folder of a run that can be resumed: what is reported if it cannot be written."""

import errno
import os
import re
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
