"""Two results of the same rows: what became better, what worse, and whether that can be chance (differences.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from msgspec.structs import asdict, replace

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.evaluation.result_blocks import MetricComparison, written_alike
from agent_eval_schema.evaluation.row_keys import row_keys
from agent_eval_schema.evaluation.table import REQUEST_ID, ScoreStats, score_column
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.differences import LEAST_UNITS, SMALLEST_P, holm, paired_test
from agent_eval_schema.metrics.independence import Units
from agent_eval_schema.metrics.intervals import is_binary, standard_error
from agent_eval_schema.metrics.scales import direction_of
from agent_eval_schema.render.blocks import Block, Cell, Line, Only, Part, Section, Table, Terms, View, Words
from agent_eval_schema.render.document import json_text, plain_values, versioned
from agent_eval_schema.render.phrases import MISSING, NextCommand, counted, number, plural, signed
from agent_eval_schema.render.printable import Savable
from agent_eval_schema.text import jsontext

Numbers = np.ndarray[Any, Any]

CHANCE = 0.05
"""A difference with a smaller adjusted p value is significant, and colored."""


class ScoreComparison(Savable):  # numpydoc ignore=PR01
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

    def __init__(
        self,
        lines: list[MetricComparison],
        rows: pd.DataFrame,
        only_old: list[Any],
        only_new: list[Any],
        units: str,
        matched_by: str,
        remarks: Sequence[str] = (),
        results: Sequence[str | None] = (),
    ) -> None:
        self._results = list(results)
        self.lines, self.rows, self.only_old, self.only_new = lines, rows, only_old, only_new
        self._units, self.matched_by, self.remarks = units, matched_by, list(remarks)
        self._command = 'comparison.save("comparison.html")'

    def _inputs(self) -> object:
        return self._results

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
            metrics), `std_error` (float64; of the mean difference), `units` (int64; independent units) and `note` (str;
            the reason why there is no p value or no interval, which are NaN).

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> old = EvalTask([{"response": "3", "reference": "4"}], ["exact_match"]).evaluate()
        >>> new = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> old.compare(new).summary[["metric", "rows", "old", "new", "difference"]]
                metric  rows  old  new  difference
        0  exact_match     1  0.0  1.0         1.0
        """
        names = MetricComparison.__struct_fields__
        return pd.DataFrame([[getattr(line, n) for n in names] for line in self.lines], columns=names)

    def regressions(
        self, *, significant: bool = True, min_effect: float = 0.0, alpha: float = CHANCE
    ) -> dict[str, float]:
        """Return the metrics that became worse.

        Parameters
        ----------
        significant : bool, default True
            If True, only those whose p value, adjusted for the number of metrics, is below `alpha`.
        min_effect : float, default 0
            The smallest difference of the means, in the unit of the metric, that counts.
        alpha : float, default 0.05
            The significance level.

        Returns
        -------
        dict of str to float
            The differences of the means by metric; of latency, failures and others of which less is
            better, a higher one is worse.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> right, wrong = {"response": "4", "reference": "4"}, {"response": "3", "reference": "4"}
        >>> old = EvalTask([right] * 3, ["exact_match"]).evaluate()
        >>> comparison = old.compare(EvalTask([wrong] * 3, ["exact_match"]).evaluate())
        >>> comparison.regressions(), comparison.regressions(significant=False)
        ({}, {'exact_match': -1.0})
        """
        return {
            line.metric: line.difference
            for line in self.lines
            if _gain(line.metric, line.difference) < 0
            and line.rows
            and abs(line.difference) >= min_effect
            and (line.p_adjusted < alpha or not significant)
        }

    def _view(self) -> View:
        rows = self.rows
        names, blank = ("key", "request_id", "metric", "old", "new", "difference"), pd.Series("", rows.index)
        cells = zip(*(rows.get(name, blank).tolist() for name in names), strict=True)
        changed = [(str(key), "" if id is None else str(id), *scores) for key, id, *scores in cells]
        return comparison_view(
            *(self.lines, changed, len(self.only_old), len(self.only_new), self._units, self.matched_by, self.remarks),
            command=self._command,
        )

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
        from agent_eval_schema.render.block_markdown import view_markdown

        return view_markdown(self._view())

    def _json(self) -> str:
        document = {
            "lines": [asdict(line) for line in self.lines],
            "matched_by": self.matched_by,
            "remarks": self.remarks,
            "only_old": self.only_old,
            "only_new": self.only_new,
            "rows": self.rows.to_dict("records"),
        }
        return json_text(plain_values(versioned(document)))

    def _forms(self) -> dict[str, Callable[[], str]]:
        return {**super()._forms(), ".md": self.to_markdown}

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.lines)} metrics, {len(self.rows):,} scores differ>"


