"""The request column: text, {messages}, {query, history}, decided per cell → messages.

    "What is RAG?"                       one user message
    {"messages": [...]}                  the whole chat
    {"query": "...", "history": [...]}   the history, then the query as a user message
    {"input": "..." or [...]}            a request of the Responses API, its items as messages

The first three formats are those of Databricks Agent Evaluation (docs.databricks.com); messages follow the OpenAI chat
completion schema.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agent_eval_schema.cells.arrow import text_views
from agent_eval_schema.cells.cells import Cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.diagnose import diagnose, is_type
from agent_eval_schema.decoding.values import FAILED, TextColumn, Values
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import reading, requests
from agent_eval_schema.schema import RequestObject, Role
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe, excerpt_names, key_name
from agent_eval_schema.text.jsontext import explain_malformed, python_value
from agent_eval_schema.text.spelling import match_names

KEYS = ("messages", "query", "history")

_RULES: dict[tuple[str, str], Rule] = {
    ("role", "choice"): requests.MESSAGE_ROLE,
    ("role", "type"): requests.MESSAGE_ROLE,
    ("role", "null"): requests.MESSAGE_ROLE,
    ("content", "type"): requests.MESSAGE_CONTENT,
}


def decode_requests(
    cells: Cells, can_hold_objects: bool, log: IssueLog, plain: Sequence[bool] = ()
) -> Values | TextColumn:
    """The requests of a batch: a str is one user message, a list is the messages; None absent, FAILED unreadable.
    `plain` has the text cells that `is_plain_chat` accepts."""
    if cells.json:
        values: Values = [
            None
            if text is None
            else (not cells.deep and _plain_chat(text)) or _value(jsontext.parse(text), row, can_hold_objects, log)
            for row, text in enumerate(cells.texts)
        ]
    elif texts := TextColumn.of(cells):
        return texts
    else:
        values = _in_texts(cells, can_hold_objects, log, plain)
    if cells.nul:
        for row, text in enumerate(cells.texts):
            if text is not None and ("\0" in text or (cells.json and jsontext.escapes_nul(text))):
                log.add(reading.CONTROL_CHARACTER, row, "request", "expected text without NUL, got one")
    return values


def _in_texts(cells: Cells, can_hold_objects: bool, log: IssueLog, plain: Sequence[bool]) -> Values:
    """The requests in cells that contain text. The texts themselves are only made if some cell is not a plain chat."""
    suspects, chats = cells.suspects(), dict[int, Messages]()
    if cells.array is not None and suspects and not can_hold_objects and not cells.deep:
        views = text_views(cells.array)
        for row in suspects:
            messages = Chat(views[row]) if plain and plain[row] else _plain_chat(views[row])
            if messages is not None:
                chats[row] = messages
        if len(chats) == len(views) - cells.array.null_count:
            return [chats.get(row) for row in range(len(views))]
    values: Values = list(cells.texts)
    for row in suspects:
        values[row] = chats[row] if row in chats else _request_of_text(values[row], row, can_hold_objects, log)
    return values


class Chat(Sequence[dict[str, Any]]):
    """The messages of a plain chat whose cell, `text`, is its normalized text already; read when they are needed."""

    __slots__ = ("_messages", "text")

    def __init__(self, text: Any) -> None:
        self.text = text
        self._messages: list[dict[str, Any]] | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        if self._messages is None:
            self._messages = [{"role": m.role, "content": m.content} for m in _plain(self.text).messages]
        return self._messages

    @property
    def question(self) -> str:
        """The text of its last message, which is the user's; the others are not read."""
        return _message(_raw(self.text).messages[-1]).content

    @property
    def has_history(self) -> bool:
        """Whether it has several messages, none of which is read: in its text only a key is followed by a colon."""
        return bytes(self.text).count(b'"role":') > 1

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, at: Any) -> Any:
        return self.messages[at]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list) and jsontext.encode({"messages": other}) == bytes(self.text):
            return True  # most often, and without reading it
        return self.messages == (other.messages if isinstance(other, Chat) else other)

    __hash__ = None  # type: ignore[assignment]  # as of a list


Messages = list[dict[str, Any]] | Chat


