"""An async agent → a plain function, for every release of MLflow.

    worker threads of mlflow ──call──▶ app(**inputs) ──a coroutine──▶ one event loop, in a thread of its own
                             ◀──────────────────────────the answer──┘

mlflow 3.3 to 3.5 do not await an async app (they score the coroutine, or lose the row); 3.17 awaits each call on a loop
of its own, which clients that the calls share do not survive ("Event loop is closed"). On one loop for all rows an
agent runs as it does in a server, and its spans are below those of the thread that called it.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agent_eval_schema.runtime.event_loop import LoopThread

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
