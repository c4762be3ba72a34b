"""Size and power: by hand, and against statsmodels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.profile.size import (
    correlation_within,
    design_effect,
    deviation_of_rate,
    half_width,
    rows_needed,
    smallest_difference,
)


def test_twelve_rows_of_a_rate_by_hand() -> None:
    s = deviation_of_rate(0.5)
    assert s == 0.5
    assert half_width(s, 12) == pytest.approx(1.959964 * 0.5 / math.sqrt(12), abs=1e-6)  # ± 28 points
    assert smallest_difference(s, 12) == pytest.approx((1.959964 + 0.841621) * 0.5 * math.sqrt(2 / 12), abs=1e-6)
    assert smallest_difference(s, 12, 0.5) == pytest.approx((1.959964 + 0.841621) * 0.5 / math.sqrt(12), abs=1e-6)


def test_rows_for_five_points_by_hand() -> None:
    # (1.959964 + 0.841621)² = 7.84888; 2 · (1 − 0.5) · 7.84888 · 0.25 / 0.0025 = 784.888
    assert rows_needed(0.05, 0.5, 0.5) == 785
    assert rows_needed(0.05, 0.5) == 1570
    assert rows_needed(0.05, 0.5, 0.5, design_effect=2.0) == 1570


@pytest.mark.oracle
@pytest.mark.parametrize("rows", [5, 12, 200, 5_000])
@pytest.mark.parametrize("deviation", [0.5, 0.1, 3.0])
def test_statsmodels_finds_the_same_differences(rows: int, deviation: float) -> None:
    power = pytest.importorskip("statsmodels.stats.power")
    unpaired = power.NormalIndPower().solve_power(nobs1=rows, alpha=0.05, power=0.8)
    assert smallest_difference(deviation, rows) == pytest.approx(unpaired * deviation, rel=1e-4)
    paired = power.NormalIndPower().solve_power(nobs1=rows, alpha=0.05, power=0.8, ratio=0)
    of_differences = deviation * math.sqrt(2 * (1 - 0.3))
    assert smallest_difference(deviation, rows, 0.3) == pytest.approx(paired * of_differences, rel=1e-4)


@pytest.mark.oracle
def test_statsmodels_finds_the_same_interval_of_a_rate() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    low, high = proportion.proportion_confint(30, 100, method="normal")
    assert half_width(deviation_of_rate(0.3), 100) == pytest.approx((high - low) / 2)


@pytest.mark.oracle
def test_statsmodels_finds_the_same_correlation_within_clusters() -> None:
    """For clusters of one size, the mean squares are those of its analysis of variance."""
    ols = pytest.importorskip("statsmodels.formula.api").ols
    anova_lm = pytest.importorskip("statsmodels.stats.anova").anova_lm
    import pandas as pd

    random = np.random.default_rng(1)
    clusters = np.repeat(np.arange(40), 5)
    scores = random.normal(size=40)[clusters] + random.normal(size=200)
    table = anova_lm(ols("score ~ C(cluster)", pd.DataFrame({"score": scores, "cluster": clusters})).fit())
    between, within = table["mean_sq"]
    expected = (between - within) / (between + 4 * within)
    assert correlation_within(scores, clusters) == pytest.approx(expected)


def test_the_design_effect_by_hand() -> None:
    # 6 rows in clusters of 4, 1 and 1: a row is, on average, in a cluster of (16 + 1 + 1) / 6 = 3 rows
    assert design_effect(np.array([4, 1, 1]), 0.2) == pytest.approx(1 + (3 - 1) * 0.2)
    assert design_effect(np.array([1, 1]), 1.0) == 1.0
    assert design_effect(np.array([], int), 0.2) == 1.0


@given(st.lists(st.integers(1, 50), min_size=1), st.floats(0, 1))
def test_clusters_never_add_rows(sizes: list[int], correlation: float) -> None:
    effect = design_effect(np.array(sizes), correlation)
    assert effect + 1e-9 >= 1.0
    assert effect <= max(sizes) + 1e-9


@given(st.floats(0.01, 0.5), st.floats(0.01, 0.5), st.floats(0, 0.9))
def test_the_rows_that_are_needed_detect_the_difference(
    difference: float, deviation: float, correlation: float
) -> None:
    rows = rows_needed(difference, deviation, correlation)
    assert smallest_difference(deviation, rows, correlation) <= difference + 1e-9
    if rows > 1:
        assert smallest_difference(deviation, rows - 1, correlation) > difference - 1e-9


def test_nothing_is_said_of_clusters_without_two_scores() -> None:
    assert correlation_within(np.array([0.0, 1.0]), np.array([1, 2])) is None
    assert correlation_within(np.array([1.0, 1.0, 1.0]), np.array([1, 1, 2])) is None
    assert correlation_within(np.array([0.0, 0.0, 1.0, 1.0]), np.array([1, 1, 2, 2])) == 1.0
    assert correlation_within(np.array([0.0, 1.0, 0.0, 1.0]), np.array([1, 1, 2, 2])) == 0.0
