"""Scores of data that has its predictions already, streamed.

score_trajectories, EvalTask ──call_parts, input_parts──▶ EvalInputs ──measure──▶ ScoredPart ──Scoring──▶ EvalResult
                            an agent's answers (task.py) ─▶

    batch ──check──▶ canonical columns ──those that the metrics read──▶ EvalInputs (values, trajectories, issues)
          └────────▶ the cells as they came ────────────────────────────┘ (frame)

Trajectory metrics alone take whole batches, without anything per row, and unchecked where nothing else adds to them:

    batch ──format──▶ both columns, no trace ─────────────────────▶ EvalInputs (trajectories)
                    └ anything else ──check──▶ canonical columns ──┘

What an agent gets and is compared with is the canonical row, whatever the columns of a format are called: `prompt` is
the request, `reference` the expected_response. Data in memory is one part, with the frame in which it came; a file is
never held as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.notes import IssueLog, reading_problems
from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.decoding.texts import decode_text
from agent_eval_schema.decoding.values import TextColumn
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.evaluation.result import EvalResult
from agent_eval_schema.evaluation.row_keys import joined_keys, keys_of, row_keys
from agent_eval_schema.evaluation.saved_result import ResultRecord, versions
from agent_eval_schema.evaluation.table import (
    REQUEST_ID,
    RUN_COLUMNS,
    EvalInputs,
    Findings,
    ScoredPart,
    issues_of,
    joined_parts,
    score_column,
)
from agent_eval_schema.evaluation.task_metrics import (
    CustomMetric,
    PointwiseMetric,
    TaskMetric,
    measure_custom,
    measure_pointwise,
    measure_row_metric,
    metric_name,
    require_metrics,
    row_metrics,
    trajectory_metrics,
)
from agent_eval_schema.evaluation.trajectories import (
    ToolUseMetric,
    TrajectoryMetric,
    TrajectoryOptions,
    score_calls,
    session_calls,
)
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import InputFormat, find_format
from agent_eval_schema.io.arrow import canonical_values
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.metrics.definitions import SINGLE_TOOL_USE
from agent_eval_schema.metrics.intervals import Numbers
from agent_eval_schema.metrics.trajectory import DEFAULT_METRICS, TRAJECTORY_METRICS, Duplicates, Empty, Match
from agent_eval_schema.metrics.trajectory_columns import PREDICTED, REFERENCE, SessionCalls
from agent_eval_schema.render.phrases import Call
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.conversion import LEFT_OUT
from agent_eval_schema.runtime.progress import progress
from agent_eval_schema.text.choices import closest
from agent_eval_schema.validation.checked_batch import rows_of
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan, make_plan
from agent_eval_schema.validation.validate import check_source

METRIC_INPUTS = (
    *(PREDICTED, REFERENCE, "response", "retrieved_context", "expected_retrieved_context", "prompt", "reference"),
)
"""The columns that metrics read, under the names that they have there."""

_CANONICAL = {"prompt": "request", "reference": "expected_response"}
"""The names of columns of METRIC_INPUTS in canonical rows that differ from these."""

_CHECKED = ("AE0", "AE3", "AE4", "AE5", "AE6")
"""A missing or malformed request is not reported here: a prompt may take its place."""


def of_turns(source: Source) -> tuple[Source, list[Issue]]:
    """The source of evaluation rows, read in their format, and the excluded rows: for files of CES, which do not
    contain rows, the turns of their valid evaluations; for all others the source itself."""
    plan = make_plan(source.read_as(outputs="generated", select=_CHECKED))
    from agent_eval_schema.validation.ces_turns import CES_FORMATS, evaluations_of, in_place_of, rows_of_each

    if plan.format not in CES_FORMATS:
        return source.read_as(format=plan.format), []
    evaluations = evaluations_of(check_source(source.read_as(format=plan.format, outputs="generated")))
    turns = in_place_of(source, [row for rows in rows_of_each(evaluations) for row in rows])
    invalid = [f"the evaluation on row {e.row} was excluded: it is not valid" for e in evaluations if not e.valid]
    return turns, [Finding(LEFT_OUT, why).issue() for why in invalid]


def columns_read(metrics: Iterable[TaskMetric]) -> frozenset[str]:
    """The columns of METRIC_INPUTS that these metrics need; those that compare trajectories take them from Arrow."""
    columns, of_rows = set[str](), row_metrics()
    for metric in metrics:
        if isinstance(metric, CustomMetric | PointwiseMetric):
            return frozenset(METRIC_INPUTS)
        columns.update(of_rows[metric].reads if isinstance(metric, str) and metric in of_rows else ())
    return frozenset(columns)


def input_parts(
    source: Source, reads: Collection[str], *, ran: bool = False, trajectories: bool = True
) -> Iterator[EvalInputs]:
    """The rows of a source with the columns `reads`, part by part; data in memory is one part. Where an agent will be
    run (`ran`), its trajectories take the place of those in the data. `trajectories` is true if some are compared."""
    source = source.read_as(outputs="generated" if ran else "provided", select=_CHECKED)
    plan = replace(make_plan(source), columns=True)
    read = set(reads) | ({PREDICTED, REFERENCE} if trajectories else set())
    read -= {PREDICTED} if ran else set()
    judged = {None, "trace", *read, *(_CANONICAL[name] for name in read if name in _CANONICAL)}
    whole = session_calls(plan)
    if source.name is not None:
        yield from (_with_originals(_inputs_of(frame_of([b]), b, plan, reads, judged, whole)) for b in source.batches())
        return
    batches = list(source.batches()) or [pa.RecordBatch.from_pylist([])]
    yield _joined([_inputs_of(pd.DataFrame(), batch, plan, reads, judged, whole) for batch in batches], source, reads)


def _inputs_of(
    frame: pd.DataFrame,
    batch: pa.RecordBatch,
    plan: Plan,
    reads: Collection[str],
    judged: Collection[str | None] | None,
    whole: SessionCalls | None,
) -> EvalInputs:
    checked = check_batch(batch, plan)
    rows = rows_of(checked)
    values = {}
    for name in (n for n in METRIC_INPUTS if n in reads):
        column = _CANONICAL.get(name, name)
        cells = canonical_values(rows.column(column), rows.schema.field(column))
        values[name] = list(map(_prompt, cells)) if column == "request" else cells
    ids = rows.column("request_id").to_pylist()
    log = issues_of(checked, plan, judged)
    return EvalInputs(frame, values, rows.select([PREDICTED, REFERENCE]), log, ids, keys_of(rows, batch), whole)


def call_parts(source: Source) -> Iterator[EvalInputs]:
    """The rows of a source for metrics that compare trajectories alone, a batch at a time."""
    plan = replace(make_plan(source.read_as(outputs="provided", select=("AE0", "AE5", "AE6"))), columns=True)
    form, whole = find_format(plan.format), session_calls(plan)
    for batch in source.batches():
        read = batch if _is_ready(batch) else form.read(batch)
        has_ids = REQUEST_ID in batch.schema.names
        if not _is_ready(read) or form.calls_of == "session":
            part = _inputs_of(pd.DataFrame(), batch, plan, (), None, whole)
            yield replace(part, ids=()) if has_ids else part
            continue
        log = IssueLog(batch.num_rows)
        for row, problems in reading_problems(read).items():
            for problem in problems:
                log.add_finding(row, problem)
        ids = () if has_ids else _ids(read)
        yield EvalInputs(pd.DataFrame(), {}, read, log, ids, row_keys(batch), validated=False)


def _is_ready(batch: pa.RecordBatch) -> bool:
    """Whether both trajectories are in canonical columns, and there is no trace that could add to them."""
    return {PREDICTED, REFERENCE} <= set(batch.schema.names) and "trace" not in batch.schema.names


def _ids(rows: pa.RecordBatch) -> list[str | None]:
    cells = read_cells(rows, REQUEST_ID)
    if cells is None:
        return [None] * rows.num_rows
    column = decode_text(REQUEST_ID, cells, IssueLog(rows.num_rows))
    ids = column.array.to_pylist() if isinstance(column, TextColumn) else column
    return [id if isinstance(id, str) else None for id in ids]


def _prompt(request: Any) -> Any:
    """A request as what an agent is asked: the text of a lone user message, else all the messages."""
    if request is None:
        return None
    messages = request.get("messages") or []
    alone = messages[0] if len(messages) == 1 else {}
    return alone["content"] if alone.get("role") == "user" and isinstance(alone.get("content"), str) else request


def _with_originals(part: EvalInputs) -> EvalInputs:
    """A cell that its format cannot read, in a column that the data calls prompt or reference, is passed on as it came:
    an agent of one's own may know it."""
    for name in _CANONICAL:
        if name in part.values and name in part.frame.columns:
            cells = zip(part.values[name], part.frame[name].tolist(), strict=True)
            part.values[name] = [own if value is None and not is_absent(own) else value for value, own in cells]
    return part


