"""Cells of trajectories → the text of each call and the number of its tool; nobody has looked into its input yet.

    '[{"tool_name": "a", "tool_input": {"x": 1}}, …]'   ──▶   texts    {"tool_name": "a", "tool_input": {"x": 1}}  │ …
                                                               tools    0                                           │ …
                                                               lengths  2

A cell is cut into the texts of its calls, and of those that are equal one is read. A cell that cannot be read the quick
way is UNREADABLE until decoding.py has had a second look, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw, Struct

from agent_eval_schema import jsontext
from agent_eval_schema.cells import Cells, is_json_column, is_text, read_cells, simplified
from agent_eval_schema.decoding import FAILED, decode_column
from agent_eval_schema.issues import IssueLog
from agent_eval_schema.metrics.call_numbers import (
    ABSENT,
    BROKEN,
    GIVEN,
    UNREADABLE,
    Numbers,
    decode_input,
    decode_inputs,
    ended,
    listed,
    offsets,
)
from agent_eval_schema.rules.reading import NOT_UTF8


class Texts(Struct):
    """A column of JSON texts; `json`: as the values of cells are written, so that a text among them has quotes."""

    texts: pa.Array
    json: bool


class Calls(Struct):
    """Trajectories: the texts and the tools of all calls one after the other, how many each trajectory has, what there
    is of it, and whether its calls are `here` at all.

    `texts` is an Arrow dictionary of bytes as `ended` makes them; the numbers in `tools` are those of a `Tools`.
    """

    texts: pa.DictionaryArray
    tools: Numbers
    lengths: Numbers
    states: Numbers
    here: Numbers

    @property
    def size(self) -> int:
        return len(self.lengths)


class Tools(dict[str, int]):
    """A number for each name that is asked for, its place among them; -1 for a blank one, which is no name."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self) if name.strip() else -1
        return self[name]


def joined(parts: Sequence[Calls]) -> Calls:
    """All of them, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Calls(
        pa.concat_arrays([part.texts for part in parts]),
        np.concatenate([part.tools for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.here for part in parts]),
    )


def opened(batch: pa.RecordBatch, name: str, tools: Tools, log: IssueLog) -> Texts | Calls | None:
    """The column as JSON texts, or as calls if it has that type; None if the batch does not have it."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return None
    if _is_of_calls(batch.column(at).type):
        return _of_structs(batch.column(at), tools)
    array = simplified(batch.column(at))
    if is_text(array.type) and not _is_unreadable(array):
        return Texts(array.cast(pa.large_string()), is_json_column(batch.schema.field(at)))
    cells = read_cells(batch, name)
    assert cells is not None
    for row, message in cells.unreadable.items():
        log.add(NOT_UTF8, row, name, message)
    return Texts(pa.array(cells.texts, pa.large_string()), cells.json)


def _is_unreadable(texts: pa.Array) -> bool:
    """Whether some text is not UTF-8, which Arrow does not check."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


# ---------------------------------------------------------------------------------------------------------------------
# texts


class _Object(Struct, gc=False):
    """An object, whatever it holds: the decoder skips it."""


class _Call(Struct, forbid_unknown_fields=True, gc=False):
    """A call of whose input nothing is wanted. (A pattern for its name would cost more than all the rest.)"""

    tool_name: str
    tool_input: _Object | None = None


_calls = msgspec.json.Decoder(list[_Call]).decode
_items = msgspec.json.Decoder(list[Raw]).decode

FEW = 256
"""So many cells are read at a time: what is made of them is gone before it has left the processor's cache."""


def of_texts(columns: list[pa.Array], wanted: Numbers, tools: Tools) -> Calls:
    """The trajectories that columns of JSON texts hold, one column after the other; the calls are only here of those
    that are wanted."""
    lengths, unread, texts = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool), list[pa.Array]()
    start = 0
    for column in columns:
        for few in _slices(column.cast(pa.large_binary()), FEW):
            cells, here = few.to_pylist(), slice(start, start + len(few))
            for read, rows in ((_count, ~wanted[here]), (_cut, wanted[here])):
                lengths[here][rows] = _read_all(read, list(compress(cells, rows.tolist())), texts)
            start += len(few)
        unread[_out_of_range(column) + start - len(column)] = True
    states = np.where(unread | (lengths < 0), UNREADABLE, GIVEN)
    lengths = np.maximum(lengths, 0)
    encoded = pa.chunked_array(texts, pa.large_binary()).dictionary_encode().combine_chunks()
    called = _at(encoded, _tools_of(encoded.dictionary, tools))
    states[np.repeat(np.flatnonzero(wanted), lengths[wanted])[called < 0]] = UNREADABLE
    return Calls(encoded, called, lengths, states, wanted)


def _slices(array: pa.Array, size: int) -> Iterator[pa.Array]:
    for start in range(0, len(array), size):
        yield array.slice(start, size)


_Read = tuple[list[int], list[Raw]]
"""How many calls each of some cells has, -1 where it cannot be read, and the texts of those that are wanted."""


def _read_all(read: Callable[[list[bytes]], _Read], cells: list[bytes], texts: list[pa.Array]) -> list[int]:
    """How many calls the cells have, -1 where one cannot be read; the texts that are wanted are added to `texts`."""
    found: _Read | None = _or_none(read, cells)
    if not found:
        lengths, calls = zip(*(_or_none(read, [cell]) or ([-1], []) for cell in cells), strict=True)
        found = list(chain.from_iterable(lengths)), list(chain.from_iterable(calls))
    if found[1]:
        texts.append(ended(found[1]))
    return found[0]


