"""The numbers of scores, beside numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.evaluation.table import ScoreStats
from agent_eval_schema.metrics.intervals import mean_interval

NAN = math.nan


scores = st.lists(st.floats(0, 5, width=16) | st.sampled_from([0, 0.5, 1, NAN]), max_size=40)


@given(scores)
def test_a_tally_is_what_numpy_computes(values: list[float]) -> None:
    tally = ScoreStats(values)
    kept = np.array([v for v in values if not math.isnan(v)])
    assert tally.scored == len(kept)
    assert tally.mean == pytest.approx(kept.mean() if len(kept) else NAN, nan_ok=True)
    assert tally.std == pytest.approx(kept.std(ddof=1) if len(kept) > 1 else NAN, nan_ok=True)
    for share in (0, 0.5, 0.9, 1):
        expected = np.quantile(kept, share) if len(kept) else NAN
        assert tally.percentile(share) == pytest.approx(expected, nan_ok=True)


def test_infinite_and_huge_scores() -> None:
    """An infinite score is none; the sum of huge ones is not infinite."""
    tally = ScoreStats([math.inf, -math.inf, 1e308, 1e308, 1e308, 0, 0, 0])
    assert (tally.scored, tally.mean) == (6, 5e307)
    assert tally.std == pytest.approx(1e308 * math.sqrt(0.3))
    assert math.isfinite(mean_interval(tally.by_row).high)
