"""A comparison of two results as HTML: the means with the test, then the rows that differ, regressions first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.render.numbers import MISSING, number, signed
from agent_eval_schema.render.panel import Panel, PanelCell, table
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.render.result.summary import MetricComparison
from agent_eval_schema.render.result.text import written_alike

CHANCE = 0.05
"""A p value below it is colored."""

Changed = tuple[str, str, str, float, float, float]
"""The key, the ID and the metric of a score that differs, the old score, the new one and the difference."""


def comparison_panel(
    lines: Sequence[MetricComparison], changed: Iterable[Changed], only_old: int, only_new: int
) -> Panel:
    """What is drawn."""
    rows = sorted(changed, key=lambda row: (_gain(row[2], row[5]), row[2], row[0]))
    worse = sum(_gain(row[2], row[5]) < 0 for row in rows)
    better = sum(_gain(row[2], row[5]) > 0 for row in rows)
    facts = [(f"Only {which}", plural(count, "row")) for count, which in ((only_old, "before"), (only_new, "after"))]
    means = ["Metric", "#before", "#after", "#difference", "#95% interval", "#higher", "#lower", "#rows", "#p"]
    scores = ["Row", "request_id", "Metric", "#before", "#after", "#difference"]
    return Panel(
        title=f"{plural(worse, 'score')} lower or missing, {better:,} higher" if rows else "No score differs",
        mood="error" if worse else "good",
        facts=[fact for fact, count in zip(facts, (only_old, only_new), strict=True) if count],
        tables=[
            table("means", "Metrics", means, map(_mean, lines)),
            table("scores", "Scores that differ, regressions first", scores, map(_score, rows), sortable=True),
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


def _mean(line: MetricComparison) -> list[object]:
    mood = _mood(line.metric, line.difference) if line.p_value < CHANCE else ""
    interval = MISSING if line.low != line.low else f"{signed(line.low)} to {signed(line.high)}"
    counts = [f"{count:,}" for count in (line.higher, line.lower, line.rows)]
    cells = (PanelCell(signed(line.difference), mood), interval, *counts, PanelCell(number(line.p_value), mood))
    return [line.metric, *written_alike(line.metric, [line.old, line.new]), *cells]


def _score(row: Changed) -> list[object]:
    key, request_id, metric, old, new, difference = row
    texts = written_alike(metric, [old, new])
    pair = [PanelCell(text, number=value) for text, value in zip(texts, (old, new), strict=True)]
    return [key, request_id, metric, *pair, PanelCell(signed(difference), _mood(metric, difference), difference)]
