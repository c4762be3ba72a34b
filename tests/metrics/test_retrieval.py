"""document_recall and document_precision, by hand and by what always holds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.metrics import answers
from agent_eval_schema.schema import Document

NAN = math.nan


def document_recall(retrieved: list[str | None], expected: list[str | None]) -> float:
    return answers.document_recall(*([Document(uri) for uri in uris] for uris in (retrieved, expected)))


def document_precision(retrieved: list[str | None], expected: list[str | None]) -> float:
    return answers.document_precision(*([Document(uri) for uri in uris] for uris in (retrieved, expected)))


@pytest.mark.parametrize(
    ("retrieved", "expected", "recall", "precision"),
    [
        (["a", "b"], ["a", "b"], 1, 1),
        (["b", "a"], ["a", "b"], 1, 1),
        (["a"], ["a", "b"], 0.5, 1),
        (["a", "b", "c", "d"], ["a"], 1, 0.25),
        (["x"], ["a"], 0, 0),
        (["a", "a", "b"], ["a", "c", "d"], 1 / 3, 0.5),  # chunks of one document count once
        (["a"], ["a", "a", "b"], 0.5, 1),
        (["A"], ["a"], 0, 0),  # as text
        ([], ["a"], 0, NAN),  # nothing retrieved
        (["a"], [], NAN, NAN),  # no ground truth
        ([], [], NAN, NAN),
        (["a", None, " "], ["a", "b"], 0.5, 1),  # chunks of no known document
        ([None, ""], ["a"], NAN, NAN),
    ],
)
def test_documents(retrieved: list[str | None], expected: list[str], recall: float, precision: float) -> None:
    assert document_recall(retrieved, expected) == pytest.approx(recall, nan_ok=True)
    assert document_precision(retrieved, expected) == pytest.approx(precision, nan_ok=True)


uris = st.lists(st.sampled_from("abcd"), min_size=1)


@given(uris, uris)
def test_recall_is_precision_the_other_way_round(retrieved: list[str], expected: list[str]) -> None:
    assert document_recall(retrieved, expected) == document_precision(expected, retrieved)


@given(uris, uris)
def test_retrieving_more_never_lowers_recall(retrieved: list[str], expected: list[str]) -> None:
    assert document_recall(retrieved, expected) <= document_recall(retrieved + expected[:1], expected) <= 1
    assert document_recall(retrieved + expected, expected) == 1
