"""Cells of trajectories → the tool of each call and the text of its input, which nobody has looked into yet.

    '[{"tool_name": "a", "tool_input": {"x": 1}}, …]'   ──▶   tools    a         │ …
                                                               inputs   {"x": 1}  │ …
                                                               lengths  2

A cell that cannot be read the quick way is UNREADABLE until decoding.py has had a second look, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    ended,
)
from agent_eval_schema.rules.reading import NOT_UTF8


class Texts(Struct):
    """A column of JSON texts; `json`: as the values of cells are written, so that a text among them has quotes."""

    texts: pa.Array
    json: bool


class Calls(Struct):
    """Trajectories: the tools and inputs of all calls one after the other, how many each trajectory has, what there is
    of it, and whether its calls are `here` at all.

    `tools` and `inputs` are Arrow dictionaries: of names, and of bytes as `ended` makes them.
    """

    tools: pa.DictionaryArray
    inputs: pa.DictionaryArray
    lengths: Numbers
    states: Numbers
    here: Numbers

    @property
    def size(self) -> int:
        return len(self.lengths)


def joined(parts: Sequence[Calls]) -> Calls:
    """All of them, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Calls(
        pa.concat_arrays([part.tools for part in parts]),
        pa.concat_arrays([part.inputs for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.here for part in parts]),
    )


def opened(batch: pa.RecordBatch, name: str, log: IssueLog) -> Texts | Calls | None:
    """The column as JSON texts, or as calls if it has that type; None if the batch does not have it."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return None
    if _is_of_calls(batch.column(at).type):
        return _of_structs(batch.column(at))
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


class _Call(Struct, forbid_unknown_fields=True, gc=False):
    """A call whose input stays text. (A pattern for its name would cost more than all the rest.)"""

    tool_name: str
    tool_input: Raw = Raw(b"{}")


class _WholeCall(Struct, forbid_unknown_fields=True, gc=False):
    tool_name: str
    tool_input: dict[str, Any] | None = None


_calls = msgspec.json.Decoder(list[_Call]).decode
_whole_calls = msgspec.json.Decoder(list[_WholeCall]).decode


def _count(text: bytes) -> int:
    """How many calls a text holds of which no more is wanted. Raises ValueError for a name that is blank."""
    calls = _whole_calls(text)
    if not all([call.tool_name.strip() for call in calls]):
        raise ValueError("a call without a name")
    return len(calls)


def of_texts(texts: pa.Array, wanted: Numbers) -> Calls:
    """The trajectories that JSON texts hold; the calls are only here of those that are wanted."""
    cells = texts.cast(pa.large_binary()).to_pylist()
    counts = _read_all(_count, list(compress(cells, (~wanted).tolist())))
    found = _read_all(_calls, list(compress(cells, wanted.tolist())))
    lengths, states = np.zeros(len(cells), np.int64), np.full(len(cells), GIVEN)
    lengths[~wanted] = [count or 0 for count in counts]
    lengths[wanted] = [len(calls or ()) for calls in found]
    states[np.flatnonzero(~wanted)[[count is None for count in counts]]] = UNREADABLE
    states[np.flatnonzero(wanted)[[calls is None for calls in found]]] = UNREADABLE
    calls = list(chain.from_iterable(filter(None, found)))
    tools = _tools([call.tool_name for call in calls])
    inputs = ended([call.tool_input for call in calls]).dictionary_encode()
    bad = _at(tools, _blank(tools.dictionary)) | ~_at(inputs, _objects(inputs.dictionary))
    states[np.repeat(np.flatnonzero(wanted), lengths[wanted])[bad]] = UNREADABLE
    return Calls(tools, inputs, lengths, states, wanted)


def _read_all(read: Callable[[Any], Any], texts: list[Any]) -> list[Any]:
    """What is read from each text; None where that fails."""
    try:
        return list(map(read, texts))
    except BROKEN:
        return [_or_none(read, text) for text in texts]


def _or_none(read: Callable[[Any], Any], text: Any) -> Any:
    try:
        return read(text)
    except BROKEN:
        return None


def _tools(names: list[str]) -> pa.DictionaryArray:
    return pa.array(names, pa.large_string()).dictionary_encode()


def _at(encoded: pa.DictionaryArray, values: Numbers) -> Numbers:
    """Of each cell, what `values` says of the dictionary's."""
    found: Numbers = values[np.asarray(encoded.indices)]
    return found


def _blank(names: pa.Array) -> Numbers:
    return np.array([not name.strip() for name in names.to_pylist()], bool)


def _objects(inputs: pa.Array) -> Numbers:
    """Whether JSON values are objects or null, without numbers out of range: the decoder has not looked into them."""
    starts = np.frombuffer(inputs.buffers()[1], np.int64)[: len(inputs)]
    first = np.frombuffer(inputs.buffers()[2], np.uint8)[starts]
    good: Numbers = (first == ord("{")) | (first == ord("n"))
    for call in np.flatnonzero(np.asarray(pc.match_substring_regex(inputs, _HUGE))).tolist():
        good[call] &= _or_none(_is_read, inputs[call].as_py()[:-1]) is True
    return good


_HUGE = "[eE][+]?[0-9]{3}|[0-9]{300}"
"""What a number out of range has; others may have it too."""


def _is_read(text: bytes | str) -> bool:
    decode_input(text)
    return True


def looked_at_again(rows: Numbers, name: str, cells: Texts, log: IssueLog) -> Calls:
    """The trajectories of cells that failed: the rules say what is wrong; what only earns a warning has its calls."""
    apart = IssueLog(len(rows))
    values = decode_column(name, Cells(cells.texts.take(pa.array(rows)).to_pylist(), cells.json), apart)
    for i, note in zip(apart.rows, apart.notes, strict=True):
        log.rows.append(int(rows[i]))
        log.notes.append(note)
    log.failed.update(int(rows[i]) for i in apart.failed)
    found = [() if value is FAILED else value for value in values]
    calls = list(chain.from_iterable(found))
    return Calls(
        _tools([call.tool_name for call in calls]),
        ended([jsontext.encode(call.tool_input or {}) for call in calls]).dictionary_encode(),
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


def _of_structs(array: pa.Array) -> Calls:
    calls = array.flatten()
    names, inputs = (pc.struct_field(calls, field).to_pylist() for field in ("tool_name", "tool_input"))
    texts = {text: _input_text(text) for text in set(inputs)}
    lengths = np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
    states = np.where(np.asarray(array.is_null()).astype(bool), ABSENT, GIVEN)
    tools = _tools([name or "" for name in names])
    bad = _at(tools, _blank(tools.dictionary)) | np.array([texts[text] is None for text in inputs], bool)
    states[np.repeat(np.arange(len(array)), lengths)[bad]] = UNREADABLE
    encoded = ended([texts[text] or b"{}" for text in inputs]).dictionary_encode()
    return Calls(tools, encoded, lengths, states, np.ones(len(array), bool))


def _input_text(text: str | None) -> bytes | None:
    """The text of an input as bytes; None if it is none."""
    if not text:
        return b"{}"
    return text.encode() if _or_none(_is_read, text) else None
