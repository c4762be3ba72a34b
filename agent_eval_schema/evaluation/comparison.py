"""Two results of the same rows: what became better, what worse, and whether that can be chance (differences.py)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import asdict, replace

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.evaluation.result_blocks import (
    CONTENT,
    SESSIONS_UNKNOWN,
    SHOWN_BESIDE,
    MetricComparison,
    name_of,
    open_row,
    written_alike,
)
from agent_eval_schema.evaluation.scored_rows import AUTO, ScoredRows
from agent_eval_schema.evaluation.table import REQUEST_ID, ScoreStats
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.differences import LEAST_UNITS, SMALLEST_P, Z, holm, paired_test
from agent_eval_schema.metrics.independence import RowKeys, Units
from agent_eval_schema.metrics.intervals import (
    ASSUMED_NEAR,
    ASSUMED_SHARE,
    NAN,
    Numbers,
    is_binary,
    scale_of_scores,
    standard_error,
)
from agent_eval_schema.metrics.known_metrics import metric_info
from agent_eval_schema.metrics.metric_info import SHARE, MetricInfo
from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Effect,
    Line,
    Only,
    OpenRows,
    Part,
    Section,
    Table,
    Terms,
    View,
    Words,
)
from agent_eval_schema.render.document import json_text, plain_values, versioned
from agent_eval_schema.render.phrases import MISSING, NextCommand, counted, number, plural, signed
from agent_eval_schema.render.printable import Savable
from agent_eval_schema.render.rows import ShownRow
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.describe import names

CHANCE = 0.05
"""A difference with a smaller adjusted p value is significant, and colored."""


class OfSeveral(Savable):
    """What is shown of several results, of whose rows those at `_places` are compared: Markdown, too."""

    _results: Sequence[ScoredRows] = ()
    _places: Sequence[Numbers] = ()
    _markdown = "comparison.to_markdown()"
    """What writes it as Markdown, which a page leads on to."""
    _fallen_words = "that became worse"
    """What is reported of the rows at `_fallen`."""

    @abstractmethod
    def _fallen(self) -> list[int]:
        """The rows to be reviewed, as places among those that are compared."""

    def _page(self) -> str:
        from agent_eval_schema.render.block_html import view_page

        markdown = NextCommand(self._markdown, "the same as Markdown, for a pull request")
        review = self._results[-1]._review(self._fallen_words, self._places[-1][self._fallen()].tolist())
        return view_page(replace(self._view(), following=[], then=[*review, markdown]))

    def _cells_of(self, row: int) -> list[dict[str, Any]]:
        """The cells of a row in each result."""
        rows = zip(self._results, self._places, strict=True)
        return [result.metrics_table.iloc[places[row]].to_dict() for result, places in rows]

    def to_markdown(self) -> str:
        """Return the comparison as Markdown, such as for a comment on a pull request.

        Returns
        -------
        str
            The result, the metrics, the test, and the scores that differ. Cells are written as text: markup, mentions
            and addresses in them have no effect.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> old = EvalTask([{"response": "3", "reference": "4"}], ["exact_match"]).evaluate()
        >>> new = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> old.compare(new).to_markdown().splitlines()[0]
        '### ✓ 0 scores lower, 1 higher'
        """
        from agent_eval_schema.render.block_text import view_markdown

        return view_markdown(self._view())

    def _inputs(self) -> object:
        return [result.name for result in self._results]

    def _forms(self) -> dict[str, Callable[[], str]]:
        return {**super()._forms(), ".md": self.to_markdown}


class ScoreComparison(OfSeveral):  # numpydoc ignore=PR01
    """The changes between the scores of two results.

    Attributes
    ----------
    lines : list of MetricComparison
        The rows of `summary` as objects.
    rows : pandas.DataFrame
        One row per score that differs, with a RangeIndex and the columns `row` (int64), `key` (of the column that
        identifies rows, otherwise the position in the old result), `request_id` if the old result has it, `metric`
        (str), `old`, `new` and `difference` (float64).
    only_old : list
        The keys of the rows that are in the old result only, or their positions.
    only_new : list
        The keys of the rows that are in the new result only, or their positions.
    matched_by : str
        What the rows were matched by: `"position"`, `"request_id"`, `"question"`, or the column `key`.
    remarks : list of str
        Other reasons for different scores: metrics of one result only, settings and data that differ.

    See Also
    --------
    EvalResult.compare : The method that returns a comparison.

    Examples
    --------
    >>> from agent_eval_schema import EvalTask
    >>> old = EvalTask([{"response": "3", "reference": "4"}], ["exact_match"]).evaluate()
    >>> new = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
    >>> old.compare(new).rows[["metric", "old", "new", "difference"]]
            metric  old  new  difference
    0  exact_match  0.0  1.0         1.0
    """

    _alpha = CHANCE
    _failed: bool | None = None
    _command = 'comparison.save("comparison.html")'

    def __init__(
        self, results: Sequence[ScoredRows], key: str | None, cluster: str | None, metrics: Sequence[str] | None
    ) -> None:
        self._results = old, new = tuple(results)
        infos = shared_infos(results, metrics)
        units = units_of(old, new, key, cluster)
        pairs = matched_rows(old, new, key)
        if not len(pairs.old):
            raise EvalSetError(f"the two results share no row, by {pairs.by}")
        self._places, self.matched_by = (pairs.old, pairs.new), pairs.by
        labels = [of.metrics_table[key].to_numpy() if key else np.arange(of.row_count) for of in results]
        self.only_old, self.only_new = (np.delete(of, at).tolist() for of, at in zip(labels, self._places, strict=True))
        shown = pd.DataFrame({"row": np.arange(len(pairs.old)), "key": labels[0][pairs.old].tolist()})
        if REQUEST_ID in old.metrics_table:
            shown[REQUEST_ID] = old.metrics_table[REQUEST_ID].to_numpy()[pairs.old]
        codes = np.arange(len(pairs.old)) if units is None else units.codes[pairs.old]
        lines, changed = [], []
        for metric, info in infos.items():
            before, after = old.tallies[metric].by_row[pairs.old], new.tallies[metric].by_row[pairs.new]
            lines.append(metric_change(info, before, after, codes, metrics is not None))
            scores = shown.assign(metric=metric, old=before, new=after, difference=after - before)
            changed.append(scores[(before != after) & ~(np.isnan(before) & np.isnan(after))])
        self.lines = adjusted(lines)
        self.rows = pd.concat(changed or [shown[:0]], ignore_index=True)
        tested = [line.units for line in lines if line.counted] or [line.units for line in lines]
        fewest, most = min(tested, default=0), max(tested, default=0)
        self._units = (f"{fewest:,} to " if fewest < most else "") + (units or Units(codes)).words(most)
        self.remarks = [*_other_reasons(old, new), *(_other_questions(old, new, pairs) if key is None else ())]

    @property
    def summary(self) -> pd.DataFrame:
        """The change of each metric.

        Returns
        -------
        pandas.DataFrame
            One row per metric, with a RangeIndex and the columns `metric` (str), `rows` (int64; rows with a score in
            both results), `lost` and `gained` (int64; rows with a score in the old and in the new result only), `old`,
            `new` and `difference` (float64; means), `low` and `high` (float64; the 95 % interval of the difference),
            `higher` and `lower` (int64; rows), `p_value` and `p_adjusted` (float64; by Holm's method for the number of
            metrics that are counted, NaN of the others), `std_error` (float64; of the mean difference), `units` (int64;
            independent units), `note` (str; the reason why there is no p value or no interval, which are NaN),
            `direction` (str: higher, lower, none, or unknown: then it is assumed), `unit` (str), `counted` (bool;
            False of figures such as latency, which are not judged), `missing` (str; in what the rows that lost their
            score differ from the others), `assumes` (str; what the interval assumes of a scale that is not known) and
            `assumption` (str; in which direction a metric of an unknown one is judged).

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> old = EvalTask([{"response": "3", "reference": "4"}], ["exact_match"]).evaluate()
        >>> new = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> old.compare(new).summary[["metric", "rows", "old", "new", "difference"]]
                metric  rows  old  new  difference
        0  exact_match     1  0.0  1.0         1.0
        """
        return pd.DataFrame(map(asdict, self.lines), columns=MetricComparison.__struct_fields__)

    def regressions(
        self, *, significant: bool = True, min_effect: float | Mapping[str, float] = 0.0, alpha: float = CHANCE
    ) -> dict[str, float]:
        """Return the metrics that became worse.

        Parameters
        ----------
        significant : bool, default True
            If True, only those whose p value, adjusted for the number of metrics, is below `alpha`.
        min_effect : float or mapping of str to float, default 0
            The smallest difference of the means that counts, in the unit of the metrics, or per metric (default 0).
        alpha : float, default 0.05
            The significance level.

        Returns
        -------
        dict of str to float
            The differences of the means by metric; of failures and others where less is better, a higher one is
            worse. Figures, such as latency, are not judged unless they were asked for.

        Raises
        ------
        EvalSetError
            One number is the smallest difference of metrics in different units, or a metric is not compared.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> right, wrong = {"response": "4", "reference": "4"}, {"response": "3", "reference": "4"}
        >>> old = EvalTask([right] * 3, ["exact_match"]).evaluate()
        >>> comparison = old.compare(EvalTask([wrong] * 3, ["exact_match"]).evaluate())
        >>> comparison.regressions(), comparison.regressions(significant=False)
        ({}, {'exact_match': -1.0})
        """
        least = self._least_effects(min_effect)
        worse = [line for line in self.lines if line.gain < 0 and (line.p_adjusted < alpha or not significant)]
        return {line.metric: line.difference for line in worse if abs(line.difference) >= least.get(line.metric, 0.0)}

    def _least_effects(self, min_effect: float | Mapping[str, float]) -> Mapping[str, float]:
        """The smallest difference that counts, by metric."""
        counted = [line for line in self.lines if line.counted]
        if isinstance(min_effect, Mapping):
            for metric in min_effect:
                require_choice("min_effect", metric, [line.metric for line in self.lines])
            return min_effect
        units = {line.unit: line.metric for line in counted}
        if min_effect and len(units) > 1:
            of = ", ".join(f"{metric} ({unit or 'points'})" for unit, metric in units.items())
            one = next(iter(units.values()))
            raise EvalSetError(
                f"min_effect: {min_effect:g} is no difference of metrics in different units: {of}; set one per metric, "
                f"such as {one}={min_effect:g}"
            )
        return {line.metric: min_effect for line in counted}

    @property
    def _undecided(self) -> list[MetricInfo]:
        """The metrics that no gate judges before their direction is stated: it is unknown, and the name suggests that
        less is better."""
        infos = [line.info for line in self.lines if line.counted]
        return [info for info in infos if info.direction == "unknown" and info.suggests_lower]

    @property
    def _lost(self) -> int:
        """The number of rows that had a score and have none in the new result, of the metric that lost most."""
        return max((line.lost for line in self.lines if line.counted), default=0)

    @cached_property
    def _differences(self) -> list[Difference]:
        """The scores that differ, of metrics that are judged; regressions first."""
        infos = {line.metric: line.info for line in self.lines if line.counted}
        rows: list[Any] = self.rows.to_dict("records")
        differences = [Difference(infos[row["metric"]], **row) for row in rows if row["metric"] in infos]
        return sorted(differences, key=lambda row: (row.gain, row.row))

    def _fallen(self) -> list[int]:
        """The rows that became worse, of those that both results have, the largest losses first."""
        return [row.row for row in self._differences if row.gain < 0]

    def _view(self) -> View:
        """A line per metric: before, after, and whether the difference can be chance; the number of rows in only one of
        the two results; then the scores that differ. Unless a gate judges, significance decides on the color."""
        rows, alpha = self._differences, self._alpha
        judged, figures = ([line for line in self.lines if line.counted == counted] for counted in (True, False))
        worse, better = (sum(row.gain * sign > 0 for row in rows) for sign in (-1, 1))
        counts = (("before", len(self.only_old)), ("after", len(self.only_new)))
        only = [(which, plural(count, "row")) for which, count in counts if count]
        tested = sum(line.p_value == line.p_value for line in judged)
        names = ["Row", "request_id", "Metric", "#before", "#after", "#difference"]
        title = "Scores that differ, regressions first"
        table = Table(names, list(map(_score, rows)), title=title, at_once=AT_ONCE, sortable=True)
        scores: list[Block] = [table]
        if self._results:
            opened = [_open_row(row, *self._cells_of(row.row)) for row in rows[:OPENED]]
            more = "more: `rows` and to_json() have all"
            heads, how = ["metric", "before", "after", "difference"], "A row opens to its question and both answers."
            both = OpenRows(heads, opened, len(rows), how, more, noun="scores")
            scores = [Only("page", [both]), Only("notebook", [table])]
        failed = self._failed
        if failed is None:
            failed = any(line.gain < 0 for line in judged if line.p_adjusted < alpha)
        is_unjudged = not judged and any(line.difference for line in figures)
        verdict = f"{_in_words(rows, better)}{significant_words(judged, tested, alpha)}" if rows else "No score differs"
        if is_unjudged:
            verdict = "no metric is judged: only figures differ"
        about = [Line(words, "muted") for words in _about_test(judged, tested, self._units)]
        about += [Line(f"{line.metric}: {words}.", "warning") for line in judged for words in _warnings(line)]
        if self.matched_by in (REQUEST_ID, BY_QUESTION):
            about.append(Line(f"Rows are matched by {self.matched_by}.", "muted"))
        about += [Line(remark, "warning") for remark in self.remarks]
        means: list[Block] = [_means(judged, tested > 1, alpha), *about]
        heading = "Figures and constants, which are not judged:" if figures else ""
        not_judged: list[Block] = [Line(heading, "muted"), _figures(figures)]
        on_page: list[Block] = [
            Terms([(f"Only {which}", count) for which, count in only]),
            Section("means", "Metrics", [*means, *not_judged] if self.lines else []),
            Section("scores", title, scores),
        ]
        runs = zip(("Before", "After"), [result._about for result in self._results], strict=False)
        lists = NextCommand(self._command, "lists the scores that differ, regressions first")
        return View(
            title=verdict,
            about=[Only("html", [Terms(list(runs))])],
            verdict=verdict,
            mood="error" if failed else "warning" if worse > better or is_unjudged else "good",
            following=[lists] if rows and self._command else [],
            first=(Part(f"row {rows[0].request_id or rows[0].key}", "#scores"), f" {rows[0].metric} {rows[0].change}")
            if worse
            else "",
            blocks=[
                Only("text", [*means, *(Line(f"{count} only {which}") for which, count in only), *not_judged]),
                Only("html", on_page),
            ],
        )

    def _json(self) -> str:
        document = {
            "lines": [asdict(line) for line in self.lines],
            "failed": self._failed,
            "matched_by": self.matched_by,
            "remarks": self.remarks,
            "only_old": self.only_old,
            "only_new": self.only_new,
            "rows": self.rows.to_dict("records"),
        }
        return json_text(plain_values(versioned(document)))

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.lines)} metrics, {len(self.rows):,} scores differ>"


def adjusted(lines: Sequence[MetricComparison]) -> list[MetricComparison]:
    """The lines with p values that are adjusted for the number of those that are judged."""
    p_values = holm([line.p_value if line.counted else NAN for line in lines])
    return [replace(line, p_adjusted=p) for line, p in zip(lines, p_values, strict=True)]


def shared_infos(results: Sequence[ScoredRows], metrics: Sequence[str] | None) -> dict[str, MetricInfo]:
    """What was stated for any result of the metrics that all have, or of those of them that are asked for."""
    shared = [name for name in results[0].tallies if all(name in of.tallies for of in results)]
    if not shared:
        raise EvalSetError(f"the results share no metric: {'; '.join(map(names, (of.tallies for of in results)))}")
    for name in metrics or ():
        require_choice("metrics", name, shared)
    stated = {name: info for of in reversed(results) for name, info in of._stated.items()}
    return {name: metric_info(name, stated) for name in (shared if metrics is None else metrics)}


def units_of(old: ScoredRows, other: ScoredRows, key: str | None, cluster: str | None) -> Units | None:
    """The units of the rows of the old result; by the other one, if only that one has their sessions."""
    if cluster != AUTO:
        return old._units_by(cluster)
    if old._record.sessions or not other._record.sessions or other._units is None:
        return old._units
    pairs = matched_rows(old, other, key)
    codes = np.arange(old.row_count) + other.row_count
    codes[pairs.old] = other._units.codes[pairs.new]
    return Units(codes, other._units.kinds)


def _other_reasons(old: ScoredRows, new: ScoredRows) -> Iterator[str]:
    """What makes the scores of two results differ beside the agent: metrics, settings and data."""
    for which, one, two in (("before", old, new), ("after", new, old)):
        if only := [name for name in one.tallies if name not in two.tallies]:
            yield f"Metrics only {which}: {', '.join(only)}."
    for name in dict.fromkeys([*old.options, *new.options]) if old.options and new.options else ():
        before, after = old.options.get(name), new.options.get(name)
        if before != after:
            yield f"The setting {name} differs: {before or 'the default'} before, {after or 'the default'} after."
    if not (old._record.sessions or new._record.sessions):
        yield SESSIONS_UNKNOWN
    if len({old._record.data_hash, new._record.data_hash} - {""}) > 1:
        yield "The data differs: a score can change because its row did."


def _other_questions(old: ScoredRows, new: ScoredRows, pairs: MatchedRows) -> Iterator[str]:
    """How many of the rows that were matched ask something else: their IDs may have been numbered again."""
    sides = ((old._keys, pairs.old), (new._keys, pairs.new))
    questions = [keys.questions[at] for keys, at in sides if keys is not None]
    known = np.all([of != 0 for of in questions], axis=0)
    if len(questions) == 2 and (others := int(np.count_nonzero(known & (questions[0] != questions[1])))):
        yield (
            f"{others:,} of {plural(len(pairs.old), 'row')} matched by {pairs.by} have another question in the other "
            "result: if they were numbered again, set key= (--key) to a column that identifies them."
        )


class MatchedRows(NamedTuple):
    """The positions of the rows that are compared, in the old and in the new table, and by what they were matched."""

    old: Numbers
    new: Numbers
    by: str


BY_POSITION, BY_QUESTION = "position", "question"


def matched_rows(old: ScoredRows, new: ScoredRows, key: str | None) -> MatchedRows:
    """The rows of two results that are the same, in the order of the old one: by a key, else by position if no request
    differs, else by request_id or question."""
    tables, keys = (old.metrics_table, new.metrics_table), (old._keys, new._keys)
    if key is not None:
        return _by_labels(*(_unique(table, key) for table in tables), by=key)
    problem = _difference(*tables, keys)
    if not problem:
        places = np.arange(old.row_count)
        return MatchedRows(places, places, BY_POSITION)
    ids = [_labels(table[REQUEST_ID]) for table in tables if REQUEST_ID in table]
    if len(ids) == 2 and all(of.notna().all() and not of.duplicated().any() for of in ids):
        by_id = _by_labels(*ids, by=REQUEST_ID)
        if len(by_id.old):
            return by_id
    if any(key is None or not key.questions.any() for key in keys):
        raise EvalSetError(f"{problem}: {_GIVE_KEY}")
    return _by_labels(*(_occurrences(key.questions) for key in keys if key is not None), by=BY_QUESTION)


def _labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """The labels of rows as texts: a number of JSON is a text in CSV, and a float beside an absent one."""
    values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in column.tolist()]
    return pd.Series([None if is_absent(v) or v == "" else str(v) for v in values], dtype="object")


def _by_labels(old: pd.Series[Any], new: pd.Series[Any], *, by: str) -> MatchedRows:
    """The rows with equal labels; absent ones equal none."""
    places = pd.Series(np.arange(len(new)), index=new.to_numpy())
    new_places = places[places.index.notna()].reindex(old.where(old.notna(), None).to_numpy())
    there = new_places.notna().to_numpy() & old.notna().to_numpy()
    return MatchedRows(np.flatnonzero(there), new_places.to_numpy()[there].astype(np.int64), by)


def _occurrences(questions: Numbers) -> pd.Series[Any]:
    """The question of each row with the number of earlier rows that have it; None without a question."""
    column = pd.Series(questions)
    number = column.groupby(column).cumcount()
    labels = [(q, n) if q else None for q, n in zip(column.tolist(), number.tolist(), strict=True)]
    return pd.Series(labels, dtype="object")


def _difference(old: pd.DataFrame, new: pd.DataFrame, keys: Sequence[RowKeys | None]) -> str:
    """Why rows at the same position are not the same, as far as can be seen; "" if they are."""
    if len(old) != len(new):
        return f"the results have {len(old):,} and {len(new):,} rows"
    ids = [_labels(table[REQUEST_ID]).to_numpy() for table in (old, new) if REQUEST_ID in table]
    for name, sides in (("request_id", ids), ("question", [key.questions for key in keys if key is not None])):
        if len(sides) == 2:
            known = sides[0].astype(bool) & sides[1].astype(bool)
            for row in np.flatnonzero(known & (sides[0] != sides[1]))[:1]:
                return f"row {row} has another {name} in the other result"
    return ""


_GIVE_KEY = "set key= to a column that identifies the rows, such as key='request_id'"


def _unique(table: pd.DataFrame, key: str) -> pd.Series[Any]:
    if key not in table.columns:
        raise EvalSetError(f"no column {key!r} in the result: give one that both have, such as request_id")
    labels = _labels(table[key])
    if labels.duplicated().any():
        raise EvalSetError(f"the column {key!r} does not identify rows: {labels.duplicated().sum():,} repeat another")
    return labels


def metric_change(info: MetricInfo, before: Numbers, after: Numbers, codes: Numbers, asked: bool) -> MetricComparison:
    """What became of a metric's scores, of units with these codes; it is judged if `asked` for, or a quality."""
    was, now = np.isfinite(before), np.isfinite(after)
    old, new, own = before[was & now], after[was & now], codes[was & now]
    difference, both = new - old, np.concatenate([old, new])
    ends = SHARE if is_binary(both) else scale_of_scores(both, info.ends) if len(both) else None
    test = paired_test(difference, own, ends and ends[1] - ends[0])
    is_known = bool(info.scale) or ends is SHARE or math.isnan(test.low)
    is_lost = was & ~now
    varies = (len(both) > 0 and bool(np.ptp(both) > 0)) or bool((was ^ now).any())
    return MetricComparison(
        info.name,
        rows=len(old),
        lost=int(is_lost.sum()),
        gained=int((now & ~was).sum()),
        old=ScoreStats(old).mean,
        new=ScoreStats(new).mean,
        difference=ScoreStats(difference).mean,
        higher=int((difference > 0).sum()),
        lower=int((difference < 0).sum()),
        **asdict(test),
        p_adjusted=test.p_value,
        std_error=standard_error(difference, own),
        units=len(np.unique(own)),
        direction=info.direction,
        unit=info.unit,
        counted=asked or (info.is_quality and varies),
        missing=_missing(before[is_lost], old),
        assumes="" if is_known else ASSUMED_NEAR if ends is None else ASSUMED_SHARE,
        assumption=info.assumption,
    )


