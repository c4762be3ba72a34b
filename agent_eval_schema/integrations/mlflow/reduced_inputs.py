"""The parts of a request that a form of inputs omits: the conversation before a question, other arguments of the
agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt_names, first_names


class ReducedInputsWarning(UserWarning):
    """The inputs of a prepared DataFrame omit a part of some requests.

    The message names the rows and the option that preserves the whole request.

    See Also
    --------
    prepare_for_evaluate : The function that emits the warning.

    Examples
    --------
    >>> import warnings
    >>> from agent_eval_schema import ReducedInputsWarning, prepare_for_evaluate
    >>> chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ReducedInputsWarning)
    ...     frame = prepare_for_evaluate([{"request": {"messages": chat}, "response": "Hello!"}], inputs="question")
    >>> frame["inputs"][0]
    {'question': 'Hi'}
    """


def reduction(
    requests: Sequence[tuple[dict[str, Any], Any, int]],
    total: int,
    *,
    form: str,
    one_question: bool,
    keeps_arguments: bool,
    instead: tuple[str, str],
) -> str:
    """The parts of rows that the form (`inputs="question"`, `evaluator="vertex"`) omits; "" if none.

    `requests` has each request, the inputs that the source has, and the position of the row; `total` counts the rows;
    `instead` are the options that keep a conversation and other arguments."""
    found = []
    chats = [row for request, _, row in requests if one_question and not _is_one_question(request["messages"])]
    if chats:
        found.append(f"{form} keeps only the last message of {_rows(chats, total)}: {instead[0]} keeps all of them")
    others = {} if keeps_arguments else {r: keys for request, own, r in requests if (keys := _arguments(own, request))}
    if others:
        names = excerpt_names(dict.fromkeys(key for keys in others.values() for key in keys))
        where = _rows(list(others), total)
        found.append(f"{form} omits other arguments ({names}) of {where}: {instead[1]} keeps them")
    return "; ".join(found)


def _is_one_question(messages: list[dict[str, Any]]) -> bool:
    """Whether the last message is all that there is, and its text all of that."""
    content = messages[0].get("content")
    parts = content if isinstance(content, list) else []
    return len(messages) == 1 and messages[0]["role"] == "user" and all(p.get("type") == "text" for p in parts)


def _arguments(own: Any, request: dict[str, Any]) -> list[str]:
    """The keys of the inputs that are not part of the request."""
    if not isinstance(own, dict) or chat.lone_question(request["messages"]) == jsontext.encode(own).decode():
        return []
    return [key for key in own if key not in _OF_REQUESTS] if len(own) > 1 else []


_OF_REQUESTS = frozenset(["messages", "query", "history", *chat.LONE_TEXT_KEYS])


def _rows(rows: list[int], total: int, most: int = 10) -> str:
    return f"{len(rows):,} of {total:,} rows (at the positions {first_names(rows, most)})"
