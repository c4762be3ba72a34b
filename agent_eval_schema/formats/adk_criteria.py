"""The criteria in `test_config.json`, by which google-adk evaluates the evalsets of the same folder.

    {"criteria": {"response_match_score": 0.8, "tool_trajectory_avg_score": {"threshold": 1, "match_type": "IN_ORDER"}}}

Source: google-adk 2.13.0 (`AgentEvaluator.find_config_for_test_file`, `EvalConfig` and `criterion_type`).
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_eval_schema.formats import adk_schema
from agent_eval_schema.formats.adk_schema import snake_case
from agent_eval_schema.io.places import TEST_CONFIG, root_of
from agent_eval_schema.issues import Finding
from agent_eval_schema.metrics.catalog import METRICS, Metric
from agent_eval_schema.metrics.known_metrics import CATALOG
from agent_eval_schema.metrics.metric_info import SHARE
from agent_eval_schema.rules.adk import UNKNOWN_KEY, WRONG_CRITERION
from agent_eval_schema.text.choices import meant
from agent_eval_schema.text.describe import describe, key_name
from agent_eval_schema.text.jsontext import Malformed, parse

_METRICS = {metric.name.removeprefix("adk/"): metric for metric in METRICS if metric.system == "adk"}

OPTIONS = {
    "tool_trajectory_avg_score": "ToolTrajectoryCriterion",
    "final_response_match_v2": "LlmAsAJudgeCriterion",
    "hallucinations_v1": "HallucinationsCriterion",
    "per_turn_user_simulator_quality_v1": "LlmBackedUserSimulatorCriterion",
    **{name: "RubricsBasedCriterion" for name in _METRICS if name.startswith("rubric_based_")},
}
"""The models of the criteria that have options of their own."""

INFORMATIONAL = ("tool_call_count_v1", "inference_call_count_v1", "token_usage_v1", "invocation_duration_v1")
"""What is reported of every run, and has no threshold."""

_NAMES = [name for name in dict.fromkeys((*_METRICS, *OPTIONS)) if name not in INFORMATIONAL]


class Criteria(Struct, frozen=True):
    """What is wrong with the criteria, and the metrics that read the rows."""

    findings: list[Finding]
    metrics: dict[str, Metric]


def criteria_beside(path: str | None) -> Criteria:
    """The criteria for the evalsets of a path: a file, a folder or a glob; there are none without a TEST_CONFIG."""
    place = os.path.join(root_of(path), TEST_CONFIG) if path is not None else ""
    if not os.path.isfile(place):
        return Criteria([], {})
    config = parse(Path(place).read_bytes())
    if isinstance(config, Malformed):
        return Criteria([_finding("", config.message)], {})
    findings = [_as_criterion(finding) for _, finding in adk_schema.inspect_value(config, adk_schema.CRITERIA)]
    if findings:
        return Criteria(findings, {})
    criteria = config["criteria"]
    if not criteria:
        return Criteria([_finding("criteria", "expected at least one criterion, got none")], {})
    custom = config.get("custom_metrics", config.get("customMetrics")) or {}
    named = {name: value for name, value in criteria.items() if name not in custom}
    findings = [finding for name, value in named.items() for finding in _inspected(name, value)]
    # a criterion with rubrics of its own needs none in the rows
    own = {name for name, value in named.items() if isinstance(value, dict) and value.get("rubrics")}
    return Criteria(findings, {name: _METRICS[name] for name in named if name in _METRICS and name not in own})


def _inspected(name: str, value: Any) -> Iterator[Finding]:
    place = f"criteria.{key_name(name) if name not in _NAMES else name}"
    if name in INFORMATIONAL:
        message = (
            f"expected no criterion `{name}`, got {describe(value)}: every run reports it, and it has no threshold"
        )
        yield _finding(place, message, "Remove it.")
        return
    if name not in _NAMES:
        hint = meant(name, _NAMES).removeprefix("; ").capitalize()
        yield _finding(place, f"expected a metric of google-adk, got `{key_name(name)}`", hint)
        return
    if isinstance(value, dict):
        # any option is accepted, and ignored if it is unknown: only a misspelled one is reported
        for _, finding in adk_schema.inspect_value(_spelled(value), OPTIONS.get(name, "BaseCriterion"), strict=True):
            if finding.rule is not UNKNOWN_KEY or finding.hint:
                yield _as_criterion(finding, place)
        value = value.get("threshold", 0)
    elif not isinstance(value, int | float):
        yield _finding(place, f"expected a number or an object, got {describe(value)}")
    scale = CATALOG[_METRICS[name]].ends if name in _METRICS else SHARE
    if scale is not None and isinstance(value, int | float) and not 0 <= value <= scale[1]:
        yield _finding(place, f"expected a threshold of at most {scale[1]:g}, the highest score; got {describe(value)}")


def _spelled(value: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with a match type as google-adk reads it: by its name in any spelling, or by its number."""
    names = adk_schema.models()["MatchType"]["enum"]

    def spelled(match_type: Any) -> Any:
        if isinstance(match_type, str):
            return match_type.strip().upper().replace("-", "_").replace(" ", "_")
        return names[match_type] if isinstance(match_type, int) and 0 <= match_type < len(names) else match_type

    return {k: spelled(v) if snake_case(k) == "match_type" else v for k, v in value.items()}


def _as_criterion(finding: Finding, place: str = "") -> Finding:
    return _finding(".".join(filter(None, (place, finding.path))), finding.message, finding.hint)


def _finding(place: str, message: str, hint: str = "") -> Finding:
    return Finding(WRONG_CRITERION, f"{TEST_CONFIG}: {message}", place or None, hint=hint)
