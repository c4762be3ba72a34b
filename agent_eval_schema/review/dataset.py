"""The dataset under review: its rows, what the rules found in them, and the queues that follow.

source ──CheckedRun──▶ batches, and per row: valid, fields, question, hash ──▶ QUEUES, by what a label buys
   └────fix_source──▶ the fixes of each row
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import mapped, write_one
from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.cells.hashing import hash_texts, hashes_of, seeded_hashes
from agent_eval_schema.cells.sizes import taken
from agent_eval_schema.conversion.convert import convert_eval_set
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.fix.fix import FIXED_FORMATS, fix_source
from agent_eval_schema.fix.search import CellFix
from agent_eval_schema.formats.names import TargetFormat
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import UNKNOWN, find_format
from agent_eval_schema.formats.suggestions import naming_columns
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Issue
from agent_eval_schema.metrics.catalog import BIT, GROUND_TRUTH, Metric
from agent_eval_schema.metrics.independence import RowKeys, independent_units
from agent_eval_schema.metrics.support import metrics_of, supports
from agent_eval_schema.profile.facts import question_of, unit_keys
from agent_eval_schema.profile.profile_blocks import Assumptions
from agent_eval_schema.profile.size import half_of_rate
from agent_eval_schema.render.phrases import Call
from agent_eval_schema.review.journal import RowKey, State
from agent_eval_schema.review.labels import COLUMN_OF, EXAMPLES, LABELS, Applied, apply_states, places_of
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import columns
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.runtime.progress import progress
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.schema import CANONICAL
from agent_eval_schema.similarity.shingles import content_text, messages_of
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation.checked_batch import rows_of, verdict
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import run_of
from agent_eval_schema.validation.validate import check_source

Array = np.ndarray[Any, Any]

AUDITED = 50
"""Rows with ground truth that are drawn for a second look."""

TITLE = 160
"""Characters of a question that a list shows."""


IN_MEMORY = 64 << 20
"""Bytes of the batches that stay in memory."""


class Shelf:
    """Keeps batches for as long as something refers to them: the first in memory, the others in temporary files."""

    def __init__(self) -> None:
        self._room = IN_MEMORY
        self._folder: TemporaryFolder | None = None

    def put(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows, to be kept; in memory too where the disk has no room."""
        self._room -= batch.nbytes
        if self._room >= 0:
            return batch
        self._folder = self._folder or TemporaryFolder()
        path = self._folder.file(f"{-self._room}.arrow")
        try:
            write_one(path, batch)
            return mapped(path)
        except OSError:
            return batch
        finally:
            with suppress(OSError):  # a system that keeps the name of a mapped file cannot remove it
                os.unlink(path)


