"""Exports of OpenTelemetry → one row per trace, whatever their envelopes were.

A trace may be on many lines, and a line may have many traces: the spans are collected by the id of their trace over the
whole input. What is collected is read twice, so that memory holds only those traces whose spans are partly still
to come: first the last row of each trace, then the spans. A row that has all of one trace passes through as it is.

    {"resourceSpans": [{"resource", "scopeSpans": [{"scope", "spans": [...]}]}]}        what each row becomes
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import repeat
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import simplified
from agent_eval_schema.cells.batch import is_json_column, make_batch
from agent_eval_schema.cells.cells import json_cell, native_rows, read_cells
from agent_eval_schema.cells.edit import with_columns
from agent_eval_schema.cells.notes import notes_on, reading_problems
from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.format import Format
from agent_eval_schema.io.pandas import with_new_rows
from agent_eval_schema.io.source import Source, first_rows
from agent_eval_schema.issues import Finding, with_hint
from agent_eval_schema.rules.pages import OTEL_GENAI
from agent_eval_schema.rules.requests import MISSING_REQUEST
from agent_eval_schema.rules.traces import TRACE_WITHOUT_CONTENT
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.otel.envelopes import (
    OTHER_SIGNALS,
    FoundSpan,
    are_empty_groups,
    is_document,
    is_span,
    joined,
    parts_of,
    raw_parts,
    trace_ids,
)
from agent_eval_schema.traces.otel.trace import decode_otel
from agent_eval_schema.traces.spans import Trace

COLUMN = "resourceSpans"
_MAY_BE = frozenset(
    {
        *(COLUMN, "resource_spans", "batches", "data", "observations", "traceId", "trace_id", "traceID", "context"),
        *OTHER_SIGNALS,
    }
)
"""An export has one of these columns; those of OTLP's other signals occur beside spans in the files of a collector."""

_NEVER = frozenset(
    {"request", "response", "inputs", "outputs", "expectations", "info", "expected_output", "expected_trajectory"}
)
"""Columns of rows that may have ids of spans, too."""

LOOKED_AT = 4
"""The rows that are inspected where the columns do not suffice."""


def collected(source: Source) -> Source:
    """The source with a row per trace, if its rows are exports of OpenTelemetry; else the source itself."""
    if source.is_canonical() or not is_export(source):
        return source
    find_ends = cache(partial(_find_ends, source.batches))  # when they are asked for, and once
    return with_new_rows(source, partial(_collect, source.batches, find_ends))


def is_export(source: Source) -> bool:
    names = source.column_names()
    if _MAY_BE.isdisjoint(names) or not _NEVER.isdisjoint(names):
        return False
    if COLUMN in names:
        return True
    if source.remote is not None:  # no row is fetched to look at it
        return are_spans(names)
    rows = (row for batch in first_rows(source, LOOKED_AT) for row in native_rows(batch))
    return any(is_document(_structured(row)) for row in rows)


def are_spans(names: Sequence[str]) -> bool:
    """Whether the rows of a table with these columns are spans, by their ids."""
    return _NEVER.isdisjoint(names) and is_span(dict.fromkeys(names))


