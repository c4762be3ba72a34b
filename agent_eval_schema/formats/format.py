"""Format: a format of evaluation data as one declaration, by which it is described, detected, read and written.

    INSPECT = Format(
        name="inspect", …,
        signs=Signs(sure=(("input", "target"),)),
        fields=(
            Field("input", "request", write=question_or_messages),       the same value under another name
            Field("target", "expected_response", first_target),          another shape of the same value
            Field("scores.answer[0].text", "response"),                  a value inside a column
        ),
    )

`read` converts a value into that of the canonical column (an unknown value is returned unchanged: our own rules report
it), `write` converts a canonical value into theirs. Neither can lose a value without a report: a conversion reads back
its output, and each difference is a loss (conversion/losses.py).

A column that contains more than its fields read is passed through as `<format>_<column>`, and is written again if it
still agrees with the canonical columns. So a row comes back as it was, and in another format nothing of it is lost.
"""

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Literal

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.edit import with_columns
from agent_eval_schema.cells.notes import Notes, reading_problems, rename_notes, with_notes
from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.columns import Typed
from agent_eval_schema.formats.detection import Columns, Signs
from agent_eval_schema.io.atomic import write_text
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.metrics.catalog import PLATFORMS
from agent_eval_schema.rule import Severity
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import column_of, put, structured, value_at
from agent_eval_schema.text.privacy import or_warning

# --- How a format is written: row by row into columns of its own, or all rows at once as one document.
CanonicalRow = Mapping[str, Any]

POSITION = "__position__"
"""The key under which a canonical row has its place in the source while it is converted."""

RowWriter = Callable[[CanonicalRow], dict[str, Any]]


class Written(Struct, frozen=True):
    """The output of a writer."""

    data: Any
    back: Any
    """The output as it is read back for verification, in `format`."""
    format: str
    places: Sequence[int | None]
    """The place of each row in `back`; None: it is missing."""
    losses: Sequence[Issue] = ()
    """Those that the writer reports; `row` is the place in the rows."""


class Writer(Struct, frozen=True):
    """The writer of a format: `row` makes one row of the `columns`; or `document` one thing of all rows, for `save`."""

    row: RowWriter | None = None
    columns: Columns = ()
    document: Callable[[Sequence[CanonicalRow]], Written] | None = None
    save: Callable[[Any, str], object] | None = None
    endings: tuple[str, ...] = (".json", ".jsonl", ".ndjson", ".yaml", ".yml")
    """The file extensions of a document: in a file of another known one it could not be read."""
    of_rows: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any] | list[dict[str, Any]]] | None = None
    """The document of rows of the `columns` that is written to a .json file, if the platform loads one there."""
    cells: RowWriter | None = None
    """Converts a row into the cells of a CSV file, if lists are not JSON there."""
    texts: Columns = ()
    """Columns whose text is not parsed: in a file whose cells are text, any other value comes back as its JSON text."""
    replaces: Columns = ()
    """Passed-through columns whose values are in other columns now."""
    executes: Mapping[str, re.Pattern[str]] = {}
    """Columns, and what the platform executes in their texts, though another format means it literally."""
    executes_at: str = ""
    """What is in every text that the platform executes: rows without it are not looked through."""
    marks: Mapping[str, Any] = {}
    """Columns that mark the format, and their values where a row has none; `write_rest` adds those of None."""


def save_json(value: Any, path: str) -> None:
    """Write one JSON value."""
    write_text(path, msgspec.json.format(jsontext.encode(value), indent=2).decode() + "\n")


def save_lines(values: Any, path: str) -> None:
    """Write a JSON value per line."""
    write_text(path, "".join(jsontext.encode(value).decode() + "\n" for value in values))


def with_ids(rows: Sequence[CanonicalRow]) -> list[dict[str, Any]]:
    """The rows with an ID each: a row without ID gets one from its number that no other row has."""
    taken = {row.get("request_id") for row in rows}
    result = []
    for place, row in enumerate(rows):
        name, again = f"row {place}", 1
        while name in taken:
            again += 1
            name = f"row {place} ({again})"
        result.append({**row, "request_id": row.get("request_id") or name})
        taken.add(result[-1]["request_id"])
    return result


