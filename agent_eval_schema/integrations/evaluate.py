"""`evaluate_eval_set`: prepare, evaluate through mlflow, and join the scores back to the rows that came in.

    data ──prepare──▶ frame ──mlflow.genai.evaluate──▶ assessments ──by position──▶ row × scorer: a score or a reason

Nothing is lost on the way: a row that is invalid, that lacks what a scorer reads, or on which a scorer or the app broke
down has a line all the same, which says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pandas as pd
from msgspec import Struct

from agent_eval_schema.check import Outputs
from agent_eval_schema.integrations.extra import missing
from agent_eval_schema.integrations.prepare import Inputs, prepare
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.report import Report
from agent_eval_schema.rules import RULES
from agent_eval_schema.traces.encode import place_of, placed_nowhere
from agent_eval_schema.visible import visible

POSITION = "agent_eval_schema.row"
"""The tag of an evaluated trace that holds the position of its row: mlflow does not keep the order."""

SQLITE_WORKERS = "4"
"""With mlflow's default of threads 100 rows exhaust the connections of a sqlite store, and most are lost (measured)."""


class Evaluation(Struct, frozen=True):
    """What an evaluation through mlflow gave.

    `scores` has a line a row of the input, in order, and a column a scorer; a score that there is not is None, and
    `reasons`, of the same shape, says why. `metrics` are mlflow's aggregates, `run_id` its run, `result` its own
    result; `report` is the report on the data.
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
        from agent_eval_schema.render.scores_text import scores_text

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
        The app, called with the keys of `inputs`; without it the outputs and traces of the data are scored.
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
        mlflow 3.3 or newer is not installed, the tracking store cannot be reached, there is no valid row, no scorer.
    """
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
        from mlflow.genai import evaluate
    except ImportError as error:
        raise missing("mlflow", "mlflow 3.3", error) from None
    from agent_eval_schema.integrations.supported import supported_scorers

    outputs: Outputs = "generated" if predict_fn is not None else "provided"
    prepared = prepare(data, inputs=inputs, format=format, outputs=outputs)
    chosen = list(supported_scorers(prepared.report, model=model)) if scorers == "supported" else list(scorers)
    if not chosen:
        raise EvalSetError("no scorer can score any row: supported_scorers(data).table says what each one lacks")
    frame = _with_positions(prepared.frame)
    try:
        with _run(mlflow) as run, _few_workers(mlflow.get_tracking_uri()):
            _log_report(mlflow, prepared.report)
            if "trace" in frame:
                frame["trace"] = _as_the_store_knows(mlflow, frame["trace"].tolist(), run.info.experiment_id)
            result = evaluate(data=frame, scorers=chosen, predict_fn=predict_fn)
    except MlflowException as error:
        raise EvalSetError(f"mlflow could not evaluate: {visible(str(error).splitlines()[0])}") from error
    names = [_name(s) for s in chosen]
    scores, reasons = _joined(result, names, prepared.report)
    return Evaluation(scores, reasons, dict(result.metrics), run.info.run_id, prepared.report, result)


def _name(scorer: Any) -> str:
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", scorer))


def _with_positions(frame: pd.DataFrame) -> pd.DataFrame:
    given: list[dict[str, str]] = frame["tags"].tolist() if "tags" in frame else [{}] * len(frame)
    tags = [{**own, POSITION: str(row)} for own, row in zip(given, frame.index, strict=True)]
    return frame.assign(tags=pd.Series(tags, index=frame.index, dtype="object")).reset_index(drop=True)


@contextmanager
def _run(mlflow: Any) -> Iterator[Any]:
    """The active run, or a new one; mlflow's evaluate takes the active one."""
    active = mlflow.active_run()
    if active is not None:
        yield active
        return
    with mlflow.start_run() as run:
        yield run


@contextmanager
def _few_workers(uri: str) -> Iterator[None]:
    """A sqlite store with as many threads as it has connections for, unless the user said otherwise."""
    name = "MLFLOW_GENAI_EVAL_MAX_WORKERS"
    if not uri.startswith("sqlite") or name in os.environ:
        yield
        return
    os.environ[name] = SQLITE_WORKERS
    try:
        yield
    finally:
        del os.environ[name]


