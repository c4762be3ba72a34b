"""The evaluations and turns of a CES file: the rows on which metrics are counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from msgspec import Struct

from agent_eval_schema.formats.ces.evaluation import Evaluation, read_evaluation
from agent_eval_schema.formats.ces.rows import rows_of
from agent_eval_schema.formats.ces.tables import evaluation_texts, read_goldens
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.issues import Severity
from agent_eval_schema.validation.plan import Outputs
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source


def report_on_rows(report: Report, outputs: Outputs = "auto") -> Report:
    """The report on the evaluation rows, on which metrics are computed: of files of CES, whose rows are none, that on
    the turns of their valid evaluations; of all else the report itself."""
    if report.has_metrics:
        return report
    rows = [row for given in evaluations_of(report) if given.valid for row in given.rows()]
    return check_source(open_source(rows), format="databricks", outputs=outputs)


CSV, JSON = "ces-csv", "ces-evaluation"
CES_FORMATS = (CSV, JSON)


class CesEvaluation(Struct, frozen=True):
    """An evaluation of a source: the row of the source on which it begins, its groups, and whether it is valid."""

    evaluation: Evaluation
    row: int
    groups: list[str]
    valid: bool

    def rows(self) -> list[dict[str, Any]]:
        """The evaluation rows in it."""
        return rows_of(self.evaluation, self.groups)


def evaluations_of(report: Report) -> list[CesEvaluation]:
    """The evaluations in what a report on CES has been made of; of an invalid one it is known that it is there."""
    return list((_golden if report.format == CSV else _stored)(report))


def _stored(report: Report) -> Iterator[CesEvaluation]:
    texts = (text for batch in report.source_batches() for text in evaluation_texts(batch))
    for row, (text, valid) in enumerate(zip(texts, report.valid_mask.tolist(), strict=True)):
        yield CesEvaluation(read_evaluation(text) if valid and text else Evaluation(), row, [], valid)


def _golden(report: Report) -> Iterator[CesEvaluation]:
    reader = read_goldens(report.source_batches(), report.source_schema.names)
    of_all = any(i.row is None and i.severity is Severity.ERROR for i in report.iter_issues())  # as of the header
    bounds = [*reader.starts, report.row_count]
    if bounds[0]:  # rows of a conversation that is nobody's
        yield CesEvaluation(Evaluation(), 0, [], False)
    for evaluation, (start, end) in zip(reader.evaluations, pairwise(bounds), strict=True):
        groups = reader.groups.get(evaluation["displayName"], [])
        valid = not of_all and bool(report.valid_mask[start:end].all())
        yield CesEvaluation(Evaluation(evaluation), start, groups, valid)
