"""Whether the expected and the retrieved documents of a row have a doc_uri in common, or only a close match.

document_recall compares URIs as text. Two notations of one document (another scheme, host case, a trailing slash,
/Volumes against dbfs:/Volumes) give 0 without an error.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    for row, wanted, hits in _may_be_near(expected, retrieved, answers):
        plain = {plain_uri(d.doc_uri): d.doc_uri for d in hits if d.doc_uri}
        close = ([d.doc_uri, plain[near]] for d in wanted if (near := plain_uri(d.doc_uri)) in plain)
        pairs[row] = next(close, None)
        answers[row] = NEAR if pairs[row] else NONE
    return answers, pairs


FEW = 32


def _first_exact(expected: DecodedColumn, retrieved: DecodedColumn) -> int | None:
    """The first row that has a URI in both contexts. It is usually among the first, so those are tried alone."""
    if isinstance(expected, DocumentColumn) and isinstance(retrieved, DocumentColumn):
        for count in (FEW, len(expected)):
            shared = _rows_sharing(*expected.uris(count), *retrieved.uris(count))
            if len(shared):
                return int(shared[0])
        return None
    for row, wanted, hits in _both(expected, retrieved):
        if not {d.doc_uri for d in wanted}.isdisjoint([d.doc_uri for d in hits]):
            return row
    return None


def _may_be_near(
    expected: DecodedColumn, retrieved: DecodedColumn, answers: list[int | None]
) -> Iterator[tuple[int, list[Document], list[Document]]]:
    """The rows whose URIs have to be compared one by one; the answer of those whose hashes tell is written."""
    if not isinstance(expected, DocumentColumn) or not isinstance(retrieved, DocumentColumn):
        yield from _both(expected, retrieved)
        return
    for row in np.flatnonzero(expected.filled() & retrieved.filled()).tolist():
        answers[row] = NONE
    (wanted, of_wanted), (hits, of_hits) = expected.uris(len(expected)), retrieved.uris(len(retrieved))
    for row in _rows_sharing(_plain_uris(wanted), of_wanted, _plain_uris(hits), of_hits).tolist():
        yield row, expected[row] or [], retrieved[row] or []


def _rows_sharing(
    wanted: pa.Array, of_wanted: np.ndarray[Any, Any], hits: pa.Array, of_hits: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """The rows that have a text in both of two arrays, each with the row of every text."""
    codes = np.asarray(pa.concat_arrays([wanted, hits]).dictionary_encode().indices).astype(np.int64)
    keys = np.concatenate([of_wanted, of_hits]) * len(codes) + codes
    shared = np.intersect1d(keys[: len(wanted)], keys[len(wanted) :])
    return np.unique(shared // max(len(codes), 1))


def _plain_uris(uris: pa.Array) -> pa.Array:
    """`plain_uri` of each: in Arrow if all are of the characters that most are."""
    if not pc.all(pc.match_substring_regex(uris, r"^[!-$&-~]+$")).as_py():
        return pa.array(map(plain_uri, uris.to_pylist()), uris.type)
    bare = pc.replace_substring_regex(pc.ascii_lower(uris), r"^(?:[a-z][a-z0-9+.-]*:/*)?(?:www\.)?(?:/dbfs/)?", "")
    return pc.replace_substring_regex(pc.ascii_trim(bare, "/"), "^dbfs/", "")


def _both(expected: DecodedColumn, retrieved: DecodedColumn) -> Iterator[tuple[int, list[Document], list[Document]]]:
    for row, (wanted, hits) in enumerate(zip(expected, retrieved, strict=True)):
        if wanted and hits and wanted is not FAILED and hits is not FAILED:
            yield row, wanted, hits


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
