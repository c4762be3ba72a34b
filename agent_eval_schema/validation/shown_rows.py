"""The rows that a page can open: the invalid ones first, with cells and traces of a bounded size.

The cells are read from the source once more, as the report keeps no cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.arrow import plain_values, to_values
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import own_columns
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.metrics.catalog import METRICS
from agent_eval_schema.metrics.support import shown_systems, supports
from agent_eval_schema.render.numbers import seconds
from agent_eval_schema.render.report.summary import ShownRow, ShownSpan
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.spans import FAILED_CODES, Attributes, Span, Trace, json_of
from agent_eval_schema.validation.checked_run import CheckedRun, unless_gone

ROWS = 500
"""Rows that a page can open, at most."""

CELL, SPAN_TEXT = 4_000, 1_000
"""Characters of a cell, and of the inputs or outputs of a span, at most."""

SPANS = 100
"""Spans of a trace, at most."""

BUDGET = 400_000
"""Characters of all cells and spans together; the rows beyond it are listed without them."""


def shown_rows(run: CheckedRun) -> list[ShownRow]:
    """At most ROWS rows in the order in which they are to be read. Where values are hidden they have no cells and no
    IDs; if the data is gone, none has."""
    plan, builder = run.plan, run.builder
    valid, masks = builder.valid, builder.masks
    chosen = [*np.flatnonzero(~valid)[:ROWS].tolist(), *np.flatnonzero(valid)[:ROWS].tolist()][:ROWS]
    codes: dict[int, list[str]] = {row: [] for row in chosen}
    for code, found in sorted(builder.occurrences.items()):
        for row in found.first_rows:
            if row in codes:
                codes[row].append(code)
    at = np.array(chosen, np.int64)
    systems = shown_systems(find_format(plan.format).system)
    support = {i: supports(m, masks[at], valid[at], plan.outputs) for i, m in enumerate(METRICS) if m.system in systems}
    lines = run.lines_of(chosen)
    contents = unless_gone(lambda: _contents(run, chosen), dict[int, _Content]()) if plan.values else {}
    left, rows = BUDGET, []
    for i, row in enumerate(chosen):
        request_id, cells, spans = contents.get(row, (None, [], []))
        left -= sum(len(name) + len(text) for name, text in cells) + sum(len(s.inputs) + len(s.outputs) for s in spans)
        shown = (cells, spans) if left >= 0 else ([], [])
        metrics = [m for m, supported in support.items() if supported[i]]
        rows.append(ShownRow(row, lines.get(row), request_id, bool(valid[row]), codes[row], metrics, *shown))
    return rows


_Content = tuple[str | None, list[tuple[str, str]], list[ShownSpan]]


def _contents(run: CheckedRun, chosen: list[int]) -> dict[int, _Content]:
    """The ID, the cells and the spans of each row; the source is read no further than to the last of them."""
    source, read = run.source, find_format(run.plan.format).read
    wanted, found = sorted(chosen), dict[int, _Content]()
    start = at = 0
    for batch in source.batches() if wanted else ():
        ours: pa.RecordBatch | None = None
        while at < len(wanted) and wanted[at] < start + batch.num_rows:
            ours = read(batch) if ours is None else ours
            found[wanted[at]] = _content(batch, ours, wanted[at] - start)
            at += 1
        start += batch.num_rows
        if at == len(wanted):
            break
    return found


def _content(batch: pa.RecordBatch, ours: pa.RecordBatch, row: int) -> _Content:
    cells = list(_cells(batch, row))
    by_name = dict(_cells(ours, row))
    spans = _spans(by_name["trace"]) if "trace" in by_name else []
    request_id = by_name.get("request_id")
    return request_id and _cut(request_id, 200), [(name, _cut(text, CELL)) for name, text in cells], spans


def _cells(batch: pa.RecordBatch, row: int) -> Iterator[tuple[str, str]]:
    """The cells of a row that hold something, as text."""
    for i in own_columns(batch.schema):
        (value,) = to_values(batch.column(i).slice(row, 1))
        if value is None or value != value:
            continue
        if not isinstance(value, str):
            plain = plain_values(batch.column(i).type)(value)
            value = msgspec.json.encode(plain, enc_hook=str).decode("utf-8", "replace")
        elif value.startswith('"') and is_json_column(batch.schema.field(i)):  # a string, as JSON
            inner = jsontext.parse_leniently(value)
            value = inner if isinstance(inner, str) else value
        yield batch.schema.names[i], value


def _spans(text: str) -> list[ShownSpan]:
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
    return ShownSpan(
        name=_cut(span.name or "", 80),
        type=_cut((attributes.type or "").strip('"'), 40),
        status="error" if span.code in FAILED_CODES else "ok",
        start=round(100 * (start - first) / whole, 2),
        width=round(100 * length / whole, 2),
        depth=depth,
        duration=seconds(length / 1e9),
        inputs=_cut(json_of(attributes.inputs) or "", SPAN_TEXT),
        outputs=_cut(json_of(attributes.outputs) or "", SPAN_TEXT),
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
