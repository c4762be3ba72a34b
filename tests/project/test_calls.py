"""No verb takes more Python calls per row than its budget, and no good cell visits more functions."""

import os
import sys

import pytest

from tests.benchmarks.calls import BUDGETS, VERBS, calls_per_row
from tests.benchmarks.visits import MOST, visits

pytestmark = pytest.mark.skipif(
    os.environ.get("AGENT_EVAL_SCHEMA_COMPONENTS") == "", reason="the budgets are those of the newest packages"
)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_keeps_to_its_budget_of_calls(verb: str) -> None:
    calls = round(calls_per_row(verb))  # of 512 rows: what a batch costs once is no call of a row
    place = "BUDGETS of tests/benchmarks/calls.py"
    assert calls <= BUDGETS[verb], f"judge columns, not rows; else raise {place}, with the reason in the commit"
    if sys.version_info[:2] == (3, 11):  # later versions of Python inline comprehensions
        assert calls > BUDGETS[verb] * 0.8, f"lower {place}"


@pytest.mark.parametrize("column", MOST)
def test_a_good_cell_keeps_to_its_budget_of_visits(column: str) -> None:
    visited = visits(column)
    assert "decoding.requests.last_user_text" in visited  # it is followed up to where its length is taken
    place = "MOST of tests/benchmarks/visits.py, with the reason in the commit"
    advice = f"`python -m tests.benchmarks.visits` lists them: let fewer functions hold the cell; else raise {place}"
    assert len(visited) <= MOST[column], advice
