"""The report builder: checked batches, in the order of the rows → the contents of a report.

It keeps counts, a few examples and a few bytes per row (validation result, presence mask, hashes), never cells. The
rules that compare rows (rules/dataset.py) run here, on hashes.
"""

import json
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from agent_eval_schema.cells.hashing import FirstSeen, hash_texts
from agent_eval_schema.formats.adk_criteria import criteria_beside
from agent_eval_schema.formats.column_names import OBJECTS
from agent_eval_schema.formats.detection import SHOWN
from agent_eval_schema.formats.inference_tables import payload_table
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.formats.suggestions import hint_for_column, hint_for_unread, is_guess, truths_at
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Finding, Issue, issue_of
from agent_eval_schema.metrics.catalog import BIT
from agent_eval_schema.metrics.support import missing_needs, need_words, supports
from agent_eval_schema.render.figures import FIGURES, Distribution, Occurrences, codes_together
from agent_eval_schema.render.phrases import Call
from agent_eval_schema.render.report.summary import FrequentAnswer
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import RULES, adk, columns, dataset
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import truncate
from agent_eval_schema.text.jsontext import column_of
from agent_eval_schema.text.privacy import quoted, quoting
from agent_eval_schema.validation.checked_batch import demands_one_kind, mixed_kinds, verdict
from agent_eval_schema.validation.doc_uris import EXACT, NEAR, rewrite
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.rows import misspelled_columns

# --- the answers that several rows have: counted by their hashes, 8 bytes per row; their texts are read again
ANSWERS_SHOWN = 5
"""Answers that are shown, at most."""

FEWEST_ROWS = 5
"""Rows with an answer from which on a frequent one means something."""

ROWS_READ = 100_000
"""Rows that are read again for the texts, at most; an answer that comes later for the first time is not shown."""

LONGEST_ANSWER = 200
"""Characters of an answer that are shown."""


def frequent_answers(parts: Sequence[np.ndarray[Any, Any]], rows: Iterable[dict[str, Any]]) -> list[FrequentAnswer]:
    """The answers that more than one row has, the most frequent first. `parts` are the hashes of all answers in the
    order of the rows, 0 where there is none; `rows` are the normalized rows, read no further than necessary."""
    hashes = np.concatenate([np.zeros(0, np.uint64), *parts])
    total = int(np.count_nonzero(hashes))
    answers, firsts, counts = np.unique(hashes, return_index=True, return_counts=True)
    is_shown = (answers != 0) & (counts > 1) & (firsts < ROWS_READ) & (total >= FEWEST_ROWS)
    order = np.lexsort((firsts, -counts))
    chosen = order[is_shown[order]][:ANSWERS_SHOWN]
    frequencies = dict(zip(firsts[chosen].tolist(), counts[chosen].tolist(), strict=True))
    read = enumerate(islice(rows, max(frequencies, default=-1) + 1))
    texts = {row: truncate(cells["response"] or "", LONGEST_ANSWER) for row, cells in read if row in frequencies}
    return [FrequentAnswer(texts[row], count, total) for row, count in frequencies.items() if row in texts]


# --- the report
EXAMPLES = 20
"""Examples of a code that a report shows; counts are always exact."""

ISSUES_KEPT = 100_000
"""Issues that the report on a file holds in memory; a longer list is read from the file again on access."""

COPIED_ROWS = 3
"""From this many rows with ground truth and response on, "most are identical" means something."""

_ANSWERS = ("expected_response", "expected_facts")
"""The two forms of the ground truth of an answer; a row has one of them."""

_BIT_OF = {"expected_retrieved_context": "expected_uri", "custom_expected": "expected_output"}
"""By column of ground truth, its field in the masks where that has another name."""

_OF_A_BUILD = frozenset({"request_time", "status_code", "served_entity", "source"})
"""Columns of a dataset that was built from an inference table; those of a document are `dataset_<key>`."""


def comparison(rule: Rule, first: int, id: str | None = None) -> Finding:
    """The finding of a rule that compares a row with an earlier one, the `first`; the ID is quoted if it may be."""
    if rule is dataset.CONFLICTING_TRUTH:
        return Finding(rule, f"row {first} has the same request and a different ground truth", "expected_response")
    shown = "its id" if id is None else f"'{id[:60]}'"
    return Finding(rule, f"{shown} is already the ID of row {first}", "request_id")