def _joined(parts: list[EvalInputs], source: Source, reads: Collection[str]) -> EvalInputs:
    log = IssueLog(0)
    for part in parts:
        log.extend(part.log, range(log.size, log.size + part.log.size))
        log.size += part.log.size
    values = {name: [cell for part in parts for cell in part.values[name]] for name in METRIC_INPUTS if name in reads}
    ids = [id for part in parts for id in part.ids]
    calls = one_batch(part.trajectories for part in parts)
    keys = joined_keys([part.keys for part in parts if part.keys is not None])
    return _with_originals(EvalInputs(whole_frame(source, log.size), values, calls, log, ids, keys, parts[0].whole))


def whole_frame(source: Source, rows: int) -> pd.DataFrame:
    """All rows of a source as a frame, with the cells in which they came, and the index of a frame."""
    taken = source.take(np.ones(rows, bool))
    if isinstance(taken, pd.DataFrame):
        return taken if source.index is not None else taken.reset_index(drop=True)
    if isinstance(taken, pa.Table | pa.RecordBatch):
        return frame_of(taken.to_batches() if isinstance(taken, pa.Table) else [taken])
    return frame_of(source.batches())


# --- the scores of a source
def score_trajectories(
    data: EvalSetLike,
    metrics: Sequence[TrajectoryMetric] = DEFAULT_METRICS,
    *,
    tool_name: str | None = None,
    duplicates: Duplicates = "membership",
    empty: Empty = "define",
    match: Match = "call",
    format: InputFormat = "auto",
    columns: ColumnNames = None,
) -> EvalResult:
    """Compare the tool calls of an agent with the expected tool calls.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`, with the columns `predicted_trajectory` and `reference_trajectory`: lists of
        `{"tool_name", "tool_input"}`, as values or as JSON strings. Missing trajectories are taken from the trace. A
        file of any size is streamed.
    metrics : sequence of str or ToolUseMetric, default the first five names
        Names of trajectory metrics (`"trajectory_exact_match"`, `"trajectory_in_order_match"`,
        `"trajectory_any_order_match"`, `"trajectory_precision"`, `"trajectory_recall"`, `"trajectory_f1"`), and
        instances of ToolUseMetric.
    tool_name : str or None, default None
        The tool for `trajectory_single_tool_use`. None does not add this metric.
    duplicates : {"membership", "one_to_one"}, default "membership"
        How precision and recall count repeated calls. `"membership"`: each call that occurs in the other trajectory.
        `"one_to_one"`: each call at most as often as it occurs there.
    empty : {"define", "nan"}, default "define"
        The score of an empty trajectory. `"define"`: that of the definition; an agent that calls no tool against a
        reference with calls scores 0. `"nan"`: none, as the Vertex AI service rejects such rows.
    match : {"call", "tool_name", "subset"}, default "call"
        When two calls are the same. `"call"`: if their names and inputs are equal. `"tool_name"`: if their names are
        equal, for references that contain only names (AgentCore, Azure AI Foundry, promptfoo). `"subset"`: if their
        names are equal and the call has the arguments of the reference; others are ignored.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.

    Returns
    -------
    EvalResult
        The scores and their summary. `unscored` and `issues` list the reasons for missing scores.

    Raises
    ------
    EvalSetError
        There is no such file, metric or option. It is never raised for the content of a row.

    See Also
    --------
    EvalTask : Run an agent, and compute more metrics.
    agent_eval_schema.scorers : The same metrics as MLflow scorers.

    Examples
    --------
    >>> from agent_eval_schema import score_trajectories
    >>> search, read = {"tool_name": "search", "tool_input": {"q": "Delta"}}, {"tool_name": "read", "tool_input": {}}
    >>> data = [
    ...     {"predicted_trajectory": [search, read], "reference_trajectory": [search, read]},
    ...     {"predicted_trajectory": [search], "reference_trajectory": [search, read]},
    ... ]
    >>> result = score_trajectories(data, ["trajectory_exact_match", "trajectory_recall"])
    >>> result.summary_metrics["trajectory_recall/mean"]
    0.75
    >>> result.metrics_table[["trajectory_exact_match/score", "trajectory_recall/score"]]
       trajectory_exact_match/score  trajectory_recall/score
    0                           1.0                      1.0
    1                           0.0                      0.5
    """
    source = open_source(data, "data", columns, format=format)
    metrics = (metrics,) if isinstance(metrics, str) else metrics
    for metric in metrics:
        name = metric if metric in TRAJECTORY_METRICS else closest(metric, (*TRAJECTORY_METRICS, *row_metrics()))
        if name in row_metrics():
            raise EvalSetError(
                f"{metric} is not a trajectory metric: EvalTask(data, [{name!r}]).evaluate() measures {name}"
            )
    how: dict[str, Any] = {"tool_name": tool_name, "duplicates": duplicates, "empty": empty, "match": match}
    return score_named(source, metrics, TRAJECTORY_METRICS, **how)


