"""One logged call → its records: why it is excluded, or the rows that it holds.

feedback? ─ in the window? ─ status ─ size ─ request ─ response ─ records
"""

import hashlib
from typing import Any

import msgspec
from msgspec import Struct, field

from agent_eval_schema.inference_tables.plan import BuildPlan
from agent_eval_schema.inference_tables.read.columns import LoggedColumns
from agent_eval_schema.inference_tables.read.payloads import (
    Request,
    Response,
    Unreadable,
    error_in,
    predictions_of,
    read_body,
    read_chat,
    read_other_request,
    read_response,
    request_content,
    response_content,
)
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.rules.reading import INTERNAL
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt
from agent_eval_schema.text.privacy import error_text
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.feedback import (
    Feedback,
    is_feedback,
    read_assessment_row,
    read_feedback,
    read_trace_feedback,
)
from agent_eval_schema.traces.spans import FAILED_CODES, Trace

OVERSIZE = (b"MAX_REQUEST_SIZE_EXCEEDED", b"MAX_RESPONSE_SIZE_EXCEEDED")


class CallRecord(Struct, gc=False):
    """A record of the logged row `row`, whose payloads are those of the call, of its part of a batch or, of a row that
    is excluded, the logged cells; `shared`: the measurements of the call belong to several records."""

    row: int
    logged_id: str
    request_id: str
    request: Request
    response: Response
    record: int | None = None
    label_id: str | None = None
    reason: str | None = None
    detail: str | None = None
    trace: bytes | None = None
    failed: bool | None = None
    shared: bool = False
    session_id: str | None = None
    feedback: list[Feedback] | None = None
    findings: list[Finding] = field(default_factory=list)


def new_record(logged: LoggedColumns, row: int, plan: BuildPlan, request: Request, response: Response) -> CallRecord:
    """A record of the row with its ID and the findings in its facts and payloads."""
    logged_id = logged.ids[row]
    record = CallRecord(row, logged_id.decode("utf-8", "replace") if logged_id else "", "", request, response)
    if not logged_id:
        digest = hashlib.blake2b(digest_size=8)  # of the content of the row, in whatever table or batch it is
        payloads = (logged.requests, logged.responses, logged.request_texts, logged.response_texts, logged.traces)
        for part in [column[row] for column in (logged.times, logged.statuses, *payloads)]:
            digest.update(b"\0" if part is None else b"\1" + (part if isinstance(part, bytes) else str(part).encode()))
        record.logged_id = f"row-{digest.hexdigest()}"
        message = f"the row has no id; {record.logged_id} is a hash of its content"
        record.findings.append(Finding(rules.NO_ID, message, "request_id"))
    record.request_id = record.logged_id
    record.findings += logged.found.get(row, ())
    time, status, errors = logged.times[row], logged.statuses[row], logged.errors[row]
    # five minutes, in us: clocks that are slightly fast are not reported
    if time is not None and plan.now is not None and time > plan.now + 300_000_000:
        record.findings.append(Finding(rules.FUTURE_CLOCK, "expected a time in the past, got one to come", "time"))
    if errors is not None and (plan.joins_traces or not any([code in errors for code in OVERSIZE])):
        codes = excerpt(errors.decode("utf-8", "replace"))
        record.findings.append(Finding(rules.LOGGING_ERROR, f"got {codes}", "logging_error_codes"))
    record.failed = response.error is not None or (None if status is None else status >= 400)
    session = logged.sessions[row]
    record.session_id = session.decode("utf-8", "replace") if session else request.session_id
    record.findings += request.findings + response.findings
    if response.partial is not None:
        record.findings.append(Finding(rules.PARTIAL_KEPT, response.partial, "response"))
    return record


def record_excluded(logged: LoggedColumns, row: int, plan: BuildPlan, reason: str, detail: str) -> CallRecord:
    """The record of a row that is excluded, with its logged cells."""
    request, response = logged.requests[row], logged.responses[row]
    sent = Request(logged.request_texts[row] if request is None else request)
    record = new_record(logged, row, plan, sent, Response(logged.response_texts[row] if response is None else response))
    record.reason, record.detail, record.trace = reason, detail, logged.traces[row]
    return record


def convert_call(logged: LoggedColumns, row: int, plan: BuildPlan) -> list[CallRecord]:
    """The records of a logged row: at least one. A defect of this package costs the row, not the run."""
    try:
        return _convert(logged, row, plan)
    except Exception as error:
        message = f"raised an exception: {type(error).__name__}: {error_text(error)}"
        record = record_excluded(logged, row, plan, "defect", message)
        record.findings.append(Finding(INTERNAL, message, "request"))
        return [record]


