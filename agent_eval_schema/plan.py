"""How a data set is checked."""

from __future__ import annotations

from msgspec import Struct


class Plan(Struct, frozen=True):
    """How a data set is checked: names only, so that it can be pickled.

    `columns` asks for the normalised columns too; without them a check only gives verdicts. `values` says whether
    messages may quote cells.
    """

    format: str
    outputs: str
    nests: bool
    codes: frozenset[str]
    columns: bool = False
    reason: str = ""
    values: bool = True
