"""The calls of validations with their HTML report, of profiles, diffs, comparisons and conversions grow in proportion
to the data, which is doubled three times."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agent_eval_schema import (
    EvalResult,
    EvalTask,
    convert_eval_set,
    diff_eval_sets,
    profile_eval_set,
    validate_eval_set,
)
from tests.benchmarks.calls import calls_of
from tests.benchmarks.growth import DOUBLINGS, SHAPES, Row


def _changed(rows: list[Row]) -> list[Row]:
    changed = copy.deepcopy(rows[::-1])
    for cells in changed:
        cells["response"] += " Changed."
    return changed


VERBS: dict[str, Callable[[list[Row]], object]] = {
    "profile": lambda rows: profile_eval_set(rows).to_html(),
    "diff": lambda rows: diff_eval_sets(rows, _changed(rows)).to_html(),
    "report": lambda rows: validate_eval_set(rows).to_html(),
    "conversion": lambda rows: convert_eval_set(rows, "ragas"),
    "conversion of other messages": lambda rows: convert_eval_set(rows, "bedrock"),
}


def require_proportion(run: Callable[[Any], object], make: Callable[[int], Any]) -> None:
    """Require that a doubling adds at most twice the calls of the one before, with some for larger tables."""
    sizes = [FIRST << doubling for doubling in range(DOUBLINGS + 1)]
    run(make(sizes[-1]))  # fills caches, and imports what only many need
    calls = [calls_of(run, make(size)) for size in sizes]
    *before, last = np.maximum(np.diff(calls), MOST_FIXED)
    assert last <= MOST_TIMES * max(before), dict(zip(sizes, calls, strict=True))


FIRST = 50
"""The size before it is doubled."""

MOST_TIMES = 2.6
"""Of a cost that grows with the square of the size a doubling adds four times the calls of the one before."""

MOST_FIXED = 4_000
"""Calls that a larger table may take once: a longer list or text is shown, up to where it is cut. Each pair of 400
parts would take 80,000."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("verb", VERBS)
def test_calls_grow_in_proportion(verb: str, shape: str) -> None:
    require_proportion(VERBS[verb], SHAPES[shape])


def test_the_calls_of_a_comparison_grow_in_proportion() -> None:
    def scored(size: int) -> list[EvalResult]:
        rows = [{"prompt": f"Question {i}?", "response": str(i % 3), "reference": "1"} for i in range(size)]
        again = [{**cells, "response": str(i % 2)} for i, cells in enumerate(rows)]
        return [EvalTask(table, ["exact_match"]).evaluate() for table in (rows, again)]

    require_proportion(lambda results: results[0].compare(results[1]).to_html(), scored)


def test_a_cost_that_grows_with_the_square_is_found() -> None:
    def compare_all(rows: list[Row]) -> None:
        for one in rows:
            for other in rows:
                one.get("request") == other.get("request")  # noqa: B015

    with pytest.raises(AssertionError, match="400"):
        require_proportion(compare_all, SHAPES["rows"])
