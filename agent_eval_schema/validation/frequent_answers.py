"""The answers that several rows have: counted by their hashes, 8 bytes per row; their texts are read again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from agent_eval_schema.render.report.summary import FrequentAnswer
from agent_eval_schema.text.describe import cut

SHOWN = 5
"""Answers that are shown, at most."""

FEWEST_ROWS = 5
"""Rows with an answer from which on a frequent one means something."""

ROWS_READ = 100_000
"""Rows that are read again for the texts, at most; an answer that comes later for the first time is not shown."""

LONGEST = 200
"""Characters of an answer that are shown."""


class AnswerCounts:
    """How often each answer occurs, added in the order of the rows."""

    def __init__(self) -> None:
        self._hashes: list[np.ndarray[Any, Any]] = []

    def add(self, hashes: pa.Array) -> None:
        """Take in the hashes of the next rows, null where there is no answer."""
        self._hashes.append(np.asarray(hashes.fill_null(0)).copy())  # a copy: a view would keep the batch in memory

    @property
    def total(self) -> int:
        """The number of rows with an answer."""
        return sum(int(np.count_nonzero(part)) for part in self._hashes)

    def most_frequent(self) -> list[tuple[int, int]]:
        """The first row and the number of rows of each answer that more than one row has, the most frequent first."""
        if self.total < FEWEST_ROWS:
            return []
        hashes, firsts, counts = np.unique(np.concatenate(self._hashes), return_index=True, return_counts=True)
        order = np.lexsort((firsts, -counts))
        repeated = order[(hashes[order] != 0) & (counts[order] > 1) & (firsts[order] < ROWS_READ)][:SHOWN]
        return list(zip(firsts[repeated].tolist(), counts[repeated].tolist(), strict=True))


def frequent_answers(counts: AnswerCounts, rows: Iterable[dict[str, Any]]) -> list[FrequentAnswer]:
    """The answers with their texts; `rows` are the normalized rows, read no further than necessary."""
    found = dict(counts.most_frequent())
    texts: dict[int, str] = {}
    for row, cells in enumerate(rows if found else ()):
        if row in found:
            texts[row] = cut(cells["response"] or "", LONGEST)
            if len(texts) == len(found):
                break
    return [FrequentAnswer(texts[row], count, counts.total) for row, count in found.items() if row in texts]
