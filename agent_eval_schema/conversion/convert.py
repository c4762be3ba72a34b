"""One form of evaluation data → another, and everything that is lost on the way.

    data ──validate──▶ canonical rows ──write──▶ rows of the target ──read back──▶ canonical rows
                              └───────────────── compare ──────────────────────────────┘ → losses

No list says what each pair of formats loses: what was written is read again by the target's own reader, and whatever
does not come back as it was is a loss (AE811, AE812). What a source row says that no canonical column can hold is told
too (AE813), and so is every row that is left out because it is invalid (AE814). Between the two forms of Customer
Engagement Suite nothing goes by way of rows: their writer says what a golden CSV cannot hold (AE80).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.conversion.ces import unread_fields
from agent_eval_schema.conversion.losses import POSITION, Losses
from agent_eval_schema.conversion.unread import unread_parts
from agent_eval_schema.formats.ces.golden_writer import golden_csv_text
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.formats.writer import CanonicalRow, Writer, Written
from agent_eval_schema.io.arrow import to_columns
from agent_eval_schema.io.atomic import require_apart, require_place
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.io.write import require_writable, write_batches
from agent_eval_schema.issues import EvalSetError, Issue
from agent_eval_schema.rules import conversion, requests
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.text.describe import describe
from agent_eval_schema.validation import ces_turns
from agent_eval_schema.validation.checked_batch import rows_of
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source


class Conversion(Struct, frozen=True):
    """What `convert_eval_set` made.

    `data`: the rows of the target, valid ones only, in order: a frame; for `adk` one object, for `adk-legacy` and
    `ces-evaluation` a list of dicts, for `ces-csv` the text of the file. `losses`: a frame like `Report.issues`, a line
    for each thing that is not in `data` (row is the 0-based position in the source). `report`: the validation of the
    source. `source`, `target`: the names of the formats. `given`, `converted`: how many rows (of CES: evaluations) the
    source has, and how many of them are in `data`.
    """

    data: Any
    losses: pd.DataFrame
    report: Report
    source: str
    target: str
    given: int
    converted: int

    @property
    def lossless(self) -> bool:
        """Whether everything in the source is in `data`."""
        return self.losses.empty

    def __str__(self) -> str:
        from agent_eval_schema.render.losses import losses_text

        kind = "evaluations" if self.source in ces_turns.CES_FORMATS else "rows"
        head = f"{self.source} → {self.target}: {self.converted:,} of {self.given:,} {kind} converted"
        return losses_text(head, [msgspec.convert(loss, Issue) for loss in self.losses.to_dict("records")])


def convert_eval_set(data: Any, *, source: str = "auto", target: str) -> Conversion:
    """Convert an evaluation set into another format; nothing is lost without being told.

    Parameters
    ----------
    data
        Anything that `validate_eval_set` takes; an ADK evalset may also be given as the object that it is.
    source
        The format that it has; `"auto"` looks at the columns.
    target
        `"databricks"` (the canonical row), `"mlflow"`, `"vertex"`, `"adk"`, `"adk-legacy"`, `"openai"`,
        `"langsmith"`, `"ragas"`, `"deepeval"`, `"ces-evaluation"`, `"ces-csv"`.

    Returns
    -------
    Conversion
        The data of the target, the losses, the report on the source. Columns that no format knows are carried along.

    Raises
    ------
    EvalSetError
        There is no such format, or the data cannot be read as a table.
    """
    work = _Work(data, source, target)
    return work.conversion(work.made())


def convert_file(path: str, out: str, *, source: str = "auto", target: str) -> Conversion:
    """As `convert_eval_set`, from a file to a file, whose kind its ending says: JSONL, JSON, CSV or Parquet for rows.
    `data` is None. Rows are streamed, unless source or target is a document. Raises EvalSetError if `out` cannot be
    written."""
    writer = _find_writer(target)
    require_apart({"IN": path}, {"OUT": out})
    (require_writable if writer.save is None else require_place)(out)
    work = _Work(path, source, target)
    if writer.save is not None:
        writer.save(work.made(), out)
    else:
        batches = (batch_of_rows(part) for part in work.written() if part)
        write_batches(out, batches, _schema(writer, work.report))
    return work.conversion(None)


TARGETS = (
    *("databricks", "mlflow", "vertex", "adk", "adk-legacy", "openai", "langsmith", "ragas", "deepeval"),
    *(ces_turns.JSON, ces_turns.CSV),
)
"""The formats that have a writer, in the order in which they are named to a user."""


def _find_writer(target: str) -> Writer:
    writer = find_format(target).writer if target in TARGETS else None
    if writer is None:
        raise EvalSetError(f"cannot convert to {target!r}: use one of {', '.join(TARGETS)}")
    return writer


def _schema(writer: Writer, report: Report) -> pa.Schema:
    """The columns of a file of the target: its own, numbers as numbers, then those that are carried along."""
    known = (*COLUMNS, *writer.columns) if report.format not in ces_turns.CES_FORMATS else report.schema.names
    carried = [n for n in report.schema.names if n not in known]
    return pa.schema([(n, _NUMBERS.get(n, pa.string())) for n in (*writer.columns, *carried)])


_NUMBERS = {
    **{f.name: f.type for f in ROW_SCHEMA if f.name != "failure" and pa.types.is_primitive(f.type)},
    **dict.fromkeys(("latency_in_seconds", "completion_time"), pa.float64()),
}
"""The columns of the targets that hold numbers."""


# ---------------------------------------------------------------------------------------------------------------------
# from rows to rows
_NOT_ASKED = (requests.MISSING_OUTPUT.code,)
"""A row that the app has not answered can be converted as well."""


class _Work:
    """One conversion: the check of the source, the rows as they are made, and the losses as they are found."""

    def __init__(self, data: Any, source: str, target: str) -> None:
        self._target, self._writer = target, _find_writer(target)
        self.report = check_source(open_source(data), format=source, ignore=_NOT_ASKED)
        self.losses = Losses(target)
        of_ces = self.report.format in ces_turns.CES_FORMATS
        self._evaluations = ces_turns.evaluations_of(self.report) if of_ces else None
        if self._evaluations is not None:
            self._counts = len(self._evaluations), sum(e.valid for e in self._evaluations)
        else:
            self._counts = self.report.row_count, self.report.valid_count

    def conversion(self, data: Any) -> Conversion:
        """What came of it."""
        given, valid = self._counts
        unsayable = sum(loss.code in _OF_WHOLE_EVALUATIONS for loss in self.losses.issues)
        names = self.report.format, self._target
        return Conversion(data, self.losses.frame(), self.report, *names, given, valid - unsayable)

    def made(self) -> Any:
        """All of the target in memory."""
        if self._evaluations is not None and self._target in ces_turns.CES_FORMATS:
            return self._between_forms_of_ces(self._evaluations)
        if self._writer.document is None:
            rows = [row for part in self.written() for row in part]
            return pd.DataFrame({n: pd.Series([r.get(n) for r in rows], dtype="object") for n in _names(rows)})
        rows = [row for part in self._canonical_parts() for row in part]
        document = self._writer.document(rows)
        self.losses.compare(rows, document)
        return document.data

    def written(self) -> Iterator[list[dict[str, Any]]]:
        """The rows of the target, a batch at a time."""
        write = self._writer.row
        assert write is not None
        for rows in self._canonical_parts():
            made = [_with_carried(write(row), row) for row in rows]
            if self._target != "databricks":  # which is what we read
                self.losses.compare(rows, Written(made, made, self._target, range(len(made))))
            yield made

    def _canonical_parts(self) -> Iterator[list[dict[str, Any]]]:
        """The valid rows in canonical form, a batch at a time; the others are told."""
        if self._evaluations is not None:
            yield from self._rows_of_evaluations(self._evaluations)
            return
        start = 0
        valid = self.report.valid_mask
        for given, checked in self.report.checked_batches():
            _, columns = to_columns([rows_of(checked)])
            rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            flags = valid[start : start + len(rows)]
            places = np.flatnonzero(flags).tolist()
            self.losses.left_out((np.flatnonzero(~flags) + start).tolist(), "row")
            for i, path, value in unread_parts(self.report.format, given, places):
                self.losses.unread(start + i, path, value)
            yield [{**rows[i], POSITION: start + i} for i in places]
            start += len(rows)

    def _rows_of_evaluations(self, evaluations: Sequence[ces_turns.CesEvaluation]) -> Iterator[list[dict[str, Any]]]:
        for given in evaluations:
            if not given.valid:
                self.losses.left_out([given.row], "evaluation")
                continue
            for path, value in unread_fields(given):
                self.losses.unread(given.row, path, value)
            report = check_source(open_source(given.rows()), format="databricks", outputs="generated")
            kept = [row for row, valid in zip(report.iter_rows(), report.valid_mask.tolist(), strict=True) if valid]
            self.losses.left_out([given.row] * (report.row_count - len(kept)), "turn")
            yield [{**row, POSITION: given.row} for row in kept]

    def _between_forms_of_ces(self, evaluations: Sequence[ces_turns.CesEvaluation]) -> Any:
        """Golden CSV ⇄ Evaluation JSON, without rows between."""
        self.losses.left_out([e.row for e in evaluations if not e.valid], "evaluation")
        kept = [e for e in evaluations if e.valid]
        made = [e.evaluation for e in kept]
        if self._target == ces_turns.CSV:
            groups = {str(e.evaluation.get("displayName")): e.groups for e in kept if e.groups}
            text, losses = golden_csv_text(made, groups=groups)
            self.losses.issues += [replace(loss, row=kept[loss.row or 0].row) for loss in losses]
            return text
        for given in kept:
            if given.groups:
                place = {POSITION: given.row, "request_id": given.evaluation.get("displayName")}
                message = f"an Evaluation cannot say its groups: {describe(given.groups)}"
                self.losses.add(conversion.NO_PLACE, place, "evaluation_groups", message)
        return [dict(evaluation) for evaluation in made]


def _with_carried(made: dict[str, Any], row: CanonicalRow) -> dict[str, Any]:
    """A row of the target, and beside it what is carried along."""
    known = (*COLUMNS, POSITION)
    return {**made, **{n: v for n, v in row.items() if n not in known and v is not None and n not in made}}


def _names(rows: Sequence[CanonicalRow]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


_OF_WHOLE_EVALUATIONS = (conversion.SCENARIO.code, conversion.NO_EVALUATION.code)
"""The losses of a golden CSV that leave out an evaluation."""
