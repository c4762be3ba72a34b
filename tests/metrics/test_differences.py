"""The test of paired differences: by hand, beside scipy and statsmodels, and its interval beside its p value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema.metrics.differences import LEAST_UNITS, PairedTest, holm, p_value, paired_test, sign_test

stats = pytest.importorskip("scipy.stats")


def outcome(values: list[float], *, span: float | None) -> PairedTest:
    return paired_test(np.array(values), np.arange(len(values)), span)


VALUES = st.lists(st.sampled_from([-1, -0.5, 0, 0.25, 0.5, 1]), min_size=2, max_size=8)


@given(VALUES)
def test_the_test_is_that_of_scipy(values: list[float]) -> None:
    found = stats.permutation_test((np.array(values),), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert p_value(np.array(values)) == pytest.approx(found.pvalue)


@given(st.integers(0, 60), st.integers(0, 60))
def test_of_rates_it_is_mcnemar(better: int, worse: int) -> None:
    mcnemar = pytest.importorskip("statsmodels.stats.contingency_tables").mcnemar
    expected = mcnemar([[5, worse], [better, 5]], exact=True).pvalue
    assert p_value(np.array([1.0] * better + [-1.0] * worse + [0.0] * 10)) == pytest.approx(expected)


@pytest.mark.parametrize("size", [17, 400, 6000])
def test_many_differences(size: int) -> None:
    """Random patterns and the normal distribution are close to the sign test."""
    ups = size // 2 + round(math.sqrt(size))
    sizes = np.array([1.0] * ups + [-1.0] * (size - ups)) * np.linspace(0.999, 1.001, size)
    assert p_value(sizes) == pytest.approx(sign_test(size, ups), abs=0.02)


@pytest.mark.parametrize("pairs", [4, 100, 5_000])
def test_as_much_better_as_worse_is_a_p_value_of_1(pairs: int) -> None:
    assert p_value(np.array([1.0, -1.0] * pairs)) == 1
    assert p_value(np.zeros(5)) == 1


@given(st.lists(st.sampled_from([-1.0, -0.5, 0, 0, 0.25, 0.3, 1]), min_size=6, max_size=40), st.integers(1, 9))
def test_0_is_in_the_interval_exactly_if_p_is_at_least_5_percent(values: list[float], units: int) -> None:
    codes = np.arange(len(values)) % max(units, LEAST_UNITS)
    for scores, span in ((np.array(values), None), (np.array(values), 1.0), (np.sign(values), 1.0)):
        found = paired_test(scores, codes, span)
        if not found.note:
            assert (found.low <= 0 <= found.high) == (found.p_value >= 0.05)


@pytest.mark.parametrize(("size", "shift"), [(200, 0.1), (200, 0.2), (3_000, 0.02), (3_000, 0.05), (3_000, 0.03)])
@pytest.mark.parametrize("differing", [0.01, 0.1, 1.0])
def test_many_units_agree_too(size: int, shift: float, differing: float) -> None:
    random = np.random.default_rng(3)
    for _ in range(5):
        values = (random.normal(size=size) + shift) * (random.random(size) < differing)
        found = paired_test(values, np.arange(size))
        if values.any():
            assert (found.low <= 0 <= found.high) == (found.p_value >= 0.05)


def test_the_ends_by_hand() -> None:
    """Of six units 2 of 64 subsets may be below: the ends are the smallest and the largest difference."""
    found = outcome([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], span=None)
    assert (found.p_value, found.low, found.high) == (2 / 64, 0.1, 0.6)


def test_the_interval_is_that_of_t_for_many() -> None:
    values = np.random.default_rng(0).normal(0.1, 1, 400)
    found = paired_test(values, np.arange(400))
    expected = stats.t.interval(0.95, 399, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, abs=0.01)


def test_equal_differences_are_no_certainty() -> None:
    rates = outcome([1.0] * 12, span=1.0)
    assert rates.p_value == pytest.approx(2 / 2**12)
    assert 0 < rates.low < 0.8
    assert rates.high == 1.0
    assert outcome([0.0] * 12, span=1.0).low < 0 < outcome([0.0] * 12, span=1.0).high
    assert outcome([0.0] * 12, span=None).note == "no interval: no score differs"
    others = outcome([0.25] * 12, span=None)
    assert (others.note, others.p_value) == ("no interval: all differences are the same", pytest.approx(2 / 2**12))


@pytest.mark.parametrize("units", [1, 2, 5])
def test_few_units_cannot_be_outcome(units: int) -> None:
    found = paired_test(np.ones(60), np.arange(60) % units, span=1.0)
    assert found.note == "cannot be tested"
    assert math.isnan(found.p_value)


@pytest.mark.parametrize(("old", "new"), [(0.5, 0.5), (0.98, 0.98), (0.98, 0.9), (0.5, 0.7)])
def test_coverage_of_differences_of_rates(old: float, new: float) -> None:
    random = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        values = (random.random(50) < new).astype(float) - (random.random(50) < old)
        found = paired_test(values, np.arange(50), span=1.0)
        hits += found.low <= new - old <= found.high
    assert hits >= 0.92 * 200


@settings(max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])
    assert holm([math.nan, 0.02, 0.03])[1:] == [0.04, 0.04]


def test_up_to_1000_units_random_patterns_are_drawn_and_equal_differences_counted() -> None:
    different = np.tile([1.0, 2.0], 501)
    assert p_value(different[:1000]) == 1 / 10_001
    assert p_value(different[:1001]) < 1e-50
    assert p_value(np.ones(1000)) == 2 / 2**1000
    assert 2 / 2**1001 < p_value(np.ones(1001)) < 1e-50
