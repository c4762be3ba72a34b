"""How fast and how small the validation is, beside parsers that do less: ``python -m tests.benchmarks [WHAT]``.

    traces   100,000 rows with MLflow traces of 20 KB: the time of the whole ``validate_eval_set(path)`` against a bare
             ``orjson.loads`` of the same texts, and against mlflow's own extraction of the same fields
    otel     10,000 traces of 20 KB, a trace per line, and 3,000 in a column, in seconds of the core: the speed of those
             of OpenTelemetry against the same as traces of MLflow
    plain    1,000,000 rows without traces: rows a second on one core, in memory and of a file, and the time against
             just reading the file
    memory   peak resident memory of the command line, which must not grow with the file, whatever its layout
    evaluate ``evaluate_eval_set`` against mlflow's own evaluate, called with the prepared frame and those scorers,
             on sqlite; and, in memory, ``prepare_for_evaluate`` against ``validate_eval_set`` of rows with traces
    production  1,000,000 logged calls of 5 KB to an evaluation set, Parquet to Parquet: rows a second of the embedded
             engine with two processes, against Spark on two cores and bare parsers; peak memory of all processes
             together, at a fifth of the rows and at all
    trajectories  1,000,000 pairs of five calls, every other one the same: pairs a second of CPU time for all five
             metrics, the time against google-adk's evaluator, and the memory, for a tenth of the file and for all of it
    ces      a golden CSV of 100,000 rows; Evaluation JSON against msgspec's plain decode and the vendor's own parser
             (in seconds of the core, not of the clock)
    import   what ``import agent_eval_schema`` adds to the start of an interpreter
    start    CPU time of commands on a small file, against interpreters that import only what they cannot do without
    pool     16 MB to 2 GB, of a file and in memory: as many processes as the package takes, against one
    frames   a DataFrame above 64 MB: one process against one per core, and the memory of all processes together
    review   the review screen with 100,000 rows in Chromium, of which 1,000 are labeled: the first paint, the first
             search, the preview, and a key until the next row is there, measured in the page
    growth   the exponent with which the time grows when rows, columns, spans, issues, texts … double, on hostile shapes

Read the ratios, not the seconds: machines are shared and differ, so a figure is compared with one of the same run. A
measurement is a process of its own; those that are compared take turns, several rounds, and the fastest of each counts,
because a neighbor can only make a run slower. Nothing here passes or fails a test.

The files are generated (6 GB for all of it; a whole run takes half an hour); ``--keep DIR`` keeps and reuses them, so
empty it after a change of data.py. ``--against [COMMIT …]`` compares the package with those of other commits, verb by
verb (against.py). ``--quick`` is the short form, three minutes: one round of every section that does not need MLflow's
store or Spark, on small files. ``--rows N`` makes a small trial, whose figures say little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import against

# This process imports neither pyarrow nor the package: a child's peak memory starts with what its parent holds, since
# Linux counts the pages that are shared until the child's exec.

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 3
QUICK_ROWS = 20_000
START_ROUNDS = 7
IMPORT_ROUNDS = 20
TRACE_ROWS = 100_000
LINE_ROWS = 10_000
PLAIN_ROWS = 1_000_000
GOLDEN_ROWS = 100_000
EVALUATIONS = 5_000
MEASURED_FILES = {
    "traces.parquet": TRACE_ROWS,
    "short-traces.parquet": TRACE_ROWS,
    "traces.jsonl": TRACE_ROWS,
    "mlflow-lines.jsonl": LINE_ROWS,
    "otel-lines.jsonl": LINE_ROWS,
    "traces-one-group.parquet": TRACE_ROWS,
    "plain.parquet": PLAIN_ROWS,
    "golden.csv": GOLDEN_ROWS,
}
PAYLOAD_ROWS = 1_000_000
POOL_SIZES = (16, 64, 128, 256, 512, 2_048)
ROWS_OF_TRACES, ROWS_OF_PLAIN = 42, 810
"""Rows of a megabyte."""
OTHER_FILES = {
    "trajectories.parquet": 1_000_000,
    "trajectories-tenth.parquet": 100_000,
    "evaluations.txt": EVALUATIONS,  # one JSON text per line, not a dataset
}

Result = dict[str, float]


class Line(NamedTuple):
    """One line of the table; a figure without a target is there to compare."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True)
