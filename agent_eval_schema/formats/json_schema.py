"""JSON Schemas, made from the types in schema.py: for editors, and for other programs that write evaluation sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agent_eval_schema.decoding.chat import LONE_TEXT_KEYS
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.schema import (
    COLUMNS,
    DIALECT,
    REF,
    Contexts,
    Count,
    EvalRow,
    Facts,
    Guidelines,
    JsonObject,
    Message,
    NamedGuidelines,
    NonBlank,
    RetrievedContext,
    Tags,
    Trajectory,
    columns_of,
)


def json_schema(format: str) -> dict[str, Any]:
    """The JSON Schema of one row.

    `format` is `"canonical"` (what `normalize_eval_set` gives), `"databricks"` (what may be given), `"mlflow"` (what
    `mlflow.genai.evaluate` takes, and `prepare_for_evaluate` gives) or `"ces-evaluation"` (an Evaluation of Google
    CES). An editor that knows JSON Schema then completes keys and marks mistakes. Raises EvalSetError for another name.
    """
    if format not in SCHEMAS:
        raise EvalSetError(f"no JSON Schema for {format!r}: use one of {', '.join(SCHEMAS)}")
    return SCHEMAS[format]()


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
    by_type = (
        *((kind, contexts) for kind in (Contexts, RetrievedContext)),
        *((kind, {"type": "object"}) for kind in (JsonObject, Tags)),
        *[(str, text), (Facts, facts), (NamedGuidelines, guidelines), (Trajectory, trajectory)],
        *[(Count, {"type": "integer"}), (float, {"type": "number"}), (bool, {"type": "boolean"})],
    )
    columns: dict[str, Any] = {name: schema for kind, schema in by_type for name in columns_of(kind)} | {
        "request_id": {**text, "description": "unique id of the request"},
        "request": _request(messages),
        "response": {"anyOf": [text, {"type": "object"}], "description": "the app's answer: text or a chat object"},
        "expected_response": {**text, "description": "the facts that a correct answer must hold"},
        "trace": {"anyOf": [text, {"type": "object"}], "description": "an MLflow trace, as JSON text or an object"},
    }
    return {
        "$schema": DIALECT,
        "title": "A row of a Databricks Agent Evaluation set",
        "type": "object",
        "properties": _optional({name: columns[name] for name in COLUMNS}),
        "anyOf": [_filled("request"), _filled("trace")],
        "not": _both("expected_response", "expected_facts"),
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


class ExpectedCall(msgspec.Struct, forbid_unknown_fields=True):
    """One call that the app should make, as mlflow's ToolCallCorrectness reads it."""

    name: NonBlank
    arguments: dict[str, Any] | None = None


def _mlflow() -> dict[str, Any]:
    """Stricter than the checker where mlflow is: inputs are an object, tags are text. Our own columns may stand beside
    these; they are as in the databricks form."""
    types = [list[Message], Facts, Guidelines, Contexts, list[ExpectedCall], Trajectory]
    parts, definitions = msgspec.json.schema_components(types, ref_template=REF)
    messages, facts, guidelines, contexts, calls, trajectory = parts
    text = {"type": "string"}
    columns: dict[str, Any] = {
        "inputs": _inputs(messages),
        "outputs": {"description": "the app's answer: text, a chat object, or what the app returns"},
        "expectations": {
            "description": "the ground truth: what mlflow's and our scorers read, and keys of your own",
            "type": "object",
            "properties": _optional(
                {
                    "expected_response": {
                        **text,
                        "description": "the minimal set of facts that a correct answer holds",
                    },
                    "expected_facts": {**facts, "description": "the same as a list; one of the two, not both"},
                    "guidelines": {**guidelines, "description": "what the answer must obey"},
                    "expected_retrieved_context": {**contexts, "description": "the documents that should be found"},
                    "expected_tool_calls": {**calls, "description": "the calls that the app should make, in order"},
                    "reference_trajectory": {**trajectory, "description": "the same, in the words of our columns"},
                }
            ),
            "not": _both("expected_response", "expected_facts"),
        },
        "trace": {"anyOf": [text, {"type": "object"}], "description": "an MLflow trace, as JSON text or an object"},
        "tags": {"type": "object", "additionalProperties": text, "description": "names and values, both text"},
        "session": {**text, "description": "the id of the conversation that the row is part of"},
        "request_id": {**text, "description": "unique id of the request"},
    }
    return {
        "$schema": DIALECT,
        "title": "A row of a data set for mlflow.genai.evaluate",
        "type": "object",
        "properties": _optional(columns),
        "anyOf": [_filled("inputs"), _filled("trace")],
        "$defs": definitions,
    }


def _inputs(messages: dict[str, Any]) -> dict[str, Any]:
    """The arguments of predict_fn: a chat in one of the known forms, or any others (a pattern asks only of texts)."""
    query = _nullable({"type": "string", "pattern": r"\S"})
    return {
        "description": "what predict_fn is called with: a chat in messages, a question, or any arguments by name",
        "type": "object",
        "minProperties": 1,
        "properties": {
            "messages": {**_nullable({**messages, "minItems": 1}), "description": "a whole chat, the newest last"},
            "query": {**query, "description": "the newest message of a user"},
            **{key: {"pattern": r"\S", "description": "what is asked"} for key in LONE_TEXT_KEYS},
        },
        "dependentSchemas": {"query": {"properties": {"history": _nullable(messages)}}},
        "not": _both("messages", "query"),
    }


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "canonical": _canonical,
    "databricks": _databricks,
    "mlflow": _mlflow,
    "ces-evaluation": _ces_evaluation,
}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _optional(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: _nullable(schema) for name, schema in properties.items()}


def _both(*names: str) -> dict[str, Any]:
    return {"allOf": [_filled(name) for name in names]}


def _filled(name: str) -> dict[str, Any]:
    """There is a value; an empty list of facts is none."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}, "minItems": 1}}}
