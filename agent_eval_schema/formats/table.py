"""Tables: a neighbor's format as one declaration, from which it is detected, read and written.

    Table(catalog.INSPECT, …, entries=(
        Entry("input", "request", write=question_or_messages),          the same value under another name
        Entry("target", "expected_response", first, …),                 another shape of the same thing
        Entry("scores.answer[0].text", "response"),                     a value inside a column
    ))

A column of theirs that contains more than its entries read is passed through as `<format>_<column>`, and is written
again if it still agrees with our columns. So a row comes back as it was, and in another format nothing of it is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.catalog import About, Columns
from agent_eval_schema.formats.layout import Layout, Row, nothing_more, nothing_to_say, same
from agent_eval_schema.formats.writer import RowWriter
from agent_eval_schema.issues import Finding, Rule
from agent_eval_schema.rules.reading import NOT_A_LIST, NOT_A_ROW
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import structured

Step = str | int


class Entry(Struct, frozen=True):
    """One place of theirs, `path`, for one column of ours. `read` converts their value (None: there is none for us),
    `write` a canonical value. `others` are paths that are read where the first has no value."""

    path: str
    ours: str
    read: Callable[[Any], Any] = same
    write: Callable[[Any], Any] = same
    others: Columns = ()

    def value(self, theirs: Row) -> Any:
        """Our value for a row of theirs."""
        for path in (self.path, *self.others):
            given = value_at(theirs, path)
            found = None if given is None else self.read(given)
            if found is not None:
                return found
        return None


class Table(Struct, frozen=True):
    """A flat format. `likely` and `never` are signs of it (`Signs`), besides the sure ones of `about`; `page` is its
    documentation; `own` are further columns, which are passed through.

    `read_rest(theirs, ours)` and `write_rest(ours, theirs)` complete what the entries made; `more` are the columns that
    they read, and `unkept` those of which no original is kept. `inspect` may look at the `inspected` columns, too;
    `marks` are further columns that are written, by which the rows are known. `instead_of_request`,
    `instead_of_response`, `outputs` and `given` are those of a `Format`; `cells` and `texts` are those of a `Writer`.
    """

    about: About
    page: str
    entries: tuple[Entry, ...]
    likely: tuple[Columns, ...] = ()
    never: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    more: Columns = ()
    unkept: Columns = ()
    marks: Columns = ()
    read_rest: Callable[[Row, dict[str, Any]], None] = nothing_more
    write_rest: Callable[[Row, dict[str, Any]], None] = nothing_more
    inspect: Callable[[Row], Any] = nothing_to_say
    inspected: Columns = ()
    instead_of_request: Columns = ()
    instead_of_response: Columns = ("request",)
    outputs: Columns = ("response", "trace")
    given: Columns = ()
    cells: RowWriter | None = None
    texts: Columns = ()

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.about.name

    @property
    def columns(self) -> Columns:
        """The columns of theirs that are read and written."""
        paths = (path for entry in self.entries for path in (entry.path, *entry.others))
        return tuple(dict.fromkeys((*map(_column, paths), *self.more)))

    @property
    def own_columns(self) -> frozenset[str]:
        """The columns that are passed through, and the originals."""
        return self.own.union(map(self.kept, self.columns))

    @property
    def layout(self) -> Layout:
        """How its rows are read and written."""
        columns = self.columns
        return Layout(
            self.about,
            read_rest=self._read,
            write_rest=self._write,
            more=columns,
            places={e.ours: e.path for e in reversed(self.entries)},
            inspect=self.inspect,
            beside=(*map(self.kept, columns), *self.inspected),
            likely=self.likely,
            never=self.never,
            own=self.own,
        )

    def kept(self, column: str) -> str:
        """The name under which a column of theirs is passed through."""
        return f"{self.name.replace('-', '_')}_{column}"

    # -----------------------------------------------------------------------------------------------------------------
    def _read(self, theirs: Row, made: dict[str, Any]) -> None:
        made |= self._values(theirs)
        written = self._written(made)
        for column in self.columns:
            own = structured(theirs.get(column))
            if own is not None and own != written.get(column) and column not in self.unkept:
                made[self.kept(column)] = own

    def _values(self, theirs: Row) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for entry in self.entries:
            if made.get(entry.ours) is None and (value := entry.value(theirs)) is not None:
                made[entry.ours] = value
        self.read_rest(theirs, made)
        return made

    def _write(self, row: Row, written: dict[str, Any]) -> None:
        made = self._made(row)
        kept = {c: structured(row[self.kept(c)]) for c in self.columns if row.get(self.kept(c)) is not None}
        if kept:
            made = self._with_originals(row, made, kept)
        written |= made

    def _made(self, row: Row) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for entry in self.entries:
            value = row.get(entry.ours)
            part = None if value is None else entry.write(value)
            if part is not None:
                put(written, entry.path, part)
        self.write_rest(row, written)
        return written

    def _written(self, made: Row) -> dict[str, Any]:
        """The row of theirs for values that were read and not decoded yet."""
        try:
            return self._made(_as_canonical(made))
        except (TypeError, KeyError, AttributeError, ValueError, IndexError):  # invalid values, which rules report
            return {}

    def _with_originals(self, row: Row, made: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
        """The row with the originals that agree with ours: all of them, or one by one; then without what these hold."""
        if self._agrees({**made, **kept}, row):
            made = {**made, **kept}
        else:
            for column, own in kept.items():
                if self._agrees({**made, column: own}, row):
                    made = {**made, column: own}
        for column in [c for c in self.columns if made.get(c) and c not in kept]:
            rest = {c: v for c, v in made.items() if c != column}
            if self._agrees(rest, row):
                made = rest
        return made

    def _agrees(self, theirs: Row, row: Row) -> bool:
        """Whether our columns are what is read of these."""
        try:
            found = self._values(theirs)
        except (TypeError, KeyError, AttributeError, ValueError, IndexError):
            return False
        names = {entry.ours for entry in self.entries}.union(found) - {"inputs", "outputs", "expectations"}
        found, ours = _as_canonical(found), _as_canonical(row)
        return all(without_none(found.get(n)) == without_none(ours.get(n)) for n in names)


def _as_canonical(made: Row) -> dict[str, Any]:
    """The row with a request in messages."""
    request = structured(made.get("request"))
    if isinstance(request, str):
        request = {"messages": chat.user_message(request)}
    elif isinstance(request, list):
        request = {"messages": request}
    return {**made, "request": request} if request is not None else dict(made)


def without_none(value: Any) -> Any:
    """The value without the keys that have none, and without the empty inputs of calls."""
    if isinstance(value, dict):
        return {k: without_none(v) for k, v in value.items() if v is not None and (k, v) != ("tool_input", {})}
    return [without_none(v) for v in value] if isinstance(value, list) else value


# ---------------------------------------------------------------------------------------------------------------------
# paths
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def _steps(path: str) -> Iterator[Step]:
    for number, key in _STEP.findall(path):
        yield int(number) if number else key


def _column(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def value_at(row: Any, path: str) -> Any:
    """The value at a path, such as `modelResponses[0].response`. Where an object or a list is expected and there is
    something else, that: a rule reports it."""
    for step in _steps(path):
        row = structured(row)
        if isinstance(step, int):
            if not isinstance(row, list):
                return row
            row = row[step] if step < len(row) else None
        else:
            if not isinstance(row, Mapping):
                return row
            row = row.get(step)
        if row is None:
            return None
    return row


def put(row: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a path; with a value that is there already it is joined (lists, objects), else that one stays."""
    steps: list[Any] = list(_steps(path))
    at: Any = row
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int):
            at.extend({} for _ in range(step + 1 - len(at)))
        if following is not None:
            new: Any = [] if isinstance(following, int) else {}
            if isinstance(at, list) and not at[step]:
                at[step] = new
            at = at.setdefault(step, new) if isinstance(at, dict) else at[step]
        elif isinstance(at, list):
            at[step] = value
        elif isinstance(at.get(step), list) and isinstance(value, list):
            at[step] = [*at[step], *value]
        elif isinstance(at.get(step), dict) and isinstance(value, dict):
            at[step] = {**value, **at[step]}
        else:
            at.setdefault(step, value)


