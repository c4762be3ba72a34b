"""What a part of a conversion adds, which is kept: an interrupted conversion continues behind the parts that were done.

The source is read and checked again, which takes a fifth of the time: what a conversion takes is comparing each row
with what is read back of it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import xxhash
from msgspec import Struct

from agent_eval_schema.issues import Issue


class Outcome(Struct, frozen=True, array_like=True):
    """What a part adds beside its rows: its losses, the rows by the fields that they have before and after, and the
    names under which columns are passed on."""

    losses: list[Issue]
    masks: list[tuple[int, int, int]]
    names: dict[str, str]

    def counted_masks(self) -> Counter[tuple[int, int]]:
        return Counter({(before, after): rows for before, after, rows in self.masks})


packed_outcome = msgspec.msgpack.Encoder().encode
outcome_in = msgspec.msgpack.Decoder(Outcome).decode


def hash_of(rows: list[dict[str, Any]], ignored: str) -> str:
    """A hash of the rows of a part, without one of their keys, the same in every process."""
    cells = [{name: value for name, value in row.items() if name != ignored} for row in rows]
    return xxhash.xxh3_64_hexdigest(_encode(cells))


_encode = msgspec.json.Encoder(enc_hook=str).encode