class Reviewed:
    """The rows of a source, validated once and kept: of a large source in a temporary file. `check` is called with the
    rows so far: it raises an error if they are too many."""

    def __init__(self, source: Source, check: Callable[[int], None] = lambda _: None) -> None:
        plan = make_plan(source)
        if find_format(plan.format).system == "ces":
            command = Call(source.name, source.options).command("convert", "rows.jsonl", "--to", "databricks")
            advice = command or 'convert_eval_set(data, "databricks").data'
            what = find_format(plan.format).summary
            raise EvalSetError(
                f"expected evaluation rows, got {what}; convert it, and review the rows of its turns: {advice}"
            )
        if plan.format == UNKNOWN.name:
            hint = f": name them ({naming_columns(plan.suggested)})" if plan.suggested and plan.values else ""
            raise EvalSetError(
                f"{source.name or 'data'}: expected evaluation rows, got columns of no known format{hint}"
            )
        self.format, self.original = plan.format, source
        writer = find_format(plan.format).writer
        self.is_document = writer is not None and writer.document is not None
        self.is_canonical = writer is None
        self.is_normalized = writer is None or self.is_document  # a row has no cells of its own there
        self.issues_of_format: dict[int, list[Issue]] = {}
        """Of normalized rows what the rules of their own format found: they judge a row until it has a label."""
        if self.is_normalized:
            report = check_source(source.read_as(format=plan.format, outputs=plan.outputs_option))
            self.issues_of_format = by_key((i.row, i) for i in report.iter_issues() if i.row is not None)
            source = _canonical(source, run_of(report)).read_as(format="databricks", outputs=plan.outputs_option)
            plan = make_plan(source)
        self.source, self.plan = source, plan
        self.run = CheckedRun(source, replace(plan, columns=True))
        self.batches: list[pa.RecordBatch] = []
        self.starts: list[int] = []
        self.titles: list[str] = []
        self.ids: list[str | None] = []
        self.hashes: list[str] = []
        self.searched: list[pa.Array] = []
        """By batch, the cells of each row as the text that is searched."""
        questions: list[Array] = []
        joining: list[list[Array]] = []
        truths: list[Array] = []
        askings: list[Array] = []
        self._shelf = Shelf()
        with progress(source.read_share) as so_far:
            for batch, checked in self.run.pairs():
                check(len(self.titles) + batch.num_rows)
                self.starts.append(len(self.titles))
                rows = rows_of(checked)
                cells = native_rows(batch)
                # a file that is written in another way, or read of another kind, has the same rows
                texts: list[str | None] = [jsontext.encode_sorted(row).decode() for row in cells]
                named = zip(_last_questions(rows), question_of(rows), texts, strict=True)
                self.titles += [(last or question or text or "")[:TITLE] for last, question, text in named]
                self.ids += verdict(checked, "id").to_pylist()
                hashes, _ = hash_texts(texts)
                self.hashes += [f"{h:016x}" for h in hashes.tolist()]
                searched = [" ".join(map(as_text, row.values())).casefold() for row in cells]
                self.batches.append(self._shelf.put(batch))
                self.searched.append(
                    self._shelf.put(pa.record_batch({"text": pa.array(searched, pa.large_string())}))[0]
                )
                requests = rows.column("request").to_pylist()
                questions.append(hashes_of([None if text is None else str(text) for text in requests]))
                joining.append(unit_keys(rows))
                truths.append(_filled(verdict(checked, "truth_hash")))
                askings.append(_filled(verdict(checked, "request_hash")))
                so_far.add(batch.num_rows)
        builder = self.run.builder
        builder.finish()
        self.valid, self.usable, self.masks = builder.valid.copy(), builder.usable.copy(), builder.masks.copy()
        self._reject(self.issues_of_format)
        self.questions = np.concatenate(questions) if questions else np.zeros(0, np.uint64)
        sessions, documents = np.concatenate([np.zeros((2, 0), np.uint64), *joining], axis=1)
        self._units = independent_units(RowKeys(sessions, self.questions, documents)).codes
        self._truths = np.concatenate(truths) if truths else np.zeros(0, np.uint64)
        self._askings = np.concatenate(askings) if askings else np.zeros(0, np.uint64)
        self.fixes, self.fixable = self._find_fixes()

    def issues_at(self, row: int) -> bool:
        """Whether a row is invalid as it is in the source."""
        return not self.run.builder.valid[row] or self.is_rejected(row)

    def is_rejected(self, row: int) -> bool:
        """Whether its own format rejects a normalized row as long as it has no label."""
        return any(issue.severity is Severity.ERROR for issue in self.issues_of_format.get(row, ()))

    def _reject(self, rows: Iterable[int]) -> None:
        for row in filter(self.is_rejected, rows):
            self.valid[row] = self.usable[row] = False

    def __len__(self) -> int:
        return len(self.titles)

    def _find_fixes(self) -> tuple[dict[int, list[CellFix]], Array]:
        """The fixes of each row, and the rows that are valid with all of theirs. Columns are not renamed here: that
        concerns all rows at once, and `validate --fix` does it."""
        codes = self.plan.codes - {columns.MISSPELLED_COLUMN.code}
        by_row: dict[int, list[CellFix]] = {}
        valid = self.valid.copy()
        if self.plan.format not in FIXED_FORMATS:
            return by_row, valid
        fixed = fix_source(replace(self.source, batches=lambda: iter(self.batches), shares=None), codes=codes)
        start = 0
        with progress(lambda rows: rows / len(self)) as so_far:
            for batch, fixes in fixed.batches():
                for fix in fixes:
                    by_row.setdefault(fix.row, []).append(fix)
                if rows := sorted({fix.row for fix in fixes}):
                    changed = taken(batch, [row - start for row in rows])
                    valid[rows] = np.asarray(verdict(check_batch(changed, self.plan), "valid")).astype(bool)
                start += batch.num_rows
                so_far.add(batch.num_rows)
        return by_row, valid

    # rows

    def key(self, row: int) -> RowKey:
        return RowKey(id=self.ids[row], hash=self.hashes[row], n=row)

    def batch_of(self, row: int) -> pa.RecordBatch:
        """The row alone."""
        batch = bisect_right(self.starts, row) - 1
        return self.batches[batch].slice(row - self.starts[batch], 1)

    def applied(self, row: int, state: State) -> Applied:
        """The row with what was decided about it."""
        return apply_states(self.batch_of(row), {0: state}, {0: self.fixes.get(row, [])}, self.plan)

    def applied_batches(self, states: Mapping[int, State]) -> Iterator[Applied]:
        """All batches with what was decided about their rows."""
        rows, first = sorted(states), 0
        for start, batch in zip(self.starts, self.batches, strict=True):
            last = bisect_left(rows, start + batch.num_rows)
            own = {row - start: states[row] for row in rows[first:last]}
            fixes, first = {at: self.fixes.get(start + at, []) for at in own}, last
            yield apply_states(batch, own, fixes, self.plan) if own else Applied(batch, {}, {})

    def unheld(self, applied: Applied, state: State) -> list[str]:
        """The labels of a row that the format cannot hold."""
        if not self.is_document or state.keys().isdisjoint(LABELS):
            return applied.unheld.get(0, [])
        batch, form = pa.Table.from_batches([applied.batch]), cast(TargetFormat, self.format)
        losses = convert_eval_set(batch, form, on_invalid="keep").losses
        return [label for label in LABELS if label in state and COLUMN_OF[label] in set(losses["column"])]

    @cached_property
    def places(self) -> dict[str, list[str]]:
        """Where the rows have each label: a column, and the keys below it."""
        return places_of(find_format(self.plan.format))

    @cached_property
    def unheld_labels(self) -> list[str]:
        """The labels that no row can have, as the format has no place for them."""
        usable = np.flatnonzero(self.usable)
        if self.is_canonical or not len(usable):
            return []
        row = int(usable[0])
        return [n for n, value in EXAMPLES.items() if n in self.unheld(self.applied(row, {n: value}), {n: value})]

    def recount(self, states: Mapping[int, State]) -> None:
        """Take in what the rows hold with these states; an ID that an earlier row has stays an error."""
        for start, batch in zip(self.starts, self.batches, strict=True):
            rows = [row for row in sorted(states) if start <= row < start + batch.num_rows]
            if not rows:
                continue
            own = {i: states[row] for i, row in enumerate(rows)}
            fixes = {i: self.fixes.get(row, []) for i, row in enumerate(rows)}
            applied = apply_states(taken(batch, [row - start for row in rows]), own, fixes, self.plan)
            checked = check_batch(applied.batch, self.plan)
            repeated = np.isin(rows, self.run.builder.compared_rows) & ~self.run.builder.usable[rows]
            for mask, name in ((self.valid, "valid"), (self.usable, "usable")):
                mask[rows] = np.asarray(verdict(checked, name)).astype(bool) & ~repeated
            self.masks[rows] = np.asarray(verdict(checked, "presence"))
            self._reject(row for row in rows if states[row].keys().isdisjoint(LABELS))

    # what a label buys

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the platform of the format."""
        return metrics_of(find_format(self.format).system)

    def supported(self, masks: Array, usable: Array) -> Array:
        """How many metrics each row supports."""
        counts = np.zeros(len(masks), np.int64)
        for metric in self.metrics:
            counts += supports(metric, masks, usable, self.plan.outputs)
        return counts

    @cached_property
    def gains(self) -> Array:
        """How many more metrics each row would support with ground truth: facts, and what fits the rest of the row."""
        more = BIT["expected_facts"] | BIT["one_truth"] | BIT["guidelines"] | BIT["response_rubrics"]
        masks = np.where(self.masks & BIT["expected_response"], self.masks, self.masks | more)
        masks = np.where(masks & BIT["retrieved_uri"], masks | BIT["expected_uri"], masks)
        calls = BIT["predicted_trajectory"] | BIT["tool_span"]
        masks = np.where(masks & calls, masks | BIT["reference_trajectory"], masks)
        return self.supported(masks, self.usable) - self.supported(self.masks, self.usable)

    @cached_property
    def ranks(self) -> Array:
        """How little a label of each row narrows the interval: the rows with ground truth and those before it that are
        in its independent unit, and after those whose question is new the ones that repeat it."""
        later = np.lexsort((np.arange(len(self)), self.run.builder.masks & GROUND_TRUTH == 0))
        of_unit, of_question = (_place_in_group(keys, later) for keys in (self._units, self.questions))
        ranks: Array = of_unit + len(self) * (of_question > 0)
        return ranks

    def coverage(self) -> list[dict[str, Any]]:
        """Per metric the rows that support it and, of a rate, half of the interval: that of `profile` for rows whose
        questions differ, with its assumptions."""
        entries, known = [], dict[bytes, float]()  # many metrics need the same
        for metric in self.metrics:
            mask = supports(metric, self.masks, self.usable, self.plan.outputs)
            key = mask.tobytes()
            if key not in known:
                rows = np.flatnonzero(mask)
                _, first = np.unique(self.questions[rows], return_index=True)
                _, sizes = np.unique(self._units[rows[first]], return_counts=True)
                known[key] = half_of_rate(0.5, sizes, Assumptions().cluster_correlation) if len(rows) else 0.5
            entries.append({"metric": metric.name, "rows": int(mask.sum()), "half": round(100 * known[key], 1)})
        return entries

    # rows that ask the same

    @cached_property
    def conflicts(self) -> list[list[int]]:
        """The groups of rows that ask the same and expect different answers (AE902)."""
        return [rows for rows in _groups(self._askings) if len(np.unique(self._truths[rows])) > 1]

    @cached_property
    def duplicates(self) -> list[list[int]]:
        """The groups of rows that ask the same."""
        return _groups(self.questions)

    @cached_property
    def group_of(self) -> dict[int, list[int]]:
        """The rows beside which a row is shown."""
        return {row: group for groups in (self.duplicates, self.conflicts) for group in groups for row in group}


def _last_questions(rows: pa.RecordBatch) -> Iterator[str]:
    """What the user asked last in each row: which distinguishes the turns of a conversation."""
    for chat in messages_of(rows.column("request").to_pylist()):
        yield next((content_text(m.content) for m in reversed(chat) if m.role == "user"), "")


def _place_in_group(keys: Array, order: Array) -> Array:
    """How many rows with the same key come before each row, in that order."""
    counts = np.zeros(len(keys), np.int64)
    sorted_ = order[np.argsort(keys[order], kind="stable")]
    starts = np.flatnonzero(np.append(True, np.diff(keys[sorted_]) != 0)[: len(keys)])
    counts[sorted_] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    return counts


def _groups(hashes: Array) -> list[list[int]]:
    """The rows of each hash that several rows have, 0 apart."""
    order = np.argsort(hashes, kind="stable")
    cuts = np.flatnonzero(np.diff(hashes[order])) + 1
    return sorted(part.tolist() for part in np.split(order, cuts) if len(part) > 1 and hashes[part[0]])


def as_text(value: Any) -> str:
    """The value of a cell as a page shows it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else jsontext.encode(value).decode()


