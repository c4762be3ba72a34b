"""Calls → numbers, for a batch at once: the two trajectories of a row have the same number where they have equal calls.

    call, as text                                       number
    {"tool_name": "dial", "tool_input": {"user": 7}}    0         the same text: the same call, nothing is decoded
    {"tool_name": "dial", "tool_input": {"user": 8}}    1         the same tool and another text: only if both are in
    {"tool_name": "dial", "tool_input": {"user": 7.0}}  2 → 0     the trajectories of a row (`contested`) the inputs are
                                                                  decoded; what is equal as JSON is one number
    {"tool_name": "find", "tool_input": {"user": 7}}    3         another tool: another call, whatever its input

The texts were found to be calls whose inputs are objects (or null: no input, which is `{}`). They have a comma, and
mostly a space, at their ends, so that many of them are decoded as one list.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.text.jsontext import encode_sorted

Numbers = np.ndarray[Any, Any]

GIVEN, ABSENT, UNREADABLE_CALLS = 0, 1, 2
"""What there is of a trajectory."""


class Trajectories(Struct):
    """A column of trajectories: where the calls of each row begin among all `ids`, how many it has, and what there is
    of it (GIVEN, ABSENT, UNREADABLE; the latter two have no calls)."""

    ids: Numbers
    starts: Numbers
    lengths: Numbers
    states: Numbers

    @property
    def size(self) -> int:
        return len(self.lengths)

    def of(self, row: int) -> Numbers:
        start = int(self.starts[row])
        return self.ids[start : start + int(self.lengths[row])]

    def steps(self, rows: Numbers, fill: int, *, backwards: bool = False) -> Numbers:
        """The first calls of these rows, then the second ones …; `fill` where a row has no more. Or from the end."""
        lengths, starts = self.lengths[rows], self.starts[rows]
        step = np.arange(lengths.max(initial=0))[:, None]
        places = starts + (lengths - 1 - step if backwards else step)
        return np.where(step < lengths, self.ids.take(places, mode="clip"), fill)


def alike(rows: Numbers, one: Trajectories, other: Trajectories) -> Iterator[Numbers]:
    """The rows in groups of similar length, so that in a group every call of a row can be compared with every call of
    the other trajectory at once; those of more than LONGEST calls are excluded."""
    longest = np.maximum(one.lengths[rows], other.lengths[rows])
    kinds = np.where(longest > LONGEST, 0, np.frexp(np.maximum(longest, 8) - 1.0)[1])
    for kind in np.unique(kinds[kinds > 0]).tolist():
        some, size = rows[kinds == kind], PAIRS >> 2 * kind
        yield from (some[start : start + size] for start in range(0, len(some), size))


def longer(rows: Numbers, one: Trajectories, other: Trajectories) -> Numbers:
    """The excluded rows."""
    return rows[np.maximum(one.lengths[rows], other.lengths[rows]) > LONGEST]


LONGEST = 512
PAIRS = 1 << 20
"""So many pairs of calls are compared at once: few enough for the processor's cache, and at least LONGEST²."""


def matches(predicted: Numbers, reference: Numbers) -> Numbers:
    """The number of common calls of a row's two: the n-th of the reference is matched by the n-th of the prediction."""
    again = np.tri(len(reference), k=-1, dtype=bool).T[:, :, None] & (reference[:, None] == reference)
    found: Numbers = (_times(again) < _times(predicted[:, None] == reference)).sum(axis=0)
    return found


def _times(found: Numbers) -> Numbers:
    """How often, along the first axis."""
    times: Numbers = np.add.reduce(found, axis=0, dtype=np.int16)
    return times


# --- by text
def listed(texts: pa.Array) -> bytes:
    """An array of JSON texts (that is not empty), each with a comma at its end, as one JSON list."""
    at = offsets(texts)
    return b"[%b]" % texts.buffers()[2][int(at[0]) : int(at[-1])].to_pybytes().rstrip(b", ")


def offsets(texts: pa.Array) -> Numbers:
    """Where each text of an array begins in its data, and the last one ends."""
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


# --- by value
def renumbered(
    predicted: Trajectories, reference: Trajectories, rows: Numbers, texts: pa.Array, tools: Numbers
) -> Numbers:
    """For each number the one to use in its place, so that equal calls whose texts differ have the same: those for
    which it makes a difference to the scores of these rows. `texts` and `tools`: the text and the tool of each
    number."""
    instead = np.arange(len(tools), dtype=np.int32)
    doubtful = contested(predicted, reference, rows, tools)
    if len(doubtful):
        keys = zip(tools[doubtful].tolist(), _value_keys(texts.take(pa.array(doubtful))), strict=True)
        first: dict[tuple[int, bytes], int] = {}
        instead[doubtful] = list(map(first.setdefault, keys, doubtful.tolist()))
    return instead


