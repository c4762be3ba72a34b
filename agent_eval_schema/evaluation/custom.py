"""A user-defined metric, called row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from agent_eval_schema.evaluation.runner import error_line
from agent_eval_schema.evaluation.table import Measured, Table
from agent_eval_schema.io.records import is_absent


class CustomMetric(Struct, frozen=True):
    """A metric of one's own.

    `metric_function` gets the row as a dict (the table's columns, and `prompt`, `response`, `reference`,
    `predicted_trajectory`, `reference_trajectory`; None where absent) and gives `{name: score, ...}`: the score under
    the metric's name, and anything else, such as an explanation, as columns of its own. A bare number is the score.
    """

    name: str
    metric_function: Callable[[dict[str, Any]], Mapping[str, Any] | float]


def measure_custom(metric: CustomMetric, table: Table) -> Measured:
    """The scores of a metric of one's own; a row on which it raises has none."""
    found = [_custom_row(metric, row) for row in table.rows()]
    parts = dict.fromkeys(["score", *(part for columns, _ in found for part in columns)])
    columns = {
        part: [columns.get(part, math.nan if part == "score" else None) for columns, _ in found] for part in parts
    }
    return Measured(columns, Counter(why for _, why in found if why))


def _custom_row(metric: CustomMetric, row: dict[str, Any]) -> tuple[dict[str, Any], str]:
    try:
        given = metric.metric_function(row)
        given = given if isinstance(given, Mapping) else {metric.name: given}
        columns = {"score" if name == metric.name else str(name): value for name, value in given.items()}
        absent = is_absent(columns.get("score"))
        columns["score"] = math.nan if absent else float(columns["score"])
    except Exception as error:
        return {"score": math.nan}, f"the metric broke down: {error_line(error)}"
    return columns, "the metric gave no score" if absent else ""