def compare(
    old: pd.DataFrame,
    new: pd.DataFrame,
    metrics: Iterable[str],
    key: str | None,
    units: Units | None,
    remarks: Sequence[str] = (),
    results: Sequence[str | None] = (),
) -> ScoreComparison:
    """Compare two tables by these metrics; `EvalResult.compare` documents `key`, `units` are those of the old rows."""
    pairs = matched_rows(old, new, key)
    at_old, at_new = pairs.old, pairs.new
    if not len(at_old):
        raise EvalSetError(f"the two results share no row, by {pairs.by}")
    labels = old[key] if key else pd.Series(np.arange(len(old)))
    keys = pd.Index(labels.iloc[at_old])
    ids = old["request_id"].to_numpy()[at_old] if "request_id" in old.columns else None
    codes = np.arange(len(at_old)) if units is None else units.codes[at_old]
    lines, changed = [], []
    for metric in metrics:
        before = old[score_column(metric)].to_numpy(np.float64, na_value=np.nan)[at_old]
        after = new[score_column(metric)].to_numpy(np.float64, na_value=np.nan)[at_new]
        lines.append(_line(metric, before, after, codes))
        changed.append(_changes(metric, keys, ids, before, after))
    filled = [part for part in changed if len(part)] or changed[:1]  # an empty one would turn whole keys into floats
    rows = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()
    only = [(labels, at_old), (new[key] if key else pd.Series(np.arange(len(new))), at_new)]
    only_old, only_new = (of.drop(of.index[at]).tolist() for of, at in only)
    adjusted = holm([line.p_value for line in lines])
    lines = [replace(line, p_adjusted=p) for line, p in zip(lines, adjusted, strict=True)]
    words = (units or Units(codes)).words(len(np.unique(codes)))
    return ScoreComparison(lines, rows, only_old, only_new, words, pairs.by, remarks, results)


IDENTIFYING = ("request_id", "prompt", "request", "inputs")
"""Columns that identify a row or its prompt: where they differ, a position does not identify a row."""


class MatchedRows(NamedTuple):
    """The positions of the rows that are compared, in the old and in the new table, and by what they were matched."""

    old: Numbers
    new: Numbers
    by: str


BY_POSITION, BY_QUESTION = "position", "question"


def matched_rows(old: pd.DataFrame, new: pd.DataFrame, key: str | None) -> MatchedRows:
    """The rows of two tables that are the same, in the order of the old one: by a key, else by position if no request
    differs, else by request_id or question."""
    if key is not None:
        return _by_labels([_unique(table, key) for table in (old, new)], key)
    problem = _difference(old, new)
    if not problem:
        places = np.arange(len(old))
        return MatchedRows(places, places, BY_POSITION)
    tables = (old, new)
    if all(REQUEST_ID in t and t[REQUEST_ID].notna().all() and not t[REQUEST_ID].duplicated().any() for t in tables):
        found = _by_labels([table[REQUEST_ID] for table in tables], REQUEST_ID)
        if len(found.old):
            return found
    keys = [row_keys(table) for table in tables]
    if any(key is None or not key.questions.any() for key in keys):
        raise EvalSetError(f"{problem}: {_GIVE_KEY}")
    return _by_labels([_occurrences(key.questions) for key in keys if key is not None], BY_QUESTION)


def _by_labels(labels: Sequence[pd.Series[Any]], by: str) -> MatchedRows:
    """The rows with equal labels; absent ones equal none."""
    old, new = labels
    places = pd.Series(np.arange(len(new)), index=new.to_numpy())
    found = places[places.index.notna()].reindex(old.where(old.notna(), None).to_numpy())
    there = found.notna().to_numpy() & old.notna().to_numpy()
    return MatchedRows(np.flatnonzero(there), found.to_numpy()[there].astype(np.int64), by)


def _occurrences(questions: Numbers) -> pd.Series[Any]:
    """The question of each row with the number of earlier rows that have it; None without a question."""
    column = pd.Series(questions)
    number = column.groupby(column).cumcount()
    labels = [(q, n) if q else None for q, n in zip(column.tolist(), number.tolist(), strict=True)]
    return pd.Series(labels, dtype="object")


def _difference(old: pd.DataFrame, new: pd.DataFrame) -> str:
    """Why rows at the same position are not the same, as far as can be seen; "" if they are."""
    if len(old) != len(new):
        return f"the results have {len(old):,} and {len(new):,} rows"
    shared = [name for name in IDENTIFYING if name in old.columns and name in new.columns]
    for name in shared:
        pairs = zip(old[name].tolist(), new[name].tolist(), strict=True)
        row = next((i for i, (a, b) in enumerate(pairs) if not _same(a, b)), None)
        if row is not None:
            return f"row {row} has another {name} in the other result"
    if shared in ([], [REQUEST_ID]):  # a `prompt` is the `request` of the other
        questions = [key.questions for key in map(row_keys, (old, new)) if key is not None]
        if len(questions) == 2 and not np.array_equal(questions[0], questions[1]):
            return f"row {np.flatnonzero(questions[0] != questions[1])[0]} has another question in the other result"
    return ""


