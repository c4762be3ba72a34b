"""One event loop in a thread of its own, for coroutines whose results plain functions wait for.

    any thread ──submit(coroutine)──▶ the loop's thread, until stop
               ◀──────Future─────────┘

Clients that the coroutines share (connections, locks) belong to one loop, so they outlive each of them. A coroutine
keeps the context of the thread that submits it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any


class LoopThread:
    """A running event loop. Its thread is a daemon, so a coroutine that hangs does not keep the process alive."""

    def __init__(self, name: str) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = Future()

        async def until_stopped() -> None:
            stop = asyncio.Event()
            started.set_result((asyncio.get_running_loop(), stop.set))
            await stop.wait()

        self._thread = threading.Thread(target=lambda: asyncio.run(until_stopped()), name=name, daemon=True)
        self._thread.start()
        self._loop, self._stop = started.result()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def stop(self, patience: float = 0.0) -> None:
        """End the loop; wait at most `patience` seconds for what still runs on it, which is canceled."""
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(patience)
