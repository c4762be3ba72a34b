"""What a prepared frame omits: invalid rows, and parts of requests."""

from collections.abc import Collection
from typing import NamedTuple

from agent_eval_schema.decoding import chat
from agent_eval_schema.integrations.mlflow.frames import Columns, Evaluator, Inputs, cells_of, messages_of
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt_names, first_names
from agent_eval_schema.validation.plan import OnInvalid


class Omitted(NamedTuple):
    """Rows of which the inputs omit a part: how many, and the positions of the first; and the keys that are omitted."""

    number: int
    positions: list[int]
    keys: Collection[str] = ()


def omitted(columns: Columns, rows: list[int]) -> tuple[list[int], dict[int, list[str]]]:
    """The rows with more than one text of the user, and those with other arguments, with their keys."""
    chats, others = [], dict[int, list[str]]()
    for request, own, row in zip(cells_of(columns, "request"), cells_of(columns, "inputs"), rows, strict=True):
        if not (messages := messages_of(request)):
            continue
        content = messages[0].get("content")
        parts = content if isinstance(content, list) else []
        one_text = len(messages) == 1 and messages[0]["role"] == "user" and all(p.get("type") == "text" for p in parts)
        if not one_text:
            chats.append(row)
        keys = [key for key in own if key not in _OF_REQUESTS] if isinstance(own, dict) and len(own) > 1 else []
        if keys and chat.lone_question(messages) != jsontext.encode(own).decode():
            others[row] = keys
    return chats, others


def omits(evaluator: Evaluator, inputs: Inputs) -> tuple[bool, bool]:
    """Whether these inputs omit messages of a chat, and other arguments."""
    is_genai = evaluator == "mlflow.genai"
    every = evaluator not in ("mlflow.genai", "databricks-agent")
    return every or (is_genai and inputs == "question"), every or (is_genai and inputs != "auto")


def reduced(chats: Omitted, others: Omitted, total: int, evaluator: Evaluator, inputs: Inputs) -> str:
    """The parts of requests that the inputs omit, and the options that keep them; "" if nothing is omitted."""
    is_genai = evaluator == "mlflow.genai"
    form = f'inputs="{inputs}"' if is_genai else f'evaluator="{evaluator}"'

    def where(rows: Omitted) -> str:
        return f"{rows.number:,} of {total:,} rows (at the positions {first_names(rows.positions, 10)})"

    found = []
    if chats.number and omits(evaluator, inputs)[0]:
        instead = 'inputs="messages"' if is_genai else 'evaluator="mlflow.genai"'
        found.append(f"{form} keeps only the last message of {where(chats)}: {instead} keeps all of them")
    if others.number and omits(evaluator, inputs)[1]:
        instead = 'inputs="auto"' if is_genai else 'evaluator="mlflow.genai"'
        names = excerpt_names(others.keys)
        found.append(f"{form} omits other arguments ({names}) of {where(others)}: {instead} keeps them")
    return "; ".join(found)


_OF_REQUESTS = frozenset(["messages", "query", "history", *chat.LONE_TEXT_KEYS])


def excluded(invalid: int, total: int, on_invalid: OnInvalid, where: str) -> str:
    """The text of a warning of invalid rows."""
    what = "kept as far as they could be read" if on_invalid == "keep" else "excluded"
    return f"{invalid:,} of {total:,} rows are invalid and {what}{where}"
