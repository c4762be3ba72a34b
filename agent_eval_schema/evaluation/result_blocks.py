"""What a report on scores shows, as blocks; and what a page of them has beside the numbers.

ScoredRows ──▶ result_view
          └──pictures_of──▶ the rows, worst first; how scores are distributed, by row and by group
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import asdict, replace

from agent_eval_schema.decoding.requests import last_question
from agent_eval_schema.evaluation.scored_rows import Scored, ScoredRows
from agent_eval_schema.evaluation.table import REQUEST_ID, RUN_COLUMNS, ScoreStats, cell_text, rows_by, score_column
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY, METRICS, Direction
from agent_eval_schema.metrics.intervals import MeanInterval, Numbers, is_binary
from agent_eval_schema.metrics.metric_info import MetricInfo
from agent_eval_schema.metrics.trajectory import Match
from agent_eval_schema.metrics.trajectory_columns import PREDICTED, REFERENCE
from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Column,
    Fold,
    Histograms,
    Line,
    Meter,
    Only,
    OpenRows,
    Part,
    Section,
    Strip,
    Table,
    View,
    Words,
)
from agent_eval_schema.render.document import json_text, plain_values, versioned
from agent_eval_schema.render.figures import Distribution, per_step, steps
from agent_eval_schema.render.page import heat, percent, plot, runs
from agent_eval_schema.render.phrases import (
    EXAMPLES_SHOWN,
    MISSING,
    NextCommand,
    aligned,
    number,
    plural,
    seconds,
    share,
)
from agent_eval_schema.render.rows import ShownRow, ShownScore
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import rule_of
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.text.describe import truncate
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.row_content import CELL, content_of, cut_text
from agent_eval_schema.validation.row_content import PREDICTED as CALLS

UNREADABLE = "cannot be read"
"""How the reason ends if a cell is to blame, not the lack of one."""

REASONS_SHOWN = 50
"""Reasons of missing scores that a report shows; `unscored` has them all."""

ISSUES_SHOWN, ISSUES_AT_ONCE = 20, 5
"""First issues that a page shows, and those that a notebook does not fold."""


class ScoreSteps(Struct, frozen=True):
    """Over the rows in order, in equal steps: the mean of what a score lacks to the best one, and the share of unscored
    rows."""

    metric: str
    lost: list[float]
    unscored: list[float]


class GroupOfRows(Struct, frozen=True):
    """The rows with one value of a column, and the interval of the mean of each metric."""

    value: str
    rows: int
    means: dict[str, MeanInterval]


class Pictures(NamedTuple):
    """What a page has of the rows beside the numbers: the scores by groups of each column, the rows that are to be
    examined first, and what opens a review of these."""

    groups: dict[str, list[GroupOfRows]]
    worst: OpenRows | None
    review: list[NextCommand]


class MetricComparison(Struct, frozen=True):
    """One metric in two results: over the `rows` that have a score in both, the means, the mean difference and its 95 %
    confidence interval, how many rows have a higher and a lower score in the new result, the p value of the test, also
    adjusted for the number of metrics, the standard error of the mean difference, the number of independent units, and
    why there is no interval or no p value (NaN). `lost` and `gained` rows have a score in one result only. `direction`
    and `unit` are those of the metric; one that is not `counted` is a figure: it is not judged, and the p values are
    not adjusted for it. `missing` reports how the rows that lost their score differ from the others, `assumes` what
    the interval assumes of a scale that is not known, and `assumption` in which direction an unknown one is judged."""

    metric: str
    rows: int
    lost: int
    gained: int
    old: float
    new: float
    difference: float
    low: float
    high: float
    higher: int
    lower: int
    p_value: float
    p_adjusted: float
    std_error: float
    units: int
    note: str
    direction: Direction = "unknown"
    unit: str = ""
    counted: bool = True
    missing: str = ""
    assumes: str = ""
    assumption: str = ""

    @property
    def info(self) -> MetricInfo:
        return MetricInfo(self.metric, self.direction, unit=self.unit)

    @property
    def gain(self) -> float:
        """How much better the new scores are; 0 of a metric that is not judged."""
        return self.difference * self.info.sign if self.counted else 0.0


# --- the blocks
_COMPARED = {
    "tool_name": "Trajectories are compared by tool name; inputs are not compared.",
    "subset": "Trajectories are compared by tool name and the arguments of the reference; others are not compared.",
}
"""By the option `match`: how trajectories were compared, if not as usual."""


def result_view(result: ScoredRows, pictures: Pictures | None = None) -> View:
    """A line per metric, why rows have no score, then what the means cover, the worst of them and the next command."""
    where = os.path.basename(result._call.name) if result._call.name else ""
    title = f"{where or 'evaluation'}: {plural(result.row_count, 'row')}, {plural(len(result.metrics), 'metric')}"
    latency = ""
    if (stats := result.tallies.get(LATENCY, ScoreStats())).scored:
        latency = f"Latency: {', '.join(f'p{q * 100:g} {seconds(stats.percentile(q))}' for q in PERCENTILES)}"
    options = ", ".join(f"{name}={value}" for name, value in result.options.items())
    options = f" ({options})" if options else ""
    run = [Line(("MLflow run ", Part(result.run_id, "code")), "muted")] if result.run_id else []
    worst = pictures.worst if pictures else None
    return View(
        title=title,
        about=[Only("html", [Line(where, "muted")])],
        verdict=verdict_of(result),
        mood=mood_of(result),
        notes=[Only("html", [*run, Line(latency, "muted")])],
        following=next_commands(result),
        then=pictures.review if pictures else [],
        first=first_of(result, worst),
        blocks=[
            Only("text", [Line(_COMPARED.get(result.options.get("match", ""), ""))]),
            *means_of(result),
            *_unscored(result, with_issues=pictures is not None),
            *_aggregates(result),
            *([Only("html", [Section("rows", "Rows", [worst])])] if worst else []),
            Fold("Scores by row and by group, distributions", list(_pictures(result, pictures)) if pictures else []),
        ],
        footer=f"{options}. Row numbers are zero-based; std is the sample standard deviation; unscored rows are "
        "excluded from mean and std.",
    )


PERCENTILES = (0.5, 0.9, 0.95, 0.99)

METRICS_NAMED = 2
"""Metrics that a headline names, those with the worst scores first."""


def verdict_of(result: ScoredRows) -> str:
    """What the means cover and the worst of them: `1 of 4 rows scored; 3 unreadable: exact_match 0.5`."""
    coverage = result._headline or f"{plural(result.row_count, 'row')} evaluated"
    of_all = [(reason, rows) for reason, rows, metrics in result._reason_groups if len(metrics) == len(result.metrics)]
    unreadable = sum(rows for reason, rows in of_all if reason.endswith(UNREADABLE))
    if unreadable and result._headline:
        coverage = f"{coverage}; {unreadable:,} unreadable"
    lines = [line for line in result._lines if line.metric not in (LATENCY, FAILURE) and line.mean == line.mean]
    if not lines:
        return coverage
    if is_perfect(result):
        return f"{coverage}: every score is perfect"
    count = len(lines)
    lacks = {line.metric: _lack(line, result.infos[line.metric]) for line in lines}
    lines = sorted((x for x in lines if lacks[x.metric]), key=lambda x: lacks[x.metric], reverse=True) or lines
    named = [f"{line.metric} {_mean_text(result.infos[line.metric], line.mean)}" for line in lines[:METRICS_NAMED]]
    interval = result._intervals[lines[0].metric]
    if count == 1 and not interval.note:
        named = [f"{named[0]} (95% interval {number(interval.low)} to {number(interval.high)})"]
    others = count - len(named)
    return f"{coverage}: {', '.join(named)}" + (f" and {plural(others, 'other metric')}" if others else "")


def _mean_text(info: MetricInfo, mean: float) -> str:
    return seconds(mean) if info.unit == "s" else number(mean)


def _lack(line: Scored, info: MetricInfo) -> float:
    """What a mean lacks to the best one, from 0 to 1; 0 if that is not known."""
    lack = 1 - line.mean if info.share_sign > 0 else line.mean
    return lack if info.share_sign and line.scored else 0.0


def _is_best(line: Scored, info: MetricInfo) -> bool:
    return bool(line.scored and info.share_sign) and not _lack(line, info)


def is_perfect(result: ScoredRows) -> bool:
    """Whether every row has the best score of every metric, as far as a metric can have one."""
    lines = [line for line in result._lines if line.metric != LATENCY]
    return bool(lines) and not result._headline and all(_is_best(line, result.infos[line.metric]) for line in lines)


def mood_of(result: ScoredRows) -> str:
    if not any(line.scored for line in result._lines if line.metric in result.metrics) and result.metrics:
        return "error"
    return "warning" if result._headline else "good" if is_perfect(result) or not result.metrics else ""


def _failed(result: ScoredRows) -> bool:
    """Whether a call failed, of those that this evaluation made."""
    return FAILURE not in result.metrics and any(line.metric == FAILURE and line.mean > 0 for line in result._lines)


def _has_issues(result: ScoredRows) -> bool:
    return any(rule_of(code).severity is not Severity.INFO for code in result._causes)


def next_commands(result: ScoredRows) -> list[NextCommand]:
    """What shows which calls failed, why rows have no score (the issues of their cells, else the fields that they
    lack), or the rows with low scores."""
    if _failed(result):
        return [NextCommand("result.failures", "lists the error of each call that failed")]
    if _has_issues(result):
        return [NextCommand(result._call.validation(), "shows where the issues are and how to fix them")]
    of_trajectories = _VERTEX.issuperset(result.metrics)
    if result._headline and result.row_count:
        command = result._call.command("metrics", "--system", "vertex") if of_trajectories else ""
        if command:
            return [NextCommand(command, "shows which field would enable the most rows")]
        return [NextCommand("result.reasons", "shows the reason for each missing score")]
    if not result.row_count or is_perfect(result) or not result.metrics:
        return []
    ran = any(line.metric == FAILURE for line in result._lines)
    is_named = of_trajectories or "metrics" in result._call.options
    command = result._call.command("score", "--html", "scores.html") if is_named and not ran else ""
    return [NextCommand(command or 'result.save("scores.html")', "shows the rows, those with the worst scores first")]


def first_of(result: ScoredRows, worst: OpenRows | None) -> Words:
    """Where a page shows what to do first: the row with the lowest scores, or why rows have none."""
    if is_perfect(result) or (_has_issues(result) and not _failed(result)):
        return ""
    row = next(iter(worst.rows), None) if worst else None
    if row is not None and (row.failed or not result._headline):
        why = "failed" if row.failed else "has the worst scores"
        return (Part(f"row {row.row}", "#rows"), f", which {why}: {row.title}")
    return (Part("the reasons", "#reasons"), " why rows have no score") if result._reason_groups else ""


_VERTEX = {metric.name for metric in METRICS if metric.system == "vertex"}


def result_json(
    result: ScoredRows, rows: Iterable[dict[Any, Any]] = (), compared: Iterable[MetricComparison] = ()
) -> str:
    """The summary, why rows have no score, these rows of the table, and how metrics changed, as JSON. NaN is null."""
    listed = list(rows)
    document = {
        "source": visible(result._call.name) if result._call.name else None,
        "options": result.options,
        "headline": result._headline or None,
        "metrics": list(result.metrics),
        "summary_metrics": result.summary_metrics,
        "scored": {line.metric: line.scored for line in result._lines},
        "intervals": {name: interval.report for name, interval in result._intervals.items()},
        "run_id": result.run_id,
        "without_judge": result.without_judge,
        "unscored": result.unscored.to_dict("records"),
        "issue_counts": result._causes,
        "rows_listed": len(listed),
        "rows": listed,
        "comparison": [asdict(line) for line in compared],
    }
    return json_text(plain_values(versioned(document)))


# --- means
def means_of(result: ScoredRows) -> list[Block]:
    """The means with what they cover, as a table in each form."""
    means, stds = (_written(result, [getattr(x, what) for x in result._lines]) for what in ("mean", "std"))
    columns = ["metric", "%mean", "#", "#95% interval", "#std", "#rows scored", "#coverage"]
    lines = [_mean(result, *line) for line in zip(result._lines, means, stds, strict=True)]
    about = [Line(words, "muted") for words in _about_intervals(result)]
    if any(result.infos[line.metric].known_sign < 0 for line in result._lines):
        about.append(Line(f"{LOWER} lower is better.", "muted"))
    table = Table(columns, lines, title="Metrics", kind="metrics scores")
    return [Only("text", [table, *about]), Only("html", [Section("metrics", "Metrics", [table, *about])])]


SESSIONS_UNKNOWN = "Sessions unknown: each row counts as independent."
"""What is reported of a table or a run whose rows have neither sessions nor the keys of those that were scored."""

LOWER = "↓"


def name_of(info: MetricInfo) -> Words:
    """The name of a metric, whether less is better, and its scale or unit where its numbers do not show it."""
    about = [*([LOWER] if info.known_sign < 0 else []), *([f"({info.told})"] if info.told else [])]
    return (Part(info.name, "name"), *([Part(f" {' '.join(about)}", "muted")] if about else []))


def _about_intervals(result: ScoredRows) -> Iterator[str]:
    """What the intervals count as independent, which means have none for which reason, and the noise of repeats."""
    intervals = [interval for interval in result._intervals.values() if not interval.note]
    if intervals and not result._record.sessions:
        yield SESSIONS_UNKNOWN
    if (units := result._units) is not None and any(interval.units < interval.rows for interval in intervals):
        words = units.words(len(np.unique(units.codes)))
        yield f"The intervals are those of {words}, not of {plural(result.row_count, 'row')}."
    for metric, interval in result._intervals.items():
        if interval.assumes:
            yield f"{metric}: the scale of {metric} is not known: the interval assumes {interval.assumes}."
    notes = by_key((of.note, metric) for metric, of in result._intervals.items() if of.note and of.rows)
    for note, metrics in notes.items():
        which = "all metrics" if len(metrics) == len(result._intervals) > 1 else ", ".join(metrics)
        yield f"{which}: {note}."
    for metric, (questions, answers) in result._spreads.items():
        yield (
            f"{metric}: standard deviation {number(questions)} between questions, {number(answers)} between answers to "
            "the same question (the noise of the agent)."
        )


def _mean(result: ScoredRows, line: Scored, mean: str, std: str) -> list[Words | Cell]:
    interval = result._intervals.get(line.metric, MeanInterval(0, 0))
    low, high = interval.low, interval.high
    is_covered = line.scored == result.row_count
    info = result.infos[line.metric]
    sign, mood = ("✓ ", "good") if _is_best(line, info) else ("✗ ", "error") if _lack(line, info) == 1 else ("", "")
    return [
        name_of(info),
        Cell(picture=_bar(info, line.mean, low, high, is_covered=is_covered)),
        Cell(sign + mean, mood) if line.scored else Cell("not scored", "warning"),
        MISSING if math.isnan(low) else f"{_mean_text(info, low)} to {_mean_text(info, high)}",
        std,
        f"{line.scored:,} of {result.row_count:,}",
        Cell(share(line.scored, result.row_count), "" if is_covered else "warning"),
    ]


def _bar(info: MetricInfo, mean: float, low: float, high: float, *, is_covered: bool = True) -> Meter | None:
    """A mean from 0 to 1 as a bar, with its interval; green and red by what is better."""
    if info.unit or not 0 <= mean <= 1:
        return None
    direction = info.share_sign
    between = "" if math.isnan(low) else f", 95% interval {number(low)} to {number(high)}"
    interval = (round(100 * low, 1), round(100 * (high - low), 1)) if between else None
    kind = {1: "", 0: "plain", -1: "bad"}[direction] if is_covered else "hatched"
    return Meter(percent(mean, 1), f"{info.name}: {number(mean)}{between}", kind, interval, direction > 0)


def _written(result: ScoredRows, values: Iterable[float]) -> list[str]:
    """A number of each metric: scores with the same decimals, seconds with their unit."""
    pairs = [(value, result.infos[line.metric].unit == "s") for line, value in zip(result._lines, values, strict=True)]
    scores = iter(aligned(value for value, in_seconds in pairs if not in_seconds))
    return [seconds(value) if in_seconds else next(scores) for value, in_seconds in pairs]


def written_alike(info: MetricInfo, values: Iterable[float]) -> list[str]:
    """Numbers of one metric: scores with the same decimals, seconds with their unit."""
    return list(map(seconds, values)) if info.unit == "s" else aligned(values)


def _aggregates(result: ScoredRows) -> Iterator[Block]:
    """What MLflow aggregated besides means, and the scorers that have no judge."""
    own = {"row_count", *(f"{line.metric}/{what}" for line in result._lines for what in ("mean", "std"))}
    others = [(name, number(value)) for name, value in result.summary_metrics.items() if name not in own]
    yield Only("html", [Table(["Metric", "#value"], others, kind="metrics")])
    if result.without_judge:
        skipped = ", ".join(f"{name} {rows:,}" for name, rows in result.without_judge.items())
        yield Line(f"Skipped without a judge (model=), with the rows that each could score: {skipped}", "muted")


# --- rows
def _unscored(result: ScoredRows, *, with_issues: bool) -> Iterator[Block]:
    """Why rows have no score: a line or a table, and the issues of their cells."""
    reasons: list[list[Words | Cell]] = []
    texts: list[Block] = []
    for reason, count, metrics in result._reason_groups[:REASONS_SHOWN]:
        is_common = len(metrics) == len(result.metrics)
        reasons.append([reason, f"{count:,}", Cell("every metric" if is_common else ", ".join(metrics), "muted")])
        which = "" if is_common else f" ({', '.join(metrics)})"
        texts.append(Line(f"{plural(count, 'row')} without a score: {reason}{which}"))
    if (more := len(result._reason_groups) - len(texts)) > 0:
        texts.append(Line(f"… and {plural(more, 'other reason')}", "muted"))
    issues = [
        Line((Part(f"{rule.code} {rule.name}", f"tag {rule.severity}"), ": ", Part(f"{count:,} ×", "count")))
        for rule, count in ((rule_of(code), count) for code, count in result._causes.items())
    ]
    errors = Counter(error[:LONGEST_ERROR] for error in result.failures.values())
    causes = [Line(f"{count:,} × {error}") for error, count in errors.most_common(EXAMPLES_SHOWN)]
    if len(errors) > len(causes):
        causes.append(Line(f"… and {plural(len(errors) - len(causes), 'other error')}", "muted"))
    yield Only("text", [*causes, *texts, *issues])
    first = result.issues.head(ISSUES_SHOWN) if with_issues and result._causes else pd.DataFrame()
    issue_rows: list[list[Words | Cell]] = [
        ["" if is_absent(i["row"]) else f"{i['row']:,}", Cell(i["path"] or "", "path"), Part(i["message"], "message")]
        for i in first.to_dict("records")
    ]
    blocks: list[Block] = [
        Table(["Why", "#rows", "Metrics"], reasons),
        Table(["Error of the call", "#rows"], [[e, f"{rows:,}"] for e, rows in errors.most_common(CAUSES_SHOWN)]),
        *issues,
        Table(["#Row", "Where", "What is wrong"], issue_rows, at_once=ISSUES_AT_ONCE),
    ]
    yield Only("html", [Section("reasons", "Unscored rows" if reasons or errors else "Issues", blocks)])


# --- pictures
def _pictures(result: ScoredRows, pictures: Pictures) -> Iterator[Block]:
    lines = [line for line in score_steps(result) if any(line.lost) or any(line.unscored)]
    if lines and result.row_count > 1:
        explained = (
            f"From the first row (left) to the last (right){per_step(result.row_count)}: the fuller the color, the "
            "more points are lost; gray: no score."
        )
        table = Table(["Metric", "Rows", "#mean"], [_steps(result, line) for line in lines], kind="presence")
        yield Section("steps", "Scores by row", [Line(explained, "muted"), table])
    if pictures.groups:
        explained = "The mean of each metric, and its 95% confidence interval as a line."
        tables = [_grouping(column, groups, result.infos) for column, groups in pictures.groups.items()]
        yield Section("groups", "Scores by group", [Line(explained, "muted"), *tables])
    plots = []
    for name, one in result.tallies.items():
        if name != FAILURE and not is_binary(one.known):
            distribution, bars = Distribution(), one.tenths if name != LATENCY and one.is_share else None
            distribution.add(one.known)
            unit, show = ("", seconds) if name == LATENCY else ("score", None)
            plots.append(plot(name, unit, distribution, bars, show, one.percentile))
    if plots:
        yield Section("numbers", "Distributions", [Histograms(plots)])


def _steps(result: ScoredRows, line: ScoreSteps) -> list[Words | Cell]:
    mean = number(result.tallies[line.metric].mean)
    label = f"{line.metric} over {plural(result.row_count, 'row')}: mean {mean}"
    strip = Strip(len(line.lost), [("none", runs(line.unscored, span=0.5)), ("error", runs(line.lost))], label)
    return [Part(line.metric, "name"), Cell(picture=strip), mean]


def _grouping(column: str, groups: Sequence[GroupOfRows], infos: Mapping[str, MetricInfo]) -> Table:
    texts = {metric: aligned(group.means[metric].mean for group in groups) for metric in groups[0].means}
    rows = []
    for i, group in enumerate(groups):
        means = [Cell(texts[m][i], picture=_bar(infos[m], of.mean, of.low, of.high)) for m, of in group.means.items()]
        rows.append([Cell(group.value), Cell(f"{group.rows:,}"), *means])
    names = [Column(column), Column("rows", is_number=True), *map(Column, groups[0].means)]
    return Table(names, rows, title=column, kind="groups")


# --- the pictures
GROUPINGS, MOST_GROUPS = 3, 12
"""Columns that rows are grouped by, and the values of such a column, at most."""

CAUSES_SHOWN, LONGEST_ERROR = 10, 200
"""Errors that a result shows, at most, and the characters of one by which it is known."""

SMALLEST_GROUP = 2
"""Rows that a group has on average, at least: otherwise the values identify rows."""


_IDENTIFYING = {REQUEST_ID, "prompt", "request", "inputs", "reference", "expected_response", "trace", *RUN_COLUMNS}
"""Columns that are different in each row by what they mean."""


def pictures_of(result: ScoredRows, most: int) -> Pictures:
    """The pictures of a page with at most `most` rows."""
    ranks = _ranks(result)
    order = np.argsort(ranks, kind="stable")
    chosen = {row: dict[str, Any]() for row in order[:most].tolist()}
    start = 0
    labels: dict[str, list[pd.Series[Any]]] = {}
    for part in result._shown():
        for row in (row for row in chosen if start <= row < start + len(part)):
            chosen[row] = {str(name): part.iat[row - start, i] for i, name in enumerate(part.columns)}
        if not start:
            labels = {str(c): [] for c in part.columns if "/" not in str(c) and c not in _IDENTIFYING}
        for name in list(labels):
            labels[name].append(part[name].map(_label))
            if labels[name][-1].eq("").any() or labels[name][-1].nunique() > MOST_GROUPS:
                del labels[name]
        start += len(part)
    groups = dict(islice(_groups(result, labels), GROUPINGS))
    review = result._review("that failed or lost points", order[ranks[order] < 1].tolist())
    return Pictures(groups, _worst_rows(result, chosen) if start else None, review)


def _shares(result: ScoredRows) -> dict[str, ScoreStats]:
    """The metrics whose scores are from 0 to 1."""
    tallies = result.tallies.items()
    return {name: stats for name, stats in tallies if name not in (LATENCY, FAILURE) and stats.is_share}


def _ranks(result: ScoredRows) -> Numbers:
    """What is to be examined first: -1 a row that failed, then its mean score from 0 to 1, 1.5 a row without a score, 2
    one with a full score."""
    shares = _shares(result).items()
    points = {n: 1 - one.by_row if result.infos[n].share_sign < 0 else one.by_row for n, one in shares}
    means = pd.DataFrame(points, index=range(result.row_count)).mean(axis=1).to_numpy(np.float64)
    if FAILURE in result.tallies:
        means = np.where(result.tallies[FAILURE].by_row == 1, -1.0, means)
    return np.where(means < 1, means, np.where(np.isnan(means), 1.5, 2.0))


def score_steps(result: ScoredRows) -> Iterator[ScoreSteps]:
    """Of scores from 0 to 1, a line per metric."""
    for name, stats in _shares(result).items():
        points = lost(stats.by_row, _graded(result.infos[name], not is_binary(stats.known)))
        yield ScoreSteps(name, steps(np.nan_to_num(points)), steps(np.isnan(stats.by_row)))


def _groups(
    result: ScoredRows, labels: Mapping[str, Sequence[pd.Series[Any]]]
) -> Iterator[tuple[str, list[GroupOfRows]]]:
    """The groups of each column that has few values; the largest group first."""
    for column, parts in labels.items():
        groups = rows_by(pd.concat(parts))
        if 2 <= len(groups) <= min(MOST_GROUPS, result.row_count / SMALLEST_GROUP):
            entries = [
                GroupOfRows(value, len(rows), {name: result._interval(name, rows=rows) for name in result.tallies})
                for value, rows in groups.items()
            ]
            yield column, sorted(entries, key=lambda group: -group.rows)


def _graded(info: MetricInfo, graded: bool) -> int:
    """The direction of scores from 0 to 1; `graded` ones of an unknown metric are points, as its name suggests."""
    return info.share_sign or (info.sign if graded and not info.unit else 0)


def lost(scores: Numbers, direction: int) -> Numbers:
    """What scores from 0 to 1 lack to the best one; nothing where it is not known which one that is."""
    return 1 - scores if direction > 0 else scores if direction else scores * 0


def _label(value: Any) -> str | None:
    """The value as the name of a group: a short text, a whole number or a flag; "" for any other, None for none."""
    if isinstance(value, str):
        return value if len(value) <= 60 and value[:1] not in ("{", "[") else ""
    if isinstance(value, bool | int | np.bool_ | np.integer):
        return str(value)
    return None if is_absent(value) else ""


# --- the rows
SHOWN_BESIDE = (
    *("request_id", "prompt", "request", "inputs", "response", "outputs"),
    *("reference", "expected_response", "expected_facts", "guidelines", "expectations", "error"),
)
"""The cells of a row that are shown with it, those that it has; after them what metrics explain."""

LONGEST_TITLE = 90
"""Characters of the text by which a row is known."""

CONTENT = ("retrieved_context", PREDICTED, REFERENCE, "trace")
"""The cells whose content a page draws."""

KNOWN_AS = {"prompt": "request", "outputs": "response", "reference": "expected_response"}
"""Our names of columns that are called otherwise here."""


def _worst_rows(result: ScoredRows, chosen: Mapping[int, dict[str, Any]]) -> OpenRows:
    """The `chosen` rows: failed ones, the lowest mean scores from 0 to 1, those without a score, then full scores."""
    match: Match = next((way for way in get_args(Match) if way == result.options.get("match")), "call")
    metrics = [name for name in result.infos if name != FAILURE]
    columns = [_scores(result.infos[name], list(chosen.values())) for name in metrics]
    rows = []
    for i, (row, cells) in enumerate(chosen.items()):
        explained = [n for n in cells if n.rpartition("/")[0] in metrics and n != score_column(n.rpartition("/")[0])]
        scores = {name: column[i] for name, column in zip(metrics, columns, strict=True)}
        shown_row = open_row(row, cells, (*SHOWN_BESIDE, *explained), scores, match=match)
        if row in result.failures:
            error = next((text for name, text in shown_row.content.cells if name == "error"), "")
            shown_row = replace(shown_row, failed=True, title=truncate(error, LONGEST_TITLE) or shown_row.title)
        rows.append(shown_row)
    about = "Those that failed first, then those with the worst scores."
    return OpenRows(metrics, rows, result.row_count, about, "more rows: to_html(rows=…) draws more")


def open_row(
    row: int | str,
    cells: Mapping[str, Any],
    names: Iterable[str],
    scores: Mapping[str, Cell],
    *,
    answers: Sequence[str] = ("response",),
    predicted: Mapping[str, str] = CALLS,
    match: Match,
) -> ShownRow:
    """A row with its scores, those of the cells `names` that it has, and both trajectories side by side."""
    reasons = {f"{name}/reason": name for name in scores}
    shown = {name: cell_text(cells[name]) for name in (*names, *CONTENT) if not is_absent(cells.get(name))}
    reason = {reasons[name]: shown.pop(name) for name in list(shown) if name in reasons}
    texts = {KNOWN_AS.get(name, name): text for name, text in shown.items() if name != "request_id"}
    content = content_of(texts, answers=answers, predicted=predicted, match=match)
    prompt = next((cells[n] for n in ("prompt", "request", "inputs") if not is_absent(cells.get(n))), "")
    marks = [ShownScore(n, str(c.words), c.mood, cut_text(reason[n], CELL)) for n, c in scores.items() if n in reason]
    return ShownRow(
        row,
        id=shown.get("request_id"),
        title=truncate(last_question(prompt) or cell_text(prompt), LONGEST_TITLE) or f"Row {row}",
        columns=[(str(cell.words), cell.mood, cell.number) for cell in scores.values()],
        content=replace(content, scores=marks),
    )


def _scores(info: MetricInfo, rows: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """The scores of a metric, aligned and colored; words of a judge, or several scores of one row, as they are."""
    scores = [math.nan if is_absent(score := row[score_column(info.name)]) else float(score) for row in rows]
    graded, cells = any(0 < score < 1 for score in scores), []
    for row, score, text in zip(rows, scores, written_alike(info, scores), strict=True):
        words = truncate(_words(row.get(f"{info.name}/value")), LONGEST_SCORE)
        cells.append(Cell(words or text, score_mood(info, score, graded), None if math.isnan(score) else score))
    return cells


LONGEST_SCORE = 24
"""Characters of a score in the table; all of it is shown with the row."""


def _words(value: Any) -> str:
    """A word of a judge, or several scores of one row; nothing for a number."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else ""


def score_mood(info: MetricInfo, score: float, graded: bool) -> str:
    """The color of a score from 0 to 1: the darker the more it lacks to the best one. `graded` scores of an unknown
    metric are points."""
    if math.isnan(score):
        return "muted"
    return heat(lost(np.array([score]), _graded(info, graded)).item()) if 0 <= score <= 1 else ""
