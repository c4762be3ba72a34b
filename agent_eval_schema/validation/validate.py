"""A source → its Report: choose the format and the plan, and check all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_eval_schema.io.source import Source
from agent_eval_schema.render.report.summary import FixPreview
from agent_eval_schema.runtime.progress import progress
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import Report

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
        plan = make_plan(source, complete=complete, labeled=labeled)
        run = CheckedRun(source, plan, jobs=jobs, parts=parts)
        for checked in run.batches():
            so_far.add(checked.num_rows)
    return Report(run, preview)


def report_on(data: object, source: Source) -> Report:
    """The report on data of a call, opened as `source`: data that is a report is not validated again."""
    return data if isinstance(data, Report) else check_source(source)