class Bench:
    """Where the files are and how many rows they get."""

    folder: Path
    rows: int | None
    rounds: int = ROUNDS

    def file(self, name: str) -> Path:
        """The generated file, made on first use; its name holds its size, so a kept folder can hold several."""
        return self.file_of(name, self.rows or {**MEASURED_FILES, **OTHER_FILES}[name])

    def file_of(self, name: str, rows: int) -> Path:
        """The same with so many rows."""
        path = self.folder / f"{rows}-{name}"
        if not path.exists():
            note(f"generating {path.name}")
            python("-m", "tests.benchmarks.data", name, str(rows), str(path))
        return path


def main() -> None:
    arguments = parse_arguments()
    print(machine())
    if arguments.against is not None:
        against.main(arguments.against or against.EARLIER, 1 if arguments.quick else ROUNDS, write=arguments.write)
        return
    with folder(arguments.keep) as where:
        bench = Bench(
            Path(where), arguments.rows or (QUICK_ROWS if arguments.quick else None), 1 if arguments.quick else ROUNDS
        )
        every = [name for name in SECTIONS if not (arguments.quick and name in LONG)]
        for name in every if arguments.what == "all" else [arguments.what]:
            print_table(name, SECTIONS[name](bench))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=str(__doc__).partition("\n")[0])
    parser.add_argument("what", nargs="?", default="all", choices=[*SECTIONS, "all"])
    parser.add_argument(
        "--rows", type=positive, help="rows of every file, for a trial (default: 100,000 and 1,000,000)"
    )
    parser.add_argument("--quick", action="store_true", help="the short form, three minutes")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the files there, and use those that are there")
    earlier = f"compare with the package of other commits (default: {', '.join(against.EARLIER)})"
    parser.add_argument("--against", nargs="*", metavar="COMMIT", help=earlier)
    parser.add_argument("--write", action="store_true", help=f"write the comparison into {against.PAGE.name}")
    return parser.parse_args()


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one row")
    return number


@contextmanager
def folder(keep: Path | None) -> Iterator[Path]:
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    with nullcontext(str(keep)) if keep else tempfile.TemporaryDirectory() as where:
        yield Path(where).resolve()


# --- the sections -----------------------------------------------------------------------------------------------------


def traces(bench: Bench) -> list[Line]:
    path = bench.file("traces.parquet")
    names = ("validate", "validate_on_one_core", "orjson_loads", "mlflow_extraction", "read_and_decode")
    best = fastest(path, *names, rounds=bench.rounds)
    whole, one_core, parser, mlflow, least = (per_row(result) for result in best.values())
    short = fastest(bench.file("short-traces.parquet"), "validate_table", "orjson_loads", rounds=bench.rounds)
    short_ones, short_parser = (per_row(result) for result in short.values())
    return [
        checked(best["validate"]),
        Line("validate_eval_set", f"{whole * 1e6:.0f} µs a trace"),
        Line("bare orjson.loads", f"{parser * 1e6:.0f} µs a trace"),
        Line("mlflow's extraction", f"{mlflow * 1e6:.0f} µs a trace"),
        at_most("validate_eval_set / orjson.loads", whole / parser, 1.5, " ×"),
        at_most("the same on one core", one_core / parser, 2, " ×"),
        at_most("traces of 4 KB in memory, one core / orjson.loads", short_ones / short_parser, 2, " ×"),
        Line("the same without the parser", f"{(short_ones - short_parser) * 1e6:.0f} µs a trace"),
        at_least("mlflow's extraction / validate_eval_set", mlflow / whole, 15, " ×"),
        Line("mlflow's extraction / bare reading and decoding", f"{mlflow / least:.3g} ×"),
    ]


def otel(bench: Bench) -> list[Line]:
    files = [bench.file(f"{kind}-lines.jsonl") for kind in ("mlflow", "otel")]
    lines = []
    for work, where in (("validate_lines", "a trace per line"), ("validate_column", "in a column")):
        turns = [[fastest(path, work, rounds=1)[work] for path in files] for _ in range(ROUNDS)]
        mlflow, otlp = (min(results, key=per_row) for results in zip(*turns, strict=True))
        lines += [
            checked(otlp),
            Line(f"traces of MLflow, {where}", f"{per_row(mlflow) * 1e6:.0f} µs a trace"),
            Line(f"traces of OpenTelemetry, {where}", f"{per_row(otlp) * 1e6:.0f} µs a trace"),
            at_least(f"speed of OpenTelemetry / MLflow, {where}", per_row(mlflow) / per_row(otlp), 0.5, " ×"),
        ]
    return lines


