"""Where the issues of a code occur and what they report, in bounded memory whatever the number of rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

STEPS = 120
"""Parts of the dataset in which the rows of a code are counted, at most."""

KINDS = 50
"""Different messages of a code that are counted, at most; the issues beyond them are counted together."""


FIRST_ROWS = 500
"""Rows of a code that are listed, at most."""


class Kind(NamedTuple):
    """What equal issues report: the path with `[*]` for the number of an entry, the message and the hint."""

    path: str
    message: str
    hint: str


class Occurrences:
    """The rows and the messages of one code, added in the order of the rows.

    `rows` is the number of rows with the code, `kinds` the number of issues per message, `others` the number of issues
    whose message is not one of them, `first_rows` the first rows.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.kinds: Counter[Kind] = Counter()
        self.others = 0
        self.first_rows: list[int] = []
        self._width = 1
        self._counts: np.ndarray[Any, Any] = np.zeros(STEPS, np.int64)

    def add_rows(self, rows: np.ndarray[Any, Any]) -> None:
        """Count rows, each given once."""
        if not len(rows):
            return
        self.rows += len(rows)
        self.first_rows += rows[: FIRST_ROWS - len(self.first_rows)].tolist()
        self._make_room(int(rows.max()) + 1)
        self._counts += np.bincount(rows // self._width, minlength=STEPS)

    def _make_room(self, total: int) -> None:
        """Widen the steps, so that there are enough for so many rows: neighboring ones become one."""
        while total > STEPS * self._width:
            halved = self._counts.reshape(-1, 2).sum(axis=1)
            self._counts = np.concatenate([halved, np.zeros(STEPS - len(halved), np.int64)])
            self._width *= 2

    def add_kind(self, path: str | None, message: str, hint: str, count: int = 1) -> None:
        """Count issues with the same message."""
        kind = Kind(_ENTRY.sub("[*]", path or ""), message, hint)
        if kind in self.kinds or len(self.kinds) < KINDS:
            self.kinds[kind] += count
        else:
            self.others += count

    def shares(self, total: int) -> list[float]:
        """The share of the rows with the code in each step of a dataset of `total` rows."""
        self._make_room(total)
        steps = -(-total // self._width)
        sizes = np.minimum(self._width, total - self._width * np.arange(steps))
        return [round(float(share), 3) for share in self._counts[:steps] / np.maximum(sizes, 1)]


class Together:
    """How many rows have the issues of two codes: `pairs` by both codes in order, `rows` by one code."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()

    def add(self, rows: Mapping[str, np.ndarray[Any, Any]], size: int) -> None:
        """Count the rows of a batch of so many rows, given by code as their positions in the batch."""
        codes = sorted(rows)
        holds = np.zeros((len(codes), size), np.float32)  # exact: a batch has fewer than 2**24 rows
        for number, code in enumerate(codes):
            holds[number, rows[code]] = 1
        counts = holds @ holds.T
        for a, b in zip(*np.nonzero(np.triu(counts, 1)), strict=True):
            self.pairs[codes[a], codes[b]] += int(counts[a, b])


_ENTRY = re.compile(r"\[\d+\]")
