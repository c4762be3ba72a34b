"""The values of a source row that a conversion lost: every path of every cell is accounted for.

    source row ──read──▶ row ──write, read back──▶ row' ──write in the source's form──▶ source row'
         └───────────────────────────── compare path by path ──────────────────────────────┘ → suspects

A suspect is a value of the source that is not in the row that came back. It may only be spelled otherwise (a string
that became a list of messages), so it is put to the test: the value is altered in the source row, and the row is read
again. If nothing changes, no column contains the value. There is no table of the values that a format reads; its reader
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agent_eval_schema.formats.writer import CanonicalRow
from agent_eval_schema.io.arrow import to_columns
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.schema import COLUMNS, JsonValue, columns_of
from agent_eval_schema.text.jsontext import structured
from agent_eval_schema.validation.checked_batch import rows_of
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan

SourceRow = Mapping[str, Any]
Path = tuple[str | int, ...]

ORIGINALS = frozenset(columns_of(JsonValue))

AT_ONCE = 512
"""So many altered rows are read at once."""

ABSENT: Any = object()
DEEPEST = 100
"""No format reads deeper parts one by one: a value at this depth is compared as a whole."""


def unread_values(
    given: Sequence[SourceRow], back: Sequence[SourceRow], plan: Plan, seen: set[tuple[str, type]]
) -> Iterator[tuple[Suspect, frozenset[str]]]:
    """The values of source rows that are not in the rows that came `back`, in the same form, and that are not merely
    spelled otherwise there; each with the canonical columns that depend on it, none if it is not read. `seen` keeps the
    columns whose plain cells are known to be read."""
    read = _Reader(given, plan)
    suspects = [s for i, rows in enumerate(zip(given, back, strict=True)) for s in _missing(i, (), *rows)]
    while suspects:
        found, suspects = suspects, []
        for suspect, columns in read.depending([s for s in found if _cell_type(s) not in seen]):
            if suspect.is_read_whole(columns):
                if columns and _cell_type(suspect)[0]:
                    seen.add(_cell_type(suspect))
                yield suspect, columns
            else:
                suspects += suspect.parts()


class Suspect(Struct, frozen=True):
    """A value of the source: its row (a place among those given), its path, and the value in its place in the row that
    was read back (`ABSENT` if there is none)."""

    row: int
    path: Path
    value: Any
    came: Any

    @property
    def is_changed(self) -> bool:
        """Whether a number or a boolean came back as another one, or as text."""
        return isinstance(self.value, int | float) and isinstance(self.came, int | float | str)

    def is_read_whole(self, columns: frozenset[str]) -> bool:
        """Whether its parts need not be examined one by one: it has none, or none of them was read back, and all are
        read alike: nowhere, or only as a part of an original."""
        alike = not columns or (self.came is ABSENT and columns <= ORIGINALS)
        return alike or not isinstance(self.value, dict | list) or not self.value or len(self.path) >= DEEPEST

    def parts(self) -> Iterator[Suspect]:
        """The parts that did not come back."""
        came = self.came if isinstance(self.came, type(self.value)) else type(self.value)()
        return _missing(self.row, self.path, self.value, came)


def _cell_type(suspect: Suspect) -> tuple[str, type]:
    """The column and the type of a cell that is not a container; for all others a pair that never occurs."""
    plain = len(suspect.path) == 1 and not isinstance(suspect.value, dict | list)
    return (str(suspect.path[0]) if plain else "", type(suspect.value))


def _missing(row: int, path: Path, given: Any, back: Any) -> Iterator[Suspect]:
    """The parts of a value that are not in the one that came back. Spelling of keys (camelCase) does not count."""
    given, back = structured(given), structured(back)
    if len(path) >= DEEPEST:
        if given is not None and _differ(given, back):
            yield Suspect(row, path, given, back)
    elif isinstance(given, Mapping) and isinstance(back, Mapping):
        spelled = {_plain_key(k): v for k, v in back.items() if k not in given}
        for key, value in given.items():
            came = back[key] if key in back else spelled.get(_plain_key(key), ABSENT)
            yield from _missing(row, (*path, key), value, came)
    elif isinstance(given, list) and isinstance(back, list):
        for i, value in enumerate(given):
            yield from _missing(row, (*path, i), value, back[i] if i < len(back) else ABSENT)
    elif given is not None and (_differ(given, back) or isinstance(given, bool) != isinstance(back, bool)):
        yield Suspect(row, path, given, back)


def _differ(given: Any, back: Any) -> bool:
    try:
        return bool(given != back)
    except RecursionError:
        return True


def _plain_key(key: Any) -> str:
    return str(key).replace("_", "").lower()


class _Reader:
    """Reads altered copies of source rows, and returns the canonical columns that then differ."""

    def __init__(self, given: Sequence[SourceRow], plan: Plan) -> None:
        self._given, self._plan = given, plan
        self._as_given: dict[int, CanonicalRow] = {}

    def depending(self, suspects: Sequence[Suspect]) -> Iterator[tuple[Suspect, frozenset[str]]]:
        """Each suspect with the columns that depend on it."""
        for start in range(0, len(suspects), AT_ONCE):
            part = suspects[start : start + AT_ONCE]
            new = sorted({s.row for s in part} - self._as_given.keys())
            rows = self._read([self._given[i] for i in new] + [_altered_at(self._given[s.row], s.path) for s in part])
            self._as_given.update(zip(new, rows, strict=False))
            for suspect, row in zip(part, rows[len(new) :], strict=True):
                before = self._as_given[suspect.row]
                yield suspect, frozenset(name for name in COLUMNS if before[name] != row[name])

    def _read(self, rows: Sequence[SourceRow]) -> list[CanonicalRow]:
        _, columns = to_columns([rows_of(check_batch(batch_of_rows(list(rows)), self._plan))])
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _altered_at(value: Any, path: Path) -> Any:
    """A copy of a value in which everything at the path is another value of its type."""
    if not path:
        return _altered(value)
    value = structured(value)
    if isinstance(value, list):
        return [_altered_at(v, path[1:]) if i == path[0] else v for i, v in enumerate(value)]
    return {k: _altered_at(v, path[1:]) if k == path[0] else v for k, v in value.items()}


def _altered(value: Any, depth: int = 0) -> Any:
    """Another value of the same type, in every part."""
    value = structured(value)
    has_parts = bool(value) and depth < DEEPEST
    if isinstance(value, Mapping):
        return {k: _altered(v, depth + 1) for k, v in value.items()} if has_parts else {"~": "~"}
    if isinstance(value, list):
        return [_altered(v, depth + 1) for v in value] if has_parts else ["~"]
    return next((change(value) for kind, change in _CHANGES if isinstance(value, kind)), "~")


_CHANGES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (bool, lambda value: not value),
    (int, lambda value: value + 1),
    (float, lambda value: value + 1.0 if abs(value) < 1e15 else 1.0),
    (str, lambda value: f"{value}~"),
)