def _missing(gaps: Numbers, others: Numbers) -> str:
    """How the rows that lost their score differ from those that kept it, by more than chance; "" if they do not."""
    if min(len(gaps), len(others)) < LEAST_LOST:
        return ""
    means, errors = [float(of.mean()) for of in (gaps, others)], [standard_error(of) for of in (gaps, others)]
    if abs(means[0] - means[1]) <= Z * math.hypot(*errors):
        return ""
    return (
        f"{plural(len(gaps), 'row')} that lost the score had {number(means[0])} before, the others {number(means[1])}: "
        "the missing scores may not be missing at random"
    )


LEAST_LOST = 5
"""Rows without a score in the new result that are compared with the others."""


AT_ONCE, OPENED = 5, 200
"""Rows of a table that a notebook does not fold, and those of a page that open."""

OF_EACH = ("response", "outputs", "predicted_trajectory", "error")
"""The cells of a row that are the agent's: the others are those of the dataset."""


class Difference(Struct):
    """A score that differs, with its row among those of both results, and how much better it is: 0 if there was none
    before; one that is lost is a loss."""

    info: MetricInfo
    row: int
    key: Any
    metric: str
    old: float
    new: float
    difference: float
    request_id: Any = None

    @property
    def gain(self) -> float:
        if math.isnan(self.old):
            return 0.0
        return -math.inf if math.isnan(self.new) else self.info.sign * self.difference

    @property
    def change(self) -> str:
        return " → ".join(written_alike(self.info, [self.old, self.new]))


