"""Evaluation JSON: every rule of ProtoJSON, what is an error and what the server tolerates, and the vendor's own parser
as the judge: what is accepted here parses there and says the same."""

import base64
import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError, ces, convert_eval_set, json_schema, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.evaluation import findings_of
from tests.helpers.ces_messages import messages

APP = "projects/p/locations/us/apps/a"
TEXT = {"userInput": {"text": "Hi"}}


def golden(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"displayName": "Refund", "golden": {"turns": [{"steps": list(steps)}]}, **more}


def scenario(**fields: Any) -> dict[str, Any]:
    expectation = {"agentResponse": {"chunks": [{"text": "Sure."}]}}
    return {
        "displayName": "Refund",
        "scenario": {"task": "Ask", "rubrics": ["polite"], "scenarioExpectations": [expectation], **fields},
    }


def said(value: Any) -> list[tuple[str, str | None]]:
    """What is wrong, as the code and the path; as data and as text the same."""
    found = [(issue.code, issue.path) for issue in ces.validate_evaluation(value)]
    assert [(i.code, i.path) for i in ces.validate_evaluation(json.dumps(value))] == found
    return found


def texts(of: str) -> list[tuple[str, str | None]]:
    return [(issue.code, issue.path) for issue in ces.validate_evaluation(of)]


# ---------------------------------------------------------------------------------------------------------------------
# oneofs

FULL = {
    "text": "a",
    "dtmf": "1",
    "audio": "QUI=",
    "toolResponses": {"toolResponses": [{"tool": "f", "response": {}}]},
    "image": {"mimeType": "image/png", "data": "iVBORw0KGgo="},
    "blob": {"mimeType": "a/b", "data": "QUI="},
    "variables": {"a": 1},
    "event": {"event": "start"},
}
CONDITIONS = {
    "toolCall": {"tool": "f", "args": {"a": 1}},
    "toolResponse": {"toolsetTool": {"toolset": "s", "toolId": "t"}, "response": {}},
    "agentResponse": {"role": "r", "chunks": [{"text": "x"}]},
    "agentTransfer": {"targetAgent": "other"},
    "updatedVariables": {"a": None},
    "mockToolResponse": {"tool": "f", "response": {"a": [1]}},
    "noToolCalls": True,
}


def test_the_examples_are_of_every_input_and_condition() -> None:
    assert set(FULL) == set(schema.message("SessionInput").oneofs["input_type"])
    assert set(CONDITIONS) == set(schema.message("Evaluation.GoldenExpectation").oneofs["condition"])


@pytest.mark.parametrize("name", FULL)
def test_an_input_is_one_of_its_kinds(name: str) -> None:
    unused = [("AE154", "golden.turns[0].steps[0].userInput.willContinue")] if name in ("audio", "dtmf") else []
    assert said(golden({"userInput": {name: FULL[name], "willContinue": True}})) == unused
    other = "text" if name != "text" else "dtmf"
    both = {name: FULL[name], other: FULL[other]}
    assert said(golden({"userInput": both})) == [("AE143", "golden.turns[0].steps[0].userInput")]


@pytest.mark.parametrize("name", CONDITIONS)
def test_an_expectation_is_one_of_its_conditions(name: str) -> None:
    assert said(golden(TEXT, {"expectation": {"note": "n", name: CONDITIONS[name]}})) == []
    other = "noToolCalls" if name != "noToolCalls" else "toolCall"
    both = {name: CONDITIONS[name], other: CONDITIONS[other]}
    assert said(golden(TEXT, {"expectation": both})) == [("AE143", "golden.turns[0].steps[1].expectation")]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"displayName": "a"}, None),
        ({**golden(TEXT), **scenario()}, None),
        (golden({}), "golden.turns[0].steps[0]"),
        (golden({"userInput": {}}), "golden.turns[0].steps[0].userInput"),
        (golden({"userInput": {"willContinue": True}}), "golden.turns[0].steps[0].userInput"),
        (golden({"expectation": {"note": "n"}}), "golden.turns[0].steps[0].expectation"),
        (golden({"expectation": {"toolCall": {"args": {}}}}), "golden.turns[0].steps[0].expectation.toolCall"),
        (
            golden({"expectation": {"toolCall": {"tool": "f", "toolsetTool": {"toolset": "s"}}}}),
            "golden.turns[0].steps[0].expectation.toolCall",
        ),
        (scenario(scenarioExpectations=[{}]), "scenario.scenarioExpectations[0]"),
    ],
)
def test_none_or_two_of_a_oneof_are_errors(value: Any, path: str | None) -> None:
    assert said(value) == [("AE143", path)]


def test_blanks_in_names_are_a_note() -> None:
    """Two names that differ only in blanks look alike, and are of two things."""
    call = {"expectation": {"toolCall": {"id": "c1 ", "tool": f"{APP}/tools/get  order"}}}
    transfer = {"expectation": {"agentTransfer": {"targetAgent": " billing"}}}
    value = golden({"userInput": {"text": " Hi  there "}}, call, transfer, tags=["p0", "p0 "], displayName="Refund\t")
    assert said(value) == [
        ("AE156", "displayName"),
        ("AE156", "golden.turns[0].steps[1].expectation.toolCall.id"),
        ("AE156", "golden.turns[0].steps[1].expectation.toolCall.tool"),
        ("AE156", "golden.turns[0].steps[2].expectation.agentTransfer.targetAgent"),
        ("AE156", "tags[1]"),
    ]
    assert ces.validate_evaluation(value)[0].message == r"expected single blanks inside only, got 'Refund\t'"
    assert said(golden(TEXT, tags=["p0 smoke"], displayName="Refund of a return")) == []


def test_blank_text_is_an_input_and_null_is_none() -> None:
    assert said(golden({"userInput": {"text": ""}})) == []
    assert said(golden({"userInput": {"text": "", "dtmf": "1"}})) == [("AE143", "golden.turns[0].steps[0].userInput")]
    assert said(golden({"userInput": {"text": "Hi", "dtmf": None}})) == []


