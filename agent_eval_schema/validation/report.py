"""The Report: the result of a validation.

Data that would be large for a file (rows, valid, invalid, a long list of issues) is read from it again on access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.arrow import fitted, to_columns
from agent_eval_schema.io.pandas import issues_frame, to_pandas
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.issues import EvalSetError, Issue, Severity
from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import (
    Support,
    find_metric,
    metrics_of,
    shown_systems,
    summarize,
    support_of,
    supports,
    why_supported,
)
from agent_eval_schema.render.figures import Distribution, Presence, presence, steps
from agent_eval_schema.render.report.summary import Excerpt, FixPreview, Location, ReportSummary, Shown
from agent_eval_schema.render.shown import Saved
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.excerpts import excerpts
from agent_eval_schema.validation.for_page import shown_on_page
from agent_eval_schema.validation.for_text import for_text, lines_of
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report_builder import ReportBuilder
from agent_eval_schema.validation.row_files import write_invalid, write_normalized
from agent_eval_schema.validation.second_reading import batches_beside_checked, every_issue, normalized_batches
from agent_eval_schema.validation.unreadable import Origin, unreadable

if TYPE_CHECKING:
    import pandas as pd


class Report(Saved):  # numpydoc ignore=PR01
    """The result of validating an evaluation dataset.

    `print(report)` shows it as text; a notebook shows it as HTML. A row with at least one error is invalid. For a file
    the report stays small: `rows`, `valid` and `invalid` are read from the file when they are used.

    Attributes
    ----------
    seconds : float
        The duration of the validation, in seconds.

    See Also
    --------
    validate_eval_set : The function that returns a report.

    Examples
    --------
    >>> from agent_eval_schema import validate_eval_set
    >>> report = validate_eval_set("sample_data/broken_mlflow.jsonl")
    >>> report.ok, report.row_count, report.valid_count
    (False, 13, 5)
    >>> report.issues.loc[0, ["code", "name"]].tolist()
    ['AE216', 'inputs-not-object']
    """

    def __init__(self, source: Source, plan: Plan, builder: ReportBuilder, seconds: float = 0.0) -> None:
        builder.finish()
        self._source, self._plan, self._builder = source, plan, builder
        self.seconds = seconds
        self._preview: Callable[[], FixPreview | None] = lambda: None

    # counts

    @property
    def codes(self) -> list[str]:
        """The codes of the rules that were applied, sorted.

        Returns
        -------
        list of str
            Codes such as `"AE206"`.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set([{"request": "Hi", "response": "Hello!"}], select=["AE206", "AE201"]).codes
        ['AE201', 'AE206']
        """
        return sorted(self._plan.codes)

    @property
    def codes_off(self) -> list[str]:
        """The codes of the rules that were disabled, sorted.

        Returns
        -------
        list of str
            Codes such as `"AE206"`; empty if all rules were applied.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set([{"request": "Hi", "response": "Hello!"}], ignore=["AE902"]).codes_off
        ['AE902']
        """
        return [code for code in RULES if code not in self._plan.codes]

    @property
    def format(self) -> str:
        """The format of the data, as detected or as given.

        Returns
        -------
        str
            A name such as `"databricks"`.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set([{"inputs": {"question": "What is Delta Lake?"}, "outputs": "A table format."}]).format
        'mlflow'
        """
        return self._plan.format

    @property
    def format_reason(self) -> str:
        """The reason why the format was detected.

        Returns
        -------
        str
            The columns that identify the format, the format that came second and how to name it; `"as asked"` if the
            format was given.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"inputs": {"question": "What is Delta Lake?"}, "outputs": "A table format."}])
        >>> "outputs" in report.format_reason
        True
        """
        return self._plan.reason

    @property
    def plan(self) -> Plan:
        """The options of the validation, after detection.

        Returns
        -------
        Plan
            A frozen object with the attributes `format`, `outputs` and `codes`, among others.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> plan = validate_eval_set([{"request": "Hi", "response": "Hello!"}], select=["AE206"]).plan
        >>> plan.format, plan.outputs, sorted(plan.codes)
        ('databricks', 'provided', ['AE206'])
        """
        return self._plan

    @property
    def outputs(self) -> str:
        """Whether the agent's outputs are in the data.

        Returns
        -------
        str
            `"provided"` or `"generated"`.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set([{"request": "Hi"}]).outputs
        'generated'
        """
        return self._plan.outputs

    @property
    def show_values(self) -> bool:
        """Whether messages may contain cell values.

        Returns
        -------
        bool
            If False, issues contain no cell values and no request IDs.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request_id": "q1", "request": " ", "response": "Hello!"}], show_values=False)
        >>> report.show_values, report.issues["request_id"].tolist()
        (False, [None])
        """
        return self._plan.values

    @property
    def row_count(self) -> int:
        """The number of rows in the data, valid and invalid.

        Returns
        -------
        int
            The number of rows.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set("sample_data/broken.jsonl").row_count
        37
        """
        return self._builder.row_count

    @property
    def valid_count(self) -> int:
        """The number of rows without an error.

        Returns
        -------
        int
            The number of valid rows.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> data = [{"request": "Hi", "response": "Hello!"}, {"request": " ", "response": "Hello!"}]
        >>> validate_eval_set(data).valid_count
        1
        """
        return int(self._builder.valid.sum())

    @property
    def invalid_count(self) -> int:
        """The number of rows with at least one error.

        Returns
        -------
        int
            The number of invalid rows.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> data = [{"request": "Hi", "response": "Hello!"}, {"request": " ", "response": "Hello!"}]
        >>> validate_eval_set(data).invalid_count
        1
        """
        return self.row_count - self.valid_count

    @property
    def counts(self) -> dict[str, int]:
        """The exact number of issues per code.

        Returns
        -------
        dict of str to int
            Codes in sorted order; codes without an issue are not in it.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> data = [{"request": "Hi", "response": "Hello!"}, {"request": " ", "response": "Hello!"}]
        >>> validate_eval_set(data).counts
        {'AE202': 1}
        """
        return dict(sorted((c, n) for c, n in self._builder.counts.items() if n))

    @property
    def derived(self) -> dict[str, int]:
        """The number of rows per field whose value was taken from the trace.

        Returns
        -------
        dict of str to int
            Canonical columns, in their order; columns without such a row are not in it.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set("sample_data/good.jsonl")
        >>> report.derived["latency_seconds"]
        6
        """
        return {c: self._builder.derived[c] for c in COLUMNS if self._builder.derived[c]}

    def count(self, severity: Severity | str) -> int:
        """Return the number of issues of a severity.

        Parameters
        ----------
        severity : Severity or {"error", "warning", "info"}
            The severity to count.

        Returns
        -------
        int
            The exact number of issues.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": " ", "response": "Hello!"}])
        >>> report.count("error"), report.count("warning")
        (1, 0)
        """
        require_choice("severity", severity, list(map(str, Severity)))
        return sum(n for code, n in self.counts.items() if RULES[code].severity == severity)

    @property
    def ok(self) -> bool:
        """Whether the data has no error.

        Returns
        -------
        bool
            True if no row and no rule on the whole dataset has an issue of severity error.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set([{"request": "Hi", "response": "Hello!"}]).ok
        True
        """
        return self.count(Severity.ERROR) == 0

    @property
    def examples(self) -> dict[str, list[Issue]]:
        """At most 20 issues per code.

        Returns
        -------
        dict of str to list of Issue
            The first issues of each code that has any.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": " ", "response": "Hello!"}])
        >>> {code: [issue.column for issue in issues] for code, issues in report.examples.items()}
        {'AE202': ['request']}
        """
        return dict(sorted(self._builder.examples.items()))

    @cached_property
    def excerpts(self) -> dict[Location, Excerpt]:
        """The cell text around the location of each example.

        Returns
        -------
        dict of tuple to Excerpt
            By (row, column, path): an object with the strings `before`, `marked` and `after`. Empty if `show_values` is
            False.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> chat = {"messages": [{"role": "usr", "content": "Hi"}]}
        >>> report = validate_eval_set([{"request": chat, "response": "Hello!"}])
        >>> report.excerpts[0, "request", "request.messages[0].role"].marked
        '"usr"'
        """
        if not self.show_values:
            return {}
        shown = [issue for issues in self._builder.examples.values() for issue in issues]
        try:
            return excerpts(shown, self._source.batches(), find_format(self.format).read)
        except (EvalSetError, OSError):  # the file is gone
            return {}

    @property
    def presence(self) -> list[Presence]:
        """Field coverage: the share of rows with a value, over the dataset.

        Returns
        -------
        list of Presence
            First the valid rows, then one object per field with any value: `field`, `rows` (the number of rows with a
            value) and `shares` (the share of such rows in at most 120 equal steps of the dataset).

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!"}, {"request": "Bye", "response": None}])
        >>> [(p.field, p.rows, p.shares) for p in report.presence]
        [('valid', 1, [1.0, 0.0]), ('request', 2, [1.0, 1.0]), ('response', 1, [1.0, 0.0])]
        """
        return presence(self._builder.masks, self._builder.valid)

    @property
    def distributions(self) -> dict[str, Distribution]:
        """The distributions of lengths, latency, token counts and tool calls.

        Returns
        -------
        dict of str to Distribution
            By column, only those with a value; `latency_seconds` is in seconds, `request_length` (of the last question)
            and `response_length` in characters. `count` is the number of values and
            `quantile(share)` a quantile. Empty if `show_values` is False.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> latency = validate_eval_set("sample_data/good.jsonl").distributions["latency_seconds"]
        >>> latency.count
        6
        """
        if not self.show_values:
            return {}
        return {name: d for name, d in self._builder.distributions.items() if d.count}

    @property
    def name(self) -> str | None:
        """The path of the file, if the data was a file.

        Returns
        -------
        str or None
            The path as it was given; None for data in memory.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set("sample_data/good.jsonl").name
        'sample_data/good.jsonl'
        """
        return self._source.name

    def lines(self, rows: Iterable[int]) -> dict[int, int]:
        """Return the line of the file on which each row begins.

        Parameters
        ----------
        rows : iterable of int
            0-based positions of rows.

        Returns
        -------
        dict of int to int
            By row the line, counted from 1. Empty for data without lines: a JSON array, Parquet, a compressed file,
            data in memory. Of a folder or glob, the attribute `file` of a line is the name of its file.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set("sample_data/broken.jsonl").lines([0, 5])
        {0: 1, 5: 6}
        """
        return self._source.lines(rows) if self._source.lines else {}

    # issues

    @cached_property
    def issues(self) -> pd.DataFrame:
        """All issues, in the order of the rows.

        Returns
        -------
        pandas.DataFrame
            One row per issue, with a RangeIndex and the columns `row` (Int64; the 0-based position in the data, NA for
            the data as a whole) and `request_id`, `column`, `path`, `code`, `name`, `severity`, `message`, `hint`
            and `url` (object; str or None).

        See Also
        --------
        Report.iter_issues : Iterate over the issues of a large file.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request_id": "q1", "request": " ", "response": "Hello!"}])
        >>> report.issues[["row", "request_id", "column", "severity"]]
           row request_id   column severity
        0    0         q1  request    error
        """
        return issues_frame(list(self.iter_issues()))

    def iter_issues(self) -> Iterator[Issue]:
        """Iterate over the issues, in the order of the rows.

        The issues of the dataset as a whole come last. If there are very many issues, a file is validated again while
        you iterate.

        Yields
        ------
        Issue
            One issue at a time.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": " ", "response": "Hello!"}])
        >>> [(issue.row, issue.column) for issue in report.iter_issues()]
        [(0, 'request')]
        """
        yield from self.listed_issues() if self._builder.holds_all_issues else every_issue(self._source, self._plan)

    def listed_issues(self) -> list[Issue]:
        """Return the issues that are in memory, in the order of the rows.

        Returns
        -------
        list of Issue
            All issues, except for a file with very many.

        See Also
        --------
        Report.iter_issues : Iterate over all issues.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": " ", "response": "Hello!"}])
        >>> len(report.listed_issues())
        1
        """
        return self._builder.take_issues()

    # rows

    @property
    def valid_mask(self) -> np.ndarray[Any, Any]:
        """Whether each row is valid.

        Returns
        -------
        numpy.ndarray
            One value per row, in order, dtype bool.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> data = [{"request": "Hi", "response": "Hello!"}, {"request": " ", "response": "Hello!"}]
        >>> report = validate_eval_set(data)
        >>> report.valid_mask.tolist()
        [True, False]
        """
        return self._builder.valid.copy()

    def iter_batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the normalized rows as Arrow batches.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            All rows, in order, with the columns of `schema`; a file of any size is streamed.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set("sample_data/good.jsonl")
        >>> sum(batch.num_rows for batch in report.iter_batches())
        12
        """
        return normalized_batches(self._source, self._plan)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the normalized rows.

        Returns
        -------
        pyarrow.Schema
            The canonical columns, then the columns that are passed through.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> schema = validate_eval_set([{"request": "Hi", "response": "Hello!", "team": "docs"}]).schema
        >>> schema.names[:3], schema.names[-1]
        (['request_id', 'request', 'response'], 'team')
        >>> print(schema.field("expected_facts").type)
        list<item: string>
        """
        beside = (f for f in self.source_schema if f.name not in COLUMNS)
        return pa.schema([*ROW_SCHEMA, *beside], metadata=ROW_SCHEMA.metadata)

    @cached_property
    def source_schema(self) -> pa.Schema:
        """The Arrow schema of the data, as its format reads it.

        Returns
        -------
        pyarrow.Schema
            The columns of the data under their canonical names; JSON cells are strings.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set([{"request": "Hi", "response": "Hello!", "team": "docs"}]).source_schema.names
        ['request', 'response', 'team']
        """
        return schema_of(self._source, find_format(self.format).read)

    def source_batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the data as Arrow batches.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            All rows, in order, with the cells of the data; a file of any size is streamed.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!"}])
        >>> [batch.num_rows for batch in report.source_batches()]
        [1]
        """
        return self._source.batches()

    def checked_batches(self) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Iterate over the batches of the data, each with its normalized batch.

        Returns
        -------
        iterator of tuple of pyarrow.RecordBatch
            Pairs of a batch of the data and the batch with the normalized columns of the same rows.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!"}])
        >>> [(given.num_rows, checked.num_rows) for given, checked in report.checked_batches()]
        [(1, 1)]
        """
        return batches_beside_checked(self._source, self._plan)

    def to_arrow(self) -> pa.Table:
        """Return the normalized rows as an Arrow table.

        Returns
        -------
        pyarrow.Table
            All rows, in order, with the columns of `schema`.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> table = validate_eval_set("sample_data/good.jsonl").to_arrow()
        >>> table.num_rows
        12
        """
        schema = self.schema
        return pa.concat_tables([schema.empty_table(), *(fitted(b, schema) for b in self.iter_batches())])

    @property
    def rows(self) -> pd.DataFrame:
        """The normalized rows, valid and invalid, in order.

        Returns
        -------
        pandas.DataFrame
            One row per row of the data, with the index of the data if it is a DataFrame, otherwise a RangeIndex. The
            columns are the canonical columns and those that are passed through. Cells of dtype object hold str, list or
            dict, or None where the value is absent; token counts are Int64, `latency_seconds` is float64, `failure` is
            boolean.

        See Also
        --------
        normalize_eval_set : Return the rows, with a choice for the invalid ones.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!", "team": "docs"}])
        >>> report.rows[["request", "response", "team"]]
                                                     request response  team
        0  {'messages': [{'role': 'user', 'content': 'Hi'}]}   Hello!  docs
        """
        return to_pandas(self.iter_batches(), self._source, find_format(self.format).reads)

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over the normalized rows.

        Yields
        ------
        dict
            One row at a time, with a key per column of `schema` and None where a value is absent; a file of any size is
            streamed.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!"}])
        >>> [row["response"] for row in report.iter_rows()]
        ['Hello!']
        """
        for batch in self.iter_batches():
            _, columns = to_columns([batch])
            for row in zip(*columns.values(), strict=True):
                yield dict(zip(columns, row, strict=True))

    @property
    def valid(self) -> Any:
        """The valid rows, with their original cells.

        Returns
        -------
        pandas.DataFrame, list of dict, pyarrow.Table or pyspark.sql.DataFrame
            The same kind of container as the data. A DataFrame keeps its index; for a file it is a DataFrame whose
            index `row` is the 0-based position in the file.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> data = [{"request": "Hi", "response": "Hello!"}, {"request": " ", "response": "Hello!"}]
        >>> report = validate_eval_set(data)
        >>> report.valid
        [{'request': 'Hi', 'response': 'Hello!'}]
        """
        return self._source.take(self._builder.valid)

    @property
    def invalid(self) -> Any:
        """The invalid rows, with their original cells.

        Returns
        -------
        pandas.DataFrame, list of dict, pyarrow.Table or pyspark.sql.DataFrame
            The same kind of container as the data. A DataFrame keeps its index; for a file it is a DataFrame whose
            index `row` is the 0-based position in the file.

        See Also
        --------
        Report.write_invalid : Write the invalid rows with their issues to a file.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> data = [{"request": "Hi", "response": "Hello!"}, {"request": " ", "response": "Hello!"}]
        >>> report = validate_eval_set(data)
        >>> report.invalid
        [{'request': ' ', 'response': 'Hello!'}]
        """
        return self._source.take(~self._builder.valid)

    def unreadable(self) -> dict[int, str]:
        """Return the original cells that the normalized rows cannot hold.

        Returns
        -------
        dict of int to str
            By row: the JSON text of an object with the cells that an error kept from being read, under the names of
            their columns; of a line that is not a row, the text of the line.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": {"q": "Hi"}, "response": "Hello!"}])
        >>> report.unreadable()
        {0: '{"request":{"q":"Hi"}}'}
        """
        if self.ok:
            return {}
        pairs = zip(self._source.batches(), self.iter_batches(), strict=True)
        given = self.invalid
        rows = np.flatnonzero(~self._builder.valid).tolist() if isinstance(given, list) else ()
        no_rows = dict(zip(rows, given, strict=False))
        origin = Origin(self._plan.origins, self._source.original, no_rows)
        return dict(unreadable(self.iter_issues(), pairs, origin))

    # metrics

    @property
    def metric_support(self) -> pd.DataFrame:
        """The metrics of all systems that each row supports.

        Returns
        -------
        pandas.DataFrame
            One row per row of the data and one column per metric, dtype bool, with the index of `rows`.

        See Also
        --------
        agent_eval_schema.metric_support : The same for one system, from data.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!"}])
        >>> report.metric_support["response/llm_judged/safety/rating"].tolist()
        [True]
        """

        import pandas as pd

        return pd.DataFrame(
            {m.name: supports(m, self._builder.masks, self._builder.valid, self.outputs) for m in metrics_of("all")},
            index=self.index,
        )

    @property
    def index(self) -> pd.Index:
        """The index of the DataFrame that was validated.

        Returns
        -------
        pandas.Index
            For other data a RangeIndex named `row`: the 0-based positions.

        Examples
        --------
        >>> import pandas as pd
        >>> from agent_eval_schema import validate_eval_set
        >>> data = pd.DataFrame({"request": ["Hi"], "response": ["Hello!"]}, index=[7])
        >>> validate_eval_set(data).index.tolist()
        [7]
        """

        import pandas as pd

        given: pd.Index | None = self._source.index
        return pd.RangeIndex(self.row_count, name="row") if given is None else given

    @property
    def request_ids(self) -> list[str | None]:
        """The normalized `request_id` of each row.

        Returns
        -------
        list of (str or None)
            One value per row, in order; None where a row has none. A file is read again.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set([{"request_id": "q1", "request": "Hi", "response": "Hello!"}]).request_ids
        ['q1']
        """
        return [row for batch in self.iter_batches() for row in batch.column("request_id").to_pylist()]

    def support(self, system: str = "all") -> list[Support]:
        """Return the metric coverage as objects.

        Parameters
        ----------
        system : str, default "all"
            The system whose metrics are returned, as in `metric_support`, or `"all"`.

        Returns
        -------
        list of Support
            One object per metric, with the columns of `metrics` as attributes.

        Raises
        ------
        EvalSetError
            There is no such system.

        See Also
        --------
        Report.metrics : The same as a DataFrame.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!"}])
        >>> [s.metric for s in report.support("vertex") if not s.supported][:2]
        ['trajectory_exact_match', 'trajectory_in_order_match']
        """
        return summarize(self._builder.valid_masks, self.row_count, self.outputs, system)

    @property
    def metrics(self) -> pd.DataFrame:
        """The metric coverage: the number of supported rows per metric.

        Returns
        -------
        pandas.DataFrame
            One row per metric of each system, with a RangeIndex and the columns `system` and `metric` (str),
            `supported` and `total` (int64, rows), `unlock` (str; the missing field that would enable the most
            additional rows, empty if none), `unlock_rows` (int64), `condition` (str; the requirement on generated
            outputs) and `judged` (bool; whether an LLM judge computes the metric).

        See Also
        --------
        Report.why : Explain the support of one row.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!", "expected_response": "Hello."}])
        >>> metrics = report.metrics.set_index("metric")
        >>> metrics.loc[["response/llm_judged/correctness/rating"], ["supported", "total"]].to_dict("records")
        [{'supported': 1, 'total': 1}]
        """

        import pandas as pd

        return pd.DataFrame(map(astuple, self.support()), columns=list(Support.__struct_fields__))

    def why(self, row: int | str, metric: str) -> str:
        """Return the reason why a row supports a metric or not.

        Parameters
        ----------
        row : int or str
            The 0-based position of the row, or its `request_id` if no other row has the same.
        metric : str
            The name of the metric, or a part of it between slashes, such as `"correctness"`.

        Returns
        -------
        str
            One sentence.

        Raises
        ------
        IndexError
            There is no such row.
        EvalSetError
            There is no such metric, or not exactly one row has the `request_id`.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!"}])
        >>> print(report.why(0, "guideline_adherence"))
        row 0 does not support response/llm_judged/guideline_adherence/rating...
        """
        found = find_metric(metric)
        if isinstance(row, str):
            row = self._place_of(row)
        if not 0 <= row < self.row_count:
            raise IndexError(f"row {row} is not one of 0 to {self.row_count - 1}")
        if not self._builder.valid[row]:
            return visible(f"row {row} does not support {found.name}: it is invalid ({self._errors_of(row)})")
        return f"row {row} {why_supported(found, int(self._builder.masks[row]), self.outputs)}"

    def _place_of(self, request_id: str) -> int:
        places = [place for place, found in enumerate(self.request_ids) if found == request_id]
        if len(places) != 1:
            told = f"the rows {', '.join(map(str, places[:5]))} have" if places else "no row has"
            raise EvalSetError(f"{told} the request_id {request_id!r}: use the position of a row")
        return places[0]

    def _errors_of(self, row: int) -> str:
        found = [i for i in self.iter_issues() if i.row == row and i.severity is Severity.ERROR]
        return "; ".join(f"{i.code} {i.message}" for i in found)

    # views

    def raise_if_invalid(self) -> Report:
        """Raise an error if the data has an error.

        Returns
        -------
        Report
            The report itself.

        Raises
        ------
        InvalidEvalSetError
            `ok` is False. Its `report` is this report.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set([{"request": "Hi", "response": "Hello!"}]).raise_if_invalid()
        <Report: 1 of 1 rows valid, 0 errors, 0 warnings>
        """
        if not self.ok:
            raise InvalidEvalSetError(self)
        return self

    @property
    def system(self) -> str:
        """The evaluation system that the format belongs to.

        Returns
        -------
        str
            A system of `metric_support`, such as `"databricks"` or `"mlflow"`.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set([{"request": "Hi", "response": "Hello!"}]).system
        'databricks'
        """
        return find_format(self.format).system

    @property
    def has_metrics(self) -> bool:
        """Whether metrics can be computed on the rows.

        Returns
        -------
        bool
            False for files of Google Customer Engagement Suite, whose rows are not evaluation rows, and for a table of
            unknown format.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> validate_eval_set("sample_data/golden.csv").has_metrics
        False
        """
        return find_format(self.format).is_rows

    @cached_property
    def summary(self) -> ReportSummary:
        """The numbers and examples of the report, as plain values.

        Returns
        -------
        ReportSummary
            A frozen object; the text, JSON and HTML reports are drawn from it.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> summary = validate_eval_set([{"request": "Hi", "response": "Hello!"}]).summary
        >>> summary.row_count, summary.valid_count
        (1, 1)
        """
        return ReportSummary(
            name=self.name,
            format=self.format,
            format_reason=self.format_reason,
            system=self.system,
            has_metrics=self.has_metrics,
            outputs=self.outputs,
            values=self.show_values,
            codes=self.codes,
            codes_off=self.codes_off,
            row_count=self.row_count,
            valid_count=self.valid_count,
            counts=self.counts,
            examples=self.examples,
            occurrences=self._builder.occurrences,
            together=dict(self._builder.together.pairs),
            derived=self.derived,
            coverage=self.support() if self.has_metrics else [],
            presence=self.presence,
            support_shares=self._support_shares() if self.has_metrics else {},
            distributions=self.distributions,
            seconds=self.seconds,
        )

    def _support_shares(self) -> dict[str, list[float]]:
        masks, valid = self._builder.masks, self._builder.valid
        metrics = [m for system in shown_systems(self.system) for m in metrics_of(system)]
        return {m.name: steps(supports(m, masks, valid, self.outputs)) for m in metrics} if len(valid) else {}

    def to_text(
        self, *, color: bool = False, width: int | None = None, system: str | None = None, metrics: bool = True
    ) -> str:
        """Return the report as text for a terminal.

        Parameters
        ----------
        color : bool, default False
            If True, use ANSI colors.
        width : int or None, default None
            The number of characters per line. None uses the width of the terminal.
        system : str or None, default None
            The system whose metric coverage is shown, as in `metric_support`. None is the system of the format.
        metrics : bool, default True
            If False, omit the metric coverage.

        Returns
        -------
        str
            Issues with examples, the metric coverage, and last the result and the next command. Control characters
            are escaped.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": " ", "response": "Hello!"}])
        >>> print(report.to_text(width=80, system="vertex"))
        databricks format...
        """
        from agent_eval_schema.render.report.text import report_text

        shown = for_text(self.summary, self._source, self._plan, self._fixes, metrics=metrics)
        return report_text(self.summary, shown, color=color, width=width, system=system or self.system)

    @cached_property
    def _fixes(self) -> FixPreview | None:
        """What the safe fixes would change; None if unknown, or if nothing would change."""
        return None if self._preview is None else self._preview()

    def to_json(self) -> str:
        """Return the report as JSON.

        Returns
        -------
        str
            An object with a version, the counts, the issues and the metric coverage.

        Examples
        --------
        >>> import json
        >>> from agent_eval_schema import validate_eval_set
        >>> report = json.loads(validate_eval_set([{"request": "Hi", "response": "Hello!"}]).to_json())
        >>> report["rows"]
        {'total': 1, 'valid': 1, 'invalid': 0}
        """
        from agent_eval_schema.render.report.json import report_json

        return report_json(self.summary, self.listed_issues())

    def to_html(self) -> str:
        """Return the report as a standalone HTML page.

        Returns
        -------
        str
            A page that loads nothing from the network; all cell text is escaped.

        See Also
        --------
        Report.save : Write the page to a file.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> page = validate_eval_set([{"request": "Hi", "response": "Hello!"}]).to_html()
        >>> page.startswith("<!doctype html>")
        True
        """
        from agent_eval_schema.render.report.html import report_page

        return report_page(self.summary, for_page(self))

    def _forms(self) -> dict[str, Callable[[], str]]:
        return {**super()._forms(), ".xml": self._junit, ".sarif": self._sarif}

    def _sarif(self) -> str:
        from agent_eval_schema.render.report.sarif import sarif_text

        issues = self.listed_issues()
        return sarif_text([(self.summary, issues, lines_of(self._source, issues))])

    def _junit(self) -> str:
        from agent_eval_schema.render.report.junit import junit_xml

        return junit_xml([self.summary])

    def _repr_html_(self) -> str:
        from agent_eval_schema.render.report.html import report_inline

        examples = [issue for found in self._builder.examples.values() for issue in found]
        shown = Shown(lines_of(self._source, examples), self.excerpts, self._fixes)
        return report_inline(self.summary, shown)

    def write(self, path: str | Path, *, passthrough: bool = True) -> int:
        """Write the normalized rows to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. The file extension selects the kind: `.jsonl`, `.json`, `.csv`, `.parquet`, or a Delta
            folder.
        passthrough : bool, default True
            If False, write the canonical columns only.

        Returns
        -------
        int
            The number of rows that were written, valid and invalid.

        Raises
        ------
        EvalSetError
            The file extension is not supported, or the file cannot be written.

        See Also
        --------
        Report.write_invalid : Write the invalid rows with their issues.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set("sample_data/good.jsonl")
        >>> report.write("normalized.parquet")
        12
        """
        schema = self.schema if passthrough else ROW_SCHEMA
        return write_normalized(path, self._source, self.iter_batches(), schema, values=self.show_values)

    def write_invalid(self, path: str | Path) -> int:
        """Write the invalid rows and their issues to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. The file extension selects the kind: `.jsonl` or `.parquet`.

        Returns
        -------
        int
            The number of rows that were written: the original cells and a column `_issues`, a list of objects.

        Raises
        ------
        EvalSetError
            The file extension is not supported, or the file cannot be written.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> data = [{"request": "Hi", "response": "Hello!"}, {"request": " ", "response": "Hello!"}]
        >>> report = validate_eval_set(data)
        >>> report.write_invalid("invalid.jsonl")
        1
        """
        return write_invalid(path, self._source, self._plan, self._builder.valid)

    def __repr__(self) -> str:
        return (
            f"<Report: {self.valid_count:,} of {self.row_count:,} rows valid, {self.count('error'):,} errors, "
            f"{self.count('warning'):,} warnings>"
        )


def for_page(report: Report) -> Shown:
    """What an HTML page shows beside the summary."""
    rows = report.iter_rows() if report.has_metrics else ()
    return shown_on_page(report._source, report._plan, report._builder, report.excerpts, report._fixes, rows)


def previewing(report: Report, preview: Callable[[], FixPreview | None]) -> Report:
    """The report, which asks `preview` what the safe fixes would change, when it is drawn."""
    report._preview = preview
    return report


class InvalidEvalSetError(EvalSetError):
    """Validation found errors and the caller requested an exception.

    Parameters
    ----------
    report : Report
        The report with the errors, available as the attribute `report`.

    See Also
    --------
    Report.raise_if_invalid : Raise the error if the data has an error.

    Examples
    --------
    >>> from agent_eval_schema import InvalidEvalSetError, normalize_eval_set
    >>> try:
    ...     normalize_eval_set([{"request": " ", "response": "Hello!"}])
    ... except InvalidEvalSetError as error:
    ...     print(error.report.invalid_count)
    1
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(report.to_text())


def coverage_of(report: Report, metric: Metric) -> Support:
    """The coverage of one metric, which need not be in the catalog."""
    return support_of(metric, report._builder.valid_masks, report.row_count, report.outputs)
