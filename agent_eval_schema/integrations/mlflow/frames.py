"""The frame that each evaluator takes, made of canonical columns.

    mlflow.genai       inputs (what predict_fn takes), outputs, expectations, trace, tags        mlflow.genai.evaluate
    databricks-agent   the canonical columns that have a value                                   mlflow.evaluate
    mlflow.evaluate    inputs, predictions, targets as texts; what our metrics read              mlflow.models.evaluate
    vertex             prompt, reference, response, reference_trajectory, predicted_trajectory   EvalTask

No cell makes an evaluator raise an exception: every cell is plain Python (no numpy, no NaN), every object is an object,
expectations hold only the keys that are there, traces are what mlflow reads. Needs no mlflow.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.databricks import GUIDELINES_CONTEXT, write_databricks
from agent_eval_schema.formats.mlflow import EXPECTED_COLUMNS, TEST_CASE, expectations_of, is_test_case
from agent_eval_schema.io.arrow import canonical_values
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt_names, first_names
from agent_eval_schema.traces.encode import TRACED_COLUMNS, made_of, rewritten, with_session
from agent_eval_schema.validation.checked_batch import rows_of, verdict
from agent_eval_schema.validation.normalized_columns import FIELDS
from agent_eval_schema.validation.plan import OnInvalid

Evaluator = Literal["mlflow.genai", "databricks-agent", "mlflow.evaluate", "vertex"]
Inputs = Literal["auto", "messages", "query", "question"]

EVALUATORS: tuple[Evaluator, ...] = ("mlflow.genai", "databricks-agent", "mlflow.evaluate", "vertex")

Columns = dict[str, Any]
"""A list of values per column; but a Series where a column of the input is passed through."""

TRACE_STATE = "__trace__"
"""The column with the state of each row's trace: whether MLflow reads it as it is (None: there is no trace)."""


def _for_genai(columns: Columns, outputs: str, inputs: Inputs) -> pd.DataFrame:
    requests = cells_of(columns, "request")
    shaped = [INPUTS[inputs](r) if messages_of(r) else None for r in requests]
    if inputs == "auto":
        shaped = [i if isinstance(i, dict) else s for i, s in zip(cells_of(columns, "inputs"), shaped, strict=True)]
    frame: Columns = {"inputs": shaped}
    if outputs == "provided":
        pairs = zip(cells_of(columns, "outputs"), cells_of(columns, "response"), strict=True)
        frame["outputs"] = [response if own is None else own for own, response in pairs]
    cases = [case for case in shaped if inputs == "auto" and outputs == "generated" and is_test_case(case)]
    if len(cases) == len(shaped):  # which MLflow's simulator reads as its test cases
        frame = {n: [case.get(n) for case in cases] for n in TEST_CASE if any(n in case for case in cases)}
    names = [n for n in ("expectations", "custom_expected", *EXPECTED_COLUMNS) if n in columns]
    sources = ({n: columns[n][row] for n in names} for row in range(len(requests) if names else 0))
    expectations = list(map(expectations_of, sources))
    if any(expectations):
        frame["expectations"] = expectations
    if "inputs" not in frame:
        return _frame(frame)
    if outputs == "provided" and any(name in columns for name in _NEED_TRACE):
        are_as_given = all(columns[TRACE_STATE]) and "session_id" not in columns
        frame["trace"] = columns["trace"] if are_as_given else list(_traces(columns))
    if "tags" in columns:
        frame["tags"] = [{k: t for k, t in (v or {}).items() if t is not None} for v in columns["tags"]]
    if "request_id" in columns and None not in columns["request_id"]:
        frame["request_id"] = columns["request_id"]
    return _frame(frame)


def read_by_frames(checked: pa.RecordBatch) -> pa.RecordBatch:
    """What the frames are made of, of checked rows."""
    names = [*COLUMNS, *{GUIDELINES_CONTEXT}.intersection(checked.schema.names)]
    return rows_of(checked).select(names).append_column(TRACE_STATE, verdict(checked, "mlflow_reads"))


