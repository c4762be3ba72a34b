"""The kernel: `check_batch`, one batch of cells → one checked batch, row by row.

It is pure and picklable: the same function is used for a DataFrame in a notebook, a file of any size and Spark's
mapInArrow. Rules on the whole dataset run in the builder (report_builder.py).
"""

import pyarrow as pa

from agent_eval_schema.cells.batch import is_json_column, json_in_string, with_repeated_keys
from agent_eval_schema.cells.notes import without_notes
from agent_eval_schema.cells.numbers import with_lost_numbers
from agent_eval_schema.cells.sizes import without_large_cells
from agent_eval_schema.decoding.texts import TEXT_COLUMNS
from agent_eval_schema.formats.format import identity
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.reading import INTERNAL
from agent_eval_schema.runtime.gc_pause import gc_paused
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.privacy import error_text, quoting
from agent_eval_schema.validation.checked_batch import assemble, join
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.rows import Rows
from agent_eval_schema.validation.steps import STEPS, STEPS_OF_OTHER_ROWS, apply_package_rules

_OBJECTS = frozenset(COLUMNS) - {"response", "outputs", "trace", *TEXT_COLUMNS}
"""Columns whose texts are objects or lists; what an agent or a user wrote is a text, whatever it looks like."""


def _is_text(field: pa.Field) -> bool:
    return not field.metadata and not pa.types.is_nested(field.type)


def check_batch(batch: pa.RecordBatch, plan: Plan) -> pa.RecordBatch:
    """Check the rows of a batch: a row-aligned batch of validation results (and, if the plan requests them, of
    normalized columns).

    If a rule raises an exception, only that row fails, not the run: the batch is halved until the row is found.
    """
    rows: Rows | None = None
    try:
        with quoting(plan.values), gc_paused():
            spec = find_format(plan.format)
            most = plan.max_cell_bytes
            raw = with_lost_numbers(batch if most is None else without_large_cells(batch, most))
            texts = [
                field.name
                for field, cells in zip(raw.schema, raw.columns, strict=True)
                if field.name in _OBJECTS
                and (json_in_string([cells]).true_count if is_json_column(field) else _is_text(field))
            ]
            if spec.is_rows and texts:
                raw = with_repeated_keys(raw, texts)
            rows = Rows(raw if spec.read is identity else spec.read(raw), plan)
            for step in STEPS if spec.is_rows else STEPS_OF_OTHER_ROWS:
                if not step.columns or not (rows.names | rows.values.keys()).isdisjoint(step.columns):
                    step.run(rows)
            if spec.is_rows and rows.codes - RULES.keys():
                apply_package_rules(rows)
            checked = assemble(rows)
            rows = None  # its content is released before the collector runs
            return checked
    except Exception as error:  # an internal error costs the row on which it was raised, not the run
        if batch.num_rows > 1:
            half = batch.num_rows // 2
            parts = (batch.slice(0, half), batch.slice(half))
            return join([check_batch(part, plan) for part in parts], plan)
        with quoting(plan.values):
            indices = [i for i, f in enumerate(batch.schema) if f.name not in find_format(plan.format).reads]
            unread = batch.select(indices) if indices else without_notes(batch.num_rows)
            return assemble(_broken(rows or Rows(unread, plan), error))


def _broken(rows: Rows, error: Exception) -> Rows:
    """The one row on which a rule raised an exception: it keeps the issues that were found before."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None and frame.tb_frame.f_globals.get("__name__") == __name__:
        frame = frame.tb_next
    name = frame.tb_frame.f_code.co_name if frame else "a rule"
    rows.log.add(INTERNAL, 0, None, f"`{name}` raised an exception: {type(error).__name__}: {error_text(error)}")
    rows.values.clear()
    rows.derived = None
    return rows