def _convert(logged: LoggedColumns, row: int, plan: BuildPlan) -> list[CallRecord]:
    if row in logged.no_rows:
        return [record_excluded(logged, row, plan, "malformed", logged.no_rows[row])]
    request, reason = logged.requests[row], _reason_in_facts(logged, row, plan)
    # A plain chat, as most are, is not feedback: it need not be searched for signs of that.
    skipped = reason is not None or logged.judgments or row in logged.deep_requests
    chat = None if request is None or skipped else read_chat(request)
    if chat is None:
        judged = _feedback_call(logged, row, plan)
        if judged is not None:
            return [judged]
        if reason is not None:
            return [record_excluded(logged, row, plan, *reason)]
    content = chat or _request_content(logged, row, plan)
    if isinstance(content, Unreadable):
        return [record_excluded(logged, row, plan, content.reason, content.detail)]
    text = logged.responses[row]
    if text is None:
        plain = logged.response_texts[row]
        answer: Response | Unreadable = Response() if plain is None else Response(plain.decode("utf-8", "replace"))
    else:
        is_payload, deep = logged.family.payloads, row in logged.deep_responses
        answer = read_response(text, is_payload=is_payload, wrapped=content.records is not None, deep=deep)
    if isinstance(answer, Unreadable):
        return [record_excluded(logged, row, plan, answer.reason, answer.detail)]
    if answer.error is not None and "status" not in plan.kept:
        return [record_excluded(logged, row, plan, "status", f"the response is an error: {answer.error}")]
    if answer.partial is not None and "partial" not in plan.kept:
        return [record_excluded(logged, row, plan, "partial", f"response: {answer.partial}")]
    if content.records is not None:
        # a record for each record of a wrapper, with its prediction
        predictions = predictions_of(answer, len(content.records))
        if isinstance(predictions, Unreadable):
            return [record_excluded(logged, row, plan, predictions.reason, predictions.detail)]
        return [_one_of_batch(logged, row, plan, i, own, content, answer) for i, own in enumerate(predictions)]
    record = new_record(logged, row, plan, content, answer)
    read_trace(record, logged, row, answer)
    return [record if _has_response(record, plan) else record_excluded(logged, row, plan, "no_response", _SILENT)]


_SILENT = "expected a response, got none"


def _has_response(record: CallRecord, plan: BuildPlan) -> bool:
    """Whether there is a response, or may be one: a call without one is never valid, so no sample may draw it."""
    has_response = not record.response.text is record.response.outputs is record.trace is None
    return has_response or plan.joins_traces or "invalid" in plan.kept


# --- facts that are known without reading the payloads
def _reason_in_facts(logged: LoggedColumns, row: int, plan: BuildPlan) -> tuple[str, str] | None:
    if (plan.since is not None or plan.until is not None) and "outside_window" not in plan.kept:
        time = logged.times[row]
        if time is None:
            return "outside_window", "the row has no time"
        if plan.since is not None and time < plan.since:
            return "outside_window", "logged before it"
        if plan.until is not None and time >= plan.until:
            return "outside_window", "logged after it"
    status = logged.statuses[row]
    if status is not None and status != 200 and "status" not in plan.kept:
        error = error_in(logged.responses[row])
        return "status", f"status {status}" + (f": {error}" if error else "")
    errors = logged.errors[row]
    if errors is not None and not plan.joins_traces and any([code in errors for code in OVERSIZE]):
        return "oversize", f"logging_error_codes: {', '.join(code.decode() for code in OVERSIZE if code in errors)}"
    if row in logged.unreadable:
        return "malformed", logged.unreadable[row]
    return None


# --- feedback
def _feedback_call(logged: LoggedColumns, row: int, plan: BuildPlan) -> CallRecord | None:
    """The record of a feedback call or of a row of an assessment log; None if the row is neither, or it is kept."""
    time = logged.times[row]
    if logged.judgments:
        cells = {n: column[row] for n, column in logged.judgments.items()}
        logged_id = logged.ids[row]
        entries, notes = read_assessment_row(cells, logged_id.decode("utf-8", "replace") if logged_id else None, time)
        detail = "a judgment of another row"
    else:
        request = logged.requests[row]
        if request is None or b"_assessments" not in request or "feedback" in plan.kept:
            return None
        body = jsontext.parse(request)
        content = read_body(body) if isinstance(body, dict) else None
        if not (isinstance(content, Request) and content.records and all([is_feedback(r) for r in content.records])):
            return None
        entries, notes = read_feedback(content.records, time)
        detail = "feedback on another row" if len(entries) == 1 else f"{len(entries):,} judgments of other rows"
    left_out = [f"{note.path}: {note.message}" for note in notes]
    if left_out:
        detail += f"; omitted: {'; '.join(left_out)}"
    record = record_excluded(logged, row, plan, "feedback", detail)
    record.feedback = entries
    record.findings += notes
    return record


# --- the payloads
def _request_content(logged: LoggedColumns, row: int, plan: BuildPlan) -> Request | Unreadable:
    """The request where it is not a plain chat: of the payload, else of the text column, else none (a trace has it)."""
    text = logged.requests[row]
    if text is None or not text.strip():
        text = logged.request_texts[row]
        if text is not None and text.strip():
            return request_content(text.decode("utf-8", "replace"))
        has_trace = logged.traces[row] is not None or b'"databricks_output"' in (logged.responses[row] or b"")
        if not has_trace and not plan.joins_traces:
            return Unreadable("no_request", "expected a request, got none")
        return Request()
    return read_other_request(text, logged.family.payloads)


