"""A result → an mlflow run: the summary as metrics; page, JSON and table as artifacts."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping

from agent_eval_schema.runtime.extras import missing

_FOLDER = "eval_result"
_NOT_ALLOWED = re.compile(r"[^\w\-./ ]")


def log_result(
    metrics: Mapping[str, float],
    params: Mapping[str, str],
    texts: Mapping[str, Callable[[], str]],
    write_table: Callable[[str], object],
) -> str:
    """Log to the active run, or to a new one; returns its ID. `texts` has the content of each file by its name."""
    try:
        import mlflow
    except ImportError as error:
        raise missing("mlflow", "mlflow 2.13", error) from None
    active = mlflow.active_run()
    run = active or mlflow.start_run()
    try:
        # mlflow takes few characters in names, and no NaN on every store.
        numbers = {_NOT_ALLOWED.sub("_", n): v for n, v in metrics.items() if not math.isnan(v)}
        mlflow.log_metrics(numbers)
        mlflow.log_params(dict(params))
        for name, text in texts.items():
            mlflow.log_text(text(), f"{_FOLDER}/{name}")
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "metrics_table.parquet")
            write_table(table)
            mlflow.log_artifact(table, _FOLDER)
    finally:
        if active is None:
            mlflow.end_run()
    return str(run.info.run_id)