def _count(cells: list[bytes]) -> _Read:
    """Of cells of which no more is wanted. Raises ValueError for a name that is blank."""
    found = list(map(_calls, cells))
    if not all([call.tool_name.strip() for calls in found for call in calls]):
        raise ValueError("a call without a name")
    return list(map(len, found)), []


def _cut(cells: list[bytes]) -> _Read:
    """Of cells that are lists, of whatever."""
    found = list(map(_items, cells))
    return list(map(len, found)), list(chain.from_iterable(found))


def _or_none(read: Callable[[Any], Any], text: Any) -> Any:
    try:
        return read(text)
    except BROKEN:
        return None


def _out_of_range(column: pa.Array) -> Numbers:
    """The cells with a number that is out of range, which the decoder does not see in what it skips. Others cannot be
    read either."""
    at, data = offsets(column), np.frombuffer(column.buffers()[2] or b"", np.uint8)
    starts = range(at[0], at[-1], PIECE)
    places = [start + _suspected(data[start : min(start + PIECE + 200, at[-1])]) for start in starts]
    cells = np.unique(np.searchsorted(at, np.concatenate([*places, []]), "right") - 1).tolist()
    found = [cell for cell in cells if _or_none(decode_inputs, data[at[cell] : at[cell + 1]]) is None]
    return np.array(found, np.int64)


PIECE = 1 << 18
"""Bytes, few enough for the processor's cache."""


def _suspected(data: Numbers) -> Numbers:
    """Where JSON may have a number out of range: one with three digits in its exponent, or with hundreds of digits.
    (numpy takes a tenth of the time of a regular expression.)"""
    is_digit = data - np.uint8(ord("0")) < 10
    found = [np.flatnonzero(is_digit[:-1] & ((data[1:] | 32) == ord("e"))) + 2]
    if len(found[0]):
        found[0] += data.take(found[0], mode="clip") == ord("+")
        found[0] = found[0][np.all([is_digit.take(found[0] + i, mode="clip") for i in range(3)], axis=0)]
    every = is_digit[::50]  # 200 digits in a row have four of these
    found.append(np.flatnonzero(every[:-3] & every[1:-2] & every[2:-1] & every[3:]) * 50)
    return np.concatenate(found)


def _tools_of(texts: pa.Array, tools: Tools) -> Numbers:
    """The tool that each text calls; -1 if it is no call."""
    found: list[int] = []
    for few in _slices(texts, 4 * FEW):
        calls = _or_none(_calls, listed(few))
        for one in [calls] if calls else [_or_none(_calls, b"[%b]" % text[:-1]) for text in few.to_pylist()]:
            found += [tools[call.tool_name] for call in one] if one else [-1]
    return np.array(found, np.int64)


def looked_at_again(rows: Numbers, name: str, cells: Texts, tools: Tools, log: IssueLog) -> Calls:
    """The trajectories of cells that failed: the rules say what is wrong; what only earns a warning has its calls."""
    apart = IssueLog(len(rows))
    values = decode_column(name, Cells(cells.texts.take(pa.array(rows)).to_pylist(), cells.json), apart)
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
    return Calls(
        texts.dictionary_encode(),
        np.array([tools[call.tool_name] for call in calls], np.int64),
        np.fromiter(map(len, found), np.int64, len(found)),
        np.array([UNREADABLE if value is FAILED else GIVEN for value in values]),
        np.ones(len(found), bool),
    )


# ---------------------------------------------------------------------------------------------------------------------
# calls in Arrow


def _is_of_calls(kind: pa.DataType) -> bool:
    """list<struct<tool_name, tool_input>> with text in both, as normalised files have it: inputs are JSON text."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    call = kind.value_type
    names = {f.name for f in call} if pa.types.is_struct(call) else set()
    return names == {"tool_name", "tool_input"} and all(is_text(f.type) for f in call)


def _of_structs(array: pa.Array, tools: Tools) -> Calls:
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
    states[np.repeat(np.arange(len(array)), lengths)[bad]] = UNREADABLE
    texts = _call_texts(
        _bytes([jsontext.encode(name) for name in names.dictionary.to_pylist()]).take(names.indices),
        _bytes([text or b"{}" for text in read]).take(inputs.indices),
    )
    return Calls(texts.dictionary_encode(), called, lengths, states, np.ones(len(array), bool))


def _at(encoded: pa.DictionaryArray, values: Numbers) -> Numbers:
    """Of each cell, what `values` says of the dictionary's."""
    found: Numbers = values[np.asarray(encoded.indices)]
    return found


def _bytes(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.large_binary())


def _call_texts(names: pa.Array, inputs: pa.Array) -> pa.Array:
    """Calls as JSON as `ended` makes them, spelt as Python's json module does: most texts are."""
    parts = (b'{"tool_name": ', names, b', "tool_input": ', inputs, b"},", b"")
    return pc.binary_join_element_wise(
        *(pa.scalar(part, pa.large_binary()) if isinstance(part, bytes) else part for part in parts)
    )


def _input_text(text: str | None) -> bytes | None:
    """The text of an input as bytes; None if it is none."""
    if not text:
        return b"{}"
    return text.encode() if _or_none(_is_read, text) else None


def _is_read(text: str) -> bool:
    decode_input(text)
    return True