def plain(bench: Bench) -> list[Line]:
    path = bench.file("plain.parquet")
    best = fastest(path, "validate_table", "validate_on_one_core", "arrow_read", "pandas_read", rounds=bench.rounds)
    table, whole, arrow, pandas = (per_row(result) for result in best.values())
    return [
        checked(best["validate_on_one_core"]),
        at_least("a table in memory, on one core", 1 / table, 350_000, " rows/s"),
        Line("a file, on one core, read and decompressed", f"{1 / whole:,.0f} rows/s"),
        Line("pyarrow read alone", f"{1 / arrow:,.0f} rows/s"),
        Line("validate_eval_set / pyarrow read", f"{whole / arrow:.2f} ×"),
        Line("validate_eval_set / pd.read_parquet", f"{whole / pandas:.2f} ×"),
    ]


def memory(bench: Bench) -> list[Line]:
    lines = [
        Line("an interpreter with pyarrow and pandas", f"{peak_memory('-c', 'import pyarrow.parquet, pandas'):.0f} MB")
    ]
    for name in MEASURED_FILES:
        path = bench.file(name)
        note(f"validating {path.name}")
        peak = peak_memory("-m", "agent_eval_schema", "validate", str(path), "--output", "text")
        lines.append(below(f"validate {path.name} ({path.stat().st_size / 1e6:,.0f} MB)", peak, 400, " MB", 0))
    return lines


def evaluate(bench: Bench) -> list[Line]:
    best = fastest(bench.file("plain.parquet"), "evaluate_eval_set", "mlflow_evaluate")
    ours, direct = (per_row(result) for result in best.values())
    prepared = fastest(bench.file("traces.parquet"), "prepare_in_memory", "validate_in_memory")
    prepare, validate = (per_row(result) for result in prepared.values())
    return [
        Line("rows evaluated, rows scored", "{rows:,.0f}, {scored:,.0f}".format(**best["evaluate_eval_set"])),
        Line("mlflow's evaluate", f"{direct * 1e3:.0f} ms a row"),
        below("evaluate_eval_set adds", (ours / direct - 1) * 100, 5, " %", 1),
        Line("rows prepared", f"{prepared['prepare_in_memory']['rows']:,.0f}"),
        Line("validate_eval_set in memory", f"{validate * 1e6:.0f} µs a trace"),
        at_most("prepare_for_evaluate / validate_eval_set", prepare / validate, 1.2, " ×"),
    ]


