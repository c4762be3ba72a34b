"""Which format a table has: the signs of every format are compared with its columns, and the best claim wins.

    Signs(sure=(("user_input",), ("question", "contexts")), columns=RAGAS.columns)

    {user_input, response, team}   claimed by ragas; databricks is second by `response`, which is not a sign
    {question, label}              claimed by no format: the closest formats are named, and the columns that they need

A sure claim wins over a likely one, then the claim that accounts for more columns, then the format that comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.text.describe import first_names
from agent_eval_schema.text.describe import names as listed

Columns = tuple[str, ...]


def each_with(column: str, *others: str) -> tuple[Columns, ...]:
    """The groups of a column with each of the others."""
    return tuple((column, other) for other in others)


class Signs(Struct, frozen=True, dict=True):
    """The columns by which a table is known as one of a format.

    A claim is sure if the table has all columns of a group of `sure`; it is likely if it has those of a group of
    `likely` or, for a `complete` format, no unknown column. It is excluded if the table has a column of `never` or
    fails `test`. `columns` are all other columns of the format; `needs` are the columns that a file of the format must
    have where its rows are made from it (formats/nested.py); `spelled` is true if misspelled columns are read.
    `note` is what a user must know of a table that is likely one.
    """

    sure: tuple[Columns, ...]
    likely: tuple[Columns, ...] = ()
    columns: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    complete: bool = False
    test: Callable[[Sequence[str]], bool] = lambda _: True
    needs: Columns = ()
    spelled: bool = False
    note: str = ""

    @property
    def groups(self) -> tuple[Columns, ...]:
        """The groups of columns by which a file of the format is known: any of them suffices."""
        return (self.needs,) if self.needs else self.sure

    @cached_property
    def known(self) -> frozenset[str]:
        return self.columns.union(*self.sure)

    def allow(self, names: Sequence[str]) -> bool:
        """Whether a table with these columns can be one of the format."""
        return self.never.isdisjoint(names) and self.test(names)

    def claim(self, names: Sequence[str]) -> Claim | None:
        """What makes a table with these columns one of the format."""
        if not self.allow(names):
            return None
        for groups in (self.sure, self.likely):
            signs = {name for group in groups if set(group) <= set(names) for name in group}
            if signs:
                known = [n for n in names if n in self.known or n in signs]
                return Claim(tuple(sorted(known, key=lambda name: name not in signs)), groups is self.sure)
        return Claim(tuple(names), False) if self.complete and names and self.known.issuperset(names) else None

    def missing(self, names: Sequence[str]) -> Columns:
        """The columns that the table lacks of the group to which it is nearest."""
        nearest = min(self.sure, key=lambda group: (-len(set(group).intersection(names)), len(group)))
        return self.needs or tuple(n for n in nearest if n not in names)

    def nearness(self, names: Sequence[str]) -> tuple[int, int, int]:
        """The distance to the format's tables: by its signs, by all columns, by the missing columns of a group."""
        signs = max(len(set(group).intersection(names)) for group in self.sure)
        return signs, len(self.known.intersection(names)), -len(self.missing(names))


class Claim(Struct, frozen=True):
    """The columns of a table that a format has, its signs before the others, and whether these are sure."""

    columns: Columns
    sure: bool


class Detection(Struct, frozen=True):
    """The format of a table (None: no format claims it), and the reason in words."""

    format: str | None
    reason: str


Formats = Mapping[str, Signs]
"""The signs of each format, by its name."""


def detect_among(formats: Formats, names: Sequence[str]) -> Detection:
    """The format of a table with these columns; by their spelling if no format claims them as they are."""
    names = tuple(dict.fromkeys(names))
    claims, how = _claims(formats, names), "the"
    if not claims:
        near = [c for n, s in formats.items() if s.spelled for c in _claims({n: s}, _respelled(s, names))]
        claims, how = [(n, replace(claim, sure=False)) for n, claim in near], "close match for the"
    if not claims:
        return Detection(None, f"no format has the {_columns(names)}")
    (name, claim), *others = claims
    note = "" if claim.sure or not formats[name].note else f", {formats[name].note}"
    return Detection(name, f"{how} {_columns(claim.columns)}{note}; {_second(formats, names, name, claim, others)}")


def _second(
    formats: Formats, names: Sequence[str], first: str, claim: Claim, others: Sequence[tuple[str, Claim]]
) -> str:
    """The format that the table has if it does not have the first one, and how to select it. Sure signs may leave none;
    without them it is the closest one, by the columns that it needs."""
    nearest = [n for n in _nearest(formats, names) if n != first]
    shared = [(n, tuple(name for name in names if name in formats[n].known)) for n in nearest]
    candidates = [(n, c.columns) for n, c in others] + [(n, columns) for n, columns in shared if columns]
    if candidates:
        name, why = candidates[0][0], first_names(candidates[0][1], SHOWN)
    elif nearest and not claim.sure:
        name, why = nearest[0], f"needs {listed(formats[nearest[0]].missing(names))}"
    else:
        return "no other format fits"
    return f"second: {name} ({why}); to override: {naming(name)}"


def naming(format: str) -> str:
    """How a user names a format, on the command line and in Python."""
    return f'`--format {format}`, `format="{format}"`'


def nearest_formats(formats: Formats, names: Sequence[str]) -> list[tuple[str, str]]:
    """The three formats that are closest to a table that no format claims, and the columns that are missing."""
    return [(name, f"needs {listed(formats[name].missing(names))}") for name in _nearest(formats, names)[:3]]


def _claims(formats: Formats, names: Sequence[str]) -> list[tuple[str, Claim]]:
    """The claims on a table, the best first."""
    claims = [(name, claim) for name, signs in formats.items() if (claim := signs.claim(names)) is not None]
    return sorted(claims, key=lambda entry: (entry[1].sure, len(entry[1].columns)), reverse=True)


def _respelled(signs: Signs, names: Sequence[str]) -> list[str]:
    """The columns, those with a close match in the format under its name."""
    known = sorted(signs.known)
    return [next(iter(get_close_matches(name.lower(), known, 1, ALIKE)), name) for name in names[:COMPARED]]


ALIKE = 0.85
"""The lowest ratio of a close match: `reqest` is one, `trace_id` is not."""

COMPARED = 100
"""The columns of a table that are compared by spelling."""


def _nearest(formats: Formats, names: Sequence[str]) -> list[str]:
    """The formats that a table may have, the nearest first; of equals the later one, which is the plainer."""
    allowed = [name for name in reversed(list(formats)) if formats[name].allow(names)]
    return sorted(allowed, key=lambda name: formats[name].nearness(names), reverse=True)


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {first_names(names, SHOWN)}"


SHOWN = 4
"""The columns that are named in a reason."""
