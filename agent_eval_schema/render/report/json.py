"""The report as JSON, for other programs.

`issues` lists what the report holds in memory (all issues of data in memory, the first 100,000 of a file); `counts` is
always exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.render.document import json_text, versioned
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.text.visible import visible


def report_json(report: ReportSummary, issues: Sequence[Issue]) -> str:
    """The report as JSON, with the issues to list."""
    document = {
        "source": visible(report.name) if report.name else None,
        "format": report.format,
        "format_reason": report.format_reason,
        "outputs": report.outputs,
        "ok": report.ok,
        "rows": {"total": report.row_count, "valid": report.valid_count, "invalid": report.invalid_count},
        "severities": {str(s): report.count(s) for s in Severity},
        "counts": report.counts,
        "derived": report.derived,
        "issues_listed": len(issues),
        "issues": issues,
        "metrics": report.support("all"),
    }
    return json_text(versioned(document))
