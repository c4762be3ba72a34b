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

import shutil
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agent_eval_schema.cells.arrow import mapped, write_one
from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.inference_tables.decide.sql import CALL_TABLE, call_columns, entry_table
from agent_eval_schema.io.parquet import decoded
from agent_eval_schema.io.source import MAX_BATCH_ROWS
from agent_eval_schema.io.work_folder import WorkFolder

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


class BuildFolder(WorkFolder):
    """The work folder of a build."""

    FOLDERS = ("parts", "traces", "labels", "finished", "invalid", "spill")

    # parts

    def commit(
        self, part: PartKey, rows: pa.RecordBatch, stratum: pa.Array | None, facts: pa.RecordBatch | None = None
    ) -> None:
        """Commit converted rows; `facts` are the columns that the decisions read, if the rows have others."""
        facts = rows if facts is None else facts
        index = pa.table(call_columns(part.number, facts, stratum), schema=CALL_TABLE)
        entries = entry_table(part.number, facts)
        with self.committing(f"parts/{part.name}", is_folder=True) as new:
            self._write(new / "rows.arrow", rows)
            pq.write_table(index, new / "index.parquet", compression="lz4")
            if len(entries):
                pq.write_table(entries, new / "entries.parquet", compression="lz4")

    def _write(self, path: Path, rows: pa.RecordBatch) -> None:
        """Rows are written as they are, and mapped when they are read, where there is room for that: to pack them and
        unpack them would take a tenth of the time of a build."""
        # with less free disk than 32 GiB, the parts are compressed
        write_one(path, rows, None if shutil.disk_usage(self.folder).free > (32 << 30) else "lz4")

    def has(self, part: PartKey) -> bool:
        return (self.folder / "parts" / part.name).is_dir()

    def parts(self) -> list[PartKey]:
        """The committed parts, in the order of the table."""
        names = [p.name.rpartition("-") for p in sorted((self.folder / "parts").glob("*"))]
        return [PartKey(int(unit), int(number)) for unit, _, number in names]

    def existing_rows(self) -> int:
        return self.read_json("existing.json") or 0

    def rows(self, part: PartKey) -> pa.RecordBatch:
        return mapped(self.folder / "parts" / part.name / "rows.arrow")

    def hand_over_finished(self, part: PartKey, rows: pa.RecordBatch) -> None:
        """Leave the finished rows of a part to another process, which takes them."""
        with self.committing(f"finished/{part.name}.arrow", lasting=False) as new:
            self._write(new, rows)

    def take_finished(self, part: PartKey) -> pa.RecordBatch:
        """What another process has left; it is gone then."""
        name = f"finished/{part.name}.arrow"
        rows = mapped(self.folder / name)
        self.discard(name)
        return rows

    def files(self, name: str) -> list[str]:
        """The index or entries files of all parts."""
        return sorted(map(str, (self.folder / "parts").glob(f"*/{name}.parquet")))

    # other tables

    def commit_table(self, name: str, number: int, table: pa.Table) -> None:
        """Commit a file of `traces` or `labels`: of the batch with this number."""
        with self.committing(f"{name}/{number:06d}.parquet") as new:
            pq.write_table(table, new, compression="lz4")

    def tables(self, name: str) -> list[str]:
        return sorted(map(str, (self.folder / name).glob("*.parquet")))

    # results

    def commit_batches(self, name: str, batches: Iterable[pa.RecordBatch]) -> None:
        """Write a file of batches, at least one, as they come."""
        with self.committing(name) as new:
            first = next(rest := iter(batches))
            with pa.ipc.new_stream(str(new), first.schema, options=_LZ4) as writer:
                for batch in chain([first], rest):
                    writer.write_batch(batch)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The batches of a file; none if there is no such file."""
        path = self.folder / name
        if path.exists():
            with pa.memory_map(str(path)) as file:
                yield from pa.ipc.open_stream(file)


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