class PlainMessage(Struct, forbid_unknown_fields=True, gc=False):
    """A message that has a role and a text and nothing else."""

    role: Role
    content: str


class _PlainChat(Struct, forbid_unknown_fields=True, gc=False):
    """By far the most common request: one typed decode shows that it has no issue."""

    messages: list[PlainMessage]


class _RawChat(Struct, gc=False):
    messages: list[msgspec.Raw]


_plain = msgspec.json.Decoder(_PlainChat).decode
_guarded_plain = jsontext.decoder(_PlainChat)
_raw = msgspec.json.Decoder(_RawChat).decode
_message = msgspec.json.Decoder(PlainMessage).decode


def has_nothing_odd(messages: list[PlainMessage]) -> bool:
    if not messages or messages[-1].role != "user" or not messages[-1].content.strip():
        return False
    if len(messages) == 1:
        return True
    roles = [m.role for m in messages]
    return messages[-2] != messages[-1] and "tool" not in roles and next(odd_turns(roles), None) is None


def is_plain_chat(cell: Any) -> bool:
    """Whether the JSON text of a request is a chat without any issue."""
    try:
        return has_nothing_odd(_guarded_plain(cell).messages)
    except ValueError:
        return False


def _plain_chat(cell: Any) -> list[dict[str, Any]] | None:
    """The messages of a plain chat; None for a cell that must be examined."""
    try:
        if not has_nothing_odd(_plain(cell).messages):
            return None
    except ValueError:
        return None
    messages: list[dict[str, Any]] = jsontext.decode_shallow(cell)["messages"]  # keys in the order of the cell
    return messages


def canonical_request(value: Any) -> bytes:
    """The JSON text of the normalized request: compact, keys in the order in which they came."""
    if value.__class__ is Chat:
        return bytes(value.text)
    if value.__class__ is str:
        return b'{"messages":[{"role":"user","content":' + jsontext.encode(value) + b"}]}"
    return jsontext.encode({"messages": value})


def request_key(value: Any) -> str:
    """A text that is the same for the same request in every format: a lone user message is its text."""
    question = value if value.__class__ is str else chat.lone_question(value)
    return jsontext.encode(list(value)).decode() if question is None else str(question)


def last_user_text(value: Any) -> str | None:
    """The last question of the user in a request, if there is one."""
    if value is None or value is FAILED:
        return None
    if value.__class__ is str:
        return str(value)
    if value.__class__ is Chat:
        return str(value.question)
    for message in reversed(value):
        if message.get("role") == "user":
            content = message.get("content")
            text = content if content.__class__ is str else chat.join_text(content)
            return text if isinstance(text, str) else None
    return None


def last_question(cell: Any) -> str | None:
    """The last question of the user in a request or the inputs of an agent, which may be JSON text."""
    messages = chat.read_messages(jsontext.structured(cell))
    return last_user_text(messages) if messages else None


def _request_of_text(text: str, row: int, can_hold_objects: bool, log: IssueLog) -> Any:
    """A text cell: the message of a user, unless it is a request object written as JSON."""
    stripped = text.strip()
    if not stripped:
        log.add(requests.BLANK_REQUEST, row, "request", f"expected a question, got {describe(text)}")
        return FAILED
    if stripped[0] not in "{[":
        return text
    value = jsontext.parse(stripped)
    if isinstance(value, jsontext.Malformed):
        begins_like_a_request = stripped[1:].lstrip().startswith(tuple(f'"{k}"' for k in KEYS))
        if begins_like_a_request or is_request(python_value(stripped)):
            log.add_finding(row, explain_malformed(value, stripped), "request")
            return FAILED
        return text
    if is_request(value):
        if can_hold_objects and isinstance(value, dict):
            message = f"expected text or an object, got {describe(value)} as text"
            log.add(requests.JSON_TEXT_REQUEST, row, "request", message)
        return _value(value, row, can_hold_objects, log)
    if isinstance(value, dict):
        log.add(requests.LOOKS_LIKE_JSON, row, "request", f"used as the user message: JSON of {describe(value)}")
    return text


