"""An evaluation by MLflow: the scores as its scorers gave them, as blocks and as JSON; and a result as a run of MLflow.

A text has a line per row and a column per scorer; a page those rows first that are to be examined first, with their
cells.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.errors import import_extra
from agent_eval_schema.evaluation.result_blocks import (
    ResultSummary,
    first_of,
    means_of,
    mood_of,
    next_commands,
    open_row,
    score_mood,
    verdict_of,
)
from agent_eval_schema.evaluation.table import REQUEST_ID, RUN_COLUMNS, score_column
from agent_eval_schema.metrics.catalog import FAILURE
from agent_eval_schema.metrics.independence import RowKeys
from agent_eval_schema.metrics.intervals import MeanInterval
from agent_eval_schema.metrics.metric_info import WORDS, MetricInfo, numbers_of
from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Grid,
    Line,
    Only,
    OpenRow,
    OpenRows,
    Part,
    Section,
    Table,
    View,
    Words,
)
from agent_eval_schema.render.document import json_text, plain_values, versioned
from agent_eval_schema.render.phrases import MISSING, number, plural
from agent_eval_schema.runtime.temporary_folder import TemporaryFolder
from agent_eval_schema.text.describe import cut
from agent_eval_schema.validation.report import Report, run_of

ROWS_IN_TEXT = 50
"""Rows that a text shows; the frames have them all."""

WIDEST = 160
"""Characters of a line of the text at most, however wide the terminal is."""

LONGEST_SCORE = 24
"""Characters of a score in the table; all of it is shown with the row."""

CELLS_SHOWN = ("request", "response", "expected_response", "expected_facts", "guidelines", "expectations", "error")
"""The cells of a row that are shown with it, those that it has."""


class MlflowEvaluation(Struct, frozen=True):
    """The result of `mlflow.genai.evaluate`, by the rows that came in. `scores` and `reasons` have a column per scorer
    (and request_id), `metrics` are MLflow's aggregates, `answers` the responses of `predict_fn` by row, `failures` the
    error of each row on which it failed; `without_judge` are the skipped scorers, with the rows that each could
    score; `agent` is the name of `predict_fn`, `keys` are those of a run that has them, and `sessions` whether it is
    known which rows belong together."""

    scores: pd.DataFrame
    reasons: pd.DataFrame
    metrics: dict[str, float]
    run_id: str
    report: Report
    result: Any
    without_judge: dict[str, int] = {}
    failures: dict[int, str] = {}
    answers: dict[int, Any] = {}
    agent: str | None = None
    keys: RowKeys | None = None
    sessions: bool = True

    @property
    def scorers(self) -> tuple[str, ...]:
        return tuple(name for name in self.scores.columns if name != REQUEST_ID)

    def table(self) -> pd.DataFrame:
        """The normalized rows, with the columns of a run, and per scorer its score, another value, and the reason."""
        rows = self.report.rows.dropna(axis="columns", how="all")
        table = {str(name): rows[name] for name in rows.columns}
        if self.report.outputs == "generated":
            table = {name: cells for name, cells in table.items() if name not in RUN_COLUMNS}
            table["response"] = pd.Series(
                [self.answers.get(row) for row in range(len(rows))], rows.index, dtype="object"
            )
            table[FAILURE] = pd.Series(0, rows.index)
            table[FAILURE].iloc[list(self.failures)] = 1
        for name in self.scorers:
            values = self.scores[name].tolist()
            table[score_column(name)] = pd.Series(numbers_of(values), rows.index)
            if any(isinstance(value, str | list) for value in values):
                table[f"{name}/value"] = pd.Series(values, rows.index, dtype="object")
            table[f"{name}/reason"] = pd.Series(self.reasons[name].tolist(), rows.index, dtype="object")
        return pd.DataFrame(table, index=rows.index)

    def document(self, summary: ResultSummary, most: int = 0) -> View:
        """What a report shows, with at most `most` rows."""
        rows = self._rows(most, summary.infos) if most else []
        opened = OpenRows(list(summary.metrics), rows, len(self.scores)) if rows else None
        issues = {} if self.report.ok else summary.issue_counts  # warnings are no reason for a missing score
        summary = replace(summary, worst=opened, issue_counts=issues)
        return View(
            title=f"{plural(len(self.scores), 'row')}, {plural(len(summary.metrics), 'scorer')}",
            verdict=verdict_of(summary),
            mood=mood_of(summary),
            notes=[Only("html", [Line(("MLflow run ", Part(self.run_id, "code")), "muted")])],
            following=next_commands(summary),
            first=first_of(summary),
            blocks=[
                Only("text", [*self._grid(), Line("")]),
                *means_of(summary),
                Only("html", [*self._aggregates(), *([Section("rows", "Rows", [opened])] if opened else [])]),
            ],
            widest=WIDEST,
        )

    def json(self, headline: str, scored: Mapping[str, int], intervals: Mapping[str, MeanInterval]) -> str:
        """The scores and reasons of all rows, for other programs. NaN is null."""
        names = list(scored)
        ids = self.scores[REQUEST_ID] if REQUEST_ID in self.scores else [None] * len(self.scores)
        values, whys = (frame[names].itertuples(index=False, name=None) for frame in (self.scores, self.reasons))
        rows = [
            {
                "row": index,
                "request_id": request_id,
                "scores": dict(zip(names, found, strict=True)),
                "reasons": dict(zip(names, why, strict=True)),
            }
            for index, request_id, found, why in zip(self.scores.index, ids, values, whys, strict=True)
        ]
        document = {
            "run_id": self.run_id,
            "headline": headline or None,
            "metrics": self.metrics,
            "scored": scored,
            "intervals": {name: interval.report for name, interval in intervals.items()},
            "without_judge": self.without_judge,
            "rows": rows,
        }
        return json_text(plain_values(versioned(document)))

    def _grid(self) -> Iterator[Block]:
        """All rows as text: the table, its letters with their reasons, and the scorers that have no judge."""
        letters: dict[str, str] = {}
        columns = []
        for name in self.scores.columns:
            found, why = self.scores[name].tolist()[:ROWS_IN_TEXT], self.reasons[name].tolist()[:ROWS_IN_TEXT]
            is_id = name == REQUEST_ID
            cells = [
                str(score or "") if is_id else _score(score) or letters.setdefault(str(reason), _letter(len(letters)))
                for score, reason in zip(found, why, strict=True)
            ]
            columns.append((name, cells))
        yield Grid(list(map(str, self.scores.index[:ROWS_IN_TEXT])), columns)
        if len(self.scores) > ROWS_IN_TEXT:
            yield Line(f"… and {len(self.scores) - ROWS_IN_TEXT:,} more rows")
        for reason, letter in letters.items():
            yield Line(f"{letter}  {reason}")
        if self.without_judge:
            yield Line(f"Skipped without a judge (model=), with the rows that each could score: {self._skipped}")

    @property
    def _skipped(self) -> str:
        return ", ".join(f"{name} {rows:,}" for name, rows in self.without_judge.items())

    def _aggregates(self) -> Iterator[Block]:
        """What MLflow aggregated besides means, and the scorers that have no judge."""
        others = [
            (name, number(value))
            for name, value in self.metrics.items()
            if name.rpartition("/")[::2] not in [(scorer, "mean") for scorer in self.scorers]
        ]
        if others:
            yield Table(["Metric", "#value"], others, kind="metrics")
        if self.without_judge:
            skipped = f"Skipped because no judge model was given, with the rows that each could score: {self._skipped}."
            yield Line(skipped, "muted")

    def _rows(self, most: int, infos: Mapping[str, MetricInfo]) -> list[OpenRow]:
        """At most `most` rows of a page: those that failed, then those with the lowest mean of the scores from 0 to 1,
        those without one, and last those with the full score. Where the report hides values, they have no cells."""
        names, scores, report = list(self.scorers), self.scores, self.report
        values = list(scores[names].itertuples(index=False, name=None))
        whys = list(self.reasons[names].itertuples(index=False, name=None))
        ranks = [-1.0 if row in self.failures else _rank(names, found, infos) for row, found in enumerate(values)]
        chosen = np.argsort(ranks, kind="stable")[:most].tolist()
        ids = scores[REQUEST_ID].tolist() if REQUEST_ID in scores else [None] * len(scores)
        cells: dict[int, dict[str, Any]] = {}
        if run_of(report).plan.values:  # the data is read no further than to the last of these rows
            read = enumerate(islice(report.iter_rows(), max(chosen, default=-1) + 1))
            cells = {row: found for row, found in read if row in chosen}
        answers = self.answers if cells and report.outputs == "generated" else {}
        rows = []
        for row in chosen:
            own = {**cells.get(row, {}), **({"response": answers[row]} if row in answers else {})}
            lines: list[list[Words | Cell]] = [
                [name, _score(score), Cell(str(why or ""), "muted")]
                for name, score, why in zip(names, values[row], whys[row], strict=True)
            ]
            label, failed, cells_of_scores = (
                str(scores.index[row]),
                row in self.failures,
                [_cell(infos[name], score) for name, score in zip(names, values[row], strict=True)],
            )
            shown = open_row(label, own, CELLS_SHOWN, cells_of_scores, failed=failed, match="call")
            rows.append(replace(shown, table=Table(["Scorer", "Score", "Reason"], lines), request_id=ids[row] or ""))
        return rows


def _score(score: Any) -> str:
    """A score, or several of one row; nothing for None."""
    if isinstance(score, list):
        return ", ".join(map(_score, score))
    return "" if score is None else number(score) if isinstance(score, float) else str(score)


def _letter(place: int) -> str:
    """(a), (b) … (z), (aa) …"""
    name = ""
    place += 1
    while place:
        place, digit = divmod(place - 1, 26)
        name = ascii_lowercase[digit] + name
    return f"({name})"


def _cell(info: MetricInfo, score: Any) -> Cell:
    if score is None:
        return Cell(MISSING, "muted")
    points = list(_points(score))
    mood = score_mood(info, sum(points) / len(points), not {0, 1}.issuperset(points)) if points else ""
    return Cell(cut(_score(score), LONGEST_SCORE), mood)


def _rank(metrics: Sequence[str], scores: Sequence[Any], infos: Mapping[str, MetricInfo]) -> float:
    points = [
        1 - point if infos[metric].share_sign < 0 else point
        for metric, score in zip(metrics, scores, strict=True)
        for point in _points(score)
    ]
    mean = sum(points) / len(points) if points else math.nan
    return 1.5 if math.isnan(mean) else mean if mean < 1 else 2.0


def _points(score: Any) -> Iterator[float]:
    """A score from 0 to 1, or several; a judge's answer is 1 or 0."""
    if isinstance(score, list):
        for one in score:
            yield from _points(one)
    elif isinstance(score, str):
        yield from [WORDS[score.lower()]] if score.lower() in WORDS else []
    elif isinstance(score, bool | int | float) and 0 <= score <= 1:
        yield float(score)


