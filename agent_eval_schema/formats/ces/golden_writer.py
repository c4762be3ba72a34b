"""Evaluations → golden CSV, which no other tool writes, and a list of everything that the CSV cannot represent.

Each part of an evaluation is taken from a copy of its fields; what is left over in the end has no column, and is a
loss. So no field can be forgotten: an unknown field is reported like the others.
"""

from __future__ import annotations

import base64
import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from agent_eval_schema.formats.ces import inspection, schema
from agent_eval_schema.formats.ces.evaluation import Names, display, is_result
from agent_eval_schema.formats.ces.golden import (
    ACTIONS,
    GOLDEN_COLUMNS,
    JSON_COLUMNS,
    SEPARATOR,
    GoldenCells,
    image_problem,
)
from agent_eval_schema.io.atomic import write_text
from agent_eval_schema.issues import Issue
from agent_eval_schema.rule import Rule, Severity
from agent_eval_schema.rules import conversion
from agent_eval_schema.runtime.tables import file_of_package
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import path_of, require_dicts
from agent_eval_schema.text.describe import describe, key_name

UNNAMED = "agent"
"""The placeholder for an agent whose name is not known."""


def write_golden_csv(
    evaluations: Iterable[Mapping[str, Any]],
    path: str | os.PathLike[str],
    *,
    groups: Mapping[str, Iterable[str]] | None = None,
    names: Names | None = None,
) -> list[Issue]:
    """Write evaluations to a golden CSV file.

    Parameters
    ----------
    evaluations : iterable of mapping
        The evaluations.
    path : str or os.PathLike
        The path of the file.
    groups : mapping of str to iterable of str or None, default None
        The evaluation groups by the display name of the evaluation, as in `GoldenFile.groups`. None writes no groups.
    names : mapping of str to str or None, default None
        Resource names by display name; resource names are replaced by their display names. None changes no name.

    Returns
    -------
    list of Issue
        One issue per value that a golden CSV cannot contain: `row` is the 0-based position of the evaluation, `path`
        that of the JSON. Empty if nothing is lost.

    Raises
    ------
    EvalSetError
        The file cannot be written.

    See Also
    --------
    read_golden_csv : Read the evaluations of a golden CSV file.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> file = ces.read_golden_csv("sample_data/golden.csv")
    >>> ces.write_golden_csv(file.evaluations, "copy.csv", groups=file.groups)
    []
    """
    text, losses = golden_csv_text(evaluations, groups=groups, names=names)
    write_text(path_of(path), text)
    return losses


def golden_csv_text(
    evaluations: Iterable[Mapping[str, Any]],
    *,
    groups: Mapping[str, Iterable[str]] | None = None,
    names: Names | None = None,
) -> tuple[str, list[Issue]]:
    """Return evaluations as the text of a golden CSV file.

    Parameters
    ----------
    evaluations : iterable of mapping
        The evaluations.
    groups : mapping of str to iterable of str or None, default None
        The evaluation groups by the display name of the evaluation, as in `GoldenFile.groups`. None writes no groups.
    names : mapping of str to str or None, default None
        Resource names by display name; resource names are replaced by their display names. None changes no name.

    Returns
    -------
    tuple of (str, list of Issue)
        The text (RFC 4180; lines end in CR LF), and one issue per value that a golden CSV cannot contain.

    See Also
    --------
    write_golden_csv : Write the text to a file.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> text, losses = ces.golden_csv_text(ces.read_golden_csv("sample_data/golden.csv").evaluations)
    >>> len(text.splitlines()) > 10, losses
    (True, [])
    """
    writer, dicts = _Writer(groups or {}, names or {}), require_dicts("evaluations", evaluations)
    text = _csv_text(row for number, one in enumerate(dicts) for row in writer.rows(number, one))
    return text, writer.losses


def _csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    buffer = io.StringIO()
    out = csv.DictWriter(buffer, GOLDEN_COLUMNS, restval="", lineterminator="\r\n")
    out.writeheader()
    out.writerows(rows)
    return buffer.getvalue()


