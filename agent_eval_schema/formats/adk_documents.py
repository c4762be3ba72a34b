"""Files of google-adk → a row per turn, with what google-adk rejects of each.

    {"eval_set_id": …, "eval_cases": [{"eval_id", "conversation": [invocation, …]}, …]}    an evalset
    [{"query", "expected_tool_use", "reference"}, …]                                       the older test list
    [{"name", "data": [{"query", …}, …], "initial_session": …}, …]                         the older evalset

A turn keeps its own keys and gets four columns beside them: `eval_id`, `turn` (from 1), `turns` (how many there are)
and `history`, the turns before it. The values of its evalset and its case are repeated on each of its turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from agent_eval_schema.formats.adk_schema import (
    Found,
    Place,
    inspect_evalset,
    inspect_session,
    inspect_turn,
    snake_case,
)
from agent_eval_schema.formats.format import Head, Unfold, Unfolded
from agent_eval_schema.formats.genai import CASES, cases_of
from agent_eval_schema.formats.genai import OF_CASE as OF_GENAI_CASE
from agent_eval_schema.formats.shapes import all_of
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import adk
from agent_eval_schema.schema import COLUMNS

_PLACE = ("eval_id", "turn", "turns", "history")
TURN_COLUMNS, LEGACY_COLUMNS = (*_PLACE, "user_content"), (*_PLACE, "query")
"""The columns by which turns are recognized; a file without any turn has them too."""

OF_SET, OF_CASE = "eval_set_", "eval_case_"
"""The prefix for a key of an evalset or a case that has another meaning in a row."""


def snake_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Keys in snake_case: ADK reads and writes both spellings. In a table both may be columns, one of them null."""
    nulls = {snake_case(key): None for key in value}
    return nulls | {snake_case(key): v for key, v in value.items() if v is not None}


# ---------------------------------------------------------------------------------------------------------------------
# the three forms
def is_evalset(names: Sequence[str], head: Head) -> bool:
    """An evalset, and no EvaluationDataset of Vertex AI, whose cases have a prompt and responses."""
    if not set(CASES) & set(names):
        return False
    cases = [c for row in head() for c in cases_of(row)]
    first = next((c for c in cases if isinstance(c, dict)), {})
    return OF_GENAI_CASE.isdisjoint(first) or not {"conversation", "eval_id", "evalId"}.isdisjoint(first)


def is_test_list(names: Sequence[str], _: Head) -> bool:
    """Turns of a test list; `query` and `reference` are keys of others too."""
    return "query" in names and (not set(OF_TEST_LIST).isdisjoint(names) or set(names) == {"query", "reference"})


OF_TEST_LIST = ("expected_tool_use", "expected_intermediate_agent_responses")


def are_sessions(names: Sequence[str], head: Head) -> bool:
    """Sessions of the older evalset: the turns in `data` have a query."""
    turns = [turn for row in head() for turn in all_of(row.get("data"))] if "data" in names else []
    return any(isinstance(turn, dict) and "query" in turn for turn in turns)


def turns_of_evalset(document: Mapping[str, Any]) -> Iterator[Unfolded]:
    """The turns of an evalset, of the cases under either spelling of the key. The issues of an evalset or a case are
    reported on its first turn. google-adk reads no cases under `evalCases`, so it has no issues for them."""
    found = _by_turn(inspect_evalset(document))
    beside = {_own(OF_SET, k): v for k, v in document.items() if snake_case(k) != "eval_cases"}
    found_at = [key for key in document if snake_case(key) == "eval_cases"]
    found_at.sort(key=lambda key: key != "eval_cases")  # whose issues have the numbers of its cases
    lists = [document[key] for key in found_at] or [None]
    cases = [case for given in lists for case in (given if isinstance(given, list) else [given])]
    for i, case in enumerate(cases):
        given = snake_keys(case) if isinstance(case, dict) else {"conversation": case}
        of_case = {_own(OF_CASE, k): v for k, v in given.items() if k not in ("eval_id", "conversation")}
        of_case["user_content"] = _opening(given.get("conversation_scenario"))
        for turn in _turns(given.get("eval_id"), given.get("conversation"), {**beside, **of_case}):
            yield turn, [*found.get((i, turn["turn"] - 1), ()), *_cut(turn)]


