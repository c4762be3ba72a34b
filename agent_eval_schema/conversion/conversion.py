"""Conversion: what `convert_eval_set` returns and shows; and how the rows of a target go into a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.formats.format import RowWriter, Writer
from agent_eval_schema.formats.names import TARGETS
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.formats.suggestions import is_of_truth
from agent_eval_schema.formats.values_as_text import TextCounts
from agent_eval_schema.io.atomic import require_place
from agent_eval_schema.io.pandas import issues_frame
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.io.write import write_batches
from agent_eval_schema.issues import Issue, Severity
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
from agent_eval_schema.render.phrases import Call, NextCommand, plural
from agent_eval_schema.render.printable import Savable
from agent_eval_schema.schema import ROW_SCHEMA
from agent_eval_schema.text.choices import path_of, require_choice
from agent_eval_schema.validation import ces_turns
from agent_eval_schema.validation.report import Report, run_of

if TYPE_CHECKING:
    import pandas as pd


def find_writer(target: str) -> Writer:
    require_choice("to", target, TARGETS)
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


def cells_writer(writer: Writer, path: str) -> RowWriter:
    """The function that converts a row into the cells of a file."""
    return writer.cells if writer.cells is not None and path.lower().endswith(".csv") else dict


class Conversion(Struct, Savable, frozen=True):  # numpydoc ignore=PR01
    """The result of a conversion between formats.

    Attributes
    ----------
    data : pandas.DataFrame, list of dict, dict or str
        The valid rows in the target format, in order. A DataFrame with a RangeIndex and columns of dtype object; for
        `"adk"` one dict, for `"adk-legacy"` and `"ces-evaluation"` a list of dicts, for `"ces-csv"` the text of the
        file.
    report : Report
        The validation report of the input.
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
    _issues: list[Issue]
    report: Report
    source: str
    target: str
    given: int
    converted: int

    @property
    def losses(self) -> pd.DataFrame:
        """The values that are not in `data`.

        Returns
        -------
        pandas.DataFrame
            One row per value, with the columns of `Report.issues`; `row` is the 0-based position in the input.

        Examples
        --------
        >>> from agent_eval_schema import convert_eval_set
        >>> data = [{"request": "Hi", "response": "Hello!", "guidelines": ["Be brief"]}]
        >>> convert_eval_set(data, "vertex").losses[["row", "code", "column"]]
           row   code      column
        0    0  AE811  guidelines
        """
        return issues_frame(self._issues)

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
        return frozenset(issue.severity for issue in self._issues)

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
        return not self._issues

    def _json(self) -> str:
        numbers = {name: getattr(self, name) for name in ("source", "target", "given", "converted", "lossless")}
        return json_text(versioned({**numbers, "losses": self._issues}))

    def _view(self) -> View:
        return losses_view(self._headline, self._issues, run_of(self.report).call)

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write `data` to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. For rows, the file extension selects the kind: `.parquet`, `.jsonl`, `.json`, `.csv`,
            or `.delta` for a new Delta folder.

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
        if writer.save is not None:
            require_place(out, stdout=True)
            writer.save(self.data, out)
            return self.converted
        rows = [{n: v for n, v in row.items() if v is not None} for row in self.data.to_dict("records")]
        cells = list(map(cells_writer(writer, out), rows))
        schema = target_schema(dict.fromkeys([*writer.columns, *self.data.columns]))
        counts = TextCounts(schema, out, self.target)
        written = write_batches(out, counts.of([batch_of_rows(cells)] if cells else []), schema)
        counts.warn()
        return written

    @property
    def _headline(self) -> str:
        kind = "evaluations" if self.source in ces_turns.CES_FORMATS else "rows"
        return f"{self.source} → {self.target}: {self.converted:,} of {self.given:,} {kind} converted"

    def __repr__(self) -> str:
        return f"<Conversion: {self._headline}, {len(self._issues):,} lost>"


LISTED = 20
"""Losses of a kind on a page; the JSON and the DataFrame have them all."""

KINDS_AT_ONCE = 5
"""Kinds of loss that a notebook does not fold."""


def losses_view(headline: str, issues: Sequence[Issue], call: Call) -> View:
    """The losses by code and column, with exact counts; then the next command, by the `call` of the conversion."""
    is_error = any(issue.severity is Severity.ERROR for issue in issues)
    following = []
    if is_error:
        following.append(NextCommand(call.validation(), "shows why rows were not converted"))
    losses = "no losses" if not issues else "1 loss" if len(issues) == 1 else f"{len(issues):,} losses"
    groups: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues:
        groups.setdefault((issue.code, issue.column or ""), []).append(issue)
    severities = list(Severity)  # errors come first, then ground truth
    order = {key: (severities.index(group[0].severity), not is_of_truth(key[1]), key) for key, group in groups.items()}
    kinds = [groups[key] for key in sorted(groups, key=order.__getitem__)]
    section = Section(
        "losses", "Losses", [Several(list(map(_group, kinds)), "more kinds of loss", at_once=KINDS_AT_ONCE)]
    )
    return View(
        title=headline,
        verdict=f"{headline}, {losses}",
        mood="good" if not issues else "error" if is_error else "",
        following=following,
        blocks=[Only("html", [section]), Only("text", list(_lines(kinds, issues)))] if issues else [],
        kind="conversion",
        footer=". Row numbers are zero-based.",
    )


def _group(losses: list[Issue]) -> Group:
    first = losses[0]
    head = [Part(f"{first.code} {first.name}", f"tag {first.severity}")]
    head += [Part(first.column, "code")] if first.column else []
    rows = [
        Example("" if i.row is None else f"{i.row:,}", i.request_id, (i.path or "", Part(i.message, "message")))
        for i in losses[:LISTED]
    ]
    return Group(
        [*head, Part(f"{len(losses):,}\N{NO-BREAK SPACE}×", "count")],
        [
            *([Line(Part(first.hint, "message"), "muted")] if first.hint else []),
            Examples([Detail("Where", "path"), Detail("Loss")], rows, total=len(losses)),
        ],
        is_open=first.severity is Severity.ERROR,
        open_in_notebook=False,
    )


def _lines(kinds: Sequence[list[Issue]], issues: Sequence[Issue]) -> Iterator[Block]:
    """A line per kind with its first loss; below them all, what to do about each."""
    for losses in kinds:
        first = losses[0]
        column = f" {first.column}" if first.column else ""
        severity = Part(f"{first.severity!s:7}", f"bold {first.severity}")
        yield Line((f"{first.code} ", severity, f" {first.name}{column}: {plural(len(losses), 'time')}"))
        place = [] if first.row is None else [f"row {first.row:,}", first.path or "the row"]
        yield Line(": ".join([*place, first.message]), indent=6)
    hints = dict.fromkeys(f"{issue.code}: {issue.hint}" for issue in issues)
    yield Section("hints", "", [Line(hint, "muted") for hint in hints], indent=0)
