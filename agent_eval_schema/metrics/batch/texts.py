"""Columns of a batch → trajectories whose calls have texts and tools; inputs are not decoded yet.

JSON text                     ──▶ CallTexts ──▶ CallBatch
  what is not read here       ──decoding/──▶ CallBatch, and issues
list<struct<name, input>>     ──▶ CallBatch

Of JSON text, the text of each call and the number of its tool:

    [{"tool_name": "a", "tool_input": {"x": 1}}, {"tool_name": "b"}]      a cell
     ───────────────── a call ────────────────── ────── a call ─────      ──▶  ids 0 1, their texts and tools

A cell is cut before each call, and the texts that come out are decoded as one list, of those that are equal one: if
they are calls the cell was cut rightly. What cannot be cut so is taken apart by a decoder; and of cells of which no
more is wanted the calls are only counted. A cell that cannot be read that way is UNREADABLE until decoding/ has had a
second look, and reports the problem.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw, Struct, defstruct

from agent_eval_schema.cells.arrow import bounds, deep_cells, is_text, simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.chat import read_arguments
from agent_eval_schema.decoding.columns import decode_column
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.metrics.batch.numbers import (
    ABSENT,
    GIVEN,
    UNREADABLE_CALLS,
    Numbers,
    decode_input,
    decode_inputs,
    listed,
    offsets,
    or_none,
)
from agent_eval_schema.rules.reading import NOT_UTF8
from agent_eval_schema.schema import OTHER_KEYS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import STAND_IN


class CallTexts(Struct):
    """A column of JSON texts; `json`: as the values of cells are written, so that a text among them has quotes."""

    texts: pa.Array
    json: bool


class CallBatch(Struct):
    """Trajectories, and their calls: the number of each call's text (`ids`), the texts (bytes of JSON), the number that
    a `Tools` has for the tool of each text (-1: it is no call); where the calls of each trajectory begin, how many it
    has, and what there is of it. Those of which no more was wanted than their number are not here."""

    ids: Numbers
    texts: pa.Array
    tools: Numbers
    starts: Numbers
    lengths: Numbers
    states: Numbers

    @property
    def size(self) -> int:
        return len(self.lengths)


class Tools(dict[str, int]):
    """A number for each requested name, its place among them; -1 for a blank one, which is not a name."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self) if name.strip() else -1
        return self[name]


def joined(parts: Sequence[CallBatch]) -> CallBatch:
    """All of them, one after the other."""
    if len(parts) == 1:
        return parts[0]
    encoded = pa.concat_arrays([pa.DictionaryArray.from_arrays(part.ids, part.texts) for part in parts])
    ids, tools = np.asarray(encoded.indices), np.full(len(encoded.dictionary), -1)
    tools[ids] = np.concatenate([part.tools[part.ids] for part in parts])
    before = bounds([len(part.ids) for part in parts])
    return CallBatch(
        ids,
        encoded.dictionary,
        tools,
        np.concatenate([part.starts + start for part, start in zip(parts, before[:-1], strict=True)]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.states for part in parts]),
    )


def trajectory_column(batch: pa.RecordBatch, name: str, tools: Tools, log: IssueLog) -> CallTexts | CallBatch | None:
    """The column as JSON texts, or as calls if it has that type; None if the batch does not have it."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return None
    if _is_of_calls(batch.column(at).type):
        return _of_structs(batch.column(at), tools)
    array = simplified(batch.column(at))
    if is_text(array.type) and not _is_unreadable(array):
        return CallTexts(_shallow(array.cast(pa.large_string())), is_json_column(batch.schema.field(at)))
    cells = read_cells(batch, name)
    assert cells is not None
    for row, message in cells.unreadable.items():
        log.add(NOT_UTF8, row, name, message)
    return CallTexts(_shallow(pa.array(cells.texts, pa.large_string())), cells.json)


def _shallow(texts: pa.Array) -> pa.Array:
    """The texts, with a stand-in for each that is nested too deep."""
    if not (deep := deep_cells(texts)):
        return texts
    return pc.if_else(np.isin(np.arange(len(texts)), deep), pa.scalar(STAND_IN, texts.type), texts)


def _is_unreadable(texts: pa.Array) -> bool:
    """Whether some text is not UTF-8, which Arrow does not check."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


