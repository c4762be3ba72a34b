"""Two results of the same rows, by hand and beside scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import CustomMetric, EvalSetError, EvalTask
from agent_eval_schema.evaluation.comparison import paired_test
from tests.evaluation.test_result import result
from tests.evaluation.test_task import SEED


def test_a_comparison_by_hand() -> None:
    old = result([{**row, "id": i} for i, row in enumerate(SEED)])
    better = [{**row, "predicted_trajectory": row["reference_trajectory"], "id": i} for i, row in enumerate(SEED)]
    found = old.compare(result(better))
    line = found.lines[-1]
    assert (line.metric, line.rows, line.old, line.new, line.difference) == ("trajectory_recall", 2, 0.25, 1, 0.75)
    assert (line.higher, line.lower, line.p_value) == (2, 0, 0.5)  # 2 of 4 patterns of signs are as far from 0
    changed = found.rows.query("metric == 'trajectory_recall'")
    assert changed[["row", "old", "new", "difference"]].to_numpy().tolist() == [[0, 0, 1, 1], [1, 0.5, 1, 0.5]]
    assert "+0.75" in str(found)


def test_rows_that_ask_different_things_are_not_compared_by_position() -> None:
    rows = [{**SEED[i % 2], "prompt": p} for i, p in enumerate(["a", "b", None])]
    assert len(result(rows).compare(result(rows)).lines) == 5
    with pytest.raises(EvalSetError, match="row 0 has another prompt in the other result: set key="):
        result(rows).compare(result(rows[::-1]))
    with pytest.raises(EvalSetError, match="the results have 3 and 2 rows: set key="):
        result(rows).compare(result(rows[:2]))


def test_rows_are_matched_by_a_key() -> None:
    rows = [{**SEED[i % 2], "id": f"r{i}"} for i in range(4)]
    found = result(rows).compare(result([*rows[:0:-1], {**SEED[0], "id": "new"}]), key="id")
    assert found.rows.empty
    assert (found.only_old, found.only_new) == (["r0"], ["new"])
    assert "1 row only before" in str(found)
    with pytest.raises(EvalSetError, match="does not identify rows"):
        result(rows).compare(result([rows[0], rows[0]]), key="id")
    with pytest.raises(EvalSetError, match="share no row"):
        result(rows[:1]).compare(result(rows[1:]), key="id")


def test_a_score_that_came_or_went_is_a_change() -> None:
    lost = [{**SEED[0], "predicted_trajectory": None}, SEED[1]]
    found = result().compare(result(lost))
    assert found.rows["row"].tolist() == [0] * 5
    assert found.rows["new"].isna().all()
    assert [line.rows for line in found.lines] == [1] * 5


differences = st.lists(st.sampled_from([-1, -0.5, 0, 0.25, 0.5, 1]), min_size=2, max_size=8)


@given(differences)
def test_the_test_is_that_of_scipy(values: list[float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    found = stats.permutation_test((np.array(values),), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert paired_test(np.array(values)) == pytest.approx(found.pvalue)


@pytest.mark.parametrize("size", [17, 400, 6000])
def test_many_differences(size: int) -> None:
    """Of ones this is the sign test; the three ways to compute it agree."""
    stats = pytest.importorskip("scipy.stats")
    ups = size // 2 + round(math.sqrt(size))
    found = paired_test(np.array([1.0] * ups + [-1.0] * (size - ups)))
    assert found == pytest.approx(stats.binomtest(ups, size).pvalue, abs=0.02)


def test_no_difference() -> None:
    assert paired_test(np.zeros(5)) == 1
    assert math.isnan(paired_test(np.array([])))


@pytest.mark.parametrize("pairs", [4, 100, 5_000])
def test_as_much_better_as_worse_is_a_p_value_of_1(pairs: int) -> None:
    assert paired_test(np.array([1.0, -1.0] * pairs)) == 1


def test_positions_stay_whole_numbers_if_a_metric_is_unchanged() -> None:
    old = [{"prompt": f"{i}", "response": "x", "reference": "x", "a": i} for i in range(3)]
    metrics = ["exact_match", CustomMetric("a", lambda row: row["a"])]
    changed = [{**row, "a": 9} for row in old]
    found = EvalTask(old, metrics).evaluate().compare(EvalTask(changed, metrics).evaluate())
    assert found.rows["key"].tolist() == [0, 1, 2]
    assert found.rows["key"].dtype.kind == "i"
    assert "<td>0.0</td>" not in found.to_html()
