"""JSON Schemas, made from the types in model.py: for editors, and for other programs that write evaluation sets."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.model import COLUMNS, Contexts, EvalRow, Facts, Guidelines, Message, Trajectory

DIALECT = "https://json-schema.org/draft/2020-12/schema"
REF = "#/$defs/{name}"


def json_schema(format: str) -> dict[str, Any]:
    """The JSON Schema of one row.

    `format` is `"canonical"` (what `normalize_eval_set` gives), `"databricks"` (what may be given) or
    `"ces-evaluation"` (an Evaluation of Google CES). An editor that
    knows JSON Schema then completes keys and marks mistakes. Raises EvalSetError for another name.
    """
    makers = {"canonical": _canonical, "databricks": _databricks, "ces-evaluation": _ces_evaluation}
    if format not in makers:
        raise EvalSetError(f"no JSON Schema for {format!r}: use one of {', '.join(makers)}")
    return makers[format]()


def _ces_evaluation() -> dict[str, Any]:
    from agent_eval_schema.formats.ces.json_schema import evaluation_schema

    return evaluation_schema()


def _canonical() -> dict[str, Any]:
    (schema,), definitions = msgspec.json.schema_components([EvalRow], ref_template=REF)
    title = "A canonical row of an evaluation set"
    return {"$schema": DIALECT, "title": title, **schema, "$defs": definitions}


def _databricks() -> dict[str, Any]:
    types = [list[Message], Facts, Guidelines, Contexts, Trajectory]
    parts, definitions = msgspec.json.schema_components(types, ref_template=REF)
    messages, facts, guidelines, contexts, trajectory = parts
    text = {"type": "string"}
    columns: dict[str, Any] = {
        "request_id": {**text, "description": "unique id of the request"},
        "request": _request(messages),
        "response": {"anyOf": [text, {"type": "object"}], "description": "the app's answer: text or a chat object"},
        "expected_response": {**text, "description": "the minimal set of facts that a correct answer holds"},
        "expected_facts": facts,
        "guidelines": guidelines,
        "expected_retrieved_context": contexts,
        "retrieved_context": contexts,
        "trace": {"anyOf": [text, {"type": "object"}], "description": "an MLflow trace, as JSON text or an object"},
        "predicted_trajectory": trajectory,
        "reference_trajectory": trajectory,
        "input_token_count": {"type": "integer"},
        "output_token_count": {"type": "integer"},
        "total_token_count": {"type": "integer"},
        "latency_seconds": {"type": "number"},
        "failure": {"type": "boolean"},
        "error": text,
        "session_id": text,
        "custom_expected": {"type": "object"},
        "tags": {"type": "object"},
    }
    return {
        "$schema": DIALECT,
        "title": "A row of a Databricks Agent Evaluation set",
        "type": "object",
        "properties": {name: {"anyOf": [columns[name], {"type": "null"}]} for name in COLUMNS},
        "anyOf": [_filled("request"), _filled("trace")],
        "not": {"allOf": [_filled("expected_response"), _filled("expected_facts")]},
        "$defs": definitions,
    }


def _request(messages: dict[str, Any]) -> dict[str, Any]:
    query = {"type": "string", "pattern": r"\S"}
    history = {"anyOf": [messages, {"type": "null"}]}
    return {
        "description": "text, a whole chat in messages, or the newest query with its history",
        "anyOf": [
            {"type": "string", "pattern": r"\S"},
            {
                "type": "object",
                "properties": {"messages": {**messages, "minItems": 1}},
                "required": ["messages"],
                "not": {"required": ["query"]},
            },
            {
                "type": "object",
                "properties": {"query": query, "history": history},
                "required": ["query"],
                "not": {"required": ["messages"]},
            },
        ],
    }


def _filled(name: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
