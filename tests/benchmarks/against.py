"""Other commits beside this one: ``python -m tests.benchmarks --against [COMMIT …]`` prints how their times compare.

The package of each commit is put into a folder of its own. Each verb then runs with each package in a process that has
nothing else to do and one core; they take turns, and the least CPU time of each counts. A ratio below 1: this one is
faster. Steps of a few percent each add up, so without a commit it compares with those of long ago, too: `EARLIER`.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EARLIER = ("bb5980e", "1fe6250", "0c32fa4a")
"""Before a release no verb is slower than at the last of them; tables, lists and traces at none."""

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


def compared(commits: Sequence[str], rounds: int = 3, verbs: tuple[str, ...] = ()) -> dict[str, list[float | None]]:
    """Per verb of this package its seconds, then those of each commit, or None where it lacks the verb."""
    with tempfile.TemporaryDirectory() as folder:
        packages = [ROOT, *(extracted(commit, Path(folder, str(place))) for place, commit in enumerate(commits))]
        turns = [[times_of(package, verbs) for package in packages] for _ in range(rounds)]
    return {
        verb: [
            min((seconds for turn in turns if (seconds := turn[place].get(verb))), default=None)
            for place in range(len(packages))
        ]
        for verb in turns[0][0]
    }


def extracted(commit: str, folder: Path) -> Path:
    """The package of a commit, in a folder."""
    packed = subprocess.check_output(["git", "archive", commit, "agent_eval_schema"], cwd=ROOT)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data") if sys.version_info >= (3, 12) else archive.extractall(folder)
    return folder


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

    assert Path(str(agent_eval_schema.__file__)).is_relative_to(package), "the package of another folder"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before pyarrow counts the cores for its threads
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


def main(commits: Sequence[str], rounds: int, *, write: bool = False) -> None:
    """Print the table, and write it into the page about performance."""
    os.environ.setdefault("PYTHONHASHSEED", "0")
    title = f"Commit {own_commit()}: CPU time on one core, over that of other commits, the least of {rounds} turns"
    rows = [["", "ms", *(commit[:8] for commit in commits)]]
    for verb, (ours, *others) in compared(commits, rounds).items():
        ratios = ["-" if ours is None or other is None else f"{ours / other:.2f} ×" for other in others]
        rows.append([verb, f"{(ours or 0) * 1e3:.1f}", *ratios])
    print("\n".join([title, *(f"  {row[0]:32} " + " ".join(f"{cell:>10}" for cell in row[1:]) for row in rows)]))
    if write:
        write_table(COMMITS, title, rows)


PAGE = ROOT / "docs" / "concepts" / "performance.md"
COMMITS = "python -m tests.benchmarks --against --write"
END = "% end\n"


def own_commit() -> str:
    """This commit and its date."""
    return subprocess.check_output(["git", "show", "-s", "--format=%h of %cs", "HEAD"], cwd=ROOT, text=True).strip()


def write_table(command: str, title: str, rows: Sequence[Sequence[str]]) -> None:
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), command, title, rows), encoding="utf-8")


def with_table(page: str, command: str, title: str, rows: Sequence[Sequence[str]]) -> str:
    """The page with this table in the place of the last one that the command wrote."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    table = "\n".join([f"{title}:", "", head, "|---" * len(rows[0]) + "|", *body])
    begin = f"% generated by `{command}`\n"
    before, after = page.split(begin)
    return f"{before}{begin}\n{table}\n\n{END}{after.split(END, 1)[1]}"
