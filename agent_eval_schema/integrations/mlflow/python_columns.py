"""Judged rows → the canonical columns as lists of Python values, while they are checked.

An evaluator is handed Python objects. Most of what it reads the check has in hand as such: the messages of a request,
the text of a response. These are taken as they are if they are plain; everything else goes the way of the normalised
columns, which knows what to do with every value (a number too large, a cell that could not be read).

Of rows whose traces are handed on, what a reader of the trace finds in it is left there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.values import Values
from agent_eval_schema.io.arrow import canonical_values
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.checked_batch import FIELDS, assemble, normalized
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.rows import Rows

LEFT_TO_TRACES = frozenset(
    [
        *("trace", "retrieved_context", "predicted_trajectory", "session_id", "latency_seconds", "failure", "error"),
        *("input_token_count", "output_token_count", "total_token_count"),
    ]
)
"""The columns that an evaluator looks for in a trace only."""


class PythonColumns:
    """The columns of all rows so far, each a list with one value a row (None: absent); a column without any value is
    not there. `trace_states` says of each row's trace whether mlflow reads it as it is (None: there is no trace)."""

    def __init__(self) -> None:
        self.size = 0
        self.columns: dict[str, list[Any]] = {}
        self.trace_states: list[bool | None] = []

    def assemble(self, rows: Rows, plan: Plan) -> pa.RecordBatch:
        """The checked batch of judged rows, without their columns, which are kept here."""
        checked = assemble(rows, replace(plan, columns=False))
        taken = {name: values for name in COLUMNS if (values := _values(name, rows)) is not None}
        for name in taken.keys() | self.columns.keys():
            values = taken.get(name) or [None] * rows.size
            self.columns.setdefault(name, [None] * self.size).extend(values)
        self.trace_states.extend(rows.trace_states)
        self.size += rows.size
        return checked


def _values(name: str, rows: Rows) -> Values | None:
    """The values of a column, None if it has none."""
    if rows.beside_traces and name in LEFT_TO_TRACES:
        _leave(name, rows)
    given = rows.values.get(name)
    if given is None:
        return None
    if name in _AS_THEY_ARE and isinstance(given, list) and (plain := _AS_THEY_ARE[name](given)) is not None:
        return plain
    array = normalized(name, rows)
    values = canonical_values(array, FIELDS[name])
    return [None if v is None or v != v else v for v in values] if array.null_count < len(array) else None


def _leave(name: str, rows: Rows) -> None:
    """Keep the values of the rows without a trace only."""
    if name not in rows.values:
        return
    if name == "trace" or None not in rows.trace_states:
        del rows.values[name]
    else:
        pairs = zip(rows.column(name), rows.trace_states, strict=True)
        rows.values[name] = [v if state is None else None for v, state in pairs]


def _requests(values: Values) -> Values | None:
    """The requests as objects, if all are chats of plain messages."""
    chats = [chat.user_message(v) if v.__class__ is str else v for v in values]
    messages = [m for c in chats if isinstance(c, list) for m in c]
    if not all([c is None or isinstance(c, list) for c in chats]) or not all([chat.is_plain(m) for m in messages]):
        return None
    return [None if c is None else {"messages": [*c]} for c in chats]


def _texts(values: Values) -> Values | None:
    """The texts, if there is nothing else."""
    return values if all([v is None or v.__class__ is str for v in values]) else None


_AS_THEY_ARE: dict[str, Callable[[Values], Values | None]] = {
    "request": _requests,
    **dict.fromkeys(("response", "expected_response", "request_id", "session_id", "error"), _texts),
}