def is_request(value: Any) -> bool:
    """Whether an object or a list is meant as a request, and is nothing that a user typed: it has a key of a request,
    a chat under a misspelled one, or a question and nothing else."""
    if isinstance(value, dict):
        chats = (value[key] if isinstance(value[key], list) else [value[key]] for key in match_names(value, KEYS))
        is_question = (
            len(value) == 1 and isinstance(next(iter(value.values())), str) and not _WRAPPERS.isdisjoint(value)
        )
        is_of_responses_api = isinstance(value.get("input"), list) and bool(chat.read_messages(value))
        return any(key in value for key in KEYS) or any(map(_is_chat, chats)) or is_question or is_of_responses_api
    return _is_chat(value)


def _value(value: Any, row: int, can_hold_objects: bool, log: IssueLog) -> Any:
    if isinstance(value, str):
        return _request_of_text(value, row, can_hold_objects, log)
    if isinstance(value, jsontext.Malformed):
        log.add(value.rule, row, "request", value.message)
        return FAILED
    if isinstance(value, dict):
        return _object(value, row, log)
    hint = 'Put the messages into an object: `{"messages": [...]}`.' if isinstance(value, list) else ""
    log.add(requests.REQUEST_TYPE, row, "request", f"expected text or an object, got {describe(value)}", hint=hint)
    return FAILED


_WRAPPERS = frozenset({"question", "prompt", "input", "user_input"})
"""Keys under which others put a question, and nothing beside it."""


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(m, dict) and "role" in m for m in value)


def _object(value: dict[str, Any], row: int, log: IssueLog) -> Any:
    """An object: exactly one of messages and query, in which every message is one."""
    unknown = [k for k, v in value.items() if k not in KEYS and v is not None]
    request = {k: v for k, v in value.items() if k in KEYS and v is not None}
    is_of_responses_api = not request and isinstance(value.get("input"), str | list)
    items = chat.read_messages({"input": value["input"]}) if is_of_responses_api else None
    if items is not None:
        log.add(requests.RESPONSES_REQUEST, row, "request", f"got {describe(value)}; its messages are read")
        unknown, request = [k for k in unknown if k != "input"], {"messages": items}
    if "messages" not in request and "query" not in request:
        meant = match_request_keys(value)
        hint = " ".join(f"Did you mean `{right}`? Rename `{key_name(wrong)}`." for wrong, right in meant.items())
        path = f"request.{key_name(next(iter(meant)))}" if meant else "request"
        message = f"expected `messages` or `query`, got {describe(value)}"
        log.add(requests.REQUEST_KEY, row, "request", message, path=path, hint=hint)
        return FAILED
    parameters = [k for k in unknown if chat.is_parameter(k, value[k])]
    if parameters:
        message = f"the request contains parameters of the chat API: {excerpt_names(parameters)}"
        log.add(requests.REQUEST_PARAMETERS, row, "request", message)
    if len(unknown) > len(parameters):
        others = [k for k in unknown if k not in parameters]
        message = f"no metric reads these keys of the request; they are preserved in inputs: {excerpt_names(others)}"
        chats = (k for k in others if value[k] == [] or _is_chat(value[k]))
        means_history = "query" in request and "history" not in value and match_names(chats, ["history"], 0.85)
        hint = "Did you mean `history`?" if means_history else ""
        log.add(requests.REQUEST_EXTRA_KEY, row, "request", message, hint=hint)
    if "messages" in request and "query" in request:
        message = "expected `messages` or `query`, got both"
        log.add(requests.AMBIGUOUS_REQUEST, row, "request", message)
        return FAILED
    messages = _messages(request, row, log)
    if messages is not FAILED:
        _check_chat(messages, row, log, len(request.get("history") or ()) if "query" in request else None)
    return messages


def match_request_keys(value: dict[str, Any], cutoff: float = 0.75) -> dict[str, str]:
    """The keys that are probably other names of `messages` or `query`, each with the one that its value fits."""
    meant = match_names((k for k in value if k not in KEYS), ("messages", "query"), cutoff)
    return {k: meant_of_value(right, value[k]) or right for k, right in meant.items()}


def meant_of_value(name: str | None, value: Any) -> str | None:
    """Which of `messages` and `query` a key of either name means: a chat is not a query, text is not messages."""
    if name not in ("messages", "query"):
        return name
    return "messages" if _is_chat(value) else "query" if isinstance(value, str) else name