# ---------------------------------------------------------------------------------------------------------------------
# what must be there


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"golden": {"turns": [{"steps": [TEXT]}]}}, "displayName"),
        (golden(TEXT, displayName=""), "displayName"),
        (golden(TEXT, displayName=None), "displayName"),
        ({"displayName": "a", "golden": {}}, "golden.turns"),
        ({"displayName": "a", "golden": {"turns": []}}, "golden.turns"),
        ({"displayName": "a", "golden": {"turns": [{}]}}, "golden.turns[0].steps"),
        (scenario(task=""), "scenario.task"),
        (scenario(userFacts=[{"name": "a"}]), "scenario.userFacts[0].value"),
        (scenario(userFacts=[{"value": "a"}]), "scenario.userFacts[0].name"),
        (
            scenario(scenarioExpectations=[{"toolExpectation": {"mockToolResponse": {"tool": "f", "response": {}}}}]),
            "scenario.scenarioExpectations[0].toolExpectation.expectedToolCall",
        ),
        *(
            (golden({"userInput": {kind: {**full, name: empty}}}), f"golden.turns[0].steps[0].userInput.{kind}.{name}")
            for kind, full in FULL.items()
            if kind in ("image", "blob", "event") and isinstance(full, dict)
            for name in full
            for empty in ("", None)
        ),
        (
            golden({"expectation": {"agentTransfer": {"targetAgent": ""}}}),
            "golden.turns[0].steps[0].expectation.agentTransfer.targetAgent",
        ),
        (golden({"agentTransfer": {}}), "golden.turns[0].steps[0].agentTransfer.targetAgent"),
        (
            golden({"expectation": {"toolCall": {"toolsetTool": {"toolId": "t"}}}}),
            "golden.turns[0].steps[0].expectation.toolCall.toolsetTool.toolset",
        ),
    ],
)
def test_what_the_server_refuses_to_miss_is_an_error(value: Any, path: str) -> None:
    assert said(value) == [("AE141", path)]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (
            golden({"expectation": {"toolResponse": {"tool": "f"}}}),
            "golden.turns[0].steps[0].expectation.toolResponse.response",
        ),
        (scenario(scenarioExpectations=[]), "scenario.scenarioExpectations"),
        (scenario(rubrics=[]), "scenario.rubrics"),
        (
            scenario(scenarioExpectations=[{"toolExpectation": {"expectedToolCall": {"tool": "f"}}}]),
            "scenario.scenarioExpectations[0].toolExpectation.mockToolResponse",
        ),
    ],
)
def test_what_the_server_tolerates_is_a_warning(value: Any, path: str) -> None:
    assert said(value) == [("AE142", path)]


def test_output_only_fields_are_one_info_unless_the_server_gave_the_evaluation() -> None:
    call = {"expectation": {"toolCall": {"tool": "f", "displayName": "F"}}}
    path = "golden.turns[0].steps[0].expectation.toolCall.displayName"
    assert said(golden(call)) == [("AE147", path)]
    (issue,) = ces.validate_evaluation(golden(call, etag="x", evaluationDatasets=[], createdBy="a"))
    assert (issue.code, str(issue.severity), issue.path) == ("AE147", "info", path)
    assert issue.message == f"only the server sets {path}, etag, evaluationDatasets, …"
    assert said(golden(call, createTime="2025-01-31T12:00:00Z", etag="x")) == []
    assert said(golden(call, updateTime="2025-01-31T12:00:00+02:00")) == []


def test_an_evaluation_that_the_server_marked_as_invalid_is_told() -> None:
    for stamps in ({}, {"createTime": "2025-01-31T12:00:00Z"}):
        found = [i for i in ces.validate_evaluation(golden(TEXT, invalid=True, **stamps)) if i.code == "AE152"]
        assert [(str(i.severity), i.path) for i in found] == [("warning", "invalid")]
    assert said(golden(TEXT, invalid=False, createTime="2025-01-31T12:00:00Z")) == []


@pytest.mark.parametrize("key", ["arguments", "parameters", "input", "inputs", "input_parameters"])
def test_arguments_of_a_call_under_another_name_are_an_error(key: str) -> None:
    path = "golden.turns[0].steps[0].expectation.toolCall"
    call = {"expectation": {"toolCall": {"tool": "f", key: {"x": 1}}}}
    assert said(golden(call)) == [("AE153", f"{path}.{key}")]
    expected = {"toolExpectation": {"expectedToolCall": {"tool": "f", key: {}}, "mockToolResponse": {"tool": "f"}}}
    codes = [code for code, _ in said(scenario(scenarioExpectations=[expected]))]
    assert "AE153" in codes


# ---------------------------------------------------------------------------------------------------------------------
# ProtoJSON


def test_names_in_snake_case_are_read() -> None:
    turns = [{"steps": [{"user_input": {"text": "Hi", "will_continue": True}}]}]
    assert said({"display_name": "a", "golden": {"turns": turns}}) == []


def test_both_spellings_of_a_field_are_an_error() -> None:
    assert said(golden(TEXT, display_name="b")) == [("AE150", "displayName")]


def test_a_field_under_both_of_its_names_is_judged_once() -> None:
    (issue,) = ces.validate_evaluation(golden(TEXT, display_name=1))
    assert (issue.code, issue.path) == ("AE150", "displayName")
    assert issue.message == "`displayName` and `display_name` are the same field"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (
            '{"displayName": 1, "displayName": "b", "golden": {"turns": [{"steps": [{"userInput": {"text": ""}}]}]}}',
            "displayName",
        ),
        (
            '{"displayName": "b", "golden": {"turns": [{"steps": [{"userInput": {"variables": {"k": 1, "k": 2}}}]}]}}',
            "golden.turns[0].steps[0].userInput.variables.k",
        ),
    ],
)
def test_a_key_that_stands_twice_is_an_error(text: str, path: str) -> None:
    assert texts(text) == [("AE150", path)]


def test_a_repeated_key_cannot_hide_behind_escapes() -> None:
    text = json.dumps(golden({"userInput": {"text": "a:b"}})).replace("a:b", "a\\u003ab")
    assert texts(text) == []
    assert texts(text.replace('{"displayName"', '{"displayName": "x", "displayName"')) == [("AE150", "displayName")]


def test_null_is_unset() -> None:
    assert said(golden(TEXT, description=None, tags=None, scenario=None)) == []
    assert said(golden(TEXT, tags=[None])) == [("AE140", "tags[0]")]


@pytest.mark.parametrize("value", ["USER_GOAL_SATISFIED", 1, "1", 1.0])
def test_an_enum_is_a_name_or_a_number(value: Any) -> None:
    assert said(scenario(userGoalBehavior=value)) == []


@pytest.mark.parametrize("value", ["USER_GOAL_MET", "user_goal_satisfied", 99, True, []])
def test_an_unknown_enum_is_an_error(value: Any) -> None:
    assert said(scenario(userGoalBehavior=value)) == [("AE144", "scenario.userGoalBehavior")]


@pytest.mark.parametrize("value", [5, "5", 5.0, 0, 100])
def test_a_whole_number_may_be_text(value: Any) -> None:
    assert said(scenario(maxTurns=value)) == []


@pytest.mark.parametrize("value", ["five", 5.5, True, "5.0", [], 1 << 31, " 5"])
def test_what_is_no_whole_number_is_an_error(value: Any) -> None:
    assert said(scenario(maxTurns=value)) == [("AE140", "scenario.maxTurns")]


@pytest.mark.parametrize("value", [101, -1, "101"])
def test_at_most_100_turns(value: Any) -> None:
    assert said(scenario(maxTurns=value)) == [("AE149", "scenario.maxTurns")]


