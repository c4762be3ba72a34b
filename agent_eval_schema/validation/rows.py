"""The rows of one batch while they are checked: the batch, its decoded columns, and the issues found so far."""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.notes import PLAIN, IssueLog, hidden_names, plain_requests
from agent_eval_schema.decoding.values import FAILED, Columns, ListColumn
from agent_eval_schema.formats.inference_tables import payload_table
from agent_eval_schema.formats.registry import NORMALIZED, find_format
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.spelling import match_names
from agent_eval_schema.traces.derive import Derived
from agent_eval_schema.traces.feedback import Feedback
from agent_eval_schema.validation.plan import Plan

BIT_OF = {name: np.uint32(1 << i) for i, name in enumerate(COLUMNS)}
"""One bit per canonical column: with them, `Rows.filled` records which fields of a row were taken from its trace."""


class Rows:
    """The rows of a batch: their decoded columns (`values`) and the issues found so far.

    `uncounted` are the rows of a column whose cells no metric of their format reads. `names` are the columns of the
    batch, including the hidden ones.
    """

    def __init__(self, batch: pa.RecordBatch, plan: Plan) -> None:
        self.batch = batch
        self.size = batch.num_rows
        self.plan = plan
        self.codes = plan.codes | plan.unselected
        self.form = NORMALIZED if plan.normalized else find_format(plan.format)
        self.log = IssueLog(self.size, self.form.adapted if self.form.adapt_issue else None)
        self.values = Columns(self.size)
        self.derived: list[Derived | None] | None = None
        self.feedback: dict[int, list[Feedback]] = {}
        self.trace_states: list[bool | None] = [None] * self.size
        self.unread: set[int] = set()
        self.unread_cells: dict[str, list[int]] = {}
        self.uncounted: dict[str, list[int]] = {}
        self.filled = np.zeros(self.size, np.uint32)
        self.names = {*batch.schema.names, *hidden_names(batch.schema)}
        self.plain = plain_requests(batch) if PLAIN in self.names else []
        self.misspelled = {right: wrong for wrong, right in misspelled_columns(tuple(batch.schema.names)).items()}

    def writable(self, name: str) -> ListColumn:
        """The decoded column as Python values, made if there is none."""
        column = self.values[name]
        if name not in self.values or not isinstance(column, ListColumn):
            column = self.values[name] = ListColumn(column)
        return column

    def fail(self, name: str, rows: Iterable[int]) -> None:
        """Mark cells that could not be read."""
        column = self.writable(name)
        for row in rows:
            column[row] = FAILED


@lru_cache(maxsize=64)
def misspelled_columns(names: tuple[str, ...]) -> dict[str, str]:
    """Columns with a close match among ours: {as written: as meant}."""
    logged = payload_table(names)
    unknown = [n for n in names if n not in COLUMNS and (logged is None or n not in logged[0].names)]
    # 0.85 separates `expected_respones` from `trace_id` and `request_time`, which are names of their own.
    matches = {n: match_names([n], COLUMNS, cutoff=0.85) for n in unknown}
    return {wrong: meant[wrong] for wrong, meant in matches.items() if meant}
