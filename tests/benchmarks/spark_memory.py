"""The memory of the driver while a table is normalized, converted and written on Spark: it must not grow with the rows.

    python -m tests.benchmarks.spark_memory 1_000_000 5_000_000      a line per size: rows, seconds, MB of the driver

Spark runs in `local[2]` with a driver of 1 GB, whose JVM does the work of the executors too: a table that came to the
driver would end it. The MB are what the driver's Python has at its peak, above what it had before.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agent_eval_schema import convert_eval_set, metric_support, normalize_eval_set
from tests.helpers.spark_session import start_spark

COLUMNS = (
    "CAST(id AS STRING) AS request_id",
    "CONCAT('How many days of leave are left for employee ', id, '?') AS request",
    "CASE WHEN id % 1000 = 999 THEN ' ' ELSE CONCAT('There are ', id % 30, ' days left.') END AS response",
    "ARRAY(CONCAT(id % 30, ' days')) AS expected_facts",
    "CONCAT('team ', id % 7) AS team",
)


def measured(spark: Any, rows: int) -> str:
    table = spark.range(0, rows, 1, 8).selectExpr(*COLUMNS)
    start, before = time.perf_counter(), _peak()
    normalize_eval_set(table, on_invalid="drop").write.format("noop").mode("overwrite").save()
    conversion = convert_eval_set(table, "vertex")
    conversion.data.write.format("noop").mode("overwrite").save()
    metric_support(table).write.format("noop").mode("overwrite").save()
    assert conversion.given == rows
    return f"{rows:>10,} rows  {time.perf_counter() - start:>6.0f} s  {_peak() - before:>4.0f} MB"


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spark = start_spark(Path(folder), **{"spark.sql.codegen.wholeStage": "true"})
        measured(spark, 1_000)  # imports
        for rows in sizes:
            print(measured(spark, rows), flush=True)
        spark.stop()


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]])