def _messages(request: dict[str, Any], row: int, log: IssueLog) -> Any:
    if not is_type(RequestObject, request):
        for problem in diagnose(RequestObject, request, "request"):
            rule = _RULES.get((problem.field, problem.kind)) or requests.MESSAGE_SHAPE
            if problem.field in KEYS:
                rule = requests.REQUEST_TYPE
            elif rule is requests.MESSAGE_SHAPE and ".content" in problem.path:
                rule = requests.MESSAGE_CONTENT
            log.add(rule, row, "request", problem.message, path=problem.path, hint=problem.hint)
        return FAILED
    if "messages" in request:
        messages = [chat.without_nulls(m) for m in request["messages"]]
        if not messages:
            message = "expected messages, got an empty list"
            log.add(requests.BLANK_REQUEST, row, "request", message, path="request.messages")
            return FAILED
        return messages if _check_contents(messages, "messages", row, log) else FAILED
    if not request["query"].strip():
        message = f"expected a question, got {describe(request['query'])}"
        log.add(requests.BLANK_REQUEST, row, "request", message, path="request.query")
        return FAILED
    history = [chat.without_nulls(m) for m in request.get("history") or []]
    return history + chat.user_message(request["query"]) if _check_contents(history, "history", row, log) else FAILED


def _check_contents(messages: list[dict[str, Any]], key: str, row: int, log: IssueLog) -> bool:
    """The conditions that types cannot express: messages have content, and a tool message names its call."""
    good = True
    for i, message in enumerate(messages):
        if chat.lacks_content(message):
            path = f"request.{key}[{i}].content"
            got = "null" if "content" in message else "nothing"
            log.add(requests.MESSAGE_CONTENT, row, "request", f"expected text or a list of parts, got {got}", path=path)
            good = False
        if message["role"] == "tool" and "tool_call_id" not in message:
            path = f"request.{key}[{i}]"
            log.add(requests.TOOL_MESSAGE_ID, row, "request", "expected `tool_call_id`, got none", path=path)
    return good


def check_messages(messages: list[dict[str, Any]], row: int, log: IssueLog) -> None:
    """Log the issues of a request that was taken from a trace, as those of a column."""
    question = chat.lone_question(messages)
    if question is None or not question.strip():  # else it is by far the most common request, without an issue
        _check_contents(messages, "messages", row, log)
        _check_chat(messages, row, log)


# ---------------------------------------------------------------------------------------------------------------------
# the turns of a chat: the roles, their order, and the last one
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


def _check_chat(messages: Sequence[dict[str, Any]], row: int, log: IssueLog, query: int | None = None) -> None:
    """Log the issues of the chat as a whole: its last role, a missing or duplicated user message, turns out of order.
    `query` is the place of the message that came as the query, behind its history."""
    last = len(messages) - 1
    questions = [m.get("content") for m in messages if m["role"] == "user"]
    if questions and not any(q.strip() if isinstance(q, str) else q for q in questions):
        log.add(requests.BLANK_REQUEST, row, "request", "expected a question, got only blank user messages")
    elif messages[last]["role"] == "assistant":
        path = f"request.messages[{last}].role"
        message = "expected the user's message last, got assistant"
        log.add(requests.ENDS_WITH_ASSISTANT, row, "request", message, path=path)
    elif not questions:
        log.add(requests.NO_USER_MESSAGE, row, "request", "expected a message with the role user, got none")
    if last > 0 and messages[last]["role"] == "user" and messages[last - 1] == messages[last]:
        log.add(requests.REPEATED_USER_MESSAGE, row, "request", "the last user message is duplicated")
    for i in odd_turns(f"{m['role']} {m['name']}" if m.get("name") else m["role"] for m in messages):
        path = "request.query" if i == query else f"request.{'messages' if query is None else 'history'}[{i}]"
        if messages[i]["role"] == "assistant":
            message = "expected the first turn from the user, got the assistant's"
            log.add(requests.STARTS_WITH_ASSISTANT, row, "request", message, path=path)
        elif i < last or messages[i] != messages[i - 1]:  # else it is reported as repeated
            message = "expected the assistant's turn, got a second user message in a row"
            log.add(requests.CONSECUTIVE_USER_MESSAGES, row, "request", message, path=path)
