"""inputs, outputs and expectations: the source's own values, kept where the normalized columns contain less.

    inputs        {"question": "…", "k": 3}                      request is the chat, and has no k
    outputs       42 · {"answer": "…", "confidence": 0.9}        response is the text that judges read
    expectations  {"expected_response": 42}                      expected_response is text

What a row took from its trace has its original there: the inputs and outputs of the root span, and the expectations.
An original is null where it is what MLflow's form would be written from the other columns: the row contains it already.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import simplified, text_array, text_views
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.cells import json_cell, read_cells
from agent_eval_schema.decoding.columns import value_of_cell
from agent_eval_schema.decoding.requests import canonical_request, request_key
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.formats.mlflow import EXPECTATIONS, EXPECTED_COLUMNS, expectations_of
from agent_eval_schema.io.arrow import canonical_values
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import requests
from agent_eval_schema.schema import JsonValue, columns_of
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import canonical_json, without_null
from agent_eval_schema.traces.derive import Derived
from agent_eval_schema.traces.spans import json_of
from agent_eval_schema.validation.normalized_columns import FIELDS, normalized
from agent_eval_schema.validation.rows import BIT_OF, Rows

ORIGINALS = columns_of(JsonValue)


VIEWS = {"inputs": ("request",), "outputs": ("response",), "expectations": ("custom_expected", *EXPECTED_COLUMNS)}
"""Per original the columns that contain the values that are read from it."""


def taken_from_trace(derived: int) -> frozenset[str]:
    """The originals that come from the trace of a row, given the fields (a bit each) that were taken from it."""
    return frozenset(name for name, bits in _BITS.items() if derived & bits)


_BITS = {name: int(np.bitwise_or.reduce([BIT_OF[view] for view in views])) for name, views in VIEWS.items()}


def original(name: str, rows: Rows) -> pa.Array:
    """The column of originals, JSON texts; null where the other columns of the row contain all of the value."""
    read, view = _READERS[name]
    texts = read(rows)
    if texts.count(None) < len(texts):
        keys = {"messages"} if name == "inputs" else None
        texts = [text and _unless_same(text, shown, keys) for text, shown in zip(texts, view(rows), strict=True)]
    return text_array(texts)


def request_keys(rows: Rows, judged: pa.Array) -> pa.Array:
    """A key of all inputs of each row that has a ground truth (`judged`); the others cannot conflict."""
    column, inputs = rows.values["request"], _inputs(rows)
    if column.array is not None and inputs.count(None) == len(inputs):  # each question is its own key
        return pc.if_else(judged, column.array, None)
    keys = [
        None
        if not has_truth or request is None or request is FAILED
        else request_key(request)
        if own is None or _same(own, canonical_request(request))
        else canonical_json(own.decode())
        for request, has_truth, own in zip(column, judged.to_pylist(), inputs, strict=True)
    ]
    return text_array(keys)


def _unless_same(text: bytes, view: bytes | None, shown: set[str] | None) -> bytes | None:
    """A JSON text, unless it is that of the view, whose keys may be known; None for any other text too."""
    if text == view:
        return None
    if view is not None and view[:1] == text[:1] == b"{":
        keys = _keys_of(text)
        if keys and keys != (shown or _keys_of(view)):  # most often: seen without reading its values
            return text
    return None if _same(text, view) or not jsontext.is_json(text) else text


def _same(text: bytes, view: bytes | None) -> bool:
    """Whether a JSON text is that of the view; most often its very bytes, or it begins otherwise."""
    if view is None or text == view:
        return view is not None
    if _start(text) != _start(view):
        return False
    value, shown = jsontext.parse(text), jsontext.decode(view)
    if b"null" in text and isinstance(value, dict) and isinstance(shown, dict) and value.keys() == shown.keys():
        value, shown = without_null(value), without_null(shown)  # an argument that is null is one all the same
    return bool(value == shown)


def _start(text: bytes) -> bytes:
    """What JSON begins with, without blanks: a request has one key, and an answer is a string."""
    match = _START(text)
    return b"" if match is None else b"".join(match[0].split())


_START = re.compile(rb'\s*(?:\{\s*"messages"|\S)').match


def _keys_of(text: bytes) -> set[str]:
    """The keys of a JSON object; nothing for any other JSON."""
    try:
        return {*_members(text)}
    except ValueError:
        return set()


_members = jsontext.decoder(dict[str, msgspec.Raw])


# --- the values of the source
def _texts(rows: Rows, name: str) -> list[bytes | None]:
    at = rows.batch.schema.get_field_index(name)
    if at >= 0 and rows.plan.format != "mlflow" and is_json_column(rows.batch.schema.field(at)):
        views = text_views(simplified(rows.batch.column(at)))
        return [None if v is None else _of_json(bytes(v), rows.plan.can_hold_objects) for v in views]
    cells = read_cells(rows.batch, name)
    return [None] * rows.size if cells is None else [_json_text(text, cells.json, rows, name) for text in cells.texts]


def _json_text(text: str | None, is_json: bool, rows: Rows, name: str) -> bytes | None:
    """The JSON text of a cell; any text but an output of MLflow may be JSON, as in rows normalized before."""
    if text is None:
        return None
    if rows.plan.format == "mlflow":
        return _unless_null(json_cell(text, is_json, name not in ("outputs", "response")))
    if text == "null":
        return None
    if is_json:
        return _of_json(text.encode(), rows.plan.can_hold_objects)
    if text[:1] == "\ufeff" or (rows.plan.can_hold_objects and text[:1] == '"'):  # a list has such a string
        return jsontext.encode(text)
    value = value_of_cell(text, False)
    return jsontext.encode(jsontext.listed(text) if isinstance(value, jsontext.Malformed) else value)


def _of_json(text: bytes, can_hold_objects: bool) -> bytes | None:
    """The JSON text of a JSON cell; a string may be JSON text itself, unless objects can be there and it is of one."""
    if not text.startswith(b'"') or text.startswith(_MARKED) or (can_hold_objects and text.startswith(b'"\\"')):
        return None if text == b"null" else text
    value = value_of_cell(text.decode(), True)
    return text if isinstance(value, jsontext.Malformed) else jsontext.encode(value)


_MARKED = (b'"\xef\xbb\xbf', b'"\\ufeff')
"""How a string begins in JSON that begins with a byte order mark, as nothing does that was written as JSON."""


def _unless_null(text: str | None) -> bytes | None:
    return None if text is None or text == "null" else text.encode()


def _inputs(rows: Rows) -> list[bytes | None]:
    """inputs; else a request that has more keys than are read, or another form; else those of the trace's root."""
    rules = (requests.REQUEST_EXTRA_KEY, requests.REQUEST_PARAMETERS, requests.RESPONSES_REQUEST)
    return _with_those_of_traces(_cells_but_for(rows, "inputs", *rules), rows, "inputs")


