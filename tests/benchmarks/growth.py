"""How the time grows with each measure of a dataset: ``python -m tests.benchmarks.growth [SHAPES]``.

Each shape has one measure (its rows, the spans of a trace, the issues of a row …), which is doubled until a validation
takes a tenth of a second, and then three times more. The exponent is the slope of time over size on logarithmic axes: 1
is linear, 2 is quadratic. Hostile shapes are what an attacker or an unlucky exporter writes. Times are CPU seconds, the
least of a few rounds; `tests/project/test_growth.py` counts the calls of the same shapes instead.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from agent_eval_schema import validate_eval_set
from tests.helpers.traces import ROOT, Row, span, trace

DOUBLINGS = 3
ROUNDS = 3
LEAST_SECONDS = 0.1


def row(number: int, **cells: Any) -> Row:
    return {"request_id": str(number), "request": f"Question {number}?", "response": f"Answer {number}.", **cells}


def spans(number: int, kind: str) -> list[Row]:
    """A row with the trace of an agent, with so many spans of a kind below it."""
    below = (span(str(n + 2), "1", kind, name=f"tool_{n}", inputs={"n": n}, outputs=n) for n in range(number))
    return [row(0, trace=json.dumps(trace(ROOT, *below)))]


def messages(number: int, role: str = "user") -> Row:
    return {"messages": [{"role": role if n % 2 == 0 else "assistant", "content": f"text {n}"} for n in range(number)]}


def listed(column: str, make: Callable[[int], Any]) -> Callable[[int], list[Row]]:
    """One row with a list of so many items."""
    return lambda size: [row(0, **{column: [make(i) for i in range(size)]})]


def rows(make: Callable[[int], Row]) -> Callable[[int], list[Row]]:
    return lambda size: [make(i) for i in range(size)]


CONTENT = '{"messages": [{"role": "user", "content": "'

SHAPES: dict[str, Callable[[int], list[Row]]] = {
    "rows": rows(lambda i: row(i, expected_response=f"It is {i * 7919}.")),
    "rows with an issue": rows(lambda i: row(i, request=" ", tags={"t": f"{i}"})),
    "rows of one question": rows(lambda i: row(i, request="?", expected_response=str(i))),
    "equal ids": rows(lambda i: {**row(0), "response": str(i)}),
    "equal rows": rows(lambda _: row(0)),
    "columns": lambda n: [row(i, **{f"c{c}": "x" for c in range(n)}) for i in range(3)],
    "nearly equal columns": lambda n: [row(0, **{f"expected_respons{i}": "x" for i in range(n)})],
    "keys of a request": lambda n: [row(0, request={**messages(1), **{f"k{k}": k for k in range(n)}})],
    "messages": lambda n: [row(0, request=messages(n))],
    "issues of a row": lambda n: [row(0, request=messages(2 * n, "usr"))],
    "facts": listed("expected_facts", lambda i: f"fact {i}"),
    "documents": listed("retrieved_context", lambda i: {"doc_uri": f"d{i}", "content": f"text {i}"}),
    "documents with other keys": listed("retrieved_context", lambda i: {"doc_uri": f"d{i}", "score": 0.9 / (i + 1)}),
    "calls": listed("reference_trajectory", lambda i: {"tool_name": "search", "tool_input": {"q": f"text {i}"}}),
    "nearly equal keys": lambda n: [row(0, reference_trajectory=[{f"tool_nam{i}": "x" for i in range(n)}])],
    "spans": lambda n: spans(n, "CHAIN"),
    "spans of calls": lambda n: spans(n, "TOOL"),
    "length of a text": lambda n: [row(0, response="some words here. " * n)],
    "a list that opens and never ends": lambda n: [row(0, request="[" * n)],
    "escapes in a text": lambda n: [row(0, request=CONTENT + "\\u0041" * n)],
}
"""What is doubled: rows of so many, or one row with so many parts."""


def cpu_seconds(data: list[Row]) -> float:
    """The time of a validation with its text and JSON report."""
    best = math.inf
    for _ in range(ROUNDS):
        start = time.process_time()
        report = validate_eval_set(data)
        str(report), report.to_json()
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    for name in sys.argv[1:] or SHAPES:
        sizes = (32 << doubling for doubling in count())
        first = next(size for size in sizes if cpu_seconds(SHAPES[name](size)) >= LEAST_SECONDS)
        seconds = [cpu_seconds(SHAPES[name](first << doubling)) for doubling in range(DOUBLINGS + 1)]
        exponent = math.log2(seconds[-1] / seconds[0]) / DOUBLINGS
        print(f"{name:34} {exponent:5.2f}  {first:>11,}", *(f"{one:8.3f}" for one in seconds), flush=True)


if __name__ == "__main__":
    main()
