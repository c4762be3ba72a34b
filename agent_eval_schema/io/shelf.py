"""Batches that are kept for long: the first in memory, the others in temporary files that are read where needed."""

from __future__ import annotations

import os
from contextlib import suppress

import pyarrow as pa

from agent_eval_schema.cells.arrow import mapped, write_one
from agent_eval_schema.runtime.temporary_folder import TemporaryFolder

IN_MEMORY = 64 << 20
"""Bytes of the batches that stay in memory."""


class Shelf:
    """Keeps batches for as long as something refers to them."""

    def __init__(self) -> None:
        self._room = IN_MEMORY
        self._folder: TemporaryFolder | None = None

    def put(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows, to be kept; in memory too where the disk has no room."""
        self._room -= batch.nbytes
        if self._room >= 0:
            return batch
        self._folder = self._folder or TemporaryFolder()
        path = self._folder.file(f"{-self._room}.arrow")
        try:
            write_one(path, batch)
            return mapped(path)
        except OSError:
            return batch
        finally:
            with suppress(OSError):  # a system that keeps the name of a mapped file cannot remove it
                os.unlink(path)
