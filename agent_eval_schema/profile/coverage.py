"""What the rows cover: tools, documents, kinds of questions, time; how even the ground truth is; the questions that are
asked more than once, or that another dataset, a text or the row's own prompt contains."""

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
from msgspec import Struct

from agent_eval_schema.cells.arrow import bounds
from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.places import ending_of
from agent_eval_schema.io.streams import STDIN_NAME
from agent_eval_schema.io.texts import read_bytes
from agent_eval_schema.profile.facts import Facts, gather
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
from agent_eval_schema.similarity.near import near_groups, repeats
from agent_eval_schema.similarity.shingles import Shingled, normalized, shingled
from agent_eval_schema.validation.plan import make_plan

GROUPS = 20
"""Groups that are listed, the largest first."""

ROWS_OF_A_GROUP = 3


class Repeats(Struct, frozen=True):
    """For each row the first row of its group, of the same questions (`exact`) and also of similar ones (`near`);
    `asked` are the valid rows with a question. A row that is not asked is alone."""

    has_question: Array
    exact: Array
    near: Array

    @property
    def distinct(self) -> int:
        return int(np.count_nonzero(self.has_question & (self.near == np.arange(len(self.near)))))

    @property
    def exact_rows(self) -> Array:
        """The rows that repeat an earlier question."""
        return np.flatnonzero(self.exact != np.arange(len(self.exact)))

    @property
    def near_rows(self) -> Array:
        """The rows that are a near duplicate of an earlier question."""
        here = np.arange(len(self.near))
        return np.flatnonzero((self.near != here) & (self.exact == here))

    def groups(self) -> list[Array]:
        """The rows of each group of several, the largest group first; GROUPS of them. In a group, the first row of
        each question precedes all others, that of the commonest question first."""
        sizes = np.bincount(self.near, minlength=len(self.near))
        firsts = np.flatnonzero(sizes > 1)
        largest = firsts[np.argsort(-sizes[firsts], kind="stable")][:GROUPS]
        return [self._by_question(np.flatnonzero(self.near == first)) for first in largest.tolist()]

    def _by_question(self, rows: Array) -> Array:
        _, firsts, counts = np.unique(self.exact[rows], return_index=True, return_counts=True)
        leading = firsts[np.argsort(-counts, kind="stable")]
        return np.concatenate([rows[leading], np.delete(rows, leading)])

    @property
    def group_count(self) -> int:
        return int(np.count_nonzero(np.bincount(self.near, minlength=len(self.near)) > 1))


def find_repeats(facts: Facts, threshold: float) -> Repeats:
    exact = facts.array("exact")
    has_question = facts.valid & (exact != 0)
    return Repeats(has_question, *repeats(exact, has_question, *facts.shingles, threshold))


SAME, NEAR, TRUTH = "the same question", "a near duplicate of the question", "the ground truth"

TEXT_FILES = (".txt", ".md", ".prompt", ".jinja", ".j2")
"""What is read as one text, and not as rows."""


class Other(Struct, frozen=True):
    """Something with which the rows are compared: its name, and its text or its questions."""

    name: str
    text: str | None
    questions: Shingled


class FoundLeak(Struct, frozen=True):
    """The rows that another place contains."""

    source: str
    kind: str
    rows: list[int]


def open_others(against: Any) -> list[Other]:
    """What a user compares with: datasets, and the paths of datasets and of texts."""
    datasets = [against] if isinstance(against, str | os.PathLike) or not isinstance(against, Sequence) else against
    if datasets and all(isinstance(row, dict) for row in datasets):  # the rows of one dataset
        datasets = [datasets]
    return [_open(one, i) for i, one in enumerate(datasets)]


def _open(one: Any, place: int) -> Other:
    name = os.fspath(one) if isinstance(one, str | os.PathLike) else f"against[{place}]"
    if isinstance(one, str | os.PathLike) and ending_of(name) in TEXT_FILES:
        text = read_bytes(name).decode("utf-8", "replace")
        return Other(name, normalized([text])[0], shingled(text.splitlines()))
    source = open_source(one, "against", outputs="generated")
    name = STDIN_NAME if source.name == STDIN_NAME else name
    facts = gather(source, make_plan(source))
    shingles, ends = facts.shingles
    exact = np.where(facts.valid, facts.array("exact"), 0)
    return Other(name, None, Shingled(exact, facts.array("words"), shingles, ends))


