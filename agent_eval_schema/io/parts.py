"""Several text files → one stream of rows, and for each row its file and line. Nothing is kept per row."""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from agent_eval_schema.io.places import root_of
from agent_eval_schema.io.streams import Position
from agent_eval_schema.issues import FileLine

Batches = Callable[[str, Position | None], Iterator[pa.RecordBatch]]
Lines = Callable[[str], Iterator[int]]
"""How a file is read: its rows, and the line on which each of them begins."""


class Parts:
    """The files of a table in order with their row counts, noted or counted; `read` gives batches, `count` rows."""

    def __init__(self, path: str, files: Sequence[str], read: Batches, count: Callable[[str], int]) -> None:
        self.files, self._path = tuple(files), path
        self._read, self._count = read, count
        self._ends = [0]  # before the first file, and of each that was counted
        self._sizes = [os.path.getsize(file) for file in files]
        self._at, self._position = 0, Position()

    def batches(self) -> Iterator[pa.RecordBatch]:
        end = 0
        for i, file in enumerate(self.files):
            self._at, self._position = i, Position()
            columns = columns_of_folders(self._path, file)
            for batch in self._read(file, self._position):
                end += batch.num_rows
                yield with_constants(batch, columns) if columns else batch
            if i == len(self._ends) - 1:
                self._ends.append(end)

    def read_share(self, _: int) -> float | None:
        """The part of the bytes of all files that was read."""
        share = self._position.share(0)
        read = sum(self._sizes[: self._at]) + (share or 0.0) * self._sizes[self._at]
        return None if share is None else min(1.0, read / max(sum(self._sizes), 1))

    def place(self, row: int) -> tuple[str, int] | None:
        """The file of a row, and the number of the row in it; None if there is no such row."""
        while row >= self._ends[-1]:
            if len(self._ends) > len(self.files):
                return None
            self._ends.append(self._ends[-1] + self._count(self.files[len(self._ends) - 1]))
        i = bisect_right(self._ends, row) - 1
        return self.files[i], row - self._ends[i]

    def file_of(self, row: int) -> str | None:
        """The name of the file of a row, as seen from the folder."""
        found = self.place(row)
        return None if found is None else _seen_from(self._path, found[0])

    def lines(self, read: Lines, rows: Iterable[int]) -> dict[int, int]:
        """The lines of these rows, each with its file."""
        wanted: dict[str, dict[int, int]] = {}
        for row in rows:
            if (found := self.place(row)) is not None:
                wanted.setdefault(found[0], {})[found[1]] = row
        lines: dict[int, int] = {}
        for file, rows_of_file in wanted.items():
            for number, line in lines_of(read, file, rows_of_file).items():
                lines[rows_of_file[number]] = FileLine.of(file, line)
        return lines


def lines_of(read: Lines, path: str, rows: Iterable[int]) -> dict[int, int]:
    """The lines of these rows: the file is read again up to the last of them, nothing is kept for the others."""
    wanted, lines = set(rows), dict[int, int]()
    for row, line in enumerate(read(path) if wanted else ()):
        if row in wanted:
            lines[row] = line
            if len(lines) == len(wanted):
                break
    return lines


def _seen_from(path: str, file: str) -> str:
    """The name of a file as seen from its folder, or from that of the glob."""
    return os.path.relpath(file, root_of(path) or ".").replace(os.sep, "/")


# --- columns in the names of folders
def columns_of_folders(path: str, file: str) -> dict[str, str | None]:
    """The columns in the names of folders: `day=2025-11-03`."""
    pairs = [part.partition("=") for part in _seen_from(path, file).split("/")[:-1]]
    return {unquote(n): None if v == _NULL else unquote(v) for n, equals, v in pairs if n and equals}


_NULL = "__HIVE_DEFAULT_PARTITION__"


def with_constants(batch: pa.RecordBatch, columns: dict[str, str | None]) -> pa.RecordBatch:
    """The batch with these columns, each of one value."""
    for name, value in columns.items():
        if name not in batch.schema.names:
            cells = pa.array([value], pa.string()).take(pa.array(np.zeros(batch.num_rows, np.int32)))
            batch = batch.append_column(name, cells)
    return batch
