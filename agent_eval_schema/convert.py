"""One form of evaluation data → another, and everything that is lost on the way.

    data ──validate──▶ canonical rows ──write──▶ rows of the target ──read back──▶ canonical rows
                              └───────────────── compare ──────────────────────────────┘ → losses

No list says what each pair of formats loses: what was written is read again by the target's own reader, and whatever
does not come back as it was is a loss (AE811, AE812). What a source row says that no canonical column can hold is told
too (AE813), and so is every row that is left out because it is invalid (AE814).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema import jsontext
from agent_eval_schema.check import check_source, validate_eval_set
from agent_eval_schema.diagnose import describe
from agent_eval_schema.edits import edits
from agent_eval_schema.engines.writing import require_place, require_writable, write_batches, write_text
from agent_eval_schema.formats.adk import evalset, one_session
from agent_eval_schema.formats.layout import Layout
from agent_eval_schema.formats.mlflow_rows import MLFLOW_ROW, write_mlflow
from agent_eval_schema.formats.neighbours import DEEPEVAL, LANGSMITH, OPENAI, RAGAS, VERTEX
from agent_eval_schema.formats.unread import unread_parts
from agent_eval_schema.frames import batch_of_rows, open_source, to_columns
from agent_eval_schema.issues import EvalSetError, Issue, Rule, Severity
from agent_eval_schema.model import COLUMNS, ROW_SCHEMA
from agent_eval_schema.report import Report, issues_frame
from agent_eval_schema.rules import conversion
from agent_eval_schema.verdict import rows_of
from agent_eval_schema.visible import visible

Row = Mapping[str, Any]


class Target(Struct, frozen=True):
    """A format that can be written.

    `write` makes one row of the target of a canonical row; where `document` is set, it makes the whole of all rows
    (a conversation may take several), and tells for each of them which of the turns in it is the row's.
    """

    name: str
    write: Callable[[Row], dict[str, Any]]
    columns: tuple[str, ...] = ()
    document: Callable[[Sequence[Row]], tuple[Any, list[int]]] | None = None


def _canonical(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in COLUMNS if row[name] is not None}


def _layout(name: str, layout: Layout) -> Target:
    return Target(name, layout.write, layout.written)


TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("databricks", _canonical, COLUMNS),
        Target("mlflow", write_mlflow, MLFLOW_ROW),
        _layout("vertex", VERTEX),
        Target("adk", _canonical, document=evalset),
        Target("adk-legacy", _canonical, document=one_session),
        _layout("openai", OPENAI),
        _layout("langsmith", LANGSMITH),
        _layout("ragas", RAGAS),
        _layout("deepeval", DEEPEVAL),
    )
}
"""What can be written, by name."""


class Conversion(Struct, frozen=True):
    """What `convert_eval_set` made.

    `data`: the rows of the target, valid ones only, in order: a frame (one object for an ADK evalset, a list for its
    test list). `losses`: a frame like `Report.issues`, a line for each thing that is not in `data` (row is the 0-based
    position in the source). `report`: the validation of the source. `source`, `target`: the names of the formats.
    """

    data: Any
    losses: pd.DataFrame
    report: Report
    source: str
    target: str

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
        `"langsmith"`, `"ragas"`, `"deepeval"`.

    Returns
    -------
    Conversion
        The data of the target, the losses, the report on the source. Columns that no format knows are carried along.

    Raises
    ------
    EvalSetError
        There is no such format, or the data cannot be read as a table.
    """
    wanted = find_target(target)
    report = check_source(open_source(data), format=source)
    losses = Losses(wanted)
    rows: list[dict[str, Any]] = []
    for part in converted_rows(report, wanted, losses):
        rows.extend(part)
    if wanted.document is not None:
        made, turns = wanted.document(rows)
        losses.compare(rows, made, turns)
        return Conversion(made, losses.frame(), report, report.format, target)
    frame = pd.DataFrame({n: pd.Series([r.get(n) for r in rows], dtype="object") for n in _names(rows)})
    return Conversion(frame, losses.frame(), report, report.format, target)


def convert_file(path: str, out: str, *, source: str = "auto", target: str) -> tuple[Report, Losses]:
    """As `convert_eval_set`, from a file to a file: JSONL, JSON, CSV or Parquet by the ending of `out`. Rows are
    streamed, unless the target is one document. Raises EvalSetError if `out` cannot be written."""
    wanted = find_target(target)
    require_writable(out) if wanted.document is None else require_place(out)
    report = check_source(open_source(path), format=source)
    losses = Losses(wanted)
    parts = converted_rows(report, wanted, losses)
    if wanted.document is None:
        write_batches(out, (batch_of_rows(part) for part in parts if part), _schema(wanted, report))
        return report, losses
    rows = [row for part in parts for row in part]
    made, turns = wanted.document(rows)
    losses.compare(rows, made, turns)
    write_text(out, msgspec.json.format(jsontext.encode(made), indent=2).decode() + "\n")
    return report, losses


