"""What mlflow hands to a scorer, read as one of our rows.

    outputs        {"retrieved_context": [...], "predicted_trajectory": [...], ...}    our columns, if it is an object
    expectations   {"expected_retrieved_context": [...], "expected_tool_calls": [{name, arguments}], ...}
    trace          everything else, by our own derivation (traces/derive.py)

They are searched in this order, as column values take precedence over those of a trace. Values are read as cells are
(JSON text, lists, numpy arrays), so a scorer and a report agree on the content of a row.

MLflow 3.3 passes no recorded trace, only one of a run that it made itself (`predict_fn`), or one that it made of
inputs and outputs to have a trace at all. That one is ignored (`made_by_evaluate`).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any

from agent_eval_schema.cells.batch import make_batch
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.notes import IssueLog, Notes
from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.columns import SHAPES, decode_column
from agent_eval_schema.decoding.texts import decode_text
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.formats.mlflow import as_trajectory
from agent_eval_schema.io.records import encode_cells, is_absent
from agent_eval_schema.metrics.catalog import Need
from agent_eval_schema.metrics.support import need_words
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import MADE, Derived, derive
from agent_eval_schema.traces.encode import TRACED_COLUMNS
from agent_eval_schema.traces.spans import Trace


class ScoredRow:
    """One row that MLflow passes to a scorer. `read` returns a column, `lacks` the missing fields of a metric."""

    def __init__(self, inputs: Any, outputs: Any, expectations: Any, trace: Any) -> None:
        self.inputs, self.outputs, self._trace = inputs, outputs, trace
        self.given_expectations = expectations
        self._expectations = expectations if isinstance(expectations, Mapping) else {}
        self.unread: dict[str, str] = {}

    def read(self, column: str) -> Any:
        """The value of a column in its type of schema.py. None: missing or unreadable (`unread` has the reason)."""
        if (whole := _WHOLE.get(column)) is not None:
            return whole(self)
        for home in (self.outputs, self._expectations):
            value = self._decoded(column, home)
            if value is not None:  # an unreadable value may be an agent's own key, so the search continues
                return value
        if self.derived is None:
            return None
        derive_it = _DERIVED.get(column)
        if column in TRACED_COLUMNS:  # the trace of a run contains it; one made of a row contains what the row had
            tags = getattr(getattr(self._trace, "info", None), "tags", None) or {}
            origin = str(tags.get(MADE, ""))
            if origin.startswith("of a row") and column not in origin:
                return None
        return derive_it(self.derived) if derive_it else self._decoded(column, self.derived.expectations)

    def _decoded(self, column: str, home: Any) -> Any:
        """The value of an object as a cell of a column would be read, in its type; None if it cannot be read."""
        original = _value_in(home, column)
        if original is None:
            return None
        problems = Notes()
        cells = read_cells(make_batch({column: encode_cells([original], column, problems)}, {}, 1), column)
        assert cells is not None
        log = IssueLog(1)
        decode = decode_column if column in SHAPES else decode_text
        typed = FAILED if problems else decode(column, cells, log)[0]
        if typed is not FAILED:
            return typed
        self.unread[column] = problems[0][0].message if problems else "; ".join(note[3] for note in log.notes)
        return None

    @cached_property
    def derived(self) -> Derived | None:
        """The fields of the trace; None if there is no trace of a run."""
        text = self.trace_text
        trace = None if text is None else decode_trace(text)
        return derive(trace) if isinstance(trace, Trace) else None

    @property
    def trace_text(self) -> str | bytes | None:
        """The JSON text of the trace; None if there is no trace of a run."""
        if is_absent(self._trace) or made_by_evaluate(self._trace):
            return None
        if isinstance(self._trace, str):
            return self._trace
        return str(self._trace.to_json()) if hasattr(self._trace, "to_json") else jsontext.encode(self._trace)

    def expects(self, name: str) -> bool:
        """Whether there is a ground truth of that name with content."""
        homes = (self._expectations, self.derived.expectations if self.derived else None)
        return any(_has_content(_value_in(home, name)) for home in homes)

    def lacks(self, needs: Iterable[Need]) -> list[str]:
        """The needs of a metric that the row does not meet, in words."""
        return [need_words(n) for n in needs if not any(HOLDS[f](self) for f in ((n,) if isinstance(n, str) else n))]


_DERIVED: dict[str, Callable[[Derived], Any]] = {
    "predicted_trajectory": lambda d: d.predicted_trajectory or [],  # a run that was traced and shows no call made none
    **{name: attrgetter(name) for name in ("input_token_count", "output_token_count", "total_token_count")},
    **{name: attrgetter(name) for name in ("retrieved_context", "latency_seconds", "failure")},
    **{name: attrgetter(name) for name in ("error", "session_id", "request_id")},
}
"""The columns that the trace of a run fills; its expectations fill the others."""


def _request(row: ScoredRow) -> Any:
    messages = row.derived.request if row.derived and is_absent(row.inputs) else chat.read_messages(row.inputs)
    if messages is None and not is_absent(row.inputs):
        messages = chat.user_message(jsontext.encode(row.inputs).decode())
    return messages and {"messages": messages}


def _response(row: ScoredRow) -> Any:
    if is_absent(row.outputs):
        return row.derived and row.derived.response
    text, is_known = chat.read_answer(row.outputs)
    return text if is_known else jsontext.encode(row.outputs).decode()


_WHOLE: dict[str, Callable[[ScoredRow], Any]] = {
    "request": _request,
    "response": _response,
    "inputs": lambda row: row.inputs,
    "outputs": lambda row: row.outputs,
    "expectations": lambda row: row.given_expectations,
    "trace": lambda row: row.trace_text,
}
"""The columns that are a whole argument of a scorer, or are read from one."""

HOLDS: dict[str, Callable[[ScoredRow], bool]] = {
    "request": lambda row: _has_content(row.inputs) or bool(row.derived and row.derived.request),
    "response": lambda row: _has_content(row.outputs) or bool(row.derived and row.derived.response),
    "expected_response": lambda row: row.expects("expected_response"),
    "expected_facts": lambda row: row.expects("expected_facts"),
    "one_truth": lambda row: row.expects("expected_response") != row.expects("expected_facts"),
    "guidelines": lambda row: row.expects("guidelines"),
    "retriever_span": lambda row: row.derived is not None and row.derived.has_retriever_span,
    "tool_span": lambda row: row.derived is not None and row.derived.has_tool_span,
    "judged_text": lambda row: not isinstance(_first(row.outputs), int | float),
}
"""The fields of the catalog that mlflow's own scorers need, and when a row holds one."""


