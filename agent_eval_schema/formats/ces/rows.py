"""Evaluations of Customer Engagement Suite, and results of them, as evaluation rows, and the way back.

    golden      one row per turn that expects something of the agent: the turns before it are the chat so far
    scenario    one row: its task is the request, its rubrics and expectations are the ground truth
    result      one row per turn: the expected and the observed behavior, latency and scores

| step of a turn | message, once the turn is history | in the row of its own turn |
|---|---|---|
| userInput.text, any other userInput | user: text, or a part of that type | the same: it is the request |
| userInput.toolResponses | tool, without a call id | the same |
| expectation.agentResponse, texts | assistant, `name` is its role | expected_response, tag response_agent |
| expectation.toolCall | assistant with tool_calls | reference_trajectory |
| expectation.toolResponse | tool, with the id of the call | custom_expected |
| any other expectation | | custom_expected |

Fields without a column are in `custom_expected` (other expectations: an agent transfer, variables, a mock) and
in tags (`display_name`, `tags`, `evaluation_groups`, …), so that it is there again on the way back. Of each evaluation
the way back is tried: everything else is kept with the rows, as the API writes it (`EVALUATION_KEY`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.golden import SEPARATOR
from agent_eval_schema.formats.format import with_ids
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import encode_text, without_null_keys

Object = Mapping[str, Any]
Row = dict[str, Any]

# --- parts of evaluations and their results, as rows contain them: texts, calls, expectations, ID and tags
EXPECTATIONS_KEY = "expectations"
"""The key of custom_expected for the expectations that no column represents, as the API writes them."""

EVALUATION_KEY = "evaluation"
"""The key of custom_expected for what the rows of an evaluation do not represent: fields, and original turns."""


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none if the value is not a list."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def each(items: Iterable[Object], key: str) -> list[dict[str, Any]]:
    """The objects that the items have under a key."""
    return [item[key] for item in items if isinstance(item.get(key), dict)]


def tool_name(call: Object) -> str:
    """The tool of a ToolCall or ToolResponse: `tool`, or toolset and ID with a slash between."""
    toolset = call.get("toolsetTool")
    if isinstance(toolset, dict):
        return f"{toolset.get('toolset', '')}/{toolset.get('toolId', '')}"
    return str(call.get("tool") or call.get("displayName") or "?")


def tool_call(call: Object) -> Row:
    return {"tool_name": tool_name(call), "tool_input": call.get("args") if isinstance(call.get("args"), dict) else {}}


def message_text(message: Object) -> str | None:
    """The text of a Message {role, chunks}."""
    chunks = objects(message.get("chunks"))
    texts = [t for c in chunks for t in (c.get("text"), c.get("transcript")) if isinstance(t, str)]
    return "".join(texts) if texts else None


def joined_text(messages: Iterable[Object]) -> str | None:
    """The texts of messages as one; None if there is none."""
    texts = [text for message in messages if (text := message_text(message)) is not None]
    return "\n".join(texts) if texts else None


def expected_text(expected: Sequence[Object]) -> tuple[str | None, list[str]]:
    """The expected text, and the agents that say it."""
    responses = each(expected, "agentResponse")
    return joined_text(responses), [r["role"] for r in responses if isinstance(r.get("role"), str)]


def expected_calls(expected: Sequence[Object]) -> list[Row] | None:
    """The expected calls; an empty list is an expectation only where it is explicit."""
    calls = list(map(tool_call, each(expected, "toolCall")))
    return calls or ([] if any(e.get("noToolCalls") is True for e in expected) else None)


def has_column(expectation: Object) -> bool:
    """Whether the columns of a row represent all of an expectation."""
    call, response = expectation.get("toolCall"), expectation.get("agentResponse")
    if isinstance(call, dict):
        return expectation.keys() == {"toolCall"} and call.keys() == {"tool", "args"}
    if isinstance(response, dict):
        chunks = objects(response.get("chunks"))
        plain = all(chunk.keys() == {"text"} for chunk in chunks) and len(chunks) == 1
        return expectation.keys() == {"agentResponse"} and response.keys() <= {"role", "chunks"} and plain
    return expectation == {"noToolCalls": True}


# --- the fields of an evaluation as a whole ⇄ request_id and tags of its rows
def identity(evaluation: Object) -> str:
    """The id of an evaluation: the last part of its resource name, else its display name."""
    name = evaluation.get("name")
    return str(name).rpartition("/")[2] if name else str(evaluation.get("displayName") or "evaluation")


def head_tags(evaluation: Object, groups: Sequence[str] = ()) -> dict[str, str]:
    """The tags of an evaluation's rows; the display name only where the id is another."""
    tags = [t for t in evaluation.get("tags") or () if isinstance(t, str)]
    shown = evaluation.get("displayName")
    texts = {
        "display_name": shown if evaluation.get("name") else None,
        "description": evaluation.get("description"),
        "tags": SEPARATOR.join(tags),
        "evaluation_groups": SEPARATOR.join(groups),
    }
    return {k: v for k, v in texts.items() if isinstance(v, str) and v}


