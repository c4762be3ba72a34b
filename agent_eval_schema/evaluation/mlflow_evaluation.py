"""An evaluation by MLflow: the scores as its scorers gave them, as a table; and a result as a run of MLflow."""

import math
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import pandas as pd
from msgspec import Struct

from agent_eval_schema.errors import import_extra
from agent_eval_schema.evaluation.table import REQUEST_ID, RUN_COLUMNS, score_column
from agent_eval_schema.metrics.catalog import FAILURE
from agent_eval_schema.metrics.independence import RowKeys
from agent_eval_schema.metrics.metric_info import numbers_of
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.validation.report import Report


class MlflowEvaluation(Struct, frozen=True):
    """The result of `mlflow.genai.evaluate`, by the rows that came in. `scores` and `reasons` have a column per scorer
    (and request_id), `metrics` are MLflow's aggregates, `answers` the responses of `predict_fn` by row, `failures` the
    error of each row on which it failed; `without_judge` are the skipped scorers, with the rows that each could
    score; `agent` is the name of `predict_fn`, `keys` are those of a run that has them, and `sessions` whether it is
    known which rows belong together."""

    scores: pd.DataFrame
    reasons: pd.DataFrame
    metrics: dict[str, float]
    run_id: str
    report: Report
    result: Any
    without_judge: dict[str, int] = {}
    failures: dict[int, str] = {}
    answers: dict[int, Any] = {}
    agent: str | None = None
    keys: RowKeys | None = None
    sessions: bool = True

    @property
    def scorers(self) -> tuple[str, ...]:
        return tuple(name for name in self.scores.columns if name != REQUEST_ID)

    def table(self) -> pd.DataFrame:
        """The normalized rows, with the columns of a run, and per scorer its score, another value, and the reason."""
        rows = self.report.rows.dropna(axis="columns", how="all")
        table = {str(name): rows[name] for name in rows.columns}
        if self.report.outputs == "generated":
            table = {name: cells for name, cells in table.items() if name not in RUN_COLUMNS}
            table["response"] = pd.Series(
                [self.answers.get(row) for row in range(len(rows))], rows.index, dtype="object"
            )
            errors = [self.failures.get(row) for row in range(len(rows))]
            table[FAILURE] = pd.Series([int(row in self.failures) for row in range(len(rows))], rows.index)
            table["error"] = pd.Series(errors, rows.index, dtype="object")
        for name in self.scorers:
            values = self.scores[name].tolist()
            table[score_column(name)] = pd.Series(numbers_of(values), rows.index)
            if any(isinstance(value, str | list) for value in values):
                table[f"{name}/value"] = pd.Series(values, rows.index, dtype="object")
            table[f"{name}/reason"] = pd.Series(self.reasons[name].tolist(), rows.index, dtype="object")
        return pd.DataFrame(table, index=rows.index)


# --- a result as a run
FOLDER, TABLE_FILE = "eval_result", "metrics_table.parquet"
"""The artifacts of a result, and that of its rows and scores."""

DATA_HASH = "data_hash"
"""The parameter of a run that has the hash of its data."""


def log_params(mlflow: Any, run_id: str, params: Mapping[str, str]) -> None:
    """Log parameters of a run. MLflow does not change one: a value that differs from an earlier one is a tag."""
    known = mlflow.get_run(run_id).data.params
    client = mlflow.MlflowClient()
    for name, value in params.items():
        if known.get(name, value) == value:
            client.log_param(run_id, name, value)
        else:
            client.set_tag(run_id, name, value)


def log_dataset(mlflow: Any, run_id: str, name: str, digest: str) -> None:
    """Log the data of a result as an input of the active run; its rows are in the table of the result."""
    table = {"mlflow.source.name": f"runs:/{run_id}/{FOLDER}/{TABLE_FILE}"}
    source = import_module("mlflow.data.code_dataset_source").CodeDatasetSource(table)
    found = import_module("mlflow.data.meta_dataset").MetaDataset(source, name=name, digest=digest)
    mlflow.log_input(found, context="evaluation")


_NOT_ALLOWED = re.compile(r"[^\w\-./ ]")


def log_result(
    metrics: Mapping[str, float],
    params: Mapping[str, str],
    texts: Mapping[str, Callable[[], str]],
    write_table: Callable[[str], object],
    dataset: str,
) -> str:
    """Log to the active run, or to a new one; returns its ID. `texts` has the content of each file by its name, and
    `dataset` is the name of the data, whose rows are in the table."""
    mlflow = import_extra("mlflow", "mlflow", "mlflow 2.13")
    active = mlflow.active_run()
    run = active or mlflow.start_run()
    try:
        # mlflow takes few characters in names, and no NaN on every store.
        numbers = {_NOT_ALLOWED.sub("_", n): v for n, v in metrics.items() if not math.isnan(v)}
        mlflow.log_metrics(numbers)
        log_params(mlflow, run.info.run_id, params)
        for name, text in texts.items():
            mlflow.log_text(text(), f"{FOLDER}/{name}")
        folder = TemporaryFolder()
        write_table(folder.file(TABLE_FILE))
        mlflow.log_artifact(folder.file(TABLE_FILE), FOLDER)
        log_dataset(mlflow, run.info.run_id, dataset, params[DATA_HASH])
    finally:
        if active is None:
            mlflow.end_run()
    return str(run.info.run_id)
