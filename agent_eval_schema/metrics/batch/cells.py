"""Columns of a batch → trajectories whose calls have texts and tools; JSON text is read by texts.py.

JSON text                     ──▶ Texts ──texts.py──▶ Calls
  what is not read there      ──decoding/──▶ Calls, and issues
list<struct<name, input>>     ──▶ Calls
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from agent_eval_schema.cells.arrow import bounds, is_text, simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.depth import deep_cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.columns import decode_column
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.metrics.batch.numbers import ABSENT, GIVEN, UNREADABLE_CALLS, Numbers, decode_input, or_none
from agent_eval_schema.rules.reading import NOT_UTF8
from agent_eval_schema.schema import OTHER_KEYS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import STAND_IN


class Texts(Struct):
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


def trajectory_column(batch: pa.RecordBatch, name: str, tools: Tools, log: IssueLog) -> Texts | CallBatch | None:
    """The column as JSON texts, or as calls if it has that type; None if the batch does not have it."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return None
    if _is_of_calls(batch.column(at).type):
        return _of_structs(batch.column(at), tools)
    array = simplified(batch.column(at))
    if is_text(array.type) and not _is_unreadable(array):
        return Texts(_shallow(array.cast(pa.large_string())), is_json_column(batch.schema.field(at)))
    cells = read_cells(batch, name)
    assert cells is not None
    for row, message in cells.unreadable.items():
        log.add(NOT_UTF8, row, name, message)
    return Texts(_shallow(pa.array(cells.texts, pa.large_string())), cells.json)


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


# ---------------------------------------------------------------------------------------------------------------------
# texts
def decoded_again(rows: Numbers, name: str, cells: Texts, tools: Tools, log: IssueLog) -> CallBatch:
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
    return _calls(
        texts,
        np.array([tools[call.tool_name] for call in calls], np.int64),
        np.fromiter(map(len, found), np.int64, len(found)),
        np.array([UNREADABLE_CALLS if value is FAILED else GIVEN for value in values]),
    )


def _calls(texts: pa.Array, tools: Numbers, lengths: Numbers, states: Numbers) -> CallBatch:
    """Trajectories that have these calls, one after the other."""
    encoded = texts.dictionary_encode()
    ids, called = np.asarray(encoded.indices), np.full(len(encoded.dictionary), -1)
    called[ids] = tools
    return CallBatch(ids, encoded.dictionary, called, np.cumsum(lengths) - lengths, lengths, states)


# ---------------------------------------------------------------------------------------------------------------------
# calls in Arrow
def _is_of_calls(kind: pa.DataType) -> bool:
    """list<struct<tool_name, tool_input>> with text in both, as normalized files have it: inputs are JSON text. Other
    keys of a call do not count."""
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
    return _calls(texts, called, lengths, states)


def _at(encoded: pa.DictionaryArray, values: Numbers) -> Numbers:
    found: Numbers = values[np.asarray(encoded.indices)]
    return found


def _bytes(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.large_binary())


def _call_texts(names: pa.Array, inputs: pa.Array) -> pa.Array:
    """Calls as JSON as `listed` wants them, spelt as Python's json module does: most texts are."""
    parts = (b'{"tool_name": ', names, b', "tool_input": ', inputs, b"}, ", b"")
    return pc.binary_join_element_wise(
        *(pa.scalar(part, pa.large_binary()) if isinstance(part, bytes) else part for part in parts)
    )


def _input_text(text: str | None) -> bytes | None:
    """The text of an input as bytes; None if there is none."""
    if not text:
        return b"{}"
    return text.encode() if or_none(_is_read, text) else None


def _is_read(text: str) -> bool:
    decode_input(text)
    return True
