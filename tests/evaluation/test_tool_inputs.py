"""A tool input that is not an object: what the validation supports is scored, and read in one way everywhere."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from agent_eval_schema import EvalTask, convert_eval_set, normalize_eval_set, score_trajectories, validate_eval_set
from tests.conftest import SAMPLES, Row

EXACT = "trajectory_exact_match"
READ = ["London", "", None, {}, {"a": 1}, '{"a": 1}', "[1]", "null", "5", 5, 0, 1.5, True, False, [], [1], ["a"]]
NOT_READ = ['{"a', " {a}"]
NAMES, INPUTS = ("tool_name", "name", "tool"), ("tool_input", "arguments", "args", "parameters")


def row_of(form: str, given: Any) -> Row:
    calls = [{"tool_name": "find", "tool_input": given}]
    question = {"prompt": "Hi"} if form == "vertex" else {"request": "Hi", "response": "Ho"}
    return {**question, "predicted_trajectory": calls, "reference_trajectory": copy.deepcopy(calls)}


@pytest.mark.parametrize("given", READ, ids=repr)
@pytest.mark.parametrize("form", ["vertex", "databricks"])
def test_a_row_scored_against_itself_is_1(form: str, given: Any) -> None:
    row = row_of(form, given)
    report = validate_eval_set([row])
    assert (report.format, report.counts, report.metric_support[EXACT].tolist()) == (form, {}, [True])
    assert score_trajectories([row]).scores[EXACT].tolist() == [1.0]
    assert score_trajectories(pd.DataFrame([row])).scores[EXACT].tolist() == [1.0]
    assert EvalTask([row], [EXACT]).evaluate().scores[EXACT].tolist() == [1.0]
    assert EvalTask([row], [EXACT]).evaluate(lambda _: row).scores[EXACT].tolist() == [1.0]


@pytest.mark.parametrize("given", NOT_READ, ids=repr)
@pytest.mark.parametrize("form", ["vertex", "databricks"])
def test_what_is_not_read_has_the_same_issue_in_validate_and_score(form: str, given: Any) -> None:
    row = row_of(form, given)
    report, result = validate_eval_set([row]), score_trajectories([row])
    assert report.counts == result.issue_counts == {"AE503": 2}
    assert report.metric_support[EXACT].tolist() == [False]
    assert math.isnan(result.scores[EXACT][0])


def test_text_in_calls_of_arrow() -> None:
    call = pa.struct([("tool_name", pa.string()), ("tool_input", pa.string())])
    texts = ["London", '{"a": 1}', "", None, "[1]"]
    cells = pa.array([[{"tool_name": "find", "tool_input": text}] for text in texts], pa.list_(call))
    table = pa.table({"prompt": ["Hi"] * len(texts), "predicted_trajectory": cells, "reference_trajectory": cells})
    assert validate_eval_set(table).valid_count == len(texts)
    assert score_trajectories(table).scores[EXACT].tolist() == [1.0] * len(texts)
    normalized = normalize_eval_set(table)
    assert score_trajectories(normalized).scores[EXACT].tolist() == [1.0] * len(texts)


class Action:
    """LangChain's AgentAction of a tool with one argument."""

    tool, tool_input = "find", "London"


class Agent:
    def query(self, input: str) -> Any:  # noqa: ARG002
        return {"output": "It rains", "intermediate_steps": [(Action(), "rain")]}


def test_the_steps_of_an_agent_are_compared_with_the_text() -> None:
    data = [{"prompt": "Weather?", "reference_trajectory": [{"tool_name": "find", "tool_input": "London"}]}]
    assert EvalTask(data, [EXACT]).evaluate(Agent()).scores[EXACT].tolist() == [1.0]


def test_calls_that_an_agent_returns_and_nobody_can_read_have_an_issue() -> None:
    data = [{"prompt": "Weather?", "reference_trajectory": [{"tool_name": "find", "tool_input": "London"}]}]
    given = [{"tool_name": "find", "tool_input": "{"}]
    result = EvalTask(data, [EXACT]).evaluate(lambda _: {"response": "x", "predicted_trajectory": given})
    assert result.issue_counts == {"AE503": 1}
    assert result.metrics_table["predicted_trajectory"].tolist() == [given]
    assert result.reasons[EXACT].tolist() == ["predicted_trajectory cannot be read"]


def test_a_text_goes_back_to_vertex_as_text() -> None:
    row = row_of("vertex", "London")
    found = convert_eval_set([row], "vertex")
    assert found.lossless
    assert found.data["predicted_trajectory"][0] == row["predicted_trajectory"]


# ---------------------------------------------------------------------------------------------------------------------
# every format
def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the inputs of tool calls are in a row."""
    if isinstance(value, dict):
        if any(isinstance(value.get(name), str) for name in NAMES):
            yield from ((*path, key) for key in INPUTS if key in value)
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from places(inner, (*path, i))


def changed(row: Row, path: tuple[Any, ...], given: Any) -> Row:
    row = copy.deepcopy(row)
    home: Any = row
    for key in path[:-1]:
        home = home[key]
    home[path[-1]] = given
    return row


def rows_with_calls() -> Iterator[tuple[str, Row, tuple[Any, ...]]]:
    """A row of each sample for each place of a tool input."""
    for path in sorted(SAMPLES.glob("*.json*")):
        if "broken" in path.name or path.name.startswith("evaluation"):  # CES has a limit of its own on what it takes
            continue
        text = path.read_text(encoding="utf-8")
        rows = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
        shapes = set()
        for row in rows if isinstance(rows, list) else [rows]:
            for place in places(row):
                shape = tuple(key for key in place if isinstance(key, str))
                if shape not in shapes:
                    shapes.add(shape)
                    yield path.name, row, place


@pytest.mark.property
@pytest.mark.parametrize(("name", "row", "place"), [pytest.param(*case, id=case[0]) for case in rows_with_calls()])
def test_what_the_validation_supports_is_scored(name: str, row: Row, place: tuple[Any, ...]) -> None:
    format = validate_eval_set(str(SAMPLES / name)).format
    for given in (*READ, *NOT_READ):
        data = [changed(row, place, given)]
        supported = validate_eval_set(data, format=format, outputs="provided").metric_support.get(EXACT)
        if supported is None or not supported.any():
            continue
        scores = score_trajectories(data, format=format).scores[EXACT]
        assert not any(yes and math.isnan(score) for yes, score in zip(supported, scores, strict=True)), given
