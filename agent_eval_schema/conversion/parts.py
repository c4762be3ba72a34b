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
import xxhash
from msgspec import Struct

from agent_eval_schema.io.work_folder import WorkFolder
from agent_eval_schema.issues import EvalSetError, Issue


class Outcome(Struct, frozen=True, array_like=True):
    """What a part adds: its losses, the rows by the fields that they have before and after, their kinds, and the names
    under which columns are passed on; and a hash of the rows of which it was made."""

    losses: list[Issue]
    masks: list[tuple[int, int, int]]
    kinds: dict[str, int]
    names: dict[str, str]
    source: str

    def counted_masks(self) -> Counter[tuple[int, int]]:
        return Counter({(before, after): rows for before, after, rows in self.masks})


class Parts(WorkFolder):
    """The work folder of a conversion."""

    FOLDERS = ("parts",)

    def forget(self) -> None:
        """Remove what a conversion has left here, which this run does not continue."""
        if "target" in ((self.read_json("work.json") or {}).get("job") or {}):
            self.remove()

    def read(self, number: int, source: str) -> tuple[pa.RecordBatch | None, Outcome] | None:
        """The rows and the outcome of a part; None if it was not done. Raises EvalSetError if it was made of others."""
        outcome = self.folder / "parts" / f"{number:06d}.msgpack"
        if not outcome.exists():
            return None
        found = msgspec.msgpack.decode(outcome.read_bytes(), type=Outcome)
        if found.source != source:  # of a URL or a table, neither time nor size is known
            why = "the data has changed since the conversion was begun: run it again without --resume"
            raise EvalSetError(f"{self.folder}: cannot resume: {why}")
        rows = outcome.with_suffix(".arrow")
        batch = None
        if rows.exists():
            with pa.memory_map(str(rows)) as file:
                batch = pa.ipc.open_file(file).get_batch(0)
        return batch, found

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


def hash_of(rows: list[dict[str, Any]], ignored: str) -> str:
    """A hash of the rows of a part, without one of their keys, the same in every process."""
    cells = [{name: value for name, value in row.items() if name != ignored} for row in rows]
    return xxhash.xxh3_64_hexdigest(_encode(cells))


_encode = msgspec.json.Encoder(enc_hook=str).encode


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
