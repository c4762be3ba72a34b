"""The numbers of scores, beside numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.evaluation.table import ScoreStats

NAN = math.nan


scores = st.lists(st.floats(0, 5, width=16) | st.sampled_from([0, 0.5, 1, NAN]), max_size=40)


@given(scores, st.integers(1, 7))
def test_a_tally_is_what_numpy_computes(values: list[float], step: int) -> None:
    tally = ScoreStats()
    for start in range(0, len(values), step):
        tally.add(np.array(values[start : start + step], np.float64))
    kept = np.array([v for v in values if not math.isnan(v)])
    assert (tally.rows, tally.scored) == (len(values), len(kept))
    assert tally.mean == pytest.approx(kept.mean() if len(kept) else NAN, nan_ok=True)
    assert tally.std == pytest.approx(kept.std(ddof=1) if len(kept) > 1 else NAN, nan_ok=True)
    for share in (0, 0.5, 0.9, 1):
        expected = np.quantile(kept, share) if len(kept) else NAN
        assert tally.percentile(share) == pytest.approx(expected, nan_ok=True)


def test_an_interval_holds_the_mean_and_is_repeatable() -> None:
    tally = ScoreStats([0.0] * 30 + [1.0] * 70)
    low, high = tally.interval()
    assert low < 0.7 < high
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.7 * 0.3 / 100), rel=0.15)  # that of a proportion
    assert tally.interval() == (low, high)
    assert tally.interval(0.5) > (low, 0)
    assert ScoreStats([1.0]).interval() == (1, 1)
    assert all(map(math.isnan, ScoreStats().interval()))