def _filled(hashes: pa.Array) -> Array:
    return np.asarray(hashes.fill_null(0)).copy()


def _canonical(source: Source, run: CheckedRun) -> Source:
    """The normalized rows of a source, whose format has no place for labels."""
    parts = list(run.normalized())
    schema = pa.unify_schemas([p.schema for p in parts], promote_options="permissive") if parts else pa.schema([])
    table = pa.concat_tables([pa.Table.from_batches([p]) for p in parts], promote_options="permissive")
    return replace(open_source(table.cast(schema).replace_schema_metadata(CANONICAL)), name=source.name)


# --- queues: which rows come up, and in which order
class Queue(Struct, frozen=True):
    """A queue: its name, its title, and the rows that are in it, in their order."""

    name: str
    title: str
    rows: Callable[[Reviewed, Mapping[int, State]], Iterable[int]]


def _by_gain(reviewed: Reviewed, rows: Array) -> list[int]:
    """The rows whose label enables the most metrics first; of those, the ones that narrow the interval most."""
    order = np.lexsort((rows, reviewed.ranks[rows], -reviewed.gains[rows]))
    return [int(row) for row in rows[order]]


def _without_truth(reviewed: Reviewed, _: Mapping[int, State]) -> list[int]:
    return _by_gain(reviewed, np.flatnonzero(((reviewed.run.builder.masks & GROUND_TRUTH) == 0) & reviewed.fixable))


