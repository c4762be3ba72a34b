"""What the own class of a platform keeps of a row: `kept.json`, recorded with its package (tests/recorders/kept.py).

A column that it drops is still in the file, and nowhere in what the platform loads. A platform whose class keeps every
column has no columns here; one without a class in a package is not in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from agent_eval_schema.formats.detection import Columns
from agent_eval_schema.formats.format import Row
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.columns import DROPPED_FIELD
from agent_eval_schema.runtime.tables import packaged


class Kept(Struct, frozen=True):
    """The columns that each kind of row of a platform has in the version that was recorded on a day."""

    package: str
    version: str
    recorded: str
    digest: str
    """Of the columns that were tried."""
    kept: Mapping[str, Columns | None]

    @property
    def release(self) -> str:
        return f"{self.package} {self.version}"

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns of all kinds; None if a class keeps every column."""
        columns = frozenset(name for names in self.kept.values() for name in names or ())
        return None if None in self.kept.values() else columns


KEPT_BY_CLASSES = packaged(__package__, "kept.json", dict[str, Kept])
"""By the name of a platform."""


def dropped_of(name: str, kind: str) -> Columns:
    """The columns that a class keeps of rows of another kind, and drops of this one."""
    table = KEPT_BY_CLASSES[name]
    return tuple(sorted((table.columns or frozenset()).difference(table.kept[kind] or ())))


def inspect_kinds(name: str, kind_of: Callable[[Row], str]) -> Callable[[Row], Iterator[Finding]]:
    """A function that finds the values of a row that the class of its kind drops."""
    dropped = {kind: dropped_of(name, kind) for kind in KEPT_BY_CLASSES[name].kept}

    def inspect(source: Row) -> Iterator[Finding]:
        kind = kind_of(source)
        for column in dropped[kind]:
            if source.get(column):
                message = f"`{column}` is dropped by the platform: a {kind} has no such field"
                yield Finding(DROPPED_FIELD, message, column)

    return inspect