def score_named(
    data: Source,
    metrics: Sequence[TrajectoryMetric],
    names: Iterable[str] = (),
    *,
    tool_name: str | None = None,
    duplicates: Duplicates = "membership",
    empty: Empty = "define",
    match: Match = "call",
) -> EvalResult:
    """The scores of a source by metrics of these `names`, else by any that need no model."""
    chosen = [m for m in metrics if m != SINGLE_TOOL_USE or tool_name is None]
    if tool_name is not None:
        chosen.append(ToolUseMetric(tool_name))
    required = require_metrics(chosen, names, (ToolUseMetric,))
    return score_rows(data, required, TrajectoryOptions(trajectory_metrics(required), duplicates, empty, match))


def score_rows(
    data: Source, metrics: Sequence[TaskMetric], options: TrajectoryOptions, max_workers: int = 1
) -> EvalResult:
    """The scores of a source by any metrics, `options` by those that compare trajectories."""
    source, left_out = of_turns(data)
    if len(options.metrics) == len(metrics):
        parts = call_parts(source)
    else:
        parts = input_parts(source, columns_read(metrics), trajectories=bool(options.metrics))
    scoring = Scoring(source, metrics, options, left_out)
    with progress(source.read_share) as so_far:
        for part in parts:
            so_far.add(scoring.add(measure(part, metrics, options, max_workers)))
    return scoring.result()


