"""Evaluations of Customer Engagement Suite, and results of them, as evaluation rows (from_rows.py is the way back).

    golden      one row a turn that expects something of the agent: the turns before it are the chat so far (turns.py)
    scenario    one row: its task is the request, its rubrics and expectations are the ground truth (scenarios.py)
    result      one row a turn: the expected and the observed behavior, latency and scores (result_rows.py)

Fields without a column are in `custom_expected` (other expectations: an agent transfer, variables, a mock) and
in tags (`display_name`, `tags`, `evaluation_groups`, …), so that it is there again on the way back. Of each evaluation
the way back is tried: everything else is kept with the rows, as the API writes it (`EVALUATION_KEY`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.from_rows import evaluation_by, turns_by
from agent_eval_schema.formats.ces.heads import head_tags, identity
from agent_eval_schema.formats.ces.parts import EVALUATION_KEY, Object, Row, objects, without_none
from agent_eval_schema.formats.ces.result_rows import replayed_rows, scenario_result_row
from agent_eval_schema.formats.ces.scenarios import scenario_columns
from agent_eval_schema.formats.ces.turns import asked_in, expectations_of, history_of, row_turn, span_columns


def rows_of(evaluation: Object, groups: Sequence[str] = ()) -> list[Row]:
    """The rows of an evaluation, or of the result of one, in the order of the turns; none if it expects nothing.

    `groups`: the names of the evaluation's datasets, which only the CSV has. Parts of a wrong type are skipped
    (`ces.validate_evaluation` reports them).
    """
    given = by_json_names(evaluation)
    if isinstance(given.get("golden"), dict):
        return _golden_rows(given, groups)
    if isinstance(given.get("scenario"), dict):
        return [_scenario_row(given, groups)]
    if isinstance(given.get("goldenResult"), dict):
        return list(replayed_rows(given))
    return [scenario_result_row(given)] if isinstance(given.get("scenarioResult"), dict) else []


def by_json_names(value: Object) -> dict[str, Any]:
    """The object with the JSON names of all fields: snake_case is accepted on input, as in ProtoJSON."""
    is_result = not value.keys().isdisjoint({"goldenResult", "golden_result", "scenarioResult", "scenario_result"})
    return _renamed(value, schema.RESULT if is_result else schema.EVALUATION)


def _renamed(value: Object, message: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    known = schema.message(message)
    for key, part in value.items():
        name = known.json_name(key)
        inner = known.fields[name].message if name else ""
        if inner and isinstance(part, list):
            part = [_renamed(p, inner) if isinstance(p, dict) else p for p in part]
        elif inner and isinstance(part, dict):
            part = _renamed(part, inner)
        if part is not None:
            made[name or key] = part
    return made


# ---------------------------------------------------------------------------------------------------------------------
# golden → rows
def _golden_rows(evaluation: Object, groups: Sequence[str]) -> list[Row]:
    turns = objects(evaluation["golden"].get("turns"))
    rows: list[Row] = []
    before: chat.Messages = []
    number = 0
    for span in _spans(turns):
        columns = span_columns(before, span)
        tags = {**head_tags(evaluation, groups), **columns.get("tags", {})}
        number_here = number + row_turn(span) + 1
        row = without_none({"request_id": f"{identity(evaluation)}#{number_here}", **columns, "tags": tags or None})
        if turns_by(row, before) != span:
            row = _with_part(row, {"golden": {"turns": span}})
        rows.append(row)
        before = before + history_of(span)
        number += len(span)
    rest = _not_said(evaluation, evaluation_by(rows)) if rows else {}
    return [_with_part(rows[0], rest), *rows[1:]] if rest else rows


def _spans(turns: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The turns in one piece per row: up to a turn that expects something after a message."""
    ends = [i + 1 for i, turn in enumerate(turns) if expectations_of(turn) and any(map(asked_in, turns[: i + 1]))]
    return (turns[a:b] for a, b in pairwise([0, *ends[:-1], len(turns)]) if turns)


def _not_said(given: Object, made: Object) -> dict[str, Any]:
    """The fields of an evaluation that its rows do not give back."""
    rest = {k: v for k, v in given.items() if k not in _CONTENT and made.get(k) != v}
    golden = {k: v for k, v in (given.get("golden") or {}).items() if k != "turns"}
    return {**rest, "golden": golden} if golden else rest


_CONTENT = ("golden", "scenario")


def _with_part(row: Row, part: dict[str, Any]) -> Row:
    """The row with a part of its evaluation in addition to its columns."""
    custom = row.get("custom_expected", {})
    kept = custom.get(EVALUATION_KEY, {})
    golden = {**kept.get("golden", {}), **part.get("golden", {})}
    whole = {**kept, **part, **({"golden": golden} if golden else {})}
    return {**row, "custom_expected": {**custom, EVALUATION_KEY: whole}}


# ---------------------------------------------------------------------------------------------------------------------
# scenario → row
def _scenario_row(evaluation: Object, groups: Sequence[str]) -> Row:
    scenario = evaluation["scenario"]
    columns = scenario_columns(scenario)
    row = {"request_id": identity(evaluation), **columns, "tags": head_tags(evaluation, groups) or None}
    row = _with_part(without_none(row), {"scenario": scenario})
    rest = _not_said(evaluation, evaluation_by([row]))
    return _with_part(row, rest) if rest else row
