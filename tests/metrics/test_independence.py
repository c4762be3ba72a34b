"""Independent units by hand, and against the connected components of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.metrics.independence import RowKeys, Units, independent_units


def units(sessions: list[int], questions: list[int], documents: list[int]) -> Units:
    return independent_units(RowKeys(*(np.array(column, np.uint64) for column in (sessions, questions, documents))))


@pytest.mark.parametrize(
    ("sessions", "questions", "documents", "expected", "kinds"),
    [
        ([0, 0, 0], [1, 2, 3], [0, 0, 0], [0, 1, 2], ()),
        ([5, 5, 6], [1, 2, 3], [0, 0, 0], [0, 0, 1], ("session",)),
        ([0, 0, 0], [1, 1, 3], [7, 7, 8], [0, 0, 1], ("question",)),
        ([0, 0, 0], [1, 2, 3], [7, 7, 0], [0, 0, 1], ("document",)),
        ([0, 0, 0], [1, 1, 3], [0, 8, 8], [0, 0, 0], ("question", "document")),
        ([1, 2, 3], [9, 9, 4], [0, 0, 0], [0, 0, 1], ("question",)),  # a session of one row is no conversation
        ([1, 1, 2, 2], [8, 9, 8, 9], [0, 0, 0, 0], [0, 0, 0, 0], ("session", "question")),  # the same conversation
        ([1, 1, 2, 2], [8, 9, 9, 8], [0, 0, 0, 0], [0, 0, 1, 1], ("session",)),  # in another order
        ([1, 1, 0], [8, 9, 8], [4, 0, 4], [0, 0, 1], ("session",)),  # a turn is not the question alone
        ([1, 1, 2, 2], [8, 0, 8, 0], [0, 0, 0, 0], [0, 0, 1, 1], ("session",)),  # an unknown question
    ],
)
def test_units_by_hand(
    sessions: list[int], questions: list[int], documents: list[int], expected: list[int], kinds: tuple[str, ...]
) -> None:
    found = units(sessions, questions, documents)
    assert (found.codes.tolist(), found.kinds) == (expected, kinds)


KEYS = st.integers(1, 14).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 6), min_size=n, max_size=n)] * 3))


@given(KEYS)
def test_units_are_the_connected_components(keys: tuple[list[int], list[int], list[int]]) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    sessions, questions, documents = keys
    rows = range(len(sessions))
    together = {i for i in rows if sessions[i] and sessions.count(sessions[i]) > 1}
    whole = {s: tuple(questions[i] for i in rows if sessions[i] == s) for s in sessions}

    def joined(i: int, j: int) -> bool:
        if i in together and j in together:
            one, other = whole[sessions[i]], whole[sessions[j]]
            return sessions[i] == sessions[j] or (one == other and 0 not in one)
        if i in together or j in together:
            return False
        return bool(questions[i] == questions[j] != 0 or documents[i] == documents[j] != 0)

    graph = sparse.coo_matrix([[joined(i, j) for j in rows] for i in rows])
    count, labels = sparse.csgraph.connected_components(graph, directed=False)
    found = units(sessions, questions, documents).codes
    assert len(set(zip(found.tolist(), labels.tolist(), strict=True))) == count == len(set(found.tolist()))


def test_words() -> None:
    codes = np.array([0])
    assert Units(codes).words(1) == "1 row"
    assert Units(codes, ("session",)).words(1_234) == "1,234 sessions"
    assert Units(codes, ("session", "question")).words(1) == "1 independent unit (sessions, questions)"
