"""Files of CES as tables, so that a check reads, reports and streams them like any other.

ces-csv          a row is a row of the golden CSV; what is wrong is found while it is read, in order
ces-evaluation   a row is an evaluation, its columns the top-level fields
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import count

import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.batch import JSON_CELLS
from agent_eval_schema.cells.cells import Cells, read_cells, row_texts
from agent_eval_schema.cells.notes import Notes, column_names, is_hidden, reading_problems, with_notes
from agent_eval_schema.formats.ces import golden, inspection, schema
from agent_eval_schema.formats.ces.evaluation import column_of, findings_of, name_of
from agent_eval_schema.formats.ces.golden_reader import CellFinding, GoldenReader
from agent_eval_schema.io.csv import csv_batch, csv_chunks, csv_columns, record_problem
from agent_eval_schema.io.json import json_elements
from agent_eval_schema.io.jsonl import jsonl_lines
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.ces import REPEATED_KEY
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import key_name

EVALUATION_COLUMN = "evaluation"
"""The column with the whole text of each evaluation."""

Fields = Sequence[str] | None
"""The cells of a row; None if it could not be read."""


def detect_golden(names: Sequence[str]) -> str | None:
    foreign = [n for n in names if n in COLUMNS and n not in golden.GOLDEN_COLUMNS]
    found = set(golden.REQUIRED) <= set(names) and not foreign
    return f"the columns {', '.join(golden.REQUIRED)}" if found else None


_RESULTS = ("goldenResult", "scenarioResult", "golden_result", "scenario_result")


def detect_evaluations(names: Sequence[str]) -> str | None:
    inputs = [n for n in names if n in ("golden", "scenario", *_RESULTS)]
    fields = schema.message(schema.RESULT if inputs and inputs[0] in _RESULTS else schema.EVALUATION)
    unknown = [n for n in names if fields.json_name(n) is None]
    foreign = any(n in COLUMNS for n in unknown)
    named = any(fields.json_name(n) == "displayName" for n in names)
    if inputs == ["scenario"] and not named and 2 * len(unknown) >= len(names):  # DeepEval's conversations have one too
        return None
    return f"each row is an evaluation: {inputs[0]}" if inputs and not foreign else None


def read_evaluation_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The texts of the evaluations in one column."""
    hidden = [i for i, f in enumerate(batch.schema) if is_hidden(f)]
    arrays = [pa.array(evaluation_texts(batch), pa.string()), *(batch.column(i) for i in hidden)]
    fields = [pa.field(EVALUATION_COLUMN, pa.string(), metadata=JSON_CELLS), *(batch.schema.field(i) for i in hidden)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def inspect_evaluations(
    batch: pa.RecordBatch, unread: Container[int]
) -> Iterator[tuple[int, str | None, list[Finding]]]:
    """Of each evaluation that was read its row, its name and every problem."""
    cells = read_cells(batch, EVALUATION_COLUMN)
    for row, text in enumerate(cells.texts if cells is not None else ()):
        if row not in unread:
            found = findings_of(text or "{}")
            notes = [Finding(f.rule, f.message, column_of(f.path), f.path or None, f.hint) for f in found]
            yield row, name_of(text or "{}"), notes


def evaluation_texts(batch: pa.RecordBatch) -> list[str | None]:
    """The JSON text of each evaluation; None of one that could not be read."""
    return row_texts(batch)


def read_goldens(batches: Iterable[pa.RecordBatch], header: list[str]) -> GoldenReader:
    """The evaluations in the rows of golden CSV files, frames or lists."""
    reader = GoldenReader(header)
    for row, fields in enumerate(fields for batch in batches for fields in _rows(batch, header)):
        _read(reader, row, fields)
    reader.finish()
    return reader


_TEXTS: dict[str, Callable[[str], Iterator[bytes]]] = {
    "jsonl": lambda path: (line for line in jsonl_lines(path) if line and not line.isspace()),
    "json": lambda path: (text for text, _ in json_elements(path)),
}
"""The text of each row of a file, as it stands there."""


def prepare_evaluations(source: Source) -> Source:
    """The source whose batches say which top-level fields stand twice: the columns of a row hold one value each."""
    texts, path = _TEXTS.get(source.kind), source.path
    if texts is None or path is None or source.fixed:
        return source
    return replace(source, batches=lambda: _with_repeats(source.batches(), texts(path)), shares=None, in_order=True)


def _with_repeats(batches: Iterable[pa.RecordBatch], texts: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        notes = {
            i: [_repeat_note(key) for key in repeated]
            for i, (text, written) in enumerate(zip(evaluation_texts(batch), texts, strict=False))
            if text is not None and (repeated := _repeated(text, written))
        }
        yield with_notes(batch, notes)


def _repeated(text: str, written: bytes) -> tuple[str, ...]:
    """The keys that a row has lost on the way into columns: with each went a colon at least."""
    if written.count(b":") == text.count(":"):
        return ()
    return getattr(inspection.parse_keeping_repeats(written.decode("utf-8", "replace")), "repeated", ())


def _repeat_note(key: str) -> Finding:
    name = key if schema.message(schema.EVALUATION).json_name(key) else key_name(key)
    return Finding(REPEATED_KEY, f"the key `{name}` stands twice", name)


def prepare_golden(source: Source) -> Source:
    """The source whose batches carry what is wrong with their rows."""
    header = _header(source)
    remarks = tuple((f.rule, f.column, f.message, f.hint) for f in GoldenReader(header).findings)
    return replace(
        source,
        batches=lambda: _judged(_chunks(source, header)),
        remarks=(*source.remarks, *remarks),
        shares=None,
        read_share=None,
        in_order=True,
    )


_Chunk = tuple[pa.RecordBatch, list[str], list[Fields], list[int] | None]
"""A batch, its columns, its rows, and the lines of the file on which they begin."""


def _header(source: Source) -> list[str]:
    """The columns; of rows that are objects, each of which may bring its own, those of all."""
    if source.kind == "csv":
        first = source.head()
        if first is None:  # no row: the header is all there is
            return csv_columns(source.path) if source.path is not None else []
        return column_names(first.schema)
    return list(schema_of(source.kind, source.batches()).names)


def _chunks(source: Source, header: list[str]) -> Iterator[_Chunk]:
    if source.kind == "csv" and source.path is not None and not source.fixed:
        for names, records in csv_chunks(source.path):
            rows: list[Fields] = [None if record_problem(names, record) else record.fields for record in records]
            yield csv_batch(names, records), names, rows, [record.line for record in records]
        return
    for batch in source.batches():
        yield batch, header, _rows(batch, header), None


def _rows(batch: pa.RecordBatch, header: list[str]) -> list[Fields]:
    columns = [_texts(read_cells(batch, name) or Cells(True, []), batch.num_rows) for name in header]
    rows: list[Fields] = list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows
    for row in reading_problems(batch):
        rows[row] = None
    return rows


def _texts(cells: Cells, size: int) -> list[str]:
    """Cells as they would stand in a CSV: what is no text as its JSON."""
    return [_plain(cells.texts[i], cells.json) if i < len(cells.texts) else "" for i in range(size)]


def _plain(text: str | None, is_json: bool) -> str:
    if text is None:
        return ""
    value = jsontext.parse(text) if is_json and text.startswith('"') else text
    return value if isinstance(value, str) else text


def _judged(chunks: Iterable[_Chunk]) -> Iterator[pa.RecordBatch]:
    """Each batch with its findings. It is held back until the next row is known: only then is it known whether the last
    one ends a turn or an evaluation."""
    reader: GoldenReader | None = None
    held: tuple[pa.RecordBatch, int, list[int] | None] | None = None
    numbers = count()
    for batch, header, rows, lines in chunks:
        if reader is None:
            reader = GoldenReader(header)
            reader.findings.clear()  # those of the header are remarks
        start: int | None = None
        for fields in rows:
            row = next(numbers)
            _read(reader, row, fields)
            if start is None:
                start = row
                if held is not None:
                    yield _noted(*held, _taken(reader, before=start))
        held = (batch, start or 0, lines)
        reader.evaluations.clear()
    if reader is not None and held is not None:
        reader.finish()
        yield _noted(*held, _taken(reader))


def _read(reader: GoldenReader, row: int, fields: Fields) -> None:
    if fields is None:
        reader.skip(row)
    elif reader.is_readable:
        reader.read(row, fields)


def _taken(reader: GoldenReader, before: int | None = None) -> list[CellFinding]:
    """The findings so far (of the rows before that one), which the reader gives away."""
    taken = [f for f in reader.findings if f.row is not None and (before is None or f.row < before)]
    reader.findings = [f for f in reader.findings if f.row is not None and before is not None and f.row >= before]
    return taken


def _noted(batch: pa.RecordBatch, start: int, lines: list[int] | None, findings: list[CellFinding]) -> pa.RecordBatch:
    notes = Notes()
    for row, column, rule, message, hint, path in findings:
        at = (row or 0) - start
        said = message if lines is None else f"line {lines[at]}: {message}"
        notes.setdefault(at, []).append(Finding(rule, said, column, path, hint))
    return with_notes(batch, notes)
