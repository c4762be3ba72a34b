"""The cells of a batch → decoded columns, at two speeds.

Valid cells: one typed decode. A cell that fails is parsed generically and each of its problems is logged; if none of
them is an error, the cell is kept without its unknown keys. One table, `SHAPES`, has the type of the cells of each
column, and the rule for a problem at each place.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.cells import Cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.chat import read_arguments
from agent_eval_schema.decoding.diagnose import Problem, diagnose
from agent_eval_schema.decoding.values import FAILED, Values
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Rule, Severity
from agent_eval_schema.rules import columns, expectations, retrieval, tools
from agent_eval_schema.schema import (
    OTHER_KEYS,
    Contexts,
    Count,
    Document,
    Facts,
    Guidelines,
    JsonObject,
    NamedGuidelines,
    RetrievedContext,
    Tags,
    ToolCall,
    Trajectory,
    columns_of,
)
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import explain_malformed


class Shape(Struct, frozen=True):
    """The type and the rules of the cells of a column.

    `rules` maps (the last name in a problem's path, its kind) to the rule that it breaks; "*" matches any. `keep`
    makes the value of a cell whose only problems are warnings; `prepare` reads other notations of a valid value;
    `explain` may improve the message of a problem from the value.
    """

    type: Any
    otherwise: Rule
    rules: dict[tuple[str, str], Rule] = {}
    keep: Callable[[Any], Any] | None = None
    prepare: Callable[[Any], Any] | None = None
    explain: Callable[[Any, Problem], Problem] | None = None

    def rule(self, field: str, kind: str) -> Rule:
        for key in ((field, kind), (field, "*"), ("*", kind)):
            if key in self.rules:
                return self.rules[key]
        return self.otherwise

    def problems(self, value: Any, path: str) -> list[Finding]:
        """The problems of a value, at places below `path`, and their rules."""
        value = self.prepare(value) if self.prepare else value
        problems = diagnose(self.type, value, path)
        problems = [self.explain(value, problem) for problem in problems] if self.explain else problems
        return [Finding(self.rule(p.field, p.kind), p.message, path=p.path, hint=p.hint) for p in problems]


Typed = tuple[Any, list[Finding]]
"""A typed value or FAILED, and the problems of the original."""

_Reader = Callable[[Any, str], Typed]
"""The typed value of an invalid cell, and its problems, below a path."""


def other_keys(entry: dict[str, Any], *known: str) -> str | None:
    """The JSON text of an entry's unknown keys, or None if there are none."""
    others = {k: v for k, v in entry.items() if k not in (*known, OTHER_KEYS)}
    return jsontext.encode(others).decode() if others else entry.get(OTHER_KEYS)


def _with_object(call: Any) -> Any:
    """The call with its input as an object: of JSON text, as in the canonical Arrow form, or of a lone argument. What
    begins like an object and is none stays as it is, and is reported."""
    tool_input = call.get("tool_input") if isinstance(call, dict) else None
    if tool_input is None or isinstance(tool_input, dict):
        return call
    if isinstance(tool_input, str) and tool_input.lstrip().startswith("{"):
        parsed = jsontext.parse(tool_input)
        return {**call, "tool_input": parsed} if isinstance(parsed, dict) else call
    return {**call, "tool_input": read_arguments(tool_input) or {}}


def whole_number(value: Any) -> Any:
    """A count in a float column, which is what pandas makes of a column with gaps."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_bool(value: Any) -> Any:
    """True and False as pandas and spreadsheets write them."""
    words = {"true": True, "false": False}
    return words.get(value.strip().lower(), value) if isinstance(value, str) else value


def _uri_in_metadata(value: Any, problem: Problem) -> Problem:
    """A document of LangChain or mlflow has its uri in its metadata; its `id` is another thing."""
    place = _DOCUMENT_AT.search(problem.path) if (problem.field, problem.kind) == ("doc_uri", "missing") else None
    metadata = value[int(place[1])].get("metadata") if place else None
    texts = {k for k, v in metadata.items() if isinstance(v, str)} if isinstance(metadata, dict) else ()
    key = next((k for k in _KEYS_OF_URI if k in texts), None)
    if place is None or key is None:
        return problem
    message = f"`doc_uri` is missing, but metadata has `{key}`"
    hint = f"Set `doc_uri` to `metadata.{key}`; `--fix` does, where only one of its keys can be the URI."
    return Problem(problem.path[: place.end()], problem.field, problem.kind, message, hint)


_DOCUMENT_AT = re.compile(r"\[(\d+)\]")
_KEYS_OF_URI = ("doc_uri", "source", "url", "uri", "path", "document_id", "doc_id")

_CONTEXT = Shape(
    Contexts,
    retrieval.CONTEXT_SHAPE,
    {
        ("[]", "*"): retrieval.DOCUMENT_SHAPE,
        ("doc_uri", "missing"): retrieval.MISSING_DOC_URI,
        ("doc_uri", "*"): retrieval.DOC_URI_VALUE,
        ("content", "*"): retrieval.DOCUMENT_CONTENT,
        ("*", "unknown"): retrieval.DOCUMENT_KEY,
    },
    keep=lambda value: [Document(d["doc_uri"], d.get("content"), other_keys(d, "doc_uri", "content")) for d in value],
    explain=_uri_in_metadata,
)
_TRAJECTORY = Shape(
    Trajectory,
    tools.TRAJECTORY_SHAPE,
    {
        ("tool_name", "*"): tools.MISSING_TOOL_NAME,
        ("tool_input", "*"): tools.TOOL_INPUT,
        ("*", "unknown"): tools.TOOL_CALL_KEY,
    },
    keep=lambda value: [
        ToolCall(c["tool_name"], c.get("tool_input"), other_keys(c, "tool_name", "tool_input")) for c in value
    ],
    prepare=lambda value: list(map(_with_object, value)) if isinstance(value, list) else value,
)

_SHAPES = (
    (Facts, Shape(Facts, expectations.EXPECTED_FACTS_SHAPE)),
    (NamedGuidelines, Shape(Guidelines, expectations.GUIDELINES_SHAPE)),
    (Contexts, _CONTEXT),
    (RetrievedContext, _CONTEXT),
    (Trajectory, _TRAJECTORY),
    (JsonObject, Shape(JsonObject, expectations.CUSTOM_EXPECTED_SHAPE)),
    (Tags, Shape(dict[str, str | int | float | bool | None], columns.CELL_TYPE)),
    (Count, Shape(Count, columns.CELL_TYPE, prepare=whole_number)),
    (float, Shape(float, columns.CELL_TYPE)),
    (bool, Shape(bool, columns.CELL_TYPE, prepare=_as_bool)),
)
SHAPES: dict[str, Shape] = {name: shape for kind, shape in _SHAPES for name in columns_of(kind)}
"""The columns whose cells are JSON values of one type; request, response, trace and text have their own readers."""

_COUNTS = columns_of(Count)

_DECODERS: dict[str, Callable[[Any], Any]] = {n: msgspec.json.Decoder(s.type).decode for n, s in SHAPES.items()}
_GUARDED: dict[str, Callable[[Any], Any]] = {n: jsontext.decoder(s.type) for n, s in SHAPES.items()}
"""The decoders of a column with a cell that is nested too deep: they reject it."""


def native_values(name: str, array: pa.Array) -> Values | None:
    """The values of a column of the required type without issues, else None; over JSON text is ten times as slow."""
    if array.null_count == len(array):
        fits = name in SHAPES
    elif name in _COUNTS and pa.types.is_int64(array.type):
        fits = pc.min(array).as_py() >= 0
    elif name == "latency_seconds" and pa.types.is_float64(array.type):
        fits = pc.all(pc.is_finite(array)).as_py() is not False
    else:
        fits = name == "failure" and pa.types.is_boolean(array.type)
    return array.to_pylist() if fits else None


def decode_column(name: str, cells: Cells, log: IssueLog, read: _Reader | None = None) -> Values:
    """The values of a column of SHAPES, one per row: None where absent, FAILED where unreadable. `read` reads
    an invalid cell where a format has other keys for the content of the column."""
    read = read or partial(typed_value, name)
    decode = (_GUARDED if cells.deep else _DECODERS)[name]
    try:
        return [None if text is None else decode(text) for text in cells.texts]
    except msgspec.MsgspecError:
        pass  # at least one cell is invalid
    values: Values = []
    for row, text in enumerate(cells.texts):
        try:
            values.append(None if text is None else decode(text))
        except msgspec.MsgspecError:
            values.append(_read_invalid(name, text or "", cells, row, log, read))
    return values


def _read_invalid(name: str, text: str, cells: Cells, row: int, log: IssueLog, read: _Reader) -> Any:
    """The value of a cell that the typed decode rejects, after each of its problems was logged; or FAILED."""
    value = value_of_cell(text, cells.json)
    if isinstance(value, jsontext.Malformed):
        log.add_finding(row, explain_malformed(value, text), name)
        if (value := jsontext.python_list(text)) is None:
            return FAILED
    typed, problems = read(value, name)
    for problem in problems:
        log.add_finding(row, problem, name)
    return typed


def typed_value(name: str, value: Any, path: str) -> Typed:
    """A value in the type of a column of SHAPES, or FAILED; and its problems, at places below `path`."""
    shape = SHAPES[name]
    value = shape.prepare(value) if shape.prepare else value
    with suppress(msgspec.ValidationError):
        return msgspec.convert(value, shape.type), []
    problems = shape.problems(value, path)
    if any(problem.rule.severity is Severity.ERROR for problem in problems):
        return FAILED, problems
    return (shape.keep(value) if shape.keep else FAILED), problems


def documents_of_trace(value: Any, path: str) -> Typed:
    """As `typed_value` of a retrieved_context, but a doc_uri may be null: canonical rows contain documents of a
    retriever without one, as in their trace (`validation/fill_from_traces.py` verifies that)."""
    typed, problems = typed_value("retrieved_context", value, path)
    if typed is not FAILED or not isinstance(value, list):
        return typed, problems
    without = [isinstance(d, dict) and d.get("doc_uri", "") is None for d in value]
    named = [{**d, "doc_uri": "?"} if is_open else d for d, is_open in zip(value, without, strict=True)]
    documents, others = typed_value("retrieved_context", named, path)
    if documents is FAILED:
        return typed, problems
    pairs = zip(documents, without, strict=True)
    return [replace(d, doc_uri=None) if is_open else d for d, is_open in pairs], others


def value_of_cell(text: str, is_json: bool) -> Any:
    """The content of a cell of a JSON-valued column: text that does not look like a JSON container is taken as text."""
    if is_json:
        value = jsontext.parse(text)
        return value_of_cell(value, False) if isinstance(value, str) else value
    if jsontext.is_structured(text):
        return jsontext.parse(text)
    value = jsontext.parse(text)
    return text if isinstance(value, jsontext.Malformed) else value
