"""The report on a build as one HTML page."""

from __future__ import annotations

import os

from agent_eval_schema.render.funnel.draw import funnel_line, funnel_values
from agent_eval_schema.render.funnel.summary import FunnelSummary
from agent_eval_schema.render.page import page
from agent_eval_schema.render.report.html import page_values
from agent_eval_schema.render.report.summary import ReportSummary, Shown


def build_page(summary: FunnelSummary, report: ReportSummary, shown: Shown) -> str:
    """What became of a logged table, and the report on the rows that were made of it, as one page."""
    title = f"{os.path.basename(summary.table or '') or 'table'}: {funnel_line(summary)}"
    return page(
        title, "build.html", script=True, funnel=funnel_values(summary, alone=False), **page_values(report, shown)
    )
