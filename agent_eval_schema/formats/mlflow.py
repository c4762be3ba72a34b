"""The MLflow 3 format of an evaluation dataset → our columns.

    inputs        {"messages": [...]}, {"query", "history"}, {"question": "..."} …   →  request
    outputs       text, or an object of any API                                      →  response
    expectations  {"expected_response": …, "expected_tool_calls": …, other: …}       →  a column each, custom_expected
    session                                                                          →  session_id
    trace, tags                                                                      as they are
    goal, persona, context, simulation_guidelines (a test case of ConversationSimulator)  →  inputs; the goal: request

What `inputs` and `outputs` look like is settled by the shapes that traces have (chat.py), since mlflow logs the same
values there. The columns that a row holds beside these are ours, or passed through. Measured with mlflow 3.3 to 3.18.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeGuard

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.cells import Cells, read_cells, row_texts
from agent_eval_schema.cells.edit import with_columns
from agent_eval_schema.cells.notes import Notes, filled_rows, reading_problems, rename_notes, with_notes
from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.columns import Shape, Typed, typed_value, value_of_cell
from agent_eval_schema.decoding.requests import match_request_keys
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.format import POSITION, Format, Nested, Row, Unfolded, Writer
from agent_eval_schema.formats.shapes import all_of, write_calls, write_statements
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Rule, Severity
from agent_eval_schema.rules import columns, expectations, requests, tools
from agent_eval_schema.rules.pages import MLFLOW_EVALUATE, MLFLOW_TRACES
from agent_eval_schema.schema import COLUMNS, NonBlank
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.describe import names as listed
from agent_eval_schema.text.jsontext import encode_text
from agent_eval_schema.text.spelling import match_names
from agent_eval_schema.traces.encode import as_mlflow_loads, made_of

# --- traces: one per row, and DataFrames of `mlflow.search_traces`
_ARTIFACT = frozenset({"spans", "request", "response"})
"""The columns of an artifact of traces (traces.json)."""


_traces = partial(
    Format,
    system="databricks",
    page=MLFLOW_TRACES,
    truth_of="A trace is one turn, and its expectations are those of this turn; a session has a trace per turn.",
    instead_of_response=(),
    writer=None,
)

TRACES = _traces(
    name="traces",
    title="MLflow traces since 2.13",
    summary="one MLflow trace a row (info, data)",
    signs=Signs(
        sure=(("info", "data"), ("spans",)),
        columns=_ARTIFACT,
        test=lambda names: {"spans", "request"}.isdisjoint(names) or {"spans"} <= set(names) <= _ARTIFACT,
    ),
    example={"info": {"trace_id": "tr-1", "state": "OK"}, "data": {"spans": []}},
    # its columns as one JSON text again
    read=lambda batch: with_columns(batch, {"trace": row_texts(batch, ("info", "data", "spans"))}, batch.schema.names),
)


# search_traces of MLflow 3, then what MLflow 2 called otherwise
_SEARCH_TRACES_SIGNS = (
    *("trace_metadata", "spans", "state", "request_time"),
    *("request_metadata", "status", "timestamp_ms"),
)
SEARCH_TRACES_COLUMNS = frozenset(_SEARCH_TRACES_SIGNS) | {
    *("trace_id", "trace", "client_request_id", "execution_duration", "execution_time_ms", "assessments"),
    *("experiment_id", "trace_location", "request_preview", "response_preview"),
}

_COPIES = frozenset({"request_id", "request", "response", "tags"})
"""The columns of search_traces that repeat the traces: the root span's inputs and outputs, IDs, mlflow's own tags."""


def _trace_signs(names: Sequence[str]) -> list[str]:
    """The columns by which a frame of search_traces is known; none of another table."""
    signs = [n for n in names if n in _SEARCH_TRACES_SIGNS]
    is_frame = "trace" in names and ("trace_id" in names or "request_id" in names) and len(signs) >= 2
    return signs if is_frame else []


def without_copies(names: Sequence[str]) -> list[int]:
    """The columns that are read: for a DataFrame of search_traces not the copies, but ground truth that was added."""
    copies = _COPIES if _trace_signs(names) else ()
    return [i for i, n in enumerate(names) if n not in copies]


def read_search_traces(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(without_copies(batch.schema.names))


SEARCH_TRACES = _traces(
    name="search_traces",
    title="`mlflow.search_traces`",
    summary="a DataFrame of mlflow.search_traces()",
    signs=Signs(
        sure=each_with("trace", "trace_id", "request_id"),
        columns=SEARCH_TRACES_COLUMNS | _COPIES,
        never=frozenset({"inputs", "outputs", "expectations"}),
        test=lambda names: bool(_trace_signs(names)),
    ),
    example={"trace_id": "tr-1", "trace": "{…}", "request": "{…}", "response": "…", "state": "OK"},
    passthrough_columns=SEARCH_TRACES_COLUMNS,
    read=read_search_traces,
)


# --- The tables that mlflow.genai.evaluate rejects as a whole, and the columns that it ignores.
#
#     inputs of the first row are not an object   the run ends before any scoring (no other row is examined)
#     request, response beside inputs, outputs  ignored; up to mlflow 3.6, which renamed the columns, the run ends
#     expected_response beside inputs           ignored: ground truth is read from `expectations` only
#
# Measured with mlflow 3.3 to 3.18. Rows that are passed to mlflow are rewritten, so that none of this remains.
WRITTEN_ANEW = frozenset(
    rule.code for rule in (expectations.BESIDE_INPUTS, requests.IGNORED_BESIDE, requests.FIRST_INPUTS)
)
"""The rules that do not apply to rows that are passed to mlflow: what they report is not in the rows as written."""


def remarks(first: Sequence[pa.RecordBatch]) -> list[Finding]:
    """The issues of the table as a whole, by its first rows."""
    if any(filled_rows(b, "trace").any() for b in first):  # which mlflow reads: search_traces has all of these columns
        return []
    findings = [
        Finding(requests.IGNORED_BESIDE, f"`{ignored}` is ignored beside `{read}`", ignored)
        for ignored, read in (("request", "inputs"), ("response", "outputs"))
        if any((filled_rows(b, ignored) & filled_rows(b, read)).any() for b in first)
    ]
    cells = read_cells(first[0].slice(0, 1), "inputs") if first else None
    text = cells.texts[0] if cells is not None else None
    if cells is not None and text is not None:
        value = value_of_cell(text, cells.json)
        if value is not None and not isinstance(value, dict | jsontext.Malformed):
            message = f"expected an object in the first row, got {describe(value)}"
            findings.append(Finding(requests.FIRST_INPUTS, message, "inputs"))
    return findings


def _notes_beside_inputs(batch: pa.RecordBatch) -> Notes:
    """The ground truth in the expected columns next to `inputs`, by row; the same key in `expectations` wins."""
    notes = Notes()
    names = [n for n in EXPECTED if n in batch.schema.names] if "inputs" in batch.schema.names else []
    own = read_cells(batch, "expectations") if names else None
    for name in names:
        cells = read_cells(batch, name)
        for row, text in enumerate(cells.texts if cells is not None else ()):
            if text is None or text == "null":
                continue
            read = own is not None and own.texts[row] is not None and f'"{name}"' in str(own.texts[row])
            message = f"`{name}` beside `inputs` is ignored{': expectations have their own' if read else ''}"
            place = ("expectations", f"expectations.{name}") if read else (name, name)
            notes.setdefault(row, []).append(Finding(expectations.BESIDE_INPUTS, message, *place))
    return notes


TOOL_CALLS = "expected_tool_calls"
EXPECTATIONS = {
    "expected_response": "expected_response",
    "expected_facts": "expected_facts",
    "guidelines": "guidelines",
    "expected_retrieved_context": "expected_retrieved_context",
    TOOL_CALLS: "reference_trajectory",
    "reference_trajectory": "reference_trajectory",
}
"""The expectations that a metric reads, and our columns for them; all others are custom_expected."""

EXPECTED = (*EXPECTATIONS, "custom_expected")
"""Columns of ground truth, which have their place in `expectations`."""

EXPECTED_COLUMNS = tuple(dict.fromkeys(EXPECTATIONS.values()))
EXPECTATION_OF = {column: name for name, column in reversed(EXPECTATIONS.items())}
"""The expectation as which a column is written: the first of its names."""

ORIGINS = {
    "request": "inputs",
    "response": "outputs",
    "session_id": "session",
    "custom_expected": "expectations",
    **{column: f"expectations.{name}" for column, name in EXPECTATION_OF.items()},
}
"""Our columns, and where a DataFrame of this format has them, which a message has to name."""


def read_mlflow(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with our columns in the place of mlflow's. In a DataFrame of search_traces, mlflow too reads inputs,
    outputs and expectations that were added to it, not its copies."""
    batch = _without_marks_of_store(read_search_traces(batch))
    are_cases = "goal" in batch.schema.names and "inputs" not in batch.schema.names
    if are_cases:
        parts = batch.select([name for name in TEST_CASE if name in batch.schema.names])
        batch = with_columns(batch, {"inputs": row_texts(parts, TEST_CASE[2:])}, TEST_CASE)
    unreadable = {(i, f.column) for i, problems in reading_problems(batch).items() for f in problems}
    notes = _notes_beside_inputs(batch)
    result: dict[str, Sequence[str | None]] = {}
    for name, column, read in (
        ("inputs", "request", partial(_request, are_cases=are_cases)),
        ("outputs", "response", _response),
    ):
        cells = read_cells(batch, name)
        if cells is not None:
            result[column] = [
                None if t is None or (i, name) in unreadable else read(t, cells.json, partial(_note, notes, i, name))
                for i, t in enumerate(cells.texts)
            ]
    expected = read_cells(batch, "expectations")
    if expected is not None:
        result |= _expectations(expected, batch.num_rows, notes)
    if "session" in batch.schema.names and "session_id" not in batch.schema.names:
        batch = batch.rename_columns(["session_id" if n == "session" else n for n in batch.schema.names])
    outputs = read_cells(batch, "outputs")
    taken = ("outputs",) if outputs is not None and not outputs.json else ()  # text is what response has
    # where a row has no such expectation, the column of that name fills it; notes are under our names, so that a cell
    # that could not be read is not taken for absent
    renamed = rename_notes(batch, {"inputs": "request", "outputs": "response"})
    return with_notes(with_columns(renamed, result, taken), notes)


