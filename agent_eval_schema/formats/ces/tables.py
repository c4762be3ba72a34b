"""The two formats of CES as tables, so that a check reads, reports and streams them like any other.

ces-csv          one row per row of the golden CSV; its issues are found while it is read, in order
ces-evaluation   one row per evaluation, its columns the top-level fields
"""

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.cells import Cells, read_cells, row_texts
from agent_eval_schema.cells.edit import with_columns
from agent_eval_schema.cells.notes import Notes, reading_problems, with_notes, with_rules_of_notes
from agent_eval_schema.formats.ces import golden, schema
from agent_eval_schema.formats.ces.evaluation import MORE_PAGES, findings_of, name_of, write_evaluations
from agent_eval_schema.formats.ces.golden_reader import GoldenReader, on_line
from agent_eval_schema.formats.ces.golden_writer import golden_csv_text
from agent_eval_schema.formats.ces.rows import Assembled, evaluations_by, rows_of
from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.format import CanonicalRow, Format, Inspected, Nested, Row, Unfolded, Writer, Written
from agent_eval_schema.io.atomic import OpenedFiles, write_text
from agent_eval_schema.io.csv import csv_batch, csv_chunks, record_problem
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import ces, columns, pages
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext

EVALUATION_COLUMN = "evaluation"
"""The column with the whole text of each evaluation."""

Fields = Sequence[str] | None
"""The cells of a row; None if it could not be read."""


_INPUTS = ("golden", "scenario", "goldenResult", "scenarioResult", "golden_result", "scenario_result")


def _are_evaluations(names: Sequence[str]) -> bool:
    """Whether most columns are fields of an evaluation, and no other is one of ours."""
    inputs = [n for n in names if n in _INPUTS]
    fields = schema.message(schema.RESULT if set(inputs) - {"golden", "scenario"} else schema.EVALUATION)
    unknown = [n for n in names if fields.json_name(n) is None]
    named = any(fields.json_name(n) == "displayName" for n in names)
    if len(inputs) == 1 and not named and 2 * len(unknown) >= len(names):  # as in DeepEval's conversations
        return False
    return not any(n in COLUMNS for n in unknown)


def read_evaluation_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch = with_rules_of_notes(batch, {columns.REPEATED_KEY.code: ces.REPEATED_KEY})
    return with_columns(batch, {EVALUATION_COLUMN: evaluation_texts(batch)}, batch.schema.names)


def inspect_evaluations(batch: pa.RecordBatch, unread: Container[int]) -> Inspected:
    """Of each evaluation that was read its row, its name and every problem."""
    cells = read_cells(batch, EVALUATION_COLUMN)
    for row, text in enumerate(cells.texts if cells is not None else ()):
        if row not in unread:
            yield row, name_of(text or "{}"), findings_of(text or "{}")


def evaluation_texts(batch: pa.RecordBatch) -> list[str | None]:
    """The JSON text of each evaluation; None of one that could not be read."""
    return row_texts(batch, schema.field_names(schema.EVALUATION, schema.RESULT, nested=True))


def read_goldens(batches: Iterable[pa.RecordBatch], header: list[str]) -> GoldenReader:
    """The evaluations in the rows of golden CSV files, frames or lists."""
    reader = GoldenReader(header)
    for row, fields in enumerate(fields for batch in batches for fields in _rows(batch, header)):
        reader.take(row, fields)
    reader.finish()
    return reader


def prepare_golden(source: Source) -> Source:
    """The source whose batches contain the issues of their rows."""
    # of rows that are objects, each of which may bring its own columns, those of all
    header = source.column_names() if source.kind == "csv" else list(schema_of(source).names)
    path = source.path if source.kind == "csv" and not source.differs_from_file else None
    if path is not None and os.path.isfile(path):
        chunks = partial(OpenedFiles(source.name or path, lambda: [path]).reading, partial(_chunks_of_file, path))
    else:
        chunks = partial(_chunks, source, header)
    return replace(
        source,
        batches=lambda: _judged(chunks()),
        remarks=(*source.remarks, *GoldenReader(header).of_header),
        shares=None,
        read_share=None,
        in_order=True,
        remote=None,
    )


_Chunk = tuple[pa.RecordBatch, list[str], list[Fields], list[int] | None]
"""A batch, its columns, its rows, and the lines of the file on which they begin."""


def _chunks_of_file(path: str) -> Iterator[_Chunk]:
    for names, records in csv_chunks(path):
        rows: list[Fields] = [None if record_problem(names, record) else record.fields for record in records]
        yield csv_batch(names, records), names, rows, [record.line for record in records]


def _chunks(source: Source, header: list[str]) -> Iterator[_Chunk]:
    for batch in source.batches():
        yield batch, header, _rows(batch, header), None


def _rows(batch: pa.RecordBatch, header: list[str]) -> list[Fields]:
    size = batch.num_rows
    cells = [read_cells(batch, name) or Cells(True, [None] * size) for name in header]
    columns = [[_csv_text(text, c.json) for text in c.texts] for c in cells]  # as a CSV file would contain them
    rows: list[Fields] = list(zip(*columns, strict=True)) if columns else [()] * size
    for row in reading_problems(batch):
        rows[row] = None
    return rows


def _csv_text(text: str | None, is_json: bool) -> str:
    """A value that is not text as its JSON; a number has no spelling in a list, and one of several in a file."""
    if text is not None and is_json and jsontext.is_structured(text):
        return msgspec.json.format(text, indent=-1)  # however the file lays it out
    value = jsontext.parse(text) if text is not None and is_json else text
    return jsontext.encode_text(value) if isinstance(value, float) else value if isinstance(value, str) else text or ""


