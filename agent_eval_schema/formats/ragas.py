"""Ragas: single-turn and multi-turn samples, and the test sets of its older versions.

    0.2 and newer   user_input  response  retrieved_contexts  reference
    0.0 and 0.1     question    answer    contexts            ground_truth(s)     RAG sets of Hugging Face too

Ragas itself writes lists in CSV files as Python does, and reads no CSV file: such a cell is an error that can be fixed.
Source: ragas 0.4.3 (`dataset_schema`, `utils.convert_v1_to_v2_dataset`).
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.format import Field, Format, Row
from agent_eval_schema.formats.kept import dropped_of, inspect_kinds
from agent_eval_schema.formats.shapes import (
    after_question,
    all_of,
    calls_in,
    inspecting,
    lone_arguments,
    python_lists,
    question_or_messages,
    read_calls,
    read_texts,
    write_calls,
    write_texts_and_ids,
)
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.pages import RAGAS_DATASET
from agent_eval_schema.rules.requests import MESSAGE_REJECTED
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import listed, structured

USER_INPUT = "user_input"
"""The column of the question; of a conversation, which is kept, the list of its messages."""

_LANGCHAIN = {role: type_ for type_, role in chat.LANGCHAIN_ROLES.items() if type_ != "function"}


def _read_input(user_input: Any) -> Any:
    """The chat up to the last human message; the messages after it are the agent's."""
    messages = structured(user_input)
    if not isinstance(messages, list):
        return user_input
    # the messages as OpenAI's. The class has no ID of a call: the results answer the calls in their order
    result: list[Any] = []
    calls, answered = count(), count()
    for message in messages[: after_question(messages)]:
        if not isinstance(message, dict) or message.get("type") is None:
            result.append(message)
            continue
        role = chat.LANGCHAIN_ROLES.get(str(message["type"]), message["type"])
        result.append({"role": role, "content": message.get("content")})
        if role == "tool":
            result[-1]["tool_call_id"] = f"call_{next(answered)}"
        elif isinstance(own := message.get("tool_calls"), list) and own:
            result[-1]["tool_calls"] = [
                chat.function_call(c.get("name"), c.get("args") or {}, f"call_{i}") if isinstance(c, dict) else c
                for c, i in zip(own, calls, strict=False)
            ]
        elif own:  # for the rule on messages to explain
            result[-1]["tool_calls"] = own
    return {"messages": result}


REFERENCE_CALLS = "reference_tool_calls"
"""The expected calls of a whole conversation, as Ragas compares them with those of all its messages. A row has those of
its last turn: the calls of the turns before are part of its request, and are not what an agent is asked for."""

_read_calls, _write_calls = read_calls("name", "args"), write_calls("name", "args")


def _after(before: list[Any], expected: list[Any]) -> list[Any]:
    """The expected calls without those of earlier turns, if they begin with them."""
    return expected[len(before) :] if expected[: len(before)] == before else expected


_ROLES = ("user", "assistant", "tool")
"""Ragas has no messages of the system, and rejects a conversation that has one."""


def _to_ragas(message: Row) -> dict[str, Any]:
    role = message["role"]
    result = {"type": _LANGCHAIN.get(role, role), "content": chat.join_text(message.get("content")) or ""}
    calls = [{"name": name, "args": arguments or {}} for name, arguments in chat.read_tool_calls([message])]
    return {**result, "tool_calls": calls} if calls else result


def _why_rejected(message: Row, before: Row) -> str:
    """Why `MultiTurnSample` rejects a message after another one; empty if it does not."""
    kind, content = message.get("type", "human"), message.get("content")
    if kind not in _TYPES:
        return f"expected one of {', '.join(_TYPES)}, got {describe(kind)}"
    if not isinstance(content, str):
        return f"expected a text as `content`, got {describe(content)}"
    follows_call = before.get("type") == "tool" or (before.get("type") == "ai" and before.get("tool_calls"))
    if kind == "tool" and not follows_call:
        return "expected a message with `tool_calls` before the result of a tool"
    return ""


_TYPES = tuple(_LANGCHAIN[role] for role in _ROLES)


def _rejected_messages(source: Row) -> Iterator[Finding]:
    before: Row = {}
    for i, message in enumerate(all_of(source.get(USER_INPUT))):
        if isinstance(message, dict) and "role" not in message:
            if why := _why_rejected(message, before):
                yield Finding(MESSAGE_REJECTED, why, USER_INPUT, f"{USER_INPUT}[{i}]")
            before = message


def _loadable(messages: Iterable[Row]) -> list[Row]:
    """The messages without those that the class rejects: of pictures alone, results of calls that are not there."""
    result: list[Row] = []
    for message in messages:
        if not _why_rejected(message, result[-1] if result else {}):
            result.append(message)
    return result


