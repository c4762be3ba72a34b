"""The trajectory metrics on a whole batch of rows: calls become numbers, and numbers are compared in numpy.

    cells    '[{"tool_name": "a", …}, …]'   ──equal as text──▶  scores 1, no call is compared
                    │ otherwise                                  ids      0 0 1 │ 2 0 │ …
                    └──▶ texts of calls ──number──▶              lengths  3     │ 2   │ …

A text is only read once where texts stand in many rows of the batch (trajectory_cells.py), and an input is only decoded
where its text does not say enough (call_numbers.py). The metrics are those of trajectory.py, which is the definition;
this is how a million rows are scored.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from agent_eval_schema.issues import IssueLog
from agent_eval_schema.metrics.call_numbers import (
    ABSENT,
    GIVEN,
    UNREADABLE,
    Numbered,
    Numbers,
    Trajectories,
    distinct,
    settled,
)
from agent_eval_schema.metrics.trajectory_cells import Calls, Texts, Tools, joined, looked_at_again, of_texts, opened
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


# ---------------------------------------------------------------------------------------------------------------------
# cells → numbers


def read_pair(batch: pa.RecordBatch, log: IssueLog, *, names: bool = False) -> Pair:
    """The trajectories of a batch with the canonical columns (either may be missing). What cannot be read, and what is
    empty, is logged. The calls of two trajectories that are equal as text have no numbers, unless `names` are wanted.
    """
    tools = Tools()
    columns = {name: opened(batch, name, tools, log) for name in (PREDICTED, REFERENCE)}
    texts = {name: column for name, column in columns.items() if isinstance(column, Texts)}
    coded, to_read = _coded([column.texts for column in texts.values()])
    at = {name: np.full(batch.num_rows, -1) for name in columns} | dict(zip(texts, coded, strict=True))
    same = (at[PREDICTED] == at[REFERENCE]) & (at[PREDICTED] >= 0)
    wanted = np.zeros(sum(map(len, to_read)) + 1, bool)  # the last one is for -1, the absent cells
    for places in coded:
        wanted[places[~same | names]] = True
    parts = [of_texts(to_read, wanted[:-1], tools)]
    unreadable = np.append(parts[0].states == UNREADABLE, False)
    for name, column in columns.items():
        rows = np.flatnonzero(unreadable[at[name]]) if isinstance(column, Texts) else np.arange(batch.num_rows)
        if column is None or not len(rows):
            continue
        at[name][rows] = sum(part.size for part in parts) + np.arange(len(rows))
        parts.append(looked_at_again(rows, name, column, tools, log) if isinstance(column, Texts) else column)
        same[rows] = False
    values, calls = _numbered(joined(parts))
    predicted, reference = (_spread(values, places) for places in at.values())
    for name, found in ((PREDICTED, predicted), (REFERENCE, reference)):
        for row in np.flatnonzero((found.states == GIVEN) & (found.lengths == 0)).tolist():
            log.add(EMPTY_TRAJECTORY, row, name, "expected at least one call, got an empty list")
    _settle(predicted, reference, np.flatnonzero(~same), calls)
    return Pair(predicted, reference, same, calls.tools, list(tools))


def _coded(columns: list[pa.Array]) -> tuple[list[Numbers], list[pa.Array]]:
    """The places of the cells of each column among the texts to read (-1: absent), and these texts. What is equal in a
    row is read once; what is equal in several rows, too, if there is much of it: to find it takes time."""
    if not any(map(_repeats, columns)):
        return _coded_by_row(columns)
    encoded = pa.concat_arrays(columns).dictionary_encode()
    places = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
    return np.split(places, len(columns)), [encoded.dictionary]


def _coded_by_row(columns: list[pa.Array]) -> tuple[list[Numbers], list[pa.Array]]:
    found: list[Numbers] = []
    to_read: list[pa.Array] = []
    for column in columns:
        same = np.asarray(pc.equal(columns[0], column).fill_null(False)) & (len(found) > 0)
        read = np.asarray(column.is_valid()) & ~same
        places = np.where(read, np.cumsum(read) - 1 + sum(map(len, to_read)), -1)
        found.append(np.where(same, found[0], places) if found else places)
        to_read.append(column.filter(pa.array(read)))
    return found, to_read


SAMPLE = 512


def _repeats(texts: pa.Array) -> bool:
    """Whether there are many that stand in several rows: a look at some. (Where every text stands twice in a large
    batch, one in thirty does in the sample.)"""
    chosen = np.random.default_rng(0).permutation(len(texts))[:SAMPLE]
    some = texts.take(pa.array(np.sort(chosen))).drop_null()
    return len(some.unique()) < 0.98 * len(some)


def _numbered(read: Calls) -> tuple[Trajectories, Numbered]:
    """The trajectories with numbers for the calls that are here, and -1 for the others."""
    numbers = np.asarray(read.texts.indices)
    ids = np.full(int(read.lengths.sum()), -1)
    ids[np.repeat(read.here, read.lengths)] = numbers
    tools = np.full(len(read.texts.dictionary), -1)
    tools[numbers] = read.tools
    return Trajectories(ids, read.lengths, read.states), Numbered(tools, read.texts.dictionary)


def _spread(values: Trajectories, at: Numbers) -> Trajectories:
    """The trajectories of the rows, which hold the `values` at these places (-1: none)."""
    if not values.size:
        return Trajectories(np.empty(0, np.int64), np.zeros(len(at), np.int64), np.full(len(at), ABSENT))
    states = np.where(at >= 0, values.states[at], ABSENT)
    lengths = np.where(states == GIVEN, values.lengths[at], 0)
    return Trajectories(values.ids[_ranges(values.starts[at], lengths)], lengths, states)


def _ranges(starts: Numbers, lengths: Numbers) -> Numbers:
    """start, start + 1 … of each row, one after the other."""
    ends = np.cumsum(lengths)
    found: Numbers = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return found


def _settle(predicted: Trajectories, reference: Trajectories, rows: Numbers, calls: Numbered) -> None:
    """One number for calls of these rows that are equal, though their texts are not."""
    instead = settled(predicted.of(rows), reference.of(rows), calls)
    predicted.ids, reference.ids = instead[predicted.ids], instead[reference.ids]


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
    called, place = distinct(keys)
    row = called // base
    in_p = np.bincount(place[: len(predicted.ids)], minlength=len(called))
    in_r = np.bincount(place[len(predicted.ids) :], minlength=len(called))

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
