"""The trace of a logged call, in its response or in a column: its content beyond the fields that validation reads."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agent_eval_schema.inference_tables.read.call_record import CallRecord
from agent_eval_schema.inference_tables.read.columns import LoggedColumns
from agent_eval_schema.inference_tables.read.feedback import read_trace_feedback
from agent_eval_schema.inference_tables.read.payloads import Answered, Asked
from agent_eval_schema.inference_tables.read.request_payloads import asked_of
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.text.describe import excerpt
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.spans import FAILED_CODES, Trace


class _Ids(Struct, gc=False):
    client_request_id: str | None = None
    request_id: str | None = None


class _Info(Struct, gc=False):
    info: _Ids | None = None


_info = msgspec.json.Decoder(_Info).decode


def read_trace(record: CallRecord, logged: LoggedColumns, row: int, answer: Answered) -> None:
    """The trace of a call: in its response, or in a column; its content beyond the fields that validation reads."""
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


def _look_at_ids(record: CallRecord, logged: LoggedColumns, row: int, trace: bytes, named: str | None) -> None:
    """Whether the trace is of another call. Most contain the ID of their call, which a search of the bytes finds."""
    own = [i for i in (logged.client_ids[row], logged.ids[row]) if i]
    quoted = [b'"' + i + b'"' for i in own]
    # An unsuccessful search is a long one, and the IDs are near the beginning.
    if not own or any([i in trace[:_HEAD] for i in quoted]) or any(i in trace for i in quoted):
        return
    try:
        ids = _info(trace).info
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    found = (ids.client_request_id or ids.request_id) if ids else None
    # tr-… is MLflow's own ID of the trace, which no table of calls has.
    if found and not found.startswith("tr-"):
        message = f"expected {excerpt(record.logged_id)}, got {excerpt(found)}"
        record.findings.append(Finding(rules.OTHER_TRACE, message, "trace", "trace.info"))
    elif named and named.encode() not in own:
        message = f"expected {excerpt(record.logged_id)}, got {excerpt(named)}"
        record.findings.append(Finding(rules.OTHER_TRACE, message, "response", "response.databricks_output"))


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
    asked = asked_of({"messages": messages}) if messages else None
    return asked.question if isinstance(asked, Asked) else None


class _Parts(Struct, forbid_unknown_fields=True, gc=False):
    info: msgspec.Raw
    data: msgspec.Raw


_parts = msgspec.json.Decoder(_Parts).decode


def _with_assessments(trace: bytes, assessments: bytes | None) -> bytes:
    """The trace with the assessments of a separate column, if it has none of its own."""
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
