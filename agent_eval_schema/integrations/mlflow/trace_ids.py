"""The request_id of each row, on the trace that mlflow makes of it: as its client_request_id, and as a tag.

    trace of a row       by     the identification of it when it is complete
    made of its outputs         the request_id that the row has for mlflow (the tag mlflow.eval.requestId)
    a copy of its own           the tag with the row's position
    of a call of the app        the id of the call, noted when it is made: by what it is called with

MLflow has no option for it for a trace that it makes itself, and omits it when it copies one (measured, 3.3 to 3.17).
So it is filled in when a trace is complete, before it is written.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd

from agent_eval_schema.integrations.mlflow.records import ID_TAG, ROW_TAG
from agent_eval_schema.text import jsontext

REQUEST_TAG = "mlflow.eval.requestId"


class TraceIds:
    """The IDs of the rows of an evaluation, by the identification of their traces in MLflow."""

    def __init__(self, frame: pd.DataFrame, request_ids: Sequence[str | None], positions: Sequence[int]) -> None:
        """`frame` is what mlflow evaluates: the rows at these positions."""
        ids = [request_ids[row] for row in positions]
        self._by_row = {str(row): id for row, id in zip(positions, ids, strict=True) if id is not None}
        pairs = zip(frame["request_id"], ids, strict=True)
        self._by_request = {str(given): id for given, id in pairs if id is not None}
        self._by_inputs: dict[bytes, str] = {}
        if self._by_row:  # rows with the same request cannot be distinguished when the agent is called
            keys = list(map(jsontext.encode, frame["inputs"]))
            times = Counter(keys)
            alone = ((key, id) for key, id in zip(keys, ids, strict=True) if times[key] == 1)
            self._by_inputs = {key: id for key, id in alone if id is not None}

    def called(self, app: Callable[..., Any]) -> Callable[..., Any]:
        """The agent, with a record of the row that each of its traces belongs to."""
        from mlflow.pyfunc.context import get_prediction_context

        @functools.wraps(app)
        def call(**inputs: Any) -> Any:
            context = get_prediction_context()
            id = self._by_inputs.get(jsontext.encode(inputs))
            if context is not None and context.request_id is not None and id is not None:
                self._by_request[context.request_id] = id
            return app(**inputs)

        return call

    @contextmanager
    def written(self) -> Iterator[None]:
        """A block in which traces get the ids of their rows."""
        from mlflow.tracing.trace_manager import InMemoryTraceManager

        complete = InMemoryTraceManager.pop_trace

        @functools.wraps(complete)
        def named(*given: Any, **options: Any) -> Any:
            found = complete(*given, **options)
            if found is not None:
                self._name(found.trace.info)
            return found

        setattr(InMemoryTraceManager, "pop_trace", named)  # noqa: B010
        try:
            yield
        finally:
            setattr(InMemoryTraceManager, "pop_trace", complete)  # noqa: B010

    def _name(self, info: Any) -> None:
        id = self._by_row.get(info.tags.get(ROW_TAG)) or self._by_request.get(info.tags.get(REQUEST_TAG))
        if id is not None:
            info.client_request_id = info.tags[ID_TAG] = id
