"""What a report shows beside its numbers: the lines of rows, the cells around the examples, on a page also rows and the
most frequent answers. The cells are read from the source once more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.arrow import to_columns
from agent_eval_schema.issues import Issue
from agent_eval_schema.metrics.support import metrics_of, shown_systems, supports
from agent_eval_schema.render.figures import presence, steps
from agent_eval_schema.render.report.summary import FixPreview, ReportSummary, Shown
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.checked_run import CheckedRun, unless_gone
from agent_eval_schema.validation.report_builder import frequent_answers
from agent_eval_schema.validation.shown_rows import shown_rows

EXCERPT_ROWS = 100_000
"""Rows whose cells a text quotes, at most, so that a large file is not read again; a page quotes all."""


def summarized(run: CheckedRun, seconds: float) -> ReportSummary:
    """The numbers and examples of a report, as plain values."""
    plan, found, form = run.plan, run.builder, find_format(run.plan.format)
    counts = dict(sorted((code, n) for code, n in found.counts.items() if n))
    metrics = [m for system in shown_systems(form.system) for m in metrics_of(system)]
    has_shares = form.is_rows and len(found.valid) > 0
    shares = {m.name: steps(supports(m, found.masks, found.valid, plan.outputs)) for m in metrics if has_shares}
    return ReportSummary(
        name=run.source.name,
        format=plan.format,
        format_reason=plan.reason,
        system=form.system,
        has_metrics=form.is_rows,
        outputs=plan.outputs,
        values=plan.values,
        codes=sorted(plan.codes),
        codes_off=[code for code in RULES if code not in plan.codes],
        row_count=found.row_count,
        valid_count=int(found.valid.sum()),
        counts=counts,
        examples=dict(sorted(found.examples.items())),
        occurrences=found.occurrences,
        together=dict(found.together.pairs),
        derived={column: found.derived[column] for column in COLUMNS if found.derived[column]},
        coverage=run.coverage() if form.is_rows else [],
        presence=presence(found.masks, found.valid),
        support_shares=shares,
        distributions={name: d for name, d in found.distributions.items() if d.count} if plan.values else {},
        seconds=seconds,
    )


def shown_in_text(run: CheckedRun, examples: Iterable[Issue], fixes: FixPreview | None, *, metrics: bool) -> Shown:
    """What a text shows, with metric coverage or without."""
    examples = list(examples)
    near = [issue for issue in examples if issue.row is not None and issue.row < EXCERPT_ROWS]
    return Shown(run.lines(examples), run.excerpts(near), fixes, metrics)


def shown_inline(run: CheckedRun, fixes: FixPreview | None) -> Shown:
    """What a notebook shows."""
    examples = run.builder.all_examples()
    return Shown(run.lines(examples), run.excerpts(examples), fixes)


def shown_on_page(run: CheckedRun, fixes: FixPreview | None = None) -> Shown:
    """What a page shows: at most so many rows, each with its issues."""
    listed, examples = shown_rows(run), run.builder.all_examples()
    issues = run.builder.issues_of({row.row for row in listed})
    has_answers = run.plan.values and find_format(run.plan.format).is_rows
    return Shown(
        {**run.lines(examples), **{row.row: row.line for row in listed if row.line is not None}},
        run.excerpts(examples),
        fixes,
        rows=listed,
        issues=issues,
        values={location: excerpt.marked for location, excerpt in run.excerpts(issues).items()},
        answers=unless_gone(lambda: frequent_answers(run.builder.answers, rows_one_by_one(run)), [])
        if has_answers
        else [],
    )


def rows_one_by_one(run: CheckedRun) -> Iterator[dict[str, Any]]:
    """The normalized rows, with None where a value is absent."""
    for batch in run.normalized():
        _, columns = to_columns([batch])
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(columns, row, strict=True))
