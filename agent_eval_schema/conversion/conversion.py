"""Conversion: what `convert_eval_set` returns and shows; and how the rows of a target go into a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.conversion.loss_log import LISTED, FieldLosses, LossLog
from agent_eval_schema.conversion.losses import LostMetrics
from agent_eval_schema.formats.column_names import renames_in_sheet
from agent_eval_schema.formats.format import RowWriter, Writer, save_json
from agent_eval_schema.formats.registry import find_format, targets
from agent_eval_schema.formats.roles import is_of_truth
from agent_eval_schema.formats.values_as_text import TextCounts
from agent_eval_schema.io.atomic import require_place
from agent_eval_schema.io.excel import EXCEL
from agent_eval_schema.io.excel_editor import edit_workbook
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.io.pandas import issues_frame
from agent_eval_schema.io.places import ending_of, with_part
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.streams import DROPPED
from agent_eval_schema.io.write import require_document_place, write_batches
from agent_eval_schema.render.blocks import (
    Block,
    Detail,
    Example,
    Examples,
    Group,
    Line,
    Only,
    Part,
    Section,
    Several,
    View,
)
from agent_eval_schema.render.document import json_text, versioned
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, Call, NextCommand, plural
from agent_eval_schema.render.printable import Savable
from agent_eval_schema.rule import Severity
from agent_eval_schema.schema import ROW_SCHEMA
from agent_eval_schema.text.choices import path_of, require_choice
from agent_eval_schema.validation import ces_turns
from agent_eval_schema.validation.report import Report, run_of

if TYPE_CHECKING:
    import pandas as pd


def find_writer(target: str) -> Writer:
    require_choice("to", target, targets())
    writer = find_format(target).writer
    assert writer is not None
    return writer


_NUMBERS = {
    **{f.name: f.type for f in ROW_SCHEMA if f.name != "failure" and pa.types.is_primitive(f.type)},
    **dict.fromkeys(("latency_in_seconds", "completion_time"), pa.float64()),
}
"""The columns of the targets that hold numbers."""


def target_schema(names: Iterable[str]) -> pa.Schema:
    return pa.schema([(name, _NUMBERS.get(name, pa.string())) for name in names])


def document_writer(writer: Writer, path: str) -> Callable[[Sequence[Mapping[str, Any]]], Any] | None:
    """The function that makes one document of the rows of a file; None if the file has rows."""
    return writer.of_rows if path.lower().endswith(".json") else None


def cells_writer(writer: Writer, path: str) -> RowWriter:
    """The function that converts a row into the cells of a file."""
    return writer.cells if writer.cells is not None and path.lower().endswith(".csv") else dict


def write_rows(
    source: Source, out: str, lines: Sequence[int], batches: Iterable[pa.RecordBatch], schema: pa.Schema, writer: Writer
) -> str:
    """Write rows of a target into a file. Rows that come from a sheet are written there, each in its line, in a copy of
    the workbook, if that is what the file is. `lines` is complete when all batches are read. Returns the name by which
    they are read."""
    if source.sheet is None or ending_of(out) != EXCEL:
        write_batches(out, batches, schema)
        return out
    read = list(batches)
    if not lines:  # no row, or turns of a golden CSV, which are several to an evaluation
        write_batches(out, read, schema)
        return out
    rows = [row for batch in read for row in native_rows(batch)]
    keys = {name for row in rows for name in row}
    names = [name for name in schema.names if name in keys]
    renames = renames_in_sheet(source, names)
    own = [name for name in names if name in writer.columns or name not in source.sheet.columns]
    edits = {line: {name: row.get(name) for name in own} for line, row in zip(lines, rows, strict=True)}
    edit_workbook(source.sheet, out, renames, (edits.get(line, DROPPED) for line in range(len(source.sheet.lines))))
    return with_part(out, source.name)


class Conversion(Struct, Savable, frozen=True):  # numpydoc ignore=PR01
    """The result of a conversion between formats.

    Attributes
    ----------
    data : pandas.DataFrame, pyspark.sql.DataFrame, list of dict, dict or str
        The valid rows in the target format, in order. A DataFrame with a RangeIndex and columns of dtype object; for
        `"adk"` one dict, for `"adk-legacy"` and `"ces-evaluation"` a list of dicts, for `"ces-csv"` the text of the
        file. Of a Spark DataFrame a lazy Spark DataFrame with all columns of the target, numbers as numbers and lists
        and objects as JSON text.
    source : str
        The format of the input.
    target : str
        The format of the output.
    given : int
        The number of input rows (of evaluations for Google Customer Engagement Suite).
    converted : int
        The number of input rows that are in `data`.

    See Also
    --------
    convert_eval_set : The function that returns a conversion.

    Examples
    --------
    >>> from agent_eval_schema import convert_eval_set
    >>> conversion = convert_eval_set([{"request": "Hi", "response": "Hello!"}], "openai")
    >>> conversion.source, conversion.target, conversion.given, conversion.converted
    ('databricks', 'openai', 1, 1)
    """

    data: Any
    _log: LossLog
    _report: Report | Callable[[], Report]
    source: str
    target: str
    given: int
    converted: int
    _metrics: LostMetrics
    _out: str | None = None
    _lines: Sequence[int] = ()

    @property
    def losses(self) -> pd.DataFrame:
        """The values that are not in `data`.

        Returns
        -------
        pandas.DataFrame or pyspark.sql.DataFrame
            One row per value, with the columns of `Report.issues`; `row` is the 0-based position in the input. Of a
            Spark DataFrame it is lazy, and its rows are not in order.

        Examples
        --------
        >>> from agent_eval_schema import convert_eval_set
        >>> data = [{"request": "Hi", "response": "Hello!", "guidelines": ["Be brief"]}]
        >>> convert_eval_set(data, "vertex").losses[["row", "code", "column"]]
           row   code      column
        0    0  AE811  guidelines
        """
        return issues_frame(self._log)

    @property
    def report(self) -> Report:
        """The validation report of the input.

        Returns
        -------
        Report
            The report of the whole input. For a Spark DataFrame it is made on access: the rows are validated once more,
            and a few bytes per row are fetched.

        Examples
        --------
        >>> from agent_eval_schema import convert_eval_set
        >>> convert_eval_set([{"request": "Hi", "response": "Hello!"}], "openai").report
        <Report: 1 of 1 rows valid, 0 errors, 0 warnings>
        """
        return self._report() if callable(self._report) else self._report

    def severities(self) -> frozenset[Severity]:
        """Return the severities of the losses.

        Returns
        -------
        frozenset of Severity
            Each severity that a loss has; empty if there is no loss.

        Examples
        --------
        >>> from agent_eval_schema import convert_eval_set
        >>> convert_eval_set([{"request": "Hi", "response": "Hello!"}], "mlflow").severities()
        frozenset()
        """
        return self._log.severities

    @property
    def lossless(self) -> bool:
        """Whether `data` contains everything that is in the input.

        Returns
        -------
        bool
            True if `losses` is empty.

        Examples
        --------
        >>> from agent_eval_schema import convert_eval_set
        >>> convert_eval_set([{"request": "Hi", "response": "Hello!"}], "mlflow").lossless
        True
        """
        return not len(self._log)

    def _json(self) -> str:
        numbers = {name: getattr(self, name) for name in ("source", "target", "given", "converted", "lossless")}
        return json_text(versioned({**numbers, "losses": list(self._log)}))

    def _view(self) -> View:
        call = run_of(self.report).call
        return losses_view(self._headline, self._log, self._metrics, call.name, list(self._next_commands(call)))

    def _next_commands(self, call: Call) -> Iterator[NextCommand]:
        if Severity.ERROR in self.severities() and not self.report.ok:
            yield NextCommand(call.validation(), "shows why rows were not converted")
        elif self._out is None:
            writer = find_writer(self.target)
            extension = ".jsonl" if writer.save is None else writer.endings[0]
            yield NextCommand(f'.write("rows{extension}")', "writes the converted rows to a file")
        elif command := Call(self._out, {"format": self.target}).command("metrics"):
            yield NextCommand(command, "shows which metrics the converted rows support")

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write `data` to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. For rows, the file extension selects the kind: `.parquet`, `.jsonl`, `.json`, `.csv`,
            `.xlsx` (the rows of a workbook are written into a copy of it), or `.delta` for a new Delta folder.

        Returns
        -------
        int
            The number of input rows that are in the file.

        Raises
        ------
        EvalSetError
            The file extension is not supported, or the file cannot be written.

        Warns
        -----
        ValuesAsTextWarning
            Values that are not text are read back as text from a file of this kind.

        See Also
        --------
        Conversion.save : Write the losses.

        Examples
        --------
        >>> from agent_eval_schema import convert_eval_set
        >>> conversion = convert_eval_set([{"request": "Hi", "response": "Hello!"}], "mlflow")
        >>> conversion.write("rows.jsonl")
        1
        """
        out, writer = path_of(path), find_writer(self.target)
        settle({"": out}, {"the data": self._inputs()})
        if writer.save is not None:
            require_document_place(out, writer.endings)
            writer.save(self.data, out)
            return self.converted
        rows = [{n: v for n, v in row.items() if v is not None} for row in self.data.to_dict("records")]
        if (of_rows := document_writer(writer, out)) is not None:
            require_place(out)
            save_json(of_rows(rows), out)
            return self.converted
        cells = list(map(cells_writer(writer, out), rows))
        schema = target_schema(dict.fromkeys([*writer.columns, *self.data.columns]))
        counts = TextCounts(schema, out, self.target)
        write_rows(self._source, out, self._lines, counts.of([batch_of_rows(cells)] if cells else []), schema, writer)
        counts.warn()
        return len(cells)

    def _inputs(self) -> object:
        return [self._source, self._out]

    @property
    def _source(self) -> Source:
        return run_of(self.report).source

    @property
    def _headline(self) -> str:
        kind = "evaluations" if self.source in ces_turns.CES_FORMATS else "rows"
        return f"{self.source} → {self.target}: {self.converted:,} of {self.given:,} {kind} converted"

    def __repr__(self) -> str:
        return f"<Conversion: {self._headline}, {len(self._log):,} lost>"