def _in_words(rows: Sequence[Difference], better: int) -> str:
    """`2 scores lower, 1 missing, 3 higher`; worse and better where less is better in some metrics, but not in all."""
    signs = {row.info.sign for row in rows} - {0}
    down, up = ("lower", "higher") if signs <= {1} else ("higher", "lower") if signs == {-1} else ("worse", "better")
    missing, new = (sum(math.isnan(score) for score in of) for of in ([r.new for r in rows], [r.old for r in rows]))
    worse = sum(row.gain < 0 for row in rows) - missing
    other = sum(not row.gain for row in rows) - new
    parts = counted([(missing, "missing"), (new, "new"), (other, "different")])
    return ", ".join([f"{plural(worse, 'score')} {down}", *parts, f"{better:,} {up}"])


def significant_words(lines: Sequence[MetricComparison], tested: int, alpha: float) -> str:
    """What the test shows, regressions first: `: recall significantly lower (0.922 → 0.803)`."""
    if not tested:
        return ""
    changes = sorted((line for line in lines if line.p_adjusted < alpha), key=lambda line: line.gain > 0)
    if not changes:
        return ": no significant change" + (f" in {tested} metrics" if tested > 1 else "")
    first, others = changes[0], len(changes) - 1
    means = " → ".join(written_alike(first.info, [first.old, first.new]))
    how = f"significantly {'higher' if first.difference > 0 else 'lower'} ({means})"
    return f": {first.metric} {how}" + (f" and {plural(others, 'other significant change')}" if others else "")


