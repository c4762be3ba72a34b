"""Intervals of means by closed forms, and against statsmodels and scipy."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.metrics.intervals import (
    LEAST_UNITS,
    mean_interval,
    spread_by_group,
    standard_error,
    t_quantile,
    wilson,
)
from tests.metrics.interval_coverage import (
    SCORES,
    coverage_of_clustered_scores,
    coverage_of_differences,
    coverage_of_scores,
    exact_coverage,
    simulated_coverage,
)

stats = pytest.importorskip("scipy.stats")

NAN = math.nan


def test_standard_error_by_hand() -> None:
    """Mean 1/2; the first unit is 2 · 1/2 away, the second −1/2, the third −1/2: √(3/2 · (1 + 1/4 + 1/4)) / 4."""
    found = standard_error(np.array([1.0, 1, 0, 0]), np.array([7, 7, 1, 2]))
    assert found == pytest.approx(math.sqrt(1.5 * 1.5) / 4)
    alone = standard_error(np.array([1.0, 0, 0, 1, 1]))
    assert alone == pytest.approx(np.std([1, 0, 0, 1, 1], ddof=1) / math.sqrt(5))


@pytest.mark.parametrize("units", [np.array([], int), np.array([3]), np.array([3, 3, 3])])
def test_fewer_than_two_units_have_no_standard_error(units: np.ndarray) -> None:  # type: ignore[type-arg]
    assert math.isnan(standard_error(np.ones(len(units)), units))


ROWS = st.lists(st.tuples(st.floats(-5, 5).map(lambda f: round(f, 3)), st.integers(0, 9)), min_size=8, max_size=30)


@given(ROWS.filter(lambda rows: len({c for _, c in rows}) >= LEAST_UNITS))
def test_statsmodels_finds_the_same_standard_error_and_interval(rows: list[tuple[float, int]]) -> None:
    """Cluster-robust, with the t distribution of G − 1 degrees of freedom."""
    sm = pytest.importorskip("statsmodels.api")
    scores, units = np.array([s for s, _ in rows]), np.array([c for _, c in rows])
    fitted = sm.OLS(scores, np.ones(len(rows))).fit(cov_type="cluster", cov_kwds={"groups": units}, use_t=True)
    assert standard_error(scores, units) == pytest.approx(float(fitted.bse[0]), abs=1e-9)
    found = mean_interval(scores, units)
    if not found.note and (scores.min() < 0 or scores.max() > 1):  # others are taken for scores from 0 to 1
        assert (found.low, found.high) == pytest.approx(fitted.conf_int()[0], abs=1e-6)


@given(st.integers(5, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), st.sampled_from([0.9, 0.95]))
def test_statsmodels_finds_the_same_interval_of_a_rate(case: tuple[int, int], level: float) -> None:
    rows, ones = case
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    expected = proportion.proportion_confint(ones, rows, method="wilson", alpha=1 - level)
    found = mean_interval(np.array([1.0] * ones + [0.0] * (rows - ones)), level=level)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)
    assert found.low < found.high


@given(st.floats(0.6, 0.9995), st.integers(1, 200_000))
def test_scipy_finds_the_same_quantiles_of_t(share: float, freedom: int) -> None:
    assert t_quantile(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-8)


def test_all_right_is_no_certainty() -> None:
    found = mean_interval(np.ones(12))
    assert (round(found.low, 3), found.high) == (0.758, 1.0)  # 12 / (12 + 1.96²)
    assert mean_interval(np.zeros(12)).high == pytest.approx(1 - found.low)


def test_equal_answers_to_one_question_count_once() -> None:
    """Ten questions, ten times each, all right: Wilson's interval of ten rows, with t of nine degrees of freedom."""
    found = mean_interval(np.ones(100), np.repeat(np.arange(10), 10))
    assert (found.low, found.high) == pytest.approx(wilson(1.0, 10, t_quantile(0.975, 9)))
    assert (found.rows, found.units) == (100, 10)


def test_the_design_effect_narrows_the_rows() -> None:
    """Six questions of four equal answers, three right: deff is 23/5 · 24/23 · 6/… by hand 4.6; 6 telling units."""
    scores, units = np.repeat([1.0, 1, 1, 0, 0, 0], 4), np.repeat(np.arange(6), 4)
    found = mean_interval(scores, units)
    # SE² = 6/5 · 6 · 2² / 24² = 0.05; of rows: 0.25 / 23
    assert found.std_error == pytest.approx(math.sqrt(0.05))
    assert found.design_effect == pytest.approx(0.05 * 23 / 0.25)
    used = (3 * 4.6 + 4.6) / 4  # three units have a right answer; the widest effect, 4, is smaller
    assert (found.low, found.high) == pytest.approx(wilson(0.5, 24 / used, t_quantile(0.975, 5)))


@pytest.mark.parametrize(
    ("scores", "units", "note"),
    [
        ([1.0, 0, 1, 1], None, "no interval: 4 independent units, at least 5 are needed"),
        ([1.0] * 9, [1] * 9, "no interval: 1 independent unit, at least 5 are needed"),
        ([2.5] * 9, None, "no interval: all scores are the same"),
        ([NAN, math.inf], None, "no row has a score"),
    ],
)
def test_why_there_is_no_interval(scores: list[float], units: list[int] | None, note: str) -> None:
    found = mean_interval(np.array(scores), None if units is None else np.array(units))
    assert found.note == note
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_the_interval_ends_with_the_scale() -> None:
    scores = np.array([5.0, 5, 5, 4, 5])
    assert mean_interval(scores).high > 5
    assert mean_interval(scores, scale=(1, 5)).high == 5
    assert mean_interval(scores, scale=(0, math.inf)).high > 5


