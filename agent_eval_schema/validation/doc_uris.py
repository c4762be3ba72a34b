"""Whether the expected and the retrieved documents of a row have a doc_uri in common, or only a close match.

document_recall compares URIs as text. Two notations of one document (another scheme, host case, a trailing slash,
/Volumes against dbfs:/Volumes) give 0 without an error.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from agent_eval_schema.decoding.values import FAILED, DecodedColumn, DocumentColumn
from agent_eval_schema.schema import Document
from agent_eval_schema.text.privacy import quoted

NONE, EXACT, NEAR = 0, 1, 2

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:/*", re.IGNORECASE)


def nearness(expected: DecodedColumn, retrieved: DecodedColumn) -> tuple[list[int | None], list[list[str] | None]]:
    """For each row with both contexts NONE, EXACT or NEAR, and for a close match one pair [expected, retrieved].

    A close match only matters if nothing matches: once a row is EXACT, the other rows of the batch are left open
    (None).
    """
    answers: list[int | None] = [None] * len(expected)
    pairs: list[list[str] | None] = [None] * len(expected)
    row = _first_exact(expected, retrieved)
    if row is not None:
        answers[row] = EXACT
        return answers, pairs
    for row, wanted, found in _both(expected, retrieved):
        plain = {plain_uri(d.doc_uri): d.doc_uri for d in found if d.doc_uri}
        close = ([d.doc_uri, plain[near]] for d in wanted if (near := plain_uri(d.doc_uri)) in plain)
        pairs[row] = next(close, None)
        answers[row] = NEAR if pairs[row] else NONE
    return answers, pairs


FEW = 32


def _first_exact(expected: DecodedColumn, retrieved: DecodedColumn) -> int | None:
    """The first row that has a URI in both contexts. It is usually among the first, so those are tried alone."""
    if isinstance(expected, DocumentColumn) and isinstance(retrieved, DocumentColumn):
        for row in range(min(FEW, len(expected))):
            if not set(expected.uris(row)).isdisjoint(retrieved.uris(row)):
                return row
    for row, wanted, found in _both(expected, retrieved):
        if not {d.doc_uri for d in wanted}.isdisjoint([d.doc_uri for d in found]):
            return row
    return None


def _both(expected: DecodedColumn, retrieved: DecodedColumn) -> Iterator[tuple[int, list[Document], list[Document]]]:
    for row, (wanted, found) in enumerate(zip(expected, retrieved, strict=True)):
        if wanted and found and wanted is not FAILED and found is not FAILED:
            yield row, wanted, found


def plain_uri(uri: str) -> str:
    """The URI without what has several notations: scheme, case, escapes, leading and trailing slashes, www."""
    text = unquote(_SCHEME.sub("", uri.strip())).lower().removeprefix("www.")
    return text.removeprefix("/dbfs/").strip("/ ").removeprefix("dbfs/")


def rewrite(expected: str, retrieved: str) -> str:
    """What to do to the expected URI so that it equals the retrieved one, in words."""
    if retrieved.endswith(expected):
        return f"Put {quoted(retrieved[: -len(expected)])} before the expected `doc_uri`."
    if expected.endswith(retrieved):
        return f"Take {quoted(expected[: -len(retrieved)])} off the front of the expected `doc_uri`."
    if retrieved.rstrip("/") == expected.rstrip("/"):
        return f"{'Add' if retrieved.endswith('/') else 'Take off'} the trailing slash of the expected `doc_uri`."
    if retrieved.lower() == expected.lower():
        return "Write both in the same case."
    return f"Write the expected `doc_uri` as {quoted(retrieved)}."
