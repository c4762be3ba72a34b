"""Scenarios ⇄ the columns of a row: a simulated user works from the task, which is the request; what the agent should
do and say is the ground truth."""

from __future__ import annotations

from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces.parts import Object, Row, each, message_text, objects, tool_call, without_none


def scenario_columns(scenario: Object) -> Row:
    """The columns of the row that a scenario makes."""
    expected = objects(scenario.get("scenarioExpectations"))
    calls = list(map(tool_call, each(each(expected, "toolExpectation"), "expectedToolCall")))
    facts = [text for said in each(expected, "agentResponse") if (text := message_text(said) or "").strip()]
    rubrics = [r for r in scenario.get("rubrics") or () if isinstance(r, str) and r.strip()]
    return without_none(
        {
            "request": {"messages": chat.user_message(str(scenario.get("task") or ""))},
            "expected_facts": facts or None,
            "guidelines": {"rubrics": rubrics} if rubrics else None,
            "reference_trajectory": calls or None,
        }
    )


def scenario_by(row: Object, given: Object) -> dict[str, Any]:
    """The original scenario of a row, with the parts replaced in which the columns differ from it."""
    was = scenario_columns(given)
    changed = {name for name in _PARTS if row.get(name) != was.get(name)}
    return {**given, **{key: value for name in changed for key, value in _PARTS[name](row, given).items()}}


def _task(row: Object, _: Object) -> dict[str, Any]:
    return {"task": "\n".join(str(chat.join_text(m.get("content")) or "") for m in row["request"]["messages"])}


def _rubrics(row: Object, _: Object) -> dict[str, Any]:
    return {"rubrics": [line for lines in (row.get("guidelines") or {}).values() for line in lines]}


def _expectations(row: Object, given: Object) -> dict[str, Any]:
    """The values of the columns; of the original scenario, those that agree with the columns."""
    facts, calls = list(row.get("expected_facts") or ()), list(row.get("reference_trajectory") or ())
    kept = []
    for expectation in objects(given.get("scenarioExpectations")):
        one = scenario_columns({"scenarioExpectations": [expectation]})
        (fact,), (call,) = one.get("expected_facts", [None]), one.get("reference_trajectory", [None])
        if fact in (None, *facts) and call in (None, *calls):
            kept.append(expectation)
            facts = _without(facts, fact)
            calls = _without(calls, call)
    tools = [{"expectedToolCall": {"tool": c["tool_name"], "args": c["tool_input"]}} for c in calls]
    says = [{"chunks": [{"text": fact}]} for fact in facts]
    anew = [*({"toolExpectation": tool} for tool in tools), *({"agentResponse": text} for text in says)]
    return {"scenarioExpectations": [*kept, *anew]}


def _without(items: list[Any], item: Any) -> list[Any]:
    """The items without the first one that is this."""
    at = items.index(item) if item in items else len(items)
    return items[:at] + items[at + 1 :]


_PARTS = {
    "request": _task,
    "guidelines": _rubrics,
    "expected_facts": _expectations,
    "reference_trajectory": _expectations,
}
"""The columns of a scenario's row, and what makes its fields of them."""
