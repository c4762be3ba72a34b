"""A folder for the work of a run, so that an interrupted run can be resumed: each piece is committed by one rename.

work.json     the job: another job's folder is never taken for this one's
new/          pieces that are being written
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_eval_schema.io.delta import is_delta
from agent_eval_schema.io.places import files_of
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.temporary_folder import TemporaryFolder


class WorkFolder:
    """A work folder. Everything in it is written under a temporary name and renamed: it is whole or absent."""

    FOLDERS: tuple[str, ...] = ()

    def __init__(self, folder: str | Path | TemporaryFolder) -> None:
        self._temporary = folder if isinstance(folder, TemporaryFolder) else None  # which lives as long as this
        self.folder = Path(folder.path if isinstance(folder, TemporaryFolder) else folder)

    def start(self, job: dict[str, Any], *, resume: bool) -> int:
        """Make the folder ready for a job, and give the time when it was begun (us since 1970). What another run of the
        same job has left is kept if `resume`, else dropped.

        Raises EvalSetError if the folder belongs to another job, or cannot be written.
        """
        try:
            began = self._begun(job) if resume else None
            if began is None:
                shutil.rmtree(self.folder, ignore_errors=True)
                began = time.time_ns() // 1000
            for name in (*self.FOLDERS, "new"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            self.commit_json("work.json", {"job": job, "began": began})
            return began
        except EvalSetError:
            raise
        except (OSError, ValueError) as error:
            raise EvalSetError(f"{self.folder}: the work folder cannot be used: {error}") from error

    def _begun(self, job: dict[str, Any]) -> int | None:
        """When a run of the same job was begun here, if there was one."""
        begun = self.read_json("work.json")
        if begun is None:
            return None
        if begun["job"] != json.loads(json.dumps(job)):
            raise EvalSetError(
                f"{self.folder}: cannot resume: it was left by a run on other data or with other options: "
                "run it again without --resume"
            )
        shutil.rmtree(self.folder / "new", ignore_errors=True)  # files that were not committed
        return int(begun["began"])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raises EvalSetError if something cannot be written here: a full disk is not an internal error."""
        try:
            yield
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else error
            message = f"{self.folder}: the work folder cannot be written: {why}"
            raise EvalSetError(
                f"{message}; free some space, then --resume (resume=True) continues from here"
            ) from error

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def read_json(self, name: str) -> Any:
        """The content of a file of the folder, or None if there is no such file."""
        path = self.folder / name
        return json.loads(path.read_text("utf-8")) if path.exists() else None

    def commit_json(self, name: str, value: Any) -> None:
        with self.writing():
            new = self.new()
            new.write_text(json.dumps(value), "utf-8")
            os.replace(new, self.folder / name)

    def new(self) -> Path:
        handle, name = tempfile.mkstemp(dir=self.folder / "new")
        os.close(handle)
        return Path(name)


def work_of(out: str) -> Path:
    """The work folder of a run that writes a file."""
    place = Path(os.path.abspath(out))
    return place.with_name(f".{place.name}.work")


def input_of(path: str) -> dict[str, Any]:
    """A file, or the files of a folder or glob, by name, size and time; a Delta folder by the name of its version."""
    files = [] if is_delta(path) else [os.stat(name) for name in files_of(path) if os.path.exists(name)]
    if not files:
        return {"path": path}
    found = {"path": path, "bytes": sum(s.st_size for s in files), "modified_ns": max(s.st_mtime_ns for s in files)}
    return found if os.path.isfile(path) else {**found, "files": len(files)}