def _with_those_of_traces(texts: list[bytes | None], rows: Rows, name: str) -> list[bytes | None]:
    """The texts, and those of the traces from which the view was taken."""
    for row, derived in _taken(rows, name):
        texts[row] = texts[row] or _unless_null(json_of(getattr(derived, name)))
    return texts


def _taken(rows: Rows, name: str) -> Iterator[tuple[int, Derived]]:
    """The rows where any view of the original was taken from the trace, with its values."""
    for row in np.flatnonzero(rows.filled & np.uint32(_BITS[name])).tolist():
        derived = rows.derived[row] if rows.derived is not None else None
        if derived is not None:
            yield row, derived


def _expected(rows: Rows) -> list[bytes | None]:
    """expectations without null keys, which MLflow rejects; else those that the row took from its trace."""
    texts = _texts(rows, "expectations")
    for row, text in enumerate(texts):
        if text is not None and b"null" in text and isinstance(value := jsontext.parse(text), dict):
            texts[row] = jsontext.encode(jsontext.without_null_keys(value))
    for row, derived in _taken(rows, "expectations"):
        columns = {name: EXPECTATIONS.get(name, "custom_expected") for name in derived.expectations or {}}
        own = {n: v for n, v in (derived.expectations or {}).items() if rows.filled[row] & BIT_OF[columns[n]]}
        texts[row] = texts[row] or jsontext.encode(own)
    return texts


def _cells_but_for(rows: Rows, name: str, *rules: Rule) -> list[bytes | None]:
    """The cells of a column; where there is none, those of its view that a rule reports to contain more."""
    texts, codes = _texts(rows, name), [rule.code for rule in rules]
    noted = {row for row, note in zip(rows.log.rows, rows.log.notes, strict=True) if note[0] in codes}
    (view,) = VIEWS[name]
    cells = read_cells(rows.batch, view) if noted else None
    if cells is not None:
        for row in noted:
            texts[row] = texts[row] or _json_text(cells.texts[row], cells.json, rows, view)
    return texts


def outputs_of(rows: Rows) -> list[bytes | None]:
    """outputs; else a response that is not text, else the outputs of the trace's root."""
    return _with_those_of_traces(_cells_but_for(rows, "outputs", requests.CHAT_OBJECT_RESPONSE), rows, "outputs")


# --- the values of the other columns
def _of_view(name: str, write: Callable[[Any], bytes]) -> Callable[[Rows], list[bytes | None]]:
    return lambda rows: [None if v is None or v is FAILED else write(v) for v in rows.values[name]]


def _expectations(rows: Rows) -> list[bytes | None]:
    names = [n for n in VIEWS["expectations"] if n in rows.values]
    columns = [canonical_values(normalized(n, rows), FIELDS[n]) for n in names]
    if names == ["expected_response"]:  # by far most often
        return [b"{}" if v is None else b'{"expected_response":' + jsontext.encode(v) + b"}" for v in columns[0]]
    cells = zip(*columns, strict=True) if names else [()] * rows.size
    return [jsontext.encode(expectations_of(dict(zip(names, row, strict=True)))) for row in cells]


_READERS: dict[str, tuple[Callable[[Rows], list[bytes | None]], Callable[[Rows], list[bytes | None]]]] = {
    "inputs": (_inputs, _of_view("request", canonical_request)),
    "outputs": (outputs_of, _of_view("response", jsontext.encode)),
    "expectations": (_expected, _expectations),
}
"""Per column the value of the source, and the value of the other columns."""
