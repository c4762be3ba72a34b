"""Two trajectories side by side: which calls were made, which are missing, which were not asked for.

    predicted              reference
    search(q)   matched    search(q)
    pay(3)      extra                      no such call in the reference
                missing    book(id)        no such call in the prediction
    log()       moved      …               made, but in another place

Calls meet in order first (the longest run that both share), then one to one wherever they are. Calls of one tool with
other inputs are on one line, so that the difference is visible.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from msgspec import Struct

from agent_eval_schema.metrics.trajectory import Match, comparison, pairs
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.text import jsontext

MATCHED, MOVED, EXTRA, MISSING = "matched", "moved", "extra", "missing"


class ShownCall(Struct, frozen=True):
    """A call of one trajectory, and how it relates to the other trajectory (`mark`)."""

    tool: str
    input: str
    mark: str


class CallPair(Struct, frozen=True):
    """Calls of both trajectories that are shown side by side; a side without a call is None."""

    predicted: ShownCall | None
    reference: ShownCall | None


def aligned(predicted: Sequence[ToolCall], reference: Sequence[ToolCall], match: Match = "call") -> list[CallPair]:
    """The lines, in the order of both."""
    ids = comparison(match)((predicted, reference))
    if match == "subset":  # which pairs are formed is decided before their order is
        partners = {at: wanted for wanted, at in pairs(*ids).items()}
        ids = [partners.get(at, -1 - at) for at in range(len(predicted))], range(len(reference))
    blocks = SequenceMatcher(None, ids[0], ids[1], autojunk=False).get_opcodes()
    # Calls on both sides that remain once the calls in order have met were made in another place.
    rest = [Counter[Hashable](), Counter[Hashable]()]
    for kind, a, b, c, d in blocks:
        if kind != "equal":
            rest[0].update(ids[0][a:b])
            rest[1].update(ids[1][c:d])
    moved = rest[0] & rest[1]
    moves = (Counter(moved), Counter(moved))

    def side(calls: Sequence[ToolCall], which: int, at: int, in_order: bool) -> ShownCall:
        number = ids[which][at]
        mark = MATCHED
        if not in_order:
            mark = MOVED if moves[which][number] > 0 else (EXTRA, MISSING)[which]
            moves[which][number] -= 1
        return ShownCall(calls[at].tool_name, jsontext.encode(calls[at].tool_input or {}).decode(), mark)

    lines = []
    for kind, a, b, c, d in blocks:
        left_sides = [side(predicted, 0, at, kind == "equal") for at in range(a, b)]
        right_sides = [side(reference, 1, at, kind == "equal") for at in range(c, d)]
        lines += [CallPair(*pair) for pair in _beside(left_sides, right_sides)]
    return lines


def _beside(left: list[ShownCall], right: list[ShownCall]) -> list[tuple[ShownCall | None, ShownCall | None]]:
    """Calls of one tool on one line, as far as the order allows; the others below each other."""
    tools, others = ([s.tool for s in side] for side in (left, right))
    pairs: list[tuple[ShownCall | None, ShownCall | None]] = []
    for kind, a, b, c, d in SequenceMatcher(None, tools, others, autojunk=False).get_opcodes():
        if kind == "equal":
            pairs += zip_longest(left[a:b], right[c:d])
        else:
            pairs += [(s, None) for s in left[a:b]] + [(None, s) for s in right[c:d]]
    return pairs