def turns_of_session(session: Mapping[str, Any]) -> Iterator[Unfolded]:
    """The turns of a session of the older evalset."""
    found = _by_turn(inspect_session(session))
    beside = {"query": None, **({"session_input": given} if (given := session.get("initial_session")) else {})}
    for turn in _turns(session.get("name"), session.get("data"), beside):
        yield turn, [*found.get((0, turn["turn"] - 1), ()), *_cut(turn)]


def turns_of_test_list() -> Unfold:
    """The rows of a test list are the turns of one session, whatever the batches are."""
    before: deque[Any] = deque(maxlen=MOST_BEFORE)
    number = count(1)

    def turn_of(row: Mapping[str, Any]) -> Iterator[Unfolded]:
        place = {"eval_id": None, "turn": next(number), "history": list(before)}
        yield {**snake_keys(row), **place}, [*(finding for _, finding in inspect_turn(row)), *_cut(place)]
        before.append(_told(row))

    return turn_of


def _own(owner: str, key: str) -> str:
    """The column for a key of a set or a case."""
    return f"{owner}{key}" if key in _MEANS_ELSE else key


_MEANS_ELSE = frozenset((*COLUMNS, "creation_timestamp", "rubrics"))
"""Keys that a turn has too, and the canonical columns."""


def _by_turn(defects: Iterable[Found]) -> dict[tuple[int, int], list[Finding]]:
    """The findings of each turn, by the numbers of its case and of itself; fields that a case lacks are reported on its
    first turn."""
    found: dict[tuple[int, int], list[Finding]] = {}
    for place, finding in defects:
        turn = max(_number_of("conversation", 2, place), _number_of("data", 0, place))
        found.setdefault((_number_of("eval_cases", 0, place), turn), []).append(finding)
    return found


def _number_of(key: str, at: int, place: Place) -> int:
    """The number that follows a key in a path."""
    number = place[at + 1] if place[at : at + 1] == (key,) and len(place) > at + 1 else 0
    return number if isinstance(number, int) else 0


# ---------------------------------------------------------------------------------------------------------------------
# one conversation
def _turns(eval_id: Any, conversation: Any, beside: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The turns of one conversation; an invalid one is a single row, with the columns of its case."""
    turns = conversation if isinstance(conversation, list) and conversation else [{}]
    told = list(map(_told, turns))
    for i, turn in enumerate(turns):
        own = turn if isinstance(turn, dict) else {"user_content": turn}
        place = {"eval_id": eval_id, "turn": i + 1, "turns": len(turns), "history": told[max(0, i - MOST_BEFORE) : i]}
        yield {**beside, **snake_keys(own), **place}


def _told(turn: Any) -> Any:
    """What a later turn reads of one: the message and the answer, not what the agent did."""
    if not isinstance(turn, Mapping):
        return turn
    return {key: value for key, value in turn.items() if snake_case(key) in _READ_LATER}


_READ_LATER = frozenset({"query", "user_content", "reference", "final_response"})


MOST_BEFORE = 100
"""The turns before its own that a row repeats: without a limit a file grows by the square of its turns when read."""


def _cut(turn: Mapping[str, Any]) -> Iterator[Finding]:
    before = turn["turn"] - 1
    if before > MOST_BEFORE:
        message = f"expected at most {MOST_BEFORE} turns before, got {before:,}: the request has the last {MOST_BEFORE}"
        yield Finding(adk.LONG_CONVERSATION, message, "request")


def _opening(scenario: Any) -> Any:
    """The first message of a user that a model plays."""
    prompt = snake_keys(scenario).get("starting_prompt") if isinstance(scenario, dict) else None
    return prompt and {"role": "user", "parts": [{"text": prompt}]}
