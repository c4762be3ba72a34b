"""From every format to every other: each value of the source comes back, or a loss names its path."""

import copy
import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import convert_eval_set
from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.formats.names import TARGETS
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import FORMATS as ALL_FORMATS
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.text.jsontext import structured

FORMATS = tuple(name for name in TARGETS if not name.startswith("ces-"))
OF_TURNS = {"adk", "agentcore", "bedrock-rag", "m365-copilot"}
"""Formats in which each answer in a request is a turn, and so a row, of its own."""
NEW_KEY = "zz_mine"

ROWS = [
    {
        "request_id": "a",
        "request": {
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello"},
                {"role": "user", "content": "How many days?"},
            ]
        },
        "response": "12 days.",
        "expected_response": "12",
        "expected_retrieved_context": [{"doc_uri": "hr/leave.pdf", "content": "12 days"}],
        "retrieved_context": [{"doc_uri": "hr/leave.pdf", "content": "12 days"}],
        "predicted_trajectory": [{"tool_name": "get_balance", "tool_input": {"employee": "E1042"}}],
        "reference_trajectory": [{"tool_name": "get_balance", "tool_input": {"employee": "E1042", "year": 2026}}],
        "latency_seconds": 0.5,
        "failure": False,
        "session_id": "s",
        "custom_expected": {"mode": "strict", "limits": {"max": 3}},
        "tags": {"team": "hr"},
    },
    {
        "request_id": "b",
        "request": {"messages": [{"role": "user", "content": "Bye"}]},
        "expected_facts": ["one", "two"],
        "guidelines": {"tone": ["Be brief."]},
        "inputs": {"question": "Bye", "k": 3},
        "outputs": {"answer": "Bye!", "confidence": 0.5},
        "response": "Bye!",
    },
]

VALUES = st.sampled_from([7, 0.25, True, False, "text", "", [], {}, [1, {"a": None}], {"deep": {"er": [1, "x"]}}])

Path = tuple[str | int, ...]


def nodes(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all objects in a row."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from nodes(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from nodes(inner, (*path, i))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    value = structured(value)
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from leaves(part, (*path, key))
    if not inner and value is not None:
        yield path, value


def at(value: Any, path: Path) -> Any:
    for step in path:
        value = structured(value)
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return structured(value)


def as_rows(data: Any) -> Any:
    """A conversion's data as what a file would hold, without absent cells."""
    if hasattr(data, "to_dict"):
        data = [{n: v for n, v in row.items() if v is not None} for row in data.to_dict("records")]
    return json.loads(json.dumps(data))


def text(path: Path) -> str:
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path).removeprefix(".")


OURS = {
    "reference_context_ids": ["expected_retrieved_context"],
    "retrieved_context_ids": ["retrieved_context"],
    "inputs": ["request"],
    "outputs": ["response", "custom_expected", "expected_facts", "guidelines", "reference_trajectory"],
    "expectations": ["custom_expected", "expected_facts", "guidelines", "reference_trajectory"],
    "eval_id": ["request_id"],
    "user_content": ["request"],
    "final_response": ["expected_response"],
    "intermediate_data": ["reference_trajectory"],
    "session_input": ["session_id", "tags"],
    "rubrics": ["guidelines"],
    "eval_case_rubrics": ["guidelines"],
    "query": ["request"],
    "metadata": ["tags"],
    "additional_metadata": ["tags"],
    "comments": ["custom_expected"],
    "expected_tool_use": ["reference_trajectory"],
}
"""Columns of other formats, and what they become."""


def words(path: Path, format: str) -> set[str]:
    """The columns that a place of the source may be called in a loss."""
    column = str(path[0])
    found = {column, *OURS.get(column, ())}
    found.add(f"{format.replace('-', '_')}_{column}")  # under which the original is passed through
    found |= {ours for ours, theirs in find_format(format).origins(()).items() if theirs.partition(".")[0] == column}
    return found | (
        {str(path[1]), "request", "response", "expected_response", "custom_expected"} if len(path) > 1 else set()
    )


