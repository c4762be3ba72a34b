"""A run of MLflow → an evaluation: its scores, read from the assessments of its traces.

mlflow.genai.evaluate, evaluate_eval_set ──▶ run ──result_lines──▶ ScoresAndReasons ──▶ MlflowEvaluation
EvalResult.log_to_mlflow ──▶ run ──the artifact eval_result/metrics_table.parquet──▶ a file of scores
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pandas as pd

from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.evaluation.mlflow_evaluation import FOLDER, TABLE_FILE, MlflowEvaluation
from agent_eval_schema.evaluation.row_keys import keys_from_text
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.validate import check_source

ROW_TAG = "agent_eval_schema.row"
"""The tag of a record, or of an evaluated trace, that holds the position of its row: mlflow does not keep the order."""

KEYS_TAG = "agent_eval_schema.keys"
"""The tag of a record, or of an evaluated trace, that holds what makes its row depend on others (`keys_as_text`)."""

RUN_OF = "mlflow.assessment.sourceRunId"
"""The key of an assessment's metadata that names the evaluation that made it; a trace keeps those of earlier ones."""


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
        for name, found in values.items():
            self.scores[name][row] = found[0] if len(found) == 1 else found
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
        found: list[ResultLine] = result.result_df.to_dict("records")
        return found
    scope = "locations" if "locations" in inspect.signature(mlflow.search_traces).parameters else "experiment_ids"
    traces = mlflow.search_traces(**{scope: [experiment]}, run_id=result.run_id, return_type="list")
    lines = []
    for trace in traces:
        # feedback as MLflow writes it, except the values, which its own writer does not support
        feedback = [
            {
                "assessment_name": a.name,
                "feedback": {"value": a.value, "error": a.error and a.error.to_dictionary()},
                "rationale": a.rationale,
                "metadata": a.metadata,
            }
            for a in trace.info.assessments
            if a.feedback is not None  # an expectation has none
        ]
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
        raise EvalSetError(f"{place}: {visible(str(error).splitlines()[0])}") from error
    lines.sort(key=lambda line: position_in(line["tags"].get(ROW_TAG)))
    found = ScoresAndReasons((), len(lines))
    for row, line in enumerate(lines):
        found.take(row, of_run(line["assessments"], run_id))
    if not found.scores:
        raise EvalSetError(f"{place}: the run has no scores: expected {TABLE}, or traces with assessments")
    report = check_source(open_source(pd.DataFrame({"trace": [line["trace"].to_json() for line in lines]})))
    scores, reasons = (pd.DataFrame(columns, dtype="object") for columns in (found.scores, found.reasons))
    keys = keys_from_text(line["tags"].get(KEYS_TAG) for line in lines)
    sessions = keys is not None or any(row["session_id"] is not None for row in report.iter_rows())
    return MlflowEvaluation(
        *(scores, reasons, dict(run.data.metrics), run_id, report, None),
        agent=run.data.params.get("agent"),
        keys=keys,
        sessions=sessions,
    )
