"""The rows of one batch while they are checked: the batch, its decoded columns, and the issues found so far."""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.arrow_columns import ArrowColumn
from agent_eval_schema.decoding.values import FAILED, Values
from agent_eval_schema.formats.inference_tables import payload_table
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.spelling import match_names
from agent_eval_schema.traces.derive import Derived
from agent_eval_schema.validation.plan import Plan

BIT_OF = {name: np.uint32(1 << i) for i, name in enumerate(COLUMNS)}
"""One bit a canonical column: `Rows.filled` says with them which fields of a row were taken from its trace."""


class Rows:
    """A batch of rows. `values[column]` has one entry a row; a column that the batch lacks has no entry."""

    def __init__(self, batch: pa.RecordBatch, plan: Plan) -> None:
        self.batch = batch
        self.size = batch.num_rows
        self.format = plan.format
        self.outputs = plan.outputs
        self.nests = plan.nests
        self.beside_traces = plan.beside_traces
        self.columns_of_traces = plan.columns and not plan.beside_traces
        self.log = IssueLog(self.size)
        self.values: dict[str, Values | ArrowColumn] = {}
        self.derived: list[Derived | None] | None = None
        self.trace_states: list[bool | None] = [None] * self.size
        self.unread: set[int] = set()
        self.filled = np.zeros(self.size, np.uint32)
        self.misspelt = {right: wrong for wrong, right in misspelt_columns(tuple(batch.schema.names)).items()}

    def column(self, name: str) -> Values | ArrowColumn:
        """The decoded column, all None if there is none."""
        values = self.values.get(name)
        return [None] * self.size if values is None else values

    def writable(self, name: str) -> Values:
        """The decoded column, made if there is none."""
        values = self.values.get(name)
        if not isinstance(values, list):
            values = [None] * self.size if values is None else list(values)
            self.values[name] = values
        return values


@lru_cache(maxsize=64)
def misspelt_columns(names: tuple[str, ...]) -> dict[str, str]:
    """Columns that are nearly one of ours: {as written: as meant}."""
    logged = payload_table(names)
    unknown = [n for n in names if n not in COLUMNS and (logged is None or n not in logged[0].names)]
    # 0.85 tells `expected_respones` from `trace_id` and `request_time`, which are names of their own.
    found = {n: match_names([n], COLUMNS, cutoff=0.85) for n in unknown}
    return {wrong: meant[wrong] for wrong, meant in found.items() if meant}


def merge(rows: Rows, name: str, values: Values | ArrowColumn) -> None:
    """Keep what the reader already said of a cell."""
    said = [row for row, value in enumerate(rows.values.get(name, ())) if value is FAILED]
    if said:
        values = list(values)
        for row in said:
            values[row] = FAILED
    rows.values[name] = values
