"""The documents that a trace retrieved: the outputs of RETRIEVER spans, in mlflow's schema or near it.

Documents of MLflow's retriever schema are decoded directly; others are converted key by key, with a note on each
assumption.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.rules.retrieval import (
    DERIVED_DOCUMENT_EMPTY,
    DERIVED_DOCUMENTS_REWRITTEN,
    DERIVED_URI_GUESSED,
    DERIVED_WITHOUT_URI,
)
from agent_eval_schema.rules.traces import NO_DOCUMENTS
from agent_eval_schema.schema import Document
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.traces.reading import Reading, attributes, start_of
from agent_eval_schema.traces.spans import (
    NOTHING,
    Attributes,
    AttributesById,
    Info,
    Span,
    Trace,
    content_text,
    value_of,
)


class WithText(Struct, gc=False):
    """The keys of a document under which MLflow and others have its text."""

    page_content: Raw = NOTHING
    content: Raw = NOTHING
    text: Raw = NOTHING


TEXT_KEYS = WithText.__struct_fields__
GUESSED_URI_KEYS = ("source", "url", "uri", "document_id")
DOCUMENT_LIST_KEYS = ("documents", "docs", "results", "chunks", "context")


def retrieved_context(reading: Reading) -> list[Document] | None:
    """The documents of the last RETRIEVER to start that is not part of another one."""
    if not reading.retrievers:
        return None
    last = max(reversed(reading.outermost(reading.retrievers)), key=start_of)
    own = attributes(last)
    try:
        documents = _usual_documents(
            content_text(own.outputs, reading.spare), isinstance(own, AttributesById), reading.values
        )
    except msgspec.MsgspecError:
        documents = None
    if documents is not None:
        return documents
    value = output_of(own)
    if value is None and last not in reading.failed:
        reading.note(NO_DOCUMENTS, "retrieved_context", "expected outputs of the last RETRIEVER span, got none")
    return None if value is None else _documents(reading, value)


class _Metadata(Struct, gc=False):
    doc_uri: str


class _Retrieved(Struct, gc=False):
    """A document of MLflow's retriever schema; any other is read key by key."""

    page_content: Raw
    metadata: _Metadata


class _ById(Struct, gc=False):
    """A document of the GenAI conventions."""

    id: str
    content: Raw
    metadata: None = None


_retrieved = msgspec.json.Decoder(list[_Retrieved]).decode
_by_id = msgspec.json.Decoder(list[_ById]).decode
_decode_text = msgspec.json.Decoder(str).decode


def _usual_documents(text: str | Raw, are_by_id: bool, values: bool) -> list[Document] | None:
    """The documents, or None if one lacks its URI or is otherwise unusual. Without `values` one document represents all
    of them, with content if any has content: no text is made of the contents."""
    if are_by_id:
        pairs = [(d.id, d.content) for d in _by_id(text)]
    else:
        pairs = [(d.metadata.doc_uri, d.page_content) for d in _retrieved(text)]
    shortest = 3 if are_by_id else 2  # with the two quotes
    any_content = False
    for uri, content in pairs:
        size = len(content)
        if not uri.strip() or size < shortest or memoryview(content)[0] != _QUOTE:
            return None
        any_content = any_content or size > 2
    if values or not pairs:
        return [Document(uri, _decode_text(content)) for uri, content in pairs]
    return [Document("?", "?" if any_content else "")]


_QUOTE = ord('"')


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
    text = {"page_content": content} if isinstance(content, str) else {}
    return {"metadata": {"doc_uri": item["id"], **metadata}, **text}


def documents_of_span(span: Span) -> list[Document]:
    """The (doc_uri, content) of the documents that a RETRIEVER span gave; none for other spans."""
    attrs = attributes(span)
    if (attrs.type or "").strip('"') != "RETRIEVER" or (value := output_of(attrs)) is None:
        return []
    return _documents(Reading(Trace(Info(), [span])), value)


def _documents(reading: Reading, output: Any) -> list[Document]:
    output = jsontext.structured(output)
    original = output
    if isinstance(output, dict):
        key = next((k for k in DOCUMENT_LIST_KEYS if isinstance(output.get(k), list)), None)
        output = output[key] if key else [output]
    if isinstance(output, str):
        output = [output]
    if not isinstance(output, list):
        reading.note(DERIVED_DOCUMENT_EMPTY, "retrieved_context", f"expected documents, got {describe(output)}")
        return []
    documents = [_document(reading, item, f"retrieved_context[{i}]") for i, item in enumerate(output)]
    if any(d.content for d in documents) and (original is not output or any(isinstance(item, str) for item in output)):
        what = "a list with texts" if original is output else describe(original)
        reading.note(DERIVED_DOCUMENTS_REWRITTEN, "retrieved_context", f"expected a list of objects, got {what}")
    return documents


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
    for key in ("doc_uri", *GUESSED_URI_KEYS):
        for home in (metadata, item):
            if isinstance(home.get(key), str) and home[key].strip():
                if key != "doc_uri":
                    reading.note(DERIVED_URI_GUESSED, f"{path}.doc_uri", f"taken from `{key}`: {describe(home[key])}")
                return str(home[key])
    return None
