"""A file as a stream of bytes, decompressed by its ending."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.visible import visible

CHUNK = 1 << 20
"""Bytes that are read from a text file at once."""

TEXT_BATCH_BYTES = 8 << 20

COMPRESSIONS = (".gz", ".bz2", ".zst")


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """The file's bytes, decompressed by its ending."""
    compression = pa.Codec.detect(visible(path)).name if path.lower().endswith(COMPRESSIONS) else None
    try:
        with open(path, "rb") as file, pa.input_stream(file, compression=compression) as stream:
            yield stream
    except (OSError, pa.ArrowException) as error:
        raise EvalSetError(f"{path}: cannot be read: {error}") from error
