"""Evaluations of Customer Engagement Suite, and results of them, as evaluation rows, and the way back.

    golden      one row per turn that expects something of the agent: the turns before it are the chat so far (turns.py)
    scenario    one row: its task is the request, its rubrics and expectations are the ground truth (turns.py)
    result      one row per turn: the expected and the observed behavior, latency and scores

Fields without a column are in `custom_expected` (other expectations: an agent transfer, variables, a mock) and
in tags (`display_name`, `tags`, `evaluation_groups`, …), so that it is there again on the way back. Of each evaluation
the way back is tried: everything else is kept with the rows, as the API writes it (`EVALUATION_KEY`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.turns import (
    EVALUATION_KEY,
    EXPECTATIONS_KEY,
    HEAD,
    HEAD_TAGS,
    Object,
    Row,
    Turn,
    each,
    expectations_of,
    expected_by,
    expected_calls,
    expected_messages,
    expected_text,
    groups_by,
    has_column,
    head_by,
    head_tags,
    history_of,
    identity,
    input_messages,
    joined_text,
    objects,
    row_turn,
    scenario_by,
    scenario_columns,
    span_columns,
    tool_call,
    turns_of,
)
from agent_eval_schema.formats.format import named
from agent_eval_schema.text.jsontext import without_null_keys


def rows_of(evaluation: Object, groups: Sequence[str] = ()) -> list[Row]:
    """The rows of an evaluation, or of the result of one, in the order of the turns; none if it expects nothing.

    `groups`: the names of the evaluation's datasets, which only the CSV has. Parts of a wrong type are skipped
    (`ces.validate_evaluation` reports them).
    """
    value = by_json_names(evaluation)
    if isinstance(value.get("golden"), dict):
        return _golden_rows(value, groups)
    if isinstance(value.get("scenario"), dict):
        scenario = value["scenario"]
        columns = scenario_columns(scenario)
        row = {"request_id": identity(value), **columns, "tags": head_tags(value, groups) or None}
        row = _with_part(without_null_keys(row), {"scenario": scenario})
        rest = _not_in_rows(value, evaluation_by([row]))
        return [_with_part(row, rest) if rest else row]
    if isinstance(value.get("goldenResult"), dict):
        return list(replayed_rows(value))
    return [scenario_result_row(value)] if isinstance(value.get("scenarioResult"), dict) else []


def by_json_names(value: Object) -> dict[str, Any]:
    """The object with the JSON names of all fields: snake_case is accepted on input, as in ProtoJSON."""
    is_result = not value.keys().isdisjoint({"goldenResult", "golden_result", "scenarioResult", "scenario_result"})
    return _renamed(value, schema.RESULT if is_result else schema.EVALUATION)


def _renamed(value: Object, message: str) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    known = schema.message(message)
    for key, part in value.items():
        name = known.json_name(key)
        inner = known.fields[name].message if name else ""
        if inner and isinstance(part, list):
            part = [_renamed(p, inner) if isinstance(p, dict) else p for p in part]
        elif inner and isinstance(part, dict):
            part = _renamed(part, inner)
        if part is not None:
            renamed[name or key] = part
    return renamed


# ---------------------------------------------------------------------------------------------------------------------
# golden → rows
def _golden_rows(evaluation: Object, groups: Sequence[str]) -> list[Row]:
    turns = objects(evaluation["golden"].get("turns"))
    rows: list[Row] = []
    before: chat.Messages = []
    number = 0
    # one span of turns per row: up to a turn that expects something after a message
    ends = [i + 1 for i, turn in enumerate(turns) if expectations_of(turn) and any(map(input_messages, turns[: i + 1]))]
    for start, end in pairwise([0, *ends[:-1], len(turns)] if turns else []):
        span = turns[start:end]
        columns = span_columns(before, span)
        tags = {**head_tags(evaluation, groups), **columns.get("tags", {})}
        request_id = f"{identity(evaluation)}#{number + row_turn(span) + 1}"
        row = without_null_keys({"request_id": request_id, **columns, "tags": tags or None})
        if turns_by(row, len(before)) != span:
            row = _with_part(row, {"golden": {"turns": span}})
        rows.append(row)
        before = before + history_of(span)
        number += len(span)
    rest = _not_in_rows(evaluation, evaluation_by(rows)) if rows else {}
    return [_with_part(rows[0], rest), *rows[1:]] if rest else rows


def _not_in_rows(evaluation: Object, from_rows: Object) -> dict[str, Any]:
    """The fields of an evaluation that its rows do not give back."""
    rest = {k: v for k, v in evaluation.items() if k not in ("golden", "scenario") and from_rows.get(k) != v}
    golden = {k: v for k, v in (evaluation.get("golden") or {}).items() if k != "turns"}
    return {**rest, "golden": golden} if golden else rest


def _with_part(row: Row, part: dict[str, Any]) -> Row:
    """The row with a part of its evaluation in addition to its columns."""
    custom = row.get("custom_expected", {})
    kept = custom.get(EVALUATION_KEY, {})
    golden = {**kept.get("golden", {}), **part.get("golden", {})}
    whole = {**kept, **part, **({"golden": golden} if golden else {})}
    return {**row, "custom_expected": {**custom, EVALUATION_KEY: whole}}


# ---------------------------------------------------------------------------------------------------------------------
# result → rows: the expected and the observed behavior, latency and scores
SCORES = ("toolInvocationScore", "toolOrderedInvocationScore")


def replayed_rows(result: Object) -> Iterator[Row]:
    """A row per turn of a replayed golden evaluation: the expectations of its outcomes, and the observed behavior."""
    turns = objects(result["goldenResult"].get("turnReplayResults"))
    for number, turn in enumerate(turns, start=1):
        outcomes = objects(turn.get("expectationOutcome"))
        expected = each(outcomes, "expectation")
        observed_calls = list(map(tool_call, each(outcomes, "observedToolCall")))
        reference = expected_calls(expected)
        others = [e for e in expected if not has_column(e)]
        overall = turn.get("overallToolInvocationResult")
        scores = {name: turn[name] for name in SCORES if name in turn}  # 0 and false are scores
        if isinstance(overall, dict) and "toolInvocationScore" in overall:
            scores.setdefault("toolInvocationScore", overall["toolInvocationScore"])
        scores |= _scores_in(turn, "semanticSimilarity", "hallucination")
        parts = each(outcomes, "toolInvocationResult")
        right = [p["parameterCorrectnessScore"] for p in parts if "parameterCorrectnessScore" in p]
        if right:
            scores["parameterCorrectnessScore"] = right
        verdicts = [o["outcome"] for o in outcomes if "outcome" in o]
        custom = {"scores": {**scores, "outcomes": verdicts} if verdicts else scores, EXPECTATIONS_KEY: others}
        yield without_null_keys(
            {
                "request_id": f"{_tested(result)}#{number}",
                # a result does not repeat the request: its name and the turn refer to it
                "request": {
                    "messages": chat.user_message(f"{result.get('displayName') or _tested(result)}, turn {number}")
                },
                "response": joined_text(each(outcomes, "observedAgentResponse")),
                "expected_response": expected_text(expected)[0],
                "predicted_trajectory": observed_calls if observed_calls or reference else None,
                "reference_trajectory": reference,
                "latency_seconds": seconds(turn.get("turnLatency")),
                **_failure(turn.get("errorInfo") or result.get("errorInfo")),
                "session_id": turn.get("conversation"),
                "custom_expected": {k: v for k, v in custom.items() if v} or None,
                "tags": _result_tags(result),
            }
        )


def _tested(result: Object) -> str:
    """The id of the evaluation that a result belongs to: projects/…/evaluations/<id>/results/<id>."""
    parts = str(result.get("name") or "").split("/")
    found = [after for before, after in pairwise(parts) if before == "evaluations"]
    return found[0] if found else str(result.get("displayName") or "result")


def _scores_in(part: Object, *names: str) -> dict[str, Any]:
    """The scores of those results that have one."""
    results = {name: part.get(f"{name}Result") for name in names}
    return {name: r["score"] for name, r in results.items() if isinstance(r, dict) and "score" in r}


def scenario_result_row(result: Object) -> Row:
    """A scenario that was played: the expected and the observed behavior of the agent."""
    found = result["scenarioResult"]
    outcomes = objects(found.get("expectationOutcomes"))
    tools = each(each(outcomes, "expectation"), "toolExpectation")
    reference = list(map(tool_call, each(tools, "expectedToolCall")))
    observed_calls = list(map(tool_call, each(each(outcomes, "observedToolCall"), "toolCall")))
    named = ("allExpectationsSatisfied", "taskCompleted", "rubricOutcomes")
    scores = {name: found[name] for name in named if name in found}
    scores |= _scores_in(found, "taskCompletion", "userGoalSatisfaction")
    return without_null_keys(
        {
            "request_id": _tested(result),
            "request": {"messages": chat.user_message(str(found.get("task") or _tested(result)))},
            "response": joined_text(each(outcomes, "observedAgentResponse")),
            "predicted_trajectory": observed_calls if observed_calls or reference else None,
            "reference_trajectory": reference or None,
            **_failure(result.get("errorInfo")),
            "session_id": found.get("conversation"),
            "custom_expected": {"scores": scores} if scores else None,
            "tags": _result_tags(result),
        }
    )


def _failure(error: Any) -> dict[str, Any]:
    if not isinstance(error, dict):
        return {}
    words = [error[name] for name in ("errorType", "errorMessage") if isinstance(error.get(name), str) and error[name]]
    return {"failure": True, "error": ": ".join(words) or "failed"}


def _result_tags(result: Object) -> dict[str, str] | None:
    names = {"evaluation_status": "evaluationStatus", "evaluation_run": "evaluationRun", "app_version": "appVersion"}
    tags = {tag: result[field] for tag, field in names.items() if isinstance(result.get(field), str)}
    return tags or None


def seconds(duration: Any) -> float | None:
    """A protobuf duration (`"1.5s"`) in seconds."""
    if not isinstance(duration, str) or not duration.endswith("s"):
        return None
    try:
        return float(duration[:-1])
    except ValueError:
        return None


# ---------------------------------------------------------------------------------------------------------------------
# Canonical rows → evaluations: the way back of rows.py.
#
#     rows ──by id──▶ of one evaluation ──by chat──▶ chains ──turn after turn──▶ evaluations
#
# Rows `x#1`, `x#2` become one evaluation `x` again, as long as the chat of each row goes on from the one before; any
# other row becomes an evaluation of its own. The columns of a row take precedence: the part of the evaluation that is
# kept with them (`EVALUATION_KEY`) is used as far as it agrees.
class Assembled(Struct, frozen=True):
    """An evaluation made from rows, its groups (which only the CSV has), and for the place of each row the number of
    its turn (0 for a scenario, which has none)."""

    evaluation: dict[str, Any]
    groups: list[str]
    turns: dict[int, int]


def evaluations_by(rows: Sequence[Object]) -> list[Assembled]:
    """The evaluations of canonical rows, in the order of their first rows. An evaluation that its rows do not give
    whole is called as its row."""
    rows = named(rows)
    return [one for places in _together(rows) for one in _assembled(rows, places)]


def evaluation_by(rows: Sequence[Object]) -> dict[str, Any]:
    """The one evaluation of rows that are all of it."""
    return next(_assembled(rows, range(len(rows)))).evaluation


def turns_by(row: Object, start: int) -> list[Turn]:
    """The turns of the columns of a row, whose first messages are those of the rows before it."""
    return turns_of(row["request"]["messages"][start:], row)


# ---------------------------------------------------------------------------------------------------------------------
# which rows are of one evaluation
def _together(rows: Sequence[Object]) -> list[list[int]]:
    """The places of rows whose IDs are those of the turns of one evaluation, in the order of the turns."""
    found: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        base, number = numbered(row)
        alone = number is None or _part(row, "scenario") is not None
        key = place if alone else (base, (row.get("tags") or {}).get("display_name"))
        found.setdefault(key, []).append(place)
    return [run for places in found.values() for run in _runs(rows, places)]


def _runs(rows: Sequence[Object], places: list[int]) -> Iterator[list[int]]:
    """The places by the numbers of their turns; where a number comes twice, each run of rising numbers by itself."""
    numbers = [numbered(rows[place])[1] or 0 for place in places]
    if len(set(numbers)) == len(numbers):
        yield [place for _, place in sorted(zip(numbers, places, strict=True))]
        return
    starts = [0, *(i for i, (a, b) in enumerate(pairwise(numbers), start=1) if b <= a), len(places)]
    for start, end in pairwise(starts):
        yield places[start:end]


def numbered(row: Object) -> tuple[str | None, int | None]:
    """The id of a row's evaluation, and the number of its turn."""
    request_id = row.get("request_id")
    base, mark, number = str(request_id or "").rpartition("#")
    is_numbered = bool(mark and base) and number.isdecimal() and number.isascii()
    return (base, int(number)) if is_numbered else (None if request_id is None else str(request_id), None)


