"""Two sides → every number of a comparison, from hashes alone; then the DiffSummary, with the values of few rows.

Pairs ─┬─ fields      the pairs in which a column's hashes differ
       ├─ findings    the codes that a pair has on one side only
       └─ metrics     the pairs that support a metric on one side only

A row is known by one of several keys, the surest first; each key is tried on the rows that the keys before it left:

    its request_id, with the rest of the row, else with all its inputs, else alone
    the whole rest of the row, else all inputs, else the request     IDs that are missing, or were replaced

Where several rows have the same key, the n-th is taken for the n-th. Every row is in one pair or in none.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.decoding.requests import last_user_text
from agent_eval_schema.diff.diff_blocks import (
    EXAMPLES_KEPT,
    CellChange,
    DatasetSummary,
    DiffPlace,
    DiffSummary,
    FieldChange,
    IssueChange,
    MetricChange,
    MetricRow,
)
from agent_eval_schema.diff.snapshot import CODE_BITS, ORIGINAL_LINE, Snapshot, all_codes, mixed
from agent_eval_schema.issues import Issue
from agent_eval_schema.metrics.catalog import COMMON, Metric
from agent_eval_schema.metrics.support import find_metric, metrics_of, missing_needs, need_words
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import truncate
from agent_eval_schema.text.edits import edits
from agent_eval_schema.text.jsontext import encode_text
from agent_eval_schema.validation.report import Report, run_of

CODE_MASK = np.int64((1 << int(CODE_BITS)) - 1)
"""The bits of a finding that are its code."""


class IssueSet(NamedTuple):
    """Findings of rows (see CODE_BITS), and those on the dataset as a whole: (code, column)."""

    rows: Array
    overall: set[tuple[str, str | None]]

    def by_code(self) -> Array:
        """How many there are of each code, in the order of `all_codes`."""
        counts = np.bincount(self.rows & CODE_MASK, minlength=len(codes := all_codes()))
        for code, _ in self.overall:
            counts[codes.index(code)] += 1
        return counts


class Comparison:
    """What differs between two sides. Rows that are on both are spoken of as pairs: places in `pairs`."""

    def __init__(self, old: Snapshot, new: Snapshot) -> None:
        self._old, self._new = old, new
        self._pairs = match(old.keys(), new.keys())
        differing = {
            name: np.flatnonzero(old.hash(name)[self._pairs.old] != new.hash(name)[self._pairs.new])
            for name in _in_order({*old.hashes, *new.hashes})
        }
        self._fields = {name: pairs for name, pairs in differing.items() if len(pairs)}
        """For each field the pairs in which it differs."""

    # rows

    @property
    def same(self) -> bool:
        """Whether the versions have no difference.

        Returns
        -------
        bool
            True if at most the order of the rows differs.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> chat = {"messages": [{"role": "user", "content": "Hi"}]}
        >>> diff_eval_sets(old, [{"request": chat, "response": "Hello!"}]).same
        True
        """
        rows = any(self._counts[what] for what in ("added", "removed", "changed"))
        verdicts = bool(self._issues) or any(not metric.same for metric in self._metrics)
        return not (rows or verdicts or self.columns_added or self.columns_dropped)

    @property
    def losses(self) -> bool:
        """Whether the new version lost a row, a valid row or the support of a metric.

        Returns
        -------
        bool
            True if a row was removed or became invalid, or no longer supports a metric.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> diff_eval_sets(old, [{"request": "Bye", "response": "Bye!"}]).losses
        True
        """
        return any(self._counts[what] for what in ("removed", "became_invalid", "lost_a_metric"))

    @cached_property
    def _counts(self) -> dict[str, int]:
        """How many rows: old = matched + removed, new = matched + added, matched = changed + unchanged. `moved` is how
        few of the matched rows must be moved to get from one order to the other; the last four, too, are matched."""
        matched = len(self._pairs.old)
        changed = len(np.unique(np.concatenate([np.zeros(0, np.int64), *self._fields.values()])))
        gains, losses = np.zeros(matched, bool), np.zeros(matched, bool)
        for metric in (m for system in COMMON for m in metrics_of(system)):
            now, no_longer = self._changed_support(metric)
            gains |= now
            losses |= no_longer
        return {
            "old": self._old.row_count,
            "new": self._new.row_count,
            "matched": matched,
            "added": len(self._pairs.added),
            "removed": len(self._pairs.removed),
            "changed": changed,
            "unchanged": matched - changed,
            "moved": moved_rows(self._pairs.old),
            "became_invalid": len(self._became(valid=False)),
            "became_valid": len(self._became(valid=True)),
            "gained_a_metric": int(gains.sum()),
            "lost_a_metric": int(losses.sum()),
        }

    def _became(self, *, valid: bool) -> Array:
        """The pairs that became valid, or invalid."""
        before, after = self._old.valid[self._pairs.old], self._new.valid[self._pairs.new]
        return np.flatnonzero((before != after) & (after == valid))

    # columns and fields

    @property
    def columns_added(self) -> tuple[str, ...]:
        """The columns with a value in the new version only.

        Returns
        -------
        tuple of str
            The names, in the order of the new version.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> diff_eval_sets(old, [{"request": "Hi", "response": "Hello!", "team": "docs"}]).columns_added
        ('team',)
        """
        return _in_order(self._new.hashes.keys() - self._old.hashes.keys() - {ORIGINAL_LINE})

    @property
    def columns_dropped(self) -> tuple[str, ...]:
        """The columns with a value in the old version only.

        Returns
        -------
        tuple of str
            The names, in the order of the old version.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> new = [{"request": "Hi", "response": "Hello!"}]
        >>> diff_eval_sets([{"request": "Hi", "response": "Hello!", "team": "docs"}], new).columns_dropped
        ('team',)
        """
        return _in_order(self._old.hashes.keys() - self._new.hashes.keys() - {ORIGINAL_LINE})

    # issues

    @cached_property
    def _gained(self) -> IssueSet:
        """The findings of the new side whose pair, or whose dataset, did not have the code."""
        return _only_in_first(self._new, self._pairs.new, self._old, self._pairs.old)

    @cached_property
    def _lost(self) -> IssueSet:
        """The findings of the old side whose pair, or whose dataset, no longer has the code."""
        return _only_in_first(self._old, self._pairs.old, self._new, self._pairs.new)

    @cached_property
    def _issues(self) -> list[IssueChange]:
        """A line a code that some row has on one side only, errors first."""
        old, new = (IssueSet(side.findings, side.overall) for side in (self._old, self._new))
        added, removed = (
            IssueSet(side.findings[np.isin(side.findings >> CODE_BITS, rows)], set())
            for side, rows in ((self._new, self._pairs.added), (self._old, self._pairs.removed))
        )
        # in the order of the fields of a line
        counts = (issues.by_code().tolist() for issues in (old, new, self._gained, self._lost, added, removed))
        counted = zip(all_codes(), *counts, strict=True)
        lines = [IssueChange(code, RULES[code].name, RULES[code].severity, *numbers) for code, *numbers in counted]
        order = list(Severity)
        differing = [line for line in lines if line.gained or line.lost or line.on_added or line.on_removed]
        return sorted(differing, key=lambda line: (order.index(line.severity), line.code))

    # metrics

    def _changed_support(self, metric: Metric) -> tuple[Array, Array]:
        """For each pair whether it gained the metric, and whether it lost it."""
        before, after = self._old.supports(metric)[self._pairs.old], self._new.supports(metric)[self._pairs.new]
        return after & ~before, before & ~after

    @cached_property
    def _metrics(self) -> list[MetricChange]:
        lines = []
        for metric in metrics_of("all"):
            old, new = self._old.supports(metric), self._new.supports(metric)
            gains, losses = self._changed_support(metric)
            line = MetricChange(
                metric.system,
                metric.name,
                old=int(old.sum()),
                old_rows=len(old),
                new=int(new.sum()),
                new_rows=len(new),
                gained=int(gains.sum()),
                lost=int(losses.sum()),
                on_added=int(new[self._pairs.added].sum()),
                on_removed=int(old[self._pairs.removed].sum()),
            )
            lines.append(line)
        return lines


def _only_in_first(one: Snapshot, ones: Array, other: Snapshot, others: Array) -> IssueSet:
    """The findings of one side whose pair does not have them on the other, and those on all of its data."""
    of_pairs = []  # the findings of the rows that are in pairs, with the number of the pair for the row
    for side, rows in ((one, ones), (other, others)):
        pair_of = np.full(side.row_count, -1)
        pair_of[rows] = np.arange(len(rows))
        pairs = pair_of[side.findings >> CODE_BITS]
        of_pairs.append(((pairs << CODE_BITS) | (side.findings & CODE_MASK))[pairs >= 0])
    findings = np.setdiff1d(of_pairs[0], of_pairs[1], assume_unique=True)
    return IssueSet((ones[findings >> CODE_BITS] << CODE_BITS) | (findings & CODE_MASK), one.overall - other.overall)


def _in_order(names: set[str]) -> tuple[str, ...]:
    """Our columns in the order of the schema, then the others by name."""
    return (*(n for n in COLUMNS if n in names), *sorted(names.difference(COLUMNS)))


class Pairs(NamedTuple):
    """The rows that are on both sides (`old[i]` is `new[i]`, in the order of the new), and those that are on one."""

    old: Array
    new: Array
    removed: Array
    added: Array


def match(old: Sequence[Array], new: Sequence[Array]) -> Pairs:
    """Pair the rows of two sides by their keys: of equal keys the n-th on one side with the n-th on the other."""
    old_left, new_left = np.arange(len(old[0])), np.arange(len(new[0]))
    pairs = []
    for old_keys, new_keys in zip(old, new, strict=True):
        keys = old_keys[old_left], new_keys[new_left]
        old_at, new_at = map(np.flatnonzero, keys)
        olds, news = _numbered(keys[0][old_at]), _numbered(keys[1][new_at])
        _, a, b = np.intersect1d(olds, news, assume_unique=True, return_indices=True)
        old_at, new_at = old_at[a], new_at[b]
        pairs.append((old_left[old_at], new_left[new_at]))
        old_left, new_left = np.delete(old_left, old_at), np.delete(new_left, new_at)
    old_rows, new_rows = (np.concatenate(side) for side in zip(*pairs, strict=True))
    order = np.argsort(new_rows)
    return Pairs(old_rows[order], new_rows[order], old_left, new_left)


def _numbered(keys: Array) -> Array:
    """Each key mixed with the number of its earlier occurrences: all are distinct."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(keys)]
    places = np.arange(len(keys))
    times = np.empty(len(keys), np.uint64)
    times[order] = (places - np.maximum.accumulate(np.where(first, places, 0))).astype(np.uint64)
    return mixed(mixed(keys) + times)


