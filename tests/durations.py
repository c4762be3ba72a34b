"""Which tests are long: `python -m tests.durations RESULTS.xml [SECONDS]` writes them into long.txt.

    python -m pytest -m "not slow or long" --junitxml results.xml
    python -m tests.durations results.xml

A test whose cases take more than so many seconds each, on average, is long; so are all cases of it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree

LIST = Path(__file__).parent / "long.txt"
USUAL = 0.012


def main(results: str, seconds: float = USUAL) -> None:
    took: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(results).iter("testcase"):
        name = f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name'].partition('[')[0]}"
        took[name].append(float(case.attrib["time"]))
    long = sorted(name for name, times in took.items() if mean(times) > seconds)
    LIST.write_text("".join(f"{name}\n" for name in long))
    rest = [time for name, times in took.items() if name not in long for time in times]
    print(f"{len(long)} tests are long; the {len(rest):,} cases of the others took {sum(rest):.0f} s")


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
