"""Another commit beside this one: ``python -m tests.benchmarks --against COMMIT`` prints how their times compare.

The package of the commit is put into a folder of its own. Each verb then runs with either package in a process that has
nothing else to do and one core; the two take turns, and the least CPU time of each counts. A ratio below 1: this one is
faster. Steps of a few percent each add up, so compare with a commit of long ago too.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 9
"""Python specializes its code as it runs: the first times of a verb are longer."""

ROWS = {"validate traces": 600, "score trajectories": 5_000} | dict.fromkeys(
    ("validate a table", "validate documents", "validate a list"), 5_000
)
"""Rows of the verbs that take microseconds for one; the others get 1,000."""

_CHILD = """
import sys
sys.path[:0] = {paths!r}
from tests.benchmarks.against import cpu_times
cpu_times({package!r}, {verbs!r})
"""

Times = dict[str, float | None]


def ratios(commit: str, rounds: int = 3, verbs: tuple[str, ...] = ()) -> dict[str, tuple[float, float]]:
    """Per verb the seconds of this package and those of the other, of verbs that both have."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.check_output(["git", "archive", commit, "agent_eval_schema"], cwd=ROOT)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data") if sys.version_info >= (3, 12) else archive.extractall(folder)
        turns = [(times_of(ROOT, verbs), times_of(Path(folder), verbs)) for _ in range(rounds)]
    found = {}
    for verb in turns[0][0]:
        ours, other = ([seconds for turn in turns if (seconds := turn[side].get(verb))] for side in (0, 1))
        if ours and other:
            found[verb] = (min(ours), min(other))
    return found


def times_of(package: Path, verbs: tuple[str, ...]) -> Times:
    """The CPU time of each verb with the package in a folder."""
    code = _CHILD.format(paths=[str(package), str(ROOT)], package=str(package), verbs=verbs)
    command = [sys.executable, "-W", "ignore", "-c", code]
    with tempfile.TemporaryDirectory() as empty:  # in which nothing can be imported
        done = subprocess.run(command, capture_output=True, text=True, cwd=empty, check=True)
    found: Times = json.loads(done.stdout.splitlines()[-1])
    return found


def cpu_times(package: str, verbs: tuple[str, ...]) -> None:
    """Print the least CPU time of each verb, or null where this package does not have it."""
    import agent_eval_schema
    from tests.benchmarks.calls import VERBS, WARM_UP_ROWS
    from tests.benchmarks.measure import pin

    assert Path(str(agent_eval_schema.__file__)).is_relative_to(package), "the package of another folder"
    pin()
    shapes: dict[str, Any] = {**VERBS, "validate large texts": (large_texts, VERBS["validate a table"][1])}
    times: Times = {}
    for verb in verbs or shapes:
        make, run = shapes[verb]
        few, rows = make(WARM_UP_ROWS), make(ROWS.get(verb, 1_000))
        times[verb] = None
        try:
            run(few)
            times[verb] = min(seconds_of(run, rows) for _ in range(REPEATS))
        except Exception as error:  # a commit may lack the verb, or read other rows
            print(f"{verb}: {error!r}", file=sys.stderr)
    print(json.dumps(times))


def seconds_of(run: Any, rows: Any) -> float:
    start = time.process_time()
    run(rows)
    return time.process_time() - start


def large_texts(rows: int) -> Any:
    """A table of rows whose response and documents have 20 KB each."""
    import pyarrow as pa

    from tests.benchmarks.calls import plain

    def long(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "response": (str(row["response"]) + " ") * (20_000 // (len(str(row["response"])) + 1) + 1)}

    return pa.Table.from_pylist([long(row) for row in plain(rows)])


def main(commit: str, rounds: int) -> None:
    os.environ.setdefault("PYTHONHASHSEED", "0")
    print(f"CPU time of this package / that of {commit}, the least of {rounds} turns of each")
    for verb, (ours, other) in ratios(commit, rounds).items():
        print(f"  {verb:32} {ours * 1e3:8.1f} ms  {other * 1e3:8.1f} ms  {ours / other:5.2f} ×", flush=True)
