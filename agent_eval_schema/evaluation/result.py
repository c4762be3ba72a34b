"""EvalResult: the scores of rows, by EvalTask or by MLflow; they can be summarized, compared, shown and written.

    scored rows ──parts──▶ metrics_table           the data's columns, then those of the run, then <metric>/score
                └─tallies─▶ summary_metrics        row_count, <metric>/mean, <metric>/std

The names of columns and keys are those of the Vertex AI SDK's `EvalResult`
(https://cloud.google.com/vertex-ai/generative-ai/docs/models/evaluation-agents). Of a file only the tallies are in
memory: its table is read, and scored, again on demand.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property, partial
from itertools import islice
from typing import Any, get_args, overload

import numpy as np
import pandas as pd
from msgspec.structs import asdict, replace

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.evaluation.comparison import ScoreComparison, compare, matched_rows
from agent_eval_schema.evaluation.every_eval_ever import is_aggregate, open_evaluation, samples_of, write_evaluation
from agent_eval_schema.evaluation.history import ScoreHistory, run_names, shared_rows
from agent_eval_schema.evaluation.mlflow_evaluation import DATA_HASH, MlflowEvaluation, log_result
from agent_eval_schema.evaluation.mlflow_run import RUNS, scores_of_run
from agent_eval_schema.evaluation.result_blocks import (
    CAUSES_SHOWN,
    SESSIONS_UNKNOWN,
    Overview,
    ResultSummary,
    Scored,
    result_json,
    result_view,
    worst_rows,
)
from agent_eval_schema.evaluation.row_keys import row_keys
from agent_eval_schema.evaluation.saved_result import ResultRecord, data_hash, read_scores, versions, write_result
from agent_eval_schema.evaluation.table import (
    REQUEST_ID,
    RUN_COLUMNS,
    FailedCalls,
    Findings,
    Groups,
    ScoreStats,
    add_by_group,
    error_text,
    headline,
    score_column,
    scores_in,
)
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import UNKNOWN, find_format
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.io.pandas import issues_frame
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.independence import RowKeys, Units, independent_units
from agent_eval_schema.metrics.intervals import NO_REPEATS, MeanInterval, mean_interval
from agent_eval_schema.metrics.known_metrics import metric_info
from agent_eval_schema.metrics.metric_info import MetricInfo, numbers_of
from agent_eval_schema.metrics.trajectory import Match
from agent_eval_schema.render.blocks import View
from agent_eval_schema.render.page import plot
from agent_eval_schema.render.phrases import Call, NextCommand, plural, seconds
from agent_eval_schema.render.printable import Savable, as_inline
from agent_eval_schema.text.choices import path_of, require_choice, require_count, shown
from agent_eval_schema.text.describe import names
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import run_of

PERCENTILES = (0.5, 0.9, 0.95, 0.99)

ROWS_ON_A_PAGE, ROWS_INLINE = 500, 3
"""Rows that a page and a notebook show, those to be examined first."""

AUTO = "auto"
"""Independent units as independence.py defines them."""

ROWS_NAMED = 20
"""Rows that a command names, at most."""

ERROR_COLUMNS = [
    *("metric", "rows", "units", "mean", "std_error", "low", "high", "design_effect"),
    *("std_questions", "std_answers", "note", "assumes"),
]

_OF_FILE = ("version", "metrics", "row_count", "columns", "added", "infos", "reading")
"""The parts of a record that describe the file."""

ROWS_LISTED = 10_000
"""Rows that `to_json` lists; `write` writes them all."""


class EvalResult(Savable):  # numpydoc ignore=PR01
    """The scores of an evaluation, with their summary.

    Attributes
    ----------
    metrics : tuple of str
        The names of the metrics (scorers).
    row_count : int
        The number of rows.
    scored : dict of str to int
        The number of rows with a score, per metric.
    unscored : pandas.DataFrame
        The reasons for missing scores: one row per metric and reason, with a RangeIndex and the columns `metric` and
        `reason` (str) and `rows` (int64).
    issue_counts : dict of str to int
        The exact number of issues per code, in the order of the codes; codes without an issue are not in it.
    options : dict of str to str
        How trajectories were compared: `duplicates`, `empty` and, if it is not "call", `match`.
    name : str or None
        The path of the file, or None for data in memory.
    report : Report or None
        The validation report of the data, of an evaluation with MLflow.
    run_id : str or None
        The ID of the MLflow run, of an evaluation with MLflow.
    mlflow_result : mlflow.genai.evaluation.entities.EvaluationResult or None
        The result of MLflow, of an evaluation with MLflow.
    without_judge : dict of str to int
        The scorers of MLflow that were skipped because `model` is None, with the number of rows that each could score.
    infos : dict of str to MetricInfo
        The direction, the scale and the unit of each metric, as far as they are known.

    See Also
    --------
    EvalTask.evaluate : The method that returns a result.
    evaluate_eval_set : Evaluate with MLflow; returns a result.
    score_trajectories : The function that returns a result.

    Examples
    --------
    >>> from agent_eval_schema import EvalTask
    >>> data = [{"response": "4", "reference": "4"}, {"response": "3", "reference": "2"}]
    >>> result = EvalTask(data, ["exact_match"]).evaluate()
    >>> result
    <EvalResult: 2 rows, 1 metrics>
    >>> result.failing({"exact_match": 0.9})
    {'exact_match': 0.5}
    """

    def __init__(
        self,
        record: ResultRecord,
        *,
        tallies: Mapping[str, ScoreStats],
        parts: Callable[[], Iterator[pd.DataFrame]],
        reasons: Callable[[], Mapping[str, Sequence[str | None]]],
        unscored: Mapping[tuple[str, str], int],
        findings: Findings,
        failed: FailedCalls,
        call: Call,
        keys: RowKeys | None,
        evaluation: MlflowEvaluation | None = None,
    ) -> None:
        self._record, self._call, self._parts, self._reasons = record, call, parts, reasons
        self._data = call if record.source in (None, call.name) else Call(record.source, record.reading)
        self._unscored, self._findings, self._failed, self._keys = dict(unscored), findings, failed, keys
        self.metrics, self.row_count, self.options = record.metrics, record.row_count, dict(record.options)
        self.name, self.run_id, self.tallies = call.name, record.run_id, dict(tallies)
        reasons_of = [(metric, reason, rows) for (metric, reason), rows in unscored.items()]
        self.unscored = pd.DataFrame(reasons_of, columns=["metric", "reason", "rows"])
        self.scored = {
            name: record.row_count - sum(rows for metric, _, rows in reasons_of if metric == name)
            for name in record.metrics
        }
        self._stated = {info.name: info for info in record.infos}
        self.infos = {name: metric_info(name, self._stated) for name in (*self.tallies, *self.metrics)}
        self._headline = headline(record.row_count, self.scored, failed.count, failed.names, record.left_out)
        self.report, self.mlflow_result, self.without_judge = None, None, dict[str, int]()
        if evaluation is not None:
            self.report, self.mlflow_result = evaluation.report, evaluation.result
            self.without_judge, self.scores = evaluation.without_judge, evaluation.scores
        self.issue_counts = dict(sorted((self.report or findings).counts.items()))

    # numbers

    @property
    def summary_metrics(self) -> dict[str, float]:
        """The number of rows, and the mean and standard deviation of each metric.

        Returns
        -------
        dict of str to float
            `row_count`, then `<metric>/mean` and `<metric>/std` of each metric; after a run, those of
            `latency_in_seconds` and `failure` come first. Rows without a score are excluded. The standard deviation is
            that of a sample, NaN for one row. Of an evaluation with MLflow also MLflow's aggregated metrics.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"response": "4", "reference": "4"}, {"response": "3", "reference": "2"}]
        >>> EvalTask(data, ["exact_match"]).evaluate().summary_metrics["exact_match/mean"]
        0.5
        """
        found: dict[str, float] = {"row_count": self.row_count}
        for name, tally in self.tallies.items():
            found[f"{name}/mean"], found[f"{name}/std"] = tally.mean, tally.std
        return found | self._record.aggregates

    @cached_property
    def metrics_table(self) -> pd.DataFrame:
        """The rows with their scores.

        Returns
        -------
        pandas.DataFrame
            One row per row of the data, in order, with the index of the data if it is a DataFrame, otherwise a
            RangeIndex. The columns are those of the data, `request_id` if a row has one, those of a run (`response`,
            `latency_in_seconds` (float64), `failure` (int64), `predicted_trajectory`, `error`), then `<metric>/score`
            (float64; NaN if missing) and the other columns of a metric, such as `<metric>/explanation` of a judge. Of
            an evaluation with MLflow the data's columns are the canonical ones, and a scorer also has
            `<metric>/reason` and, if its values are not numbers, `<metric>/value`.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"response": "4", "reference": "4"}, {"response": "3", "reference": "2"}]
        >>> EvalTask(data, ["exact_match"]).evaluate().metrics_table
          response reference  exact_match/score
        0        4         4                1.0
        1        3         2                0.0
        """
        parts = list(self._parts())
        if not parts:
            return pd.DataFrame({score_column(name): pd.Series(dtype="float64") for name in self.metrics})
        return pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]

    def iter_parts(self) -> Iterator[pd.DataFrame]:
        """Iterate over `metrics_table` in parts; a file of any size is streamed.

        Yields
        ------
        pandas.DataFrame
            Consecutive rows of `metrics_table`, with its columns and index.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"response": "4", "reference": "4"}, {"response": "3", "reference": "2"}]
        >>> [len(part) for part in EvalTask(data, ["exact_match"]).evaluate().iter_parts()]
        [2]
        """
        yield from [self.metrics_table] if "metrics_table" in self.__dict__ else self._parts()

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The score of each row and metric.

        Returns
        -------
        pandas.DataFrame
            One row per row of the data, in order and with the index of `metrics_table`: `request_id` if any row has
            one, then one column per metric. Of an evaluation with MLflow the columns have dtype object: a missing score
            is None, and several scores of one row (a judge of each document) are a list; otherwise float64.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"response": "4", "reference": "4"}, {"response": "3", "reference": "2"}]
        >>> EvalTask(data, ["exact_match"]).evaluate().scores["exact_match"].tolist()
        [1.0, 0.0]
        """
        names = {score_column(name): name for name in self.metrics}
        ids = [name for name in (REQUEST_ID,) if name in self.metrics_table.columns]
        return self.metrics_table[[*ids, *names]].rename(columns=names)

    @cached_property
    def reasons(self) -> pd.DataFrame:
        """The reason for each missing score, and the rationale of each score that has one.

        Returns
        -------
        pandas.DataFrame
            The shape of `scores`, of dtype object: the reason why a score is missing, the rationale of a judge, or
            None.

        See Also
        --------
        EvalResult.metrics_table : The rows with their scores.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"response": "4", "reference": "4"}, {"response": None, "reference": "2"}]
        >>> EvalTask(data, ["exact_match"]).evaluate().reasons["exact_match"].tolist()
        [None, 'the row lacks response']
        """
        frame = self.scores.drop(columns=list(self.metrics)).astype("object")
        for name, reasons in self._reasons().items():
            frame[name] = pd.Series(list(reasons), frame.index, dtype="object")
        return frame

    @property
    def failures(self) -> dict[int, str]:
        """The rows on which the agent failed, each with its error.

        Returns
        -------
        dict of int to str
            By their 0-based positions; empty if no agent was run.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"prompt": "1 / 2"}, {"prompt": "1 / 0"}]
        >>> EvalTask(data, []).evaluate(lambda prompt: str(eval(prompt))).failures
        {1: 'ZeroDivisionError: division by zero'}
        """
        if not self._failed.count:
            return {}
        table = self.metrics_table
        errors = table["error"].tolist() if "error" in table else [None] * len(table)
        return {row: error_text(errors[row]) for row in np.flatnonzero(table[FAILURE].to_numpy() == 1).tolist()}

    @overload
    def quantile(self, q: float, metric: str = ...) -> float: ...
    @overload
    def quantile(self, q: Sequence[float], metric: str = ...) -> pd.Series[float]: ...
    def quantile(self, q: float | Sequence[float] = 0.5, metric: str = LATENCY) -> float | pd.Series[float]:
        """Return quantiles of a metric.

        Parameters
        ----------
        q : float or sequence of float, default 0.5
            The quantiles, each from 0 to 1.
        metric : str, default "latency_in_seconds"
            The metric; the latency is in seconds and requires a run.

        Returns
        -------
        float or pandas.Series
            For one quantile a number, NaN if no row has a score. For a sequence a Series of dtype float64 whose index
            is `q`.

        Raises
        ------
        EvalSetError
            A quantile is not from 0 to 1, or the result has no such metric.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"response": "4", "reference": "4"}, {"response": "5", "reference": "5"}]
        >>> result = EvalTask(data, ["exact_match"]).evaluate()
        >>> result.quantile(0.9, "exact_match")
        1.0
        >>> result.quantile([0.5, 0.9], "exact_match")
        0.5    1.0
        0.9    1.0
        Name: exact_match, dtype: float64
        """
        stats = self._stats(metric)
        if isinstance(q, str) or not isinstance(q, Iterable):
            if not isinstance(q, int | float) or not 0 <= q <= 1:
                raise EvalSetError(f"q: expected a number from 0 to 1; got {shown(q)}")
            return stats.percentile(q)
        return pd.Series([self.quantile(one, metric) for one in q], index=list(q), name=metric, dtype="float64")

    def confidence_interval(self, metric: str, confidence_level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of a metric's mean.

        Parameters
        ----------
        metric : str
            The metric.
        confidence_level : float, default 0.95
            The confidence level, between 0 and 1.

        Returns
        -------
        tuple of float
            The lower and the upper bound; NaN if there is no interval, for which `standard_errors` gives the reason.

        Raises
        ------
        EvalSetError
            The confidence level is not between 0 and 1, or the result has no such metric.

        See Also
        --------
        EvalResult.standard_errors : The intervals of all metrics, and what they are computed from.

        Notes
        -----
        Of scores of 0 and 1 it is Wilson's interval, of other scores that of Student's t distribution, with one more
        score at each end of the scale of the metric, if that is known. Rows of one session, with the same question or
        the same expected document are one independent unit; there is no interval of fewer than five units.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"response": "4", "reference": "4"}] * 12
        >>> low, high = EvalTask(data, ["exact_match"]).evaluate().confidence_interval("exact_match")
        >>> round(low, 2), high
        (0.76, 1.0)
        """
        if not isinstance(confidence_level, int | float) or not 0 < confidence_level < 1:
            raise EvalSetError(f"confidence_level: expected a number between 0 and 1; got {shown(confidence_level)}")
        self._stats(metric)
        found = self._interval(metric, confidence_level)
        return found.low, found.high

    def _interval(self, metric: str, level: float = 0.95) -> MeanInterval:
        """The interval of a mean, and what it is computed from."""
        codes = None if self._units is None else self._units.codes
        return self.tallies[metric].interval(codes, level, self.infos[metric].ends)

    @cached_property
    def _intervals(self) -> dict[str, MeanInterval]:
        return {name: self._interval(name) for name in self.tallies}

    @cached_property
    def _units(self) -> Units | None:
        """The independent units of the rows; None if each row is one."""
        return None if self._keys is None else independent_units(self._keys)

    @cached_property
    def _spreads(self) -> dict[str, tuple[float, float]]:
        """The standard deviations between questions and between answers to the same one, where some are repeated."""
        if self._keys is None:
            return {}
        found = {name: tally.spread(self._keys.questions) for name, tally in self.tallies.items()}
        return {name: spread for name, spread in found.items() if spread != NO_REPEATS}

    def _units_by(self, cluster: str | None) -> Units | None:
        """The units by a column, or by the definition for all numbers ("auto")."""
        if cluster == AUTO or cluster is None:
            return self._units if cluster else None
        table = self.metrics_table
        if not isinstance(cluster, str) or cluster not in table.columns:
            of = names(table.columns)
            raise EvalSetError(f"cluster: expected auto, None or a column ({of}); got {shown(cluster)}")
        keys, alone = table[cluster], range(len(table))
        texts = [(i,) if is_absent(key) or key == "" else str(key) for i, key in zip(alone, keys, strict=True)]
        return Units(pd.factorize(pd.Series(texts, dtype="object"))[0], ("cluster",))

    def standard_errors(self, cluster: str | None = AUTO) -> pd.DataFrame:
        """Return the standard error and the confidence interval of each mean.

        Parameters
        ----------
        cluster : str or None, default "auto"
            The column whose equal values make an independent unit. `"auto"`: rows of one `session_id`, with the same
            question, or with the same first document of `expected_retrieved_context` are one unit. None treats the rows
            as independent.

        Returns
        -------
        pandas.DataFrame
            One row per metric, with a RangeIndex and the columns `metric` (str), `rows` (int64; with a score), `units`
            (int64; independent), `mean`, `std_error`, `low` and `high` (float64; the 95 % interval of
            `confidence_interval`), `design_effect` (float64; the square of the ratio of `std_error` to that of
            independent rows), `std_questions` and `std_answers` (float64; the standard deviation between questions, and
            between answers to the same question, which is the noise of the agent; NaN if no question is repeated) and
            `note` (str; the reason why there is no interval) and `assumes` (str; what the interval assumes of a scale
            that is not known).

        Raises
        ------
        EvalSetError
            There is no such column.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> right, wrong = {"response": "4", "reference": "4"}, {"response": "3", "reference": "4"}
        >>> data = [{**right, "session_id": "a"}, {**right, "session_id": "a"}, {**wrong, "session_id": "b"}]
        >>> errors = EvalTask(data, ["exact_match"]).evaluate().standard_errors()
        >>> errors[["rows", "units", "mean", "std_error"]].round(3)
           rows  units   mean  std_error
        0     3      2  0.667      0.444
        >>> errors["note"].item()
        'no interval: 2 independent units, at least 5 are needed'
        """
        units, lines = self._units_by(cluster), []
        for name in self.tallies:
            if cluster == AUTO:
                found = self._intervals[name]
            else:
                scores = scores_in(self.metrics_table, name)
                found = mean_interval(scores, None if units is None else units.codes, scale=self.infos[name].ends)
            spread = self._spreads.get(name, NO_REPEATS)
            lines.append({"metric": name, **asdict(found), "std_questions": spread[0], "std_answers": spread[1]})
        frame = pd.DataFrame(lines, columns=ERROR_COLUMNS)
        return frame.astype({"rows": "int64", "units": "int64"})

    def _stats(self, metric: str) -> ScoreStats:
        require_choice("metric", metric, self.tallies)
        return self.tallies[metric]

    def groupby(self, column: str) -> pd.DataFrame:
        """Return the summary for each value of a column.

        Parameters
        ----------
        column : str
            A column of `metrics_table`.

        Returns
        -------
        pandas.DataFrame
            One row per value, in the order in which they occur; the index has the values as str and the name of the
            column. The columns are `row_count` and, per metric, `<metric>/mean`, `<metric>/std` and `<metric>/scored`
            (rows with a score).

        Raises
        ------
        EvalSetError
            There is no such column.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [
        ...     {"response": "4", "reference": "4", "team": "docs"},
        ...     {"response": "3", "reference": "2", "team": "sales"},
        ... ]
        >>> EvalTask(data, ["exact_match"]).evaluate().groupby("team")["exact_match/mean"].to_dict()
        {'docs': 1.0, 'sales': 0.0}
        """
        groups: Groups = {}
        for part in self.iter_parts():
            require_choice("column", column, part.columns)
            add_by_group(groups, part, part[column].map(str), self.tallies)
        lines = {
            key: {"row_count": max((t.rows for t in tallies.values()), default=0)}
            | {f"{n}/{what}": getattr(t, what) for n, t in tallies.items() for what in ("mean", "std", "scored")}
            for key, tallies in groups.items()
        }
        frame = pd.DataFrame.from_dict(lines, orient="index")
        frame.index.name = column
        return frame

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Where the scores come from.

        Returns
        -------
        dict
            `source` (str or None: the path of the data), `data_hash` (str: that of the cells of the data, without those
            of a run and without scores), `run_id` and `agent` (str or None), `sessions` (bool: whether it is known
            which rows belong together), `options`, `versions` (of Python and of packages), `issue_counts` and
            `aggregates` (dict) and `left_out` (int: excluded rows). Of a loaded result they are those of the result
            that was written.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> result = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> result.provenance["data_hash"]
        '017ee357adf57af632a5ace1ccb2a628'
        """
        kept = {name: value for name, value in asdict(self._record).items() if name not in _OF_FILE}
        if kept["versions"] and not kept["data_hash"]:  # scored here
            kept |= {"data_hash": data_hash(self.iter_parts(), self.metrics), "issue_counts": self.issue_counts}
        return kept

    # the issues

    @cached_property
    def issues(self) -> pd.DataFrame:
        """The issues of the cells that scores are computed from.

        Returns
        -------
        pandas.DataFrame
            One row per issue, at most the first 10,000, with the columns of `Report.issues`.

        See Also
        --------
        Report.issues : The issues of a validation.

        Examples
        --------
        >>> from agent_eval_schema import score_trajectories
        >>> result = score_trajectories([{"predicted_trajectory": "search", "reference_trajectory": []}])
        >>> result.issues[["row", "column", "severity"]]
           row                column severity
        0    0  predicted_trajectory    error
        1    0  reference_trajectory  warning
        """
        return issues_frame(self._findings.kept) if self.report is None else self.report.issues

    def failing(
        self,
        thresholds: Mapping[str, float | tuple[float | None, float | None]],
        confidence_level: float | None = None,
    ) -> dict[str, float]:
        """Return the metrics that miss their threshold or are undefined.

        Parameters
        ----------
        thresholds : mapping of str to float or tuple of float or None
            Per metric the worst accepted value: the highest one where less is better, such as of `failure`, else the
            lowest one. A tuple has the lowest and the highest accepted value, each may be None.
        confidence_level : float or None, default None
            None compares the mean. A level, such as 0.95, compares the bound of that confidence interval which is
            nearer to failing, so that a metric only passes if the rows show that it is good enough.

        Returns
        -------
        dict of str to float
            The means or bounds that miss their threshold, or NaN; empty if the result passes.

        Raises
        ------
        EvalSetError
            The result has no such metric, the level is not between 0 and 1, or a number is the threshold of a metric of
            which it is not known whether less is better though its name suggests it.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"response": "4", "reference": "4"}, {"response": "3", "reference": "2"}]
        >>> EvalTask(data, ["exact_match"]).evaluate().failing({"exact_match": 0.8})
        {'exact_match': 0.5}
        """
        if not isinstance(thresholds, Mapping) or not all(map(_is_threshold, thresholds.values())):
            raise EvalSetError(
                f"thresholds: expected a dict {{metric: number}} or {{metric: (lowest, highest)}}; "
                f"got {shown(thresholds)}"
            )
        found = {}
        for metric, threshold in thresholds.items():
            mean = self._stats(metric).mean
            bounds = (mean, mean) if confidence_level is None else self.confidence_interval(metric, confidence_level)
            lowest, highest = self._accepted(metric, threshold)
            if lowest is not None and not bounds[0] >= lowest:
                found[metric] = bounds[0]
            elif highest is not None and not bounds[1] <= highest:
                found[metric] = bounds[1]
        return found

    def _accepted(
        self, metric: str, threshold: float | tuple[float | None, float | None]
    ) -> tuple[float | None, float | None]:
        """The lowest and the highest accepted value."""
        if isinstance(threshold, tuple):
            return threshold
        info = self.infos[metric]
        if info.direction == "none" or (info.direction == "unknown" and info.suggests_lower):
            why = "neither higher nor lower is better" if info.direction == "none" else info.assumption
            raise EvalSetError(
                f"thresholds: {metric}: {why}: set a tuple (lowest, highest), such as (None, {threshold:g})"
            )
        return (None, threshold) if info.sign < 0 else (threshold, None)

    # against another one

    @overload
    def compare(
        self,
        other: EvalResult | EvalSetLike,
        *,
        key: str | None = ...,
        cluster: str | None = ...,
        metrics: Sequence[str] | None = ...,
    ) -> ScoreComparison: ...
    @overload
    def compare(
        self,
        other: EvalResult | EvalSetLike,
        another: EvalResult | EvalSetLike,
        /,
        *more: EvalResult | EvalSetLike,
        key: str | None = ...,
        cluster: str | None = ...,
        configurations: Sequence[str] | None = ...,
        metrics: Sequence[str] | None = ...,
    ) -> ScoreHistory: ...
    def compare(
        self,
        other: EvalResult | EvalSetLike,
        *more: EvalResult | EvalSetLike,
        key: str | None = None,
        cluster: str | None = AUTO,
        configurations: Sequence[str] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> ScoreComparison | ScoreHistory:
        """Compare with another result, row by row, with a paired permutation test; or with several.

        Parameters
        ----------
        other : EvalResult or EvalSetLike
            The new result, or what `load_result` reads: a file of scores, or a run of MLflow (`"runs:/ID"`). This
            result is the old one.
        *more : EvalResult or EvalSetLike
            Further results. With them, the result is a ScoreHistory.
        key : str or None, default None
            A column that identifies rows, such as `"request_id"`. None compares the rows at the same positions if both
            results have the same requests there; otherwise those with the same `request_id`, or the same question.
        cluster : str or None, default "auto"
            The column of this result whose equal values make an independent unit, as in `standard_errors`. None treats
            the rows as independent.
        configurations : sequence of str or None, default None
            Of several results: the name of the configuration of each, this one first. Results of one configuration are
            repeats, which show the noise. None: each is another one.
        metrics : sequence of str or None, default None
            The metrics to compare; all of them count. None: all that the results share; those count that judge answers
            and vary; latency, tokens and other figures are shown and not judged.

        Returns
        -------
        ScoreComparison or ScoreHistory
            The change of the mean of each metric that both results have, with its interval and p value, and the scores
            that differ. Of several results each metric over the runs, the rows that changed sides, and the noise of
            repeats.

        Raises
        ------
        EvalSetError
            The key is not unique, the results share no row, or the rows have neither a request nor the same positions.

        Notes
        -----
        Two requests have the same question if their words are equal; case, punctuation and system messages do not
        count. Of rows with the same question, the first of both results are compared, then the second, and so on.

        The null hypothesis is that the difference of each independent unit could have the opposite sign. The p value is
        the share of sign patterns whose sum is at least as far from 0 as the observed one: of all patterns for up to 16
        units that differ, of 10,000 random patterns (fixed seed) for up to 1,000, and from the normal distribution for
        more. For scores of 0 and 1 this is McNemar's exact test. The interval inverts the test, so 0 is in it exactly
        if the p value is at least 0.05. Fewer than six independent units cannot be tested.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> same = {"response": "2", "reference": "2"}
        >>> old = EvalTask([{"response": "3", "reference": "4"}, same], ["exact_match"]).evaluate()
        >>> new = EvalTask([{"response": "4", "reference": "4"}, same], ["exact_match"]).evaluate()
        >>> old.compare(new).summary[["metric", "old", "new", "higher", "lower"]]
                metric  old  new  higher  lower
        0  exact_match  0.5  1.0       1      0
        """
        if more or configurations is not None:
            return self._history([other, *more], key, cluster, configurations, metrics)
        other = other if isinstance(other, EvalResult) else _loaded(other)
        shared = self._shared([other], metrics)
        infos = {name: self._info_beside(other, name) for name in shared}
        found = compare(
            self.metrics_table,
            other.metrics_table,
            infos,
            key,
            self._units_beside(other, key) if cluster == AUTO else self._units_by(cluster),
            list(self._differences(other)),
            (self.name, other.name),
            keys=(self._keys, other._keys),
            asked=metrics is not None,
            review=partial(other._review, "that became worse"),
        )
        found._runs = [self._about, other._about]
        return found

    def _review(self, which: str, rows: Sequence[int]) -> list[NextCommand]:
        """What opens a review of the rows at these positions, the first of them if they are many; nothing if a review
        cannot open the data, or they were written after the scores: then other rows may be at these positions."""
        name, options = self._data.name, self._data.options
        if not rows or name is None or not os.path.exists(name):
            return []
        is_saved = self.name not in (None, name) and os.path.exists(str(self.name))
        if is_saved and os.path.getmtime(name) > os.path.getmtime(str(self.name)):
            return []
        try:
            source = open_source(name, "data", options.get("columns"), format=options.get("format", "auto"))
            form = make_plan(source).format
        except EvalSetError:
            return []
        if form == UNKNOWN.name or find_format(form).system == "ces":
            return []
        first = list(dict.fromkeys(rows))
        some = f"{f'{ROWS_NAMED} of ' * (len(first) > ROWS_NAMED)}the {plural(len(first), 'row')} {which}"
        command = self._data.command("review", "--rows", ",".join(map(str, first[:ROWS_NAMED])))
        return [NextCommand(command, f"opens a page to review {some}, the worst first")]

    @property
    def _about(self) -> str:
        """Its name, its data, and of a file its date."""
        source = self._record.source
        of = f" of {os.path.basename(source)}" if source and source != self.name else ""
        parts = [os.path.basename((self.name or "in memory").rstrip("/")), f"{plural(self.row_count, 'row')}{of}"]
        if self.name and self.name != source and os.path.exists(self.name):
            written = datetime.fromtimestamp(os.path.getmtime(self.name), timezone.utc)
            parts.append(f"written {written:%Y-%m-%d %H:%M} UTC")
        return ", ".join(parts)

    def _units_beside(self, other: EvalResult, key: str | None) -> Units | None:
        """The units of the rows; by the other result, if only that one has their sessions."""
        if self._record.sessions or not other._record.sessions or other._units is None:
            return self._units
        pairs = matched_rows(self.metrics_table, other.metrics_table, key, (self._keys, other._keys))
        codes = np.arange(self.row_count) + other.row_count
        codes[pairs.old] = other._units.codes[pairs.new]
        return Units(codes, other._units.kinds)

    def _shared(self, others: Sequence[EvalResult], metrics: Sequence[str] | None) -> list[str]:
        """The metrics that all results have, or those of them that are asked for."""
        shared = [name for name in self.tallies if all(name in other.tallies for other in others)]
        if not shared:
            of = "; ".join(names(result.tallies) for result in (self, *others))
            raise EvalSetError(f"the results share no metric: {of}")
        for name in metrics or ():
            require_choice("metrics", name, shared)
        return shared if metrics is None else list(dict.fromkeys(metrics))

    def _info_beside(self, other: EvalResult, name: str) -> MetricInfo:
        """What is known of a metric of two results: what was stated for either."""
        return metric_info(name, {**other._stated, **self._stated})

    def _history(
        self,
        others: Sequence[EvalResult | EvalSetLike],
        key: str | None,
        cluster: str | None,
        configurations: Sequence[str] | None,
        metrics: Sequence[str] | None,
    ) -> ScoreHistory:
        results = [self, *(other if isinstance(other, EvalResult) else _loaded(other) for other in others)]
        runs = run_names([result.name for result in results])
        if configurations is not None and (isinstance(configurations, str) or len(configurations) != len(runs)):
            raise EvalSetError(f"configurations: expected a name per result, {len(runs)}; got {shown(configurations)}")
        asked, metrics = metrics is not None, self._shared(results[1:], metrics)
        tables = [result.metrics_table for result in results]
        pairs = zip(tables[1:], results[1:], strict=True)
        at = shared_rows([matched_rows(tables[0], table, key, (self._keys, of._keys)) for table, of in pairs])
        if not len(at[0]):
            raise EvalSetError("the results share no row")
        scores = {
            name: np.column_stack([scores_in(table, name)[rows] for table, rows in zip(tables, at, strict=True)])
            for name in metrics
        }
        name = key or (REQUEST_ID if REQUEST_ID in tables[0] else None)
        keys = at[0].tolist() if name is None else tables[0][name].iloc[at[0]].tolist()
        informed = next((result for result in results if result._record.sessions), self)
        units = self._units_beside(informed, key) if cluster == AUTO else self._units_by(cluster)
        codes = at[0] if units is None else units.codes[at[0]]
        infos = {name: self._info_beside(other, name) for name in metrics for other in results[1:]}
        of = [run.name for run in results]
        remarks = [] if informed._record.sessions else [SESSIONS_UNKNOWN]

        def cells_of(row: int) -> list[dict[str, Any]]:
            return [table.iloc[rows[row]].to_dict() for table, rows in zip(tables, at, strict=True)]

        named = list(configurations or runs)

        found = ScoreHistory(runs, named, scores, keys, codes, infos, of, remarks, cells_of, asked=asked)
        review = partial(results[-1]._review, "that changed sides for the worse")
        found._review = lambda: review(at[-1][found._fallen()].tolist())
        found._about = [(run, result._about) for run, result in zip(runs, results, strict=True)]
        return found

    def _differences(self, other: EvalResult) -> Iterator[str]:
        """What makes the scores of two results differ beside the agent: metrics, settings and data."""
        for which, one, two in (("before", self, other), ("after", other, self)):
            if only := [name for name in one.tallies if name not in two.tallies]:
                yield f"Metrics only {which}: {', '.join(only)}."
        for name in dict.fromkeys([*self.options, *other.options]) if self.options and other.options else ():
            old, new = self.options.get(name), other.options.get(name)
            if old != new:
                yield f"The setting {name} differs: {old or 'the default'} before, {new or 'the default'} after."
        if not (self._record.sessions or other._record.sessions):
            yield SESSIONS_UNKNOWN
        if len({self._record.data_hash, other._record.data_hash} - {""}) > 1:
            yield "The data differs: a score can change because its row did."

    # pictures and files

    def summary(self, *, worst: int = 0) -> ResultSummary:
        """Return the numbers of the result as plain values.

        Parameters
        ----------
        worst : int, default 0
            The maximum number of rows to include, those that failed first, then those with the lowest scores. 0 omits
            the rows, the first issues, and the numbers of the pictures: distributions, confidence intervals, scores
            by row and by group.

        Returns
        -------
        ResultSummary
            A frozen object; the text, JSON and HTML reports are drawn from it.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"response": "4", "reference": "4"}, {"response": "3", "reference": "2"}]
        >>> summary = EvalTask(data, ["exact_match"]).evaluate().summary()
        >>> summary.row_count, summary.metrics
        (2, ('exact_match',))
        """
        stats, nan = self.tallies, math.nan
        latency = stats.get(LATENCY, ScoreStats())
        groups: dict[tuple[str, int], list[str]] = {}
        for (metric, reason), count in self._unscored.items():
            groups.setdefault((reason, count), []).append(metric)
        summary = ResultSummary(
            call=self._call,
            row_count=self.row_count,
            metrics=self.metrics,
            options=self.options,
            numbers=self.summary_metrics,
            lines=[
                *(Scored(n, t.mean, t.std, self.row_count, t.scored) for n, t in stats.items()),
                *(Scored(n, nan, nan, self.row_count, self.scored[n]) for n in self.metrics if n not in stats),
            ],
            reasons=self._unscored,
            reason_groups=[(reason, rows, metrics) for (reason, rows), metrics in groups.items()],
            issue_counts=self._causes,
            headline=self._headline,
            errors=self._failed.errors.most_common(CAUSES_SHOWN),
            intervals=self._intervals,
            spreads=self._spreads,
            sessions=self._record.sessions,
            run_id=self.run_id,
            without_judge=self.without_judge,
            units="" if self._units is None else self._units.words(len(np.unique(self._units.codes))),
            infos=self.infos,
            latency={f"p{q * 100:g}": latency.percentile(q) for q in PERCENTILES if latency.scored},
        )
        if not worst:
            return summary
        overview = Overview(stats, self.row_count, None if self._units is None else self._units.codes, self.infos)
        rows, lacking = None, list[int]()
        if self.row_count:
            match: Match = next((way for way in get_args(Match) if way == self.options.get("match")), "call")
            shown = overview.watching(self._shown())
            rows, lacking = worst_rows(shown, stats, self.row_count, worst, match, self.infos)
        plots = []
        for name, one in stats.items():
            if name != FAILURE and not one.is_binary:
                bars = one.tenths if name != LATENCY and one.is_share else None
                unit, show = ("", seconds) if name == LATENCY else ("score", None)
                plots.append(plot(name, unit, one.distribution, bars, show, one.percentile))
        return replace(
            summary,
            findings=[(i.row, i.path, i.message) for i in self.issues.head(20).itertuples() if self._causes],
            plots=plots,
            worst=rows,
            review=self._review("that failed or lost points", lacking),
            steps=overview.steps,
            groups=overview.groups,
        )

    @property
    def _causes(self) -> dict[str, int]:
        """The issues that cost rows their score: warnings are no reason of an evaluation with MLflow."""
        return {} if self.report is not None and self.report.ok else self.issue_counts

    def _shown(self) -> Iterator[pd.DataFrame]:
        """The parts of the table; where the validation report hides values, without the cells of the data."""
        hidden = self.report is not None and not run_of(self.report).plan.values
        of_scores = tuple(f"{name}/" for name in self.metrics)
        for part in self.iter_parts():
            names = [n for n in part.columns if n in (*RUN_COLUMNS[1:3], REQUEST_ID) or str(n).startswith(of_scores)]
            yield part[names] if hidden else part

    def to_json(self) -> str:
        """Return the summary and the rows as JSON.

        Returns
        -------
        str
            An object with the summary and at most 10,000 rows of `metrics_table`, without the cells of the data if its
            validation report hides values. NaN is null.

        Examples
        --------
        >>> import json
        >>> from agent_eval_schema import EvalTask
        >>> result = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> json.loads(result.to_json())["summary_metrics"]["exact_match/mean"]
        1.0
        """
        rows: Iterator[dict[Any, Any]] = (row for part in self._shown() for row in part.to_dict("records"))
        return result_json(self.summary(), islice(rows, ROWS_LISTED))

    def to_html(self, *, rows: int = ROWS_ON_A_PAGE) -> str:
        """Return the result as a standalone HTML page.

        Parameters
        ----------
        rows : int, default 500
            The maximum number of rows on the page, those that failed first, then those with the lowest scores.

        Returns
        -------
        str
            Means with confidence intervals, distributions, scores by group, and a table of the rows, each with its
            cells and both trajectories side by side.

        Raises
        ------
        EvalSetError
            `rows` is not a whole number of at least 1.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> result = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> result.to_html().startswith("<!doctype html>")
        True
        """
        from agent_eval_schema.render.block_html import view_page

        require_count("rows", rows)
        return view_page(self._view(rows))

    def _repr_html_(self) -> str:
        return as_inline(self._view(ROWS_INLINE))

    def _view(self, rows: int = 0) -> View:
        return result_view(self.summary(worst=rows))

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write the rows, their scores and reasons, and where they come from to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. The file extension selects the kind: `.parquet`, `.csv`, `.jsonl` or `.json`. Lists
            and objects are written as JSON text. `data/<benchmark>/<developer>/<model>/<uuid4>.json` selects the two
            files of every-eval-ever: the aggregate record, and `<uuid4>_samples.jsonl` beside it.

        Returns
        -------
        int
            The number of rows that were written.

        Raises
        ------
        EvalSetError
            The file extension is not supported, the file cannot be written, or every-eval-ever has no place for any
            of the metrics.

        Warns
        -----
        UnwrittenScoreWarning
            Every-eval-ever has no place for some scores.

        See Also
        --------
        load_result : Read the file.
        EvalResult.save : Write the report.

        Notes
        -----
        The columns are those of `metrics_table`, then `<metric>/reason` where a row has one, and `eval_result/keys`:
        hashes by which a comparison finds the independent units of the rows. A Parquet file has
        `provenance`, the metrics and the number of rows as JSON in its metadata, under the key `eval_result`; JSON
        Lines and JSON have it in the column `eval_result` of their first row; CSV does not have it.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate().write("scores.csv")
        1
        """
        place = path_of(path)
        in_two = is_aggregate(place)
        settle({"": place, "the samples": samples_of(place) if in_two else None}, {"the data": self._inputs()})
        record = ResultRecord(
            metrics=self.metrics,
            row_count=self.row_count,
            infos=tuple(self._stated.values()),
            reading={name: of for name, of in self._data.options.items() if name in ("format", "columns")},
            **self.provenance,
        )
        rows = (iter(self.iter_parts()), self._reasons(), self._keys)
        if in_two:
            return write_evaluation(place, record, *rows, self.tallies, self.infos)
        return write_result(place, record, *rows)

    def _inputs(self) -> object:
        return self.name

    def log_to_mlflow(self) -> str:
        """Log the result to the active MLflow run.

        The summary is logged as metrics, the HTML page, the JSON and the table as artifacts, the data as an input, and
        its hash, the name of the agent and the options as parameters. Without an active run, a new one is created.

        Returns
        -------
        str
            The ID of the run.

        Raises
        ------
        MissingExtraError
            MLflow is not installed.

        Examples
        --------
        >>> import mlflow
        >>> from agent_eval_schema import EvalTask
        >>> result = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> run_id = result.log_to_mlflow()
        >>> mlflow.get_run(run_id).data.metrics["exact_match/mean"]
        1.0
        """
        params = {f"trajectory_{name}": value for name, value in self.options.items()}
        params |= {DATA_HASH: self.provenance[DATA_HASH], "metrics": ",".join(self.metrics)}
        params |= {"agent": self._record.agent} if self._record.agent else {}
        texts = {"result.html": self.to_html, "result.json": self.to_json}
        scored = {f"{name}/scored": tally.scored for name, tally in self.tallies.items()}
        name = os.path.basename(self.name or "data")
        return log_result({**self.summary_metrics, **scored}, params, texts, self.write, name)

    def __repr__(self) -> str:
        headline = f": {self._headline}" if self._headline else ""
        return f"<EvalResult: {self.row_count:,} rows, {len(self.metrics)} metrics{headline}>"


def _is_threshold(value: Any) -> bool:
    """Whether a value is a number, or a pair of numbers or None."""
    if isinstance(value, tuple):
        return len(value) == 2 and all(end is None or isinstance(end, int | float) for end in value)
    return isinstance(value, int | float)


def result_of_evaluation(evaluation: MlflowEvaluation, infos: Iterable[MetricInfo] = ()) -> EvalResult:
    """The result of an evaluation by MLflow. Scorers that give no numbers have no tally."""
    scores = {name: numbers_of(evaluation.scores[name].tolist()) for name in evaluation.scorers}
    tallies = {name: ScoreStats(values) for name, values in scores.items() if not np.isnan(values).all()}
    size, index = len(evaluation.scores), evaluation.scores.index
    ids = evaluation.scores[REQUEST_ID].tolist() if REQUEST_ID in evaluation.scores else [None] * size
    if evaluation.report.outputs == "generated":
        ran = np.zeros(size)
        ran[list(evaluation.failures)] = 1
        tallies = {FAILURE: ScoreStats(ran), **tallies}
    unscored = {
        (name, reason): rows
        for name in evaluation.scorers
        for reason, rows in Counter(evaluation.reasons[name][evaluation.scores[name].isna()]).items()
    }
    failed = FailedCalls()
    for row, error in evaluation.failures.items():
        failed.add(row, ids[row] or str(index[row]), error)
    call, table = run_of(evaluation.report).call, evaluation.table()
    return EvalResult(
        ResultRecord(
            metrics=evaluation.scorers,
            row_count=size,
            source=call.name,
            run_id=evaluation.run_id,
            agent=evaluation.agent,
            sessions=evaluation.sessions,
            versions=dict(versions()),
            aggregates=evaluation.metrics,
            infos=tuple(infos),
        ),
        tallies=tallies,
        parts=lambda: iter([table]),
        reasons=lambda: {name: evaluation.reasons[name].tolist() for name in evaluation.scorers},
        unscored=unscored,
        findings=Findings(),
        failed=failed,
        call=call,
        keys=evaluation.keys or row_keys(table),
        evaluation=evaluation,
    )


def load_result(
    data: EvalSetLike,
    *,
    metrics: Sequence[str] | None = None,
    columns: ColumnNames = None,
    infos: Iterable[MetricInfo] = (),
) -> EvalResult:
    """Read a result that was written, a run of MLflow, or a table of scores of another tool.

    Parameters
    ----------
    data : EvalSetLike
        A file that `EvalResult.write` or `score --write-scores` has written; a run of MLflow (`"runs:/ID"`, or
        `"runs:/ID/artifact.parquet"`); or any table with a column per metric: `<metric>/score` (Vertex AI SDK,
        `mlflow.evaluate`), `<metric>/value` (MLflow) or `feedback.<metric>` (LangSmith). Of every-eval-ever: the
        aggregate record, its samples, or the folder with both.
    metrics : sequence of str or None, default None
        The metrics by their names, or the columns that are scores, such as `["faithfulness"]` of Ragas. None uses those
        of the record in the file, or the names above.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.
    infos : iterable of MetricInfo, default ()
        The directions, scales and units of metrics, in the place of those in the record and in the catalogs.

    Returns
    -------
    EvalResult
        The result, with the rows, scores, reasons and provenance of the file. Words of judges (`"yes"`, `"no"`) are 1
        and 0. Lists and objects in cells of Parquet and CSV are JSON text.

    Raises
    ------
    EvalSetError
        There is no such file or run, it has no scores, it is incomplete, or a newer version wrote it.

    See Also
    --------
    EvalResult.write : Write a result.
    EvalResult.compare : Compare two results.

    Examples
    --------
    >>> from agent_eval_schema import EvalTask, load_result
    >>> result = EvalTask([{"prompt": "2 + 2", "response": "4", "reference": "4"}], ["exact_match"]).evaluate()
    >>> result.write("scores.parquet")
    1
    >>> load_result("scores.parquet").summary_metrics["exact_match/mean"]
    1.0
    """
    return _loaded(data, "data", metrics, columns, infos)


def _loaded(
    data: EvalSetLike,
    name: str = "other",
    metrics: Sequence[str] | None = None,
    columns: ColumnNames = None,
    infos: Iterable[MetricInfo] = (),
) -> EvalResult:
    """As `load_result`; errors name the argument."""
    if isinstance(data, str) and data.startswith(RUNS):
        found = scores_of_run(data)
        if isinstance(found, MlflowEvaluation):
            return result_of_evaluation(found, infos)
        data = found
    own = open_evaluation(os.fspath(data)) if isinstance(data, str | os.PathLike) else None
    source = open_source(data if own is None else own, name, columns)
    read = read_scores(source, metrics, name)
    record, findings = read.record, Findings()
    findings.counts.update(record.issue_counts)
    return EvalResult(
        replace(record, infos=(*record.infos, *infos), sessions=record.sessions and read.keys is not None),
        tallies=read.tallies,
        parts=read.parts,
        reasons=lambda: read.reasons,
        unscored=read.unscored,
        findings=findings,
        failed=read.failed,
        call=Call(source.name, source.options),
        keys=read.keys,
    )