def _as_the_store_knows(mlflow: Any, texts: list[str], experiment: str) -> list[str]:
    """A trace that says it is in this experiment, but comes from another store, is not there: mlflow would lose its
    row without a word."""
    client = mlflow.MlflowClient()

    def is_there(trace_id: str) -> bool:
        try:
            return client.get_trace(trace_id, display=False) is not None
        except mlflow.exceptions.MlflowException:
            return False

    found = []
    for text in texts:
        trace_id, place = place_of(text)
        found.append(placed_nowhere(text) if place == experiment and not is_there(trace_id) else text)
    return found


def _log_report(mlflow: Any, report: Report) -> None:
    mlflow.log_text(report.to_html(), "eval_set/report.html")
    mlflow.log_text(report.to_json(), "eval_set/report.json")
    counts = {f"eval_set/{severity}s": report.count(severity) for severity in Severity}
    rows = {"eval_set/rows": report.row_count, "eval_set/invalid_rows": report.invalid_count}
    mlflow.log_metrics({**rows, **counts})


# ---------------------------------------------------------------------------------------------------------------------
# results


def _joined(result: Any, names: list[str], report: Report) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What mlflow found of each row, at the row's place; of what it did not find, the reason."""
    size = report.row_count
    scores: dict[str, list[Any]] = {name: [None] * size for name in names}
    reasons: dict[str, list[str | None]] = {name: [None] * size for name in names}
    for line in result.result_df.to_dict("records") if result.result_df is not None else ():
        position: str | None = (line.get("tags") or {}).get(POSITION)
        if position is None:
            continue
        for given in line.get("assessments") or ():
            assessment = given if isinstance(given, dict) else given.to_dictionary()
            _take(assessment, int(position), scores, reasons, size)
    _explain_the_rest(scores, reasons, report)
    index = pd.RangeIndex(size, name="row")
    return _frame(scores, list(scores), index), _frame(reasons, list(scores), index)


def _frame(columns: dict[str, list[Any]], names: list[str], index: pd.Index) -> pd.DataFrame:
    return pd.DataFrame({n: pd.Series(columns[n], dtype="object", index=index) for n in names}, index=index)


def _take(
    assessment: dict[str, Any],
    row: int,
    scores: dict[str, list[Any]],
    reasons: dict[str, list[str | None]],
    size: int,
) -> None:
    """A score, or why there is none. A scorer may give several under names of its own; people's feedback, which a
    trace brings along, is no score."""
    name, feedback = str(assessment.get("assessment_name")), assessment.get("feedback")
    by_a_person = (assessment.get("source") or {}).get("source_type") == "HUMAN"
    if not isinstance(feedback, dict) or (by_a_person and name not in scores):
        return
    value, error = feedback.get("value"), (feedback.get("error") or {}).get("error_message")
    if not _absent(value) and not error:
        scores.setdefault(name, [None] * size)[row] = value
    said = f"the scorer broke down: {error}" if error else assessment.get("rationale")
    if said and (error or _absent(value)):
        scores.setdefault(name, [None] * size)
        reasons.setdefault(name, [None] * size)[row] = visible(said)


def _absent(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def _explain_the_rest(scores: dict[str, list[Any]], reasons: dict[str, list[str | None]], report: Report) -> None:
    codes = _codes_of_invalid_rows(report)
    valid = report.valid_mask.tolist()
    for name, values in scores.items():
        said = reasons.setdefault(name, [None] * report.row_count)
        for row, value in enumerate(values):
            if value is None and not valid[row]:
                said[row] = f"the row is invalid: {codes.get(row, 'see the report')}"
            elif value is None and said[row] is None:
                said[row] = "the scorer gave no score"


def _codes_of_invalid_rows(report: Report) -> dict[int, str]:
    found: dict[int, list[str]] = {}
    for issue in report.iter_issues() if report.invalid_count else ():
        if issue.row is not None and RULES[issue.code].severity is Severity.ERROR:
            found.setdefault(issue.row, []).append(f"{issue.code} {issue.name}")
    return {row: ", ".join(dict.fromkeys(codes)) for row, codes in found.items()}
