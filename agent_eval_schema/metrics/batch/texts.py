"""Cells of JSON text → the text of each call and the number of its tool; its input is not decoded yet.

    [{"tool_name": "a", "tool_input": {"x": 1}}, {"tool_name": "b"}]      a cell
     ───────────────── a call ────────────────── ────── a call ─────      ──▶  ids 0 1, their texts and tools

A cell is cut before each call, and the texts that come out are decoded as one list, of those that are equal one: if
they are calls the cell was cut rightly. What cannot be cut so is taken apart by a decoder; and of cells of which no
more is wanted the calls are only counted. A cell that cannot be read that way is UNREADABLE until decoding/ has had a
second look, and reports the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Raw, Struct, defstruct

from agent_eval_schema.metrics.batch.cells import CallBatch, Tools
from agent_eval_schema.metrics.batch.numbers import (
    GIVEN,
    UNREADABLE_CALLS,
    Numbers,
    decode_inputs,
    listed,
    offsets,
    or_none,
)


class _Object(Struct, gc=False):
    """An object of any content: the decoder skips it."""


class _Call(Struct, forbid_unknown_fields=True, gc=False):
    """A call of whose input nothing is wanted. (A pattern for its name would cost more than all the rest.)"""

    tool_name: str
    tool_input: _Object | None = None


_calls = msgspec.json.Decoder(list[_Call]).decode
_items = msgspec.json.Decoder(list[Raw]).decode


class _Names(set[str]):
    """Names of tools that were met: calls of these are decoded without making, and looking at, their names again."""

    @property
    def calls(self) -> Callable[[bytes], list[_Call]]:
        """Decodes calls of none but these tools."""
        return _calls_of(frozenset(self)) if 0 < len(self) <= MOST_NAMES else _of_no_tool

    def read(self, text: bytes) -> list[_Call]:
        """Calls of any tools, which are then known. Raises ValueError, too, for a name that is blank."""
        calls = _calls(text)
        for name in {call.tool_name for call in calls} - self:
            if not name.strip():
                raise ValueError("a call without a name")
            if len(name) <= LONGEST_NAME:
                self.add(name)
        return calls


MOST_NAMES, LONGEST_NAME = 256, 64
"""More, and longer ones, are not kept in a decoder."""


@lru_cache(maxsize=8)
def _calls_of(names: frozenset[str]) -> Callable[[bytes], list[_Call]]:
    known: Any = Literal
    call: Any = defstruct("_KnownCall", [("tool_name", known[tuple(names)])], bases=(_Call,), gc=False)
    return msgspec.json.Decoder(list[call]).decode


def _of_no_tool(_: bytes) -> list[_Call]:
    raise ValueError("no tool is known")


FEW, MANY = 256, 2048
"""The number of cells that are decoded, or cut, at a time: their results are used before they leave the processor's
cache."""


def of_texts(columns: list[pa.Array], wanted: Numbers, tools: Tools) -> CallBatch:
    """The trajectories that columns of JSON texts hold, one column after the other; the calls are only here of those
    that are wanted."""
    lengths, pieces, order = np.zeros(len(wanted), np.int64), [pa.array([], pa.large_binary())], [NONE]
    start, to_count = 0, list[pa.Array]()
    for column in columns:
        cells, chosen = column.cast(pa.large_binary()), wanted[start : start + len(column)]
        here = lengths[start : start + len(column)]
        to_count.append(cells.filter(pa.array(~chosen)))
        for rows, (texts, found) in _apart(cells.filter(pa.array(chosen)), np.flatnonzero(chosen)):
            here[rows] = found
            pieces.append(texts)
            order.append(rows + start)
        start += len(column)
    chunks = pa.chunked_array(pieces).dictionary_encode().chunks  # there are no calls of no text
    encoded = pa.concat_arrays(chunks or [pieces[0].dictionary_encode()])
    ids, names = np.asarray(encoded.indices), _Names()
    called = _tools_of(encoded.dictionary, tools, names)
    lengths[~wanted] = np.concatenate([NONE, *(_counted(cells, names) for cells in to_count)])
    states = np.where(lengths < 0, UNREADABLE_CALLS, GIVEN)
    lengths, starts, read = np.maximum(lengths, 0), np.zeros_like(lengths), np.concatenate(order)
    starts[read] = np.cumsum(lengths[read]) - lengths[read]
    states[np.repeat(read, lengths[read])[called[ids] < 0]] = UNREADABLE_CALLS
    return CallBatch(ids, encoded.dictionary, called, starts, lengths, states)


def _slices(array: pa.Array, size: int) -> Iterator[pa.Array]:
    for start in range(0, len(array), size):
        yield array.slice(start, size)


# ---------------------------------------------------------------------------------------------------------------------
# cells whose calls are wanted
_Texts = tuple[pa.Array, Numbers]
"""The texts of the calls of some cells as `listed` wants them; and how many calls each cell has, -1 where it cannot be
read."""

NONE = np.empty(0, np.int64)


def _texts(data: Numbers, starts: Numbers) -> pa.Array:
    """The texts that start there, each of which ends where the next one starts."""
    at = pa.py_buffer(np.append(starts, len(data)))
    return pa.Array.from_buffers(pa.large_binary(), len(starts), [None, at, pa.py_buffer(data)], null_count=0)


def _apart(cells: pa.Array, rows: Numbers) -> Iterator[tuple[Numbers, _Texts]]:
    """The calls of cells, which are those of these rows; and of which rows they are."""
    for start in range(0, len(rows), MANY):
        few, at = cells.slice(start, MANY), rows[start : start + MANY]
        texts, lengths, odd = _cut(few)
        if odd.any():
            yield at[odd], _decoded(few.filter(pa.array(odd)).to_pylist())
            texts, lengths, _ = _cut(few.filter(pa.array(~odd)))
        yield at[~odd], (texts, lengths)


def _decoded(cells: list[bytes]) -> _Texts:
    """The cells that are lists, of any content."""
    found = [or_none(_items, cell) for cell in cells]
    data = np.frombuffer(bytearray(b"\0 ").join([*chain.from_iterable(filter(None, found)), b""]), np.uint8)
    ends = np.flatnonzero(data == 0)  # no JSON text holds a NUL
    data[ends] = COMMA
    starts = np.append(0, ends + 2)[:-1]
    return _texts(data, starts), np.array([-1 if calls is None else len(calls) for calls in found])


HEAD = b'{"tool_'
"""How a call begins, whichever of its keys comes first."""


def _cut(cells: pa.Array) -> tuple[pa.Array, Numbers, Numbers]:
    """The pieces of cells that are `[piece, piece, …]`, and which cells are odd: those that are not, for all that can
    be seen here.

    If as many calls as there are pieces are read from a list of pieces, each piece is a call: there was no comma
    between calls but those between pieces, as what may be a call after a comma is a piece of its own, or its cell is
    odd.
    """
    at, data = offsets(cells), np.frombuffer(cells.buffers()[2] or b"", np.uint8)
    at, data = at - at[0], np.append(data[at[0] : at[-1]], SPACE)
    starts = _starts(data)
    first = np.searchsorted(starts, at)
    lengths = np.diff(first)
    filled = lengths > 0
    head, last = first[:-1][filled], first[1:][filled] - 1
    before = data[starts - 1]
    ends = np.append(starts[1:] - 2 + (before[1:] == COMMA), 0)[: len(starts)]
    ends[last] = at[1:][filled] - 1
    opened, closed = (before == COMMA) | (before == SPACE), data[ends] == COMMA
    opened[head] = (before[head] == CALLS_OPENING) & (starts[head] == at[:-1][filled] + 1)
    closed[last] = data[ends[last]] == CLOSING
    good = _is_head(data, starts) & (data[ends - 1] == BRACE_CLOSING) & opened & closed
    odd = ~filled
    odd[np.searchsorted(first, np.flatnonzero(~good), "right") - 1] = True
    data[ends[last]], data[ends[last] + 1] = COMMA, SPACE
    return _texts(data, starts), lengths, odd


COMMA, SPACE, QUOTE, CALLS_OPENING, BACKSLASH, CLOSING, BRACE, BRACE_CLOSING = map(np.uint8, b', "[\\]{}')


def _starts(data: Numbers) -> Numbers:
    """Where calls may begin: with objects after a comma, or first in a list (if that is within an input, its cell is
    odd), unless their first key is none of a call's."""
    found = np.flatnonzero(data == BRACE)
    second, before, key, one, two = (data.take(found + i, mode="wrap") for i in (-2, -1, 1, 2, 3))
    is_item = (
        (before == CALLS_OPENING) | (before == COMMA) | (before <= SPACE) & ((second == COMMA) | (second <= SPACE))
    )
    is_other = (key == QUOTE) & ((one != ord("t")) | (two != ord("o"))) & (one != BACKSLASH) & (two != BACKSLASH)
    return np.asarray(found[is_item & ~is_other])