Row = Mapping[str, Any]

Head = Callable[[], Sequence[Row]]
"""The first rows of a table, which are read when they are needed."""

Detect = Callable[[Sequence[str], Head], bool]
"""Whether rows are of a kind: by the columns, and by the first rows if the columns do not suffice."""

Unfolded = tuple[dict[str, Any], Sequence[Finding]]
"""A row that is made of a document, and its issues."""

Unfold = Callable[[Row], Iterable[Unfolded]]
"""The rows that are made of one row."""

Inspected = Iterator[tuple[int, str | None, list[Finding]]]
"""Of each row of a batch its position, its name and its issues."""

Inspect = Callable[[pa.RecordBatch, Container[int]], Inspected]
"""Inspects a batch, without the records that are not rows."""


def identity(value: Any) -> Any:
    return value


class Field(Struct, frozen=True):
    """A place in a row of the format, for a canonical column. Of several for one the first with a value counts."""

    path: str
    """Where the value is, such as `modelResponses[0].response`."""
    column: str
    read: Callable[..., Any] = identity
    """Converts the value; None means no value for the column."""
    write: Callable[[Any], Any] = identity
    """Converts a canonical value; None writes nothing."""
    others: Columns = ()
    """Paths that are read where the first has no value, for example older names."""
    second: str = ""
    """A further column of the same value: `read` takes both values, and `write` returns both."""

    @property
    def columns(self) -> Columns:
        """The columns of the format that the value may be in, the second one apart."""
        return tuple(map(column_of, (self.path, *self.others)))

    def value(self, row: Row) -> Any:
        """The canonical value for a row of the format."""
        if self.second:
            first = (row[name] for name in (self.path, *self.others) if row.get(name) is not None)
            values = next(first, None), row.get(self.second)
            return None if values == (None, None) else self.read(*values)
        for path in (self.path, *self.others):
            value = value_at(row, path)
            result = None if value is None else self.read(value)
            if result is not None:
                return result
        return None

    def written(self, row: Row) -> Iterator[tuple[str, Any]]:
        """The paths and values for a canonical row."""
        value = None if (own := row.get(self.column)) is None else self.write(own)
        parts = value if self.second and value is not None else (value,)
        return ((path, part) for path, part in zip((self.path, self.second), parts, strict=False) if part is not None)


class Nested(Struct, frozen=True):
    """A kind of file whose rows contain others: conversations, lists of cases, pages of an API."""

    detect: Detect
    unfold: Unfold | Callable[[], Unfold]
    """Makes rows of one such row."""
    parts: Columns = ()
    """The columns that may be JSON text: only an object or a list can occur there."""
    columns: Columns = ()
    """The columns that exist even without a row, by which the format is known."""
    lists: Columns = ()
    """Paths whose value, if there is any, has to be a list of objects."""
    ends: Callable[[Row], Sequence[Finding]] = lambda _: ()
    """The issues of a file whose last row this is."""
    key: str = ""
    """A key without which, anywhere in the first of the `parts`, a row is none of the kind, and is not looked into."""
    counts: bool = False
    """Whether `unfold` counts over the rows of a file: then it is a function that makes the function, per file."""
    apart: bool = False
    """Whether the turns of a conversation are rows of their own where the format is written, which is a loss."""


def lists_in(*keys: str, unfold: Unfold, columns: Columns, detect: Detect | None = None) -> Nested:
    """Documents with lists of objects under these keys, by which they are known if nothing else detects them."""
    detect = detect or (lambda names, _: not set(keys).isdisjoint(names))
    return Nested(detect, unfold, parts=keys, columns=columns, lists=keys)


