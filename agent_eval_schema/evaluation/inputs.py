"""The rows of a dataset as metrics read them: validated, under the names that metrics use, a batch at a time.

    batch ──check──▶ canonical columns ──those that the metrics read──▶ EvalInputs (values, trajectories, issues)
          └────────▶ the cells as they came ────────────────────────────┘ (frame)

What columns are called where: `prompt` or the canonical request; `reference` or expected_response; response,
predicted_trajectory, reference_trajectory, retrieved_context, expected_retrieved_context as they are. Data in memory is
one part, with the frame in which it came; a file is never held as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.evaluation.table import issues_of
from agent_eval_schema.evaluation.task_metrics import ROW_METRICS, CustomMetric, PointwiseMetric, TaskMetric
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.arrow import canonical_values
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.metrics.batch.columns import PREDICTED, REFERENCE
from agent_eval_schema.rules.conversion import LEFT_OUT
from agent_eval_schema.validation.checked_batch import rows_of
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan, make_plan
from agent_eval_schema.validation.validate import check_source

METRIC_INPUTS = (
    PREDICTED,
    REFERENCE,
    "response",
    "retrieved_context",
    "expected_retrieved_context",
    "prompt",
    "reference",
)
"""The columns that metrics read, under the names that they have there."""

_CANONICAL = {"prompt": "request", "reference": "expected_response"}
"""The names of columns of READ in canonical rows that differ from these."""

_CHECKED = ("AE0", "AE3", "AE4", "AE5", "AE6")
"""A missing or malformed request is not reported here: a prompt may take its place."""


class EvalInputs(Struct):
    """Some rows: their original cells, the columns that metrics read (None where absent), both trajectories as Arrow
    arrays, the issues of the cells that are read, and the rows' request_id."""

    frame: pd.DataFrame
    values: dict[str, list[Any]]
    trajectories: pa.RecordBatch
    log: IssueLog
    ids: list[str | None]


def of_turns(source: Source, format: str) -> tuple[Source, str, list[Issue]]:
    """The source of evaluation rows, their format, and the excluded rows: for files of CES, which do not contain rows,
    the turns of their valid evaluations; for all others the source itself."""
    plan = make_plan(source, format, "generated", select=_CHECKED)
    from agent_eval_schema.validation.ces_turns import CES_FORMATS, evaluations_of, rows_of_each

    if plan.format not in CES_FORMATS:
        return source, plan.format, []
    given = evaluations_of(check_source(source, format=plan.format, outputs="generated"))
    turns = open_source([row for rows in rows_of_each(given) for row in rows])
    invalid = [f"the evaluation on row {e.row} was excluded: it is not valid" for e in given if not e.valid]
    return replace(turns, name=source.name), "databricks", [Finding(LEFT_OUT, why).issue() for why in invalid]


def columns_read(metrics: Iterable[TaskMetric]) -> frozenset[str]:
    """The columns of READ that these metrics need; those that compare trajectories take them from Arrow."""
    found: set[str] = set()
    for metric in metrics:
        if isinstance(metric, CustomMetric | PointwiseMetric):
            return frozenset(METRIC_INPUTS)
        found.update(ROW_METRICS[metric].reads if isinstance(metric, str) and metric in ROW_METRICS else ())
    return frozenset(found)


def input_parts(
    source: Source, format: str, reads: Collection[str], *, ran: bool = False, trajectories: bool = True
) -> Iterator[EvalInputs]:
    """The rows of a source with the columns `reads`, part by part; data in memory is one part. Where an agent will be
    run (`ran`), its trajectories take the place of those in the data. `trajectories` is true if some are compared."""
    plan = make_plan(source, format, "generated" if ran else "provided", select=_CHECKED)
    plan = replace(plan, columns=True)
    read = set(reads) | ({PREDICTED, REFERENCE} if trajectories else set())
    read -= {PREDICTED} if ran else set()
    judged = {None, "trace", *read, *(_CANONICAL[name] for name in read if name in _CANONICAL)}
    if source.name is not None:
        yield from (_given(_read(frame_of([b]), b, plan, reads, judged)) for b in source.batches())
        return
    later = pd.DataFrame()
    yield _joined([_read(later, batch, plan, reads, judged) for batch in source.batches()], source, reads)


def _read(
    frame: pd.DataFrame,
    batch: pa.RecordBatch,
    plan: Plan,
    reads: Collection[str],
    judged: Collection[str | None],
) -> EvalInputs:
    checked = check_batch(batch, plan)
    rows = rows_of(checked)
    values = {}
    for name in (n for n in METRIC_INPUTS if n in reads):
        column = _CANONICAL.get(name, name)
        cells = canonical_values(rows.column(column), rows.schema.field(column))
        values[name] = list(map(_prompt, cells)) if column == "request" else cells
    ids = rows.column("request_id").to_pylist()
    return EvalInputs(frame, values, rows.select([PREDICTED, REFERENCE]), issues_of(checked, plan, judged), ids)


def _prompt(request: Any) -> Any:
    """A request as what an agent is asked: the text of a lone user message, else all the messages."""
    if request is None:
        return None
    messages = request.get("messages") or []
    alone = messages[0] if len(messages) == 1 else {}
    return alone["content"] if alone.get("role") == "user" and isinstance(alone.get("content"), str) else request


def _given(part: EvalInputs) -> EvalInputs:
    """A column that the data itself calls prompt, or reference, comes before the canonical one."""
    for name in _CANONICAL:
        if name in part.values and name in part.frame.columns:
            part.values[name] = [None if is_absent(v) else v for v in part.frame[name].tolist()]
    return part


def _joined(parts: list[EvalInputs], source: Source, reads: Collection[str]) -> EvalInputs:
    log, values = IssueLog(0), {name: list[Any]() for name in METRIC_INPUTS if name in reads}
    ids: list[str | None] = []
    for part in parts:
        ids += part.ids
        for name, column in part.values.items():
            values[name].extend(column)
        log.rows.extend(log.size + row for row in part.log.rows)
        log.notes.extend(part.log.notes)
        log.size += part.log.size
    none = pa.RecordBatch.from_pydict({name: pa.array([], pa.string()) for name in (PREDICTED, REFERENCE)})
    calls = one_batch(part.trajectories for part in parts) if parts else none
    return _given(EvalInputs(whole_frame(source, log.size), values, calls, log, ids))


def whole_frame(source: Source, rows: int) -> pd.DataFrame:
    """All rows of a source as a frame, with the cells in which they came, and the index of a frame."""
    given = source.take(np.ones(rows, bool))
    if isinstance(given, pd.DataFrame):
        return given if source.index is not None else given.reset_index(drop=True)
    if isinstance(given, pa.Table | pa.RecordBatch):
        return frame_of(given.to_batches() if isinstance(given, pa.Table) else [given])
    return frame_of(source.batches())
