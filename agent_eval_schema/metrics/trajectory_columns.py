"""The trajectory metrics on a whole batch of rows: calls become numbers, and numbers are compared in numpy.

    cells    '[{"tool_name": "a", …}, …]'   ──equal as text──▶  scores 1, no call is looked at
                    │ otherwise                                  ids      0 0 1 │ 2 0 │ …
                    └────────split──▶ texts of calls ──key──▶    lengths  3     │ 2   │ …

A text is only decoded once however often it stands in the batch, be it that of a trajectory or of a call. The metrics
are those of trajectory.py, which is the definition; this is how a million rows are scored. Cells that cannot be read
the quick way get the second look of decoding.py, which says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw, Struct

from agent_eval_schema import jsontext
from agent_eval_schema.cells import Cells, is_json_column, is_text, read_cells, simplified, text_views
from agent_eval_schema.decoding import FAILED, decode_column
from agent_eval_schema.issues import IssueLog
from agent_eval_schema.metrics.trajectory import call_key, sorted_json
from agent_eval_schema.rules.reading import NOT_UTF8
from agent_eval_schema.rules.tools import EMPTY_TRAJECTORY

Numbers = np.ndarray[Any, Any]

PREDICTED, REFERENCE = "predicted_trajectory", "reference_trajectory"

GIVEN, ABSENT, UNREADABLE = 0, 1, 2
"""What there is of a trajectory."""


class Trajectories(Struct):
    """A column of trajectories: `ids` of all calls one after the other, how many each row has, what there is of it
    (GIVEN, ABSENT, UNREADABLE; the latter two have no calls) and the key of each number."""

    ids: Numbers
    lengths: Numbers
    states: Numbers

    @property
    def size(self) -> int:
        return len(self.lengths)

    def of(self, rows: Numbers) -> Trajectories:
        """Those of some rows."""
        mask = np.zeros(self.size, bool)
        mask[rows] = True
        return Trajectories(self.ids[np.repeat(mask, self.lengths)], self.lengths[rows], self.states[rows])


class Pair(Struct):
    """The two columns, numbered together, the rows whose trajectories are equal as text (their calls may be without
    numbers), and the tool of each number."""

    predicted: Trajectories
    reference: Trajectories
    same: Numbers
    names: list[str]


# ---------------------------------------------------------------------------------------------------------------------
# cells → numbers


def read_pair(batch: pa.RecordBatch, log: IssueLog, *, names: bool = False) -> Pair:
    """The trajectories of a batch with the canonical columns (either may be missing). What cannot be read, and what is
    empty, is logged. The calls of two trajectories that are equal as text have no numbers, unless `names` are wanted.
    """
    numbering = _Numbering()
    given = {name: _given(batch, name, log) for name in (PREDICTED, REFERENCE)}
    found = {name: _from_structs(batch, name, numbering) for name in given}
    texts = {name: cells for name, cells in given.items() if cells is not None and found[name] is None}
    places, distinct = _coded([cells.texts for cells in texts.values()])
    coded = dict(zip(texts, places, strict=True))
    same = np.zeros(batch.num_rows, bool)
    if len(coded) == 2:
        same = (coded[PREDICTED] == coded[REFERENCE]) & (coded[PREDICTED] >= 0)
    apart = ~same | names
    wanted = np.zeros(len(distinct) + 1, bool)  # the last one is for -1, the absent cells
    for at in coded.values():
        wanted[at[apart]] = True
    values = _numbered(distinct, wanted[:-1], numbering)
    for name, cells in texts.items():
        column = _spread(values, coded[name])
        again = np.flatnonzero(column.states == UNREADABLE)
        found[name] = _looked_at_again(column, again, name, cells, numbering, log)
        same[again] = False
    columns = {name: found[name] or _none(batch.num_rows) for name in given}
    for name, column in columns.items():
        for row in np.flatnonzero((column.states == GIVEN) & (column.lengths == 0)).tolist():
            log.add(EMPTY_TRAJECTORY, row, name, "expected at least one call, got an empty list")
    return Pair(columns[PREDICTED], columns[REFERENCE], same, numbering.names)


class _Texts(Struct):
    """A column of JSON texts; `json`: as the values of cells are written, so that a text among them has quotes."""

    texts: pa.Array
    json: bool


class _Numbering:
    """Numbers for calls: those that are equal as JSON values get the same one. `names` has the tool of each number."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._by_text: dict[Any, int] = {}
        self._by_key: dict[bytes, int] = {}

    def number(self, texts: Sequence[Any], read: Callable[[list[Any]], Iterable[_Call | None]]) -> Numbers:
        """The number of each call, given as something that `read` makes a call of; -1: it is none."""
        known = self._by_text
        new = [text for text in dict.fromkeys(texts) if text not in known]
        keys, names = self._by_key, self.names
        for text, call in zip(new, read(new), strict=True):
            if call is None or call.tool_name.isspace() or not call.tool_name:
                known[text] = -1
                continue
            if call.tool_input is None:
                call.tool_input = {}
            known[text] = number = keys.setdefault(sorted_json(call), len(names))
            if number == len(names):
                names.append(call.tool_name)
        return np.fromiter(map(known.__getitem__, texts), np.int64, len(texts))


