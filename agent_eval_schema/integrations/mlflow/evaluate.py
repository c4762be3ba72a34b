"""`evaluate_eval_set`: prepare, evaluate through mlflow, and join the scores back to the rows that came in.

    data ──prepare──▶ frame ──mlflow.genai.evaluate──▶ assessments ──by position──▶ row × scorer: a score or a reason

No row is lost: a row that is invalid, that lacks an input of a scorer, or on which a scorer or the agent raised an
exception is in the result, with the reason.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from typing import Any, Literal

import pandas as pd

from agent_eval_schema.errors import EvalSetError, missing, warn_caller
from agent_eval_schema.evaluation.mlflow_run import DATA_HASH, ROW_TAG, MlflowEvaluation, log_params, result_lines
from agent_eval_schema.evaluation.result import EvalResult, result_of_evaluation
from agent_eval_schema.evaluation.runnables import agent_name
from agent_eval_schema.evaluation.table import REQUEST_ID
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import InputFormat
from agent_eval_schema.integrations.mlflow.frames import Inputs
from agent_eval_schema.integrations.mlflow.prepare import Prepared, ReducedInputsWarning, prepare
from agent_eval_schema.integrations.mlflow.records import ID_TAG
from agent_eval_schema.integrations.mlflow.scores_by_row import answers_by_row, scorer_name, scores_by_row
from agent_eval_schema.integrations.mlflow.tracking import REQUEST_TAG
from agent_eval_schema.rule import Severity
from agent_eval_schema.runtime.event_loop import LoopThread
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.privacy import first_line
from agent_eval_schema.text.visible import visible
from agent_eval_schema.traces.encode import place_of, placed_nowhere
from agent_eval_schema.validation.plan import Outputs
from agent_eval_schema.validation.report import Report

# --- the inputs and settings of MLflow's evaluate with which no row of an evaluation is lost
#
# mlflow loses rows where a store has few connections, where a trace is not in the store that it names, and where a
# trial call of the agent fails. Each function here prevents one of these losses.
OLD = ("3.3.", "3.4.", "3.5.")
"""Releases whose result identifies a row by its request_id only. They also make a trace of their own for each row, and
pass no other to the scorers, unless they run the agent (measured: 3.3.2, 3.5.1). Scorers that read traces, such as
ours, then have no input."""

FEW_WORKERS = {"MLFLOW_GENAI_EVAL_MAX_WORKERS": "4"}
"""With mlflow's default of threads 100 rows exhaust the connections of a sqlite store, and most are lost (measured)."""

WRITTEN_AT_ONCE = {"MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false"}
"""mlflow copies each trace into the run and reads it back; with the writing left to its queue that waits for up to two
seconds a trace, one after the other (12 rows: 23 s, against 3 s)."""

NO_TRIAL = {"MLFLOW_GENAI_EVAL_SKIP_TRACE_VALIDATION": "true"}
"""MLflow calls the agent on the first row to see whether it makes traces: one call more, and if it fails no row is
scored. MLflow 3.3 does not have this setting."""


@contextmanager
def no_row_lost(mlflow: Any, copies_traces: bool) -> Iterator[None]:
    """MLflow's settings with which no row is lost; settings of the user are not changed."""
    on_sqlite = mlflow.get_tracking_uri().startswith("sqlite")
    wanted = NO_TRIAL | (FEW_WORKERS if on_sqlite else {}) | (WRITTEN_AT_ONCE if copies_traces else {})
    added = {name: value for name, value in wanted.items() if name not in os.environ}

    def restart_tracing() -> None:  # which reads its settings when it starts
        from mlflow.tracing.provider import is_tracing_enabled

        if added.keys() & WRITTEN_AT_ONCE and is_tracing_enabled():
            mlflow.tracing.disable()
            mlflow.tracing.enable()

    os.environ.update(added)
    try:
        restart_tracing()
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        restart_tracing()


def without_trial_call(mlflow: Any, app: Callable[..., Any]) -> Callable[..., Any]:
    """The agent for a release of MLflow that cannot skip its trial call: the trial runs with tracing disabled, and the
    function reports whether a span would have been made."""
    if all(hasattr(mlflow.environment_variables, name) for name in NO_TRIAL):
        return app
    from mlflow.tracing.provider import is_tracing_enabled

    no_call = mlflow.trace(lambda: None)

    @functools.wraps(app)
    def called(**inputs: Any) -> Any:
        return app(**inputs) if is_tracing_enabled() else no_call()

    return called