class Format(Struct, frozen=True, kw_only=True, dict=True):
    """A format of evaluation data."""

    name: str
    title: str
    """What it is called in lists of formats, in the spelling of its owner."""
    summary: str
    """A noun phrase, with the most important columns."""
    page: str
    """The page that documents it."""
    system: str = "mlflow"
    """The platform whose metrics a report on such rows shows (`metrics/platforms.json`): that of the format's name, if
    there is one."""
    signs: Signs
    """The columns by which a table is known; `reads` and `passthrough_columns` are added."""
    truth_of: str = "Ground truth of a row belongs to the answer to the last question of its request."
    """Which turn of a conversation the ground truth belongs to, in Markdown."""
    also_read: str = ""
    """Further shapes of files that are read, in Markdown."""
    example: Any = None
    """A row of a format that is not written; the example of any other is what its writer makes."""

    # reading and writing
    fields: tuple[Field, ...] = ()
    passthrough_columns: Collection[str] = ()
    """Further columns of the platform, which are passed through without an issue."""
    request_columns: Columns = ()
    """Those of them that the platform gives the agent with the request: every other platform hides them from it."""
    read_rest: Callable[[Row, dict[str, Any]], None] = lambda *_: None
    """Completes the canonical row that the fields gave for a row of the source."""
    write_rest: Callable[[Row, dict[str, Any]], None] = lambda *_: None
    """Completes the row that the fields gave for a canonical row."""
    extra_columns: Columns = ()
    """Further columns that `read_rest` and `write_rest` read and write."""
    read_only_columns: Columns = ()
    """Further columns that are only read."""
    places: Mapping[str, str] = {}
    """Where canonical columns are that no field names, for messages."""
    inspect_row: Callable[[Row], Iterable[Finding]] = lambda _: ()
    """The issues that only the row of the format shows."""
    inspected: Columns = ()
    """Further columns that `inspect_row` reads."""
    originals: Columns | None = None
    """The columns that are passed through as `<format>_<column>` if they contain more than is read of them, and written
    again if that still agrees; None: all columns that are written."""
    read: Callable[[pa.RecordBatch], pa.RecordBatch] = identity
    """Reads a batch, for a format without fields."""
    nested: tuple[Nested, ...] = ()
    """The files whose rows contain rows of the format."""
    writer: Writer | None = Writer()
    """How rows are written, where that is more than the fields; None if conversions do not write the format."""

    # what its rows need
    cell_readers: Mapping[str, Callable[[Any, str], Typed]] = {}
    """Readers of the canonical columns in whose cells the keys of the format may be left."""
    instead_of_request: Columns = ()
    instead_of_response: Columns = ("request",)
    """The columns one of which a row may have in place of its request or response."""
    outputs: Columns = ("response", "trace")
    """The columns that an agent produces."""
    one_kind: tuple[str, str, str] = ("", "", "")
    """A field (`SUPPORT_FIELDS`) that all rows of a file have or none has, as the platform loads rows of one kind, and
    the names of a row with and without it."""
    adapt_issue: Callable[[Finding], Finding | None] | None = None
    """An issue that our rules found, as it is on rows of the format: with another hint, of another rule, or none. An
    error stays one, as its row could not be read."""
    calls_of: Literal["turn", "conversation", "session"] = "turn"
    """What the platform expects calls of: of the last `turn` of a row, of its whole `conversation`, or of all turns of
    the `session`, on the row of its last turn. Those of a `session` only are so in canonical rows, too."""
    inspect: Inspect | None = None
    """Inspects a batch of rows that are not evaluation rows, and have no metrics; also for unknown columns."""
    prepare: Callable[[Source], Source] = identity
    """Makes the source whose batches are validated."""
    remarks: Callable[[Sequence[pa.RecordBatch]], list[Finding]] | None = None
    """The issues of the data as a whole that its first rows show."""

    def __post_init__(self) -> None:
        """Complete what follows from the name and the fields: platform, signs, reader and writer."""
        if self.name in PLATFORMS:
            force_setattr(self, "system", self.name)
        if not self.reads:
            return
        signs = self.signs.columns.union(self.reads, self.passthrough_columns)
        force_setattr(self, "signs", replace(self.signs, columns=signs))
        force_setattr(self, "read", self._read_batch)
        writer = self.writer
        if writer is not None and writer.document is None:
            columns = tuple(dict.fromkeys((*self.columns, *writer.marks)))
            replaces = (*writer.replaces, *self._originals.values())
            force_setattr(self, "writer", replace(writer, row=self.write_row, columns=columns, replaces=replaces))

    @cached_property
    def columns(self) -> Columns:
        """The columns that are written, in order."""
        most = None if self.originals is None else 1
        of_fields = [name for field in self.fields for name in (*field.columns[:most], field.second) if name]
        return tuple(dict.fromkeys((*of_fields, *self.extra_columns)))

    @cached_property
    def reads(self) -> frozenset[str]:
        """The columns that are read: they become canonical columns."""
        of_fields = (name for field in self.fields for name in field.columns)
        return frozenset((*self.columns, *self.read_only_columns, *of_fields))

    @property
    def has_canonical(self) -> bool:
        """Whether canonical columns may occur in such a table, as it has none of its own: then messages name these."""
        return not self.reads

    @property
    def is_rows(self) -> bool:
        """Whether its rows are evaluation rows."""
        return self.inspect is None

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The canonical columns that the agent gets: those in the column of the request."""
        with_request = {column_of(field.path) for field in self.fields if field.column == "request"}
        return frozenset(field.column for field in self.fields if column_of(field.path) in with_request)

    @cached_property
    def own_columns(self) -> frozenset[str]:
        """The columns besides the canonical ones that are no unknown columns."""
        return self.reads.union(self.passthrough_columns, self._originals.values())

    @cached_property
    def _originals(self) -> dict[str, str]:
        """The columns whose original is kept, and the name under which it is passed through."""
        prefix = self.name.replace("-", "_")
        return {column: f"{prefix}_{column}" for column in (self.columns if self.originals is None else self.originals)}

    def adapted(self, finding: Finding) -> Finding | None:
        """An issue of our rules, as `adapt_issue` has it; as it was where that raises an exception."""
        if self.adapt_issue is None:
            return finding
        what = f"{finding.rule.code} is not adapted to {self.name}"
        other = or_warning(self.adapt_issue, finding, default=finding, what=what)
        is_error = other is not None and other.rule.severity is Severity.ERROR
        return other if is_error or finding.rule.severity is not Severity.ERROR else finding

    def origins(self, columns: Collection[str] = ()) -> dict[str, str]:
        """The canonical columns that are elsewhere in a table with these columns, and where: for messages."""
        places = {
            field.column: next((p for p in (field.path, *field.others) if column_of(p) in columns), field.path)
            for field in reversed(self.fields)
        } | dict(self.places)
        own = columns if self.has_canonical else ()
        return {column: place for column, place in places.items() if column != place and column not in own}

    # --- reading
    def _read_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with canonical columns in the place of those of the format; all others are passed through.

        The issues of a cell that could not be read are moved to the column that it became, which stays absent.
        """
        result: dict[str, list[str | None]] = {}
        notes: Notes = {}
        for i, source in enumerate(_rows(batch, self.reads.union(self._originals.values(), self.inspected))):
            for name, value in self.read_row(source).items():
                if value is not None:
                    result.setdefault(name, [None] * batch.num_rows)[i] = jsontext.encode_text(value)
            if findings := list(self.inspect_row(source)):
                notes[i] = findings
        batch = rename_notes(with_notes(batch, notes), self._renamed)
        unread = {(row, f.column) for row, problems in reading_problems(batch).items() for f in problems}
        cells = {n: [None if (i, n) in unread else t for i, t in enumerate(texts)] for n, texts in result.items()}
        return with_columns(batch, cells, self.reads)

    @cached_property
    def _renamed(self) -> dict[str, str]:
        """The columns that become one canonical column as a whole."""
        return {} if self.originals is None else {name: f.column for f in self.fields for name in f.columns}

    def read_row(self, source: Row) -> dict[str, Any]:
        """One row of the format as a canonical row, and the originals that contain more."""
        result = self._values(source)
        if self._originals:
            written = self._written_of(result)
            for column, name in self._originals.items():
                own = structured(source.get(column))
                if own is not None and own != written.get(column):
                    result[name] = own
        return result

    def _values(self, source: Row) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for field in self.fields:
            if result.get(field.column) is None and (value := field.value(source)) is not None:
                result[field.column] = value
        self.read_rest(source, result)
        return result

    def _written_of(self, row: Row) -> dict[str, Any]:
        """The row of the format for values that were read and not decoded yet."""
        try:
            return self.write_fields(_with_messages(row))
        except (TypeError, KeyError, AttributeError, ValueError, IndexError):  # invalid values, which rules report
            return {}

    # --- writing
    def write_row(self, row: Row) -> dict[str, Any]:
        """A canonical row as one of the format; absent values have no key."""
        result = self.write_fields(row)
        own = {c: structured(row[name]) for c, name in self._originals.items() if row.get(name) is not None}
        return self._with_originals(row, result, own) if own else result

    def write_fields(self, row: Row) -> dict[str, Any]:
        """The same, of the canonical columns alone."""
        written: dict[str, Any] = {}
        for field in self.fields:
            for path, part in field.written(row):
                put(written, path, part)
        self.write_rest(row, written)
        marks = {} if self.writer is None else self.writer.marks
        for column, value in marks.items():
            if value is not None:
                written.setdefault(column, copy(value))
        return written

    def _with_originals(self, row: Row, source: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        """The row with the originals that agree with ours: all of them, or one by one; then without what these hold."""
        if self._agrees({**source, **own}, row):
            source = {**source, **own}
        else:
            for column, value in own.items():
                if self._agrees({**source, column: value}, row):
                    source = {**source, column: value}
        for column in [c for c in self.columns if source.get(c) and c not in own]:
            rest = {c: v for c, v in source.items() if c != column}
            if self._agrees(rest, row):
                source = rest
        return source

    def _agrees(self, source: Row, row: Row) -> bool:
        """Whether a row of the format is read as the canonical row."""
        passed = {name: row[name] for name in self.passthrough_columns if name in row}
        try:
            values = self._values({**passed, **source})
        except (TypeError, KeyError, AttributeError, ValueError, IndexError):
            return False
        read = {field.column for field in self.fields}.union(values, self.places)
        values, canonical = _with_messages(values), _with_messages(row)
        return all(_stated(values.get(n)) == _stated(canonical.get(n)) for n in read - _WHOLE)


_WHOLE = frozenset({"inputs", "outputs", "expectations"})
"""The originals among the canonical columns."""


def kept_of(form: Format, name: str, original: Any) -> dict[str, Any]:
    """What the original with this name of a passed-through column keeps if lists in it are edited."""
    passed = {other: own for own, other in form._originals.items() if own in form.passthrough_columns}
    column = passed.get(name)
    paths = [path.split(".") for field in form.fields for path in (field.path, *field.others)]
    read = {path[1]: path[2] for path in paths if len(path) == 3 and path[0] == column}
    own = structured(original)
    if not read or not isinstance(own, dict) or not all(isinstance(own.get(key, {}), dict) for key in read):
        return {}
    rest = {key: {k: v for k, v in own[key].items() if k != read[key]} if key in read else own[key] for key in own}
    return {key: part for key, part in rest.items() if part or key not in read}


def _rows(batch: pa.RecordBatch, names: frozenset[str]) -> list[dict[str, Any]]:
    """The cells of these columns as values, row by row. A text cell is a string, which its reader may parse."""

    def value_of(text: str | None, cells: Cells) -> Any:
        return jsontext.parse_leniently(text) if text is not None and cells.json else text

    cells = {n: c for n in batch.schema.names if n in names and (c := read_cells(batch, n)) is not None}
    columns = {n: [value_of(t, c) for t in c.texts] for n, c in cells.items()}
    return [{n: values[i] for n, values in columns.items()} for i in range(batch.num_rows)]


def _with_messages(row: Row) -> dict[str, Any]:
    request = structured(row.get("request"))
    if isinstance(request, str):
        request = {"messages": chat.user_message(request)}
    elif isinstance(request, list):
        request = {"messages": request}
    return {**row, "request": request} if request is not None else dict(row)


def _stated(value: Any) -> Any:
    """The value without the keys that have none, and without the empty inputs of calls."""
    if isinstance(value, dict):
        return {k: _stated(v) for k, v in value.items() if v is not None and (k, v) != ("tool_input", {})}
    return [_stated(v) for v in value] if isinstance(value, list) else value
