"""EvalTask: a dataset and metrics; `evaluate` runs an agent on it, or scores the outputs of the data.

    dataset ──input_parts──▶ columns that metrics read ──run_parts──▶ what the agent answered ──▶ Scoring ──▶ EvalResult

Without a runnable the data is scored as it is (score.py). In both cases a file is streamed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from agent_eval_schema.evaluation.inputs import EvalInputs, columns_read, input_parts, of_turns
from agent_eval_schema.evaluation.result import EvalResult
from agent_eval_schema.evaluation.run import Finished, journal_at, run_parts
from agent_eval_schema.evaluation.runnables import calling, encode_plain
from agent_eval_schema.evaluation.score import Scoring, measure, score_rows
from agent_eval_schema.evaluation.table import OUTPUTS, RUN_COLUMNS
from agent_eval_schema.evaluation.task_metrics import (
    GivenMetric,
    metric_name,
    require_metrics,
    trajectory_metrics,
)
from agent_eval_schema.evaluation.trajectories import TrajectoryOptions
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import InputFormat
from agent_eval_schema.issues import EvalSetError, Issue
from agent_eval_schema.metrics.batch.columns import PREDICTED
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.trajectory import Duplicates, Empty, Match
from agent_eval_schema.runtime.progress import notebook, progress


class EvalTask:
    """An evaluation dataset and the metrics to compute on it.

    Parameters
    ----------
    dataset : EvalSetLike
        Any input of `validate_eval_set`, the URL of a file (`gs://`, `s3://`, `abfss://`; requires its fsspec driver)
        or a BigQuery table (`bq://project.dataset.table`). Rows of Google Customer Engagement Suite are their turns. A
        file is streamed; only scores and the agent's outputs stay in memory.
    metrics : iterable of MetricName, ToolUseMetric, CustomMetric or PointwiseMetric
        Names of metrics (`"trajectory_exact_match"`, `"rouge_l_sum"`, `"document_recall"`) and metrics with options.
    duplicates : {"membership", "one_to_one"}, default "membership"
        How precision and recall count repeated calls, as in `score_trajectories`.
    empty : {"nan", "define"}, default "nan"
        The score of an empty trajectory, as in `score_trajectories`.
    match : {"call", "tool_name"}, default "call"
        When two tool calls are the same, as in `score_trajectories`.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    columns : mapping of str to str or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.

    Attributes
    ----------
    metrics : tuple
        The metrics, as they were given.

    Raises
    ------
    EvalSetError
        There is no such file or metric, or two metrics have the same name.

    See Also
    --------
    evaluate_eval_set : Evaluate with MLflow.
    score_trajectories : Compute trajectory metrics only.

    Examples
    --------
    >>> from agent_eval_schema import EvalTask
    >>> data = [{"prompt": "What is Delta Lake?", "response": "A table format", "reference": "A table format"}]
    >>> EvalTask(data, ["exact_match"]).evaluate().summary_metrics["exact_match/mean"]
    1.0
    """

    def __init__(
        self,
        dataset: EvalSetLike,
        metrics: Iterable[GivenMetric],
        *,
        duplicates: Duplicates = "membership",
        empty: Empty = "nan",
        match: Match = "call",
        format: InputFormat = "auto",
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.metrics = require_metrics(metrics)
        self._options = TrajectoryOptions(trajectory_metrics(self.metrics), duplicates, empty, match)
        self._source = open_source(dataset, "dataset", columns)
        self._format = format

    def evaluate(
        self,
        runnable: Any = None,
        *,
        max_workers: int = 4,
        timeout: float | None = None,
        journal: str | os.PathLike[str] | None = None,
        make_input: Callable[[Any], Any] | None = None,
    ) -> EvalResult:
        """Run an agent on every prompt, if one is given, and compute the metrics.

        Parameters
        ----------
        runnable : object or None, default None
            The agent: a function or coroutine function of the prompt, an object with a method `query(input=...)`, a
            LangChain or LangGraph runnable, or an MLflow pyfunc model, ChatAgent or ResponsesAgent. It returns a
            string, `{"response": ..., "predicted_trajectory": ...}`, LangChain's `intermediate_steps` or messages, or a
            chat object. A missing trajectory is taken from the MLflow trace of the call. Its outputs replace those of
            the data. None scores the outputs of the data.
        max_workers : int, default 4
            The number of concurrent calls of the agent, and of a judge.
        timeout : float or None, default None
            The maximum duration of a call, in seconds; the row fails after it. A coroutine is canceled, a thread keeps
            running. None sets no limit.
        journal : str, os.PathLike or None, default None
            The path of a checkpoint file with the finished rows: an interrupted run that is started again with it calls
            the agent on the other rows only. It belongs to the prompts of the data; use a new file for another agent.
            None writes none.
        make_input : callable or None, default None
            A function from the prompt to the input of the agent, such as `lambda prompt: {"question": prompt}`. None
            uses the input schema of the agent.

        Returns
        -------
        EvalResult
            The scores and the columns of the run. If a call raises, times out or returns an unsupported value, only
            that row fails: its `failure` is 1 and its `error` is the reason.

        Raises
        ------
        EvalSetError
            The dataset has no prompts, `runnable` is not supported, the checkpoint file was written for other prompts,
            or an option is not valid.
        MissingExtraError
            A package that a metric requires is not installed.

        See Also
        --------
        EvalResult : The result.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"prompt": "2 + 2", "reference": "4"}, {"prompt": "2 / 0", "reference": "undefined"}]
        >>> def agent(prompt):
        ...     left, operator, right = prompt.split()
        ...     return str(int(left) + int(right) if operator == "+" else int(left) // int(right))
        >>> result = EvalTask(data, ["exact_match"]).evaluate(agent)
        >>> result.metrics_table[["response", "failure", "exact_match/score"]]
          response  failure  exact_match/score
        0        4        0                1.0
        1     None        1                NaN
        """
        if max_workers < 1 or (timeout is not None and timeout <= 0):
            raise EvalSetError(f"expected workers and seconds above 0, got {max_workers} and {timeout}")
        if runnable is not None:
            call = calling(runnable, make_input)
            return self._run(call, max_workers, timeout, None if journal is None else os.fspath(journal))
        if journal is not None or make_input is not None:
            raise EvalSetError("`journal` and `make_input` require a runnable")
        return score_rows(self._source, self.metrics, self._options, self._format, notebook(), max_workers)

    def _run(
        self, call: Callable[[Any], Any], max_workers: int, timeout: float | None, journal: str | None
    ) -> EvalResult:
        source, format, left_out = of_turns(self._source, self._format)

        def parts(reads: Collection[str]) -> Iterator[EvalInputs]:
            return input_parts(source, format, reads, ran=True, trajectories=bool(self._options.metrics))

        def done(given: EvalInputs, answers: list[Finished]) -> None:
            ran = _take_answers(given, answers)
            scoring.add(measure(given, self.metrics, self._options, max_workers, ran))

        names = tuple(map(metric_name, self.metrics))
        scoring = Scoring(source, names, self._options, left_out, ran=True)
        prompts = (prompt for given in parts({"prompt"}) for prompt in given.values["prompt"])
        with (
            journal_at(journal, _required(prompts, left_out)) as kept,
            progress(source.read_share, notebook()) as so_far,
        ):
            reads = {"prompt", *columns_read(self.metrics)}
            asked = run_parts(call, parts(reads), kept, done, so_far, max_workers=max_workers, timeout=timeout)
        if not asked:
            raise _nothing_to_ask(left_out)
        return scoring.result()


def _required(prompts: Iterable[Any], left_out: list[Issue]) -> Iterator[Any]:
    """The prompts. Raises EvalSetError if there was none, before a checkpoint file is made for them."""
    found = False
    for prompt in prompts:
        found |= prompt is not None
        yield prompt
    if not found:
        raise _nothing_to_ask(left_out)


def _nothing_to_ask(left_out: list[Issue]) -> EvalSetError:
    why = f"; {len(left_out)} invalid evaluations were excluded: run `validate` for the reasons" if left_out else ""
    return EvalSetError(f"the agent cannot run: the data has no prompt and no request{why}")


def _take_answers(given: EvalInputs, answers: list[Finished]) -> pd.DataFrame:
    """Put the outputs of the agent into the rows, in the place of those of the data; these columns by themselves."""
    columns: dict[str, list[Any]] = {
        "response": [a.response for a in answers],
        LATENCY: [a.seconds for a in answers],
        FAILURE: [int(a.failed) for a in answers],
        PREDICTED: [a.trajectory for a in answers],
        "error": [a.error for a in answers],
    }
    given.frame = given.frame.drop(columns=[c for c in RUN_COLUMNS if c in given.frame.columns])
    for name, values in columns.items():
        kind = {LATENCY: "float64", FAILURE: "int64"}.get(name, "object")
        given.frame[name] = pd.Series(values, dtype=kind, index=given.frame.index)
    given.values.update({name: columns[name] for name in OUTPUTS if name in given.values})
    calls = pa.array([None if v is None else encode_plain(v) for v in columns[PREDICTED]], pa.string())
    given.trajectories = given.trajectories.set_column(0, PREDICTED, calls)
    return given.frame[[*RUN_COLUMNS]]
