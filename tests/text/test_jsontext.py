"""JSON text: read, written again, and compared."""

from __future__ import annotations

from typing import Any

import pytest

from agent_eval_schema.text.depth import TooDeep
from agent_eval_schema.text.jsontext import canonical_bytes, parse, parse_keeping_repeats, write_exactly


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("marks", [1, 2])
@pytest.mark.parametrize("read", [parse, parse_keeping_repeats])
def test_byte_order_marks_before_json_are_no_part_of_it(read: Any, marks: int) -> None:
    assert read("\ufeff" * marks + '{"a": 1}') == {"a": 1}
    assert parse(("\ufeff" * marks + "[1]").encode()) == [1]


@pytest.mark.parametrize("levels", [257, 100_000])
def test_a_value_that_is_nested_too_deep_is_not_written(levels: int) -> None:
    assert write_exactly(nested(256)) == "[" * 256 + "1" + "]" * 256
    with pytest.raises(TooDeep, match="expected at most 256 levels"):
        write_exactly(nested(levels))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [(b'{"b": 1.0, "a": 2}', b'{"a":2,"b":1}'), (b"no JSON", b"no JSON"), (b"", b""), (None, None)],
)
def test_equal_json_has_one_text_and_another_text_stays(text: bytes | None, canonical: bytes | None) -> None:
    assert canonical_bytes(None if text is None else memoryview(text)) == canonical
