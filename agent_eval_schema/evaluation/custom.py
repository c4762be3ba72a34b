"""A user-defined metric, called row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from agent_eval_schema.evaluation.runner import error_line
from agent_eval_schema.evaluation.table import Measured, RowTable
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.text.choices import require_kind


class CustomMetric(Struct, frozen=True):
    """A user-defined metric.

    Parameters
    ----------
    name : str
        The name of the metric.
    metric_function : callable
        A function that is called with each row as a dict: the columns of the data, and `prompt`, `response`,
        `reference`, `predicted_trajectory` and `reference_trajectory` (None where absent). It returns the score, or a
        dict with the score under the name of the metric and other values, which become columns `<name>/<key>`. A row on
        which it raises an exception has no score.

    See Also
    --------
    EvalTask : Compute the metric on a dataset.

    Examples
    --------
    >>> from agent_eval_schema import CustomMetric, EvalTask
    >>> def short(row):
    ...     return {"short": len(row["response"]) < 20, "length": len(row["response"])}
    >>> data = [{"response": "A table format."}, {"response": "Delta Lake is a table format."}]
    >>> EvalTask(data, [CustomMetric("short", short)]).evaluate().metrics_table[["short/score", "short/length"]]
       short/score short/length
    0          1.0           15
    1          0.0           29
    """

    name: str
    metric_function: Callable[[dict[str, Any]], Mapping[str, Any] | float]

    def __post_init__(self) -> None:
        require_kind("name", self.name, str, "a string")
        require_kind("metric_function", self.metric_function, Callable, "a function of a row")  # type: ignore[arg-type]


def measure_custom(metric: CustomMetric, table: RowTable) -> Measured:
    """The scores of a user-defined metric; a row on which it raises an exception has none."""
    found = [_custom_row(metric, row) for row in table.rows()]
    parts = dict.fromkeys(["score", *(part for columns, _ in found for part in columns)])
    columns = {
        part: [columns.get(part, math.nan if part == "score" else None) for columns, _ in found] for part in parts
    }
    return Measured(columns, [reason for _, reason in found])


def _custom_row(metric: CustomMetric, row: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    try:
        result = metric.metric_function(row)
        result = result if isinstance(result, Mapping) else {metric.name: result}
        columns = {"score" if name == metric.name else str(name): value for name, value in result.items()}
        absent = is_absent(columns.get("score"))
        columns["score"] = math.nan if absent else float(columns["score"])
    except Exception as error:
        return {"score": math.nan}, f"the metric raised an exception: {error_line(error)}"
    return columns, "the metric gave no score" if absent else None