def turns(rows: Any) -> list[dict[str, Any]]:
    """The rows as a reader sees them: of an evalset its turns, without what is repeated in each."""
    found = [row for batch in open_source(rows).batches() for row in native_rows(batch)]
    return [{n: v for n, v in row.items() if n not in ("history", "turn", "turns")} for row in found]


@cache
def rows_in(format: str, *, history: bool) -> Any:
    """The rows in a format."""
    messages = ROWS[0]["request"]["messages"]
    rows = [{**ROWS[0], "request": {"messages": messages if history else messages[-1:]}}, ROWS[1]]
    return as_rows(convert_eval_set(rows, format="databricks", to=format, on_invalid="keep").data)


def unnamed(rows: Any, source: str, target: str) -> Iterator[tuple[str, Any, Any]]:
    """The values that do not come back from the target, and of which no loss speaks."""
    made = convert_eval_set(rows, format=source, to=target, on_invalid="keep")
    back = convert_eval_set(made.data, format=target, to=source, on_invalid="keep")
    losses = pd.concat([made.losses, back.losses])
    if "AE814" in set(losses["code"]):
        return  # a new key may make a row invalid
    several = losses["message"].str.contains(r"\(and in \d+ more place", na=False)
    named = {*losses["path"].dropna(), *losses.loc[several, "column"].dropna()}
    returned = turns(as_rows(back.data))
    for (row, *path), value in leaves(turns(rows)):
        came = at(returned, (row, *path))
        if (came != value or isinstance(came, bool) != isinstance(value, bool)) and not is_named(path, named, source):
            yield text((row, *path)), value, came


def is_named(path: list[str | int], losses: set[str], format: str) -> bool:
    """Whether a loss is about a column of this place; for the new key, about it or something that it is in."""
    columns = words(tuple(path), format)
    steps = {loss: re.split(r"[.\[]", loss.replace("request.messages", "request")) for loss in losses}
    found = [loss for loss in losses if steps[loss][0] in columns]
    return any(NEW_KEY not in path or NEW_KEY in loss or len(steps[loss]) < len(path) for loss in found)


TABLE_NAMES = {form.name for form in ALL_FORMATS if form.fields and form.originals is None}


@pytest.mark.property
@pytest.mark.parametrize("source", FORMATS)
def test_every_value_of_a_table_comes_back_or_a_loss_names_its_path(source: str) -> None:
    """As below, with one new key for each pair of which one is a format of TABLES."""
    for target in FORMATS:
        if TABLE_NAMES.isdisjoint((source, target)):
            continue
        chance = random.Random(f"{source} {target}")
        rows = copy.deepcopy(rows_in(source, history=OF_TURNS.isdisjoint((source, target))))
        places = [path for path in sorted(nodes(rows), key=str) if path and isinstance(at(rows, path), dict)]
        at(rows, chance.choice(places))[NEW_KEY] = chance.choice([7, 0.25, True, "text", [], [1, {"a": None}]])
        assert list(unnamed(rows, source, target)) == [], (target, rows)


@pytest.mark.property
@pytest.mark.parametrize("target", [name for name in FORMATS if name not in TABLE_NAMES])
@pytest.mark.parametrize("source", [name for name in FORMATS if name not in TABLE_NAMES])
@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_every_value_comes_back_or_a_loss_names_its_path(source: str, target: str, data: st.DataObject) -> None:
    rows = copy.deepcopy(rows_in(source, history=OF_TURNS.isdisjoint((source, target))))
    places = [path for path in sorted(nodes(rows), key=str) if path and isinstance(at(rows, path), dict)]
    at(rows, data.draw(st.sampled_from(places)))[NEW_KEY] = data.draw(VALUES)
    lost = [found for found in unnamed(rows, source, target) if found[1] not in ({}, [])]  # which say nothing
    assert lost == []