def _items(text: str | None) -> list[str]:
    return [item for item in (text or "").split(SEPARATOR) if item]


def expectations_of(turn: Object) -> list[dict[str, Any]]:
    return each(objects(turn.get("steps")), "expectation")


def input_messages(turn: Object) -> chat.Messages:
    return [m for step in objects(turn.get("steps")) for m in _messages_of_input(step.get("userInput"))]


def history_of(turns: Iterable[Object]) -> chat.Messages:
    """The messages of turns that have gone by."""
    return [m for turn in turns for m in (*input_messages(turn), *expected_messages(expectations_of(turn)))]


def row_turn(span: Sequence[Object]) -> int:
    """The turn of a span whose row it is: the last one that expects something; the last one if none does."""
    return next((i for i in reversed(range(len(span))) if expectations_of(span[i])), len(span) - 1)


def span_columns(before: chat.Messages, span: Sequence[Object]) -> Row:
    """The columns of the row that a span of turns makes, after the messages before it."""
    at = row_turn(span)
    expected = expectations_of(span[at])
    text, agents = expected_text(expected)
    others = [e for e in expected if not has_column(e)]
    columns = {
        "request": {"messages": [*before, *history_of(span[:at]), *input_messages(span[at])]},
        "expected_response": text,
        "reference_trajectory": expected_calls(expected),
        "custom_expected": {EXPECTATIONS_KEY: others} if others else None,
        "tags": {"response_agent": agents[-1]} if agents else None,
    }
    return without_null_keys(columns)