def placed(finding: Finding, origins: Mapping[str, str]) -> Finding:
    """A finding of one of our columns at its place in the user's table."""
    path = origins.get(finding.column or "", finding.column) or ""
    return replace(finding, column=path if path == finding.column else path.partition(".")[0], path=path)


_ON_OUR_COLUMNS = (
    *(dataset.REPEATED_REQUEST_ID, dataset.REPEATED_TRACE_ID, dataset.CONFLICTING_TRUTH, dataset.DOC_URI_NEAR_MISS),
    *(dataset.COPIED_TRUTH, columns.IGNORED_COLUMN),
)
"""The rules that name a column as we do; the others have its name from the user's table."""


class ReportBuilder:
    """Checked batches, added in the order of the rows → the contents of a report.

    `compared_rows` and `compared_codes` list every finding of a rule that compares rows (its row, its code),
    `conflicts` the pairs of rows with the same request and another ground truth, `overall` the issues of the dataset as
    a whole. They are complete, however few issues are kept (`keep`; None: all, of a file ISSUES_KEPT);
    `compared_issues` are those that are kept of rules that compare rows, and of the dataset. Rules that are `satisfied`
    are not looked at again.
    """

    def __init__(self, source: Source, plan: Plan, keep: int | None = None, satisfied: Collection[str] = ()) -> None:
        self.source, self._plan, self._format = source, plan, find_format(plan.format)
        self.codes, self.values = plan.codes.difference(satisfied), plan.values
        self.keep = keep if keep is not None else (ISSUES_KEPT if source.name or source.remote else 1 << 62)
        self.row_count = 0
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[Issue]] = {}
        self.occurrences: dict[str, Occurrences] = {}
        self.misspelled: Counter[str] = Counter()
        self._kept: list[tuple[int, pa.ListArray, pa.Array]] = []
        self.compared_issues: list[Issue] = []
        self.compared_rows = array("q")
        self.compared_codes: list[str] = []
        self.conflicts: list[tuple[int, int]] = []
        self.overall: list[Issue] = []
        self._room = self.keep
        self.columns: dict[str, None] = {}
        self.derived: Counter[str] = Counter()
        self._valid, self._usable = [np.zeros(0, bool)], [np.zeros(0, bool)]
        self._masks = [np.zeros(0, np.uint64)]
        self._ids, self._own_ids = FirstSeen(), FirstSeen()
        self._truths = FirstSeen()
        self._near: Counter[int] = Counter()
        self._near_pair: list[str] | None = None
        self._copied: Counter[bool] = Counter()
        self.distributions = {name: Distribution() for name in FIGURES}
        self.answers: list[np.ndarray[Any, Any]] = []
        self.together: Counter[tuple[str, str]] = Counter()
        self._rows_of_batch: dict[str, list[np.ndarray[Any, Any]]] = {}
        self._finished = False

    def add(self, checked: pa.RecordBatch) -> list[int]:
        """Take in the next rows. Returns the places in the batch that are invalid for an ID of an earlier row."""
        start, size = self.row_count, checked.num_rows
        ids = verdict(checked, "id")
        self.columns.update(dict.fromkeys(json.loads(checked.schema.metadata[b"columns"])))
        self.misspelled.update(json.loads(checked.schema.metadata[b"misspelled"]))
        self._add_issues(verdict(checked, "issues"), ids if self.values else pa.nulls(size, pa.string()), start)
        valid = np.asarray(verdict(checked, "valid")).astype(bool)
        usable = np.asarray(verdict(checked, "usable")).astype(bool)
        repeated = [row - start for row in self._repeated_ids(ids, verdict(checked, "id_of_trace"), start)]
        usable[repeated] = False
        if dataset.REPEATED_REQUEST_ID.code not in self.codes:
            repeated = []
        valid[repeated] = False
        self._conflicting_truths(checked, ids, start)
        self._valid.append(valid)
        self._usable.append(usable)
        # a copy: a view would keep the whole batch in memory
        self._masks.append(np.asarray(verdict(checked, "presence")).copy())
        for column, counter in (("nearness", self._near), ("copied", self._copied)):
            for entry in verdict(checked, column).drop_null().value_counts().to_pylist():
                counter[entry["values"]] += entry["counts"]
        if self._near_pair is None:
            self._near_pair = next(iter(verdict(checked, "near_pair").drop_null().to_pylist()), None)
        for name, distribution in self.distributions.items():
            distribution.add(np.asarray(verdict(checked, name).drop_null()))
        self.answers.append(np.asarray(verdict(checked, "answer_hash").fill_null(0)).copy())
        masks = np.asarray(verdict(checked, "derived"))
        for bit, name in enumerate(COLUMNS) if masks.any() else ():
            count = int(np.count_nonzero(masks & (1 << bit)))
            if count:
                self.derived[name] += count
        if len(self._rows_of_batch) > 1:
            rows = {code: np.concatenate(parts) - start for code, parts in self._rows_of_batch.items()}
            self.together.update(codes_together(rows, size))
        self._rows_of_batch.clear()
        self.row_count += size
        return repeated

    def _add_issues(self, lists: pa.ListArray, ids: pa.Array, start: int) -> None:
        notes = lists.flatten()
        if not len(notes):
            return
        self.counts.update({e["values"]: e["counts"] for e in notes.field("code").value_counts().to_pylist()})
        codes = notes.field("code").dictionary_encode()
        parents = start + np.repeat(np.arange(len(lists)), np.asarray(pc.list_value_length(lists)))
        firsts: list[int] = []
        for number, code in enumerate(codes.dictionary.to_pylist()):
            places = np.flatnonzero(np.asarray(codes.indices) == number)
            rows = np.unique(parents[places])
            self.occurrences.setdefault(code, Occurrences()).add_rows(rows)
            self._rows_of_batch.setdefault(code, []).append(rows)
            firsts += places[: max(EXAMPLES - len(self.examples.get(code, ())), 0)].tolist()
        for kind, count in _kinds(notes):
            hint = kind["hint"] or RULES[kind["code"]].hint
            self.occurrences[kind["code"]].add_kind(kind["path"], kind["message"], hint, count)
        if self._room > 0:
            every = pa.array(np.arange(len(ids)))
            self._kept.append((start, lists.take(every), ids.take(every)))  # copies, as of the masks
            self._room -= len(notes)
        for issue in _issues_in(start, lists, ids, sorted(firsts)) if firsts else ():
            self._add_example(self._with_file(issue))

    def _add_example(self, issue: Issue) -> None:
        examples = self.examples.setdefault(issue.code, [])
        if len(examples) < EXAMPLES:
            examples.append(issue)

    def _log(self, finding: Finding, row: int | None = None, request_id: str | None = None, rows: int = 0) -> None:
        """Log an issue of a row, or of the data as a whole; then it may concern a number of rows."""
        adapted = self._format.adapted(finding)
        if adapted is not None and adapted.rule.code in self.codes:
            finding, rule = adapted, adapted.rule
            if rule in _ON_OUR_COLUMNS:
                finding = placed(finding, self._plan.origins)
            elif finding.path is None:
                finding = replace(finding, path=finding.column)
            issue = self._with_file(finding.issue(row, request_id if self.values else None))
            self.counts[rule.code] += 1
            self._add_example(issue)
            occurrences = self.occurrences.setdefault(rule.code, Occurrences())
            occurrences.add_kind(issue.path, issue.message, issue.hint)
            occurrences.rows += rows
            if row is None:
                self.overall.append(issue)
            else:
                occurrences.add_rows(np.array([row]))
                self._rows_of_batch.setdefault(rule.code, []).append(np.array([row]))
                self.compared_rows.append(row)
                self.compared_codes.append(rule.code)
            if self._room > 0:
                self.compared_issues.append(issue)
                self._room -= 1

    def all_examples(self) -> list[Issue]:
        return [issue for issues in self.examples.values() for issue in issues]

    def take_issues(self) -> list[Issue]:
        """The issues that are kept, in the order of the rows, those of the dataset last."""
        issues = [self._with_file(issue) for part in self._kept for issue in _issues_in(*part)]
        return sorted([*issues, *self.compared_issues], key=by_row)

    def issues_of(self, rows: Collection[int]) -> list[Issue]:
        """The issues of these rows that are kept, those of rules that compare rows last."""
        issues = []
        for start, lists, ids in self._kept:
            at = sorted(row - start for row in rows if start <= row < start + len(lists))
            for issue in _issues_in(0, lists.take(pa.array(at, pa.int64())), ids.take(pa.array(at, pa.int64()))):
                assert issue.row is not None
                issues.append(self._with_file(replace(issue, row=start + at[issue.row])))
        return [*issues, *(issue for issue in self.compared_issues if issue.row in rows)]

    def forget_issues(self) -> None:
        """Drop the issues that are kept; counts and examples stay."""
        self._kept.clear()
        self.compared_issues.clear()

    @property
    def holds_all_issues(self) -> bool:
        return self._room > 0 or sum(self.counts.values()) == 0

    def _with_file(self, issue: Issue) -> Issue:
        """The issue with the name of the file of its row."""
        if issue.row is None:
            return issue
        if self.source.file_of is not None:
            file = self.source.file_of(issue.row) or ""
        else:
            files = self.source.files if self.values else ()  # these names may contain the value of a cell
            file = files[issue.row] if issue.row < len(files) else ""
        if not file or issue.message.startswith(f"{file}: "):
            return issue
        return replace(issue, message=f"{file}: {issue.message}")

    def _place(self, column: str) -> str:
        """The place of one of our columns in the user's table."""
        return self._plan.origins.get(column, column)

    # rules that compare rows

    def _repeated_ids(self, ids: pa.Array, of_traces: pa.Array, start: int) -> list[int]:
        """Log the IDs that an earlier row has; the rows that are invalid for it. The ID of a trace is not necessarily
        meant as the row's own, so only an ID that two rows have of their own is an error."""
        compared = self.codes | self._plan.unselected
        if compared.isdisjoint(dataset.REPEATED) or ids.null_count == len(ids):
            return []
        present = np.flatnonzero(np.asarray(ids.is_valid()))
        texts = np.asarray(ids.to_pylist(), dtype=object)[present]
        (hashes, _), rows = hash_texts(texts.tolist()), present + start
        derived = np.asarray(of_traces)[present].astype(np.uint32)
        firsts, first_derived = self._ids.add(hashes, rows, derived)
        errors = (firsts >= 0) & (derived == 0) & (first_derived == 0)
        # after the id of a trace, the first own one, which comes later, is looked up among the own IDs
        again = np.flatnonzero((firsts >= 0) & (derived == 0) & (first_derived == 1))
        earlier, _ = self._own_ids.add(hashes[again], rows[again], derived[again])
        errors[again], firsts[again] = earlier > firsts[again], np.maximum(firsts[again], earlier)
        for at in np.flatnonzero(firsts >= 0).tolist():
            text, rule = str(texts[at]), dataset.REPEATED_REQUEST_ID if errors[at] else dataset.REPEATED_TRACE_ID
            self._log(comparison(rule, int(firsts[at]), text if self.values else None), int(rows[at]), text)
        return rows[errors].tolist() if dataset.REPEATED_REQUEST_ID.code in compared else []

    def _conflicting_truths(self, checked: pa.RecordBatch, ids: pa.Array, start: int) -> None:
        requests, truths = verdict(checked, "request_hash"), verdict(checked, "truth_hash")
        both = np.flatnonzero(np.asarray(requests.is_valid()) & np.asarray(truths.is_valid()))
        if dataset.CONFLICTING_TRUTH.code not in self.codes or not len(both):
            return
        own = (np.asarray(truths.take(both)) >> np.uint64(32)).astype(np.uint32)
        firsts, first_truths = self._truths.add(np.asarray(requests.take(both)), both + start, own)
        for at in np.flatnonzero((firsts >= 0) & (first_truths != own)).tolist():
            row = int(both[at]) + start
            self._log(comparison(dataset.CONFLICTING_TRUTH, int(firsts[at])), row, ids[int(both[at])].as_py())
            self.conflicts.append((int(firsts[at]), row))

    # known only at the end

    def finish(self) -> None:
        """Log the issues of the dataset as a whole. Idempotent."""
        if self._finished:
            return
        self._finished = True
        if self.row_count == 0:
            self._log(Finding(columns.NO_ROWS, "expected at least one row, got none"))
        for remark in self.source.remarks:
            self._log(remark)
        for name in self.source.repeated_columns:
            message = f"expected one column `{name}`, got several; the first is read"
            self._log(Finding(columns.DUPLICATE_COLUMN, message, name))
        for wrong, right in self.source.renamed:
            self._log(Finding(columns.REPAIRED_COLUMN, f"renamed from `{wrong}`", right))
        plan, logged = self._plan, self._inspect_payloads()
        known = {*COLUMNS, *logged, *_OF_A_BUILD}
        names = [n for n in self.columns if n not in known and not n.startswith("dataset_")]
        objects = OBJECTS.get(self._format.name, ())
        names += [n for n in (*plan.suggested, *plan.unread) if n not in self.columns and column_of(n) in objects]
        misspelled = misspelled_columns(tuple(self.columns))
        # rows that lack the content of the misspelled column are reported themselves, with the same hint
        absorbed = {"request"} if self.counts["AE201"] else set[str]()
        absorbed |= {"response", "trace"} if self.counts["AE223"] else set()
        for name in names:
            if name not in misspelled:
                self._inspect_unknown(name)
            elif misspelled[name] not in absorbed:
                hint = f"Did you mean `{misspelled[name]}`? Rename the column."
                message = f"unknown column `{name}` is ignored"
                self._log(Finding(columns.MISSPELLED_COLUMN, message, name, hint=hint), rows=self.misspelled[name])
        if plan.outputs == "generated":
            fields = {"response": "response", "retrieved_context": "retrieved_uri", "trace": "trace"}
            for name, field in fields.items():
                if self._seen & BIT[field] and name not in self._format.inputs:
                    message = f"`{self._place(name)}` has values, but outputs will be generated"
                    self._log(Finding(columns.IGNORED_COLUMN, message, name))
        near = self._near[NEAR]
        if near and not self._near[EXACT] and self._near_pair:
            expected, retrieved = self._near_pair
            with quoting(self.values):
                pair = f"expected {quoted(expected)}, retrieved {quoted(retrieved)}"
                hint = rewrite(expected, retrieved)
            rows = f"{near:,} of {self._near.total():,} rows"
            message = f"no expected doc_uri equals a retrieved one, but in {rows} one is a close match: {pair}"
            self._log(Finding(dataset.DOC_URI_NEAR_MISS, message, "expected_retrieved_context", hint=hint))
        if self._format.system == "adk" and not plan.complete:
            self._inspect_criteria()
        field = self._format.one_kind[0]
        if demands_one_kind(self._format, plan.outputs) and (message := mixed_kinds(self._format, self.usable_masks)):
            has = (self.masks & np.uint64(BIT[field])) != 0
            fewer = has if has[self.usable].mean() < 0.5 else ~has
            rows = _rows(np.flatnonzero(fewer & self.usable))
            self._log(Finding(dataset.MIXED_KINDS, f"{message}: the fewer in {rows}"))
        same, both = self._copied[True], self._copied[True] + self._copied[False]
        if both >= COPIED_ROWS and same * 2 > both:
            truth, answer = self._place("expected_response"), self._place("response")
            message = f"{truth} is identical to {answer} in {same:,} of {both:,} rows"
            self._log(Finding(dataset.COPIED_TRUTH, message, "expected_response"))

    def _inspect_unknown(self, name: str) -> None:
        """Report a column that nothing reads, or a key of MLflow's inputs that looks like ground truth."""
        plan, has_truth = self._plan, self._has(*_ANSWERS)
        message, hint = f"`{name}` is passed through unchanged", hint_for_column(name, plan.suggested, plan.then)
        what = "" if has_truth or hint else plan.unread.get(name, "")
        if what:
            message, hint = f"`{name}` is not used: {what}", hint_for_unread(name, what)
        truths = truths_at(name, plan.suggested)
        is_lacking = any(not (has_truth if truth in _ANSWERS else self._has(truth)) for truth in truths)
        is_truth = is_lacking or (what != "" and not is_guess(what))
        rule = columns.UNREAD_TRUTH if is_truth else columns.UNKNOWN_COLUMN
        is_key = name not in self.columns
        if is_truth or not is_key:
            self._log(Finding(rule, message, column_of(name) if is_key else name, name if is_key else None, hint))

    def _has(self, *names: str) -> bool:
        """Whether a row has a value in one of these columns of ground truth."""
        return bool(self._seen & sum(BIT[_BIT_OF.get(name, name)] for name in names))

    @cached_property
    def _seen(self) -> int:
        return int(np.bitwise_or.reduce(self.masks, initial=0))

    def _inspect_payloads(self) -> frozenset[str]:
        """Report that a table is an inference table; returns its columns, which are not reported again."""
        found = payload_table(tuple(self.columns))
        if found is None or columns.PAYLOAD_TABLE.code not in self.codes:
            return frozenset()
        family, reason = found
        message = f"expected an evaluation dataset, got {family.summary}: {reason}"
        call = Call(self.source.name, self.source.options)
        command = call.command("from-inference-table", "rows.jsonl") or call.function("eval_set_from_inference_table")
        self._log(Finding(columns.PAYLOAD_TABLE, message, hint=f"Build an evaluation dataset from it: `{command}`."))
        return family.names

    def _inspect_criteria(self) -> None:
        """Report the criteria of google-adk beside the evalset that it cannot apply, and the turns that lack a need."""
        with quoting(self.values):
            criteria = criteria_beside(self.source.path)
        for finding in criteria.findings:
            self._log(finding)
        outputs = self._plan.outputs
        for name, metric in criteria.metrics.items():
            lacking = np.flatnonzero(self.usable & ~supports(metric, self.masks, self.usable, outputs))
            if not len(lacking):
                continue
            masks = np.unique(self.masks[lacking]).tolist()
            needs = dict.fromkeys(n for mask in masks for n in missing_needs(metric, mask, outputs))
            words = " and ".join(map(need_words, needs))
            message = f"expected {words} in each turn for `{name}`; missing in {_rows(lacking)}"
            count = "" if len(lacking) <= SHOWN else f" ({len(lacking):,} of {self.row_count:,})"
            self._log(Finding(adk.UNSUPPORTED_CRITERION, f"{message}{count}", f"criteria.{name}"))

    @cached_property
    def valid(self) -> np.ndarray[Any, Any]:
        return np.concatenate(self._valid)

    @cached_property
    def usable(self) -> np.ndarray[Any, Any]:
        """The rows that can support a metric: valid by all rules that are not ignored, selected or not."""
        return np.concatenate(self._usable)

    @property
    def masks(self) -> np.ndarray[Any, Any]:
        return np.concatenate(self._masks)

    @cached_property
    def usable_masks(self) -> dict[int, int]:
        """How many usable rows have each presence mask."""
        masks, counts = np.unique(self.masks[self.usable], return_counts=True)
        return dict(zip(masks.tolist(), counts.tolist(), strict=True))


