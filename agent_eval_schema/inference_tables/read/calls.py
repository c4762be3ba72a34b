"""One logged call → its records: why it is set aside, or the rows that it holds.

feedback? ─ in the window? ─ status ─ size ─ request ─ response ─ records
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct, field

from agent_eval_schema.inference_tables.read import payloads
from agent_eval_schema.inference_tables.read.columns import Logged
from agent_eval_schema.inference_tables.read.feedback import (
    Feedback,
    Note,
    is_feedback,
    read_assessment_row,
    read_feedback,
    read_trace_feedback,
)
from agent_eval_schema.inference_tables.read.payloads import Answer, Asked, Broken, Remark
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.rules import production as rules
from agent_eval_schema.rules.reading import INTERNAL
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt
from agent_eval_schema.text.privacy import error_text
from agent_eval_schema.traces.decode import FAILED_CODES, Trace, decode_trace
from agent_eval_schema.traces.derive import Tokens, derive

OVERSIZE = (b"MAX_REQUEST_SIZE_EXCEEDED", b"MAX_RESPONSE_SIZE_EXCEEDED")


class Record(Struct, gc=False):
    """A record of the logged row `row`. `shared` says that what was measured of the call is not this record's alone."""

    row: int
    logged_id: str
    request_id: str
    record: int | None = None
    label_id: str | None = None
    reason: str | None = None
    detail: str | None = None
    request: bytes | None = None
    plain: bool = False
    response: str | bytes | None = None
    trace: bytes | None = None
    question: bytes | None = None
    failed: bool | None = None
    shared: bool = False
    tokens: Tokens | None = None
    calls: list[dict[str, str | None]] | None = None
    session_id: str | None = None
    tags: dict[str, str] | None = None
    feedback: list[Feedback] | None = None
    remarks: list[Remark] = field(default_factory=list)


def convert_call(logged: Logged, row: int, plan: BuildPlan) -> list[Record]:
    """The records of a logged row: at least one. A defect of this package costs the row, not the run."""
    try:
        return _convert(logged, row, plan)
    except Exception as error:
        message = f"broke down: {type(error).__name__}: {error_text(error)}"
        record = _set_aside(logged, row, plan, "defect", message)
        record.remarks.append((INTERNAL, "request", "request", message))
        return [record]


def _convert(logged: Logged, row: int, plan: BuildPlan) -> list[Record]:
    if row in logged.no_rows:
        return [_set_aside(logged, row, plan, "malformed", logged.no_rows[row])]
    request, reason = logged.requests[row], _reason_in_facts(logged, row, plan)
    # A plain chat, as nearly all are, is no feedback: it need not be searched for signs of that.
    chat = None if request is None or reason is not None or logged.judgements else payloads.read_chat(request)
    if chat is None:
        judged = _feedback_call(logged, row, plan)
        if judged is not None:
            return [judged]
        if reason is not None:
            return [_set_aside(logged, row, plan, *reason)]
    asked = chat or _asked(logged, row, plan)
    if isinstance(asked, Broken):
        return [_set_aside(logged, row, plan, asked.reason, asked.detail)]
    answer = _answer(logged, row, asked.records is not None)
    if isinstance(answer, Broken):
        return [_set_aside(logged, row, plan, answer.reason, answer.detail)]
    if answer.error is not None and "status" not in plan.kept:
        return [_set_aside(logged, row, plan, "status", f"the response is an error: {answer.error}")]
    if answer.partial is not None and "partial" not in plan.kept:
        return [_set_aside(logged, row, plan, "partial", f"response: {answer.partial}")]
    if asked.records is not None:
        return _batch(logged, row, plan, asked, answer)
    record = _new(logged, row, plan)
    _fill(record, asked, answer)
    _look_at_trace(record, logged, row, answer)
    return [record]


