"""The trajectory metrics: which tools an agent called, against which it should have called.

Two calls are the same if their names are, and their inputs are as JSON values: the order of keys is irrelevant, 1 is
1.0, true is not 1, no input is `{}`. So calls are first numbered, and every metric compares numbers:

    predicted   search(q) · search(q) · book(id)    →   0 0 1
    reference   search(q) · book(id) · pay()        →   0 1 2

`call_ids` numbers a whole batch at once. Source:
https://cloud.google.com/vertex-ai/generative-ai/docs/models/evaluation-agents.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Literal, get_args

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.jsontext import value_key

Duplicates = Literal["membership", "one_to_one"]
"""How precision and recall count a call that is repeated: each time that it occurs at all in the other trajectory, or
once for each time that it occurs there. (in_order and any_order always match one to one.)"""

Empty = Literal["define", "nan"]
"""The score of an empty trajectory: that of the definition, or none (NaN), as the service rejects such a row."""

Match = Literal["call", "tool_name", "subset"]
"""When two calls are the same: if names and inputs are equal; if names are, for a reference that has only names; or if
names are and the call has the arguments of the reference, whatever others it has."""

Ids = Sequence[Hashable]


def call_ids(trajectories: Iterable[Sequence[Any]], key: Callable[[Any], Hashable]) -> list[list[int]]:
    """The calls as numbers: two calls anywhere in `trajectories` have the same number if and only if their keys are
    equal."""
    numbers: dict[Hashable, int] = {}
    return [[numbers.setdefault(key(call), len(numbers)) for call in calls] for calls in trajectories]


def call_key(call: ToolCall) -> bytes:
    """A text that two calls share if they are equal."""
    return value_key([call.tool_name, call.tool_input or {}])


KEYS: dict[Match, Callable[[Any], Hashable]] = {"call": call_key, "tool_name": attrgetter("tool_name")}
"""What calls share that match."""


Pair = tuple[Sequence[Any], Sequence[Any]]


def comparison(match: Match) -> Callable[[Pair], Sequence[Ids]]:
    """A function that replaces the calls of a predicted trajectory and its reference by values that are equal if the
    calls match."""
    return _partial_calls if match == "subset" else partial(call_ids, key=KEYS[match])


def _partial_calls(pair: Pair) -> Sequence[Ids]:
    return [[PartialCall(call, is_expected) for call in calls] for is_expected, calls in enumerate(pair)]


# --- calls that match if the agent's has all expected arguments, whatever others it has
#
#     expected    book(day=1)              is matched by   book(day=1, seats=2), book(day=1)
#                 book(day=1, seats=2)     is matched by   book(day=1, seats=2)
#
# This is no equality: one call can match several that differ from each other. So calls cannot be numbered, and the
# choice of pairs decides how many there are.
class PartialCall:
    """A call that equals the calls of the other trajectory that it matches, and of its own none but itself."""

    __slots__ = ("arguments", "is_expected", "tool")

    def __init__(self, call: Any, is_expected: int) -> None:
        self.tool, self.is_expected = call.tool_name, is_expected
        self.arguments = {name: value_key(value) for name, value in (call.tool_input or {}).items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartialCall) or self.is_expected == other.is_expected:
            return self is other
        actual, expected = (other, self) if self.is_expected else (self, other)
        return actual.tool == expected.tool and expected.arguments.items() <= actual.arguments.items()

    def __hash__(self) -> int:
        return hash(self.tool)


def pairs(calls: Sequence[object], other: Sequence[object]) -> dict[int, int]:
    """The most pairs of calls that match, each call in one at most: by the position in `other`, that in `calls`. Calls
    that match in order are pairs if all of `other` do."""
    edges = [[at for at, call in enumerate(calls) if call == wanted] for wanted in other]
    partners: dict[int, int] = {}
    taken: dict[int, int] = {}
    after = -1
    for wanted, matching in enumerate(edges):
        if (at := next((at for at in matching if at > after), None)) is not None:
            partners[wanted], taken[at], after = at, wanted, at
    for wanted in range(len(other)):
        if wanted not in partners:
            _augment(edges, wanted, partners, taken)
    return partners


def _augment(edges: list[list[int]], start: int, partners: dict[int, int], taken: dict[int, int]) -> None:
    """Give the call `start` a partner, if others can take another one for it: a path of pairs that change."""
    came_from: dict[int, int] = {}
    queue = [start]
    for wanted in queue:
        for at in edges[wanted]:
            if at in came_from:
                continue
            came_from[at] = wanted
            if at in taken:
                queue.append(taken[at])
                continue
            free: int | None = at
            while free is not None:
                owner = came_from[free]
                taken[free] = owner
                partners[owner], free = free, partners.get(owner)
            return


# --- the metrics on numbered calls: predicted, reference, whether duplicates are matched one to one
def _in_order_match(predicted: Ids, reference: Ids, _: bool) -> float:
    coming = iter(predicted)  # `in` reads on from where the last call was found
    return float(all(call in coming for call in reference))


def _any_order_match(predicted: Ids, reference: Ids, _: bool) -> float:
    return float(len(reference) <= len(predicted) and _pairs(predicted, reference) == len(reference))


def _precision(predicted: Ids, reference: Ids, one_to_one: bool) -> float:
    return _share_found(predicted, reference, one_to_one) if predicted else float(not reference)


def _recall(predicted: Ids, reference: Ids, one_to_one: bool) -> float:
    return _share_found(reference, predicted, one_to_one) if reference else 1.0


def _f1(predicted: Ids, reference: Ids, one_to_one: bool) -> float:
    precision, recall = _precision(predicted, reference, one_to_one), _recall(predicted, reference, one_to_one)
    return 2 * precision * recall / (precision + recall) if precision else 0.0


def _share_found(calls: Ids, other: Ids, one_to_one: bool) -> float:
    """The share of the calls that also occur in the other trajectory."""
    if one_to_one:
        return _pairs(calls, other) / len(calls)
    among = set(other)
    return sum(map(among.__contains__, calls)) / len(calls)


def _pairs(calls: Ids, other: Ids) -> int:
    """The most pairs of equal calls, each call in one at most."""
    if calls and isinstance(calls[0], PartialCall):
        return len(pairs(calls, other))
    kinds, others = set(calls), set(other)
    if len(kinds) == len(calls) or len(others) == len(other):  # one has no call twice: so it is most often
        return len(kinds & others)
    return (Counter(calls) & Counter(other)).total()


TRAJECTORY_METRICS: dict[str, Callable[[Ids, Ids, bool], float]] = {
    "trajectory_exact_match": lambda predicted, reference, _: float(list(predicted) == list(reference)),
    "trajectory_in_order_match": _in_order_match,
    "trajectory_any_order_match": _any_order_match,
    "trajectory_precision": _precision,
    "trajectory_recall": _recall,
    "trajectory_f1": _f1,
}
"""The metrics that compare a trajectory with its reference."""

DEFAULT_METRICS = tuple(name for name in TRAJECTORY_METRICS if name != "trajectory_f1")
"""Those of Vertex AI: what is computed unless metrics are named."""


def score_trajectory(
    metric: str,
    predicted: Sequence[ToolCall],
    reference: Sequence[ToolCall],
    *,
    duplicates: Duplicates = "membership",
    empty: Empty = "define",
    match: Match = "call",
) -> float:
    """A metric of TRAJECTORY_METRICS on one pair of trajectories: 0 to 1, or NaN where there is none.

    Both empty score 1; an empty prediction scores 0; an empty reference scores 1 in order, in any order and in recall.
    """
    require_options(duplicates, empty, match)
    if metric not in TRAJECTORY_METRICS:
        raise EvalSetError(f"no metric {metric!r}: use one of {', '.join(TRAJECTORY_METRICS)}")
    called, wanted = comparison(match)((predicted, reference))
    if empty == "nan" and not (predicted and reference):
        return math.nan
    return TRAJECTORY_METRICS[metric](called, wanted, duplicates == "one_to_one")


def single_tool_use(predicted: Sequence[ToolCall], tool_name: str, *, empty: Empty = "define") -> float:
    """1 if the tool was called at all, else 0; needs no reference."""
    require_choice("empty", empty, get_args(Empty))
    if empty == "nan" and not predicted:
        return math.nan
    return float(any(call.tool_name == tool_name for call in predicted))


def require_options(duplicates: str, empty: str, match: str = "call") -> None:
    """Raise EvalSetError for an unknown option."""
    require_choice("match", match, get_args(Match))
    require_choice("duplicates", duplicates, get_args(Duplicates))
    require_choice("empty", empty, get_args(Empty))
