"""Which of the expected documents were retrieved, by doc_uri.

A document is what has a `doc_uri`, so many chunks of one document count once; URIs are compared as text. Source:
seed 003, `retrieval/ground_truth/document_recall`, which is the share of the ground truth that was retrieved; precision
is its counterpart.

    retrieved       a a b          recall     1/3: a of {a, c, d}
    expected        a c d          precision  1/2: a of {a, b}

A chunk without a doc_uri belongs to no known document and is excluded. No expected documents: there is no ground truth,
so no score (NaN). Nothing retrieved: recall is 0, and precision is of nothing (NaN). Chunks that all lack a doc_uri:
what was retrieved is not known, so no score (NaN).
"""

from __future__ import annotations

import math
from collections.abc import Collection

Uris = Collection[str | None]


def document_recall(retrieved: Uris, expected: Uris) -> float:
    """The share of the expected documents that were retrieved."""
    found, wanted = _documents(retrieved), _documents(expected)
    if not wanted or (retrieved and not found):
        return math.nan
    return len(found & wanted) / len(wanted)


def document_precision(retrieved: Uris, expected: Uris) -> float:
    """The share of the retrieved documents that were expected."""
    found, wanted = _documents(retrieved), _documents(expected)
    return len(found & wanted) / len(found) if found and wanted else math.nan


def _documents(uris: Uris) -> set[str]:
    return {uri for uri in uris if uri and not uri.isspace()}
