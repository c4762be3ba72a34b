"""`CallRecord`: a logged call, or one record of a batch call, while it is read."""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import Struct, field

from agent_eval_schema.inference_tables.read.columns import LoggedColumns
from agent_eval_schema.inference_tables.read.feedback import Feedback
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.text.describe import excerpt
from agent_eval_schema.traces.reading import Tokens

OVERSIZE = (b"MAX_REQUEST_SIZE_EXCEEDED", b"MAX_RESPONSE_SIZE_EXCEEDED")


class CallRecord(Struct, gc=False):
    """A record of the logged row `row`. `shared` is true if the measurements of the call belong to several
    records."""

    row: int
    logged_id: str
    request_id: str
    record: int | None = None
    label_id: str | None = None
    reason: str | None = None
    detail: str | None = None
    request: bytes | None = None
    inputs: bytes | None = None
    plain: bool = False
    response: str | bytes | None = None
    outputs: bytes | None = None
    trace: bytes | None = None
    question: bytes | None = None
    failed: bool | None = None
    shared: bool = False
    tokens: Tokens | None = None
    calls: list[dict[str, str | None]] | None = None
    session_id: str | None = None
    tags: dict[str, str] | None = None
    feedback: list[Feedback] | None = None
    findings: list[Finding] = field(default_factory=list)


def new_record(logged: LoggedColumns, row: int, plan: BuildPlan) -> CallRecord:
    """A record of the row with its ID and the findings in its facts."""
    logged_id = logged.ids[row]
    record = CallRecord(row, logged_id.decode("utf-8", "replace") if logged_id else "", "")
    if not logged_id:
        record.logged_id = f"row-{_fingerprint(logged, row)}"
        message = f"the row has no id; {record.logged_id} is a hash of its content"
        record.findings.append(Finding(rules.NO_ID, message, "request_id"))
    record.request_id = record.logged_id
    record.findings += logged.found.get(row, ())
    time, status, errors = logged.times[row], logged.statuses[row], logged.errors[row]
    if time is not None and plan.now is not None and time > plan.now + _CLOCK_DRIFT:
        record.findings.append(Finding(rules.FUTURE_CLOCK, "expected a time in the past, got one to come", "time"))
    if errors is not None and (plan.joins_traces or not any([code in errors for code in OVERSIZE])):
        codes = excerpt(errors.decode("utf-8", "replace"))
        record.findings.append(Finding(rules.LOGGING_ERROR, f"got {codes}", "logging_error_codes"))
    record.failed = None if status is None else status >= 400
    if logged.sessions[row]:
        record.session_id = (logged.sessions[row] or b"").decode("utf-8", "replace")
    return record


_CLOCK_DRIFT = 300_000_000
"""Five minutes, in us: clocks that are slightly fast are not reported."""


def _fingerprint(logged: LoggedColumns, row: int) -> str:
    """16 hex digits of the content of the row, in whatever table or batch it is."""
    digest = hashlib.blake2b(digest_size=8)
    parts: list[Any] = [logged.times[row], logged.statuses[row]]
    columns = (logged.requests, logged.responses, logged.request_texts, logged.response_texts, logged.traces)
    for part in (*parts, *(column[row] for column in columns)):
        digest.update(b"\0" if part is None else b"\1" + (part if isinstance(part, bytes) else str(part).encode()))
    return digest.hexdigest()


def record_excluded(logged: LoggedColumns, row: int, plan: BuildPlan, reason: str, detail: str) -> CallRecord:
    """The record of a row that is excluded, with its logged cells."""
    record = new_record(logged, row, plan)
    record.reason, record.detail = reason, detail
    record.request = logged.requests[row] if logged.requests[row] is not None else logged.request_texts[row]
    record.response = logged.responses[row] if logged.responses[row] is not None else logged.response_texts[row]
    record.trace = logged.traces[row]
    return record
