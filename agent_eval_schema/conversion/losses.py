"""The losses of a conversion: one issue per field that was read back differently, or not read at all.

Every path of every cell is accounted for:

    source row ──read──▶ row ──write, read back──▶ row' ──write in the source's form──▶ source row'
         └───────────────────────────── compare path by path ──────────────────────────────┘ → suspects

A suspect is a value of the source that is not in the row that came back. It may only be spelled otherwise (a string
that became a list of messages), so it is put to the test: the value is altered in the source row, and the row is read
again. If nothing changes, no column contains the value. There is no table of the values that a format reads; its reader
does. Rows of one shape are read alike, and so are items of a list that have the same shape and neighbors of the same
shapes, the first and the last two apart: the value at a path is put to the test in the first of them. Many values of a
row are altered at once, then those of the half in which there is a difference, and so on.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from numbers import Integral, Number
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.conversion.loss_log import LossLog
from agent_eval_schema.formats.ces.inspection import expected_calls
from agent_eval_schema.formats.ces.rows import by_json_names
from agent_eval_schema.formats.format import POSITION, CanonicalRow, Row, Written, kept_of
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.arrow import to_rows
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.metrics.catalog import BIT
from agent_eval_schema.metrics.support import fields_of, metrics_of, missing_needs
from agent_eval_schema.rule import Rule, Severity
from agent_eval_schema.rules import RULES, conversion
from agent_eval_schema.rules.columns import DROPPED_FIELD, NOT_FINITE
from agent_eval_schema.runtime.tables import packaged
from agent_eval_schema.schema import COLUMNS, JsonValue, columns_of
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.edits import edits
from agent_eval_schema.text.jsontext import column_of, structured
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.ces_turns import CesEvaluation
from agent_eval_schema.validation.checked_batch import COLUMNS_OF_FIELD, rows_of, verdict
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan, make_plan

SOURCE = "__source__"
"""The key under which it has what its format has read of the source row, without the trace."""

TAKEN = "__taken__"
"""The key under which it has the names of the originals that come from the trace."""

PRESENCE = "__presence__"
"""The key under which it has its presence mask: the fields that metrics read."""

REPORTED = "__reported__"
"""The key under which it has the codes of its issues."""

BESIDE = (POSITION, SOURCE, TAKEN, PRESENCE, REPORTED)
"""The keys beside the columns of a row."""

_NOT_PASSED = frozenset((*COLUMNS, *BESIDE, "eval_set_id"))

_NOTHING: CanonicalRow = dict.fromkeys(COLUMNS)
"""A row that did not come back."""


class Losses:
    """The losses of a conversion, found by reading back its output."""

    def __init__(self, target: str, plan: Plan, *, keep: bool = True, kind: bool | None = None) -> None:
        self.issues: list[Issue] = []
        self.refused = 0
        self._keep, self._kind = keep, kind
        self.log = LossLog()
        self._target, self._plan = target, replace(plan, columns=True, can_hold_objects=True)
        self._form = find_format(target)
        self._unread = UnreadValues(self._plan)
        self.masks: Counter[tuple[int, int]] = Counter()

    def compare(self, rows: Sequence[CanonicalRow], written: Written) -> set[int]:
        """Note what does not come back of these rows. Returns the numbers of those that the target rejects, which are
        noted and excluded."""
        back, refused = self._read_back(rows, written), set[int]()
        self.issues += [replace(loss, row=rows[loss.row or 0][POSITION]) for loss in written.losses]
        for number, (row, (read_row, mask, of_row)) in enumerate(zip(rows, back, strict=True)):
            if (of_row or self._kind is not None) and (why := self._refusal(of_row, mask)):
                self.issues += of_row
                self.add(conversion.LEFT_OUT, row, None, why)
                refused.add(number)
                continue
            self._compare_row(row, read_row)
            self.issues += of_row
            self.masks[row[PRESENCE], mask] += 1
            for column, value in row.items():  # the columns that are passed through; the keys of a document are none
                if column in _NOT_PASSED or value is None or value != value:  # NaN is in a frame for no number
                    continue
                other = read_row.get(column)
                if value not in (other, read_row.get(PREFIX + column)) and not is_default(column, value):
                    # of an edited original, and of numbers that JSON does not have, the parts are losses
                    rest = kept_of(self._form, column, value)
                    is_named = rest != {} and rest == kept_of(self._form, column, other)
                    is_number = NOT_FINITE.code in row.get(REPORTED, ()) and _as_json(value) == _as_json(other)
                    if not is_named and not is_number:
                        self.add(conversion.NO_PLACE, row, column, f"{self._target} has no place for {describe(value)}")
        self.refused += len(refused)
        pairs = enumerate(zip(rows, back, strict=True))
        if accepted := [(row, read_row) for i, (row, (read_row, *_)) in pairs if i not in refused and SOURCE in row]:
            self._compare_sources([row for row, _ in accepted], [{**row, **read_row} for row, read_row in accepted])
        return refused

    def refusals(self, rows: Sequence[CanonicalRow], written: Written) -> set[int]:
        """The numbers of the rows that the target rejects, without what else is lost."""
        back = enumerate(self._read_back(rows, written))
        return {number for number, (_, mask, issues) in back if self._refusal(issues, mask)}

    def _read_back(self, rows: Sequence[CanonicalRow], written: Written) -> list[tuple[CanonicalRow, int, list[Issue]]]:
        """Each row as the target is read, its presence mask, and what the rules of the target report of it."""
        read: list[tuple[CanonicalRow, int, list[Row] | None]] = []
        if rows:
            source = open_source(written.back, format=written.format, outputs="generated")
            for _, checked in CheckedRun(source, make_plan(source)).reread():
                verdicts = (verdict(checked, name).to_pylist() for name in ("presence", "issues"))
                read += zip(to_rows(rows_of(checked)), *verdicts, strict=True)
        if any(place is not None and place >= len(read) for place in written.places):  # they are read as something else
            read = []
        back, is_own = [], written.format == self._target
        for row, place in zip(rows, written.places, strict=True):
            read_row, mask, notes = (_NOTHING, 0, None) if place is None or not read else read[place]
            back += [(read_row, mask, list(self._reported(row, notes)) if notes and is_own else [])]
        return back

    def _reported(self, row: CanonicalRow, notes: Iterable[Row]) -> Iterator[Issue]:
        """The errors that the rules of the target report of a row, and the fields that its class drops, which were not
        reported of the source."""
        for note in notes:
            rule = RULES[note["code"]]
            is_new = rule.code in self._plan.codes and rule.code not in row.get(REPORTED, ())
            if is_new and (rule.severity is Severity.ERROR or rule is DROPPED_FIELD):
                place = note["column"], note["path"], note["hint"] or ""
                yield Finding(rule, note["message"], *place).issue(row[POSITION], row["request_id"])

    def _refusal(self, issues: Iterable[Issue], mask: int) -> str:
        """Why the loader of the target rejects a row, or a file with it; empty if it does not, or the row is kept."""
        if self._keep:
            return ""
        for issue in issues:
            if issue.severity is Severity.ERROR:
                return f"{self._target} rejects the row: {issue.code} {issue.name}"
        if self._kind is None or not mask:
            return ""
        field, having, lacking = self._form.one_kind
        if bool(mask & BIT[field]) == self._kind:
            return ""
        expected, got = (having, lacking) if self._kind else (lacking, having)
        return f"{self._target} loads rows of one kind: expected `{expected}` as other rows, got `{got}`"

    def _compare_sources(self, rows: Sequence[CanonicalRow], back: Sequence[CanonicalRow]) -> None:
        """Note the values of the source rows that were read back differently, or were not read at all."""
        writer = find_format(self._plan.format).writer
        if writer is None:
            return
        if writer.row is not None:
            spelled = [writer.row(row) for row in back]
        else:
            assert writer.document is not None
            document = writer.document(back)
            turns = [row for batch in open_source(document.back).batches() for row in native_rows(batch)]
            spelled = [{} if place is None else turns[place] for place in document.places]
        for suspect, columns in self._unread.among([row[SOURCE] for row in rows], spelled):
            if is_default(str(suspect.path[-1]), suspect.value):
                continue
            row, read_row, path = rows[suspect.row], back[suspect.row], suspect.path
            if not columns:
                self.unread(row[POSITION], _written(path), suspect.value)
            # a number or a boolean came back as another one, or as text
            elif isinstance(suspect.value, int | float) and isinstance(suspect.back, int | float | str):
                message = f"{describe(suspect.value)} would be read back as {describe(suspect.back)}"
                self.add(conversion.CHANGED, row, str(path[0]), message, _written(path))
            elif columns <= ORIGINALS and any(row[name] != read_row[name] for name in columns):
                message = f"{self._target} has no place for {describe(suspect.value)}"
                self.add(conversion.NO_PLACE, row, str(path[0]), message, _written(path))

    def _compare_row(self, row: CanonicalRow, back: CanonicalRow) -> None:
        for column in [c for c in COLUMNS if row[c] is not None and row[c] != back[c]]:
            if column in ORIGINALS and column not in row.get(TAKEN, ORIGINALS):
                continue  # of originals of the source's own the paths that are lost are named one by one
            value, other = row[column], back[column]
            if other is None and value != {}:
                self.add(conversion.NO_PLACE, row, column, f"{self._target} has no place for {describe(value)}")
            elif other is not None:
                message, path = _difference(column, value, other)
                self.add(conversion.CHANGED, row, column, message, path)

    def metrics(self, systems: Iterable[str]) -> LostMetrics:
        """The metrics that rows supported and their converted rows do not."""
        lossy = {column or code for column, code in self.log.fields}
        return lost_metrics(self.masks, lossy, self._plan.outputs, systems)

    def flush(self) -> LossLog:
        """All losses; `issues` has those of the rows since, in the order in which they were found."""
        self.log.extend(self.issues)
        self.issues = []
        return self.log

    def unread(self, row: int, path: str, value: Any) -> None:
        """Note the values of a row of the source that no canonical column can represent."""
        what = f"{_OF_TURNS[path]}, {value}," if path in _OF_TURNS else describe(value)
        self.add(conversion.NOT_READ, {POSITION: row}, column_of(path), f"{what} has no column", path)

    def add_excluded(self, rows: Sequence[int], kind: str) -> None:
        """Note the rows (or evaluations, or turns) that are invalid."""
        for row in rows:
            self.add(conversion.LEFT_OUT, {POSITION: row}, None, f"the {kind} is invalid and was not converted")

    def add(self, rule: Rule, row: CanonicalRow, column: str | None, message: str, path: str | None = None) -> None:
        """Note a loss of a row, or of no row."""
        self.issues.append(Finding(rule, message, column, path).issue(row.get(POSITION), row.get("request_id")))


_OF_TURNS = {"turn": "the place of the turn in its conversation", "turns": "the number of turns of its conversation"}
"""What is in the rows of a conversation, and under no key of its file."""

_as_json = msgspec.json.Encoder(enc_hook=repr).encode


LostMetrics: TypeAlias = "dict[str, dict[str, int]]"
"""By column (or code, of what concerns rows as a whole) the metrics that are lost with it, and in how many rows."""


def lost_metrics(
    masks: Mapping[tuple[int, int], int], lossy: Collection[str], outputs: str, systems: Iterable[str]
) -> LostMetrics:
    """Of rows by the fields that they have before and after. Without a column that has losses, no metric is
    lost."""
    by_column: LostMetrics = {}
    metrics = [metric for system in dict.fromkeys(systems) for metric in metrics_of(system)]
    for (before, after), rows in masks.items():
        if outputs == "provided" and after & BIT["session"]:  # as the rows were read, with the answers in them
            after |= BIT["recorded_session"]
        filled = {names[0] for field, names in COLUMNS_OF_FIELD.items() if before & BIT[field] and len(names) == 1}
        for metric in metrics:
            if not missing_needs(metric, before, outputs):
                fields = fields_of(missing_needs(metric, after, outputs))
                columns = {c for field in fields if before & BIT[field] for c in COLUMNS_OF_FIELD[field]}
                for column in columns & filled & set(lossy):
                    counts = by_column.setdefault(column, {})
                    counts[metric.name] = counts.get(metric.name, 0) + rows
    return by_column


def is_default(name: str, value: Any) -> bool:
    """Whether a library writes a value where there is none: nothing in a list or an object, and no time."""
    is_zero = not isinstance(value, bool) and isinstance(value, int | float) and value == 0
    return value in ([], {}) or (is_zero and re.search("time|_at$|At$", name) is not None)


PREFIX = "passed_through."
"""The prefix for a column that is passed through a format in which its name has another meaning."""


def _difference(column: str, value: Any, other: Any) -> tuple[str, str]:
    """The difference of the value that was read back, in words, and its path: the first place of several."""
    differences, count = edits(column, value, other)
    first, others = differences[0], len(differences) - 1 + count
    more = f" (and in {others} more {'places' if others > 1 else 'place'})" if others else ""
    before, after = first.text("old"), first.text("new")
    if after is None:
        return f"`{visible(before)}` would not be read back{more}", first.path
    if before is None:
        return f"`{visible(after)}` would be read back besides{more}", first.path
    return f"`{visible(before)}` would be read back as `{visible(after)}`{more}", first.path


Path = tuple[str | int, ...]


def _written(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


ORIGINALS = frozenset(columns_of(JsonValue))

BATCH_SIZE = 512
"""Altered rows that are read at once."""

MOST_ALONE = 16
"""Suspects of a row that are read one by one."""

MOST_REMEMBERED = 20_000
"""Places whose dependents are remembered."""

ABSENT: Any = object()
DEEPEST = 100
"""No format reads deeper parts one by one: a value at this depth is compared as a whole."""


class UnreadValues:
    """Finds the values of source rows that were lost; it remembers what it has learned of earlier rows."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        is_of_turns = find_format(plan.format).own_columns >= {"turn", "history"}
        self._of_other_rows = ("history",) if is_of_turns else ()  # the turns before it are rows, too
        self._depending: dict[Place, tuple[frozenset[str], bool]] = {}

    def among(self, source_rows: Sequence[Row], back: Sequence[Row]) -> Iterator[tuple[Suspect, frozenset[str]]]:
        """The values of source rows that are not in the rows that came `back`, in the same form; each with the
        canonical columns that depend on it, none if it is not read."""
        if len(self._depending) > MOST_REMEMBERED:
            self._depending.clear()
        lists, left_out = Lists(), self._of_other_rows
        pairs = enumerate(zip(source_rows, back, strict=True))
        suspects = [s for i, pair in pairs for s in _missing(i, (), *pair, lists) if s.path[0] not in left_out]
        shapes = {row: _shape(source_rows[row]) for row in {suspect.row for suspect in suspects}}
        unaltered: dict[int, CanonicalRow] = {}
        while suspects:
            candidates = [
                ((shapes[s.row], lists.path_of_first(s.row, s.path) if s.path[1:] else s.path), s) for s in suspects
            ]
            untested = {place: s for place, s in reversed(candidates) if place not in self._depending}
            self._probe(source_rows, unaltered, untested)
            suspects = []
            for place, suspect in candidates:
                columns, is_whole = self._depending[place]
                value = suspect.value
                # read alike in all parts: nowhere, only as a part of an original, or all in a column of their own
                alike = not columns or (suspect.back is ABSENT and columns <= ORIGINALS)
                alike |= is_whole and not isinstance(suspect.back, type(value))
                if alike or not isinstance(value, dict | list) or not value or len(suspect.path) >= DEEPEST:
                    yield suspect, columns
                else:
                    parts_back = suspect.back if isinstance(suspect.back, type(value)) else type(value)()
                    suspects += _missing(suspect.row, suspect.path, value, parts_back, lists)

    def _probe(
        self, source_rows: Sequence[Row], unaltered: dict[int, CanonicalRow], suspects: Mapping[Place, Suspect]
    ) -> None:
        """Read a copy of the source row of each suspect in which its value is altered, and remember which canonical
        columns then differ from those of the `unaltered` row, and whether the value is a part of one of these cells.

        Of many suspects of a row, the values are altered at once. If that makes no difference, or if each column that
        differs has all of the changes, it is so for each of them; otherwise those of each half are altered.
        """
        of_rows: dict[int, Group] = {}
        for place, suspect in suspects.items():
            of_rows.setdefault(suspect.row, []).append((place, suspect))
        groups = deque(part for group in of_rows.values() for part in _apart(group))
        while groups:
            part = [groups.popleft() for _ in range(min(BATCH_SIZE, len(groups)))]
            numbers = [group[0][1].row for group in part]
            new = sorted(set(numbers) - unaltered.keys())
            altered = [_altered_at(source_rows[i], [s.path for _, s in g]) for i, g in zip(numbers, part, strict=True)]
            read = check_batch(batch_of_rows([*(source_rows[i] for i in new), *altered]), self._plan)
            rows = to_rows(rows_of(read))
            unaltered.update(zip(new, rows, strict=False))
            for group, number, changed, row in zip(part, numbers, altered, rows[len(new) :], strict=True):
                source, before = source_rows[number], unaltered[number]
                columns = frozenset(name for name in COLUMNS if before[name] != row[name])
                if len(group) > 1 and columns:
                    changes = _changes(source, changed)
                    if any(_changes(before[name], row[name]) != changes for name in columns):
                        middle = len(group) // 2
                        groups.extend((*_apart(group[:middle]), *_apart(group[middle:])))
                        continue
                cells = [structured(before[name]) for name in columns - ORIGINALS]
                for place, suspect in group:
                    around = _values_on(source, suspect.path) if cells else ()
                    is_whole = any(value in cells for value in around if isinstance(value, dict | list))
                    self._depending[place] = columns, is_whole


