"""How the columns of a batch are decoded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema.decoding.values import DocumentColumn
from agent_eval_schema.schema import DOCUMENT
from agent_eval_schema.validation.steps import _in_arrow


@pytest.mark.parametrize("kind", [DOCUMENT, pa.struct(list(DOCUMENT)[:2])], ids=["with other keys", "without"])
@pytest.mark.parametrize(
    ("documents", "stay"),
    [
        ([{"doc_uri": "a", "content": "b"}, {"doc_uri": "c"}], True),
        ([], True),
        (None, True),
        ([{"doc_uri": " "}], False),
        ([{"content": "b"}], False),
    ],
)
def test_the_documents_of_a_table_stay_in_arrow_unless_an_issue_has_to_be_explained(
    documents: Any, stay: bool, kind: pa.DataType
) -> None:
    column = _in_arrow("retrieved_context", pa.array([documents, [{"doc_uri": "x"}]], pa.list_(kind)))
    assert isinstance(column, DocumentColumn) == stay
