"""The trajectory metrics of a batch of rows: the cells of both columns → calls → one score per row and metric.

    JSON text                  ──one typed decode──▶ calls     │ what fails: decoding/, which reports each problem
    list<struct<name, input>>  ──▶ JSON text ──────▶ calls     │ likewise

The metrics are those of trajectory.py. Two cells with the same text score 1, and their calls are not compared.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from agent_eval_schema.cells.arrow import is_text, present
from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.columns import decode_column
from agent_eval_schema.decoding.values import FAILED, Values
from agent_eval_schema.metrics.intervals import Numbers
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS, Ids, Match, Pair, comparison
from agent_eval_schema.rules.reading import NOT_UTF8
from agent_eval_schema.rules.tools import EMPTY_TRAJECTORY
from agent_eval_schema.schema import OTHER_KEYS
from agent_eval_schema.text import jsontext

PREDICTED, REFERENCE = "predicted_trajectory", "reference_trajectory"

GIVEN, ABSENT, UNREADABLE_CALLS = 0, 1, 2
"""What there is of a trajectory."""


class Trajectories(Struct):
    """A column of trajectories: the text and the calls of each row, how many calls it has, and what there is of it
    (GIVEN, ABSENT or UNREADABLE_CALLS; the latter two have no calls)."""

    texts: Sequence[str | None]
    calls: Values
    lengths: Numbers
    states: Numbers


class SessionCalls:
    """The calls of one session so far, through the parts of a source: what a format compares with the expected calls of
    a session (`Format.calls_of`)."""

    def __init__(self) -> None:
        self._session, self._calls, self._state = 0, list[Any](), GIVEN

    def joined(self, predicted: Trajectories, reference: Trajectories, sessions: Numbers) -> Trajectories:
        """The predicted calls; on a row with expected calls those of its session up to it, if all turns have some."""
        texts, calls, states = list(predicted.texts), list(predicted.calls), predicted.states.copy()
        for row, session in enumerate(sessions.tolist()):
            if session != self._session or not session:
                self._session, self._calls, self._state = session, [], GIVEN
            self._calls += calls[row] if states[row] == GIVEN else ()
            self._state = max(self._state, int(states[row]))
            if reference.states[row] != ABSENT:
                texts[row], calls[row], states[row] = None, self._calls, self._state
                self._session = 0
        lengths = [len(c) if state == GIVEN else 0 for c, state in zip(calls, states, strict=True)]
        return Trajectories(texts, calls, np.array(lengths, np.int64), states)


class _Call(Struct, forbid_unknown_fields=True, gc=False, omit_defaults=True):
    """A ToolCall as it is decoded here: the pattern of the name takes more time than all the rest, so names are
    checked once each."""

    tool_name: str
    tool_input: dict[str, Any] = {}


def _finite(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number out of range")
    return int(value) if value.is_integer() else value


_decode = msgspec.json.Decoder(list[_Call], float_hook=_finite).decode
"""Calls, with whole numbers as such: 1.0 is 1."""


# --- cells → calls
def read_trajectories(
    batch: pa.RecordBatch, name: str, log: IssueLog, like: Trajectories | None = None
) -> Trajectories:
    """The column of a batch, which may lack it. Unreadable and empty cells are logged. A text that another column
    (`like`) has without an issue is not decoded again."""
    cells = _read_structs(batch, name) or read_cells(batch, name) or Cells(True, [None] * batch.num_rows)
    for row, message in cells.unreadable.items():
        log.add(NOT_UTF8, row, name, message)
    noted, cells_like = set(log.rows), () if like is None else zip(like.texts, like.calls, strict=True)
    known = {text: value for row, (text, value) in enumerate(cells_like) if row not in noted and value is not FAILED}
    calls = _decoded(cells, known)
    if failed := [row for row, value in enumerate(calls) if value is FAILED]:
        second = _second_look(name, read_cells(batch, name) or cells, failed, log)
        calls = [second.get(row, value) for row, value in enumerate(calls)]
    states = np.array([UNREADABLE_CALLS if c is FAILED else ABSENT if c is None else GIVEN for c in calls], np.int64)
    lengths = np.array([len(c) if isinstance(c, list) else 0 for c in calls], np.int64)
    for row in np.flatnonzero((states == GIVEN) & (lengths == 0)).tolist():
        log.add(EMPTY_TRAJECTORY, row, name, "expected at least one call, got an empty list")
    return Trajectories(cells.texts, calls, lengths, states)


def _second_look(name: str, cells: Cells, rows: list[int], log: IssueLog) -> dict[int, Any]:
    """The calls of these rows by decoding/, which logs their problems; a cell with only warnings has its calls."""
    apart = IssueLog(len(rows))
    values = decode_column(name, Cells(cells.json, [cells.texts[row] for row in rows], deep=cells.deep), apart)
    log.extend(apart, rows)
    return {
        row: v if v is FAILED else _decode(jsontext.encode([_Call(c.tool_name, c.tool_input or {}) for c in v]))
        for row, v in zip(rows, values, strict=True)
    }


def _decoded(cells: Cells, known: dict[str | None, Any]) -> Values:
    """The calls of each cell, None where it is absent, and FAILED where it is not what `_decode` takes."""
    if cells.deep:
        return [None if text is None else FAILED for text in cells.texts]
    try:
        calls: Values = [None if text is None else known.get(text) or _decode(text) for text in cells.texts]
    except ValueError:
        calls = [None if text is None else _or_failed(text) for text in cells.texts]
    names = set(map(attrgetter("tool_name"), chain.from_iterable([c for c in calls if c.__class__ is list])))
    if blank := {name for name in names if not name.strip()}:
        return [FAILED if isinstance(c, list) and not blank.isdisjoint(x.tool_name for x in c) else c for c in calls]
    return calls


def _or_failed(text: str) -> Any:
    try:
        return _decode(text)
    except ValueError:
        return FAILED


def _read_structs(batch: pa.RecordBatch, name: str) -> Cells | None:
    """The cells of list<struct<tool_name, tool_input>> as in normalized files, whose inputs are JSON texts; None of
    other columns. Arrow puts the texts together in a tenth of the time that Python's values take."""
    at = batch.schema.get_field_index(name)
    kind = batch.schema.types[at] if at >= 0 else pa.null()
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return None
    of_call = {field.name: is_text(field.type) for field in kind.value_type if field.name != OTHER_KEYS}
    if of_call != {"tool_name": True, "tool_input": True}:
        return None
    array = batch.column(at)
    calls = array.flatten()
    names, inputs = (pc.struct_field(calls, field).cast(pa.large_string()) for field in of_call)
    encoded = names.fill_null("").dictionary_encode()
    quoted = pa.array([jsontext.encode_text(name) for name in encoded.dictionary.to_pylist()], pa.large_string())
    parts = ('{"tool_name":', quoted.take(encoded.indices), ',"tool_input":', inputs.fill_null("{}"), "}", "")
    texts = pc.binary_join_element_wise(*(pa.scalar(p, pa.large_string()) if isinstance(p, str) else p for p in parts))
    ends = np.cumsum(np.asarray(pc.list_value_length(array).fill_null(0)), dtype=np.int64)
    lists = pa.LargeListArray.from_arrays(np.append(0, ends), texts)
    joined = zip(pc.binary_join(lists, pa.scalar(",", texts.type)).to_pylist(), present(array), strict=True)
    return Cells(True, [f"[{text}]" if is_given else None for text, is_given in joined])


