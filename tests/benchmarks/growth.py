"""How the time grows with each measure of a dataset: ``python -m tests.benchmarks growth``.

Each shape is made with one measure (its rows, the spans of a trace, the issues of a row …) of some size, which is
doubled three times. The exponent is the slope of time over size on logarithmic axes: 1 is linear, 2 is quadratic.
Hostile shapes are what an attacker or an unlucky exporter writes. Times are CPU seconds of one process, the fastest of
a few rounds.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

DOUBLINGS = 3
ROUNDS = 3

Row = dict[str, Any]


class Shape(NamedTuple):
    """A way to make rows of a size; the first of the sizes that are measured."""

    make: Callable[[int], list[Row]]
    first: int


def row(number: int, **cells: Any) -> Row:
    return {"request_id": str(number), "request": f"Question {number}?", "response": f"Answer {number}.", **cells}


def trace(spans: int, calls: int = 0) -> str:
    """A trace of an agent with so many tools below it, of which some were called."""
    root = "0000000000000001"
    made = [span(root, None, "agent", "AGENT", {"question": "How many?"}, "Twelve.")]
    made += [
        span(f"{n:016x}", root, f"tool_{n}", "TOOL" if n - 2 < calls else "CHAIN", {"n": n}, n)
        for n in range(2, spans + 2)
    ]
    info = {"trace_id": "tr-1", "state": "OK", "request_time": "2026-01-01T00:00:00Z", "execution_duration": "1s"}
    return json.dumps({"info": info, "data": {"spans": made}})


def span(own: str, parent: str | None, name: str, kind: str, given: Any, result: Any) -> Row:
    attributes = {"mlflow.spanType": kind, "mlflow.spanInputs": given, "mlflow.spanOutputs": result}
    return {
        "name": name,
        "span_id": own,
        "parent_span_id": parent,
        "start_time_unix_nano": 1,
        "end_time_unix_nano": 2,
        "status": {"code": "STATUS_CODE_OK"},
        "attributes": {key: json.dumps(value) for key, value in attributes.items()},
    }


def call(number: int, name: str = "search") -> Row:
    return {"tool_name": name, "tool_input": {"q": f"text {number}"}}


def messages(count: int, role: str = "user") -> Row:
    return {"messages": [{"role": role if n % 2 == 0 else "assistant", "content": f"text {n}"} for n in range(count)]}


SHAPES: dict[str, Shape] = {
    "rows": Shape(lambda n: [row(i) for i in range(n)], 20_000),
    "columns": Shape(lambda n: [row(i, **{f"c{c}": "x" for c in range(n)}) for i in range(50)], 200),
    "keys of a request": Shape(lambda n: [row(0, request={**messages(1), **{f"k{k}": k for k in range(n)}})], 5_000),
    "messages of a request": Shape(lambda n: [row(0, request=messages(n))], 10_000),
    "documents of a row": Shape(
        lambda n: [row(0, retrieved_context=[{"doc_uri": f"d{i}", "content": f"text {i}"} for i in range(n)])], 10_000
    ),
    "facts of a row": Shape(lambda n: [row(0, expected_facts=[f"fact {i}" for i in range(n)])], 20_000),
    "spans of a trace": Shape(lambda n: [row(0, trace=trace(n))], 2_500),
    "calls of a trace": Shape(lambda n: [row(0, trace=trace(n, n))], 2_500),
    "calls of a trajectory": Shape(lambda n: [row(0, reference_trajectory=[call(i) for i in range(n)])], 10_000),
    "issues of a row": Shape(lambda n: [row(0, request=messages(2 * n, "usr"))], 2_500),
    "rows with an issue": Shape(lambda n: [row(i, request=" ") for i in range(n)], 10_000),
    "length of a text": Shape(lambda n: [row(0, response="text " * n)], 2_000_000),
    "equal ids": Shape(lambda n: [{**row(0), "response": str(i)} for i in range(n)], 10_000),
    "equal requests, other truths": Shape(
        lambda n: [row(i, request="?", expected_response=str(i)) for i in range(n)], 10_000
    ),
    "all rows equal": Shape(lambda n: [row(0) for _ in range(n)], 20_000),
    "nearly equal columns": Shape(lambda n: [row(0, **{f"expected_respons{i}": "x" for i in range(n)})], 500),
    "nearly equal keys": Shape(
        lambda n: [row(0, reference_trajectory=[{f"tool_nam{i}": "x" for i in range(n)}])], 1_000
    ),
    "a list that opens and never ends": Shape(lambda n: [row(0, request="[" * n)], 2_000_000),
    "escapes in a text": Shape(
        lambda n: [row(0, request='{"messages": [{"role": "user", "content": "' + "\\u0041" * n)], 500_000
    ),
}
"""What is doubled. The last sizes include 20,000 spans and issues, 4,000 columns, and texts of 80 MB."""


def exponents(only: str | None = None) -> Iterator[tuple[str, float, list[float]]]:
    """The name of each shape, its exponent, and the seconds at each size."""
    for name, shape in SHAPES.items():
        if only is None or only == name:
            seconds = [cpu_seconds(shape.make(shape.first << doubling)) for doubling in range(DOUBLINGS + 1)]
            yield name, math.log2(seconds[-1] / seconds[0]) / DOUBLINGS, seconds


def cpu_seconds(rows: list[Row]) -> float:
    """The time of a validation with its text and JSON report."""
    from agent_eval_schema import validate_eval_set

    best = math.inf
    for _ in range(ROUNDS):
        start = time.process_time()
        report = validate_eval_set(rows)
        str(report), report.to_json()
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    for name, exponent, seconds in exponents():
        print(json.dumps({"shape": name, "exponent": exponent, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
