"""`evaluate_eval_set`: prepare, evaluate through mlflow, and join the scores back to the rows that came in.

    data ──prepare──▶ frame ──mlflow.genai.evaluate──▶ assessments ──by position──▶ row × scorer: a score or a reason

Nothing is lost on the way: a row that is invalid, that lacks what a scorer reads, or on which a scorer or the app broke
down has a line all the same, which says so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Literal

import pandas as pd
from msgspec import Struct

from agent_eval_schema.integrations.mlflow.awaited import awaited
from agent_eval_schema.integrations.mlflow.precautions import (
    OLD,
    as_the_store_knows,
    no_row_lost,
    open_run,
    traced,
    untried,
)
from agent_eval_schema.integrations.mlflow.prepare import Inputs, prepare
from agent_eval_schema.integrations.mlflow.records import ROW_TAG
from agent_eval_schema.integrations.mlflow.scores_by_row import result_lines, scorer_name, scores_by_row
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.plan import Outputs
from agent_eval_schema.validation.report import Report


class Evaluation(Struct, frozen=True):
    """What an evaluation through mlflow gave.

    `scores` has a line a row of the input, in order, and a column a scorer; a score that there is not is None. What a
    scorer says of a row several times (a judge, of each document) is a list. `reasons`, of the same shape, says why
    there is no score; of a score it has the rationale that its scorer gave, or None. `metrics` are mlflow's aggregates,
    `run_id` its run, `result` its own result; `report` is the report on the data.
    """

    scores: pd.DataFrame
    reasons: pd.DataFrame
    metrics: dict[str, float]
    run_id: str
    report: Report
    result: Any

    @property
    def table(self) -> pd.DataFrame:
        """Scores and reasons side by side in one frame: `<scorer>/value` and `<scorer>/reason`."""
        columns = {}
        for name in self.scores.columns:
            columns[f"{name}/value"] = self.scores[name]
            columns[f"{name}/reason"] = self.reasons[name]
        return pd.DataFrame(columns, index=self.scores.index)

    def to_text(self, width: int | None = None) -> str:
        """A table with a score or a reason for each row and scorer."""
        from agent_eval_schema.render.scores import scores_text

        return scores_text(self.scores, self.reasons, width)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        scored = int(self.scores.notna().to_numpy().sum())
        return f"<Evaluation: {len(self.scores):,} rows, {len(self.scores.columns)} scorers, {scored:,} scores>"


def evaluate_eval_set(
    data: Any,
    scorers: Literal["supported"] | Iterable[Any] = "supported",
    predict_fn: Callable[..., Any] | None = None,
    *,
    model: str | None = None,
    inputs: Inputs = "auto",
    format: str = "auto",
) -> Evaluation:
    """Evaluate an evaluation set in any form with `mlflow.genai.evaluate`.

    Parameters
    ----------
    data
        Anything that `validate_eval_set` takes.
    scorers
        mlflow scorers, built in or your own; `"supported"`: those of `supported_scorers(data, model=model)`.
    predict_fn
        The app, called with the keys of `inputs`; without it the outputs and traces of the data are scored. It may be
        async: all rows are awaited on one event loop, each for at most MLFLOW_GENAI_EVAL_ASYNC_TIMEOUT seconds (300).
    model
        The judge model for mlflow's own scorers, such as `"openai:/gpt-4o"`; without one no judge is asked.
    inputs, format
        As in `prepare_for_evaluate`.

    Returns
    -------
    Evaluation
        A score or a reason for each row and scorer. The active mlflow run (a new one if there is none) holds what
        mlflow logs, the report on the data as `eval_set/report.html` and `.json`, and its counts as metrics.

    Raises
    ------
    EvalSetError
        mlflow 3.3 or newer is not installed, the tracking store cannot be reached, there is no valid row, no scorer or
        something that is none, or `predict_fn` cannot be called with the inputs of any row.
    """
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
        from mlflow.genai import evaluate
    except ImportError as error:
        raise missing("mlflow", "mlflow 3.3", error) from None
    from agent_eval_schema.integrations.mlflow.supported import supported_scorers

    named = None if scorers == "supported" else _listed(mlflow, scorers)
    if predict_fn is not None and not callable(predict_fn):
        raise EvalSetError(f"predict_fn must be a function, got {describe(predict_fn)}")
    outputs: Outputs = "generated" if predict_fn is not None else "provided"
    prepared = prepare(data, inputs=inputs, format=format, outputs=outputs)
    chosen = list(supported_scorers(prepared.report, model=model)) if named is None else named
    if not chosen:
        raise EvalSetError("no scorer can score any row: supported_scorers(data).table says what each one lacks")
    _require_names(mlflow, chosen)
    if predict_fn is not None:
        _require_callable(predict_fn, prepared.frame["inputs"])
    is_old = mlflow.__version__.startswith(OLD)
    frame = _with_positions(prepared.frame, tell_by_id=is_old)
    try:
        with open_run(mlflow) as run, no_row_lost(mlflow, "trace" in frame), awaited(predict_fn) as app:
            _log_report(mlflow, prepared.report)
            if "trace" in frame:
                frame["trace"] = as_the_store_knows(mlflow, frame["trace"].tolist(), run.info.experiment_id)
            runs = None if app is None else untried(mlflow, traced(mlflow, app))
            result = evaluate(data=frame, scorers=chosen, predict_fn=runs)
    except MlflowException as error:
        raise EvalSetError(f"mlflow could not evaluate: {visible(str(error).splitlines()[0])}") from error
    except import_module("google.protobuf.json_format").SerializeToJsonError as error:  # of mlflow's own dependency
        why = "a score is NaN or infinite, which mlflow cannot write before 3.17: give none, or update mlflow"
        raise EvalSetError(f"mlflow could not evaluate: {why}") from error
    lines = result_lines(mlflow, result, run.info.experiment_id)
    otherwise = "the scorer gave no score"
    if is_old and predict_fn is None and "trace" in frame:
        otherwise += f": mlflow {mlflow.__version__} hands it no trace of the data; update mlflow, or give predict_fn"
    scores, reasons = scores_by_row(
        result.run_id, lines, chosen, prepared.report, ran=predict_fn is not None, otherwise=otherwise
    )
    metrics = {name: float(value) for name, value in result.metrics.items()}
    return Evaluation(scores, reasons, metrics, run.info.run_id, prepared.report, result)


def _listed(mlflow: Any, scorers: Any) -> list[Any]:
    """The scorers in a list. Raises EvalSetError for what is no scorer: mlflow would say so when the run is open."""
    kind = mlflow.genai.scorers.Scorer
    if isinstance(scorers, str | kind) or not isinstance(scorers, Iterable):  # a scorer itself can be iterated too
        given = (
            f"the scorer '{visible(scorer_name(scorers))}' alone" if isinstance(scorers, kind) else describe(scorers)
        )
        raise EvalSetError(f'scorers must be "supported" or a list of scorers, got {given}')
    listed = list(scorers)
    for scorer in listed:
        if not isinstance(scorer, kind):
            made = "an instance of it" if isinstance(scorer, type) else "what mlflow's decorator @scorer makes of it"
            raise EvalSetError(f"'{visible(scorer_name(scorer))}' is no scorer of mlflow: give {made}")
    return listed


def _require_names(mlflow: Any, scorers: Iterable[Any]) -> None:
    """Raise EvalSetError for a name that mlflow takes for a scorer, but not for its metrics: it would say so when all
    rows are scored, and keep none of the scores. Of two scorers of one name only one would be in the result."""
    seen: set[str] = set()
    for name in map(scorer_name, scorers):
        if name in seen:
            raise EvalSetError(f"two scorers are called '{visible(name)}': give one of them another name")
        seen.add(name)
        try:
            mlflow.utils.validation._validate_metric_name(f"{name}/mean")
        except mlflow.exceptions.MlflowException as error:
            why = visible(str(error).splitlines()[-1])[:300]
            raise EvalSetError(f"the scorer '{visible(name)}' needs another name, for its metrics: {why}") from error


def _with_positions(frame: pd.DataFrame, *, tell_by_id: bool) -> pd.DataFrame:
    """The frame with the position of each row in a tag, and for old releases as its request_id, too."""
    given: list[dict[str, str]] = frame["tags"].tolist() if "tags" in frame else [{}] * len(frame)
    tags = [{**own, ROW_TAG: str(row)} for own, row in zip(given, frame.index, strict=True)]
    columns = {"tags": pd.Series(tags, index=frame.index, dtype="object")}
    if tell_by_id:
        columns["request_id"] = pd.Series([str(row) for row in frame.index], index=frame.index, dtype="object")
    return frame.assign(**columns).reset_index(drop=True)


def _require_callable(app: Callable[..., Any], inputs: Iterable[dict[str, Any]]) -> None:
    """Raise EvalSetError if the app takes no row's inputs: then each row would fail, after a run."""
    try:
        signature = inspect.signature(app)
    except (TypeError, ValueError):  # of a builtin
        return
    given = [tuple(row) for row in inputs]
    if not any(_takes(signature, keys) for keys in dict.fromkeys(given)):
        taken, there = ", ".join(signature.parameters) or "nothing", ", ".join(map(visible, given[0]))
        raise EvalSetError(
            f"predict_fn takes {taken}, but is called with what the rows have as inputs: {there}. Name its parameters "
            'so, or say inputs="messages", "query" or "question"'
        )


def _takes(signature: inspect.Signature, keys: Iterable[str]) -> bool:
    try:
        signature.bind(**dict.fromkeys(keys))
    except TypeError:
        return False
    return True


def _log_report(mlflow: Any, report: Report) -> None:
    mlflow.log_text(report.to_html(), "eval_set/report.html")
    mlflow.log_text(report.to_json(), "eval_set/report.json")
    counts = {f"eval_set/{severity}s": report.count(severity) for severity in Severity}
    rows = {"eval_set/rows": report.row_count, "eval_set/invalid_rows": report.invalid_count}
    mlflow.log_metrics({**rows, **counts})
