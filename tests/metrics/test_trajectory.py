"""The trajectory metrics: every row of their definitions by hand, the examples of Vertex AI, what always holds."""

import math
from itertools import permutations
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError
from agent_eval_schema.metrics.trajectory import (
    DEFAULT_METRICS,
    KEYS,
    TRAJECTORY_METRICS,
    Empty,
    Match,
    call_ids,
    call_key,
    require_options,
    score_trajectory,
    single_tool_use,
)
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.text.jsontext import value_key

EXACT, IN_ORDER, ANY_ORDER = (f"trajectory_{order}_match" for order in ("exact", "in_order", "any_order"))
PRECISION, RECALL, F1 = "trajectory_precision", "trajectory_recall", "trajectory_f1"


def calls(letters: str) -> list[ToolCall]:
    """One call a letter."""
    return [ToolCall(letter) for letter in letters]


def scores(predicted: list[ToolCall], reference: list[ToolCall], **options: Any) -> tuple[float, ...]:
    """exact, in order, any order, precision, recall"""
    return tuple(score_trajectory(m, predicted, reference, **options) for m in DEFAULT_METRICS)


inputs = st.none() | st.dictionaries(st.sampled_from("xy"), st.sampled_from([1, 1.0, True, [1], {"z": 1}]), max_size=2)
some_calls = st.lists(st.builds(ToolCall, st.sampled_from("ab"), inputs), max_size=4)


def plain_matches(made: ToolCall, expected: ToolCall) -> bool:
    """Whether a call has the arguments of the expected one, argument by argument."""
    arguments = made.tool_input or {}
    return made.tool_name == expected.tool_name and all(
        name in arguments and value_key(arguments[name]) == value_key(value)
        for name, value in (expected.tool_input or {}).items()
    )


def plain_scores(made: list[ToolCall], expected: list[ToolCall], one_to_one: bool) -> tuple[float, ...]:
    """The scores by trying all ways in which the expected calls can be assigned to calls or to none."""
    ways = list(permutations([*range(len(made)), *[None] * len(expected)], len(expected)))

    def found(way: tuple[int | None, ...]) -> list[int]:
        pairs = zip(way, expected, strict=True)
        return [at for at, wanted in pairs if at is not None and plain_matches(made[at], wanted)]

    whole = [way for way in map(found, ways) if len(way) == len(expected)]
    most = max(map(len, map(found, ways)))
    share = [
        sum(any(plain_matches(call, wanted) for wanted in expected) for call in made),
        sum(any(plain_matches(call, wanted) for call in made) for wanted in expected),
    ]
    precision, recall = [most, most] if one_to_one else share
    return (
        float([*range(len(made))] in whole),
        float(any(way == sorted(way) for way in whole)),
        float(bool(whole)),
        precision / len(made) if made else float(not expected),
        recall / len(expected) if expected else 1.0,
    )


@given(some_calls, some_calls, st.booleans())
def test_with_partial_arguments_the_scores_are_those_of_a_plain_search(
    made: list[ToolCall], expected: list[ToolCall], one_to_one: bool
) -> None:
    found = scores(made, expected, match="subset", duplicates="one_to_one" if one_to_one else "membership")
    assert found == plain_scores(made, expected, one_to_one)


@pytest.mark.parametrize("made", [["xy", "x"], ["x", "xy"], ["xyz", "xy", "x"]])
@pytest.mark.parametrize("expected", [["", "xy"], ["x", "xy"], ["xy", ""]])
def test_a_call_is_left_to_the_expected_call_that_needs_it(made: list[str], expected: list[str]) -> None:
    called, wanted = ([ToolCall("a", dict.fromkeys(names, 1)) for names in side] for side in (made, expected))
    assert score_trajectory(RECALL, called, wanted, match="subset", duplicates="one_to_one") == 1
    assert score_trajectory(ANY_ORDER, called, wanted, match="subset") == 1


def test_a_long_trajectory_of_partial_calls_is_matched() -> None:
    """Each call must give its partner to the next one."""
    made = [ToolCall("a", {str(n): 1, str(n + 1): 1}) for n in range(1001)]
    expected = [ToolCall("a", {str(n): 1}) for n in [*range(1, 1001), 0]]
    assert score_trajectory(ANY_ORDER, made, expected, match="subset") == 1
    assert score_trajectory(ANY_ORDER, made, [*expected, ToolCall("a")], match="subset") == 0


@given(st.lists(st.sampled_from("abc"), max_size=4), st.lists(st.sampled_from("abc"), max_size=4), st.data())
def test_by_name_the_inputs_of_calls_make_no_difference(one: list[str], other: list[str], data: st.DataObject) -> None:
    """As if no call had an input."""

    def with_inputs(names: list[str]) -> list[ToolCall]:
        return [ToolCall(name, data.draw(st.sampled_from([None, {}, {"x": 1}]))) for name in names]

    plain = [[ToolCall(name) for name in names] for names in (one, other)]
    for metric in TRAJECTORY_METRICS:
        found = score_trajectory(metric, with_inputs(one), with_inputs(other), match="tool_name", empty="define")
        assert found == score_trajectory(metric, *plain, empty="define")