def test_at_most_100_golden_turns() -> None:
    turns = [{"steps": [TEXT]}] * 101
    assert said({"displayName": "a", "golden": {"turns": turns}}) == [("AE149", "golden.turns")]
    assert said({"displayName": "a", "golden": {"turns": turns[:100]}}) == []


def threshold(value: Any) -> dict[str, Any]:
    override = {"expectationLevelMetricsThresholdsOverride": {"toolInvocationParameterCorrectnessThreshold": value}}
    return golden({"expectation": {"noToolCalls": True, **override}})


@pytest.mark.parametrize("value", [0, 1, 0.5, "0.5", "1e-3"])
def test_a_number_may_be_text(value: Any) -> None:
    assert said(threshold(value)) == []


# ---------------------------------------------------------------------------------------------------------------------
# ranges, and texts that are not free: what the page says in words
LEVELS = {
    "semanticSimilaritySuccessThreshold": ("turnLevelMetricsThresholds", [0, 4, "3"], [-1, 5, 75, "5"]),
    "overallToolInvocationCorrectnessThreshold": ("turnLevelMetricsThresholds", [0, 0.95, 1], [-0.5, 1.01, 95, "95"]),
    "toolInvocationParameterCorrectnessThreshold": (
        "expectationLevelMetricsThresholds",
        [0, 0.5, "1"],
        [2, 95, "NaN", "Infinity"],
    ),
}


def thresholds(name: str, value: Any) -> dict[str, Any]:
    return {"goldenEvaluationMetricsThresholds": {LEVELS[name][0]: {name: value}}}


@pytest.mark.parametrize("name", LEVELS)
def test_thresholds_have_a_range(name: str) -> None:
    level, good, bad = LEVELS[name]
    path = f"evaluationMetricsThresholdOverride.goldenEvaluationMetricsThresholds.{level}.{name}"
    result_path = path.replace("ThresholdOverride", "Thresholds")
    validator = pytest.importorskip("jsonschema").Draft202012Validator(json_schema("ces-evaluation"))
    for value in good + bad:
        override = golden(TEXT, evaluationMetricsThresholdOverride=thresholds(name, value))
        expected = [("AE149", path)] if value in bad else []
        assert said(override) == expected
        result = {
            "displayName": "r",
            "evaluationStatus": "PASS",
            "evaluationMetricsThresholds": thresholds(name, value),
        }
        found = [issue for issue in said(result) if issue[0] == "AE149"]
        assert found == ([("AE149", result_path)] if value in bad else [])
        if not isinstance(value, str):
            assert validator.is_valid(override) == (value in good)


def test_a_percentage_is_recognized() -> None:
    value = thresholds("overallToolInvocationCorrectnessThreshold", 95)
    (issue,) = ces.validate_evaluation(golden(TEXT, evaluationMetricsThresholdOverride=value))
    assert (issue.message, issue.hint) == ("expected a number from 0 to 1, got the number 95", "Write 0.95 for 95 %.")


def result(**turn: Any) -> dict[str, Any]:
    return {"displayName": "r", "evaluationStatus": "PASS", "goldenResult": {"turnReplayResults": [turn]}}


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"semanticSimilarityResult": {"score": 5}}, "semanticSimilarityResult.score"),
        ({"hallucinationResult": {"score": -2}}, "hallucinationResult.score"),
        ({"toolOrderedInvocationScore": 1.5}, "toolOrderedInvocationScore"),
        ({"toolInvocationScore": -0.1}, "toolInvocationScore"),
        (
            {"overallToolInvocationResult": {"toolInvocationScore": 100}},
            "overallToolInvocationResult.toolInvocationScore",
        ),
        (
            {"expectationOutcome": [{"toolInvocationResult": {"parameterCorrectnessScore": 2}}]},
            "expectationOutcome[0].toolInvocationResult.parameterCorrectnessScore",
        ),
    ],
)
def test_stored_scores_have_a_range(part: dict[str, Any], path: str) -> None:
    assert ("AE149", f"goldenResult.turnReplayResults[0].{path}") in said(result(**part))


@pytest.mark.parametrize("name", ["taskCompletionResult", "userGoalSatisfactionResult"])
def test_scores_of_a_scenario_have_a_range(name: str) -> None:
    for score in (-1, 0, 1, 2):
        found = said({"displayName": "r", "evaluationStatus": "PASS", "scenarioResult": {name: {"score": score}}})
        assert (("AE149", f"scenarioResult.{name}.score") in found) == (score == 2)


def test_stored_counts_are_not_negative_and_ten_results_are_the_last_ten() -> None:
    stored = golden(TEXT, createTime="2025-01-31T12:00:00Z")
    version = {"passCount": -1, "failCount": 0, "toolMetrics": [{"tool": "f", "failCount": -2}]}
    stored["aggregatedMetrics"] = {"metricsByAppVersion": [version]}
    at = "aggregatedMetrics.metricsByAppVersion[0]"
    assert said(stored) == [("AE149", f"{at}.passCount"), ("AE149", f"{at}.toolMetrics[0].failCount")]
    results = [{"displayName": str(i)} for i in range(11)]
    stored = golden(TEXT, createTime="2025-01-31T12:00:00Z")
    assert ("AE149", "lastTenResults") not in said({**stored, "lastTenResults": results[:10]})
    assert ("AE149", "lastTenResults") in said({**stored, "lastTenResults": results})


@pytest.mark.parametrize(("digits", "right"), [("1", True), ("*09#A", True), ("E", False), ("one", False), ("", False)])
def test_dtmf_has_digits(digits: str, right: bool) -> None:
    assert said(golden({"userInput": {"dtmf": digits}})) == (
        [] if right else [("AE144", "golden.turns[0].steps[0].userInput.dtmf")]
    )


@pytest.mark.parametrize(("level", "right"), [("low", True), ("very_high", True), ("HIGH", False), ("off", False)])
def test_noise_suppression_has_four_levels(level: str, right: bool) -> None:
    audio = {"audioEncoding": "LINEAR16", "sampleRateHertz": 8000, "noiseSuppressionLevel": level}
    found = said({**result(), "config": {"inputAudioConfig": audio}})
    assert [path for code, path in found if code == "AE144"] == (
        [] if right else ["config.inputAudioConfig.noiseSuppressionLevel"]
    )
    for missing in ("audioEncoding", "sampleRateHertz"):
        found = said({**result(), "config": {"inputAudioConfig": {**audio, missing: 0}}})
        assert ("AE141", f"config.inputAudioConfig.{missing}") in found


