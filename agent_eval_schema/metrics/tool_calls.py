"""The tool-call correctness of Customer Engagement Suite, as far as it needs no model.

    expected   find(city, date) · book(id)          toolInvocationScore           tools that were called / expected
    actual     book(id) · find(city)                toolOrderedInvocationScore    … in the expected order: 1/2
                                                    parameterCorrectnessScore     per expected call: 1/2 and 1

Source: TurnReplayResult, ToolInvocationResult and ToolMatchingSettings of the REST reference
(https://docs.cloud.google.com/customer-engagement-ai/conversational-agents/ps/reference/rest/v1beta/). Where it states
nothing: a tool that is expected twice must be called twice; parameters are correct if they are equal as JSON values; an
expected call is compared with a call of the same tool, one to one, so that calls that are equal meet; one that no call
is left for scores 0, and one that expects no parameters 1. No expected calls: no score (NaN). Calls beyond the expected
ones fail the turn, not an expectation, and a tool that is called more often than expected is one.

The metrics of Vertex AI compare a response with a reference by the first call of each. Both are JSON texts:
`{"content": "", "tool_calls": [{"name": "find", "arguments": {"city": "Oslo"}}]}`
(https://docs.cloud.google.com/vertex-ai/generative-ai/docs/models/determine-eval: "Metrics for tool use"). A reference
without a call gives no score (NaN); another tool, and a response without a call, give 0; parameters that the reference
does not have are not counted, and a reference call without parameters is matched by any call of the tool.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Literal

from agent_eval_schema.decoding.chat import read_tool_calls
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.text.jsontext import structured, value_key

Calls = Sequence[ToolCall]

ExtraCalls = Literal["FAIL", "ALLOW"]
"""What calls beyond the expected ones do to a turn (`extraToolCallBehavior`)."""


def tool_invocation(predicted: Calls, reference: Calls) -> float:
    """The share of the expected tools that were called, in any order (`toolInvocationScore`)."""
    return (_tools(predicted) & _tools(reference)).total() / len(reference) if reference else math.nan


def tool_ordered_invocation(predicted: Calls, reference: Calls) -> float:
    """The share of the expected tools that were called in the expected order (`toolOrderedInvocationScore`): the
    longest run of them that the actual calls hold in this order, other calls between them."""
    if not reference:
        return math.nan
    longest = [0] * (len(reference) + 1)  # by the number of expected tools that have been examined
    for call in predicted:
        before = list(longest)
        for i, wanted in enumerate(reference):
            same = call.tool_name == wanted.tool_name
            longest[i + 1] = before[i] + 1 if same else max(longest[i], before[i + 1])
    return longest[-1] / len(reference)


def parameter_scores(predicted: Calls, reference: Calls) -> list[float]:
    """For each expected call the share of its parameters that the actual call has with equal values."""
    pairs = []
    for (i, wanted), (j, actual) in product(enumerate(reference), enumerate(predicted)):
        if actual.tool_name == wanted.tool_name:
            args, inputs = actual.tool_input or {}, wanted.tool_input or {}
            pairs.append((sum(k in args and value_key(args[k]) == value_key(v) for k, v in inputs.items()), i, j))
    # The best pairs first, those with more parameters before those with fewer: so equal calls meet. Then as they came.
    pairs.sort(key=lambda p: (-_score(p[0], reference[p[1]]), -p[0], p[1], p[2]))
    scores: dict[int, float] = {}
    taken: set[int] = set()
    for correct, i, j in pairs:
        if i not in scores and j not in taken:
            scores[i] = _score(correct, reference[i])
            taken.add(j)
    return [scores.get(i, 0.0) for i in range(len(reference))]


def _score(correct: int, wanted: ToolCall) -> float:
    return correct / len(wanted.tool_input) if wanted.tool_input else 1.0


def parameter_correctness(predicted: Calls, reference: Calls) -> float:
    """The mean of the expected calls' `parameter_scores`."""
    scores = parameter_scores(predicted, reference)
    return sum(scores) / len(scores) if scores else math.nan


def tool_calls_pass(
    predicted: Calls,
    reference: Calls,
    *,
    invocation_threshold: float = 1.0,
    parameter_threshold: float = 1.0,
    extra_calls: ExtraCalls = "FAIL",
) -> bool:
    """Whether the calls of a turn pass: enough of the expected tools were called, each with enough correct parameters,
    and (unless extra calls are allowed) no others. The defaults are those of the service.

    An empty `reference` means that no call is expected.
    """
    are_allowed = extra_calls != "FAIL" or not _tools(predicted) - _tools(reference)
    are_called = not reference or tool_invocation(predicted, reference) >= invocation_threshold
    scores = parameter_scores(predicted, reference)
    return are_allowed and are_called and all(score >= parameter_threshold for score in scores)


def _tools(calls: Calls) -> Counter[str]:
    return Counter(call.tool_name for call in calls)


# --- the first call of texts, as Vertex AI compares them
def tool_call_valid(response: str) -> float:
    """1 if the text is a tool call with a name and arguments, else 0."""
    called = _first_call(response)
    return float(called is not None and called[1] is not None)


def tool_name_match(response: str, reference: str) -> float:
    """1 if the first call of both has the same name, else 0."""
    called, wanted = _first_call(response), _first_call(reference)
    return math.nan if wanted is None else float(called is not None and called[0] == wanted[0])


def tool_parameter_key_match(response: str, reference: str) -> float:
    """The share of the parameters of the expected call that the first call has."""
    return _parameters_matched(response, reference, lambda inputs, key, _: key in inputs)


def tool_parameter_kv_match(response: str, reference: str) -> float:
    """The share of the parameters of the expected call that the first call has with equal values."""
    return _parameters_matched(
        response, reference, lambda inputs, key, value: key in inputs and value_key(inputs[key]) == value_key(value)
    )


def _parameters_matched(response: str, reference: str, same: Callable[[dict[str, Any], str, Any], bool]) -> float:
    called, wanted = _first_call(response), _first_call(reference)
    if wanted is None:
        return math.nan
    if called is None or called[0] != wanted[0]:
        return 0.0
    inputs, expected = called[1] or {}, wanted[1] or {}
    return sum(same(inputs, key, value) for key, value in expected.items()) / len(expected) if expected else 1.0


def _first_call(text: str) -> tuple[str, dict[str, Any] | None] | None:
    value = structured(text)
    calls = read_tool_calls(value) if isinstance(value, dict) and "tool_calls" in value else []
    return calls[0] if calls else None