def _same(a: Any, b: Any) -> bool:
    """Whether two cells are equal; a file may have JSON text in the place of an object."""
    if is_absent(a) or is_absent(b):
        return is_absent(a) and is_absent(b)
    return bool(jsontext.structured(a) == jsontext.structured(b))


_GIVE_KEY = "set key= to a column that identifies the rows, such as key='request_id'"


def _unique(table: pd.DataFrame, key: str) -> pd.Series[Any]:
    if key not in table.columns:
        raise EvalSetError(f"no column {key!r} in the result: give one that both have, such as request_id")
    if table[key].duplicated().any():
        raise EvalSetError(
            f"the column {key!r} does not identify rows: {table[key].duplicated().sum():,} repeat another"
        )
    return table[key]


def _line(metric: str, before: Numbers, after: Numbers, codes: Numbers) -> MetricComparison:
    was, now = np.isfinite(before), np.isfinite(after)
    old, new, own = before[was & now], after[was & now], codes[was & now]
    difference = new - old
    found = paired_test(difference, own, is_binary(old) and is_binary(new))
    return MetricComparison(
        metric,
        rows=len(old),
        lost=int((was & ~now).sum()),
        gained=int((now & ~was).sum()),
        old=ScoreStats(old).mean,
        new=ScoreStats(new).mean,
        difference=ScoreStats(difference).mean,
        low=found.low,
        high=found.high,
        higher=int((difference > 0).sum()),
        lower=int((difference < 0).sum()),
        p_value=found.p_value,
        p_adjusted=found.p_value,
        std_error=standard_error(difference, own),
        units=len(np.unique(own)),
        note=found.note,
    )


def _changes(metric: str, keys: pd.Index, ids: Numbers | None, before: Numbers, after: Numbers) -> pd.DataFrame:
    differs = np.flatnonzero((before != after) & ~(np.isnan(before) & np.isnan(after)))
    return pd.DataFrame(
        {
            "row": differs,
            "key": keys[differs].tolist(),
            **({} if ids is None else {"request_id": ids[differs]}),
            "metric": metric,
            "old": before[differs],
            "new": after[differs],
            "difference": after[differs] - before[differs],
        }
    )


AT_ONCE = 5
"""Rows of a table that a notebook does not fold."""

Changed = tuple[str, str, str, float, float, float]
"""The key, the ID and the metric of a score that differs, the old score, the new one and the difference."""


def comparison_view(
    lines: Sequence[MetricComparison],
    changed: Iterable[Changed],
    only_old: int,
    only_new: int,
    units: str,
    matched_by: str = BY_POSITION,
    remarks: Sequence[str] = (),
    *,
    command: str = "",
) -> View:
    """A line per metric: before, after, and whether the difference can be chance; the number of rows in only one of
    the two results; then the scores that differ. `units` names the independent units, and
    `command` writes the page."""
    rows = sorted(changed, key=lambda row: (_gain_of(row), row[2], row[0]))
    worse = sum(_gain_of(row) < 0 for row in rows)
    better = sum(_gain_of(row) > 0 for row in rows)
    only = [(which, plural(count, "row")) for which, count in (("before", only_old), ("after", only_new)) if count]
    tested = sum(line.p_value == line.p_value for line in lines)
    names = ["metric", "#before", "#after", "#change", "#95% interval", "#up", "#down", "#rows", "#p"]
    means = Table(
        [*names, *(["#Holm p"] if tested > 1 else [])],
        [_mean(line, tested > 1) for line in lines],
        title="Metrics",
        at_once=AT_ONCE,
    )
    names = ["Row", "request_id", "Metric", "#before", "#after", "#difference"]
    title = "Scores that differ, regressions first"
    scores = Table(names, list(map(_score, rows)), title=title, at_once=AT_ONCE, sortable=True)
    regressions = [line for line in lines if is_significant(line) and _gain(line.metric, line.difference) < 0]
    verdict = f"{_in_words(rows, better)}{_significant(lines, tested)}" if rows else "No score differs"
    about = [Line(words, "muted") for words in _about_test(lines, tested, units)]
    if matched_by in (REQUEST_ID, BY_QUESTION):
        about.append(Line(f"Rows are matched by {matched_by}.", "muted"))
    about += [Line(remark, "warning") for remark in remarks]
    on_page: list[Block] = [
        *([Terms([(f"Only {which}", count) for which, count in only])] if only else []),
        *([Section("means", "Metrics", [means, *about])] if lines else []),
        *([Section("scores", title, [scores])] if rows else []),
    ]
    return View(
        title=verdict,
        verdict=verdict,
        mood="error" if regressions else "warning" if worse > better else "good",
        following=[NextCommand(command, "lists the scores that differ, regressions first")] if rows and command else [],
        first=(Part(f"row {rows[0][1] or rows[0][0]}", "code"), f" {rows[0][2]} {_from_to(rows[0])}") if worse else "",
        blocks=[
            Only("text", [means, *about, *(Line(f"{count} only {which}") for which, count in only)]),
            Only("html", on_page),
        ],
    )