def test_obsolete_fields_have_a_replacement() -> None:
    (issue,) = ces.validate_evaluation(scenario(taskCompletionBehavior="TASK_SATISFIED"))
    assert (issue.code, issue.path, issue.hint) == (
        "AE154",
        "scenario.taskCompletionBehavior",
        "Use userGoalBehavior.",
    )
    override = {"hallucinationMetricBehavior": "ENABLED"}
    assert said(golden(TEXT, evaluationMetricsThresholdOverride=override)) == [
        ("AE154", "evaluationMetricsThresholdOverride.hallucinationMetricBehavior")
    ]


def test_the_time_of_a_message_is_not_for_an_evaluation() -> None:
    answer = {"role": "a", "chunks": [{"text": "Hi"}], "eventTime": "2025-01-31T12:00:00Z"}
    path = "golden.turns[0].steps[0].expectation.agentResponse.eventTime"
    assert said(golden({"expectation": {"agentResponse": answer}})) == [("AE154", path)]
    path = "scenario.scenarioExpectations[0].agentResponse.eventTime"
    assert said(scenario(scenarioExpectations=[{"agentResponse": answer}])) == [("AE154", path)]


PNG, JPEG = "iVBORw0KGgo=", "/9j/4AAQ"


@pytest.mark.parametrize(
    ("kind", "data", "place", "message"),
    [
        ("image/png", PNG, None, ""),
        ("image/jpeg", JPEG, None, ""),
        ("image/png", PNG.rstrip("="), None, ""),
        ("image/jpeg", PNG, "data", "expected bytes of image/jpeg, got those of image/png"),
        ("image/png", "QUI=", "data", "expected bytes of image/png, got those of something else"),
        ("image/gif", "R0lGODlh", "mimeType", "expected one of image/png"),
        ("text/plain", "QUI=", "mimeType", "expected one of image/png"),
    ],
)
def test_an_image_is_one(kind: str, data: str, place: str | None, message: str) -> None:
    image = {"mimeType": kind, "data": data}
    for value, path in [
        (golden({"userInput": {"image": image}}), "golden.turns[0].steps[0].userInput.image"),
        (
            golden({"expectation": {"agentResponse": {"chunks": [{"image": image}]}}}),
            "golden.turns[0].steps[0].expectation.agentResponse.chunks[0].image",
        ),
    ]:
        assert said(value) == ([("AE132", f"{path}.{place}")] if place else [])
        assert all(i.message.startswith(message) and i.severity == "error" for i in ces.validate_evaluation(value))


# ---------------------------------------------------------------------------------------------------------------------
# tool responses and their calls
def call(tool: str = "f", **more: Any) -> dict[str, Any]:
    return {"expectation": {"toolCall": {"tool": tool, **more}}}


def response(tool: str = "f", **more: Any) -> dict[str, Any]:
    return {"tool": tool, "response": {}, **more}


@pytest.mark.parametrize("kind", ["input", "expectation"])
@pytest.mark.parametrize(
    ("own", "called", "place"),
    [
        ({}, {}, None),
        ({"id": "c1"}, {"id": "c1"}, None),
        ({"id": "c2"}, {"id": "c1"}, "id"),
        ({"id": "c1"}, {}, "id"),
        ({"id": "c1", "tool": "g"}, {"id": "c1"}, "tool"),
        ({"id": "c1", "tool": f"{APP}/tools/7"}, {"id": "c1"}, None),
    ],
)
def test_the_id_of_a_tool_response_is_that_of_a_call(kind: str, own: Any, called: Any, place: str | None) -> None:
    step, path = (
        (
            {"userInput": {"toolResponses": {"toolResponses": [response(**own)]}}},
            "userInput.toolResponses.toolResponses[0]",
        )
        if kind == "input"
        else ({"expectation": {"toolResponse": response(**own)}}, "expectation.toolResponse")
    )
    expected = [("AE155", f"golden.turns[0].steps[2].{path}.{place}")] if place else []
    assert said(golden(TEXT, call(**called), step)) == expected


def test_a_response_does_not_come_before_its_call() -> None:
    early = {"userInput": {"toolResponses": {"toolResponses": [response(id="c1")]}}}
    assert [code for code, _ in said(golden(early, call(id="c1")))] == ["AE155"]


@pytest.mark.parametrize(
    ("mock", "place"),
    [
        (response(), None),
        (response("g"), "tool"),
        (response(f"{APP}/tools/7"), None),
        (response(id="c1"), None),
        (response(id="c2"), "id"),
        ({"toolsetTool": {"toolset": "s", "toolId": "t"}, "response": {}}, None),
    ],
)
def test_a_mock_is_of_the_tool_of_the_expected_call(mock: dict[str, Any], place: str | None) -> None:
    pair = {"expectedToolCall": {"tool": "f", "id": "c1"}, "mockToolResponse": mock}
    path = "scenario.scenarioExpectations[0].toolExpectation.mockToolResponse"
    assert said(scenario(scenarioExpectations=[{"toolExpectation": pair}])) == (
        [("AE155", f"{path}.{place}")] if place else []
    )


@pytest.mark.parametrize("value", ["half", True, 1e39, [], "1e39"])
def test_what_is_no_number_is_an_error(value: Any) -> None:
    assert [code for code, _ in said(threshold(value))] == ["AE140"]


def spanned(**fields: Any) -> dict[str, Any]:
    value = golden(TEXT, createTime="2025-01-31T12:00:00Z")
    value["golden"]["turns"][0]["rootSpan"] = fields
    return value


@pytest.mark.parametrize("value", ["1.5s", "0s", "-1s", "1.123456789s", "315576000000s"])
def test_durations(value: str) -> None:
    assert said(spanned(duration=value)) == []


@pytest.mark.parametrize("value", ["1.5", 1.5, "1.1234567891s", "1 s", "315576000001s", "1m", ".5s"])
def test_what_is_no_duration_is_an_error(value: Any) -> None:
    assert said(spanned(duration=value)) == [("AE140", "golden.turns[0].rootSpan.duration")]


@pytest.mark.parametrize(
    "value",
    [
        *("2025-01-31T12:00:00Z", "2025-01-31T12:00:00.5Z", "2025-01-31T12:00:00.123456789+05:30"),
        *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"),
    ],
)
def test_timestamps(value: str) -> None:
    assert said(golden(TEXT, createTime=value)) == []


@pytest.mark.parametrize(
    "value",
    [
        *("2025-01-31T12:00:00", "2025-01-31", "2025-02-30T00:00:00Z", "2025-01-31 12:00:00Z", 0, "yesterday"),
        *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"),
    ],
)
def test_a_timestamp_needs_an_offset(value: Any) -> None:
    assert said(golden(TEXT, createTime=value, updateTime="2025-01-31T12:00:00Z")) == [("AE140", "createTime")]


@pytest.mark.parametrize("value", ["QUI=", "QUI", "Q_I-", "Q/I+", "", "QQ=="])
def test_bytes_are_base64_in_either_alphabet(value: str) -> None:
    assert said(golden({"userInput": {"audio": value}})) == []


