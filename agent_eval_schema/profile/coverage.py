"""What the rows cover: tools, documents, kinds of questions, time; and how even the ground truth is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np

from agent_eval_schema.profile.duplicates import Repeats
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.profile_blocks import (
    Balance,
    Breakdown,
    Cluster,
    Counted,
    Coverage,
    DocumentCoverage,
    Documents,
    RowExample,
    ToolCoverage,
)
from agent_eval_schema.render.phrases import plural

LISTED = 20
"""Values that are listed, the most frequent ones first."""

MOST_VALUES = 200
"""A tag with more values is a name or a time, not a kind of question."""


def cover(facts: Facts, min_rows: int, clusters: tuple[Cluster, ...], cluster_note: str) -> Coverage:
    """What the valid rows cover; values with fewer than `min_rows` rows are thin."""
    words = facts.array("words")[facts.valid & (facts.array("exact") != 0)]
    sessions = facts.array("session")[facts.valid]
    return Coverage(
        tuple(_tools(facts)),
        _documents(facts),
        tuple(_breakdowns(facts, min_rows)),
        len(np.unique(sessions[sessions != 0])),
        len(facts.days),
        float(np.median(words)) if len(words) else None,
        int(words.max()) if len(words) else None,
        min_rows,
        clusters,
        cluster_note,
    )


def _tools(facts: Facts) -> Iterator[ToolCoverage]:
    """Every tool, those that no row exercises first."""
    offered, expected, called = (facts.names[f"tools_{kind}"] for kind in ("offered", "expected", "called"))
    names = sorted({*offered, *expected, *called}, key=lambda n: (max(expected[n], called[n]), n))
    for i, name in enumerate(names):
        known = name if facts.plan.values else f"tool {i + 1}"
        yield ToolCoverage(known, offered[name], expected[name], called[name])


def _documents(facts: Facts) -> Documents:
    expected, retrieved = facts.names["uris_expected"], facts.names["uris_retrieved"]
    both = Counter({uri: max(expected[uri], retrieved[uri]) for uri in {*expected, *retrieved}})
    top = sorted(both, key=lambda uri: (-both[uri], uri))[: LISTED if facts.plan.values else 0]
    return Documents(
        len(expected),
        len(retrieved),
        sum(uri not in retrieved for uri in expected),
        int(np.count_nonzero(facts.valid & (facts.array("document") != 0))),
        tuple(DocumentCoverage(uri, expected[uri], retrieved[uri]) for uri in top),
        facts.unknown_documents if facts.has_documents else None,
    )


def _breakdowns(facts: Facts, min_rows: int) -> Iterator[Breakdown]:
    turns = {plural(turns, "turn"): n for turns, n in sorted(facts.turns.items()) if turns}
    kinds: dict[str, Mapping[str, int]] = {"script": facts.scripts, "turns": turns}
    tags: dict[str, dict[str, int]] = {}
    for tag, rows in facts.names["tags"].items() if facts.plan.values else ():
        name, _, value = tag.partition("=")
        tags.setdefault(name, {})[value] = rows
    kinds |= {f"tag {name}": values for name, values in sorted(tags.items()) if 1 < len(values) <= MOST_VALUES}
    several = np.count_nonzero(facts.valid) >= 2 * min_rows  # in a smaller dataset each value has few rows
    for name, values in kinds.items():
        ordered = [Counted(v, n) for v, n in sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))]
        if ordered:
            thin = [c for c in ordered if c.rows < min_rows] if several and name != "turns" and len(ordered) > 1 else []
            yield Breakdown(name, len(ordered), tuple(ordered[:LISTED]), tuple(thin[:LISTED]))


# ---------------------------------------------------------------------------------------------------------------------
# balance and age
def commonest_truth(facts: Facts) -> tuple[int, int, int, int | None]:
    """The rows with a ground truth, the distinct ones, the rows that have the commonest, and the first of these."""
    truths = facts.array("truth")
    rows = np.flatnonzero(facts.valid & (truths != 0))
    if not len(rows):
        return 0, 0, 0, None
    _, first, counts = np.unique(truths[rows], return_index=True, return_counts=True)
    at = int(np.argmax(counts))
    return len(rows), len(counts), int(counts[at]), int(rows[first[at]])


def balance(facts: Facts, example: RowExample | None) -> Balance:
    """How even the ground truth is, and of which time the rows are."""
    rows, distinct, top, _ = commonest_truth(facts)
    guidelines, having = facts.names["guidelines"], facts.guideline_rows
    shared = [text for text, count in guidelines.items() if count == having > 1]
    days = sorted(facts.days)
    return Balance(
        rows,
        distinct,
        top,
        example.truth if example else None,
        having,
        tuple(sorted(shared)[:LISTED]) if facts.plan.values else (),
        _date(days[0]) if days else None,
        _date(days[-1]) if days else None,
    )


def _date(day: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(days=day)).date().isoformat()


# ---------------------------------------------------------------------------------------------------------------------
# clusters of questions
MOST_CLUSTERED = 20_000
"""Distinct questions of which clusters are made; of more, so many are drawn."""

LEAST_CLUSTERED = 20
"""Distinct questions of fewer than which no clusters are made: they would show chance."""

TERMS = 4


def cluster_rows(repeats: Repeats) -> list[int]:
    """The distinct questions of which clusters are made."""
    rows = np.flatnonzero(repeats.asked & (repeats.near == np.arange(len(repeats.near))))
    if len(rows) > MOST_CLUSTERED:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_CLUSTERED, replace=False))
    found: list[int] = rows.tolist()
    return found


def clusters_of(examples: list[RowExample]) -> tuple[tuple[Cluster, ...], str]:
    """Questions with words in common, the largest cluster first; and why there is none."""
    asked = [e for e in examples if e.question]
    count = round(len(asked) ** 0.5 / 2)
    if len(asked) < LEAST_CLUSTERED:
        return (), f"{plural(len(asked), 'distinct question')} {'is' if len(asked) == 1 else 'are'} too few"
    try:
        from sklearn.cluster import KMeans
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        return (), "scikit-learn is not installed (pip install 'agent-eval-schema[profile]')"
    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True, max_features=5_000)
    try:
        vectors = vectorizer.fit_transform([e.question for e in asked])
    except ValueError:  # nothing but stop words
        return (), "the questions have no words to compare"
    found: Any = KMeans(min(count, 30), n_init=1, random_state=0).fit(vectors)
    names = vectorizer.get_feature_names_out()
    made = []
    for i, center in enumerate(found.cluster_centers_):
        members = np.flatnonzero(found.labels_ == i)
        if len(members):
            terms = [str(names[t]) for t in np.argsort(-center, kind="stable")[:TERMS].tolist() if center[t] > 0]
            made.append(Cluster(len(members), tuple(terms), asked[int(members[0])]))
    return tuple(sorted(made, key=lambda c: (-c.rows, c.terms))), ""
