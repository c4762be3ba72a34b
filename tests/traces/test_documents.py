"""The documents that a trace retrieved: every rule by example."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from agent_eval_schema.schema import Document
from agent_eval_schema.traces import documents
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import Derived, derive
from agent_eval_schema.traces.documents import documents_of_span
from agent_eval_schema.traces.spans import AttributesById
from tests.helpers.traces import ROOT, Row, codes, doc, document, row, span, trace


def retrieved(output: Any) -> Row:
    return trace(ROOT, span("2", "1", "RETRIEVER", outputs=output))


DOCUMENTS: dict[str, tuple[Any, Row, list[str]]] = {
    "metadata.doc_uri": (
        {"page_content": "x", "doc_uri": "b", "metadata": {"doc_uri": "a", "source": "c"}},
        document("a", "x"),
        [],
    ),
    "metadata.doc_uri of other words": (
        {"content": "x", "doc_uri": "b", "metadata": {"doc_uri": "a", "source": "c"}},
        document("a", "x"),
        [],
    ),
    "top-level doc_uri": ({"content": "x", "doc_uri": "a", "metadata": {"source": "c"}}, document("a", "x"), []),
    "source": ({"text": "x", "metadata": {"url": "b", "source": "a"}}, document("a", "x"), ["AE411"]),
    "url": ({"text": "x", "metadata": {"uri": "b", "url": "a"}}, document("a", "x"), ["AE411"]),
    "uri": ({"text": "x", "metadata": {"document_id": "b", "uri": "a"}}, document("a", "x"), ["AE411"]),
    "document_id": ({"text": "x", "metadata": {"document_id": "a"}}, document("a", "x"), ["AE411"]),
    "page_content before content": (
        {"text": "z", "content": "y", "page_content": "x", "doc_uri": "a"},
        document("a", "x"),
        [],
    ),
    "content before text": ({"text": "y", "content": "x", "doc_uri": "a"}, document("a", "x"), []),
    "no uri": ({"page_content": "x", "metadata": {"page": 3}}, document(None, "x"), ["AE410"]),
    "a blank uri": ({"page_content": "x", "metadata": {"doc_uri": " "}}, document(None, "x"), ["AE410"]),
    "null metadata": ({"page_content": "x", "metadata": None}, document(None, "x"), ["AE410"]),
    "a bare text": ("x", document(None, "x"), ["AE410", "AE413"]),
    "no text": ({"metadata": {"doc_uri": "a"}}, document("a", None), []),
    "neither": ({"score": 0.5}, document(None, None), ["AE412"]),
    "a number": (7, document(None, None), ["AE412"]),
}


RIGHT = {"page_content": "x", "metadata": {"doc_uri": "a"}}


@pytest.mark.parametrize(
    ("output", "path", "message"),
    [
        ([RIGHT, 7], "retrieved_context[1]", "expected a document, got the number 7"),
        ([RIGHT, {}], "retrieved_context[1]", "expected text or a URI, got an empty object"),
        (
            [{"score": 0.5, "metadata": {"page": 3}}],
            "retrieved_context[0]",
            "expected text or a URI, got an object with the keys score, metadata",
        ),
        (7, "retrieved_context", "expected documents, got the number 7"),
        ({"total": 0}, "retrieved_context[0]", "expected text or a URI, got an object with the keys total"),
    ],
)
def test_what_is_no_document_is_told_with_its_place(output: Any, path: str, message: str) -> None:
    notes = derive(decode_trace(json.dumps(retrieved(output)).encode())).notes
    assert [(n.rule.code, n.path, n.message) for n in notes] == [("AE412", path, message)]


@pytest.mark.parametrize("case", DOCUMENTS)
def test_document(case: str) -> None:
    entry, found, remarks = DOCUMENTS[case]
    assert row(retrieved([doc("b"), entry]))["retrieved_context"] == [document("b", "on b"), found]
    assert codes(retrieved([doc("b"), entry])) == remarks


@pytest.mark.parametrize("key", ["documents", "docs", "results", "chunks", "context"])
def test_wrapped_documents(key: str) -> None:
    assert row(retrieved({"took": 3, key: [doc("a"), doc("b")]}))["retrieved_context"] == [
        document("a", "on a"),
        document("b", "on b"),
    ]


@pytest.mark.parametrize(
    ("output", "remarks"), [([doc("a")], []), ({"docs": [doc("a")]}, ["AE413"])], ids=["list", "wrapped"]
)
def test_documents_as_json_text(output: Any, remarks: list[str]) -> None:
    """MLflow reads a list in JSON text, and nothing of an object (mlflow/mlflow#23817)."""
    assert row(retrieved(json.dumps(output)))["retrieved_context"] == [document("a", "on a")]
    assert codes(retrieved(json.dumps(output))) == remarks


def test_a_text_is_a_document_and_a_number_is_none() -> None:
    assert row(retrieved("30 days"))["retrieved_context"] == [document(None, "30 days")]
    assert derive(decode_trace(json.dumps(retrieved(7)))).retrieved_context == []


@pytest.mark.parametrize("output", [[], {"documents": []}, "[]"])
def test_nothing_retrieved_is_an_empty_list(output: Any) -> None:
    assert row(retrieved(output))["retrieved_context"] == []


def test_without_a_retriever_or_its_output_there_is_no_context() -> None:
    missing = ("AE622", "retrieved_context", "expected outputs of the last RETRIEVER span, got none")
    cases = [(trace(ROOT), []), (trace(ROOT, span("2", "1", "RETRIEVER")), [missing]), (retrieved(None), [missing])]
    for given, notes in cases:
        assert "retrieved_context" not in row(given)
        assert [(n.rule.code, n.path, n.message) for n in derive(decode_trace(json.dumps(given))).notes] == notes


GLIMPSED: dict[str, Any] = {
    **{f"a document with {case}": [doc("b"), entry] for case, (entry, _, _) in DOCUMENTS.items()},
    "content in the last one only": [{**doc("a"), "page_content": ""}, doc("b")],
    "no content": [{**doc("a"), "page_content": ""}],
    "content that is null": [{**doc("a"), "page_content": None}],
    "content that is a number": [{**doc("a"), "page_content": 7}],
    "half a character": '[{"page_content": "\\ud800", "metadata": {"doc_uri": "a"}}]',
    "malformed text": '[{"page_content": "\\x", "metadata": {"doc_uri": "a"}}]',
    "no documents": [],
    "nothing": None,
}


@pytest.mark.parametrize("case", GLIMPSED)
def test_a_verdict_is_the_same_whether_documents_are_read_or_only_looked_at(case: str) -> None:
    text = json.dumps(retrieved(GLIMPSED[case]))
    read, glimpsed = (derive(decode_trace(text), values) for values in (True, False))
    for holds in (lambda d: d.content, lambda d: d.doc_uri):
        assert any(map(holds, glimpsed.retrieved_context or ())) == any(map(holds, read.retrieved_context or ()))
    assert (glimpsed.retrieved_context is None, glimpsed.retrieved_context == []) == (
        read.retrieved_context is None,
        read.retrieved_context == [],
    )
    assert glimpsed.notes == read.notes


RETRIEVERS = {
    "the last to start, not to stand or to end": [
        span("2", "1", "RETRIEVER", start=30, end=40, outputs=[doc("a")]),
        span("3", "1", "RETRIEVER", start=20, end=90, outputs=[doc("b")]),
    ],
    "the last to start, in the order of time": [
        span("2", "1", "RETRIEVER", start=20, end=90, outputs=[doc("b")]),
        span("3", "1", "RETRIEVER", start=30, end=40, outputs=[doc("a")]),
    ],
    "of those that start together the last one": [
        span("2", "1", "RETRIEVER", start=30, outputs=[doc("b")]),
        span("3", "1", "RETRIEVER", start=30, outputs=[doc("a")]),
    ],
    "a nested one is a step of its parent": [
        span("2", "1", "RETRIEVER", outputs=[doc("a")]),
        span("3", "2", "RETRIEVER", outputs=[doc("b")]),
    ],
    "nested with a span between": [
        span("2", "1", "RETRIEVER", outputs=[doc("a")]),
        span("3", "2", "CHAIN"),
        span("4", "3", "RETRIEVER", outputs=[doc("b")]),
    ],
    "below a tool it counts": [
        span("2", "1", "TOOL", outputs=[doc("b")]),
        span("3", "2", "RETRIEVER", outputs=[doc("a")]),
    ],
}


@pytest.mark.parametrize("case", RETRIEVERS)
def test_retriever(case: str) -> None:
    assert row(trace(ROOT, *RETRIEVERS[case]))["retrieved_context"] == [document("a", "on a")]


def test_a_retriever_that_is_the_root() -> None:
    given = trace(
        span("1", None, "RETRIEVER", inputs="Hi", outputs=[doc("a")]), span("2", "1", "RETRIEVER", outputs=[doc("b")])
    )
    assert row(given)["retrieved_context"] == [document("a", "on a")]


# ---------------------------------------------------------------------------------------------------------------------
# documents that are named by their ID


def derived_by_id(output: Any, values: bool) -> Derived:
    """What is derived from a retriever of the GenAI conventions."""
    decoded = decode_trace(json.dumps(retrieved("x")))
    decoded.spans[1].attributes = AttributesById('"RETRIEVER"', outputs=Raw(json.dumps(output).encode()))
    return derive(decoded, values)


BY_ID: dict[str, tuple[Any, list[Document] | None, list[str]]] = {
    "as usual": (
        [{"id": "a", "content": "x"}, {"id": "b", "content": "y"}],
        [Document("a", "x"), Document("b", "y")],
        [],
    ),
    "none": ([], [], []),
    "a blank ID": ([{"id": " ", "content": "x"}], [Document(None, "x")], ["AE410"]),  # type: ignore[arg-type]
    "empty content": ([{"id": "a", "content": ""}], [Document("a", None)], []),
    "no content": ([{"id": "a"}], [Document("a", None)], []),
    "content that is a number": ([{"id": "a", "content": 7}], [Document("a", None)], []),
    "text": ([{"id": "a", "text": "x"}], [Document("a", "x")], []),
    "page_content": ([{"id": "a", "page_content": "x"}], [Document("a", "x")], []),
    "a doc_uri": ([{"id": "a", "content": "x", "metadata": {"doc_uri": "b", "n": 1}}], [Document("b", "x")], []),
    "other metadata": ([{"id": "a", "content": "x", "metadata": {"n": 1}}], [Document("a", "x")], []),
    "no ID": ([{"source": "a/b", "content": "x"}], [Document("a/b", "x")], ["AE411"]),
    "a number as ID": ([{"id": 7, "content": "x"}], [Document(None, "x")], ["AE410"]),  # type: ignore[arg-type]
    "nothing": (None, None, ["AE622"]),
}


@pytest.mark.parametrize("case", BY_ID)
def test_documents_with_ids(case: str) -> None:
    output, documents, remarks = BY_ID[case]
    read, glimpsed = (derived_by_id(output, values) for values in (True, False))
    assert (read.retrieved_context, [note.rule.code for note in read.notes]) == (documents, remarks)
    assert glimpsed.notes == read.notes
    for holds in (lambda d: d.content, lambda d: d.doc_uri):
        assert any(map(holds, glimpsed.retrieved_context or ())) == any(map(holds, documents or ()))
    assert (glimpsed.retrieved_context is None) == (documents is None)


def test_content_that_is_no_text_is_not_among_the_keys_of_a_document() -> None:
    (note,) = derived_by_id([{"id": " ", "content": 7}], True).notes
    assert note.message == "expected text or a URI, got an object with the keys metadata"


def test_only_a_retriever_has_documents() -> None:
    def found(kind: str | None, **cells: Any) -> list[Document]:
        return documents_of_span(decode_trace(json.dumps(trace(span("1", None, kind, **cells)))).spans[0])

    assert found("RETRIEVER", outputs=[doc("a"), "x"]) == [Document("a", "on a"), Document(None, "x")]  # type: ignore[arg-type]
    assert found("RETRIEVER") == found("RETRIEVER", outputs=None) == found("RETRIEVER", outputs=[]) == []
    assert found("TOOL", outputs=[doc("a")]) == found(None, outputs=[doc("a")]) == []


# ---------------------------------------------------------------------------------------------------------------------
# documents that need no look at their keys


@pytest.mark.parametrize("values", [True, False], ids=["read", "glimpsed"])
def test_usual_documents_are_not_read_key_by_key(values: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {"page_content": "x", "metadata": {"doc_uri": "a"}}
    empty = {**usual, "page_content": ""}

    def found(*outputs: Any) -> list[list[Document] | None]:
        return [derive(decode_trace(json.dumps(retrieved(output))), values).retrieved_context for output in outputs]

    monkeypatch.setattr(documents, "output_of", lambda _: pytest.fail("a document is read key by key"))
    one, none = ([Document("a", "x")], [Document("a", "")]) if values else ([Document("?", "?")], [Document("?", "")])
    assert found([usual], [empty], []) == [one, none, []]
    assert found([empty, usual], [usual, empty]) == ([none + one, one + none] if values else [one, one])
    by_id = [derived_by_id(output, values).retrieved_context for output in ([{"id": "a", "content": "x"}], [])]
    assert by_id == [one, []]