@pytest.mark.parametrize("value", ["!!!!", "A", "QUI==", "Q=I=", "QU I", "QUI=x", 1])
def test_garbage_is_not_taken_for_bytes(value: Any) -> None:
    """The vendor's Python parser drops what is no base64 without a word."""
    assert said(golden({"userInput": {"audio": value}})) == [("AE140", "golden.turns[0].steps[0].userInput.audio")]


@pytest.mark.parametrize("text", [b"[]", b'[""]', b"1", b"null", b"true", b'"a"'])
def test_the_root_is_an_object(text: bytes) -> None:
    assert [(i.code, i.path) for i in ces.validate_evaluation(text)] == [("AE140", None)]


@pytest.mark.parametrize(("value", "warned"), [((1 << 53) - 1, False), ((1 << 53) + 1, True), (-(1 << 53) - 1, True)])
def test_numbers_that_a_double_cannot_hold_are_told(value: int, warned: bool) -> None:
    path = "golden.turns[0].steps[0].userInput.variables.a.b[0]"
    assert said(golden({"userInput": {"variables": {"a": {"b": [value]}}}})) == ([("AE146", path)] if warned else [])


def test_numbers_beyond_a_double_are_errors() -> None:
    text = json.dumps(golden({"userInput": {"variables": {"a": 1}}}))
    for number in ("1e999", "9" * 400):
        assert [c for c, _ in texts(text.replace('"a": 1', f'"a": {number}'))] in (["AE140"], ["AE002"])


@pytest.mark.oracle
def test_depth_ends_before_the_vendors_parser_does() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: Any = 1
        for _ in range(levels):
            value = {"a": value}
        return golden({"userInput": {"variables": {"a": value}}})

    assert said(nested(38)) == []
    assert [code for code, _ in said(nested(45))] == ["AE004"]
    assert official(json.dumps(nested(38)))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"tags": "a"}, "tags"),
        ({"tags": [1]}, "tags[0]"),
        ({"golden": []}, "golden"),
        ({"golden": {"turns": {}}}, "golden.turns"),
        ({"golden": {"turns": ["x"]}}, "golden.turns[0]"),
        ({"description": 5}, "description"),
    ],
)
def test_wrong_types_are_errors(change: dict[str, Any], path: str) -> None:
    assert said({**golden(TEXT), **change}) == [("AE140", path)]


def test_half_a_character_is_an_error() -> None:
    assert texts(json.dumps(golden({"userInput": {"text": "\ud800"}})))[0][0] == "AE006"


def test_malformed_text_is_told() -> None:
    assert texts('{"displayName": "a"') == [("AE002", None)]
    assert texts('{"displayName": NaN}') == [("AE003", None)]


# ---------------------------------------------------------------------------------------------------------------------
# unknown fields, names


def test_unknown_fields_are_kept_and_told() -> None:
    value = golden(TEXT, labels=["p0"])
    assert said(value) == [("AE145", "labels")]
    assert json.loads(ces.write_evaluation(value)) == value


def test_a_misspelled_field_is_one_problem() -> None:
    value = {"displayNam": "a", "golden": {"turns": [{"steps": [{"userInputt": {"text": "Hi"}}]}]}}
    issues = ces.validate_evaluation(value)
    assert [(i.code, i.hint) for i in issues] == [
        ("AE145", "Did you mean `displayName`?"),
        ("AE145", "Did you mean `userInput`?"),
    ]


FULL_NAMES = [f"{APP}/tools/t", f"{APP}/toolsets/s", f"{APP}/agents/x"]


@pytest.mark.parametrize("name", ["end_session", f"{APP}/tools/t"])
def test_both_dialects_of_names_are_read(name: str) -> None:
    assert said(golden({"expectation": {"toolCall": {"tool": name}}})) == []


@pytest.mark.parametrize("name", [f"{APP}/agents/t", "tools/t", f"{APP}/tools/t/x", "projects//locations/us"])
def test_a_name_of_another_kind_is_a_warning(name: str) -> None:
    assert said(golden({"expectation": {"toolCall": {"tool": name}}})) == [
        ("AE148", "golden.turns[0].steps[0].expectation.toolCall.tool")
    ]


def test_a_map_of_names_writes_them_in_full() -> None:
    value = golden(
        {"expectation": {"toolCall": {"tool": "refund"}}},
        {"expectation": {"agentTransfer": {"targetAgent": "refund"}}},
        {"expectation": {"toolCall": {"tool": "unknown"}}},
    )
    names = {"tools/refund": f"{APP}/tools/1", "agents/refund": f"{APP}/agents/2"}
    steps = ces.read_evaluation(value, names=names)["golden"]["turns"][0]["steps"]
    assert steps[0]["expectation"]["toolCall"]["tool"] == f"{APP}/tools/1"
    assert steps[1]["expectation"]["agentTransfer"]["targetAgent"] == f"{APP}/agents/2"
    assert steps[2]["expectation"]["toolCall"]["tool"] == "unknown"
    assert value["golden"]["turns"][0]["steps"][0]["expectation"]["toolCall"]["tool"] == "refund"


# ---------------------------------------------------------------------------------------------------------------------
# results


def test_scores_that_are_zero_are_values() -> None:
    table = schema.table().messages
    explicit = [f for message in table.values() for f in message.fields.values() if f.explicit_presence]
    assert len(explicit) > 5
    result = {
        "name": f"{APP}/evaluations/e/results/r",
        "displayName": "a",
        "evaluationStatus": "FAIL",
        "goldenResult": {"turnReplayResults": [{"conversation": f"{APP}/conversations/c"}]},
    }
    assert said(result) == []
    result["evaluationStatus"] = "FAILED"
    assert said(result) == [("AE144", "evaluationStatus")]


# ---------------------------------------------------------------------------------------------------------------------
# reading and writing


def test_what_was_read_comes_back_to_the_byte(tmp_path: Path) -> None:
    text = (
        '{"zeta":1.50,  "golden":\n{"turns":[]}, "displayName":"\\u0061","e": 1E2,"n":123456789012345678901234567890}'
    )
    evaluation = ces.read_evaluation(text)
    assert ces.write_evaluation(evaluation) == text
    path = tmp_path / "out.json"
    ces.write_evaluation(evaluation, path)
    assert path.read_text() == text
    assert evaluation["n"] == 123456789012345678901234567890


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, b"x"])
def test_data_that_json_cannot_say_is_an_error(value: Any) -> None:
    (issue,) = ces.validate_evaluation(golden({"userInput": {"variables": {"a": value}}}))
    assert (issue.code, issue.path) == ("AE140", "golden.turns[0].steps[0].userInput.variables.a")


def test_a_key_of_arguments_that_is_not_text_is_an_error() -> None:
    (issue,) = ces.validate_evaluation(golden({"expectation": {"toolCall": {"tool": "f", "args": {5: "x"}}}}))
    path = "golden.turns[0].steps[0].expectation.toolCall.args"
    assert (issue.code, issue.path) == ("AE140", path)
    assert issue.message == "expected a key that is text, got the number 5"