def _first(outputs: Any) -> Any:
    """What MLflow's scorers make text of: the first entry of a list."""
    while isinstance(outputs, list) and outputs:
        outputs = outputs[0]
    return outputs


def _value_in(home: Any, column: str) -> Any:
    """The value of an object for a column; the reference may have the name that MLflow uses."""
    if not isinstance(home, Mapping):
        return None
    value = home.get(column)
    if not is_absent(value):
        return value
    calls = home.get("expected_tool_calls") if column == "reference_trajectory" else None
    if is_absent(calls):
        return None
    calls = jsontext.parse_leniently(calls) if isinstance(calls, str) else calls
    if not isinstance(calls, Iterable) or isinstance(calls, str | Mapping):
        return calls
    return as_trajectory(calls)


def _has_content(value: Any) -> bool:
    if is_absent(value):
        return False
    if isinstance(value, str):
        return bool(value.strip())
    return len(value) > 0 if hasattr(value, "__len__") else True


def made_by_evaluate(trace: Any) -> bool:
    """Whether `mlflow.genai.evaluate` made this trace of a row that had none, to log its scores on: one span that
    repeats inputs and outputs. Nothing was run, so its latency and state have no meaning. (MLflow 3.3 to 3.17)"""
    info, data = getattr(trace, "info", None), getattr(trace, "data", None)
    spans = getattr(data, "spans", None) or []
    tagged = "mlflow.eval.requestId" in (getattr(info, "tags", None) or {})
    return tagged and len(spans) == 1 and spans[0].name == "root_span"
