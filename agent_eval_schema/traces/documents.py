"""The documents that a trace retrieved: the outputs of RETRIEVER spans, in mlflow's schema or near it.

Documents of MLflow's retriever schema are decoded directly; others are converted key by key, with a note on each
assumption.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.rules.retrieval import DERIVED_DOCUMENT_EMPTY, DERIVED_URI_GUESSED, DERIVED_WITHOUT_URI
from agent_eval_schema.schema import Document
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.traces.reading import Reading, attributes, start_of
from agent_eval_schema.traces.spans import Attributes, AttributesById, Info, Span, Trace, content_text, value_of

TEXT_KEYS = ("page_content", "content", "text")
GUESSED_URI_KEYS = ("source", "url", "uri", "document_id")
DOCUMENT_LIST_KEYS = ("documents", "docs", "results", "chunks", "context")


def retrieved_context(reading: Reading) -> list[Document] | None:
    """The documents of the last RETRIEVER to start that is not part of another one."""
    if not reading.retrievers:
        return None
    last = max(reversed(reading.outermost(reading.retrievers)), key=start_of)
    own = attributes(last)
    text = content_text(own.outputs)
    try:
        if isinstance(own, AttributesById):
            found = (_documents_with_ids if reading.values else _glimpse_of_documents_with_ids)(text)
        else:
            found = (_usual_documents if reading.values else _glimpse_of_documents)(text)
    except msgspec.MsgspecError:
        found = None
    if found is not None:
        return found
    value = output_of(own)
    return None if value is None else _documents(reading, value)


class _Metadata(Struct, gc=False):
    doc_uri: str


class _Retrieved(Struct, gc=False):
    """A document as mlflow's retriever schema has it; anything else goes the long way."""

    page_content: str
    metadata: _Metadata


class _Glimpsed(Struct, gc=False):
    """As _Retrieved, without making a text of the content."""

    page_content: Raw
    metadata: _Metadata


_retrieved = msgspec.json.Decoder(list[_Retrieved]).decode
_glimpsed = msgspec.json.Decoder(list[_Glimpsed]).decode


class _ById(Struct, gc=False):
    """A document as the GenAI conventions have it."""

    id: str
    content: str
    metadata: None = None


class _GlimpsedById(Struct, gc=False):
    id: str
    content: Raw
    metadata: None = None


_by_id = msgspec.json.Decoder(list[_ById]).decode
_glimpsed_by_id = msgspec.json.Decoder(list[_GlimpsedById]).decode


def _documents_with_ids(text: str | Raw) -> list[Document] | None:
    """The documents, or None if there is one without an ID or content."""
    found = [Document(d.id, d.content) for d in _by_id(text)]
    return found if all([d.content and d.doc_uri.strip() for d in found]) else None


def _glimpse_of_documents_with_ids(text: str | Raw) -> list[Document] | None:
    """One document for all of them; None if there is an unusual one."""
    found = _glimpsed_by_id(text)
    if not all([d.id.strip() and len(d.content) > 2 and bytes(memoryview(d.content)[:1]) == b'"' for d in found]):
        return None
    return [_SOME_DOCUMENT] if found else []


def output_of(own: Attributes) -> Any:
    """The output of a span; documents that are named by their `id` in MLflow's schema."""
    value = value_of(own.outputs)
    are_by_id = isinstance(own, AttributesById) and isinstance(value, list)
    return [_document_by_id(item) for item in value] if are_by_id else value


def _document_by_id(item: Any) -> Any:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return item
    content = item.get("content") or item.get("text") or item.get("page_content")
    metadata = item["metadata"] if isinstance(item.get("metadata"), dict) else {}
    made: dict[str, Any] = {"metadata": {"doc_uri": item["id"], **metadata}}
    if isinstance(content, str):
        made["page_content"] = content
    return made


def _usual_documents(text: str | Raw) -> list[Document] | None:
    """The documents, or None if there is one without a doc_uri."""
    found = [Document(d.metadata.doc_uri, d.page_content) for d in _retrieved(text)]
    return found if all([d.doc_uri.strip() for d in found]) else None


def _glimpse_of_documents(text: str | Raw) -> list[Document] | None:
    """One document for all of them, with content if any has content; None if there is an unusual one."""
    found = _glimpsed(text)
    glimpse = [_EMPTY_DOCUMENT] if found else []
    for document in found:
        content = bytes(document.page_content)
        if content[:1] != b'"' or not document.metadata.doc_uri.strip():
            return None
        if len(content) > 2:  # more than the two quotes
            glimpse = [_SOME_DOCUMENT]
    return glimpse


_SOME_DOCUMENT, _EMPTY_DOCUMENT = Document("?", "?"), Document("?", "")


def documents_of_span(span: Span) -> list[Document]:
    """The (doc_uri, content) of the documents that a RETRIEVER span gave; none for other spans."""
    found = attributes(span)
    if (found.type or "").strip('"') != "RETRIEVER" or (value := output_of(found)) is None:
        return []
    return _documents(Reading(Trace(Info(), [span])), value)


def _documents(reading: Reading, output: Any) -> list[Document]:
    output = jsontext.structured(output)
    if isinstance(output, dict):
        key = next((k for k in DOCUMENT_LIST_KEYS if isinstance(output.get(k), list)), None)
        output = output[key] if key else [output]
    if isinstance(output, str):
        output = [output]
    if not isinstance(output, list):
        reading.note(DERIVED_DOCUMENT_EMPTY, "retrieved_context", f"expected documents, got {describe(output)}")
        return []
    return [_document(reading, item, f"retrieved_context[{i}]") for i, item in enumerate(output)]


def _document(reading: Reading, item: Any, path: str) -> Document:
    if isinstance(item, str):
        item = {"content": item}
    if not isinstance(item, dict):
        reading.note(DERIVED_DOCUMENT_EMPTY, path, f"expected a document, got {describe(item)}")
        return Document(None, None)  # type: ignore[arg-type]
    content = next((item[k] for k in TEXT_KEYS if isinstance(item.get(k), str)), None)
    uri = _uri(reading, item, path)
    if uri is None and content is None:
        reading.note(DERIVED_DOCUMENT_EMPTY, path, f"expected text or a URI, got {describe(item)}")
    elif uri is None:
        reading.note(DERIVED_WITHOUT_URI, f"{path}.doc_uri", "the retriever's document has no doc_uri")
    return Document(uri, content)  # type: ignore[arg-type]


def _uri(reading: Reading, item: dict[str, Any], path: str) -> str | None:
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for key in _URI_KEYS:
        for home in (metadata, item):
            if isinstance(home.get(key), str) and home[key].strip():
                if key != "doc_uri":
                    reading.note(DERIVED_URI_GUESSED, f"{path}.doc_uri", f"taken from `{key}`: {describe(home[key])}")
                return str(home[key])
    return None


_URI_KEYS = ("doc_uri", *GUESSED_URI_KEYS)
