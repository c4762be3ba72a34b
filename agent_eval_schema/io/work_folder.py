"""A folder for the work of a run, so that an interrupted run can be resumed: each piece is committed by one rename.

.agent-eval-schema   the mark: a folder without it is a user's, and neither used nor removed
work.json     the job: another job's folder is never taken for this one's
new/          pieces that are being written
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash
from msgspec import Struct

from agent_eval_schema.cells.arrow import mapped, packed, write_one
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.atomic import MARK, as_new_folder, put, remove_folder
from agent_eval_schema.io.delta import is_delta
from agent_eval_schema.io.locks import locked
from agent_eval_schema.io.places import files_of
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.text.guarded import read_json

STATE = "work.json"
"""The file of a work folder with its job."""


class _State(Struct):
    job: Any
    began: int


class WorkFolder:
    """A work folder. Everything in it is written under a temporary name and renamed: it is whole or absent."""

    FOLDERS: tuple[str, ...] = ()

    def __init__(self, folder: str | Path | TemporaryFolder) -> None:
        self._temporary = folder if isinstance(folder, TemporaryFolder) else None  # which lives as long as this
        self.folder = Path(folder.path if isinstance(folder, TemporaryFolder) else folder)

    def start(self, job: dict[str, Any], *, resume: bool) -> int:
        """Make the folder ready for a job, and give the time when it was begun (us since 1970). What another run of the
        same job has left is kept if `resume`, else dropped.

        Raises EvalSetError if the folder belongs to another job or is not ours, or cannot be written.
        """
        try:
            if self._temporary is None and os.path.lexists(self.folder) and not self._is_ours():
                raise EvalSetError(
                    f"{self.folder}: is not a work folder of agent-eval-schema: rename it, or choose another output"
                )
            began = self._begun(job) if resume else None
            if began is None:
                began = time.time_ns() // 1000
                state = {"job": job, "began": began}
                if self._temporary is not None:
                    self._fill(self.folder, state)
                else:
                    self.remove()
                    with as_new_folder(str(self.folder)) as new:
                        self._fill(Path(new), state)
                        (Path(new) / MARK).write_text(f"{type(self).__name__}: {_MEANING}", "utf-8")
            return began
        except EvalSetError:
            raise
        except (OSError, ValueError, LookupError, TypeError) as error:  # of a state that was cut or changed too
            raise EvalSetError(f"{self.folder}: the work folder cannot be used: {error}") from error

    def _fill(self, folder: Path, state: dict[str, Any]) -> None:
        for name in (*self.FOLDERS, "new"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / STATE).write_text(json.dumps(state), "utf-8")

    def _is_ours(self) -> bool:
        """Whether the folder has our mark; one without it may be anybody's."""
        return not self.folder.is_symlink() and (self.folder / MARK).is_file()

    def _begun(self, job: dict[str, Any]) -> int | None:
        """When a run of the same job was begun here, if there was one."""
        if not (self.folder / STATE).exists():
            return None
        begun = read_json(str(self.folder / STATE), _State, "the file was cut or changed: run it without --resume")
        if begun.job != json.loads(json.dumps(job)):
            raise EvalSetError(
                f"{self.folder}: cannot resume: it was left by a run on other data or with other options: "
                "run it again without --resume"
            )
        # What was not committed goes, at once: a process of a run that was killed may be at it, and would commit a part
        # without the files that are gone.
        new, left = self.folder / "new", self.folder / "left"
        shutil.rmtree(left, ignore_errors=True)  # of a run that was killed here
        if new.is_dir():
            with suppress(OSError):  # where files that are open cannot be moved
                new.rename(left)
            for folder in (left, new):
                shutil.rmtree(folder, ignore_errors=True)
        new.mkdir(exist_ok=True)
        return begun.began

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raises EvalSetError if something cannot be written here: a full disk is not an internal error."""
        try:
            yield
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else error
            message = f"{self.folder}: the work folder cannot be written: {why}"
            free = "free some space, then " if error.errno in _FULL else ""
            raise EvalSetError(f"{message}; {free}--resume (resume=True) continues from here") from error

    def remove(self) -> None:
        """Remove the folder, if it is ours."""
        if self._temporary is not None:
            self._temporary.remove()
        elif self._is_ours():
            remove_folder(str(self.folder))

    def read_json(self, name: str) -> Any:
        """The content of a file of the folder, or None if there is no such file."""
        path = self.folder / name
        return read_json(str(path), object, "run it without --resume") if path.exists() else None

    def commit_json(self, name: str, value: Any) -> None:
        with self.committing(name) as new:
            new.write_text(json.dumps(value), "utf-8")

    @contextmanager
    def committing(self, name: str, *, is_folder: bool = False, lasting: bool = True) -> Iterator[Path]:
        """A new file or folder, which gets its name when the block succeeds: then it is whole, whatever happens to this
        run; unless it is `lasting`, it may be lost if the machine stops. A folder that another process of the same job
        has committed meanwhile has the same content, and stays."""
        with self.writing():
            if is_folder:
                new = tempfile.mkdtemp(dir=self.folder / "new")
            else:
                handle, new = tempfile.mkstemp(dir=self.folder / "new")
                os.close(handle)
            yield Path(new)
            try:
                (put if lasting and self._is_ours() else os.replace)(new, str(self.folder / name))
            except OSError:
                if not is_folder or not (self.folder / name).is_dir():
                    raise
                shutil.rmtree(new, ignore_errors=True)

    def discard(self, name: str) -> None:
        """Remove a file that nothing needs any more."""
        with suppress(PermissionError):  # where mapped files cannot be removed, they are removed with the folder
            (self.folder / name).unlink()


class PartsFolder(WorkFolder):
    """The work folder of a run that makes one batch of each batch that it reads, from a file to a file.

    parts/000003.arrow      what was made of the fourth batch, with a hash of that one; a part that is there is done
    """

    FOLDERS = ("parts",)

    @classmethod
    def of(cls, out: str, path: str, verb: str, options: dict[str, Any]) -> PartsFolder:
        """The folder of a run that reads `path` and writes `out`, with the parts that a run of the same has left."""
        parts = cls(work_of(out))
        parts.start({"verb": verb, "input": input_of(path), **options}, resume=True)
        return parts

    @classmethod
    def forget(cls, out: str) -> None:
        """Remove what a run with such a folder has left, which this run does not continue."""
        work = cls(work_of(out))
        with suppress(OSError):
            if work._is_ours() and (work.folder / MARK).read_text("utf-8").startswith(f"{cls.__name__}:"):
                with locked(out):
                    work.remove()

    def read(self, number: int, source: str) -> tuple[pa.RecordBatch, bytes] | None:
        """What was made of a part, and what was committed `beside` it; None if it was not done. Raises EvalSetError if
        it was made of others than those with this hash."""
        path = self.folder / self._name(number)
        if not path.exists():
            return None
        batch = mapped(path)
        own = dict(batch.schema.metadata)
        if own.pop(_SOURCE).decode() != source:  # of a URL or a table, neither time nor size is known
            why = "the data has changed since the run was begun: run it again without --resume"
            raise EvalSetError(f"{self.folder}: cannot resume: {why}")
        beside = own.pop(_BESIDE)
        return batch.replace_schema_metadata(own), beside

    def commit(self, number: int, source: str, batch: pa.RecordBatch, beside: bytes = b"") -> None:
        """Add a part. Raises EvalSetError if the folder cannot be written."""
        metadata = {**(batch.schema.metadata or {}), _SOURCE: source.encode(), _BESIDE: beside}
        batch = batch.replace_schema_metadata(metadata)
        with self.committing(self._name(number)) as new:
            write_one(new, batch, "lz4")

    def resuming(self, make: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """`make`, for the batches of the source in order: it is called for those that were not done, which then are."""
        numbers = itertools.count()

        def read_or_make(batch: pa.RecordBatch) -> pa.RecordBatch:
            number, source = next(numbers), xxhash.xxh3_64_hexdigest(packed(batch))
            found = self.read(number, source)
            if found is not None:
                return found[0]
            self.commit(number, source, batch := make(batch))
            return batch

        return read_or_make

    @staticmethod
    def _name(number: int) -> str:
        return f"parts/{number:06d}.arrow"


_FULL = (errno.ENOSPC, errno.EFBIG)
_MEANING = "the work of a run that was not finished. --resume continues it; to give it up, remove this folder.\n"
_SOURCE, _BESIDE = b"source", b"beside"


def work_of(out: str) -> Path:
    """The work folder of a run that writes a file."""
    place = Path(os.path.abspath(out))
    return place.with_name(f".{place.name}.work")


def input_of(path: str) -> dict[str, Any]:
    """A file, or the files of a folder or glob, by name, size and time; a Delta folder by the name of its version."""
    files = [] if is_delta(path) else [os.stat(name) for name in files_of(path) if os.path.exists(name)]
    if not files:
        return {"path": path}
    state = {"path": path, "bytes": sum(s.st_size for s in files), "modified_ns": max(s.st_mtime_ns for s in files)}
    return state if os.path.isfile(path) else {**state, "files": len(files)}
