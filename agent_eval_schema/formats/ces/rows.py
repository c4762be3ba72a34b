"""Evaluations of Customer Engagement Suite ⇄ evaluation rows, and results → rows.

    golden      one row a turn that expects something of the agent: the turns before it are the chat so far
    scenario    one row: its task is the request, its rubrics and expectations are the ground truth
    result      one row a turn: what was expected, what was observed, latency and scores
    row         one golden evaluation: the chat before the last question as turns before, the ground truth expected

What a row has no column for stands in `custom_expected` (other expectations: an agent transfer, variables, a mock) and
in tags (`display_name`, `tags`, `evaluation_groups`, …), so that it is there again on the way back. Decisions: ces.md.

| step of a turn | message, once the turn is history | in the row of its own turn |
|---|---|---|
| userInput.text, any other userInput | user: text, or a part of that type | the same: it is the request |
| userInput.toolResponses | tool, without a call id | the same |
| expectation.agentResponse, texts | assistant, `name` is its role | expected_response, tag response_agent |
| expectation.toolCall | assistant with tool_calls | reference_trajectory |
| expectation.toolResponse | tool, with the id of the call | custom_expected |
| any other expectation | | custom_expected |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.text import jsontext

Object = Mapping[str, Any]
Row = dict[str, Any]

EXPECTATIONS = "expectations"
"""The key of custom_expected under which the expectations stand that no column says, as the API writes them."""

LIST_MARK = ";"
"""Between the tags and the groups of an evaluation, as in the golden CSV."""


def rows_of(evaluation: Object, groups: Sequence[str] = ()) -> list[Row]:
    """The rows of an evaluation, or of the result of one, in the order of the turns; none if it expects nothing.

    `groups`: the names of the evaluation's data sets, which only the CSV says. Parts of a wrong type are passed over
    (`ces.validate_evaluation` tells them).
    """
    given = by_json_names(evaluation)
    if isinstance(given.get("golden"), dict):
        return list(_golden_rows(given, groups))
    if isinstance(given.get("scenario"), dict):
        return [_scenario_row(given, groups)]
    if isinstance(given.get("goldenResult"), dict):
        return list(_replayed_rows(given))
    return [_scenario_result_row(given)] if isinstance(given.get("scenarioResult"), dict) else []


def by_json_names(value: Object, message: str | None = None) -> dict[str, Any]:
    """The object with the JSON names of all fields: snake_case is accepted on input, as ProtoJSON says."""
    root = (
        schema.RESULT if {"goldenResult", "golden_result", "scenarioResult", "scenario_result"} & value.keys() else None
    )
    return _renamed(value, message or root or schema.EVALUATION)


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
def _golden_rows(evaluation: Object, groups: Sequence[str]) -> Iterator[Row]:
    before: chat.Messages = []
    for number, turn in enumerate(objects(evaluation["golden"].get("turns")), start=1):
        steps = objects(turn.get("steps"))
        inputs = [m for step in steps for m in _asked(step.get("userInput"))]
        expected = [step["expectation"] for step in steps if isinstance(step.get("expectation"), dict)]
        if expected:
            yield _row_of_turn(evaluation, number, [*before, *inputs], expected, groups)
        before += [*inputs, *_told(expected)]


def _row_of_turn(
    evaluation: Object, number: int, messages: chat.Messages, expected: list[Any], groups: Sequence[str]
) -> Row:
    texts, agents = _expected_texts(expected)
    others = [e for e in expected if not _has_column(e)]
    tags = _tags(evaluation, groups)
    return without_none(
        {
            "request_id": f"{identity(evaluation)}#{number}",
            "request": {"messages": messages},
            "expected_response": "\n".join(texts) if texts else None,
            "reference_trajectory": _expected_calls(expected),
            "custom_expected": {EXPECTATIONS: others} if others else None,
            "tags": {**tags, "response_agent": agents[-1]} if agents else tags or None,
        }
    )


def _expected_calls(expected: Sequence[Object]) -> list[Row] | None:
    """The calls that are expected; none at all is an expectation only where it is said."""
    calls = [_call(e["toolCall"]) for e in expected if isinstance(e.get("toolCall"), dict)]
    return calls or ([] if any(e.get("noToolCalls") is True for e in expected) else None)


def _has_column(expectation: Object) -> bool:
    """Whether the columns of a row say all of an expectation."""
    call, response = expectation.get("toolCall"), expectation.get("agentResponse")
    if isinstance(call, dict):
        return expectation.keys() == {"toolCall"} and call.keys() == {"tool", "args"}
    if isinstance(response, dict):
        chunks = objects(response.get("chunks"))
        plain = all(chunk.keys() == {"text"} for chunk in chunks) and len(chunks) == 1
        return expectation.keys() == {"agentResponse"} and response.keys() <= {"role", "chunks"} and plain
    return expectation == {"noToolCalls": True}


def _expected_texts(expected: Sequence[Object]) -> tuple[list[str], list[str]]:
    """The texts that the agents are to say, and who says them."""
    responses = [e["agentResponse"] for e in expected if isinstance(e.get("agentResponse"), dict)]
    texts = [text for r in responses if (text := _text_of(r)) is not None]
    return texts, [r["role"] for r in responses if isinstance(r.get("role"), str)]


def _text_of(message: Object) -> str | None:
    """The text of a Message {role, chunks}."""
    chunks = objects(message.get("chunks"))
    texts = [t for c in chunks for t in (c.get("text"), c.get("transcript")) if isinstance(t, str)]
    return "".join(texts) if texts else None


def _asked(given: Any) -> Iterator[dict[str, Any]]:
    """What a user input says, as messages."""
    if not isinstance(given, dict):
        return
    for kind, value in given.items():
        if kind == "text":
            yield {"role": "user", "content": value}
        elif kind == "toolResponses" and isinstance(value, dict):
            for response in objects(value.get("toolResponses")):
                yield {"role": "tool", "name": tool_name(response), "content": _json(response.get("response") or {})}
        elif kind == "image" and isinstance(value, dict):  # as the OpenAI schema says it
            url = f"data:{value.get('mimeType')};base64,{value.get('data')}"
            yield {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
        elif kind != "willContinue":
            yield {"role": "user", "content": [{"type": kind, kind: value}]}


def _told(expected: Sequence[Object]) -> Iterator[dict[str, Any]]:
    """What the agent was expected to do in a turn, as messages of the history."""
    called: dict[str, str] = {}
    for i, expectation in enumerate(expected):
        call, response = expectation.get("toolCall"), expectation.get("toolResponse")
        said = expectation.get("agentResponse")
        if isinstance(call, dict):
            made = _call(call)
            called[made["tool_name"]] = identity_ = str(call.get("id") or f"call_{i}")
            function = {"name": made["tool_name"], "arguments": _json(made.get("tool_input") or {})}
            entry = {"id": identity_, "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [entry]}
        elif isinstance(response, dict):
            name = tool_name(response)
            told = {"role": "tool", "name": name, "content": _json(response.get("response") or {})}
            yield {**told, "tool_call_id": called.get(name, f"call_{i}")}
        elif isinstance(said, dict) and (text := _text_of(said)) is not None:
            yield without_none({"role": "assistant", "content": text, "name": said.get("role")})


def tool_name(given: Object) -> str:
    """What a ToolCall or ToolResponse names its tool: `tool`, or toolset and id with a slash between."""
    toolset = given.get("toolsetTool")
    if isinstance(toolset, dict):
        return f"{toolset.get('toolset', '')}/{toolset.get('toolId', '')}"
    return str(given.get("tool") or given.get("displayName") or "?")


def _call(call: Object) -> Row:
    return {"tool_name": tool_name(call), "tool_input": call.get("args") if isinstance(call.get("args"), dict) else {}}


def identity(evaluation: Object) -> str:
    """The id of an evaluation: the last part of its resource name, else its display name."""
    name = evaluation.get("name")
    return str(name).rpartition("/")[2] if name else str(evaluation.get("displayName") or "evaluation")


def _tags(evaluation: Object, groups: Sequence[str]) -> dict[str, str]:
    """What is known of an evaluation as a whole; the display name only where the id is another."""
    tags = [t for t in evaluation.get("tags") or () if isinstance(t, str)]
    shown = evaluation.get("displayName")
    given = {
        "display_name": shown if evaluation.get("name") else None,
        "description": evaluation.get("description"),
        "tags": LIST_MARK.join(tags),
        "evaluation_groups": LIST_MARK.join(groups),
    }
    return {k: v for k, v in given.items() if isinstance(v, str) and v}


# ---------------------------------------------------------------------------------------------------------------------
# scenario → row
def _scenario_row(evaluation: Object, groups: Sequence[str]) -> Row:
    """The task is the request: a simulated user works from it. What the agent should do and say is the ground truth."""
    scenario = evaluation["scenario"]
    expected = objects(scenario.get("scenarioExpectations"))
    tools = [e["toolExpectation"] for e in expected if isinstance(e.get("toolExpectation"), dict)]
    calls = [_call(t["expectedToolCall"]) for t in tools if isinstance(t.get("expectedToolCall"), dict)]
    said = [e["agentResponse"] for e in expected if isinstance(e.get("agentResponse"), dict)]
    facts = [text for s in said if (text := _text_of(s)) is not None]
    rubrics = [r for r in scenario.get("rubrics") or () if isinstance(r, str) and r.strip()]
    known = ("task", "rubrics", "scenarioExpectations")
    rest = {k: v for k, v in scenario.items() if k not in known}
    mocks = [t["mockToolResponse"] for t in tools if t.get("mockToolResponse")]
    return without_none(
        {
            "request_id": identity(evaluation),
            "request": {"messages": chat.user_message(str(scenario.get("task") or ""))},
            "expected_facts": facts or None,
            "guidelines": {"rubrics": rubrics} if rubrics else None,
            "reference_trajectory": calls or None,
            "custom_expected": {**rest, **({"mockToolResponses": mocks} if mocks else {})} or None,
            "tags": _tags(evaluation, groups) or None,
        }
    )


# ---------------------------------------------------------------------------------------------------------------------
# results → rows
SCORES = ("toolInvocationScore", "toolOrderedInvocationScore")


def _replayed_rows(result: Object) -> Iterator[Row]:
    """A turn of a replayed golden evaluation: the expectations of its outcomes, and what was observed."""
    turns = objects(result["goldenResult"].get("turnReplayResults"))
    for number, turn in enumerate(turns, start=1):
        outcomes = objects(turn.get("expectationOutcome"))
        expected = [o["expectation"] for o in outcomes if isinstance(o.get("expectation"), dict)]
        texts, _ = _expected_texts(expected)
        made = [o["observedToolCall"] for o in outcomes if isinstance(o.get("observedToolCall"), dict)]
        said = [o["observedAgentResponse"] for o in outcomes if isinstance(o.get("observedAgentResponse"), dict)]
        answers = [text for s in said if (text := _text_of(s)) is not None]
        wanted = _expected_calls(expected)
        others = [e for e in expected if not _has_column(e)]
        custom = {"scores": _scores(turn, outcomes), EXPECTATIONS: others}
        yield without_none(
            {
                "request_id": f"{_tested(result)}#{number}",
                "request": {"messages": chat.user_message(_asked_in(result, number))},
                "response": "\n".join(answers) if answers else None,
                "expected_response": "\n".join(texts) if texts else None,
                "predicted_trajectory": [_call(c) for c in made] if made or wanted else None,
                "reference_trajectory": wanted,
                "latency_seconds": seconds(turn.get("turnLatency")),
                **_failure(turn.get("errorInfo") or result.get("errorInfo")),
                "session_id": turn.get("conversation"),
                "custom_expected": {k: v for k, v in custom.items() if v} or None,
                "tags": _result_tags(result),
            }
        )


def _asked_in(result: Object, number: int) -> str:
    """A result does not repeat what was asked; its name and the turn say where that stands."""
    return f"{result.get('displayName') or _tested(result)}, turn {number}"


def _tested(result: Object) -> str:
    """The id of the evaluation that a result belongs to: projects/…/evaluations/<id>/results/<id>."""
    parts = str(result.get("name") or "").split("/")
    found = [after for before, after in pairwise(parts) if before == "evaluations"]
    return found[0] if found else str(result.get("displayName") or "result")


def _scores(turn: Object, outcomes: Sequence[Object]) -> dict[str, Any]:
    """Every score of a turn; 0 and false are scores."""
    overall = turn.get("overallToolInvocationResult")
    scores = {name: turn[name] for name in SCORES if name in turn}
    if isinstance(overall, dict) and "toolInvocationScore" in overall:
        scores.setdefault("toolInvocationScore", overall["toolInvocationScore"])
    for name in ("semanticSimilarityResult", "hallucinationResult"):
        found = turn.get(name)
        if isinstance(found, dict) and "score" in found:
            scores[name.removesuffix("Result")] = found["score"]
    parts = [o["toolInvocationResult"] for o in outcomes if isinstance(o.get("toolInvocationResult"), dict)]
    right = [p["parameterCorrectnessScore"] for p in parts if "parameterCorrectnessScore" in p]
    if right:
        scores["parameterCorrectnessScore"] = right
    told = [o["outcome"] for o in outcomes if "outcome" in o]
    return {**scores, "outcomes": told} if told else scores


def _scenario_result_row(result: Object) -> Row:
    found = result["scenarioResult"]
    outcomes = objects(found.get("expectationOutcomes"))
    expected = [o["expectation"] for o in outcomes if isinstance(o.get("expectation"), dict)]
    tools = [e["toolExpectation"] for e in expected if isinstance(e.get("toolExpectation"), dict)]
    wanted = [_call(t["expectedToolCall"]) for t in tools if isinstance(t.get("expectedToolCall"), dict)]
    observed = [o["observedToolCall"] for o in outcomes if isinstance(o.get("observedToolCall"), dict)]
    said = [o["observedAgentResponse"] for o in outcomes if isinstance(o.get("observedAgentResponse"), dict)]
    made = [_call(o["toolCall"]) for o in observed if isinstance(o.get("toolCall"), dict)]
    answers = [text for s in said if (text := _text_of(s)) is not None]
    named = ("allExpectationsSatisfied", "taskCompleted", "rubricOutcomes")
    scores = {name: found[name] for name in named if name in found}
    for name in ("taskCompletionResult", "userGoalSatisfactionResult"):
        if isinstance(found.get(name), dict) and "score" in found[name]:
            scores[name.removesuffix("Result")] = found[name]["score"]
    return without_none(
        {
            "request_id": _tested(result),
            "request": {"messages": chat.user_message(str(found.get("task") or _tested(result)))},
            "response": "\n".join(answers) if answers else None,
            "predicted_trajectory": made if made or wanted else None,
            "reference_trajectory": wanted or None,
            **_failure(result.get("errorInfo")),
            "session_id": found.get("conversation"),
            "custom_expected": {"scores": scores} if scores else None,
            "tags": _result_tags(result),
        }
    )


def _failure(error: Any) -> dict[str, Any]:
    if not isinstance(error, dict):
        return {}
    told = [error[name] for name in ("errorType", "errorMessage") if isinstance(error.get(name), str) and error[name]]
    return {"failure": True, "error": ": ".join(told) or "failed"}


def _result_tags(result: Object) -> dict[str, str] | None:
    names = {"evaluation_status": "evaluationStatus", "evaluation_run": "evaluationRun", "app_version": "appVersion"}
    tags = {ours: result[theirs] for ours, theirs in names.items() if isinstance(result.get(theirs), str)}
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
# row → golden
def goldens_of(rows: Sequence[Object]) -> list[dict[str, Any]]:
    """Canonical rows as golden evaluations, one each. A row `x#1` that is alone with its `x` becomes the evaluation
    `x`, which is `x#1` again when it is read; otherwise an evaluation is called as its row."""
    bases = [_base(row, place) for place, row in enumerate(rows)]
    shared = {base for base, count in Counter(bases).items() if count > 1}
    return [
        golden_of(row, str(row.get("request_id") or base) if base in shared else base)
        for row, base in zip(rows, bases, strict=True)
    ]


def _base(row: Object, place: int) -> str:
    identity_ = str(row.get("request_id") or f"row {place}")
    base, mark, number = identity_.rpartition("#")
    return base if mark and base and number.isdecimal() else identity_


def golden_of(row: Object, name: str) -> dict[str, Any]:
    """A canonical row as a golden evaluation of that name: what was said before the last question are turns before."""
    tags = dict(row.get("tags") or {})
    turns: list[dict[str, Any]] = []
    for message in row["request"]["messages"]:
        role = message["role"]
        asks = role in ("user", "system", "developer") or (role == "tool" and "tool_call_id" not in message)
        if not turns or (asks and any("expectation" in step for step in turns[-1]["steps"])):
            turns.append({"steps": []})
        turns[-1]["steps"].extend(_inputs_of(message) if asks else _expectations_of(message))
    turns[-1]["steps"].extend({"expectation": e} for e in _expected(row, tags.get("response_agent")))
    made: dict[str, Any] = {
        "displayName": name,
        "golden": {"turns": turns},
        "description": tags.get("description"),
        "tags": [t for t in tags.get("tags", "").split(LIST_MARK) if t] or None,
    }
    return without_none(made)


def groups_of(row: Object) -> list[str]:
    """The names of the data sets that a row belongs to, which only the CSV can say."""
    return [g for g in (row.get("tags") or {}).get("evaluation_groups", "").split(LIST_MARK) if g]


def _inputs_of(message: Object) -> list[dict[str, Any]]:
    content = message.get("content")
    if message["role"] == "tool":
        response = {"tool": message.get("name") or "?", "response": _object(content)}
        return [{"userInput": {"toolResponses": {"toolResponses": [response]}}}]
    if not isinstance(content, list):
        return [{"userInput": {"text": content or ""}}]
    return [{"userInput": _input(part)} for part in content]


def _input(part: Object) -> dict[str, Any]:
    kind = part.get("type")
    image = _INLINE_IMAGE.match(str((part.get("image_url") or {}).get("url"))) if kind == "image_url" else None
    if image:
        return {"image": {"mimeType": image[1], "data": image[2]}}
    if kind in schema.message("SessionInput").fields and kind in part:
        return {str(kind): part[kind]}
    return {"text": part["text"] if isinstance(part.get("text"), str) else _json(part)}


_INLINE_IMAGE = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)


def _expectations_of(message: Object) -> list[dict[str, Any]]:
    """A message of the agent in the history as expectations."""
    if message["role"] == "tool":
        response = {"tool": message.get("name") or "?", "response": _object(message.get("content"))}
        return [{"expectation": {"toolResponse": response}}]
    calls = [{"toolCall": {"tool": name, "args": given or {}}} for name, given in chat.read_tool_calls([message])]
    text = chat.join_text(message.get("content"))
    said = [_agent_says(text, message.get("name"))] if isinstance(text, str) and text else []
    return [{"expectation": e} for e in [*calls, *said]]


def _expected(row: Object, agent: str | None) -> Iterator[dict[str, Any]]:
    custom = row.get("custom_expected") or {}
    others = custom.get(EXPECTATIONS) if isinstance(custom, Mapping) else None
    others = [e for e in others if isinstance(e, dict)] if isinstance(others, list) else []
    said = {_json(_call(e["toolCall"])) for e in others if isinstance(e.get("toolCall"), dict)}
    for call in row.get("reference_trajectory") or ():
        if _json(dict(call)) not in said:
            yield {"toolCall": {"tool": call["tool_name"], "args": call["tool_input"]}}
    if row.get("reference_trajectory") == []:
        yield {"noToolCalls": True}
    yield from others
    text = row.get("expected_response")
    if text is not None and not any("agentResponse" in e for e in others):
        yield _agent_says(text, agent)


def _agent_says(text: str, agent: Any) -> dict[str, Any]:
    return {"agentResponse": without_none({"role": agent, "chunks": [{"text": text}]})}


# ---------------------------------------------------------------------------------------------------------------------
def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; of what is no list, none."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _object(content: Any) -> dict[str, Any]:
    """The content of a tool message as the object that it must be there."""
    value = jsontext.parse_leniently(content) if isinstance(content, str) else content
    return value if isinstance(value, dict) else {"output": value}


def _json(value: Any) -> str:
    return jsontext.encode(value).decode()


def without_none(value: dict[str, Any]) -> dict[str, Any]:
    """The dict without the keys whose value is None."""
    return {k: v for k, v in value.items() if v is not None}
