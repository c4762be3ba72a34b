"""Documents: an evalset, a page of an API, a configuration, in each of which are lists whose entries become rows.

How many rows an entry makes is for each format to define, so nothing is counted here. What holds for all of them: if a
list ends one entry later, the rows are the same, and there is one more at least, or one more issue.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.cells.notes import notes_on
from agent_eval_schema.formats.format import Nested
from agent_eval_schema.formats.nested import _nesting_of, expand_rows
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.io.records import from_list
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.text.jsontext import structured
from tests.fuzz.inputs import Case
from tests.helpers.mutations import VALUES, Row, copied

_NESTED = {id(nested): form.name for form in FORMATS for nested in form.nested}
_LISTS = (
    *("eval_cases", "evalCases", "data", "evaluations", "evaluationResults", "evaluation_results"),
    *dict.fromkeys(path for form in FORMATS for nested in form.nested for path in nested.lists if "." not in path),
)
_BELOW = {
    "langfuse": ("data", "examples"),
    "azure": ("conversation", "messages"),
    "vertex-genai": ("agent_data", "turns"),
}
"""The lists that are in an object: its column, and their key."""

_INNER = {"adk": "conversation", "agentcore": "turns"}
"""The lists in the entries of a document, whose entries are rows, too; to other formats they are a cell."""


class Entry(Struct, frozen=True):
    """An entry of a list of rows, or a document: the way to its list, and its number there."""

    keys: tuple[Any, ...]
    number: int


class Read(Struct, frozen=True):
    """Documents as they are read: the texts of their rows, without the number of turns, and how many issues they
    have."""

    rows: list[str]
    issues: int


def documents_of(case: Case) -> Iterator[list[Row]]:
    """Two documents whose entries are the rows of a case, some of them no objects: in one form of all, or in all for a
    case that was found before, and has no seed."""
    chance = case.chance
    for make in [chance.choice(_FORMS)] if case.seed else _FORMS:
        entries: list[Any] = [*copied(case.rows), *chance.sample(VALUES, chance.choice((0, 0, 1, 3)))]
        chance.shuffle(entries)
        half = len(entries) // 2
        yield [make(entries[:half]), make(entries[half:])]


_FORMS: tuple[Callable[[list[Any]], Row], ...] = (
    *[partial(lambda key, entries: {key: entries}, key) for key in _LISTS],
    lambda entries: {"data": entries, "meta": {"page": 1}},
    lambda entries: {"data": entries, "name": "a session"},
    lambda entries: {"evaluations": entries, "nextPageToken": "more"},
    lambda entries: {"eval_cases": [{"eval_id": "a", "conversation": entries}]},
    lambda entries: {"evalCases": [{"evalId": "a", "conversation": [entry]} for entry in entries]},
    lambda entries: {"scenarios": [{"scenario_id": "a", "turns": entries}]},
    lambda entries: {"prompts": ["{{q}}"], "tests": entries[:2], "scenarios": entries[2:]},
    lambda entries: {"scenarios": [{"config": entries[:2], "tests": entries[2:]}], "tests": entries},
    *[partial(lambda key, list_of, entries: {key: {list_of: entries}}, *names) for names in _BELOW.values()],
    lambda entries: {"conversation": {"messages": [_said(e, i) for i, e in enumerate(entries)]}},
    lambda entries: {"agent_data": {"turns": [{"events": [{"author": "user", "content": e}]} for e in entries]}},
)


def _said(entry: Any, number: int) -> Any:
    """A message: of the user, of the agent, and so on."""
    return {**entry, "role": ("user", "assistant")[number % 2]} if isinstance(entry, dict) else entry


def what_is_lost(documents: Sequence[Row], chance: random.Random, most: int) -> Iterator[str]:
    """What is wrong with the rows of some entries, and of some documents."""
    nesting = nesting_of(documents)
    if nesting is None:
        return
    found = list(_entries(documents, nesting))
    chosen = [(entry, as_text) for entry in found for as_text in (False, True)]
    for entry, as_text in chance.sample(chosen, min(most, len(chosen))):
        before, after = (_up_to(documents, entry, more) for more in (0, 1))
        if not _is_read(after):  # before its lists are texts, in which the depth does not show
            continue
        if as_text:
            before, after = (_with_text(cut, nesting) for cut in (before, after))
        if not nesting_of(before) is nesting_of(after) is nesting:
            continue
        less, more = _read(before), _read(after)
        name = ".".join(key for key in entry.keys if isinstance(key, str)) or "the file"
        if entry.keys[-1:] == ("messages",):  # an answer is no row more: its question had one
            if more == less:
                yield f"an entry of {name} ({name_of(nesting)}) changes no row and has no issue"
        elif len(more.rows) <= len(less.rows) and more.issues <= less.issues:
            yield f"an entry of {name} ({name_of(nesting)}) is no row and has no issue"
        elif entry.keys[-1:] != ("turns",) and not _is_part(less.rows, more.rows):
            yield f"an entry of {name} ({name_of(nesting)}) changes other rows"


def _is_read(documents: list[Row]) -> bool:
    """Whether no text has a lone surrogate, and nothing is nested too deep: such a document is one row, and one issue,
    whatever is in it."""
    try:
        return not is_too_deep(json.dumps(documents, ensure_ascii=False).encode())
    except (UnicodeEncodeError, RecursionError):
        return False


def nesting_of(documents: Sequence[Row]) -> Nested | None:
    """How the documents are read; None if they are rows."""
    return _nesting_of(from_list(list(documents)), False) if documents else None


def name_of(nesting: Nested) -> str:
    """The format whose documents these are."""
    return _NESTED.get(id(nesting), "columns")


def _entries(documents: Sequence[Row], nesting: Nested) -> Iterator[Entry]:
    """The documents, and the entries of the lists that are rows in this format; none that has an empty list: there may
    be no row in it."""
    keys = [key for key in _LISTS if key in (*nesting.parts, *nesting.lists)]
    for i, document in enumerate(documents):
        if _has_none_empty(document):
            yield Entry((), i)
        for key in keys:
            for number, entry in enumerate(_listed(document.get(key))):
                if _has_none_empty(entry):
                    yield Entry((i, key), number)
                inner = _INNER.get(name_of(nesting))
                if inner and isinstance(entry, dict):  # a list without an entry may be a row of its own
                    numbers = range(1, len(_listed(entry.get(inner))))
                    yield from (Entry((i, key, number, inner), at) for at in numbers)
        column, below = _BELOW.get(name_of(nesting), ("", ""))
        home = document.get(column)
        if isinstance(home, dict) and column in nesting.parts:
            numbers = range(len(_listed(home.get(below))))
            yield from (Entry((i, column, below), at) for at in numbers if _has_none_empty(home[below][at]))


def _has_none_empty(value: Any) -> bool:
    return not isinstance(value, dict) or all(structured(entry) != [] for entry in value.values())


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _up_to(documents: Sequence[Row], entry: Entry, more: int) -> list[Row]:
    """The documents, of which the list of an entry ends before it, or with it; no document with an empty list."""
    made: list[Any] = copied(list(documents))
    if entry.number + more == 0 and entry.keys:
        del made[entry.keys[0]]
        return made
    holder: Any = made
    for key in entry.keys:
        holder = holder[key]
    del holder[entry.number + more :]
    return made


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _with_text(documents: list[Row], nesting: Nested) -> list[Row]:
    """The documents as a CSV file has them: their lists are JSON text."""
    names = {path.partition(".")[0] for path in (*nesting.parts, *nesting.lists)}
    return [
        {
            k: json.dumps(v, ensure_ascii=False) if k in names and isinstance(v, dict | list) else v
            for k, v in document.items()
        }
        for document in documents
    ]


def _read(documents: list[Row]) -> Read:
    rows, issues = [], 0
    for batch in expand_rows(from_list(documents)).batches():
        issues += sum(map(len, notes_on(batch).values()))
        rows += [json.dumps({**row, "turns": None}, sort_keys=True) for row in native_rows(batch)]
    return Read(rows, issues)


def _is_part(some: list[str], rows: list[str]) -> bool:
    """Whether these rows are among the others, in their order."""
    others = iter(rows)
    return all(row in others for row in some)
