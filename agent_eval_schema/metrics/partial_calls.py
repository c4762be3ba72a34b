"""Calls that match if the agent's has all expected arguments, whatever others it has.

    expected    book(day=1)              is matched by   book(day=1, seats=2), book(day=1)
                book(day=1, seats=2)     is matched by   book(day=1, seats=2)

This is no equality: one call can match several that differ from each other. So calls cannot be numbered, and the choice
of pairs decides how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_eval_schema.text.jsontext import value_key


class PartialCall:
    """A call that equals the calls of the other trajectory that it matches, and of its own none but itself."""

    __slots__ = ("arguments", "is_expected", "tool")

    def __init__(self, call: Any, is_expected: int) -> None:
        self.tool, self.is_expected = call.tool_name, is_expected
        self.arguments = {name: value_key(value) for name, value in (call.tool_input or {}).items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartialCall) or self.is_expected == other.is_expected:
            return self is other
        made, expected = (other, self) if self.is_expected else (self, other)
        return made.tool == expected.tool and expected.arguments.items() <= made.arguments.items()

    def __hash__(self) -> int:
        return hash(self.tool)


def pairs(calls: Sequence[object], other: Sequence[object]) -> dict[int, int]:
    """The most pairs of calls that match, each call in one at most: by the position in `other`, that in `calls`. Calls
    that match in order are pairs if all of `other` do."""
    edges = [[at for at, call in enumerate(calls) if call == wanted] for wanted in other]
    found: dict[int, int] = {}
    taken: dict[int, int] = {}
    after = -1
    for wanted, matching in enumerate(edges):
        if (at := next((at for at in matching if at > after), None)) is not None:
            found[wanted], taken[at], after = at, wanted, at
    for wanted in range(len(other)):
        if wanted not in found:
            _augment(edges, wanted, found, taken)
    return found


def _augment(edges: list[list[int]], start: int, found: dict[int, int], taken: dict[int, int]) -> None:
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
                found[owner], free = free, found.get(owner)
            return