class Scoring:
    """The scores of the parts of a source, as they come; of a file, its rows are read again for the table."""

    def __init__(
        self,
        source: Source,
        metrics: Sequence[TaskMetric],
        options: TrajectoryOptions,
        left_out: Sequence[Issue],
        *,
        agent: str | None = None,
    ) -> None:
        self._source, self._options, self._agent = source, options, agent
        self._metrics, self._left_out = metrics, len(left_out)
        self._findings, self._parts, self._rows = Findings(left_out), list[ScoredPart](), 0
        self._frame: pd.DataFrame | None = None

    def add(self, part: ScoredPart) -> int:
        """Take in the next part; returns how many rows it has."""
        self._findings.add(part.log, self._rows)
        self._rows += part.log.size
        self._frame = part.frame  # of data in memory, which are one part
        self._parts.append(replace(part, log=IssueLog(part.log.size), frame=None))
        return part.log.size

    def result(self) -> EvalResult:
        names = tuple(map(metric_name, self._metrics))
        stated = (metric._info for metric in self._metrics if isinstance(metric, CustomMetric | PointwiseMetric))
        whole = joined_parts(self._parts, names)
        named = tuple(metric for metric in self._metrics if isinstance(metric, str))
        is_named = all(isinstance(metric, str | ToolUseMetric) for metric in self._metrics)
        more = {"metrics": named} if named not in ((), DEFAULT_METRICS) and is_named else {}
        call = Call(self._source.name, {**self._source.options, **self._options.not_default, **more})
        record = ResultRecord(
            metrics=names,
            row_count=self._rows,
            source=self._source.name,
            agent=self._agent,
            options=self._options.reported,
            versions=dict(versions()),
            left_out=self._left_out,
            infos=tuple(info for info in stated if info),
        )
        return EvalResult(record, whole, partial(self._table, whole), call, findings=self._findings)

    def _table(self, whole: ScoredPart) -> Iterator[pd.DataFrame]:
        """The rows with their scores, in parts: with the index of a frame, else numbered through all parts."""
        start, has_ids = 0, any(id is not None for id in whole.ids)
        for frame in self._frames():
            rows = slice(start, start + len(frame))
            table = frame.drop(columns=[name for name in RUN_COLUMNS if name in whole.columns], errors="ignore")
            columns = {n: pd.Series(c[rows], table.index, dtype=c.dtype) for n, c in whole.columns.items()}
            table = table.assign(**columns)  # pandas 3 makes texts of an array of objects
            if has_ids and REQUEST_ID not in table.columns:
                table.insert(0, REQUEST_ID, pd.Series(whole.ids[rows], table.index, dtype="object"))
            if self._source.index is None:
                table.index = pd.RangeIndex(start, start + len(table))
            start += len(table)
            yield table

    def _frames(self) -> Iterator[pd.DataFrame]:
        if self._source.name is None:  # one DataFrame, of the kind of the data
            frame = self._frame
            yield whole_frame(self._source, self._rows) if frame is None or frame.columns.empty else frame
        else:
            yield from (frame_of([batch]) for batch in self._source.batches())


