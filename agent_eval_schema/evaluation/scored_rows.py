"""Scored rows: their table, the statistics of each metric, why rows have no score, which rows are independent units.

    scored rows ──parts──▶ metrics_table           the data's columns, then those of the run, then <metric>/score
                └─tallies─▶ summary_metrics        row_count, <metric>/mean, <metric>/std

Of a file only the scores are in memory: its table is read again on demand.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, overload

import numpy as np
import pandas as pd
from msgspec.structs import asdict

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.evaluation.mlflow_run import MlflowEvaluation
from agent_eval_schema.evaluation.saved_result import ResultRecord, data_hash
from agent_eval_schema.evaluation.table import (
    NAMED,
    REQUEST_ID,
    RUN_COLUMNS,
    WITHOUT_REASON,
    Findings,
    ScoredPart,
    ScoreStats,
    error_text,
    headline,
    rows_by,
    score_column,
)
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import UNKNOWN, find_format
from agent_eval_schema.io.pandas import issues_frame
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.independence import Units, independent_units
from agent_eval_schema.metrics.intervals import NO_REPEATS, MeanInterval, mean_interval, spread_by_group
from agent_eval_schema.metrics.known_metrics import metric_info
from agent_eval_schema.render.phrases import Call, NextCommand, plural
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.text.choices import require_choice, shown
from agent_eval_schema.text.describe import names
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import run_of

AUTO = "auto"
"""Independent units as independence.py defines them."""

ROWS_NAMED = 20
"""Rows that a command names, at most."""

_OF_FILE = ("version", "metrics", "row_count", "columns", "added", "infos", "reading")
"""The parts of a record that describe the file."""


class Scored(NamedTuple):
    """One line of a result's table of metrics."""

    metric: str
    mean: float
    std: float
    scored: int


