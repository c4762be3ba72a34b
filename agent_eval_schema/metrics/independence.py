"""Rows → independent units: the one definition for intervals, standard errors, comparisons, gates and profiles.

    rows of one session                                 a session of several rows is one unit
    sessions that ask the same questions, in order      repeats of one conversation
    other rows with the same question                   repeats of one question
    other rows with the same first expected document    questions about one document

Rows that any of these joins are one unit, also through others: their scores are alike, so together they show less than
as many independent rows. Ten answers to each of ten questions show ten questions (Miller, "Adding Error Bars to Evals",
2024).
"""

import numpy as np
from msgspec import Struct

from agent_eval_schema.cells.hashing import Array, joined


class RowKeys(Struct):
    """Hashes (uint64, 0: absent) of the session, the question and the first expected document of each row."""

    sessions: Array
    questions: Array
    documents: Array


class Units(Struct, frozen=True):
    """The number of each row's independent unit, and what joins the rows of a unit of several rows."""

    codes: Array
    kinds: tuple[str, ...] = ()

    def words(self, count: int) -> str:
        """A number of units with what they are: `12 sessions`, `8 independent units (sessions, questions)`."""
        one = "independent unit" if len(self.kinds) > 1 else (self.kinds or ("row",))[0]
        of = f" ({', '.join(f'{kind}s' for kind in self.kinds)})" if len(self.kinds) > 1 else ""
        return f"{count:,} {one}{'' if count == 1 else 's'}{of}"


def independent_units(keys: RowKeys) -> Units:
    """The units of rows, by the definition above."""
    rows = len(keys.sessions)
    _, session, sizes = np.unique(keys.sessions, return_inverse=True, return_counts=True)
    together = (keys.sessions != 0) & (sizes[session] > 1)
    joins = {
        "session": np.where(together, keys.sessions, 0),
        "question": _conversations(keys.questions, session, together),
        "document": np.where(together, 0, keys.documents),
    }
    codes, count, kinds = np.arange(rows), rows, []
    for kind, key in joins.items():
        at = np.flatnonzero(key)
        _, first, group = np.unique(key[at], return_index=True, return_inverse=True)
        codes = joined(codes, at[first[group]], at)
        new_count = len(np.unique(codes))
        if new_count < count:
            kinds.append(kind)
        count = new_count
    return Units(np.unique(codes, return_inverse=True)[1], tuple(kinds))


_MIX = np.uint64(0x9E3779B97F4A7C15)


def _conversations(questions: Array, session: Array, together: Array) -> Array:
    """The question of each row; of a session the hash of its questions, at its first row (0: one is missing)."""
    keys = np.where(together, 0, questions)
    if together.any():
        at = np.flatnonzero(together)
        at = at[np.argsort(session[at], kind="stable")]
        starts = np.flatnonzero(np.append(True, np.diff(session[at]) != 0))
        place = np.arange(len(at)) - np.repeat(starts, np.diff(np.append(starts, len(at))))
        mixed = (questions[at] ^ (place.astype(np.uint64) * _MIX)) * _MIX
        whole = np.add.reduceat(mixed ^ (mixed >> np.uint64(29)), starts)
        keys[at[starts]] = np.where(np.minimum.reduceat(questions[at], starts) > 0, whole, 0)
    return keys
