"""Documents of formats that have only texts ⇄ ours, which are identified by their `doc_uri`.

A text without an id gets one made of its content: two equal texts then are the same document, as in a comparison of
retrieved and expected texts. Writing omits such an ID again."""

from __future__ import annotations

import hashlib
from typing import Any

from agent_eval_schema.text.jsontext import structured

MADE_URI = "text:sha256-"
"""The prefix of a `doc_uri` that identifies a text."""


def uri_of(text: str) -> str:
    """The doc_uri of a document that is only its text."""
    return MADE_URI + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def read_texts(texts: Any, ids: Any = None) -> Any:
    """[text, ...] and, where there are any, [id, ...] → [{doc_uri, content}, ...]."""
    texts, ids = structured(texts), structured(ids)
    if texts is None and isinstance(ids, list):
        return [{"doc_uri": _id(i)} for i in ids]
    if not isinstance(texts, list):
        return texts
    named = ids if isinstance(ids, list) and len(ids) == len(texts) else [None] * len(texts)
    return [_document(text, i) for text, i in zip(texts, named, strict=True)]


def _document(text: Any, identity: Any) -> Any:
    if not isinstance(text, str):
        return text  # for the rule on documents to explain
    return {"doc_uri": uri_of(text) if identity is None else _id(identity), "content": text}


def _id(identity: Any) -> Any:
    """Ids may be numbers there; `doc_uri` is text."""
    return str(identity) if isinstance(identity, int) and not isinstance(identity, bool) else identity


def write_texts(documents: list[dict[str, Any]]) -> list[str]:
    """The texts alone; a document without content is its doc_uri."""
    return [d["doc_uri"] or "" if d["content"] is None else d["content"] for d in documents]


def write_texts_and_ids(documents: list[dict[str, Any]]) -> tuple[list[str] | None, list[str | None] | None]:
    """The texts, and the ids unless they are made of the texts."""
    ids = [d["doc_uri"] for d in documents]
    if all(d["content"] is None for d in documents) and documents:
        return None, ids
    made = all(d["content"] is not None and d["doc_uri"] == uri_of(d["content"]) for d in documents)
    return write_texts(documents), None if made else ids