def test_the_issues_of_a_list_of_evaluations_have_its_places() -> None:
    evaluations = [golden(TEXT), {**golden(TEXT), "displayName": 5}, 5]
    assert ces.validate_evaluation(iter(evaluations)) == (issues := ces.validate_evaluation(evaluations))
    assert [(issue.row, issue.path, issue.message) for issue in issues] == [
        (1, "displayName", "expected text, got the number 5"),
        (2, None, "expected an object, got the number 5"),
    ]


@pytest.mark.parametrize("value", [{"displayName": "a", "golden": "x"}, golden("x"), golden({"expectation": 5})])
def test_names_for_a_message_that_is_no_object_leave_it_to_validation(value: Any) -> None:
    assert ces.read_evaluations([value], names={"refund": f"{APP}/tools/1"}) == [value]


def test_a_line_of_jsonl_ends_at_a_line_feed_only(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.jsonl"
    path.write_text(json.dumps(golden({"userInput": {"text": "a\u2028b\x85c"}}), ensure_ascii=False), encoding="utf-8")
    assert len(ces.read_evaluations(path)) == 1


@pytest.mark.parametrize("text", ["", " \n"])
def test_blank_text_is_no_folder(text: str) -> None:
    assert texts(text) == [("AE002", None)]
    with pytest.raises(EvalSetError, match="the text: expected JSON"):
        ces.read_evaluation(text)


@pytest.mark.parametrize("kind", ["json", "jsonl", "list"])
def test_a_field_that_stands_twice_in_a_file_is_told(kind: str, tmp_path: Path) -> None:
    good = json.dumps(golden(TEXT))
    twice = json.dumps(golden(TEXT, displayName="Other")).replace("{", '{"displayName": "First", ', 1)
    text = {"json": twice, "jsonl": f"{good}\n\n{twice}\n", "list": f"[{good}, {twice}]"}[kind]
    path = tmp_path / f"evaluations.{'jsonl' if kind == 'jsonl' else 'json'}"
    path.write_text(text)
    issues = validate_eval_set(path).issues
    row = 0 if kind == "json" else 1
    assert issues[["row", "code", "path"]].values.tolist() == [[row, "AE150", "displayName"]]


def test_a_page_of_the_api_is_its_evaluations(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"evaluations": [golden(TEXT), golden(TEXT, displayName="")], "nextPageToken": "x"}))
    report = validate_eval_set(path)
    assert (report.format, report.row_count) == ("ces-evaluation", 2)
    assert list(report.issues["code"]) == [issue.code for issue in ces.validate_evaluation(path)] == ["AE151", "AE141"]
    assert list(report.issues["row"]) == [issue.row for issue in ces.validate_evaluation(path)] == [1, 1]
    assert ces.validate_evaluation(path)[0].message == report.issues["message"][0]


def test_a_page_with_evaluations_and_results_is_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"evaluationResults": [{"goldenResult": 1}], "evaluations": [golden(TEXT)]}))
    report = validate_eval_set(path)
    assert (report.row_count, report.valid_mask.tolist()) == (2, [True, False])
    assert {issue.row for issue in ces.validate_evaluation(path)} == {1}


def test_a_word_in_an_evaluation_makes_no_page_of_it() -> None:
    text = json.dumps(golden(TEXT, tags=["evaluations", "nextPageToken"]))
    assert ces.read_evaluations(text) == [json.loads(text)]


@pytest.mark.parametrize("more", [{}, {"nextPageToken": ""}, {"nextPageToken": None}])
def test_the_last_page_is_complete(tmp_path: Path, more: dict[str, Any]) -> None:
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"evaluations": [golden(TEXT)], **more}))
    assert validate_eval_set(path).counts == {}
    assert ces.validate_evaluation(path) == []


def test_only_the_last_of_several_pages_needs_to_be_the_last(tmp_path: Path) -> None:
    pages = [{"evaluations": [golden(TEXT, displayName=str(i))], "nextPageToken": str(2 - i or "")} for i in range(3)]
    path = tmp_path / "pages.jsonl"
    path.write_text("".join(json.dumps(page) + "\n" for page in pages))
    assert validate_eval_set(path).counts == {}
    path.write_text("".join(json.dumps(page) + "\n" for page in pages[:2]))
    assert validate_eval_set(path).issues[["row", "code"]].values.tolist() == [[1, "AE151"]]


@pytest.mark.parametrize("name", ["help_desk.evalset.json", "help_desk.test.json"])
def test_a_field_that_stands_twice_in_a_file_of_conversations_is_told(name: str, samples: Path, tmp_path: Path) -> None:
    text = (samples / name).read_text()
    path = tmp_path / name
    path.write_text(text.replace("{", '{"note": 1, "note": 2, ', 1))
    assert validate_eval_set(path, select=["AE114"]).issues["column"].tolist() == ["note"]


@pytest.mark.parametrize("key", ["evaluationResults", "evaluation_results"])
def test_a_page_of_results_is_its_results(tmp_path: Path, key: str) -> None:
    name = "projects/p/locations/us/apps/a/evaluations/e/results/"
    results = [{"name": name + n, "displayName": n, "goldenResult": {"turnReplayResults": []}} for n in ("1", "2")]
    path = tmp_path / "page.json"
    path.write_text(json.dumps({key: [*results, {"goldenResult": 1}], "nextPageToken": "x"}))
    report = validate_eval_set(path)
    assert (report.format, report.row_count) == ("ces-evaluation", 3)
    errors = [i.path for i in report.iter_issues() if i.severity == "error"]
    assert errors == [i.path for i in ces.validate_evaluation(path) if i.severity == "error"] == ["goldenResult"]


def test_results_in_snake_case_are_results_too() -> None:
    said = {"observed_agent_response": {"role": "a", "chunks": [{"text": "Hello"}]}}
    turns = [{"conversation": "c", "expectation_outcome": [said], "turn_latency": "1.5s"}]
    result = {
        "name": "r",
        "display_name": "r",
        "evaluation_status": "PASS",
        "golden_result": {"turn_replay_results": turns},
    }
    assert ces.validate_evaluation(result) == []
    report = validate_eval_set([result])
    assert (report.format, report.valid_count) == ("ces-evaluation", 1)
    (row,) = convert_eval_set([result], "databricks").data.to_dict("records")
    assert (row["response"], row["latency_seconds"]) == ("Hello", 1.5)


def test_too_many_turns_of_a_scenario_are_not_to_be_split() -> None:
    (issue,) = ces.validate_evaluation(scenario(maxTurns=101))
    assert (issue.code, issue.hint) == ("AE149", "Write 100 or less.")


