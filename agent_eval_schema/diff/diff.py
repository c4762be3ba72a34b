"""Two datasets → the changes between them, as one would review them.

    old, new ──Snapshot──▶ hashes per row ──match──▶ Pairs ──Comparison──▶ numbers ──summarize──▶ DiffSummary
                                                                               text │ JSON │ HTML ◀──┘

Values are compared as they are after normalization, so that a request as text is the same as messages, and a row of
JSONL the same as one of Parquet. Only hashes are kept of each row; a value is read again when it is to be shown.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.diff.comparison import NAMING, Comparison, Summarizer, issues_among, question_of
from agent_eval_schema.diff.diff_blocks import (
    DiffSummary,
    IssueChange,
    MetricChange,
    changed_rows,
    diff_view,
    row_by_row,
)
from agent_eval_schema.diff.snapshot import Snapshot
from agent_eval_schema.formats.column_names import AUTO, ColumnNames, has_path, require_in_one
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import InputFormat
from agent_eval_schema.io.pandas import issues_frame
from agent_eval_schema.io.source import Source
from agent_eval_schema.metrics.support import metrics_of
from agent_eval_schema.render.blocks import View
from agent_eval_schema.render.document import summary_json
from agent_eval_schema.render.printable import Savable, as_text
from agent_eval_schema.validation.ces_turns import CES_FORMATS, turns_of
from agent_eval_schema.validation.plan import Outputs, make_plan
from agent_eval_schema.validation.report import Report, run_of
from agent_eval_schema.validation.shown import rows_at

if TYPE_CHECKING:
    import pandas as pd


def diff_eval_sets(
    old: EvalSetLike,
    new: EvalSetLike,
    *,
    format: InputFormat = "auto",
    outputs: Outputs = "auto",
    columns: ColumnNames = None,
) -> Diff:
    """Compare two versions of an evaluation dataset.

    Rows are matched by `request_id`, otherwise by the normalized request; of several rows with the same key the n-th is
    matched with the n-th. Values are compared after normalization, so a request as a string equals the same request as
    messages. Invalid rows are compared as well.

    Parameters
    ----------
    old : EvalSetLike
        The old version: any input of `validate_eval_set`.
    new : EvalSetLike
        The new version, in the same or in another form.
    format : FormatName or "auto", default "auto"
        The format of both. `"auto"` detects each from its column names.
    outputs : {"auto", "provided", "generated"}, default "auto"
        Whether the agent's outputs are in the data, as in `validate_eval_set`.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`; one version may lack a column.

    Returns
    -------
    Diff
        The changes of rows, fields, issues and metric coverage. Two files of Google Customer Engagement Suite are
        compared as such; one of them is compared with another format by its turns.

    Raises
    ------
    EvalSetError
        The data cannot be read as a table, or an option is not one of the allowed values.

    See Also
    --------
    EvalResult.compare : Compare the scores of two evaluations.

    Examples
    --------
    >>> from agent_eval_schema import diff_eval_sets
    >>> diff = diff_eval_sets("sample_data/good.jsonl", "sample_data/edited_broken.jsonl")
    >>> diff
    <Diff: 12 → 12 rows, 1 added, 1 removed, 5 changed, 1 became invalid, 1 lost a metric>
    >>> diff.changed[["new_row", "request_id", "field"]].head(3)
       new_row request_id              field
    0        0     hd-001     expected_facts
    1        2     hd-003  expected_response
    2        4     hd-005            request
    """
    return Diff(*map(Snapshot, _sides(old, new, columns, format, outputs)))


def _sides(old: Any, new: Any, columns: ColumnNames, format: str, outputs: str) -> list[Source]:
    """Both sides, read in the formats in which they are compared: rows with rows."""
    sides = {"old": old, "new": new}
    opened = [open_source(side, name, format=format, outputs=outputs) for name, side in sides.items()]
    names = {AUTO: columns} if isinstance(columns, str) else columns or {}
    require_in_one(names, *opened)
    own = [{path: name for path, name in names.items() if has_path(path, name, source)} for source in opened]
    sources = [open_source(source, "columns", names or None) for source, names in zip(opened, own, strict=True)]
    formats = [make_plan(source.read_as(outputs="generated")).format for source in sources]
    if formats[0] == formats[1]:
        return sources
    return [
        turns_of(source, name) if name in CES_FORMATS else source.read_as(format=name)
        for source, name in zip(sources, formats, strict=True)
    ]


class Diff(Comparison, Savable):  # numpydoc ignore=PR01
    """The changes between two versions of an evaluation dataset.

    Attributes
    ----------
    old : Report
        The validation report of the old version.
    new : Report
        The validation report of the new version.

    See Also
    --------
    diff_eval_sets : The function that returns a diff.

    Examples
    --------
    >>> from agent_eval_schema import diff_eval_sets
    >>> old = [{"request_id": "q1", "request": "Hi", "response": "Hello!"}]
    >>> new = [{"request_id": "q1", "request": "Hi", "response": "Good day!"}]
    >>> diff = diff_eval_sets(old, new)
    >>> diff.same, diff.counts["changed"]
    (False, 1)
    >>> diff.changed[["field", "old", "new"]].to_dict("records")
    [{'field': 'response', 'old': 'Hello!', 'new': 'Good day!'}]
    """

    def __init__(self, old: Snapshot, new: Snapshot) -> None:
        super().__init__(old, new)
        self.old: Report = old.report
        self.new: Report = new.report

    def _inputs(self) -> object:
        return [run_of(report).source for report in (self.old, self.new)]

    # numbers

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows per kind of change.

        Returns
        -------
        dict of str to int
            The keys are `old`, `new`, `matched`, `added`, `removed`, `changed`, `unchanged`, `moved`, `became_invalid`,
            `became_valid`, `gained_a_metric` and `lost_a_metric`.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> counts = diff_eval_sets(old, [*old, {"request": "Bye", "response": "Bye!"}]).counts
        >>> counts["unchanged"], counts["added"]
        (1, 1)
        """
        return dict(self._counts)

    @property
    def fields(self) -> dict[str, int]:
        """The number of matched rows that changed, per field.

        Returns
        -------
        dict of str to int
            Fields without a change are not in it.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> diff_eval_sets(old, [{"request": "Hi", "response": "Good day!"}]).fields
        {'response': 1}
        """
        return {name: len(pairs) for name, pairs in self._fields.items()}

    # frames

    @property
    def added(self) -> pd.DataFrame:
        """The rows that are in the new version only.

        Returns
        -------
        pandas.DataFrame
            One row per row, with a RangeIndex and the columns `row` (int64; the 0-based position in the new version),
            `request_id` and `request` (object; str or None) and `valid` (bool).

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> diff_eval_sets(old, [*old, {"request": "Bye", "response": "Bye!"}]).added[["row", "request", "valid"]]
           row request  valid
        0    1     Bye   True
        """
        return _rows_frame(self._new, self._pairs.added)

    @property
    def removed(self) -> pd.DataFrame:
        """The rows that are in the old version only.

        Returns
        -------
        pandas.DataFrame
            One row per row, with a RangeIndex and the columns of `added`; `row` is the position in the old version.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> new = [{"request": "Hi", "response": "Hello!"}]
        >>> diff_eval_sets([*new, {"request": "Bye", "response": "Bye!"}], new).removed[["row", "request", "valid"]]
           row request  valid
        0    1     Bye   True
        """
        return _rows_frame(self._old, self._pairs.removed)

    @property
    def changed(self) -> pd.DataFrame:
        """The cells that changed, in the order of the new rows.

        Returns
        -------
        pandas.DataFrame
            One row per cell, with a RangeIndex and the columns `old_row` and `new_row` (int64; 0-based positions),
            `request_id`, `field`, `old` and `new` (object; the normalized values).

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> diff = diff_eval_sets(old, [{"request": "Hi", "response": "Good day!"}])
        >>> diff.changed[["new_row", "field", "old", "new"]]
           new_row     field     old        new
        0        0  response  Hello!  Good day!
        """
        fields = self._fields
        before = self._old.read({name: self._pairs.old[pairs] for name, pairs in fields.items()})
        after = self._new.read({name: self._pairs.new[pairs] for name, pairs in fields.items()})
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
        """The matched rows that were valid and are invalid.

        Returns
        -------
        pandas.DataFrame
            One row per row, with a RangeIndex and the columns `old_row` and `new_row` (int64; 0-based positions) and
            `request_id` (object; str or None).

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request_id": "q1", "request": "Hi", "response": "Hello!"}]
        >>> diff_eval_sets(old, [{"request_id": "q1", "request": " ", "response": "Hello!"}]).became_invalid
           old_row  new_row request_id
        0        0        0         q1
        """
        return self._pairs_frame(self._became(valid=False))

    @property
    def became_valid(self) -> pd.DataFrame:
        """The matched rows that were invalid and are valid.

        Returns
        -------
        pandas.DataFrame
            One row per row, with the index and columns of `became_invalid`.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> new = [{"request_id": "q1", "request": "Hi", "response": "Hello!"}]
        >>> diff_eval_sets([{"request_id": "q1", "request": " ", "response": "Hello!"}], new).became_valid
           old_row  new_row request_id
        0        0        0         q1
        """
        return self._pairs_frame(self._became(valid=True))

    def _pairs_frame(self, pairs: Array) -> pd.DataFrame:
        import pandas as pd

        old, new = self._pairs.old[pairs], self._pairs.new[pairs]
        before = self._old.read({"request_id": old})["request_id"]
        after = self._new.read({"request_id": new})["request_id"]
        ids = [before[o] if after[n] is None else after[n] for o, n in zip(old.tolist(), new.tolist(), strict=True)]
        return pd.DataFrame({"old_row": old, "new_row": new, "request_id": _objects(ids)})

    @property
    def issues(self) -> pd.DataFrame:
        """The codes whose rows differ between the versions.

        Returns
        -------
        pandas.DataFrame
            One row per code, with a RangeIndex and the columns `code`, `name` and `severity` (str), `old` and `new`
            (int64; rows with the issue), `gained` and `lost` (int64; matched rows), `on_added` and `on_removed`
            (int64). An issue of the dataset as a whole counts as a row.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request_id": "q1", "request": "Hi", "response": "Hello!"}]
        >>> diff = diff_eval_sets(old, [{"request_id": "q1", "request": " ", "response": "Hello!"}])
        >>> diff.issues[["code", "old", "new", "gained"]]
            code  old  new  gained
        0  AE202    0    1       1
        """
        return _structs_frame(self._issues, IssueChange)

    @property
    def issues_gained(self) -> pd.DataFrame:
        """The issues that matched rows have in the new version only.

        Returns
        -------
        pandas.DataFrame
            One row per issue, with the columns of `Report.issues`; `row` is the 0-based position in the new version.
            Issues of the dataset as a whole are included.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request_id": "q1", "request": "Hi", "response": "Hello!"}]
        >>> diff = diff_eval_sets(old, [{"request_id": "q1", "request": " ", "response": "Hello!"}])
        >>> diff.issues_gained[["row", "request_id", "column"]]
           row request_id   column
        0    0         q1  request
        """
        return issues_frame(list(issues_among(self._new, self._gained)))

    @property
    def issues_lost(self) -> pd.DataFrame:
        """The issues that matched rows have in the old version only.

        Returns
        -------
        pandas.DataFrame
            One row per issue, with the columns of `Report.issues`; `row` is the 0-based position in the old version.
            Issues of the dataset as a whole are included.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> new = [{"request_id": "q1", "request": "Hi", "response": "Hello!"}]
        >>> diff = diff_eval_sets([{"request_id": "q1", "request": " ", "response": "Hello!"}], new)
        >>> diff.issues_lost[["row", "request_id", "column"]]
           row request_id   column
        0    0         q1  request
        """
        return issues_frame(list(issues_among(self._old, self._lost)))

    @property
    def metrics(self) -> pd.DataFrame:
        """The metric coverage of both versions.

        Returns
        -------
        pandas.DataFrame
            One row per metric, with a RangeIndex and the columns `system` and `metric` (str), `old` and `new` (int64;
            supported rows), `old_rows` and `new_rows` (int64; all rows), `gained` and `lost` (int64; matched rows),
            `on_added` and `on_removed` (int64).

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> diff = diff_eval_sets(old, [{"request": "Hi", "response": "Hello!", "guidelines": ["Be polite"]}])
        >>> diff.metrics[diff.metrics["gained"] > 0]["metric"].iloc[0]
        'response/llm_judged/guideline_adherence/rating'
        """
        return _structs_frame(self._metrics, MetricChange)

    # pictures

    @cached_property
    def review(self) -> DiffSummary:
        """The numbers and examples of the diff, as plain values.

        Returns
        -------
        DiffSummary
            A frozen object with at most 20 examples per kind of change; the text, JSON and HTML reports are drawn from
            it.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> type(diff_eval_sets(old, old).review).__name__
        'DiffSummary'
        """
        return Summarizer(self).summary()

    def to_text(self, *, color: bool = False, width: int | None = None, system: str = "databricks") -> str:
        """Return the diff as text for a terminal.

        Parameters
        ----------
        color : bool, default False
            If True, use ANSI colors.
        width : int or None, default None
            The number of characters per line. None uses the width of the terminal.
        system : str, default "databricks"
            The system whose metric coverage is shown.

        Returns
        -------
        str
            The changes, with at most 20 examples per kind.

        Examples
        --------
        >>> from agent_eval_schema import diff_eval_sets
        >>> old = [{"request": "Hi", "response": "Hello!"}]
        >>> diff = diff_eval_sets(old, [{"request": "Hi", "response": "Good day!"}])
        >>> "Good day!" in diff.to_text(width=80)
        True
        """
        metrics_of(system)  # which raises for an unknown system
        return as_text(diff_view(self.review, run_of(self.new).call, system), color=color, width=width)

    def _json(self) -> str:
        return summary_json(self.review)

    def _view(self) -> View:
        places = changed_rows(self.review)
        old = sorted(place.old_row for place in places if place.old_row is not None and place.new_row is None)
        new = sorted(place.new_row for place in places if place.new_row is not None)
        sides = [{row.row: row for row in rows_at(run_of(of), at)} for of, at in ((self.old, old), (self.new, new))]
        return diff_view(self.review, run_of(self.new).call, rows=row_by_row(self.review, *sides))

    def __repr__(self) -> str:
        counts = self.counts
        parts = ("added", "removed", "changed", "became_invalid", "lost_a_metric")
        words = ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in parts)
        return f"<Diff: {counts['old']:,} → {counts['new']:,} rows, " + ("the same>" if self.same else f"{words}>")


def _rows_frame(snapshot: Snapshot, rows: Array) -> pd.DataFrame:
    import pandas as pd

    cells = snapshot.read(dict.fromkeys(NAMING, rows))
    ids = _objects([cells["request_id"][row] for row in rows.tolist()])
    requests = _objects([question_of(cells, row) for row in rows.tolist()])
    return pd.DataFrame({"row": rows, "request_id": ids, "request": requests, "valid": snapshot.valid[rows]})


def _structs_frame(lines: list[Any], kind: Any) -> pd.DataFrame:
    import pandas as pd

    names = [name for name in kind.__struct_fields__ if not name.endswith("_examples")]
    return pd.DataFrame([[getattr(line, name) for name in names] for line in lines], columns=names)


def _objects(values: list[Any]) -> pd.Series[Any]:
    import pandas as pd

    return pd.Series(values, dtype="object")