FIELDS_AT_ONCE = 5
"""Fields with losses that a notebook does not fold."""

NAMED = 3
"""Fields in a verdict, and metrics of a field, that are named; the others are counted."""


def losses_view(
    headline: str, losses: LossLog, metrics: LostMetrics, source: str | None, following: Sequence[NextCommand]
) -> View:
    """A group per field with its losses, those of ground truth first, and the metrics that are lost with it."""
    fields = losses.fields
    worst = {name: _SEVERITIES.index(field.worst) for name, field in fields.items()}
    keys = sorted(fields, key=lambda key: (worst[key], -fields[key].count, key))
    truths = [key for key in keys if is_of_truth(key[0]) and worst[key] < _SEVERITIES.index(Severity.INFO)]
    sections: list[Block] = []
    room = FIELDS_AT_ONCE
    for id, title, of in (
        ("truth", "Ground truth", truths),
        ("rows", "Rows", [key for key in keys if not key[0]]),
        ("fields", "Other fields" if truths else "Fields", [key for key in keys if key[0] and key not in truths]),
    ):
        groups = [_group(key[0], fields[key], metrics.get(key[0] or key[1], {}), is_open=id == "truth") for key in of]
        if groups:
            sections.append(Section(id, title, [Several(groups, "more", at_once=max(room, 1))]))
            room -= len(groups)
    if losses.hints:
        lines = [Line((f"{code}: ", Part(hint, "message")), "muted") for code, hint in losses.hints.items()]
        sections.append(Section("hints", "What to do about each kind of loss", lines, short="What to do"))
    count = "no losses" if not len(losses) else "1 loss" if len(losses) == 1 else f"{len(losses):,} losses"
    more = f" and {len(truths) - NAMED:,} more" if len(truths) > NAMED else ""
    named = ", ".join(name for name, _ in truths[:NAMED])
    truth = f"; ground truth lost or changed: {named}{more}" if truths else ""
    return View(
        title=headline,
        about=[Only("html", [Line(os.path.basename(source), "muted")])] if source else [],
        verdict=f"{headline}, {count}{truth}",
        mood=("error", "warning", "good")[min(worst.values(), default=-1)],
        following=following,
        blocks=sections,
        kind="conversion",
        footer=". Row numbers are zero-based.",
    )


