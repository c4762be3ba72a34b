"""The JSON Schemas agree with the checker: an outside validator accepts good samples and refuses broken rows."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent_eval_schema import EvalSetError, json_schema, normalize_eval_set, validate_eval_set

DATABRICKS = jsonschema.Draft202012Validator(json_schema("databricks"))
CANONICAL = jsonschema.Draft202012Validator(json_schema("canonical"))
ROW = {"request": "Hi", "response": "Hello"}


@pytest.mark.parametrize("name", ["databricks", "canonical"])
def test_the_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema(name))


def test_good_rows_are_accepted(samples: Path) -> None:
    for line in (samples / "good.jsonl").read_text().splitlines():
        DATABRICKS.validate(json.loads(line))


def test_normalised_rows_are_canonical(samples: Path) -> None:
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