def _one_of_batch(
    logged: LoggedColumns, row: int, plan: BuildPlan, i: int, prediction: Any, call: Request, answer: Response
) -> CallRecord:
    """Record `i` of a call. Only a lone record has the call's trace, latency and token counts for its own."""
    records = call.records or []
    own, count = records[i], len(records)
    content = request_content(own)
    if is_feedback(own) and "feedback" not in plan.kept:
        content = Unreadable("feedback", "feedback on another row")
    if isinstance(content, Unreadable):
        record = record_excluded(logged, row, plan, content.reason, f"record {i}: {content.detail}")
        record.request, record.response = Request(jsontext.encode(own)), Response(jsontext.encode(prediction))
        record.trace = None
        if content.reason == "feedback":
            record.feedback, notes = read_feedback([own], logged.times[row])
            record.findings += notes
    else:
        content.tags, content.session_id = call.tags, call.session_id
        record = new_record(logged, row, plan, content, response_content(prediction))
        record.findings += [*call.findings, *answer.findings]
    record.record, record.request_id = i, f"{record.logged_id}#{i}"
    record.shared = count > 1
    if count == 1:
        record.label_id = record.logged_id
        record.response.tokens = record.response.tokens or answer.tokens
        if record.reason is None:
            read_trace(record, logged, row, answer)
    elif record.reason is None:
        message = f"record {i} of {count:,}" + ("; its call has a trace" if answer.trace is not None else "")
        record.findings.append(Finding(rules.BATCH_CALL, message, "request"))
    if record.reason is None and not _has_response(record, plan):
        record.reason, record.detail = "no_response", f"record {i}: {_SILENT}"
    return record


# --- the trace
class _Info(Struct, gc=False):
    client_request_id: str | None = None
    request_id: str | None = None
    trace_id: str | None = None


class _Trace(Struct, gc=False):
    info: _Info | None = None


decode_ids = jsontext.decoder(_Trace)
"""The IDs in the text of a trace."""


def read_trace(record: CallRecord, logged: LoggedColumns, row: int, answer: Response) -> None:
    """The trace of a call: in its response, or in a column; its content beyond the fields that validation reads."""
    trace = answer.trace if answer.trace is not None else logged.traces[row]
    assessments = logged.assessments[row]
    if trace is None:
        return
    if logged.family.own_trace:
        trace = _with_assessments(trace, assessments)
        record.feedback = read_trace_feedback(assessments, record.request_id, logged.times[row]) or None
        if record.request.request is None:
            decoded = decode_trace(trace)  # which is all that is logged of this call
            messages = derive(decoded).request if isinstance(decoded, Trace) else None
            content = request_content({"messages": messages}) if messages else None
            record.request.question = content.question if isinstance(content, Request) else None
    else:
        _check_ids(record, logged, row, trace, answer.request_id)
    record.trace, record.response.calls = trace, None
    failing = decode_trace(trace) if b"ERROR" in trace else None
    if isinstance(failing, Trace):
        is_error = (failing.info.state or failing.info.status) == "ERROR"
        record.failed = is_error or any([s.code in FAILED_CODES for s in failing.spans]) or record.failed
    record.failed = bool(record.failed)


def _check_ids(record: CallRecord, logged: LoggedColumns, row: int, trace: bytes, named: str | None) -> None:
    """Whether the trace is of another call. Most contain the ID of their call, which a search of the bytes finds."""
    own = [i for i in (logged.client_ids[row], logged.ids[row]) if i]
    quoted = [b'"' + i + b'"' for i in own]
    # An unsuccessful search is a long one, and the IDs are mostly in the first 512 bytes.
    if not own or any([i in trace[:512] for i in quoted]) or any(i in trace for i in quoted):
        return
    try:
        ids = decode_ids(trace).info
    except ValueError:
        return
    call_id = (ids.client_request_id or ids.request_id) if ids else None
    # tr-… is MLflow's own ID of the trace, which no table of calls has.
    if call_id and not call_id.startswith("tr-"):
        message = f"expected {excerpt(record.logged_id)}, got {excerpt(call_id)}"
        record.findings.append(Finding(rules.OTHER_TRACE, message, "trace", "trace.info"))
    elif named and named.encode() not in own:
        message = f"expected {excerpt(record.logged_id)}, got {excerpt(named)}"
        record.findings.append(Finding(rules.OTHER_TRACE, message, "response", "response.databricks_output"))


class _Parts(Struct, forbid_unknown_fields=True, gc=False):
    info: msgspec.Raw
    data: msgspec.Raw


_parts_of_trace = jsontext.decoder(_Parts)


def _with_assessments(trace: bytes, assessments: bytes | None) -> bytes:
    """The trace with the assessments of a separate column, if it has none of its own."""
    if assessments is None or not assessments.startswith(b"[{") or b'"assessments"' in trace:
        return trace
    try:
        parts = _parts_of_trace(trace)
    except ValueError:
        return trace
    info = bytes(parts.info).rstrip()
    if not info.startswith(b"{") or info[1:-1].strip() == b"":
        return trace
    return b'{"info":' + info[:-1] + b',"assessments":' + assessments + b'},"data":' + bytes(parts.data) + b"}"
