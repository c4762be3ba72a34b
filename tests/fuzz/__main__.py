"""Feed damaged samples to the whole package: `python -m tests.fuzz --cells 200_000 --seed 1`.

With `--places` no damage is random: each place of each sample has a value of every type in turn.

Prints the seed, the counts of each check, and every distinct finding with the case that shows it. `--keep` writes the
cases, made smaller, into tests/data/fuzz, where a test repeats them. Exit code 1: there are findings.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from tests.conftest import DATA
from tests.fuzz.checks import CHECKS
from tests.fuzz.inputs import SMALL, place_cases
from tests.fuzz.run import Finding, Part, Result, run_part

FOLDER = DATA / "fuzz"


def main() -> int:
    arguments = _arguments()
    start = time.monotonic()
    end = start + arguments.minutes * 60 if arguments.minutes else math.inf
    seed = arguments.seed if arguments.seed is not None else int.from_bytes(os.urandom(3), "big")
    names = tuple(arguments.only or CHECKS)
    size = max(1, PART * SMALL // arguments.rows)
    last = len(place_cases()) if arguments.places else sys.maxsize
    print(f"seed {seed}, {arguments.cells:,} cells, checks: {', '.join(names)}", flush=True)
    cells, number, made, found = 0, arguments.start, Counter[str](), list[Finding]()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        parts = set[Future[Result]]()
        while number == arguments.start or parts:
            while len(parts) <= arguments.jobs and number < last and cells < arguments.cells and time.monotonic() < end:
                count = min(size, last - number)
                part = Part(seed, number, count, names, arguments.sparse, arguments.rows, arguments.places)
                parts.add(pool.submit(run_part, part))
                number += count
            done, parts = wait(parts, return_when=FIRST_COMPLETED)
            for result in (part.result() for part in done):
                if cells // MILLION < (cells := cells + result.cells) // MILLION:
                    print(f"{cells:,} cells, {time.monotonic() - start:.0f} s", flush=True)
                made.update(result.made)
                for finding in result.findings:
                    if finding.key not in {other.key for other in found}:
                        print(f"\n{finding.text}", flush=True)
                    found.append(finding)
    print(f"\n{cells:,} cells in {number - arguments.start:,} cases, {time.monotonic() - start:.0f} s")
    print("made of each check: " + ", ".join(f"{name} {count:,}" for name, count in made.most_common()))
    counts = Counter(finding.key for finding in found)
    for key, count in counts.most_common():
        first = next(finding for finding in found if finding.key == key)
        print(f"{count:6,} × {key}   first: case {first.seed} of {first.check!r}")
        if arguments.keep:
            print(f"         kept: {_keep(first)}")
    print(f"{len(counts)} findings")
    return 1 if found else 0


PART = 40
"""Cases of few rows that a process takes at once."""

MILLION = 1_000_000
"""Cells after which a run says how far it is."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="feed damaged samples to the package")
    parser.add_argument("--cells", type=lambda text: int(text.replace("_", "")), default=200_000, help="how many cells")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument("--seed", type=int, help="the seed (default: another one each time)")
    parser.add_argument("--places", action="store_true", help="every place of every sample with a value of every type")
    parser.add_argument("--start", type=int, default=0, help="the number of the first case")
    parser.add_argument("--rows", type=int, default=SMALL, help="the most rows of a case")
    parser.add_argument("--only", nargs="+", choices=list(CHECKS), metavar="CHECK", help=f"of {', '.join(CHECKS)}")
    parser.add_argument("--sparse", type=int, default=1, help="make all checks but the first so many times as seldom")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep", action="store_true", help="write the findings into tests/data/fuzz")
    return parser.parse_args()


def _keep(finding: Finding) -> Path:
    FOLDER.mkdir(exist_ok=True)
    name = re.sub(r"\W+", "_", f"{finding.check} {finding.key}")[:60].strip("_")
    path = FOLDER / f"{name}.json"
    document = {"check": finding.check, "was": finding.key, "rows": finding.rows}
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