def _stored_dataset(document: Row) -> Row:
    """The dataset in a document: one of `EvaluationDataset.to_dict()`, or an export of mlflow-export-import."""
    export = jsontext.structured(document.get("mlflow"))
    inner = jsontext.structured(export.get("evaluation_dataset")) if isinstance(export, dict) else document
    return inner if isinstance(inner, dict) and {"dataset_id", "records"} <= inner.keys() else {}


def _records_of(document: Row) -> Iterator[Unfolded]:
    dataset = _stored_dataset(document)
    beside = {f"dataset_{k}": v for k, v in dataset.items() if k not in ("records", "dataset_id")}
    for record in all_of(dataset.get("records")):
        yield {"inputs": None, **beside, **(record if isinstance(record, dict) else {"inputs": record})}, ()


def _without_marks_of_store(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A DataFrame of a dataset (`to_df`) without what the store adds to a record: outputs that are an empty object
    where there are none, and the tag of the user who wrote it."""
    changed: dict[str, Sequence[str | None]] = {}
    if "dataset_record_id" not in batch.schema.names:
        return batch
    outputs, tags = read_cells(batch, "outputs"), read_cells(batch, "tags")
    if outputs is not None and outputs.json and "{}" in outputs.texts:
        changed["outputs"] = [None if text == "{}" else text for text in outputs.texts]
    if tags is not None and tags.json:
        objects = [None if text is None else jsontext.parse(text) for text in tags.texts]
        changed["tags"] = [
            encode_text({k: v for k, v in value.items() if k != MLFLOW_USER}) if isinstance(value, dict) else text
            for value, text in zip(objects, tags.texts, strict=True)
        ]
    return with_columns(batch, changed, changed) if changed else batch


MLFLOW_USER = "mlflow.user"
"""The tag that MLflow gives to every record that it stores."""


TEST_CASE = ("goal", "persona", "context", "simulation_guidelines")
"""The keys of a test case of MLflow's ConversationSimulator, and the inputs of its record in a dataset."""


def is_test_case(inputs: Any) -> TypeGuard[dict[str, Any]]:
    """Whether inputs are a test case, as MLflow's datasets determine it."""
    return isinstance(inputs, dict) and "goal" in inputs and inputs.keys() <= set(TEST_CASE)


class _TestCase(Struct):
    """What a conversation can be simulated with; MLflow (3.17) ignores other keys, and fails at other types."""

    goal: NonBlank
    persona: str | None = None
    context: dict[str, Any] | None = None
    simulation_guidelines: str | list[str] | None = None


_CASE = Shape(_TestCase, requests.TEST_CASE_VALUE)
_RESERVED = ("input", "messages", "mlflow_session_id")
"""Keys of a context under which the simulator passes its own values to the agent."""


def _inspect_case(case: dict[str, Any], path: str) -> Iterator[Finding]:
    yield from _CASE.problems(case, path)
    context = case.get("context")
    for key in _RESERVED:
        if isinstance(context, dict) and key in context:
            message = f"expected a key that the simulator does not use itself, got `{key}`"
            yield Finding(requests.TEST_CASE_VALUE, message, path=f"{path}.context.{key}")


def _request(text: str, is_json: bool, note: Callable[..., None], *, are_cases: bool) -> str | None:
    """A request cell: an object with messages or query for its reader to judge; other shapes are translated."""
    value = _parsed(text, is_json)
    if are_cases or is_test_case(value):
        is_simulated = are_cases or not {"persona", "simulation_guidelines"}.isdisjoint(value)
        for issue in _inspect_case(value, "" if are_cases else "inputs") if is_simulated else ():
            note(issue.rule, issue.message, str(issue.path).removeprefix("."))
        goal = value.get("goal")
        return encode_text({"messages": chat.user_message(goal if isinstance(goal, str) and goal else text)})
    if isinstance(value, jsontext.Malformed):
        return text if is_json else encode_text(text)
    if isinstance(value, dict) and "goal" in value:
        note(requests.GOAL_BESIDE_INPUTS, f"expected a goal beside {listed(TEST_CASE[1:])} only, got {describe(value)}")
    if not isinstance(value, dict):
        note(requests.INPUTS_NOT_OBJECT, f"expected an object, got {describe(value)}")
        messages = chat.read_messages(value) if isinstance(value, list) else None
        return encode_text({"messages": messages} if messages else value)
    request = chat.read_inputs(value)
    if request is not None:
        return encode_text(request)
    meant = "".join(f"; did you mean `{right}`?" for right in match_request_keys(value, 0.85).values())
    note(requests.INPUTS_AS_JSON, f"got {describe(value)}; its JSON text is taken{meant}")
    return encode_text({"messages": chat.user_message(encode_text(value))})


def _response(text: str, is_json: bool, note: Callable[..., None]) -> str | None:
    """A response cell: the text of the answer; of an object of no known API, its JSON text."""
    if not is_json:
        return encode_text(text)
    value = jsontext.parse(text)
    if isinstance(value, jsontext.Malformed | str):  # a text is judged as one that is not JSON
        return text
    answer, _ = chat.read_answer(value)
    if answer is None and value is not None:
        note(requests.OUTPUTS_AS_JSON, f"got {describe(value)}; its JSON text is taken")
        return encode_text(encode_text(value))
    return None if answer is None else encode_text(answer)


def _expectations(cells: Cells, size: int, notes: Notes) -> dict[str, list[str | None]]:
    """Each expectation as a column of JSON texts."""
    result: dict[str, list[str | None]] = {}
    for row, text in enumerate(cells.texts):
        if text is None or (parts := value_of_cell(text, cells.json)) is None:
            continue
        note = partial(_note, notes, row, "expectations")
        if not isinstance(parts, dict):
            if isinstance(parts, jsontext.Malformed):
                parts = jsontext.parse_leniently(text) if cells.json else text
            note(
                columns.EXPECTATIONS_SHAPE, f"expected an object with a key for each expectation, got {describe(parts)}"
            )
            continue
        custom = {k: v for k, v in parts.items() if k not in EXPECTATIONS and v is not None}
        for wrong, right in match_names(custom, EXPECTATIONS, cutoff=0.85).items():
            note(expectations.MISSPELLED_EXPECTATION, f"`{wrong}` is read by no metric: did you mean `{right}`?")
        if custom:
            result.setdefault("custom_expected", [None] * size)[row] = encode_text(custom)
        for name in [n for n in EXPECTATIONS if n in parts and parts[n] is not None]:
            value = parts[name]
            if name == "expected_response" and not isinstance(value, str):
                message, path = f"got {describe(value)}; its JSON text is taken", f"expectations.{name}"
                note(expectations.EXPECTED_AS_JSON, message, path)
                value = encode_text(value)
            elif name == "guidelines" and isinstance(value, dict):
                message = f"expected a list, got {describe(value)}"
                note(expectations.NAMED_GUIDELINES, message, "expectations.guidelines")
            elif name == "guidelines" and isinstance(value, str):
                value = [value]  # mlflow takes a single one as text
            elif name == TOOL_CALLS:
                value = calls_as_ours(value)
            result.setdefault(EXPECTATIONS[name], [None] * size)[row] = jsontext.encode(value).decode()
    return result


def calls_as_ours(value: Any) -> Any:
    """MLflow's {name, arguments} as {tool_name, tool_input}; an invalid value stays, for its reader to explain."""
    _, problems = typed_calls(value, "")
    return value if problems else as_trajectory(value)


def as_trajectory(calls: Iterable[Any]) -> list[Any]:
    """MLflow's [{name, arguments}] as [{tool_name, tool_input}]; other entries stay as they are."""
    return [
        {"tool_name" if k == "name" else k: v for k, v in _with_arguments(call, "tool_input").items()}
        if isinstance(call, Mapping) and "tool_name" not in call
        else call
        for call in calls
    ]


def _with_arguments(call: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A call whose arguments, which it has under the first of several names, are called so."""
    used = next((key for key in _ARGUMENTS if key in call), None)
    return {name if k == used else k: v for k, v in call.items() if k == used or k not in _ARGUMENTS}


_ARGUMENTS = ("arguments", "args", "input_parameters")
"""The keys that scorers of MLflow read as arguments: its own, those of Ragas, of google-adk, of DeepEval."""


class _ToolCall(Struct, forbid_unknown_fields=True):
    """A tool call in mlflow's words."""

    name: NonBlank
    arguments: dict[str, Any] | None = None


def _with_parsed(call: Any) -> Any:
    """Arguments may have another name, and be JSON text, as in our columns."""
    if not isinstance(call, dict):
        return call
    call = _with_arguments(call, "arguments")
    parsed = jsontext.parse(call["arguments"]) if isinstance(call.get("arguments"), str) else None
    return {**call, "arguments": parsed} if isinstance(parsed, dict) else call


_SHAPE = Shape(
    list[_ToolCall],
    tools.TRAJECTORY_SHAPE,
    {
        ("name", "*"): tools.MISSING_TOOL_NAME,
        ("arguments", "*"): tools.TOOL_INPUT,
        ("*", "unknown"): tools.TOOL_CALL_KEY,
    },
    prepare=lambda value: list(map(_with_parsed, value)) if isinstance(value, list) else value,
)
_HINTS = {
    tools.TRAJECTORY_SHAPE.code: 'Set a list of calls: `[{"name": "...", "arguments": {...}}]`.',
    tools.MISSING_TOOL_NAME.code: "Add `name`, the name of the tool as a string.",
    tools.TOOL_INPUT.code: "Set the arguments as an object, or leave `arguments` out if there are none.",
}
"""The hints of these rules in mlflow's words."""


def typed_calls(value: Any, path: str) -> Typed:
    """The trajectory of expected_tool_calls; its problems are reported with the keys of the source."""
    is_list = isinstance(value, list)
    calls = [c for c in value if isinstance(c, Mapping) and "tool_name" not in c] if is_list else []
    arguments = (_with_arguments(call, "arguments").get("arguments") for call in calls)
    if not all(isinstance(one, Mapping | str | None) for one in arguments):  # MLflow (3.17) rejects such a call
        return FAILED, [replace(p, hint=p.hint or _HINTS.get(p.rule.code, "")) for p in _SHAPE.problems(value, path)]
    typed, problems = typed_value(OUR_CALLS, as_trajectory(value) if is_list else value, path)
    if not problems or (is_list and any(isinstance(c, Mapping) and "tool_name" in c for c in value)):
        return typed, problems
    as_mlflow = _SHAPE.problems(value, path)
    refused = [any(p.rule.severity is Severity.ERROR for p in issues) for issues in (as_mlflow, problems)]
    if not as_mlflow or refused[0] != refused[1]:  # keys of both sorts in a call
        return typed, problems
    return typed, [replace(p, hint=p.hint or _HINTS.get(p.rule.code, "")) for p in as_mlflow]


def _left_calls(value: Any, path: str) -> Typed:
    """Calls that were not converted; calls that are valid with MLflow's keys only are replaced by a placeholder."""
    typed, problems = typed_calls(value, path)
    return (typed, problems) if problems else typed_value(OUR_CALLS, value, path)


OUR_CALLS = EXPECTATIONS[TOOL_CALLS]
WORDS = {OUR_CALLS: _left_calls}
"""Our columns whose cells may have mlflow's keys."""


def _parsed(text: str, is_json: bool) -> Any:
    """A cell's value; in a column of texts only if it begins like an object or a list."""
    if is_json:
        value = jsontext.parse(text)
        return _parsed(value, False) if isinstance(value, str) else value
    return jsontext.parse(text) if jsontext.is_structured(text) else text


def _note(notes: Notes, row: int, column: str, rule: Rule, message: str, path: str | None = None) -> None:
    notes.setdefault(row, []).append(Finding(rule, message, column, path))


def whole(row: Row, name: Literal["inputs", "outputs"]) -> Any:
    """The source's own inputs or outputs of a canonical row; the request or response if these contain all of it, and
    for inputs that are not an object, which neither MLflow nor LangSmith accepts."""
    original = row.get(name)
    if original is None or (name == "inputs" and not isinstance(original, dict)):
        return row["request" if name == "inputs" else "response"]
    return original


_IN_TRACE = (
    *("retrieved_context", "predicted_trajectory", "input_token_count", "output_token_count", "total_token_count"),
    *("latency_seconds", "failure", "session_id"),
)
"""Columns that mlflow looks for in a trace only."""

MLFLOW_ROW = ("request_id", "inputs", "outputs", "expectations", "trace", "tags", "session")
"""The columns of a written row; mlflow ignores the first."""


def write_mlflow(row: Row) -> dict[str, Any]:
    """A row of inputs, outputs, expectations, tags, the originals first; what only a trace can hold is put into one."""
    expectations = expectations_of(row)
    trace = row["trace"]
    if trace is None and any([row[name] is not None for name in _IN_TRACE]):
        identity = [row.get(POSITION), {name: row[name] for name in COLUMNS}]  # the position, for equal rows
        trace = made_of(dict(row), encode_text(identity), 0)
    elif trace is not None:
        trace = as_mlflow_loads(trace)
    session = row["session_id"]
    inputs, outputs = whole(row, "inputs"), whole(row, "outputs")
    values = (row["request_id"], inputs, outputs, expectations or None, trace, row["tags"], session)
    return {name: value for name, value in zip(MLFLOW_ROW, values, strict=True) if value is not None}


def expectations_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The expectations of a canonical row, the originals first, only the keys that are there: mlflow takes a key with
    None for an expectation, which it cannot be, and ends the evaluation."""
    original = row.get("expectations")
    own = original if isinstance(original, dict) else {}
    others = row.get("custom_expected")
    merged = {n: v for n, v in {**own, **(others or {}), **own}.items() if v is not None} if own or others else {}
    stated = {EXPECTATIONS.get(name) for name in own} if own else ()
    for column in EXPECTED_COLUMNS:
        value = row[column] if column in row else None  # noqa: SIM401 (no call a column)
        if value is not None and column not in stated:
            merged[EXPECTATION_OF[column]] = _WRITTEN_AS[column](value) if column in _WRITTEN_AS else value
    if "guidelines" in merged and isinstance(merged["guidelines"], dict) and row.get("guidelines"):
        # a judge would read the names only
        merged["guidelines"] = write_statements(row["guidelines"])
    return merged


_WRITTEN_AS: dict[str, Callable[[Any], Any]] = {
    "guidelines": write_statements,  # mlflow's scorer takes a list; the names of groups have no place there
    "expected_retrieved_context": lambda documents: list(map(jsontext.without_null_keys, documents)),
    "reference_trajectory": write_calls("name", "arguments"),
}
"""Our columns whose values look different among expectations."""

_REPLACED = re.compile(
    r"\{\{\s*(?:available_tools|content|doc|ground_truth|guidelines(?:_context)?|(?:expected_)?(?:in|out)puts?|expectations"
    r"|request|response|retrieval_context|tools_called)\s*\}\}"
)
"""The variables of prompts of judges, which are filled one after the other, in values too (mlflow 3.17.2)."""

MLFLOW = Format(
    name="mlflow",
    title="MLflow 3",
    summary="what mlflow.genai.evaluate takes: inputs, outputs, expectations",
    page=MLFLOW_EVALUATE,
    signs=Signs(
        sure=(("inputs",), ("outputs",), ("expectations",), *each_with("goal", "persona", "simulation_guidelines")),
        likely=(("goal",),),
        # of a DataFrame of search_traces with columns of mlflow's too, these and the traces are read, not the copies
        columns=SEARCH_TRACES_COLUMNS.union(ORIGINS.values(), COLUMNS, TEST_CASE) - {"request", "response"},
        test=lambda names: (
            "request" not in [names[i] for i in without_copies(names)]
            and ("goal" not in names or "inputs" in names or chat.QUESTION_NAMES.isdisjoint(names))
        ),
    ),
    # the columns of the DataFrame of an EvaluationDataset in addition to its records (`to_df`)
    passthrough_columns=(
        *(f"dataset_{name}" for name in ("name", "digest", "tags", "schema", "profile", "experiment_ids")),
        *(f"dataset_{name}" for name in ("created_time", "last_update_time", "created_by", "last_updated_by")),
        *("dataset_record_id", "dataset_id", "source_type", "source_id", "source", "created_time", "create_time"),
        *("created_by", "last_update_time", "last_updated_by"),
    ),
    also_read="`EvaluationDataset.to_dict()`, `evaluation_dataset.json` of mlflow-export-import",
    read=read_mlflow,
    nested=(
        Nested(
            lambda names, head: (
                {"dataset_id", "records"} <= set(names) or ("mlflow" in names and any(map(_stored_dataset, head())))
            ),
            _records_of,
            parts=("mlflow", "records"),
            columns=("inputs",),
        ),
    ),
    places=ORIGINS,
    cell_readers=WORDS,
    remarks=remarks,
    one_kind=("recorded_session", "test case of a simulated user", "other row"),
    writer=Writer(
        write_mlflow,
        MLFLOW_ROW,
        texts=("outputs",),
        executes=dict.fromkeys(("inputs", "outputs", "expectations"), _REPLACED),
        executes_at="{{",
    ),
)
