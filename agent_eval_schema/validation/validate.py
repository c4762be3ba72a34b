"""A source → its Report: choose the format and the plan, and check all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_eval_schema.io.source import Source
from agent_eval_schema.render.report.summary import FixPreview
from agent_eval_schema.runtime.progress import ProgressDisplay, progress
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import Report

if TYPE_CHECKING:
    from agent_eval_schema.io.work_folder import PartsFolder


def check_source(
    source: Source,
    *,
    format: str = "auto",
    outputs: str = "auto",
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    values: bool = True,
    complete: bool = False,
    labeled: bool = False,
    max_cell_bytes: int | None = None,
    jobs: int = 0,
    screen: ProgressDisplay | None = None,
    preview: Callable[[Report], FixPreview | None] = lambda _: None,
    parts: PartsFolder | None = None,
) -> Report:
    """The report on a source. Rows that are passed on have to be `complete`, whatever their format requires. If
    `labeled`, feedback on traces gives labels. Cells of more than `max_cell_bytes` are not read. The rows are validated
    by `jobs` processes (0: one per core where it pays). Long operations show their progress on the screen, if
    there is one. A report that is drawn shows a `preview` of the safe fixes. What is done is kept in `parts`, and what
    was done there is not done again."""
    source = source.quoting(values)
    with progress(source.read_share, screen) as so_far:
        plan = make_plan(source, format, outputs, select, ignore, values, complete, max_cell_bytes, labeled)
        run = CheckedRun(source, plan, jobs=jobs, parts=parts)
        for checked in run.batches():
            so_far.add(checked.num_rows)
    return Report(run, preview)