def _messages_of_input(user_input: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(user_input, dict):
        return
    for kind, value in user_input.items():
        if kind == "text":
            yield {"role": "user", "content": value}
        elif kind == "toolResponses" and isinstance(value, dict):
            for response in objects(value.get("toolResponses")):
                content = encode_text(response.get("response") or {})
                yield {"role": "tool", "name": tool_name(response), "content": content}
        elif kind == "image" and isinstance(value, dict):  # as in the OpenAI schema
            url = f"data:{value.get('mimeType')};base64,{value.get('data')}"
            yield {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
        elif kind != "willContinue":
            yield {"role": "user", "content": [{"type": kind, kind: value}]}


def expected_messages(expected: Iterable[Object]) -> Iterator[dict[str, Any]]:
    """The expected behavior of the agent in a turn, as messages of the history."""
    call_ids: dict[str, str] = {}
    for i, expectation in enumerate(expected):
        call, response, answer = map(expectation.get, ("toolCall", "toolResponse", "agentResponse"))
        if isinstance(call, dict):
            expected_call = tool_call(call)
            name = expected_call["tool_name"]
            call_ids[name] = call_id = str(call.get("id") or f"call_{i}")
            entry = chat.function_call(name, expected_call["tool_input"], call_id)
            yield {"role": "assistant", "content": None, "tool_calls": [entry]}
        elif isinstance(response, dict):
            name = tool_name(response)
            result = {"role": "tool", "name": name, "content": encode_text(response.get("response") or {})}
            yield {**result, "tool_call_id": call_ids.get(name, f"call_{i}")}
        elif isinstance(answer, dict) and (text := message_text(answer)) is not None:
            yield without_null_keys({"role": "assistant", "content": text, "name": answer.get("role")})


def turns_of(messages: Iterable[Object], row: Object) -> list[dict[str, Any]]:
    """The turns of a row: those of the messages before the last question, then the row's own. CES has no place for
    instructions: the app has its own, and a user does not say them."""
    turns: list[dict[str, Any]] = [{"steps": []}]
    messages = [message for message in messages if message["role"] not in ("system", "developer")]
    tools = chat.tools_of_calls(messages)
    for message in messages:
        role = message["role"]
        asks = role == "user" or (role == "tool" and "tool_call_id" not in message)
        if asks and any("expectation" in step for step in turns[-1]["steps"]):
            turns.append({"steps": []})
        if role == "tool" and not message.get("name"):
            message = {**message, "name": tools.get(str(message.get("tool_call_id")))}
        turns[-1]["steps"].extend(_inputs_of(message) if asks else _steps_of(message))
    turns[-1]["steps"].extend({"expectation": e} for e in expected_by(row))
    return turns


def expected_by(row: Object) -> Iterator[dict[str, Any]]:
    """The expectations of a row's columns; those in `custom_expected` replace a call or text that agrees with them."""
    others = objects(schema.part_at(row, f"custom_expected.{EXPECTATIONS_KEY}"))
    calls = [(encode_text(dict(call)), call) for call in row.get("reference_trajectory") or ()]
    expectations = []
    for other in others:
        if isinstance(other.get("toolCall"), dict):
            key = encode_text(tool_call(other["toolCall"]))
            of_row = next((call for call in calls if call[0] == key), None)
            if of_row is None:
                continue
            calls.remove(of_row)
        expectations.append(other)
    text = row.get("expected_response")
    if text != expected_text(expectations)[0]:
        expectations = [e for e in expectations if "agentResponse" not in e]
    for _, call in calls:
        yield {"toolCall": {"tool": call["tool_name"], "args": call["tool_input"]}}
    if row.get("reference_trajectory") == []:
        yield {"noToolCalls": True}
    yield from expectations
    if text is not None and not any("agentResponse" in e for e in expectations):
        yield _agent_response(text, (row.get("tags") or {}).get("response_agent"))


def _inputs_of(message: Object) -> list[dict[str, Any]]:
    content = message.get("content")
    if message["role"] == "tool":
        return [{"userInput": {"toolResponses": {"toolResponses": [_tool_response(message)]}}}]
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
    return {"text": part["text"] if isinstance(part.get("text"), str) else encode_text(part)}


_INLINE_IMAGE = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)


def _steps_of(message: Object) -> list[dict[str, Any]]:
    """A message of the agent in the history as expectations."""
    if message["role"] == "tool":
        return [{"expectation": {"toolResponse": _tool_response(message)}}]
    calls = [{"toolCall": {"tool": name, "args": args or {}}} for name, args in chat.read_tool_calls([message])]
    text = chat.join_text(message.get("content"))
    answers = [_agent_response(text, message.get("name"))] if isinstance(text, str) and text else []
    return [{"expectation": e} for e in [*calls, *answers]]


def _agent_response(text: str, agent: Any) -> dict[str, Any]:
    return {"agentResponse": without_null_keys({"role": agent, "chunks": [{"text": text}]})}


def _tool_response(message: Object) -> dict[str, Any]:
    content = message.get("content")
    value = jsontext.parse_leniently(content) if isinstance(content, str) else content
    return {"tool": message.get("name") or "?", "response": value if isinstance(value, dict) else {"output": value}}


# --- scenarios ⇄ the columns of a row
# A simulated user works from the task, which is the request; what the agent should do and say is the ground truth.
def scenario_columns(scenario: Object) -> Row:
    expected = objects(scenario.get("scenarioExpectations"))
    calls = list(map(tool_call, each(each(expected, "toolExpectation"), "expectedToolCall")))
    facts = [text for answer in each(expected, "agentResponse") if (text := message_text(answer) or "").strip()]
    rubrics = [r for r in scenario.get("rubrics") or () if isinstance(r, str) and r.strip()]
    columns = {
        "request": {"messages": chat.user_message(str(scenario.get("task") or ""))},
        "expected_facts": facts or None,
        "guidelines": {"rubrics": rubrics} if rubrics else None,
        "reference_trajectory": calls or None,
    }
    return without_null_keys(columns)


def scenario_by(row: Object, original: Object) -> dict[str, Any]:
    """The original scenario of a row, with the parts replaced in which the columns differ from it."""
    before, scenario = scenario_columns(original), dict(original)

    def differ(*columns: str) -> bool:
        return any(row.get(name) != before.get(name) for name in columns)

    if differ("request"):
        scenario["task"] = "\n".join(str(chat.join_text(m.get("content")) or "") for m in row["request"]["messages"])
    if differ("guidelines"):
        scenario["rubrics"] = [text for texts in (row.get("guidelines") or {}).values() for text in texts]
    if differ("expected_facts", "reference_trajectory"):  # of the original those are kept that agree with the columns
        facts, calls = list(row.get("expected_facts") or ()), list(row.get("reference_trajectory") or ())
        expected = []
        for expectation in objects(original.get("scenarioExpectations")):
            one = scenario_columns({"scenarioExpectations": [expectation]})
            (fact,), (call,) = one.get("expected_facts", [None]), one.get("reference_trajectory", [None])
            if fact in (None, *facts) and call in (None, *calls):
                expected.append(expectation)
                for items, item in ((facts, fact), (calls, call)):
                    if item in items:
                        items.remove(item)
        tools = [{"expectedToolCall": {"tool": c["tool_name"], "args": c["tool_input"]}} for c in calls]
        expected += ({"toolExpectation": tool} for tool in tools)
        expected += ({"agentResponse": {"chunks": [{"text": fact}]}} for fact in facts)
        scenario["scenarioExpectations"] = expected
    return scenario


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
        row = {"request_id": identity(value), **scenario_columns(scenario), "tags": head_tags(value, groups) or None}
        row = _with_part(without_null_keys(row), {"scenario": scenario})
        rest = _not_in_rows(value, evaluation_by([row]))
        return [_with_part(row, rest) if rest else row]
    if isinstance(value.get("goldenResult"), dict):
        return list(_replayed_rows(value))
    return [_scenario_result_row(value)] if isinstance(value.get("scenarioResult"), dict) else []


def by_json_names(value: Object) -> dict[str, Any]:
    """The object with the JSON names of all fields: snake_case is accepted on input, as in ProtoJSON."""
    is_result = not value.keys().isdisjoint({"goldenResult", "golden_result", "scenarioResult", "scenario_result"})
    message = schema.RESULT if is_result else schema.EVALUATION
    fields: dict[str, Any] = schema.with_json_names(value, message)
    return fields


def _golden_rows(evaluation: Object, groups: Sequence[str]) -> list[Row]:
    turns = objects(evaluation["golden"].get("turns"))
    rows: list[Row] = []
    before: chat.Messages = []
    # one span of turns per row: up to a turn that expects something after a message
    ends = [i + 1 for i, turn in enumerate(turns) if expectations_of(turn) and any(map(input_messages, turns[: i + 1]))]
    for start, end in pairwise([0, *ends[:-1], len(turns)] if turns else []):
        span = turns[start:end]
        columns = span_columns(before, span)
        tags = {**head_tags(evaluation, groups), **columns.get("tags", {})}
        request_id = f"{identity(evaluation)}#{start + row_turn(span) + 1}"
        row = without_null_keys({"request_id": request_id, **columns, "tags": tags or None})
        if turns_of(row["request"]["messages"][len(before) :], row) != span:
            row = _with_part(row, {"golden": {"turns": span}})
        rows.append(row)
        before = before + history_of(span)
    rest = _not_in_rows(evaluation, evaluation_by(rows)) if rows else {}
    return [_with_part(rows[0], rest), *rows[1:]] if rest else rows


def _not_in_rows(evaluation: Object, from_rows: Object) -> dict[str, Any]:
    """The fields of an evaluation that its rows do not give back."""
    rest = {k: v for k, v in evaluation.items() if k != "golden" and from_rows.get(k) != v}
    golden = {k: v for k, v in (evaluation.get("golden") or {}).items() if k != "turns"}
    return {**rest, "golden": golden} if golden else rest


def _with_part(row: Row, part: dict[str, Any]) -> Row:
    custom = row.get("custom_expected", {})
    evaluation = custom.get(EVALUATION_KEY, {})
    golden = {**evaluation.get("golden", {}), **part.get("golden", {})}
    whole = {**evaluation, **part, **({"golden": golden} if golden else {})}
    return {**row, "custom_expected": {**custom, EVALUATION_KEY: whole}}


# --- result → rows: the expected and the observed behavior, latency and scores
def _replayed_rows(result: Object) -> Iterator[Row]:
    """A row per turn of a replayed golden evaluation: the expectations of its outcomes, and the observed behavior."""
    for number, turn in enumerate(objects(result["goldenResult"].get("turnReplayResults")), start=1):
        outcomes = objects(turn.get("expectationOutcome"))
        expected = each(outcomes, "expectation")
        overall = turn.get("overallToolInvocationResult")
        named = ("toolInvocationScore", "toolOrderedInvocationScore")
        scores = {name: turn[name] for name in named if name in turn}  # 0 and false are scores
        if isinstance(overall, dict) and "toolInvocationScore" in overall:
            scores.setdefault("toolInvocationScore", overall["toolInvocationScore"])
        scores |= _scores_in(turn, "semanticSimilarity", "hallucination")
        parts = each(outcomes, "toolInvocationResult")
        if right := [p["parameterCorrectnessScore"] for p in parts if "parameterCorrectnessScore" in p]:
            scores["parameterCorrectnessScore"] = right
        if verdicts := [o["outcome"] for o in outcomes if "outcome" in o]:
            scores["outcomes"] = verdicts
        custom = {"scores": scores, EXPECTATIONS_KEY: [e for e in expected if not has_column(e)]}
        calls, error = each(outcomes, "observedToolCall"), turn.get("errorInfo") or result.get("errorInfo")
        # a result does not repeat the request: its name and the turn refer to it
        name = result.get("displayName") or _tested(result)
        columns = {
            "request_id": f"{_tested(result)}#{number}",
            "request": {"messages": chat.user_message(f"{name}, turn {number}")},
            "expected_response": expected_text(expected)[0],
            **_observed(result, outcomes, calls, expected_calls(expected), error),
            "latency_seconds": seconds(turn.get("turnLatency")),
            "session_id": turn.get("conversation"),
            "custom_expected": {k: v for k, v in custom.items() if v} or None,
        }
        yield without_null_keys(columns)


def _scenario_result_row(result: Object) -> Row:
    """A scenario that was played: the expected and the observed behavior of the agent."""
    scenario = result["scenarioResult"]
    outcomes = objects(scenario.get("expectationOutcomes"))
    tools = each(each(outcomes, "expectation"), "toolExpectation")
    reference = list(map(tool_call, each(tools, "expectedToolCall")))
    calls = each(each(outcomes, "observedToolCall"), "toolCall")
    named = ("allExpectationsSatisfied", "taskCompleted", "rubricOutcomes")
    scores = {name: scenario[name] for name in named if name in scenario}
    scores |= _scores_in(scenario, "taskCompletion", "userGoalSatisfaction")
    columns = {
        "request_id": _tested(result),
        "request": {"messages": chat.user_message(str(scenario.get("task") or _tested(result)))},
        **_observed(result, outcomes, calls, reference or None, result.get("errorInfo")),
        "session_id": scenario.get("conversation"),
        "custom_expected": {"scores": scores} if scores else None,
    }
    return without_null_keys(columns)


def _observed(
    result: Object, outcomes: Sequence[Object], calls: Iterable[Object], reference: list[Row] | None, error: Any
) -> Row:
    """The columns of what was observed, and of the result itself."""
    observed = list(map(tool_call, calls))
    words = [error.get(name) for name in ("errorType", "errorMessage")] if isinstance(error, dict) else []
    shown = ": ".join(word for word in words if isinstance(word, str) and word) or "failed"
    names = {"evaluation_status": "evaluationStatus", "evaluation_run": "evaluationRun", "app_version": "appVersion"}
    tags = {tag: result[field] for tag, field in names.items() if isinstance(result.get(field), str)}
    return {
        "response": joined_text(each(outcomes, "observedAgentResponse")),
        "predicted_trajectory": observed if observed or reference else None,
        "reference_trajectory": reference,
        **({"failure": True, "error": shown} if isinstance(error, dict) else {}),
        "tags": tags or None,
    }


def _tested(result: Object) -> str:
    """The id of the evaluation that a result belongs to: projects/…/evaluations/<id>/results/<id>."""
    parts = str(result.get("name") or "").split("/")
    ids = [after for before, after in pairwise(parts) if before == "evaluations"]
    return ids[0] if ids else str(result.get("displayName") or "result")


def _scores_in(part: Object, *names: str) -> dict[str, Any]:
    """The scores of those results that have one."""
    results = {name: part.get(f"{name}Result") for name in names}
    return {name: r["score"] for name, r in results.items() if isinstance(r, dict) and "score" in r}


def seconds(duration: Any) -> float | None:
    """A protobuf duration (`"1.5s"`) in seconds."""
    found = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    return float(found[1]) if found else None


_DURATION = re.compile(r"(-?\d{1,12}(?:\.\d{1,9})?)s", re.ASCII)


# --- Canonical rows → evaluations: the way back of rows.py.
#
#     rows ──by id──▶ of one evaluation ──by chat──▶ chains ──turn after turn──▶ evaluations
#
# Rows `x#1`, `x#2` become one evaluation `x` again, as long as the chat of each row goes on from the one before; any
# other row becomes an evaluation of its own. The columns of a row take precedence: the part of the evaluation that is
# kept with them (`EVALUATION_KEY`) is used as far as it agrees.
class Assembled(Struct, frozen=True):
    """An evaluation made from rows, its groups (only in a CSV), and the turn of each row's place (0 for a scenario)."""

    evaluation: dict[str, Any]
    groups: list[str]
    turns: dict[int, int]


def evaluations_by(rows: Sequence[Object]) -> list[Assembled]:
    """The evaluations of canonical rows, in the order of their first rows; an incomplete one is named as its row."""
    rows = with_ids(rows)
    return [one for places in _together(rows) for one in _assembled(rows, places)]


def evaluation_by(rows: Sequence[Object]) -> dict[str, Any]:
    """The one evaluation of rows that are all of it."""
    return next(_assembled(rows, range(len(rows)))).evaluation


def _together(rows: Sequence[Object]) -> list[list[int]]:
    """The places of rows whose IDs are those of the turns of one evaluation, in the order of the turns."""
    groups: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        base, number = numbered(row)
        alone = number is None or _part(row, "scenario") is not None
        key = place if alone else (base, (row.get("tags") or {}).get("display_name"))
        groups.setdefault(key, []).append(place)
    return [run for places in groups.values() for run in _runs(rows, places)]


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


class _Chain(Struct):
    """Rows whose chats continue each other: their turns so far, the number of each row's turn, and the chat."""

    turns: list[dict[str, Any]] = []
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
            span, expected = turns_of(row["request"]["messages"][start:], row), list(expected_by(row))
        self.numbers[place] = len(self.turns) + row_turn(span) + 1
        self.turns += span
        self.messages = [*self.messages, *row["request"]["messages"][start:], *expected_messages(expected)]


def _assembled(rows: Sequence[Object], places: Sequence[int]) -> Iterator[Assembled]:
    first = rows[places[0]]
    scenario = _part(first, "scenario")
    if scenario is not None:
        evaluation = _with_head({"scenario": scenario_by(first, scenario)}, [first], first["request_id"])
        yield Assembled(evaluation, _items(_tags(first).get("evaluation_groups")), {places[0]: 0})
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
        yield Assembled(evaluation, _items(_tags(members[0]).get("evaluation_groups")), chain.numbers)


def _view(row: Object) -> list[Any]:
    """The turns that follow from the columns of a row."""
    others = schema.part_at(row, f"custom_expected.{EXPECTATIONS_KEY}")
    columns = (row.get(name) for name in ("request", "expected_response", "reference_trajectory"))
    return [*columns, others, _tags(row).get("response_agent")]


_HEAD_TAGS = ("display_name", "description", "tags")
"""The tags that are fields of the evaluation as a whole."""


def _with_head(fields: dict[str, Any], rows: Sequence[Object], name: str, whole: bool = True) -> dict[str, Any]:
    """The evaluation of that name; with the part that was kept with its rows, unless ID and tags differ from it. An
    incomplete one gets a name of its own."""
    tags = {k: v for k, v in _tags(rows[0]).items() if k in _HEAD_TAGS[0 if whole else 1 :]}
    shown = tags.get("display_name")
    head = {"name": name if shown else None, "displayName": shown or name, "description": tags.get("description")}
    evaluation = without_null_keys({**head, "tags": _items(tags.get("tags")) or None}) | fields
    for row in rows:
        rest = {k: v for k, v in (_part(row) or {}).items() if k not in ("golden", "scenario")}
        candidate = {**evaluation, **rest}
        if not whole or (identity(candidate), head_tags(candidate)) != (name, tags):
            rest = {k: v for k, v in rest.items() if k not in ("name", "displayName", "description", "tags")}
        golden = {k: v for k, v in (_part(row, "golden") or {}).items() if k != "turns"}
        evaluation = {**evaluation, **rest, **({"golden": {**evaluation["golden"], **golden}} if golden else {})}
    return evaluation


def _part(row: Object, *field: str) -> dict[str, Any] | None:
    """The part of an evaluation that was kept with a row, or a field of it that is an object."""
    part = schema.part_at(row, ".".join(("custom_expected", EVALUATION_KEY, *field)))
    return part if isinstance(part, dict) else None


def _tags(row: Object) -> dict[str, str]:
    return dict(row.get("tags") or {})