# ---------------------------------------------------------------------------------------------------------------------
# evaluations of them
class _Chain(Struct):
    """Rows whose chats continue each other: their turns so far, the number of each row's turn, and the chat."""

    turns: list[Turn] = []
    numbers: dict[int, int] = {}
    messages: chat.Messages = []

    def goes_on(self, row: Object) -> int | None:
        """The number of messages at the beginning of the row's chat that are this chat; None if it is another one.
        Other formats do not repeat in the chat what the agent did in it (an evalset of the ADK)."""
        messages = row["request"]["messages"]
        spoken = [m for m in self.messages if m["role"] != "tool" and not m.get("tool_calls")]
        for chat_ in (self.messages, spoken):
            if messages[: len(chat_)] == chat_:
                return len(chat_)
        return None

    def add(self, place: int, row: Object, start: int) -> None:
        original = objects((_part(row, "golden") or {}).get("turns"))
        if original and _view(span_columns(self.messages, original)) == _view(row):
            span, expected = original, expectations_of(original[row_turn(original)])
        else:
            span, expected = turns_by(row, start), list(expected_by(row))
        self.numbers[place] = len(self.turns) + row_turn(span) + 1
        self.turns += span
        self.messages = [*self.messages, *row["request"]["messages"][start:], *expected_messages(expected)]


