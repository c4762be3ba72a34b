"""A result as HTML, in the shells of page.py. Computes nothing."""

from __future__ import annotations

import math
import os
from typing import Any

from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.render.figures import CELLS
from agent_eval_schema.render.numbers import MISSING, aligned, number, seconds
from agent_eval_schema.render.page import heat, inline, page, percent, plot, runs
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.render.result.calls import CALL_LEGEND, LONGEST_TITLE, call_lines, cut
from agent_eval_schema.render.result.summary import (
    Group,
    GroupMean,
    ResultSummary,
    Scored,
    ScorePlot,
    ScoreSteps,
    Worst,
)
from agent_eval_schema.render.result.text import next_commands, result_verdict, written, written_alike
from agent_eval_schema.rules import RULES


def result_page(result: ResultSummary) -> str:
    """The result as a standalone HTML page."""
    return page(_title(result), "result.html", "result.css", script=bool(result.worst), **_drawn(result))


def result_inline(result: ResultSummary) -> str:
    """The result for the output cell of a notebook."""
    return inline("result.html", "result.css", **_drawn(result))


def _title(result: ResultSummary) -> str:
    where = os.path.basename(result.name) if result.name else "evaluation"
    return f"{where}: {plural(result.row_count, 'row')}, {plural(len(result.metrics), 'metric')}"


