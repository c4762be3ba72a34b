"""Calls → numbers, for a batch at once: the two trajectories of a row have the same number where they have equal calls.

    call, as text                                       number
    {"tool_name": "dial", "tool_input": {"user": 7}}    0         the same text: the same call, nothing is decoded
    {"tool_name": "dial", "tool_input": {"user": 8}}    1         the same tool and another text: only if both stand in
    {"tool_name": "dial", "tool_input": {"user": 7.0}}  2 → 0     the trajectories of a row (`contested`) the inputs are
                                                                  decoded; what is equal as JSON is one number
    {"tool_name": "find", "tool_input": {"user": 7}}    3         another tool: another call, whatever its input

The texts were found to be calls whose inputs are objects (or null: no input, which is `{}`). They have a comma at their
ends, so that many of them are decoded as one list.
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
    """What each number stands for: the number of its tool, and its text."""

    tools: Numbers
    texts: pa.Array


def ended(texts: Sequence[Any]) -> pa.Array:
    """JSON texts as one array of bytes, each with a comma at its end."""
    joined = bytearray(b"\0").join([*texts, b""])
    data = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(data == 0) + 1  # no JSON text holds a NUL
    data[ends - 1] = ord(",")
    starts = pa.py_buffer(np.concatenate([np.zeros(1, np.int64), ends]))
    return pa.Array.from_buffers(pa.large_binary(), len(ends), [None, starts, pa.py_buffer(joined)], null_count=0)


def listed(texts: pa.Array) -> bytes:
    """Such an array (that is not empty) as one JSON list."""
    at = offsets(texts)
    return b"".join([b"[", texts.buffers()[2][int(at[0]) : int(at[-1]) - 1], b"]"])


def offsets(texts: pa.Array) -> Numbers:
    """Where each text of an array begins in its data, and the last one ends."""
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


# ---------------------------------------------------------------------------------------------------------------------
# by value


def settled(predicted: Trajectories, reference: Trajectories, calls: Numbered) -> Numbers:
    """For each number the one to use in its place (-1 for -1), so that equal calls whose texts differ have the same:
    those for which it makes a difference to the scores of these rows."""
    doubtful = contested(predicted, reference, calls.tools)
    instead = np.append(np.arange(len(calls.tools)), -1)
    if not len(doubtful):
        return instead
    keys = zip(calls.tools[doubtful].tolist(), _value_keys(calls.texts.take(pa.array(doubtful))), strict=True)
    first: dict[tuple[int, bytes], int] = {}
    instead[doubtful] = list(map(first.setdefault, keys, doubtful.tolist()))
    return instead


def contested(predicted: Trajectories, reference: Trajectories, tools: Numbers) -> Numbers:
    """The numbers of which the texts do not say enough: the calls of one tool in one row, if both trajectories call it,
    with several texts, and not with the same ones in the same order.

    The latter is only seen where two trajectories begin, or end, with the same calls: other calls are `apart`.
    """
    ids = np.concatenate([predicted.ids, reference.ids])
    rows = np.concatenate([predicted.rows, reference.rows])
    is_predicted = np.arange(len(ids)) < len(predicted.ids)
    groups, place = distinct(rows * max(len(tools), 1) + tools[ids])
    one = np.empty(len(groups), np.int64)
    one[place] = ids  # any of its calls

    def having(some: Numbers) -> Numbers:
        found = np.zeros(len(groups), bool)
        found[place[some]] = True
        return found

    apart = np.concatenate(_between(predicted, reference))
    doubtful = having(apart) & having(is_predicted) & having(~is_predicted) & having(one[place] != ids)
    found = np.zeros(len(tools), bool)
    found[ids[doubtful[place]]] = True
    return np.flatnonzero(found)


def distinct(values: Numbers) -> tuple[Numbers, Numbers]:
    """The distinct values, and the place of each value among them; nothing is sorted, unlike in np.unique."""
    encoded = pa.array(values).dictionary_encode()
    return np.asarray(encoded.dictionary), np.asarray(encoded.indices)


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


def _value_keys(texts: pa.Array) -> list[bytes]:
    """For each call a text that two of them share if their inputs are equal as JSON values."""
    try:
        return [sorted_json(call.tool_input or {}) for call in decode_inputs(listed(texts))]
    except BROKEN:
        return [_value_key(text) for text in texts.to_pylist()]


def _value_key(text: bytes) -> bytes:
    try:
        return sorted_json(decode_inputs(b"[%b]" % text[:-1])[0].tool_input or {})
    except BROKEN:  # nested so deep that it can be read, but not be written: equal to itself
        return text


class _Call(Struct, gc=False):
    """What is wanted of a call that was found to be one."""

    tool_input: dict[str, Any] | None = None


def _finite(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number out of range")
    return int(value) if value.is_integer() else value


decode_input = msgspec.json.Decoder(dict[str, Any] | None, float_hook=_finite).decode
"""The input of a call, whole numbers as such."""

decode_inputs = msgspec.json.Decoder(list[_Call], float_hook=_finite).decode
"""The inputs of calls, likewise."""

BROKEN = (msgspec.MsgspecError, RecursionError, ValueError)
"""What decoding raises for a text that cannot be read."""
