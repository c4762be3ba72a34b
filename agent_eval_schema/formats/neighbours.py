"""The layouts of the neighbours whose rows are flat: Vertex AI, Ragas, DeepEval, OpenAI evals, LangSmith.

Field names are those of each project's public documentation (trajectories.md lists them). Formats that nest a whole
conversation in a row are read by documents.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_eval_schema import chat, jsontext
from agent_eval_schema.formats.layout import (
    Field,
    Layout,
    Row,
    calls_from,
    calls_to,
    question,
    question_or_messages,
    structured,
)
from agent_eval_schema.formats.mlflow import EXPECTATIONS, TOOL_CALLS, calls_as_ours
from agent_eval_schema.formats.text_documents import read_texts, write_texts, write_texts_and_ids

# ---------------------------------------------------------------------------------------------------------------------
# Vertex AI: data sets of trajectory evaluation


def _flag(value: Any) -> Any:
    """The vendor's result tables write failure as 0 or 1."""
    return _FLAGS.get(str(value), value)


_FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True}


VERTEX = Layout(
    (
        Field(("prompt",), "request", structured, question),
        Field(("response",), "response"),
        Field(("reference",), "expected_response"),
        Field(("predicted_trajectory",), "predicted_trajectory"),
        Field(("reference_trajectory",), "reference_trajectory"),
        Field(("latency_in_seconds",), "latency_seconds"),
        Field(("failure",), "failure", _flag, int),
    )
)


def detect_vertex(names: Sequence[str]) -> str | None:
    signs = [n for n in ("prompt", "latency_in_seconds") if n in names]
    return f"the column {signs[0]} of Vertex AI evaluation" if signs and "request" not in names else None


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


def _after_the_question(theirs: Row, made: dict[str, Any]) -> None:
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
    _after_the_question,
    _as_conversation,
)


def detect_ragas(names: Sequence[str]) -> str | None:
    return "the column user_input of Ragas" if "user_input" in names and "request" not in names else None


# ---------------------------------------------------------------------------------------------------------------------
# DeepEval

_CALLS = (calls_from("name", "input_parameters"), calls_to("name", "input_parameters"))


def _as_tags(metadata: Any) -> Any:
    """Metadata may hold any JSON there; a tag is text."""
    given = structured(metadata)
    if not isinstance(given, dict):
        return given
    return {k: v if isinstance(v, str) else jsontext.encode(v).decode() for k, v in given.items() if v is not None}


DEEPEVAL = Layout(
    (
        Field(("name",), "request_id"),
        Field(("input",), "request", write=question),
        Field(("actual_output",), "response"),
        Field(("expected_output",), "expected_response"),
        Field(("context",), "expected_retrieved_context", read_texts, write_texts),
        Field(("retrieval_context",), "retrieved_context", read_texts, write_texts),
        Field(("tools_called",), "predicted_trajectory", *_CALLS),
        Field(("expected_tools",), "reference_trajectory", *_CALLS),
        Field(("completion_time",), "latency_seconds"),
        Field(("additional_metadata",), "tags", _as_tags),
    )
)


def detect_deepeval(names: Sequence[str]) -> str | None:
    signs = [n for n in ("actual_output", "expected_output", "expected_tools") if n in names]
    return f"the columns input, {', '.join(signs)} of DeepEval" if signs and "input" in names else None


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


# ---------------------------------------------------------------------------------------------------------------------
# LangSmith: examples, whose outputs are the reference


def _read_outputs(theirs: Row, made: dict[str, Any]) -> None:
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


def _write_outputs(row: Row, written: dict[str, Any]) -> None:
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
        Field(("metadata",), "tags", _as_tags),
    ),
    _read_outputs,
    _write_outputs,
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