def as_the_store_knows(mlflow: Any, texts: list[str], tags: list[dict[str, str]], experiment: str) -> list[str]:
    """A trace that names this experiment, but comes from another store, is not there: MLflow would lose its row without
    an error. Of rows that share a trace the first is scored on it, the others on copies. A trace that will be copied
    has the tags of its row, which identify the copy (`TraceIds`)."""
    client = mlflow.MlflowClient()
    seen: set[str] = set()

    def is_there(trace_id: str) -> bool:
        try:
            return client.get_trace(trace_id, display=False) is not None
        except mlflow.exceptions.MlflowException:
            return False

    traces = []
    for text, own in zip(texts, tags, strict=True):
        trace_id, place = place_of(text)
        known = place == experiment and trace_id not in seen and is_there(trace_id)
        traces.append(text if known or place is None else placed_nowhere(text, own))
        seen.add(trace_id)
    return traces


# --- an async agent → a plain function, for every release of MLflow
#
#     worker threads of mlflow ──call──▶ app(**inputs) ──a coroutine──▶ one event loop, in a thread of its own
#                              ◀──────────────────────────the answer──┘
#
# mlflow 3.3 to 3.5 do not await an async app (they score the coroutine, or lose the row); 3.17 awaits each call on a
# loop of its own, which clients that the calls share do not survive ("Event loop is closed"). On one loop for all rows
# an agent runs as it does in a server, and its spans are below those of the thread that called it.
TIME_LIMIT = "MLFLOW_GENAI_EVAL_ASYNC_TIMEOUT"
"""mlflow's setting for how many seconds an async app may take for a row; 300, as there."""

SECONDS_TO_END = 1.0
"""The time that background work of an agent has to end after the evaluation, in seconds."""

App = Callable[..., Any]


@contextmanager
def awaited(app: App | None) -> Iterator[App | None]:
    """A block in which the agent is a plain function. An awaitable return value is awaited."""
    if app is None:
        yield None
        return
    loop = LoopThread("async app")

    async def in_time(answer: Awaitable[Any]) -> Any:
        limit = float(os.environ.get(TIME_LIMIT) or 300)
        try:
            return await asyncio.wait_for(answer, limit)
        except asyncio.TimeoutError as error:
            raise TimeoutError(f"no answer within {limit:g} seconds ({TIME_LIMIT})") from error

    @functools.wraps(app)
    def called(*arguments: Any, **inputs: Any) -> Any:
        answer = app(*arguments, **inputs)
        return loop.submit(in_time(answer)).result() if inspect.isawaitable(answer) else answer

    called.__name__ = getattr(app, "__name__", type(app).__name__)  # callable objects have none, and MLflow reads it
    try:
        yield called
    finally:
        loop.stop(SECONDS_TO_END)