def contested(predicted: Trajectories, reference: Trajectories, rows: Numbers, tools: Numbers) -> Numbers:
    """The numbers of which the texts do not say enough: the calls of one tool in one row, if both trajectories call it,
    with several texts, and not with the same ones in the same order.

    The latter is only seen where two trajectories begin, or end, with the same calls: other calls are `apart`. Where
    all texts are the same in another order that is another one of tools, too, no input makes a difference. Of the rows
    that are `longer` all calls are taken.
    """
    found, tools = np.zeros(len(tools) + 2, bool), np.append(tools, [-2, -1])  # those of what fills up the rows
    for some in alike(rows, predicted, reference):
        p, r = predicted.steps(some, -1), reference.steps(some, -2)
        apart_p, apart_r = _apart(p, r, predicted, reference, some)
        pairs = (tools[p][:, None] == tools[r]) & (p[:, None] != r) & (apart_p[:, None] | apart_r)
        pairs &= ~_reordered(p, r, tools)
        found[p[pairs.any(axis=1)]] = found[r[pairs.any(axis=0)]] = True
    for row in longer(rows, predicted, reference).tolist():
        found[predicted.of(row)] = found[reference.of(row)] = True
    return np.flatnonzero(found[:-2])


def _apart(
    p: Numbers, r: Numbers, predicted: Trajectories, reference: Trajectories, rows: Numbers
) -> tuple[Numbers, Numbers]:
    """The calls of either trajectory that are neither in the common start of a row's two nor in the common end."""
    lengths_p, lengths_r = predicted.lengths[rows], reference.lengths[rows]
    head = _in_common(p, r)
    tail = _in_common(predicted.steps(rows, -1, backwards=True), reference.steps(rows, -2, backwards=True))
    tail = np.minimum(tail, np.minimum(lengths_p, lengths_r) - head)
    step_p, step_r = np.arange(len(p))[:, None], np.arange(len(r))[:, None]
    return (step_p >= head) & (step_p < lengths_p - tail), (step_r >= head) & (step_r < lengths_r - tail)


def _reordered(p: Numbers, r: Numbers, tools: Numbers) -> Numbers:
    """The rows whose trajectories have the same calls, but at some step one of another tool."""
    common, size = min(len(p), len(r)), (p >= 0).sum(axis=0)
    found = ((tools[p[:common]] != tools[r[:common]]) & (p[:common] >= 0)).any(axis=0)
    return np.asarray(found & (size == (r >= 0).sum(axis=0)) & (size == matches(p, r)))


def _in_common(one: Numbers, other: Numbers) -> Numbers:
    """How many steps two trajectories go together."""
    common = min(len(one), len(other))
    together: Numbers = np.logical_and.accumulate(one[:common] == other[:common]).sum(axis=0)
    return together


def _value_keys(texts: pa.Array) -> list[bytes]:
    """For each call a text that two of them share if their inputs are equal as JSON values."""
    try:
        return [encode_sorted(call.tool_input or {}) for call in decode_inputs(listed(texts))]
    except BROKEN:
        return [_value_key(text) for text in texts.to_pylist()]


def _value_key(text: bytes) -> bytes:
    try:
        return encode_sorted(decode_inputs(b"[%b]" % text.rstrip(b", "))[0].tool_input or {})
    except BROKEN:  # nested so deep that it can be read, but not be written: equal to itself
        return text


class _InputOnly(Struct, gc=False):
    """The parts of a call that are needed."""

    tool_input: dict[str, Any] | None = None


def _finite(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number out of range")
    return int(value) if value.is_integer() else value


decode_input = msgspec.json.Decoder(dict[str, Any] | None, float_hook=_finite).decode
"""The input of a call, whole numbers as such."""

decode_inputs = msgspec.json.Decoder(list[_InputOnly], float_hook=_finite).decode
"""The inputs of calls, likewise."""

BROKEN = ValueError
"""What decoding raises for a text that cannot be read."""


def or_none(read: Callable[[Any], Any], text: Any) -> Any:
    """The value that is read; None where it cannot be."""
    try:
        return read(text)
    except BROKEN:
        return None
