"""Layouts: a neighbor's row ⇄ ours, as a table of fields.

    Field(("actual_output",), "response")                                        the same value under another name
    Field(("tools_called",), "predicted_trajectory", read=…, write=…)            another shape of the same thing
    Field(("retrieved_contexts", "retrieved_context_ids"), "retrieved_context")  two columns of theirs are one of ours

`read` converts their values into those of our column (an unknown value is returned unchanged: our own rules then report
it), `write` converts a canonical value into theirs. Neither may lose a value without a report: a conversion reads back
its output, and each difference is a loss (conversion/losses.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.edit import with_columns
from agent_eval_schema.cells.notes import Notes, reading_problems, rename_notes, with_notes
from agent_eval_schema.decoding.chat import lone_question
from agent_eval_schema.decoding.malformed import written_by_python
from agent_eval_schema.formats.catalog import About, Columns
from agent_eval_schema.formats.detection import Signs, always
from agent_eval_schema.issues import Finding
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import structured

Row = Mapping[str, Any]

Head = Callable[[], Sequence[Row]]
"""The first rows of a table, which are read when they are asked for."""

Unfolded = tuple[dict[str, Any], Sequence[Finding]]
"""A row that is made of a document, and its issues."""

Unfold = Callable[[Row], Iterator[Unfolded]]
"""The rows that are made of one row."""


def same(value: Any) -> Any:
    return value


class Field(Struct, frozen=True):
    """A column that contains more than ours can represent is `kept`, and is written again."""

    theirs: tuple[str, ...]
    ours: str
    read: Callable[..., Any] = same
    write: Callable[[Any], Any] = same
    other_names: tuple[str, ...] = ()
    kept: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the first column."""
        return (self.theirs[0], *self.other_names)

    def name_in(self, columns: Collection[str]) -> str:
        """The name that the first column has in a table."""
        return next((name for name in self.names if name in columns), self.theirs[0])

    def values(self, theirs: Row) -> list[Any]:
        """What a row of theirs has in the columns."""
        first = next((theirs[name] for name in self.names if theirs.get(name) is not None), None)
        return [first, *(theirs.get(name) for name in self.theirs[1:])]

    def written(self, row: Row) -> dict[str, Any]:
        """Our value in their columns; the kept originals if they still agree with it."""
        value = row.get(self.ours)
        if value is None:
            return {}
        parts = self._parts(value)
        if self.kept:
            kept = [None if name == self.ours else row.get(name) for name in self.theirs]
            own = tuple(part if k is None else k for k, part in zip(kept, parts, strict=True))
            parts = own if self._parts(self.read(*own)) == parts else parts
        return {name: part for name, part in zip(self.theirs, parts, strict=True) if part is not None}

    def to_keep(self, ours: Any, values: Sequence[Any]) -> dict[str, Any]:
        """The columns of theirs that contain more than ours."""
        if not self.kept:
            return {}
        given = zip(self.theirs, map(structured, values), self._parts(ours), strict=True)
        return {n: v for n, v, part in given if n != self.ours and v is not None and v != part}

    def _parts(self, value: Any) -> tuple[Any, ...]:
        found = self.write(value)
        return tuple(found) if len(self.theirs) > 1 else (found,)


def nothing_more(given: Row, made: dict[str, Any]) -> None:
    """The values of all fields."""


def nothing_to_say(_: Row) -> Iterable[Finding]:
    """All is well."""
    return ()