def _schema(target: Target, report: Report) -> pa.Schema:
    """The columns of a file of the target: its own, numbers as numbers, then those that are carried along."""
    carried = [n for n in report.schema.names if n not in COLUMNS and n not in target.columns]
    return pa.schema([(n, NUMBERS.get(n, pa.string())) for n in (*target.columns, *carried)])


NUMBERS = {
    **{f.name: f.type for f in ROW_SCHEMA if f.name != "failure" and pa.types.is_primitive(f.type)},
    **dict.fromkeys(("latency_in_seconds", "completion_time"), pa.float64()),
}
"""The columns of the targets that hold numbers."""


def find_target(name: str) -> Target:
    """The target of that name. Raises EvalSetError if there is none."""
    if name not in TARGETS:
        raise EvalSetError(f"cannot convert to {name!r}: use one of {', '.join(TARGETS)}")
    return TARGETS[name]


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


# ---------------------------------------------------------------------------------------------------------------------
# rows


def converted_rows(report: Report, target: Target, losses: Losses) -> Iterator[list[dict[str, Any]]]:
    """The rows of the target, a batch at a time (the canonical rows for a target that is one document)."""
    start = 0
    valid = report.valid_mask
    for given, rows in _canonical_batches(report):
        places = np.flatnonzero(valid[start : start + len(rows)])
        kept = [{**rows[i], POSITION: start + int(i)} for i in places]
        losses.left_out(np.flatnonzero(~valid[start : start + len(rows)]) + start)
        losses.unread(report.format, given, places.tolist(), start)
        if target.document is not None:
            yield kept
        else:
            written = [_written(row, target) for row in kept]
            losses.compare(kept, written)
            yield written
        start += len(rows)


POSITION = "__position__"
"""The key under which a canonical row knows its place in the source while it is converted."""


def _written(row: Row, target: Target) -> dict[str, Any]:
    """A row of the target, and beside it what is carried along."""
    made = target.write(row)
    carried = {n: v for n, v in row.items() if n not in COLUMNS and n != POSITION and v is not None and n not in made}
    return {**made, **carried}


def _canonical_batches(report: Report) -> Iterator[tuple[pa.RecordBatch, list[dict[str, Any]]]]:
    """The source's batches, and their canonical rows with what is carried along."""
    for given, checked in report.checked_batches():
        _, columns = to_columns([rows_of(checked)])
        yield given, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# ---------------------------------------------------------------------------------------------------------------------
# losses


class Losses:
    """What a conversion loses, found by reading back what it wrote."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.issues: list[Issue] = []

    def compare(self, rows: Sequence[Row], written: Any, places: Sequence[int] | None = None) -> None:
        """Note what does not come back of these rows; `places` says where each of them is among what is read back."""
        if not rows or self._target.name == "databricks":
            return
        report = validate_eval_set(written, format=self._target.name, outputs="generated")
        back = list(report.iter_rows())
        for row, place in zip(rows, range(len(rows)) if places is None else places, strict=True):
            self._compare_row(row, back[place])

    def _compare_row(self, row: Row, back: Row) -> None:
        for column in COLUMNS:
            value, came = row[column], back[column]
            if value is None or value == came:
                continue
            if came is None:
                self.add(conversion.NO_PLACE, row, column, f"{self._target.name} has no place for {describe(value)}")
            else:
                self.add(conversion.CHANGED, row, column, *_difference(column, value, came))
        if self._target.document is not None:
            self._carried(row)

    def _carried(self, row: Row) -> None:
        """A document has no columns beside its own."""
        known = (*COLUMNS, POSITION, "eval_set_id")
        for column, value in row.items():
            if column not in known and value is not None:
                self.add(conversion.NO_PLACE, row, column, f"{self._target.name} has no place for {describe(value)}")

    def unread(self, format: str, given: pa.RecordBatch, places: Sequence[int], start: int) -> None:
        """Note what these rows of the source say that no canonical column can hold."""
        for i, path, value in unread_parts(format, given, places):
            issue_row = {POSITION: start + i, "request_id": None}
            column = path.partition(".")[0].partition("[")[0]
            self.add(conversion.NOT_READ, issue_row, column, f"{describe(value)} has no column", path=path)

    def left_out(self, rows: np.ndarray[Any, Any]) -> None:
        """Note the rows that are invalid."""
        for row in rows.tolist():
            place = {POSITION: row, "request_id": None}
            self.add(conversion.LEFT_OUT, place, None, "the row is invalid and was not converted")

    def add(self, rule: Rule, row: Row, column: str | None, message: str, path: str | None = None) -> None:
        """Note one loss."""
        self.issues.append(
            Issue(
                row[POSITION], row["request_id"], column, path or column, rule.code, rule.name, rule.severity, message,
                rule.hint,
            )
        )  # fmt: skip

    def frame(self) -> pd.DataFrame:
        """The losses in the order of the rows."""
        return issues_frame(sorted(self.issues, key=lambda issue: -1 if issue.row is None else issue.row))

    def count(self, severity: Severity) -> int:
        return sum(issue.severity is severity for issue in self.issues)


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
