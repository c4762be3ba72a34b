"""What a report shows beside its numbers: the lines of rows, the cells around the examples, on a page also rows and the
most frequent answers. The cells are read from the source once more, as the report keeps none."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import own_columns
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.arrow import to_rows
from agent_eval_schema.metrics.catalog import GROUND_TRUTH
from agent_eval_schema.metrics.support import all_metrics, metrics_of, shown_systems, supports
from agent_eval_schema.render.figures import presence, steps
from agent_eval_schema.render.report.summary import FixPreview, FrequentAnswer, ReportSummary, Shown
from agent_eval_schema.render.rows import RowContent, ShownIssue, ShownRow
from agent_eval_schema.rules import all_rules
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation.checked_run import CheckedRun, or_if_missing
from agent_eval_schema.validation.excerpts import cell_at, rows_in
from agent_eval_schema.validation.report_builder import frequent_answers
from agent_eval_schema.validation.row_content import content_of, cut_text


def summarized(run: CheckedRun) -> ReportSummary:
    """The numbers and examples of a report, as plain values."""
    plan, builder, form = run.plan, run.builder, find_format(run.plan.format)
    counts = dict(sorted((code, n) for code, n in builder.counts.items() if n))
    metrics = [m for system in shown_systems(form.system) for m in metrics_of(system)]
    has_shares = form.is_rows and len(builder.valid) > 0
    shares = {m.name: steps(supports(m, builder.masks, builder.usable, plan.outputs)) for m in metrics if has_shares}
    return ReportSummary(
        name=run.source.name,
        call=run.call,
        is_fixed=run.source.differs_from_file,
        suggested=plan.suggested,
        format=plan.format,
        format_reason=plan.reason,
        system=form.system,
        has_metrics=form.is_rows,
        outputs=plan.outputs,
        values=plan.values,
        codes=sorted(plan.codes),
        codes_off=[code for code in all_rules() if code not in plan.codes],
        unselected=len(plan.unselected),
        row_count=builder.row_count,
        valid_count=int(builder.valid.sum()),
        usable_count=int(builder.usable.sum()),
        unlabeled_count=int((builder.usable & (builder.masks & GROUND_TRUTH == 0)).sum()) if form.is_rows else 0,
        counts=counts,
        examples=dict(sorted(builder.examples.items())),
        occurrences=builder.occurrences,
        together=dict(builder.together),
        derived={column: builder.derived[column] for column in COLUMNS if builder.derived[column]},
        coverage=run.coverage() if form.is_rows else [],
        presence=presence(builder.masks, builder.valid),
        support_shares=shares,
        distributions={name: d for name, d in builder.distributions.items() if d.count} if plan.values else {},
        seconds=run.seconds,
    )


def shown_on_page(run: CheckedRun, fixes: FixPreview | None = None) -> Shown:
    """What a page shows: a limited number of rows, each with its issues."""
    listed, examples = shown_rows(run, fixes), run.builder.all_examples()
    numbers = {cast("int", row.row): row.line for row in listed}
    issues = run.builder.issues_of(set(list(numbers)[:ROWS_IN_CSV]))
    answers: list[FrequentAnswer] = []
    if run.plan.values and find_format(run.plan.format).is_rows:
        answers = or_if_missing(lambda: frequent_answers(run.builder.answers, rows_one_by_one(run)), [])
    return Shown(
        {**run.lines(examples), **{row: line for row, line in numbers.items() if line is not None}},
        run.excerpts(examples),
        fixes,
        rows=listed,
        issues=issues,
        values={location: excerpt.marked for location, excerpt in run.excerpts(issues).items()},
        answers=answers,
    )


def rows_one_by_one(run: CheckedRun) -> Iterator[dict[str, Any]]:
    """The normalized rows, with None where a value is absent."""
    for batch in run.normalized():
        yield from to_rows(batch)


ROWS, ROWS_IN_CSV = 10_000, 500
"""Rows that a page can open, and those whose issues it has as CSV, at most."""

BUDGET, ROW = 1_500_000, 75
"""Bytes of the texts of all rows; each row adds ROW more, and a page has no row beyond it."""

ISSUES = 50
"""Issues of a row, at most."""


def shown_rows(run: CheckedRun, fixes: FixPreview | None = None) -> list[ShownRow]:
    """The rows of a page, invalid ones first; without cells and IDs if values are hidden or the data is gone."""
    valid = run.builder.valid
    return rows_at(run, *(np.flatnonzero(those)[:ROWS].tolist() for those in (~valid, valid)), fixes=fixes)


def rows_at(run: CheckedRun, *parts: list[int], fixes: FixPreview | None = None) -> list[ShownRow]:
    """These rows, as many as a page has room for; each part is in the order of the data."""
    plan, builder = run.plan, run.builder
    valid, usable, masks = builder.valid, builder.usable, builder.masks
    contents = or_if_missing(lambda: _contents(run, *parts), dict[int, _Content]()) if plan.values else {}
    chosen = list(contents) or [row for part in parts for row in part][:ROWS]
    codes: dict[int, list[str]] = {row: [] for row in chosen}
    for code, occurrences in sorted(builder.occurrences.items()):
        for row in occurrences.first_rows:
            if row in codes:
                codes[row].append(code)
    issues: dict[int, list[ShownIssue]] = {row: [] for row in chosen}
    for issue in builder.issues_of(issues):
        texts = (issue.code, str(issue.severity), issue.column or "", issue.path or "", issue.message, issue.hint)
        issues[cast("int", issue.row)].append(ShownIssue(*texts))
    at = np.array(chosen, np.int64)
    systems = shown_systems(find_format(plan.format).system)
    numbered = [(i, metric) for i, metric in enumerate(all_metrics()) if metric.system in systems]
    support = {i: supports(metric, masks[at], usable[at], plan.outputs) for i, metric in numbered}
    lines = run.lines_of(chosen)
    rows = []
    for i, row in enumerate(chosen):
        metrics = [m for m, supported in support.items() if supported[i]]
        request_id, content = contents.get(row, (None, RowContent()))
        fixed = fixes.cells.get(row, []) if fixes is not None else []
        edits = [(path, [("old", was), ("both", " "), ("new", becomes)]) for path, was, becomes in fixed]
        content = replace(content, issues=issues[row][:ISSUES], edits=edits)
        rows.append(ShownRow(row, lines.get(row), request_id, bool(valid[row]), codes[row], metrics, content=content))
    return rows


_Content = tuple[str | None, RowContent]


def _contents(run: CheckedRun, *parts: list[int]) -> dict[int, _Content]:
    """The ID and the content of as many rows as fit, in this order; the source is read no further than to the last of
    them."""
    contents, room, read = dict[int, _Content](), BUDGET, find_format(run.plan.format).read
    for part in parts:
        for row, place, batch, read_batch in rows_in(run.source.batches(), part, read):
            if room < 0 or len(contents) == ROWS:
                return contents
            cells = dict(_cells(batch, place))
            by_name = cells if read_batch is batch else dict(_cells(read_batch, place))
            request_id = by_name.get("request_id")
            contents[row] = content = request_id and cut_text(request_id, 200), content_of(cells, by_name)
            room -= ROW + len(msgspec.json.encode(content))
    return contents


def _cells(batch: pa.RecordBatch, row: int) -> Iterator[tuple[str, str]]:
    """The cells of a row that hold something, as text."""
    for i in own_columns(batch.schema):
        value = cell_at(batch, i, row)
        if value is None:
            continue
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        elif value.startswith('"') and is_json_column(batch.schema.field(i)):  # a string, as JSON
            inner = jsontext.parse_leniently(value)
            value = inner if isinstance(inner, str) else value
        yield batch.schema.field(i).name, value