@pytest.mark.parametrize(
    ("row", "format"),
    [
        ({"scenario": "a refund", "turns": [], "expected_outcome": "paid", "name": "n"}, "deepeval"),
        ({"scenario": {"task": "a refund"}}, "ces-evaluation"),
        ({"scenario": {"task": "a refund"}, "displayName": "a", "newer": 1, "newest": 2}, "ces-evaluation"),
    ],
)
def test_a_conversation_of_deepeval_is_no_scenario_of_ces(row: dict[str, Any], format: str) -> None:
    assert validate_eval_set([row]).format == format


def test_what_was_changed_is_written_anew_in_the_same_order() -> None:
    evaluation = ces.read_evaluation('{"zeta": true, "displayName": "a", "new": {"x": 1}}')
    evaluation["zeta"] = 1  # equal to True, but another value
    assert list(json.loads(ces.write_evaluation(evaluation)).items()) == [
        ("zeta", 1),
        ("displayName", "a"),
        ("new", {"x": 1}),
    ]


def test_a_change_deep_inside_is_seen() -> None:
    evaluation = ces.read_evaluation(json.dumps(golden(TEXT)))
    evaluation["golden"]["turns"][0]["steps"][0]["userInput"]["text"] = "Bye"
    assert "Bye" in ces.write_evaluation(evaluation)


@pytest.mark.parametrize("value", [math.nan, {1, 2}, "\ud800"])
def test_what_json_cannot_hold_is_not_written(value: Any) -> None:
    evaluation = ces.read_evaluation('{"displayName": "a", "description": null}')
    evaluation["description"] = value
    with pytest.raises(EvalSetError, match="cannot be written as JSON"):
        ces.write_evaluation(evaluation)
    assert [i.severity for i in ces.validate_evaluation(evaluation)][:1] == ["error"]


def test_evaluations_are_read_from_every_kind_of_source(tmp_path: Path) -> None:
    one, two = golden(TEXT), scenario()
    (tmp_path / "list.json").write_text(json.dumps([one, two]))
    (tmp_path / "page.json").write_text(json.dumps({"evaluations": [one, two], "nextPageToken": ""}))
    (tmp_path / "lines.jsonl").write_text(json.dumps(one) + "\n" + json.dumps(two) + "\n")
    for name in ("One", "Two"):
        (tmp_path / "app" / "evaluations" / name).mkdir(parents=True)
    (tmp_path / "app" / "app.json").write_text('{"displayName": "the app"}')
    (tmp_path / "app" / "evaluations" / "One" / "One.json").write_text(json.dumps(one))
    (tmp_path / "app" / "evaluations" / "Two" / "Two.json").write_text("\ufeff" + json.dumps(two))
    for source in ("list.json", "page.json", "lines.jsonl", "app"):
        assert ces.read_evaluations(tmp_path / source) == [one, two], source
        assert ces.validate_evaluation(tmp_path / source) == []
    assert ces.read_evaluations([one, two]) == [one, two]
    with pytest.raises(EvalSetError, match="expected one evaluation, got 2"):
        ces.read_evaluation(tmp_path / "list.json")


@pytest.mark.parametrize("name", ["copy.json", "copy.jsonl"])
def test_lists_are_written_and_read_back(name: str, tmp_path: Path, samples: Path) -> None:
    evaluations = ces.read_evaluations(samples / "evaluation.json")
    ces.write_evaluations(evaluations, tmp_path / name)
    again = ces.read_evaluations(tmp_path / name)
    assert again == evaluations
    assert '"overallToolInvocationCorrectnessThreshold":1.0' in (tmp_path / name).read_text().replace(" ", "")


@pytest.mark.parametrize("values", [5, [golden(TEXT), 5], [golden(TEXT), "x"], [golden(TEXT), [golden(TEXT)]]], ids=str)
@pytest.mark.parametrize("function", [ces.read_evaluations, ces.write_evaluations, ces.golden_csv_text])
def test_an_argument_that_is_no_dicts_is_an_error_that_names_it(function: Any, values: Any) -> None:
    place = r"\[1\]: expected a dict; got " if isinstance(values, list) else ": expected .*dicts; got 5"
    with pytest.raises(EvalSetError, match=f"^(source|evaluations){place}"):
        function(values)


def test_a_folder_without_evaluations_and_another_encoding_are_errors(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes('{"displayName": "grün"}'.encode("latin-1"))
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("latin.json", "expected UTF-8: save the file as UTF-8"),
        ("empty", "the folder contains no evaluation: expected an exported app"),
    ):
        with pytest.raises(EvalSetError) as raised:
            ces.read_evaluations(tmp_path / name)
        assert str(raised.value) == f"{tmp_path / name}: {words}"


@pytest.mark.parametrize("source", ["nowhere.json", '{"a":', "[1]"])
def test_what_cannot_be_read_raises_one_kind_of_error(source: str) -> None:
    with pytest.raises(EvalSetError):
        ces.read_evaluation(source)


# ---------------------------------------------------------------------------------------------------------------------
# the vendor's parser as the judge


def official(text: str) -> Any:
    """The message that the vendor's own parser makes of the text."""
    types = pytest.importorskip("google.cloud.ces_v1beta.types")
    from google.protobuf import json_format

    return json_format.Parse(text, types.Evaluation.pb(types.Evaluation()))


def official_dict(text: str) -> dict[str, Any]:
    from google.protobuf import json_format

    return dict(json_format.MessageToDict(official(text)))


def canonical(name: str, value: Any) -> Any:
    """An evaluation as the vendor's package writes it: one spelling of each name and value, without what is default."""
    message = schema.message(name)
    found = {}
    for key, item in value.items():
        json_name = message.json_name(key)
        if json_name is None or item is None:
            continue
        field = message.fields[json_name]
        if field.repeated:
            made: Any = [_canonical_value(field, x) for x in item]
        elif field.type == "map":
            made = {k: _canonical_value(schema.FieldType("", field.map_value), v) for k, v in item.items()}
        else:
            made = _canonical_value(field, item)
        is_object = (field.message or field.type == schema.STRUCT) and not field.repeated
        if field.oneof or field.explicit_presence or is_object or made not in ("", [], 0, False, {}):
            found[json_name] = made
    return found


def _canonical_value(field: schema.FieldType, value: Any) -> Any:
    if field.message:
        return canonical(field.message, value)
    if field.enum:
        numbers = schema.table().enums[field.enum]
        made = value if value in numbers else next(n for n, i in numbers.items() if i == int(value))
        return "" if numbers[made] == 0 else made
    if field.type == schema.STRUCT:
        return _doubles(value)
    if field.type == "bytes":
        plain = value.translate(str.maketrans("-_", "+/")).rstrip("=")
        return base64.b64encode(base64.b64decode(plain + "=" * (-len(plain) % 4))).decode()
    if field.type == "int32":
        return int(value)
    if field.type == "float":
        return (
            float(value) if not math.isfinite(float(value)) else struct.unpack("f", struct.pack("f", float(value)))[0]
        )
    return value


