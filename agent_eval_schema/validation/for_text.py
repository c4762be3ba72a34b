"""What a report as text shows beside its numbers: the lines of rows and the cells around the examples.

A report can outlive its file. It is drawn without them then.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError, Issue
from agent_eval_schema.render.report.summary import Excerpt, FixPreview, Location, ReportSummary, Shown
from agent_eval_schema.validation.excerpts import excerpts
from agent_eval_schema.validation.plan import Plan

EXCERPT_ROWS = 100_000
"""Rows whose cells a text quotes, at most, so that a large file is not read again; a page quotes all."""


def for_text(report: ReportSummary, source: Source, plan: Plan, fixes: FixPreview | None, *, metrics: bool) -> Shown:
    """What the text shows, with metric coverage or without."""
    examples = report.text_examples()
    return Shown(lines_of(source, examples), _excerpts_of(examples, source, plan), fixes, metrics)


def lines_of(source: Source, issues: Iterable[Issue]) -> dict[int, int]:
    """The lines of the rows of these issues."""
    return lines_of_rows(source, {issue.row for issue in issues if issue.row is not None})


def lines_of_rows(source: Source, rows: Iterable[int]) -> dict[int, int]:
    """The lines of these rows; none if the data has no lines or is gone."""
    try:
        return source.lines(rows) if source.lines else {}
    except (EvalSetError, OSError):
        return {}


def _excerpts_of(issues: Iterable[Issue], source: Source, plan: Plan) -> dict[Location, Excerpt]:
    near = [issue for issue in issues if issue.row is not None and issue.row < EXCERPT_ROWS]
    try:
        return excerpts(near, source.batches(), find_format(plan.format).read) if plan.values else {}
    except (EvalSetError, OSError):
        return {}
