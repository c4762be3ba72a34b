"""What a JSON value is to be, as data, and the one walk that reports every problem of a value that is not.

    Object({"role": Type, "content": OneOf(Type, Items(Object))})       {"rol": "user", "content": [1]}
        └─ problems(value) ─▶ unknown key at `rol`, meant is `role`; wrong type at `content[0]`

Three descriptions of types become these: our own (msgspec, `diagnose.py`), google-adk's models (JSON Schema) and the
messages of the CES API (wire table). The `Words` of each say which rule a problem breaks, and in which words.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, Generic, TypeVar

from msgspec import UNSET, Struct

from agent_eval_schema.text.describe import key_name
from agent_eval_schema.text.spelling import match_names

P = TypeVar("P")

Place = tuple[str | int, ...]
"""Where in a value: keys, as a message may show them, and numbers of items."""


def path_of(place: Place) -> str:
    """`eval_cases[0].conversation[1]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")


class UnknownKey(Struct, frozen=True):
    """A key that the type of an object does not have; `meant` is one that it lacks, in the spelling that is most
    like it, and `is_needed` whether that is required."""

    key: str
    meant: str | None
    is_needed: bool
    owner: "Object[Any]"


class Words(Struct, Generic[P], frozen=True):
    """The problem of a value that is not as `expected`, of an unknown key, and of a missing one. `shown` is a key as a
    path may have it."""

    wrong_type: Callable[[str, Any, Place], P]
    unknown: Callable[[UnknownKey, Place], P]
    missing: Callable[["Object[P]", str, Any, Place], P]
    shown: Callable[[str], str] = key_name


Check = Callable[[Any, Place], Iterable[P]]


class Type(Struct, Generic[P], frozen=True, dict=True):
    """The values of a type, in words and as a test; the `checks` are of one that passes it. By default, any value."""

    words: Words[P]
    expected: str = "any value"
    accepts: Callable[[Any], bool] = lambda _: True
    checks: tuple[Check[P], ...] = ()

    def problems(self, value: Any, place: Place = ()) -> Iterator[P]:
        """Every problem of a value, in reading order."""
        if not self.accepts(value):
            yield self.words.wrong_type(self.expected, value, place)
            return
        yield from self._inside(value, place)
        for check in self.checks:
            yield from check(value, place)

    def _inside(self, _value: Any, _place: Place) -> Iterable[P]:
        return ()

    def unknown_keys(self, _value: Any) -> int:
        """How many keys of a value are unknown to the type."""
        return 0


class OneOf(Type[P], frozen=True, kw_only=True):
    """A value of one of several types: the problems are those of the closest of the types that accept it."""

    types: Sequence[Type[P]]

    def _inside(self, value: Any, place: Place) -> Iterable[P]:
        fitting = [kind for kind in self.types if kind.accepts(value)]
        if len(fitting) == 1:
            return fitting[0].problems(value, place)
        pairs = [(kind.unknown_keys(value), list(kind.problems(value, place))) for kind in fitting]
        return min(pairs, key=lambda pair: (pair[0], len(pair[1])))[1]


def one_of(words: Words[P], types: Sequence[Type[P]]) -> Type[P]:
    """Any of these types; one that is expected in no words (null) is accepted and not advised."""
    if len(types) == 1:
        return types[0]
    expected = " or ".join(filter(None, dict.fromkeys([kind.expected for kind in types])))
    return OneOf(words, expected, lambda value: any([kind.accepts(value) for kind in types]), types=types)


class Items(Type[P], frozen=True, kw_only=True):
    """A list: the type of its items, or that of each."""

    expected: str = "a list"
    accepts: Callable[[Any], bool] = lambda value: isinstance(value, list)
    of: Sequence[Type[P]]

    def _inside(self, value: Any, place: Place) -> Iterator[P]:
        for i, (item, kind) in enumerate(zip(value, self.of if len(self.of) > 1 else repeat(self.of[0]), strict=False)):
            yield from kind.problems(item, (*place, i))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


class Entries(Type[P], frozen=True, kw_only=True):
    """An object with keys of a type and values of a type."""

    expected: str = "an object"
    accepts: Callable[[Any], bool] = _is_object
    key: Type[P]
    value: Type[P]

    def _inside(self, value: Any, place: Place) -> Iterator[P]:
        for key, entry in value.items():
            at = (*place, self.words.shown(str(key)))
            yield from self.key.problems(key, at)
            yield from self.value.problems(entry, at)


class Member(Struct, Generic[P], frozen=True):
    """A key of an object, of whose spellings the first counts. A value `is_unset` if it is the same as none; one that
    `is_empty` is none to a required member."""

    type: Type[P]
    spellings: tuple[str, ...]
    required: bool = False
    is_unset: Callable[[Any], bool] = lambda _: False
    is_empty: Callable[[Any], bool] = lambda _: False

    def value_in(self, value: Mapping[Any, Any]) -> Any:
        """Its value in an object; UNSET if there is none."""
        for key in self.spellings:
            if key in value and not self.is_unset(value[key]):
                return value[key]
        return UNSET

    def lacks(self, value: Mapping[Any, Any]) -> bool:
        """Whether it is required and missing."""
        return self.required and ((own := self.value_in(value)) is UNSET or self.is_empty(own))


class Object(Type[P], frozen=True, kw_only=True):
    """An object with members, which are made when they are needed, as a type may contain itself. Any other key is
    unknown if it is `strict`; if not, one that misspells a required member."""

    expected: str = "an object"
    accepts: Callable[[Any], bool] = _is_object
    make_members: Callable[[], Mapping[str, Member[P]]]
    strict: bool = True
    name: str = ""

    @cached_property
    def members(self) -> Mapping[str, Member[P]]:
        """The members by their names."""
        return self.make_members()

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The name of a member by each of its spellings."""
        return {spelling: name for name, member in self.members.items() for spelling in member.spellings}

    @cached_property
    def _required(self) -> Mapping[str, Member[P]]:
        return {name: member for name, member in self.members.items() if member.required}

    def unknown_keys(self, value: Any) -> int:
        return sum([key not in self.names for key in value]) if self.strict else 0

    def meant(self, value: Mapping[Any, Any]) -> dict[str, str]:
        """The absent members that unknown keys most likely mean."""
        unknown = [str(key) for key in value if key not in self.names]
        members = self.members if self.strict else self._required
        return match_names(unknown, [n for n, m in members.items() if m.value_in(value) is UNSET]) if unknown else {}

    def _inside(self, value: Any, place: Place) -> Iterator[P]:
        names, meant = self.names, self.meant(value)
        missing = [name for name, member in self._required.items() if member.lacks(value)]
        for key, item in value.items():
            member = self.members[names[key]] if key in names else None
            if member is None or (key != member.spellings[0] and member.spellings[0] in value):
                right = meant.get(str(key))
                if self.strict or right is not None:
                    spelled = right and self.members[right].spellings[-1 if "_" in str(key) else 0]
                    unknown = UnknownKey(str(key), spelled, right in missing, self)
                    yield self.words.unknown(unknown, (*place, self.words.shown(str(key))))
            elif not member.is_unset(item):
                yield from member.type.problems(item, (*place, key))
        for name in missing:
            if name not in meant.values():
                yield self.words.missing(self, name, value, place)
