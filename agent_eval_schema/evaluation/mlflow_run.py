"""A result → an mlflow run: the summary as metrics; page, JSON and table as artifacts."""

from __future__ import annotations

import math
import os
import re
import tempfile
from typing import TYPE_CHECKING

from agent_eval_schema.runtime.extras import missing

if TYPE_CHECKING:
    from agent_eval_schema.evaluation.result import EvalResult


_FOLDER = "eval_result"
_NOT_ALLOWED = re.compile(r"[^\w\-./ ]")


def log_result(result: EvalResult) -> str:
    """`EvalResult.log_to_mlflow`."""
    try:
        import mlflow
    except ImportError as error:
        raise missing("mlflow", "mlflow 2.13", error) from None
    active = mlflow.active_run()
    run = active or mlflow.start_run()
    try:
        # mlflow takes few characters in names, and no NaN on every store.
        numbers = {_NOT_ALLOWED.sub("_", n): v for n, v in result.summary_metrics.items() if not math.isnan(v)}
        mlflow.log_metrics(numbers)
        mlflow.log_params({f"trajectory_{name}": value for name, value in result.options.items()})
        mlflow.log_text(result.to_html(), f"{_FOLDER}/result.html")
        mlflow.log_text(result.to_json(), f"{_FOLDER}/result.json")
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "metrics_table.parquet")
            result.to_parquet(table)
            mlflow.log_artifact(table, _FOLDER)
    finally:
        if active is None:
            mlflow.end_run()
    return str(run.info.run_id)