def find_leaks(facts: Facts, repeats: Repeats, others: Sequence[Other], threshold: float) -> Iterator[FoundLeak]:
    """The rows that are elsewhere, place by place; a row is of one kind per place, the surest."""
    texts = [i for i, other in enumerate(others) if other.text is not None]
    for i, other in enumerate(others):
        exact = repeats.has_question & np.isin(facts.array("exact"), other.questions.exact[other.questions.exact != 0])
        answered = np.zeros(facts.row_count, bool)
        if i in texts:
            exact[facts.found.get(2 * texts.index(i), [])] = True
            answered[facts.found.get(2 * texts.index(i) + 1, [])] = True
        near = _near(facts, other.questions, threshold) & repeats.has_question & ~exact
        for kind, rows in {SAME: exact, NEAR: near, TRUTH: answered}.items():
            if rows.any():
                yield FoundLeak(other.name, kind, np.flatnonzero(rows).tolist())
    for place, positions in facts.in_prompt.items():
        if positions:
            yield FoundLeak(place, TRUTH, positions)


def _near(facts: Facts, questions: Shingled, threshold: float) -> Array:
    """The rows whose question is a near duplicate of one of these."""
    mine, ends = facts.shingles
    shingles = np.concatenate([questions.shingles, mine])
    sizes = np.concatenate([np.diff(questions.ends), np.diff(ends)])
    labels = near_groups(shingles, bounds(sizes), threshold)
    count = len(questions.exact)
    in_other = np.zeros(len(labels), bool)
    in_other[labels[:count]] = True
    near: Array = in_other[labels[count:]] & (np.diff(ends) > 0)
    return near


# --- coverage
LISTED = 20
"""Values that are listed, the most frequent ones first."""

MOST_VALUES = 200
"""A tag with more values is a name or a time, not a kind of question."""


LEAST_ROWS = 10
"""A value with fewer rows is thin: too few for a score of its own."""


def cover(facts: Facts, clusters: tuple[Cluster, ...], cluster_note: str) -> Coverage:
    """What the valid rows cover."""
    words = facts.array("words")[facts.valid & (facts.array("exact") != 0)]
    sessions = facts.array("session")[facts.valid]
    median, longest = (float(np.median(words)), int(words.max())) if len(words) else (None, None)
    tools, documents, breakdowns = tuple(_tools(facts)), _documents(facts), tuple(_breakdowns(facts))
    lengths = len(np.unique(sessions[sessions != 0])), len(facts.days), median, longest
    return Coverage(tools, documents, breakdowns, *lengths, LEAST_ROWS, clusters, cluster_note)


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
    never, rows = len(expected.keys() - retrieved), np.count_nonzero(facts.valid & (facts.array("document") != 0))
    listed = tuple(DocumentCoverage(uri, expected[uri], retrieved[uri]) for uri in top)
    unknown = facts.unknown_documents if facts.has_documents else None
    return Documents(len(expected), len(retrieved), never, int(rows), listed, unknown)


def _breakdowns(facts: Facts) -> Iterator[Breakdown]:
    turns = {plural(turns, "turn"): n for turns, n in sorted(facts.turns.items()) if turns}
    kinds: dict[str, Mapping[str, int]] = {"script": facts.scripts, "turns": turns}
    tags: dict[str, dict[str, int]] = {}
    for tag, rows in facts.names["tags"].items() if facts.plan.values else ():
        name, _, value = tag.partition("=")
        tags.setdefault(name, {})[value] = rows
    kinds |= {f"tag {name}": values for name, values in sorted(tags.items()) if 1 < len(values) <= MOST_VALUES}
    several = np.count_nonzero(facts.valid) >= 2 * LEAST_ROWS  # in a smaller dataset each value has few rows
    for name, values in kinds.items():
        ordered = [Counted(v, n) for v, n in sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))]
        if ordered:
            is_split = several and name != "turns" and len(ordered) > 1
            thin = [c for c in ordered if is_split and c.rows < LEAST_ROWS]
            yield Breakdown(name, len(ordered), tuple(ordered[:LISTED]), tuple(thin[:LISTED]))