def _structured(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose cells may be the JSON text of objects, as in a CSV file or a warehouse."""
    return {name: jsontext.structured(value) for name, value in row.items()}


class _Row(NamedTuple):
    """The spans in one row: the text of its list, if it is the usual document, else its value, for the parts of it."""

    text: bytes | None
    value: dict[str, Any] | None

    def ids(self) -> list[str]:
        ids = None if self.text is None else trace_ids(self.text)
        return list(self.parts()) if ids is None else ids

    def parts(self) -> dict[str, list[FoundSpan]]:
        """The spans by the id of their trace; what has none goes with the first that has one."""
        parts = list(parts_of(self.value)) if self.text is None else raw_parts(self.text)
        first = next((part.trace_id for part in parts if part.trace_id), "")
        return by_key((part.trace_id or first, part) for part in parts)

    def is_other_signal(self) -> bool:
        """Whether the row is one of metrics or logs, or has no spans at all, which is no defect."""
        if self.text is not None:
            return are_empty_groups(jsontext.parse_leniently(self.text.decode("utf-8", "replace")))
        keys = set(self.value or ())
        return not keys or bool(keys & OTHER_SIGNALS)


def _rows_of(batch: pa.RecordBatch) -> Iterator[_Row]:
    texts: list[bytes | None] = _lists(batch).to_pylist()
    return map(_Row, texts, map(_structured, native_rows(batch)) if None in texts else repeat(None))


def _lists(batch: pa.RecordBatch) -> pa.Array:
    """The texts of the lists of spans, as bytes; null where a row has none."""
    at = batch.schema.get_field_index(COLUMN)
    if at < 0:
        return pa.nulls(batch.num_rows, pa.binary())
    if is_json_column(batch.schema.field(at)):
        texts = simplified(batch.column(at)).cast(pa.binary())
        if not pc.any(pc.starts_with(texts, b'"')).as_py():
            return texts
    cells = read_cells(batch, COLUMN)
    assert cells is not None
    lists = [None if t is None else json_cell(t, cells.json, nested=True).encode() for t in cells.texts]
    return pa.array(lists, pa.binary())


Batches = Callable[[], Iterator[pa.RecordBatch]]
Ends = dict[str, tuple[int, int]]
"""The first and the last row of each trace."""


def _find_ends(batches: Batches) -> Ends:
    ends: Ends = {}
    for number, row in enumerate(row for batch in batches() for row in _rows_of(batch)):
        for identity in row.ids():
            first, _ = ends.get(identity, (number, number))
            ends[identity] = first, number
    return ends


_Spans = tuple[list[FoundSpan], list[Finding]]
_Text = tuple[str, list[Finding]]
"""The spans of a trace, and the notes on the rows that they come from."""


def _collect(batches: Batches, find_ends: Callable[[], Ends]) -> Iterator[pa.RecordBatch]:
    ends = find_ends()
    open_traces: dict[str, _Spans] = {}
    number, is_empty = 0, True
    for batch in batches():
        broken, noted = reading_problems(batch), notes_on(batch)
        done: list[_Text] = []
        for place, row in enumerate(_rows_of(batch)):
            if place in broken:
                if done:
                    yield _batch(done)
                yield batch.slice(place, 1)
                done, is_empty = [], False
            else:
                done += _finished(row, number, ends, open_traces, noted.get(place, []))
            number += 1
        if done:
            yield _batch(done)
            is_empty = False
    if is_empty:
        yield _batch([])


def _finished(row: _Row, number: int, ends: Ends, open_traces: dict[str, _Spans], notes: list[Finding]) -> list[_Text]:
    """The lists of the traces that end in a row, in the order of their first spans in it. The row's notes are on its
    first trace."""
    ids = row.ids()
    if not ids and row.is_other_signal():
        return []
    if not ids:  # in the list of a document, for its reader to report it
        text = jsontext.encode([row.value]).decode() if row.text is None else row.text.decode("utf-8", "replace")
        return [(text, notes)]
    if row.text is not None and len(ids) == 1 and ends[ids[0]] == (number, number):
        return [(row.text.decode("utf-8", "replace"), notes)]
    texts = []
    for identity, parts in row.parts().items():
        spans, of_trace = open_traces.setdefault(identity, ([], []))
        spans += parts
        of_trace += notes
        notes = []
        if ends.get(identity, (number, number))[1] == number:
            del open_traces[identity]
            texts.append((joined(spans), of_trace))
    return texts


def _batch(done: list[_Text]) -> pa.RecordBatch:
    texts = pa.array([text for text, _ in done], pa.string())
    return make_batch({COLUMN: (texts, True)}, {i: of for i, (_, of) in enumerate(done) if of}, len(done))


def remarks_on_content(first: Sequence[pa.RecordBatch]) -> list[Finding]:
    """That traces of the data have no content, once for all of them: capturing it is off by default."""
    texts = [text for batch in first for text in read_otel_rows(batch).column("trace").to_pylist() if text is not None]
    traces = [trace for trace in map(decode_otel, texts) if isinstance(trace, Trace)]
    silent = [t for t in traces if any(note.rule is TRACE_WITHOUT_CONTENT for note in t.notes)]
    if not silent:
        return []
    message = (
        f"expected prompts and responses in the spans, got none in {len(silent)} of the first {len(traces)} traces"
    )
    return [Finding(TRACE_WITHOUT_CONTENT, message)]


def read_otel_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each row is a trace: its list of spans as a document of OTLP."""
    texts = pc.binary_join_element_wise('{"resourceSpans":', _lists(batch).cast(pa.string()), "}", "")
    return with_columns(batch, {"trace": texts}, batch.schema.names)


OTEL = Format(
    name="otel",
    title="OpenTelemetry traces (OTLP, Tempo, Jaeger, Phoenix, Langfuse)",
    summary="traces of OpenTelemetry, one per row: resourceSpans",
    system="databricks",
    page=OTEL_GENAI,
    truth_of="A trace is one turn. It has no ground truth.",
    signs=Signs(sure=((COLUMN,),)),
    example={COLUMN: [{"scopeSpans": [{"spans": [{"traceId": "…", "spanId": "…", "attributes": []}]}]}]},
    read=read_otel_rows,
    remarks=remarks_on_content,
    instead_of_response=(),
    adapt_issue=with_hint(
        MISSING_REQUEST.code,
        "Export the spans of the agent: no span of an agent or a model with its messages is in the trace.",
    ),
    writer=None,
)
