"""Layouts: a neighbour's row ⇄ ours, as a table of fields.

    Field(("actual_output",), "response")                                        the same value under another name
    Field(("tools_called",), "predicted_trajectory", read=…, write=…)            another shape of the same thing
    Field(("retrieved_contexts", "retrieved_context_ids"), "retrieved_context")  two columns of theirs are one of ours

`read` turns their values into what our column takes (a value that it does not know comes back as it is: our own rules
then say what is wrong with it), `write` turns a canonical value into theirs. Neither may lose anything in silence:
A conversion reads back what was written, and what does not come back is a loss (conversion/losses.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.batch import with_columns
from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.notes import reading_problems, rename_notes
from agent_eval_schema.decoding.chat import lone_question
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import structured

Row = Mapping[str, Any]


def same(value: Any) -> Any:
    return value


class Field(Struct, frozen=True):
    """Columns of a neighbour that are one of ours, and the functions between them.

    `read` takes as many values as there are columns (None where absent) and gives ours; `write` gives their value, or
    a tuple with one for each column.
    """

    theirs: tuple[str, ...]
    ours: str
    read: Callable[..., Any] = same
    write: Callable[[Any], Any] = same


def nothing_more(given: Row, made: dict[str, Any]) -> None:
    """The fields say all."""


class Layout(Struct, frozen=True):
    """How a neighbour's row is read and written: field by field, then what only the whole row can say.

    `read_rest(theirs, ours)` and `write_rest(ours, theirs)` complete what the fields have made; `more` names further
    columns of theirs that `read_rest` reads, and `places` where in them our columns are.
    """

    fields: tuple[Field, ...] = ()
    read_rest: Callable[[Row, dict[str, Any]], None] = nothing_more
    write_rest: Callable[[Row, dict[str, Any]], None] = nothing_more
    more: tuple[str, ...] = ()
    places: Mapping[str, str] = {}

    @property
    def written(self) -> tuple[str, ...]:
        """The columns of theirs that may be written, in order."""
        return (*(name for field in self.fields for name in field.theirs), *self.more)

    @property
    def columns(self) -> frozenset[str]:
        """The columns of theirs that are read."""
        return frozenset(self.written)

    @property
    def origins(self) -> dict[str, str]:
        """Our columns, and theirs that they are read from: what a message has to name."""
        fields = {field.ours: field.theirs[0] for field in self.fields if field.theirs[0] != field.ours}
        return {**fields, **self.places}

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with our columns in the place of theirs; all others are carried along."""
        made: dict[str, list[str | None]] = {}
        for i, theirs in enumerate(_rows(batch, self.columns)):
            for name, value in self.read_row(theirs).items():
                if value is not None:
                    made.setdefault(name, [None] * batch.num_rows)[i] = jsontext.encode(value).decode()
        return replaced(batch, made, self.columns, {f.theirs[0]: f.ours for f in self.fields})

    def read_row(self, theirs: Row) -> dict[str, Any]:
        """One row of theirs as ours."""
        made: dict[str, Any] = {}
        for field in self.fields:
            values = [theirs.get(name) for name in field.theirs]
            if any(v is not None for v in values):
                made[field.ours] = field.read(*values)
        self.read_rest(theirs, made)
        return made

    def write(self, row: Row) -> dict[str, Any]:
        """A canonical row as theirs; absent values have no key."""
        written: dict[str, Any] = {}
        for field in self.fields:
            value = row.get(field.ours)
            if value is not None:
                found = field.write(value)
                parts = found if len(field.theirs) > 1 else (found,)
                written.update({n: v for n, v in zip(field.theirs, parts, strict=True) if v is not None})
        self.write_rest(row, written)
        return written


def _rows(batch: pa.RecordBatch, names: frozenset[str]) -> list[dict[str, Any]]:
    """The cells of these columns as values, row by row. A text is what it says; its reader looks whether it is JSON."""
    cells = {n: c for n in batch.schema.names if n in names and (c := read_cells(batch, n)) is not None}
    columns = {n: [_value(t, c) for t in c.texts] for n, c in cells.items()}
    return [{n: values[i] for n, values in columns.items()} for i in range(batch.num_rows)]


def _value(text: str | None, cells: Cells) -> Any:
    return jsontext.parse_leniently(text) if text is not None and cells.json else text


def replaced(
    batch: pa.RecordBatch, made: Mapping[str, Sequence[str | None]], taken: frozenset[str], ours: Mapping[str, str]
) -> pa.RecordBatch:
    """The batch with columns of JSON texts in the place of the `taken` ones.

    What a reader said of a taken column is said of the column that it became (`ours`), and a cell that it could not
    read stays absent.
    """
    batch = rename_notes(batch, ours)
    unread = {(row, f.column) for row, found in reading_problems(batch).items() for f in found}
    columns = {n: [None if (i, n) in unread else t for i, t in enumerate(texts)] for n, texts in made.items()}
    return with_columns(batch, columns, taken)


# ---------------------------------------------------------------------------------------------------------------------
# the shapes that several formats share
def question(request: Row) -> Any:
    """A request for a column that holds a question: the user's last message that is plain text, else the chat as JSON.
    A message in parts, which `last_user_text` joins, does not count."""
    messages = request["messages"]
    asked = [m["content"] for m in messages if m.get("role") == "user" and isinstance(m.get("content"), str)]
    return asked[-1] if asked else jsontext.encode(messages).decode()


def question_or_messages(request: Row) -> Any:
    """A request for a column that holds a question or a chat: the text of a lone user message, else all of it."""
    messages = request["messages"]
    question = lone_question(messages)
    return messages if question is None else question


def calls_from(name: str, given: str) -> Callable[[Any], Any]:
    """A reader of tool calls whose name and arguments have other keys; their further keys are left out."""
    known = {name: "tool_name", given: "tool_input", "tool_name": "tool_name", "tool_input": "tool_input"}

    def read(value: Any) -> Any:
        calls = structured(value)
        return [renamed(call) for call in calls] if isinstance(calls, list) else calls

    def renamed(call: Any) -> Any:
        if not isinstance(call, dict) or "tool_name" not in {known.get(k) for k in call}:
            return call  # by its own keys, for the rule that explains it
        return {known[k]: v for k, v in call.items() if k in known}

    return read


def calls_to(name: str, given: str) -> Callable[[Any], Any]:
    """The writer for `calls_from`."""
    return lambda calls: [{name: c["tool_name"], given: c["tool_input"]} for c in calls]


def as_tags(metadata: Any) -> Any:
    """Metadata may hold any JSON there; a tag is text."""
    given = structured(metadata)
    if not isinstance(given, dict):
        return given
    return {k: v if isinstance(v, str) else jsontext.encode(v).decode() for k, v in given.items() if v is not None}
