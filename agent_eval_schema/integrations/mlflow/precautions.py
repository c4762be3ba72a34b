"""The inputs and settings of MLflow's evaluate with which no row of an evaluation is lost.

mlflow loses rows where a store has few connections, where a trace is not in the store that it names, and where a trial
call of the agent fails. Each function here prevents one of these losses.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from agent_eval_schema.runtime.event_loop import LoopThread
from agent_eval_schema.traces.encode import place_of, placed_nowhere

OLD = ("3.3.", "3.4.", "3.5.")
"""Releases whose result identifies a row by its request_id only. They also make a trace of their own for each row, and
pass no other to the scorers, unless they run the agent (measured: 3.3.2, 3.5.1). Scorers that read traces, such as
ours, then have no input."""

FEW_WORKERS = {"MLFLOW_GENAI_EVAL_MAX_WORKERS": "4"}
"""With mlflow's default of threads 100 rows exhaust the connections of a sqlite store, and most are lost (measured)."""

WRITTEN_AT_ONCE = {"MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false"}
"""mlflow copies each trace into the run and reads it back; with the writing left to its queue that waits for up to two
seconds a trace, one after the other (12 rows: 23 s, against 3 s)."""

NO_TRIAL = {"MLFLOW_GENAI_EVAL_SKIP_TRACE_VALIDATION": "true"}
"""MLflow calls the agent on the first row to see whether it makes traces: one call more, and if it fails no row is
scored. MLflow 3.3 does not have this setting."""


def open_run(mlflow: Any) -> AbstractContextManager[Any]:
    """The active run, or a new one; mlflow's evaluate takes the active one."""
    active = mlflow.active_run()
    new: AbstractContextManager[Any] = mlflow.start_run() if active is None else nullcontext(active)
    return new


@contextmanager
def no_row_lost(mlflow: Any, copies_traces: bool) -> Iterator[None]:
    """MLflow's settings with which no row is lost; settings of the user are not changed."""
    on_sqlite = mlflow.get_tracking_uri().startswith("sqlite")
    wanted = NO_TRIAL | (FEW_WORKERS if on_sqlite else {}) | (WRITTEN_AT_ONCE if copies_traces else {})
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        if added.keys() & WRITTEN_AT_ONCE:
            _trace_anew(mlflow)
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        if added.keys() & WRITTEN_AT_ONCE:
            _trace_anew(mlflow)


def _trace_anew(mlflow: Any) -> None:
    """Tracing reads its settings when it starts; one that the user has switched off stays so."""
    from mlflow.tracing.provider import is_tracing_enabled

    if is_tracing_enabled():
        mlflow.tracing.disable()
        mlflow.tracing.enable()


def traced(mlflow: Any, predict_fn: Callable[..., Any]) -> Callable[..., Any]:
    """The agent so that each call leaves a trace, to which scores are logged, even a call that raises an exception."""
    if getattr(predict_fn, "__mlflow_traced__", False):
        return predict_fn
    app: Callable[..., Any] = mlflow.trace(predict_fn)
    return app


def untried(mlflow: Any, app: Callable[..., Any]) -> Callable[..., Any]:
    """The agent for a release of MLflow that cannot skip its trial call: the trial runs with tracing disabled, and the
    function reports whether a span would have been made."""
    if all(hasattr(mlflow.environment_variables, name) for name in NO_TRIAL):
        return app
    from mlflow.tracing.provider import is_tracing_enabled

    no_call = mlflow.trace(lambda: None)

    @functools.wraps(app)
    def called(**inputs: Any) -> Any:
        return app(**inputs) if is_tracing_enabled() else no_call()

    return called


def as_the_store_knows(mlflow: Any, texts: list[str], tags: list[dict[str, str]], experiment: str) -> list[str]:
    """A trace that names this experiment, but comes from another store, is not there: MLflow would lose its row without
    an error. Of rows that share a trace the first is scored on it, the others on copies. A trace that will be copied
    has the tags of its row, which identify the copy (`TraceIds`)."""
    client = mlflow.MlflowClient()
    seen: set[str] = set()

    def is_there(trace_id: str) -> bool:
        try:
            return client.get_trace(trace_id, display=False) is not None
        except mlflow.exceptions.MlflowException:
            return False

    found = []
    for text, own in zip(texts, tags, strict=True):
        trace_id, place = place_of(text)
        known = place == experiment and trace_id not in seen and is_there(trace_id)
        found.append(text if known or place is None else placed_nowhere(text, own))
        seen.add(trace_id)
    return found


# ---------------------------------------------------------------------------------------------------------------------
# an async agent → a plain function, for every release of MLflow
#
#     worker threads of mlflow ──call──▶ app(**inputs) ──a coroutine──▶ one event loop, in a thread of its own
#                              ◀──────────────────────────the answer──┘
#
# mlflow 3.3 to 3.5 do not await an async app (they score the coroutine, or lose the row); 3.17 awaits each call on a
# loop of its own, which clients that the calls share do not survive ("Event loop is closed"). On one loop for all rows
# an agent runs as it does in a server, and its spans are below those of the thread that called it.
TIME_LIMIT = "MLFLOW_GENAI_EVAL_ASYNC_TIMEOUT"
"""mlflow's setting for how many seconds an async app may take for a row; 300, as there."""

SECONDS_TO_END = 1.0
"""The time that background work of an agent has to end after the evaluation, in seconds."""

App = Callable[..., Any]


@contextmanager
def awaited(app: App | None) -> Iterator[App | None]:
    """A block in which the agent is a plain function. An awaitable return value is awaited."""
    if app is None:
        yield None
        return
    loop = LoopThread("async app")
    try:
        yield _plain(app, loop)
    finally:
        loop.stop(SECONDS_TO_END)


def _plain(app: App, loop: LoopThread) -> App:
    """A function of the same name and signature, which MLflow reads; callable objects have no name."""

    @functools.wraps(app)
    def called(*arguments: Any, **inputs: Any) -> Any:
        answer = app(*arguments, **inputs)
        if not inspect.isawaitable(answer):
            return answer
        return loop.submit(_in_time(answer)).result()

    called.__name__ = getattr(app, "__name__", type(app).__name__)
    return called


async def _in_time(answer: Awaitable[Any]) -> Any:
    limit = float(os.environ.get(TIME_LIMIT) or 300)
    try:
        return await asyncio.wait_for(answer, limit)
    except asyncio.TimeoutError as error:
        raise TimeoutError(f"no answer within {limit:g} seconds ({TIME_LIMIT})") from error