def moved_rows(old: Array) -> int:
    """How few of the paired rows must be moved to get from the old order to the new one."""
    if bool(np.all(old[1:] > old[:-1])):
        return 0
    # the longest run that rises needs no move: tails[n] is the least end of such a run of n + 1 rows
    tails: list[int] = []
    for row in old.tolist():
        at = bisect_left(tails, row)
        tails[at : at + 1] = [row]
    return len(old) - len(tails)


# --- examples: each side is read once more, and of it only the rows that are shown
ASKS = 80
"""Characters of a request by which a row is named."""

NAMING = ("request_id", "request", ORIGINAL_LINE)
"""The fields of a row that name it."""

CellValues = dict[str, dict[int, Any]]


def question_of(values: CellValues, row: int) -> str | None:
    """The request of a row, or the value in its place; from the columns NAMING."""
    request = values["request"][row]
    if isinstance(request, dict) and isinstance(request.get("messages"), list):
        messages = [m for m in request["messages"] if isinstance(m, dict)]
        return last_user_text(messages) or encode_text(request)
    if request is None:
        line: str | None = values[ORIGINAL_LINE][row]
        return line
    return request if isinstance(request, str) else encode_text(request)


def issues_among(snapshot: Snapshot, findings: IssueSet) -> Iterator[Issue]:
    """The issues of a snapshot that belong to findings."""
    wanted = set(findings.rows.tolist())
    if not wanted and not findings.overall:
        return
    codes = all_codes()
    for issue in snapshot.report.iter_issues():
        if issue.row is None:
            belongs = (issue.code, issue.column) in findings.overall
        else:
            belongs = (issue.row << int(CODE_BITS)) | codes.index(issue.code) in wanted
        if belongs:
            yield issue


