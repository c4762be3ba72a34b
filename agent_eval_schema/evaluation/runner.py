"""Calls an agent on many inputs: several at a time, each within its time, and one that fails costs its own row only.

    inputs ──▶ slot 1: a thread, or a task of the event loop ──▶ CallOutcome (value or error, seconds, trace)
               slot 2 …                                            in the order in which they end

A thread cannot be killed. A call that does not come back in its time is given up: its row fails, its thread is left
behind, and a new one takes over. The threads are daemons, so the process can still end. When LEFT_BEHIND of them hang
at once, the agent is taken to be dead, and the rows that are left fail without a call. A coroutine is canceled; one
that does not let itself be canceled is left behind, and one that blocks the event loop takes the calls in flight with
it.
"""

import asyncio
import contextvars
import inspect
import math
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Union

from msgspec import Struct

from agent_eval_schema.runtime.event_loop import LoopThread
from agent_eval_schema.text.visible import visible

LEFT_BEHIND = 32
"""The number of calls that may hang at once before the other rows are given up."""

GRACE = 1.0
"""Seconds beyond its time in which a coroutine has to be canceled."""

LONGEST_ERROR = 2_000
"""Characters of an error that are kept."""


class CallOutcome(Struct):
    """The outcome of a call: its value or the text of its error, the seconds that it took, its MLflow trace."""

    row: int
    value: Any = None
    error: str | None = None
    seconds: float | None = None
    trace_id: str | None = None


Call = Callable[[Any], Any]
Slot = Union["_ThreadSlot", "_LoopSlot"]
"""Makes one call at a time. `overtime` is how much longer than its time a call may take."""
Inbox = queue.SimpleQueue[tuple[Slot, CallOutcome]]


def run_all(
    call: Call, inputs: Iterable[tuple[int, Any] | None], *, max_workers: int = 4, timeout: float | None = None
) -> Iterator[CallOutcome]:
    """Call on every (row, input); the outcomes come as they end. `timeout` is in seconds, for each call by itself. An
    input of None means that none is available before one of the calls has ended.

    A coroutine function runs in one event loop, anything else in threads.
    """
    inbox: Inbox = queue.SimpleQueue()
    is_async = any(map(inspect.iscoroutinefunction, (call, getattr(call, "__call__", None))))  # noqa: B004
    make = _loop_slots(call, inbox, timeout) if is_async else lambda: _ThreadSlot(call, inbox)
    coming = iter(inputs)
    idle: list[Slot] = []
    running: dict[Slot, tuple[int, float]] = {}  # the row of each, and when it is overdue
    hanging: set[Slot] = set()
    try:
        while True:
            while len(running) < max_workers and len(hanging) < LEFT_BEHIND:
                job = next(coming, None)
                if job is None:
                    break
                slot = idle.pop() if idle else make()
                running[slot] = (job[0], math.inf if timeout is None else time.monotonic() + timeout + slot.overtime)
                slot.start(*job)
            if not running:
                break
            try:
                first = min(until for _, until in running.values())  # the call that is overdue first
                patience = None if first == math.inf else max(first - time.monotonic(), 0.001)
                slot, outcome = inbox.get(timeout=patience)
            except queue.Empty:
                now = time.monotonic()
                for slot, row in [(slot, row) for slot, (row, until) in running.items() if now >= until]:
                    del running[slot]
                    hanging.add(slot)
                    slot.stop()
                    yield CallOutcome(row, error=f"no answer within {timeout:g} s: the call was left behind")
                continue
            if slot in running:
                del running[slot]
                idle.append(slot)
                yield outcome
            else:  # it came back after all, too late for its row
                hanging.discard(slot)
        for row, _ in filter(None, coming):
            yield CallOutcome(row, error=f"not called: {len(hanging)} calls before it hang")
    finally:
        for slot in (*idle, *running):
            slot.stop()


