"""The trajectory metrics on a whole batch of rows: calls become numbers, and numbers are compared in numpy.

    cells    '[{"tool_name": "a", …}, …]'   ──equal as text──▶  scores 1, no call is compared
                    │ otherwise                                  ids      0 0 1 │ 2 0 │ …
                    └──▶ texts of calls ──number──▶              lengths  3     │ 2   │ …

A text is only read once where texts occur in many rows of the batch (texts.py), and an input is only decoded where
its text does not say enough (numbers.py). Rows of like length are scored at once. The metrics are those of
trajectory.py, which is the definition; this is how a million rows are scored.
"""

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.metrics.batch.numbers import (
    ABSENT,
    GIVEN,
    UNREADABLE_CALLS,
    Numbers,
    Trajectories,
    alike,
    longer,
    matches,
    renumbered,
)
from agent_eval_schema.metrics.batch.texts import (
    CallBatch,
    CallTexts,
    Tools,
    decoded_again,
    joined,
    of_texts,
    trajectory_column,
)
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS
from agent_eval_schema.rules.tools import EMPTY_TRAJECTORY

PREDICTED, REFERENCE = "predicted_trajectory", "reference_trajectory"


class Pair(Struct):
    """The two columns, numbered together, the rows whose trajectories are equal as text (their calls may be without
    numbers), the tool of each number, and the names of the tools.

    Numbers say which calls of a row's two trajectories are equal; across rows only what is equal as text has the same.
    """

    predicted: Trajectories
    reference: Trajectories
    same: Numbers
    tools: Numbers
    names: list[str]


# --- cells → numbers
def read_pair(batch: pa.RecordBatch, log: IssueLog, *, names: bool = False, by_name: bool = False) -> Pair:
    """The trajectories of a batch with the canonical columns (either may be missing). Unreadable and empty cells are
    logged. The calls of two trajectories that are equal as text have no numbers, unless `names` are wanted. If calls
    are compared `by_name`, the number of a call is that of its tool.
    """
    tools = Tools()
    columns = {name: trajectory_column(batch, name, tools, log) for name in (PREDICTED, REFERENCE)}
    texts = {name: column for name, column in columns.items() if isinstance(column, CallTexts)}
    coded, to_read = _coded([column.texts for column in texts.values()])
    at = {name: np.full(batch.num_rows, -1) for name in columns} | dict(zip(texts, coded, strict=True))
    same = (at[PREDICTED] == at[REFERENCE]) & (at[PREDICTED] >= 0)
    wanted = np.zeros(sum(map(len, to_read)) + 1, bool)  # the last one is for -1, the absent cells
    for places in coded:
        wanted[places[~same | names]] = True
    parts = [of_texts(to_read, wanted[:-1], tools)]
    unreadable = np.append(parts[0].states == UNREADABLE_CALLS, False)
    for name, column in columns.items():
        rows = np.flatnonzero(unreadable[at[name]]) if isinstance(column, CallTexts) else np.arange(batch.num_rows)
        if column is None or not len(rows):
            continue
        at[name][rows] = sum(part.size for part in parts) + np.arange(len(rows))
        parts.append(decoded_again(rows, name, column, tools, log) if isinstance(column, CallTexts) else column)
        same[rows] = False
    calls = joined(parts)
    predicted, reference = (_placed(calls, places) for places in at.values())
    for name, found in ((PREDICTED, predicted), (REFERENCE, reference)):
        for row in np.flatnonzero((found.states == GIVEN) & (found.lengths == 0)).tolist():
            log.add(EMPTY_TRAJECTORY, row, name, "expected at least one call, got an empty list")
    if by_name:
        predicted.ids = reference.ids = calls.tools[calls.ids]
        return Pair(predicted, reference, same, np.append(np.arange(len(tools)), -1), list(tools))
    instead = renumbered(predicted, reference, np.flatnonzero(~same), calls.texts, calls.tools)
    predicted.ids = reference.ids = instead[calls.ids]
    return Pair(predicted, reference, same, calls.tools, list(tools))