Place: TypeAlias = "tuple[bytes, Path]"
"""The shape of a row, and a path in it."""

Group: TypeAlias = "list[tuple[Place, Suspect]]"
"""Suspects of one row whose values are altered at once."""


def _apart(group: Group) -> list[Group]:
    """The group, or, if it is small, each of its suspects alone."""
    return [group] if len(group) > MOST_ALONE else [[one] for one in group]


def _shape(row: Any) -> bytes:
    """What the reading of a row, or of a part of one, may depend on: its keys, the types of its values, the words that
    may be a role or a type, and of a number its sign, its fraction and a single digit (a label); not which text it has
    in a place."""
    try:
        return hashlib.blake2b(msgspec.json.encode(_form(row)), digest_size=16).digest()
    except (ValueError, TypeError, ArithmeticError, RecursionError):  # a shape of its own
        return uuid4().bytes


def _form(value: Any) -> Any:
    kind = value.__class__
    if kind is str:
        if not _COUNTS.fullmatch(value):
            return _TEXT
        return _NUMBER.sub(lambda number: _kind_of_number(_parsed(number[0])), value) if value[1:] else value
    if kind is dict:
        return [[key, _form(inner)] for key, inner in value.items()]
    if kind is list or kind is tuple:
        return list(map(_form, value))
    if value is None or kind is bool:
        return value
    return _kind_of_number(value) if isinstance(value, Number) else kind.__name__


