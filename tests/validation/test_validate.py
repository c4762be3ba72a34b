"""A dataset in a test."""

from __future__ import annotations

from typing import Any

import pytest

from agent_eval_schema import EvalSetError, assert_valid
from agent_eval_schema.validation.validate import SHOWN
from tests.conftest import SAMPLES

GOOD = {"request": "How many days?", "response": "12 days."}
BAD = {"request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "Hello"}
WARNING = {**GOOD, "expected_facts": []}
CORRECTNESS = "response/llm_judged/correctness/rating"


def said(*arguments: Any, **options: Any) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        assert_valid(*arguments, **options)
    return str(caught.value).splitlines()


def test_a_valid_dataset_passes() -> None:
    assert_valid(SAMPLES / "good.jsonl")
    assert_valid([WARNING])
    assert_valid([BAD], fail_on="never")
    assert_valid([BAD], ignore="AE206")
    assert_valid([BAD], select=["AE3"])


def test_a_failure_lists_the_issues_and_the_verdict() -> None:
    issue, verdict = said([GOOD, BAD])
    assert verdict == "<Report: 1 of 2 rows valid, 1 errors, 0 warnings>"
    assert issue.startswith("data: row 1: error AE206 message-role: request.messages[0].role: expected one of ")
    warning, _ = said([WARNING], fail_on="warning")
    assert warning.startswith("data: row 0: warning AE305 ")


def test_a_long_list_is_cut() -> None:
    lines = said([BAD] * (SHOWN + 3))
    assert (len(lines), lines[-2]) == (SHOWN + 2, "… and 3 more")
    assert len(said([BAD] * SHOWN)) == SHOWN + 1


def test_rows_have_to_support_metrics() -> None:
    rows = [{**GOOD, "expected_response": "12"}, GOOD]
    assert_valid(rows, metrics={"correctness": 1})
    assert_valid(rows[:1], metrics=["correctness", "relevance_to_query"])
    expected = "1 of 2 rows support {}, expected 2: +1 with expected_response or expected_facts"
    assert said(rows, metrics=["correctness"]) == [expected.format(CORRECTNESS)]
    assert said(rows, metrics={CORRECTNESS: 2}) == [expected.format(CORRECTNESS)]
    assert said([BAD, *rows], metrics="correctness")[-1].startswith(f"1 of 3 rows support {CORRECTNESS}, expected 3")


@pytest.mark.parametrize(
    "options", [{"fail_on": "errors"}, {"metrics": ["corectness"]}, {"format": "mlfow"}, {"select": ["AE999"]}]
)
def test_a_wrong_option_is_no_failed_assertion(options: dict[str, Any]) -> None:
    with pytest.raises(EvalSetError, match="expected"):
        assert_valid([GOOD], **options)