def after_the_question(source: Row, row: dict[str, Any]) -> None:
    """The messages and calls of the agent after the last human message of a conversation."""
    messages = structured(source.get(USER_INPUT))
    done: list[Any] = []
    if isinstance(messages, list):
        done = messages[after_question(messages) or len(messages) :]
        row[USER_INPUT] = messages  # results of tools, and what else is in a conversation
        truth, before = row.get("reference_trajectory"), calls_in(messages[: len(messages) - len(done)])
        if isinstance(truth, list) and before:
            row["reference_trajectory"] = _after(before, truth)
    if calls := calls_in(done):
        row["predicted_trajectory"] = calls
    if row.get("response") is None and done:
        row["response"] = chat.read_answer(done)[0]
    truths = listed(source.get("ground_truths"))
    if isinstance(truths, list) and truths and row.get("expected_response") is None:
        row["expected_response"] = truths[0]
        if len(truths) > 1:  # each of them is accepted: they stay together, too
            row["custom_expected"] = {"ground_truths": truths}


LISTS = (
    *("user_input", "retrieved_contexts", "contexts", "retrieved_context_ids", "ground_truths"),
    *("reference_contexts", "reference_context_ids", "reference_tool_calls"),
)
"""The columns that hold lists; of these a question may be a list of messages."""

_lone_arguments = lone_arguments("args", "reference_tool_calls")


def _write_rest(row: Row, written: dict[str, Any]) -> None:
    before, expected = calls_in((row.get("request") or {}).get("messages", ())), row.get("reference_trajectory")
    if before and expected is not None:
        written[REFERENCE_CALLS] = _write_calls([*before, *expected])
    # a row with tool calls is a conversation there, which holds the calls and the answer
    question, calls = (row.get("request") or {}).get("messages", []), row.get("predicted_trajectory")
    own = _own_conversation(row)
    if own is None and calls is None and len(question) < 2:
        return
    messages = _loadable(_to_ragas(m) for m in question if m["role"] in _ROLES)
    if calls:
        result = [{"name": c["tool_name"], "args": c["tool_input"]} for c in calls]
        messages.append({"type": "ai", "content": "", "tool_calls": result})
    if row.get("response") is not None:
        messages.append({"type": "ai", "content": written["response"]})
    written["user_input"] = messages if own is None else own
    for name in _OF_ONE_TURN:
        written.pop(name, None)


def _own_conversation(row: Row) -> Any:
    """The original conversation of a row, if it still agrees with the row."""
    own = row.get("user_input")
    if not isinstance(own, list):
        return None
    result: dict[str, Any] = {"request": _read_input(own)}
    after_the_question({"user_input": own}, result)
    names = ("request", "response", "predicted_trajectory")
    return own if all(result.get(name) == row.get(name) for name in names) else None


_SINGLE, _SPOKEN = "single question", "conversation"
_OF_ONE_TURN = dropped_of("ragas", _SPOKEN)
"""The fields that `MultiTurnSample` does not have."""


def _kind_of(source: Row) -> str:
    value = source.get(USER_INPUT)  # a list that Python wrote is text
    is_text = isinstance(value, str) and not value.lstrip().startswith("[")
    return _SINGLE if value is None or is_text else _SPOKEN


_OWN = (
    *("multi_responses", "rubrics", "reference_topics", "persona_name", "query_style", "query_length"),
    *("synthesizer_name", "evolution_type", "episode_done"),
)
"""Columns of a sample or of a generated test set that are not reported."""

_NEEDS = ("expected_response", "retrieved_context", "expected_retrieved_context")

RAGAS = Format(
    name="ragas",
    title="Ragas",
    summary="samples of Ragas: user_input, response, reference, retrieved_contexts",
    page=RAGAS_DATASET,
    truth_of=(
        "A conversation is one row: `reference` belongs to its last answer. `reference_tool_calls` are those of all "
        "turns, as Ragas compares them; `reference_trajectory` has those after the calls of the earlier turns."
    ),
    signs=Signs(
        sure=(("user_input",), *each_with("question", "contexts", "ground_truth", "ground_truths")),
        likely=(
            *(("response", "retrieved_contexts"), ("answer", "contexts")),
            *(("retrieved_contexts", "reference_contexts"), ("retrieved_context_ids", "reference_context_ids")),
        ),
        never=frozenset({"request", "inputs", "item"}),
    ),
    fields=(
        Field("user_input", "request", _read_input, question_or_messages, others=("question",)),
        Field("response", "response", others=("answer",)),
        Field("reference", "expected_response", others=("ground_truth",)),
        Field(
            *("retrieved_contexts", "retrieved_context", read_texts, write_texts_and_ids),
            others=("contexts",),
            second="retrieved_context_ids",
        ),
        Field(
            *("reference_contexts", "expected_retrieved_context", read_texts, write_texts_and_ids),
            second="reference_context_ids",
        ),
        Field(REFERENCE_CALLS, "reference_trajectory", _read_calls, _write_calls),
    ),
    passthrough_columns=_OWN,
    read_rest=after_the_question,
    write_rest=_write_rest,
    read_only_columns=("ground_truths",),
    originals=("retrieved_context_ids", "reference_context_ids", REFERENCE_CALLS),  # an ID may be a number
    calls_of="conversation",
    inspect_row=inspecting(python_lists(*LISTS), _lone_arguments, inspect_kinds("ragas", _kind_of), _rejected_messages),
    inspected=(*_OF_ONE_TURN, *dropped_of("ragas", _SINGLE)),
    instead_of_request=_NEEDS,
    instead_of_response=("request", *_NEEDS),
    outputs=("response", "trace", "retrieved_context"),
    one_kind=("single_turn", _SINGLE, _SPOKEN),
)
