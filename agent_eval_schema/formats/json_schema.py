"""JSON Schemas, made from the types in schema.py: for editors, and for other programs that write evaluation
datasets."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec

from agent_eval_schema.decoding.chat import LANGCHAIN_ROLES, LONE_TEXT_KEYS
from agent_eval_schema.schema import (
    COLUMN_DESCRIPTIONS,
    COLUMNS,
    DIALECT,
    OTHER_KEYS,
    REF,
    Contexts,
    Count,
    EvalRow,
    Facts,
    Guidelines,
    JsonObject,
    JsonValue,
    Message,
    NamedGuidelines,
    NonBlank,
    RetrievedContext,
    Tags,
    Trajectory,
    columns_of,
)
from agent_eval_schema.text.choices import require_choice


def json_schema(format: str) -> dict[str, Any]:
    """Return the JSON Schema of one row.

    Editors with support for JSON Schema complete keys and mark mistakes with it.

    Parameters
    ----------
    format : {"canonical", "databricks", "mlflow", "ces-evaluation"}
        `"canonical"`: the output of `normalize_eval_set`. `"databricks"`: the input of Databricks Agent Evaluation.
        `"mlflow"`: the input of `mlflow.genai.evaluate`. `"ces-evaluation"`: an Evaluation of Google Customer
        Engagement Suite.

    Returns
    -------
    dict
        A JSON Schema, draft 2020-12.

    Raises
    ------
    EvalSetError
        There is no JSON Schema for the format.

    See Also
    --------
    validate_eval_set : Validate data, with more rules than a JSON Schema can express.

    Examples
    --------
    >>> from agent_eval_schema import json_schema
    >>> list(json_schema("mlflow")["properties"])
    ['inputs', 'outputs', 'expectations', 'trace', 'tags', 'session', 'request_id']
    """
    require_choice("format", format, SCHEMAS)
    return {"$schema": DIALECT, **deepcopy(SCHEMAS[format]())}  # some parts are in all of them


def _ces_evaluation() -> dict[str, Any]:
    from agent_eval_schema.formats.ces.schema import evaluation_schema

    return evaluation_schema()


def _canonical() -> dict[str, Any]:
    (schema,), definitions = _components([EvalRow])
    for name in ("Document", "ToolCall"):  # which keep the keys that a source has in addition
        definitions[name]["additionalProperties"] = True
    for name, column in definitions["EvalRow"]["properties"].items():
        column["description"] = COLUMN_DESCRIPTIONS[name]
    title = "A canonical row of an evaluation dataset"
    return {"title": title, **schema, "$defs": definitions}


def _components(types: list[Any]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """The schemas of types, and the definitions in them, without the field that is only in Arrow."""
    parts, definitions = msgspec.json.schema_components(types, ref_template=REF)
    for definition in definitions.values():
        definition.get("properties", {}).pop(OTHER_KEYS, None)
    return parts, definitions


_TEXT = {"type": "string"}
_TEXT_OR_OBJECT = {"anyOf": [_TEXT, {"type": "object"}]}
_TRACE = {**_TEXT_OR_OBJECT, "description": "an MLflow trace, as JSON text or an object"}
_REQUEST_ID = {**_TEXT, "description": "unique id of the request"}


def _databricks() -> dict[str, Any]:
    parts, definitions = _components([list[Message], Facts, Guidelines, Contexts, Trajectory])
    messages, facts, guidelines, contexts, trajectory = parts
    by_type = (
        *((kind, contexts) for kind in (Contexts, RetrievedContext)),
        *((kind, {"type": "object"}) for kind in (JsonObject, Tags)),
        *[(str, _TEXT), (Facts, facts), (NamedGuidelines, guidelines), (Trajectory, trajectory)],
        *[(Count, {"type": "integer"}), (float, {"type": "number"}), (bool, {"type": "boolean"}), (JsonValue, {})],
    )
    query = {"type": "string", "pattern": r"\S"}
    input_ = {"type": ["string", "array"], "description": "a Responses API request"}
    has_messages, has_query = {"required": ["messages"]}, {"required": ["query"]}
    columns: dict[str, Any] = {name: schema for kind, schema in by_type for name in columns_of(kind)} | {
        "request_id": _REQUEST_ID,
        "request": {
            "description": "text, a whole chat in messages, or the newest query with its history",
            "anyOf": [
                query,
                _object({"messages": {**messages, "minItems": 1}}, has_query),
                _object({"query": query, "history": _nullable(messages)}, has_messages),
                _object({"input": input_}, {"anyOf": [has_messages, has_query]}),
            ],
        },
        "response": {**_TEXT_OR_OBJECT, "description": "the agent's response: a string or a chat object"},
        "expected_response": {**_TEXT, "description": "the facts that a correct answer must hold"},
        "trace": _TRACE,
    }
    row = _row("A row of a Databricks Agent Evaluation dataset", {name: columns[name] for name in COLUMNS}, "request")
    return {**row, "not": _both("expected_response", "expected_facts"), "$defs": definitions}


def _row(title: str, columns: dict[str, dict[str, Any]], asks: str) -> dict[str, Any]:
    """A row with these columns, which has a request or a trace."""
    needs = [_filled(asks), _filled("trace")]
    return {"title": title, "type": "object", "properties": _optional(columns), "anyOf": needs}


def _object(properties: dict[str, dict[str, Any]], excluded: dict[str, Any]) -> dict[str, Any]:
    """An object that has the first of these keys, and is none of another kind."""
    return {"type": "object", "properties": properties, "required": [*properties][:1], "not": excluded}


class ExpectedCall(msgspec.Struct, forbid_unknown_fields=True):
    """One call that the agent should make. The scorers of MLflow and of Ragas read `arguments`, those of google-adk
    `args`, those of DeepEval `input_parameters`."""

    name: NonBlank
    arguments: dict[str, Any] | None = None
    args: dict[str, Any] | None = None
    input_parameters: dict[str, Any] | None = None


def _mlflow() -> dict[str, Any]:
    """Stricter than validation where MLflow is: inputs are an object, tags are text. The canonical columns are allowed
    too; they are as in the Databricks format."""
    parts, definitions = _components([list[Message], Facts, Guidelines, Contexts, list[ExpectedCall], Trajectory])
    messages, facts, guidelines, contexts, calls, trajectory = parts
    expected: dict[str, Any] = {
        "expected_response": {
            "description": "the minimal set of facts of a correct answer, or the value to be returned"
        },
        "expected_facts": {**facts, "description": "the same as a list; one of the two, not both"},
        "guidelines": {
            "anyOf": [_TEXT, *guidelines["anyOf"]],
            "description": "guidelines that the response must follow",
        },
        "expected_retrieved_context": {**contexts, "description": "the documents that should be found"},
        "expected_tool_calls": {**calls, "description": "the tool calls that the agent is expected to make, in order"},
        "reference_trajectory": {**trajectory, "description": "the same, in the words of our columns"},
    }
    columns: dict[str, Any] = {
        "inputs": _inputs(messages),
        "outputs": {"description": "the agent's response: a string, a chat object, or any other value that it returns"},
        "expectations": {
            "description": "the ground truth: what mlflow's and our scorers read, and keys of your own",
            "type": "object",
            "properties": _optional(expected),
            "not": _both("expected_response", "expected_facts"),
        },
        "trace": _TRACE,
        "tags": {"type": "object", "additionalProperties": _TEXT, "description": "names and values, both text"},
        "session": {**_TEXT, "description": "the id of the conversation that the row is part of"},
        "request_id": _REQUEST_ID,
    }
    return {**_row("A row of an evaluation dataset for mlflow.genai.evaluate", columns, "inputs"), "$defs": definitions}


def _inputs(messages: dict[str, Any]) -> dict[str, Any]:
    """The arguments of predict_fn: a chat in a known format, or any others (a pattern applies to strings only)."""
    chat = {key: value for key, value in messages.items() if key != "type"}  # values that are not lists are arguments
    chat["items"] = {"anyOf": [chat["items"], _LANGCHAIN_MESSAGE]}
    return {
        "description": "what predict_fn is called with: a chat in messages, a question, or any arguments by name",
        "type": "object",
        "properties": {
            "messages": {**chat, "description": "a whole chat, the newest last"},
            "query": {"pattern": r"\S", "description": "the newest message of a user"},
            **{key: {"pattern": r"\S", "description": "the request"} for key in LONE_TEXT_KEYS},
        },
        "not": {"const": {"messages": []}},
    }


_LANGCHAIN_MESSAGE: dict[str, Any] = {
    "type": ["object", "array"],
    "required": ["type"],
    "properties": {"type": {"enum": [*LANGCHAIN_ROLES, "constructor"]}},
    "items": {"type": "string"},
}
"""A message of another shape, or a pair of role and text."""


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
