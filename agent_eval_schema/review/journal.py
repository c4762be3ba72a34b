"""The journal of a review: one line for each change, appended and synced before the page shows that it is saved.

    change ──lock, read again, append, sync──▶ FILE.maria.review.jsonl ──fold──▶ {row: {path: value}}

The state is the fold of the lines. No line is ever changed: a step is undone by a line that undoes it, after a restart
too. A line that was torn when a process was killed is ignored, and the next one begins on a line of its own.
"""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Annotated, Any, Literal, Optional, TypeAlias
from urllib.parse import quote, unquote

import msgspec
from msgspec import Meta, Struct, field

from agent_eval_schema.errors import EvalSetError, reading_file
from agent_eval_schema.io.atomic import append_synced
from agent_eval_schema.io.locks import locked
from agent_eval_schema.io.places import JOURNALS
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.text.guarded import decoded_or_none
from agent_eval_schema.text.visible import visible

State: TypeAlias = dict[str, Any]
"""What was decided about a row: a value for each path."""


class ToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """An expected tool call."""

    tool_name: str
    tool_input: dict[str, Any] = {}


class Labels(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The labels that a row had before it got those of another one that asks the same."""

    expected_facts: list[str] = []
    expected_response: str = ""
    guidelines: list[str] = []
    documents: dict[str, bool] = {}
    reference_trajectory: list[ToolCall] = []


class RowKey(Struct, frozen=True, kw_only=True):
    """The row that a change is about: known by its place, its cells and its ID together, as exact copies are rows of
    their own. In a file that has changed it is found by its cells and ID, or else by its ID."""

    id: Annotated[str | None, Meta(description="The request_id of the row.")] = None
    hash: Annotated[str, Meta(description="The hash of the cells of the row, as they are in the source.")]
    n: Annotated[int, Meta(description="The number of the row in the source, from 0.", ge=0)]


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of one row: `path` had the value `old`, and has the value `new`; null means none."""

    v: Annotated[Literal[1], Meta(description="The version of the journal.")]
    seq: Annotated[int, Meta(description="The number of the change in its journal, from 1.", ge=1)]
    at: Annotated[str, Meta(description="The time in UTC.")]
    by: Annotated[str, Meta(description="The reviewer.")]
    row: RowKey
    op: Annotated[Literal["set", "undo"], Meta(description="Whether a value was set, or an earlier change was undone.")]
    path: Annotated[
        str,
        Meta(
            description="What was set: a label (expected_facts, expected_response, guidelines, documents, "
            "reference_trajectory, tags, note), the rating of the answer and its reason (rating, reason), a decision "
            "(status, dropped, choice, fix:COLUMN), the labels before a choice (before), what is typed and not yet "
            "entered (draft:FIELD) or, of several reviewers, what they decided together (decided).",
        ),
    ]
    old: Any = None
    new: Any = None
    first: Annotated[
        int | None, Meta(description="Of several changes that were made at once, the number of the first.")
    ] = None
    undoes: Annotated[int | None, Meta(description="The number of the change that was undone.")] = None
    step: Annotated[
        str | None, Meta(description="The ID that the page gave the step: one that is sent again is made once.")
    ] = None
    cells: Annotated[
        dict[str, str] | None,
        Meta(
            description="With the first change of a row, its cells as they were: should they change, the page shows "
            "what. Of a long cell it is the start and a hash."
        ),
    ] = None


class Change(Struct, frozen=True):
    """A change to be made: what has the value `old` gets the value `new`. The first one of a row has its `cells`."""

    row: RowKey
    path: str
    old: Any = None
    new: Any = None
    cells: dict[str, str] | None = None


WAIT = 10
"""Seconds that a change waits for another process of the same reviewer: each needs milliseconds."""


class Stale(Exception):
    """A change of a value that is no longer what its author saw."""


class Journal(Struct, dict=True):
    """The journal of one reviewer, in a file or (without a path) in memory."""

    by: str
    path: str | None = None
    events: list[Event] = field(default_factory=list)
    _size: int = 0
    _unread: int = 0
    _cut: bytes = b""  # the last line, as long as it is not whole
    _ended: bool = True
    _states: dict[RowKey, State] = field(default_factory=dict)
    _steps: set[str] = field(default_factory=set)
    _last: int = 0  # the greatest number of a change
    cells: dict[RowKey, dict[str, str]] = field(default_factory=dict)
    """The cells of rows when they were changed first."""

    def __post_init__(self) -> None:
        self.catch_up()

    @property
    def unread(self) -> int:
        """The number of lines that cannot be read."""
        return self._unread + bool(self._cut.strip())

    def catch_up(self) -> None:
        """Read what another process of the same reviewer has appended: whole lines; another one may just be written."""
        if self.path is None or not os.path.exists(self.path):
            return
        with reading_file(self.path), open(self.path, "rb") as file:
            if os.fstat(file.fileno()).st_size < self._size:
                raise EvalSetError(f"{self.path}: was cut or replaced: open the review again")
            file.seek(self._size)
            text = file.read()
        if not text:
            return
        *lines, cut = text.split(b"\n")
        self._ended = not cut
        if read_event(cut) is not None:  # only the end of the line is missing
            lines, cut = [*lines, cut], b""
        for line in lines:
            event = read_event(line)
            if event is not None:
                self._take(event)
            else:
                self._unread += bool(line.strip())
        self._cut = cut
        self._size += len(text) - len(cut)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Change the journal as the only process, knowing all of it. A line that was torn when a process was killed
        gets an end, so that the next one is a line of its own."""
        if self.path is None:
            yield
            return
        with locked(self.path, "not saved", "try again", wait=WAIT):
            self.catch_up()
            if not self._ended:
                append_synced(self.path, b"\n")
                self.catch_up()
            yield

    def append(self, changes: Sequence[Change], step: str | None = None) -> list[Event]:
        """Append changes and sync them to the disk; those of a step that the journal has are not made again. Raises
        Stale, and changes nothing, if one of the values is no longer the old one; raises EvalSetError if the disk does
        not take them."""
        with self._alone():
            if step in self._steps:
                return []
            now = {change.row: dict(self._states.get(change.row, {})) for change in changes}
            for change in changes:
                state = now[change.row]
                if state.get(change.path) not in (change.old, change.new):
                    raise Stale(change.path)
                state[change.path] = change.new
            return self._write([(change, None) for change in changes], step)

    def undo(self) -> list[Event]:
        """Undo the last step that was not undone; returns its undoing, which is empty if there is no step. What was
        typed and not entered is no step, and stays."""
        with self._alone():
            undone = {event.undoes for event in self.events}
            events = [
                event
                for event in self.events
                if event.op == "set" and event.seq not in undone and not event.path.startswith(DRAFT)
            ]
            if not events:
                return []
            last = events[-1].first or events[-1].seq
            step = [event for event in events if (event.first or event.seq) == last]
            return self._write([(Change(e.row, e.path, e.new, e.old), e.seq) for e in reversed(step)])

    def _write(self, changes: Sequence[tuple[Change, int | None]], step: str | None = None) -> list[Event]:
        """Append changes, each with the number of the change that it undoes, if it is the undoing of one."""
        seq = self._last + 1
        at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        first = seq if len(changes) > 1 else None
        events = [
            Event(
                v=1, seq=seq + i, at=at, by=self.by, row=c.row, op="set" if undoes is None else "undo", path=c.path,
                old=c.old, new=c.new, first=first, undoes=undoes, step=step,
                cells=c.cells if c.row not in self.cells else None,
            )
            for i, (c, undoes) in enumerate(changes)
        ]  # fmt: skip
        if self.path is not None and events:
            self._size += append_synced(self.path, b"".join(msgspec.json.encode(event) + b"\n" for event in events))
        for event in events:
            self._take(event)
        return events

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self._last = max(self._last, event.seq)
        if event.step is not None:
            self._steps.add(event.step)
        if event.cells is not None:
            self.cells.setdefault(event.row, event.cells)
        state = self._states.setdefault(event.row, {})
        if event.new is None:
            state.pop(event.path, None)
        else:
            state[event.path] = event.new

    def states(self) -> dict[RowKey, State]:
        """The state of each row: the fold of the changes."""
        return {key: dict(state) for key, state in self._states.items()}

    def state_of(self, key: RowKey) -> State | None:
        """The state of one row; None if the journal does not have it."""
        state = self._states.get(key)
        return None if state is None else dict(state)


VALUES: dict[str, Any] = {
    "expected_facts": list[str],
    "expected_response": str,
    "guidelines": list[str],
    "documents": dict[str, bool],
    "reference_trajectory": list[ToolCall],
    "tags": dict[str, str],
    "note": str,
    "status": Literal["submitted", "skipped", "flagged"],
    "dropped": bool,
    "choice": str,
    "decided": bool,
    "rating": Literal["right", "partly", "wrong"],
    "reason": str,
    "before": Labels,
}
"""What can be set of a row, and the type of its value; beside it the decision about each fix."""

FIX = "fix:"
"""The start of the path of a decision about a fix, before the name of its column."""

DRAFT = "draft:"
"""The start of the path of what is typed into a field and not yet entered, before the name of the field."""


MOST_LEVELS = MAX_DEPTH - 16
"""The levels of brackets of a value, at most: those of the cell and of the row that it is written into are above."""


def require_value(path: str, value: Any) -> None:
    """Raise EvalSetError if a path is none that can be set, or the value is none of it."""
    kind = Literal["accept", "reject"] if path.startswith(FIX) else str if path.startswith(DRAFT) else VALUES.get(path)
    if kind is None:
        known = ", ".join((*VALUES, f"{DRAFT}FIELD"))
        raise EvalSetError(f"path: expected {known} or {FIX}COLUMN, got {visible(path)[:80]!r}")
    if is_too_deep(msgspec.json.encode(value), MOST_LEVELS):
        raise EvalSetError(f"{path}: expected at most {MOST_LEVELS} levels of brackets")
    try:
        msgspec.convert(value, Optional[kind])  # noqa: UP045 (a type that is only known here)
    except msgspec.ValidationError as error:
        raise EvalSetError(f"{path}: {error}") from None


def read_event(line: bytes) -> Event | None:
    """The change in a line; None if it is no whole one, or no change that can be made."""
    event = decoded_or_none(line, Event)
    with suppress(EvalSetError):
        if event is not None:
            require_value(event.path, event.new)
            return event
    return None


# --- the files of the reviewers
def journal_path(data: str, reviewer: str) -> str:
    """The journal of a reviewer of a file, beside it: `support.jsonl.maria.review.jsonl`."""
    return f"{data}.{in_file_name(reviewer)}{JOURNALS}"


def in_file_name(reviewer: str) -> str:
    """A name as a part of a file name: letters of any script, blanks and apostrophes stay, what a file system or a
    command line reads otherwise is percent-encoded."""
    name = unicodedata.normalize("NFC", reviewer)
    if not name.strip() or name != name.strip() or visible(name) != name or len(name) > MOST_NAME:
        raise EvalSetError(
            f"--reviewer: expected a name of 1 to {MOST_NAME} characters, without blanks around it and without line "
            f"ends, got {visible(reviewer)[: MOST_NAME + 16]!r}"
        )
    return re.sub(r"[^\w.@+' -]", lambda match: quote(match[0], safe=""), name)


MOST_NAME = 64
"""Characters of the name of a reviewer, at most."""


def read_journal(path: str) -> Journal:
    """The journal in a file, with the name of its reviewer: that in its lines, as a file may have been renamed."""
    journal = Journal("", path)
    names = list(dict.fromkeys(event.by for event in journal.events))
    if len(names) > 1:
        raise EvalSetError(
            f"{path}: expected the journal of one reviewer, got lines of {', '.join(map(visible, names))}: split it"
        )
    journal.by = names[0] if names else unquote(os.path.basename(path).removesuffix(JOURNALS).rpartition(".")[2])
    return journal


def own_journal(data: str, reviewer: str) -> Journal:
    """The journal of a reviewer of a file. Raises EvalSetError if the file of that name is of another one, as where
    capitals are the same."""
    path = journal_path(data, reviewer)
    journal = Journal(reviewer, path)
    if other := next((event.by for event in journal.events if event.by != reviewer), None):
        raise EvalSetError(f"{path}: expected the journal of {visible(reviewer)}, got that of {visible(other)}")
    return journal


def other_journals(data: str, reviewer: str, known: Container[str | None] = ()) -> Iterator[Journal]:
    """The journals of the other reviewers of a file that are not known yet."""
    own = os.path.abspath(journal_path(data, reviewer))
    for path in sorted(glob.glob(f"{glob.escape(data)}.*{JOURNALS}")):
        if os.path.abspath(path) != own and path not in known:
            yield read_journal(path)


def journal_schema() -> dict[str, Any]:
    """The JSON Schema of a line of a journal."""
    schema = msgspec.json.schema(Event)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A line of a review journal", **schema}