# ---------------------------------------------------------------------------------------------------------------------
# shapes that several tables share
def text_only(value: Any) -> Any:
    """A text; a value of another type is not ours."""
    return value if isinstance(value, str) and isinstance(structured(value), str) else None


def text_or_chat(value: Any) -> Any:
    """A request that is a text, or a list of messages."""
    given = structured(value)
    return {"messages": given} if isinstance(given, list) else value


def all_of(values: Any) -> Sequence[Any]:
    """The entries of a list, or none."""
    found = structured(values)
    return found if isinstance(found, list) else ()


def objects_of(value: Any, path: str) -> tuple[list[Any], list[Finding]]:
    """The objects of a list at a path, and an issue for each entry that is none, or for the value if it is no list."""
    given = structured(value)
    if not isinstance(given, list):
        return [], [_other(NOT_A_LIST, path, "a list of objects", value)]
    objects, unread = [], []
    for i, entry in enumerate(given):
        if isinstance(structured(entry), dict):
            objects.append(entry)
        else:
            unread.append(_other(NOT_A_ROW, f"{path}[{i}]", "an object", entry))
    return objects, unread


def _other(rule: Rule, path: str, expected: str, value: Any) -> Finding:
    hint = "Give the file that it names." if isinstance(value, str) else ""
    return Finding(rule, f"expected {expected}, got {describe(value)}", path=path, hint=hint)
