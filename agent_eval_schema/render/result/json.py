"""A result as JSON, for other programs: the summary, why rows have no score, and the first rows of the table."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from agent_eval_schema.io.records import is_absent
from agent_eval_schema.render.document import json_text
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.visible import visible

if TYPE_CHECKING:
    from agent_eval_schema.evaluation.result import EvalResult


SCHEMA_VERSION = 1

LISTED = 10_000
"""Rows that are listed; `EvalResult.to_parquet` writes them all."""


def result_json(result: EvalResult, *, rows: int = LISTED) -> str:
    """The result as text; `rows` says how many rows are listed at most. NaN is null."""
    return json_text(_plain(_document(result, rows)))


def _document(result: EvalResult, most: int) -> dict[str, Any]:
    listed = list(islice(_rows(result), most)) if most else []
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "agent-eval-schema", "version": __version__},
        "source": visible(result.name) if result.name else None,
        "options": result.options,
        "metrics": list(result.metrics),
        "summary_metrics": result.summary_metrics,
        "scored": {line.metric: line.scored for line in result.lines},
        "unscored": result.unscored.to_dict("records"),
        "issue_counts": result.issue_counts,
        "rows_listed": len(listed),
        "rows": listed,
    }


def _rows(result: EvalResult) -> Any:
    for part in result.iter_parts():
        yield from part.to_dict("records")


def _plain(value: Any) -> Any:
    """What JSON can hold: absent cells are null, what is no data is its text."""
    if is_absent(value):
        return None
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)
