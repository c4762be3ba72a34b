"""The folder of a run that can be resumed: what is reported if it cannot be written."""

import errno
import os
import re
from pathlib import Path

import pytest

from agent_eval_schema import EvalSetError
from agent_eval_schema.io.work_folder import WorkFolder


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