# --- calls → scores
def _as_lines(pair: Pair) -> list[Ids]:
    """Both trajectories, each call as its JSON text with the keys in order."""
    return [jsontext.encode_sorted_lines(calls).split(b"\n")[:-1] for calls in pair]


def score_pair(
    predicted: Trajectories,
    reference: Trajectories,
    *,
    metrics: Iterable[str] = TRAJECTORY_METRICS,
    one_to_one: bool,
    define_empty: bool,
    match: Match = "call",
) -> dict[str, Numbers]:
    """Metrics that compare with a reference, one score per row; NaN where there is none."""
    has_both = (predicted.states == GIVEN) & (reference.states == GIVEN)
    if not define_empty:
        has_both &= (predicted.lengths > 0) & (reference.lengths > 0)
    scores = {name: np.where(has_both, 1.0, np.nan) for name in metrics}
    cells = zip(has_both, predicted.texts, reference.texts, strict=True)
    rows = [row for row, (are_given, one, other) in enumerate(cells) if are_given and one != other]
    as_ids = _as_lines if match == "call" else comparison(match)
    ids = [as_ids((predicted.calls[row], reference.calls[row])) for row in rows]
    for name, column in scores.items():
        metric = TRAJECTORY_METRICS[name]
        column[rows] = [metric(called, wanted, one_to_one) for called, wanted in ids]
    return scores
