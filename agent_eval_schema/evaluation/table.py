"""The columns of a result's table, the rows that metrics are computed on, and the outcome of one metric on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
from msgspec import Struct

from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY

RUN_COLUMNS = ("response", LATENCY, FAILURE, "predicted_trajectory", "error")
"""The columns that running an agent adds; `error` is ours, the documented run loses it."""


REQUEST_ID = "request_id"
"""The first column, if any row has an id and the data has no column of that name."""


def score_column(metric: str) -> str:
    """The column that holds the scores of a metric."""
    return metric if metric in (LATENCY, FAILURE) else f"{metric}/score"


# ---------------------------------------------------------------------------------------------------------------------
# the rows
class RowTable(Struct):
    """The input of the metrics: the rows as they will be in the result, and the columns that metrics read, as plain
    values (None where absent). Rows on which the agent `failed` have no outputs."""

    frame: pd.DataFrame
    values: dict[str, list[Any]]
    failed: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        return len(self.frame)

    def why_lacking(self, row: int, column: str) -> str:
        """Why a metric that reads the column has no score on a row that does not have it."""
        return FAILED_CALL if row in self.failed and column in OUTPUTS else f"the row lacks {column}"

    def rows(self) -> Iterable[dict[str, Any]]:
        """The rows as dicts: the table's cells, absent ones None, and what metrics read under its own name."""
        columns = [str(c) for c in self.frame.columns]
        extra = {n: v for n, v in self.values.items() if n not in columns}
        cells = [[None if is_absent(v) else v for v in self.frame.iloc[:, i].tolist()] for i in range(len(columns))]
        for line in zip(*cells, *extra.values(), strict=True) if cells or extra else ((),) * self.size:
            yield dict(zip((*columns, *extra), line, strict=True))


OUTPUTS = ("response", "predicted_trajectory")
"""The columns that an agent fills."""


class Measured(Struct):
    """The result of a metric: columns by their part after the slash (`score`, `explanation`), and for each row the
    reason for its missing score, or the rationale of its score."""

    columns: dict[str, list[Any]]
    reasons: list[str | None]


FAILED_CALL = "the call failed"
"""The reason why a row on which an agent failed has no score of its outputs."""