def columns_of(rows: pa.Table) -> Columns:
    """The rows as Python values; a canonical column without any value is not there."""
    columns: Columns = {TRACE_STATE: rows.column(TRACE_STATE).to_pylist()}
    for name in COLUMNS:
        if rows.column(name).null_count < len(rows):
            columns[name] = canonical_values(rows.column(name), FIELDS[name])
            if pa.types.is_floating(FIELDS[name].type):  # NaN is absent, too
                columns[name] = [None if v != v else v for v in columns[name]]
    if GUIDELINES_CONTEXT in rows.schema.names:
        columns[GUIDELINES_CONTEXT] = list(map(jsontext.structured, rows.column(GUIDELINES_CONTEXT).to_pylist()))
    return columns


def cells_of(columns: Columns, name: str) -> list[Any]:
    """The cells of a column; a canonical column without any value is not there."""
    cells: list[Any] = columns.get(name) or [None] * len(columns[TRACE_STATE])
    return cells


def messages_of(request: dict[str, Any] | None) -> Any:
    """The messages; of an invalid row that is kept there may be none."""
    return request and request.get("messages")


def _last_text(request: dict[str, Any]) -> str:
    """The text of the last message, of any role, since an agent is called with the message to answer."""
    text: str = chat.join_text(request["messages"][-1].get("content"))
    return text


def last_texts(columns: Columns) -> list[str | None]:
    return [_last_text(r) if messages_of(r) else None for r in cells_of(columns, "request")]


INPUTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "auto": lambda request: request,
    "messages": lambda request: request,
    "query": lambda request: {"query": _last_text(request), "history": request["messages"][:-1]},
    "question": lambda request: {"question": _last_text(request)},
}

_NEED_TRACE = ("trace", "session_id", *TRACED_COLUMNS)
"""Columns that scorers read from a trace only."""


def _traces(columns: Columns) -> Iterator[str]:
    """A trace for every row, as MLflow reads it: all have one, or evaluate raises an exception."""
    start = time.time_ns()
    cells = zip(cells_of(columns, "trace"), columns[TRACE_STATE], cells_of(columns, "session_id"), strict=True)
    for row, (text, plain, session) in enumerate(cells):
        trace = text if text is None or plain else rewritten(text)
        if trace is not None and session:
            trace = with_session(trace, session)
        yield trace or made_of({n: v[row] for n, v in columns.items()}, f"row {row} of {start}", start + row)


# --- the others
_AGENT_COLUMNS = (
    *("request_id", "request", "response", "expected_response", "expected_facts", "guidelines"),
    *("expected_retrieved_context", "retrieved_context", "trace", "custom_expected", GUIDELINES_CONTEXT),
)
_OUTPUTS = ("response", "retrieved_context", "trace")


