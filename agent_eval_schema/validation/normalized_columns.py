"""The normalized columns of judged rows, in Arrow: each canonical column as `FIELDS` has it."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pyarrow as pa

from agent_eval_schema.cells.arrow import is_text, is_valid_text, list_array
from agent_eval_schema.cells.batch import CANONICAL_CELLS, JSON_CELLS, is_json_column
from agent_eval_schema.decoding.requests import Chat, canonical_request
from agent_eval_schema.decoding.values import FAILED, DecodedColumn
from agent_eval_schema.formats.shapes import as_text
from agent_eval_schema.schema import (
    COLUMNS,
    DOCUMENT,
    OTHER_KEYS,
    ROW_SCHEMA,
    ChatRequest,
    Contexts,
    JsonObject,
    JsonValue,
    NamedGuidelines,
    RetrievedContext,
    Tags,
    ToolCall,
    Trajectory,
    columns_of,
)
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation.rows import Rows

_METADATA = {
    **dict.fromkeys(columns_of(ChatRequest, JsonObject, JsonValue), JSON_CELLS),
    **dict.fromkeys(columns_of(Contexts, RetrievedContext, Trajectory), CANONICAL_CELLS),
}
FIELDS = {n: pa.field(n, ROW_SCHEMA.field(n).type, metadata=_METADATA.get(n)) for n in COLUMNS}
"""The normalized columns, each with the function that writes its cells."""


def normalized(name: str, rows: Rows) -> pa.Array:
    """A canonical column of judged rows, as `FIELDS` has it; a cell that could not be read is null."""
    kind = ROW_SCHEMA.field(name).type
    if name not in rows.values:
        return pa.nulls(rows.size, kind)
    column = rows.values[name]
    if column.array is not None and name != "request":  # a question becomes a chat
        return column.array.cast(kind)
    if (array := _as_it_came(name, rows, column)) is not None:
        return array.cast(kind)
    return _in_arrow(name, [None if v is FAILED else v for v in column], kind)


def _as_it_came(name: str, rows: Rows, values: DecodedColumn) -> pa.Array | None:
    """The column of the batch itself, if every cell is unchanged: large texts need not be rewritten."""
    at = rows.batch.schema.get_field_index(name)
    if name not in ("request", "trace") or at < 0 or is_json_column(rows.batch.schema.field(at)):
        return None
    array = rows.batch.column(at)
    if not is_text(array.type) or not all([v is None or v.__class__ in (Chat, memoryview) for v in values]):
        return None
    return array if name == "request" or is_valid_text(array) else None  # a Chat is of a column that is valid


def _in_arrow(name: str, values: list[Any], kind: pa.DataType) -> pa.Array:
    """The values in Arrow; a cell that Arrow cannot hold costs that cell, never the row."""
    form = _ARROW_FORMS.get(name)
    try:
        written = values if form is None else form(values)
        return written if isinstance(written, pa.Array) else pa.array(written, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        if len(values) == 1:
            return pa.nulls(1, kind)
        return pa.concat_arrays([_in_arrow(name, [value], kind) for value in values])


def _documents(values: list[Any]) -> pa.Array:
    """Built of flat columns: Arrow takes twice as long to make them of dicts."""
    flat = [d for v in values for d in v or ()]
    names = [field.name for field in DOCUMENT]
    columns = [pa.array(list(map(attrgetter(name), flat)), pa.string()) for name in names]
    documents = pa.StructArray.from_arrays(columns, fields=list(DOCUMENT))
    return list_array(list(map(len, [v or () for v in values])), documents, [v is None for v in values])


def _call(call: ToolCall) -> dict[str, Any]:
    tool_input = jsontext.encode({} if call.tool_input is None else call.tool_input).decode()
    return {"tool_name": call.tool_name, "tool_input": tool_input, OTHER_KEYS: call.other_keys}


def _guidelines(values: list[Any]) -> list[Any]:
    named = [{"guidelines": v} if isinstance(v, list) else v for v in values]
    return [None if v is None else list(v.items()) for v in named]


def _texts(values: list[Any]) -> list[Any]:
    return [v if v is None or isinstance(v, str) else bytes(v).decode("utf-8", "replace") for v in values]


_FORMS: tuple[tuple[Any, Callable[[list[Any]], list[Any] | pa.Array]], ...] = (
    (ChatRequest, lambda values: [None if v is None else canonical_request(v).decode() for v in values]),
    (Contexts, _documents),
    (RetrievedContext, _documents),
    (Trajectory, lambda values: [None if v is None else [_call(call) for call in v] for v in values]),
    (NamedGuidelines, _guidelines),
    (Tags, lambda values: [None if v is None else [(key, as_text(tag)) for key, tag in v.items()] for v in values]),
    (JsonObject, lambda values: [None if v is None else jsontext.encode(v).decode() for v in values]),
    (str, _texts),
)
_ARROW_FORMS = {name: form for kind, form in _FORMS for name in columns_of(kind)}
"""The conversion of the cells of a column into Arrow, where they are not Arrow values already."""
