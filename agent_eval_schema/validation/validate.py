"""A source → its Report: choose the format and the plan, and check all rows. In a test: an AssertionError."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Literal, get_args

from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import InputFormat
from agent_eval_schema.io.source import Source
from agent_eval_schema.metrics.support import find_metric
from agent_eval_schema.render.report.summary import FixPreview, concise_text
from agent_eval_schema.rule import FAILING
from agent_eval_schema.rules import words
from agent_eval_schema.runtime.progress import progress
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.plan import Outputs, make_plan
from agent_eval_schema.validation.report import Report, run_of, summary_of

if TYPE_CHECKING:
    from agent_eval_schema.io.work_folder import PartsFolder


def check_source(
    source: Source,
    *,
    complete: bool = False,
    labeled: bool = False,
    jobs: int = 0,
    preview: Callable[[Report], FixPreview | None] = lambda _: None,
    parts: PartsFolder | None = None,
) -> Report:
    """The report on a source, by what its reading asks for. Rows that are passed on have to be `complete`, whatever
    their format requires. If `labeled`, feedback on traces gives labels. The rows are validated by `jobs` processes (0:
    one per core where it pays). A report that is
    drawn shows a `preview` of the safe fixes. What is done is kept in `parts`, and what was done there is not done
    again."""
    source = source.quoting(source.reading.show_values)
    with progress(source.read_share) as so_far:
        run = CheckedRun(source, make_plan(source, complete=complete, labeled=labeled), jobs=jobs, parts=parts)
        for checked in run.batches():
            so_far.add(checked.num_rows)
    return Report(run, preview)


def report_on(data: object, source: Source) -> Report:
    """The report on data of a call, opened as `source`: data that is a report is not validated again."""
    return data if isinstance(data, Report) else check_source(source)


# --- a dataset in a test
FailOn = Literal["error", "warning", "never"]

SHOWN = 20
"""The issues that a failure lists."""


def assert_valid(
    data: EvalSetLike,
    *,
    fail_on: FailOn = "error",
    metrics: Iterable[str] | Mapping[str, int] = (),
    format: InputFormat = "auto",
    outputs: Outputs = "auto",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    columns: ColumnNames = None,
) -> None:
    """Assert that an evaluation dataset is valid, in a test.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`.
    fail_on : {"error", "warning", "never"}, default "error"
        The lowest severity of an issue that fails the assertion.
    metrics : iterable of str or mapping of str to int, default ()
        Names of metrics that every row has to support; or by name the number of rows that have to, at least. A part of
        a name between slashes is sufficient, such as `"correctness"`.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    outputs : {"auto", "provided", "generated"}, default "auto"
        Whether the agent's outputs are in the data or will be generated.
    select : iterable of str, default ()
        Codes, prefixes of codes or names of the rules to enable; () enables all.
    ignore : iterable of str, default ()
        Rules to disable.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.

    Raises
    ------
    AssertionError
        The data has an issue of that severity, or fewer rows than required support a metric. The message lists the
        first 20 issues, and for a metric the field that would enable the most additional rows.
    EvalSetError
        The data cannot be read, or an option is wrong.

    See Also
    --------
    Report.raise_if_invalid : Raise an EvalSetError if the data has an error.

    Examples
    --------
    >>> from agent_eval_schema import assert_valid
    >>> assert_valid("sample_data/good.jsonl", metrics={"correctness": 10})
    >>> try:
    ...     assert_valid([{"request": "Hi", "response": "Hello!"}], metrics=["correctness"])
    ... except AssertionError as error:
    ...     print(error)
    0 of 1 rows support response/llm_judged/correctness/rating, expected 1: +1 with expected_response or expected_facts
    """
    require_choice("fail_on", fail_on, get_args(FailOn))
    source = open_source(data, "data", columns, format=format, outputs=outputs, select=select, ignore=ignore)
    report = report_on(data, source)
    wrong = failures(report, fail_on)
    needed = metrics if isinstance(metrics, Mapping) else dict.fromkeys(words(metrics), report.row_count)
    for name, rows in needed.items():
        entry = run_of(report).coverage_of(find_metric(name))
        if entry.supported < rows:
            unlock = f": +{entry.unlock_rows} with {entry.unlock}" if entry.unlock else ""
            wrong.append(f"{entry.supported} of {entry.total} rows support {entry.metric}, expected {rows}{unlock}")
    if wrong:
        raise AssertionError("\n".join(wrong))


def failures(report: Report, fail_on: FailOn, code: str | None = None) -> list[str]:
    """What fails: the first issues of these severities, of one rule or of all, and the report in one line; nothing if
    none does."""
    failing = FAILING[fail_on]
    issues = (i for i in report.iter_issues() if i.severity in failing and code in (None, i.code))
    shown = list(islice(issues, SHOWN))
    if not shown:
        return []
    count = report.counts[code] if code else sum(report.count(severity) for severity in failing)
    more = [f"… and {count - len(shown):,} more"] if count > len(shown) else []
    lines = concise_text(summary_of(report), shown, run_of(report).lines(shown))
    return [*lines.splitlines(), *more, repr(report)]  # pytest's summary shows the first line
