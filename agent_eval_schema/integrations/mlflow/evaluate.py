"""`evaluate_eval_set`: prepare, evaluate through mlflow, and join the scores back to the rows that came in.

    data ──prepare──▶ frame ──mlflow.genai.evaluate──▶ assessments ──by position──▶ row × scorer: a score or a reason

No row is lost: a row that is invalid, that lacks an input of a scorer, or on which a scorer or the agent raised an
exception is in the result, with the reason.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Literal

import pandas as pd

from agent_eval_schema.formats.opening import EvalSetLike
from agent_eval_schema.formats.registry import InputFormat
from agent_eval_schema.integrations.mlflow.awaited import awaited
from agent_eval_schema.integrations.mlflow.evaluation_result import EvaluationResult
from agent_eval_schema.integrations.mlflow.frames import Inputs
from agent_eval_schema.integrations.mlflow.precautions import (
    OLD,
    as_the_store_knows,
    no_row_lost,
    open_run,
    traced,
    untried,
)
from agent_eval_schema.integrations.mlflow.prepare import Prepared, prepare
from agent_eval_schema.integrations.mlflow.records import ID_TAG, ROW_TAG
from agent_eval_schema.integrations.mlflow.reduced_inputs import ReducedInputsWarning
from agent_eval_schema.integrations.mlflow.scores_by_row import REQUEST_ID, result_lines, scorer_name, scores_by_row
from agent_eval_schema.integrations.mlflow.trace_ids import TraceIds
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.plan import Outputs
from agent_eval_schema.validation.report import Report


def evaluate_eval_set(
    data: EvalSetLike,
    scorers: Literal["supported"] | Iterable[Any] = "supported",
    predict_fn: Callable[..., Any] | None = None,
    *,
    model: str | None = None,
    inputs: Inputs = "auto",
    format: InputFormat = "auto",
) -> EvaluationResult:
    """Evaluate an evaluation dataset with `mlflow.genai.evaluate`.

    Invalid rows are excluded and reported; a row that lacks the inputs of a scorer is skipped for that scorer.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`.
    scorers : "supported" or iterable of mlflow.genai.scorers.Scorer, default "supported"
        The scorers: of MLflow, of `agent_eval_schema.scorers` or your own. `"supported"` uses
        `supported_scorers(data, model=model)`.
    predict_fn : callable or None, default None
        The agent, called with the keys of `inputs` as keyword arguments. It can be async; then each call has at most
        MLFLOW_GENAI_EVAL_ASYNC_TIMEOUT seconds (default 300). None scores the outputs and traces of the data.
    model : str or None, default None
        The judge model for MLflow's scorers, such as `"openai:/gpt-4o"`. None skips scorers that need a judge.
    inputs : {"auto", "messages", "query", "question"}, default "auto"
        The form of `inputs`, as in `prepare_for_evaluate`.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.

    Returns
    -------
    EvaluationResult
        A score, or the reason why it is missing, for each row and scorer.

    Raises
    ------
    MissingExtraError
        MLflow 3.3 or newer is not installed.
    EvalSetError
        The tracking store cannot be reached, no row is valid or no scorer, `scorers` contains something else, or
        `predict_fn` does not accept the inputs of any row.

    Warns
    -----
    ReducedInputsWarning
        The form of `inputs` omits a part of some requests.

    See Also
    --------
    supported_scorers : Return the scorers that the rows support.
    EvalTask : Run an agent and score it without MLflow.

    Notes
    -----
    The active MLflow run (a new one if there is none) contains the metrics and traces of MLflow, the validation report
    as `eval_set/report.html` and `eval_set/report.json`, and its counts as metrics. The trace of a row has the row's
    `request_id` as `client_request_id` and as the tag `agent_eval_schema.request_id`.

    Examples
    --------
    >>> from agent_eval_schema import evaluate_eval_set, scorers
    >>> data = [
    ...     {
    ...         "request_id": "q1",
    ...         "request": "What is Delta Lake?",
    ...         "response": "A table format.",
    ...         "retrieved_context": [{"doc_uri": "delta.md", "content": "Delta Lake is a table format."}],
    ...         "expected_retrieved_context": [{"doc_uri": "delta.md"}, {"doc_uri": "lake.md"}],
    ...     },
    ...     {"request_id": "q2", "request": "Who made it?", "response": "Databricks."},
    ... ]
    >>> result = evaluate_eval_set(data, [scorers.DocumentRecall()])
    <BLANKLINE>
    ✨ Evaluation completed.
    ...
    >>> result.scores["document_recall"].tolist()
    [0.5, None]
    >>> result.reasons["document_recall"][1] is not None
    True
    """
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
        from mlflow.genai import evaluate
    except ImportError as error:
        raise missing("mlflow", "mlflow 3.3", error) from None
    from agent_eval_schema.integrations.mlflow.supported import SupportedScorers, supported_scorers

    named = None if scorers == "supported" else _listed(mlflow, scorers)
    if predict_fn is not None and not callable(predict_fn):
        raise EvalSetError(f"predict_fn must be a function, got {describe(predict_fn)}")
    outputs: Outputs = "generated" if predict_fn is not None else "provided"
    prepared = prepare(data, inputs=inputs, format=format, outputs=outputs)
    if prepared.reduced:
        warnings.warn(prepared.reduced, ReducedInputsWarning, stacklevel=2)
    supported = SupportedScorers((), ()) if named is not None else supported_scorers(prepared.report, model=model)
    chosen = named or list(supported)
    if not chosen:
        why = f"; {', '.join(supported.without_judge)} need model=" if supported.without_judge else ""
        raise EvalSetError(f"no scorer can score any row: supported_scorers(data).table lists the missing fields{why}")
    _require_names(mlflow, chosen)
    if predict_fn is not None:
        _require_callable(predict_fn, prepared.frame["inputs"])
    is_old = mlflow.__version__.startswith(OLD)
    frame = _with_positions(prepared, tell_by_id=is_old)
    traces = TraceIds(frame, prepared.request_ids, prepared.positions)
    try:
        with (
            open_run(mlflow) as run,
            no_row_lost(mlflow, "trace" in frame),
            awaited(predict_fn) as app,
            traces.written(),
        ):
            _log_report(mlflow, prepared.report)
            if "trace" in frame:
                texts, tags = frame["trace"].tolist(), frame["tags"].tolist()
                frame["trace"] = as_the_store_knows(mlflow, texts, tags, run.info.experiment_id)
            runs = None if app is None else untried(mlflow, traces.called(traced(mlflow, app)))
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
    scores, reasons, failed = scores_by_row(
        result.run_id,
        lines,
        chosen,
        prepared.report,
        prepared.request_ids,
        ran=predict_fn is not None,
        otherwise=otherwise,
    )
    metrics = {name: float(value) for name, value in result.metrics.items()}
    made = EvaluationResult(
        scores, reasons, metrics, run.info.run_id, prepared.report, result, supported.without_judge, tuple(failed)
    )
    client = mlflow.MlflowClient()
    for name, count in made.scored.items():
        client.log_metric(run.info.run_id, f"{name}/scored", count)
    return made


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
            raise EvalSetError(f"'{visible(scorer_name(scorer))}' is not an MLflow scorer: expected {made}")
    return listed


def _require_names(mlflow: Any, scorers: Iterable[Any]) -> None:
    """Raise EvalSetError for a name that mlflow takes for a scorer, but not for its metrics: it would say so when all
    rows are scored, and keep none of the scores. Of two scorers of one name only one would be in the result."""
    seen: set[str] = set()
    for name in map(scorer_name, scorers):
        if name == REQUEST_ID:
            raise EvalSetError(f"a scorer is called '{name}', which is the column of the ids: give it another name")
        if name in seen:
            raise EvalSetError(f"two scorers are named '{visible(name)}': rename one of them")
        seen.add(name)
        try:
            mlflow.utils.validation._validate_metric_name(f"{name}/mean")
        except mlflow.exceptions.MlflowException as error:
            why = visible(str(error).splitlines()[-1])[:300]
            raise EvalSetError(f"the scorer '{visible(name)}' needs another name, for its metrics: {why}") from error


def _with_positions(prepared: Prepared, *, tell_by_id: bool) -> pd.DataFrame:
    """The frame with position and request_id of each row in tags, and as its request_id for mlflow (for old releases
    the position)."""
    frame, positions = prepared.frame, prepared.positions
    ids = [prepared.request_ids[row] for row in positions]
    given: list[dict[str, str]] = frame["tags"].tolist() if "tags" in frame else [{}] * len(frame)
    tags = [
        {**own, ROW_TAG: str(row), **({ID_TAG: id} if id else {})}
        for own, row, id in zip(given, positions, ids, strict=True)
    ]
    columns = {"tags": tags, REQUEST_ID: list(map(str, positions)) if tell_by_id else ids}
    made = {name: pd.Series(values, dtype="object") for name, values in columns.items()}
    return frame.reset_index(drop=True).assign(**made)


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
            f"predict_fn accepts {taken}, but the inputs of the rows are {there}: rename its parameters, or set "
            'inputs="messages", "query" or "question"'
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