def _judged(chunks: Iterable[_Chunk]) -> Iterator[pa.RecordBatch]:
    """Each batch with its findings, one row late: only the next row shows whether a turn or an evaluation has ended."""
    reader: GoldenReader | None = None
    waiting: tuple[pa.RecordBatch, int, list[int] | None] | None = None
    start = 0
    for batch, header, rows, lines in chunks:
        reader = reader or GoldenReader(header)
        for row, fields in enumerate(rows, start):
            reader.take(row, fields)
            if row == start and waiting is not None:
                before = [row for row in reader.findings if row < start]
                yield _noted(*waiting, {row: reader.findings.pop(row) for row in before})
        waiting = (batch, start, lines)
        start += len(rows)
        reader.evaluations.clear()
    if reader is not None and waiting is not None:
        reader.finish()
        yield _noted(*waiting, reader.findings)


def _noted(batch: pa.RecordBatch, start: int, lines: list[int] | None, notes: Notes) -> pa.RecordBatch:
    notes = {row - start: findings for row, findings in notes.items()}
    if lines is not None:
        notes = {row: [on_line(f, lines[row]) for f in findings] for row, findings in notes.items()}
    return with_notes(batch, notes)


# --- rows → the forms of CES (which rows are one evaluation: rows.py)
def _golden_csv(rows: Sequence[CanonicalRow]) -> Written:
    assembled = evaluations_by(rows)
    # A name refers to its first evaluation.
    groups = {str(one.evaluation["displayName"]): one.groups for one in reversed(assembled)}
    text, losses = golden_csv_text([one.evaluation for one in assembled], groups=groups)
    of_rows = [replace(loss, row=min(assembled[loss.row or 0].turns)) for loss in losses]
    written = _written(rows, assembled, with_groups=True)
    return replace(written, data=text, losses=[*written.losses, *of_rows])


def _written(rows: Sequence[CanonicalRow], assembled: Sequence[Assembled], *, with_groups: bool = False) -> Written:
    """The evaluations, and the rows that are read back from them: for each row the one of its turn."""
    back: list[CanonicalRow] = []
    places: list[int | None] = [None] * len(rows)
    for one in assembled:
        turn_rows = rows_of(one.evaluation, one.groups if with_groups else ())
        numbers = [str(row["request_id"]).rpartition("#")[2] for row in turn_rows]
        at = {int(n) if n.isdecimal() else 0: i for i, n in enumerate(numbers, start=len(back))}
        for place, turn in one.turns.items():  # a scenario has one row
            places[place] = at.get(turn) if turn else len(back)
        back += turn_rows
    reported = [finding.issue(min(one.turns)) for one in assembled for finding in _findings(one.evaluation)]
    return Written([one.evaluation for one in assembled], back, "databricks", places, reported)


def _findings(evaluation: Row) -> list[Finding]:
    """What CES rejects of an evaluation, or keeps as another value."""
    findings = findings_of(jsontext.encode(evaluation))
    return [f for f in findings if f.rule.severity is Severity.ERROR or f.rule is ces.PRECISION]


def _page(row: Row) -> Iterator[Unfolded]:
    for value in [row[key] for key in _LIST_FIELDS if key in row] or [None]:
        for item in value if isinstance(value, list) else [value]:
            yield (item if isinstance(item, dict) else {"golden": item}), ()


_LIST_FIELDS = ("evaluations", "evaluationResults", "evaluation_results")
"""The fields of ListEvaluationsResponse and ListEvaluationResultsResponse that hold the list."""

_TOKENS = ("nextPageToken", "next_page_token")
_PAGE = frozenset({*_LIST_FIELDS, *_TOKENS})


_form = partial(
    Format,
    system="ces",
    truth_of="Each turn of a golden has its own expectations; those of a scenario are of its whole conversation.",
    instead_of_response=(),
)

CES_CSV = _form(
    name="ces-csv",
    title="Google CES (golden CSV)",
    summary="a golden CSV of Google CES: evaluations and their conversations",
    page=pages.GOLDEN_CSV,
    signs=Signs(
        sure=(golden.REQUIRED,),
        columns=frozenset(golden.GOLDEN_COLUMNS),
        never=frozenset(COLUMNS).difference(golden.GOLDEN_COLUMNS),
    ),
    prepare=prepare_golden,
    inspect=lambda *_: iter(()),  # what is read of them has its issues
    writer=Writer(document=_golden_csv, save=lambda text, path: write_text(path, text), endings=(".csv",)),
)
CES_EVALUATION = _form(
    name="ces-evaluation",
    title="Google CES (Evaluation JSON)",
    summary="Evaluation JSON of Google CES: golden or scenario",
    page=pages.CES_EVALUATION,
    signs=Signs(
        sure=tuple((name,) for name in _INPUTS),
        columns=schema.field_names(schema.EVALUATION, schema.RESULT),
        test=_are_evaluations,
    ),
    read=read_evaluation_batch,
    inspect=inspect_evaluations,
    nested=(
        Nested(
            lambda names, _: any(key in names for key in _LIST_FIELDS) and set(names) <= _PAGE,
            _page,
            parts=_LIST_FIELDS,
            columns=("displayName", "golden"),
            ends=lambda page: (Finding(ces.MORE_PAGES, MORE_PAGES),) if any(page.get(key) for key in _TOKENS) else (),
        ),
    ),
    writer=Writer(document=lambda rows: _written(rows, evaluations_by(rows)), save=write_evaluations),
)