class Summarizer:
    """What there is to see of a comparison, with at most 20 examples of a kind."""

    def __init__(self, comparison: Comparison) -> None:
        self._all = comparison
        self._pairs = comparison._pairs
        self._fields = {name: pairs[:EXAMPLES_KEPT] for name, pairs in comparison._fields.items()}
        self._invalid, self._valid = (comparison._became(valid=valid)[:EXAMPLES_KEPT] for valid in (False, True))
        changes = {metric.name: comparison._changed_support(metric) for metric in metrics_of("all")}
        self._support = {n: [np.flatnonzero(is_so)[:EXAMPLES_KEPT] for is_so in both] for n, both in changes.items()}
        supporting = [pairs for both in self._support.values() for pairs in both]
        pairs = np.unique(np.concatenate([*self._fields.values(), self._invalid, self._valid, *supporting]))
        self._before = self._read_cells(comparison._old, self._pairs.old, pairs, self._pairs.removed[:EXAMPLES_KEPT])
        self._after = self._read_cells(comparison._new, self._pairs.new, pairs, self._pairs.added[:EXAMPLES_KEPT])

    def _read_cells(self, snapshot: Snapshot, rows: Array, pairs: Array, alone: Array) -> CellValues:
        named = np.concatenate([rows[pairs], alone])
        return snapshot.read({**{name: rows[at] for name, at in self._fields.items()}, **dict.fromkeys(NAMING, named)})

    def summary(self) -> DiffSummary:
        whole = self._all
        gains, losses = _first_issues(whole._new, whole._gained), _first_issues(whole._old, whole._lost)
        return DiffSummary(
            same=whole.same,
            losses=whole.losses,
            old=_summary(whole._old.report),
            new=_summary(whole._new.report),
            rows=whole._counts,
            columns_added=whole.columns_added,
            columns_dropped=whole.columns_dropped,
            added=tuple(self._place(None, row) for row in self._pairs.added[:EXAMPLES_KEPT].tolist()),
            removed=tuple(self._place(row, None) for row in self._pairs.removed[:EXAMPLES_KEPT].tolist()),
            became_invalid=tuple(map(self._pair, self._invalid.tolist())),
            became_valid=tuple(map(self._pair, self._valid.tolist())),
            fields=tuple(
                FieldChange(name, len(whole._fields[name]), tuple(self._change(name, pair) for pair in pairs.tolist()))
                for name, pairs in self._fields.items()
            ),
            issues=tuple(
                replace(line, gained_examples=gains.get(line.code, ()), lost_examples=losses.get(line.code, ()))
                for line in whole._issues
            ),
            metrics=tuple(map(self._metric, whole._metrics)),
        )

    def _pair(self, pair: int) -> DiffPlace:
        return self._place(int(self._pairs.old[pair]), int(self._pairs.new[pair]))

    def _place(self, old: int | None, new: int | None) -> DiffPlace:
        """A row, named by the new side as far as that has it, else by the old."""
        sides = ((self._all._new, self._after, new), (self._all._old, self._before, old))
        there = [(snapshot, values, row) for snapshot, values, row in sides if row is not None]
        name = next((n for _, values, row in there if (n := values["request_id"][row]) is not None), None)
        asks = next((a for _, values, row in there if (a := truncate(question_of(values, row) or "", ASKS))), "")
        snapshot, _, row = there[0]
        name = name if isinstance(name, str | None) else encode_text(name)
        return DiffPlace(old, new, name, asks, snapshot.errors(row))

    def _change(self, name: str, pair: int) -> CellChange:
        old, new = int(self._pairs.old[pair]), int(self._pairs.new[pair])
        return CellChange(self._pair(pair), *edits(name, self._before[name][old], self._after[name][new]))

    def _metric(self, line: MetricChange) -> MetricChange:
        """The line with examples and reasons: the fields that a valid row lacks; an invalid one has to be fixed."""
        metric = find_metric(line.metric)

        def examples(pairs: Array, side: Snapshot, rows: Array, verb: str, else_: str) -> Iterator[MetricRow]:
            for pair, row in zip(pairs.tolist(), rows[pairs].tolist(), strict=True):
                missing = missing_needs(metric, int(side.masks[row]), side.report.outputs) if side.valid[row] else ()
                words = ", and ".join(map(need_words, missing))
                yield MetricRow(self._pair(pair), f"{verb} {words}" if words else else_)

        gains, losses = self._support[line.metric]
        return replace(
            line,
            gained_examples=tuple(examples(gains, self._all._old, self._pairs.old, "has", "is valid now")),
            lost_examples=tuple(examples(losses, self._all._new, self._pairs.new, "lacks", "is invalid now")),
        )


def _first_issues(snapshot: Snapshot, findings: IssueSet) -> dict[str, tuple[Issue, ...]]:
    """The first issues of each code among findings, one per row (or column, for the dataset as a whole)."""
    codes = findings.rows & CODE_MASK
    first = [findings.rows[codes == code][:EXAMPLES_KEPT] for code in np.unique(codes).tolist()]
    places: dict[str, dict[int | str | None, Issue]] = {}
    for issue in issues_among(snapshot, IssueSet(np.concatenate([findings.rows[:0], *first]), findings.overall)):
        of_code = places.setdefault(issue.code, {})
        if len(of_code) < EXAMPLES_KEPT:
            of_code.setdefault(issue.column if issue.row is None else issue.row, issue)
    return {code: tuple(of_code.values()) for code, of_code in places.items()}


def _summary(report: Report) -> DatasetSummary:
    run, counts = run_of(report), (report.row_count, report.valid_count, report.invalid_count)
    return DatasetSummary(run.source.name, report.format, run.plan.reason, report.outputs, *counts)