def _is_head(data: Numbers, starts: Numbers) -> Numbers:
    """Whether HEAD is at these places: its seven bytes are compared as numbers of eight, without the last one."""
    words = np.ndarray(max(len(data) - 7, 0), "<u8", data, strides=(1,))
    found = starts < len(words)
    found[found] = words[starts[found]] << np.uint64(8) == int.from_bytes(HEAD, "little") << 8
    return found


def _tools_of(texts: pa.Array, tools: Tools, names: _Names) -> Numbers:
    """The tool that each text calls; -1 if it is not a call."""
    called: list[int] = []
    for few in _slices(texts, 4 * FEW):
        calls = _read_as_list(few, names)
        for one in [calls] if calls else (_read_as_list(few.slice(i, 1), names) for i in range(len(few))):
            called += [tools[call.tool_name] for call in one] if one else [-1]
    found = np.fromiter(called, np.int64, len(called))
    found[_out_of_range(texts, lambda text: decode_inputs(b"[%b]" % text.rstrip(b", ")))] = -1
    return found


def _read_as_list(texts: pa.Array, names: _Names) -> list[_Call] | None:
    """The calls of all texts; None if some are not calls."""
    text = listed(texts)
    calls: list[_Call] | None = or_none(names.calls, text) or or_none(names.read, text)
    return calls if calls and len(calls) == len(texts) else None


