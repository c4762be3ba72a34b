"""The fields of an evaluation of CES that no row holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import EllipsisType
from typing import Any

from agent_eval_schema.formats.ces.parts import objects
from agent_eval_schema.formats.ces.rows import by_json_names
from agent_eval_schema.validation.ces_turns import CesEvaluation

ReadKeys = EllipsisType | Mapping[str, Any]
"""The keys that are read of a value; lists are looked through, of `ALL` everything is read."""

ALL = ...


def unread_fields(given: CesEvaluation) -> Iterator[tuple[str, Any]]:
    """The fields of a result that no row represents: the JSON path and the value. The rows of an evaluation represent
    all of it; fields that a trajectory cannot represent are reported."""
    named = by_json_names(given.evaluation)
    if not named.keys() & {"golden", "scenario"}:
        yield from unread(named, _READ)
    for path in _any_arguments(named):
        yield path, "any arguments"


def unread(value: Any, shape: ReadKeys, path: str = "") -> Iterator[tuple[str, Any]]:
    """The path and the value of everything below a value that its shape does not read."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from unread(item, shape, f"{path}[{i}]")
    elif isinstance(value, dict) and not isinstance(shape, EllipsisType):
        for key, part in value.items():
            below = f"{path}.{key}" if path else key
            if key in shape:
                yield from unread(part, shape[key], below)
            elif part not in (None, "", [], {}):
                yield below, part


def _any_arguments(evaluation: Mapping[str, Any]) -> Iterator[str]:
    """Expected calls with unspecified arguments, which a trajectory cannot represent."""
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


_CALL: ReadKeys = dict.fromkeys(("tool", "toolsetTool", "displayName", "args"), ALL)
_SAID: ReadKeys = {"chunks": dict.fromkeys(("text", "transcript"), ALL)}
_ERROR: ReadKeys = dict.fromkeys(("errorType", "errorMessage"), ALL)

_READ: ReadKeys = {
    **dict.fromkeys(("displayName", "name"), ALL),
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
"""What result_rows.py reads of a result."""
