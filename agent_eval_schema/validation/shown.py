"""What a report shows beside its numbers: the lines of rows, the cells around the examples, on a page also rows and the
most frequent answers. The cells are read from the source once more, as the report keeps none."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import own_columns
from agent_eval_schema.decoding.chat import join_text
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.arrow import to_rows
from agent_eval_schema.metrics.catalog import GROUND_TRUTH, METRICS
from agent_eval_schema.metrics.support import metrics_of, shown_systems, supports
from agent_eval_schema.render.figures import presence, steps
from agent_eval_schema.render.phrases import seconds
from agent_eval_schema.render.report.summary import (
    FixPreview,
    ReportSummary,
    Shown,
    ShownIssue,
    ShownRow,
    ShownSpan,
    ShownTurn,
)
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import exception_message, status_message
from agent_eval_schema.traces.spans import FAILED_CODES, Attributes, Span, Trace, json_of
from agent_eval_schema.validation.checked_run import CheckedRun, unless_gone
from agent_eval_schema.validation.excerpts import cell_at, rows_in
from agent_eval_schema.validation.report_builder import frequent_answers


def summarized(run: CheckedRun) -> ReportSummary:
    """The numbers and examples of a report, as plain values."""
    plan, found, form = run.plan, run.builder, find_format(run.plan.format)
    counts = dict(sorted((code, n) for code, n in found.counts.items() if n))
    metrics = [m for system in shown_systems(form.system) for m in metrics_of(system)]
    has_shares = form.is_rows and len(found.valid) > 0
    shares = {m.name: steps(supports(m, found.masks, found.usable, plan.outputs)) for m in metrics if has_shares}
    return ReportSummary(
        name=run.source.name,
        call=run.call,
        is_fixed=run.source.fixed,
        suggested=plan.suggested,
        format=plan.format,
        format_reason=plan.reason,
        system=form.system,
        has_metrics=form.is_rows,
        outputs=plan.outputs,
        values=plan.values,
        codes=sorted(plan.codes),
        codes_off=[code for code in RULES if code not in plan.codes],
        unselected=len(plan.unselected),
        row_count=found.row_count,
        valid_count=int(found.valid.sum()),
        usable_count=int(found.usable.sum()),
        unlabeled_count=int((found.usable & (found.masks & GROUND_TRUTH == 0)).sum()) if form.is_rows else 0,
        counts=counts,
        examples=dict(sorted(found.examples.items())),
        occurrences=found.occurrences,
        together=dict(found.together.pairs),
        derived={column: found.derived[column] for column in COLUMNS if found.derived[column]},
        coverage=run.coverage() if form.is_rows else [],
        presence=presence(found.masks, found.valid),
        support_shares=shares,
        distributions={name: d for name, d in found.distributions.items() if d.count} if plan.values else {},
        seconds=run.seconds,
    )


def shown_on_page(run: CheckedRun, fixes: FixPreview | None = None) -> Shown:
    """What a page shows: at most so many rows, each with its issues."""
    listed, examples = shown_rows(run, fixes), run.builder.all_examples()
    issues = run.builder.issues_of({row.row for row in listed[:ROWS_IN_CSV]})
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
        yield from to_rows(batch)


ROWS, ROWS_IN_CSV = 10_000, 500
"""Rows that a page can open, and those whose issues it has as CSV, at most."""

CELL, SPAN_TEXT = 4_000, 1_000
"""Characters of a cell, and of the inputs or outputs of a span, at most."""

SPANS = 100
"""Spans of a trace, at most."""

BUDGET, ROW = 1_500_000, 100
"""Bytes of the texts of all rows, of which each has ROW more: a page has no row beyond it."""

ISSUES = 50
"""Issues of a row, at most."""


def shown_rows(run: CheckedRun, fixes: FixPreview | None = None) -> list[ShownRow]:
    """The rows of a page, invalid ones first; without cells and IDs if values are hidden or the data is gone."""
    plan, builder = run.plan, run.builder
    valid, usable, masks = builder.valid, builder.usable, builder.masks
    first, then = (np.flatnonzero(those)[:ROWS].tolist() for those in (~valid, valid))
    contents = unless_gone(lambda: _contents(run, first, then), dict[int, _Content]()) if plan.values else {}
    chosen = list(contents) or [*first, *then][:ROWS]
    codes: dict[int, list[str]] = {row: [] for row in chosen}
    for code, found in sorted(builder.occurrences.items()):
        for row in found.first_rows:
            if row in codes:
                codes[row].append(code)
    issues: dict[int, list[ShownIssue]] = {row: [] for row in chosen}
    for issue in builder.issues_of(issues):
        texts = (issue.code, str(issue.severity), issue.column or "", issue.path or "", issue.message, issue.hint)
        issues[cast("int", issue.row)].append(ShownIssue(*texts))
    at = np.array(chosen, np.int64)
    systems = shown_systems(find_format(plan.format).system)
    support = {
        i: supports(m, masks[at], usable[at], plan.outputs) for i, m in enumerate(METRICS) if m.system in systems
    }
    lines = run.lines_of(chosen)
    rows = []
    for i, row in enumerate(chosen):
        metrics = [m for m, supported in support.items() if supported[i]]
        request_id, turns, cells, spans = contents.get(row, (None, [], [], []))
        rows.append(
            ShownRow(
                row=row,
                line=lines.get(row),
                id=request_id,
                valid=bool(valid[row]),
                codes=codes[row],
                metrics=metrics,
                turns=turns,
                cells=cells,
                spans=spans,
                issues=issues[row][:ISSUES],
                fixes=fixes.cells.get(row, []) if fixes is not None else [],
            )
        )
    return rows


_Content = tuple[str | None, list[ShownTurn], list[tuple[str, str]], list[ShownSpan]]


def _contents(run: CheckedRun, *parts: list[int]) -> dict[int, _Content]:
    """The ID, the conversation, the other cells and the spans of as many rows as fit, in this order; the source is read
    no further than to the last of them."""
    found, left, read = dict[int, _Content](), BUDGET, find_format(run.plan.format).read
    for part in parts:
        for row, place, batch, read_batch in rows_in(run.source.batches(), part, read):
            if left < 0 or len(found) == ROWS:
                return found
            found[row] = content = _content(batch, read_batch, place)
            left -= ROW + len(msgspec.json.encode(content))
    return found


def _content(batch: pa.RecordBatch, read_batch: pa.RecordBatch, place: int) -> _Content:
    cells = list(_cells(batch, place))
    by_name = dict(cells if read_batch is batch else _cells(read_batch, place))
    spans = spans_of(by_name["trace"]) if "trace" in by_name else []
    request_id = by_name.get("request_id")
    turns = _turns(by_name.get("request", ""))
    spoken = {"request"} if turns else set[str]()
    if turns and "response" in by_name:
        turns.append(ShownTurn("response", "assistant", by_name["response"]))
        spoken.add("response")
    turns = [ShownTurn(turn.path, _cut(turn.role, 40), _cut(turn.text, CELL)) for turn in turns[-TURNS:]]
    shown = [(name, _cut(text, CELL)) for name, text in cells if name not in spoken]
    return request_id and _cut(request_id, 200), turns, shown, spans


TURNS = 100
"""Turns of a conversation, at most: the last ones."""


def _turns(cell: str) -> list[ShownTurn]:
    """The turns of a request, also of one with issues; none if it is no conversation."""
    value = jsontext.structured(cell)
    if isinstance(value, str):
        return [ShownTurn("request", "user", value)] if value.strip() else []
    found = value if isinstance(value, dict) else {"": value}
    places = [(f"request.{key}" if key else "request", found.get(key)) for key in ("", "messages", "history")]
    messages = [(f"{path}[{i}]", m) for path, chat in places if isinstance(chat, list) for i, m in enumerate(chat)]
    if isinstance(found.get("query"), str):
        messages.append(("request.query", {"role": "user", "content": found["query"]}))
    if not all(isinstance(m, dict) and isinstance(m.get("role"), str) for _, m in messages):
        return []
    return [ShownTurn(path, m["role"], _said(m)) for path, m in messages]


def _said(message: dict[str, Any]) -> str:
    """The text of a message, and what it has besides as JSON."""
    content = join_text(message.get("content"))
    spoken = content if isinstance(content, str) else ""
    told = ("role", "content") if spoken or content is None else ("role",)
    rest = {key: value for key, value in message.items() if key not in told and value is not None}
    return "\n".join(filter(None, (spoken, jsontext.encode_text(rest) if rest else "")))


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
        yield batch.schema.names[i], value


def spans_of(text: str) -> list[ShownSpan]:
    """The spans of a trace by their start, each with the place of its bar."""
    trace = decode_trace(text)
    if not isinstance(trace, Trace):
        return []
    timed = sorted((span for span in trace.spans if span.start is not None), key=lambda s: s.start or 0)[:SPANS]
    if not timed:
        return []
    first = min(span.start or 0 for span in timed)
    whole = max(max((span.end or span.start or 0) - first for span in timed), 1)
    parents = {span.id: span.parent for span in timed}
    return [_span(span, first, whole, _depth(span.id, parents)) for span in timed]


def _depth(id: str | None, parents: Mapping[str | None, str | None]) -> int:
    depth = 0
    while (id := parents.get(id)) is not None and depth < 20:  # a circle ends too
        depth += 1
    return depth


def _span(span: Span, first: int, whole: int, depth: int) -> ShownSpan:
    start = span.start or first
    length = max((span.end or start) - start, 0)
    attributes = span.attributes if isinstance(span.attributes, Attributes) else Attributes()
    has_failed = span.code in FAILED_CODES
    return ShownSpan(
        name=_cut(span.name or "", 80),
        type=_cut((attributes.type or "").strip('"'), 40),
        status="error" if has_failed else "ok",
        start=round(100 * (start - first) / whole, 2),
        width=round(100 * length / whole, 2),
        depth=depth,
        duration=seconds(length / 1e9),
        inputs=_cut(json_of(attributes.inputs) or "", SPAN_TEXT),
        outputs=_cut(json_of(attributes.outputs) or "", SPAN_TEXT),
        error=_cut((exception_message(span) or status_message(span) or "") if has_failed else "", SPAN_TEXT),
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