# --- a result as a run
FOLDER, TABLE_FILE = "eval_result", "metrics_table.parquet"
"""The artifacts of a result, and that of its rows and scores."""

DATA_HASH = "data_hash"
"""The parameter of a run that has the hash of its data."""


def log_params(mlflow: Any, run_id: str, params: Mapping[str, str]) -> None:
    """Log parameters of a run. MLflow does not change one: a value that differs from an earlier one is a tag."""
    known = mlflow.get_run(run_id).data.params
    client = mlflow.MlflowClient()
    for name, value in params.items():
        if known.get(name, value) == value:
            client.log_param(run_id, name, value)
        else:
            client.set_tag(run_id, name, value)


def log_dataset(mlflow: Any, run_id: str, name: str, digest: str) -> None:
    """Log the data of a result as an input of the active run; its rows are in the table of the result."""
    table = {"mlflow.source.name": f"runs:/{run_id}/{FOLDER}/{TABLE_FILE}"}
    source = import_module("mlflow.data.code_dataset_source").CodeDatasetSource(table)
    found = import_module("mlflow.data.meta_dataset").MetaDataset(source, name=name, digest=digest)
    mlflow.log_input(found, context="evaluation")


_NOT_ALLOWED = re.compile(r"[^\w\-./ ]")


def log_result(
    metrics: Mapping[str, float],
    params: Mapping[str, str],
    texts: Mapping[str, Callable[[], str]],
    write_table: Callable[[str], object],
    dataset: str,
) -> str:
    """Log to the active run, or to a new one; returns its ID. `texts` has the content of each file by its name, and
    `dataset` is the name of the data, whose rows are in the table."""
    mlflow = import_extra("mlflow", "mlflow", "mlflow 2.13")
    active = mlflow.active_run()
    run = active or mlflow.start_run()
    try:
        # mlflow takes few characters in names, and no NaN on every store.
        numbers = {_NOT_ALLOWED.sub("_", n): v for n, v in metrics.items() if not math.isnan(v)}
        mlflow.log_metrics(numbers)
        log_params(mlflow, run.info.run_id, params)
        for name, text in texts.items():
            mlflow.log_text(text(), f"{FOLDER}/{name}")
        folder = TemporaryFolder()
        write_table(folder.file(TABLE_FILE))
        mlflow.log_artifact(folder.file(TABLE_FILE), FOLDER)
        log_dataset(mlflow, run.info.run_id, dataset, params[DATA_HASH])
    finally:
        if active is None:
            mlflow.end_run()
    return str(run.info.run_id)
