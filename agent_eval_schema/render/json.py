"""The report as JSON, for other programs.

`schema_version` changes when a key changes its meaning or goes; new keys may come at any time. `issues` lists what the
report holds in memory (all issues of data in memory, the first 100,000 of a file); `counts` is always exact.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from agent_eval_schema import __version__
from agent_eval_schema.issues import Severity
from agent_eval_schema.visible import JSON_ESCAPE, inert, visible

if TYPE_CHECKING:
    from agent_eval_schema.report import Report

SCHEMA_VERSION = 1


def report_document(report: Report) -> dict[str, Any]:
    """The report as JSON-like data."""
    issues = report.listed_issues()
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
        "metrics": report.support(),
    }


def report_json(report: Report) -> str:
    return json_text(report_document(report))


def json_text(document: Any) -> str:
    """A document as text that a terminal only shows, and in which a CI runner finds no command."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    # No line of it begins with a colon, so all may be looked at as one.
    return inert(_UNSAFE.sub(lambda found: JSON_ESCAPE.format(ord(found.group())), text), JSON_ESCAPE) + "\n"


# What a terminal would obey or reorder stands only inside of strings, where an escape means the same.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
