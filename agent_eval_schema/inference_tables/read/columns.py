"""A batch of any family → the same facts about each logged call.

Facts that only pass through (time, status, who) are read a column at a time; payloads stay the bytes that they are.
Types differ between tables and between the files of one table: a status is a number or text, metadata a map or text, a
request text or an object. A column is read whatever its type.
"""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import deep_texts, is_text, is_valid_text, simplified, text_views
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.notes import Notes, line_texts, reading_problems
from agent_eval_schema.formats.inference_tables import TRACE_PARTS, find_family, locate
from agent_eval_schema.inference_tables.plan import BuildPlan, carried_column
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.moments import END_OF_TIMES, FIRST_TIME, micros_of_number, micros_of_text

Bytes = list[bytes | None]


class LoggedColumns:
    """The rows of a batch of logged calls; columns that the table lacks are absent in every row. Texts are UTF-8 bytes;
    JSON values are their JSON text. `unreadable` has the problem of a payload, `no_rows` that of a line that is not a
    row: its text then takes the place of the request. The rows of payloads that are nested too deep to read are found
    for all of a column at once."""

    def __init__(self, batch: pa.RecordBatch, plan: BuildPlan) -> None:
        self._batch, self._plan, self.family = batch, plan, find_family(plan.family)
        self.size = batch.num_rows
        self.found: Notes = {}
        self.unreadable: dict[int, str] = {}
        self.requests, self.no_rows = _with_lines(batch, self.texts("request"), plan)
        self.responses = self.texts("response")
        self.ids = self._ids()
        self.client_ids = self.texts("client_request_id")
        self.request_texts = self.texts("request_text")
        self.response_texts = self.texts("response_text")
        self.traces = self._traces()
        self.assessments = self.texts("assessments")
        self.sessions = self.texts("session_id")
        self.errors = self._errors()
        judged = ("source", "step_id", "text_assessment", "retrieval_assessment")
        self.judgments = {n: self.texts(n) for n in judged if self.family.name == "assessment_logs"}
        status, time = _statuses(self), _times(self)
        self.statuses: list[int | None] = status.to_pylist()
        self.times: list[int | None] = time.cast(pa.int64()).to_pylist()
        milliseconds = _floats(self, "latency_ms")
        self.facts = {
            "time": time,
            "day": time.cast(pa.date32()),
            "status_code": status,
            "latency_seconds": pc.coalesce(_floats(self, "latency_seconds"), pc.divide(milliseconds, 1000.0)),
            "served_entity": _served_entity(self),
            "requester": self.array("requester"),
            **{carried_column(name): pa.array(_cells(batch, name, {}), pa.string()) for name in plan.carried},
        }
        self.deep_requests, self.deep_responses = (
            frozenset(deep_texts([text or b"" for text in texts], MAX_DEPTH))
            for texts in (self.requests, self.responses)
        )

    def place(self, target: str) -> tuple[str, tuple[str, ...]] | None:
        return locate(target, self.family, self._plan.fields, self._batch.schema.names)

    def texts(self, target: str) -> Bytes:
        place = self.place(target)
        if place is None:
            return [None] * self._batch.num_rows
        problems: dict[int, str] = {}
        texts = _cells(self._batch, place[0], problems)
        if target in ("request", "response"):
            self.unreadable.update({row: f"{target}: {message}" for row, message in problems.items()})
        return [None if t is None else _inside(t, place[1]) for t in texts] if place[1] else texts

    def array(self, target: str) -> pa.Array:
        """The texts of a target as an array: the column itself, if it is one of texts."""
        column = self._whole(target)
        if column is not None and is_valid_text(column):
            return column.cast(pa.string())
        return pa.array(self.texts(target), pa.string())

    def native(self, target: str) -> pa.Array | None:
        """The column in the type that it has in Arrow, if it is a whole column of numbers or times."""
        column = self._whole(target)
        return None if column is None or is_text(column.type) else column

    def _whole(self, target: str) -> pa.Array | None:
        """The column of a target, if that is a whole column, and not of JSON texts."""
        place = self.place(target)
        at = -1 if place is None or place[1] else self._batch.schema.get_field_index(place[0])
        return None if at < 0 or is_json_column(self._batch.schema.field(at)) else simplified(self._batch.column(at))

    def _ids(self) -> Bytes:
        """The IDs of the calls; where they are absent, those of the next column that may hold them."""
        texts = self.texts("request_id")
        if "request_id" in dict(self._plan.fields) or None not in texts:
            return texts
        for name in self.family.columns.get("request_id", ()):
            if name in self._batch.schema.names:
                texts = [o if t is None else t for t, o in zip(texts, _cells(self._batch, name, {}), strict=True)]
        return texts

    def _errors(self) -> Bytes:
        """The logging error codes as JSON text, None where there are none, which is the rule."""
        array = self.native("logging_error_codes")
        is_list = array is not None and (pa.types.is_list(array.type) or pa.types.is_large_list(array.type))
        if is_list and not pc.any(pc.greater(pc.list_value_length(array), 0)).as_py():
            return [None] * self._batch.num_rows
        return [None if t in (b"[]", b"", b"null") else t for t in self.texts("logging_error_codes")]

    def _traces(self) -> Bytes:
        """The trace column; an archived view has its parts in columns."""
        if self.place("trace") is not None or not self.family.own_trace:
            return [None if t in (b"", b"null") else t for t in self.texts("trace")]
        parts = {n: _values(self._batch, n) for n in TRACE_PARTS if n in self._batch.schema.names}
        spans = parts.pop("spans", None)
        if spans is None:
            return [None] * self._batch.num_rows
        return [
            _object(info=_object(**{n: v[i] for n, v in parts.items()}), data=_object(spans=s))
            for i, s in enumerate(spans)
        ]


