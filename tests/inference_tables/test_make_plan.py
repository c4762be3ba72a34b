"""The plan of a build: each option as it was given, and what cannot be one."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import EvalSetError
from agent_eval_schema.inference_tables.finish.redact import libraries_at_hand
from agent_eval_schema.inference_tables.make_plan import instant_of, plan_of
from agent_eval_schema.inference_tables.plan import BuildOptions, BuildPlan

COLUMNS = ["databricks_request_id", "request", "response", "status_code", "request_time", "region"]


def plan(**options: Any) -> BuildPlan:
    return plan_of(COLUMNS, BuildOptions(**options))[0]


@pytest.mark.parametrize(("dedupe", "by_question"), [("id", False), ("question", True), ("near", True), (None, False)])
def test_questions_are_compared_if_they_decide(dedupe: str | None, by_question: bool) -> None:
    assert plan(dedupe=dedupe).by_question == by_question
    assert (plan(dedupe=dedupe, near=0.5).near == 0.5) == (dedupe == "near")


def test_the_libraries_of_redaction_are_noted() -> None:
    pytest.importorskip("phonenumbers")
    pytest.importorskip("stdnum")
    redacted = plan(redact="default", redact_region="GB")
    assert redacted.redact_with == libraries_at_hand(redacted.redact_region)
    assert (plan(redact=None).redact_with, plan(redact="none").redact) == ((), None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"stratify": "region"}, ("carried", ("region",))),
        ({"stratify": "thumbs"}, ("by_thumbs", True)),
        ({"stratify": "day"}, ("stratum_column", "day")),
        ({"stratify": "length(request) > 9"}, ("stratum_sql", "length(request) > 9")),
        ({"balance_by": "region", "sample": 20}, ("balanced", True)),
    ],
)
def test_strata_are_columns_or_sql(options: dict[str, Any], expected: tuple[str, Any]) -> None:
    name, value = expected
    assert getattr(plan(**options), name) == value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stratify": " "}, "stratify: expected a column or an SQL expression, got ' '"),
        ({"stratify": 3}, "stratify: expected a column or an SQL expression, got 3"),
        ({"stratify": "team"}, "stratify: the table has no column 'team'; in addition to its columns there are day"),
        ({"balance_by": "team", "sample": 20}, "balance_by: the table has no column 'team'"),
        ({"balance_by": "region"}, "balance_by: needs a sample that is a number of rows"),
        ({"dedupe": "near", "near": 0}, "near: expected a similarity above 0, at most 1, got 0"),
        ({"since": pd.NaT}, "since: expected a date or time such as 2025-11-03 or 2025-11-03T09:00:00Z, got NaT"),
        ({"since": "2025-11-04", "until": "2025-11-04"}, "since must be before until: the interval is empty"),
    ],
)
def test_what_cannot_be_an_option_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvalSetError, match=re.escape(message)):
        plan(**options)


@pytest.mark.parametrize(
    "moment",
    [
        "2025-11-03",
        "2025-11-03T01:00:00+01:00",
        date(2025, 11, 3),
        datetime(2025, 11, 3, tzinfo=timezone.utc),
        pd.Timestamp("2025-11-03 00:00:00.000000001"),
    ],
)
def test_a_moment_is_in_microseconds(moment: Any) -> None:
    assert instant_of(moment, "since") == 1_762_128_000_000_000
