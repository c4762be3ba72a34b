"""OpenAI evals: {"item": {...}, "sample": {...}} of the API, {"input": [...], "ideal": ...} of the library.

An item has the keys of its author's schema: the usual names for question and truth are read first, then the keys whose
names speak of one; they are reported (AE225). All else in an item is ground truth that a grader reads.

    {"item": {"ticket_text": "It is broken", "correct_label": "Hardware", "tier": 2}}
        request        expected_response          custom_expected: {"tier": 2}
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.columns import SHAPES, typed_value
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.format import Format, Nested, Row, Unfolded
from agent_eval_schema.formats.shapes import as_text, calls_in, question_or_messages
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.pages import OPENAI_EVALS
from agent_eval_schema.rules.requests import GUESSED_KEY
from agent_eval_schema.text.describe import key_name
from agent_eval_schema.text.jsontext import as_object, structured

_QUESTIONS = ("input", "messages", "question", "prompt", "query")
_IDEALS = ("ideal", "expected_output", "ground_truth", "reference", "correct_label", "answer")
_OWN = (
    *("request_id", "request", "response", "expected_response", "expected_facts", "guidelines", "session_id"),
    *("expected_retrieved_context", "retrieved_context", "predicted_trajectory", "reference_trajectory", "tags"),
    *("input_token_count", "output_token_count", "total_token_count", "latency_seconds", "failure", "error", "trace"),
)
"""Keys of an item that are our columns, if they hold what these do: so we write what has no place else."""

_ASKS = re.compile(
    "(?i)question|prompt|query|input|request|message|text|instruction|content|ticket|task|conversation|dialog|utterance"
    "|note|body|comment|review|email|description"
)
_EXPECTS = re.compile(r"(?i)ideal|expect|truth|reference|correct|label|answer|target|gold|completion|solution")


_BY_MEANING = frozenset((*_QUESTIONS, *_IDEALS, "custom_expected"))
"""Keys of an item that are not ground truth of its author."""


def _item_of(source: Row) -> dict[str, Any]:
    item = as_object(structured(source.get("item")))
    return item | {k: structured(source[k]) for k in ("input", "ideal") if source.get(k) is not None}


def _keys(item: Row) -> tuple[str | None, str | None]:
    """The keys of an item that hold the question and the truth."""
    keys = [k for k, v in item.items() if v is not None and k not in _OWN]
    truth = _first(_IDEALS, keys) or next((k for k in keys if _EXPECTS.search(k) and not _ASKS.search(k)), None)
    others = [k for k in keys if k != truth and not _EXPECTS.search(k)]
    texts = [k for k in others if isinstance(item[k], str) or _is_chat(item[k])]
    question = _first(_QUESTIONS, keys) or next((k for k in texts if _ASKS.search(k)), None) or next(iter(texts), None)
    return (None if _holds(item, "request") else question), (None if _holds(item, "expected_response") else truth)


def _first(names: Sequence[str], keys: Sequence[str]) -> str | None:
    return next((name for name in names if name in keys), None)


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and bool(chat.read_messages(value))


def _holds(item: Row, name: str) -> bool:
    """Whether the item has a column of ours, and not its author's own key of that name."""
    value = item.get(name)
    if name in SHAPES:
        return value is not None and typed_value(name, value, name)[0] is not FAILED
    return isinstance(value, str) or (name == "request" and isinstance(value, list | dict))


def _read_item(source: Row, row: dict[str, Any]) -> None:
    item = _item_of(source)
    query, truth = _keys(item)
    row.update({name: item.pop(name) for name in _OWN if _holds(item, name)})
    ideal = None if truth is None else item[truth]
    if isinstance(ideal, list) and len(ideal) > 1:  # each of several answers is accepted: they stay together, too
        row["expected_response"] = as_text(ideal[0])
    elif truth is not None:
        del item[truth]
        row["expected_response"] = as_text(ideal[0] if isinstance(ideal, list) and ideal else ideal)
    if query is not None:
        question = item.pop(query)
        row["request"] = {"messages": question} if isinstance(question, list) else as_text(question)
    elif item and "request" not in row:
        row["request"] = {"messages": chat.user_message(str(as_text(item)))}
    custom = as_object(item.pop("custom_expected", None))
    rest = {**custom, **{k: v for k, v in item.items() if v is not None}}
    if rest:
        row["custom_expected"] = rest
    sample = structured(source.get("sample"))
    if isinstance(sample, dict) and sample.get("output_text") is not None:
        row.setdefault("response", sample["output_text"])