class _Unwritten(NamedTuple):
    """The fields of a message that are not written yet, by JSON name, and the path of the message."""

    message: str
    path: str
    fields: dict[str, Any]

    @classmethod
    def of(cls, message: str, value: Any, path: str) -> _Unwritten:
        table = schema.message(message)
        fields: dict[str, Any] = {}
        for key, item in value.items() if isinstance(value, dict) else ():
            name = table.json_name(str(key)) or str(key)
            if item is not None:
                fields[str(key) if name in fields else name] = item
        return cls(message, path, fields)

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def take(self, name: str) -> Any:
        """The value of a field, which counts as written now; None if it is not set."""
        return self.fields.pop(name, None)

    def take_message(self, name: str) -> _Unwritten:
        return self.of(schema.message(self.message).fields[name].message, self.take(name), self.at(name))


def _is_text(value: Any) -> bool:
    """Whether a cell can hold the value: text that is not blank and has no lone surrogate."""
    return isinstance(value, str) and bool(value.strip()) and not any("\ud800" <= c <= "\udfff" for c in value)


class _NotRepresentable(Exception):
    """A golden CSV has no row for the step; the message is the reason."""


class _Writer:
    def __init__(self, groups: Mapping[str, Iterable[str]], names: Names) -> None:
        self.losses: list[Issue] = []
        self._groups, self._names = groups, names
        self._written: set[str] = set()
        self._ids: set[str] = set()
        self._number = 0
        self._name: str | None = None
        self._kept: dict[str, str] = {}

    def rows(self, number: int, evaluation: Mapping[str, Any]) -> list[GoldenCells]:
        """The rows of an evaluation; none if the CSV cannot represent it at all, which is a loss."""
        self._number, self._kept = number, {}
        fields = _Unwritten.of(schema.EVALUATION, dict(evaluation), "")
        self._name = name = fields.take("displayName")
        if is_result(evaluation):
            message = "a result is excluded: a golden CSV contains evaluations only"
            return self._lose(conversion.NO_EVALUATION, "", message)
        if "scenario" in fields.fields:
            return self._lose(conversion.SCENARIO, "scenario", "a golden CSV cannot represent a scenario")
        golden = fields.take_message("golden")
        turns = golden.fields.get("turns")
        if not _is_text(name):
            reason = "it has no display name"
        elif name in self._written:
            reason = "duplicate display name"
        else:
            reason = "" if isinstance(turns, list) and turns else "it has no turns"
        if reason:
            return self._lose(conversion.NO_EVALUATION, "displayName", f"the evaluation is excluded: {reason}")
        rows = list(self._conversation(golden))
        if not rows:
            message = "the evaluation is excluded: none of its steps can be represented"
            return self._lose(conversion.NO_EVALUATION, "golden", message)
        self._written.add(name)
        parent, _, own = self._text_of(fields, "name").rpartition("/")
        if parent:
            self._kept[parent] = "name"
        if own and own in self._ids:
            message = f"{describe(own)} is the ID of another evaluation: the cell stays blank"
            self._lose(conversion.FIELD, "name", message)
            own = ""
        self._ids.add(own)
        row = {"display_name": name, "evaluation_id": own, "description": self._text_of(fields, "description")}
        row["tags"] = self._list(self._items(fields, "tags"), "tags")
        row["evaluation_groups"] = self._list(list(self._groups.get(name, ())), "evaluation_groups")
        self._leftover(fields)
        for shown, path in self._kept.items():
            self._lose(conversion.RESOURCE_NAMES, path, f"{describe(shown, 120)} stays as it is")
        return [{column: text for column, text in row.items() if text}, *rows]

    def _lose(self, rule: Rule, path: str, message: str) -> list[GoldenCells]:
        """Report a loss; the rows are none."""
        self.losses.append(inspection.finding_at(rule, path, message).issue(self._number, self._name))
        return []

    def _leftover(self, fields: _Unwritten) -> None:
        for name, value in fields.fields.items():
            if not isinstance(value, list | str) or value:  # it may be an array, which has no truth
                message = f"`{key_name(name)}` has no column, got {describe(value)}"
                self._lose(conversion.FIELD, fields.at(name), message)
        fields.fields.clear()

    def _text_of(self, fields: _Unwritten, name: str) -> str:
        text = fields.take(name)
        if _is_text(text):
            return str(text)
        if text is not None and not (isinstance(text, str) and not text):  # it may be a Series, which has no truth
            self._lose(conversion.FIELD, fields.at(name), f"expected text for its cell, got {describe(text)}")
        return ""

    def _items(self, fields: _Unwritten, name: str) -> list[Any]:
        items = fields.take(name)
        if items is not None and not isinstance(items, list):
            return self._lose(conversion.FIELD, fields.at(name), f"expected a list, got {describe(items)}")
        return items or []

    def _list(self, items: list[Any], path: str) -> str:
        """The items between semicolons; those that would be read back as others are losses."""
        writable = []
        for i, item in enumerate(items):
            if _is_text(item) and item == item.strip() and SEPARATOR not in item:
                writable.append(item)
            else:
                message = f"{describe(item)} cannot be written between semicolons"
                self._lose(conversion.LIST_ITEM, f"{path}[{i}]", message)
        return SEPARATOR.join(writable)

    # the conversation

    def _conversation(self, golden: _Unwritten) -> Iterator[GoldenCells]:
        number = 0
        for i, turn in enumerate(golden.take("turns")):
            path = f"golden.turns[{i}]"
            fields = _Unwritten.of("Evaluation.GoldenTurn", turn, path)
            steps = enumerate(self._items(fields, "steps"))
            rows = [row for at, step in steps for row in self._step(step, f"{path}.steps[{at}]")]
            self._leftover(fields)
            if rows:
                number += 1
                yield from ({"turn_index": str(number), **row} for row in rows)
            else:
                self._lose(conversion.STEP, path, "the turn is excluded: the CSV can represent none of its steps")
        self._leftover(golden)

    def _step(self, value: Any, path: str) -> list[GoldenCells]:
        before = len(self.losses)
        try:
            return self._rows_of(_Unwritten.of("Evaluation.Step", value, path))
        except _NotRepresentable as reason:
            del self.losses[before:]  # one cause, one loss
            return self._lose(conversion.STEP, path, f"the step is excluded: {reason}")

    def _rows_of(self, step: _Unwritten) -> list[GoldenCells]:
        kind = next((kind for kind in ("userInput", "expectation") if kind in step.fields), "")
        fields = step.take_message(kind) if kind else step
        choices = [n for group in schema.message(fields.message).oneofs.values() for n in group if n in fields.fields]
        if len(choices) != 1 or (kind, choices[0]) not in _ACTIONS:
            raise _NotRepresentable(f"no action for {', '.join(choices or fields.fields) or 'nothing'}")
        action = _ACTIONS[kind, choices[0]]
        if choices[0] == "toolResponses":
            rows = [self._row(action, one, fields) for one in self._responses(fields.take_message(choices[0]))]
        else:
            of_message = schema.message(fields.message).fields[choices[0]].message
            rows = [self._row(action, fields.take_message(choices[0]) if of_message else fields, fields)]
        self._leftover(fields)
        self._leftover(step)
        return rows

    def _responses(self, outer: _Unwritten) -> Iterator[_Unwritten]:
        """The responses of tools in one input, each of which becomes a step."""
        responses, path = self._items(outer, "toolResponses"), outer.at("toolResponses")
        if not responses:
            raise _NotRepresentable("no tool response in it")
        if len(responses) > 1:
            self._lose(conversion.FIELD, path, f"{len(responses)} tool responses of one step become a step each")
        self._leftover(outer)
        return (_Unwritten.of("ToolResponse", value, f"{path}[{i}]") for i, value in enumerate(responses))

    def _row(self, action: str, message: _Unwritten, fields: _Unwritten) -> GoldenCells:
        """The row of an action; the note is a field beside the message."""
        row = {"action_type": action}
        if ACTIONS[action].response and message.fields.setdefault("response", None) is None:
            self._lose(conversion.FIELD, message.at("response"), "no response comes back as an empty object")
            message.fields["response"] = {}
        for column, path in ACTIONS[action].columns.items():
            at = fields if column == "expectation_note" else message
            if cell := _CELLS[column](self, at, path.rpartition(".")[2]):
                row[column] = cell
        if message.fields.get("response") == {}:
            del message.fields["response"]
        self._leftover(message)
        return row

    # the content of a cell

    def _text_or_chunks(self, fields: _Unwritten, name: str) -> str:
        """The text of a field; the text of an answer is in its chunks."""
        if "chunks" not in fields.fields:
            return self._as_text(fields.take(name), f"`{name}`")
        chunks = [_Unwritten.of("Chunk", chunk, "").fields for chunk in self._items(fields, "chunks")]
        if any(list(chunk) != ["text"] or not isinstance(chunk["text"], str) for chunk in chunks):
            raise _NotRepresentable("chunks that are not text")
        if len(chunks) > 1:
            self._lose(conversion.FIELD, fields.at("chunks"), f"{len(chunks)} chunks of text become one")
        return self._as_text("".join(c["text"] for c in chunks), "the text")

    def _as_text(self, value: Any, what: str) -> str:
        if not _is_text(value):
            raise _NotRepresentable(f"{what} is {describe(value)}, the CSV needs text there")
        return str(value)

    def _agent(self, fields: _Unwritten, name: str) -> str:
        if name not in fields.fields:  # which the CSV requires and a row of an evaluation dataset does not have
            message = f"no agent is named: `{UNNAMED}` is written, put the agent's name in its place"
            self._lose(conversion.FIELD, fields.at(name), message)
        return self._as_text(fields.fields.pop(name, UNNAMED), f"`{name}`")

    def _object(self, fields: _Unwritten, name: str) -> str:
        if name not in fields.fields:
            return ""
        if not isinstance(value := fields.take(name), dict):
            raise _NotRepresentable(f"`{name}` is {describe(value)}, the CSV needs an object there")
        if any(f.rule.severity is Severity.ERROR for f in inspection.inspect_object(value, "")):
            raise _NotRepresentable(f"`{name}` contains a value that JSON cannot represent, or is nested too deeply")
        return jsontext.write_exactly(value)

    def _named(self, fields: _Unwritten, name: str) -> str:
        if "toolsetTool" in fields.fields:
            raise _NotRepresentable("no column for `toolsetTool`")
        text = self._as_text(fields.take(name), f"`{name}`")
        shown = display(text, "tools" if name == "tool" else "agents", self._names)
        if shown is None:
            self._kept.setdefault(text, fields.at(name))
        return shown or text

    def _image(self, fields: _Unwritten, name: str) -> str:
        """The type or the bytes of an image; an image whose bytes are not of the type is not written."""
        kind, data = fields.fields.get("mimeType", ""), fields.fields.get("data")
        plain = inspection.decode_base64(data) if isinstance(data, str) else None
        if not plain or not isinstance(kind, str) or image_problem(kind, plain):
            raise _NotRepresentable(f"an image of {describe(kind)} with {describe(data, 20)}")
        if name == "mimeType":
            return str(kind)
        del fields.fields["mimeType"], fields.fields["data"]
        return base64.b64encode(plain).decode()


_ACTIONS = {tuple(path.split(".")[:2]): name for name, action in ACTIONS.items() for path in action.columns.values()}
"""The action for an input or an expectation; the others are losses."""

_CELLS: dict[str, Callable[[_Writer, _Unwritten, str], str]] = {
    **dict.fromkeys(JSON_COLUMNS, _Writer._object),
    **dict.fromkeys(("image_mime_type", "image_content"), _Writer._image),
    **dict.fromkeys(("tool_name", "agent_transfer_target"), _Writer._named),
    "text_content": _Writer._text_or_chunks,
    "response_agent": _Writer._agent,
    "expectation_note": _Writer._text_of,
}


def golden_template() -> str:
    """Return a golden CSV to start from.

    Returns
    -------
    str
        The text of a file with one evaluation that uses each of the eight actions.

    See Also
    --------
    read_golden_csv : Read the evaluations of a golden CSV file.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> ces.read_golden_csv(ces.golden_template()).evaluations[0]["displayName"]
    'Refund happy path'
    """
    return file_of_package(__package__, "golden_template.csv").decode()