def _about_test(lines: Sequence[MetricComparison], tested: int, units: str) -> Iterator[str]:
    """The test, the units, and what is not tested for which reason."""
    if tested:
        adjusted = f" Holm p: adjusted for {tested} metrics; colors follow it." if tested > 1 else ""
        yield (
            "Paired permutation test (of scores of 0 and 1: McNemar's exact test), two-sided, of "
            f"{units}; the interval inverts the test.{adjusted}"
        )
    elif lines:
        yield f"Cannot be tested: {units}. At least {LEAST_UNITS} independent units are needed."
    noted = [line for line in lines if line.note and (tested or line.p_value == line.p_value)]
    few = [f": {plural(line.units, 'independent unit')}" if line.p_value != line.p_value else "" for line in noted]
    notes = by_key((f"{line.note}{count}", line.metric) for line, count in zip(noted, few, strict=True))
    for note, metrics in notes.items():
        yield f"{', '.join(metrics)}: {note}."


def _warnings(line: MetricComparison) -> Iterator[str]:
    """What a reader of the change has to know: a direction that is assumed, scores that are missing."""
    assumes = f"the scale of {line.metric} is not known: the interval assumes {line.assumes}" if line.assumes else ""
    return filter(None, (line.assumption, assumes, line.missing))


def gain_mood(gain: float) -> str:
    return "error" if gain < 0 else "good" if gain > 0 else ""


