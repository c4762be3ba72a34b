"""What an HTML report shows beside its numbers: its rows with their issues and values, and the most frequent answers.

The cells are read from the source once more. A report can outlive its file. It is drawn without them then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.render.report.summary import Excerpt, FixPreview, FrequentAnswer, Location, Shown
from agent_eval_schema.validation.excerpts import offending_values
from agent_eval_schema.validation.for_text import lines_of
from agent_eval_schema.validation.frequent_answers import frequent_answers
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report_builder import ReportBuilder
from agent_eval_schema.validation.shown_rows import shown_rows


def shown_on_page(
    source: Source,
    plan: Plan,
    builder: ReportBuilder,
    excerpts: Mapping[Location, Excerpt],
    fixes: FixPreview | None,
    rows: Iterable[dict[str, Any]],
) -> Shown:
    """What a page shows; `rows` are the normalized rows."""
    listed = shown_rows(source, plan, builder)
    issues = builder.issues_of({row.row for row in listed})
    lines = lines_of(source, [issue for found in builder.examples.values() for issue in found])
    return Shown(
        {**lines, **{row.row: row.line for row in listed if row.line is not None}},
        excerpts,
        fixes,
        rows=listed,
        issues=issues,
        values=offending_values(issues, source, plan),
        answers=_answers(builder, rows) if plan.values else [],
    )


def _answers(builder: ReportBuilder, rows: Iterable[dict[str, Any]]) -> list[FrequentAnswer]:
    try:
        return frequent_answers(builder.answers, rows)
    except (EvalSetError, OSError):
        return []
