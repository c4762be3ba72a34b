"""OpenAI Evals: items with their samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_eval_schema.formats.layout import Layout, Row, question_or_messages
from agent_eval_schema.text.jsontext import structured

# ---------------------------------------------------------------------------------------------------------------------
# OpenAI evals: {"item": {...}, "sample": {...}} of the API, {"input": [...], "ideal": ...} of the library
_QUESTIONS = ("input", "messages", "question", "prompt", "query")
_IDEALS = ("ideal", "expected_output", "ground_truth", "reference", "correct_label", "answer")
_OWN = (
    *("request_id", "request", "response", "expected_response", "expected_facts", "guidelines", "session_id"),
    *("expected_retrieved_context", "retrieved_context", "predicted_trajectory", "reference_trajectory", "tags"),
    *("input_token_count", "output_token_count", "total_token_count", "latency_seconds", "failure", "error", "trace"),
)


def _read_item(theirs: Row, made: dict[str, Any]) -> None:
    """An item may have any keys: ours by their names, the usual ones for question and answer, the rest is ground truth
    that a grader of the user's reads."""
    given = structured(theirs.get("item"))
    item = dict(given) if isinstance(given, dict) else {}
    item.update({k: structured(theirs[k]) for k in ("input", "ideal") if theirs.get(k) is not None})
    made.update({name: item.pop(name) for name in _OWN if name in item})
    _take(item, _QUESTIONS, made, "request", lambda v: {"messages": v} if isinstance(v, list) else v)
    ideal = next((item[k] for k in _IDEALS if item.get(k) is not None), None)
    if isinstance(ideal, list) and len(ideal) > 1:  # any of several answers will do: they stay together, too
        made.setdefault("expected_response", ideal[0])
    else:
        _take(item, _IDEALS, made, "expected_response", lambda v: v[0] if isinstance(v, list) and v else v)
    custom = item.pop("custom_expected", None)
    rest = {**(custom if isinstance(custom, dict) else {}), **{k: v for k, v in item.items() if v is not None}}
    if rest:
        made["custom_expected"] = rest
    sample = structured(theirs.get("sample"))
    if isinstance(sample, dict) and sample.get("output_text") is not None:
        made.setdefault("response", sample["output_text"])


def _take(item: dict[str, Any], names: Sequence[str], made: dict[str, Any], ours: str, read: Any) -> None:
    found = next((n for n in names if item.get(n) is not None), None)
    if found is not None and made.get(ours) is None:
        made[ours] = read(item.pop(found))


def _write_item(row: Row, written: dict[str, Any]) -> None:
    custom = dict(row.get("custom_expected") or {})
    item = {"input": question_or_messages(row["request"])}
    if row.get("expected_response") is not None:
        ideals = custom.get("ideal")
        several = isinstance(ideals, list) and len(ideals) > 1 and ideals[0] == row["expected_response"]
        item["ideal"] = custom.pop("ideal") if several else row["expected_response"]
    taken = ("request", "response", "expected_response")
    item.update({n: row[n] for n in _OWN if n not in taken and row.get(n) is not None})
    clash = custom.keys() & {*item, *_OWN, *_QUESTIONS, *_IDEALS}
    written["item"] = {**item, **({"custom_expected": custom} if clash else custom)}
    if row.get("response") is not None:
        written["sample"] = {"output_text": row["response"]}


OPENAI = Layout(read_rest=_read_item, write_rest=_write_item, more=("item", "input", "ideal", "sample"))


def detect_openai(names: Sequence[str]) -> str | None:
    if "item" in names and "request" not in names:
        return "the column item of OpenAI evals"
    return "the columns input, ideal of OpenAI evals" if {"input", "ideal"} <= set(names) else None
