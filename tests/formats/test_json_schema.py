"""The JSON Schemas agree with the checker: an outside validator accepts good samples and refuses broken rows."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent_eval_schema import EvalSetError, json_schema, normalize_eval_set, prepare_for_evaluate, validate_eval_set
from agent_eval_schema.formats.json_schema import SCHEMAS
from agent_eval_schema.rules import RULES

DATABRICKS = jsonschema.Draft202012Validator(json_schema("databricks"))
CANONICAL = jsonschema.Draft202012Validator(json_schema("canonical"))
MLFLOW = jsonschema.Draft202012Validator(json_schema("mlflow"))
ROW = {"request": "Hi", "response": "Hello"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema(name))


def test_good_rows_are_accepted(samples: Path) -> None:
    for line in (samples / "good.jsonl").read_text().splitlines():
        DATABRICKS.validate(json.loads(line))


def test_normalized_rows_are_canonical(samples: Path) -> None:
    rows = [json.loads(line) for line in (samples / "good.jsonl").read_text().splitlines()]
    for row in normalize_eval_set(rows):
        CANONICAL.validate(json.loads(json.dumps(row)))


@pytest.mark.parametrize(
    "cells",
    [
        {"request": None},
        {"request": "  "},
        {"request": 3},
        {"request": {"messages": []}},
        {"request": {"messages": [{"role": "usr", "content": "a"}]}},
        {"request": {"messages": [{"role": "user", "content": "a"}], "query": "a"}},
        {"request": {"mesages": []}},
        {"expected_response": "a", "expected_facts": ["a"]},
        {"expected_facts": "a"},
        {"guidelines": {"tone": "a"}},
        {"retrieved_context": ["a"]},
        {"retrieved_context": [{"content": "a"}]},
        {"retrieved_context": [{"doc_uri": " "}]},
        {"predicted_trajectory": [{"tool_input": {}}]},
        {"total_token_count": "many"},
    ],
    ids=str,
)
def test_what_the_checker_refuses_the_schema_refuses(cells: dict[str, Any]) -> None:
    row = {**ROW, **cells}
    assert not validate_eval_set([row]).ok
    assert not DATABRICKS.is_valid(row)


def test_an_unknown_schema_is_an_error() -> None:
    with pytest.raises(EvalSetError, match="databricks"):
        json_schema("excel")


# ---------------------------------------------------------------------------------------------------------------------
# mlflow


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_good_rows_of_mlflow_are_accepted(samples: Path) -> None:
    for row in lines(samples / "good_mlflow.jsonl"):
        MLFLOW.validate(row)


def test_broken_rows_of_mlflow_are_refused(samples: Path) -> None:
    """All but what no single row says (it lacks an output, it contradicts another row), only a name suggests, or mlflow
    ignores."""
    path = samples / "broken_mlflow.jsonl"
    unseen = {"AE223", "AE308", "AE310", "AE902"}
    told = {i.row for i in validate_eval_set(path).iter_issues() if i.code not in unseen}
    assert {n for n, row in enumerate(lines(path)) if not MLFLOW.is_valid(row)} == told
    assert len(told) > 8


@pytest.mark.parametrize("name", ["good.jsonl", "good_mlflow.jsonl", "search_traces.jsonl", "traces_mlflow2.jsonl"])
@pytest.mark.parametrize("outputs", ["provided", "generated"])
def test_prepared_rows_are_mlflow_s(name: str, outputs: Any, samples: Path) -> None:
    for row in prepare_for_evaluate(samples / name, outputs=outputs).to_dict("records"):
        MLFLOW.validate(json.loads(json.dumps(row)))


@pytest.mark.filterwarnings("ignore::agent_eval_schema.integrations.mlflow.prepare.ReducedInputsWarning")
@pytest.mark.parametrize("inputs", ["messages", "query", "question"])
def test_prepared_inputs_of_every_form_are_mlflow_s(inputs: Any, samples: Path) -> None:
    for row in prepare_for_evaluate(samples / "good.jsonl", inputs=inputs).to_dict("records"):
        MLFLOW.validate(json.loads(json.dumps(row)))


FORM = {"inputs": {"question": "Hi"}, "outputs": "Hello"}


@pytest.mark.parametrize(
    "cells",
    [
        {"inputs": None},
        {"inputs": "Hi"},
        {"inputs": {"question": " "}},
        {"inputs": {"messages": []}},
        {"inputs": {"messages": [{"role": "usr", "content": "a"}]}},
        {"expectations": ["a"]},
        {"expectations": {"expected_facts": "a"}},
        {"expectations": {"expected_response": "a", "expected_facts": ["a"]}},
        {"expectations": {"guidelines": {"tone": "a"}}},
        {"expectations": {"expected_retrieved_context": [{"content": "a"}]}},
        {"expectations": {"expected_tool_calls": [{"name": " "}]}},
        {"expectations": {"reference_trajectory": ["a"]}},
        {"tags": ["a"]},
        {"trace": 3},
    ],
    ids=str,
)
def test_what_the_checker_tells_of_the_schema_of_mlflow_refuses(cells: dict[str, Any]) -> None:
    row = {**FORM, **cells}
    severities = {RULES[code].severity for code in validate_eval_set([row], format="mlflow").counts}
    assert severities & {"error", "warning"}
    assert not MLFLOW.is_valid(row)


@pytest.mark.parametrize(
    "cells",
    [
        {"inputs": {"messages": [{"role": "user", "content": "a"}], "thread": 7}},
        {"inputs": {"query": "a", "history": None}},
        {"inputs": {"question": "a", "history": [["b", "c"]]}},
        {"inputs": {"topic": "a", "text": 3}},
        {"inputs": {}},
        {"inputs": {"query": 3}},
        {"inputs": {"messages": [{"role": "user", "content": "a"}], "query": "a"}},
        {"inputs": {"messages": [], "topic": "a"}},
        {"inputs": {"messages": [], "query": "a"}},
        {"inputs": {"query": "a", "history": "b"}},
        {"inputs": {"messages": "a"}},
        {"inputs": {"messages": [{"type": "human", "content": "a"}, ["ai", "b"], ["human", "c"]]}},
        {"expectations": {"guidelines": "Be kind."}},
        {"outputs": {"rows": [1, 2]}},
        {"outputs": 3},
        {"expectations": {}},
        {"expectations": {"tone": "kind", "expected_response": None}},
        {"expectations": {"expected_response": "a", "expected_facts": []}},
        {"expectations": {"expected_tool_calls": [{"name": "f"}, {"name": "g", "arguments": {"x": 1}}]}},
        {"expectations": {"expected_tool_calls": [{"name": "f", "args": {"x": 1}}]}},
        {"tags": {"team": "a"}, "session": "s", "request_id": "r", "note": 3},
    ],
    ids=str,
)
def test_what_mlflow_takes_its_schema_accepts(cells: dict[str, Any]) -> None:
    row = {**FORM, **cells}
    assert validate_eval_set([row], format="mlflow").ok
    MLFLOW.validate(row)
