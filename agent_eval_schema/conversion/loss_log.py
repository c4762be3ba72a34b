"""The losses of a conversion, in the order of the rows: counted by field, in memory that does not grow with them.

The first are kept, the others are in a temporary file, so a table can be converted that loses something in each of a
hundred million rows, and all losses can be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from agent_eval_schema.issues import Issue
from agent_eval_schema.rule import Severity
from agent_eval_schema.runtime.signals import TemporaryFolder

KEPT = 100_000
"""Losses that are kept in memory, at half a kilobyte each."""

LISTED = 20
"""Losses of a field on a page; the JSON and the DataFrame have them all."""


class FieldLosses:
    """The losses of a field (of rows as a whole, those of a code): how many, in how many rows, and the first."""

    def __init__(self) -> None:
        self.count = self.row_count = 0
        self.first: list[Issue] = []
        self.rows: list[int] = []
        self.codes: dict[str, Issue] = {}
        self._texts: set[tuple[str | None, ...]] = set()

    def extend(self, losses: Sequence[Issue]) -> None:
        """Add those of the next rows, and some of no row first."""
        rows = list(dict.fromkeys(loss.row for loss in losses if loss.row is not None))
        self.count += len(losses)
        self.row_count += len(rows)
        if len(self.first) < LISTED or losses[0].row is None:
            self.first = sorted([*self.first, *losses[:LISTED]], key=_place)[:LISTED]
        self.rows += rows[: LISTED - len(self.rows)]
        for loss in losses:
            self.codes.setdefault(loss.code, loss)
        if len(self._texts) < 2:
            self._texts |= {(loss.path, loss.message, loss.request_id) for loss in losses}

    def add_counted(self, first: Issue, losses: int, rows: int) -> None:
        """Add losses of one code that were counted elsewhere, and the first of them."""
        self.count += losses
        self.row_count += rows
        self.first.append(first)
        self.codes[first.code] = first

    @property
    def is_one(self) -> bool:
        """Whether several rows have the same loss."""
        return len(self._texts) == 1 < self.row_count

    @property
    def worst(self) -> Severity:
        """The highest severity."""
        return min((loss.severity for loss in self.codes.values()), key=list(Severity).index)


Field = tuple[str, str]
"""The column, or of rows as a whole "" and the code."""


def field_of(loss: Issue) -> Field:
    return loss.column or "", "" if loss.column else loss.code


class LossLog:
    """All losses, added a batch of rows at a time, and what they come to by field."""

    def __init__(self, losses: Sequence[Issue] = ()) -> None:
        self.fields: dict[Field, FieldLosses] = {}
        self.codes: Counter[str] = Counter()
        self._hints: dict[str, str] = {}
        self._overall: list[Issue] = []
        self._kept: list[Issue] = []
        self._later: TemporaryFolder | None = None
        self.extend(losses)

    def extend(self, losses: Sequence[Issue]) -> None:
        """Add the losses of the next rows, and some of no row."""
        losses = sorted(losses, key=_place)
        of: dict[Field, list[Issue]] = {}
        for loss in losses:
            of.setdefault(field_of(loss), []).append(loss)
            self.codes[loss.code] += 1
            if loss.hint:
                self._hints[loss.code] = loss.hint
        for field, of_field in of.items():
            self.fields.setdefault(field, FieldLosses()).extend(of_field)
        self._overall += [loss for loss in losses if loss.row is None]
        of_rows = [loss for loss in losses if loss.row is not None]
        room = max(KEPT - len(self._kept), 0)
        self._kept += of_rows[:room]
        if later := of_rows[room:]:
            self._later = self._later or TemporaryFolder()
            text = msgspec.msgpack.encode(later)
            packed = pa.compress(text, codec="lz4", asbytes=True)
            self._later.append("losses", len(packed).to_bytes(8, "big") + len(text).to_bytes(8, "big") + packed)

    def add_counted(self, first: Issue, losses: int, rows: int) -> None:
        """Add losses of one field and one code that were counted elsewhere, and the first of them."""
        self.fields.setdefault(field_of(first), FieldLosses()).add_counted(first, losses, rows)
        self.codes[first.code] += losses
        self._hints[first.code] = first.hint

    def __len__(self) -> int:
        return self.codes.total()

    def __iter__(self) -> Iterator[Issue]:
        """Those of no row, then those of each row."""
        yield from self._overall
        yield from self._kept
        if self._later is not None:
            with Path(self._later.file("losses")).open("rb") as file:
                while head := file.read(16):
                    packed = file.read(int.from_bytes(head[:8], "big"))
                    text = pa.decompress(packed, int.from_bytes(head[8:], "big"), codec="lz4", asbytes=True)
                    yield from msgspec.msgpack.decode(text, type=list[Issue])

    @property
    def severities(self) -> frozenset[Severity]:
        return frozenset(loss.severity for field in self.fields.values() for loss in field.codes.values())

    @property
    def hints(self) -> dict[str, str]:
        """What to do about the losses of each code."""
        return {code: self._hints[code] for code in self.codes if code in self._hints}


def _place(loss: Issue) -> int:
    return -1 if loss.row is None else loss.row
