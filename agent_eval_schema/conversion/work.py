"""The work of a conversion: valid rows in canonical form → rows of the target, and the losses, a batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import xxhash
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.cells.hashing import Array, FirstSeen, hash_texts
from agent_eval_schema.conversion.conversion import NAMED, Conversion, find_writer, target_schema
from agent_eval_schema.conversion.losses import (
    BESIDE,
    PREFIX,
    PRESENCE,
    REPORTED,
    SOURCE,
    TAKEN,
    Losses,
    is_default,
    unread_fields,
)
from agent_eval_schema.formats.ces.golden_writer import golden_csv_text
from agent_eval_schema.formats.format import POSITION, CanonicalRow, RowWriter, Written
from agent_eval_schema.formats.kept import KEPT_BY_CLASSES
from agent_eval_schema.formats.nested import is_unfolded
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.formats.shapes import expects_calls_of_session
from agent_eval_schema.io.arrow import to_rows
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.work_folder import PartsFolder
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.metrics.support import shown_systems
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rules import conversion, requests
from agent_eval_schema.rules.columns import NOT_FINITE, PREFERRED_TRUTH
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import structured, texts_in
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation import ces_turns
from agent_eval_schema.validation.checked_batch import kinds_of, mixed_kinds, rows_of, verdict
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.originals import taken_from_trace
from agent_eval_schema.validation.plan import OnInvalid, Plan, make_plan
from agent_eval_schema.validation.report import InvalidEvalSetError, Report, run_of
from agent_eval_schema.validation.validate import check_source


def loss_of_kinds(target: str, after: Mapping[int, int]) -> list[Issue]:
    """The loss of a target whose platform loads rows of one kind, by the presence masks of the rows as written."""
    message = mixed_kinds(find_format(target), after)
    return [Finding(conversion.MIXED_KINDS, message).issue(None, None)] if message else []


class MixedKinds(Exception):
    """All rows are written, and they are of two kinds: they are written once more, without those of the other kind."""

    def __init__(self, kind: bool) -> None:
        super().__init__()
        self.kind = kind


def kind_of_most(source: str, target: str, after: Mapping[int, int]) -> bool | None:
    """The kind of the rows that are kept where a platform loads rows of one kind per file, as `kinds_of` has it: that
    of most, and of as many those with the field. None if they are of one kind, or in the form of the target, which its
    platform may have written."""
    kinds = kinds_of(find_format(target), after)
    return kinds[True] >= kinds[False] if len(kinds) > 1 and source != target else None


def rows_after(masks: Mapping[tuple[int, int], int]) -> Counter[int]:
    """The rows that came back by their presence masks as written."""
    after = Counter[int]()
    for (_, mask), rows in masks.items():
        after[mask] += rows if mask else 0
    return +after


def plan_of(source: Source, target: str) -> Plan:
    find_writer(target)
    instead = find_format(target).instead_of_request
    # a row without a request, or what the target accepts instead, cannot be written
    # a row that the agent has not answered can be converted as well
    ignore = (*source.reading.ignore, requests.MISSING_OUTPUT.code)
    plan = make_plan(source.read_as(ignore=ignore), complete=not instead)
    return replace(plan, columns=True, instead_of_request=instead)


def systems_of(source: str, target: str) -> tuple[str, ...]:
    """The systems whose metrics may be lost."""
    return (find_format(target).system, *shown_systems(find_format(source).system))


def refused_rows(count: int, first: Iterable[Any]) -> str:
    """The rows that would be excluded, for an exception: how many, and the losses of the first."""
    named = "; ".join(f"row {loss.row}: {loss.message}" for loss in islice(first, NAMED))
    return f"{plural(count, 'row')} would be excluded: {named}{'; …' if count > NAMED else ''}"


Item = TypeVar("Item")


def without(items: Sequence[Item], numbers: Collection[int]) -> list[Item]:
    return [item for number, item in enumerate(items) if number not in numbers]


SESSION_CALLS = "session_trajectory"
"""The column of the expected calls of a session in a format that expects those of one turn."""


class Ids(Protocol):
    """What knows which row has an ID first: `FirstSeen` of the rows so far, or on Spark the table as a whole."""

    def add(self, keys: Array, rows: Array, payloads: Array, /) -> tuple[Array, Any]: ...


class Work:
    """One conversion: the run that checks the source, the rows as they are written, the losses as they are found."""

    def __init__(
        self,
        run: CheckedRun,
        target: str,
        ids: Ids | None = None,
        *,
        on_invalid: OnInvalid = "drop",
        kind: bool | None = None,
    ) -> None:
        self._target, self._writer = target, find_writer(target)
        self._run, self._on_invalid, self._kind = run, on_invalid, kind
        self.losses = Losses(target, self._run.plan, keep=on_invalid == "keep", kind=kind)
        self._own = set(self._writer.columns).difference(self._writer.marks.keys() - find_format(target).reads)
        self._reads = {*COLUMNS, *self._own, *find_format(target).reads}
        source = find_format(self._run.plan.format)
        self._request_columns = source.request_columns if source.name != target else ()
        of_target = find_format(target).request_columns if source.name != target else ()
        self._of_both = set(of_target).intersection(source.passthrough_columns)
        """Columns of the source that the target would give the agent, as something else."""
        self._names: dict[str, str] = {}
        entry = KEPT_BY_CLASSES.get(target)
        self._kept, self._release = (None, "") if entry is None else (entry.columns, entry.release)
        self.lines: list[int] = []  # of a sheet, those of the rows that are written
        self._ids: Ids | None = None if "trace" in self._writer.columns else ids or FirstSeen()

    @cached_property
    def _evaluations(self) -> list[ces_turns.CesEvaluation] | None:
        """The evaluations of files of Customer Engagement Suite, which do not contain rows."""
        if self._run.plan.format not in ces_turns.CES_FORMATS:
            return None
        for _ in self._run.batches():
            pass
        return ces_turns.evaluations_of(Report(self._run))

    def conversion(self, data: Any, out: str | None = None) -> Conversion:
        report = Report(self._run)
        valid = report.valid_mask
        if self._evaluations is not None:
            valid = np.array([e.valid for e in self._evaluations], bool)
        self.losses.issues += loss_of_kinds(self._target, rows_after(self.losses.masks))
        if self._run.source.turns_apart:
            message = "a conversation is written as one row per answer, with the messages before it"
            self.losses.add(conversion.CHANGED, {}, None, message)
        for name in self._run.source.repeated_columns:
            message = f"expected one column `{visible(name)}`, got several; the first is converted"
            self.losses.add(conversion.NOT_READ, {}, name, message)
        if both := report.counts.get(PREFERRED_TRUTH.code):
            message = f"{plural(both, 'row')} with two kinds of ground truth: the preferred one is kept"
            self.losses.add(conversion.NOT_READ, {}, None, message)
        losses = self.losses.flush()
        unsayable = losses.codes[conversion.SCENARIO.code] + losses.codes[conversion.NO_EVALUATION.code]
        if self._evaluations is None:
            unsayable += self.losses.refused
        elif self.losses.refused:  # evaluations without a written row
            refused = Counter(loss.row for loss in losses if loss.code == conversion.LEFT_OUT.code)
            turns = zip(self._evaluations, map(len, ces_turns.rows_of_each(self._evaluations)), strict=True)
            unsayable += sum(0 < count <= refused[evaluation.row] for evaluation, count in turns)
        names = report.format, self._target
        metrics = self.losses.metrics(systems_of(report.format, self._target))
        count = int(valid.sum()) - unsayable
        return Conversion(data, losses, report, *names, len(valid), count, metrics, out, self.lines)

    def finish(self) -> None:
        """To be called when all rows are written, before a file takes its name: raises MixedKinds, or
        InvalidEvalSetError if rows were excluded and the caller does not accept that."""
        if self._on_invalid == "keep":
            return
        kind = kind_of_most(self._run.plan.format, self._target, rows_after(self.losses.masks))
        if self._kind is None and kind is not None:
            raise MixedKinds(kind)
        losses = self.losses.flush()
        if self._on_invalid == "raise" and (count := losses.codes[conversion.LEFT_OUT.code]):
            first = (loss for loss in losses if loss.code == conversion.LEFT_OUT.code)
            raise InvalidEvalSetError(report := Report(self._run), refused_rows(count, first) if report.ok else "")

    def target_data(self) -> Any:
        data = self._target_data()
        self.finish()
        return data

    def _target_data(self) -> Any:
        import pandas as pd

        if self._evaluations is not None and self._target in ces_turns.CES_FORMATS:
            self.losses.add_excluded([e.row for e in self._evaluations if not e.valid], "evaluation")
            valid = [e for e in self._evaluations if e.valid]
            written = [e.evaluation for e in valid]
            if self._target == ces_turns.CSV:
                groups = {str(e.evaluation.get("displayName")): e.groups for e in valid if e.groups}
                text, losses = golden_csv_text(written, groups=groups)
                self.losses.issues += [replace(loss, row=valid[loss.row or 0].row) for loss in losses]
                return text
            for evaluation in valid:
                if evaluation.groups:
                    place = {POSITION: evaluation.row, "request_id": evaluation.evaluation.get("displayName")}
                    message = f"an Evaluation cannot hold groups: {describe(evaluation.groups)}"
                    self.losses.add(conversion.NO_PLACE, place, "evaluation_groups", message)
            return [dict(evaluation) for evaluation in written]
        if self._writer.document is None:
            rows = [row for part in self.written() for row in part]
            names = dict.fromkeys(chain.from_iterable(rows))
            return pd.DataFrame({n: pd.Series([r.get(n) for r in rows], dtype="object") for n in names})
        rows = [row for part in self._canonical_parts() for row in part]
        own = [{n: v for n, v in row.items() if n not in self._of_both} for row in rows] if self._of_both else rows
        document = self._writer.document(own)
        if refused := self.losses.compare(rows, document):
            document = self._writer.document(without(own, refused))
        return document.data

    def document(self, of_rows: Callable[[Sequence[Mapping[str, Any]]], Any]) -> Any:
        """The document of all rows as they are written."""
        rows = [row for part in self._canonical_parts() for row in part]
        written = self._spelled(rows, dict)
        document = of_rows(written)
        if refused := self.losses.compare(rows, Written(document, document, self._target, range(len(rows)))):
            rows, written = without(rows, refused), without(written, refused)
            document = of_rows(written)
        self._inspect(rows, written, ())
        self.finish()
        return document

    def written(self, texts: Sequence[str] = (), compare: bool = True) -> Iterator[list[dict[str, Any]]]:
        """The rows of the target, a batch at a time, for a file in which these columns are texts. Losses are found if
        the rows are read back to `compare` them."""
        for rows in self._canonical_parts():
            written = self._written(rows, dict, texts, compare)
            self.losses.flush()
            yield written

    def batches(
        self, in_cells: RowWriter, texts: Sequence[str], parts: PartsFolder | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The cells of a file; those of `parts` that were done are taken from there, and the others are added."""
        for number, rows in enumerate(self._canonical_parts()):
            number = 2 * number + (self._kind is not None)  # rows that are written once more have parts of their own
            source = "" if parts is None else hash_of(rows)
            found = None if parts is None else parts.read(number, source)
            if found is not None:
                batch, outcome = found[0], msgspec.msgpack.decode(found[1], type=Outcome)
                self.losses.issues = outcome.losses
                excluded = {loss.row for loss in outcome.losses if loss.code == conversion.LEFT_OUT.code}
                self._add_lines([row for row in rows if row[POSITION] not in excluded])
                self.losses.masks += Counter({(before, after): rows for before, after, rows in outcome.masks})
                self.losses.refused += outcome.refused
                self._names |= outcome.names
            else:
                masks, refused = self.losses.masks.copy(), self.losses.refused
                batch = batch_of_rows(self._written(rows, in_cells, texts, compare=True))
                if parts is not None:
                    added = [(*pair, count) for pair, count in (self.losses.masks - masks).items()]
                    outcome = Outcome(self.losses.issues, added, self._names, self.losses.refused - refused)
                    parts.commit(number, source, batch, msgspec.msgpack.encode(outcome))
            self.losses.flush()
            if batch.num_rows:
                yield batch
        self.finish()

    def _written(
        self, rows: list[dict[str, Any]], in_cells: RowWriter, texts: Sequence[str], compare: bool
    ) -> list[dict[str, Any]]:
        written = self._spelled(rows, in_cells)
        refused = set[int]()
        if compare or self._on_invalid != "keep":
            find = self.losses.compare if compare else self.losses.refusals
            refused = find(rows, Written(written, written, self._target, range(len(written))))
        rows, written = without(rows, refused), without(written, refused)
        self._add_lines(rows)
        self._inspect(rows, written, texts)
        return written

    def _add_lines(self, rows: Sequence[CanonicalRow]) -> None:
        if self._run.source.sheet is not None and self._evaluations is None:
            self.lines += [row[POSITION] for row in rows]

    def _spelled(self, rows: Sequence[CanonicalRow], in_cells: RowWriter) -> list[dict[str, Any]]:
        """The rows as the target spells them, with the columns that neither format reads."""
        assert self._writer.row is not None
        known, spelled = frozenset((*COLUMNS, *BESIDE, *self._writer.replaces)), []
        for row in rows:
            written = self._writer.row(row)
            passed = {n: v for n, v in row.items() if n not in known and v is not None and written.get(n) != v}
            spelled += [in_cells({**written, **{self._name_of(name): value for name, value in passed.items()}})]
        return spelled

    def _inspect(self, rows: Sequence[CanonicalRow], written: Sequence[dict[str, Any]], texts: Sequence[str]) -> None:
        """Note what the platform executes or drops of the rows, and what a file turns into text."""
        is_own = self._run.plan.format == self._target  # its platform makes of it what it made of the source
        executes, columns = ({}, None) if is_own else (self._writer.executes, self._kept)
        request_columns = {self._names.get(name, name): name for name in self._request_columns}
        for row, cells in zip(rows, written, strict=True):
            for name in executes if executes and self._writer.executes_at in str(cells) else ():
                for path, text in texts_in(cells.get(name), name):
                    if executes[name].search(text):
                        message = f"{self._target} executes or replaces {describe(text)}"
                        self.losses.add(conversion.EXECUTED, row, name, message, path)
            for name in cells:
                if name in request_columns and cells[name]:
                    message = f"{self._target} has no place for {describe(cells[name])} that the agent is given"
                    self.losses.add(conversion.NO_PLACE, row, request_columns[name], message)
                elif columns is not None and name not in columns and not is_default(name, cells[name]):
                    message = f"`{visible(name)}` is dropped when {self._release} loads the file"
                    self.losses.add(conversion.NOT_LOADED, row, name, message)
            for name in texts:
                if (value := cells.get(name)) is not None and not isinstance(value, str):
                    message = f"{describe(value)} would be read back as text from a file of this kind: write .jsonl"
                    self.losses.add(conversion.CHANGED, row, name, message)

    def schema(self, names: Sequence[str] | None = None) -> pa.Schema:
        """The columns of a file of the target: its own, numbers as numbers, then those that are passed through. Rows
        that vary are read through once for the `names` of the columns that their format has read."""
        if names is None:
            names = () if self._evaluations is not None else self._run.read_schema.names
        known, own = (*COLUMNS, *self._writer.replaces), self._writer.columns
        of_session = [SESSION_CALLS] if find_format(self._run.plan.format).calls_of == "session" else []
        passed = dict.fromkeys(self._name_of(name) for name in (*names, *of_session) if name not in known)
        return target_schema((*own, *(n for n in passed if n not in own)))

    def _name_of(self, column: str) -> str:
        """The name under which a column is passed through: its own, unless the target reads it as something else."""
        own = column.removeprefix(PREFIX)
        if column not in self._names:
            unfolds = is_unfolded((*self._own, own)) and not is_unfolded(tuple(self._own))
            is_apart = own in self._reads or column in self._of_both or unfolds
            self._names[column] = name = PREFIX + own if is_apart else own
            if is_apart:
                message = f"{self._target} reads a column of this name; it is passed through as `{visible(name)}`"
                self.losses.add(conversion.RENAMED, {}, own, message)
        return self._names[column]

    def _canonical_parts(self) -> Iterator[list[dict[str, Any]]]:
        """The valid rows in canonical form, a batch at a time; the others are reported."""
        if self._evaluations is not None:
            yield from self._rows_of_evaluations(self._evaluations)
            return
        start = 0
        theirs, ours = (find_format(name).calls_of for name in (self._run.plan.format, self._target))
        of_session = ours == "session" or (theirs == "session" and ours == "turn")
        for batch, checked in self._run.pairs():
            canonical = rows_of(checked)
            passed = {*canonical.schema.names}.difference(COLUMNS) | {"trace"}  # a trace is passed on unchanged
            positions = self._run.positions(start, checked.num_rows).tolist()
            verdicts = (verdict(checked, name).to_pylist() for name in ("valid", "derived", "presence", "issues"))
            parts = zip(to_rows(canonical), native_rows(batch), positions, *verdicts, strict=True)
            rows = []
            for row, source, position, is_valid, derived, mask, notes in parts:
                if not is_valid:
                    self.losses.add_excluded([position], "row")
                    continue
                row |= {POSITION: position, SOURCE: {n: v for n, v in source.items() if n not in passed}}
                row |= {TAKEN: taken_from_trace(derived), PRESENCE: mask}
                rows += [{**row, REPORTED: [note["code"] for note in notes] if notes else []}]
                for note in notes or ():
                    if note["code"] == NOT_FINITE.code:
                        self.losses.add(conversion.CHANGED, row, note["column"], note["message"], note["path"])
            yield self._with_own_ids([self._with_own_calls(row) for row in rows] if of_session else rows)
            start += checked.num_rows

    def _with_own_calls(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row with expected calls as the target compares them: those of a whole session are passed through a target
        that has those of one turn."""
        if find_format(self._target).calls_of == "session":
            if row.get(SESSION_CALLS) is None or row["reference_trajectory"] is not None:
                return row
            rest = {name: value for name, value in row.items() if name != SESSION_CALLS}
            return {**rest, "reference_trajectory": structured(row[SESSION_CALLS])}
        if not expects_calls_of_session(row):
            return row
        message = f"the calls are those of all turns of a session; they are passed through as `{SESSION_CALLS}`"
        self.losses.add(conversion.RENAMED, row, "reference_trajectory", message)
        return {**row, SESSION_CALLS: row["reference_trajectory"], "reference_trajectory": None}

    def _with_own_ids(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows, without an ID that an earlier row has, in a target without a column of traces: there it would no
        longer show that the ID is that of a trace, and not the row's own."""
        having = [row for row in rows if row["request_id"] is not None] if self._ids is not None else []
        if self._ids is None or not having:
            return rows
        hashes, _ = hash_texts([row["request_id"] for row in having])
        positions = np.array([row[POSITION] for row in having])
        earlier, _ = self._ids.add(hashes, positions, np.zeros(len(having), np.uint32))
        for row in (row for row, first in zip(having, earlier.tolist(), strict=True) if first >= 0):
            message = "an earlier row has the same ID, which is that of the row's trace; the row is written without it"
            self.losses.add(conversion.NO_PLACE, row, "request_id", message)
            row["request_id"] = None
        return rows

    def _rows_of_evaluations(self, evaluations: Sequence[ces_turns.CesEvaluation]) -> Iterator[list[dict[str, Any]]]:
        for evaluation, rows in zip(evaluations, ces_turns.rows_of_each(evaluations), strict=True):
            if not evaluation.valid:
                self.losses.add_excluded([evaluation.row], "evaluation")
                continue
            for path, value in unread_fields(evaluation):
                self.losses.unread(evaluation.row, path, value)
            report = check_source(open_source(rows, format="databricks", outputs="generated"))
            masks = run_of(report).builder.masks.tolist()
            codes = [note.code for note in report.iter_issues()]
            parts = zip(report.iter_rows(), masks, report.valid_mask.tolist(), strict=True)
            beside = {POSITION: evaluation.row, REPORTED: codes}
            valid_rows = [{**row, **beside, PRESENCE: mask} for row, mask, valid in parts if valid]
            self.losses.add_excluded([evaluation.row] * (report.row_count - len(valid_rows)), "turn")
            yield valid_rows


# --- What a part of a conversion adds, which is kept: an interrupted conversion continues behind the parts that were
# done.
#
# The source is read and checked again, which takes a fifth of the time: what a conversion takes is comparing each row
# with what is read back of it.
class Outcome(Struct, frozen=True, array_like=True):
    """What a part adds beside its rows: its losses, the rows by the fields that they have before and after, and the
    names under which columns are passed on, and the rows that were rejected."""

    losses: list[Issue]
    masks: list[tuple[int, int, int]]
    names: dict[str, str]
    refused: int = 0


def hash_of(rows: list[dict[str, Any]]) -> str:
    """A hash of the rows of a part, the same in every process."""
    cells = [{name: value for name, value in row.items() if name != TAKEN} for row in rows]
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(cells, enc_hook=str))