class Layout(Struct, frozen=True):
    """How a neighbor's row is read and written: field by field, then the parts that need the whole row.

    `likely`, `never` and `test` are signs of the format (`Signs`), besides the sure ones of `about`; `own` are further
    columns, which are passed through.
    `read_rest(theirs, ours)` and `write_rest(ours, theirs)` complete the result of the fields; `more` names further
    columns of theirs that `read_rest` reads, and `places` where in them our columns are. `inspect(theirs)` finds what
    only their own shape shows, by the names of their columns. `older` are columns of theirs that are read and not
    written, those `beside` ours are read and passed through as well.
    """

    about: About
    fields: tuple[Field, ...] = ()
    read_rest: Callable[[Row, dict[str, Any]], None] = nothing_more
    write_rest: Callable[[Row, dict[str, Any]], None] = nothing_more
    more: tuple[str, ...] = ()
    places: Mapping[str, str] = {}
    inspect: Callable[[Row], Iterable[Finding]] = nothing_to_say
    older: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    likely: tuple[Columns, ...] = ()
    never: frozenset[str] = frozenset()
    test: Callable[[Sequence[str]], bool] = always
    own: frozenset[str] = frozenset()

    @property
    def signs(self) -> Signs:
        """The columns by which the format is known."""
        about, known = self.about, self.columns | self.own
        return Signs(about.sure, self.likely, known, self.never, test=self.test, needs=about.needs)

    @property
    def written(self) -> tuple[str, ...]:
        """The columns of theirs that may be written, in order."""
        return (*(name for field in self.fields for name in field.theirs), *self.more)

    @property
    def columns(self) -> frozenset[str]:
        """The columns of theirs that are read."""
        return frozenset(self.written).union(self.older, *(field.other_names for field in self.fields))

    def origins(self, columns: Collection[str] = ()) -> dict[str, str]:
        """Our columns, and the columns of their table that they are read from, which a message has to name."""
        fields = {field.ours: field.name_in(columns) for field in self.fields}
        return {ours: name for ours, name in fields.items() if ours != name} | dict(self.places)

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with our columns in the place of theirs; all others are passed through."""
        made: dict[str, list[str | None]] = {}
        notes: Notes = {}
        for i, theirs in enumerate(_rows(batch, self.columns.union(self.beside))):
            for name, value in self.read_row(theirs).items():
                if value is not None:
                    made.setdefault(name, [None] * batch.num_rows)[i] = jsontext.encode(value).decode()
            if found := list(self.inspect(theirs)):
                notes[i] = found
        ours = {name: field.ours for field in self.fields for name in field.names}
        return replaced(with_notes(batch, notes), made, self.columns, ours)

    def read_row(self, theirs: Row) -> dict[str, Any]:
        """One row of theirs as ours."""
        made: dict[str, Any] = {}
        for field in self.fields:
            values = field.values(theirs)
            if any(v is not None for v in values):
                made[field.ours] = field.read(*values)
                made |= field.to_keep(made[field.ours], values)
        self.read_rest(theirs, made)
        return made

    def write(self, row: Row) -> dict[str, Any]:
        """A canonical row as theirs; absent values have no key."""
        written: dict[str, Any] = {}
        for field in self.fields:
            written |= field.written(row)
        self.write_rest(row, written)
        return written


def _rows(batch: pa.RecordBatch, names: frozenset[str]) -> list[dict[str, Any]]:
    """The cells of these columns as values, row by row. A text cell is a string; its reader determines whether it is
    JSON."""
    cells = {n: c for n in batch.schema.names if n in names and (c := read_cells(batch, n)) is not None}
    columns = {n: [_value(t, c) for t in c.texts] for n, c in cells.items()}
    return [{n: values[i] for n, values in columns.items()} for i in range(batch.num_rows)]


def _value(text: str | None, cells: Cells) -> Any:
    return jsontext.parse_leniently(text) if text is not None and cells.json else text


def replaced(
    batch: pa.RecordBatch, made: Mapping[str, Sequence[str | None]], taken: frozenset[str], ours: Mapping[str, str]
) -> pa.RecordBatch:
    """The batch with columns of JSON texts in the place of the `taken` ones.

    The notes of a reader on a taken column are moved to the column that it became (`ours`), and a cell that it could
    not read stays absent.
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


def of_list(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A reader of the entries of a list; what is no list stays as it is, for a rule to report."""

    def read_all(value: Any) -> Any:
        given = structured(value)
        return [read(entry) for entry in given] if isinstance(given, list) else given

    return read_all


def calls_from(name: str, *given: str) -> Callable[[Any], Any]:
    """A reader of tool calls whose name and arguments have other keys; their further keys are omitted."""
    known = {name: "tool_name", "tool_name": "tool_name", **dict.fromkeys((*given, "tool_input"), "tool_input")}

    def renamed(call: Any) -> Any:
        if not isinstance(call, dict) or "tool_name" not in {known.get(k) for k in call}:
            return call  # by its own keys, for the rule that explains it
        return {known[k]: v for k, v in call.items() if k in known}

    return of_list(renamed)


def calls_to(name: str, given: str) -> Callable[[Any], Any]:
    """The writer for `calls_from`."""
    theirs = {"tool_name": name, "tool_input": given}
    return lambda calls: [{theirs.get(key, key): value for key, value in call.items()} for call in calls]


def as_text(value: Any) -> Any:
    """A value for a column of text: text as it is, of anything else its JSON."""
    return value if value is None or isinstance(value, str) else jsontext.encode(value).decode()


def as_tags(metadata: Any) -> Any:
    """Metadata may hold any JSON there; a tag is text."""
    given = structured(metadata)
    if not isinstance(given, dict):
        return given
    return {k: as_text(v) for k, v in given.items() if v is not None}


def python_lists(*names: str) -> Callable[[Row], Iterator[Finding]]:
    """A function that finds, in columns of lists, text that Python wrote of a list: it is not meant as a document."""

    def inspect(theirs: Row) -> Iterator[Finding]:
        for name in names:
            value = theirs.get(name)
            if isinstance(value, str) and isinstance(structured(value), str):
                finding = written_by_python(value)
                yield from () if finding is None else (replace(finding, column=name),)

    return inspect