# --- metrics of any kind
def measure(
    inputs: EvalInputs,
    metrics: Sequence[TaskMetric],
    options: TrajectoryOptions,
    max_workers: int,
    *,
    ran: bool = False,
) -> ScoredPart:
    """The columns that metrics give for some rows, `<metric>/score` as numbers. If an agent `ran`, the columns that it
    left in their frame come first: of a file they cannot be read again."""
    columns = {name: inputs.frame[name].to_numpy() for name in RUN_COLUMNS if ran}
    # the validation has reported the issues of trajectories, but has not seen what an agent returns
    unread = IssueLog(inputs.size) if inputs.validated else inputs.log
    scores, reasons = dict[str, Numbers](), dict[str, Numbers]()
    if options.metrics or not inputs.validated:
        scores, reasons = score_calls(inputs, options, unread)
        for row, (code, column, path, message, hint) in zip(unread.rows, unread.notes, strict=True):
            if ran and column == PREDICTED and RULES[code].severity is Severity.ERROR:
                inputs.log.add(RULES[code], row, column, message, path=path, hint=hint)
    for metric in metrics:
        name = metric_name(metric)
        if name in scores:
            columns[score_column(name)] = scores[name]
            continue
        if isinstance(metric, CustomMetric):
            parts, why = measure_custom(metric, inputs)
        elif isinstance(metric, PointwiseMetric):
            parts, why = measure_pointwise(metric, inputs, max_workers)
        else:
            parts, why = measure_row_metric(row_metrics()[name], inputs)
        for part, values in parts.items():
            columns[f"{name}/{part}"] = pd.Series(values, dtype="float64" if part == "score" else "object").to_numpy()
        reasons[name] = np.array(why, object)
    return ScoredPart(columns, inputs.log, reasons, inputs.ids, inputs.keys, inputs.frame)
