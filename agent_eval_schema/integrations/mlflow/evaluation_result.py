"""EvaluationResult: a score or a reason for each row and scorer of an evaluation with MLflow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from msgspec import Struct

from agent_eval_schema.integrations.mlflow.scores_by_row import REQUEST_ID
from agent_eval_schema.metrics.standard_errors import AUTO, clusters_of, errors_table, numbers_of
from agent_eval_schema.render.coverage import NAMED, headline
from agent_eval_schema.render.phrases import NextCommand, command_on
from agent_eval_schema.render.shown import Saved
from agent_eval_schema.text.choices import path_of, require_count
from agent_eval_schema.validation.report import Report

ROWS_ON_A_PAGE = 500
"""Rows that a page shows, those to be examined first."""

if TYPE_CHECKING:
    from agent_eval_schema.render.scores_page import ScoresSummary


class EvaluationResult(Struct, Saved, frozen=True):  # numpydoc ignore=PR01
    """The scores of an evaluation with MLflow.

    Attributes
    ----------
    scores : pandas.DataFrame
        One row per row of the data, in order and with its index: `request_id` if any row has one, then one column per
        scorer of dtype object. A missing score is None; several scores of one row (a judge of each document) are a
        list.
    reasons : pandas.DataFrame
        The same shape: the reason why a score is missing, or the rationale of the scorer, or None.
    metrics : dict of str to float
        The aggregated metrics of MLflow.
    run_id : str
        The ID of the MLflow run.
    report : Report
        The validation report of the data.
    result : mlflow.genai.evaluation.entities.EvaluationResult
        The result of MLflow.
    without_judge : dict of str to int
        The scorers that were skipped because `model` is None, with the number of rows that each could score.
    failed : tuple of int
        The 0-based positions of the rows on which `predict_fn` failed.

    See Also
    --------
    evaluate_eval_set : The function that returns a result.

    Examples
    --------
    >>> from agent_eval_schema import evaluate_eval_set, scorers
    >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
    <BLANKLINE>
    ✨ Evaluation completed.
    ...
    >>> result
    <EvaluationResult: 12 rows, 1 scorers, 6 scores>
    """

    scores: pd.DataFrame
    reasons: pd.DataFrame
    metrics: dict[str, float]
    run_id: str
    report: Report
    result: Any
    without_judge: dict[str, int] = {}
    failed: tuple[int, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """Scores and reasons side by side.

        Returns
        -------
        pandas.DataFrame
            One row per row of the data, in order and with its index: `request_id` if any row has one, then
            `<scorer>/value` and `<scorer>/reason` for each scorer, of dtype object.

        Examples
        --------
        >>> from agent_eval_schema import evaluate_eval_set, scorers
        >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
        <BLANKLINE>
        ✨ Evaluation completed.
        ...
        >>> result.table.columns.tolist()
        ['request_id', 'document_recall/value', 'document_recall/reason']
        """
        columns = {name: self.scores[name] for name in self.scores.columns if name == REQUEST_ID}
        for name in self.scorers:
            columns[f"{name}/value"] = self.scores[name]
            columns[f"{name}/reason"] = self.reasons[name]
        return pd.DataFrame(columns, index=self.scores.index)

    @property
    def scorers(self) -> list[str]:
        """The names of the scorers.

        Returns
        -------
        list of str
            The names, in the order of the columns of `scores`.

        Examples
        --------
        >>> from agent_eval_schema import evaluate_eval_set, scorers
        >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
        <BLANKLINE>
        ✨ Evaluation completed.
        ...
        >>> result.scorers
        ['document_recall']
        """
        return [name for name in self.scores.columns if name != REQUEST_ID]

    @property
    def scored(self) -> dict[str, int]:
        """The number of rows with a score, per scorer.

        Returns
        -------
        dict of str to int
            By the name of the scorer.

        Examples
        --------
        >>> from agent_eval_schema import evaluate_eval_set, scorers
        >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
        <BLANKLINE>
        ✨ Evaluation completed.
        ...
        >>> result.scored
        {'document_recall': 6}
        """
        return {name: int(self.scores[name].notna().sum()) for name in self.scorers}

    def standard_errors(self, cluster: str | None = AUTO) -> pd.DataFrame:
        """Return the standard error of each mean, clustered by session or document.

        Parameters
        ----------
        cluster : str or None, default "auto"
            The canonical column whose equal values make a cluster. `"auto"` takes `session_id`, and of rows without
            one the first document of `expected_retrieved_context`. None treats the rows as independent.

        Returns
        -------
        pandas.DataFrame
            One row per scorer with numbers, yes and no or true and false; several scores of a row
            count as their mean. It has
            a RangeIndex and the columns `metric` (str), `rows` (int64; with a score),
            `clusters` (int64), `mean`, `std_error`, `low` and `high` (float64; the 95 % interval of the normal
            distribution) and `design_effect` (float64; the square of the ratio of `std_error` to that of independent
            rows). They are NaN for fewer than two clusters.

        Raises
        ------
        EvalSetError
            There is no such column.

        Examples
        --------
        >>> from agent_eval_schema import evaluate_eval_set, scorers
        >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
        <BLANKLINE>
        ✨ Evaluation completed.
        ...
        >>> result.standard_errors()[["metric", "rows", "clusters"]]
                    metric  rows  clusters
        0  document_recall     6         4
        """
        scores = {n: v for n in self.scorers if not np.isnan(v := numbers_of(self.scores[n].tolist())).all()}
        return errors_table(scores, clusters_of(self.report.rows, cluster))

    @property
    def headline(self) -> str:
        """The rows that the means do not include.

        Returns
        -------
        str
            The rows on which `predict_fn` failed and the rows without a score; empty if there are none.

        Examples
        --------
        >>> from agent_eval_schema import evaluate_eval_set, scorers
        >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
        <BLANKLINE>
        ✨ Evaluation completed.
        ...
        >>> result.headline
        '6 of 12 rows scored'
        """
        ids = self.scores[REQUEST_ID].tolist() if REQUEST_ID in self.scores else []
        names = [(ids[row] if ids else None) or str(self.scores.index[row]) for row in self.failed[:NAMED]]
        return headline(len(self.scores), self.scored, len(self.failed), names)

    def to_text(self, width: int | None = None) -> str:
        """Return a table with a score or a reason for each row and scorer.

        Parameters
        ----------
        width : int or None, default None
            The number of characters per line. None uses the width of the terminal.

        Returns
        -------
        str
            The table; long reasons are wrapped.

        Examples
        --------
        >>> from agent_eval_schema import evaluate_eval_set, scorers
        >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
        <BLANKLINE>
        ✨ Evaluation completed.
        ...
        >>> "hd-001" in result.to_text(width=100)
        True
        """
        from agent_eval_schema.render.scores import scores_text

        return scores_text(
            self.scores,
            self.reasons,
            width,
            headline=self.headline,
            following=self._following,
            without_judge=self.without_judge,
        )

    def to_json(self) -> str:
        """Return the result as JSON.

        Returns
        -------
        str
            An object with a version, the metrics, the number of scored rows per scorer, and all rows of `table`.

        Examples
        --------
        >>> from agent_eval_schema import evaluate_eval_set, scorers
        >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
        <BLANKLINE>
        ✨ Evaluation completed.
        ...
        >>> import json
        >>> json.loads(result.to_json())["scored"]
        {'document_recall': 6}
        """
        from agent_eval_schema.render.scores_page import scores_json

        return scores_json(self._summary())

    def to_html(self, *, rows: int = ROWS_ON_A_PAGE) -> str:
        """Return the result as a standalone HTML page.

        Parameters
        ----------
        rows : int, default 500
            The maximum number of rows on the page, those that failed first, then those with the lowest scores.

        Returns
        -------
        str
            A page that loads nothing from the network; all cell text is escaped.

        Raises
        ------
        EvalSetError
            `rows` is not a whole number of at least 1.

        Examples
        --------
        >>> from agent_eval_schema import evaluate_eval_set, scorers
        >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
        <BLANKLINE>
        ✨ Evaluation completed.
        ...
        >>> result.to_html().startswith("<!doctype html>")
        True
        """
        from agent_eval_schema.render.scores_page import scores_page

        require_count("rows", rows)
        return scores_page(self._summary(rows))

    def _repr_html_(self) -> str:
        from agent_eval_schema.render.scores_page import ROWS_INLINE, scores_inline

        return scores_inline(self._summary(ROWS_INLINE))

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write `table` to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. The file extension selects the kind: `.parquet`, `.csv`, `.jsonl` or `.json`.

        Returns
        -------
        int
            The number of rows that were written.

        Raises
        ------
        EvalSetError
            The file extension is not supported, or the file cannot be written.

        Examples
        --------
        >>> from agent_eval_schema import evaluate_eval_set, scorers
        >>> result = evaluate_eval_set("sample_data/good.jsonl", [scorers.DocumentRecall()])
        <BLANKLINE>
        ✨ Evaluation completed.
        ...
        >>> result.write("scores.csv")
        12
        """
        from agent_eval_schema.formats.result_tables import write_result_table

        return write_result_table(path_of(path), [self.table.convert_dtypes()])  # numbers as numbers

    @property
    def _following(self) -> list[NextCommand]:
        """What shows why rows have no score, if issues are the reason."""
        if not self.headline or self.report.ok:
            return []
        command = command_on(self.report.name, "validate", instead="result.report")
        return [NextCommand(command, "shows the issues of the data and how to fix them")]

    def _summary(self, most: int = 0) -> ScoresSummary:
        from agent_eval_schema.integrations.mlflow.shown_scores import scored_rows
        from agent_eval_schema.render.scores_page import ScoresSummary

        return ScoresSummary(
            scores=self.scores,
            reasons=self.reasons,
            metrics=self.metrics,
            scored=self.scored,
            headline=self.headline,
            following=self._following,
            run_id=self.run_id,
            without_judge=self.without_judge,
            drawn=scored_rows(self.scores, self.reasons, self.failed, self.report, self.result, most) if most else [],
        )

    def __repr__(self) -> str:
        scored = int(self.scores[self.scorers].notna().to_numpy().sum())
        return f"<EvaluationResult: {len(self.scores):,} rows, {len(self.scorers)} scorers, {scored:,} scores>"
