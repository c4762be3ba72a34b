"""The criteria beside an evalset: what google-adk rejects is reported, and the turns that lack what they need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.formats.adk_criteria import INFORMATIONAL, OPTIONS, criteria_beside

HI = {"role": "user", "parts": [{"text": "Hi"}]}
FIRST = {"user_content": HI, "final_response": {"role": "model", "parts": [{"text": "Hello"}]}}
SECOND = {"user_content": HI, "intermediate_data": {"tool_uses": [{"name": "look_up", "args": {}}]}}
RUBRIC = {"rubric_id": "a", "rubric_content": {"text_property": "Brief."}}


def evalset(config: Any, folder: Path) -> str:
    path = folder / "help.test.json"
    path.write_text(json.dumps({"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation": [FIRST, SECOND]}]}))
    (folder / "test_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return str(path)


def found(config: Any, folder: Path) -> list[tuple[str, str | None, str, str]]:
    issues = validate_eval_set(evalset(config, folder)).iter_issues()
    return [(i.code, i.path, i.message, i.hint) for i in issues if i.severity != "info"]


@pytest.mark.parametrize("place", ["", "*.test.json", "help.test.json"])
def test_the_turns_that_lack_what_a_criterion_needs_are_named(place: str, tmp_path: Path) -> None:
    """With the file, its folder, and a glob; the configuration itself is no row."""
    evalset({"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8, "safety_v1": 1}}, tmp_path)
    report = validate_eval_set(str(tmp_path / place))
    assert (report.ok, report.row_count) == (True, 2)
    assert [(i.row, i.code, i.path, i.message) for i in report.iter_issues()] == [
        (
            None,
            "AE167",
            f"criteria.{name}",
            f"expected {column} in each turn for `{name}`; missing in row {row}",
        )
        for name, column, row in (
            ("tool_trajectory_avg_score", "reference_trajectory", 0),
            ("response_match_score", "expected_response", 1),
        )
    ]
    assert report.metric_support["tool_trajectory_avg_score"].tolist() == [False, True]


def test_rubrics_of_a_criterion_are_those_of_every_turn(tmp_path: Path) -> None:
    name = "rubric_based_final_response_quality_v1"
    (issue,) = found({"criteria": {name: 0.5}}, tmp_path)
    needed = "guidelines, in ADK rubrics of the type FINAL_RESPONSE_QUALITY"
    assert (issue[0], issue[2]) == ("AE167", f"expected {needed} in each turn for `{name}`; missing in rows 0, 1")
    assert found({"criteria": {name: {"threshold": 0.5, "rubrics": [RUBRIC]}}}, tmp_path) == []


TRAJECTORY = "tool_trajectory_avg_score"
WRONG: list[tuple[Any, str | None, str, str]] = [
    (
        {"criteria": {"respons_match": 1}},
        "criteria.respons_match",
        "a metric of google-adk",
        "Did you mean 'response_match_score'?",
    ),
    ({"criteria": {TRAJECTORY: "high"}}, f"criteria.{TRAJECTORY}", "a number or an object, got the text 'high'", ""),
    ({"criteria": {TRAJECTORY: 80}}, f"criteria.{TRAJECTORY}", "a threshold of at most 1, the highest score", ""),
    (
        {"criteria": {TRAJECTORY: {"match_type": 1}}},
        f"criteria.{TRAJECTORY}.threshold",
        "is missing",
        "Add `threshold`.",
    ),
    (
        {"criteria": {TRAJECTORY: {"threshold": 1, "match_type": "SUBSET"}}},
        f"criteria.{TRAJECTORY}.match_type",
        "expected one of EXACT, IN_ORDER, ANY_ORDER, got the text 'SUBSET'",
        "",
    ),
    (
        {"criteria": {TRAJECTORY: {"threshold": 1, "match_typ": "EXACT"}}},
        f"criteria.{TRAJECTORY}.match_typ",
        "unknown key `match_typ`",
        "Did you mean `match_type`?",
    ),
    ({"criteria": {"token_usage_v1": 100}}, "criteria.token_usage_v1", "every run reports it", "Remove it."),
    (
        {"criteria": {"final_response_match_v2": {"threshold": 1, "judge_model_options": {"num_samples": 0}}}},
        "criteria.final_response_match_v2.judge_model_options.num_samples",
        "expected at least 1, got the number 0",
        "",
    ),
    ({"criterias": {TRAJECTORY: 1}}, "criteria", "`criteria` is missing", "Rename `criterias`."),
    ({"criteria": [TRAJECTORY]}, "criteria", "expected an object, got a list", ""),
    ({"criteria": {}}, "criteria", "expected at least one criterion, got none", ""),
    ({"criteria": {"own": 1}, "custom_metrics": {"own": {}}}, "custom_metrics.own.code_config", "is missing", "Add"),
    ("{", None, "expected JSON, got malformed text", ""),
    ([], None, "expected an object, got an empty list", ""),
]


@pytest.mark.parametrize(("config", "path", "message", "hint"), WRONG)
def test_a_criterion_that_google_adk_cannot_apply_is_an_error(
    config: Any, path: str | None, message: str, hint: str, tmp_path: Path
) -> None:
    errors = [issue for issue in found(config, tmp_path) if issue[0] == "AE166"]
    ((_, place, text, advice),) = errors
    assert (place, text.startswith("test_config.json: ")) == (path, True)
    assert message in text
    assert hint in advice


GOOD: list[Any] = [
    {TRAJECTORY: 1},
    {TRAJECTORY: {"threshold": 0.5, "match_type": "in order", "ignore_args": True}},
    {TRAJECTORY: {"threshold": 0.5, "matchType": 2}},
    {"response_evaluation_score": 4.5},
    {"final_response_match_v2": {"threshold": 1, "judgeModelOptions": {"judgeModel": "m", "numSamples": 3}}},
    {"hallucinations_v1": {"threshold": 1, "own_option": "kept"}},
    {"per_turn_user_simulator_quality_v1": 0.5},
]


@pytest.mark.parametrize("criteria", GOOD)
def test_a_criterion_that_google_adk_applies_is_none(criteria: Any, tmp_path: Path) -> None:
    assert [issue for issue in found({"criteria": criteria}, tmp_path) if issue[0] == "AE166"] == []


def test_a_metric_of_the_user_is_none_of_google_adk(tmp_path: Path) -> None:
    config = {"criteria": {"own": 7}, "custom_metrics": {"own": {"code_config": {"name": "metrics.own"}}}}
    assert found(config, tmp_path) == []


def test_values_are_not_quoted_where_they_are_hidden(tmp_path: Path) -> None:
    path = evalset({"criteria": {"secret": 1, TRAJECTORY: {"threshold": "secret"}}}, tmp_path)
    report = validate_eval_set(path, show_values=False)
    assert report.counts == {"AE166": 2, "AE167": 1}
    assert "secret" not in report.to_text() + report.issues.to_json()


def test_other_files_have_no_criteria(tmp_path: Path) -> None:
    path = evalset({"criteria": {"unknown": 1}}, tmp_path)
    convert_eval_set(path, "vertex").write(tmp_path / "rows.jsonl")
    assert validate_eval_set(str(tmp_path / "rows.jsonl")).counts.keys() & {"AE166", "AE167"} == set()
    assert criteria_beside(None).findings == []


# ---------------------------------------------------------------------------------------------------------------------
# google-adk itself
@pytest.mark.oracle
@pytest.mark.parametrize("config", [*({"criteria": criteria} for criteria in GOOD), *(config for config, *_ in WRONG)])
def test_google_adk_applies_what_is_not_reported(config: Any, tmp_path: Path) -> None:
    """Its evaluators make a criterion of their own type; a threshold that no score reaches, it applies, too."""
    eval_config = pytest.importorskip("google.adk.evaluation.eval_config")
    eval_metrics = pytest.importorskip("google.adk.evaluation.eval_metrics")
    text = config if isinstance(config, str) else json.dumps(config)
    known = {metric.value for metric in eval_metrics.PrebuiltMetrics}
    try:
        made = eval_config.EvalConfig.model_validate_json(text)
        for name, criterion in made.criteria.items():
            assert name in known - set(INFORMATIONAL)
            if not isinstance(criterion, float):
                kind = getattr(eval_metrics, OPTIONS.get(name, "BaseCriterion"))
                kind.model_validate(criterion.model_dump())
        applied = bool(made.criteria)
    except (ValueError, AssertionError):
        applied = False
    harmless = ("a threshold of at most", "unknown key")
    reported = [i for i in found(config, tmp_path) if i[0] == "AE166" and not any(word in i[2] for word in harmless)]
    assert applied == (not reported)


@pytest.mark.oracle
def test_the_options_are_those_of_the_evaluators() -> None:
    pytest.importorskip("google.adk.evaluation.eval_metrics")
    from google.adk.evaluation import eval_config
    from google.adk.evaluation.final_response_match_v2 import FinalResponseMatchV2Evaluator
    from google.adk.evaluation.hallucinations_v1 import HallucinationsV1Evaluator
    from google.adk.evaluation.rubric_based_tool_use_quality_v1 import RubricBasedToolUseV1Evaluator
    from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator

    assert set(INFORMATIONAL) == set(eval_config._DEFAULT_EFFICIENCY_METRICS)
    kinds = {
        TRAJECTORY: TrajectoryEvaluator,
        "final_response_match_v2": FinalResponseMatchV2Evaluator,
        "hallucinations_v1": HallucinationsV1Evaluator,
        "rubric_based_tool_use_quality_v1": RubricBasedToolUseV1Evaluator,
    }
    assert {name: kind.criterion_type.__name__ for name, kind in kinds.items()}.items() <= OPTIONS.items()


@pytest.mark.oracle
def test_without_an_expected_call_only_exact_compares() -> None:
    """Why a turn has to have its expected calls: otherwise a match type passes whatever is called, or nothing does."""
    pytest.importorskip("google.adk.evaluation.eval_metrics")
    from google.adk.evaluation.eval_case import IntermediateData, Invocation
    from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
    from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator

    called = Invocation(user_content=HI, intermediate_data=IntermediateData(tool_uses=[{"name": "x", "args": {}}]))
    scores = {}
    for match in ToolTrajectoryCriterion.MatchType:
        criterion = ToolTrajectoryCriterion(threshold=1, match_type=match)
        metric = EvalMetric(metric_name=TRAJECTORY, threshold=1, criterion=criterion)
        result = TrajectoryEvaluator(eval_metric=metric).evaluate_invocations([called], [Invocation(user_content=HI)])
        scores[match.name] = result.overall_score
    assert scores == {"EXACT": 0, "IN_ORDER": 1, "ANY_ORDER": 1}
