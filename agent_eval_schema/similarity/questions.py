"""When two rows ask the same: they have the same question, or the same request.

    the same question   The words are the same (characters.py) in all messages but those of the system, and so are the
                        other parts of the messages, such as images, and the other inputs, without parameters and IDs.
                        A profile counts it (distinct, duplicates, leaks, `--write-distinct`), and a build excludes it
                        (`dedupe="question"`, also from the dataset that it extends).
    the same request    Every value is the same, in all messages and all inputs; the order of keys does not count.
                        AE902 reports it where the ground truth differs, which a profile counts as conflicts, and a diff
                        pairs the rows that have it (validation/originals.py, diff/snapshot.py).

There is no third notion; near duplicates (near.py) are similar questions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from agent_eval_schema.decoding.chat import is_parameter
from agent_eval_schema.text import jsontext


class Message(Struct, gc=False):
    """A message of a canonical request, as far as it is compared."""

    role: str = ""
    content: Any = None


class _Chat(Struct, gc=False):
    messages: list[Message] = []


_chat = msgspec.json.Decoder(_Chat).decode


_OF_SYSTEM = ("system", "developer")


def messages_of(request: str | bytes | None) -> list[Message]:
    """The messages of a canonical request."""
    return [] if request is None else _chat(request).messages


def question_text(messages: Iterable[Message]) -> str:
    """What a row asks: its messages without those of the system."""
    texts = [content_text(m.content) for m in messages if m.role not in _OF_SYSTEM]
    return "\n".join(t for t in texts if t)


def content_text(content: Any) -> str:
    """The text of a message, of which the content may have parts."""
    if isinstance(content, list):
        return " ".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


def beside_questions(
    chats: Iterable[list[Message]], questions: Iterable[str], inputs: Iterable[str | bytes | None]
) -> list[str | None]:
    """What belongs to each question beside its words, as JSON text: other parts of the messages, and other inputs. The
    same words about another document are another question."""
    return [_beside(*row) for row in zip(chats, questions, inputs, strict=True)]


def _beside(messages: list[Message], question: str, inputs: str | bytes | None) -> str | None:
    rest: dict[str, Any] = {}
    value = jsontext.parse(inputs) if inputs is not None else None
    if isinstance(value, dict) and not (question.startswith("{") and jsontext.parse(question) == value):
        rest = {
            k: v
            for k, v in value.items()
            if v is not None and v != question and k not in _NOT_ASKED and not is_parameter(k, v)
        }
    lists = [m.content for m in messages if isinstance(m.content, list) and m.role not in _OF_SYSTEM]
    if parts := [part for content in lists for part in content if not (isinstance(part, dict) and part.get("text"))]:
        rest["messages"] = parts
    return jsontext.encode_sorted(rest).decode() if rest else None


_NOT_ASKED = frozenset(
    [
        *("messages", "query", "history", "input", "tools"),
        *("id", "request_id", "trace_id", "session", "session_id", "conversation_id", "thread_id", "user_id"),
    ]
)
"""Keys of inputs that the messages contain, and those that say who asked and when: who asks the same again asks the
same, whatever they are."""
