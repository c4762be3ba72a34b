"""A comparison and few rows of each side → the DiffSummary that renderers draw.

Each side is read once more, and of it only the rows that are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec.structs import replace

from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.decoding.requests import last_user_text
from agent_eval_schema.diff.comparison import CODE_MASK, Comparison, IssueSet
from agent_eval_schema.diff.diff_summary import (
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
from agent_eval_schema.diff.fingerprints import ORIGINAL_LINE
from agent_eval_schema.diff.snapshot import CODE_BITS, CODES, Snapshot
from agent_eval_schema.issues import Issue
from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import find_metric, metrics_of, missing_needs, need_words
from agent_eval_schema.text.describe import cut
from agent_eval_schema.text.edits import edits
from agent_eval_schema.text.jsontext import encode
from agent_eval_schema.validation.report import Report

ASKS = 80
"""Characters of a request by which a row is named."""

NAMING = ("request_id", "request", ORIGINAL_LINE)
"""The fields of a row that name it."""

CellValues = dict[str, dict[int, Any]]


def summarize(comparison: Comparison) -> DiffSummary:
    """What there is to see, with at most 20 examples of a kind."""
    return _Summarizer(comparison).summary()


def asked(values: CellValues, row: int) -> str | None:
    """The request of a row, or the value in its place; from the columns NAMING."""
    request = values["request"][row]
    if isinstance(request, dict) and isinstance(request.get("messages"), list):
        messages = [m for m in request["messages"] if isinstance(m, dict)]
        return last_user_text(messages) or encode(request).decode()
    if request is None:
        line: str | None = values[ORIGINAL_LINE][row]
        return line
    return request if isinstance(request, str) else encode(request).decode()


def issues_among(snapshot: Snapshot, found: IssueSet) -> Iterator[Issue]:
    """The issues of a snapshot that belong to findings."""
    wanted = set(found.rows.tolist())
    if not wanted and not found.overall:
        return
    for issue in snapshot.report.iter_issues():
        if issue.row is None:
            belongs = (issue.code, issue.column) in found.overall
        else:
            belongs = (issue.row << int(CODE_BITS)) | CODES.index(issue.code) in wanted
        if belongs:
            yield issue


class _Summarizer:
    def __init__(self, comparison: Comparison) -> None:
        self._all = comparison
        self._pairs = comparison.pairs
        self._fields = {name: pairs[:EXAMPLES_KEPT] for name, pairs in comparison.fields.items()}
        self._invalid, self._valid = (comparison.became(valid=valid)[:EXAMPLES_KEPT] for valid in (False, True))
        changes = {metric.name: comparison.changed_support(metric) for metric in metrics_of("all")}
        self._support = {n: [np.flatnonzero(is_so)[:EXAMPLES_KEPT] for is_so in both] for n, both in changes.items()}
        supporting = [pairs for both in self._support.values() for pairs in both]
        pairs = np.unique(np.concatenate([*self._fields.values(), self._invalid, self._valid, *supporting]))
        self._before = self._read(comparison.old, self._pairs.old, pairs, self._pairs.removed[:EXAMPLES_KEPT])
        self._after = self._read(comparison.new, self._pairs.new, pairs, self._pairs.added[:EXAMPLES_KEPT])

    def _read(self, snapshot: Snapshot, rows: Array, pairs: Array, alone: Array) -> CellValues:
        named = np.concatenate([rows[pairs], alone])
        return snapshot.read({**{name: rows[at] for name, at in self._fields.items()}, **dict.fromkeys(NAMING, named)})

    def summary(self) -> DiffSummary:
        found = self._all
        return DiffSummary(
            same=found.same,
            losses=found.losses,
            old=_summary(found.old.report),
            new=_summary(found.new.report),
            rows=found.counts,
            columns_added=found.columns_added,
            columns_dropped=found.columns_dropped,
            added=tuple(self._place(None, row) for row in self._pairs.added[:EXAMPLES_KEPT].tolist()),
            removed=tuple(self._place(row, None) for row in self._pairs.removed[:EXAMPLES_KEPT].tolist()),
            became_invalid=tuple(map(self._pair, self._invalid.tolist())),
            became_valid=tuple(map(self._pair, self._valid.tolist())),
            fields=tuple(map(self._field, self._fields)),
            issues=tuple(self._issues()),
            metrics=tuple(map(self._metric, found.metrics)),
        )

    # rows

    def _pair(self, pair: int) -> DiffPlace:
        return self._place(int(self._pairs.old[pair]), int(self._pairs.new[pair]))

    def _place(self, old: int | None, new: int | None) -> DiffPlace:
        """A row, named by the new side as far as that has it, else by the old."""
        sides = ((self._all.new, self._after, new), (self._all.old, self._before, old))
        there = [(snapshot, values, row) for snapshot, values, row in sides if row is not None]
        name = next((n for _, values, row in there if (n := values["request_id"][row]) is not None), None)
        asks = next((a for _, values, row in there if (a := cut(asked(values, row) or "", ASKS))), "")
        snapshot, _, row = there[0]
        return DiffPlace(old, new, name, asks, snapshot.errors(row))

    # fields

    def _field(self, name: str) -> FieldChange:
        examples = tuple(self._change(name, pair) for pair in self._fields[name].tolist())
        return FieldChange(name, len(self._all.fields[name]), examples)

    def _change(self, name: str, pair: int) -> CellChange:
        old, new = int(self._pairs.old[pair]), int(self._pairs.new[pair])
        return CellChange(self._pair(pair), *edits(name, self._before[name][old], self._after[name][new]))

    # issues

    def _issues(self) -> Iterator[IssueChange]:
        gained, lost = _first_issues(self._all.new, self._all.gained), _first_issues(self._all.old, self._all.lost)
        for line in self._all.issues:
            examples = {"gained_examples": gained.get(line.code, ()), "lost_examples": lost.get(line.code, ())}
            yield replace(line, **examples)

    # metrics

    def _metric(self, line: MetricChange) -> MetricChange:
        metric = find_metric(line.metric)
        gained, lost = self._support[line.metric]
        return replace(
            line,
            gained_examples=tuple(MetricRow(self._pair(p), self._why_gained(metric, p)) for p in gained.tolist()),
            lost_examples=tuple(MetricRow(self._pair(p), self._why_lost(metric, p)) for p in lost.tolist()),
        )

    def _why_gained(self, metric: Metric, pair: int) -> str:
        lacked = _lacks(self._all.old, metric, int(self._pairs.old[pair]))
        return f"has {lacked}" if lacked else "is valid now"

    def _why_lost(self, metric: Metric, pair: int) -> str:
        lacks = _lacks(self._all.new, metric, int(self._pairs.new[pair]))
        return f"lacks {lacks}" if lacks else "is invalid now"


def _lacks(snapshot: Snapshot, metric: Metric, row: int) -> str:
    """The fields that a valid row lacks for a metric; an invalid one has to be fixed first."""
    missing = missing_needs(metric, int(snapshot.masks[row]), snapshot.report.outputs) if snapshot.valid[row] else ()
    return ", and ".join(need_words(need) for need in missing)


def _first_issues(snapshot: Snapshot, found: IssueSet) -> dict[str, tuple[Issue, ...]]:
    """The first issues of each code among findings, one per row (or column, for the dataset as a whole)."""
    codes = found.rows & CODE_MASK
    first = [found.rows[codes == code][:EXAMPLES_KEPT] for code in np.unique(codes).tolist()]
    places: dict[str, dict[int | str | None, Issue]] = {}
    for issue in issues_among(snapshot, IssueSet(np.concatenate([found.rows[:0], *first]), found.overall)):
        of_code = places.setdefault(issue.code, {})
        if len(of_code) < EXAMPLES_KEPT:
            of_code.setdefault(issue.column if issue.row is None else issue.row, issue)
    return {code: tuple(of_code.values()) for code, of_code in places.items()}


def _summary(report: Report) -> DatasetSummary:
    counts = report.row_count, report.valid_count, report.invalid_count
    return DatasetSummary(report.name, report.format, report.summary.format_reason, report.outputs, *counts)
