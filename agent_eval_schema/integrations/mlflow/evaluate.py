"""`evaluate_eval_set`: prepare, evaluate through mlflow, and join the scores back to the rows that came in.

    data ──prepare──▶ frame ──mlflow.genai.evaluate──▶ assessments ──by position──▶ row × scorer: a score or a reason

Nothing is lost on the way: a row that is invalid, that lacks what a scorer reads, or on which a scorer or the app broke
down has a line all the same, which says so.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

import pandas as pd
from msgspec import Struct

from agent_eval_schema.integrations.mlflow.awaited import awaited
from agent_eval_schema.integrations.mlflow.prepare import Inputs, prepare
from agent_eval_schema.integrations.mlflow.scored_row import ScoredRow
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.visible import visible
from agent_eval_schema.traces.encode import place_of, placed_nowhere
from agent_eval_schema.validation.plan import Outputs
from agent_eval_schema.validation.report import Report

POSITION = "agent_eval_schema.row"
"""The tag of an evaluated trace that holds the position of its row: mlflow does not keep the order. The OLD
have the request_id of a row in their result, which is made the position for them."""

OLD = ("3.3.", "3.4.", "3.5.")
"""They also make a trace of their own for each row, and hand no other to the scorers, unless they run the app
(measured: 3.3.2, 3.5.1). Scorers that read traces, as ours do, then have nothing to score."""

RUN_OF = "mlflow.assessment.sourceRunId"
"""The key of an assessment's metadata that names the evaluation that made it; a trace keeps those of earlier ones."""

FEW_WORKERS = {"MLFLOW_GENAI_EVAL_MAX_WORKERS": "4"}
"""With mlflow's default of threads 100 rows exhaust the connections of a sqlite store, and most are lost (measured)."""

WRITTEN_AT_ONCE = {"MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false"}
"""mlflow copies each trace into the run and reads it back; with the writing left to its queue that waits for up to two
seconds a trace, one after the other (12 rows: 23 s, against 3 s)."""

NO_TRIAL = {"MLFLOW_GENAI_EVAL_SKIP_TRACE_VALIDATION": "true"}
"""mlflow tries the app on the first row to see whether it makes traces: a call more, and if it fails no row is scored.
mlflow 3.3 does not know this setting."""


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
        with _run(mlflow) as run, _settings(mlflow, "trace" in frame), awaited(predict_fn) as app:
            _log_report(mlflow, prepared.report)
            if "trace" in frame:
                frame["trace"] = _as_the_store_knows(mlflow, frame["trace"].tolist(), run.info.experiment_id)
            runs = None if app is None else _untried(mlflow, _traced(mlflow, app))
            result = evaluate(data=frame, scorers=chosen, predict_fn=runs)
    except MlflowException as error:
        raise EvalSetError(f"mlflow could not evaluate: {visible(str(error).splitlines()[0])}") from error
    except import_module("google.protobuf.json_format").SerializeToJsonError as error:  # of mlflow's own dependency
        why = "a score is NaN or infinite, which mlflow cannot write before 3.17: give none, or update mlflow"
        raise EvalSetError(f"mlflow could not evaluate: {why}") from error
    lines = _lines(mlflow, result, run.info.experiment_id)
    otherwise = "the scorer gave no score"
    if is_old and predict_fn is None and "trace" in frame:
        otherwise += f": mlflow {mlflow.__version__} hands it no trace of the data; update mlflow, or give predict_fn"
    scores, reasons = _joined(
        result.run_id, lines, chosen, prepared.report, ran=predict_fn is not None, otherwise=otherwise
    )
    metrics = {name: float(value) for name, value in result.metrics.items()}
    return Evaluation(scores, reasons, metrics, run.info.run_id, prepared.report, result)


def _name(scorer: Any) -> str:
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", scorer))


def _listed(mlflow: Any, scorers: Any) -> list[Any]:
    """The scorers in a list. Raises EvalSetError for what is no scorer: mlflow would say so when the run is open."""
    kind = mlflow.genai.scorers.Scorer
    if isinstance(scorers, str | kind) or not isinstance(scorers, Iterable):  # a scorer itself can be iterated too
        given = f"the scorer '{visible(_name(scorers))}' alone" if isinstance(scorers, kind) else describe(scorers)
        raise EvalSetError(f'scorers must be "supported" or a list of scorers, got {given}')
    listed = list(scorers)
    for scorer in listed:
        if not isinstance(scorer, kind):
            made = "an instance of it" if isinstance(scorer, type) else "what mlflow's decorator @scorer makes of it"
            raise EvalSetError(f"'{visible(_name(scorer))}' is no scorer of mlflow: give {made}")
    return listed


def _require_names(mlflow: Any, scorers: Iterable[Any]) -> None:
    """Raise EvalSetError for a name that mlflow takes for a scorer, but not for its metrics: it would say so when all
    rows are scored, and keep none of the scores. Of two scorers of one name only one would be told of."""
    seen: set[str] = set()
    for name in map(_name, scorers):
        if name in seen:
            raise EvalSetError(f"two scorers are called '{visible(name)}': give one of them another name")
        seen.add(name)
        try:
            mlflow.utils.validation._validate_metric_name(f"{name}/mean")
        except mlflow.exceptions.MlflowException as error:
            why = visible(str(error).splitlines()[-1])[:300]
            raise EvalSetError(f"the scorer '{visible(name)}' needs another name, for its metrics: {why}") from error