def test_the_first_example_of_seed_002() -> None:
    predicted = [ToolCall("set_device_info", {"device_id": "device_3", "updates": {"status": "OFF"}})]
    reference = [ToolCall("set_device_info", {"device_id": "device_2", "updates": {"status": "OFF"}})]
    assert scores(predicted, reference) == (0, 0, 0, 0, 0)


def test_the_second_example_of_seed_002() -> None:
    warm = ToolCall("set_temperature", {"location": "Living Room", "temperature": 23})
    predicted = [ToolCall("get_user_preferences", {"user_id": "user_z"}), warm]
    reference = [ToolCall("get_user_preferences", {"user_id": "user_y"}), warm]
    assert scores(predicted, reference) == (0, 0, 0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("predicted", "reference", "expected"),
    [
        # predicted, reference: exact, in order, any order, precision, recall
        ("ab", "ab", (1, 1, 1, 1, 1)),
        ("axb", "ab", (0, 1, 1, 2 / 3, 1)),
        ("ba", "ab", (0, 0, 1, 1, 1)),
        ("a", "ab", (0, 0, 0, 1, 0.5)),
        ("xy", "ab", (0, 0, 0, 0, 0)),
        ("aab", "ab", (0, 1, 1, 1, 1)),
        ("ab", "aab", (0, 0, 0, 1, 1)),  # in order and any order match one to one
        ("ddwdg", "dg", (0, 1, 1, 0.8, 1)),
    ],
)
def test_scores(predicted: str, reference: str, expected: tuple[float, ...]) -> None:
    assert scores(calls(predicted), calls(reference)) == expected


@pytest.mark.parametrize(
    ("predicted", "reference", "precision", "recall"),
    [("ddwdg", "dg", 0.4, 1), ("dg", "ddwdg", 1, 0.4), ("dd", "dd", 1, 1)],
)
def test_duplicates_one_to_one(predicted: str, reference: str, precision: float, recall: float) -> None:
    found = scores(calls(predicted), calls(reference), duplicates="one_to_one")
    assert found[3:] == (precision, recall)


@pytest.mark.parametrize(("predicted", "reference"), [("", ""), ("", "a"), ("a", "")])
def test_an_empty_trajectory_has_no_score_as_the_service_gives_none(predicted: str, reference: str) -> None:
    assert all(math.isnan(s) for s in scores(calls(predicted), calls(reference), empty="nan"))


@pytest.mark.parametrize(
    ("predicted", "reference", "expected"),
    [("", "", (1, 1, 1, 1, 1)), ("a", "", (0, 1, 1, 0, 1)), ("", "a", (0, 0, 0, 0, 0))],
)
def test_an_empty_trajectory_by_definition(predicted: str, reference: str, expected: tuple[float, ...]) -> None:
    assert scores(calls(predicted), calls(reference)) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": {"x": 1, "y": [2]}}, {"a": {"y": [2.0], "x": 1.0}}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 0}, {"a": -0.0}, True),
        ({"a": 2**60}, {"a": float(2**60)}, True),
        ({"a": 2**60 + 1}, {"a": float(2**60)}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": False}, {"a": 0}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": None}, {}, False),
        ({"a": None}, {"a": "null"}, False),
        (None, {}, True),
        ({"a": math.inf}, {"a": None}, False),
        ({"a": "é"}, {"a": "e\u0301"}, False),
    ],
)
def test_inputs_are_compared_as_json_values(one: Any, other: Any, same: bool) -> None:
    (a,), (b,) = call_ids([[ToolCall("t", one)], [ToolCall("t", other)]], KEYS["call"])
    assert (a == b) is same


def test_names_are_compared_as_they_are() -> None:
    assert call_ids([[ToolCall("t"), ToolCall("T"), ToolCall("t ")]], KEYS["call"]) == [[0, 1, 2]]


def test_a_name_and_an_input_do_not_run_together() -> None:
    (ids,) = call_ids([[ToolCall('a",{"b":1}'), ToolCall("a", {"b": 1})]], KEYS["call"])
    assert ids == [0, 1]


def test_a_batch_shares_its_numbers() -> None:
    assert call_ids([calls("ab"), calls("ca"), []], KEYS["call"]) == [[0, 1], [2, 0], []]


@pytest.mark.parametrize(("tool", "expected"), [("a", 1), ("b", 1), ("c", 0), ("A", 0)])
def test_single_tool_use(tool: str, expected: float) -> None:
    assert single_tool_use([ToolCall("a", {"x": 1}), ToolCall("b"), ToolCall("b")], tool) == expected


@given(some_calls, some_calls, st.sampled_from(get_args(Match)), st.sampled_from(get_args(Empty)))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(
    made: list[ToolCall], expected: list[ToolCall], match: Match, empty: Empty
) -> None:
    found = score_trajectory(F1, made, expected, match=match, empty=empty)
    precision, recall = scores(made, expected, match=match, empty=empty)[3:]
    if math.isnan(precision):
        assert math.isnan(found)
    else:
        assert found == pytest.approx(2 / (1 / precision + 1 / recall) if precision and recall else 0)