# --- texts
def decoded_again(rows: Numbers, name: str, cells: CallTexts, tools: Tools, log: IssueLog) -> CallBatch:
    """The trajectories of cells that failed: the rules report the problem; a cell with only warnings has its calls."""
    apart = IssueLog(len(rows))
    values = decode_column(name, Cells(cells.json, cells.texts.take(pa.array(rows)).to_pylist()), apart)
    for i, note in zip(apart.rows, apart.notes, strict=True):
        log.rows.append(int(rows[i]))
        log.notes.append(note)
    log.failed.update(int(rows[i]) for i in apart.failed)
    found = [() if value is FAILED else value for value in values]
    calls = list(chain.from_iterable(found))
    texts = _call_texts(
        _bytes([jsontext.encode(call.tool_name) for call in calls]),
        _bytes([jsontext.encode(call.tool_input or {}) for call in calls]),
    )
    return _call_batch(
        texts,
        np.array([tools[call.tool_name] for call in calls], np.int64),
        np.fromiter(map(len, found), np.int64, len(found)),
        np.array([UNREADABLE_CALLS if value is FAILED else GIVEN for value in values]),
    )


def _call_batch(texts: pa.Array, tools: Numbers, lengths: Numbers, states: Numbers) -> CallBatch:
    """Trajectories that have these calls, one after the other."""
    encoded = texts.dictionary_encode()
    ids, called = np.asarray(encoded.indices), np.full(len(encoded.dictionary), -1)
    called[ids] = tools
    return CallBatch(ids, encoded.dictionary, called, np.cumsum(lengths) - lengths, lengths, states)


# --- calls in Arrow
def _is_of_calls(kind: pa.DataType) -> bool:
    """list<struct<tool_name, tool_input>> of text, as in normalized files (JSON inputs); other keys do not count."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    call = kind.value_type
    names = {f.name for f in call} if pa.types.is_struct(call) else set()
    return names - {OTHER_KEYS} == {"tool_name", "tool_input"} and all(is_text(f.type) for f in call)


def _of_structs(array: pa.Array, tools: Tools) -> CallBatch:
    calls = array.flatten()
    names, inputs = (
        pc.struct_field(calls, field).cast(pa.large_string()).fill_null("").dictionary_encode()
        for field in ("tool_name", "tool_input")
    )
    read = [_input_text(text) for text in inputs.dictionary.to_pylist()]
    called = _at(names, np.array([tools[name] for name in names.dictionary.to_pylist()], np.int64))
    bad = (called < 0) | _at(inputs, np.array([text is None for text in read], bool))
    lengths = np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
    states = np.where(np.asarray(array.is_null()).astype(bool), ABSENT, GIVEN)
    states[np.repeat(np.arange(len(array)), lengths)[bad]] = UNREADABLE_CALLS
    texts = _call_texts(
        _bytes([jsontext.encode(name) for name in names.dictionary.to_pylist()]).take(names.indices),
        _bytes([text or b"{}" for text in read]).take(inputs.indices),
    )
    return _call_batch(texts, called, lengths, states)


def _at(encoded: pa.DictionaryArray, values: Numbers) -> Numbers:
    found: Numbers = values[np.asarray(encoded.indices)]
    return found


def _bytes(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.large_binary())


def _call_texts(names: pa.Array, inputs: pa.Array) -> pa.Array:
    """Calls as JSON as `listed` wants them, spelled as Python's json module does: most texts are."""
    parts = (b'{"tool_name": ', names, b', "tool_input": ', inputs, b"}, ", b"")
    return pc.binary_join_element_wise(
        *(pa.scalar(part, pa.large_binary()) if isinstance(part, bytes) else part for part in parts)
    )


def _input_text(text: str | None) -> bytes | None:
    """The JSON text of an input; None if it begins like an object and is none."""
    if not text:
        return b"{}"
    if not text.lstrip().startswith("{"):
        return jsontext.encode(read_arguments(text))
    return text.encode() if or_none(_is_read, text) else None


def _is_read(text: str) -> bool:
    decode_input(text)
    return True


# --- JSON text
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
"""The cells that are decoded, or cut, at a time: their results are used while they are in the processor's cache."""


def of_texts(columns: list[pa.Array], wanted: Numbers, tools: Tools) -> CallBatch:
    """The trajectories in columns of JSON texts, one column after the other; with the calls of the wanted ones only."""
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


# --- cells whose calls are wanted
_Texts = tuple[pa.Array, Numbers]
"""The texts of the calls of some cells as `listed` wants them; and the calls per cell, -1 for an unreadable one."""

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


# --- cells whose calls are only counted
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


# --- numbers out of range
def _out_of_range(texts: pa.Array, decode: Callable[[bytes], Any]) -> Numbers:
    """The texts with a number out of range, which the decoder does not see in what it skips, and unreadable ones."""
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