class ScoredRows:
    """The numbers of a result: its pages, files and comparisons read them."""

    def __init__(
        self,
        record: ResultRecord,
        scored: ScoredPart,
        parts: Callable[[], Iterator[pd.DataFrame]],
        call: Call,
        *,
        findings: Findings | None = None,
        evaluation: MlflowEvaluation | None = None,
    ) -> None:
        self._record, self._call, self._parts, self._findings = record, call, parts, findings or Findings()
        self._data = call if record.source in (None, call.name) else Call(record.source, record.reading)
        self._reasons, self._keys = scored.reasons, scored.keys
        self.metrics, self.row_count, self.options = record.metrics, record.row_count, dict(record.options)
        self.name, self.run_id = call.name, record.run_id
        names = {score_column(name): name for name in (LATENCY, FAILURE, *record.metrics)}
        self.tallies = {names[name]: ScoreStats(scores) for name, scores in scored.columns.items() if name in names}
        self.report, self.mlflow_result, self.without_judge = None, None, dict[str, int]()
        if evaluation is not None:
            self.report, self.mlflow_result = evaluation.report, evaluation.result
            self.without_judge, self.scores = evaluation.without_judge, evaluation.scores
        self.scored, reasons = dict[str, int](), list[tuple[str, str, int]]()
        for name in record.metrics:
            absent = np.isnan(self.tallies[name].by_row) if evaluation is None else self.scores[name].isna().to_numpy()
            self.scored[name] = int((~absent).sum())
            texts = scored.reasons[name][absent].tolist() if name in scored.reasons else [None] * int(absent.sum())
            reasons += [(name, reason or WITHOUT_REASON, rows) for reason, rows in Counter(texts).items()]
        self.unscored = pd.DataFrame(reasons, columns=["metric", "reason", "rows"])
        self._failures = {} if evaluation is None else evaluation.failures
        if evaluation is None and FAILURE in self.tallies:
            failed, errors = self.tallies[FAILURE].by_row == 1, scored.columns.get("error", [None] * record.row_count)
            self._failures = {row: error_text(errors[row]) for row in np.flatnonzero(failed).tolist()}
        self._stated = {info.name: info for info in record.infos}
        self.infos = {name: metric_info(name, self._stated) for name in (*self.tallies, *self.metrics)}
        first = [str(scored.ids[row] or row) if scored.ids else str(row) for row in islice(self._failures, NAMED)]
        self._headline = headline(record.row_count, self.scored, len(self._failures), first, record.left_out)
        issues = self._findings if self.report is None else self.report  # a report with errors is false
        self.issue_counts = dict(sorted((issues.counts or record.issue_counts).items()))

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
        summary: dict[str, float] = {"row_count": self.row_count}
        for name, tally in self.tallies.items():
            summary[f"{name}/mean"], summary[f"{name}/std"] = tally.mean, tally.std
        return summary | self._record.aggregates

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
        for name in self.metrics:
            frame[name] = pd.Series(self._reasons.get(name, np.full(len(frame), None)), frame.index, dtype="object")
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
        return self._failures

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
        interval = self._interval(metric, confidence_level)
        return interval.low, interval.high

    def _interval(self, metric: str, level: float = 0.95, rows: Any = slice(None)) -> MeanInterval:
        """The interval of the mean of some rows, and what it is computed from."""
        codes = None if self._units is None else self._units.codes[rows]
        return mean_interval(self.tallies[metric].by_row[rows], codes, level, self.infos[metric].ends)

    @cached_property
    def _lines(self) -> list[Scored]:
        """The metrics of a table of them, those that are no numbers last."""
        lines = [Scored(name, one.mean, one.std, one.scored) for name, one in self.tallies.items()]
        return lines + [Scored(n, math.nan, math.nan, self.scored[n]) for n in self.metrics if n not in self.tallies]

    @cached_property
    def _reason_groups(self) -> list[tuple[str, int, list[str]]]:
        """(reason, rows, metrics): the metrics with the same reason on as many rows together."""
        groups = by_key(((reason, rows), metric) for metric, reason, rows in self.unscored.itertuples(index=False))
        return [(*key, metrics) for key, metrics in groups.items()]

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
        spreads, questions = {}, self._keys.questions
        for name, tally in self.tallies.items():
            there = np.isfinite(tally.by_row) & (questions != 0)
            spreads[name] = spread_by_group(tally.by_row[there], questions[there])
        return {name: spread for name, spread in spreads.items() if spread != NO_REPEATS}

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
            independent rows), `note` (str; the reason why there is no interval), `assumes` (str; what the interval
            assumes of a scale that is not known), `std_questions` and `std_answers` (float64; the standard deviation
            between questions, and between answers to the same question, which is the noise of the agent; NaN if no
            question is repeated).

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
        for name, tally in self.tallies.items():
            interval = mean_interval(tally.by_row, None if units is None else units.codes, scale=self.infos[name].ends)
            spread = self._spreads.get(name, NO_REPEATS)
            lines.append({"metric": name, **asdict(interval), "std_questions": spread[0], "std_answers": spread[1]})
        names = ["metric", *MeanInterval.__struct_fields__, "std_questions", "std_answers"]
        return pd.DataFrame(lines, columns=names).astype({"rows": "int64", "units": "int64"})

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
        labels = []
        for part in self.iter_parts():
            require_choice("column", column, part.columns)
            labels.append(part[column].map(str))
        lines = {}
        for key, rows in rows_by(pd.concat(labels)).items() if labels else ():
            stats = {name: ScoreStats(tally.by_row[rows]) for name, tally in self.tallies.items()}
            lines[key] = {"row_count": len(rows)} | {
                f"{n}/{what}": getattr(t, what) for n, t in stats.items() for what in ("mean", "std", "scored")
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
        record = {name: value for name, value in asdict(self._record).items() if name not in _OF_FILE}
        if record["versions"] and not record["data_hash"]:  # scored here
            record |= {"data_hash": data_hash(self.iter_parts(), self.metrics), "issue_counts": self.issue_counts}
        return record

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
        self, thresholds: Mapping[str, float | tuple[float | None, float | None]], confidence_level: float | None = None
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
        misses = {}
        for metric, threshold in thresholds.items():
            mean = self._stats(metric).mean
            bounds = (mean, mean) if confidence_level is None else self.confidence_interval(metric, confidence_level)
            lowest, highest = self._accepted(metric, threshold)
            if lowest is not None and not bounds[0] >= lowest:
                misses[metric] = bounds[0]
            elif highest is not None and not bounds[1] <= highest:
                misses[metric] = bounds[1]
        return misses

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


def _is_threshold(value: Any) -> bool:
    """Whether a value is a number, or a pair of numbers or None."""
    if isinstance(value, tuple):
        return len(value) == 2 and all(end is None or isinstance(end, int | float) for end in value)
    return isinstance(value, int | float)