@given(some_calls, some_calls)
def test_f1_of_calls_matched_one_to_one_is_their_dice_coefficient(
    made: list[ToolCall], expected: list[ToolCall]
) -> None:
    remaining, common = list(map(call_key, expected)), 0
    for key in map(call_key, made):
        if key in remaining:
            remaining.remove(key)
            common += 1
    plain = 2 * common / (len(made) + len(expected)) if made or expected else 1
    assert score_trajectory(F1, made, expected, duplicates="one_to_one") == pytest.approx(plain)


def test_the_metrics_that_there_are() -> None:
    assert DEFAULT_METRICS == (EXACT, IN_ORDER, ANY_ORDER, PRECISION, RECALL)
    assert tuple(TRAJECTORY_METRICS) == (*DEFAULT_METRICS, F1)
    by_default = score_trajectory(PRECISION, calls("aab"), calls("a"))
    assert by_default == score_trajectory(PRECISION, calls("aab"), calls("a"), duplicates="membership") == 2 / 3
    with pytest.raises(EvalSetError, match="empty"):
        single_tool_use([], "a", empty="zero")  # type: ignore[arg-type]


def test_single_tool_use_of_no_calls() -> None:
    assert single_tool_use([], "a") == 0
    assert math.isnan(single_tool_use([], "a", empty="nan"))


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        ("trajectory_f2", {}, "no metric 'trajectory_f2': use one of trajectory_exact_match, "),
        (EXACT, {"duplicates": "once"}, "duplicates: expected one of membership, one_to_one; got 'once'"),
        (EXACT, {"empty": "zero"}, "empty: expected one of define, nan; got 'zero'"),
    ],
)
def test_options_that_there_are_not(metric: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        score_trajectory(metric, calls("a"), calls("a"), **options)


# ---------------------------------------------------------------------------------------------------------------------
# what always holds

inputs = st.none() | st.dictionaries(st.sampled_from("xy"), st.sampled_from([1, 1.0, True, "1", None]), max_size=2)
trajectories = st.lists(st.builds(ToolCall, st.sampled_from("abc"), inputs), max_size=5)
some_options = st.fixed_dictionaries(
    {"duplicates": st.sampled_from(["membership", "one_to_one"]), "empty": st.sampled_from(["nan", "define"])}
)


def same(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(one, other, strict=True))


@given(trajectories, trajectories, some_options)
def test_exact_implies_in_order_implies_any_order(
    predicted: list[ToolCall], reference: list[ToolCall], options: dict[str, Any]
) -> None:
    exact, in_order, any_order, precision, recall = scores(predicted, reference, **options)
    if not math.isnan(exact):
        assert exact <= in_order <= any_order <= recall
        assert exact <= precision <= 1


@given(trajectories.filter(bool), some_options)
def test_equal_trajectories_score_one(calls: list[ToolCall], options: dict[str, Any]) -> None:
    assert scores(calls, list(calls), **options) == (1, 1, 1, 1, 1)


@given(trajectories, trajectories, some_options)
def test_renaming_the_tools_changes_nothing(
    predicted: list[ToolCall], reference: list[ToolCall], options: dict[str, Any]
) -> None:
    renamed = [[ToolCall(f"new_{c.tool_name}", c.tool_input) for c in t] for t in (predicted, reference)]
    assert same(scores(*renamed, **options), scores(predicted, reference, **options))


@given(trajectories, trajectories, some_options, st.randoms())
def test_permuting_matters_to_order_only(
    predicted: list[ToolCall], reference: list[ToolCall], options: dict[str, Any], random: Any
) -> None:
    shuffled = random.sample(predicted, len(predicted))
    assert same(scores(shuffled, reference, **options)[2:], scores(predicted, reference, **options)[2:])


@given(trajectories.filter(bool), trajectories.filter(bool), some_options)
def test_precision_is_recall_the_other_way_round(
    predicted: list[ToolCall], reference: list[ToolCall], options: dict[str, Any]
) -> None:
    assert scores(predicted, reference, **options)[3] == scores(reference, predicted, **options)[4]


def test_calls_have_one_number_if_they_match() -> None:
    calls = [[ToolCall("a", {"x": 1}), ToolCall("b", {})], [ToolCall("a", {"x": 2}), ToolCall("b", None)]]
    assert call_ids(calls, KEYS["call"]) == [[0, 1], [2, 1]]
    assert call_ids(calls, KEYS["tool_name"]) == [[0, 1], [0, 1]]


def test_a_match_that_there_is_not() -> None:
    for refuse in (
        lambda: score_trajectory("trajectory_recall", [], [], match="name"),  # type: ignore[arg-type]
        lambda: require_options("membership", "nan", "name"),
    ):
        with pytest.raises(EvalSetError, match=r"match: expected .*tool_name"):
            refuse()
