"""Rows → golden evaluations of CES and back, and the fields of an evaluation that no row holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_eval_schema.conversion.unread import ALL, Shape, unread
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.from_rows import goldens_of, groups_of
from agent_eval_schema.formats.ces.parts import objects
from agent_eval_schema.formats.ces.rows import by_json_names, rows_of
from agent_eval_schema.validation.ces_turns import Given


def unread_fields(given: Given) -> Iterator[tuple[str, Any]]:
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


def made_of_rows(rows: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[int | None]]:
    """A golden evaluation a row, and which of the rows that are read back is the row's: none if it expects nothing."""
    made = goldens_of(rows)
    places: list[int | None] = []
    count = 0
    for row, evaluation in zip(rows, made, strict=True):
        count += len(rows_of(evaluation))
        expects = any(row.get(n) is not None for n in ("expected_response", "reference_trajectory")) or any(
            "expectation" in step for step in evaluation["golden"]["turns"][-1]["steps"]
        )
        places.append(count - 1 if expects else None)
    return made, places


def groups_by_name(rows: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The groups of the evaluations, as a golden CSV is told them."""
    return {str(e["displayName"]): groups_of(row) for row, e in zip(rows, made, strict=True)}


def rows_back(evaluations: Sequence[Mapping[str, Any]], groups: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """The rows of evaluations that were made of rows, with the groups that a golden CSV says."""
    return [row for e, named in zip(evaluations, groups, strict=True) for row in rows_of(e, named)]


_INPUT: Shape = dict.fromkeys(("text", "dtmf", "audio", "toolResponses", "image", "blob", "variables", "event"), ALL)
_CALL: Shape = dict.fromkeys(("tool", "toolsetTool", "displayName", "args"), ALL)
_SAID: Shape = {"chunks": dict.fromkeys(("text", "transcript"), ALL)}
_ERROR: Shape = dict.fromkeys(("errorType", "errorMessage"), ALL)

_READ: Shape = {
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