class _Call(Struct, forbid_unknown_fields=True, gc=False):
    """A call as it is read here: a pattern for its name would cost more than all the rest."""

    tool_name: str
    tool_input: dict[str, Any] | None = None


def _finite(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number out of range")
    return int(value) if value.is_integer() else value


_BROKEN = (msgspec.MsgspecError, RecursionError, ValueError)

_split = msgspec.json.Decoder(list[Raw]).decode
_trajectory = msgspec.json.Decoder(list[_Call]).decode
_calls = msgspec.json.Decoder(list[_Call], float_hook=_finite).decode
_call = msgspec.json.Decoder(_Call, float_hook=_finite).decode
_input = msgspec.json.Decoder(dict[str, Any], float_hook=_finite).decode


def _calls_of_texts(texts: list[bytes]) -> Iterable[_Call | None]:
    """Each text is one JSON value, so they can be read as one list."""
    try:
        return _calls(b"[" + b",".join(texts) + b"]")
    except _BROKEN:
        return [_or_none(_call, text) for text in texts]


def _seen(text: Any) -> list[_Call]:
    """The calls of a text of which only the number is wanted. Raises ValueError for a name that is blank."""
    calls = _trajectory(text)
    if not all([call.tool_name.strip() for call in calls]):
        raise ValueError("a call without a name")
    return calls


def _or_none(read: Callable[[Any], Any], text: Any) -> Any:
    try:
        return read(text)
    except _BROKEN:
        return None


def _calls_of_parts(parts: list[tuple[str | None, str | None]]) -> Iterable[_Call | None]:
    for name, given in parts:
        arguments = _or_none(_input, given) if given else {}
        yield None if name is None or arguments is None else _Call(name, arguments)


def _calls_of_keys(keys: list[bytes]) -> Iterable[_Call | None]:
    return [_Call(*jsontext.decode(key)) for key in keys]


def _given(batch: pa.RecordBatch, name: str, log: IssueLog) -> _Texts | None:
    """The column as JSON texts; None if the batch does not have it."""
    at = batch.schema.get_field_index(name)
    if at < 0 or _is_of_calls(batch.column(at).type):
        return None
    array = simplified(batch.column(at))
    if is_text(array.type) and not _is_unreadable(array):
        return _Texts(array.cast(pa.large_string()), is_json_column(batch.schema.field(at)))
    cells = read_cells(batch, name)
    assert cells is not None
    for row, message in cells.unreadable.items():
        log.add(NOT_UTF8, row, name, message)
    return _Texts(pa.array(cells.texts, pa.large_string()), cells.json)


def _is_unreadable(texts: pa.Array) -> bool:
    """Whether some text is not UTF-8, which Arrow does not check."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


def _coded(columns: list[pa.Array]) -> tuple[list[Numbers], pa.Array]:
    """The distinct texts of all columns, and for each column the places of its cells among them (-1: absent)."""
    if not columns:
        return [], pa.array([], pa.large_string())
    encoded = pa.concat_arrays(columns).dictionary_encode()
    places = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
    return np.split(places, np.cumsum([len(c) for c in columns])[:-1]), encoded.dictionary


def _is_of_calls(kind: pa.DataType) -> bool:
    """list<struct<tool_name, tool_input>> with text in both, as normalised files have it: inputs are JSON text."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    call = kind.value_type
    names = {f.name for f in call} if pa.types.is_struct(call) else set()
    return names == {"tool_name", "tool_input"} and all(is_text(f.type) for f in call)


def _from_structs(batch: pa.RecordBatch, name: str, numbering: _Numbering) -> Trajectories | None:
    """A column of that type; None for another one."""
    at = batch.schema.get_field_index(name)
    if at < 0 or not _is_of_calls(batch.column(at).type):
        return None
    array = batch.column(at)
    calls = array.flatten()
    parts = [pc.struct_field(calls, field).to_pylist() for field in ("tool_name", "tool_input")]
    ids = numbering.number(list(zip(*parts, strict=True)), _calls_of_parts)
    lengths = np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
    states = np.where(np.asarray(array.is_null()).astype(bool), ABSENT, GIVEN)
    states[np.repeat(np.arange(len(array)), lengths)[ids < 0]] = UNREADABLE
    return Trajectories(ids, lengths, states)


def _none(rows: int) -> Trajectories:
    return Trajectories(np.empty(0, np.int64), np.zeros(rows, np.int64), np.full(rows, ABSENT))


def _numbered(distinct: pa.Array, wanted: Numbers, numbering: _Numbering) -> Trajectories:
    """The trajectories that texts hold; the calls of those that are not `wanted` have no numbers (-1)."""
    texts = text_views(distinct)
    split: list[list[Any] | None] = [
        _or_none(_split if w else _seen, t) for w, t in zip(wanted.tolist(), texts, strict=True)
    ]
    bad = np.array([calls is None for calls in split], bool)
    lengths = np.fromiter((len(calls or ()) for calls in split), np.int64, len(split))
    of_wanted = chain.from_iterable(c for c, w in zip(split, wanted.tolist(), strict=True) if w and c)
    ids = np.full(int(lengths.sum()), -1, np.int64)
    numbered = np.repeat(wanted, lengths)
    ids[numbered] = numbering.number([bytes(call) for call in of_wanted], _calls_of_texts)
    bad[np.repeat(np.arange(len(split)), lengths)[numbered & (ids < 0)]] = True
    return Trajectories(ids, lengths, np.where(bad, UNREADABLE, GIVEN))


def _spread(values: Trajectories, at: Numbers) -> Trajectories:
    """The trajectories of the rows, which hold the distinct `values` at these places (-1: none)."""
    if not values.size:
        return _none(len(at))
    given = at >= 0
    states = np.where(given, values.states[at], ABSENT)
    lengths = np.where(states == GIVEN, values.lengths[at], 0)
    starts = (np.cumsum(values.lengths) - values.lengths)[at]
    return Trajectories(values.ids[_ranges(starts, lengths)], lengths, states)


def _ranges(starts: Numbers, lengths: Numbers) -> Numbers:
    """start, start + 1 … of each row, one after the other."""
    ends = np.cumsum(lengths)
    found: Numbers = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return found


def _looked_at_again(
    found: Trajectories, rows: Numbers, name: str, cells: _Texts, numbering: _Numbering, log: IssueLog
) -> Trajectories:
    """Rows that failed are decoded by the rules, which say what is wrong; what only earns a warning has its calls."""
    if not len(rows):
        return found
    apart = IssueLog(len(rows))
    values = decode_column(name, Cells(cells.texts.take(pa.array(rows)).to_pylist(), cells.json), apart)
    for i, note in zip(apart.rows, apart.notes, strict=True):
        log.rows.append(int(rows[i]))
        log.notes.append(note)
    log.failed.update(int(rows[i]) for i in apart.failed)
    mended = {int(row): value for row, value in zip(rows, values, strict=True) if value is not FAILED}
    parts = np.split(found.ids, np.cumsum(found.lengths)[:-1])
    for row, calls in mended.items():
        parts[row] = numbering.number([call_key(c) for c in calls], _calls_of_keys)
        found.states[row] = GIVEN
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    return Trajectories(np.concatenate(parts), lengths, found.states)


# ---------------------------------------------------------------------------------------------------------------------
# numbers → scores


def score_pair(pair: Pair, *, one_to_one: bool, define_empty: bool) -> dict[str, Numbers]:
    """The five metrics that compare with a reference, one score a row; NaN where there is none."""
    predicted, reference = pair.predicted, pair.reference
    given = (predicted.states == GIVEN) & (reference.states == GIVEN)
    if not define_empty:
        given &= (predicted.lengths > 0) & (reference.lengths > 0)
    scores = {name: np.where(given, 1.0, np.nan) for name in COMPARED}
    rows = np.flatnonzero(given & ~pair.same)
    if len(rows):
        found = _compare(predicted.of(rows), reference.of(rows), one_to_one)
        for name, values in zip(COMPARED, found, strict=True):
            scores[name][rows] = values
    return scores


COMPARED = (
    "trajectory_exact_match",
    "trajectory_in_order_match",
    "trajectory_any_order_match",
    "trajectory_precision",
    "trajectory_recall",
)


def _compare(predicted: Trajectories, reference: Trajectories, one_to_one: bool) -> tuple[Numbers, ...]:
    p, r = predicted.lengths, reference.lengths
    rows = np.arange(predicted.size)
    base = max(predicted.ids.max(initial=0), reference.ids.max(initial=0)) + 1
    # A call of a row as one number; then how often each stands on either side.
    keys = np.concatenate([np.repeat(rows, p) * base + predicted.ids, np.repeat(rows, r) * base + reference.ids])
    distinct, place = np.unique(keys, return_inverse=True)
    row = distinct // base
    in_p = np.bincount(place[: len(predicted.ids)], minlength=len(distinct))
    in_r = np.bincount(place[len(predicted.ids) :], minlength=len(distinct))

    def total(counts: Numbers) -> Numbers:
        return np.bincount(row, weights=counts, minlength=predicted.size)

    matched = total(np.minimum(in_p, in_r))
    any_order = matched == r
    found_p, found_r = (matched, matched) if one_to_one else (total(in_p * (in_r > 0)), total(in_r * (in_p > 0)))
    precision = np.where(p > 0, found_p / np.maximum(p, 1), r == 0)
    recall = np.where(r > 0, found_r / np.maximum(r, 1), 1.0)
    in_order = _in_order(predicted, reference, any_order)
    return in_order & (p == r), in_order, any_order, precision, recall


def _in_order(predicted: Trajectories, reference: Trajectories, candidates: Numbers) -> Numbers:
    """Which references are subsequences: all rows take a step at once, from one predicted call to the next. As many
    calls in order, and none beside them, is an exact match."""
    starts_p = np.cumsum(predicted.lengths) - predicted.lengths
    starts_r = np.cumsum(reference.lengths) - reference.lengths
    reached = np.zeros(predicted.size, np.int64)
    left = np.flatnonzero(candidates & (reference.lengths > 0))
    step = 0
    while len(left):
        hit = predicted.ids[starts_p[left] + step] == reference.ids[starts_r[left] + reached[left]]
        reached[left[hit]] += 1
        step += 1
        left = left[(reached[left] < reference.lengths[left]) & (step < predicted.lengths[left])]
    found: Numbers = candidates & (reached == reference.lengths)
    return found
