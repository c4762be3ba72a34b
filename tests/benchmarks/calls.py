"""Python calls per row of each verb: counted, so the figures are the same on every machine.

    python -m tests.benchmarks.calls            prints every figure and its budget

A call is that of a Python function (also the resumption of a generator) or of a function of C, as the total of cProfile
counts them, in all threads. `BUDGETS` has the most calls that a row may take; `tests/project/test_calls.py` fails
when a verb takes more, and when it takes far fewer: its budget is to be lowered then.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa

import agent_eval_schema as aes
from tests.benchmarks.rows import rows_of, table

ROWS = 512
WARM_UP_ROWS = 64
"""The first rows fill the caches of decoders and lazy modules; their calls are not counted."""


def of(kind: str) -> Callable[[int], list[dict[str, Any]]]:
    return lambda rows: rows_of(kind, rows)


def table_of(kind: str) -> Callable[[int], pa.Table]:
    return lambda rows: table(kind, rows)


plain = of("plain")


def large_texts(rows: int) -> pa.Table:
    """Rows whose response has 20 KB."""
    plain_rows = table("plain", rows)
    texts = [(text + " ") * 100 for text in plain_rows["response"].to_pylist()]
    return plain_rows.set_column(plain_rows.column_names.index("response"), "response", [texts])


def verb(name: str) -> Callable[[Any], object]:
    """A function of the package; one of another commit may lack it (against.py)."""
    return lambda rows: getattr(aes, name)(rows)


VERBS: dict[str, tuple[Callable[[int], Any], Callable[[Any], object]]] = {
    "validate traces": (table_of("trace"), verb("validate_eval_set")),
    "validate a list": (plain, verb("validate_eval_set")),
    "validate a table": (table_of("plain"), verb("validate_eval_set")),
    "validate documents": (table_of("documents"), verb("validate_eval_set")),
    "validate large texts": (large_texts, verb("validate_eval_set")),
    "normalize a list": (plain, verb("normalize_eval_set")),
    "prepare a list": (plain, verb("prepare_for_evaluate")),
    "convert a list": (plain, lambda rows: aes.convert_eval_set(rows, "mlflow")),
    "diff two lists": (plain, lambda rows: aes.diff_eval_sets(rows, rows)),
    "profile a list": (plain, verb("profile_eval_set")),
    "score trajectories": (of("trajectory"), verb("score_trajectories")),
    "build from an inference table": (table_of("payload"), verb("eval_set_from_inference_table")),
}
"""Per verb its data, and what is done with them."""


BUDGETS = {
    "validate traces": 143,
    "validate a list": 21,
    "validate a table": 6,
    "validate documents": 6,
    "validate large texts": 10,
    "normalize a list": 88,
    "prepare a list": 126,
    "convert a list": 502,  # 23 more for the shape of a row, which takes 40 µs less than patterns over its text
    "diff two lists": 68,
    "profile a list": 149,
    "score trajectories": 34,
    "build from an inference table": 148,
}
"""Per verb the most calls per row."""


def calls_of(run: Callable[[Any], object], rows: Any) -> int:
    """The calls that it takes to `run` the rows."""
    calls = count()

    def counted(_frame: Any, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            next(calls)

    before = sys.getprofile()
    threading.setprofile(counted)
    sys.setprofile(counted)
    try:
        run(rows)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return next(calls)


def calls_per_row(verb: str) -> float:
    """The calls per row that a verb takes."""
    make, run = VERBS[verb]
    few, rows = make(WARM_UP_ROWS), make(ROWS)
    run(few)
    return calls_of(run, rows) / ROWS


if __name__ == "__main__":
    for name in sys.argv[1:] or VERBS:
        print(f"{name:32} {calls_per_row(name):8.1f} of {BUDGETS[name]:,}", flush=True)
