"""Standard errors by hand, and against the cluster-robust ones of statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError, EvalTask
from agent_eval_schema.metrics.standard_errors import clusters_of, errors_table, numbers_of, standard_error

sm = pytest.importorskip("statsmodels.api")

RIGHT, WRONG = {"response": "4", "reference": "4"}, {"response": "3", "reference": "4"}


def test_by_hand() -> None:
    """Mean 1/2; the first cluster is 2 · 1/2 away, the second −1/2, the third −1/2: √(3/2 · (1 + 1/4 + 1/4)) / 4."""
    found = standard_error(np.array([1.0, 1, 0, 0]), np.array([7, 7, 1, 2]))
    assert found == pytest.approx(math.sqrt(1.5 * 1.5) / 4)


def test_independent_rows() -> None:
    assert standard_error(np.array([1.0, 0, 0, 1, 1])) == pytest.approx(np.std([1, 0, 0, 1, 1], ddof=1) / math.sqrt(5))


@pytest.mark.parametrize("clusters", [np.array([], int), np.array([3]), np.array([3, 3, 3])])
def test_fewer_than_two_clusters_have_none(clusters: np.ndarray) -> None:  # type: ignore[type-arg]
    assert math.isnan(standard_error(np.ones(len(clusters)), clusters))


@given(
    st.lists(st.tuples(st.floats(-5, 5).map(lambda f: round(f, 3)), st.integers(0, 5)), min_size=3, max_size=30).filter(
        lambda rows: len({c for _, c in rows}) > 1
    )
)
def test_statsmodels_finds_the_same(rows: list[tuple[float, int]]) -> None:
    scores, clusters = np.array([s for s, _ in rows]), np.array([c for _, c in rows])
    fitted = sm.OLS(scores, np.ones(len(rows))).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert standard_error(scores, clusters) == pytest.approx(float(fitted.bse[0]), abs=1e-9)


def test_clusters_are_sessions_and_then_documents() -> None:
    table = pd.DataFrame(
        {
            "session_id": ["a", "a", None, None, "", "u"],
            "expected_retrieved_context": [[{"doc_uri": "v"}], None, [{"doc_uri": "u"}], [{"doc_uri": "u"}], [], None],
            "team": ["x", "x", "x", "y", None, None],
        }
    )
    assert clusters_of(table, "auto").tolist() == [0, 0, 1, 1, 2, 3]
    assert clusters_of(table, "team").tolist() == [0, 0, 0, 1, 2, 3]
    assert clusters_of(table, None) is None
    with pytest.raises(EvalSetError, match=r"cluster: expected auto, None or a column .*team.*; got 'nothing'"):
        clusters_of(table, "nothing")


def test_words_of_judges_are_numbers() -> None:
    found = numbers_of(["yes", "no", True, 0.25, [1.0, "no"], None, "what", [], float("inf")])
    assert found[:5].tolist() == [1.0, 0.0, 1.0, 0.25, 0.5]
    assert np.isnan(found[5:]).all()


def test_the_table_counts_rows_with_a_score() -> None:
    table = errors_table({"m": np.array([1.0, np.nan, 0.0, 0.0])}, np.array([1, 1, 2, 2])).to_dict("records")[0]
    assert (table["rows"], table["clusters"], table["mean"]) == (3, 2, pytest.approx(1 / 3))
    error = math.sqrt(2 * ((2 / 3) ** 2 + (2 / 3) ** 2)) / 3
    assert table["std_error"] == pytest.approx(error)
    assert table["high"] == pytest.approx(1 / 3 + 1.959964 * error)
    assert table["design_effect"] == pytest.approx((error / (np.std([1, 0, 0], ddof=1) / math.sqrt(3))) ** 2)


def test_a_comparison_is_paired_and_clustered() -> None:
    """Three rows of one session become better together: that is one observation, not three."""
    sessions = ["a", "a", "a", "b", "c"]
    old = EvalTask([{**WRONG, "session_id": s} for s in sessions], ["exact_match"]).evaluate()
    better = [RIGHT if s == "a" else WRONG for s in sessions]
    new = EvalTask([{**row, "session_id": s} for row, s in zip(better, sessions, strict=True)], ["exact_match"])
    line, alone = (old.compare(new.evaluate(), cluster=c).lines[0] for c in ("auto", None))
    assert (line.difference, alone.difference) == (0.6, 0.6)
    assert (line.p_value, alone.p_value) == (1.0, 0.25)  # signs: of one sum; of three
    assert line.std_error == pytest.approx(math.sqrt(1.5 * (1.2**2 + 0.6**2 + 0.6**2)) / 5)
    assert alone.std_error == pytest.approx(np.std([1, 1, 1, 0, 0], ddof=1) / math.sqrt(5))
    assert line.high == pytest.approx(0.6 + 1.959964 * line.std_error)
