"""One form of evaluation data → another, and everything that is lost on the way.

    data ──validate──▶ canonical rows ──write──▶ rows of the target ──read back──▶ canonical rows
                              └───────────────── compare ──────────────────────────────┘ → losses

There is no list of the losses of each pair of formats: the output is read back by the target's own reader, and each
difference is a loss (AE811, AE812). Values of a source row that no canonical column can represent are reported too
(AE813), and so is every row that is excluded because it is invalid (AE814). Between the two forms of Customer
Engagement Suite nothing goes by way of rows: their writer reports what a golden CSV cannot represent (AE80).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.conversion.ces import unread_fields
from agent_eval_schema.conversion.conversion import Conversion, TargetFormat, cells_writer, find_writer, target_schema
from agent_eval_schema.conversion.losses import PREFIX, SOURCE, TAKEN, Losses, apart
from agent_eval_schema.formats.ces.golden_writer import golden_csv_text
from agent_eval_schema.formats.nested import is_unfolded
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import InputFormat, find_format
from agent_eval_schema.formats.writer import POSITION, CanonicalRow, RowWriter, Written
from agent_eval_schema.io.arrow import to_columns
from agent_eval_schema.io.atomic import require_apart, require_place
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.write import keeps_types, require_writable, write_batches
from agent_eval_schema.rules import conversion, dataset, requests
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation import ces_turns
from agent_eval_schema.validation.checked_batch import rows_of, verdict
from agent_eval_schema.validation.originals import taken_from_trace
from agent_eval_schema.validation.validate import check_source


def convert_eval_set(
    data: EvalSetLike, to: TargetFormat, *, format: InputFormat = "auto", columns: Mapping[str, str] | None = None
) -> Conversion:
    """Convert an evaluation dataset to another format and report data loss.

    The output is read back, and each difference from the input is recorded in `losses`. Unknown columns are passed
    through.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`; an ADK evalset can also be a dict.
    to : str
        The format of the output: `"databricks"` (the canonical row), `"mlflow"`, `"vertex"`, `"adk"`, `"adk-legacy"`,
        `"openai"`, `"langsmith"`, `"ragas"`, `"deepeval"`, `"azure"`, `"bedrock"`, `"bedrock-rag"`, `"vertex-genai"`,
        `"agentcore"`, `"strands"`, `"langfuse"`, `"braintrust"`, `"phoenix"`, `"inspect"`, `"promptfoo"`,
        `"ces-evaluation"` or `"ces-csv"`.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    columns : mapping of str to str or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.

    Returns
    -------
    Conversion
        The converted data, the losses and the validation report of the input.

    Raises
    ------
    EvalSetError
        A format is not one of the allowed values, or the data cannot be read as a table.

    See Also
    --------
    prepare_for_evaluate : Return the rows in the form that an evaluator reads.

    Examples
    --------
    >>> from agent_eval_schema import convert_eval_set
    >>> data = [{"request": "What is Delta Lake?", "response": "A table format.", "guidelines": ["Be brief"]}]
    >>> conversion = convert_eval_set(data, "vertex")
    >>> conversion.data.iloc[0].to_dict()
    {'prompt': 'What is Delta Lake?', 'response': 'A table format.'}
    >>> conversion.losses[["row", "column"]]
       row      column
    0    0  guidelines
    """
    work = _Work(open_source(data, columns=columns), format, to)
    return work.conversion(work.made())


def convert_file(
    path: str, out: str, to: str, *, format: str = "auto", columns: Mapping[str, str] | None = None
) -> Conversion:
    """As `convert_eval_set`, from a file to a file, whose kind is that of its file extension: JSONL, JSON, CSV or
    Parquet for rows. `data` is None. Rows are streamed, unless input or output is a document. Raises EvalSetError if
    `out` cannot be written."""
    writer = find_writer(to)
    require_apart({"IN": path}, {"OUT": out})
    if writer.save is None:
        require_writable(out)
    else:
        require_place(out, stdout=True)
    work = _Work(open_source(path, columns=columns), format, to)
    if writer.save is not None:
        writer.save(work.made(), out)
    else:
        parts = work.written(cells_writer(writer, out), () if keeps_types(out) else writer.texts)
        batches = (batch_of_rows(part) for part in parts if part)
        write_batches(out, batches, work.schema)
    return work.conversion(None)


# ---------------------------------------------------------------------------------------------------------------------
# from rows to rows
_NOT_ASKED = (requests.MISSING_OUTPUT.code,)
"""A row that the agent has not answered can be converted as well."""


class _Work:
    """One conversion: the check of the source, the rows as they are made, and the losses as they are found."""

    def __init__(self, data: Source, source: str, target: str) -> None:
        self._target, self._writer = target, find_writer(target)
        instead = find_format(target).instead_of_request
        self.report = check_source(  # a row without a request, or what the target accepts instead, cannot be written
            data, format=source, ignore=_NOT_ASKED, complete=not instead, instead_of_request=instead
        )
        self.losses = Losses(target, self.report.plan)
        written = set(self._writer.columns).difference(self._writer.marks)
        self._reads = {*COLUMNS, *written, *find_format(target).reads}
        self._reads |= {n for n in self._passed() if is_unfolded((*written, n)) and not is_unfolded(tuple(written))}
        self._renamed: set[str] = set()
        self._kinds: Counter[str] = Counter()
        has_traces = "trace" in self._writer.columns
        self._ids = set[str]() if dataset.REPEATED_TRACE_ID.code in self.report.counts and not has_traces else None
        of_ces = self.report.format in ces_turns.CES_FORMATS
        self._evaluations = ces_turns.evaluations_of(self.report) if of_ces else None

    def conversion(self, data: Any) -> Conversion:
        """The result of the conversion."""
        valid = self.report.valid_mask
        if self._evaluations is not None:
            valid = np.array([e.valid for e in self._evaluations], bool)
        if len(self._kinds) > 1:
            counts = " and ".join(f"{n:,} {kind}s" for kind, n in self._kinds.most_common())
            nowhere = {POSITION: None, "request_id": None}
            self.losses.add(conversion.MIXED_KINDS, nowhere, None, f"expected rows of one kind, got {counts}")
        unsayable = sum(loss.code in _OF_WHOLE_EVALUATIONS for loss in self.losses.issues)
        names = self.report.format, self._target
        return Conversion(data, self.losses.in_order(), self.report, *names, len(valid), int(valid.sum()) - unsayable)

    def made(self) -> Any:
        """All of the target in memory."""

        import pandas as pd

        if self._evaluations is not None and self._target in ces_turns.CES_FORMATS:
            return self._between_forms_of_ces(self._evaluations)
        if self._writer.document is None:
            rows = [row for part in self.written() for row in part]
            names = dict.fromkeys(name for row in rows for name in row)
            return pd.DataFrame({n: pd.Series([r.get(n) for r in rows], dtype="object") for n in names})
        rows = [row for part in self._canonical_parts() for row in part]
        document = self._writer.document(rows)
        self.losses.compare(rows, document)
        return document.data

    def written(self, in_cells: RowWriter = dict, texts: Sequence[str] = ()) -> Iterator[list[dict[str, Any]]]:
        """The rows of the target, a batch at a time, or the cells of a file, in which these columns are texts."""
        write = self._writer.row
        assert write is not None
        for rows in self._canonical_parts():
            made = [self._with_passed_through(write(row), row) for row in rows]
            made = list(map(in_cells, made))
            self.losses.compare(rows, Written(made, made, self._target, range(len(made))))
            for row, cells in zip(rows, made, strict=True):
                self.losses.as_text(row, {name: cells.get(name) for name in texts})
            if self._writer.kind is not None:
                self._kinds.update(map(self._writer.kind, made))
            yield made

    @property
    def schema(self) -> pa.Schema:
        """The columns of a file of the target: its own, numbers as numbers, then those that are passed through."""
        names = self._passed() if self._evaluations is None else ()
        passed = dict.fromkeys(map(self._name_of, names))
        own = self._writer.columns
        return target_schema((*own, *(n for n in passed if n not in own)))

    def _passed(self) -> list[str]:
        """The columns that are passed through."""
        known = (*COLUMNS, *self._writer.replaces)
        return [name for name in self.report.schema.names if name not in known]

    def _with_passed_through(self, made: dict[str, Any], row: CanonicalRow) -> dict[str, Any]:
        """A row of the target, and the columns that neither format reads."""
        known = (*COLUMNS, POSITION, SOURCE, TAKEN, *self._writer.replaces)
        passed = {n: v for n, v in row.items() if n not in known and v is not None and made.get(n) != v}
        return {**made, **{self._name_of(name): value for name, value in passed.items()}}

    def _name_of(self, column: str) -> str:
        """The name under which a column is passed through: its own, unless the target reads it as something else."""
        own = column.removeprefix(PREFIX)
        if own not in self._reads:
            return own
        if own not in self._renamed:
            self._renamed.add(own)
            message = f"{self._target} reads a column of this name; it is passed through as `{visible(apart(own))}`"
            self.losses.add(conversion.RENAMED, {POSITION: None, "request_id": None}, own, message)
        return apart(own)

    def _canonical_parts(self) -> Iterator[list[dict[str, Any]]]:
        """The valid rows in canonical form, a batch at a time; the others are reported."""
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
            passed = {n for n in columns if n not in COLUMNS} | {"trace"}  # a trace is passed on unchanged
            sources = [{n: v for n, v in row.items() if n not in passed} for row in native_rows(given)]
            taken = [taken_from_trace(bits) for bits in verdict(checked, "derived").to_pylist()]
            made = [{**rows[i], POSITION: start + i, SOURCE: sources[i], TAKEN: taken[i]} for i in places]
            yield list(map(self._with_own_id, made))
            start += len(rows)

    def _with_own_id(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row without an ID that an earlier row has, in a target without a column of traces: there it would no
        longer show that the ID is that of a trace, and not the row's own."""
        identity = row["request_id"]
        if self._ids is None or identity not in self._ids:
            if self._ids is not None and identity is not None:
                self._ids.add(identity)
            return row
        message = "an earlier row has the same ID, which is that of the row's trace; the row is written without it"
        self.losses.add(conversion.NO_PLACE, row, "request_id", message)
        return {**row, "request_id": None}

    def _rows_of_evaluations(self, evaluations: Sequence[ces_turns.CesEvaluation]) -> Iterator[list[dict[str, Any]]]:
        for given, rows in zip(evaluations, ces_turns.rows_of_each(evaluations), strict=True):
            if not given.valid:
                self.losses.left_out([given.row], "evaluation")
                continue
            for path, value in unread_fields(given):
                self.losses.unread(given.row, path, value)
            report = check_source(open_source(rows), format="databricks", outputs="generated")
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
                message = f"an Evaluation cannot hold groups: {describe(given.groups)}"
                self.losses.add(conversion.NO_PLACE, place, "evaluation_groups", message)
        return [dict(evaluation) for evaluation in made]


_OF_WHOLE_EVALUATIONS = (conversion.SCENARIO.code, conversion.NO_EVALUATION.code)
"""The losses of a golden CSV for excluded evaluations."""
