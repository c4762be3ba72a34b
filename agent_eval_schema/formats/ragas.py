"""Ragas: single-turn and multi-turn samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.layout import Field, Layout, Row, calls_from, calls_to, question_or_messages
from agent_eval_schema.formats.text_documents import read_texts, write_texts_and_ids
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import structured

# ---------------------------------------------------------------------------------------------------------------------
# Ragas
_LANGCHAIN = {ours: theirs for theirs, ours in chat.LANGCHAIN_ROLES.items() if theirs != "function"}


def _asked(user_input: Any) -> Any:
    """The chat up to the last human message; what follows is what the agent did."""
    messages = structured(user_input)
    if not isinstance(messages, list):
        return messages
    return {"messages": [_from_ragas(m) for m in messages[: after_question(messages)]]}


def after_question(messages: list[Any]) -> int:
    """Where in a conversation the last question has been asked."""
    asked = [i for i, m in enumerate(messages) if isinstance(m, dict) and m.get("type", m.get("role")) in _HUMAN]
    return asked[-1] + 1 if asked else len(messages)


_HUMAN = ("human", "user")


def _from_ragas(message: Any) -> Any:
    if not isinstance(message, dict) or "type" not in message:
        return message
    role = chat.LANGCHAIN_ROLES.get(str(message["type"]), message["type"])
    made = {"role": role, "content": message.get("content")}
    calls = [_openai_call(c, i) for i, c in enumerate(message.get("tool_calls") or [])]
    return {**made, "tool_calls": calls} if calls else made


def _openai_call(call: Any, place: int) -> Any:
    if not isinstance(call, dict):
        return call
    arguments = jsontext.encode(call.get("args") or {}).decode()
    return {"id": f"call_{place}", "type": "function", "function": {"name": call.get("name"), "arguments": arguments}}


def _to_ragas(message: Row) -> dict[str, Any]:
    role = message["role"]
    made = {"type": _LANGCHAIN.get(role, role), "content": chat.join_text(message.get("content")) or ""}
    calls = [{"name": name, "args": given or {}} for name, given in chat.read_tool_calls([message])]
    return {**made, "tool_calls": calls} if calls else made


def after_the_question(theirs: Row, made: dict[str, Any]) -> None:
    """What the agent said and did after the last human message of a conversation."""
    messages = structured(theirs.get("user_input"))
    done = messages[after_question(messages) :] if isinstance(messages, list) else []
    calls = chat.read_tool_calls(done)
    if calls:
        made["predicted_trajectory"] = [{"tool_name": name, "tool_input": given} for name, given in calls]
    if made.get("response") is None and done:
        made["response"] = chat.read_answer(done)[0]


def _as_conversation(row: Row, written: dict[str, Any]) -> None:
    """A row with tool calls is a conversation there, which holds the calls and the answer."""
    calls = row.get("predicted_trajectory")
    if calls is None and len(row["request"]["messages"]) == 1:
        return
    messages = [_to_ragas(m) for m in row["request"]["messages"]]
    if calls:
        made = [{"name": c["tool_name"], "args": c["tool_input"]} for c in calls]
        messages.append({"type": "ai", "content": "", "tool_calls": made})
    if calls and row.get("response") is not None:
        messages.append({"type": "ai", "content": written.pop("response")})
    written["user_input"] = messages


RAGAS = Layout(
    (
        Field(("user_input",), "request", _asked, question_or_messages),
        Field(("response",), "response"),
        Field(("reference",), "expected_response"),
        Field(("retrieved_contexts", "retrieved_context_ids"), "retrieved_context", read_texts, write_texts_and_ids),
        Field(
            ("reference_contexts", "reference_context_ids"),
            "expected_retrieved_context",
            read_texts,
            write_texts_and_ids,
        ),
        Field(("reference_tool_calls",), "reference_trajectory", calls_from("name", "args"), calls_to("name", "args")),
    ),
    after_the_question,
    _as_conversation,
)


def detect_ragas(names: Sequence[str]) -> str | None:
    return "the column user_input of Ragas" if "user_input" in names and "request" not in names else None
