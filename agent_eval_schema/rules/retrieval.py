"""AE4: retrieved and expected documents, as columns and as derived from traces."""

import json
from typing import Any

from agent_eval_schema.rules.pages import EVALUATION_SCHEMA, MLFLOW_RETRIEVER, Page

_ROW = {"request": "How long is parental leave?", "response": "16 weeks."}
_DOC = {"doc_uri": "hr/leave.pdf", "content": "16 weeks"}


def _rows(context: object) -> tuple[dict[str, Any], ...]:
    return ({**_ROW, "retrieved_context": context},)


def _traced(document: Any) -> tuple[dict[str, Any], ...]:
    """A row whose trace has a retriever that returned one document."""
    attributes = {"mlflow.spanType": '"RETRIEVER"', "mlflow.spanOutputs": json.dumps([document])}
    root = {"name": "agent", "span_id": "1"}
    retriever = {"name": "search", "span_id": "2", "parent_id": "1", "attributes": attributes}
    return ({**_ROW, "trace": {"info": {"trace_id": "tr-1"}, "data": {"spans": [root, retriever]}}},)


_schema_page = Page(EVALUATION_SCHEMA, good=_rows([_DOC]))
_retriever_page = Page(
    MLFLOW_RETRIEVER, good=_traced({"page_content": "16 weeks", "metadata": {"doc_uri": "hr/leave.pdf"}})
)

CONTEXT_SHAPE = _schema_page.error(
    "AE401 context-shape",
    "A context is not a list of documents.",
    why="Retrieval metrics read the documents of a list; any other value supports none of them.",
    hint='Set a list of documents: `[{"doc_uri": "...", "content": "..."}]`.',
    bad=_rows(_DOC),
)

DOCUMENT_SHAPE = _schema_page.error(
    "AE402 document-shape",
    "An entry of a context is not a document.",
    why="A plain string does not show whether it is the URI or the content.",
    hint='Write each entry as an object: `{"doc_uri": "...", "content": "..."}`.',
    bad=_rows(["hr/leave.pdf"]),
    good=_rows([{"doc_uri": "hr/leave.pdf"}]),
)

MISSING_DOC_URI = _schema_page.error(
    "AE403 missing-doc-uri",
    "A document has no doc_uri.",
    why="The schema requires it: document_recall compares documents by doc_uri.",
    hint="Add `doc_uri`, the unique ID of the parent document.",
    bad=_rows([{"content": "16 weeks"}]),
)

DOC_URI_VALUE = _schema_page.error(
    "AE404 doc-uri-value",
    "A doc_uri is not a string, or is blank.",
    why="document_recall compares strings: the document never matches another one.",
    hint="Set `doc_uri` to the URI of the document as a string.",
    bad=_rows([{"doc_uri": 17}]) + _rows([{"doc_uri": " "}]),
)

DOCUMENT_CONTENT = _schema_page.error(
    "AE405 document-content",
    "A document's content is not a string.",
    why="Judges such as groundedness and chunk_relevance_precision read the content as a string.",
    hint="Set `content` to the text of the document, or omit it.",
    bad=_rows([{"doc_uri": "hr/leave.pdf", "content": ["16", "weeks"]}]),
)

DOCUMENT_KEY = _schema_page.warning(
    "AE406 document-key",
    "A document has an unrecognized key.",
    why="Judges read `content` only: text under `page_content` or `text` is kept, but no judge reads it.",
    hint="Rename the key to `doc_uri` or `content` if it means one of them.",
    bad=_rows([{"doc_uri": "hr/leave.pdf", "page_content": "16 weeks"}]),
)

EMPTY_EXPECTED_CONTEXT = _schema_page.warning(
    "AE407 empty-expected-context",
    "expected_retrieved_context is an empty list.",
    why="The recall of zero documents is undefined: the row supports no document metric.",
    hint="List the documents that should be retrieved, or set the cell to null.",
    bad=({**_ROW, "expected_retrieved_context": []},),
    good=({**_ROW, "expected_retrieved_context": [{"doc_uri": "hr/leave.pdf"}]},),
)

DERIVED_WITHOUT_URI = _retriever_page.warning(
    "AE410 derived-document-without-uri",
    "A document that the retriever of a trace returned has no doc_uri.",
    why="Judges can score its content, but document_recall cannot count it.",
    hint="Return `metadata.doc_uri` from the retriever.",
    bad=_traced({"page_content": "16 weeks"}),
)

DERIVED_URI_GUESSED = _retriever_page.info(
    "AE411 derived-uri-guessed",
    "The doc_uri of a derived document was taken from another key.",
    why=(
        "The value comes from `source`, `url`, `uri` or `document_id`. document_recall compares it with the "
        "expected URIs; a value of another kind never matches."
    ),
    hint=("No action needed if this is the document's URI; otherwise return `metadata.doc_uri` from the retriever."),
    bad=_traced({"page_content": "16 weeks", "metadata": {"source": "hr/leave.pdf"}}),
)

DERIVED_DOCUMENTS_REWRITTEN = _retriever_page.warning(
    "AE413 derived-documents-rewritten",
    "The output of a trace's retriever is not a list of objects.",
    why=(
        "MLflow reads no document in it, and its judges score an empty context (issue 23817 of MLflow). "
        "`prepare_for_evaluate` and `evaluate_eval_set` rewrite the output as such a list."
    ),
    hint="Return a list of documents with `page_content` and `metadata.doc_uri` from the retriever.",
    bad=_traced("16 weeks"),
)

DERIVED_DOCUMENT_EMPTY = _retriever_page.warning(
    "AE412 derived-document-unreadable",
    "The output of a trace's retriever, or an entry of it, is not a document.",
    why="It has neither text nor URI, so no retrieval metric can score it.",
    hint="Return documents with `page_content` and `metadata.doc_uri` from the retriever.",
    bad=_traced({"score": 0.5}),
)
