"""A run of MLflow → an evaluation: its scores, read from the assessments of its traces.

mlflow.genai.evaluate, evaluate_eval_set ──▶ run ──result_lines──▶ ScoresAndReasons ──▶ MlflowEvaluation
EvalResult.log_to_mlflow ──▶ run ──the artifact eval_result/metrics_table.parquet──▶ a file of scores
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pandas as pd
from msgspec import Struct

from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.evaluation.row_keys import keys_from_text
from agent_eval_schema.evaluation.table import REQUEST_ID, RUN_COLUMNS, score_column
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.catalog import FAILURE
from agent_eval_schema.metrics.independence import RowKeys
from agent_eval_schema.metrics.metric_info import numbers_of
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.text.privacy import first_line
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source

FOLDER, TABLE_FILE = "eval_result", "metrics_table.parquet"
"""The artifacts of a result, and that of its rows and scores."""

ROW_TAG = "agent_eval_schema.row"
"""The tag of a record, or of an evaluated trace, that holds the position of its row: mlflow does not keep the order."""

KEYS_TAG = "agent_eval_schema.keys"
"""The tag of a record, or of an evaluated trace, that holds what makes its row depend on others (`keys_as_text`)."""

RUN_OF = "mlflow.assessment.sourceRunId"
"""The key of an assessment's metadata that names the evaluation that made it; a trace keeps those of earlier ones."""


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
            places = range(len(rows))
            table["response"] = pd.Series(list(map(self.answers.get, places)), rows.index, dtype="object")
            table[FAILURE] = pd.Series([int(row in self.failures) for row in places], rows.index)
            table["error"] = pd.Series(list(map(self.failures.get, places)), rows.index, dtype="object")
        for name in self.scorers:
            values = self.scores[name].tolist()
            table[score_column(name)] = pd.Series(numbers_of(values), rows.index)
            if any(isinstance(value, str | list) for value in values):
                table[f"{name}/value"] = pd.Series(values, rows.index, dtype="object")
            table[f"{name}/reason"] = pd.Series(self.reasons[name].tolist(), rows.index, dtype="object")
        return pd.DataFrame(table, index=rows.index)


class ScoresAndReasons:
    """Scores and reasons by the scorer's name, each as long as the input."""

    def __init__(self, names: Iterable[str], size: int) -> None:
        self.size = size
        self.scores: dict[str, list[Any]] = {name: [None] * size for name in names}
        self.reasons: dict[str, list[Any]] = {name: [None] * size for name in self.scores}

    def take(self, row: int, assessments: Iterable[dict[str, Any]]) -> None:
        """The scores of a row, or the reason why there is none. A scorer may return several, under any name."""
        values: dict[str, list[Any]] = {}
        rationales: dict[str, list[str]] = {}
        for assessment in assessments:
            name, feedback = str(assessment.get("assessment_name")), assessment.get("feedback")
            if not isinstance(feedback, dict):
                continue
            for columns in (self.scores, self.reasons):
                columns.setdefault(name, [None] * self.size)
            value, error, why = feedback.get("value"), feedback.get("error"), assessment.get("rationale")
            if error:
                why = f"the scorer raised an exception: {error.get('error_message') or error.get('error_code')}"
            elif not is_absent(value):
                values.setdefault(name, []).append(value)
            if why:
                rationales.setdefault(name, []).append(visible(why))
        for name, scores in values.items():
            self.scores[name][row] = scores[0] if len(scores) == 1 else scores
        for name, texts in rationales.items():
            self.reasons[name][row] = " | ".join(dict.fromkeys(texts))

    def explain(self, row: int, reason: str, *, only: Iterable[str] | None = None, replace: bool = False) -> None:
        """Fill in the reason of a row without a score where there is none; `replace`: also an existing one."""
        for name in self.scores if only is None else only:
            if self.scores[name][row] is None and (replace or self.reasons[name][row] is None):
                self.reasons[name][row] = reason


ResultLine = dict[str, Any]