def _parsed(digits: str) -> float:
    return int(digits) if digits.lstrip("-").isdecimal() else float(digits)


def _kind_of_number(number: Any) -> str:
    """What of a number its reading may depend on: 0.0 is no relevant label, and 0.7 no count."""
    whole = int(abs(number)) if abs(number) < 10 else "00"
    fraction = "" if isinstance(number, Integral) else ".5" if number % 1 else ".0"
    return f"{'-' if number < 0 else ''}{whole}{fraction}"


_TEXT = 0
"""In the place of a text that does not count."""
_COUNTS = re.compile(r'[^\d\s"\\/\x00-\x1f]{0,32}|\d(?:\.0)?|\W.*', re.DOTALL)
"""A text that counts: a word, a digit, and what begins with another character."""
_NUMBER = re.compile(r"(?<=[:,\[])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[,\]}])")


class Suspect(Struct, frozen=True):
    """A value of a source row, by its path, and the value that was read back in its place (or `ABSENT`)."""

    row: int
    path: Path
    value: Any
    back: Any


class Lists:
    """The lists on the way to suspects, by their rows and paths."""

    def __init__(self) -> None:
        self.items: dict[tuple[int, Path], list[Any]] = {}
        self._firsts: dict[tuple[int, Path], list[int]] = {}

    def path_of_first(self, row: int, path: Path) -> Path:
        """A path by the first items that are read as those on it are."""
        steps: Iterator[str | int] = (
            self._first(row, path[:depth])[step] if isinstance(step, int) else step for depth, step in enumerate(path)
        )
        return tuple(steps)

    def _first(self, row: int, path: Path) -> list[int]:
        if (firsts := self._firsts.get((row, path))) is None:
            firsts = self._firsts[row, path] = first_alike(self.items[row, path])
        return firsts