# ---------------------------------------------------------------------------------------------------------------------
# cells whose calls are only counted
def _counted(cells: pa.Array, names: _Names) -> Numbers:
    """How many calls each cell has, -1 where it cannot be read."""
    lengths: list[int] = []
    for few in _slices(cells, FEW):
        texts = few.to_pylist()
        found = or_none(lambda some: [*map(len, map(names.calls, some))], texts)
        lengths += found or [-1 if calls is None else len(calls) for calls in (or_none(names.read, t) for t in texts)]
    read = np.fromiter(lengths, np.int64, len(lengths))
    read[_out_of_range(cells, decode_inputs)] = -1
    return read


# ---------------------------------------------------------------------------------------------------------------------
# numbers out of range
def _out_of_range(texts: pa.Array, decode: Callable[[bytes], Any]) -> Numbers:
    """The texts with a number that is out of range, which the decoder does not see in what it skips. Others cannot be
    read either."""
    at, data = offsets(texts), np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    starts = range(at[0], at[-1], PIECE)
    places = [start + _suspected(data[start : min(start + PIECE + 200, at[-1])]) for start in starts]
    suspects = np.unique(np.searchsorted(at, np.concatenate([*places, NONE]), "right") - 1).tolist()
    found = [text for text in suspects if or_none(decode, data[at[text] : at[text + 1]].tobytes()) is None]
    return np.array(found, np.int64)


PIECE = 1 << 18
"""Bytes, few enough for the processor's cache."""


def _suspected(data: Numbers) -> Numbers:
    """Where JSON may have a number out of range: one with three digits in its exponent, or with hundreds of digits.
    (numpy takes a tenth of the time of a regular expression.)"""
    found = [np.flatnonzero((data[:-1] <= ord("9")) & ((data[1:] | 32) == ord("e"))) + 2]
    if len(found[0]):
        found[0] += data.take(found[0], mode="clip") == ord("+")
        found[0] = found[0][np.all([_is_digit(data.take(found[0] + i, mode="clip")) for i in range(3)], axis=0)]
    every = _is_digit(data[::50])  # 200 digits in a row have four of these
    found.append(np.flatnonzero(every[:-3] & every[1:-2] & every[2:-1] & every[3:]) * 50)
    return np.concatenate(found)


def _is_digit(data: Numbers) -> Numbers:
    found: Numbers = data - np.uint8(ord("0")) < 10
    return found
