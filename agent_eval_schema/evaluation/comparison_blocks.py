"""A comparison of two results as blocks: the means with the test, then the rows that differ, regressions first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_eval_schema.evaluation.result_blocks import written_alike
from agent_eval_schema.evaluation.result_summary import MetricComparison
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.render.blocks import Block, Cell, Document, Line, Only, Part, Section, Table, Terms, Words
from agent_eval_schema.render.numbers import MISSING, number, signed
from agent_eval_schema.render.phrases import plural

CHANCE = 0.05
"""A p value below it is colored."""

AT_ONCE = 5
"""Rows of a table that a notebook does not fold."""

Changed = tuple[str, str, str, float, float, float]
"""The key, the ID and the metric of a score that differs, the old score, the new one and the difference."""


def comparison_document(
    lines: Sequence[MetricComparison], changed: Iterable[Changed], only_old: int, only_new: int
) -> Document:
    """A line per metric: before, after, and whether the difference can be chance; the number of rows in only one of
    the two results; then the scores that differ."""
    rows = sorted(changed, key=lambda row: (_gain(row[2], row[5]), row[2], row[0]))
    worse = sum(_gain(row[2], row[5]) < 0 for row in rows)
    better = sum(_gain(row[2], row[5]) > 0 for row in rows)
    only = [(which, plural(count, "row")) for which, count in (("before", only_old), ("after", only_new)) if count]
    names = ["metric", "#before", "#after", "#difference", "%#95% interval", "#higher", "#lower", "#rows", "#p"]
    means = Table(names, list(map(_mean, lines)), title="Metrics", at_once=AT_ONCE)
    names = ["Row", "request_id", "Metric", "#before", "#after", "#difference"]
    title = "Scores that differ, regressions first"
    scores = Table(names, list(map(_score, rows)), title=title, at_once=AT_ONCE, sortable=True)
    verdict = f"{plural(worse, 'score')} lower or missing, {better:,} higher" if rows else "No score differs"
    on_page: list[Block] = [
        *([Terms([(f"Only {which}", count) for which, count in only])] if only else []),
        *([Section("means", "Metrics", [means])] if lines else []),
        *([Section("scores", title, [scores])] if rows else []),
    ]
    return Document(
        title=verdict,
        verdict=verdict,
        mood="error" if worse else "good",
        blocks=[
            Only("text", [means, *(Line(f"{count} only {which}") for which, count in only)]),
            Only("html", on_page),
        ],
    )


def _gain(metric: str, difference: float) -> float:
    """How much better the new score is: of latency and failures less is better; a score that is lost is a loss."""
    if difference != difference:
        return -1.0
    return -difference if metric in (LATENCY, FAILURE) else difference


def _mood(metric: str, difference: float) -> str:
    gain = _gain(metric, difference)
    return "error" if gain < 0 else "good" if gain > 0 else ""


def _mean(line: MetricComparison) -> list[Words | Cell]:
    mood = _mood(line.metric, line.difference) if line.p_value < CHANCE else ""
    interval = MISSING if line.low != line.low else f"{signed(line.low)} to {signed(line.high)}"
    counts = [f"{count:,}" for count in (line.higher, line.lower, line.rows)]
    old, new = written_alike(line.metric, [line.old, line.new])
    name, p_value = Part(line.metric, "name"), Cell(number(line.p_value), mood)
    return [name, old, new, Cell(signed(line.difference), mood), interval, *counts, p_value]


def _score(row: Changed) -> list[Words | Cell]:
    key, request_id, metric, old, new, difference = row
    pair = [Cell(text, number=value) for text, value in zip(written_alike(metric, [old, new]), (old, new), strict=True)]
    return [key, request_id, metric, *pair, Cell(signed(difference), _mood(metric, difference), difference)]