def _assembled(rows: Sequence[Object], places: Sequence[int]) -> Iterator[Assembled]:
    first = rows[places[0]]
    scenario = _part(first, "scenario")
    if scenario is not None:
        fields = {"scenario": scenario_by(first, scenario)}
        yield Assembled(_with_head(fields, [first], first["request_id"]), groups_by(_tags(first)), {places[0]: 0})
        return
    chains: list[_Chain] = []
    for place in places:
        start = chains[-1].goes_on(rows[place]) if chains else None
        if start is None:
            chains.append(_Chain())
        chains[-1].add(place, rows[place], start or 0)
    whole = len(chains) == 1 and all(numbered(rows[p])[1] in (None, n) for p, n in chains[0].numbers.items())
    for chain in chains:
        members = [rows[place] for place in chain.numbers]
        name = (numbered(members[0])[0] if whole else None) or members[0]["request_id"]
        evaluation = _with_head({"golden": {"turns": chain.turns}}, members, name, whole)
        yield Assembled(evaluation, groups_by(_tags(members[0])), chain.numbers)


def _view(row: Object) -> list[Any]:
    """The turns that follow from the columns of a row."""
    custom = row.get("custom_expected")
    others = custom.get(EXPECTATIONS_KEY) if isinstance(custom, Mapping) else None
    columns = (row.get(name) for name in ("request", "expected_response", "reference_trajectory"))
    return [*columns, others, _tags(row).get("response_agent")]


