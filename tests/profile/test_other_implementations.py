"""The figures of a profile and of retrieval, against pandas and scikit-learn on rows that are made at random."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agent_eval_schema import EvalTask, profile_eval_set
from tests.conftest import Row

WORDS = [
    "how",
    "many",
    "days",
    "of",
    "leave",
    "are",
    "left",
    "for",
    "this",
    "team",
    "in",
    "the",
    "first",
    "month",
    "after",
    "a",
    "new",
    "start",
]
URIS = [f"doc{i}" for i in range(9)]
SEEDS = range(6)


def rows_of(seed: int) -> list[Row]:
    """Rows of few words and documents, so that questions, sessions and URIs repeat."""
    chance = random.Random(seed)

    def documents() -> list[Row]:
        return [{"doc_uri": uri} for uri in chance.choices(URIS, k=chance.randrange(1, 6))]

    def row() -> Row:
        found: Row = {"request": " ".join(chance.choices(WORDS, k=chance.randrange(1, 9))), "response": "An answer."}
        optional = {
            "session_id": lambda: f"s{chance.randrange(12)}",
            "expected_retrieved_context": documents,
            "retrieved_context": documents,
            "tags": lambda: {"team": chance.choice("abc")},
            "reference_trajectory": lambda: [{"tool_name": t} for t in chance.choices("xyz", k=chance.randrange(1, 4))],
        }
        return found | {name: make() for name, make in optional.items() if chance.random() < 0.6}

    return [row() for _ in range(chance.randrange(40, 120))]


def uris_of(frame: pd.DataFrame, column: str) -> pd.Series[Any]:
    return frame[column].dropna().map(lambda documents: sorted({d["doc_uri"] for d in documents}))


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_against_pandas(seed: int) -> None:
    rows = rows_of(seed)
    frame, profile = pd.DataFrame(rows), profile_eval_set(rows)
    found = profile.summary.coverage
    words = frame["request"].str.split().map(len)
    repeated = frame["request"].str.split().map(" ".join).duplicated()
    assert profile.counts["exact_duplicates"] == repeated.sum()
    assert found.sessions == frame["session_id"].nunique()
    assert (found.median_words, found.longest_words) == (words.median(), words.max())
    tags = frame["tags"].dropna().map(lambda tag: tag["team"]).value_counts()
    (team,) = [b for b in found.breakdowns if b.name == "tag team"]
    assert {c.value: c.rows for c in team.top} == tags.to_dict()
    expected, retrieved = (uris_of(frame, f"{name}retrieved_context") for name in ("expected_", ""))
    counts = {d.doc_uri: (d.expected, d.retrieved) for d in found.documents.top}
    by_uri = pd.DataFrame({n: s.explode().value_counts() for n, s in (("e", expected), ("r", retrieved))}).fillna(0)
    assert counts.items() <= {uri: (int(e), int(r)) for uri, e, r in by_uri.itertuples()}.items()
    assert found.documents.rows_expecting == len(expected)
    called = frame["reference_trajectory"].dropna().map(lambda calls: {call["tool_name"] for call in calls})
    assert {t.tool: t.expected for t in found.tools} == called.explode().value_counts().to_dict()


@pytest.mark.parametrize("seed", SEEDS)
def test_retrieval_against_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    binarizer = pytest.importorskip("sklearn.preprocessing").MultiLabelBinarizer(classes=URIS)
    rows = [row for row in rows_of(seed) if row.keys() >= {"expected_retrieved_context", "retrieved_context"}]
    frame = pd.DataFrame(rows)
    columns = ("expected_retrieved_context", "retrieved_context")
    truth, found = (binarizer.fit_transform(uris_of(frame, column)) for column in columns)
    scores = EvalTask(rows, ["document_recall", "document_precision"]).evaluate().metrics_table
    for name, theirs in (("document_recall", metrics.recall_score), ("document_precision", metrics.precision_score)):
        each = [theirs(t, f) for t, f in zip(truth, found, strict=True)]
        assert scores[f"{name}/score"].to_numpy() == pytest.approx(np.array(each))
