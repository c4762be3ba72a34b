"""No verb takes more Python calls per row than its budget."""

import os
import sys

import pytest

from tests.benchmarks.calls import BUDGETS, VERBS, calls_per_row

pytestmark = pytest.mark.skipif(
    os.environ.get("AGENT_EVAL_SCHEMA_COMPONENTS") == "", reason="the budgets are those of the newest packages"
)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_keeps_to_its_budget_of_calls(verb: str) -> None:
    calls = calls_per_row(verb)
    assert calls <= BUDGETS[verb]
    if sys.version_info[:2] == (3, 11):  # later versions of Python inline comprehensions
        assert calls > BUDGETS[verb] * 0.8, "lower the budget"
