"""EvalResult: the scores of rows, by EvalTask or by MLflow; they can be summarized, compared, shown and written.

The names of columns and keys are those of the Vertex AI SDK's `EvalResult`
(https://cloud.google.com/vertex-ai/generative-ai/docs/models/evaluation-agents).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, overload

import pandas as pd
from msgspec.structs import replace

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.evaluation.comparison import ScoreComparison
from agent_eval_schema.evaluation.every_eval_ever import is_aggregate, open_evaluation, samples_of, write_evaluation
from agent_eval_schema.evaluation.history import ScoreHistory
from agent_eval_schema.evaluation.mlflow_run import DATA_HASH, RUNS, MlflowEvaluation, log_result, scores_of_run
from agent_eval_schema.evaluation.result_blocks import pictures_of, result_json, result_view
from agent_eval_schema.evaluation.row_keys import row_keys
from agent_eval_schema.evaluation.saved_result import ResultRecord, read_scores, versions, write_result, written_tables
from agent_eval_schema.evaluation.scored_rows import AUTO, ScoredRows
from agent_eval_schema.evaluation.table import REQUEST_ID, ScoredPart, score_column
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.metrics.catalog import FAILURE
from agent_eval_schema.metrics.metric_info import MetricInfo
from agent_eval_schema.render.blocks import View
from agent_eval_schema.render.phrases import Call
from agent_eval_schema.render.printable import Savable, as_inline
from agent_eval_schema.text.choices import path_of, require_count
from agent_eval_schema.validation.report import run_of

ROWS_ON_A_PAGE, ROWS_INLINE = 500, 3
"""Rows that a page and a notebook show, those to be examined first."""

ROWS_LISTED = 10_000
"""Rows that `to_json` lists; `write` writes them all."""


class EvalResult(ScoredRows, Savable):  # numpydoc ignore=PR01
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
        results = [self, *(of if isinstance(of, EvalResult) else load_result(of) for of in (other, *more))]
        if more or configurations is not None:
            return ScoreHistory(results, key, cluster, configurations, metrics)
        return ScoreComparison(results, key, cluster, metrics)

    # pictures and files

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
        return result_json(self, islice(rows, ROWS_LISTED))

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
        return result_view(self, pictures_of(self, rows) if rows else None)

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
        reading = {name: of for name, of in self._data.options.items() if name in ("format", "columns")}
        record = replace(self._record, infos=tuple(self._stated.values()), reading=reading, **self.provenance)
        record, tables = written_tables(record, self.iter_parts(), self._reasons, self._keys)
        if in_two:
            write_evaluation(place, record, tables, self.tallies, self.infos)
        else:
            write_result(place, record, tables)
        return self.row_count

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


def result_of_evaluation(evaluation: MlflowEvaluation, infos: Iterable[MetricInfo] = ()) -> EvalResult:
    """The result of an evaluation by MLflow. Scorers that give no numbers have no tally."""
    call, table, scorers = run_of(evaluation.report).call, evaluation.table(), evaluation.scorers
    columns = [FAILURE] if evaluation.report.outputs == "generated" else []
    columns += [column for column in map(score_column, scorers) if table[column].notna().any()]
    ids = evaluation.scores.get(REQUEST_ID, pd.Series([None] * len(table))).tolist()
    record = ResultRecord(
        metrics=scorers,
        row_count=len(table),
        source=call.name,
        run_id=evaluation.run_id,
        agent=evaluation.agent,
        sessions=evaluation.sessions,
        versions=dict(versions()),
        aggregates=evaluation.metrics,
        infos=tuple(infos),
    )
    scores = {column: table[column].to_numpy() for column in columns}
    reasons = {name: evaluation.reasons[name].to_numpy() for name in scorers}
    labels = [id or str(label) for id, label in zip(ids, table.index, strict=True)]
    scored = ScoredPart(scores, IssueLog(len(table)), reasons, labels, evaluation.keys or row_keys(table))
    return EvalResult(record, scored, lambda: iter([table]), call, evaluation=evaluation)


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
    if isinstance(data, str) and data.startswith(RUNS):
        scores = scores_of_run(data)
        if isinstance(scores, MlflowEvaluation):
            return result_of_evaluation(scores, infos)
        data = scores
    own = open_evaluation(os.fspath(data)) if isinstance(data, str | os.PathLike) else None
    source = open_source(data if own is None else own, "data", columns)
    record, scored, parts = read_scores(source, metrics)
    record = replace(record, infos=(*record.infos, *infos), sessions=record.sessions and scored.keys is not None)
    return EvalResult(record, scored, parts, Call(source.name, source.options))
