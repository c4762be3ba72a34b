"""Size and power: by hand, against statsmodels, and by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.metrics.differences import LEAST_UNITS, sign_test
from agent_eval_schema.metrics.power import (
    POWER,
    differing,
    power_of_rates,
    rows_for_difference,
    rows_for_rate_difference,
    smallest_difference,
    smallest_rate_difference,
)
from agent_eval_schema.profile.size import correlation_within, design_effect


def test_power_by_hand() -> None:
    """Of six rows all six must change in one direction: with shares of 0.9 and 0 that is 0.9⁶."""
    assert power_of_rates(6, 0.0, 0.9) == pytest.approx(0.9**6)
    assert power_of_rates(5, 0.0, 1.0) == 0
    assert power_of_rates(6, 0.5, 0.5) == pytest.approx(2 / 2**6)


def test_rows_that_differ_by_hand() -> None:
    """Half of the rows right, then all wrong: the rows that were right differ. With a correlation of 0.5 and no
    difference a quarter of the rows differ."""
    assert differing(0.5, 0.5, 0.5) == (0.0, 0.5)
    assert differing(0.5, 0.0, 0.5) == (0.125, 0.125)
    assert differing(0.02, 0.1, 0.5) == differing(0.98, 0.1, 0.5)  # the direction with room


@pytest.mark.parametrize("rows", [12, 20, 50, 100, 500])
@pytest.mark.parametrize("rate", [0.5, 0.98])
def test_the_promise_is_kept_by_the_test(rows: int, rate: float) -> None:
    difference = smallest_rate_difference(rate, rows, 0.5)
    if difference is None:
        better, worse = differing(rate, rate, 0.5)  # not even the largest difference is shown
        assert (rows, rate) == (12, 0.5)
        assert power_of_rates(rows, better, worse) < 0.8
        return
    better, worse = differing(rate, difference, 0.5)
    random = np.random.default_rng(1)
    drawn = random.multinomial(rows, [better, worse, 1 - better - worse], 2_000).tolist()
    assert np.mean([sign_test(ups + downs, ups) < 0.05 for ups, downs, _ in drawn]) == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.98])
def test_the_approximation_continues_the_exact_power(rate: float) -> None:
    exact, approximate = (smallest_rate_difference(rate, rows, 0.5) for rows in (2_000, 2_001))
    assert approximate == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("rows", [0, 1, 5, 5.9])
def test_fewer_than_six_rows_show_nothing(rows: float) -> None:
    assert smallest_rate_difference(0.5, rows, 0.9) is None
    assert smallest_difference(1.0, rows, 0.5) is None


@pytest.mark.oracle
@pytest.mark.parametrize("rows", [12, 50, 200, 5_000])
def test_statsmodels_finds_the_same_differences_of_scores(rows: int) -> None:
    power = pytest.importorskip("statsmodels.stats.power")
    expected = power.TTestPower().solve_power(nobs=rows, alpha=0.05, power=0.8)
    assert smallest_difference(0.3, rows, 0.5) == pytest.approx(expected * 0.3, rel=0.02)


@given(st.floats(0.02, 0.4), st.floats(0.5, 0.98), st.floats(0, 0.9))
def test_the_rows_that_are_needed_show_the_difference(difference: float, rate: float, correlation: float) -> None:
    rows = rows_for_rate_difference(rate, difference, correlation)
    shown = smallest_rate_difference(rate, rows, correlation)
    assert shown is not None
    assert shown <= difference * 1.001
    of_scores = rows_for_difference(0.5, difference, correlation)
    assert (smallest_difference(0.5, of_scores, correlation) or 1) <= difference
    if of_scores > LEAST_UNITS:
        assert (smallest_difference(0.5, of_scores - 1, correlation) or 1) > difference


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


def test_the_correlation_within_clusters() -> None:
    assert correlation_within(np.array([0.0, 1.0]), np.array([1, 2])) is None
    assert correlation_within(np.array([1.0, 1.0, 1.0]), np.array([1, 1, 2])) is None
    assert correlation_within(np.array([0.0, 0.0, 1.0, 1.0]), np.array([1, 1, 2, 2])) == 1.0
    assert correlation_within(np.array([0.0, 1.0, 0.0, 1.0]), np.array([1, 1, 2, 2])) == 0.0
    scores, clusters = np.array([1.0, 1, 0, 0, 1, 0]), np.array([0, 0, 1, 1, 2, 2])
    # mean squares: between (2 · (1/4 + 1/4)) / 2 = 1/2, within 1/2 / 3; (1/2 − 1/6) / (1/2 + 1/6)
    assert correlation_within(scores, clusters) == pytest.approx(0.5)
    assert math.isclose(correlation_within(scores * 7, clusters) or 0, 0.5)


@pytest.mark.parametrize(("rate", "difference"), [(0.5, 0.3), (0.8, 0.15), (0.5, 0.1)])
def test_one_row_less_has_less_power(rate: float, difference: float) -> None:
    rows, shares = rows_for_rate_difference(rate, difference, 0), differing(rate, difference, 0)
    assert power_of_rates(rows - 1, *shares) < POWER <= power_of_rates(rows, *shares)
