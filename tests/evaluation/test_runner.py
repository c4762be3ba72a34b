"""Calls that hang, raise, exit: their rows fail, the others finish, and the process can end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from agent_eval_schema.evaluation import runner
from agent_eval_schema.evaluation.runner import CallOutcome, run_all
from tests.conftest import PATIENCE, ROOT


def outcomes(call: Callable[[Any], Any], count: int, **options: Any) -> list[CallOutcome]:
    """In the order of the rows; each row once."""
    found = sorted(run_all(call, enumerate(range(count)), **options), key=lambda o: o.row)
    assert [o.row for o in found] == list(range(count))
    return found


def test_values_and_seconds() -> None:
    found = outcomes(lambda i: i * 2, 20, max_workers=3)
    assert [o.value for o in found] == [i * 2 for i in range(20)]
    assert all(o.error is None and o.seconds is not None and 0 <= o.seconds < 5 for o in found)


def test_no_inputs() -> None:
    assert list(run_all(lambda i: i, [])) == []


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Exiting(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class _Silent(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError("no name")


class Nameless(Exception, metaclass=_Silent):
    pass


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no \x1b[31msuch\ncity"), "ValueError: no \\x1b[31msuch\\ncity"),
        (KeyError("x"), "KeyError: 'x'"),
        (AssertionError(), "AssertionError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (TimeoutError("of its own"), "TimeoutError: of its own"),
        (Unspeakable(), "Unspeakable"),
        (Exiting(), "Exiting"),
        (Nameless(), "Nameless"),
        (GeneratorExit(), "GeneratorExit"),
        (StopAsyncIteration("x"), "StopAsyncIteration: x"),
    ],
)
@pytest.mark.parametrize("timeout", [None, 5])
@pytest.mark.parametrize("is_async", [False, True])
def test_what_raises_fails_its_row_only(error: BaseException, said: str, is_async: bool, timeout: float | None) -> None:
    def call(i: int) -> int:
        if i == 1:
            raise error
        return i

    async def call_async(i: int) -> int:
        return call(i)

    found = outcomes(call_async if is_async else call, 4, max_workers=2, timeout=timeout)
    assert [o.error for o in found] == [None, said, None, None]
    assert found[1].seconds is None


def test_a_version_of_mlflow_that_does_not_name_the_last_trace_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(get_last_active_trace_id=lambda: "tr-1"))
    (found,) = outcomes(str, 1)
    assert (found.value, found.trace_id) == ("0", None)


def test_a_long_error_is_cut() -> None:
    def call(_: int) -> None:
        raise ValueError("x" * 10_000)

    assert len(outcomes(call, 1)[0].error or "") == runner.LONGEST_ERROR


def test_so_many_calls_run_at_a_time() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def call(_: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    outcomes(call, 24, max_workers=4)
    assert 2 <= most <= 4


def test_a_call_that_hangs_is_left_behind() -> None:
    release = threading.Event()

    def call(i: int) -> int:
        if i % 5 == 1:
            release.wait(60)
        return i

    found = outcomes(call, 10, max_workers=2, timeout=0.3)
    release.set()
    late = "no answer within 0.3 s: the call was left behind"
    assert [o.error for o in found] == [late if i % 5 == 1 else None for i in range(10)]


def test_a_call_that_comes_back_late_does_not_change_its_row() -> None:
    def call(i: int) -> str:
        time.sleep(0.5 if i == 0 else 0.15)
        return "late" if i == 0 else "in time"

    found = outcomes(call, 8, max_workers=1, timeout=0.3)
    assert [o.value for o in found] == [None] + ["in time"] * 7


def test_an_agent_that_is_dead_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LEFT_BEHIND", 3)
    release, called = threading.Event(), []

    def call(i: int) -> None:
        called.append(i)
        release.wait(60)

    found = outcomes(call, 20, max_workers=1, timeout=0.05)
    release.set()
    assert called == [0, 1, 2]
    assert [o.error for o in found[3:]] == ["not called: 3 calls before it hang"] * 17


def test_a_process_with_a_hanging_call_can_end() -> None:
    program = (
        "import time\n"
        "from agent_eval_schema.evaluation.runner import run_all\n"
        "print([o.error is None for o in run_all(lambda i: time.sleep(600 * i), [(0, 0), (1, 1)], timeout=0.3)])\n"
    )
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[True, False]", "")
    assert time.monotonic() - start < 30


# ---------------------------------------------------------------------------------------------------------------------
# coroutines


def test_coroutines_share_an_event_loop() -> None:
    loops = set()

    async def call(i: int) -> int:
        loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0.01)
        return i

    assert [o.value for o in outcomes(call, 12, max_workers=4)] == list(range(12))
    assert len(loops) == 1


def test_a_coroutine_that_hangs_is_cancelled() -> None:
    cancelled = []

    async def call(i: int) -> int:
        try:
            await asyncio.sleep(60 if i == 1 else 0)
        except asyncio.CancelledError:
            cancelled.append(i)
            raise
        return i

    found = outcomes(call, 4, max_workers=2, timeout=0.2)
    assert [o.error for o in found] == [None, "no answer within 0.2 s: the call was canceled", None, None]
    assert cancelled == [1]


def test_a_coroutine_that_will_not_be_cancelled_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner._LoopSlot, "overtime", 0.2)

    async def call(i: int) -> int:
        end = time.monotonic() + (1.5 if i == 1 else 0)
        while time.monotonic() < end:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return i

    found = outcomes(call, 6, max_workers=1, timeout=0.2)
    assert [o.error is None for o in found] == [True, False, True, True, True, True]


def test_a_coroutine_that_blocks_the_loop_costs_the_calls_beside_it_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner._LoopSlot, "overtime", 0.2)

    async def call(i: int) -> int:
        if i == 4:
            time.sleep(2)  # what an agent must not do
        await asyncio.sleep(0.01)
        return i

    found = outcomes(call, 20, max_workers=2, timeout=0.3)
    failed = [o.row for o in found if o.error]
    assert 4 in failed
    assert len(failed) <= 3


def test_a_function_may_give_an_awaitable() -> None:
    async def answer(i: int) -> int:
        return i

    assert [o.value for o in outcomes(lambda i: answer(i), 3)] == [0, 1, 2]


def test_stopping_early_calls_nobody_else() -> None:
    called: list[int] = []
    running = run_all(lambda i: called.append(i), enumerate(range(1000)), max_workers=1)
    next(running)
    running.close()
    time.sleep(0.05)
    assert len(called) <= 2
