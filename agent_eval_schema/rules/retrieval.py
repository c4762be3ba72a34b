"""AE4: retrieved and expected documents, as columns and as derived from traces."""

from agent_eval_schema.issues import Rule, Severity

_ROW = {"request": "How long is parental leave?", "response": "16 weeks."}
_DOC = {"doc_uri": "hr/leave.pdf", "content": "16 weeks"}


def _rows(context: object) -> tuple[dict[str, object], ...]:
    return ({**_ROW, "retrieved_context": context},)


CONTEXT_SHAPE = Rule(
    "AE401",
    "context-shape",
    Severity.ERROR,
    'give a list of documents: [{"doc_uri": "...", "content": "..."}]',
    "A context is not a list of documents.",
    bad=_rows(_DOC),
    good=_rows([_DOC]),
)

DOCUMENT_SHAPE = Rule(
    "AE402",
    "document-shape",
    Severity.ERROR,
    'each entry is an object: {"doc_uri": "...", "content": "..."}',
    "An entry of a context is not a document.\n\nA list of texts says neither which is the URI nor which is the "
    "content.",
    bad=_rows(["hr/leave.pdf"]),
    good=_rows([{"doc_uri": "hr/leave.pdf"}]),
)

MISSING_DOC_URI = Rule(
    "AE403",
    "missing-doc-uri",
    Severity.ERROR,
    "add `doc_uri`, the unique id of the parent document",
    "A document has no doc_uri.\n\nIt is required: document_recall compares documents by it.",
    bad=_rows([{"content": "16 weeks"}]),
    good=_rows([_DOC]),
)

DOC_URI_VALUE = Rule(
    "AE404",
    "doc-uri-value",
    Severity.ERROR,
    "make doc_uri the document's URI as text",
    "A doc_uri is not text, or blank.",
    bad=_rows([{"doc_uri": 17}]) + _rows([{"doc_uri": " "}]),
    good=_rows([_DOC]),
)

DOCUMENT_CONTENT = Rule(
    "AE405",
    "document-content",
    Severity.ERROR,
    "make content the document's text, or leave it out",
    "A document's content is not text.",
    bad=_rows([{"doc_uri": "hr/leave.pdf", "content": ["16", "weeks"]}]),
    good=_rows([_DOC]),
)

DOCUMENT_KEY = Rule(
    "AE406",
    "document-key",
    Severity.WARNING,
    "rename or drop the key; a document has doc_uri and content",
    "A document has a key that nobody reads.\n\nA text under `page_content` or `text` is silently not judged.",
    bad=_rows([{"doc_uri": "hr/leave.pdf", "page_content": "16 weeks"}]),
    good=_rows([_DOC]),
)

EMPTY_EXPECTED_CONTEXT = Rule(
    "AE407",
    "empty-expected-context",
    Severity.WARNING,
    "name the documents that should be retrieved, or make the cell null",
    "expected_retrieved_context is an empty list.\n\nThe recall of nothing is undefined: the row supports no "
    "document metric.",
    bad=({**_ROW, "expected_retrieved_context": []},),
    good=({**_ROW, "expected_retrieved_context": [{"doc_uri": "hr/leave.pdf"}]},),
)

DERIVED_WITHOUT_URI = Rule(
    "AE410",
    "derived-document-without-uri",
    Severity.WARNING,
    "let the retriever return metadata.doc_uri (or set the retriever schema of mlflow)",
    "A document that a trace's retriever returned has no doc_uri.\n\nIts content can be judged, but "
    "document_recall cannot "
    "count it.",
)

DERIVED_URI_GUESSED = Rule(
    "AE411",
    "derived-uri-guessed",
    Severity.INFO,
    "let the retriever return metadata.doc_uri if this is not the document's URI",
    "The doc_uri of a derived document was taken from another key (source, url, uri, document_id).",
)

DERIVED_DOCUMENT_EMPTY = Rule(
    "AE412",
    "derived-document-unreadable",
    Severity.WARNING,
    "let the retriever return documents with page_content and metadata.doc_uri",
    "The output of a trace's retriever, or an entry of it, is not a document: it has neither text nor URI.",
)
