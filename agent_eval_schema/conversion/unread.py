"""What the row of a neighbour says that no canonical column can hold.

A format that takes only some keys of its nested columns lists them in `READ`; everything else there that has a value is
named with its path, so that a conversion can say what it leaves behind. Columns that no format reads are carried along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any

import pyarrow as pa

from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ragas import after_question
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import structured

ReadKeys = EllipsisType | Mapping[str, Any]

ALL = ...
_CALL = {"name": ALL, "args": ALL}
_TOOL = {"name": ALL, "input_parameters": ALL}
_CHAT = {"type": ALL, "role": ALL, "content": ALL, "tool_calls": _CALL}


def _either(shape: ReadKeys) -> ReadKeys:
    """The same keys, also as camelCase writes them: ADK takes both spellings."""
    if isinstance(shape, EllipsisType):
        return shape
    return {spelt: _either(below) for key, below in shape.items() for spelt in (key, _camel(key))}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


_CONTENT = {"role": ALL, "parts": {"text": ALL}}
_EVENT = {"content": {"role": ALL, "parts": {"function_call": _CALL}}}
_ADK: dict[str, ReadKeys] = {
    "final_response": _CONTENT,
    "intermediate_data": {"tool_uses": _CALL, "invocation_events": _EVENT},
    "session_input": dict.fromkeys(("app_name", "user_id", "session_id", "state"), ALL),
    "rubrics": {"rubric_id": ALL, "rubric_content": {"text_property": ALL}},
}

READ_KEYS: dict[str, dict[str, ReadKeys]] = {
    "ragas": {"user_input": _CHAT, "reference_tool_calls": _CALL},
    "deepeval": {"tools_called": _TOOL, "expected_tools": _TOOL},
    "openai": {"sample": {"output_text": ALL}},
    "adk": {column: _either(shape) for column, shape in _ADK.items()},
    "adk-legacy": {"expected_tool_use": {"tool_name": ALL, "tool_input": ALL}},
}
"""Per format and column the keys that are read; lists are looked through, of `ALL` everything is read."""


def unread_parts(format: str, batch: pa.RecordBatch, rows: Sequence[int]) -> Iterator[tuple[int, str, Any]]:
    """(row, path, value) of everything in these rows that is not read."""
    for column, shape in READ_KEYS.get(format, {}).items():
        cells = read_cells(batch, column)
        for row in rows if cells is not None else ():
            text = cells.texts[row] if cells is not None else None
            value = None if text is None else structured(jsontext.parse_leniently(text))
            for path, part in unread(value, shape, column):
                yield row, path, part
            for path, part in _CLOSER_LOOK.get((format, column), _nothing)(value):
                yield row, path, part


def unread(value: Any, shape: ReadKeys, path: str = "") -> Iterator[tuple[str, Any]]:
    """The path and the value of everything below a value that its shape does not read."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from unread(item, shape, f"{path}[{i}]")
    elif isinstance(value, dict) and not isinstance(shape, EllipsisType):
        for key, part in value.items():
            below = f"{path}.{key}" if path else key
            if key in shape:
                yield from unread(part, shape[key], below)
            elif part not in (None, "", [], {}):
                yield below, part


def _nothing(_: Any) -> Iterator[tuple[str, Any]]:
    return iter(())


def _said_between(user_input: Any) -> Iterator[tuple[str, Any]]:
    """What was said after the last question, but for the calls and the answer: results of tools, thoughts."""
    if not isinstance(user_input, list):
        return
    first = after_question(user_input)
    answer, _ = chat.read_answer(user_input[first:])
    for i, message in enumerate(user_input[first:], start=first):
        content = message.get("content") if isinstance(message, dict) else message
        if content and content != answer:
            yield f"user_input[{i}].content", content


_CLOSER_LOOK = {("ragas", "user_input"): _said_between}