def _drawn(reviewed: Reviewed, rows: Array, count: int, seed: int) -> list[int]:
    """A sample that is the same for everybody: the rows with the smallest hashes."""
    keys = seeded_hashes([reviewed.hashes[row] for row in rows.tolist()], seed)
    return sorted(int(row) for row in rows[np.argsort(keys, kind="stable")[:count]])


def _audited(reviewed: Reviewed, _: Mapping[int, State]) -> list[int]:
    return _drawn(reviewed, np.flatnonzero(reviewed.run.builder.masks & GROUND_TRUTH), AUDITED, 1)


def _flagged(_: Reviewed, states: Mapping[int, State]) -> list[int]:
    return sorted(row for row, state in states.items() if state.get("status") == "flagged")


def overlap(reviewed: Reviewed, count: int) -> list[int]:
    """The rows that every reviewer gets, by which their agreement is measured."""
    lacks = np.flatnonzero((reviewed.run.builder.masks & GROUND_TRUTH) == 0)
    rows = lacks if len(lacks) else np.arange(len(reviewed))
    return _by_gain(reviewed, np.array(_drawn(reviewed, rows, count, 2), np.int64))


QUEUES = (
    Queue("truth", "No ground truth", _without_truth),
    Queue("errors", "Errors for a person", lambda reviewed, _: np.flatnonzero(~reviewed.fixable).tolist()),
    Queue("fixes", "Fixes to accept", lambda reviewed, _: sorted(reviewed.fixes)),
    Queue("conflicts", "Conflicts", lambda reviewed, _: [row for rows in reviewed.conflicts for row in rows[:1]]),
    Queue("duplicates", "Duplicates", lambda reviewed, _: [row for rows in reviewed.duplicates for row in rows[:1]]),
    Queue("audit", "Sampled for audit", _audited),
    Queue("flagged", "Needs another person", _flagged),
    Queue("all", "All rows", lambda reviewed, _: range(len(reviewed))),
)
"""The queues that the rules make, in the order of the page."""

QUEUE_NAMES = ("rows", *(queue.name for queue in QUEUES[:-1]), "changed", "overlap", "together", QUEUES[-1].name)