def evaluate_eval_set(
    data: EvalSetLike,
    scorers: Literal["supported"] | Iterable[Any] = "supported",
    predict_fn: Callable[..., Any] | None = None,
    *,
    model: str | None = None,
    inputs: Inputs = "auto",
    format: InputFormat = "auto",
    columns: ColumnNames = None,
) -> EvalResult:
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
        The agent, called with the keys of `inputs` as keyword arguments; without `stream` and `stream_options` of
        logged requests, unless it has parameters with these names. It can be async; then each call has at most
        MLFLOW_GENAI_EVAL_ASYNC_TIMEOUT seconds (default 300). None scores the outputs and traces of the data.
    model : str or None, default None
        The judge model for MLflow's scorers, such as `"openai:/gpt-4o"`. None skips scorers that need a judge.
    inputs : {"auto", "messages", "query", "question"}, default "auto"
        The form of `inputs`, as in `prepare_for_evaluate`.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.

    Returns
    -------
    EvalResult
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
        from mlflow.genai import evaluate
    except ImportError as error:
        raise missing("mlflow", "mlflow 3.3", error) from None
    from agent_eval_schema.integrations.mlflow.supported import SupportedScorers, supported_scorers

    own = None if scorers == "supported" else _listed(mlflow, scorers)
    if predict_fn is not None and not callable(predict_fn):
        raise EvalSetError(f"predict_fn must be a function, got {describe(predict_fn)}")
    outputs: Outputs = "generated" if predict_fn is not None else "provided"
    source = open_source(data, "data", columns, format=format).read_as(advised=True, outputs=outputs)
    prepared = prepare(source, inputs=inputs)
    if "inputs" not in prepared.frame:
        simulator = "ConversationSimulator(test_cases=prepare_for_evaluate(data))"
        raise EvalSetError(
            f"expected rows with inputs, got test cases: use mlflow.genai.evaluate(data={simulator}, predict_fn=...)"
        )
    if prepared.reduced:
        warn_caller(prepared.reduced, ReducedInputsWarning)
    supported = SupportedScorers() if own is not None else supported_scorers(prepared.report, model=model)
    chosen = own or list(supported)
    if not chosen:
        why = f"; {', '.join(supported.without_judge)} need model=" if supported.without_judge else ""
        raise EvalSetError(f"no scorer can score any row: supported_scorers(data).table lists the missing fields{why}")
    _require_names(mlflow, chosen)
    if predict_fn is not None:
        prepared.frame["inputs"] = _accepted(predict_fn, prepared.frame["inputs"])
    is_old = mlflow.__version__.startswith(OLD)
    frame = _with_positions(prepared, position_as_id=is_old)
    traces = TraceIds(frame, prepared.request_ids, prepared.positions)
    active = mlflow.active_run()
    with (
        _explained(mlflow),
        mlflow.start_run() if active is None else nullcontext(active) as run,
        no_row_lost(mlflow, "trace" in frame),
        awaited(predict_fn) as app,
        traces.written(),
    ):
        _log_report(mlflow, prepared.report)
        if "trace" in frame:
            texts, tags = frame["trace"].tolist(), frame["tags"].tolist()
            frame["trace"] = as_the_store_knows(mlflow, texts, tags, run.info.experiment_id)
        if app is not None:
            # each call leaves a trace, to which scores are logged, even a call that raises an exception
            app = app if getattr(app, "__mlflow_traced__", False) else mlflow.trace(app)
            app = without_trial_call(mlflow, traces.called(app))
        result = evaluate(data=frame, scorers=chosen, predict_fn=app)
    otherwise = "the scorer gave no score"
    if is_old and predict_fn is None and "trace" in frame:
        otherwise += f": mlflow {mlflow.__version__} hands it no trace of the data; update mlflow, or give predict_fn"
    run_id, report, ran = run.info.run_id, prepared.report, predict_fn is not None
    lines = result_lines(mlflow, result, run.info.experiment_id)
    scores, reasons, failures = scores_by_row(
        result.run_id, lines, chosen, report, prepared.request_ids, ran=ran, otherwise=otherwise
    )
    metrics = {name: float(value) for name, value in result.metrics.items()}
    agent, answers = (agent_name(predict_fn), answers_by_row(result)) if ran else (None, {})
    evaluation = MlflowEvaluation(
        scores, reasons, metrics, run_id, report, result, supported.without_judge, failures, answers, agent
    )
    eval_result = result_of_evaluation(evaluation)
    client = mlflow.MlflowClient()
    log_params(mlflow, run_id, {DATA_HASH: eval_result.provenance[DATA_HASH], **({"agent": agent} if agent else {})})
    for name, count in eval_result.scored.items():
        client.log_metric(run_id, f"{name}/scored", count)
    return eval_result


@contextmanager
def _explained(mlflow: Any) -> Iterator[None]:
    """A block in which the errors of mlflow are EvalSetErrors."""
    try:
        yield
    except mlflow.exceptions.MlflowException as error:
        raise EvalSetError(f"mlflow could not evaluate: {first_line(error)}") from error
    except import_module("google.protobuf.json_format").SerializeToJsonError as error:  # of mlflow's own dependency
        why = "a score is NaN or infinite, which mlflow cannot write before 3.17: give none, or update mlflow"
        raise EvalSetError(f"mlflow could not evaluate: {why}") from error


def _log_report(mlflow: Any, report: Report) -> None:
    mlflow.log_text(report.to_html(), "eval_set/report.html")
    mlflow.log_text(report.to_json(), "eval_set/report.json")
    counts = {f"eval_set/{severity}s": report.count(severity) for severity in Severity}
    rows = {"eval_set/rows": report.row_count, "eval_set/invalid_rows": report.invalid_count}
    mlflow.log_metrics({**rows, **counts})


def _listed(mlflow: Any, scorers: Any) -> list[Any]:
    """The scorers in a list. Raises EvalSetError for what is no scorer: mlflow would say so when the run is open."""
    kind = mlflow.genai.scorers.Scorer
    if isinstance(scorers, str | kind) or not isinstance(scorers, Iterable):  # a scorer itself can be iterated too
        got = f"the scorer '{visible(scorer_name(scorers))}' alone" if isinstance(scorers, kind) else describe(scorers)
        raise EvalSetError(f'scorers must be "supported" or a list of scorers, got {got}')
    listed = list(scorers)
    for scorer in listed:
        if not isinstance(scorer, kind):
            right = "an instance of it" if isinstance(scorer, type) else "what mlflow's decorator @scorer makes of it"
            raise EvalSetError(f"'{visible(scorer_name(scorer))}' is not an MLflow scorer: expected {right}")
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