def test_a_score_near_an_end_is_not_more_certain_than_one_at_it() -> None:
    """Eleven scores of 1 and one of 0.99 are worse than twelve of 1, and so is their lower bound."""
    ones = np.ones(12)
    near = np.append(ones[:-1], 0.99)
    for scale in (None, (0.0, 1.0)):
        assert 0.7 < mean_interval(near, scale=scale).low <= mean_interval(ones, scale=scale).low
        assert 0.3 > mean_interval(1 - near, scale=scale).high >= mean_interval(1 - ones, scale=scale).high


@pytest.mark.parametrize("ones", range(13))
def test_between_a_better_and_a_worse_rate_is_the_bound_of_scores_between_them(ones: int) -> None:
    """Scores that are not below those of one run, and not above those of another, have a bound between theirs."""
    scores = np.where(np.arange(12) < ones, 0.99, 0.01)
    low, between, high = (mean_interval(of, scale=(0, 1)) for of in (np.floor(scores), scores, np.ceil(scores)))
    assert low.low <= between.low <= high.low
    assert low.high <= between.high <= high.high


@pytest.mark.parametrize("rows", [10, 20])
@pytest.mark.parametrize("name", SCORES)
def test_an_interval_of_scores_on_a_known_scale_contains_their_mean(name: str, rows: int) -> None:
    assert coverage_of_scores(name, rows, repeats=300)[0] >= 0.9
    assert coverage_of_differences(name, rows, repeats=50) >= 0.9


@pytest.mark.parametrize("name", SCORES)
def test_intervals_of_clustered_scores_contain_what_they_promise(name: str) -> None:
    assert min(coverage_of_clustered_scores(name, 10, repeats=60)) >= 0.9


def test_one_score_of_each_end_is_added() -> None:
    """Of 5 times 0.5 on 0 to 1: the mean of seven is 0.5, SE² = 7/6 · 2 · 0.5² / 7²."""
    found = mean_interval(np.full(5, 0.5), scale=(0, 1))
    half = t_quantile(0.975, 6) * math.sqrt(7 / 6 * 0.5) / 7
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half))
    assert mean_interval(np.full(5, 3.0), scale=(1, 5)).low == pytest.approx(1 + 4 * found.low)


def test_what_an_interval_assumes_of_an_unknown_scale() -> None:
    near, far = np.linspace(0.1, 0.9, 9), np.linspace(1, 40, 9)
    assert mean_interval(near).assumes == "that it is from 0 to 1, as all scores are"
    assert mean_interval(far).assumes == "that no score is far from the others"
    for found in (
        mean_interval(near, scale=(0, 1)),
        mean_interval(far, scale=(0, math.inf)),
        mean_interval(np.ones(9)),
    ):
        assert found.assumes == ""


def test_a_scale_that_a_score_is_outside_of_is_not_that_of_the_scores() -> None:
    scores = np.array([1.0, 4, 5, 3, 5, 2])
    found, free = mean_interval(scores, scale=(0, 1)), mean_interval(scores)
    assert (found.low, found.high) == (free.low, free.high)  # one that ended at 1 did not hold the mean
    assert mean_interval(scores, scale=(2, 5)).high == min(free.high, 5)


def test_huge_scores() -> None:
    found = mean_interval(np.array([1e308, 1e308, -1e308, 1e300, 0, 1]))
    assert np.isfinite([found.mean, found.std_error, found.low, found.high]).all()


@pytest.mark.oracle
def test_the_spread_of_repeated_questions() -> None:
    """Against the analysis of variance of statsmodels, for groups of one size."""
    ols = pytest.importorskip("statsmodels.formula.api").ols
    anova_lm = pytest.importorskip("statsmodels.stats.anova").anova_lm
    import pandas as pd

    random = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 5)
    scores = random.normal(size=40)[groups] + random.normal(size=200)
    table = anova_lm(ols("score ~ C(g)", pd.DataFrame({"score": scores, "g": groups})).fit())
    between, within = table["mean_sq"]
    assert spread_by_group(scores, groups) == pytest.approx((math.sqrt((between - within) / 5), math.sqrt(within)))
    assert spread_by_group(np.array([0.0, 1, 0, 1]), np.array([1, 1, 2, 2])) == (0.0, pytest.approx(math.sqrt(0.5)))
    assert all(map(math.isnan, spread_by_group(np.array([0.0, 1]), np.array([1, 2]))))


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("rows", [5, 20, 100, 500])
def test_exact_coverage(rows: int, rate: float) -> None:
    assert exact_coverage(rows, rate) >= 0.9


def test_coverage_of_clusters() -> None:
    assert min(simulated_coverage(10, rate, 0.5, repeats=400) for rate in (0.02, 0.5, 0.98)) >= 0.9


def test_many_different_scores_take_little_memory() -> None:
    """The bootstrap of 60,000 different scores took two gigabytes."""
    scores = np.random.default_rng(0).random(60_000)
    tracemalloc.start()
    mean_interval(scores, np.arange(60_000) // 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
