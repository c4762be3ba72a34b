"""Questions that are asked more than once: exact and near duplicates."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.similarity.near import repeats

GROUPS = 20
"""Groups that are listed, the largest first."""

ROWS_OF_A_GROUP = 3


class Repeats(Struct, frozen=True):
    """For each row the first row of its group, of the same questions (`exact`) and also of similar ones (`near`);
    `asked` are the valid rows with a question. A row that is not asked is alone."""

    asked: Array
    exact: Array
    near: Array

    @property
    def distinct(self) -> int:
        """The number of distinct questions."""
        return int(np.count_nonzero(self.asked & (self.near == np.arange(len(self.near)))))

    @property
    def exact_rows(self) -> Array:
        """The rows that repeat an earlier question."""
        return np.flatnonzero(self.exact != np.arange(len(self.exact)))

    @property
    def near_rows(self) -> Array:
        """The rows that are a near duplicate of an earlier question."""
        here = np.arange(len(self.near))
        return np.flatnonzero((self.near != here) & (self.exact == here))

    def groups(self) -> list[Array]:
        """The rows of each group of several, the largest group first; GROUPS of them."""
        sizes = np.bincount(self.near, minlength=len(self.near))
        firsts = np.flatnonzero(sizes > 1)
        largest = firsts[np.argsort(-sizes[firsts], kind="stable")][:GROUPS]
        return [np.flatnonzero(self.near == first) for first in largest.tolist()]

    @property
    def group_count(self) -> int:
        return int(np.count_nonzero(np.bincount(self.near, minlength=len(self.near)) > 1))


def find_repeats(facts: Facts, threshold: float) -> Repeats:
    """The repeated questions of the valid rows."""
    exact = facts.array("exact")
    asked = facts.valid & (exact != 0)
    return Repeats(asked, *repeats(exact, asked, *facts.shingles, threshold))