# ---------------------------------------------------------------------------------------------------------------------
# what is known without reading the payloads
def _reason_in_facts(logged: Logged, row: int, plan: BuildPlan) -> tuple[str, str] | None:
    if (plan.since is not None or plan.until is not None) and "outside_window" not in plan.kept:
        time = logged.times[row]
        if time is None:
            return "outside_window", "the row has no time"
        if (plan.since is not None and time < plan.since) or (plan.until is not None and time >= plan.until):
            return (
                "outside_window",
                f"logged {'before' if plan.since is not None and time < plan.since else 'after'} it",
            )
    status = logged.statuses[row]
    if status is not None and status != 200 and "status" not in plan.kept:
        said = payloads.error_in(logged.responses[row])
        return "status", f"status {status}" + (f": {said}" if said else "")
    errors = logged.errors[row]
    if errors is not None and not plan.joins_traces and any([code in errors for code in OVERSIZE]):
        found = [code.decode() for code in OVERSIZE if code in errors]
        return "oversize", f"logging_error_codes: {', '.join(found)}"
    if row in logged.unreadable:
        return "malformed", logged.unreadable[row]
    return None


def _new(logged: Logged, row: int, plan: BuildPlan) -> Record:
    """A record of the row with its id and the remarks on its facts."""
    logged_id = logged.ids[row]
    record = Record(row, logged_id.decode("utf-8", "replace") if logged_id else "", "")
    if not logged_id:
        record.logged_id = f"row-{_fingerprint(logged, row)}"
        message = f"the row has no id; {record.logged_id} is a hash of its content"
        record.remarks.append((rules.NO_ID, "request_id", "request_id", message))
    record.request_id = record.logged_id
    for rule, column, message in logged.found.get(row, ()):
        record.remarks.append((rule, column, column, message))
    time, status, errors = logged.times[row], logged.statuses[row], logged.errors[row]
    if time is not None and plan.now is not None and time > plan.now + _CLOCK_DRIFT:
        record.remarks.append((rules.FUTURE_CLOCK, "time", "time", "expected a time in the past, got one to come"))
    if errors is not None and (plan.joins_traces or not any([code in errors for code in OVERSIZE])):
        said = excerpt(errors.decode("utf-8", "replace"))
        record.remarks.append((rules.LOGGING_ERROR, "logging_error_codes", "logging_error_codes", f"got {said}"))
    record.failed = None if status is None else status >= 400
    if logged.sessions[row]:
        record.session_id = (logged.sessions[row] or b"").decode("utf-8", "replace")
    return record


_CLOCK_DRIFT = 300_000_000
"""Five minutes, in us: clocks that are a little fast are no finding."""


def _fingerprint(logged: Logged, row: int) -> str:
    """16 hex digits of what the row holds, whatever table or batch it stands in."""
    digest = hashlib.blake2b(digest_size=8)
    parts: list[Any] = [logged.times[row], logged.statuses[row]]
    columns = (logged.requests, logged.responses, logged.request_texts, logged.response_texts, logged.traces)
    for part in (*parts, *(column[row] for column in columns)):
        digest.update(b"\0" if part is None else b"\1" + (part if isinstance(part, bytes) else str(part).encode()))
    return digest.hexdigest()


def _set_aside(logged: Logged, row: int, plan: BuildPlan, reason: str, detail: str) -> Record:
    """The record of a row that is set aside, with its logged cells."""
    record = _new(logged, row, plan)
    record.reason, record.detail = reason, detail
    record.request = logged.requests[row] if logged.requests[row] is not None else logged.request_texts[row]
    record.response = logged.responses[row] if logged.responses[row] is not None else logged.response_texts[row]
    record.trace = logged.traces[row]
    return record


# ---------------------------------------------------------------------------------------------------------------------
# feedback
def _feedback_call(logged: Logged, row: int, plan: BuildPlan) -> Record | None:
    """The record of a feedback call or of a row of an assessment log; None if the row is neither, or it is kept."""
    time = logged.times[row]
    if logged.judgements:
        cells = {n: column[row] for n, column in logged.judgements.items()}
        logged_id = logged.ids[row]
        entries, notes = read_assessment_row(cells, logged_id.decode("utf-8", "replace") if logged_id else None, time)
        detail = "a judgement of another row"
    else:
        request = logged.requests[row]
        if request is None or b"_assessments" not in request or "feedback" in plan.kept:
            return None
        body = jsontext.parse(request)
        asked = payloads.read_body(body) if isinstance(body, dict) else None
        if not isinstance(asked, Asked) or not asked.records or not all([is_feedback(r) for r in asked.records]):
            return None
        entries, notes = read_feedback(asked.records, time)
        detail = "feedback on another row" if len(entries) == 1 else f"{len(entries):,} judgements of other rows"
    left_out = [f"{path}: {message}" for _, path, message in notes]
    if left_out:
        detail += f"; left out: {'; '.join(left_out)}"
    record = _set_aside(logged, row, plan, "feedback", detail)
    record.feedback = entries
    record.remarks += [_remark(n) for n in notes]
    return record


