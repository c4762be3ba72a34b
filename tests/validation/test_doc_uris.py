"""The doc_uris that the expected and the retrieved documents of a row have in common."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema.decoding.values import FAILED, DecodedColumn, DocumentColumn, ListColumn
from agent_eval_schema.schema import DOCUMENT, Document
from agent_eval_schema.validation.doc_uris import EXACT, FEW, NEAR, NONE, nearness

Uris = list[list[str] | None]


def in_python(rows: Uris) -> DecodedColumn:
    return ListColumn([None if row is None else [Document(uri) for uri in row] for row in rows])


def in_arrow(rows: Uris) -> DecodedColumn:
    cells: list[Any] = [None if row is None else [{"doc_uri": uri} for uri in row] for row in rows]
    return DocumentColumn(pa.array(cells, pa.list_(DOCUMENT)))


KINDS = pytest.mark.parametrize(
    ("expected_in", "retrieved_in"),
    [(in_python, in_python), (in_arrow, in_arrow), (in_arrow, in_python), (in_python, in_arrow)],
)
Make = Callable[[Uris], DecodedColumn]


@KINDS
@pytest.mark.parametrize("before", [0, 1, FEW - 1, FEW, FEW + 1])
def test_one_exact_match_leaves_the_other_rows_open(expected_in: Make, retrieved_in: Make, before: int) -> None:
    expected = expected_in([["a"]] * before + [["b", "c"], ["d"]])
    retrieved = retrieved_in([["A"]] * before + [["x", "c"], ["d"]])
    assert nearness(expected, retrieved) == ([*[None] * before, EXACT, None], [None] * (before + 2))


@KINDS
def test_each_row_has_a_close_match_or_none(expected_in: Make, retrieved_in: Make) -> None:
    expected = expected_in([["a", "b/"], ["a"], None, ["a"], [], ["a"]])
    retrieved = retrieved_in([["x", "b"], ["x"], ["a"], None, ["a"], []])
    assert nearness(expected, retrieved) == ([NEAR, NONE, None, None, None, None], [["b/", "b"], *[None] * 5])


PIECES = (
    "dbfs:",
    "/dbfs/",
    "dbfs/",
    "HTTPS://",
    "s3:/",
    "www.",
    "WWW.",
    "a",
    "B",
    "/",
    "//",
    " ",
    "%20",
    "%2F",
    "é",
    "İ",
    ":",
)
URIS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join).filter(str.strip)
ROWS = st.lists(st.tuples(*[st.none() | st.lists(URIS, max_size=3)] * 2), min_size=1, max_size=6)


@given(rows=ROWS, copies=st.sampled_from([1, FEW + 1]))
@settings(deadline=None)
def test_documents_in_arrow_are_as_near_as_in_python(rows: list[tuple[Any, Any]], copies: int) -> None:
    expected, retrieved = ([row[side] for row in rows * copies] for side in (0, 1))
    found = nearness(in_arrow(expected), in_arrow(retrieved))
    assert found == nearness(in_python(expected), in_python(retrieved))


def test_a_cell_that_could_not_be_read_matches_nothing() -> None:
    cells = ListColumn([FAILED, [Document("a")]])
    assert nearness(cells, ListColumn(cells[::-1])) == ([None, None], [None, None])
    assert nearness(ListColumn([]), ListColumn([])) == ([], [])