def _figures(lines: Sequence[MetricComparison]) -> Table:
    """The metrics that are not judged: what they were and are."""
    rows: list[list[Words | Cell]] = [
        [name_of(line.info), *written_alike(line.info, [line.old, line.new]), signed(line.difference), f"{line.rows:,}"]
        for line in lines
    ]
    return Table(["metric", "#before", "#after", "#change", "#rows"], rows, title="Not judged", at_once=AT_ONCE)


def _means(lines: Sequence[MetricComparison], adjusted: bool, alpha: float) -> Table:
    names = ["metric", "%worse ← → better", "#before", "#after", "#change", "#95% interval", "#up", "#down", "#rows"]
    widest = max((_extent(line) for line in lines if _is_share(line)), default=0.0)
    names += ["#p", *(["#Holm p"] if adjusted else [])]
    rows = [_mean(line, adjusted, alpha, widest) for line in lines]
    return Table(names, rows, title="Metrics", at_once=AT_ONCE)


def _is_share(line: MetricComparison) -> bool:
    return all(0 <= mean <= 1 for mean in (line.old, line.new))


def _extent(line: MetricComparison) -> float:
    return max(abs(value) for value in (line.difference, line.low, line.high) if value == value)


def _effect(line: MetricComparison, widest: float, is_certain: bool) -> Effect | None:
    """A line of the forest plot. Metrics with means from 0 to 1 share the length of the line, others have their own."""
    reach = widest if _is_share(line) else _extent(line)
    if not line.info.sign or not reach:
        return None
    at = [50 + 48 * line.info.sign * value / reach for value in (line.difference, line.low, line.high)]
    interval = None if line.low != line.low else (min(at[1:]), abs(at[2] - at[1]))
    words = "worse" if line.gain < 0 else "better" if line.gain > 0 else "unchanged"
    label = f"{line.metric}: {words}, {'significant' if is_certain else 'may be chance'}"
    return Effect(at[0], interval, label, gain_mood(line.gain), is_certain)


