"""The Report: the result of a validation.

Data that would be large for a file (rows, valid, invalid, a long list of issues) is read from it again on access.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec.structs import astuple

from agent_eval_schema.cells.notes import LINE, NOTE
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.column_names import titles_of
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.excel import is_excel
from agent_eval_schema.io.excel_editor import comment_workbook
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.io.pandas import issues_frame, to_pandas
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.io.write import write_batches
from agent_eval_schema.issues import Issue
from agent_eval_schema.metrics.support import Support, find_metric, metrics_of, supports, why_supported
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN
from agent_eval_schema.render.printable import Savable
from agent_eval_schema.render.report.summary import FixPreview, ReportSummary, Shown
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import ROW_SCHEMA
from agent_eval_schema.text.choices import path_of, require_choice
from agent_eval_schema.text.privacy import quoting
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.checked_run import ISSUES_COLUMN, CheckedRun
from agent_eval_schema.validation.shown import rows_one_by_one, shown_on_page, summarized

if TYPE_CHECKING:
    import pandas as pd

    from agent_eval_schema.render.blocks import View


EXCERPT_ROWS = 100_000
"""Rows whose cells a text quotes, at most, so that a large file is not read again; a page quotes all."""


class Report(Savable):  # numpydoc ignore=PR01
    """The result of validating an evaluation dataset.

    `print(report)` shows it as text; a notebook shows it as HTML. A row with at least one error is invalid. For a file
    the report stays small: `rows`, `valid` and `invalid` are read from the file when they are used. In a condition a
    report is `ok`, so that `assert validate_eval_set(data)` fails for data with an error.

    Attributes
    ----------
    ok : bool
        Whether no row and no rule on the whole dataset has an issue of severity error.
    format : str
        The format of the data, as detected or as given, such as `"databricks"`.
    outputs : {"provided", "generated"}
        Whether the agent's outputs are in the data.
    row_count : int
        The number of rows in the data, valid and invalid.
    valid_count, invalid_count : int
        The number of rows without an error, and with at least one.
    valid_mask : numpy.ndarray
        Whether each row is valid, in order, dtype bool.
    counts : dict of str to int
        The exact number of issues per code, in the order of the codes; codes without an issue are not in it.

    See Also
    --------
    validate_eval_set : The function that returns a report.

    Examples
    --------
    >>> from agent_eval_schema import validate_eval_set
    >>> report = validate_eval_set("sample_data/broken_mlflow.jsonl")
    >>> report.ok, report.row_count, report.valid_count
    (False, 13, 6)
    >>> report.issues.loc[0, ["code", "name"]].tolist()
    ['AE216', 'inputs-not-object']
    """

    def __init__(self, run: CheckedRun, preview: Callable[[Report], FixPreview | None] = lambda _: None) -> None:
        builder = run.builder
        builder.finish()
        self._run, self._preview = run, preview
        self.format, self.outputs = run.plan.format, run.plan.outputs
        self.valid_mask = builder.valid.copy()
        self.row_count: int = builder.row_count
        self.valid_count = int(builder.valid.sum())
        self.invalid_count: int = self.row_count - self.valid_count
        self.counts: dict[str, int] = dict(sorted((code, count) for code, count in builder.counts.items() if count))
        self.ok = not self.count(Severity.ERROR)

    def __bool__(self) -> bool:
        return self.ok

    def __checked_source__(self) -> Source:
        """The data of the report and how they were read: every function that takes data takes a report."""
        return self._run.opened

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
        yield from self._run.issues()

    # rows

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
        return to_pandas(self._run.normalized(), self._run.source, find_format(self.format).reads)

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over the normalized rows.

        Yields
        ------
        dict
            One row at a time, with a key per column of `rows` and None where a value is absent; a file of any size is
            streamed.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!"}])
        >>> [row["response"] for row in report.iter_rows()]
        ['Hello!']
        """
        yield from rows_one_by_one(self._run)

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
        return self._run.source.take(self._run.builder.valid)

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
        return self._run.source.take(~self._run.builder.valid)

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

        masks, usable = self._run.builder.masks, self._run.builder.usable
        columns = {m.name: supports(m, masks, usable, self.outputs) for m in metrics_of("all")}
        return pd.DataFrame(columns, index=self._run.index)

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

        return pd.DataFrame(map(astuple, self._run.coverage()), columns=list(Support.__struct_fields__))

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
        entry, run = find_metric(metric), self._run
        if isinstance(row, str):
            ids = (id for batch in run.normalized() for id in batch.column("request_id").to_pylist())
            places = [place for place, id in enumerate(ids) if id == row]
            if len(places) != 1:
                owners = f"the rows {', '.join(map(str, places[:5]))} have" if places else "no row has"
                raise EvalSetError(f"{owners} the request_id {row!r}: use the position of a row")
            row = places[0]
        if not 0 <= row < self.row_count:
            raise IndexError(f"row {row} is not one of 0 to {self.row_count - 1}")
        if not run.builder.valid[row]:
            errors = (i for i in self.iter_issues() if i.row == row and i.severity is Severity.ERROR)
            reasons = "; ".join(f"{i.code} {i.message}" for i in errors)
            return visible(f"row {row} does not support {entry.name}: it is invalid ({reasons})")
        if not run.builder.usable[row]:
            return f"row {row} does not support {entry.name}: a rule outside of the selection has an error on it"
        return f"row {row} {why_supported(entry, int(run.builder.masks[row]), self.outputs)}"

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

    @cached_property
    def _summary(self) -> ReportSummary:
        return summarized(self._run)

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
        from agent_eval_schema.render.report.report_blocks import report_text

        return report_text(self._summary, self._shown(metrics=metrics), color=color, width=width, system=system or "")

    def _shown(self, *, metrics: bool = True, out: str | None = None) -> Shown:
        """What a text shows beside the summary."""
        examples = [issue for issues in self._summary.examples.values() for issue in issues[:EXAMPLES_SHOWN]]
        near = [issue for issue in examples if issue.row is not None and issue.row < EXCERPT_ROWS]
        return Shown(self._run.lines(examples), self._run.excerpts(near), self._fixes, metrics, out=out)

    @cached_property
    def _fixes(self) -> FixPreview | None:
        """What the safe fixes would change; None if unknown, or if nothing would change."""
        return self._preview(self)

    def _json(self) -> str:
        from agent_eval_schema.render.report.summary import report_json

        return report_json(self._summary, self._run.builder.take_issues())

    def _page(self) -> str:
        from agent_eval_schema.render.block_html import view_page
        from agent_eval_schema.render.report.report_blocks import report_view

        return view_page(report_view(self._summary, shown_on_page(self._run, self._fixes), "page"))

    def _forms(self) -> dict[str, Callable[[], str]]:
        return {**super()._forms(), ".xml": lambda: junit_of([self]), ".sarif": lambda: sarif_of([self])}

    def _view(self) -> View:
        from agent_eval_schema.render.report.report_blocks import report_view

        examples = self._run.builder.all_examples()
        shown = Shown(self._run.lines(examples), self._run.excerpts(examples), self._fixes)
        return report_view(self._summary, shown, "notebook")

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
        schema = self._run.schema if passthrough else ROW_SCHEMA
        settle({"": path_of(path)}, {"the data": self._inputs()})
        with quoting(self._run.plan.values):
            return write_batches(path_of(path), self._run.normalized(), schema)

    def write_invalid(self, path: str | Path) -> int:
        """Write the invalid rows and their issues to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. The file extension selects the kind: `.jsonl`, `.parquet` or `.xlsx`.

        Returns
        -------
        int
            The number of invalid rows. Each has its original cells, without those that cannot be read (bytes, a lone
            surrogate), and a column `_issues`, a list of objects, which names them too; in Excel each issue is a
            comment of its cell. Of a workbook a copy is written, with all rows and sheets.

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
        source = self._run.source
        settle({"": path_of(path)}, {"the data": source})
        if source.sheet is not None and is_excel(path_of(path)):
            titles, rows = titles_of(source), [row for row, valid in enumerate(self.valid_mask.tolist()) if not valid]
            with quoting(self._run.plan.values):
                lists = (notes for b in self._run.invalid_rows() for notes in b.column(ISSUES_COLUMN).to_pylist())
                own_names = ([{**n, "column": titles.get(n["column"], n["column"])} for n in notes] for notes in lists)
                comment_workbook(source.sheet, path_of(path), zip(rows, own_names, strict=True))
            return len(rows)
        own = [f for f in schema_of(source) if f.name not in (ISSUES_COLUMN, LINE)]
        schema = pa.schema([*own, pa.field(LINE, pa.string()), pa.field(ISSUES_COLUMN, pa.list_(NOTE))])
        with quoting(self._run.plan.values):
            return write_batches(path_of(path), self._run.invalid_rows(), schema)

    def _inputs(self) -> object:
        return self._run.source

    def __repr__(self) -> str:
        return (
            f"<Report: {self.valid_count:,} of {self.row_count:,} rows valid, {self.count('error'):,} errors, "
            f"{self.count('warning'):,} warnings>"
        )


class InvalidEvalSetError(EvalSetError):
    """Validation found errors and the caller requested an exception.

    Parameters
    ----------
    report : Report
        The report with the errors, available as the attribute `report`.
    message : str, default ""
        The message of the exception. Empty means the text of the report.

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

    def __init__(self, report: Report, message: str = "") -> None:
        self.report = report
        super().__init__(message or report.to_text())


def run_of(report: Report) -> CheckedRun:
    """The run behind a report, for what the package itself needs of it."""
    return report._run


def summary_of(report: Report) -> ReportSummary:
    """The numbers and examples of a report, as plain values that renderers draw."""
    return report._summary


def text_of(report: Report, out: str, *, color: bool) -> str:
    """`Report.to_text` where the rows were written to a file, which the next commands read."""
    from agent_eval_schema.render.report.report_blocks import report_text

    return report_text(report._summary, report._shown(out=out), color=color, width=None)


def junit_of(reports: Sequence[Report], failing: Collection[Severity] = (Severity.ERROR,)) -> str:
    """Reports as JUnit XML; a rule of a `failing` severity that found something is a failed test case."""
    from agent_eval_schema.render.report.junit import junit_xml

    return junit_xml([report._summary for report in reports], failing=failing)


def sarif_of(reports: Sequence[Report], root: str = ".") -> str:
    """Reports as SARIF, files named as seen from the folder `root`."""
    from agent_eval_schema.render.report.sarif import sarif_text

    pairs = [(report, report._run.builder.take_issues()) for report in reports]
    return sarif_text([(report._summary, issues, report._run.lines(issues)) for report, issues in pairs], root=root)
