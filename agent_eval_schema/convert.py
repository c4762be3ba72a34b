"""One form of evaluation data → another, and everything that is lost on the way.

    data ──validate──▶ canonical rows ──write──▶ rows of the target ──read back──▶ canonical rows
                              └───────────────── compare ──────────────────────────────┘ → losses

No list says what each pair of formats loses: what was written is read again by the target's own reader, and whatever
does not come back as it was is a loss (AE811, AE812). What a source row says that no canonical column can hold is told
too (AE813), and so is every row that is left out because it is invalid (AE814). Between the two forms of Customer
Engagement Suite nothing goes by way of rows: their writer says what a golden CSV cannot hold (AE80).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema import jsontext
from agent_eval_schema.check import Outputs, check_source, validate_eval_set
from agent_eval_schema.diagnose import describe
from agent_eval_schema.edits import edits
from agent_eval_schema.engines.writing import require_apart, require_place, require_writable, write_batches, write_text
from agent_eval_schema.formats.adk import evalset, one_session
from agent_eval_schema.formats.ces import conversion as ces
from agent_eval_schema.formats.ces.evaluation import write_evaluations
from agent_eval_schema.formats.ces.golden_writer import golden_csv_text
from agent_eval_schema.formats.ces.rows import groups_of
from agent_eval_schema.formats.layout import Layout
from agent_eval_schema.formats.mlflow_rows import MLFLOW_ROW, write_mlflow
from agent_eval_schema.formats.neighbours import DEEPEVAL, LANGSMITH, OPENAI, RAGAS, VERTEX
from agent_eval_schema.formats.unread import unread_parts
from agent_eval_schema.frames import batch_of_rows, open_source, to_columns
from agent_eval_schema.issues import EvalSetError, Issue, Rule
from agent_eval_schema.model import COLUMNS, ROW_SCHEMA
from agent_eval_schema.report import Report, issues_frame
from agent_eval_schema.rules import conversion, requests
from agent_eval_schema.verdict import rows_of
from agent_eval_schema.visible import visible

Row = Mapping[str, Any]

POSITION = "__position__"
"""The key under which a canonical row knows its place in the source while it is converted."""


class Document(Struct, frozen=True):
    """A target that is made of all rows at once. `back` is what a check reads to see what became of them, in `format`;
    `places` says which of the rows there is which (None: it is not there); `losses` are those that its writer knows."""

    data: Any
    back: Any
    format: str
    places: Sequence[int | None]
    losses: Sequence[Issue] = ()


class Target(Struct, frozen=True):
    """A format that can be written: row by row into the columns it names, or as one document that `save` writes."""

    name: str
    write: Callable[[Row], dict[str, Any]] | None = None
    columns: tuple[str, ...] = ()
    document: Callable[[Sequence[Row]], Document] | None = None
    save: Callable[[Any, str], Any] | None = None


def _canonical(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in COLUMNS if row[name] is not None}


def _layout(name: str, layout: Layout) -> Target:
    return Target(name, layout.write, layout.written)


def _evalset(rows: Sequence[Row]) -> Document:
    made, places = evalset(rows)
    return Document(made, made, "adk", places)


def _test_list(rows: Sequence[Row]) -> Document:
    made, places = one_session(rows)
    return Document(made, made, "adk-legacy", places)


def _evaluations(rows: Sequence[Row]) -> Document:
    made, places = ces.made_of_rows(rows)
    groups = [groups_of(row) for row in rows]
    return Document(made, ces.rows_back(made, groups), "databricks", places)


def _golden_csv(rows: Sequence[Row]) -> Document:
    found = _evaluations(rows)
    text, losses = golden_csv_text(found.data, groups=ces.groups_by_name(rows, found.data))
    moved = [replace(loss, row=rows[loss.row or 0][POSITION]) for loss in losses]
    return replace(found, data=text, losses=moved)


def _save_json(made: Any, path: str) -> None:
    write_text(path, msgspec.json.format(jsontext.encode(made), indent=2).decode() + "\n")


def _save_text(made: Any, path: str) -> None:
    write_text(path, made)


TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("databricks", _canonical, COLUMNS),
        Target("mlflow", write_mlflow, MLFLOW_ROW),
        _layout("vertex", VERTEX),
        Target("adk", document=_evalset, save=_save_json),
        Target("adk-legacy", document=_test_list, save=_save_json),
        _layout("openai", OPENAI),
        _layout("langsmith", LANGSMITH),
        _layout("ragas", RAGAS),
        _layout("deepeval", DEEPEVAL),
        Target(ces.JSON, document=_evaluations, save=write_evaluations),
        Target(ces.CSV, document=_golden_csv, save=_save_text),
    )
}
"""What can be written, by name."""


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
        from agent_eval_schema.render.conversion_text import conversion_text

        return conversion_text(self)


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
    work = _Work(data, source, find_target(target))
    return work.conversion(work.made())


def convert_file(path: str, out: str, *, source: str = "auto", target: str) -> Conversion:
    """As `convert_eval_set`, from a file to a file, whose kind its ending says: JSONL, JSON, CSV or Parquet for rows.
    `data` is None. Rows are streamed, unless source or target is a document. Raises EvalSetError if `out` cannot be
    written."""
    wanted = find_target(target)
    require_apart({"IN": path}, {"OUT": out})
    (require_writable if wanted.save is None else require_place)(out)
    work = _Work(path, source, wanted)
    if wanted.save is not None:
        wanted.save(work.made(), out)
    else:
        batches = (batch_of_rows(part) for part in work.written() if part)
        write_batches(out, batches, _schema(wanted, work.report))
    return work.conversion(None)


def _schema(target: Target, report: Report) -> pa.Schema:
    """The columns of a file of the target: its own, numbers as numbers, then those that are carried along."""
    known = (*COLUMNS, *target.columns) if report.format not in ces.FORMATS else report.schema.names
    carried = [n for n in report.schema.names if n not in known]
    return pa.schema([(n, NUMBERS.get(n, pa.string())) for n in (*target.columns, *carried)])


NUMBERS = {
    **{f.name: f.type for f in ROW_SCHEMA if f.name != "failure" and pa.types.is_primitive(f.type)},
    **dict.fromkeys(("latency_in_seconds", "completion_time"), pa.float64()),
}
"""The columns of the targets that hold numbers."""


def report_on_rows(report: Report, outputs: Outputs = "auto") -> Report:
    """The report on the evaluation rows, on which metrics are computed: of files of CES, whose rows are none, that on
    the turns of their valid evaluations; of all else the report itself."""
    if report.has_metrics:
        return report
    rows = [row for given in ces.evaluations_of(report) if given.valid for row in given.rows()]
    return validate_eval_set(rows, format="databricks", outputs=outputs)


def find_target(name: str) -> Target:
    """The target of that name. Raises EvalSetError if there is none."""
    if name not in TARGETS:
        raise EvalSetError(f"cannot convert to {name!r}: use one of {', '.join(TARGETS)}")
    return TARGETS[name]


# ---------------------------------------------------------------------------------------------------------------------
# from rows to rows


_NOT_ASKED = (requests.MISSING_OUTPUT.code,)
"""A row that the app has not answered can be converted as well."""


class _Work:
    """One conversion: the check of the source, the rows as they are made, and the losses as they are found."""

    def __init__(self, data: Any, source: str, target: Target) -> None:
        self.report = check_source(open_source(data), format=source, ignore=_NOT_ASKED)
        self.losses = Losses(target.name)
        self._target = target
        of_ces = self.report.format in ces.FORMATS
        self._evaluations = ces.evaluations_of(self.report) if of_ces else None
        if self._evaluations is not None:
            self._counts = len(self._evaluations), sum(e.valid for e in self._evaluations)
        else:
            self._counts = self.report.row_count, self.report.valid_count

    def conversion(self, data: Any) -> Conversion:
        """What came of it."""
        given, valid = self._counts
        unsayable = sum(loss.code in _OF_WHOLE_EVALUATIONS for loss in self.losses.issues)
        names = self.report.format, self._target.name
        return Conversion(data, self.losses.frame(), self.report, *names, given, valid - unsayable)

    def made(self) -> Any:
        """All of the target in memory."""
        if self._evaluations is not None and self._target.name in ces.FORMATS:
            return self._between_forms_of_ces(self._evaluations)
        if self._target.document is None:
            rows = [row for part in self.written() for row in part]
            return pd.DataFrame({n: pd.Series([r.get(n) for r in rows], dtype="object") for n in _names(rows)})
        rows = [row for part in self._canonical_parts() for row in part]
        document = self._target.document(rows)
        self.losses.compare(rows, document)
        return document.data

    def written(self) -> Iterator[list[dict[str, Any]]]:
        """The rows of the target, a batch at a time."""
        write = self._target.write
        assert write is not None
        for rows in self._canonical_parts():
            made = [_with_carried(write(row), row) for row in rows]
            if self._target.name != "databricks":  # which is what we read
                self.losses.compare(rows, Document(made, made, self._target.name, range(len(made))))
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

    def _rows_of_evaluations(self, evaluations: Sequence[ces.Given]) -> Iterator[list[dict[str, Any]]]:
        for given in evaluations:
            if not given.valid:
                self.losses.left_out([given.row], "evaluation")
                continue
            for path, value in given.unread():
                self.losses.unread(given.row, path, value)
            report = validate_eval_set(given.rows(), format="databricks", outputs="generated")
            kept = [row for row, valid in zip(report.iter_rows(), report.valid_mask.tolist(), strict=True) if valid]
            self.losses.left_out([given.row] * (report.row_count - len(kept)), "turn")
            yield [{**row, POSITION: given.row} for row in kept]

    def _between_forms_of_ces(self, evaluations: Sequence[ces.Given]) -> Any:
        """Golden CSV ⇄ Evaluation JSON, without rows between."""
        self.losses.left_out([e.row for e in evaluations if not e.valid], "evaluation")
        kept = [e for e in evaluations if e.valid]
        made = [e.evaluation for e in kept]
        if self._target.name == ces.CSV:
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


def _with_carried(made: dict[str, Any], row: Row) -> dict[str, Any]:
    """A row of the target, and beside it what is carried along."""
    known = (*COLUMNS, POSITION)
    return {**made, **{n: v for n, v in row.items() if n not in known and v is not None and n not in made}}


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


_OF_WHOLE_EVALUATIONS = (conversion.SCENARIO.code, conversion.EVALUATION.code)
"""The losses of a golden CSV that leave out an evaluation."""


# ---------------------------------------------------------------------------------------------------------------------
# losses


class Losses:
    """What a conversion loses, found by reading back what it wrote."""

    def __init__(self, target: str) -> None:
        self.issues: list[Issue] = []
        self._target = target

    def compare(self, rows: Sequence[Row], made: Document) -> None:
        """Note what does not come back of these rows."""
        back = list(validate_eval_set(made.back, format=made.format, outputs="generated").iter_rows()) if rows else []
        self.issues += made.losses
        for row, place in zip(rows, made.places, strict=True):
            came = {} if place is None else back[place]
            self._compare_row(row, came)
            if not isinstance(made.data, list) or made.data is not made.back:
                self._carried(row, came)

    def _compare_row(self, row: Row, back: Row) -> None:
        for column in COLUMNS:
            value, came = row[column], back.get(column)
            if value is None or value == came:
                continue
            if came is None:
                self.add(conversion.NO_PLACE, row, column, f"{self._target} has no place for {describe(value)}")
            else:
                message, path = _difference(column, value, came)
                self.add(conversion.CHANGED, row, column, message, path)

    def _carried(self, row: Row, back: Row) -> None:
        """A document has no columns beside its own."""
        known = (*COLUMNS, POSITION, "eval_set_id")
        for column, value in row.items():
            if column not in known and value is not None and value != back.get(column):
                self.add(conversion.NO_PLACE, row, column, f"{self._target} has no place for {describe(value)}")

    def unread(self, row: int, path: str, value: Any) -> None:
        """Note what a row of the source says that no canonical column can hold."""
        column = path.partition(".")[0].partition("[")[0]
        place = {POSITION: row, "request_id": None}
        self.add(conversion.NOT_READ, place, column, f"{describe(value)} has no column", path)

    def left_out(self, rows: Sequence[int], kind: str) -> None:
        """Note the rows (or evaluations, or turns) that are invalid."""
        for row in rows:
            place = {POSITION: row, "request_id": None}
            self.add(conversion.LEFT_OUT, place, None, f"the {kind} is invalid and was not converted")

    def add(self, rule: Rule, row: Row, column: str | None, message: str, path: str | None = None) -> None:
        """Note one loss."""
        place, identity, severity = row[POSITION], row["request_id"], rule.severity
        self.issues.append(
            Issue(place, identity, column, path or column, rule.code, rule.name, severity, message, rule.hint)
        )

    def frame(self) -> pd.DataFrame:
        """The losses in the order of the rows."""
        return issues_frame(sorted(self.issues, key=lambda issue: -1 if issue.row is None else issue.row))


def _difference(column: str, value: Any, came: Any) -> tuple[str, str]:
    """What comes back different, in words, and its path: the first place of several."""
    found, count = edits(column, value, came)
    if not found:
        return f"{describe(value)} would be read back as {describe(came)}", column
    first = found[0]
    more = f" (and in {count - 1} more places)" if count > 1 else ""
    before, after = first.text("old"), first.text("new")
    if after is None:
        return f"`{visible(before)}` would not be read back{more}", first.path
    if before is None:
        return f"`{visible(after)}` would be read back besides{more}", first.path
    return f"`{visible(before)}` would be read back as `{visible(after)}`{more}", first.path
