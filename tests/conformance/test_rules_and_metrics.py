"""The checks of the conformance suite on rules and metrics: good ones pass, and one that breaks a promise fails one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest
from msgspec.structs import replace

from agent_eval_schema import validate_eval_set
from agent_eval_schema.conformance.checks import METRIC_CHECKS, RULE_CHECKS
from agent_eval_schema.extend import MetricInfo, RowMetric, RowRule, Rule, Severity
from agent_eval_schema.runtime import extensions
from agent_eval_schema.runtime.extensions import Extension
from agent_eval_schema.validation.chosen_rules import chosen

RULE = Rule(
    "HD001",
    "shouted-answer",
    Severity.WARNING,
    "The answer is in capitals.",
    "It reads as shouting.",
    "Write it in lower case.",
    bad=({"request": "Hi?", "response": "NO!"},),
    good=({"request": "Hi?", "response": "No."},),
)


def shouted(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if (row["response"] or "").isupper():
        yield "response", "expected lower case"


def never(_: dict[str, Any]) -> list[tuple[str, str]]:
    return []


def longer(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [("response", "long")] if len(row["response"]) > 1_000 else []


GOOD_RULE = RowRule(RULE, ("response",), shouted)
BAD_RULES = {
    "declaration": RowRule(RULE, ("answer",), shouted),
    "examples": RowRule(RULE, ("response",), never),
    "damage": RowRule(RULE, ("response",), longer),  # a row without an answer
}

GOOD_METRIC = RowMetric(
    info=MetricInfo("brevity", "higher", (0, 1)),
    reads=("response",),
    measure=lambda text: 1 / (1 + len(text)),
    better={"response": "No."},
    worse={"response": "No, and this is why."},
)
BAD_METRICS = {
    "range": replace(GOOD_METRIC, measure=lambda text: -len(text)),
    "direction": replace(GOOD_METRIC, better=GOOD_METRIC.worse, worse=GOOD_METRIC.better),
    "exceptions": replace(GOOD_METRIC, measure=lambda text: 1 / int(text)),
}


def install(group: str, name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extensions._FOUND, group, {name: Extension(value, "help-desk 2.0")})


@pytest.fixture(autouse=True)
def _codes_are_looked_up_again() -> Iterator[None]:
    chosen.cache_clear()
    yield
    chosen.cache_clear()


@pytest.mark.parametrize("check", RULE_CHECKS)
def test_a_rule_that_breaks_a_promise_fails(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install("rules", "HD001", GOOD_RULE, monkeypatch)
    RULE_CHECKS[check](GOOD_RULE)
    install("rules", "HD001", BAD_RULES[check], monkeypatch)
    with pytest.raises(AssertionError, match=r".+"):
        RULE_CHECKS[check](BAD_RULES[check])


@pytest.mark.parametrize("check", METRIC_CHECKS)
def test_a_metric_that_breaks_a_promise_fails(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install("metrics", "brevity", GOOD_METRIC, monkeypatch)
    METRIC_CHECKS[check](GOOD_METRIC)
    install("metrics", "brevity", BAD_METRICS[check], monkeypatch)
    with pytest.raises(AssertionError, match=r".+"):
        METRIC_CHECKS[check](BAD_METRICS[check])


@pytest.mark.parametrize(
    ("check", "code", "message"),
    [
        (
            lambda _: repeat(("response.a", "no")),
            "AE013",
            "help-desk 2.0 raised an exception: ValueError: more than 1,000",
        ),
        (lambda row: [("response.a", f"no {row['response']}\x1b")], "HD001", "no Yes\\x1b"),
    ],
    ids=["endless", "one issue"],
)
def test_what_a_rule_finds_is_shown_within_limits(
    check: Any, code: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("rules", "HD001", RowRule(RULE, ("response",), check), monkeypatch)
    (issue,) = validate_eval_set([{"request": "Hi?", "response": "Yes"}]).iter_issues()
    assert issue.code == code
    assert message in issue.message


def test_without_values_a_rule_of_a_package_has_its_summary_only(monkeypatch: pytest.MonkeyPatch) -> None:
    quoting = RowRule(RULE, ("response",), lambda row: [(f"response.{row['response']}", row["response"])])
    install("rules", "HD001", quoting, monkeypatch)
    (issue,) = validate_eval_set([{"request": "Hi?", "response": "secret"}], show_values=False).iter_issues()
    assert (issue.path, issue.message) == ("response", "The answer is in capitals.")
