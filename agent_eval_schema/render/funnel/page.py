"""The report on a build as one HTML page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_eval_schema.render.page import page
from agent_eval_schema.render.report.html import _drawn

if TYPE_CHECKING:
    from agent_eval_schema.inference_tables.summary import Summary
    from agent_eval_schema.validation.report import Report


def build_page(summary: Summary, report: Report) -> str:
    """What became of a logged table, and the report on the rows that were made of it, as one page."""
    from agent_eval_schema.render.funnel.draw import funnel_values

    title = f"{os.path.basename(summary.table or '') or 'table'}: {summary.funnel}"
    return page(
        title, "build.html", funnel=funnel_values(summary, alone=False), **_drawn(report, 20, "all", inline=False)
    )
