"""A result as JSON, for other programs: the summary, why rows have no score, and the first rows of the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_eval_schema.render.document import json_text, plain_values, versioned
from agent_eval_schema.render.result.summary import ResultSummary
from agent_eval_schema.text.visible import visible


def result_json(result: ResultSummary, rows: Iterable[dict[Any, Any]] = ()) -> str:
    """The result as text, with these rows of its table. NaN is null."""
    listed = list(rows)
    document = {
        "source": visible(result.name) if result.name else None,
        "options": result.options,
        "headline": result.headline or None,
        "metrics": list(result.metrics),
        "summary_metrics": result.numbers,
        "scored": {line.metric: line.scored for line in result.lines},
        "unscored": [{"metric": m, "reason": why, "rows": n} for (m, why), n in result.reasons.items()],
        "issue_counts": result.issue_counts,
        "rows_listed": len(listed),
        "rows": listed,
    }
    return json_text(plain_values(versioned(document)))
