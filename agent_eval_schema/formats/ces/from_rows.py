"""Canonical rows → evaluations: the way back of rows.py.

    rows ──by id──▶ of one evaluation ──by chat──▶ chains ──turn after turn──▶ evaluations

Rows `x#1`, `x#2` become one evaluation `x` again, as long as the chat of each row goes on from the one before; any
other row becomes an evaluation of its own. The columns of a row take precedence: the part of the evaluation that is
kept with them (`EVALUATION_KEY`) is used as far as it agrees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces.parts import (
    EVALUATION_KEY,
    EXPECTATIONS_KEY,
    HEAD,
    HEAD_TAGS,
    Object,
    groups_by,
    head_by,
    head_tags,
    identity,
    objects,
)
from agent_eval_schema.formats.ces.turns import (
    Turn,
    expectations_of,
    expected_by,
    expected_messages,
    row_turn,
    scenario_by,
    span_columns,
    turns_of,
)
from agent_eval_schema.formats.writer import named


class Assembled(Struct, frozen=True):
    """An evaluation made from rows, its groups (which only the CSV has), and for the place of each row the number of
    its turn (0 for a scenario, which has none)."""

    evaluation: dict[str, Any]
    groups: list[str]
    turns: dict[int, int]


def evaluations_by(rows: Sequence[Object]) -> list[Assembled]:
    """The evaluations of canonical rows, in the order of their first rows. An evaluation that its rows do not give
    whole is called as its row."""
    rows = named(rows)
    return [one for places in _together(rows) for one in _assembled(rows, places)]


def evaluation_by(rows: Sequence[Object]) -> dict[str, Any]:
    """The one evaluation of rows that are all of it."""
    return next(_assembled(rows, range(len(rows)))).evaluation


def turns_by(row: Object, before: chat.Messages) -> list[Turn]:
    """The turns of the columns of a row, after the messages of the rows before it."""
    return turns_of(row["request"]["messages"][len(before) :], row)


# ---------------------------------------------------------------------------------------------------------------------
# which rows are of one evaluation
def _together(rows: Sequence[Object]) -> list[list[int]]:
    """The places of rows whose IDs are those of the turns of one evaluation, in the order of the turns."""
    found: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        base, number = numbered(row)
        alone = number is None or _part(row, "scenario") is not None
        key = place if alone else (base, (row.get("tags") or {}).get("display_name"))
        found.setdefault(key, []).append(place)
    return [run for places in found.values() for run in _runs(rows, places)]


def _runs(rows: Sequence[Object], places: list[int]) -> Iterator[list[int]]:
    """The places by the numbers of their turns; where a number comes twice, each run of rising numbers by itself."""
    numbers = [numbered(rows[place])[1] or 0 for place in places]
    if len(set(numbers)) == len(numbers):
        yield [place for _, place in sorted(zip(numbers, places, strict=True))]
        return
    starts = [0, *(i for i, (a, b) in enumerate(pairwise(numbers), start=1) if b <= a), len(places)]
    for start, end in pairwise(starts):
        yield places[start:end]


def numbered(row: Object) -> tuple[str | None, int | None]:
    """The id of a row's evaluation, and the number of its turn."""
    request_id = row.get("request_id")
    base, mark, number = str(request_id or "").rpartition("#")
    is_numbered = bool(mark and base) and number.isdecimal() and number.isascii()
    return (base, int(number)) if is_numbered else (None if request_id is None else str(request_id), None)


# ---------------------------------------------------------------------------------------------------------------------
# evaluations of them
class _Chain(Struct):
    """Rows whose chats continue each other: their turns so far, the number of each row's turn, and the chat."""

    turns: list[Turn] = []
    numbers: dict[int, int] = {}
    messages: chat.Messages = []

    def goes_on_with(self, row: Object) -> bool:
        return bool(row["request"]["messages"][: len(self.messages)] == self.messages)

    def add(self, place: int, row: Object) -> None:
        span, expected = _span(row, self.messages)
        self.numbers[place] = len(self.turns) + row_turn(span) + 1
        self.turns += span
        self.messages = [*row["request"]["messages"], *expected_messages(expected)]


def _assembled(rows: Sequence[Object], places: Sequence[int]) -> Iterator[Assembled]:
    first = rows[places[0]]
    scenario = _part(first, "scenario")
    if scenario is not None:
        fields = {"scenario": scenario_by(first, scenario)}
        yield Assembled(_with_head(fields, [first], first["request_id"]), groups_by(_tags(first)), {places[0]: 0})
        return
    chains: list[_Chain] = []
    for place in places:
        if not chains or not chains[-1].goes_on_with(rows[place]):
            chains.append(_Chain())
        chains[-1].add(place, rows[place])
    whole = len(chains) == 1 and all(numbered(rows[p])[1] in (None, n) for p, n in chains[0].numbers.items())
    for chain in chains:
        members = [rows[place] for place in chain.numbers]
        name = (numbered(members[0])[0] if whole else None) or members[0]["request_id"]
        evaluation = _with_head({"golden": {"turns": chain.turns}}, members, name, whole)
        yield Assembled(evaluation, groups_by(_tags(members[0])), chain.numbers)


def _span(row: Object, before: chat.Messages) -> tuple[list[Turn], Iterable[Object]]:
    """The turns of a row, and the expectations of its own turn: the original ones unless the columns differ from
    them."""
    original = objects((_part(row, "golden") or {}).get("turns"))
    if original and _view(span_columns(before, original)) == _view(row):
        return original, expectations_of(original[row_turn(original)])
    return turns_by(row, before), list(expected_by(row))


def _view(row: Object) -> list[Any]:
    """The turns that follow from the columns of a row."""
    custom = row.get("custom_expected")
    others = custom.get(EXPECTATIONS_KEY) if isinstance(custom, Mapping) else None
    columns = (row.get(name) for name in ("request", "expected_response", "reference_trajectory"))
    return [*columns, others, _tags(row).get("response_agent")]


def _with_head(fields: dict[str, Any], rows: Sequence[Object], name: str, whole: bool = True) -> dict[str, Any]:
    """The evaluation of that name; with the part that was kept with its rows, unless ID and tags differ from it. An
    incomplete one gets a name of its own."""
    tags = {k: v for k, v in _tags(rows[0]).items() if k in HEAD_TAGS and (whole or k != "display_name")}
    evaluation = {**head_by(name, tags), **fields}
    for row in rows:
        kept = {k: v for k, v in (_part(row) or {}).items() if k not in ("golden", "scenario")}
        candidate = {**evaluation, **kept}
        if not whole or (identity(candidate), head_tags(candidate)) != (name, tags):
            kept = {k: v for k, v in kept.items() if k not in HEAD}
        golden = {k: v for k, v in (_part(row, "golden") or {}).items() if k != "turns"}
        evaluation = {**evaluation, **kept, **({"golden": {**evaluation["golden"], **golden}} if golden else {})}
    return evaluation


def _part(row: Object, field: str | None = None) -> dict[str, Any] | None:
    """The part of an evaluation that was kept with a row, or a field of it that is an object."""
    custom = row.get("custom_expected")
    part = custom.get(EVALUATION_KEY) if isinstance(custom, Mapping) else None
    if isinstance(part, dict) and field is not None:
        part = part.get(field)
    return part if isinstance(part, dict) else None


def _tags(row: Object) -> dict[str, str]:
    return dict(row.get("tags") or {})