def _in_words(rows: Sequence[Changed], better: int) -> str:
    """`2 scores lower, 1 missing, 3 higher`; worse and better where less is better in some metrics, but not in all."""
    less_is_better = {direction_of(row[2]) < 0 for row in rows}
    down, up = ("worse", "better") if len(less_is_better) > 1 else ("higher", "lower")
    if less_is_better == {False}:
        down, up = up, down
    lost = sum(row[3] == row[3] and row[4] != row[4] for row in rows)
    worse = sum(_gain_of(row) < 0 for row in rows) - lost
    others = [(lost, "missing"), (sum(row[3] != row[3] for row in rows), "new")]
    return ", ".join([f"{plural(worse, 'score')} {down}", *counted(others), f"{better:,} {up}"])


def _significant(lines: Sequence[MetricComparison], tested: int) -> str:
    """What the test shows, regressions first: `: recall significantly lower (0.922 → 0.803)`."""
    if not tested:
        return ""
    found = sorted(filter(is_significant, lines), key=lambda line: _gain(line.metric, line.difference) > 0)
    if not found:
        return ": no significant change" + (f" in {tested} metrics" if tested > 1 else "")
    first, others = found[0], len(found) - 1
    means = " → ".join(written_alike(first.metric, [first.old, first.new]))
    how = f"significantly {'higher' if first.difference > 0 else 'lower'} ({means})"
    return f": {first.metric} {how}" + (f" and {plural(others, 'other significant change')}" if others else "")


def _from_to(row: Changed) -> str:
    return " → ".join(written_alike(row[2], [row[3], row[4]]))


def is_significant(line: MetricComparison) -> bool:
    """Whether a difference is no chance, by the p value that is adjusted for the number of metrics."""
    return line.p_adjusted < CHANCE


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
    notes: dict[str, list[str]] = {}
    for line in lines:
        if line.note and (tested or line.p_value == line.p_value):
            few = line.p_value != line.p_value
            count = plural(line.units, "independent unit")
            notes.setdefault(f"{line.note}: {count}" if few else line.note, []).append(line.metric)
    for note, metrics in notes.items():
        yield f"{', '.join(metrics)}: {note}."


def _gain_of(row: Changed) -> float:
    """How much better a score is; one that there was not before is neither better nor worse."""
    return 0.0 if row[3] != row[3] else _gain(row[2], row[5])


def _gain(metric: str, difference: float) -> float:
    """How much better the new score is, also where less is better; a score that is lost is a loss."""
    if difference != difference:
        return -1.0
    return -difference if direction_of(metric) < 0 else difference


def _mood(metric: str, difference: float) -> str:
    gain = _gain(metric, difference)
    return "error" if gain < 0 else "good" if gain > 0 else ""


def _mean(line: MetricComparison, adjusted: bool) -> list[Words | Cell]:
    mood = _mood(line.metric, line.difference) if is_significant(line) else ""
    interval = MISSING if line.low != line.low else f"{signed(line.low)} to {signed(line.high)}"
    lost = ", ".join(f"{n:,} {what}" for n, what in ((line.lost, "lost"), (line.gained, "gained")) if n)
    old, new = written_alike(line.metric, [line.old, line.new])
    return [
        Part(line.metric, "name"),
        old,
        new,
        Cell(signed(line.difference), mood),
        interval,
        f"{line.higher:,}",
        f"{line.lower:,}",
        f"{line.rows:,}{f' ({lost})' if lost else ''}",
        _p_text(line.p_value) if adjusted else Cell(_p_text(line.p_value), mood),
        *([Cell(_p_text(line.p_adjusted), mood)] if adjusted else []),
    ]


def _p_text(p: float) -> str:
    """A p value; random patterns show no smaller one than SMALLEST_P."""
    return f"≤ {SMALLEST_P:.4f}" if p <= SMALLEST_P else number(p)


def _score(row: Changed) -> list[Words | Cell]:
    key, request_id, metric, old, new, difference = row
    pair = [Cell(text, number=value) for text, value in zip(written_alike(metric, [old, new]), (old, new), strict=True)]
    return [key, request_id, metric, *pair, Cell(signed(difference), _mood(metric, difference), difference)]
