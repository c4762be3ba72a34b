"""What a row asks: the text of its request, and what its inputs contain besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agent_eval_schema.decoding.chat import is_parameter
from agent_eval_schema.similarity.shingles import Shingled, shingled
from agent_eval_schema.text import jsontext


class Message(Struct, gc=False):
    """A message of a canonical request, as far as it is compared."""

    role: str = ""
    content: Any = None


class _Chat(Struct, gc=False):
    messages: list[Message] = []


_chat = msgspec.json.Decoder(_Chat).decode


def messages_of(request: str | bytes | None) -> list[Message]:
    """The messages of a canonical request."""
    return [] if request is None else _chat(request).messages


def question_text(messages: Iterable[Message]) -> str:
    """What a row asks: its messages without those of the system."""
    texts = [content_text(m.content) for m in messages if m.role not in ("system", "developer")]
    return "\n".join(t for t in texts if t)


def content_text(content: Any) -> str:
    """The text of a message, of which the content may have parts."""
    if isinstance(content, list):
        return " ".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


def compared(questions: Sequence[str], inputs: Sequence[str | bytes | None]) -> Shingled:
    """What is compared of questions that were asked with these inputs."""
    return shingled(questions, [_beside(q, i) for q, i in zip(questions, inputs, strict=True)])


def _beside(question: str, inputs: str | bytes | None) -> str | None:
    """What inputs contain beside the question, as JSON text: who asks the same of another document asks another
    question."""
    value = jsontext.parse(inputs) if inputs is not None else None
    if not isinstance(value, dict) or (question.startswith("{") and jsontext.parse(question) == value):
        return None
    rest = {
        k: v
        for k, v in value.items()
        if v is not None and v != question and k not in _NOT_ASKED and not is_parameter(k, v)
    }
    return jsontext.encode_sorted(rest).decode() if rest else None


_NOT_ASKED = frozenset(
    [
        *("messages", "query", "history", "input", "tools"),
        *("id", "request_id", "trace_id", "session", "session_id", "conversation_id", "thread_id", "user_id"),
    ]
)
"""Keys of inputs that the messages contain, and those that say who asked and when: who asks the same again asks the
same, whatever they are."""
