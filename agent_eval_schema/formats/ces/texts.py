"""The texts of evaluations in a text: one, a list, or a page of what the API lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class EvaluationText(str):
    """The JSON text of an evaluation: the `file` of an app that it is from and, if that cannot be read, the `problem`;
    whether it is the last one of a page that is not the last (`has_next`)."""

    file: str = ""
    problem: str = ""
    has_next: bool = False


def split_text(text: str) -> Iterator[EvaluationText]:
    """The texts of a list of evaluations, or the one text; a value that is not JSON is reported when it is read as an
    evaluation."""
    head = text.lstrip("\ufeff \t\r\n")
    page = None
    items = _raw(text, list[msgspec.Raw]) if head.startswith("[") else None
    if not head.startswith("[") and any(f'"{key}"' in head for key in _Page.__struct_encode_fields__):
        page = _raw(text, _Page)
        items = None if page is None else page.listed
    if not items and page is None:
        yield EvaluationText(text)
        return
    texts = [EvaluationText(bytes(item).decode()) for item in items or ()]
    if texts and page is not None:
        texts[-1].has_next = page.has_next
    yield from texts


class _Page(msgspec.Struct):
    """The answer of the API to a request for the list of evaluations, or of results."""

    evaluations: list[msgspec.Raw] | None = None
    evaluationResults: list[msgspec.Raw] | None = None
    evaluation_results: list[msgspec.Raw] | None = None
    nextPageToken: Any = None
    next_page_token: Any = None

    @property
    def has_next(self) -> bool:
        return bool(self.nextPageToken or self.next_page_token)

    @property
    def listed(self) -> list[msgspec.Raw] | None:
        lists = (self.evaluations, self.evaluationResults, self.evaluation_results)
        given = [found for found in lists if found is not None]
        return [item for found in given for item in found] if given else None


def _raw(text: str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text.removeprefix("\ufeff"), type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
