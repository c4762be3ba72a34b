"""A source → its Report: choose the format and the plan, run the kernel over all batches, count."""

from __future__ import annotations

import time

from msgspec.structs import replace

from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.source import Source, first_rows
from agent_eval_schema.runtime.progress import ProgressDisplay, progress
from agent_eval_schema.text.privacy import quoting
from agent_eval_schema.validation.plan import Plan, make_plan
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.report_builder import ReportBuilder
from agent_eval_schema.validation.workers import check_on_all_cores


def check_source(
    source: Source,
    *,
    format: str = "auto",
    outputs: str = "auto",
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    values: bool = True,
    complete: bool = False,
    instead_of_request: tuple[str, ...] | None = None,
    max_cell_bytes: int | None = None,
    jobs: int = 0,
    screen: ProgressDisplay | None = None,
) -> Report:
    """The report on a source. Rows that are passed on have to be `complete`, whatever their format requires. Of what
    their format accepts in place of a request, only `instead_of_request` is accepted (None: all of it). Cells of more
    than `max_cell_bytes` are not read. The rows are validated by `jobs` processes (0: one per core if the data are
    large). Long operations show their progress on the screen, if there is one."""
    start = time.perf_counter()
    source = source.quoting(values)
    with progress(source.read_share, screen) as so_far:
        plan = make_plan(source, format, outputs, select, ignore, values, complete, max_cell_bytes)
        plan = replace(plan, instead_of_request=instead_of_request)
        form = find_format(plan.format)
        source = _with_remarks(form.prepare(source).quoting(values), plan)
        builder = ReportBuilder(
            plan.codes,
            plan.outputs,
            source,
            values=values,
            origins=plan.origins,
            given=find_format(plan.format).given,
            suggested=plan.suggested,
        )
        for checked in check_on_all_cores(source, plan, jobs):
            builder.add(checked)
            so_far.add(checked.num_rows)
    return Report(source, plan, builder, time.perf_counter() - start)


def _with_remarks(source: Source, plan: Plan) -> Source:
    """The source with the remarks of its format on it as a whole; for rows that are passed on none."""
    remarks = None if plan.complete else find_format(plan.format).remarks
    if remarks is None:
        return source
    with quoting(plan.values):
        found = remarks(first_rows(source))
    return replace(source, remarks=(*source.remarks, *found)) if found else source