def _with_lines(batch: pa.RecordBatch, requests: Bytes, plan: BuildPlan) -> tuple[Bytes, dict[int, str]]:
    """The requests, with the texts of lines that are not rows; and the problems of these."""
    lines = line_texts(batch)
    if lines is None:
        return requests, {}
    problems, unreadable = reading_problems(batch), {}
    for row in np.flatnonzero(np.asarray(lines.is_valid())).tolist():
        requests[row] = lines[row].as_py().encode()
        messages = [problem.message for problem in problems.get(row, ())] if plan.values else []
        unreadable[row] = "; ".join(["the line is not a row", *messages])
    return requests, unreadable


def _object(**parts: bytes | None) -> bytes:
    """The JSON text of an object whose values are JSON texts; absent ones are omitted."""
    return b"{" + b",".join(jsontext.encode(k) + b":" + v for k, v in parts.items() if v is not None) + b"}"


def _values(batch: pa.RecordBatch, name: str) -> Bytes:
    """The cells of a column as JSON texts: text that is a JSON object or list is taken for one."""
    at = batch.schema.get_field_index(name)
    cells = read_cells(batch, name)
    assert cells is not None
    if cells.json or is_json_column(batch.schema.field(at)):
        return [None if t is None else _object_in_text(t.encode()) for t in cells.texts]
    return [
        None if t is None else t.encode() if t.startswith(jsontext.OPENING) else jsontext.encode(t) for t in cells.texts
    ]


def _object_in_text(text: bytes) -> bytes:
    inside = _unquoted(text)
    return inside if text[:1] == b'"' and inside[:1] in (b"{", b"[") else text


