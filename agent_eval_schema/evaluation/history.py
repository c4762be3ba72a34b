"""Several results of the same rows: each metric over the runs, the rows that changed sides, and the noise of repeats.

    run 1, run 2, run 3 …  ──the rows that all have──▶  mean and interval of each run
                                     ├─▶ sides          at least 0.5 or below; how often a row changes
                                     └─▶ repeats        runs of one configuration: agreement, noise

The noise is the variance of a row's scores between repeats of one configuration, pooled over rows and configurations.
Two configurations with a and b runs differ on a row by chance with this variance times 1/a + 1/b; the share of the
variance of the differences that this explains is that of the noise.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import asdict

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.evaluation.comparison import (
    CHANCE,
    OPENED,
    MatchedRows,
    OfSeveral,
    adjusted,
    gain_mood,
    matched_rows,
    metric_change,
    p_text,
    row_of_runs,
    shared_infos,
    significant_words,
    units_of,
)
from agent_eval_schema.evaluation.result_blocks import SESSIONS_UNKNOWN, MetricComparison, name_of, written_alike
from agent_eval_schema.evaluation.scored_rows import ScoredRows
from agent_eval_schema.evaluation.table import REQUEST_ID
from agent_eval_schema.metrics.intervals import NAN, Numbers, mean_interval
from agent_eval_schema.metrics.metric_info import MetricInfo
from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Line,
    Meter,
    Only,
    OpenRows,
    Part,
    Section,
    Table,
    Terms,
    Trend,
    Trends,
    View,
    Words,
)
from agent_eval_schema.render.document import json_text, plain_values, versioned
from agent_eval_schema.render.page import percent
from agent_eval_schema.render.phrases import MISSING, NextCommand, number, plural, share, signed
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.text.choices import shown

SIDE = 0.5
"""A score from 0 to 1 passes from here on."""


class MetricOfRun(Struct, frozen=True):
    """The mean of a metric in a run, over the rows that all runs share, with its 95 % interval (NaN if there is none),
    the difference from the run before, and the p value of that step: adjusted for all steps of all metrics; NaN if
    it is not tested."""

    metric: str
    run: str
    configuration: str
    rows: int
    mean: float
    low: float
    high: float
    difference: float
    p_adjusted: float = NAN


class Repeats(Struct, frozen=True):
    """How much the runs of one configuration agree: the share of the `rows` with a score in all of them that are on one
    side in all, the number of the others, and the standard deviation of the scores of a row."""

    metric: str
    configuration: str
    runs: int
    rows: int
    agreement: float
    flaky: int
    std: float


class ScoreHistory(OfSeveral):  # numpydoc ignore=PR01
    """The scores of several runs on the same rows.

    Attributes
    ----------
    runs : list of str
        The names of the runs, in order.
    row_count : int
        The number of rows that all runs have.
    rows : pandas.DataFrame
        One row per row and metric that changed sides (a score from 0 to 1 passes from 0.5 on), most changes first, with
        a RangeIndex and the columns `key`, `metric` (str), `changes` (int64: between one run and the next) and `scores`
        (list of float, one per run).
    noise : dict of str to float
        Per metric the share of the variance of the differences between the first and the last configuration that
        repeats of one configuration explain; NaN if neither has repeats, or there is one configuration.
    remarks : list of str
        What the numbers assume, such as that sessions are unknown.

    See Also
    --------
    EvalResult.compare : The method that returns a history of more than two results.

    Examples
    --------
    >>> from agent_eval_schema import EvalTask
    >>> data = [{"response": "4", "reference": "4"}, {"response": "3", "reference": "2"}]
    >>> first, second, third = (EvalTask(data, ["exact_match"]).evaluate() for _ in range(3))
    >>> history = first.compare(second, third)
    >>> history.summary[["metric", "run", "mean"]]
            metric run  mean
    0  exact_match   1   0.5
    1  exact_match   2   0.5
    2  exact_match   3   0.5
    """

    _command = 'history.save("history.html")'
    _markdown = "history.to_markdown()"
    _fallen_words = "that changed sides for the worse"

    def __init__(
        self,
        results: Sequence[ScoredRows],
        key: str | None,
        cluster: str | None,
        configurations: Sequence[str] | None,
        metrics: Sequence[str] | None,
    ) -> None:
        self.runs = runs = run_names([result.name for result in results])
        if configurations is not None and (isinstance(configurations, str) or len(configurations) != len(runs)):
            raise EvalSetError(f"configurations: expected a name per result, {len(runs)}; got {shown(configurations)}")
        configurations, explicit = list(configurations or runs), metrics is not None
        self._infos = infos = shared_infos(results, metrics)
        self._results = results
        self._places = at = shared_rows([matched_rows(results[0], other, key) for other in results[1:]])
        self.row_count = len(at[0])
        if not self.row_count:
            raise EvalSetError("the results share no row")
        scores = {
            name: np.column_stack([of.tallies[name].by_row[rows] for of, rows in zip(results, at, strict=True)])
            for name in infos
        }
        table, informed = results[0].metrics_table, next((of for of in results if of._record.sessions), None)
        name = key or (REQUEST_ID if REQUEST_ID in table else None)
        keys = at[0].tolist() if name is None else table[name].iloc[at[0]].tolist()
        all_units = units_of(results[0], informed or results[0], key, cluster)
        units = at[0] if all_units is None else all_units.codes[at[0]]
        self.remarks = [] if informed else [SESSIONS_UNKNOWN]
        pairs = [(infos[name], *pair) for name, table in scores.items() for pair in pairwise(table.T)]
        steps = [metric_change(*pair, units, explicit) for pair in pairs]
        p_values = iter([step.p_adjusted for step in adjusted(steps)])
        lines = (_lines(infos[name], runs, configurations, table, units, p_values) for name, table in scores.items())
        self.lines = list(chain.from_iterable(lines))
        changes = [metric_change(infos[name], of[:, 0], of[:, -1], units, explicit) for name, of in scores.items()]
        self._changes = adjusted(changes)
        self._repeats = [line for name, table in scores.items() for line in _repeats(name, configurations, table)]
        self.noise = {name: _noise(table, configurations) for name, table in scores.items()}
        changed = list[tuple[Any, str, int, list[float], int]]()
        for name, of in scores.items():
            times = _changes(of)
            rows = np.flatnonzero(times).tolist()
            changed += [(keys[row], name, int(times[row]), of[row].tolist(), row) for row in rows]
        changed.sort(key=lambda line: (-line[2], line[4]))  # the metrics of a row together
        columns = ["key", "metric", "changes", "scores"]
        self._changed = [row for *_, row in changed]
        self.rows = pd.DataFrame([line[:4] for line in changed], columns=columns).astype({"changes": "int64"})

    @property
    def summary(self) -> pd.DataFrame:
        """The mean of each metric in each run.

        Returns
        -------
        pandas.DataFrame
            One row per metric and run, with a RangeIndex and the columns `metric`, `run` and `configuration` (str),
            `rows` (int64; with a score, of those that all runs have), `mean`, `low` and `high` (float64; the 95 %
            interval), `difference` (float64; from the run before, NaN of the first) and `p_adjusted` (float64; of this
            step, by Holm's method for the number of steps of all metrics that are judged; NaN of the others).

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> result = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> result.compare(result, result).summary["difference"].tolist()
        [nan, 0.0, 0.0]
        """
        return pd.DataFrame(map(asdict, self.lines), columns=MetricOfRun.__struct_fields__)

    @property
    def repeats(self) -> pd.DataFrame:
        """How much the runs of one configuration agree.

        Returns
        -------
        pandas.DataFrame
            One row per metric and configuration with several runs, with a RangeIndex and the columns `metric` and
            `configuration` (str), `runs` and `rows` (int64; with a score in all of them), `agreement` (float64; the
            share of these rows that are on one side in all runs), `flaky` (int64; the other rows) and `std` (float64;
            the standard deviation of the scores of a row).

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> result = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> result.compare(result, result, configurations=["a", "a", "b"]).repeats["agreement"].tolist()
        [1.0]
        """
        return pd.DataFrame(map(asdict, self._repeats), columns=Repeats.__struct_fields__)

    def _json(self) -> str:
        document = {
            "runs": self.runs,
            "row_count": self.row_count,
            "lines": [asdict(line) for line in self.lines],
            "repeats": [asdict(line) for line in self._repeats],
            "noise": self.noise,
            "remarks": self.remarks,
            "rows": self.rows.to_dict("records"),
        }
        return json_text(plain_values(versioned(document)))

    def _view(self) -> View:
        count = self.rows["key"].nunique()
        changed = f"{plural(count, 'row')} changed sides" if count else "no row changed sides"
        judged = [change for change in self._changes if change.counted]
        tested = sum(not math.isnan(change.p_value) for change in judged)
        trend = significant_words(judged, tested, CHANCE).removeprefix(": ")
        trend = f"{trend} from the first run to the last; " if trend else _trend(self.lines)
        verdict = f"{plural(len(self.runs), 'run')} of {plural(self.row_count, 'row')}: {trend}{changed}"
        gains = {gain_mood(change.gain) for change in judged if change.p_adjusted < CHANCE}
        mood = "error" if "error" in gains else "good" if gains else ""
        first: Words = ""
        if count:
            key, metric, _, scores = self.rows.iloc[0]
            first = (Part(f"row {key}", "#rows"), f" {metric} {_over_runs(scores)}")
        names = ["metric", "run", "%mean", "#", "#95% interval", "#change", "#Holm p", "#rows"]
        table = Table(names, [_of_run(x, self._infos[x.metric]) for x in self.lines], title="Metrics")
        about = [Line(remark, "warning") for remark in self.remarks]
        by_metric = {metric: [line for line in self.lines if line.metric == metric] for metric in self._infos}
        trends = [_picture(by_metric[of.metric], self._infos[of.metric], of) for of in self._changes]
        pictures = Only("page", [Trends(trends), Line(PICTURES, "muted")])
        blocks: list[Block] = [Section("runs", "Metrics over the runs", [pictures, table, *about])]
        if self._repeats:
            names = ["metric", "configuration", "#runs", "#agreement", "#flaky rows", "#std of a row", "#noise"]
            words = (
                "Agreement: the share of rows on one side in all runs of a configuration. Noise: the share of the "
                "variance of the differences between the first and the last configuration that repeats explain."
            )
            lines = [_of_repeats(line, self.noise[line.metric]) for line in self._repeats]
            table = Table(names, lines, title="Runs of one configuration")
            blocks.append(Section("repeats", "Runs of one configuration", [table, Line(words, "muted")]))
        title = "Rows that changed sides, most changes first"
        blocks.append(Section("rows", title, list(self._rows(title))))
        following = [NextCommand(self._command, "lists all rows that changed sides")] if self._command else []
        runs = [Only("html", [Terms(list(zip(self.runs, [of._about for of in self._results], strict=True)))])]
        return View(
            title=verdict, about=runs, verdict=verdict, mood=mood, blocks=blocks, following=following, first=first
        )

    def _fallen(self) -> list[int]:
        """The rows that changed sides and became worse, the largest losses first."""
        rows = zip(self.rows["metric"], self.rows["scores"], self._changed, strict=True)
        gains = [(self._infos[metric].sign * (scores[-1] - scores[0]), place) for metric, scores, place in rows]
        return [place for gain, place in sorted(one for one in gains if one[0] < 0)]

    def _rows(self, title: str) -> Iterator[Block]:
        """The rows that changed sides: a page opens them with the answers of all runs."""
        lines = list(self.rows.itertuples(index=False, name=None))
        table = Table(["Row", "Metric", "#changes", "Scores"], [_of_row(*line) for line in lines], title, in_text=10)
        opened = []
        for (key, metric, changes, scores), place in zip(lines[:OPENED], self._changed, strict=False):
            runs = dict(zip(self.runs, self._cells_of(place), strict=True))
            cells = [Cell(number(score)) for score in scores]
            columns = [Cell(metric), Cell(f"{changes:,}", number=changes), Cell(_over_runs(scores))]
            opened.append(row_of_runs(str(key), metric, runs, cells, columns))
        about, more = "A row opens to its question and the answers of all runs.", "more: `rows` and to_json() have all"
        heads = ["metric", "changes", "scores"]
        yield Only("page", [OpenRows(heads, opened, len(lines), about, more, noun="changes")])
        yield Only("notebook", [table])
        with_questions = [(*_of_row(*line), row.title) for line, row in zip(lines[:10], opened, strict=False)]
        names = ["Row", "Metric", "#changes", "Scores", "Question"]
        yield Only("text", [Table(names, with_questions, title, total=len(lines), notes=True)])

    def __repr__(self) -> str:
        return f"<ScoreHistory: {len(self.runs)} runs, {self.row_count:,} rows>"


def shared_rows(matches: Sequence[MatchedRows]) -> list[Numbers]:
    """The positions of the rows that the first result and all others have: in the first, then in each other."""
    shared = matches[0].old
    for match in matches[1:]:
        shared = np.intersect1d(shared, match.old)
    return [shared, *(match.new[np.searchsorted(match.old, shared)] for match in matches)]


def _lines(
    info: MetricInfo,
    runs: Sequence[str],
    configurations: Sequence[str],
    scores: Numbers,
    units: Numbers,
    p_values: Iterator[float],
) -> Iterator[MetricOfRun]:
    """The runs in order; `p_values` has those of the steps between them."""
    before = NAN
    for run, configuration, column in zip(runs, configurations, scores.T, strict=True):
        stats = mean_interval(column, units, scale=info.ends)
        step = stats.mean - before, next(p_values) if run != runs[0] else NAN
        yield MetricOfRun(info.name, run, configuration, stats.rows, stats.mean, stats.low, stats.high, *step)
        before = stats.mean


def _sides(scores: Numbers) -> Numbers | None:
    """1 where a score passes, 0 where it does not, NaN where there is none; None if scores are not from 0 to 1."""
    there = scores[np.isfinite(scores)]
    if not len(there) or there.min() < 0 or there.max() > 1:
        return None
    return np.where(np.isnan(scores), NAN, scores >= SIDE)


def _changes(scores: Numbers) -> Numbers:
    """How often each row changes sides; a run without a score is passed over."""
    sides = _sides(scores)
    if sides is None:
        return np.zeros(len(scores), np.int64)
    known = pd.DataFrame(sides).ffill(axis=1).to_numpy()
    return np.asarray((np.abs(np.diff(known, axis=1)) == 1).sum(axis=1))


def _by_configuration(scores: Numbers, configurations: Sequence[str]) -> dict[str, Numbers]:
    """The scores of the runs of each configuration."""
    names = np.array(configurations, object)
    return {name: scores[:, names == name] for name in dict.fromkeys(configurations)}


def _repeats(metric: str, configurations: Sequence[str], scores: Numbers) -> Iterator[Repeats]:
    for name, of_runs in _by_configuration(scores, configurations).items():
        whole = of_runs[np.isfinite(of_runs).all(axis=1)]
        if of_runs.shape[1] < 2 or not len(whole):
            continue
        sides = _sides(whole)
        flaky = int((np.ptp(whole if sides is None else sides, axis=1) > 0).sum())
        std = math.sqrt(float(whole.var(axis=1, ddof=1).mean()))
        yield Repeats(metric, name, of_runs.shape[1], len(whole), 1 - flaky / len(whole), flaky, std)


def _noise(scores: Numbers, configurations: Sequence[str]) -> float:
    """The share of the variance of the differences between the first and the last configuration that is noise."""
    groups = list(_by_configuration(scores[np.isfinite(scores).all(axis=1)], configurations).values())
    repeated = [group for group in groups if group.shape[1] > 1]
    if len(groups) < 2 or not repeated or len(groups[0]) < 2:
        return NAN
    freedom = sum(group.shape[1] - 1 for group in repeated)
    within = sum(float(group.var(axis=1, ddof=1).mean()) * (group.shape[1] - 1) for group in repeated) / freedom
    old, new = groups[0], groups[-1]
    variance = float((new.mean(axis=1) - old.mean(axis=1)).var(ddof=1))
    return min(1.0, within * (1 / old.shape[1] + 1 / new.shape[1]) / variance) if variance else NAN


# --- the pictures
WIDTH, HEIGHT = 240, 80

PICTURES = "Higher is up. Band: 95% interval. A colored step is significant (Holm p < 0.05); a gray one may be chance."


def _picture(lines: Sequence[MetricOfRun], info: MetricInfo, change: MetricComparison) -> Trend:
    """The means of a metric over the runs, the band of their intervals, and the steps that are significant; higher is
    up."""
    there = [value for line in lines for value in (line.mean, line.low, line.high) if math.isfinite(value)]
    lowest, span = min(there, default=0.0), max(there, default=0.0) - min(there, default=0.0)

    def point(run: int, value: float) -> tuple[float, float]:
        height = HEIGHT * (1 - (value - lowest) / span) if span else HEIGHT / 2
        return round(WIDTH * run / max(len(lines) - 1, 1), 1), round(height, 1)

    banded = [(i, line) for i, line in enumerate(lines) if math.isfinite(line.low + line.high)]
    edge = [point(i, line.high) for i, line in banded] + [point(i, line.low) for i, line in reversed(banded)]
    means = written_alike(info, [line.mean for line in lines])
    runs = [f"{line.run} {mean}" for line, mean in zip(lines, means, strict=True)]
    points = [point(i, line.mean) if math.isfinite(line.mean) else None for i, line in enumerate(lines)]
    band = " ".join(f"{x},{y}" for x, y in edge)
    moods = [_step_mood(line, info) for line in lines]
    mood = gain_mood(change.gain) if change.p_adjusted < CHANCE else ""
    words = {"good": "better", "error": "worse"}.get(mood, "may be chance" if change.difference else "unchanged")
    if math.isnan(change.p_adjusted):
        words = "not tested" if change.counted else "not judged"
    ends, words = (runs[0], runs[-1]), f"first to last: {words}"
    return Trend(name_of(info), info.name, points, moods, band, runs, ends, (WIDTH, HEIGHT), words, mood)


def _step_mood(line: MetricOfRun, info: MetricInfo) -> str:
    return gain_mood(info.sign * line.difference) if line.p_adjusted < CHANCE else ""


# --- the cells of the tables
def _of_run(line: MetricOfRun, info: MetricInfo) -> list[Words | Cell]:
    low, high = written_alike(info, [line.low, line.high])
    has_interval = not math.isnan(line.low)
    interval = (round(100 * line.low, 1), round(100 * (line.high - line.low), 1)) if has_interval else None
    label = f"{line.metric} of {line.run}: {number(line.mean)}"
    bar = Meter(percent(line.mean, 1), label, "", interval) if 0 <= line.mean <= 1 else None
    return [
        Part(line.metric, "name"),
        line.run if line.configuration == line.run else f"{line.run} ({line.configuration})",
        Cell(picture=bar),
        written_alike(info, [line.mean])[0],
        f"{low} to {high}" if has_interval else MISSING,
        Cell(signed(line.difference), _step_mood(line, info)),
        Cell("" if math.isnan(line.p_adjusted) else p_text(line.p_adjusted), _step_mood(line, info)),
        f"{line.rows:,}",
    ]


def _of_repeats(line: Repeats, noise: float) -> list[Words | Cell]:
    return [
        Part(line.metric, "name"),
        line.configuration,
        f"{line.runs:,}",
        share(line.rows - line.flaky, line.rows),
        f"{line.flaky:,} of {line.rows:,}",
        number(line.std),
        MISSING if math.isnan(noise) else share(noise, 1),
    ]


def _of_row(key: Any, metric: str, changes: int, scores: Sequence[float]) -> tuple[str, str, str, str]:
    return str(key), metric, f"{changes:,}", _over_runs(scores)


def _over_runs(scores: Sequence[float]) -> str:
    return " → ".join(map(number, scores))


def _trend(lines: Sequence[MetricOfRun]) -> str:
    """The means of the metric that changed most from the first run to the last: `recall 0.7 → 0.9; `."""
    means = by_key((line.metric, line.mean) for line in lines)
    changes = {metric: change for metric, of in means.items() if (change := abs(of[-1] - of[0])) > 0}
    if not changes:
        return ""
    most, others = max(changes, key=lambda metric: changes[metric]), len(means) - 1
    return f"{most} {_over_runs(means[most])}" + (f" and {plural(others, 'other metric')}; " if others else "; ")


_EXTENSION = re.compile(r"(?<=.)(\.(parquet|jsonl?|csv))(\.gz)?$")


def run_names(names: Sequence[str | None]) -> list[str]:
    """The names of runs: those of their files without the extension, or their numbers where these are missing or not
    unique."""
    short = [name and _EXTENSION.sub("", name.rstrip("/").rpartition("/")[2]) for name in names]
    times = Counter(short)
    return [name if name and times[name] == 1 else str(i) for i, name in enumerate(short, 1)]