def first_alike(items: Sequence[Any]) -> list[int]:
    """Per item of a list the first one that is read alike."""
    shapes = [b"", *map(_shape, items), b""]
    places: dict[tuple[bytes, ...], list[int]] = {}
    for place, around in enumerate(zip(shapes, shapes[1:], shapes[2:], strict=False)):
        places.setdefault(around, []).append(place)
    firsts = list(range(len(items)))
    for alike in places.values():
        for place in alike[2:-2]:
            firsts[place] = alike[2]
    return firsts


def _missing(row: int, path: Path, value: Any, back: Any, lists: Lists) -> Iterator[Suspect]:
    """The parts of a value that are not in the one that came back. Spelling of keys (camelCase) does not count."""
    value = structured(value) if value.__class__ is str else value
    back = structured(back) if back.__class__ is str else back
    parts: Iterable[tuple[str | int, Any, Any]]
    if value.__class__ is dict and back.__class__ is dict and len(path) < DEEPEST:
        absent = [k for k in value if k not in back]
        spelled = {_plain_key(k): v for k, v in back.items() if k not in value} if absent else {}
        parts = [(k, v, back[k] if k in back else spelled.get(_plain_key(k), ABSENT)) for k, v in value.items()]
    elif value.__class__ is list and back.__class__ is list and len(path) < DEEPEST:
        parts = [(i, *pair) for i, pair in enumerate(zip_longest(value, back[: len(value)], fillvalue=ABSENT))]
        lists.items[row, path] = value
    else:
        if value is not None and (value != back or isinstance(value, bool) != isinstance(back, bool)):
            yield Suspect(row, path, value, back)
        return
    for key, part, part_back in parts:
        if part.__class__ is not str or part_back.__class__ is not str or part != part_back:
            yield from _missing(row, (*path, key), part, part_back, lists)


