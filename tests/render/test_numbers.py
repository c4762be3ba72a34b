"""Numbers are written alike everywhere, and no table breaks one at any width."""

import math
import re

import pandas as pd
import pytest

from agent_eval_schema import Diff, EvalTask, diff_eval_sets, profile_eval_set
from agent_eval_schema.evaluation.result_blocks import MetricComparison
from agent_eval_schema.render.phrases import aligned, number, seconds, share, signed
from tests.conftest import SAMPLES
from tests.helpers.scores import comparison_of

WIDTHS = [60, 80, 100, 140]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(1 / 3, "0.333"), (1, "1"), (0.0, "0"), (12.345, "12.3"), (123456, "123,000"), (0.00012345, "0.000123")],
        *[(-0.5, "-0.5"), (-0.0, "0"), (math.nan, "–"), (math.inf, "∞"), (1e-9, "1.00e-09")],
    ],
)
def test_a_number_has_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_a_column_has_the_same_decimals() -> None:
    assert aligned([1 / 3, 1, 0.5, math.nan]) == ["0.333", "1.000", "0.500", "–"]
    assert aligned([1, 0, 1]) == ["1", "0", "1"]


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        *[(0, 9, "0%"), (9, 9, "100%"), (570, 5000, "11%"), (90, 5000, "1.8%"), (1, 10**6, "<0.1%")],
        *[(10**6 - 1, 10**6, ">99.9%"), (995, 1000, "99.5%"), (0, 0, "0%")],
    ],
)
def test_a_share_is_whole_only_if_it_is(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text


def test_a_unit_stays_with_its_number() -> None:
    assert [seconds(v) for v in (1.5, 0.0123, 4e-6, 0.0)] == ["1.5\xa0s", "12.3\xa0ms", "4\xa0µs", "0\xa0s"]
    assert [signed(v) for v in (0.25, -0.25, 0.0, math.nan)] == ["+0.25", "−0.25", "0", "–"]


def numbers_in(text: str) -> list[str]:
    return re.findall(r"\d[\d.,]*", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_of_a_comparison_is_broken(width: int) -> None:
    names = ["trajectory_single_tool_use", "a_metric_with_an_extremely_long_name_that_fills_the_whole_line"]
    numbers = (12_345, 0, 0, 0.12345, 0.23456, 0.11111, 0.0912, 0.1234, 6_789, 1_234, 0.0456, 0.0912, 0.01, 12_345, "")
    lines = [MetricComparison(n, *numbers) for n in names]
    text = comparison_of(lines, pd.DataFrame()).to_text(width=width)
    expected = ["0.123", "0.235", "0.111", "0.0912", "0.123", "6,789", "1,234", "12,345", "0.0456", "0.0912"]
    assert [numbers_in(line) for line in text.splitlines() if "12,345" in line] == [expected] * 2
    assert max(map(len, text.splitlines())) <= max(width, 80)


@pytest.fixture(scope="module")
def differing() -> Diff:
    return diff_eval_sets(SAMPLES / "good.jsonl", SAMPLES / "edited_broken.jsonl")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_of_a_diff_is_broken(differing: Diff, width: int) -> None:
    counts = re.findall(r"(\d+/12) → (\d+/12)$", differing.to_text(width=width), re.MULTILINE)
    assert len(counts) == 12
    assert counts[0] == ("12/12", "11/12")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_of_a_profile_is_broken(width: int) -> None:
    text = profile_eval_set(SAMPLES / "good.jsonl").to_text(width=width)
    assert len(re.findall(r" 876 +2,398 +21,146$", text, re.MULTILINE)) == 4
    assert "chunk_relevance_precision" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_of_a_result_is_broken(width: int) -> None:
    calls = [{"tool_name": "a", "tool_input": {}}]
    rows = [{"prompt": "x", "predicted_trajectory": calls * n, "reference_trajectory": calls} for n in (1, 2, 3)]
    text = EvalTask(rows, ["trajectory_exact_match", "trajectory_precision"]).evaluate().to_text(width=width)
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("trajectory_exact_match"))
    assert numbers_in(lines[at] + lines[at + 1])[:5] == ["0.333", "0.577", "3", "3", "100"]