# --- balance and age
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
    """How even the ground truth is, and the span of time of the rows."""
    rows, distinct, top, _ = commonest_truth(facts)
    guidelines, having = facts.names["guidelines"], facts.guideline_rows
    shared = [text for text, count in guidelines.items() if count == having > 1]
    days = sorted(facts.days)
    listed = tuple(sorted(shared)[:LISTED]) if facts.plan.values else ()
    span = (_date(days[0]), _date(days[-1])) if days else (None, None)
    return Balance(rows, distinct, top, example.truth if example else None, having, listed, *span)


def _date(day: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(days=day)).date().isoformat()


# --- clusters of questions
MOST_CLUSTERED = 20_000
"""The most distinct questions that are clustered; of more, this number is drawn."""

LEAST_CLUSTERED = 20
"""Distinct questions of fewer than which no clusters are made: they would show chance."""

TERMS = 4

_GREETINGS = frozenset({"dear", "did", "does", "hello", "hey", "hi", "thank", "thanks"})
"""What questions of every kind contain, beside the stop words of scikit-learn."""


def cluster_rows(repeats: Repeats) -> list[int]:
    """The distinct questions that are clustered."""
    rows = np.flatnonzero(repeats.has_question & (repeats.near == np.arange(len(repeats.near))))
    if len(rows) > MOST_CLUSTERED:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_CLUSTERED, replace=False))
    positions: list[int] = rows.tolist()
    return positions


def clusters_of(examples: list[RowExample]) -> tuple[tuple[Cluster, ...], str]:
    """Questions with words in common, the largest cluster first; and why there is none."""
    questions = [e for e in examples if e.question]
    count = round(len(questions) ** 0.5 / 2)
    if len(questions) < LEAST_CLUSTERED:
        return (), f"{plural(len(questions), 'distinct question')} {'is' if len(questions) == 1 else 'are'} too few"
    try:
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
    except ImportError:
        return (), "scikit-learn is not installed (pip install 'agent-eval-schema[profile]')"
    vectorizer = TfidfVectorizer(
        stop_words=sorted(ENGLISH_STOP_WORDS | _GREETINGS),
        token_pattern=r"(?u)\b[^\W\d_]{2,}\b",  # no numbers: an order number is no kind of question
        sublinear_tf=True,
        max_features=5_000,
    )
    try:
        vectors = vectorizer.fit_transform([e.question for e in questions])
    except ValueError:  # nothing but stop words
        return (), "the questions have no words to compare"
    with warnings.catch_warnings():  # there may be fewer questions that differ in their words than clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        model: Any = KMeans(min(count, 30), n_init=1, random_state=0).fit(vectors)
    names = vectorizer.get_feature_names_out()
    members = [rows for i in range(len(model.cluster_centers_)) if len(rows := np.flatnonzero(model.labels_ == i))]
    clusters = [
        Cluster(len(rows), tuple(str(names[t]) for t in terms), questions[int(rows[0])])
        for rows, terms in zip(members, _telling(vectors > 0, members), strict=True)
    ]
    return tuple(sorted(clusters, key=lambda c: (-c.rows, c.terms))), ""


def _telling(contains: Any, members: Sequence[Array]) -> Iterator[list[int]]:
    """Per cluster the terms that tell it from the others: frequent in it, and rare elsewhere."""
    sizes = np.array([[len(rows)] for rows in members])
    counts = np.vstack([np.asarray(contains[rows].sum(axis=0)).ravel() for rows in members])
    inside = counts / sizes
    outside = (counts.sum(axis=0) - counts + 0.5) / (sizes.sum() - sizes + 0.5)  # 1 for a word of all questions
    for own, telling in zip(inside, inside * np.log(np.maximum(inside, 1e-9) / outside), strict=True):
        scores = telling if (telling > 0).any() else own
        yield [t for t in np.argsort(-scores, kind="stable")[:TERMS].tolist() if scores[t] > 0]
