"""A row is written so that the class of the target loads it; what the class rejects in a file is an error.
tests/formats/test_loaded.py asks the classes themselves."""

from __future__ import annotations

from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.formats.shapes import uri_of
from tests.helpers.traces import span, trace

HI = {"role": "user", "content": "Hi"}
URL = "data:image/png;base64,AAAA"
IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]}
RESULT = {"role": "tool", "content": "4", "tool_call_id": "c"}


def written(messages: list[Any], target: str, **row: Any) -> Any:
    made = convert_eval_set([{"request": {"messages": messages}, "expected_response": "Hello", **row}], target)
    assert not made.lossless
    return made.data.to_dict("records")


def test_ragas_gets_texts_and_no_result_without_its_call() -> None:
    (row,) = written([HI, RESULT, IMAGE], "ragas")
    assert row["user_input"] == [{"type": "human", "content": "Hi"}]


def test_ragas_gets_an_id_of_every_document_or_of_none() -> None:
    """A retriever's document may have none, and an ID of Ragas is a text or a number."""
    documents = [{"page_content": "A"}, {"page_content": "C", "metadata": {"doc_uri": "c"}}]

    def ids(*documents: Any) -> Any:
        spans = span(inputs={"query": "Hi"}, outputs="Ho"), span("2", "1", "RETRIEVER", outputs=documents)
        (row,) = convert_eval_set([{"trace": trace(*spans)}], "ragas").data.to_dict("records")
        return row.get("retrieved_context_ids")

    assert ids(*documents) == [uri_of("A"), "c"]
    assert ids(documents[0]) is None


def test_inspect_gets_its_own_parts_and_roles() -> None:
    variables = {"role": "user", "content": [{"type": "variables", "a": 1}]}
    (row,) = written([{"role": "developer", "content": "Be brief."}, variables, IMAGE], "inspect")
    assert row["input"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": '{"type":"variables","a":1}'}]},
        {"role": "user", "content": [{"type": "image", "image": URL}]},
    ]
    (again,) = convert_eval_set([row], "databricks", format="inspect").data.to_dict("records")
    assert again["request"]["messages"][-1] == IMAGE


def test_the_gen_ai_service_gets_the_last_question_that_is_a_text() -> None:
    (row,) = written([HI, IMAGE], "vertex-genai", response="Hello")
    assert row["prompt"] == "Hi"
    assert written([IMAGE], "vertex-genai", response="Hello") == []  # the class rejects a row without a prompt


@pytest.mark.parametrize("wanted", [[{"note": "x"}], {"must": ["x"], "else": 1}], ids=str)
def test_deepeval_gets_expectations_of_its_own_only(wanted: Any) -> None:
    (row,) = written([HI], "deepeval", custom_expected={"expectations": wanted})
    assert "expectations" not in row


REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"input": [{"role": "function", "content": "4"}, HI], "target": "x"}, "input[0].role"),
    ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}], "target": "x"}, "content[0]"),
    ({"user_input": [{"type": "human", "content": [{"type": "text", "text": "Hi"}]}], "reference": "x"}, "input[0]"),
    ({"user_input": [{"type": "human", "content": "Hi"}, {"type": "tool", "content": "4"}]}, "input[1]"),
    ({"input": "Hi", "actual_output": "Hello", "expectations": {"must": ["x"], "else": 1}}, "expectations"),
    ({"input": "Hi", "actual_output": "Hello", "expectations": [{"note": "x"}]}, "expectations"),
]


@pytest.mark.parametrize(("row", "path"), REJECTED)
def test_what_the_class_rejects_is_an_error(row: dict[str, Any], path: str) -> None:
    (issue,) = [issue for issue in validate_eval_set([row]).iter_issues() if issue.code in ("AE241", "AE184")]
    assert str(issue.path).endswith(path)
