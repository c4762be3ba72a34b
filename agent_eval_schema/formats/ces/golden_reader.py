"""Golden CSV files → evaluations, and their issues.

Reading never raises on invalid content: `GoldenFile.issues` reports each problem with the line of the file, and the
evaluations contain the parts that could be read. Writing (`golden_writer.py`) reports every value that the CSV cannot
represent as a loss."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.notes import Notes
from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError
from agent_eval_schema.formats.ces import inspection, schema
from agent_eval_schema.formats.ces.evaluation import Evaluation, Names, with_names
from agent_eval_schema.formats.ces.golden import (
    ACTIONS,
    CONVERSATION,
    GOLDEN_COLUMNS,
    IMAGE_TYPES,
    JSON_COLUMNS,
    METADATA,
    REQUIRED,
    SEPARATOR,
    GoldenCells,
    GoldenStep,
    image_problem,
)
from agent_eval_schema.io.csv import Record, csv_records, record_problem, text_records, wrong_byte, wrong_separator
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.rule import Rule, Severity
from agent_eval_schema.rules import ces, columns, golden, reading
from agent_eval_schema.runtime.gc_pause import gc_paused
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import require_bool, require_kind
from agent_eval_schema.text.describe import describe, key_name, names, truncate
from agent_eval_schema.text.jsontext import parse_keeping_repeats
from agent_eval_schema.text.privacy import may_quote, quoted
from agent_eval_schema.text.spelling import match_names, odd_blanks
from agent_eval_schema.text.visible import visible


class GoldenReader:
    """Reads the rows of a golden CSV, one after the other.

    `evaluations` are those that are complete, each as Evaluation JSON with the names of the file;
    `starts` are the rows on which they begin, `groups` are the groups of each, by its display name;
    `findings` are the issues by row, and `of_header` those of the header. Who reads a long file may take
    them away in between. `header` names the fields of the rows to come: batches of a list bring their own.
    """

    def __init__(self, header: Sequence[str], *, parent: str = "") -> None:
        self.evaluations: list[dict[str, Any]] = []
        self.starts: list[int] = []
        self.groups: dict[str, list[str]] = {}
        self.findings: Notes = {}
        self.of_header: list[Finding] = []
        self.header = tuple(header)
        self._parent = parent
        self._names: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        self._current: _Conversation | None = None
        self._row = self._last = -1
        """The row that is being read, and the one before it that is not blank."""
        unknown = [n for n in self.header if n not in GOLDEN_COLUMNS]
        absent = [n for n in GOLDEN_COLUMNS if n not in self.header]
        meant = match_names(unknown, absent)
        missing = [n for n in REQUIRED if n in absent]
        for name in missing:
            written = next((w for w, m in meant.items() if m == name), None)
            hint = f"Rename the column `{key_name(written)}`." if written else ""
            self.of_header.append(Finding(golden.HEADER, f"expected a column `{name}` in the header", name, hint=hint))
        for name in dict.fromkeys(unknown):
            if meant.get(name) not in missing:
                hint = f"Did you mean `{meant[name]}`?" if name in meant else ""
                message = f"the column `{name}` is unknown, it is ignored"
                self.of_header.append(Finding(golden.COLUMN, message, name, hint=hint))
        if not missing and set(self.header[: len(REQUIRED)]) != set(REQUIRED):
            self.of_header.append(Finding(golden.COLUMN, f"expected the columns {names(REQUIRED)} first", REQUIRED[0]))
        self.is_readable = not missing

    def take(self, row: int, fields: Sequence[str] | None) -> None:
        """Read the next row: its fields, as many as the header has; None of a row that could not be read at all."""
        self._row = row
        if fields is None:
            self._skip()
        if fields is None or not self.is_readable:
            return
        cells = {n: c for n, c in zip(self.header, fields, strict=True) if c and not c.isspace()}
        name = cells.get("display_name")
        if not cells:
            self._report(None, golden.BLANK_ROW, "the row is blank, it is skipped")
            return
        if not _formula_signs.isdisjoint(map(_first_letter, cells.values())) or "\0" in "".join(fields):
            for column, text in cells.items():
                if text[0] in _formula_signs and column not in ("turn_index", *JSON_COLUMNS) and len(text) > 1:
                    self._report(column, golden.FORMULA, f"a spreadsheet takes {describe(text)} for a formula")
                if "\0" in text:
                    self._report(column, reading.CONTROL_CHARACTER, "the text holds a NUL character")
        for column in _NAMES:
            if column in cells and any(map(odd_blanks, _names_in(column, cells[column]))):
                message = f"expected single blanks inside only, got {quoted(truncate(cells[column], 120))}"
                self._report(column, ces.BLANKS_IN_NAME, message)
        acts = "turn_index" in cells or "action_type" in cells
        if name is None:
            self._conversation(cells)
        elif acts and self._current is not None and name == self._current.name:
            message = f"{quoted(name)} is the evaluation of the rows above: the cell is read as blank"
            self._report("display_name", golden.NAME_ON_CONVERSATION, message)
            self._conversation(cells)
        else:
            self._start(name, cells)
            if acts:
                self._report("display_name", golden.EVALUATION_ROW, "expected an evaluation row, got an action as well")
                self._conversation({n: c for n, c in cells.items() if n not in METADATA})
            for column in () if acts else cells:
                if column in CONVERSATION:
                    message = f"`{column}` is not used on an evaluation row, it is ignored"
                    self._report(column, golden.UNUSED_CELL, message)
        self._last = row

    def _skip(self) -> None:
        """Missing cells of the row are not reported."""
        if self._current is None:
            self._current = _Conversation(self._row, None)
        self._current.rows += 1
        self._current.turn_has_input = self._current.astray = True
        self._last = self._row

    def _report(self, column: str | None, rule: Rule, message: str, hint: str = "") -> None:
        self.note(self._row, Finding(rule, message, column, hint=hint))

    def note(self, row: int, finding: Finding) -> None:
        self.findings.setdefault(row, []).append(finding)

    # evaluation rows

    def _start(self, name: str, cells: GoldenCells) -> None:
        self.finish()
        self._current = conversation = _Conversation(self._row, name)
        evaluation = conversation.evaluation
        evaluation["displayName"] = name
        evaluation["golden"] = {"turns": conversation.turns}
        if name in self._names:
            message = f"{quoted(name)} is the name of row {self._names[name]} already"
            self._report("display_name", golden.REPEATED_NAME, message)
        elif groups := _split(cells.get("evaluation_groups", "")):  # a name refers to its first evaluation
            self.groups[name] = groups
        self._names.setdefault(name, self._row)
        if "evaluation_id" in cells:
            own = cells["evaluation_id"].strip()
            if own in self._ids:
                message = f"{quoted(own)} is the id of row {self._ids[own]} already"
                self._report("evaluation_id", golden.EVALUATION_ID, message)
            self._ids.setdefault(own, self._row)
            evaluation["name"] = f"{self._parent}/evaluations/{own}" if self._parent else own
        if "description" in cells:
            evaluation["description"] = cells["description"]
        if tags := _split(cells.get("tags", "")):
            evaluation["tags"] = tags

    def finish(self) -> None:
        """End the evaluation of the rows so far."""
        conversation, self._current = self._current, None
        if conversation is None:
            return
        self._end_turn(conversation)
        if not conversation.rows:
            finding = Finding(golden.NO_CONVERSATION, "the evaluation has no conversation", "display_name")
            self.note(conversation.row, finding)
        if conversation.name is not None:
            self.evaluations.append(conversation.evaluation)
            self.starts.append(conversation.row)

    # conversation rows

    def _conversation(self, cells: GoldenCells) -> None:
        conversation = self._current
        if conversation is None:
            message = "expected an evaluation row first, got a row of a conversation"
            self._report("display_name", golden.EVALUATION_ROW, message)
            conversation = self._current = _Conversation(self._row, None)
        conversation.rows += 1
        text = cells.get("turn_index", "")
        if text != conversation.turn_text or not text:
            found = _TURN.fullmatch(text)
            now, number = conversation.turn, int(found[1]) if found else None
            is_astray, got = number is None, _describe_cell(text)
            if number is None or number < max(now, 1) or (not now and number != 1):
                expected = f"a whole number from {_turn_words(now)} on" if now else "1 for the first turn"
                self._report("turn_index", golden.TURN_INDEX, f"expected {expected}, got {got}")
                number = max(now, number or 1)
            elif number > now + 1 or not text.strip().isdecimal():
                expected = _turn_words(min(number, now + 1))
                self._report("turn_index", golden.TURN_GAP, f"expected {expected}, got {got}")
            if number != now or not conversation.turns:
                self._end_turn(conversation)
                conversation.steps = []
                conversation.turns.append({"steps": conversation.steps})
                conversation.turn, conversation.turn_has_input = number, conversation.astray
                if len(conversation.turns) == schema.MAX_TURNS + 1:
                    self._report("turn_index", ces.LIMIT, f"expected at most {schema.MAX_TURNS} turns, got more")
            conversation.turn_text, conversation.astray = text, is_astray
        else:
            conversation.astray = False
        if (step := self._step(cells, conversation)) is not None:
            conversation.steps.append(step)

    def _end_turn(self, conversation: _Conversation) -> None:
        if conversation.turns and not conversation.turn_has_input:
            message = f"turn {conversation.turn} has no input" if may_quote() else "a turn that ends here has no input"
            self.note(self._last, Finding(golden.TURN_WITHOUT_INPUT, message, "action_type"))

    def _step(self, cells: GoldenCells, conversation: _Conversation) -> GoldenStep | None:
        name = cells.get("action_type", "").strip()
        action = ACTIONS.get(name)
        if action is None:
            conversation.turn_has_input = True  # it may well have been one
            hint = inspection.hint_for_name(name, ACTIONS)
            self._report("action_type", golden.ACTION, f"expected an action, got {_describe_cell(name)}", hint)
            return None
        if name.startswith("INPUT"):
            conversation.turn_has_input = True
        shown = name if may_quote() else "the action"
        for column in () if cells.keys() <= _ALLOWED[name] else cells:
            if column in METADATA:
                message = f"`{column}` belongs on the evaluation row, it is ignored here"
                self._report(column, golden.METADATA_ON_CONVERSATION, message)
            elif column in CONVERSATION and column not in action.columns:
                self._report(column, golden.UNUSED_CELL, f"{shown} does not use `{column}`, it is ignored")
        values: dict[str, Any] = cells
        for column in action.required:
            if column not in cells:
                self._report(column, golden.REQUIRED_CELL, f"{shown} needs `{column}`, it is blank")
                values = {}
        for column in _READ_BY[name]:
            if column in cells:
                values = values and {**values, column: self._read_cell(column, cells)}
        return action.step(values) if values and None not in values.values() else None

    # cells that are more than text; None for one that could not be read (and was reported)

    def _read_cell(self, column: str, cells: GoldenCells) -> Any:
        if column == "image_content":
            return self._image(cells)
        if column != "image_mime_type":
            return self._object(column, cells[column])
        kind = cells[column].strip().lower()
        if kind in IMAGE_TYPES:
            return kind
        self._report(column, golden.IMAGE, *(image_problem(kind, b"") or ("",)))
        return None

    def _object(self, column: str, text: str) -> dict[str, Any] | None:
        value = parse_keeping_repeats(text)
        if isinstance(value, jsontext.Malformed):
            self._report(column, value.rule, value.message)
            return None
        if not isinstance(value, dict):
            self._report(column, golden.JSON_CELL, f"expected a JSON object, got {describe(value)}")
            return None
        findings = inspection.inspect_object(value, column)
        for finding in findings:
            rule = golden.JSON_CELL if finding.rule in (ces.REPEATED_KEY, ces.FIELD_TYPE) else finding.rule
            self.note(self._row, replace(finding, rule=rule))
        return None if any(f.rule.severity == "error" for f in findings) else value

    def _image(self, cells: GoldenCells) -> str | None:
        text = cells["image_content"].strip()
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            plain = _DATA_URI.sub("", text)
            content = None if text.startswith(("b'", 'b"')) else inspection.decode_base64(re.sub(r"\s", "", plain))
            if content is None:
                is_printed = text.startswith(("b'", 'b"'))
                got = "bytes as Python prints them" if is_printed else describe(text)
                hint = "Write `base64.b64encode(data).decode()`." if is_printed else ""
                self._report("image_content", golden.IMAGE, f"expected base64, got {got}", hint)
                return None
            got = "the URL-safe alphabet, line breaks or no padding" if plain == text else "a data: URI"
            data, text = content, base64.b64encode(content).decode()
            message = f"expected plain base64, got {got}: it is accepted"
            self._report("image_content", golden.IMAGE_SPELLING, message)
        kind = cells.get("image_mime_type", "").strip().lower()
        if kind in IMAGE_TYPES and (problem := image_problem(kind, data)):
            self._report("image_content", golden.IMAGE, *problem)
            return None
        return text


class _Conversation:
    """The evaluation that is being read. Without a name, its row is missing."""

    def __init__(self, row: int, name: str | None) -> None:
        self.row, self.name = row, name
        self.evaluation: dict[str, Any] = {}
        self.turns: list[dict[str, Any]] = []
        self.steps: list[GoldenStep] = []
        self.rows = self.turn = 0
        self.turn_text = ""
        self.turn_has_input = False
        self.astray = False
        """Whether the last row may as well be one of the next turn: it could not be read, or its turn_index not."""


_READ = frozenset((*JSON_COLUMNS, "image_content", "image_mime_type"))
_READ_BY = {name: tuple(c for c in action.columns if c in _READ) for name, action in ACTIONS.items()}
_ALLOWED = {name: frozenset((*REQUIRED, *action.columns)) for name, action in ACTIONS.items()}
_formula_signs = frozenset("=+-@")
_first_letter = itemgetter(0)
_DATA_URI = re.compile(r"^data:[^,]*;base64,", re.IGNORECASE)
_TURN = re.compile(r"\s*(\d{1,9})(\.0+)?\s*", re.ASCII)


def _turn_words(number: int) -> str:
    """The number of a turn in a cell."""
    return str(number) if may_quote() else "the number that follows"


def _describe_cell(text: str) -> str:
    return describe(text) if text else "a blank cell"


_LISTS = ("tags", "evaluation_groups")
_NAMES = ("display_name", "response_agent", "tool_name", "agent_transfer_target", *_LISTS)
"""The columns that name something; an evaluation_id is read without the blanks at its ends."""


def _names_in(column: str, text: str) -> list[str]:
    return _split(text) if column in _LISTS else [text]


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(SEPARATOR) if part.strip()]


class GoldenFile(Struct, frozen=True):  # numpydoc ignore=PR01
    """The content of a golden CSV file.

    Attributes
    ----------
    evaluations : list of Evaluation
        The evaluations, in the order of the file.
    groups : dict of str to list of str
        The evaluation groups by the display name of the evaluation; an Evaluation has no field for them.
    issues : list of Issue
        The issues, with the 0-based row; the message contains the line of the file.
    starts : list of int
        The 0-based row on which each evaluation begins.

    See Also
    --------
    read_golden_csv : The function that returns the content.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> file = ces.read_golden_csv("sample_data/golden.csv")
    >>> file.starts, file.groups["Leave balance"]
    ([0, 8, 14], ['Regression'])
    """

    evaluations: list[Evaluation]
    groups: dict[str, list[str]]
    issues: list[Issue]
    starts: list[int] = []

    @property
    def ok(self) -> bool:
        """Whether the file has no error.

        Returns
        -------
        bool
            True if no issue has the severity error.

        Examples
        --------
        >>> from agent_eval_schema import ces
        >>> ces.read_golden_csv("sample_data/golden_broken.csv").ok
        False
        """
        return not any(issue.severity is Severity.ERROR for issue in self.issues)


def read_golden_csv(
    source: str | bytes | os.PathLike[str], *, strict: bool = False, parent: str = "", names: Names | None = None
) -> GoldenFile:
    """Read the evaluations of a golden CSV file.

    Parameters
    ----------
    source : str, bytes or os.PathLike
        The path of the file, or its text.
    strict : bool, default False
        If True, raise EvalSetError for the first error of the content.
    parent : str, default ""
        The resource name of the app (`projects/.../apps/...`); evaluation IDs become resource names with it. The empty
        string keeps the IDs.
    names : mapping of str to str or None, default None
        Resource names of tools and agents by display name. None keeps the names of the file.

    Returns
    -------
    GoldenFile
        The evaluations and the issues of the file.

    Raises
    ------
    EvalSetNotFoundError
        The file does not exist.
    EvalSetError
        The file has no header in UTF-8; or it has an error and `strict` is True.

    See Also
    --------
    write_golden_csv : Write evaluations to a golden CSV file.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> file = ces.read_golden_csv("sample_data/golden.csv")
    >>> [evaluation["displayName"] for evaluation in file.evaluations]
    ['Leave balance', 'Desk booking', 'Badge photo']
    """
    require_bool("strict", strict)
    with gc_paused():
        records = _records_of(source)
        header = [name.strip() for name in next(records, Record(1, [], "", "")).fields]
        reader = GoldenReader(header, parent=parent)
        lines: list[int] = []
        for row, record in enumerate(records):
            lines.append(record.line)
            if (problem := record_problem(header, record)) is not None:
                reader.note(row, problem)
            reader.take(row, record.fields if problem is None else None)
        reader.finish()
        evaluations = [Evaluation(e if names is None else with_names(e, names)) for e in reader.evaluations]
    of_header = [
        Finding(columns.DUPLICATE_COLUMN, f"expected one column `{name}`, got several", name)
        for name in dict.fromkeys(name for i, name in enumerate(header) if name in header[:i])
    ]
    empty = [] if lines else [Finding(columns.NO_ROWS, "expected at least one row, got none")]
    issues = [on_line(finding, 1).issue() for finding in (*of_header, *reader.of_header)]
    for row, findings in sorted(reader.findings.items()):
        issues += (on_line(finding, lines[row]).issue(row) for finding in findings)
    issues += (on_line(finding, 1).issue() for finding in empty)
    file = GoldenFile(evaluations, reader.groups, issues, reader.starts)
    if strict and not file.ok:
        first = next(issue for issue in file.issues if issue.severity is Severity.ERROR)
        raise EvalSetError(f"the golden CSV has errors, the first one: {first.code} {first.message}")
    return file


def _records_of(source: str | bytes | os.PathLike[str]) -> Iterator[Record]:
    """The records of a file, or of a text, which contains a line break."""
    if isinstance(source, str) and ("\n" in source or "\r" in source):
        source = source.encode("utf-8", "surrogatepass")
    if isinstance(source, bytes):
        return _with_header(text_records(source), "the text")
    expected = "a path (str or os.PathLike), or the text of a file (str or bytes)"
    require_kind("source", source, (str, os.PathLike), expected)
    path = os.fspath(source)
    if not os.path.isfile(path):
        raise EvalSetNotFoundError(f"{visible(path)}: no such file")
    return _with_header(csv_records(path, comma=","), visible(path))


def _with_header(records: Iterator[Record], where: str) -> Iterator[Record]:
    """The same records; the first one must be readable, as it names the columns of the others."""
    head = next(records, None)
    problem = "an empty file" if head is None else head.error or wrong_byte(head.text)
    if head is None or problem:
        raise EvalSetError(f"{where}: line 1: expected a header row in UTF-8, got {problem}")
    wrong = wrong_separator(head.fields)
    if wrong:
        raise EvalSetError(f"{where}: line 1: {wrong}")
    return chain([head], records)


def on_line(finding: Finding, line: int) -> Finding:
    message = finding.message
    return finding if message.startswith("line ") else replace(finding, message=f"line {line}: {message}")
