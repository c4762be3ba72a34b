"""How a dataset is validated."""

from functools import partial
from itertools import chain
from typing import Literal, get_args

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.arrow import has_value
from agent_eval_schema.formats.column_names import likely_columns, preferred_in
from agent_eval_schema.formats.registry import NORMALIZED, UNKNOWN, detect, find_format
from agent_eval_schema.io.source import Source
from agent_eval_schema.rules.columns import UNKNOWN_FORMAT
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.validation.chosen_rules import chosen


class Plan(Struct, frozen=True):
    """How a dataset is validated: names only, so that it can be pickled.

    These describe the data: `can_hold_objects` (a cell does), `without_null` (the file cannot contain null, which a
    word may represent: CSV), `origins` (the places of our columns, where they have other names), `suggested` (the
    names that unknown columns may be meant to have), `unread` (what else may have ground truth), `then` (what changes
    under those names), `named` (columns are read under other names), `preferred` (the ground truth that a row with two
    kinds keeps), `normalized` (rows that no longer show the format that they had).

    These are requirements: `requires_outputs` (provided outputs were requested: each row has one of its format,
    `Format.outputs`), `unselected` (rules outside of a selection: not reported, but a row with an error of one supports
    no metric), `complete` (rows that are passed on have a request and, of provided outputs, a response or a
    trace, whatever their format requires), `instead_of_request` (all that is accepted in place of a request; None: what
    the format accepts). Cells of more than `max_cell_bytes` are not read, and without `values` messages quote no cell.

    These are what the kernel returns: with `columns` the normalized columns too; with `beside_traces` the traces are
    passed on in addition to the columns: what their reader finds in a trace is not taken from it, and the validation
    result contains whether MLflow reads it as it is (`mlflow_reads`). Without `figures` the figures of traces
    (`Derivation.figure`) are not read, and a report lacks them. If `labeled`, feedback on a trace gives its row labels.
    """

    format: str
    outputs: str
    can_hold_objects: bool
    codes: frozenset[str]
    columns: bool = False
    reason: str = ""
    beside_traces: bool = False
    figures: bool = True
    labeled: bool = False
    values: bool = True
    without_null: bool = False
    origins: dict[str, str] = {}
    complete: bool = False
    instead_of_request: tuple[str, ...] | None = None
    requires_outputs: bool = False
    normalized: bool = False
    suggested: dict[str, str] = {}
    unread: dict[str, str] = {}
    then: str = ""
    named: bool = False
    preferred: str = ""
    max_cell_bytes: int | None = None
    unselected: frozenset[str] = frozenset()

    @property
    def outputs_option(self) -> str:
        """The option that decides alike for the same rows: `"provided"` requires more of them than `"auto"`, which
        found some."""
        return "auto" if self.outputs == "provided" and not self.requires_outputs else self.outputs


Outputs = Literal["auto", "provided", "generated"]
OnInvalid = Literal["raise", "drop", "keep"]
"""What to do with invalid rows: raise, exclude them, or keep the parts that could be read."""


def make_plan(source: Source, *, complete: bool = False, labeled: bool = False) -> Plan:
    """Decide what "auto" means for this source, by what its reading asks for. Reads as many batches as necessary to see
    an output. Rows that are passed on have to be `complete`: with a request and, if outputs are provided, a response or
    a trace."""
    reading = source.reading
    format, outputs, values = reading.format, reading.outputs, reading.show_values
    require_choice("outputs", outputs, get_args(Outputs))
    codes, requires_outputs = chosen(reading.select, reading.ignore), outputs == "provided"
    head, names = source.head(), source.column_names()
    if format != "auto":
        found_format, reason = find_format(format).name, "as asked"
    else:
        detection = detect(names, source.metadata)
        otherwise = UNKNOWN.name if UNKNOWN_FORMAT.code in codes else "databricks"
        found_format, reason = detection.format or otherwise, detection.reason
    if outputs == "auto":
        has_output = partial(_has_output, found_format)
        if source.remote is not None:
            is_there = source.remote.any(has_output)
        else:  # usually the first row suffices: no other one is read, and the data are not opened again
            is_there = head is not None and any(map(has_output, chain((head.slice(0, 1), head), source.batches())))
        outputs = "provided" if is_there else "generated"
    origins, likely = find_format(found_format).origins(names), likely_columns(source, found_format)
    return Plan(
        found_format,
        outputs,
        source.can_hold_objects,
        codes,
        reason=reason,
        values=values,
        origins=origins,
        complete=complete,
        requires_outputs=requires_outputs,
        normalized=found_format == NORMALIZED.name and source.is_canonical(),
        without_null=source.kind == "csv",
        suggested=_quotable(likely.columns, names, values),
        named=bool(reading.columns),
        preferred=preferred_in(reading.columns),
        unread=_quotable(likely.unread, names, values),
        then=likely.then,
        max_cell_bytes=reading.max_cell_bytes,
        labeled=labeled,
        unselected=chosen((), reading.ignore) - codes,
    )


def _quotable(columns: dict[str, str], names: list[str], values: bool) -> dict[str, str]:
    """The names of paths; without values only those of whole columns, as keys are in cells."""
    return columns if values else {path: name for path, name in columns.items() if path.removesuffix("[]") in names}


def _has_output(format: str, batch: pa.RecordBatch) -> bool:
    form = find_format(format)
    rows = form.read(batch)
    places = [i for i in map(rows.schema.get_field_index, form.outputs) if i >= 0]
    return any(has_value(rows.column(i)) for i in places)