def result_lines(mlflow: Any, result: Any, experiment: str) -> list[ResultLine]:
    """MLflow's result by row; it has none if one score is NaN or infinite: then the scores are read from the traces."""
    if result.result_df is not None:
        records: list[ResultLine] = result.result_df.to_dict("records")
        return records
    scope = "locations" if "locations" in inspect.signature(mlflow.search_traces).parameters else "experiment_ids"
    traces = mlflow.search_traces(**{scope: [experiment]}, run_id=result.run_id, return_type="list")
    lines = []
    for trace in traces:
        # feedback as MLflow writes it, except the values, which its own writer does not support
        feedback = []
        for a in (a for a in trace.info.assessments if a.feedback is not None):  # an expectation has none
            value = {"value": a.value, "error": a.error and a.error.to_dictionary()}
            about = {"rationale": a.rationale, "metadata": a.metadata}
            feedback.append({"assessment_name": a.name, "feedback": value, **about})
        lines.append({"tags": trace.info.tags, "assessments": feedback, "trace": trace})
        trace.info.assessments = [a for a in trace.info.assessments if a.feedback is None]  # so that it can be written
    return lines


def position_in(text: Any) -> int:
    """The position in a tag or in metadata of MLflow; 0 if there is none."""
    return int(str(text)) if str(text).isdecimal() else 0


def of_run(assessments: Iterable[dict[str, Any]], run_id: str) -> list[dict[str, Any]]:
    """The assessments that a run made; of MLflow's judge of documents, which names the document, in their order: the
    store keeps none."""
    own = [a for a in assessments if (a.get("metadata") or {}).get(RUN_OF) == run_id]
    return sorted(own, key=lambda a: position_in((a.get("metadata") or {}).get("chunk_index")))


RUNS = "runs:/"
"""How the place of a run begins, as in MLflow's own URIs."""

TABLE = f"{FOLDER}/{TABLE_FILE}"
"""The artifact in which `EvalResult.log_to_mlflow` writes the rows and their scores."""


def scores_of_run(place: str) -> MlflowEvaluation | str:
    """The evaluation of a run (`runs:/ID`), or the path of a file of scores in it: the artifact that the place names
    (`runs:/ID/scores.parquet`), else the one that `log_to_mlflow` writes."""
    mlflow = import_extra("mlflow", "mlflow", "mlflow 3.3")
    run_id, _, artifact = place.removeprefix(RUNS).partition("/")
    try:
        run = mlflow.get_run(run_id)
        logged = mlflow.artifacts.list_artifacts(run_id=run_id, artifact_path=FOLDER)
        if artifact or any(file.path == TABLE for file in logged):
            return str(mlflow.artifacts.download_artifacts(f"{RUNS}{run_id}/{artifact or TABLE}"))
        lines = result_lines(mlflow, SimpleNamespace(result_df=None, run_id=run_id), run.info.experiment_id)
    except mlflow.exceptions.MlflowException as error:
        raise EvalSetError(f"{place}: {first_line(error)}") from error
    lines.sort(key=lambda line: position_in(line["tags"].get(ROW_TAG)))
    feedback = ScoresAndReasons((), len(lines))
    for row, line in enumerate(lines):
        feedback.take(row, of_run(line["assessments"], run_id))
    if not feedback.scores:
        raise EvalSetError(f"{place}: the run has no scores: expected {TABLE}, or traces with assessments")
    report = check_source(open_source(pd.DataFrame({"trace": [line["trace"].to_json() for line in lines]})))
    scores, reasons = (pd.DataFrame(columns, dtype="object") for columns in (feedback.scores, feedback.reasons))
    keys = keys_from_text(line["tags"].get(KEYS_TAG) for line in lines)
    sessions = keys is not None or any(row["session_id"] is not None for row in report.iter_rows())
    metrics, agent = dict(run.data.metrics), run.data.params.get("agent")
    return MlflowEvaluation(scores, reasons, metrics, run_id, report, None, agent=agent, keys=keys, sessions=sessions)


# --- a result as a run
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
    dataset = import_module("mlflow.data.meta_dataset").MetaDataset(source, name=name, digest=digest)
    mlflow.log_input(dataset, context="evaluation")


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
