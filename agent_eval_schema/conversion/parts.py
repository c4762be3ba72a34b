"""The parts of a conversion that were done, in a work folder: an interrupted conversion continues behind them.

    .OUT.work/parts/000003.arrow      the rows of the target of the fourth batch (absent if it has none)
    .OUT.work/parts/000003.msgpack    its losses and what it counted: written last, so a part that has it is done

The source is read and checked again, which takes a fifth of the time: what a conversion takes is comparing each row
with what is read back of it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.io.work_folder import WorkFolder
from agent_eval_schema.issues import Issue


class Outcome(Struct, frozen=True, array_like=True):
    """What a part adds: its losses, the rows by the fields that they have before and after, their kinds, and the names
    under which columns are passed on."""

    losses: list[Issue]
    masks: list[tuple[int, int, int]]
    kinds: dict[str, int]
    names: dict[str, str]

    def counted_masks(self) -> Counter[tuple[int, int]]:
        return Counter({(before, after): rows for before, after, rows in self.masks})


class Parts(WorkFolder):
    """The work folder of a conversion."""

    FOLDERS = ("parts",)

    def read(self, number: int) -> tuple[pa.RecordBatch | None, Outcome] | None:
        """The rows and the outcome of a part; None if it was not done."""
        outcome = self.folder / "parts" / f"{number:06d}.msgpack"
        if not outcome.exists():
            return None
        rows = outcome.with_suffix(".arrow")
        batch = None
        if rows.exists():
            with pa.memory_map(str(rows)) as file:
                batch = pa.ipc.open_file(file).get_batch(0)
        return batch, msgspec.msgpack.decode(outcome.read_bytes(), type=Outcome)

    def commit(self, number: int, batch: pa.RecordBatch | None, outcome: Outcome) -> None:
        """Add a part. Raises EvalSetError if the folder cannot be written."""

        def rows(path: str) -> None:
            assert batch is not None
            with pa.ipc.new_file(path, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                writer.write_batch(batch)

        if batch is not None:
            self._put(f"{number:06d}.arrow", rows)
        self._put(f"{number:06d}.msgpack", lambda path: _write(path, msgspec.msgpack.encode(outcome)))

    def _put(self, name: str, write: Callable[[str], Any]) -> None:
        with self.writing():
            new = self.new()
            write(str(new))
            os.replace(new, self.folder / "parts" / name)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