def _rows(numbers: np.ndarray[Any, Any]) -> str:
    """The first of some rows, for a message."""
    rows = ", ".join(map(str, numbers[:SHOWN])) + (", …" if len(numbers) > SHOWN else "")
    return f"{'row' if len(numbers) == 1 else 'rows'} {rows}"


def _issues_in(start: int, lists: pa.ListArray, ids: pa.Array, at: Sequence[int] | None = None) -> Iterator[Issue]:
    """The issues in the lists of notes; of the places `at` only."""
    notes, parents = lists.flatten(), np.repeat(np.arange(len(lists)), np.asarray(pc.list_value_length(lists)))
    if at is not None:
        notes, parents = notes.take(pa.array(at, pa.int64())), parents[at]
    id_texts = ids.take(pa.array(parents)).to_pylist()
    for parent, id, note in zip(parents.tolist(), id_texts, notes.to_pylist(), strict=True):
        where = (start + parent, id, note["column"], note["path"])
        yield issue_of(RULES[note["code"]], *where, note["message"], note["hint"])


def by_row(issue: Issue) -> float:
    return float("inf") if issue.row is None else issue.row


def _kinds(notes: pa.StructArray) -> Iterator[tuple[dict[str, str], int]]:
    """The different notes in order with their counts. (Arrow's `group_by` needs a part that is slow to load.)"""
    key = np.zeros(len(notes), np.int64)
    for name in ("code", "path", "message", "hint"):
        texts = notes.field(name).dictionary_encode(null_encoding="encode")
        key = key * len(texts.dictionary) + np.asarray(texts.indices)
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    for at in np.argsort(first).tolist():
        yield notes[int(first[at])].as_py(), int(counts[at])