def _with_positions(frame: pd.DataFrame, *, tell_by_id: bool) -> pd.DataFrame:
    given: list[dict[str, str]] = frame["tags"].tolist() if "tags" in frame else [{}] * len(frame)
    tags = [{**own, POSITION: str(row)} for own, row in zip(given, frame.index, strict=True)]
    columns = {"tags": pd.Series(tags, index=frame.index, dtype="object")}
    if tell_by_id:
        columns["request_id"] = pd.Series([str(row) for row in frame.index], index=frame.index, dtype="object")
    return frame.assign(**columns).reset_index(drop=True)


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
def _settings(mlflow: Any, copies_traces: bool) -> Iterator[None]:
    """mlflow's settings that no row is lost with; what the user set is left alone."""
    on_sqlite = mlflow.get_tracking_uri().startswith("sqlite")
    wanted = NO_TRIAL | (FEW_WORKERS if on_sqlite else {}) | (WRITTEN_AT_ONCE if copies_traces else {})
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        if added.keys() & WRITTEN_AT_ONCE:
            _trace_anew(mlflow)
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        if added.keys() & WRITTEN_AT_ONCE:
            _trace_anew(mlflow)


def _trace_anew(mlflow: Any) -> None:
    """Tracing reads its settings when it starts; one that the user has switched off stays so."""
    from mlflow.tracing.provider import is_tracing_enabled

    if is_tracing_enabled():
        mlflow.tracing.disable()
        mlflow.tracing.enable()


def _traced(mlflow: Any, predict_fn: Callable[..., Any]) -> Callable[..., Any]:
    """The app so that each call leaves a trace, which is what scores are logged on, even of a call that raises."""
    if getattr(predict_fn, "__mlflow_traced__", False):
        return predict_fn
    traced: Callable[..., Any] = mlflow.trace(predict_fn)
    return traced


def _untried(mlflow: Any, app: Callable[..., Any]) -> Callable[..., Any]:
    """The app so that an mlflow which cannot leave out its trial only believes that it tries it: it does so with
    tracing switched off, and looks whether a span would have been made."""
    if all(hasattr(mlflow.environment_variables, name) for name in NO_TRIAL):
        return app
    from mlflow.tracing.provider import is_tracing_enabled

    no_call = mlflow.trace(lambda: None)

    @functools.wraps(app)
    def called(**inputs: Any) -> Any:
        return app(**inputs) if is_tracing_enabled() else no_call()

    return called


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


def _as_the_store_knows(mlflow: Any, texts: list[str], experiment: str) -> list[str]:
    """A trace that says it is in this experiment, but comes from another store, is not there: mlflow would lose its
    row without a word. Of rows that share a trace the first is scored on it, the others on copies."""
    client = mlflow.MlflowClient()
    seen: set[str] = set()

    def is_there(trace_id: str) -> bool:
        try:
            return client.get_trace(trace_id, display=False) is not None
        except mlflow.exceptions.MlflowException:
            return False

    found = []
    for text in texts:
        trace_id, place = place_of(text)
        known = trace_id not in seen and is_there(trace_id) if place == experiment else True
        found.append(text if known else placed_nowhere(text))
        seen.add(trace_id)
    return found


def _log_report(mlflow: Any, report: Report) -> None:
    mlflow.log_text(report.to_html(), "eval_set/report.html")
    mlflow.log_text(report.to_json(), "eval_set/report.json")
    counts = {f"eval_set/{severity}s": report.count(severity) for severity in Severity}
    rows = {"eval_set/rows": report.row_count, "eval_set/invalid_rows": report.invalid_count}
    mlflow.log_metrics({**rows, **counts})


# ---------------------------------------------------------------------------------------------------------------------
# results
Columns = dict[str, list[Any]]


class _Joined:
    """Scores and reasons by the scorer's name, each as long as the input."""

    def __init__(self, names: Iterable[str], size: int) -> None:
        self.size = size
        self.scores: Columns = {}
        self.reasons: Columns = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Room for a scorer's results, if there is none yet."""
        self.scores.setdefault(name, [None] * self.size)
        self.reasons.setdefault(name, [None] * self.size)

    def take(self, row: int, assessments: Iterable[dict[str, Any]]) -> None:
        """The scores of a row, or why there is none. A scorer may give several, under its own name or others."""
        values: dict[str, list[Any]] = {}
        said: dict[str, list[str]] = {}
        for assessment in assessments:
            name, feedback = str(assessment.get("assessment_name")), assessment.get("feedback")
            if not isinstance(feedback, dict):
                continue
            self.add(name)
            value, error, why = feedback.get("value"), feedback.get("error"), assessment.get("rationale")
            if error:
                why = f"the scorer broke down: {error.get('error_message') or error.get('error_code')}"
            elif not _absent(value):
                values.setdefault(name, []).append(value)
            if why:
                said.setdefault(name, []).append(visible(why))
        for name, found in values.items():
            self.scores[name][row] = found[0] if len(found) == 1 else found
        for name, texts in said.items():
            self.reasons[name][row] = " | ".join(dict.fromkeys(texts))

    def explain(self, row: int, reason: str, *, only: Iterable[str] | None = None, anew: bool = False) -> None:
        """Say why a row has no score where nothing is said of it; `anew`: instead of what is said."""
        for name in self.scores if only is None else only:
            if self.scores[name][row] is None and (anew or self.reasons[name][row] is None):
                self.reasons[name][row] = reason

    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        index = pd.RangeIndex(self.size, name="row")
        given = (self.scores, self.reasons)
        scores, reasons = (
            pd.DataFrame({n: pd.Series(c[n], dtype="object", index=index) for n in self.scores}) for c in given
        )
        return scores, reasons


