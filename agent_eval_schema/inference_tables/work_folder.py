"""The work folder of a build: converted rows in parts, each committed by one rename, so that an interrupted run can be
resumed.

    work.json                     the build: another job's folder is never taken for this one's
    parts/-0000001-000000/        rows of the dataset that is extended
    existing.json                 how many it has
    parts/00000003-000001/        the second batch of the fourth unit (of Parquet: row group) of the table
        rows.arrow                    the converted rows (lz4, unless there is ample room)
        index.parquet                 the input of the decisions: ids, hashes, time, reason, stratum
        entries.parquet               the feedback in it, if there is any
    converted.json                how many logged rows each part had: the table need not be read again
    traces/000000.parquet         (key, trace) of the traces that are joined, if there are any
    labels/000000.parquet         the feedback of an assessment log, if there is one
    decided.parquet, decided.json the decisions of DuckDB, part by part
    finished/00000003-000001.arrow  a finished part on its way from one process to another
    invalid/00000003-000001.arrow rows that the validation of the finished rows excluded
    rows.arrow                    the evaluation dataset, if it is not written elsewhere

A part that is not there under its own name does not exist. Memory never holds more than a few parts.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.inference_tables.decide.sql import CALL_TABLE, call_columns, entry_table
from agent_eval_schema.io.parquet import decoded
from agent_eval_schema.io.source import MAX_BATCH_ROWS
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.temporary_folder import TemporaryFolder

EXISTING_UNIT = -1
"""The unit of the rows of a dataset that is extended."""


class PartKey(NamedTuple):
    """Which batch of the table a part was made of: the unit, and the number of the batch in it."""

    unit: int
    batch: int

    @property
    def number(self) -> int:
        """One number for both, in the order of the table."""
        return self.unit << 24 | self.batch

    @property
    def name(self) -> str:
        return f"{self.unit:08d}-{self.batch:06d}"

    @staticmethod
    def of(number: int) -> PartKey:
        return PartKey(number >> 24, number & 0xFFFFFF)


class WorkFolder:
    """A work folder. Everything in it is written under a temporary name and renamed: it is whole or absent."""

    def __init__(self, folder: str | Path | TemporaryFolder) -> None:
        self._temporary = folder if isinstance(folder, TemporaryFolder) else None  # which lives as long as this
        self.folder = Path(folder.path if isinstance(folder, TemporaryFolder) else folder)

    # the folder

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
            for name in ("parts", "traces", "labels", "finished", "invalid", "spill", "new"):
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
    def _writing(self) -> Iterator[None]:
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
        with self._writing():
            new = self._new()
            new.write_text(json.dumps(value), "utf-8")
            os.replace(new, self.folder / name)

    def _new(self) -> Path:
        handle, name = tempfile.mkstemp(dir=self.folder / "new")
        os.close(handle)
        return Path(name)

    # parts

    def commit(
        self, part: PartKey, rows: pa.RecordBatch, stratum: pa.Array | None, facts: pa.RecordBatch | None = None
    ) -> None:
        """Commit converted rows; `facts` are the columns that the decisions read, if the rows have others."""
        facts = rows if facts is None else facts
        index = pa.table(call_columns(part.number, facts, stratum), schema=CALL_TABLE)
        entries = entry_table(part.number, facts)
        with self._writing():
            new = Path(tempfile.mkdtemp(dir=self.folder / "new"))
            self._write(new / "rows.arrow", rows)
            pq.write_table(index, new / "index.parquet", compression="lz4")
            if len(entries):
                pq.write_table(entries, new / "entries.parquet", compression="lz4")
        try:
            new.rename(self.folder / "parts" / part.name)
        except OSError:  # another run has been here before: its result is the same
            shutil.rmtree(new)

    def _write(self, path: Path, rows: pa.RecordBatch) -> None:
        """Rows are written as they are, and mapped when they are read, where there is room for that: to pack them and
        unpack them would take a tenth of the time of a build."""
        # with less free disk than 32 GiB, the parts are compressed
        options = _PLAIN if shutil.disk_usage(self.folder).free > (32 << 30) else _LZ4
        with pa.ipc.new_file(path, rows.schema, options=options) as writer:
            writer.write_batch(rows)

    def has(self, part: PartKey) -> bool:
        return (self.folder / "parts" / part.name).is_dir()

    def parts(self) -> list[PartKey]:
        """The committed parts, in the order of the table."""
        names = [p.name.rpartition("-") for p in sorted((self.folder / "parts").glob("*"))]
        return [PartKey(int(unit), int(number)) for unit, _, number in names]

    def existing_rows(self) -> int:
        return self.read_json("existing.json") or 0

    def rows(self, part: PartKey) -> pa.RecordBatch:
        return _mapped(self.folder / "parts" / part.name / "rows.arrow")

    def hand_over_finished(self, part: PartKey, rows: pa.RecordBatch) -> None:
        """Leave the finished rows of a part to another process, which takes them."""
        with self._writing():
            self._write(self.folder / "finished" / f"{part.name}.arrow", rows)

    def take_finished(self, part: PartKey) -> pa.RecordBatch:
        """What another process has left; it is gone then."""
        path = self.folder / "finished" / f"{part.name}.arrow"
        rows = _mapped(path)
        with suppress(PermissionError):  # where mapped files cannot be removed, they are removed with the folder
            path.unlink()
        return rows

    def files(self, name: str) -> list[str]:
        """The index or entries files of all parts."""
        return sorted(map(str, (self.folder / "parts").glob(f"*/{name}.parquet")))

    # other tables

    def commit_table(self, name: str, number: int, table: pa.Table) -> None:
        """Commit a file of `traces` or `labels`: of the batch with this number."""
        with self._writing():
            new = self._new()
            pq.write_table(table, new, compression="lz4")
            os.replace(new, self.folder / f"{name}/{number:06d}.parquet")

    def tables(self, name: str) -> list[str]:
        return sorted(map(str, (self.folder / name).glob("*.parquet")))

    # results

    def commit_batches(self, name: str, batches: Iterable[pa.RecordBatch]) -> None:
        """Write a file of batches, as they come."""
        with self._writing(), ExitStack() as stack:
            new, writer = self._new(), None
            for batch in batches:
                if writer is None:
                    writer = stack.enter_context(pa.ipc.new_stream(str(new), batch.schema, options=_LZ4))
                writer.write_batch(batch)
        if writer is not None:  # else there is nothing that could be read
            os.replace(new, self.folder / name)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The batches of a file; none if there is no such file."""
        path = self.folder / name
        if path.exists():
            with pa.memory_map(str(path)) as file:
                yield from pa.ipc.open_stream(file)


def _mapped(path: Path) -> pa.RecordBatch:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).get_batch(0)


_PLAIN = pa.ipc.IpcWriteOptions()
_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


# --- decisions
def by_part(path: Path, *columns: str) -> Iterator[tuple[PartKey, pa.RecordBatch]]:
    """A file in the order of its parts → one batch (part, place, these columns) per part."""
    for part, runs in groupby(_runs(path, ["part", "place", *columns]), key=itemgetter(0)):
        yield PartKey.of(part), one_batch([batch for _, batch in runs])


def _runs(path: Path, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    with open(path, "rb") as file, pq.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False) as table:
        for batch in decoded(table, MAX_BATCH_ROWS, columns=columns):
            parts = np.asarray(batch.column("part"))
            bounds = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(parts)]
            for start, stop in pairwise(bounds):
                if stop > start:
                    yield int(parts[start]), batch.slice(start, stop - start)
