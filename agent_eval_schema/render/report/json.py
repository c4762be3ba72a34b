"""The report as JSON, for other programs.

`schema_version` changes when a key changes its meaning or goes; new keys may come at any time. `issues` lists what the
report holds in memory (all issues of data in memory, the first 100,000 of a file); `counts` is always exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.render.document import json_text
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.visible import visible

SCHEMA_VERSION = 1


def report_document(report: ReportSummary, issues: Sequence[Issue]) -> dict[str, Any]:
    """The report as JSON-like data, with the issues to list."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "agent-eval-schema", "version": __version__},
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


def report_json(report: ReportSummary, issues: Sequence[Issue]) -> str:
    return json_text(report_document(report, issues))
