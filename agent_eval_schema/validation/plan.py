"""How a data set is checked."""

from __future__ import annotations

from functools import partial
from typing import Literal

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.formats.registry import detect, find_format
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.rules import chosen


class Plan(Struct, frozen=True):
    """How a data set is checked: names only, so that it can be pickled.

    `columns` asks for the normalised columns too; without them a check only gives verdicts. `beside_traces` says that
    the traces are handed on beside the columns: what their reader finds in a trace is not taken from it, and the
    verdict says whether mlflow reads it as it is (`mlflow_reads`). Which rows are valid, and why, is the same; a report
    lacks the figures of the traces. `values` says whether messages may quote cells.
    """

    format: str
    outputs: str
    nests: bool
    codes: frozenset[str]
    columns: bool = False
    reason: str = ""
    beside_traces: bool = False
    values: bool = True


Outputs = Literal["auto", "provided", "generated"]


# ---------------------------------------------------------------------------------------------------------------------
# plan
def make_plan(
    source: Source,
    format: str,
    outputs: str,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    values: bool = True,
) -> Plan:
    """Settle what "auto" means for this source. Reads as many batches as it takes to see an output."""
    if outputs not in ("auto", "provided", "generated"):
        raise EvalSetError(f"outputs must be provided, generated or auto, got {outputs!r}")
    codes = chosen(select, ignore)
    head = source.head()
    chosen_format, reason = (
        (find_format(format), "as asked")
        if format != "auto"
        else detect([] if head is None else column_names(head.schema))
    )
    if outputs == "auto":
        has_output = partial(_has_output, chosen_format.name)
        if source.remote is not None:
            found = source.remote.any(has_output)
        else:  # mostly the head tells, and the data need not be opened again
            found = head is not None and (has_output(head) or any(map(has_output, source.batches())))
        outputs = "provided" if found else "generated"
    return Plan(chosen_format.name, outputs, source.nests, codes, reason=reason, values=values)


def _has_output(format: str, batch: pa.RecordBatch) -> bool:
    rows = find_format(format).read(batch)
    places = [i for i in map(rows.schema.get_field_index, ("response", "trace")) if i >= 0]
    return any(rows.column(i).null_count < rows.num_rows for i in places)
