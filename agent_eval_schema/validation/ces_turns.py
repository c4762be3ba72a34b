"""The evaluations and turns of a CES file: the rows on which metrics are counted, and which are compared with rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.notes import with_line_texts, with_notes
from agent_eval_schema.formats.ces.evaluation import Evaluation, read_evaluation
from agent_eval_schema.formats.ces.rows import numbered, rows_of
from agent_eval_schema.formats.ces.tables import evaluation_texts, read_goldens
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules.reading import MALFORMED_ROW
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation.report import Report, run_of
from agent_eval_schema.validation.validate import check_source


def report_on_rows(report: Report) -> Report:
    """The report on the evaluation rows, on which metrics are computed: for files of CES, which do not contain rows,
    the report on the turns of their valid evaluations; for all others the report itself."""
    if report.format not in CES_FORMATS:
        return report
    rows = [row for rows in rows_of_each(evaluations_of(report)) for row in rows]
    return check_source(open_source(rows, format="databricks", outputs=run_of(report).opened.reading.outputs))


def turns_of(source: Source, format: str) -> Source:
    """The evaluation rows of a source of CES; in a comparison, an invalid evaluation is one row that cannot be read."""
    rows: list[dict[str, Any]] = []
    broken: dict[int, CesEvaluation] = {}
    evaluations = evaluations_of(check_source(source.read_as(format=format)))
    for evaluation, turns in zip(evaluations, rows_of_each(evaluations), strict=True):
        if not evaluation.valid:
            broken[len(rows)] = evaluation
        rows += turns if evaluation.valid else [{}]
    read = in_place_of(source, rows)
    return replace(read, batches=lambda: _with_broken(read.batches(), broken))


def in_place_of(source: Source, rows: list[dict[str, Any]]) -> Source:
    """The evaluation rows of a source of CES, under its name and with the options of the call."""
    read = replace(open_source(rows), name=source.name, options=source.options, reading=source.reading)
    return read.read_as(format="databricks")


def _with_broken(batches: Iterable[pa.RecordBatch], broken: Mapping[int, CesEvaluation]) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in batches:
        here = {row - start: evaluation for row, evaluation in broken.items() if start <= row < start + batch.num_rows}
        notes = {
            row: [Finding(MALFORMED_ROW, f"the evaluation on row {g.row} is not valid")] for row, g in here.items()
        }
        texts = {row: jsontext.encode(g.evaluation).decode() for row, g in here.items()}
        yield with_line_texts(with_notes(batch, notes), texts)
        start += batch.num_rows


CSV, JSON = "ces-csv", "ces-evaluation"
CES_FORMATS = (CSV, JSON)


class CesEvaluation(Struct, frozen=True):
    """An evaluation of a source: the row of the source on which it begins, its groups, and whether it is valid."""

    evaluation: Evaluation
    row: int
    groups: list[str]
    valid: bool


def rows_of_each(evaluations: Iterable[CesEvaluation]) -> Iterator[list[dict[str, Any]]]:
    """The evaluation rows of each evaluation, none of an invalid one.

    The results of an evaluation that ran several times have the id of that evaluation: from the second one on, their
    rows get a number behind it (`leave (2)#1`), so that no two rows have the same derived ID.
    """
    times = Counter[str | None]()
    for evaluation in evaluations:
        rows = rows_of(evaluation.evaluation, evaluation.groups) if evaluation.valid else []
        if rows:
            name, _ = numbered(rows[0])
            times[name] += 1
            if times[name] > 1:
                again = f"{name} ({times[name]})"
                rows = [{**row, "request_id": again + row["request_id"].removeprefix(name)} for row in rows]
        yield rows


def evaluations_of(report: Report) -> list[CesEvaluation]:
    """The evaluations in the input of a report on CES; an invalid one has the parts that could be read."""
    return list((_golden if report.format == CSV else _stored)(report))


def _stored(report: Report) -> Iterator[CesEvaluation]:
    texts = (text for batch in run_of(report).source.batches() for text in evaluation_texts(batch))
    for row, (text, valid) in enumerate(zip(texts, report.valid_mask.tolist(), strict=True)):
        yield CesEvaluation(read_evaluation(text) if valid and text else Evaluation(), row, [], valid)


def _golden(report: Report) -> Iterator[CesEvaluation]:
    reader = read_goldens(run_of(report).source.batches(), run_of(report).read_schema.names)
    of_all = any(i.row is None and i.severity is Severity.ERROR for i in report.iter_issues())  # as of the header
    bounds = [*reader.starts, report.row_count]
    if bounds[0]:  # rows of a conversation without an owner
        yield CesEvaluation(Evaluation(), 0, [], False)
    for evaluation, (start, end) in zip(reader.evaluations, pairwise(bounds), strict=True):
        groups = reader.groups.get(evaluation["displayName"], [])
        valid = not of_all and bool(report.valid_mask[start:end].all())
        yield CesEvaluation(Evaluation(evaluation), start, groups, valid)
