"""Numbers as moments."""

import math

import pytest

from agent_eval_schema.text.moments import micros_of_number


@pytest.mark.parametrize(
    ("number", "micros"),
    [
        (1_700_000_000, 1_700_000_000_000_000),
        (1_700_000_000.5, 1_700_000_000_500_000),
        (1_700_000_000_000, 1_700_000_000_000_000),
        (1_700_000_000_000_000, 1_700_000_000_000_000),
        (1_700_000_000_000_000_000, 1_700_000_000_000_000),
        *((number, None) for number in (-1, math.nan, math.inf, -math.inf, 1e21, 10**400)),
    ],
)
def test_the_size_of_a_number_determines_its_unit(number: float, micros: int | None) -> None:
    assert micros_of_number(number) == micros
