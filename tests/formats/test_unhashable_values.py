"""A list or an object in the place of every value of every sample, also in JSON text: a reader that looks a value up in
a set, a dict or a cache fails on one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import agent_eval_schema as aes
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.text.jsontext import structured
from tests.helpers.mutations import Row, samples

OTHERS: tuple[Any, ...] = (["a"], {"a": "b"})
TEXT = object()
"""The step of a path from a JSON text to its value."""

TARGETS = [form.name for form in FORMATS if form.writer is not None]

PARTS = [{"type": "text", "text": "Where?"}, {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
CALL = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"a": "b"}'}}
ROW = {
    "request_id": "a",
    "request": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": PARTS},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "1", "content": "There."},
            {"role": "user", "content": "And then?"},
        ]
    },
    "response": "Here.",
    "expected_response": "There.",
    "expected_retrieved_context": [{"doc_uri": "a", "content": "b"}],
    "retrieved_context": [{"doc_uri": "a", "content": "b"}],
    "guidelines": {"tone": ["Be brief."]},
    "reference_trajectory": [{"tool_name": "find", "tool_input": {"a": "b"}}],
    "predicted_trajectory": [{"tool_name": "find", "tool_input": {"a": "b"}}],
}


@cache
def given() -> dict[str, tuple[str, list[Row]]]:
    """The samples and a row with much in it as each format has it, with the format of each."""
    found = {name: (aes.validate_eval_set(rows).format or "auto", rows) for name, rows in samples().items()}
    for target in TARGETS:
        data: Any = aes.convert_eval_set([ROW], target, on_invalid="keep").data
        data = data.to_dict("records") if hasattr(data, "to_dict") else [data] if isinstance(data, dict) else data
        found |= {} if isinstance(data, str) else {target: (target, data)}
    return found


def altered(rows: list[Row]) -> Iterator[Row]:
    """Rows in each of which one value is another one: of the entries of a list, the first that has the place."""
    seen = set[tuple[Any, ...]]()
    for row in rows:
        for path in _paths(row):
            place = tuple("" if isinstance(key, int) else key for key in path)
            if place not in seen:
                seen.add(place)
                yield from (_with(row, path, other) for other in OTHERS)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str) and not isinstance(inner := structured(value), str):
        yield from _paths(inner, (*path, TEXT))
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(inner, (*path, key))
    elif path:
        yield path


def _with(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    if path[0] is TEXT:
        return json.dumps(_with(structured(value), path[1:], other))
    changed = value.copy()
    changed[path[0]] = _with(value[path[0]], path[1:], other)
    return changed


NAMES = [*sorted(samples()), *(name for name in TARGETS if name != "ces-csv")]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if i % 20 == 0 or n in TARGETS else pytest.mark.property) for i, n in enumerate(NAMES)],
)
def test_no_reader_fails_on_a_list_or_an_object(name: str) -> None:
    form, rows = given()[name]
    rows = list(altered(rows))
    require_no_defect(aes.validate_eval_set(rows, format=form))
    for target in {form, TARGETS[NAMES.index(name) % len(TARGETS)]}.intersection(TARGETS):
        with contextlib.suppress(aes.EvalSetError):
            require_no_defect(aes.convert_eval_set(rows, target, format=form, on_invalid="keep").report)
    with contextlib.suppress(aes.EvalSetError):
        made = aes.eval_set_from_inference_table(rows)
        assert "defect" not in made.summary.excluded, made.excluded.to_dict("records")[:1]
        require_no_defect(made.report)


def require_no_defect(report: aes.Report) -> None:
    assert next((issue for issue in report.iter_issues() if issue.code == "AE001"), None) is None