def _placed(calls: CallBatch, at: Numbers) -> Trajectories:
    """The trajectories of the rows, which are those at these places (-1: none)."""
    if not calls.size:
        none = np.zeros(len(at), np.int64)
        return Trajectories(calls.ids, none, none, np.full(len(at), ABSENT))
    states = np.where(at >= 0, calls.states[at], ABSENT)
    return Trajectories(calls.ids, calls.starts[at], np.where(states == GIVEN, calls.lengths[at], 0), states)


def _coded(columns: list[pa.Array]) -> tuple[list[Numbers], list[pa.Array]]:
    """The places of the cells of each column among the texts to read (-1: absent), and these texts. Equal texts of a
    row are read once; equal texts of several rows, too, if there are many: finding them takes time."""
    if not any(map(_repeats, columns)):
        found: list[Numbers] = []
        to_read: list[pa.Array] = []
        for column in columns:
            same = np.asarray(pc.equal(columns[0], column).fill_null(False)) & (len(found) > 0)
            read = np.asarray(column.is_valid()) & ~same
            places = np.where(read, np.cumsum(read) - 1 + sum(map(len, to_read)), -1)
            found.append(np.where(same, found[0], places) if found else places)
            to_read.append(column if read.all() else column.filter(pa.array(read)))
        return found, to_read
    encoded = pa.concat_arrays(columns).dictionary_encode()
    places = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
    return np.split(places, len(columns)), [encoded.dictionary]


SAMPLE = 512


def _repeats(texts: pa.Array) -> bool:
    """Whether many texts occur in several rows, by a sample: if every text occurs twice, one in thirty of it does."""
    some = texts.take(_sample(len(texts))).drop_null()
    return len(some.unique()) < 0.98 * len(some)


@lru_cache(maxsize=8)
def _sample(size: int) -> pa.Array:
    return pa.array(np.sort(np.random.default_rng(0).permutation(size)[:SAMPLE]))


# --- numbers → scores
def score_pair(pair: Pair, *, one_to_one: bool, define_empty: bool) -> dict[str, Numbers]:
    """The five metrics that compare with a reference, one score per row; NaN where there is none."""
    predicted, reference = pair.predicted, pair.reference
    has_both = (predicted.states == GIVEN) & (reference.states == GIVEN)
    if not define_empty:
        has_both &= (predicted.lengths > 0) & (reference.lengths > 0)
    scores = {name: np.where(has_both, 1.0, np.nan) for name in TRAJECTORY_METRICS}
    rows = np.flatnonzero(has_both & ~pair.same)
    for some in alike(rows, predicted, reference):
        found = _compared(predicted, reference, some, one_to_one)
        for name, values in zip(TRAJECTORY_METRICS, found, strict=True):
            scores[name][some] = values
    for row in longer(rows, predicted, reference).tolist():
        ids = predicted.of(row).tolist(), reference.of(row).tolist()
        for name, metric in TRAJECTORY_METRICS.items():
            scores[name][row] = metric(*ids, one_to_one)
    return scores


def _compared(predicted: Trajectories, reference: Trajectories, rows: Numbers, one_to_one: bool) -> tuple[Numbers, ...]:
    """The scores of these rows, in the order of TRAJECTORY_METRICS: every call of a row with every other one."""
    p, r = predicted.lengths[rows], reference.lengths[rows]
    steps_p, steps_r = predicted.steps(rows, -1), reference.steps(rows, -2)
    matched, equal = matches(steps_p, steps_r), steps_p[:, None] == steps_r
    found_p, found_r = (matched, matched) if one_to_one else (equal.any(axis=i).sum(axis=0) for i in (1, 0))
    precision = np.where(p > 0, found_p / np.maximum(p, 1), r == 0)
    recall = np.where(r > 0, found_r / np.maximum(r, 1), 1.0)
    in_order = _in_order(steps_p, steps_r) == r
    return in_order & (p == r), in_order, matched == r, precision, recall


def _in_order(predicted: Numbers, reference: Numbers) -> Numbers:
    """How many calls of each reference come in their order: all rows take a step at once, from one predicted call to
    the next. As many calls in order, and no others, are an exact match."""
    ended = np.vstack([reference, np.full(reference.shape[1:], -2, reference.dtype)])
    rows, reached = np.arange(reference.shape[1]), np.zeros(reference.shape[1], np.int64)
    for calls in predicted:
        reached += ended[reached, rows] == calls
    return reached
