"""A result as JSON, for other programs: the summary, why rows have no score, and the first rows of the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_eval_schema.render.document import json_text, plain_values
from agent_eval_schema.render.result.summary import ResultSummary
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.visible import visible

SCHEMA_VERSION = 1


def result_json(result: ResultSummary, rows: Iterable[dict[Any, Any]] = ()) -> str:
    """The result as text, with these rows of its table. NaN is null."""
    return json_text(plain_values(_document(result, list(rows))))


def _document(result: ResultSummary, rows: list[dict[Any, Any]]) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "agent-eval-schema", "version": __version__},
        "source": visible(result.name) if result.name else None,
        "options": result.options,
        "headline": result.headline or None,
        "metrics": list(result.metrics),
        "summary_metrics": result.numbers,
        "scored": {line.metric: line.scored for line in result.lines},
        "unscored": [{"metric": m, "reason": why, "rows": n} for (m, why), n in result.reasons.items()],
        "issue_counts": result.issue_counts,
        "rows_listed": len(rows),
        "rows": rows,
    }