def _cells(batch: pa.RecordBatch, name: str, problems: dict[int, str]) -> Bytes:
    """The cells of a column as bytes: text as it is, anything else as its JSON text."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return [None] * batch.num_rows
    array = simplified(batch.column(at))
    if is_valid_text(array) and not is_json_column(batch.schema.field(at)):
        return _pieces(array)
    cells = read_cells(batch, name)
    assert cells is not None
    problems.update(cells.unreadable)
    texts: Bytes = [None if t is None else t.encode() for t in cells.texts]
    if cells.unreadable:
        raw = _pieces(array)
        for row in cells.unreadable:
            texts[row] = (raw[row] or b"").decode("utf-8", "replace").encode()
    return [None if t is None else _unquoted(t) for t in texts] if cells.json else texts


def _pieces(array: pa.Array) -> Bytes:
    return [None if v is None else bytes(v) for v in text_views(array)]


def _unquoted(text: bytes) -> bytes:
    """The content of a JSON string; other JSON texts, and null, are returned unchanged."""
    if text[:1] != b'"':
        return text
    value = jsontext.parse_leniently(text.decode("utf-8", "replace"))
    return value.encode() if isinstance(value, str) else text


def _inside(text: bytes, path: tuple[str, ...]) -> bytes | None:
    """The value at a path inside a JSON text: a text as it is, else JSON text; None if there is none."""
    value: Any = jsontext.parse_leniently(text.decode("utf-8", "replace"))
    for key in path:
        value = jsontext.structured(value)  # JSON in JSON
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else jsontext.encode(value)


# --- status, latency, who
def _statuses(columns: LoggedColumns) -> pa.Array:
    array = columns.native("status_code")
    if array is not None and array.type in _FITTING:
        return array.cast(pa.int32())
    texts = columns.texts("status_code")
    matches = [None if text is None else _WHOLE.match(text) for text in texts]
    values = [None if match is None else int(match[1]) for match in matches]
    for row, (text, match) in enumerate(zip(texts, matches, strict=True)):
        if text is not None and match is None and text.strip() not in (b"", b"null"):
            message = f"expected a status such as 200, got {describe(text.decode('utf-8', 'replace'))}"
            columns.found.setdefault(row, []).append(Finding(rules.ODD_STATUS, message, "status_code"))
    return pa.array(values, pa.int32())


_FITTING = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
"""The integers that fit into 32 bits with a sign."""

_WHOLE = re.compile(rb"\s*(\d{1,9})(\.0*)?\s*$")


def _floats(columns: LoggedColumns, target: str) -> pa.Array:
    array = columns.native(target)
    if array is not None and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        values = array.cast(pa.float64(), safe=False)
    elif array is not None and pa.types.is_duration(array.type):
        values = pc.divide(array.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.float64()), 1000.0)
    else:
        texts = columns.texts(target)
        numbers: list[float | None] = [None] * len(texts)
        for row, text in enumerate(texts):
            try:
                numbers[row] = None if text is None else float(text)
            except ValueError:
                continue
        values = pa.array(numbers, pa.float64())
    return pc.if_else(
        pc.and_(pc.is_finite(values), pc.greater_equal(values, 0.0)), values, pa.scalar(None, pa.float64())
    )


def _served_entity(columns: LoggedColumns) -> pa.Array:
    """The served entity; a legacy table has it in its metadata, which is a map or text."""
    served = columns.array("served_entity")
    if columns.place("request_metadata") is None or not served.null_count:
        return served
    texts = columns.texts("request_metadata")
    known = {text: _entity_in(text or b"") for text in {*texts}}
    return pc.coalesce(served, pa.array([known[text] for text in texts], pa.string()))


def _entity_in(metadata: bytes) -> str | None:
    """<model_name>/<model_version>, else the endpoint's name."""
    value = jsontext.parse_leniently(metadata.decode("utf-8", "replace"))
    value = value if isinstance(value, dict) else {}
    name, version, endpoint = (value.get(key) for key in ("model_name", "model_version", "endpoint_name"))
    if isinstance(name, str) and name:
        return f"{name}/{version}" if isinstance(version, str | int) and str(version) else name
    return endpoint if isinstance(endpoint, str) else None


# --- time
def _times(columns: LoggedColumns) -> pa.Array:
    """The times in microseconds UTC; a time without a zone is UTC, the unit of a number is determined by its size."""
    array = columns.native("time")
    micros = pa.timestamp("us", "UTC")
    if array is not None and (pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)):
        times = _micros_of_times(array)
        if times.null_count == array.null_count:
            return times.cast(micros)
        values: list[int | None] = times.to_pylist()
        texts: list[Any] = columns.texts("time")
    elif array is not None and pa.types.is_integer(array.type):
        texts = array.to_pylist()
        values = [None if n is None else micros_of_number(n) for n in texts]
    else:
        texts = columns.texts("time")
        values = [None if t is None else micros_of_text(t) for t in texts]
    for row, (cell, value) in enumerate(zip(texts, values, strict=True)):
        if value is None and cell not in (None, b"", b"null"):
            got = describe(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell)
            columns.found.setdefault(row, []).append(Finding(rules.ODD_TIME, f"expected a time, got {got}", "time"))
    return pa.array(values, pa.int64()).cast(micros)


def _micros_of_times(array: pa.Array) -> pa.Array:
    """Timestamps or dates in microseconds; null outside of the years 1 to 9999, which alone Python and Spark write."""
    zone, unit = (array.type.tz, array.type.unit) if pa.types.is_timestamp(array.type) else (None, "")
    try:
        times = array.cast(pa.timestamp("us", zone), safe=unit != "ns").cast(pa.int64())
    except pa.ArrowInvalid:  # 64 bits do not hold one of them
        if len(array) == 1:
            return pa.nulls(1, pa.int64())
        return pa.concat_arrays([_micros_of_times(array.slice(row, 1)) for row in range(len(array))])
    is_written = pc.and_(pc.greater_equal(times, FIRST_TIME), pc.less(times, END_OF_TIMES))
    return pc.if_else(is_written, times, pa.scalar(None, pa.int64()))