def _doubles(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _doubles(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_doubles(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def close(ours: Any, theirs: Any) -> bool:
    """Equal, where their package writes 32-bit floats with as few digits as say them."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(close(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-44)
    if isinstance(ours, float) and isinstance(theirs, str):
        return str(ours).lower()[:3] == theirs.lower()[:3] or (math.isinf(ours) and "Infinity" in theirs)
    return bool(ours == theirs)


@pytest.mark.oracle
@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(messages("Evaluation"), st.booleans())
def test_what_is_accepted_parses_there_and_says_the_same(value: dict[str, Any], pretty: bool) -> None:
    text = json.dumps(value, indent=1 if pretty else None)
    issues = ces.validate_evaluation(text)
    assert [i for i in issues if i.severity == "error"] == []
    assert close(canonical("Evaluation", value), official_dict(text))


STRICTER = {
    "garbage for base64": lambda: golden({"userInput": {"audio": "!!!"}}),
    "a list for an object": list,
    "both spellings of a field": lambda: golden(TEXT, display_name="b"),
    "a number that an enum does not have": lambda: scenario(userGoalBehavior=99),
    "required fields": lambda: {"displayName": "a", "golden": {}},
    "none of a oneof": lambda: golden({}),
    "more than 100 turns": lambda: scenario(maxTurns=101),
    "a threshold in percent": lambda: threshold(95),
    "an image without data": lambda: golden({"userInput": {"image": {"mimeType": "image/png"}}}),
    "an event without a name": lambda: golden({"userInput": {"event": {}}}),
    "a transfer to nobody": lambda: golden({"agentTransfer": {}}),
    "a text for an image": lambda: golden({"userInput": {"image": {"mimeType": "image/png", "data": "QUI="}}}),
    "words for DTMF": lambda: golden({"userInput": {"dtmf": "one"}}),
    "digits of a duration that are lost": lambda: spanned(duration="1.1234567891s"),
}
"""What the vendor's parser takes and this package does not, each with an example."""


@pytest.mark.oracle
@pytest.mark.parametrize("case", STRICTER)
def test_where_this_package_is_stricter(case: str) -> None:
    text = json.dumps(STRICTER[case]())
    assert any(i.severity == "error" for i in ces.validate_evaluation(text if text != "[]" else "[]"))
    official(text)


MUTATIONS: list[Any] = [None, 0, -1, 1.5, "", "x", "1", True, [], {}, [[]], {"x": 1}, 1 << 40, "QUI", "2025"]


@pytest.mark.oracle
@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(messages("Evaluation"), st.data())
def test_what_is_accepted_after_any_change_parses_there(value: dict[str, Any], data: st.DataObject) -> None:
    """One value somewhere becomes another: whatever comes of it, a yes must be one of the vendor's too."""
    places: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            collect(node[key])

    collect(value)
    node, key = data.draw(st.sampled_from(places))
    node[key] = data.draw(st.sampled_from(MUTATIONS))
    text = json.dumps(value)
    found = ces.validate_evaluation(text)
    if not any(i.severity == "error" or i.code == "AE145" for i in found):
        assert close(canonical("Evaluation", json.loads(text)), official_dict(text))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(messages("Evaluation"))
def test_the_json_schema_takes_what_is_accepted(value: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = _VALIDATORS.setdefault("one", jsonschema.Draft202012Validator(json_schema("ces-evaluation")))
    assert validator.is_valid(value), list(validator.iter_errors(value))[:1]


_VALIDATORS: dict[str, Any] = {}


@pytest.mark.parametrize(
    "value",
    [
        golden({"userInput": {"text": "a", "dtmf": "1"}}),
        golden({"userInput": {"text": 1}}),
        golden({}),
        scenario(task=""),
        scenario(maxTurns=101),
        threshold(95),
        golden({"userInput": {"dtmf": "one"}}),
        golden({"userInput": {"event": {"event": ""}}}),
        golden({"userInput": {"image": {"mimeType": "image/gif", "data": "R0lGODlh"}}}),
        golden({"userInput": {"image": {"mimeType": "image/png", "data": ""}}}),
        golden(TEXT, createTime="0000-01-01T00:00:00Z"),
        golden({"agentTransfer": {}}),
        scenario(userGoalBehavior="X"),
        {"displayName": "a"},
        {**golden(TEXT), **scenario()},
        *({"displayName": "a", "golden": golden} for golden in ("Hi", 7, [], {"turns": {}}, {"turns": ["Hi"]})),
    ],
)
def test_the_json_schema_refuses_what_is_an_error(value: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    assert any(i.severity == "error" for i in ces.validate_evaluation(value))
    assert not jsonschema.Draft202012Validator(json_schema("ces-evaluation")).is_valid(value)


# ---------------------------------------------------------------------------------------------------------------------
# two speeds, reports


@pytest.mark.parametrize(("name", "code"), [("evaluation.json", 0), ("evaluation_broken.json", 1)])
def test_the_samples_on_the_command_line(
    name: str, code: int, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(samples / name)]) == code
    assert "ces-evaluation format" in " ".join(capsys.readouterr().out.split())  # a long path breaks the line


def test_the_report_says_what_validate_evaluation_says(samples: Path) -> None:
    path = samples / "evaluation_broken.json"
    report = validate_eval_set(path)
    assert report.format == "ces-evaluation"
    assert list(report.iter_issues()) == ces.validate_evaluation(path)
    rows = json.loads(path.read_text())
    assert validate_eval_set(rows).counts == report.counts


def test_names_that_repeat_are_told() -> None:
    report = validate_eval_set([golden(TEXT), golden(TEXT)])
    assert report.counts == {"AE901": 1}


def test_deep_text_is_an_issue_not_a_crash() -> None:
    text = '{"displayName": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert [f.rule.code for f in findings_of(text)] == ["AE004"]


OBLIGATORY_LISTS = {
    ("Evaluation.Golden", "turns"): False,  # nothing else is in a golden that can be run
    ("Evaluation.GoldenTurn", "steps"): False,
    ("Evaluation.Scenario", "rubrics"): True,  # its task gives a scenario its meaning: exports lack both
    ("Evaluation.Scenario", "scenarioExpectations"): True,
}
"""The obligatory repeated fields of an evaluation, and whether one that is missing is tolerated."""


def test_each_obligatory_list_is_decided() -> None:
    found = {
        (name, field)
        for name, message in schema.table().messages.items()
        for field, kind in message.fields.items()
        if kind.required and kind.repeated and name.startswith("Evaluation")
    }
    assert found == set(OBLIGATORY_LISTS)
    assert {place: schema.is_tolerated(*place) for place in found} == OBLIGATORY_LISTS