def production(bench: Bench) -> list[Line]:
    rows = bench.rows or PAYLOAD_ROWS
    path, fifth = (bench.file_of("payloads.parquet", n) for n in (rows, max(rows // 5, 1)))
    names = ("build_embedded", "build_on_spark", "read_decode_and_write", "orjson_payloads", "msgspec_payloads")
    best = fastest(path, *names, rounds=1)
    embedded, spark, least, orjson, msgspec = (per_row(result) for result in best.values())
    cpu = {name: best[name]["cpu_seconds"] / rows * 1e6 for name in ("build_embedded", "read_decode_and_write")}
    kept = {name: f"{best[name]['kept']:,.0f}" for name in ("build_embedded", "build_on_spark")}
    peaks = []
    for file in (fifth, path):
        note(f"memory of building {file.name}")
        peaks.append(peak_of_tree("-m", "tests.benchmarks.measure", "build_embedded", str(file)))
    return [
        Line("rows kept: embedded, Spark", ", ".join(kept.values()), "the same", len(set(kept.values())) == 1),
        at_least("embedded, two processes", 1 / embedded, 40_000, " rows/s"),
        Line("the same, CPU time of all processes", f"{cpu['build_embedded']:.1f} µs a row"),
        Line("bare reading, decoding and writing", f"{1 / least:,.0f} rows/s"),
        Line("the same, CPU time of both processes", f"{cpu['read_decode_and_write']:.1f} µs a row"),
        Line("bare orjson.loads, one process", f"{orjson * 1e6:.1f} µs a row"),
        Line("bare msgspec decode, one process", f"{msgspec * 1e6:.1f} µs a row"),
        Line("embedded / orjson.loads", f"{embedded / orjson:.2f} ×"),
        Line("embedded / msgspec decode", f"{embedded / msgspec:.2f} ×"),
        at_most("Spark local[2], warm / embedded", spark / embedded, 2, " ×"),
        below("peak memory of all processes", peaks[1], 1_500, " MB", 0),
        at_most("the same / with a fifth of the rows", peaks[1] / peaks[0], 1.1, " ×"),
    ]


def trajectories(bench: Bench) -> list[Line]:
    path, tenth = bench.file("trajectories.parquet"), bench.file("trajectories-tenth.parquet")
    best = fastest(path, "score_on_one_core", "adk_evaluator", "adk_from_cells")
    ours, one_kind, from_cells = (per_row(result) for result in best.values())
    peaks = [peak_memory("-m", "agent_eval_schema", "score", str(file), "--quiet") for file in (tenth, path)]
    return [
        Line("pairs scored", f"{best['score_on_one_core']['rows']:,.0f}"),
        at_least("all five metrics, of CPU time", 1 / ours, 60_000, " pairs/s"),
        at_least("google-adk from the same cells, three metrics", from_cells / ours, 12, " ×"),
        Line("google-adk, objects made before, one metric", f"{one_kind / ours:.1f} ×"),
        Line(f"peak memory of score, {tenth.stat().st_size / 1e6:,.0f} MB", f"{peaks[0]:.0f} MB"),
        below(f"peak memory of score, {path.stat().st_size / 1e6:,.0f} MB", peaks[1], 400, " MB", 0),
    ]


def ces(bench: Bench) -> list[Line]:
    golden = fastest(bench.file("golden.csv"), "read_golden_csv", "validate_golden_csv", rounds=bench.rounds)
    read, report = (per_row(result) for result in golden.values())
    names = ("validate_evaluations", "read_evaluations", "msgspec_decode", "json_format_parse")
    best = fastest(bench.file("evaluations.txt"), *names, rounds=bench.rounds)
    checked_, given, plain_, vendor = (per_row(result) for result in best.values())
    return [
        checked(golden["read_golden_csv"]),
        at_least("read_golden_csv on one core", 1 / read, 100_000, " rows/s"),
        Line("validate_eval_set of it on one core", f"{1 / report:,.0f} rows/s"),
        Line("validating an evaluation of 8 turns", f"{checked_ * 1e6:.0f} µs"),
        at_least("msgspec's plain decode / validating", plain_ / checked_, 0.5, " ×"),
        Line("msgspec's plain decode / read_evaluation", f"{plain_ / given:.2f} ×"),
        at_least("json_format.Parse / validating", vendor / checked_, 10, " ×"),
    ]


def imports(bench: Bench) -> list[Line]:  # noqa: ARG001 (one signature)
    statements = {
        "nothing": "pass",
        "package": "import agent_eval_schema",
        "function": "from agent_eval_schema import validate_eval_set",
        "pyarrow": "import pyarrow, pandas, msgspec",
    }
    best = dict.fromkeys(statements, float("inf"))
    for _ in range(IMPORT_ROUNDS):
        for name, statement in statements.items():
            best[name] = min(best[name], start_time(statement))
    added = {name: seconds - best["nothing"] for name, seconds in best.items()}
    return [
        below("import agent_eval_schema", added["package"], 0.1, " s", 3),
        Line("from agent_eval_schema import validate_eval_set", f"{added['function']:.3f} s"),
        Line("import pyarrow, pandas, msgspec", f"{added['pyarrow']:.3f} s"),
    ]


def start(bench: Bench) -> list[Line]:  # noqa: ARG001 (one signature)
    sample = "sample_data/good.jsonl"
    floors = {
        "argparse, json": ["-c", "import argparse, json"],
        "pyarrow, pyarrow.compute, msgspec": ["-c", "import pyarrow, pyarrow.compute, msgspec"],
    }
    light = {"--help": ["--help"], "explain": ["explain", "AE206"], "rules": ["rules"], "schema": ["schema", "--help"]}
    light["formats"] = ["formats"]
    heavy = {
        "validate": ["validate", sample],
        "metrics": ["metrics", sample],
        "diff": ["diff", sample, sample],
        "convert": ["convert", sample, os.devnull, "--to", "mlflow"],
    }
    ours = {
        name: ["-c", "from agent_eval_schema.cli import main; main()", *given]
        for name, given in {**light, **heavy}.items()
    }
    best = dict.fromkeys([*floors, *ours], float("inf"))
    for _ in range(START_ROUNDS):
        for name, command in {**floors, **ours}.items():
            best[name] = min(best[name], cpu_time(*command))
    lines = [Line(f"import {name}", f"{best[name]:.3f} s") for name in floors]
    for commands, floor, most in ((light, "argparse, json", 2.5), (heavy, "pyarrow, pyarrow.compute, msgspec", 2)):
        lines += [at_most(f"{name} / import {floor}", best[name] / best[floor], most, " ×") for name in commands]
    return lines


def frames(bench: Bench) -> list[Line]:
    path = bench.file("traces.parquet")
    one, all_cores = "validate_frame_by_one_process", "validate_frame_by_all_cores"
    best = fastest(path, one, all_cores, rounds=bench.rounds)
    note("memory of a frame")
    peaks = [peak_of_tree("-m", "tests.benchmarks.measure", name, str(path)) for name in ("read_frame", all_cores)]
    return [
        at_least("one process / one per core", per_row(best[one]) / per_row(best[all_cores]), 1.6, " ×"),
        Line("peak memory of reading the frame", f"{peaks[0]:,.0f} MB"),
        below("peak memory of checking it adds", peaks[1] - peaks[0], 300, " MB", 0),
    ]


def pool(bench: Bench) -> list[Line]:
    lines = []
    for kind, rows in (("traces", ROWS_OF_TRACES), ("plain", ROWS_OF_PLAIN)):
        for where, ending in (("file", "jsonl"), ("memory", "parquet")):
            for size in (16, 64, 128, 256) if bench.rounds == 1 else POOL_SIZES:
                path = bench.file_of(f"{kind}.{ending}", size * rows)
                rounds = bench.rounds * (3 if size <= 256 else 1)  # the least of few short runs is still noise
                best = fastest(path, "pool_by_one_process", "pool_by_default", rounds=rounds)
                one, default = (per_row(result) for result in best.values())
                lines.append(at_most(f"{kind}, {size:,} MB, {where}: default / one process", default / one, 1.05, " ×"))
    return lines


def review(bench: Bench) -> list[Line]:  # noqa: ARG001 (one signature)
    from playwright.sync_api import sync_playwright

    from agent_eval_schema import review_eval_set
    from tests.benchmarks.calls import plain as plain_rows

    rows = [{"request": row["request"], "response": row["response"]} for row in plain_rows(REVIEWED)]
    folder, started = tempfile.TemporaryDirectory(), time.perf_counter()
    opened = review_eval_set(rows, reviewer="benchmark", journal=os.path.join(folder.name, "rows"))
    loaded = time.perf_counter() - started
    for row in range(0, REVIEWED, REVIEWED // 1_000):
        opened._session.apply([{"row": row, "path": "expected_facts", "new": ["a fact"]}])
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = chromium.new_page()
            page.goto(opened.url)
            page.wait_for_selector("#row p")
            paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            asked = {what: page.evaluate(_ANSWER, path) for what, path in _ASKED.items()}
            steps = sorted(page.evaluate(_NEXT_ROWS, KEYS))
            chromium.close()
    finally:
        opened.stop()
        folder.cleanup()
    return [
        Line("read, checked and put into queues", f"{loaded:.2f} s"),
        below("first paint", paint / 1e3, 3, " s", 2),
        below("the first search", asked["search"], 300, " ms", 1),
        Line("the preview of what is written", f"{asked['preview']:.0f} ms"),
        below(
            f"a key until the next row is there, 0.3 s after the last, median of {KEYS}", steps[KEYS // 2], 50, " ms", 1
        ),
        Line("the slowest", f"{steps[-1]:.1f} ms"),
    ]


REVIEWED, KEYS = 100_000, 50
_ASKED = {"search": "search?q=the", "preview": "preview?what=mine"}
_ANSWER = """async path => {
  const token = new URLSearchParams(location.hash.slice(1)).get("t"), start = performance.now();
  const answer = await fetch("api/" + path, {headers: {"X-Review-Token": token}});
  await answer.json();
  return performance.now() - start;
}"""
_NEXT_ROWS = """async count => {
  const times = [], row = document.getElementById("row");
  for (let i = 0; i < count; i++) {
    const before = row.textContent, start = performance.now();
    document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "j", bubbles: true}));
    while (row.textContent === before || !row.querySelector("p")) await new Promise(done => {
      const channel = new MessageChannel(); channel.port1.onmessage = done; channel.port2.postMessage(0);
    });
    times.push(performance.now() - start);
    await new Promise(done => setTimeout(done, 300));  // a person takes longer to decide about a row
  }
  return times;
}"""


def growth(bench: Bench) -> list[Line]:  # noqa: ARG001 (one signature)
    lines = []
    for line in python("-m", "tests.benchmarks.growth").splitlines():
        found = json.loads(line)
        lines.append(at_most(found["shape"], found["exponent"], 1.15, ""))
    return lines


SECTIONS: dict[str, Callable[[Bench], list[Line]]] = {
    "traces": traces,
    "otel": otel,
    "plain": plain,
    "memory": memory,
    "evaluate": evaluate,
    "production": production,
    "trajectories": trajectories,
    "ces": ces,
    "import": imports,
    "start": start,
    "pool": pool,
    "frames": frames,
    "review": review,
    "growth": growth,
}
LONG = ("memory", "evaluate", "production", "trajectories", "pool")
"""What the short form leaves out."""


# --- children ---------------------------------------------------------------------------------------------------------


def fastest(path: Path, *names: str, rounds: int = ROUNDS) -> dict[str, Result]:
    """The fastest result of each measurement; they take turns, so that a slow minute hits all of them."""
    best: dict[str, Result] = {}
    for turn in range(rounds):
        for name in names:
            note(f"{path.name}: {name}, round {turn + 1} of {rounds}")
            result: Result = json.loads(python("-m", "tests.benchmarks.measure", name, str(path)))
            best[name] = min(best.get(name, result), result, key=per_row)
    return best


def per_row(result: Result) -> float:
    return result["seconds"] / result["rows"]


def python(*arguments: str) -> str:
    """Run an interpreter in the root of the project; returns what it prints, or ends with what it complains about."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def peak_memory(*arguments: str) -> float:
    """Peak resident memory of an interpreter, MB."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=output, stderr=output)
        _, status, usage = os.wait4(child.pid, 0)  # the usage of this child; getrusage would give the largest of all
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            output.seek(0)
            sys.exit(
                f"{' '.join(arguments)}: exit {child.returncode}\n{output.read()[-2000:].decode(errors='replace')}"
            )
    return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def peak_of_tree(*arguments: str) -> float:
    """Peak memory of an interpreter and all its descendants together, MB: what they share counts once (Linux's PSS)."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=output, stderr=output)
        peak = 0.0
        while child.poll() is None:
            peak = max(peak, sum(map(proportional_set, family(child.pid))))
            time.sleep(0.1)
        if child.returncode:
            output.seek(0)
            sys.exit(
                f"{' '.join(arguments)}: exit {child.returncode}\n{output.read()[-2000:].decode(errors='replace')}"
            )
    return peak / 1e3


def family(pid: int) -> Iterator[int]:
    """A process and its descendants, as far as they still live."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                yield from family(child)


def proportional_set(pid: int) -> float:
    """The memory of a process in kB; what n processes share counts an n-th."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return float(line.split()[1])
    return 0.0


def start_time(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], cwd=ROOT, check=True)
    return time.perf_counter() - start


def cpu_time(*arguments: str) -> float:
    """The CPU time of an interpreter, user and system."""
    child = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_utime + usage.ru_stime


# --- the table --------------------------------------------------------------------------------------------------------


def at_most(what: str, value: float, target: float, unit: str, digits: int = 2) -> Line:
    return Line(what, f"{value:,.{digits}f}{unit}", f"<= {target:,}{unit}", value <= target)


def below(what: str, value: float, target: float, unit: str, digits: int) -> Line:
    return Line(what, f"{value:,.{digits}f}{unit}", f"< {target:,}{unit}", value < target)


def at_least(what: str, value: float, target: float, unit: str) -> Line:
    return Line(
        what, f"{value:,.3g}{unit}" if value < 100 else f"{value:,.0f}{unit}", f">= {target:,}{unit}", value >= target
    )


def checked(result: Result) -> Line:
    """What was found: the figures are about rows without errors, since other rows take another, slower path."""
    what = "rows checked" if not result["invalid"] else f"rows checked, {result['invalid']:,.0f} INVALID"
    return Line(what, f"{result['rows']:,.0f}", f"{result['issues']:,.0f} issues")


def print_table(title: str, lines: list[Line]) -> None:
    width = max(len(line.what) for line in lines)
    print(f"\n{title}")
    for line in lines:
        verdict = {True: "met", False: "MISSED", None: ""}[line.met]
        print(f"  {line.what:<{width}}  {line.measured:>18}  {line.target:<18}  {verdict}".rstrip(), flush=True)


def machine() -> str:
    versions = " · ".join(f"{name} {version(name)}" for name in ("pyarrow", "msgspec", "orjson", "pandas", "mlflow"))
    return f"python {platform.python_version()} · {versions} · {os.cpu_count()} CPUs · {platform.machine()}"


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