# --- threads
class _ThreadSlot:
    overtime = 0.0

    def __init__(self, call: Call, inbox: Inbox) -> None:
        self._call, self._inbox = call, inbox
        self._jobs: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="agent-eval-schema").start()

    def start(self, row: int, inputs: Any) -> None:
        self._jobs.put((row, inputs))

    def stop(self) -> None:
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            # A context of its own, so that a call finds no span of another one open.
            self._inbox.put((self, contextvars.Context().run(_called, self._call, *job)))


def _called(call: Call, row: int, inputs: Any) -> CallOutcome:
    start = time.perf_counter()
    try:
        value = call(inputs)
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except BaseException as error:  # an agent may call sys.exit
        return CallOutcome(row, error=error_line(error), trace_id=_last_trace())
    return CallOutcome(row, value, seconds=time.perf_counter() - start, trace_id=_last_trace())


async def _awaited(value: Any) -> Any:
    return await value


def error_line(error: BaseException) -> str:
    """The error in one line, also of an exception whose `str` raises or exits: a row without an outcome would be waited
    for without an end."""
    name = type.__getattribute__(type(error), "__name__")
    try:
        text = str(error)[:LONGEST_ERROR]
    except BaseException:
        text = ""
    return visible(f"{name}: {text}" if text else name)[:LONGEST_ERROR]


def _last_trace() -> str | None:
    """The id of the mlflow trace that ended last in this context, if mlflow is in use."""
    ask = getattr(sys.modules.get("mlflow"), "get_last_active_trace_id", None)
    try:
        trace_id: str | None = ask(thread_local=True) if ask is not None else None
    except Exception:  # MLflow before 3 has no such option
        return None
    return trace_id


# --- coroutines
def _loop_slots(call: Call, inbox: Inbox, timeout: float | None) -> Callable[[], Slot]:
    """Slots of one event loop; of a new one when a slot of the last one had to be left behind."""
    loops: list[_Loop] = []

    def make() -> Slot:
        if not loops or loops[-1].blocked:
            loops.append(_Loop("agent-eval-schema-loop"))
        return _LoopSlot(call, inbox, timeout, loops[-1])

    return make


class _Loop(LoopThread):
    """The event loop of some slots; it ends with the last of them, and never if a call blocks it."""

    blocked = False
    slots = 0

    def leave(self) -> None:
        self.slots -= 1
        if not self.slots and not self.blocked:
            self.stop()


class _LoopSlot:
    overtime = GRACE

    def __init__(self, call: Call, inbox: Inbox, timeout: float | None, home: _Loop) -> None:
        self._call, self._inbox, self._timeout, self._home = call, inbox, timeout, home
        self._busy = False
        home.slots += 1

    def start(self, row: int, inputs: Any) -> None:
        self._busy = True
        self._home.submit(self._one(row, inputs))

    def stop(self) -> None:
        self._home.blocked |= self._busy
        self._home.leave()

    async def _one(self, row: int, inputs: Any) -> None:
        outcome = await self._outcome(row, inputs)
        self._busy = False
        self._inbox.put((self, outcome))

    async def _outcome(self, row: int, inputs: Any) -> CallOutcome:
        start = time.perf_counter()

        async def traced() -> CallOutcome:
            try:
                value = await self._call(inputs)
            except (KeyboardInterrupt, SystemExit) as error:  # which would end the loop, and all of its calls
                return CallOutcome(row, error=error_line(error), trace_id=_last_trace())
            return CallOutcome(row, value, seconds=time.perf_counter() - start, trace_id=_last_trace())

        try:
            return await asyncio.wait_for(traced(), self._timeout)
        except BaseException as error:
            late = self._timeout is not None and time.perf_counter() - start >= self._timeout
            if late and isinstance(error, asyncio.TimeoutError):
                return CallOutcome(row, error=f"no answer within {self._timeout:g} s: the call was canceled")
            return CallOutcome(row, error=error_line(error), trace_id=_last_trace())
