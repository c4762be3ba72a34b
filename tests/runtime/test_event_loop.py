"""One event loop for coroutines of any thread."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

from agent_eval_schema.runtime.event_loop import LoopThread

PLACE: ContextVar[str] = ContextVar("place", default="nowhere")


async def where() -> tuple[int, str]:
    return threading.get_ident(), PLACE.get()


def test_all_coroutines_run_on_one_thread_in_the_context_of_their_caller() -> None:
    loop = LoopThread("test")
    PLACE.set("here")
    found = [loop.submit(where()).result(5) for _ in range(3)]
    loop.stop(5)
    assert found == [(found[0][0], "here")] * 3
    assert found[0][0] != threading.get_ident()


def test_what_still_runs_at_the_end_is_cancelled() -> None:
    loop, cancelled = LoopThread("test"), threading.Event()

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def begins() -> None:
        asyncio.get_running_loop().create_task(waits())
        await asyncio.sleep(0)

    loop.submit(begins()).result(5)
    loop.stop(5)
    assert cancelled.is_set()
