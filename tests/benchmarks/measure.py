"""How a figure is measured: each work in a process of its own, those that are compared in turns.

The least of the turns counts, as a neighbor can only make a run slower. On one core the time is that of the CPU, on two
it is that of the clock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

# This process imports neither pyarrow nor the package: a child's peak memory starts with what its parent holds.

ROOT = Path(__file__).resolve().parents[2]
WARM_UP_ROWS = 64
"""The first rows fill the caches of decoders and lazy modules; they are not timed."""


class Work(NamedTuple):
    """What is timed: a statement about `data`, which an expression makes of `n` rows. `before` is run once; the clock
    is that of the core, or on two `cores` that of the wall. Of a `whole` process its start counts, too; of several
    `repeats` the least counts. The package is that of a folder, or this one."""

    run: str
    data: str = "None"
    rows: int = 1
    cores: int = 1
    before: str = ""
    whole: bool = False
    repeats: int = 1
    package: str = str(ROOT)


class Cost(NamedTuple):
    """What a row costs, in seconds, and the most memory of all processes, in MB."""

    seconds: float
    memory: float


Show = Callable[..., tuple[str, ...]]
"""Writes the cells of a line, of the costs of its works."""


class Line(NamedTuple):
    """A figure of works that are compared."""

    what: str
    works: tuple[Work, ...]
    show: Show


def at_most(goal: float) -> Show:
    """The first takes at most so many times the time of the second."""
    return lambda ours, other: (
        f"{ours.seconds / other.seconds:.2f} × the time", f"{goal} ×", missed(ours.seconds > goal * other.seconds)
    )  # fmt: skip


def at_least(goal: float) -> Show:
    """The first is at least so many times as fast as the second."""
    return lambda ours, other: (
        f"{other.seconds / ours.seconds:.2f} times as fast", f"{goal} times",
        missed(other.seconds < goal * ours.seconds),
    )  # fmt: skip


def rate(goal: float) -> Show:
    return lambda cost: (f"{1 / cost.seconds:,.0f} rows/s", f"{goal:,} rows/s", missed(cost.seconds * goal > 1))


def memory(goal: float) -> Show:
    """The peak, and those of fewer rows before it."""
    return lambda *costs: (
        ", ".join(f"{cost.memory:,.0f}" for cost in costs) + " MB", f"{goal:,} MB", missed(costs[-1].memory > goal)
    )  # fmt: skip


def seconds(goal: float) -> Show:
    return lambda cost: (f"{cost.seconds:.3f} s", f"{goal} s", missed(cost.seconds > goal))


def missed(is_missed: bool) -> str:
    return "missed" if is_missed else ""


_CHILD = """
import json, os, sys, time, warnings
sys.path.insert(0, {package!r})
from pathlib import Path
warnings.simplefilter("ignore")
if {cores} == 1:
    os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
import pandas as pd
import agent_eval_schema as aes
from agent_eval_schema import ces
from tests.benchmarks import others
from tests.benchmarks.rows import file, rows_of, table, texts
folder = {folder!r}
clock = time.process_time if {cores} == 1 else time.perf_counter
{before}
spent = 0
n = {few}
data = {data}
{run}
times = []
n = {rows}
data = {data}
for _ in range({repeats}):
    spent, start = 0, clock()
    {run}
    times.append(spent or clock() - start)
assert Path(aes.__file__).is_relative_to({package!r}), "the package of another folder"
print(json.dumps(min(times) / n))
"""


COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment of what is measured: a start is that of compiled code."""


def cost_of(work: Work, folder: str) -> Cost | None:
    """Run a work in a process of its own. What fails ends the run with what it complains about, and has no cost where
    the package is that of another commit, which may lack a verb or read other rows."""
    few = min(WARM_UP_ROWS, work.rows)
    code = work.run if work.whole else _CHILD.format(folder=folder, few=few, **work._asdict())
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        command = [sys.executable, "-c", code]
        child = subprocess.Popen(command, cwd=ROOT, env=COMPILED, stdout=output, stderr=complaints)
        peak = [0.0]
        watch = threading.Thread(target=_watched, args=(child, peak))
        watch.start()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        watch.join()
        output.seek(0)
        complaints.seek(0)
        if child.returncode and work.package == str(ROOT):
            sys.exit(f"{work.run}: exit {child.returncode}\n{complaints.read()[-2000:].decode(errors='replace')}")
        if child.returncode:
            return None
        own = usage.ru_utime + usage.ru_stime
        return Cost(own if work.whole else float(output.read().splitlines()[-1]), peak[0] / 1e6)


def _watched(child: subprocess.Popen[bytes], peak: list[float]) -> None:
    """Note the most memory of a process and its descendants; what n processes share counts an n-th."""
    while child.returncode is None:
        with suppress(psutil.Error):  # one of them has ended
            family = (process := psutil.Process(child.pid), *process.children(recursive=True))
            peak[0] = max(peak[0], sum(one.memory_full_info().pss for one in family))
        time.sleep(0.1)


def measured(lines: Sequence[Line], rounds: int, share: float = 1) -> Iterator[list[str]]:
    """What was measured and the cells of its result, per line."""
    costs: dict[Work, Cost | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        for what, works, show in lines:
            works = tuple(work._replace(rows=max(int(work.rows * share), 1)) for work in works)
            for _ in range(rounds):
                for work in (work for work in works if work not in costs or rounds > 1):
                    now, before = cost_of(work, folder), costs.get(work)
                    if now and before:
                        now = Cost(min(now.seconds, before.seconds), max(now.memory, before.memory))
                    costs[work] = now
            yield [what, *show(*(costs[work] for work in works))]