def _mean(line: MetricComparison, adjusted: bool, alpha: float, widest: float) -> list[Words | Cell]:
    mood = gain_mood(line.gain) if line.p_adjusted < alpha else ""
    interval = MISSING if line.low != line.low else f"{signed(line.low)} to {signed(line.high)}"
    coverage = ", ".join(f"{n:,} {what}" for n, what in ((line.lost, "lost"), (line.gained, "gained")) if n)
    old, new = written_alike(line.info, [line.old, line.new])
    return [
        name_of(line.info),
        Cell(picture=_effect(line, widest, line.p_adjusted < alpha)),
        old,
        new,
        Cell(signed(line.difference), mood),
        interval,
        f"{line.higher:,}",
        f"{line.lower:,}",
        f"{line.rows:,}{f' ({coverage})' if coverage else ''}",
        p_text(line.p_value) if adjusted else Cell(p_text(line.p_value), mood),
        *([Cell(p_text(line.p_adjusted), mood)] if adjusted else []),
    ]


def p_text(p: float) -> str:
    """A p value; random patterns show no smaller one than SMALLEST_P."""
    return f"≤ {SMALLEST_P:.4f}" if p <= SMALLEST_P else number(p)


def _score(row: Difference) -> list[Words | Cell]:
    pair = [Cell(text, number=value) for text, value in zip(row.change.split(" → "), (row.old, row.new), strict=True)]
    difference = Cell(signed(row.difference), gain_mood(row.gain), row.difference)
    return [str(row.key), "" if is_absent(row.request_id) else str(row.request_id), row.metric, *pair, difference]


