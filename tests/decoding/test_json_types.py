"""The types of JSON values: what each of the three descriptions leaves to the one walk."""

from typing import Any

import pytest

from agent_eval_schema.decoding.json_types import (
    Entries,
    Items,
    Member,
    Object,
    Place,
    Type,
    UnknownKey,
    Words,
    one_of,
    path_of,
)


def unknown(one: UnknownKey, place: Place) -> str:
    needed = ", needed" if one.is_needed else ""
    return f"{path_of(place)}: unknown" + (f", meant {one.meant}{needed}" if one.meant else "")


WORDS = Words(
    lambda expected, _, place: f"{path_of(place)}: not {expected}",
    unknown,
    lambda _, name, __, place: f"{path_of((*place, name))}: missing",
)
TEXT = Type(WORDS, "text", lambda value: isinstance(value, str))
NUMBER = Type(WORDS, "a number", lambda value: isinstance(value, int))
NULL = Type(WORDS, "", lambda value: value is None)


def thing(strict: bool = True, **more: Any) -> Object[str]:
    """An object that may contain others of its type."""

    def members() -> dict[str, Member[str]]:
        return {
            "displayName": Member(TEXT, ("displayName", "display_name"), True, **more),
            "size": Member(one_of(WORDS, [NUMBER, NULL]), ("size",)),
            "parts": Member(Items(WORDS, of=[kind]), ("parts",)),
            "labels": Member(Entries(WORDS, key=TEXT, value=TEXT), ("labels",)),
        }

    kind = Object(WORDS, make_members=members, strict=strict)
    return kind


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({"displayName": "a", "size": None, "parts": [{"display_name": "b"}]}, []),
        ([], [": not an object"]),
        (
            {"displayName": 1, "size": "x", "parts": {}},
            ["displayName: not text", "size: not a number", "parts: not a list"],
        ),
        ({"displayName": "a", "parts": [{}, 1]}, ["parts[0].displayName: missing", "parts[1]: not an object"]),
        # one cause, one problem: the misspelled key is not missing besides
        ({"dsplayName": "a"}, ["dsplayName: unknown, meant displayName, needed"]),
        ({"displayName": "a", "sizes": 1, "x": 2}, ["sizes: unknown, meant size", "x: unknown"]),
        ({"displaName": "a"}, ["displaName: unknown, meant displayName, needed"]),
        ({"displa_name": "a"}, ["displa_name: unknown, meant display_name, needed"]),
        # of two spellings the first counts
        ({"display_name": 1, "displayName": "a"}, ["display_name: unknown"]),
        ({"displayName": "a", "labels": {"x": "y", "z": 1, 2: "w"}}, ["labels.z: not text", "labels.2: not text"]),
    ],
)
def test_every_problem_of_a_value_is_reported_at_its_place(value: Any, problems: list[str]) -> None:
    assert list(thing().problems(value)) == problems


def test_an_object_that_is_not_strict_has_an_unknown_key_only_where_it_misspells_one_that_is_missing() -> None:
    lenient = thing(strict=False)
    assert list(lenient.problems({"displayName": "a", "sizes": 1, "x": 2})) == []
    assert list(lenient.problems({"dsplayName": "a", "x": 1})) == ["dsplayName: unknown, meant displayName, needed"]


def test_what_is_unset_is_not_judged_and_what_is_empty_is_missing() -> None:
    kind = thing(is_unset=lambda value: value is None, is_empty=lambda value: value == "")
    assert list(kind.problems({"displayName": None})) == ["displayName: missing"]
    assert list(kind.problems({"displayName": ""})) == ["displayName: missing"]
    assert list(kind.problems({"displayName": None, "display_name": "a"})) == ["display_name: unknown"]


def test_of_several_types_the_closest_has_the_problems() -> None:
    """The one whose keys the value has, even if it has more problems."""
    other = Object(WORDS, make_members=lambda: {n: Member(NUMBER, (n,), True) for n in ("width", "height", "depth")})
    either = one_of(WORDS, [thing(), other, NULL])
    assert list(either.problems({"width": 1, "heigth": 2})) == [
        *("heigth: unknown, meant height, needed", "depth: missing"),
    ]
    assert list(either.problems({"displayName": 1})) == ["displayName: not text"]
    assert list(either.problems(None)) == []
    assert list(either.problems(3)) == [": not an object"]