def _drawn(result: ResultSummary) -> dict[str, Any]:
    means, stds = written(result.lines, lambda line: line.mean), written(result.lines, lambda line: line.std)
    reasons = [_reason(result, *group) for group in result.reason_groups]
    parts = [("metrics", "Metrics")]
    steps = [line for line in result.steps if any(line.lost) or any(line.unscored)] if result.row_count > 1 else []
    parts += [("reasons", "Unscored rows")] if reasons or result.issue_counts else []
    parts += [("rows", "Rows")] if result.worst else []
    parts += [("steps", "Scores by row")] if steps else []
    parts += [("groups", "Scores by group")] if result.groups else []
    parts += [("numbers", "Distributions")] if result.plots else []
    return {
        "name": os.path.basename(result.name) if result.name else "",
        "verdict": f"{'⚠ ' if result.headline else ''}{result_verdict(result)}",
        "following": next_commands(result),
        "mood": "warning" if result.headline else None,
        "latency": ", ".join(f"{name} {seconds(value)}" for name, value in result.latency.items()),
        "parts": parts,
        "lines": [_line(result, *line) for line in zip(result.lines, means, stds, strict=True)],
        "plots": list(map(_plot, result.plots)),
        "columns": ["row", *(name for name, _ in result.worst[0].scores)] if result.worst else [],
        "rows": _rows(result.worst),
        "total": result.row_count,
        "more": ": to_html(rows=…) draws more",
        "step": -(-result.row_count // CELLS),
        "steps": [_steps(result, line) for line in steps],
        "groups": [_grouping(column, groups) for column, groups in result.groups.items()],
        "legend": CALL_LEGEND,
        "reasons": reasons,
        "errors": result.errors,
        "issues": [(code, RULES[code].name, str(RULES[code].severity), n) for code, n in result.issue_counts.items()],
        "findings": result.findings,
        "options": ", ".join(f"{name}={value}" for name, value in result.options.items()),
    }


def _reason(result: ResultSummary, reason: str, rows: int, metrics: list[str]) -> tuple[str, int, str]:
    return reason, rows, "every metric" if len(metrics) == len(result.metrics) else ", ".join(metrics)


def _line(result: ResultSummary, line: Scored, mean: str, std: str) -> dict[str, Any]:
    low, high = result.intervals.get(line.metric, (math.nan, math.nan))
    told = seconds if line.metric == LATENCY else number
    return {
        "of": line,
        "mean": mean,
        "std": std,
        "bounds": MISSING if math.isnan(low) else f"{told(low)} to {told(high)}",
        **_bar(line.metric, line.mean, low, high),
        "bad": line.metric == FAILURE,
    }


def _bar(metric: str, mean: float, low: float, high: float) -> dict[str, Any]:
    """A mean from 0 to 1 as a bar: its length, where its interval begins and how long that is (percent)."""
    known = 0 <= mean <= 1 and metric != LATENCY
    between = "" if math.isnan(low) else f", 95% interval {number(low)} to {number(high)}"
    return {
        "share": percent(mean, 1) if known else None,
        "interval": (round(100 * low, 1), round(100 * (high - low), 1)) if known and between else None,
        "label": f"{metric}: {number(mean)}{between}",
    }


def _steps(result: ResultSummary, line: ScoreSteps) -> dict[str, Any]:
    told = "mean " + number(next(one.mean for one in result.lines if one.metric == line.metric))
    return {
        "metric": line.metric,
        "width": len(line.lost),
        "lost": runs(_shade(share) for share in line.lost),
        "unscored": runs(0.0 if not share else round(0.2 + 0.5 * share, 2) for share in line.unscored),
        "told": told,
        "label": f"{line.metric} over {plural(result.row_count, 'row')}: {told}",
    }


def _shade(share: float) -> float:
    return 0.0 if not share else round(0.2 + 0.8 * share, 2)


def _grouping(column: str, groups: list[Group]) -> dict[str, Any]:
    metrics = list(zip(*(map(_group_mean, g.means) for g in groups), strict=True))
    for means in metrics:
        for mean, text in zip(means, aligned(mean["number"] for mean in means), strict=True):
            mean["mean"] = text
    lines = zip(groups, zip(*metrics, strict=True), strict=True)
    return {
        "column": column,
        "metrics": [mean.metric for mean in groups[0].means],
        "lines": [{"value": group.value, "rows": group.rows, "means": means} for group, means in lines],
    }


def _group_mean(found: GroupMean) -> dict[str, Any]:
    return {"number": found.mean, **_bar(found.metric, found.mean, found.low, found.high)}


def _plot(scores: ScorePlot) -> dict[str, Any]:
    unit, show = ("", seconds) if scores.metric == LATENCY else ("score", None)
    return plot(scores.metric, unit, scores.distribution, scores.bars, show, scores.quantiles.__getitem__)


def _rows(rows: list[Worst]) -> list[dict[str, Any]]:
    columns = [_scores(*column) for column in zip(*(row.scores for row in rows), strict=True)]
    cells = list(zip(*columns, strict=True)) if columns else [()] * len(rows)
    return [_row(row, list(texts), first=i == 0) for i, (row, texts) in enumerate(zip(rows, cells, strict=True))]


def _row(row: Worst, scores: list[dict[str, Any]], *, first: bool) -> dict[str, Any]:
    cells = dict(row.cells)
    told = cells.get("error", "") if row.failed else row.asked
    return {
        "row": f"{row.row:,}",
        "open": first,
        "failed": row.failed,
        "id": cells.get("request_id", ""),
        "told": cut(told, LONGEST_TITLE) or f"Row {row.row:,}",
        "cells": scores,
        "values": [(name, cut(text)) for name, text in row.cells],
        "lines": call_lines(row.lines),
    }


def _scores(*column: tuple[str, float | None]) -> list[dict[str, Any]]:
    """The scores of a metric, aligned; the darker the more they lack to 1."""
    metric = column[0][0]
    scores = [math.nan if score is None else score for _, score in column]
    lost = [1 - score if metric != LATENCY and 0 <= score <= 1 else 0.0 for score in scores]
    moods = ["muted" if math.isnan(score) else heat(share) for score, share in zip(scores, lost, strict=True)]
    cells = zip(written_alike(metric, scores), moods, scores, strict=True)
    return [{"text": t, "mood": m, **({} if math.isnan(score) else {"number": score})} for t, m, score in cells]
