"""Results of evaluations → rows: the expected and the observed behavior, latency and scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces.parts import (
    EXPECTATIONS_KEY,
    Object,
    Row,
    each,
    expected_calls,
    expected_text,
    has_column,
    joined_text,
    objects,
    tool_call,
    without_none,
)

SCORES = ("toolInvocationScore", "toolOrderedInvocationScore")


def replayed_rows(result: Object) -> Iterator[Row]:
    """A turn of a replayed golden evaluation: the expectations of its outcomes, and the observed behavior."""
    turns = objects(result["goldenResult"].get("turnReplayResults"))
    for number, turn in enumerate(turns, start=1):
        outcomes = objects(turn.get("expectationOutcome"))
        expected = each(outcomes, "expectation")
        made = list(map(tool_call, each(outcomes, "observedToolCall")))
        wanted = expected_calls(expected)
        others = [e for e in expected if not has_column(e)]
        custom = {"scores": _scores(turn, outcomes), EXPECTATIONS_KEY: others}
        yield without_none(
            {
                "request_id": f"{_tested(result)}#{number}",
                "request": {"messages": chat.user_message(_asked_in(result, number))},
                "response": joined_text(each(outcomes, "observedAgentResponse")),
                "expected_response": expected_text(expected)[0],
                "predicted_trajectory": made if made or wanted else None,
                "reference_trajectory": wanted,
                "latency_seconds": seconds(turn.get("turnLatency")),
                **_failure(turn.get("errorInfo") or result.get("errorInfo")),
                "session_id": turn.get("conversation"),
                "custom_expected": {k: v for k, v in custom.items() if v} or None,
                "tags": _result_tags(result),
            }
        )


def _asked_in(result: Object, number: int) -> str:
    """A result does not repeat the request; its name and the turn refer to it."""
    return f"{result.get('displayName') or _tested(result)}, turn {number}"


def _tested(result: Object) -> str:
    """The id of the evaluation that a result belongs to: projects/…/evaluations/<id>/results/<id>."""
    parts = str(result.get("name") or "").split("/")
    found = [after for before, after in pairwise(parts) if before == "evaluations"]
    return found[0] if found else str(result.get("displayName") or "result")


def _scores(turn: Object, outcomes: Sequence[Object]) -> dict[str, Any]:
    """Every score of a turn; 0 and false are scores."""
    overall = turn.get("overallToolInvocationResult")
    scores = {name: turn[name] for name in SCORES if name in turn}
    if isinstance(overall, dict) and "toolInvocationScore" in overall:
        scores.setdefault("toolInvocationScore", overall["toolInvocationScore"])
    scores |= _scores_in(turn, "semanticSimilarity", "hallucination")
    parts = each(outcomes, "toolInvocationResult")
    right = [p["parameterCorrectnessScore"] for p in parts if "parameterCorrectnessScore" in p]
    if right:
        scores["parameterCorrectnessScore"] = right
    told = [o["outcome"] for o in outcomes if "outcome" in o]
    return {**scores, "outcomes": told} if told else scores


def _scores_in(part: Object, *names: str) -> dict[str, Any]:
    """The scores of those results that have one."""
    results = {name: part.get(f"{name}Result") for name in names}
    return {name: r["score"] for name, r in results.items() if isinstance(r, dict) and "score" in r}


def scenario_result_row(result: Object) -> Row:
    """A scenario that was played: the expected and the observed behavior of the agent."""
    found = result["scenarioResult"]
    outcomes = objects(found.get("expectationOutcomes"))
    tools = each(each(outcomes, "expectation"), "toolExpectation")
    wanted = list(map(tool_call, each(tools, "expectedToolCall")))
    made = list(map(tool_call, each(each(outcomes, "observedToolCall"), "toolCall")))
    named = ("allExpectationsSatisfied", "taskCompleted", "rubricOutcomes")
    scores = {name: found[name] for name in named if name in found}
    scores |= _scores_in(found, "taskCompletion", "userGoalSatisfaction")
    return without_none(
        {
            "request_id": _tested(result),
            "request": {"messages": chat.user_message(str(found.get("task") or _tested(result)))},
            "response": joined_text(each(outcomes, "observedAgentResponse")),
            "predicted_trajectory": made if made or wanted else None,
            "reference_trajectory": wanted or None,
            **_failure(result.get("errorInfo")),
            "session_id": found.get("conversation"),
            "custom_expected": {"scores": scores} if scores else None,
            "tags": _result_tags(result),
        }
    )


def _failure(error: Any) -> dict[str, Any]:
    if not isinstance(error, dict):
        return {}
    told = [error[name] for name in ("errorType", "errorMessage") if isinstance(error.get(name), str) and error[name]]
    return {"failure": True, "error": ": ".join(told) or "failed"}


def _result_tags(result: Object) -> dict[str, str] | None:
    names = {"evaluation_status": "evaluationStatus", "evaluation_run": "evaluationRun", "app_version": "appVersion"}
    tags = {ours: result[theirs] for ours, theirs in names.items() if isinstance(result.get(theirs), str)}
    return tags or None


def seconds(duration: Any) -> float | None:
    """A protobuf duration (`"1.5s"`) in seconds."""
    if not isinstance(duration, str) or not duration.endswith("s"):
        return None
    try:
        return float(duration[:-1])
    except ValueError:
        return None