def _with_positions(prepared: Prepared, *, position_as_id: bool) -> pd.DataFrame:
    """The frame with position and request_id of each row in tags; its request_id is the position for old releases."""
    prepared.tag_rows()
    frame, positions = prepared.frame.reset_index(drop=True), prepared.positions
    ids = [prepared.request_ids[row] for row in positions]
    tags = [{**tags, **({ID_TAG: id} if id else {})} for tags, id in zip(frame["tags"], ids, strict=True)]
    frame["tags"] = pd.Series(tags, dtype="object")
    frame[REQUEST_ID] = pd.Series(list(map(str, positions)) if position_as_id else ids, dtype="object")
    return frame


_DELIVERY = ("stream", "stream_options")
"""The keys of a logged request that select how its answer is delivered: a stream is no answer to score."""


def _accepted(app: Callable[..., Any], inputs: pd.Series) -> pd.Series:
    """The inputs without what concerns the delivery of an answer, unless the app has a parameter of that name. Raises
    EvalSetError if the app accepts the inputs of no row: then each row would fail, after a run."""
    try:
        signature = inspect.signature(app)
    except (TypeError, ValueError):  # of a builtin
        return inputs
    dropped = {name for name in _DELIVERY if name not in signature.parameters}
    inputs = inputs.map(lambda row: {name: value for name, value in row.items() if name not in dropped})
    keys_of_rows = list(map(tuple, inputs))
    for keys in dict.fromkeys(keys_of_rows):
        with suppress(TypeError):
            signature.bind(**dict.fromkeys(keys))
            return inputs
    parameters, names = ", ".join(signature.parameters) or "nothing", ", ".join(map(visible, keys_of_rows[0]))
    raise EvalSetError(
        f"predict_fn accepts {parameters}, but the inputs of the rows are {names}: rename its parameters, or set "
        'inputs="messages", "query" or "question"'
    )


# --- the request_id of each row, on the trace that MLflow makes of it
class TraceIds:
    """The IDs of the rows of an evaluation, by the identification of their traces in MLflow.

    trace of a row       by     the identification of it when it is complete
    made of its outputs         the request_id that the row has for mlflow (the tag mlflow.eval.requestId)
    a copy of its own           the tag with the row's position
    of a call of the app        the id of the call, noted when it is made: by the arguments of the call

    MLflow has no option for the ID of a trace that it makes itself, and omits it when it copies one (measured, 3.3 to
    3.17). So it is filled in when a trace is complete, before it is written.
    """

    def __init__(self, frame: pd.DataFrame, request_ids: Sequence[str | None], positions: Sequence[int]) -> None:
        """`frame` is what mlflow evaluates: the rows at these positions."""
        ids = [request_ids[row] for row in positions]
        self._by_row = {str(row): id for row, id in zip(positions, ids, strict=True) if id is not None}
        pairs = zip(frame["request_id"], ids, strict=True)
        self._by_request = {str(key): id for key, id in pairs if id is not None}
        self._by_inputs: dict[bytes, str] = {}
        if self._by_row:  # rows with the same request cannot be distinguished when the agent is called
            keys = list(map(jsontext.encode, frame["inputs"]))
            times = Counter(keys)
            alone = ((key, id) for key, id in zip(keys, ids, strict=True) if times[key] == 1)
            self._by_inputs = {key: id for key, id in alone if id is not None}

    def called(self, app: Callable[..., Any]) -> Callable[..., Any]:
        """The agent, with a record of the row that each of its traces belongs to."""
        from mlflow.pyfunc.context import get_prediction_context

        @functools.wraps(app)
        def call(**inputs: Any) -> Any:
            context = get_prediction_context()
            id = self._by_inputs.get(jsontext.encode(inputs))
            if context is not None and context.request_id is not None and id is not None:
                self._by_request[context.request_id] = id
            return app(**inputs)

        return call

    @contextmanager
    def written(self) -> Iterator[None]:
        """A block in which traces get the ids of their rows."""
        from mlflow.tracing.trace_manager import InMemoryTraceManager

        complete = InMemoryTraceManager.pop_trace

        @functools.wraps(complete)
        def named(*arguments: Any, **options: Any) -> Any:
            found = complete(*arguments, **options)
            if found is not None:
                info: Any = found.trace.info
                id = self._by_row.get(info.tags.get(ROW_TAG)) or self._by_request.get(info.tags.get(REQUEST_TAG))
                if id is not None:
                    info.client_request_id = info.tags[ID_TAG] = id
            return found

        setattr(InMemoryTraceManager, "pop_trace", named)  # noqa: B010
        try:
            yield
        finally:
            setattr(InMemoryTraceManager, "pop_trace", complete)  # noqa: B010
