"""The class of each platform loads what conversions of all samples write, and keeps of a row what was recorded."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, convert_eval_set
from agent_eval_schema.formats.kept import KEPT_BY_CLASSES
from agent_eval_schema.formats.registry import find_format
from tests.conftest import SAMPLES
from tests.formats.test_kept import FILE
from tests.recorders import kept

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")]

TEN = [
    {
        "request_id": f"row-{number}",
        "request": f"What is rule {number}?",
        "response": f"It is {number}.",
        "expected_response" if number % 2 else "expected_facts": f"{number}" if number % 2 else [f"{number}"],
        "retrieved_context": [{"doc_uri": f"https://a.example/{number}", "content": f"text {number}"}] * (number % 3),
        "guidelines": ["Be brief"] * (number % 4 == 0) or None,
        "tags": {"n": str(number)},
    }
    for number in range(10)
]
"""Rows of several kinds, generated."""

_HI = {"role": "user", "content": "Hi"}
_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
HARD: list[dict[str, Any]] = [
    {"request": {"messages": messages}, "response": "Hello", "expected_response": "Hello"}
    for messages in (
        [{"role": "user", "content": [_IMAGE]}],
        [_HI, {"role": "user", "content": [_IMAGE]}],
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}, _IMAGE, {"type": "variables", "a": 1}]}],
        [{"role": "developer", "content": "Be brief."}, _HI],
        [{"role": "system", "content": ""}, _HI],
        [_HI, {"role": "tool", "content": "4", "tool_call_id": "c"}, _HI],
        [_HI, {"role": "function", "name": "f", "content": "4"}, _HI],
        [_HI, {"role": "assistant", "content": None, "tool_calls": [_CALL]}, _HI],
        [_HI, {"role": "assistant", "content": None, "tool_calls": [_CALL]}, {"role": "user", "content": [_IMAGE]}],
    )
]
"""Messages that some class does not have."""


def rows_of(data: Any) -> list[dict[str, Any]]:
    """The rows that the class loads, without what a row does not have."""
    if isinstance(data, dict):
        return next(list(value) for name, value in data.items() if name in ("eval_cases", "cases"))
    return [{n: v for n, v in row.items() if v is not None} for row in data.to_dict("records")]


def conversions(target: Any) -> Iterator[tuple[str, Any]]:
    for path in sorted(SAMPLES.glob("*.*")):
        if "broken" not in path.name and path.suffix in (".jsonl", ".json", ".csv"):
            with contextlib.suppress(EvalSetError):  # inference tables and others that are no rows
                yield path.name, convert_eval_set(path, target).data
    yield "ten rows", convert_eval_set(TEN, target).data
    for number, row in enumerate(HARD):  # each alone, as a row that is rejected can be left out
        yield f"hard row {number}", convert_eval_set([row, TEN[0]], target).data


@pytest.mark.parametrize("name", sorted(KEPT_BY_CLASSES))
def test_the_class_loads_what_is_written(name: str, record_property: Any) -> None:
    recorded, form = KEPT_BY_CLASSES[name], find_format(name)
    try:
        package, kinds, load = getattr(kept, name.replace("-", "_"))()
    except (ImportError, KeyError) as error:  # promptfoo is a folder that a variable names
        pytest.skip(f"{recorded.package} is not installed: {error}")
    if kept.version_of(package) == recorded.version:
        names = json.loads(FILE.read_text(encoding="utf-8"))[name]
        with contextlib.redirect_stdout(io.StringIO()):
            found = {kind: kept.kept(load, row, names) for kind, row in kinds.items()}
        assert found == {kind: None if c is None else list(c) for kind, c in recorded.kept.items()}
    rejected, count = [], 0
    for source, data in conversions(name):
        for row in rows_of(data):
            count += 1
            try:
                load(row)
            except Exception as error:
                rejected.append((source, row, str(error)[:300]))
    assert rejected == []
    assert count > len(TEN)
    of_class = "every column" if recorded.columns is None else f"{len(recorded.columns)} columns"
    record_property("loaded", (recorded.release, count, of_class, " or ".join(filter(None, form.one_kind[1:])) or "–"))
