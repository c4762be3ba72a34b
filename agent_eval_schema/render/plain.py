"""One finding as one line of plain text, for forms without colours. Computes nothing; shows cells through `visible`."""

from __future__ import annotations

from agent_eval_schema.issues import Issue
from agent_eval_schema.visible import visible


def finding(issue: Issue, *, with_row: bool = True) -> str:
    """Where, and what: `row 5, hr-006, request.messages[0].role: expected …`."""
    where = (f"row {issue.row}" if with_row and issue.row is not None else None, issue.request_id, issue.path)
    place = ", ".join(visible(w) for w in where if w)
    return f"{place}: {visible(issue.message)}" if place else visible(issue.message)