def _plain_key(key: Any) -> str:
    return str(key).replace("_", "").lower()


def _values_on(value: Any, path: Path) -> Iterator[Any]:
    """The values on the way to a place, and the one that is there."""
    for step in path:
        value = structured(value)[step]
        yield structured(value)


def _altered_at(value: Any, paths: Iterable[Path]) -> Any:
    """A copy of a value in which everything at the paths is another value of its type."""
    inner: dict[str | int, list[Path]] = {}
    for path in paths:
        if not path:
            return _altered(value)
        inner.setdefault(path[0], []).append(path[1:])
    value = structured(value)
    if isinstance(value, list):
        return [_altered_at(v, inner[i]) if i in inner else v for i, v in enumerate(value)]
    return {k: _altered_at(v, inner[k]) if k in inner else v for k, v in value.items()}


def _changes(before: Any, after: Any) -> list[str]:
    """The leaves of an altered value, or of a copy of it, that are others than before, in no order."""
    leaves, stack = [], [(before, after)]
    while stack:
        before, after = map(structured, stack.pop())
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            stack += ((before.get(key), value) for key, value in after.items())
        elif isinstance(before, list) and isinstance(after, list):
            stack += zip_longest(before, after)
        elif before != after:
            leaves.append(repr(after))
    return sorted(leaves)


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