def _inspect_guesses(source: Row) -> Iterator[Finding]:
    """Which keys of an item are taken for the question and the truth, if their names are not the usual ones."""
    item = _item_of(source)
    question, truth = _keys(item)
    if question is None and item and not _holds(item, "request"):
        yield Finding(GUESSED_KEY, "no key holds a question; the item's JSON text is the request", "item", "item")
    for key, known, column in ((question, _QUESTIONS, "request"), (truth, _IDEALS, "expected_response")):
        if key is not None and key not in known:
            shown = key_name(key)
            yield Finding(GUESSED_KEY, f"`{shown}` is taken for {column}", "item", f"item.{shown}")


def _write_item(row: Row, written: dict[str, Any]) -> None:
    if row.get("response") is not None:
        written["sample"] = {"output_text": row["response"]}
    custom = dict(row.get("custom_expected") or {})
    item = {} if row.get("request") is None else {"input": question_or_messages(row["request"])}
    if row.get("expected_response") is not None:
        ideals = custom.get("ideal")
        several = isinstance(ideals, list) and len(ideals) > 1 and ideals[0] == row["expected_response"]
        item["ideal"] = custom.pop("ideal") if several else row["expected_response"]
    taken = ("request", "response", "expected_response")
    item.update({n: row[n] for n in _OWN if n not in taken and row.get(n) is not None})
    clash = {k: v for k, v in custom.items() if k in (*item, *_BY_MEANING) or (k in _OWN and _holds(custom, k))}
    free = {k: v for k, v in custom.items() if k not in clash}
    written["item"] = {**item, **free, **({"custom_expected": clash} if clash else {})}


_OF_A_CHAT = frozenset({"messages", "ideal", "tools", "functions", "parallel_tool_calls", "metadata", "id"})
"""The columns of chats for the library of OpenAI evals, or for fine-tuning."""


def row_of_chat(row: Row) -> Iterator[Unfolded]:
    """The messages as the input, and the ideal answer, or the text and the calls of a last message of the assistant."""
    result = {k: v for k, v in row.items() if k != "messages"}
    messages = structured(row.get("messages"))
    last = messages[-1] if isinstance(messages, list) and messages else None
    if "ideal" not in result and isinstance(last, dict) and last.get("role") == "assistant":
        text, known = chat.read_answer([last])
        messages, result["ideal"] = messages[:-1], text if known else last
        if calls := calls_in([last]):
            result |= {"ideal": text or None, "item": {"reference_trajectory": calls}}
    yield {**result, "input": messages, "ideal": result.get("ideal")}, ()


OPENAI = Format(
    name="openai",
    title="OpenAI evals",
    summary="OpenAI evals: item and sample, or input and ideal",
    page=OPENAI_EVALS,
    signs=Signs(sure=(("item",), ("input", "ideal")), never=frozenset({"request", "inputs", "prompt", "user_input"})),
    read_rest=_read_item,
    write_rest=_write_item,
    originals=("item",),
    extra_columns=("item", "input", "ideal", "sample"),
    places={
        **dict.fromkeys(("request", "expected_response", "custom_expected"), "item"),
        "response": "sample.output_text",
    },
    inspect_row=_inspect_guesses,
    nested=(
        Nested(
            lambda names, _: "messages" in names and set(names) <= _OF_A_CHAT,
            *(row_of_chat, ("messages",), ("input", "ideal")),
        ),
    ),
)
