"""How deep a cell may be nested is a count: the same in every kind of input, on every Python and stack."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import eval_set_from_inference_table, validate_eval_set
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.traces.decode import decode_trace
from tests.conftest import KINDS, ROOT, _quoted

DISTRACTORS = ["[", "{", "]}", '\\"[', '"[{', "\\", '\\\\"']
FAR = 100_000
kinds = st.lists(st.sampled_from("[{"), min_size=1, max_size=4)


def nested(depth: int, brackets: str | list[str], noise: str = "") -> Any:
    """A value of so many levels, with a distractor in each."""
    value: Any = noise
    for level in range(depth):
        value = [noise, value] if brackets[level % len(brackets)] == "[" else {"a": noise, "b": value}
    return value


def text_of(depth: int, brackets: str | list[str], noise: str = "") -> str:
    """Its JSON text, which `json` need not be able to write."""
    opening, closing = [], []
    for level in range(depth):
        of_list = brackets[level % len(brackets)] == "["
        opening.append("[" + json.dumps(noise) + "," if of_list else '{"a":' + json.dumps(noise) + ',"b":')
        closing.append("]" if of_list else "}")
    return "".join(opening) + "1" + "".join(reversed(closing))


@given(depth=st.integers(0, 400), levels=st.integers(0, 400), brackets=kinds, noise=st.sampled_from(DISTRACTORS))
def test_the_levels_of_a_text_are_counted_outside_of_strings(
    depth: int, levels: int, brackets: list[str], noise: str
) -> None:
    text = text_of(depth, brackets, noise)
    assert is_too_deep(text, levels) is (depth > levels)
    assert is_too_deep(text.encode(), levels) is (depth > levels)
    assert not is_too_deep(json.dumps(text), levels), "what is in a string is measured where it is parsed"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(brackets=kinds, noise=st.sampled_from(DISTRACTORS))
@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1])
def test_a_cell_has_the_same_issue_in_every_kind_of_input(
    kind: str, depth: int, brackets: list[str], noise: str, tmp_path: Path
) -> None:
    cell = nested(depth - 1, brackets, noise)  # the object of custom_expected is the outermost level
    rows = [
        {"request": "Hi", "response": "[{" * FAR},
        {"request": "Hi", "response": "x", "custom_expected": {"a": cell}},
    ]
    report = validate_eval_set(KINDS[kind](rows, tmp_path))
    assert report.counts == ({"AE004": 1} if depth > MAX_DEPTH else {})
    assert report.valid_mask.tolist() == [True, depth <= MAX_DEPTH]


TEXTS: dict[str, Callable[[str, Path], Any]] = {
    "list": lambda text, _: [{"request": "Hi", "custom_expected": text}],
    "arrow": lambda text, _: pa.table({"request": ["Hi"], "custom_expected": [text]}),
    "jsonl": lambda text, folder: written(folder / "a.jsonl", f'{{"request": "Hi", "custom_expected": {text}}}'),
    "json": lambda text, folder: written(folder / "a.json", f'[{{"request": "Hi", "custom_expected": {text}}}]'),
    "csv": lambda text, folder: written(folder / "a.csv", f"request,custom_expected\nHi,{_quoted(text)}"),
}


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("text", [text_of(FAR, "{["), text_of(FAR, "["), "[" * FAR + "]" * FAR], ids=range(3))
@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_of_any_depth_is_measured_before_it_is_parsed(kind: str, text: str, tmp_path: Path) -> None:
    report = validate_eval_set(TEXTS[kind](text, tmp_path))
    assert report.counts["AE004"] == report.invalid_count == 1


SPAN = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "x", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
OTLP = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]})
OF_FILES: dict[str, tuple[str, Callable[[str], bytes]]] = {
    "compressed": (
        "a.jsonl.gz",
        lambda text: gzip.compress(b'{"request": "Hi", "custom_expected": %s}' % text.encode()),
    ),
    "a folder": ("a/a.jsonl", lambda text: b'{"request": "Hi", "custom_expected": %s}' % text.encode()),
    "yaml": ("a.yaml", lambda text: b"- request: Hi\n  custom_expected: %s" % text.encode()),
    "otlp": ("a.jsonl", lambda text: b'%s, "more": %s}' % (OTLP[:-1].encode(), text.encode())),
}


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, FAR])
@pytest.mark.parametrize("kind", OF_FILES)
def test_a_file_has_the_same_limit(kind: str, depth: int, tmp_path: Path) -> None:
    name, encode = OF_FILES[kind]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(encode(f'{{"a": {"[" * (depth - 1)}1{"]" * (depth - 1)}}}'))
    counts = validate_eval_set(str(path.parent if "/" in name else path)).counts
    assert ("AE004" in counts) is (depth > MAX_DEPTH)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, FAR])
@pytest.mark.parametrize("deep", ["request", "response"])
@pytest.mark.parametrize("make", [list, pa.Table.from_pylist], ids=["list", "arrow"])
def test_a_payload_has_the_same_limit(deep: str, make: Callable[[Any], Any], depth: int) -> None:
    payloads = {
        "request": '{"messages": [{"role": "user", "content": "Hi"}]',
        "response": '{"choices": [{"message": {"role": "assistant", "content": "Ho"}}]',
    }
    cells = {
        name: text + (f', "a": {text_of(depth - 1, "[")}}}' if name == deep else "}") for name, text in payloads.items()
    }
    call = {"databricks_request_id": "a", "request_time": "2026-01-01T00:00:00Z", "status_code": 200, **cells}
    found = eval_set_from_inference_table(make([call]))
    assert (len(found.excluded), len(found.rows)) == ((1, 0) if depth > MAX_DEPTH else (0, 1))


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, FAR])
@pytest.mark.parametrize("kind", ["list", "arrow", "jsonl"])
def test_a_trace_has_the_same_limit(kind: str, depth: int, tmp_path: Path) -> None:
    trace = (
        f'{{"info": {{}}, "data": {{"spans": [{{"name": "a", "attributes": {{"x": {text_of(depth - 5, "[")}}}}}]}}}}'
    )
    assert is_too_deep(trace) is (depth > MAX_DEPTH)
    table = {
        "list": lambda: [{"request": "Hi", "trace": trace}],
        "arrow": lambda: pa.table({"request": ["Hi"], "trace": [trace]}),
        "jsonl": lambda: written(tmp_path / "a.jsonl", f'{{"request": "Hi", "trace": {trace}}}'),
    }[kind]()
    assert ("AE004" in validate_eval_set(table).counts) is (depth > MAX_DEPTH)
    assert isinstance(decode_trace(trace), list) is (depth > MAX_DEPTH)


def test_a_nested_type_of_arrow_has_the_same_limit() -> None:
    for depth in (MAX_DEPTH, MAX_DEPTH + 1):
        kind, value = pa.int64(), 1
        for _ in range(depth - 1):
            kind, value = pa.list_(kind), [value]
        column = pa.array([{"a": value}, None], pa.struct([("a", kind)]))
        counts = validate_eval_set(pa.table({"request": ["Hi", "Ho"], "custom_expected": column})).counts
        assert counts == ({"AE004": 1} if depth > MAX_DEPTH else {})


def test_an_inner_text_is_measured_where_it_is_parsed() -> None:
    inner = text_of(MAX_DEPTH + 1, "[")
    assert jsontext.parse(json.dumps({"a": inner})) == {"a": inner}
    assert jsontext.parse_leniently(inner) == inner
    assert jsontext.parse_leniently(text_of(MAX_DEPTH, "[")) != text_of(MAX_DEPTH, "[")


def test_the_page_on_limits_names_the_number() -> None:
    assert f"{MAX_DEPTH}, a count" in (ROOT / "docs" / "concepts" / "safety.md").read_text(encoding="utf-8")