# --- results of Customer Engagement Suite, which do not consist of rows
ReadKeys = Literal[True] | Mapping[str, Any]
"""The keys that are read of a value; lists are looked through, of True everything is read."""


def unread_fields(evaluation: CesEvaluation) -> Iterator[tuple[str, Any]]:
    """The fields of a result that no row represents: the JSON path and the value. The rows of an evaluation represent
    all of it; fields that a trajectory cannot represent are reported."""
    named = by_json_names(evaluation.evaluation)
    if not named.keys() & {"golden", "scenario"}:
        yield from unread(named, _READ)
    for path, call in expected_calls(named):
        if isinstance(call, dict) and call.get("args") is None:
            yield f"{path}.args", "any arguments"


def unread(value: Any, shape: ReadKeys, path: str = "") -> Iterator[tuple[str, Any]]:
    """The path and the value of everything below a value that its shape does not read."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from unread(item, shape, f"{path}[{i}]")
    elif isinstance(value, dict) and shape is not True:
        for key, part in value.items():
            below = f"{path}.{key}" if path else key
            if key in shape:
                yield from unread(part, shape[key], below)
            elif part not in (None, "", [], {}):
                yield below, part


_READ = packaged(__package__, "result_fields.json", dict[str, Any])
"""What `formats/ces/rows.py` reads of a result."""
