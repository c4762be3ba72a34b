"""Our trajectory metrics against those of google-adk and agentevals, on what all of them define.

What they do otherwise, by design or not, is listed here and kept out of the comparison:

* google-adk compares arguments as Python does: `True == 1`. For us JSON's true is not 1.
* google-adk and agentevals score empty trajectories; ours agree with google-adk, but for an empty
  prediction of an empty reference in precision and recall, which they do not have. With `empty="nan"` they have none.
* agentevals' "strict" compares the messages between the calls too, and the calls of one message in any order; so each
  call stands in a message of its own here, and no message says anything.
* agentevals' "unordered" asks for the same calls, without extras: this is any_order in both directions.
* agentevals' "superset" is our any_order; its "subset" is any_order the other way round.
* No arguments at all are `{}` for us. google-adk's `None` is not `{}`; so every call has arguments here.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema.metrics.trajectory import score_trajectory
from agent_eval_schema.schema import ToolCall

EXACT, IN_ORDER, ANY_ORDER = (f"trajectory_{n}_match" for n in ("exact", "in_order", "any_order"))

Calls = list[ToolCall]

values = st.sampled_from([1, 1.0, 2, "1", None, 0.5, [1, 2], {"y": 1}])
inputs = st.dictionaries(st.sampled_from("xy"), values, max_size=2)
trajectories = st.lists(st.builds(ToolCall, st.sampled_from("abc"), inputs), max_size=5)
some = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def ours(metric: str, predicted: Calls, reference: Calls) -> float:
    return score_trajectory(metric, predicted, reference)


# ---------------------------------------------------------------------------------------------------------------------
# google-adk


@pytest.fixture(scope="module")
def adk() -> Callable[[str, Calls, Calls], float]:
    """Its evaluator, for a kind of match."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("google.adk")
        from google.adk.evaluation.eval_case import IntermediateData, Invocation
        from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
        from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
        from google.genai import types

    def invocation(calls: Calls) -> Any:
        uses = [types.FunctionCall(name=c.tool_name, args=c.tool_input) for c in calls]
        return Invocation(user_content=types.Content(), intermediate_data=IntermediateData(tool_uses=uses))

    def score(match: str, predicted: Calls, reference: Calls) -> float:
        criterion = ToolTrajectoryCriterion(threshold=0.5, match_type=ToolTrajectoryCriterion.MatchType[match])
        evaluator = TrajectoryEvaluator(eval_metric=EvalMetric(metric_name="m", threshold=0.5, criterion=criterion))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = evaluator.evaluate_invocations([invocation(predicted)], [invocation(reference)])
        assert found.overall_score is not None
        return found.overall_score

    return score


@pytest.mark.parametrize(("match", "metric"), [("EXACT", EXACT), ("IN_ORDER", IN_ORDER), ("ANY_ORDER", ANY_ORDER)])
@some
@given(predicted=trajectories, reference=trajectories, nearly=st.booleans(), data=st.data())
def test_google_adk_agrees(
    adk: Callable[[str, Calls, Calls], float],
    match: str,
    metric: str,
    predicted: Calls,
    reference: Calls,
    nearly: bool,
    data: st.DataObject,
) -> None:
    if nearly:  # two lists at random rarely have anything in common
        predicted = data.draw(st.permutations([*reference, *predicted[:1]]))
    assert ours(metric, predicted, reference) == adk(match, predicted, reference)


def test_google_adk_takes_true_for_one(adk: Callable[[str, Calls, Calls], float]) -> None:
    predicted, reference = [ToolCall("a", {"x": True})], [ToolCall("a", {"x": 1})]
    assert (adk("EXACT", predicted, reference), ours(EXACT, predicted, reference)) == (1, 0)


# ---------------------------------------------------------------------------------------------------------------------
# agentevals


@pytest.fixture(scope="module")
def agentevals() -> Callable[..., bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match = pytest.importorskip("agentevals.trajectory.match")

    def messages(calls: Calls) -> list[dict[str, Any]]:
        made = [{"name": c.tool_name, "arguments": json.dumps(c.tool_input)} for c in calls]
        return [{"role": "assistant", "content": "", "tool_calls": [{"function": f, "id": "1"}]} for f in made]

    def score(mode: str, predicted: Calls, reference: Calls, arguments: str = "exact") -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluate = match.create_trajectory_match_evaluator(
                trajectory_match_mode=mode, tool_args_match_mode=arguments
            )
            found = evaluate(outputs=messages(predicted), reference_outputs=messages(reference))
        return bool(found["score"])

    return score


@pytest.mark.parametrize("mode", ["strict", "superset", "subset", "unordered"])
@some
@given(predicted=trajectories, reference=trajectories, nearly=st.booleans(), data=st.data())
def test_agentevals_agrees(
    agentevals: Callable[[str, Calls, Calls], bool],
    mode: str,
    predicted: Calls,
    reference: Calls,
    nearly: bool,
    data: st.DataObject,
) -> None:
    if nearly:
        predicted = data.draw(st.permutations([*reference, *predicted[:1]]))
    there, back = ours(ANY_ORDER, predicted, reference), ours(ANY_ORDER, reference, predicted)
    expected = {
        "strict": ours(EXACT, predicted, reference),
        "superset": there,
        "subset": back,
        "unordered": there * back,
    }
    assert agentevals(mode, predicted, reference) == bool(expected[mode])


@some
@given(predicted=trajectories, reference=trajectories, dropped=st.lists(st.sampled_from("xy")))
def test_agentevals_agrees_on_partial_arguments(
    agentevals: Callable[..., bool], predicted: Calls, reference: Calls, dropped: list[str]
) -> None:
    """In order; in any order it takes the first call that matches, so it finds no more than there are."""
    wanted = [
        ToolCall(c.tool_name, {k: v for k, v in (c.tool_input or {}).items() if k not in dropped}) for c in reference
    ]
    for made in (predicted, reference):
        exact, any_order = (score_trajectory(m, made, wanted, match="subset") for m in (EXACT, ANY_ORDER))
        assert agentevals("strict", made, wanted, "superset") == bool(exact)
        assert agentevals("superset", made, wanted, "superset") <= bool(any_order)


def test_agentevals_takes_the_first_call_that_matches(agentevals: Callable[..., bool]) -> None:
    predicted, reference = [ToolCall("a", {"x": 1}), ToolCall("a", {})], [ToolCall("a", {}), ToolCall("a", {"x": 1})]
    assert agentevals("superset", predicted, reference, "superset") is False
    assert score_trajectory(ANY_ORDER, predicted, reference, match="subset") == 1