_SEVERITIES = list(Severity)


def _group(name: str, losses: FieldLosses, metrics: Mapping[str, int], *, is_open: bool) -> Group:
    """A field (a row as a whole, if it has no name): how many, and the first."""
    codes = [Part(f"{issue.code} {issue.name}", f"tag {issue.severity}") for issue in losses.codes.values()]
    head: list[str | Part] = [Part(name, "code")] if name else []
    head += [Part(plural(losses.row_count, "row") if losses.row_count else "all rows", "count"), *codes]
    blocks: list[Block] = []
    if metrics:
        names = sorted(metrics, key=lambda metric: -metrics[metric])
        head.append(Part(f"{plural(len(names), 'metric')} lost", "muted"))
        most = "up to " * (metrics[names[-1]] < metrics[names[0]]) + plural(metrics[names[0]], "row")
        named = [piece for metric in names[:NAMED] for piece in (", ", Part(metric, "name"))]
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        blocks.append(Line((f"Metrics lost on {most}: ", *named[1:], more)))
    if losses.is_one:
        numbers = ", ".join(f"{row:,}" for row in losses.rows) + (", …" if losses.row_count > LISTED else "")
        blocks.append(Line((Part(losses.first[0].message, "message"), f": rows {numbers}")))
    else:
        examples = [
            Example(
                "" if i.row is None else f"{i.row:,}",
                i.request_id,
                ("" if i.path in (None, name) else i.path, Part(i.message, "message")),
            )
            for i in losses.first
        ]
        columns = [Detail("Where", "path"), Detail("Loss")]
        blocks.append(Only("text", [Examples(columns, examples, in_text=EXAMPLES_SHOWN if is_open else 1)]))
        blocks.append(Only("html", [Examples(columns, examples, total=losses.count)]))
    return Group(head, blocks, is_open=is_open, open_in_notebook=False)
