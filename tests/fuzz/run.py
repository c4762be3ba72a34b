"""Cases through checks, each within a limit of processor time; what is raised becomes a finding, made smaller."""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agent_eval_schema import FormulaWarning
from tests.fuzz.checks import CHECKS, OF_JSON, Broken, Check
from tests.fuzz.inputs import SMALL, Case, case, place_case, smaller
from tests.helpers.mutations import Row

SECONDS = 2.0
"""Of processor time per input of few rows: a busy machine hangs nothing."""

SMALLER_SECONDS = 20.0
"""Of processor time too."""

ROWS_OF_A_LIMIT = 200
"""Rows for which a check has the same time once more."""


class Part(Struct, frozen=True):
    """Cases that one process runs: some of the checks, on so many numbers."""

    seed: int
    first: int
    count: int
    checks: tuple[str, ...]
    sparse: int = 1
    most_rows: int = SMALL
    places: bool = False
    """Instead of random ones, the cases of every place, with all checks."""


class Finding(Struct, frozen=True):
    """What was raised: of which check, by which case, and where. Findings of one key have one cause."""

    check: str
    key: str
    seed: str
    text: str
    rows: list[Row]


class Result(Struct):
    """What a process has found."""

    cells: int = 0
    made: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = []


class Hang(BaseException):
    """A check takes longer than its limit."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Hang after so much processor time of this process."""

    def stop(*_: Any) -> None:
        raise Hang(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run_part(part: Part) -> Result:
    """Run the cases of a part; of findings with one key only the first is made smaller."""
    result, seen = Result(), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(part.first, part.first + part.count):
            given = place_case(number) if part.places else case(part.seed, number, part.most_rows)
            result.cells += given.cells
            for place, name in enumerate(part.checks):
                check, seldom = CHECKS[name]
                always = len(part.checks) == 1 or part.places
                if (number + place) % (seldom if seldom == 1 else seldom * part.sparse) and not always:
                    continue
                if given.is_python and name in OF_JSON:
                    continue
                result.made[name] += 1
                tried = given.part(_MOST_ROWS.get(name, len(given.rows)))
                error = raised(check, tried, Path(folder))
                if error is not None:
                    key = key_of(error)
                    result.findings.append(_finding(name, key, tried, error, Path(folder), small=key not in seen))
                    seen.add(key)
    return result


def raised(check: Check, given: Case, folder: Path) -> BaseException | None:
    """What the check raises for a case, if it does."""
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    try:
        with warnings.catch_warnings(), limited(_limit(check, given)):
            warnings.simplefilter("error")
            for category in _EXPECTED:
                warnings.filterwarnings("ignore", category=category)
            check(given, folder)
    except (Exception, Hang) as error:
        return error
    return None


def _limit(check: Check, given: Case) -> float:
    return SECONDS * _READINGS.get(check.__name__, 4) * _scale(given)


def _scale(given: Case) -> float:
    return 1 + len(given.rows) / ROWS_OF_A_LIMIT


_READINGS = {"validate": 14, "one_verdict": 20, "normalize": 10, "damaged_bytes": 10, "fix": 10, "convert": 10}
_READINGS |= {"no_values": 8, "redacted": 16, "containers": 10, "review": 16}
"""How often a check reads an input, about: `validate` does before and after each of three entries of two documents."""

_MOST_ROWS = {"every format": 50, "arrow types": 200, "damaged bytes": 200, "traces": SMALL, "own files": SMALL}
_MOST_ROWS |= {"convert": 50, "profile": 200, "build": 400}
_MOST_ROWS |= dict.fromkeys(("reports", "no values", "redacted", "normalize", "fix"), 100)
_MOST_ROWS |= {"review": 12, **dict.fromkeys(("there and back", "score", "diff"), 100)}
"""Rows of a large case for the checks that take a millisecond or more per row; all for the others."""

_EXPECTED = (ResourceWarning, FormulaWarning)
"""Warnings that are no finding: of other libraries, and of cells such as `=1+1` in a CSV file."""


def key_of(error: BaseException) -> str:
    """What findings of one cause share: the error, and the line of the package that raised it."""
    if isinstance(error, Broken | AssertionError):
        lines = [f for f in traceback.extract_tb(error.__traceback__) if "agent_eval_schema/" not in f.filename]
        where = next((f.name for f in reversed(lines) if "/fuzz/checks" in f.filename), "")
        text = re.sub(r"['\"\[{].*", "", str(error).split("\n")[0]).strip()
        return f"{type(error).__name__} {where}: {text[:120]}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/agent_eval_schema/" in f.filename]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).parent.name}/{Path(last.filename).name}:{last.name}"
    return f"{type(error).__name__} in {place}"


def _finding(name: str, key: str, given: Case, error: BaseException, folder: Path, *, small: bool) -> Finding:
    rows = given.rows
    if small:
        given = _made_smaller(CHECKS[name][0], key, given, folder)
        rows = given.rows
        error = raised(CHECKS[name][0], given, folder) or error
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__)[-6:])
    shown = repr(rows)
    return Finding(
        name, key, given.seed, f"{name}: {key} ({given.seed}, {given.sample})\n{text[-3000:]}{shown[:1500]}", rows
    )


def _made_smaller(check: Check, key: str, given: Case, folder: Path) -> Case:
    """The case with as few of its rows and values as raise the same error."""
    end = time.process_time() + (0 if os.environ.get("FUZZ_AS_IT_IS") else SMALLER_SECONDS * _scale(given))
    progress = True
    while progress and time.process_time() < end:
        progress = False
        for rows in smaller(given.rows):
            if time.process_time() > end:
                break
            tried = Case(given.seed, given.sample, rows, given.is_python)
            error = raised(check, tried, folder)
            if error is not None and key_of(error) == key:
                given, progress = tried, True
                break
    return given
