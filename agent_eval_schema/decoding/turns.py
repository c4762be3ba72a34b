"""The turns of a chat: the roles, their order, and the last one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.rules import requests


def odd_turns(roles: Iterable[str]) -> Iterator[int]:
    """The turns of a chat that are out of order: an assistant's before all others, and a user's behind another one
    of the same user once the assistant has spoken (a user may begin with several)."""
    before, answered = "", False
    for i, role in enumerate(roles):
        if role in ("system", "developer"):
            continue
        if role == "assistant":
            if not before:
                yield i
            answered = True
        elif role == before and answered and role.startswith("user"):
            yield i
        before = role


def look_at_chat(messages: Sequence[dict[str, Any]], row: int, log: IssueLog, query: int | None = None) -> None:
    """Log the issues of the chat as a whole: its last role, a missing or duplicated user message, turns out of order.
    `query` is the place of the message that came as the query, behind its history."""
    last = len(messages) - 1
    asked = [m for m in messages if m["role"] == "user"]
    if asked and not any(_has_content(m) for m in asked):
        log.add(requests.BLANK_REQUEST, row, "request", "expected a question, got only blank user messages")
    elif messages[last]["role"] == "assistant":
        path = f"request.messages[{last}].role"
        log.add(
            requests.ENDS_WITH_ASSISTANT, row, "request", "expected the user's message last, got assistant", path=path
        )
    elif not asked:
        log.add(requests.NO_USER_MESSAGE, row, "request", "expected a message with the role user, got none")
    if last > 0 and messages[last]["role"] == "user" and messages[last - 1] == messages[last]:
        log.add(requests.REPEATED_USER_MESSAGE, row, "request", "the last user message is duplicated")
    _look_at_order(messages, row, log, query)


def _look_at_order(messages: Sequence[dict[str, Any]], row: int, log: IssueLog, query: int | None) -> None:
    last = len(messages) - 1
    for i in odd_turns(f"{m['role']} {m['name']}" if m.get("name") else m["role"] for m in messages):
        path = "request.query" if i == query else f"request.{'messages' if query is None else 'history'}[{i}]"
        if messages[i]["role"] == "assistant":
            message = "expected the first turn from the user, got the assistant's"
            log.add(requests.STARTS_WITH_ASSISTANT, row, "request", message, path=path)
        elif i < last or messages[i] != messages[i - 1]:  # else it is reported as repeated
            message = "expected the assistant's turn, got a second user message in a row"
            log.add(requests.CONSECUTIVE_USER_MESSAGES, row, "request", message, path=path)


def _has_content(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return bool(content.strip()) if isinstance(content, str) else bool(content)
