"""Two data sets → what changed between them, as one would review it.

    old, new ──Snapshot──▶ hashes per row ──match──▶ Pairs ──Comparison──▶ numbers ──summarize──▶ DiffSummary
                                                                               text │ JSON │ HTML ◀──┘

Values are compared as they are after normalisation, so that a request as text is the same as messages, and a row of
JSONL the same as one of Parquet. Only hashes are kept of each row; a value is read again when it is to be shown.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import asdict

from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.diff.comparison import Comparison
from agent_eval_schema.diff.examples import NAMING, asked, issues_among, summarize
from agent_eval_schema.diff.snapshot import Snapshot
from agent_eval_schema.render.diff.html import diff_inline, diff_page
from agent_eval_schema.render.diff.json import diff_json
from agent_eval_schema.render.diff.summary import DiffSummary, IssueChange, MetricChange
from agent_eval_schema.render.diff.text import diff_text
from agent_eval_schema.render.shown import Shown
from agent_eval_schema.validation.plan import Outputs
from agent_eval_schema.validation.report import Report, issues_frame


def diff_eval_sets(old: Any, new: Any, *, format: str = "auto", outputs: Outputs = "auto") -> Diff:
    """Compare two versions of an evaluation set: rows, fields, issues, and what can be measured.

    Parameters
    ----------
    old, new
        What `validate_eval_set` takes: a pandas frame, an Arrow table, batch or reader, a list of dicts, or the path of
        a JSONL, JSON, CSV or Parquet file; each its own kind. They are not changed.
    format, outputs
        As for `validate_eval_set`, for both.

    Returns
    -------
    Diff
        What differs. Rows are matched by `request_id`, else by the normalised request; of rows with the same key the
        n-th is matched with the n-th. Invalid rows take part: a cell that could not be read is compared as it is.

    Raises
    ------
    EvalSetError
        A side could not be read: no such file, not a table, an unknown option.
    """
    return Diff(Comparison(Snapshot(old, format, outputs), Snapshot(new, format, outputs)))


class Diff(Shown):
    """What `diff_eval_sets` found.

    Attributes: `same`, `losses`, `old`, `new` (the two reports), `counts` ({what: rows}), `fields` ({field: rows that
    changed in it}), `columns_added`, `columns_dropped`, and frames with a line each: `added`, `removed`, `changed`,
    `became_invalid`, `became_valid`, `issues`, `issues_gained`, `issues_lost`, `metrics`. The frames are complete;
    those of rows read the data again. `review` has it all with few examples, ready to be drawn.
    """

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._pairs = comparison.pairs
        self.old: Report = comparison.old.report
        self.new: Report = comparison.new.report

    # numbers

    @property
    def same(self) -> bool:
        """Whether nothing differs, but perhaps the order of the rows."""
        return self._comparison.same

    @property
    def losses(self) -> bool:
        """Whether a row is gone, became invalid, or lost a metric."""
        return self._comparison.losses

    @property
    def counts(self) -> dict[str, int]:
        """How many rows: old, new, matched, added, removed, changed, unchanged, moved, became_invalid, became_valid,
        gained_a_metric, lost_a_metric (see RowCounts in render/diff/summary.py)."""
        return asdict(self._comparison.counts)

    @property
    def fields(self) -> dict[str, int]:
        """In how many matched rows each field changed."""
        return {name: len(pairs) for name, pairs in self._comparison.fields.items()}

    @property
    def columns_added(self) -> tuple[str, ...]:
        """The columns that hold something in the new data only."""
        return self._comparison.columns_added

    @property
    def columns_dropped(self) -> tuple[str, ...]:
        """The columns that hold something in the old data only."""
        return self._comparison.columns_dropped

    # frames

    @property
    def added(self) -> pd.DataFrame:
        """The rows that only the new data has: row, request_id, request (what is asked), valid."""
        return _rows_frame(self._comparison.new, self._pairs.added)

    @property
    def removed(self) -> pd.DataFrame:
        """The rows that only the old data has: row, request_id, request (what is asked), valid."""
        return _rows_frame(self._comparison.old, self._pairs.removed)

    @property
    def changed(self) -> pd.DataFrame:
        """Each cell that changed, in the order of the new rows: old_row, new_row, request_id, field, old, new."""
        fields = self._comparison.fields
        before = self._comparison.old.read({name: self._pairs.old[pairs] for name, pairs in fields.items()})
        after = self._comparison.new.read({name: self._pairs.new[pairs] for name, pairs in fields.items()})
        cells = [(pair, name) for name, pairs in fields.items() for pair in pairs.tolist()]
        cells.sort(key=lambda cell: cell[0])  # stable: the fields of a row stay in order
        frame = self._pairs_frame(np.array([pair for pair, _ in cells], np.int64))
        names = [name for _, name in cells]
        frame["field"] = _objects(names)
        for side, row, values in (("old", "old_row", before), ("new", "new_row", after)):
            frame[side] = _objects([values[n][r] for n, r in zip(names, frame[row].tolist(), strict=True)])
        return frame

    @property
    def became_invalid(self) -> pd.DataFrame:
        """The matched rows that were valid and are not: old_row, new_row, request_id."""
        return self._pairs_frame(self._comparison.became(valid=False))

    @property
    def became_valid(self) -> pd.DataFrame:
        """The matched rows that were invalid and are not: old_row, new_row, request_id."""
        return self._pairs_frame(self._comparison.became(valid=True))

    def _pairs_frame(self, pairs: Array) -> pd.DataFrame:
        old, new = self._pairs.old[pairs], self._pairs.new[pairs]
        before = self._comparison.old.read({"request_id": old})["request_id"]
        after = self._comparison.new.read({"request_id": new})["request_id"]
        ids = [before[o] if after[n] is None else after[n] for o, n in zip(old.tolist(), new.tolist(), strict=True)]
        return pd.DataFrame({"old_row": old, "new_row": new, "request_id": _objects(ids)})

    @property
    def issues(self) -> pd.DataFrame:
        """A line a code that some row has on one side only: code, name, severity, old, new (rows that have it), gained,
        lost (matched rows), on_added, on_removed. A finding on the data set as a whole counts like a row."""
        return _structs_frame(self._comparison.issues, IssueChange)

    @property
    def issues_gained(self) -> pd.DataFrame:
        """The issues of matched rows, and of the data set as a whole, whose code was not there: the columns of
        `Report.issues`, `row` is the position in the new data."""
        return issues_frame(list(issues_among(self._comparison.new, self._comparison.gained)))

    @property
    def issues_lost(self) -> pd.DataFrame:
        """The issues of matched rows, and of the data set as a whole, whose code is no longer there: the columns of
        `Report.issues`, `row` is the position in the old data."""
        return issues_frame(list(issues_among(self._comparison.old, self._comparison.lost)))

    @property
    def metrics(self) -> pd.DataFrame:
        """A line a metric: system, metric, old of old_rows and new of new_rows support it, gained, lost (matched rows),
        on_added, on_removed (rows that support it)."""
        return _structs_frame(self._comparison.metrics, MetricChange)

    # pictures

    @cached_property
    def review(self) -> DiffSummary:
        """What there is to see, with at most 20 examples of a kind: renderers draw it and compute nothing."""
        return summarize(self._comparison)

    def to_text(self, *, color: bool = False, width: int | None = None, system: str = "databricks") -> str:
        """The comparison as it is printed in a terminal, with the metrics of a system (or of `"all"`)."""
        return diff_text(self.review, color=color, width=width, system=system)

    def to_json(self) -> str:
        """The comparison as versioned JSON (see render/diff/json.py)."""
        return diff_json(self.review)

    def to_html(self) -> str:
        """The comparison as a standalone HTML page: no script, nothing loaded, every cell's text escaped."""
        return diff_page(self.review)

    def _repr_html_(self) -> str:
        return diff_inline(self.review)

    def __repr__(self) -> str:
        counts = self.counts
        parts = ("added", "removed", "changed", "became_invalid", "lost_a_metric")
        found = ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in parts)
        return f"<Diff: {counts['old']:,} → {counts['new']:,} rows, " + ("the same>" if self.same else f"{found}>")


def _rows_frame(snapshot: Snapshot, rows: Array) -> pd.DataFrame:
    found = snapshot.read(dict.fromkeys(NAMING, rows))
    return pd.DataFrame(
        {
            "row": rows,
            "request_id": _objects([found["request_id"][row] for row in rows.tolist()]),
            "request": _objects([asked(found, row) for row in rows.tolist()]),
            "valid": snapshot.valid[rows],
        }
    )


def _structs_frame(lines: list[Any], kind: Any) -> pd.DataFrame:
    names = [name for name in kind.__struct_fields__ if not name.endswith("_examples")]
    return pd.DataFrame([[getattr(line, name) for name in names] for line in lines], columns=names)


def _objects(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(values, dtype="object")