def _open_row(row: Difference, old: dict[str, Any], new: dict[str, Any]) -> ShownRow:
    """A score that differs, with both runs."""
    _, _, *columns = [cell if isinstance(cell, Cell) else Cell(cell) for cell in _score(row)]
    return row_of_runs(str(row.key), row.metric, {"before": old, "after": new}, columns[1:3], columns)


def row_of_runs(
    key: str, metric: str, runs: Mapping[str, dict[str, Any]], scores: Sequence[Cell], columns: Sequence[Cell]
) -> ShownRow:
    """A row in several runs: the question, what is expected, and what each run has of the agent and the judge."""
    first = next(iter(runs.values()))
    own = {f"{name}, {run}": of.get(name) for name in OF_EACH for run, of in runs.items()}
    reasons = {f"{metric}, {run}/reason": of.get(f"{metric}/reason") for run, of in runs.items()}
    shared = [name for name in (*SHOWN_BESIDE, *CONTENT) if name not in OF_EACH]
    cells = {name: first.get(name) for name in shared} | own | reasons
    scored = {f"{metric}, {run}": cell for run, cell in zip(runs, scores, strict=True)}
    answers = [f"{name}, {run}" for name in ("response", "outputs") for run in runs]
    predicted = {f"predicted_trajectory, {run}": f"Tool calls, {run}" for run in runs}
    row = open_row(key, cells, cells, scored, answers=answers, predicted=predicted, match="call")
    return replace(row, columns=[(str(cell.words), cell.mood, cell.number) for cell in columns])
