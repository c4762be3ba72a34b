"""Which keys were seen before, at a few bytes a key: sorted runs of 64-bit hashes that are merged as they grow.

A dict of a hundred million ids would take ten gigabytes; this takes 16 bytes an id, and a batch is looked up with a few
binary searches.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

Array = np.ndarray[Any, Any]


def hash_texts(texts: Sequence[str | bytes | None]) -> tuple[Array, Array | None]:
    """A 64-bit hash of each text, the same on every machine; and, if some texts are absent, which."""
    absent = np.array([t is None for t in texts], bool) if None in texts else None
    encoded: list[bytes]
    try:
        encoded = [t if t.__class__ is bytes else t.encode() if t else b"" for t in texts]  # type: ignore[union-attr]
    except UnicodeEncodeError:  # a lone surrogate
        encoded = [t.encode("utf-8", "surrogatepass") if isinstance(t, str) else t or b"" for t in texts]
    return np.fromiter(map(xxhash.xxh3_64_intdigest, encoded), np.uint64, len(texts)), absent


def hash_array(texts: pa.Array) -> pa.Array:
    """The same of an array of texts, without a Python string for each: uint64, null where the text is."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), pa.uint64())
    absent = np.asarray(texts.is_null()) if texts.null_count else None
    values = texts.cast(pa.large_binary()).fill_null(b"").to_pylist()
    return pa.array(np.fromiter(map(xxhash.xxh3_64_intdigest, values), np.uint64, len(values)), mask=absent)


def seeded_hashes(texts: Sequence[str | bytes | None], seed: int) -> Array:
    """A hash (int64) of each text under a seed, the same in every process and on every machine: who is drawn for a
    sample does not depend on who draws. Absent texts count as empty."""
    import pandas as pd

    key = hashlib.blake2b(str(seed).encode(), digest_size=8).hexdigest()
    filled = np.array(["" if t is None else t for t in texts], dtype=object)
    return np.asarray(pd.util.hash_array(filled, hash_key=key, categorize=False)).view(np.int64)


class _Run(NamedTuple):
    keys: Array  # uint64, sorted, unique
    rows: Array  # uint32 (4 billion rows)
    payloads: Array  # uint32


class FirstSeen:
    """For each key the row where it was first seen, and 32 bits that were noted there."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def add(self, keys: Array, rows: Array, payloads: Array) -> tuple[Array, Array]:
        """Look up keys in the order of their rows, then remember them.

        Returns for each key the earlier row that had it (-1 if none) and that row's payload.
        """
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        found, found_payloads = np.full(len(unique), -1, np.int64), np.zeros(len(unique), np.uint32)
        for run in self._runs:
            at = np.minimum(np.searchsorted(run.keys, unique), len(run.keys) - 1)
            hit = run.keys[at] == unique
            found[hit], found_payloads[hit] = run.rows[at][hit], run.payloads[at][hit]
        new = found < 0
        home = np.where(new, rows[first], found)
        payload = np.where(new, payloads[first], found_payloads)
        self._push(_Run(unique[new], rows[first][new].astype(np.uint32), payloads[first][new].astype(np.uint32)))
        earlier, payload = home[inverse], payload[inverse]
        return np.where(earlier == rows, -1, earlier), payload

    def _push(self, run: _Run) -> None:
        """Add a run; runs of like size are merged, so that there are few of them (a binary counter)."""
        if not len(run.keys):
            return
        while self._runs and len(self._runs[-1].keys) <= 2 * len(run.keys):
            one = self._runs.pop()
            keys = np.concatenate([one.keys, run.keys])
            order = np.argsort(keys, kind="stable")
            keys = keys[order]  # one column after the other: no more than one is in memory twice
            rows = np.concatenate([one.rows, run.rows])[order]
            run = _Run(keys, rows, np.concatenate([one.payloads, run.payloads])[order])
        self._runs.append(run)