def _remark(note: Note) -> Remark:
    rule, path, message = note
    return rule, "request", path, message


# ---------------------------------------------------------------------------------------------------------------------
# the payloads
def _asked(logged: Logged, row: int, plan: BuildPlan) -> Asked | Broken:
    """What was asked where it is no plain chat: by the payload, else by the text beside it, else by the trace alone
    (nothing)."""
    text = logged.requests[row]
    if text is None or not text.strip():
        text = logged.request_texts[row]
        if text is not None and text.strip():
            return payloads.asked_of(text.decode("utf-8", "replace"))
        if logged.traces[row] is None and not plan.joins_traces and not _trace_in_response(logged, row):
            return Broken("no_request", "expected a request, got none")
        return Asked()
    return payloads.read_other_request(text, logged.family.payloads)


def _trace_in_response(logged: Logged, row: int) -> bool:
    response = logged.responses[row]
    return response is not None and b'"databricks_output"' in response


def _answer(logged: Logged, row: int, wrapped: bool) -> Answer | Broken:
    text = logged.responses[row]
    if text is None:
        said = logged.response_texts[row]
        return Answer(said.decode("utf-8", "replace")) if said is not None else Answer()
    return payloads.read_response(text, is_payload=logged.family.payloads, wrapped=wrapped)


def _fill(record: Record, asked: Asked, answer: Answer) -> None:
    record.request, record.question, record.plain = asked.request, asked.question, asked.plain
    record.response = answer.text
    record.tokens = answer.tokens
    record.session_id = record.session_id or asked.session_id
    record.tags = asked.tags
    if answer.calls:
        record.calls = [_call(*c) for c in answer.calls]
    if asked.remarks or answer.remarks:
        record.remarks += asked.remarks + answer.remarks
    if answer.error is not None:
        record.failed = True
    if answer.partial is not None:
        record.remarks.append((rules.PARTIAL_KEPT, "response", "response", answer.partial))


def _call(name: str, arguments: dict[str, Any] | None) -> dict[str, str | None]:
    return {"tool_name": name, "tool_input": None if arguments is None else jsontext.encode(arguments).decode()}


def _batch(logged: Logged, row: int, plan: BuildPlan, asked: Asked, answer: Answer) -> list[Record]:
    """A record for each record of a wrapper, with its prediction."""
    given = asked.records or []
    predictions = payloads.predictions_of(answer, len(given))
    if isinstance(predictions, Broken):
        return [_set_aside(logged, row, plan, predictions.reason, predictions.detail)]
    return [
        _one_of_batch(logged, row, plan, i, len(given), record, prediction, asked, answer)
        for i, (record, prediction) in enumerate(zip(given, predictions, strict=True))
    ]


def _one_of_batch(
    logged: Logged,
    row: int,
    plan: BuildPlan,
    i: int,
    count: int,
    given: Any,
    prediction: Any,
    call: Asked,
    answer: Answer,
) -> Record:
    """Record `i` of `count`. Only a lone record has the call's trace, latency and token counts for its own."""
    asked = payloads.asked_of(given)
    if is_feedback(given) and "feedback" not in plan.kept:
        asked = Broken("feedback", "feedback on another row")
    if isinstance(asked, Broken):
        record = _set_aside(logged, row, plan, asked.reason, f"record {i}: {asked.detail}")
        record.request, record.response = jsontext.encode(given), jsontext.encode(prediction)
        record.trace = None
        if asked.reason == "feedback":
            record.feedback, notes = read_feedback([given], logged.times[row])
            record.remarks += [_remark(n) for n in notes]
    else:
        record = _new(logged, row, plan)
        _fill(record, asked, payloads.answer_of(prediction))
        record.remarks += [*call.remarks, *answer.remarks]
        record.tags, record.session_id = call.tags, record.session_id or call.session_id
    record.record, record.request_id = i, f"{record.logged_id}#{i}"
    record.shared = count > 1
    if count == 1:
        record.label_id = record.logged_id
        record.tokens = record.tokens or answer.tokens
        if record.reason is None:
            _look_at_trace(record, logged, row, answer)
    elif record.reason is None:
        left = f"record {i} of {count:,}" + ("; its call has a trace" if answer.trace is not None else "")
        record.remarks.append((rules.BATCH_CALL, "request", "request", left))
    return record


