"""Scores → the standard error of their mean, where rows of one session or one document are alike.

    SE = √( G / (G − 1) · Σ over clusters (Σ of their scores' distances from the mean)² ) / n

G is the number of clusters, n that of the scores: the cluster-robust variance of a mean (Liang and Zeger, 1986), as in
Miller, "Adding Error Bars to Evals" (2024). Of rows that are each their own cluster it is s / √n. The standard error of
a paired difference is that of the differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text.choices import shown
from agent_eval_schema.text.describe import names

if TYPE_CHECKING:
    import pandas as pd

Numbers = np.ndarray[Any, Any]

AUTO, SESSION, DOCUMENTS = "auto", "session_id", "expected_retrieved_context"
"""The clusters unless others are asked for: rows of one session, or without one of one expected document."""

Z_INTERVAL = NormalDist().inv_cdf(0.975)


def standard_error(scores: Numbers, clusters: Numbers | None = None) -> float:
    """The standard error of the mean of scores (no NaN) in these clusters; NaN if there are fewer than two."""
    count = len(scores)
    codes = np.arange(count) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    groups = int(codes.max()) + 1 if count else 0
    if groups < 2:
        return math.nan
    sums = np.bincount(codes, weights=scores - scores.mean())
    return math.sqrt(groups / (groups - 1) * float((sums**2).sum())) / count


WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "pass": 1.0, "fail": 0.0}


def numbers_of(values: Iterable[Any]) -> Numbers:
    """Scores as numbers: words of judges as 0 and 1, several scores of a row as their mean, NaN where there is none."""
    return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    if isinstance(value, list | tuple | np.ndarray):
        found = [n for n in map(_number, value) if n == n]
        return sum(found) / len(found) if found else math.nan
    if isinstance(value, str):
        word = value.strip('" ').lower()
        value = WORDS.get(word, word)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def clusters_of(table: pd.DataFrame, cluster: str | None) -> Numbers | None:
    """The number of each row's cluster; None if each row is its own. Raises EvalSetError for a column that the table
    does not have."""
    if cluster is None:
        return None
    if cluster == AUTO:
        keys: list[Any] = [None if s is None else ("session", s) for s in _texts(table, SESSION)]
        of = [None if d is None else ("document", d) for d in _documents(table)]
        keys = [one if one is not None else other for one, other in zip(keys, of, strict=True)]
    elif not isinstance(cluster, str) or cluster not in table.columns:
        raise EvalSetError(f"cluster: expected auto, None or a column ({names(table.columns)}); got {shown(cluster)}")
    else:
        keys = _texts(table, cluster)
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(i if key is None else (key,), len(numbers)) for i, key in enumerate(keys)])


def _texts(table: pd.DataFrame, name: str) -> list[Any]:
    if name not in table.columns:
        return [None] * len(table)
    absent = table[name].isna().tolist()
    return [None if gone or v == "" else str(v) for v, gone in zip(table[name].tolist(), absent, strict=True)]


def _documents(table: pd.DataFrame) -> list[str | None]:
    """The first expected document of each row."""
    if DOCUMENTS not in table.columns:
        return [None] * len(table)
    cells = (cell if isinstance(cell, list | tuple | np.ndarray) else () for cell in table[DOCUMENTS].tolist())
    uris = ([d.get("doc_uri") for d in documents if isinstance(d, Mapping)] for documents in cells)
    return [next((uri for uri in found if isinstance(uri, str)), None) for found in uris]


def errors_table(scores: Mapping[str, Numbers], clusters: Numbers | None) -> pd.DataFrame:
    """A row per metric: its mean with its standard error, of scores that may be NaN."""
    import pandas as pd

    columns = ["metric", "rows", "clusters", "mean", "std_error", "low", "high", "design_effect"]
    frame = pd.DataFrame([(name, *_errors(values, clusters)) for name, values in scores.items()], columns=columns)
    return frame.astype({"rows": "int64", "clusters": "int64"})


def _errors(values: Numbers, clusters: Numbers | None) -> tuple[int, int, float, float, float, float, float]:
    there = ~np.isnan(values)
    scores, own = values[there], None if clusters is None else clusters[there]
    mean = float(scores.mean()) if len(scores) else math.nan
    error, alone = standard_error(scores, own), standard_error(scores)
    count = len(scores) if own is None else len(np.unique(own))
    effect = (error / alone) ** 2 if alone else math.nan
    return len(scores), count, mean, error, mean - Z_INTERVAL * error, mean + Z_INTERVAL * error, effect
