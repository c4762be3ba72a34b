"""Check an open file: all of it as `validate` does, or only the lines of JSON Lines that are new.

text ──copy──▶ open_source ──▶ CheckedRun ──▶ Found: a state per row, issues of rules that compare rows
                                                 │
text of the next key ──new lines──▶ check_batch ─┘   the other lines keep their states
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.opening import copied_source, open_source
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.jsonl import cell_batches
from agent_eval_schema.io.places import TEST_CONFIG, kind_of
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Issue
from agent_eval_schema.lsp.rows import BOM, Rows, is_blank, json_node, place_of, place_of_byte, rows_of, span
from agent_eval_schema.lsp.text import Place, Text
from agent_eval_schema.render.report.advice import asks_for_nothing
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES, all_rules, dataset, reading
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan, make_plan
from agent_eval_schema.validation.settings import Found as FoundSettings
from agent_eval_schema.validation.settings import find_settings

MOST_TYPED = 32 << 20
"""Characters of a file that is checked while someone types; a larger one is checked when it is saved."""

MOST_MARKS = 500
"""Issues that are shown of a file, at most: errors before others."""

MOST_OF_ROW = 100
"""Issues that are shown of a row, at most."""


class Mark(NamedTuple):
    """An issue at its place in the file; `first` is the row that it is compared with."""

    code: str
    message: str
    hint: str
    path: str | None
    start: Place
    end: Place
    first: int | None = None

    @property
    def severity(self) -> Severity:
        return RULES[self.code].severity if self.code in all_rules() else Severity.ERROR

    @property
    def is_note(self) -> bool:
        """Whether nothing is to be done about it."""
        return self.code in all_rules() and asks_for_nothing(self.code, self.hint)

    def moved(self, lines: int) -> Mark:
        return self._replace(start=self.start.below(lines), end=self.end.below(lines))


class State:
    """What is known of a row: its issues, what it holds for metrics, and whether it can be used. The places of the
    issues are made when they are shown."""

    __slots__ = ("marks", "mask", "notes", "usable")

    def __init__(self, notes: list[dict[str, Any]], mask: int, usable: bool) -> None:
        self.notes, self.mask, self.usable = notes, mask, usable
        self.marks: list[Mark] | None = None


class Found(Struct):
    """What a check of the whole file found. `lines` are the states by the text of a line, if the rows are lines: then
    `source` and `plan` check new ones."""

    plan: Plan
    states: list[State]
    compared: list[Mark]
    rows: Rows
    columns: tuple[str, ...] = ()
    lines: dict[str, State] | None = None


def settings_of(path: str) -> FoundSettings:
    return find_settings(None, Path(path).parent)


def opened(path: str, text: Text | None, **options: Any) -> tuple[Source, Source]:
    """The source for a file as its editor has it (without a text: as it is on disk), as the settings of the repository
    ask; first without them."""
    config = settings_of(path)
    raw = open_source(path) if text is None else copied_source(path, lambda folder: _copy(path, text, folder))
    reading = {**config.reading(path), **options}
    return raw, open_source(raw, "FILE", advice={}, **reading)


def _copy(path: str, text: Text, folder: TemporaryFolder) -> str:
    folder.append(os.path.basename(path), text.whole.encode("utf-8", "surrogatepass"))
    beside = os.path.join(os.path.dirname(path), TEST_CONFIG)
    if os.path.isfile(beside) and os.path.basename(path) != TEST_CONFIG:
        folder.append(TEST_CONFIG, Path(beside).read_bytes())
    return folder.file(os.path.basename(path))


def check_all(path: str, text: Text | None, stopped: Callable[[], bool] = lambda: False) -> Found | None:
    """Check a file as `validate` does; None if it was stopped. Raises EvalSetError if it cannot be read."""
    raw, source = opened(path, text)
    columns = tuple(raw.column_names())
    plan = make_plan(source)
    run, states = CheckedRun(source, plan, jobs=1), list[State]()
    for checked in run.batches():
        if stopped():
            return None
        states += _states(checked)
    run.builder.finish()
    text = text or Text.of(Path(path).read_bytes().decode("utf-8", "replace"))
    kind = "yaml" if path.lower().endswith((".yaml", ".yml")) else source.kind
    names = {ours: theirs.partition("[")[0] for theirs, ours in source.reading.columns.items()}
    rows = rows_of(kind, str(raw.path), text, len(states))._replace(names=names)
    lines = None
    if kind == "jsonl" and not source.in_order and not any(line.endswith("\r") for line in text.lines):
        own = [(number, line) for number, line in enumerate(text.lines, 1) if not is_blank(line)]
        if len(own) == len(states):
            lines = {line: state for (_, line), state in zip(own, states, strict=True)}
            for (number, _), state in zip(own, states, strict=True):
                for note in state.notes:
                    note["message"] = re.sub(rf"^line {number}:", f"line {_LINE}:", note["message"])
            states = [lines[line] for _, line in own]
    compared = [_compared(issue, rows, text) for issue in run.builder.compared_issues[:MOST_MARKS]]
    return Found(plan, states, compared, rows, columns, lines)


def _states(checked: pa.RecordBatch) -> list[State]:
    columns = (verdict(checked, name).to_pylist() for name in ("issues", "presence", "usable"))
    return [State(notes or [], mask, usable) for notes, mask, usable in zip(*columns, strict=True)]


_FIRST = re.compile(r"row (\d+) has the same request|.* of row (\d+)", re.DOTALL)
_COMPARING = {rule.code for rule in (dataset.CONFLICTING_TRUTH, dataset.REPEATED_REQUEST_ID, dataset.REPEATED_TRACE_ID)}


def _compared(issue: Issue, rows: Rows, text: Text) -> Mark:
    start, end = span(text, *place_of(rows, issue.row, issue.path))
    found = _FIRST.fullmatch(issue.message.partition(" and a ")[0]) if issue.code in _COMPARING else None
    first = int(found[1] or found[2]) if found else None
    return Mark(issue.code, issue.message, issue.hint, issue.path, start, end, first)


def check_lines(path: str, found: Found, text: Text) -> int:
    """Check the lines of JSON Lines that have no state yet; returns how many there were."""
    assert found.lines is not None
    found.rows = rows_of("jsonl", path, text)._replace(names=found.rows.names)
    own = [text.lines[line] for line in found.rows.lines]
    new = list(dict.fromkeys(line for line in own if line not in found.lines))
    if new:
        for line, state in zip(new, _checked_lines(path, found, new), strict=True):
            found.lines[line] = state
    found.states = [found.lines[line] for line in own]
    return len(new)


_LINE = "\0"
"""The placeholder for the number of a line in the messages of its reader."""


def _checked_lines(path: str, found: Found, lines: Sequence[str]) -> list[State]:
    def batches() -> Iterable[pa.RecordBatch]:
        texts = (line.removeprefix(BOM).removesuffix("\n").encode("utf-8", "surrogatepass") for line in lines)
        return cell_batches((text, f"line {_LINE}", "") for text in texts)

    raw = Source("jsonl", lambda: iter(batches()), lambda _: None, name=path, columns=found.columns)
    source = open_source(raw, "FILE", settings_of(path).settings.columns or None, advice={})
    source = find_format(found.plan.format).prepare(source).quoting(found.plan.values)
    return [state for batch in source.batches() for state in _states(check_batch(batch, found.plan))]


def marks_of(found: Found, text: Text) -> tuple[list[Mark], int]:
    """The issues of a file at their places, and how many more there are."""
    marks, more = list[Mark](), 0
    noted = [row for row, state in enumerate(found.states) if state.notes]
    for severe in (True, False):
        for row in noted:
            state, line = found.states[row], found.rows.lines[row] if found.lines is not None else 0
            wanted = [n for n in state.notes if (RULES[n["code"]].severity is Severity.ERROR) == severe]
            if len(marks) >= MOST_MARKS:
                more += len(wanted)
                continue
            if state.marks is None:
                state.marks = _marks(found, row, line, text, state)
            shown = [mark for mark in state.marks if (mark.severity is Severity.ERROR) == severe]
            more += len(wanted) - len(shown)
            for mark in shown:
                mark = mark.moved(line)
                marks.append(mark._replace(message=mark.message.replace(_LINE, str(line + 1))))
    return [*marks, *found.compared], more


def _marks(found: Found, row: int, line: int, text: Text, state: State) -> list[Mark]:
    if found.lines is not None:  # places in the line, which may move
        text = Text([text.lines[line]], text.units)
        node = json_node(text.whole, 0, text.size)
        rows, row = Rows(1, lambda _: node, names=found.rows.names), 0
    else:
        rows = found.rows
    marks = []
    for note in state.notes[:MOST_OF_ROW]:
        path = rows.path(note["path"])
        places = place_of(rows, row, path)
        if RULES[note["code"]] in _AT_A_BYTE and (byte := _BYTE.search(note["message"])) is not None:
            places = place_of_byte(rows.node(row), path, int(byte[1]), text.whole) or places
        start, end = span(text, *places)
        marks.append(Mark(note["code"], note["message"], note["hint"], note["path"], start, end))
    return marks


_BYTE = re.compile(r"\bat byte (\d{1,12})")
_AT_A_BYTE = (reading.MALFORMED_JSON, reading.MALFORMED_ROW, reading.NAN_LITERAL)


def problem_mark(error: EvalSetError) -> Mark:
    """A file that cannot be read, as a mark on its first character: only the header of a table is such a line, and a
    line that a message names may be one of the settings."""
    return Mark("", str(error), "", None, Place(0, 0), Place(0, 1))


def is_dataset(path: str) -> bool:
    """Whether the file extension is that of a dataset."""
    return kind_of(path) in ("jsonl", "json", "csv") or path.lower().endswith((".yaml", ".yml"))
