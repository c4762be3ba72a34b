"""The assessments of people and judges on a trace, as MLflow reads them.

MLflow rejects a whole trace for one assessment that it cannot read. Here are the exact types of the two kinds that
describe a run; when a trace is rewritten, the assessments of these types are kept. A reference to an issue is not one
of them: it points into the store of the trace, and MLflow 3.5 rejects a trace with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct

from agent_eval_schema.text import jsontext
from agent_eval_schema.text.moments import read_iso
from agent_eval_schema.traces.spans import NOTHING


class _Source(Struct, forbid_unknown_fields=True, gc=False):
    source_type: Literal["HUMAN", "LLM_JUDGE", "CODE", "SOURCE_TYPE_UNSPECIFIED"]
    source_id: str | None = None


class _Serialized(Struct, gc=False):
    serialization_format: str
    value: str


class _Expectation(Struct, gc=False):
    value: Any = UNSET
    serialized_value: _Serialized | None = None


class _Error(Struct, forbid_unknown_fields=True, gc=False):
    error_code: str
    error_message: str | None = None
    stack_trace: str | None = None


class _Feedback(Struct, gc=False):
    value: Any  # the key has to be there
    error: _Error | None = None


class _Assessment(Struct, forbid_unknown_fields=True, gc=False):
    assessment_name: str
    source: _Source
    create_time: str
    last_update_time: str
    expectation: _Expectation | None = None
    feedback: _Feedback | None = None
    assessment_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    rationale: str | None = None
    metadata: dict[str, str] | None = None
    overrides: str | None = None
    valid: bool | None = None


_assessments = msgspec.json.Decoder(list[_Assessment]).decode


def are_judged(given: Raw) -> bool:
    """Whether mlflow reads each of the assessments of a trace."""
    try:
        judged = [] if given is NOTHING else _assessments(given)
    except msgspec.MsgspecError:
        return False
    return all(map(_is_readable, judged))


def _is_readable(judged: _Assessment) -> bool:
    """The conditions that types cannot express."""
    if (judged.expectation is None) == (judged.feedback is None):
        return False
    if judged.expectation is not None and not _has_value(judged.expectation):
        return False
    return is_moment(judged.create_time) and is_moment(judged.last_update_time)


def _has_value(expectation: _Expectation) -> bool:
    if expectation.value is not UNSET or expectation.serialized_value is None:
        return expectation.value not in (None, UNSET)
    try:
        return jsontext.decode(expectation.serialized_value.value) is not None
    except msgspec.MsgspecError:
        return False


def is_moment(text: str) -> bool:
    """Whether protobuf reads the text as a time."""
    try:
        return bool(_MOMENT(text) and read_iso(text))
    except ValueError:  # the thirteenth month
        return False


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z").fullmatch


def kept(given: Any, trace_id: str, moment: str, spans: Mapping[str, str]) -> list[dict[str, Any]]:
    """The assessments that MLflow reads, as those of the trace `trace_id`; one without a time gets `moment`. `spans`
    has the new name of each span of the trace."""
    items = given if isinstance(given, list) else []
    made = [_placed(a, trace_id, moment, spans) for a in items if isinstance(a, dict)]
    return [a for a in made if _reads(a)]


def _placed(given: dict[str, Any], trace_id: str, moment: str, spans: Mapping[str, str]) -> dict[str, Any]:
    known = {key: given[key] for key in _Assessment.__struct_fields__ if given.get(key) is not None}
    span = {"span_id": spans.get(known["span_id"], known["span_id"])} if isinstance(known.get("span_id"), str) else {}
    times = {"create_time": moment, "last_update_time": known.get("create_time", moment)}
    return {"source": {"source_type": "SOURCE_TYPE_UNSPECIFIED"}, **times, **known, "trace_id": trace_id, **span}


def _reads(made: dict[str, Any]) -> bool:
    try:
        return _is_readable(msgspec.convert(made, _Assessment))
    except msgspec.ValidationError:
        return False