def _for_databricks_agent(columns: Columns, outputs: str, _: Inputs) -> pd.DataFrame:
    """The documented input columns, those that have a value; the outputs that the agent will produce are omitted."""
    names = [n for n in _AGENT_COLUMNS if n in columns and not (outputs == "generated" and n in _OUTPUTS)]
    rows = [write_databricks(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    return _frame({n: [row.get(n) for row in rows] for n in names})


_MEASURED = (
    *("retrieved_context", "expected_retrieved_context", "predicted_trajectory", "reference_trajectory"),
    *("input_token_count", "output_token_count", "total_token_count", "latency_seconds", "failure"),
)
"""The columns that our metrics read (metrics.py)."""


def _for_mlflow_evaluate(columns: Columns, outputs: str, _: Inputs) -> pd.DataFrame:
    """Texts for mlflow's own metrics; targets only if every row has one, as these compare all rows."""
    frame: Columns = {"inputs": last_texts(columns)}
    if outputs == "provided":
        frame["predictions"] = ["" if v is None else v for v in columns.get("response", [None] * len(frame["inputs"]))]
    if None not in columns.get("expected_response", [None]):
        frame["targets"] = columns["expected_response"]
    frame.update({n: columns[n] for n in _MEASURED if n in columns})
    return _frame(frame)


def _for_vertex(columns: Columns, outputs: str, _: Inputs) -> pd.DataFrame:
    generated = ("response", "predicted_trajectory") if outputs == "generated" else ()
    names = ("response", "expected_response", "reference_trajectory", "predicted_trajectory")
    cells = {n: columns[n] for n in names if n in columns and n not in generated}
    renamed = {"reference" if n == "expected_response" else n: values for n, values in cells.items()}
    return _frame({"prompt": last_texts(columns), **renamed})


FRAMES: dict[str, Callable[[Columns, str, Inputs], pd.DataFrame]] = {
    "mlflow.genai": _for_genai,
    "databricks-agent": _for_databricks_agent,
    "mlflow.evaluate": _for_mlflow_evaluate,
    "vertex": _for_vertex,
}


def _frame(columns: Columns) -> pd.DataFrame:
    """Objects as they are: pandas must not turn None into NaN, or texts into its own kind."""
    # numpy looks into each object of a list, but not of an iterator
    lists = {n: np.fromiter(v, object, len(v)) for n, v in columns.items() if not isinstance(v, pd.Series)}
    objects = {n: pd.Series(v, dtype="object") for n, v in lists.items()}
    return pd.DataFrame({**columns, **objects})


# --- What a prepared frame omits: invalid rows, and parts of requests.
class Omitted(NamedTuple):
    """Rows whose inputs omit a part: their number, the positions of the first, and the omitted keys."""

    number: int
    positions: list[int]
    keys: Collection[str] = ()


def omitted(columns: Columns, rows: list[int]) -> tuple[list[int], dict[int, list[str]]]:
    """The rows with more than one text of the user, and those with other arguments, with their keys."""
    chats, others = [], dict[int, list[str]]()
    for request, own, row in zip(cells_of(columns, "request"), cells_of(columns, "inputs"), rows, strict=True):
        if not (messages := messages_of(request)):
            continue
        content = messages[0].get("content")
        parts = content if isinstance(content, list) else []
        one_text = len(messages) == 1 and messages[0]["role"] == "user" and all(p.get("type") == "text" for p in parts)
        if not one_text:
            chats.append(row)
        keys = [key for key in own if key not in _OF_REQUESTS] if isinstance(own, dict) and len(own) > 1 else []
        question = (keys and chat.lone_question(messages)) or ""
        if keys and (question[:1] != "{" or question != jsontext.encode(own).decode()):  # else it is the text of all
            others[row] = keys
    return chats, others


def omits(evaluator: Evaluator, inputs: Inputs) -> tuple[bool, bool]:
    """Whether these inputs omit messages of a chat, and other arguments."""
    is_genai = evaluator == "mlflow.genai"
    every = evaluator not in ("mlflow.genai", "databricks-agent")
    return every or (is_genai and inputs == "question"), every or (is_genai and inputs != "auto")


def reduced(chats: Omitted, others: Omitted, total: int, evaluator: Evaluator, inputs: Inputs) -> str:
    """The parts of requests that the inputs omit, and the options that keep them; "" if nothing is omitted."""
    is_genai = evaluator == "mlflow.genai"
    form = f'inputs="{inputs}"' if is_genai else f'evaluator="{evaluator}"'

    def where(rows: Omitted) -> str:
        return f"{rows.number:,} of {total:,} rows (at the positions {first_names(rows.positions, 10)})"

    texts = []
    if chats.number and omits(evaluator, inputs)[0]:
        instead = 'inputs="messages"' if is_genai else 'evaluator="mlflow.genai"'
        texts.append(f"{form} keeps only the last message of {where(chats)}: {instead} keeps all of them")
    if others.number and omits(evaluator, inputs)[1]:
        instead = 'inputs="auto"' if is_genai else 'evaluator="mlflow.genai"'
        names = excerpt_names(others.keys)
        texts.append(f"{form} omits other arguments ({names}) of {where(others)}: {instead} keeps them")
    return "; ".join(texts)


_OF_REQUESTS = frozenset(["messages", "query", "history", *chat.LONE_TEXT_KEYS])


def of_two_kinds(cases: int, total: int, positions: Sequence[int]) -> str:
    """The text of a warning of test cases beside other rows, "" if the rows are of one kind; `positions` are those of
    the first test cases."""
    if cases in (0, total):
        return ""
    counts = f"{plural(cases, 'test case')} of a simulated user beside {plural(total - cases, 'other row')}"
    why = "a dataset of MLflow rejects both together, and an agent is called with the keys of each: prepare them apart"
    return f"{counts} (test cases at the positions {first_names(positions, 10)}): {why}"


def excluded(invalid: int, total: int, on_invalid: OnInvalid, where: str) -> str:
    """The text of a warning of invalid rows."""
    what = "kept as far as they could be read" if on_invalid == "keep" else "excluded"
    return f"{invalid:,} of {total:,} rows are invalid and {what}{where}"
