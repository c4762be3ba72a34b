"""LangSmith: dataset examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.layout import Field, Layout, Row, as_tags, calls_to
from agent_eval_schema.formats.mlflow import EXPECTATIONS, TOOL_CALLS, calls_as_ours
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import structured


# ---------------------------------------------------------------------------------------------------------------------
# LangSmith: examples, whose outputs are the reference
def read_outputs(theirs: Row, made: dict[str, Any]) -> None:
    """The outputs of an example are its ground truth: keys that a metric reads by their names, and the answer."""
    outputs = structured(theirs.get("outputs"))
    given = dict(outputs) if isinstance(outputs, dict) else {"output": outputs} if outputs is not None else {}
    for name, column in EXPECTATIONS.items():
        if given.get(name) is not None:
            value = given.pop(name)
            made[column] = calls_as_ours(value) if name == TOOL_CALLS else value
    answer, known = chat.read_answer(given)
    if known and answer is not None and "expected_response" not in made:
        made["expected_response"] = answer
        given = {k: v for k, v in given.items() if v != answer and not chat.is_chat_object({k: v})}
    rest = {k: v for k, v in given.items() if v is not None}
    if rest:
        made["custom_expected"] = rest


def _asked_of(inputs: Any) -> Any:
    value = structured(inputs)
    if isinstance(value, Mapping) and ("messages" in value or "query" in value):
        return {k: v for k, v in value.items() if k in ("messages", "query", "history")}
    found = chat.read_messages(value)
    if found is not None:
        return {"messages": found}
    return (
        {"messages": chat.user_message(jsontext.encode(value).decode())} if value and isinstance(value, dict) else value
    )


def write_outputs(row: Row, written: dict[str, Any]) -> None:
    outputs = {"answer": row["expected_response"]} if row.get("expected_response") is not None else {}
    for name, column in EXPECTATIONS.items():
        if column not in ("expected_response", "reference_trajectory") and row.get(column) is not None:
            outputs[name] = row[column]
    if row.get("reference_trajectory") is not None:
        outputs[TOOL_CALLS] = calls_to("name", "arguments")(row["reference_trajectory"])
    outputs.update({k: v for k, v in (row.get("custom_expected") or {}).items() if k not in outputs})
    if outputs:
        written["outputs"] = outputs


LANGSMITH = Layout(
    (
        Field(("id",), "request_id"),
        Field(("inputs",), "request", _asked_of),
        Field(("metadata",), "tags", as_tags),
    ),
    read_outputs,
    write_outputs,
    more=("outputs",),
    places={
        "custom_expected": "outputs",
        **{column: f"outputs.{name}" for name, column in reversed(EXPECTATIONS.items())},
        "expected_response": "outputs",  # under whichever key it stands
    },
)

LANGSMITH_OWN = frozenset(("dataset_id", "source_run_id", "created_at", "modified_at", "attachments", "split", "runs"))
"""Columns of an example that nobody needs a word about."""

_LANGSMITH_SIGNS = ("dataset_id", "source_run_id", "example_id", "metadata", "modified_at")


def detect_langsmith(names: Sequence[str]) -> str | None:
    signs = [n for n in _LANGSMITH_SIGNS if n in names]
    if {"inputs", "outputs"} <= set(names) and signs and not {"expectations", "trace"} & set(names):
        return f"the columns inputs, outputs, {signs[0]} of a LangSmith example"
    return None
