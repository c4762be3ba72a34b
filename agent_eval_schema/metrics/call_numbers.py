"""Calls → numbers, for a batch at once: the two trajectories of a row have the same number where they have equal calls.

    tool    input, as text      number
    dial    {"user": 7}         0           the same tool and the same text: the same call, nothing is decoded
    dial    {"user": 8}         1           the same tool and another text: only if both stand in the trajectories of
    dial    {"user": 7.0}       2 → 0       a row (`contested`) they are decoded; what is equal as JSON is one number
    find    {"user": 7}         3           another tool: another call, whatever its input

Inputs are JSON texts that were found to be objects (or null: no input, which is `{}`), each with a NUL at its end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.metrics.trajectory import sorted_json

Numbers = np.ndarray[Any, Any]

GIVEN, ABSENT, UNREADABLE = 0, 1, 2
"""What there is of a trajectory."""


class Trajectories(Struct):
    """A column of trajectories: the numbers (`ids`) of all calls one after the other, how many each row has, what there
    is of it (GIVEN, ABSENT, UNREADABLE; the latter two have no calls)."""

    ids: Numbers
    lengths: Numbers
    states: Numbers

    @property
    def size(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> Numbers:
        """The row of each call."""
        return np.repeat(np.arange(self.size), self.lengths)

    @property
    def starts(self) -> Numbers:
        """Where the calls of each row begin."""
        return np.cumsum(self.lengths) - self.lengths

    def of(self, rows: Numbers) -> Trajectories:
        """Those of some rows, in their order."""
        mask = np.zeros(self.size, bool)
        mask[rows] = True
        return Trajectories(self.ids[np.repeat(mask, self.lengths)], self.lengths[rows], self.states[rows])


# ---------------------------------------------------------------------------------------------------------------------
# by text


class Numbered(Struct):
    """What each number stands for: `tools` are places in `names`, `inputs` places in `texts`."""

    tools: Numbers
    names: list[str]
    inputs: Numbers
    texts: pa.Array


def ended(texts: Sequence[Any]) -> pa.Array:
    """Bytes as one array, each with the NUL (which no JSON text holds) that ends it."""
    joined = b"\0".join([*texts, b""])
    ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == 0) + 1
    offsets = pa.py_buffer(np.concatenate([np.zeros(1, np.int64), ends]))
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, offsets, pa.py_buffer(joined)], null_count=0)


def numbered(tools: pa.DictionaryArray, inputs: pa.DictionaryArray) -> tuple[Numbers, Numbered]:
    """A number for each call, the same for the same tool and the same text."""
    several = max(len(tools.dictionary), 1)
    places, tool_places = (np.asarray(encoded.indices).astype(np.int64) for encoded in (inputs, tools))
    pairs = pa.array(places * several + tool_places).dictionary_encode()
    distinct = np.asarray(pairs.dictionary)
    names = tools.dictionary.to_pylist()
    return np.asarray(pairs.indices), Numbered(distinct % several, names, distinct // several, inputs.dictionary)


# ---------------------------------------------------------------------------------------------------------------------
# by value


def settled(predicted: Trajectories, reference: Trajectories, calls: Numbered) -> Numbers:
    """For each number the one to use in its place (-1 for -1), so that equal calls whose texts differ have the same:
    those for which it makes a difference to the scores of these rows."""
    doubtful = contested(predicted, reference, calls.tools)
    instead = np.append(np.arange(len(calls.tools)), -1)
    texts = calls.texts.take(pa.array(calls.inputs[doubtful])).to_pylist()
    keys = zip(calls.tools[doubtful].tolist(), _value_keys(texts), strict=True)
    first: dict[tuple[int, bytes], int] = {}
    instead[doubtful] = list(map(first.setdefault, keys, doubtful.tolist()))
    return instead


def contested(predicted: Trajectories, reference: Trajectories, tools: Numbers) -> Numbers:
    """The numbers of which the texts do not say enough: the calls of one tool in one row, if both trajectories call it,
    with several texts, and not with the same ones in the same order.

    The latter is only seen where two trajectories begin, or end, with the same calls: other calls are `apart`.
    """
    ids = np.concatenate([predicted.ids, reference.ids])
    group = np.concatenate([predicted.rows, reference.rows]) * max(len(tools), 1) + tools[ids]
    apart = np.concatenate(_between(predicted, reference))
    groups = np.unique(group[apart])
    if not len(groups):
        return np.empty(0, np.int64)
    place = np.minimum(np.searchsorted(groups, group), len(groups) - 1)
    held = groups[place] == group
    ids, place, is_predicted = ids[held], place[held], np.flatnonzero(held) < len(predicted.ids)

    def having(some: Numbers) -> Numbers:
        found = np.zeros(len(groups), bool)
        found[place[some]] = True
        return found

    one = np.empty(len(groups), np.int64)
    one[place] = ids  # any of its calls
    doubtful = having(is_predicted) & having(~is_predicted) & having(one[place] != ids)
    return np.unique(ids[doubtful[place]])


def _between(one: Trajectories, other: Trajectories) -> tuple[Numbers, Numbers]:
    """Which calls of either are neither in what the two of a row have in common at the start, nor at the end."""
    shorter = np.minimum(one.lengths, other.lengths)
    head = _in_common(one.ids, other.ids, one.starts, other.starts, shorter, 1)
    ends = one.starts + one.lengths - 1, other.starts + other.lengths - 1
    tail = _in_common(one.ids, other.ids, *ends, shorter - head, -1)
    return _middle(one, head, tail), _middle(other, head, tail)


def _in_common(one: Numbers, other: Numbers, at: Numbers, there: Numbers, most: Numbers, step: int) -> Numbers:
    """How many steps two trajectories go together, from a place in each: all rows take a step at once."""
    taken = np.zeros(len(most), np.int64)
    left = np.flatnonzero(most > 0)
    while len(left):
        gone = taken[left] * step
        left = left[one[at[left] + gone] == other[there[left] + gone]]
        taken[left] += 1
        left = left[taken[left] < most[left]]
    return taken


def _middle(all_: Trajectories, head: Numbers, tail: Numbers) -> Numbers:
    place = np.arange(len(all_.ids)) - np.repeat(all_.starts, all_.lengths)
    found: Numbers = (place >= np.repeat(head, all_.lengths)) & (place < np.repeat(all_.lengths - tail, all_.lengths))
    return found


def _value_keys(texts: list[bytes]) -> list[bytes]:
    """For each input a text that two of them share if they are equal as JSON values."""
    try:  # each is one JSON value, so they can be read as one list
        values = _decode_inputs(b"[" + b"".join(texts)[:-1].replace(b"\0", b",") + b"]")
        return [sorted_json(value or {}) for value in values]
    except BROKEN:
        return [_value_key(text) for text in texts]


def _value_key(text: bytes) -> bytes:
    try:
        return sorted_json(decode_input(text[:-1]) or {})
    except BROKEN:  # nested so deep that it can be read, but not be written: equal to itself
        return text


def _finite(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number out of range")
    return int(value) if value.is_integer() else value


decode_input = msgspec.json.Decoder(dict[str, Any] | None, float_hook=_finite).decode
"""The input of a call, whole numbers as such."""

_decode_inputs = msgspec.json.Decoder(list[dict[str, Any] | None], float_hook=_finite).decode

BROKEN = (msgspec.MsgspecError, RecursionError, ValueError)
"""What decoding raises for a text that cannot be read."""