def _with_head(fields: dict[str, Any], rows: Sequence[Object], name: str, whole: bool = True) -> dict[str, Any]:
    """The evaluation of that name; with the part that was kept with its rows, unless ID and tags differ from it. An
    incomplete one gets a name of its own."""
    tags = {k: v for k, v in _tags(rows[0]).items() if k in HEAD_TAGS and (whole or k != "display_name")}
    evaluation = {**head_by(name, tags), **fields}
    for row in rows:
        kept = {k: v for k, v in (_part(row) or {}).items() if k not in ("golden", "scenario")}
        candidate = {**evaluation, **kept}
        if not whole or (identity(candidate), head_tags(candidate)) != (name, tags):
            kept = {k: v for k, v in kept.items() if k not in HEAD}
        golden = {k: v for k, v in (_part(row, "golden") or {}).items() if k != "turns"}
        evaluation = {**evaluation, **kept, **({"golden": {**evaluation["golden"], **golden}} if golden else {})}
    return evaluation


def _part(row: Object, field: str | None = None) -> dict[str, Any] | None:
    """The part of an evaluation that was kept with a row, or a field of it that is an object."""
    custom = row.get("custom_expected")
    part = custom.get(EVALUATION_KEY) if isinstance(custom, Mapping) else None
    if isinstance(part, dict) and field is not None:
        part = part.get(field)
    return part if isinstance(part, dict) else None


def _tags(row: Object) -> dict[str, str]:
    return dict(row.get("tags") or {})
