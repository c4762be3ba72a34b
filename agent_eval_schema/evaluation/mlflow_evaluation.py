"""An evaluation by MLflow: the scores as its scorers gave them, which scores_blocks.py shows; a result as a run."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from msgspec import Struct

from agent_eval_schema.evaluation.columns import REQUEST_ID, RUN_COLUMNS, score_column
from agent_eval_schema.evaluation.scores_blocks import scored_rows, scores_document, scores_json
from agent_eval_schema.issues import missing
from agent_eval_schema.metrics.catalog import FAILURE
from agent_eval_schema.metrics.standard_errors import numbers_of
from agent_eval_schema.render.blocks import Document
from agent_eval_schema.render.phrases import NextCommand, command_on
from agent_eval_schema.validation.report import Report


class MlflowEvaluation(Struct, frozen=True):
    """The result of `mlflow.genai.evaluate`, by the rows that came in. `scores` and `reasons` have a column per scorer
    (and request_id), `metrics` are MLflow's aggregates, `answers` the responses of `predict_fn` by row, `failed` the
    rows on which it failed; `without_judge` are the skipped scorers, with the rows that each could score."""

    scores: pd.DataFrame
    reasons: pd.DataFrame
    metrics: dict[str, float]
    run_id: str
    report: Report
    result: Any
    without_judge: dict[str, int] = {}
    failed: tuple[int, ...] = ()
    answers: dict[int, Any] = {}

    @property
    def scorers(self) -> tuple[str, ...]:
        return tuple(name for name in self.scores.columns if name != REQUEST_ID)

    def table(self) -> pd.DataFrame:
        """The normalized rows, with the columns of a run and of each scorer: its score as a number, the value that it
        gave if that is none, the reason."""
        rows = self.report.rows.dropna(axis="columns", how="all")
        table = {str(name): rows[name] for name in rows.columns}
        if self.report.outputs == "generated":
            table = {name: cells for name, cells in table.items() if name not in RUN_COLUMNS}
            table["response"] = pd.Series(
                [self.answers.get(row) for row in range(len(rows))], rows.index, dtype="object"
            )
            table[FAILURE] = pd.Series(0, rows.index)
            table[FAILURE].iloc[list(self.failed)] = 1
        for name in self.scorers:
            values = self.scores[name].tolist()
            table[score_column(name)] = pd.Series(numbers_of(values), rows.index)
            if any(isinstance(value, str | list) for value in values):
                table[f"{name}/value"] = pd.Series(values, rows.index, dtype="object")
            table[f"{name}/reason"] = pd.Series(self.reasons[name].tolist(), rows.index, dtype="object")
        return pd.DataFrame(table, index=rows.index)

    def document(self, headline: str, scored: dict[str, int], most: int = 0) -> Document:
        """What a report shows, with at most `most` rows."""
        following = []
        if headline and not self.report.ok:  # the issues are the reason
            command = command_on(self.report.name, "validate", instead="result.report")
            following = [NextCommand(command, "shows the issues of the data and how to fix them")]
        rows = scored_rows(self.scores, self.reasons, self.failed, self.report, self.answers, most) if most else []
        return scores_document(
            self.scores,
            self.reasons,
            headline=headline,
            following=following,
            metrics=self.metrics,
            scored=scored,
            without_judge=self.without_judge,
            run_id=self.run_id,
            rows=rows,
        )

    def json(self, headline: str, scored: dict[str, int]) -> str:
        """The scores and reasons of all rows."""
        return scores_json(
            self.scores,
            self.reasons,
            headline=headline,
            metrics=self.metrics,
            scored=scored,
            without_judge=self.without_judge,
            run_id=self.run_id,
        )


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
