"""What is measured, one function each; every measurement runs alone in a fresh process.

    python -m tests.benchmarks.measure validate /some/folder/traces.parquet      prints one line of JSON

Only the named work is timed: imports, the first rows (which fill the caches of decoders and lazy modules) and, for the
bare parsers, the reading of the file stay outside.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Result = dict[str, float]

WARM_UP_ROWS = 64
MLFLOW_TRACES = 2_000
"""mlflow's own extraction is measured on this many and scaled: all of them would take minutes."""


def main(name: str, path: str) -> None:
    result = MEASUREMENTS[name](Path(path))
    print(json.dumps(result))


def validate(path: Path) -> Result:
    """``validate_eval_set(path)`` from start to verdict, reading included."""
    from agent_eval_schema import validate_eval_set

    validate_eval_set(first_rows(path, WARM_UP_ROWS))
    start = time.perf_counter()
    report = validate_eval_set(path)
    rows, invalid = report.row_count, report.invalid_count
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "rows": rows, "invalid": invalid, "issues": sum(report.counts.values())}


def validate_on_one_core(path: Path) -> Result:
    pin()
    return validate(path)


def orjson_loads(path: Path) -> Result:
    """A bare ``orjson.loads`` of each trace; the texts are in memory, a chunk at a time."""
    import orjson

    seconds, rows = 0.0, 0
    for texts in trace_chunks(path):
        start = time.perf_counter()
        for text in texts:
            orjson.loads(text)
        seconds += time.perf_counter() - start
        rows += len(texts)
    return {"seconds": seconds, "rows": rows}


def mlflow_extraction(path: Path) -> Result:
    """``Trace.from_json`` and mlflow's own accessors, for the fields that validation derives from a trace."""
    texts = first_traces(path, MLFLOW_TRACES)
    for text in texts[:WARM_UP_ROWS]:
        mlflow_fields(text)
    start = time.perf_counter()
    for text in texts:
        mlflow_fields(text)
    return {"seconds": time.perf_counter() - start, "rows": len(texts)}


def mlflow_fields(text: str) -> dict[str, Any]:
    """mlflow's own extraction of what validation derives; its functions for scorers, where it has them."""
    from mlflow.entities import Trace
    from mlflow.genai.utils import trace_utils

    trace = Trace.from_json(text)
    return {
        "request": trace_utils.extract_request_from_trace(trace),
        "response": trace_utils.extract_response_from_trace(trace),
        "retrieved_context": trace_utils.extract_retrieval_context_from_trace(trace),
        "trajectory": trace_utils.extract_tools_called_from_trace(trace),
        "expectations": trace_utils.extract_expectations_from_trace(trace),
        "usage": trace.info.token_usage,
    }


def arrow_read(path: Path) -> Result:
    """The file through pyarrow, batch by batch, nothing done with it."""
    pin()
    import pyarrow.parquet as pq

    start = time.perf_counter()
    rows = sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches())
    return {"seconds": time.perf_counter() - start, "rows": rows}


def pandas_read(path: Path) -> Result:
    pin()
    import pandas as pd

    first_rows(path, WARM_UP_ROWS)  # imports what pandas would import first
    start = time.perf_counter()
    rows = len(pd.read_parquet(path))
    return {"seconds": time.perf_counter() - start, "rows": rows}


def first_rows(path: Path, count: int) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = next(pq.ParquetFile(path).iter_batches(count)).to_pylist()
    return rows


def first_traces(path: Path, count: int) -> list[str]:
    texts: list[str] = []
    for chunk in trace_chunks(path):
        texts.extend(chunk)
        if len(texts) >= count:
            break
    return texts[:count]


def trace_chunks(path: Path) -> Iterator[list[str]]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(1_000, columns=["trace"]):
        yield batch.column("trace").to_pylist()


def pin() -> None:
    """Stay on one core, before pyarrow counts the cores for its thread pools."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


MEASUREMENTS: dict[str, Callable[[Path], Result]] = {
    one.__name__: one
    for one in (validate, validate_on_one_core, orjson_loads, mlflow_extraction, arrow_read, pandas_read)
}

if __name__ == "__main__":
    main(*sys.argv[1:])
