"""Distributions keep to their three digits and lose no value; presence adds up to the rows."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import validate_eval_set
from agent_eval_schema.metrics.catalog import BIT
from agent_eval_schema.render.figures import BARS, CELLS, Distribution, presence
from agent_eval_schema.validation.report import summary_of

LENGTHS = st.integers(0, 200_000).map(float)
numbers = st.lists(st.floats(0, 1e12, allow_nan=False), min_size=1, max_size=200) | st.lists(LENGTHS, min_size=1)


def distribution_of(*batches: list[float]) -> Distribution:
    distribution = Distribution()
    for batch in batches:
        distribution.add(np.array(batch, float))
    return distribution


@given(numbers)
def test_every_number_stands_in_one_bar(values: list[float]) -> None:
    bars = distribution_of(values).bars()
    assert sum(bar.count for bar in bars) == len(values)
    assert len(bars) <= BARS
    assert all(a.high <= b.low or a.low == b.low for a, b in pairwise(bars))


@given(numbers, st.floats(0.01, 1))
def test_a_quantile_is_one_of_the_numbers_to_three_digits(values: list[float], share: float) -> None:
    exact = sorted(values)[max(int(np.ceil(share * len(values))) - 1, 0)]
    assert distribution_of(values).quantile(share) == pytest.approx(exact, rel=0.006, abs=1e-9)


@given(numbers, st.integers(0, 200))
def test_batches_do_not_matter(values: list[float], cut: int) -> None:
    whole, parts = distribution_of(values), distribution_of(values[:cut], values[cut:])
    assert (whole.bars(), whole.highest) == (parts.bars(), parts.highest)


def test_the_highest_of_small_numbers() -> None:
    assert distribution_of([0.25], [0.5, 0.125]).highest == 0.5


def test_small_whole_numbers_have_a_bar_each() -> None:
    assert [(b.low, b.count) for b in distribution_of([1, 1, 4]).bars()] == [(1, 2), (2, 0), (3, 0), (4, 1)]


def test_a_number_has_three_digits() -> None:
    assert [distribution_of([value]).quantile(1) for value in (987, 1_234, 98_765)] == [987, 1_230, 98_800]


def test_what_is_no_number_of_a_row_is_left_out() -> None:
    assert distribution_of([-1, float("nan"), float("inf"), 3]).count == 1


def test_memory_does_not_grow_with_the_numbers() -> None:
    distribution = distribution_of(np.random.default_rng(0).lognormal(3, 2, 200_000).tolist())
    assert distribution.count == 200_000
    assert len(distribution._counts) < 9_000


@given(st.lists(st.booleans(), min_size=1, max_size=500))
def test_presence_adds_up(flags: list[bool]) -> None:
    masks = np.array(flags, np.uint32) * BIT["request"]
    lines = presence(masks, np.ones(len(flags), bool))
    assert [line.field for line in lines] == (["valid", "request"] if any(flags) else ["valid"])
    if any(flags):
        steps = len(lines[1].shares)
        sizes = np.diff(np.linspace(0, len(flags), steps + 1).astype(int))
        assert steps <= CELLS
        assert float((np.array(lines[1].shares) * sizes).sum()) == pytest.approx(sum(flags), abs=0.3)


def test_a_report_knows_the_numbers_of_columns_and_traces() -> None:
    rows = {
        "request": ["a", "b", "c"],
        "response": ["x", "y", "z"],
        "latency_seconds": [0.5, 1.5, None],
        "total_token_count": pd.array([10, None, 30], "Int64"),
        "predicted_trajectory": [[{"tool_name": "t"}], [], None],
    }
    found = summary_of(validate_eval_set(pd.DataFrame(rows))).distributions
    assert {name: d.count for name, d in found.items()} == {
        "request_length": 3,
        "response_length": 3,
        "latency_seconds": 2,
        "total_token_count": 2,
        "tool_calls": 2,
    }
    assert [(b.low, b.count) for b in found["tool_calls"].bars()] == [(0, 1), (1, 1)]


def test_a_verdict_counts_what_the_normalized_rows_hold() -> None:
    report = validate_eval_set("sample_data/search_traces.jsonl")
    rows = report.rows
    assert summary_of(report).distributions["total_token_count"].highest == rows["total_token_count"].max()
    calls = [len(c) for c in rows["predicted_trajectory"] if c is not None]
    assert summary_of(report).distributions["tool_calls"].highest == max(calls)
    assert summary_of(report).distributions["tool_calls"].count == len(calls)
