"""Which row of the old dataset is which row of the new one.

A row is known by one of several keys, the surest first; each key is tried on the rows that the keys before it left:

    its request_id, with the rest of the row, else with all its inputs, else alone
    the whole rest of the row, else all inputs, else the request     IDs that are missing, or were replaced

Where several rows have the same key, the n-th is taken for the n-th. Every row is in one pair or in none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.diff.fingerprints import mixed


class Pairs(NamedTuple):
    """The rows that are on both sides (`old[i]` is `new[i]`, in the order of the new), and those that are on one."""

    old: Array
    new: Array
    removed: Array
    added: Array


def row_keys(ids: Array, inputs: Array, requests: Array, contents: Array) -> list[Array]:
    """The keys of each row, the surest first; 0 where a row lacks the parts of the key."""
    with_id, with_inputs = ids != 0, inputs != 0
    return [
        np.where(with_id, mixed(mixed(ids) + contents), 0),
        np.where(with_id & with_inputs, mixed(mixed(ids) + inputs), 0),
        ids,
        contents,
        inputs,
        requests,
    ]


def match(old: Sequence[Array], new: Sequence[Array]) -> Pairs:
    """Pair the rows of two sides by their keys."""
    old_left, new_left = np.arange(len(old[0])), np.arange(len(new[0]))
    pairs = []
    for old_keys, new_keys in zip(old, new, strict=True):
        old_at, new_at = _nth_with_nth(old_keys[old_left], new_keys[new_left])
        pairs.append((old_left[old_at], new_left[new_at]))
        old_left, new_left = np.delete(old_left, old_at), np.delete(new_left, new_at)
    old_rows, new_rows = (np.concatenate(side) for side in zip(*pairs, strict=True))
    order = np.argsort(new_rows)
    return Pairs(old_rows[order], new_rows[order], old_left, new_left)


def _nth_with_nth(old: Array, new: Array) -> tuple[Array, Array]:
    """The places of equal keys, the n-th on one side with the n-th on the other."""
    old_at, new_at = np.flatnonzero(old), np.flatnonzero(new)
    if not len(old_at) or not len(new_at):
        return old_at[:0], new_at[:0]
    _, a, b = np.intersect1d(_numbered(old[old_at]), _numbered(new[new_at]), assume_unique=True, return_indices=True)
    return old_at[a], new_at[b]


def _numbered(keys: Array) -> Array:
    """Each key mixed with the number of its earlier occurrences: all are distinct."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    places = np.arange(len(keys))
    times = np.empty(len(keys), np.uint64)
    times[order] = (places - np.maximum.accumulate(np.where(first, places, 0))).astype(np.uint64)
    return mixed(mixed(keys) + times)


def moved_rows(pairs: Pairs) -> int:
    """How few of the paired rows must be moved to get from the old order to the new one."""
    if bool(np.all(pairs.old[1:] > pairs.old[:-1])):
        return 0
    # the longest run that rises needs no move: tails[n] is the least end of such a run of n + 1 rows
    tails: list[int] = []
    for row in pairs.old.tolist():
        at = bisect_left(tails, row)
        tails[at : at + 1] = [row]
    return len(pairs.old) - len(tails)
