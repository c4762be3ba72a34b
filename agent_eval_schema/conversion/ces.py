"""The fields of an evaluation of CES that no row holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_eval_schema.conversion.unread import ALL, ReadKeys, unread
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.parts import objects
from agent_eval_schema.formats.ces.rows import by_json_names
from agent_eval_schema.validation.ces_turns import CesEvaluation


def unread_fields(given: CesEvaluation) -> Iterator[tuple[str, Any]]:
    """The fields of an evaluation that no row holds: the JSON path and the value."""
    named = by_json_names(given.evaluation)
    yield from unread(named, _READ)
    for path in _any_arguments(named):
        yield path, "any arguments"


def _any_arguments(evaluation: Mapping[str, Any]) -> Iterator[str]:
    """Expected calls that leave their arguments open, which a trajectory cannot say."""
    golden, scenario = evaluation.get("golden"), evaluation.get("scenario")
    expected = objects(scenario.get("scenarioExpectations")) if isinstance(scenario, dict) else []
    for i, wanted in enumerate(expected):
        tool = wanted.get("toolExpectation")
        call = tool.get("expectedToolCall") if isinstance(tool, dict) else None
        if isinstance(call, dict) and call.get("args") is None:
            yield f"scenario.scenarioExpectations[{i}].toolExpectation.expectedToolCall.args"
    for i, turn in enumerate(objects(golden.get("turns")) if isinstance(golden, dict) else ()):
        for j, step in enumerate(objects(turn.get("steps"))):
            expectation = step.get("expectation")
            call = expectation.get("toolCall") if isinstance(expectation, dict) else None
            if isinstance(call, dict) and call.get("args") is None:
                yield f"golden.turns[{i}].steps[{j}].expectation.toolCall.args"


_INPUT: ReadKeys = dict.fromkeys(("text", "dtmf", "audio", "toolResponses", "image", "blob", "variables", "event"), ALL)
_CALL: ReadKeys = dict.fromkeys(("tool", "toolsetTool", "displayName", "args"), ALL)
_SAID: ReadKeys = {"chunks": dict.fromkeys(("text", "transcript"), ALL)}
_ERROR: ReadKeys = dict.fromkeys(("errorType", "errorMessage"), ALL)

_READ: ReadKeys = {
    **dict.fromkeys(("displayName", "name", "description", "tags"), ALL),
    "scenario": {
        **dict.fromkeys(schema.message("Evaluation.Scenario").fields, ALL),
        "scenarioExpectations": {
            "agentResponse": _SAID,
            "toolExpectation": {"expectedToolCall": _CALL, "mockToolResponse": ALL},
        },
    },
    "golden": {"turns": {"steps": {"userInput": _INPUT, "expectation": ALL}}},
    "goldenResult": {
        "turnReplayResults": {
            **dict.fromkeys(("conversation", "turnLatency"), ALL),
            **dict.fromkeys(("toolInvocationScore", "toolOrderedInvocationScore"), ALL),
            "overallToolInvocationResult": {"toolInvocationScore": ALL},
            "errorInfo": _ERROR,
            **{key: {"score": ALL} for key in ("semanticSimilarityResult", "hallucinationResult")},
            "expectationOutcome": {
                **dict.fromkeys(("expectation", "outcome"), ALL),
                "observedToolCall": _CALL,
                "observedAgentResponse": _SAID,
                "toolInvocationResult": {"parameterCorrectnessScore": ALL},
            },
        }
    },
    "scenarioResult": {
        **dict.fromkeys(("conversation", "task", "allExpectationsSatisfied", "taskCompleted", "rubricOutcomes"), ALL),
        **{key: {"score": ALL} for key in ("taskCompletionResult", "userGoalSatisfactionResult")},
        "expectationOutcomes": {
            "observedToolCall": {"toolCall": _CALL},
            "observedAgentResponse": _SAID,
            "expectation": {"toolExpectation": {"expectedToolCall": _CALL}},
        },
    },
    **dict.fromkeys(("evaluationStatus", "evaluationRun", "appVersion"), ALL),
    "errorInfo": _ERROR,
}
"""What rows.py reads of an evaluation and of a result."""
