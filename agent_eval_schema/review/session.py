"""A review session: a dataset, the journal of a reviewer and those of the others, as plain values for a page.

Whoever asks (the server, a bundle, a test) gets the same answers; `up_to_date` keeps two requests apart.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.decoding import chat
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.fix.search import CellFix
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.issues import Issue
from agent_eval_schema.metrics.catalog import BIT, MADE_BY_THE_APP
from agent_eval_schema.render.report.summary import Excerpt
from agent_eval_schema.review.agreement import (
    TEXTS,
    Agreement,
    Subject,
    agreement,
    agreement_text,
    merged_states,
    signed_rows,
    undecided,
)
from agent_eval_schema.review.dataset import QUEUE_NAMES, QUEUES, Reviewed, as_text, overlap
from agent_eval_schema.review.journal import DRAFT, FIX, Change, Event, Journal, RowKey, State, require_value
from agent_eval_schema.review.labels import ACCEPTED, LABELS, REJECTED, canonical_rows, fix_path, for_browser
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.dataset import COPIED_TRUTH
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.markdown import tree_of, trees_of
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.excerpts import excerpts
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.row_content import spans_of

SUBMITTED = "submitted"

MOST_TWINS = 200
"""Rows that ask the same, at most, beside which a row is shown; of more their number."""

MOST_OFFERED = 200
"""Facts of other rows that are offered."""


class Session:
    """The work of one reviewer on a dataset."""

    def __init__(
        self,
        reviewed: Reviewed,
        journal: Journal,
        others: Sequence[Journal] = (),
        *,
        find: Callable[[Container[str | None]], Iterable[Journal]] = lambda _: (),
        overlap: int = 0,
        guide: str = "",
        rows: Sequence[int] = (),
    ) -> None:
        self.reviewed, self.journal, self.others, self._overlap = reviewed, journal, list(others), overlap
        self.guide, self._find, self._rows = guide, find, list(dict.fromkeys(rows))
        for row in self._rows:
            self._require(row, "rows: ")
        self._lock, self._seen = threading.RLock(), len(journal.events)
        self.gone: list[RowKey] = []
        self._places: dict[RowKey, int] = {}
        """The rows of keys of an earlier state of the file."""
        self._earlier: dict[int, list[RowKey]] = {}
        """The same by row."""
        self._answered: dict[int, frozenset[tuple[str, str]]] = {}
        """Of each row with a state the queues whose question is answered, and where it is answered with nothing."""
        self._counts: Counter[tuple[str, str]] = Counter()
        self._changed: set[int] = set()
        self._find_rows((journal, *others))
        self._kinds = Counter(kind_of(fix) for fixes in reviewed.fixes.values() for fix in fixes)
        self.reviewed.recount(self.states)
        self._queues: dict[str, list[int]] = {}
        self.refresh()

    @contextmanager
    def up_to_date(self) -> Iterator[None]:
        """Answer one request at a time, with what another process of the reviewer has changed since the last one."""
        with self._lock:
            self.journal.catch_up()
            self._taken()
            yield

    def _find_rows(self, journals: Iterable[Journal]) -> None:
        """The rows that are in journals and are no longer in the source where they were: found by their cells and IDs,
        of copies in their order, or else by their IDs."""
        reviewed = self.reviewed
        keys_of = [sorted(journal.states(), key=lambda key: key.n) for journal in journals]
        moved = {key for keys in keys_of for key in keys if self.row_of(key) is None}
        pairs, names = {(key.id, key.hash) for key in moved}, {key.id for key in moved}
        rows: dict[tuple[str | None, str], list[int]] = {}
        ids: dict[str | None, list[int]] = {}
        for row, pair in enumerate(zip(reviewed.ids, reviewed.hashes, strict=True) if moved else ()):
            if pair in pairs:
                rows.setdefault(pair, []).append(row)
            if pair[0] is not None and pair[0] in names:
                ids.setdefault(pair[0], []).append(row)
        by_id = {name: numbers[0] for name, numbers in ids.items() if len(numbers) == 1}
        for keys in keys_of:
            taken = {found for key in keys if (found := self.row_of(key)) is not None}
            for key in keys:
                if self.row_of(key) is not None:
                    continue
                copies = [row for row in rows.get((key.id, key.hash), ()) if row not in taken]
                if key.n < len(reviewed) and reviewed.hashes[key.n] == key.hash:  # a page with redacted IDs
                    self._places[key] = key.n
                elif copies:
                    self._places[key] = copies[0]
                    taken.add(copies[0])
                elif key.id in by_id and (key.id, key.hash) not in rows:
                    self._places[key] = by_id[key.id]
                    self._changed.add(by_id[key.id])
                else:
                    self.gone.append(key)
        for key, row in self._places.items():
            if key not in self._earlier.setdefault(row, []):
                self._earlier[row].append(key)
        own = {row for row in self._changed if self.journal.state_of(reviewed.key(row)) is not None}
        self._changed -= {row for row in own if self.state(row).get("status") == SUBMITTED}  # since then

    def row_of(self, key: RowKey) -> int | None:
        """The row that a change is about; None if it is not in the source."""
        if key.n < len(self.reviewed) and self.reviewed.key(key.n) == key:
            return key.n
        return self._places.get(key)

    def _at(self, states: Mapping[RowKey, State]) -> dict[int, State]:
        """States by rows. What was decided about a row before it changed counts until it is decided anew, but the row
        has to be submitted again."""
        by_row: dict[int, State] = {}
        for key, state in states.items():
            row = self.row_of(key)
            if row is not None and (key == self.reviewed.key(row) or self.reviewed.key(row) not in states):
                is_same = key.hash == self.reviewed.hashes[row]
                by_row[row] = state if is_same else {path: v for path, v in state.items() if path != "status"}
        return by_row

    @property
    def states(self) -> dict[int, State]:
        """What this reviewer decided, by row."""
        return self._at(self.journal.states())

    @cached_property
    def name(self) -> str:
        """The name by which a browser keeps what it could not send: a hash of the path of the journal."""
        place = self.journal.path and os.path.realpath(self.journal.path)
        return hashlib.sha256((place or secrets.token_hex()).encode()).hexdigest()[:16]

    def state(self, row: int, journal: Journal | None = None) -> State:
        """What one reviewer decided about a row: this one, or that of a journal. The work is the same whatever else is
        labeled."""
        journal = self.journal if journal is None else journal
        own = self.reviewed.key(row)
        keys = [own, *self._earlier.get(row, ())]
        states = {key: state for key in keys if (state := journal.state_of(key)) is not None}
        if own not in states and len(states) > 1:  # the last one counts
            states = journal.states()
        return self._at(states).get(row, {})

    def _all_others(self) -> list[Journal]:
        """The journals of the other reviewers as they are now, also of one who has begun since."""
        for journal in self.others:
            journal.catch_up()
        if begun := list(self._find({journal.path for journal in self.others})):
            self.others += begun
            self._find_rows(begun)
        return self.others

    def of_others(self) -> dict[str, dict[int, State]]:
        """What the other reviewers decided, by their names and by row."""
        return {journal.by: self._at(journal.states()) for journal in self._all_others()}

    def together(self) -> dict[int, State]:
        """What all reviewers decided: where they differ, what was decided together."""
        everybody = {self.journal.by: self.states, **self.of_others()}
        return self.states if len(everybody) == 1 else merged_states(everybody)

    def reviewers(self) -> dict[int, list[str]]:
        """Who gave each row what is in `together`; not those who only flagged or skipped it."""
        everybody = {self.journal.by: self.states, **self.of_others()}
        if len(everybody) > 1:
            return signed_rows(everybody)
        done = (r for r, s in self.states.items() if s.get("status") == SUBMITTED or not s.keys().isdisjoint(LABELS))
        return {row: [self.journal.by] for row in done}

    def removed(self) -> dict[int, dict[str, set[str]]]:
        """The labels and ratings that reviewers gave and have taken away, by row and reviewer."""
        by_row: dict[int, dict[str, set[str]]] = {}
        for journal in (self.journal, *self.others):
            now = self._at(journal.states())
            for event in journal.events:
                row = self.row_of(event.row)
                if row is not None and event.path in (*LABELS, "rating") and event.path not in now.get(row, {}):
                    by_row.setdefault(row, {}).setdefault(journal.by, set()).add(event.path)
        return by_row

    # --- queues

    def refresh(self) -> None:
        """Make the queues anew: until then they keep their rows and order, whatever is decided."""
        states = self.states
        queues = {queue.name: list(queue.rows(self.reviewed, states)) for queue in QUEUES}
        queues["rows"], queues["changed"] = self._rows, sorted(self._changed)
        queues["overlap"] = overlap(self.reviewed, self._overlap) if self._overlap else []
        mine = {row for row, state in states.items() if state.get("status") == SUBMITTED}
        queues["together"] = [row for row in undecided({self.journal.by: states, **self.of_others()}) if row in mine]
        self._queues = {name: queues[name] for name in QUEUE_NAMES}
        self._members = {name: frozenset(rows) for name, rows in self._queues.items()}
        self._answered, self._counts = {}, Counter()
        for row, state in states.items():
            self._count(row, state)

    def overview(self, queue: str = "") -> dict[str, Any]:
        """What a page needs once: the queues, the rows of its list, the metrics and the coverage."""
        reviewed = self.reviewed
        if queue:
            require_choice("--queue", queue, QUEUE_NAMES)
        titles = {q.name: q.title for q in QUEUES} | {
            "rows": "Rows that were named", "changed": "Changed since your label",
            "overlap": "Labeled by everybody", "together": "Decide together",
        }  # fmt: skip
        shown = [n for n in QUEUE_NAMES if self._queues[n] or n in ("truth", "all", queue)]
        first = queue or next((name for name in shown if self._queues[name]), "all")
        return {
            "file": reviewed.source.name or "data",
            "journal": self.name,
            "format": reviewed.format,
            "reviewer": self.journal.by,
            "outputs": reviewed.plan.outputs,
            "queue": first,
            "queues": [{"name": n, "title": titles[n], "rows": self._queues[n]} for n in shown],
            "titles": reviewed.titles,
            "ids": reviewed.ids,
            "states": {row: state["status"] for row, state in self.states.items() if state.get("status")},
            "touched": sorted(self.states),
            "metrics": [
                {"name": m.name, "needs": [[n] if isinstance(n, str) else list(n) for n in m.needs]}
                for m in reviewed.metrics
            ],
            "made": sorted(MADE_BY_THE_APP) if reviewed.plan.outputs == "generated" else [],
            "coverage": reviewed.coverage(),
            "guidelines": self._offered("guidelines", 12),
            "unheld": reviewed.unheld_labels,
            "facts": self._offered("expected_facts", MOST_OFFERED),
            "guide": tree_of(self.guide) or ([["p", [self.guide]]] if self.guide else []),
            "progress": self.progress(),
            "reviewers": [self.journal.by, *(journal.by for journal in self.others)],
            "notes": self._notes(),
            "agreement": [{"text": agreement_text(part), **structs.asdict(part)} for part in self.agreement()],
        }

    def agreement(self) -> list[Agreement]:
        """How far the reviewers agree."""
        everybody = self.of_others()
        return agreement({self.journal.by: self.states, **everybody} if self.states else everybody, self._subject)

    def _subject(self, row: int) -> Subject:
        canonical = canonical_rows(self.reviewed.batch_of(row), self.reviewed.plan)[0]
        documents = dict.fromkeys(d["doc_uri"] for d in canonical["retrieved_context"] or ())
        documents.pop(None, None)  # what has no URI cannot be expected
        fixes = [fix_path(fix) for fix in self.reviewed.fixes.get(row, ())]
        return Subject(self._truth(canonical), [*documents], fixes, row in self.reviewed.group_of)

    def _notes(self) -> list[str]:
        """What a reviewer has to know when a review begins."""
        notes = []
        if self.reviewed.is_canonical:
            form = self.reviewed.format
            notes.append(f"The format {form} has no place for labels: the reviewed file has the canonical columns.")
        if self.gone:
            notes.append(f"{len(self.gone):,} rows of the journals are not in this file: their labels stay there.")
        unread = {journal.by: journal.unread for journal in (self.journal, *self.others) if journal.unread}
        notes += [f"{n:,} lines of the journal of {by} cannot be read and are ignored." for by, n in unread.items()]
        return notes

    def _offered(self, label: str, most: int) -> list[str]:
        """The guidelines or the facts that most rows have, of the file and of the reviewer, to be offered."""
        own = Counter(text for state in self.states.values() for text in state.get(label, ()))
        return [text for text, _ in (self._used[label] + own).most_common(most)]

    @cached_property
    def _used(self) -> dict[str, Counter[str]]:
        """How many rows of the file have each guideline and fact: of at most 2,000 rows of each batch."""
        guidelines, facts = Counter[str](), Counter[str]()
        for batch, start in zip(self.reviewed.batches, self.reviewed.starts, strict=True):
            has = self.reviewed.run.builder.masks[start : start + batch.num_rows]
            if (has & (BIT["guidelines"] | BIT["expected_facts"])).any():
                rows = canonical_rows(batch.slice(0, 2_000), self.reviewed.plan)
                guidelines.update(t for row in rows for own in (row["guidelines"] or {}).values() for t in own)
                facts.update(t for row in rows for t in row["expected_facts"] or ())
        return {"guidelines": guidelines, "expected_facts": facts}

    # --- one row

    def detail(self, row: int, *, with_markdown: bool = False) -> dict[str, Any]:
        """Everything that a page shows of a row; `with_markdown` has its texts as trees of elements, too."""
        self._require(row)
        reviewed = self.reviewed
        batch = reviewed.batch_of(row)
        canonical = canonical_rows(batch, reviewed.plan)[0]
        state = self.state(row)
        group = [other for other in reviewed.group_of.get(row, ()) if other != row]
        turns, documents = turns_of((canonical["request"] or {}).get("messages", [])), canonical["retrieved_context"]
        truth, live = self._truth(canonical), self.check(row, state)
        wrong = self._wrong(native_rows(batch)[0], truth, live["issues"]) if reviewed.issues_at(row) else {}
        detail = {
            "n": row,
            "id": reviewed.ids[row],
            "key": structs.asdict(reviewed.key(row)),
            "base": _fields(int(reviewed.run.builder.masks[row])) if reviewed.run.builder.usable[row] else [],
            "line": reviewed.run.lines_of([row]).get(row),
            "turns": turns,
            "source": None if canonical["request"] else [[n, as_text(v)] for n, v in native_rows(batch)[0].items()],
            "answer": canonical["response"],
            "error": canonical["error"],
            "documents": [{"uri": d["doc_uri"], "content": d["content"]} for d in documents or ()],
            "calls": canonical["predicted_trajectory"] or [],
            "steps": [structs.astuple(span) for span in spans_of(canonical["trace"] or "")],
            "truth": truth,
            "wrong": wrong,
            "state": state,
            "fixes": [self._shown_fix(fix, state) for fix in reviewed.fixes.get(row, ())],
            "group": [self._twin(other) for other in group[:MOST_TWINS]],
            "group_rest": max(0, len(group) - MOST_TWINS),
            "conflicting": any(row in rows for rows in reviewed.conflicts),
            "changed": self._changes(row, batch) if row in self._changed else None,
            "others": self.others_of(row),
            **live,
        }
        detail["trees"] = trees_of(texts_of(detail)) if with_markdown else []
        return {name: for_browser(value) for name, value in detail.items()}

    def _require(self, row: int, option: str = "") -> None:
        if not 0 <= row < len(self.reviewed):
            raise EvalSetError(f"{option}row {row}: expected a row from 0 to {len(self.reviewed) - 1}")

    @staticmethod
    def _truth(canonical: Mapping[str, Any]) -> dict[str, Any]:
        """The labels that the source has, as a page edits them."""
        groups = canonical["guidelines"] or {}
        return {
            "expected_facts": canonical["expected_facts"] or [],
            "expected_response": canonical["expected_response"] or "",
            "guidelines": [text for own in groups.values() for text in own],
            "documents": {d["doc_uri"]: True for d in canonical["expected_retrieved_context"] or ()},
            "reference_trajectory": canonical["reference_trajectory"] or [],
            "tags": canonical["tags"] or {},
        }

    def _wrong(self, cells: State, truth: State, issues: Sequence[State]) -> dict[str, str]:
        """The values of labels that cannot be read, as a person corrects them; the strings in a list are labels."""
        places = self.reviewed.places
        wrong = {i["path"] for i in issues if i["severity"] == Severity.ERROR}
        texts: dict[str, str] = {}
        for label, path in places.items():
            at = re.compile(re.escape(".".join(path)) + r"(?![^.\[])")
            if truth[label] or list(places.values()).count(path) > 1 or not any(map(at.match, wrong)):
                continue
            value: Any = cells
            for key in path:
                value = jsontext.structured(value.get(key)) if isinstance(value, dict) else None
            if label in TEXTS and isinstance(value, list):
                truth[label] = [entry for entry in value if isinstance(entry, str) and entry.strip()]
                rest = [entry for entry in value if entry not in truth[label]]
                value = rest[0] if len(rest) == 1 else rest
            is_text = label in TEXTS or (label == "expected_response" and ".".join(path) in wrong)
            if value not in (None, "", [], {}) and (is_text or not isinstance(value, list | dict)):
                texts[label] = as_text(value)
        return texts

    def _changes(self, row: int, batch: pa.RecordBatch) -> list[dict[str, str | None]]:
        """The cells of a row that differ from those of its label, before and after."""
        now = _kept(batch)
        known = (journal.cells.get(key) for journal in (self.journal, *self.others) for key in journal.states()
                 if self._places.get(key) == row)  # fmt: skip
        before = next((cells for cells in known if cells), now)
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if not self.reviewed.plan.values:
            return [{"field": name, "old": None, "new": None} for name in names]
        return [{"field": name, "old": before.get(name), "new": now.get(name)} for name in names]

    def _twin(self, row: int) -> dict[str, Any]:
        canonical = canonical_rows(self.reviewed.batch_of(row), self.reviewed.plan)[0]
        state = self.state(row)
        key = structs.asdict(self.reviewed.key(row))
        return {"n": row, "id": self.reviewed.ids[row], "key": key, "truth": self._truth(canonical), "state": state}

    def _shown_fix(self, fix: CellFix, state: State) -> dict[str, Any]:
        parts = [
            {"path": p.path, "before": jsontext.write_exactly(p.before), "after": jsontext.write_exactly(p.after)}
            for p in fix.parts[:20]
        ]
        path, kind = fix_path(fix), kind_of(fix)
        same = self._kinds[kind]
        return {"path": path, "what": fix.what, "kind": kind, "same": same, "parts": parts, "choice": state.get(path)}

    def others_of(self, row: int) -> list[dict[str, Any]]:
        """What the others decided about a row; before the reviewer has submitted it, nothing."""
        if self.state(row).get("status") != SUBMITTED:
            return []
        return [
            {"by": journal.by, "state": {k: v for k, v in state.items() if not k.startswith(DRAFT)}}
            for journal in self._all_others()
            if (state := self.state(row, journal)).get("status") == SUBMITTED
        ]

    def check(self, row: int, state: State) -> dict[str, Any]:
        """What the rules say of a row with these labels, and which fields it has for metrics."""
        self._require(row)
        reviewed = self.reviewed
        applied = reviewed.applied(row, state)
        checked = check_batch(applied.batch, reviewed.plan)
        notes = verdict(checked, "issues").to_pylist()[0] or []
        is_unlabeled = state.keys().isdisjoint(LABELS)
        if is_unlabeled and reviewed.is_normalized:
            notes = list(map(structs.asdict, reviewed.issues_of_format.get(row, ())))
        elif is_unlabeled:  # the rules that compare rows know the source only
            notes += [structs.asdict(i) for i in reviewed.run.builder.compared_issues if i.row == row]
        # the rules of a document name its own cells, which the row has no more
        cells = {} if is_unlabeled and reviewed.is_normalized else self._excerpts(notes, applied.batch)
        issues = [self._issue(note, cells.get((note.get("column"), note["path"]))) for note in notes]
        issues += [self._issue(note, None) for note in self._copied(applied.batch, state)]
        return {
            "issues": sorted(issues, key=lambda i: ("error", "warning", "info").index(i["severity"])),
            "fields": _fields(int(verdict(checked, "presence")[0].as_py())),
            "usable": bool(verdict(checked, "usable")[0].as_py()) and not (is_unlabeled and reviewed.is_rejected(row)),
            "unheld": reviewed.unheld(applied, state),
        }

    def _copied(self, batch: pa.RecordBatch, state: State) -> list[dict[str, Any]]:
        """An issue for each label that is the answer of the agent: of a dataset it is one if most rows have it."""
        labels = [("expected_response", state.get("expected_response", ""))]
        labels += [(f"expected_facts[{i}]", fact) for i, fact in enumerate(state.get("expected_facts", ()))]
        if not any(text for _, text in labels):
            return []
        answer = (canonical_rows(batch, self.reviewed.plan)[0]["response"] or "").strip()
        message = "expected a label of a person; got the answer of the agent, which would be compared with itself"
        rule = {"code": COPIED_TRUTH.code, "message": message, "hint": ""}
        return [{**rule, "path": path} for path, text in labels if answer and text.strip() == answer]

    def _excerpts(self, notes: Sequence[Mapping[str, Any]], batch: pa.RecordBatch) -> dict[Any, Excerpt]:
        """The part of the cell that each issue is about, by column and path."""
        plan = self.reviewed.plan
        places = {(note.get("column"), note["path"]) for note in notes} if plan.values else ()
        issues = [Issue(0, None, column, path, "", "", Severity.ERROR, "", "", "") for column, path in places if column]
        by_place = excerpts(issues, [batch], find_format(plan.format).read)
        return {(column, path): excerpt for (_, column, path), excerpt in by_place.items()}

    @staticmethod
    def _issue(note: Mapping[str, Any], excerpt: Excerpt | None) -> dict[str, Any]:
        rule = RULES[note["code"]]
        return {
            "code": rule.code, "name": rule.name, "severity": str(rule.severity), "path": note["path"] or "",
            "message": note["message"], "hint": note["hint"] or rule.hint, "excerpt": excerpt,
        }  # fmt: skip

    # --- changes

    def apply(self, changes: Sequence[Mapping[str, Any]], step: str | None = None) -> list[Event]:
        """Make changes, each of a row, a path, the old and the new value. They are saved when this returns."""
        edits: list[Change] = []
        known = set[RowKey]()
        for change in changes:
            row, path = self.row_in(change), change["path"]
            if path.startswith(FIX) and path not in {fix_path(fix) for fix in self.reviewed.fixes.get(row, ())}:
                raise EvalSetError(f"{path}: expected a fix of the row")
            require_value(path, change.get("new"))
            key, cells = self.reviewed.key(row), self._first_cells(row)
            if key not in known and self.journal.state_of(key) is None:  # what was decided before the row changed
                edits += [Change(key, name, None, value, cells) for name, value in self.state(row).items()]
            known.add(key)
            edits.append(Change(key, path, change.get("old"), change.get("new"), cells))
        self.journal.append(edits, step)
        return self._taken()

    def _first_cells(self, row: int) -> dict[str, str] | None:
        """The cells of a row that the journal does not have yet."""
        return None if self.reviewed.key(row) in self.journal.cells else _kept(self.reviewed.batch_of(row))

    def row_in(self, change: Mapping[str, Any]) -> int:
        """The row of a change, which a page may have made of an earlier state of the file."""
        row = change["row"] if change.get("key") is None else self.row_of(msgspec.convert(change["key"], RowKey))
        if row is None:
            raise EvalSetError(f"row {change['row']}: the file has changed, and the row is not in it any more")
        self._require(row)
        return int(row)

    def accept_kind(self, kind: str, choice: str = ACCEPTED) -> list[Event]:
        """Accept (or reject) all fixes of exactly one kind that are undecided."""
        require_choice("choice", choice, (ACCEPTED, REJECTED))
        states = self.states
        changes = [
            Change(self.reviewed.key(row), fix_path(fix), None, choice, self._first_cells(row))
            for row, fixes in sorted(self.reviewed.fixes.items())
            for fix in fixes
            if kind_of(fix) == kind and fix_path(fix) not in states.get(row, {})
        ]
        done = [
            Change(self.reviewed.key(change.row.n), "status", None, SUBMITTED)
            for change in changes
            if len(self.reviewed.fixes[change.row.n]) == 1 and not states.get(change.row.n, {}).get("status")
        ]
        self.journal.append([*changes, *done])
        return self._taken()

    def undo(self) -> list[Event]:
        """Undo the last step, of this or of an earlier session."""
        self.journal.undo()
        return self._taken()

    def _taken(self) -> list[Event]:
        """The changes since the last call, whoever made them, once the counts have them."""
        events, self._seen = self.journal.events[self._seen :], len(self.journal.events)
        states = {row: self.state(row) for event in events if (row := self.row_of(event.row)) is not None}
        if any(event.path in LABELS or event.path.startswith(FIX) for event in events):
            self.reviewed.recount(states)
        if any(event.path == "status" and event.new == SUBMITTED for event in events):
            self._changed -= states.keys()
        for row, state in states.items():
            self._count(row, state)
        return events

    def _count(self, row: int, state: State) -> None:
        """Count a row anew in the progress of its queues."""
        names = [name for name, rows in self._members.items() if row in rows]
        answered = {("done", name) for name in names if self.is_done(name, row, state)}
        if "truth" in names and state.get("status") == SUBMITTED and not _is_labeled(state):
            answered.add(("empty", "truth"))
        self._counts.subtract(self._answered.get(row, ()))
        self._counts.update(answered)
        self._answered[row] = frozenset(answered)

    def progress(self) -> dict[str, Any]:
        """How far each queue is, and the coverage now."""
        return {
            **{kind: {name: self._counts[kind, name] for name in self._queues} for kind in ("done", "empty")},
            "rows": {name: len(rows) for name, rows in self._queues.items()},
            "coverage": self.reviewed.coverage(),
            "changes": len(self.journal.events),
        }

    def is_done(self, queue: str, row: int, state: State) -> bool:
        """Whether the question of a queue is answered for a row."""
        is_submitted = state.get("status") == SUBMITTED
        if queue == "truth":
            return is_submitted and (_is_labeled(state) or bool(state.get("dropped")))
        if queue == "fixes":
            return all(fix_path(fix) in state for fix in self.reviewed.fixes.get(row, ()))
        if queue == "errors":
            return bool(state.get("dropped")) or (is_submitted and bool(self.reviewed.valid[row]))
        if queue in ("conflicts", "duplicates"):
            return "choice" in state or bool(state.get("dropped"))
        return "decided" in state if queue == "together" else is_submitted

    def search(self, text: str, limit: int = 10_000) -> list[int]:
        """The rows whose cells contain a text, in any case."""
        wanted = text.casefold().strip()
        rows: list[int] = []
        for start, texts in zip(self.reviewed.starts, self.reviewed.searched if wanted else (), strict=bool(wanted)):
            rows += (np.flatnonzero(pc.match_substring(texts, wanted)) + start).tolist()
        return rows[:limit]


def _is_labeled(state: State) -> bool:
    return not state.keys().isdisjoint(LABELS)


def _fields(mask: int) -> list[str]:
    return [name for name, bit in BIT.items() if mask & bit]


def kind_of(fix: CellFix) -> str:
    """What exactly a fix does: two of one kind make the same of the same."""
    parts = [[_NUMBERS.sub("[]", p.path), p.before, p.after] for p in fix.parts]
    return jsontext.encode([fix.what, fix.column, parts]).decode()


_NUMBERS = re.compile(r"\[\d+\]")


def texts_of(detail: Mapping[str, Any]) -> list[Any]:
    """The texts of a row that may be Markdown."""
    return [detail["answer"], *(t["text"] for t in detail["turns"]), *(d["content"] for d in detail["documents"])]


def turns_of(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a conversation, as a page shows them."""
    turns = []
    for message in messages:
        content = message.get("content")
        text = chat.join_text(content)
        calls = [{"tool_name": name, "tool_input": inputs or {}} for name, inputs in chat.read_tool_calls([message])]
        shown = text if isinstance(text, str) else as_text(content)
        turns.append({"role": message["role"], "text": shown, "calls": calls, "images": list(images_of(content))})
    return turns


def images_of(content: Any) -> Iterator[str]:
    """The images of a message that are in it; the address of another one stays text, as the page asks no network."""
    for part in content if isinstance(content, list) else ():
        image = part.get("image_url") if isinstance(part, dict) else None
        address = image.get("url") if isinstance(image, dict) else image
        if isinstance(address, str) and _IMAGE.fullmatch(address):
            yield address


_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")


KEPT = 10_000
"""Characters of a cell that a journal keeps: of a longer one the start and a hash."""


def _kept(batch: pa.RecordBatch) -> dict[str, str]:
    """The cells of the one row of a batch, as a journal keeps them."""
    texts = {name: text for name, value in native_rows(batch)[0].items() if (text := as_text(value))}
    long = {name: text for name, text in texts.items() if len(text) > KEPT}
    hashes = {name: hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16] for name, text in long.items()}
    return texts | {name: f"{text[:KEPT]}… ({len(text):,} characters, {hashes[name]})" for name, text in long.items()}