# ---------------------------------------------------------------------------------------------------------------------
# the trace
class _Ids(Struct, gc=False):
    client_request_id: str | None = None
    request_id: str | None = None


class _Info(Struct, gc=False):
    info: _Ids | None = None


_info = msgspec.json.Decoder(_Info).decode


def _look_at_trace(record: Record, logged: Logged, row: int, answer: Answer) -> None:
    """The trace of a call: in its response, or in a column; what it says of the call beside what validation reads."""
    trace = answer.trace if answer.trace is not None else logged.traces[row]
    assessments = logged.assessments[row]
    if trace is None:
        return
    if logged.family.own_trace:
        trace = _with_assessments(trace, assessments)
        record.feedback = read_trace_feedback(assessments, record.request_id, logged.times[row]) or None
        if record.request is None:
            record.question = _question_in(trace)
    else:
        _look_at_ids(record, logged, row, trace, answer.request_id)
    record.trace, record.calls = trace, None
    if b"ERROR" in trace and _has_failed(trace):
        record.failed = True
    elif record.failed is None:
        record.failed = False


def _look_at_ids(record: Record, logged: Logged, row: int, trace: bytes, named: str | None) -> None:
    """Whether the trace names another call. Nearly all hold the id of theirs, which a search of the bytes finds."""
    own = [i for i in (logged.client_ids[row], logged.ids[row]) if i]
    quoted = [b'"' + i + b'"' for i in own]
    # A search for what is not there is a long one, and the ids stand near the beginning.
    if not own or any([i in trace[:_HEAD] for i in quoted]) or any(i in trace for i in quoted):
        return
    try:
        ids = _info(trace).info
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    found = (ids.client_request_id or ids.request_id) if ids else None
    # tr-… is MLflow's own id of the trace, which no table of calls knows.
    if found and not found.startswith("tr-"):
        message = f"expected {excerpt(record.logged_id)}, got {excerpt(found)}"
        record.remarks.append((rules.OTHER_TRACE, "trace", "trace.info", message))
    elif named and named.encode() not in own:
        message = f"expected {excerpt(record.logged_id)}, got {excerpt(named)}"
        record.remarks.append((rules.OTHER_TRACE, "response", "response.databricks_output", message))


_HEAD = 512
"""So many bytes of a trace hold its ids, mostly."""


def _has_failed(trace: bytes) -> bool:
    decoded = decode_trace(trace)
    if not isinstance(decoded, Trace):
        return False
    state = decoded.info.state or decoded.info.status
    return state == "ERROR" or any([s.code in FAILED_CODES for s in decoded.spans])


def _question_in(trace: bytes) -> bytes | None:
    """The question of a call that is logged as a trace alone."""
    decoded = decode_trace(trace)
    messages = derive(decoded).request if isinstance(decoded, Trace) else None
    asked = payloads.asked_of({"messages": messages}) if messages else None
    return asked.question if isinstance(asked, Asked) else None


class _Parts(Struct, forbid_unknown_fields=True, gc=False):
    info: msgspec.Raw
    data: msgspec.Raw


_parts = msgspec.json.Decoder(_Parts).decode


def _with_assessments(trace: bytes, assessments: bytes | None) -> bytes:
    """The trace with the assessments that stand in a column beside it, if it has none of its own."""
    if assessments is None or not assessments.startswith(b"[{") or b'"assessments"' in trace:
        return trace
    try:
        parts = _parts(trace)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return trace
    info = bytes(parts.info).rstrip()
    if not info.startswith(b"{") or info[1:-1].strip() == b"":
        return trace
    return b'{"info":' + info[:-1] + b',"assessments":' + assessments + b'},"data":' + bytes(parts.data) + b"}"