Line = dict[str, Any]


def _lines(mlflow: Any, result: Any, experiment: str) -> list[Line]:
    """mlflow's result, a line a row. It makes none at all if a single score is NaN or infinite; what it logged on the
    traces is in the store all the same."""
    if result.result_df is not None:
        found: list[Line] = result.result_df.to_dict("records")
        return found
    scope = "locations" if "locations" in inspect.signature(mlflow.search_traces).parameters else "experiment_ids"
    traces = mlflow.search_traces(**{scope: [experiment]}, run_id=result.run_id, return_type="list")
    return [
        {"tags": t.info.tags, "assessments": _feedback(t.info.assessments), "trace": _without_assessments(t)}
        for t in traces
    ]


def _without_assessments(trace: Any) -> Any:
    """The trace so that it can be written."""
    trace.info.assessments = []
    return trace


def _feedback(assessments: Iterable[Any]) -> list[dict[str, Any]]:
    """Feedback as mlflow writes it, but for the values, which its own way of writing does not stand."""
    return [
        {
            "assessment_name": a.name,
            "feedback": {"value": a.value, "error": a.error and a.error.to_dictionary()},
            "rationale": a.rationale,
            "metadata": a.metadata,
        }
        for a in assessments
        if hasattr(a, "error")  # expectations have none
    ]


def _joined(
    run_id: str, lines: Iterable[Line], scorers: list[Any], report: Report, *, ran: bool, otherwise: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What mlflow found of each row, at the row's place; of what it did not find, the reason: `otherwise` if nothing
    else is known."""
    joined = _Joined(map(_name, scorers), report.row_count)
    of_sessions = [_name(s) for s in scorers if getattr(s, "is_session_level_scorer", False)]
    codes = _codes_of_invalid_rows(report)
    reasons: dict[int, str] = {}
    found: set[int] = set()
    for line in lines:
        row, given = _of_a_line(line)
        if row is None:
            continue
        found.add(row)
        ours = [a for a in given if (a.get("metadata") or {}).get(RUN_OF) == run_id]
        joined.take(row, sorted(ours, key=_place_of_document))
        if ran and (broken := _broke_down(line.get("trace"))):
            reasons[row] = broken
    for row, valid in enumerate(report.valid_mask.tolist()):
        if not valid:
            reasons[row] = f"the row is invalid: {codes.get(row, 'see the report')}"
        elif row not in found:
            reasons[row] = "mlflow kept no trace of the row, and with it no score"
        if row in reasons:
            joined.explain(row, reasons[row], anew=True)
        else:
            joined.explain(row, "a session has one score, on its first row", only=of_sessions)
            joined.explain(row, otherwise)
    return joined.frames()


def _of_a_line(line: dict[str, Any]) -> tuple[int | None, list[dict[str, Any]]]:
    """The position of the row that a line of mlflow's result is about, and what was said of it."""
    if "assessments" in line:
        given = line["assessments"] or []
        place = (line["tags"] or {}).get(POSITION)
    else:
        text = line.get("trace")
        given = jsontext.decode(text)["info"].get("assessments") or [] if isinstance(text, str) else []
        place = line.get("request_id")
    said = [a if isinstance(a, dict) else a.to_dictionary() for a in given]
    return (None if place is None else int(place)), said


def _broke_down(trace: Any) -> str | None:
    """What the trace of a run of the app says went wrong."""
    derived = ScoredRow(None, None, None, trace).derived
    if derived is None or not derived.failure:
        return None
    return f"the app broke down: {visible(derived.error)}" if derived.error else "the app broke down"


def _place_of_document(assessment: dict[str, Any]) -> int:
    """mlflow's judge of documents says which one it means; the store keeps no order."""
    place = str((assessment.get("metadata") or {}).get("chunk_index"))
    return int(place) if place.isdecimal() else 0


def _absent(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def _codes_of_invalid_rows(report: Report) -> dict[int, str]:
    found: dict[int, list[str]] = {}
    for issue in report.iter_issues() if report.invalid_count else ():
        if issue.row is not None and RULES[issue.code].severity is Severity.ERROR:
            found.setdefault(issue.row, []).append(f"{issue.code} {issue.name}")
    return {row: ", ".join(dict.fromkeys(codes)) for row, codes in found.items()}
